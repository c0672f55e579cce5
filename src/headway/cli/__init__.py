"""The `headway` command, one file a command. `headway --help` lists them.

- Results go to standard output; progress, counts of skipped sentences and errors go to standard error.
- Exit status: 0 done, 1 an error, said in one sentence, 2 wrong usage, 130 Ctrl-C, 143 terminated.
- Nothing heavy is imported before a command runs: help comes at once.
"""

from __future__ import annotations

import io
import signal
import sys
from types import FrameType


def main() -> None:
    """Run the command of `sys.argv`."""
    from headway.cli.app import app

    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name or a label that the terminal cannot show is no reason to fail; trees are written as bytes.
        sys.stdout.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, _leave)
    app(prog_name="headway")


def _leave(number: int, frame: FrameType | None) -> None:
    """End as after an error, so that temporary files are removed."""
    sys.exit(128 + number)
