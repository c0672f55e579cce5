"""The `headway` command: one file per subcommand. `headway --help` lists them.

- Results go to standard output; progress, counts of skipped sentences and errors go to standard error.
- Exit status: 0 success, 1 an error, stated in one sentence, 2 wrong usage, 130 Ctrl-C, 143 terminated.
- Nothing heavy is imported before a command runs, so help appears at once.
"""

from __future__ import annotations

import io
import sys


def main() -> None:
    """Run the command of `sys.argv`."""
    from headway.cli.signals import all_is_written, end_with_status, heed_signals, leave_if_told

    heed_signals()
    from headway.cli.app import app

    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name or label that the terminal cannot show is no reason to fail. Trees are written as bytes.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="headway")
    except Exception:
        leave_if_told()
        raise
    finally:
        end_with_status()
        all_is_written()
