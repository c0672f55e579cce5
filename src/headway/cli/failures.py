"""What went wrong, in one sentence on standard error, and the exit status that says so.

Errors that Headway names, and those of the system (files, memory), never show a traceback. Anything else is a mistake
of ours and keeps its traceback, so that it can be reported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from headway.errors import HeadwayError, TreebankError


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Turn a failure into its sentence and exit status; that the reader of the output went away is not worth one."""
    try:
        yield
        sys.stdout.flush()  # here, where a reader that went away is expected
    except BrokenPipeError:
        _drop_output()
        raise typer.Exit(1) from None
    except HeadwayError as error:
        raise failed(str(error)) from None
    except MemoryError:
        raise failed("the memory is used up; take smaller data or fewer threads, or a larger machine") from None
    except OSError as error:
        where = f"{os.fspath(error.filename)!s}: " if error.filename is not None else ""
        raise failed(f"{where}{error.strerror or error}") from None
    except KeyboardInterrupt:
        raise interrupted("") from None


def failed(sentence: str) -> typer.Exit:
    """Say what went wrong; the exception to raise."""
    typer.echo(f"headway: error: {sentence}", err=True)
    return typer.Exit(1)


def interrupted(remedy: str) -> typer.Exit:
    """Say that Ctrl-C was heard, and what to do next; the exception to raise."""
    typer.echo(f"\nheadway: interrupted{remedy}", err=True)
    return typer.Exit(130)


def note(sentence: str) -> None:
    """Something to know, for whoever is watching; a pipe stays silent."""
    if sys.stderr.isatty():
        typer.echo(f"headway: {sentence}", err=True)


def require_one_standard_input(*names: str | None) -> None:
    """Standard input can be read once only."""
    if names.count("-") > 1:
        raise typer.BadParameter("standard input (-) is given twice; give a file name for one of them")


class Skipped:
    """Counts the malformed sentences, or documents, that `--skip-bad` leaves out.

    >>> skipped = Skipped()
    >>> skipped(TreebankError("the ID is 'x'; expected 1", "a.conllu", 7))
    >>> str(skipped)
    "1 malformed sentence left out; the first: a.conllu, line 7: the ID is 'x'; expected 1"
    """

    def __init__(self, what: str = "sentence") -> None:
        self.what = what
        self.count = 0
        self._first: TreebankError | None = None

    def __call__(self, error: TreebankError) -> None:
        self.count += 1
        self._first = self._first or error

    def __str__(self) -> str:
        return f"{self.count} malformed {self.what}{'s' * (self.count != 1)} left out; the first: {self._first}"

    def report(self) -> None:
        """Say how many there were, if there were any."""
        if self.count:
            typer.echo(f"headway: {self}", err=True)


def _drop_output() -> None:
    """What is left in the buffer has no reader; without this Python would complain about it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
