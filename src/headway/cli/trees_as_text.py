"""Trees drawn as text: to fit the terminal in width, colours and characters, or plain for files and pipes."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from headway.arrays import Floats
    from headway.treebank import Sentence

_COLUMNS = 100  # in files and pipes


@contextmanager
def text_target(output: str) -> Iterator[Callable[[str], None]]:
    """A function that writes text to a file, or to standard output ("-") in its encoding."""
    if output == "-":
        yield partial(typer.echo, nl=False)
        return
    from headway.treebank.streams import open_target

    with open_target(output) as write:
        yield write


def tree_as_text(sentence: Sentence, probabilities: Floats | None, unsure_below: float | None, output: str) -> str:
    """The tree, drawn to suit the output; arcs less probable than `unsure_below` (None: all arcs) are marked."""
    from headway.drawing import tree_text

    to_standard_output = output == "-"
    to_terminal = to_standard_output and sys.stdout.isatty()
    return tree_text(
        sentence,
        probabilities=probabilities,
        unsure_below=None if probabilities is None else unsure_below,
        color=to_terminal and not os.environ.get("NO_COLOR"),
        ascii=to_standard_output and not _has_lines(sys.stdout.encoding),
        width=shutil.get_terminal_size().columns if to_terminal else _COLUMNS,
    )


def _has_lines(encoding: str) -> bool:
    """Whether this encoding has the characters that arcs are drawn with.

    >>> _has_lines("utf-8"), _has_lines("latin-1")
    (True, False)
    """
    try:
        "┌┬└┴├┼│─═►".encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
