"""Errors as one sentence on standard error, with the exit status to match.

Headway's own errors, and those of the system (files, memory), never show a traceback. Anything else is a bug in
Headway and keeps its traceback, so that it can be reported.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from headway.atomic import FULL, remedy
from headway.cli.signals import command_running
from headway.cli.tables import counted
from headway.errors import HeadwayError, printable


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Turn a failure into a sentence and an exit status. A closed output pipe gets no sentence."""
    try:
        with command_running():
            yield
            sys.stdout.flush()  # here, where a closed pipe is expected
    except BrokenPipeError:
        _drop_output()
        raise typer.Exit(1) from None
    except HeadwayError as error:
        raise failed(str(error)) from None
    except MemoryError:
        raise failed("out of memory; use less data, fewer threads or a larger machine") from None
    except OSError as error:
        raise failed(_of_the_system(error)) from None
    except KeyboardInterrupt as error:
        typer.echo(f"\nheadway: interrupted{printable(str(error))}", err=True)
        raise typer.Exit(130) from None


def failed(sentence: str) -> typer.Exit:
    """Print what went wrong, and return the exception to raise."""
    typer.echo(f"headway: error: {printable(sentence)}", err=True)
    return typer.Exit(1)


def note(sentence: str) -> None:
    """Print a note on a terminal; nothing where standard error is a file or a pipe."""
    if sys.stderr.isatty():
        typer.echo(f"headway: {printable(sentence)}", err=True)


@contextmanager
def warnings_in_one_line(category: type[Warning]) -> Iterator[None]:
    """Print warnings of a category as the command's own, each once."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", category)
        own, said = warnings.showwarning, set[str]()

        def show(message: Warning | str, kind: type[Warning], *place: Any, **more: Any) -> None:
            if not issubclass(kind, category):
                own(message, kind, *place, **more)
            elif str(message) not in said:
                said.add(str(message))
                typer.echo(f"headway: warning: {printable(str(message))}", err=True)

        warnings.showwarning = show  # type: ignore[assignment]
        yield


class Skipped:
    """Counts the malformed sentences, or documents, that `--skip-bad` skips.

    >>> from headway.errors import TreebankError
    >>> skipped = Skipped()
    >>> skipped(TreebankError("the ID is 'x'; expected 1", "a.conllu", 7))
    >>> str(skipped)
    "1 malformed sentence skipped; the first: a.conllu, line 7: the ID is 'x'; expected 1"
    """

    def __init__(self, what: str = "sentence") -> None:
        self.what = what
        self.count = 0
        self._first: HeadwayError | None = None

    def __call__(self, error: HeadwayError) -> None:
        self.count += 1
        self._first = self._first or error

    def __str__(self) -> str:
        return f"{counted(self.count, f'malformed {self.what}')} skipped; the first: {self._first}"

    def report(self) -> None:
        """Print how many there were, if any."""
        if self.count:
            typer.echo(f"headway: {self}", err=True)


def _of_the_system(error: OSError) -> str:
    """What went wrong; standard output, which may be full, is the one place without a name."""
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror or error}"
    if error.errno in FULL:
        return f"writing failed ({error.strerror}); {remedy(error)}"
    return str(error.strerror or error)


def _drop_output() -> None:
    """Discard what is left in the buffer, or Python would complain about the closed pipe when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
