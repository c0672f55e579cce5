"""The process that trains a model while people annotate.

    python -m headway.annotation.training_process KIND SOURCE OUTPUT [DEV]

KIND is "train", on trees of which some heads may be unknown, or "universal", on tags by the universal rules. Every pass
is a line of JSON on standard output, `{"stage", "pass", "passes"}`; what went wrong is `{"error"}`. A process of its
own keeps the pages quick, and ends with them: it stops when nobody reads what it writes.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from headway.errors import HeadwayError
from headway.learning.monitor import Progress
from headway.pipeline import Parser

_POLITENESS = 10


def train(kind: str, source: Path, output: Path, dev: Path | None) -> None:
    """Train and save a parser."""
    if kind == "train":
        parser = Parser.train(source, dev, show=_show)
    else:
        parser = Parser.constrain("universal", source, show=_show)
    parser.save(output)


def _show(progress: Progress) -> None:
    _say({"stage": progress.stage, "pass": progress.number, "passes": progress.passes})


def _say(message: dict[str, object]) -> None:
    print(json.dumps(message), flush=True)


def main(kind: str, source: str, output: str, dev: str | None = None) -> int:
    """Train at low priority; 1 if that fails."""
    with suppress(AttributeError, OSError):  # Windows has no such thing
        os.nice(_POLITENESS)
    try:
        train(kind, Path(source), Path(output), None if dev is None else Path(dev))
    except HeadwayError as error:
        _say({"error": str(error)})
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
