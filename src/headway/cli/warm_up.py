"""`headway warm-up`: compile what a model needs before the first text comes, as when an image is built.

Numba compiles one kernel at a time in a process. What nothing is kept of yet is therefore compiled in several: this one
takes one task, and the commands `headway warm-up MODEL --only TASK` take the others. `headway parse` does the same when
it finds that nothing has been compiled.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.reading import load_parser, require_model

if TYPE_CHECKING:
    from headway.pipeline import Parser

EXAMPLES = ("headway warm-up", "headway warm-up model.headway")

_WORDS, _TAGS = ["Time", "flies", "."], ["NOUN", "VERB", "PUNCT"]
_TEXT = "Time flies. It does."


class Task(StrEnum):
    """What compiles apart from the rest."""

    TEXT = "text"
    TREES = "trees"
    PROBABILITIES = "probabilities"


def warm_up(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file, or the name of a model.")] = "en",
    *,
    only: Annotated[Task | None, typer.Option(hidden=True)] = None,
) -> None:
    """Compile what parsing with a model needs.

    For images, and before tests. What is compiled is kept beside the library, or where NUMBA_CACHE_DIR says.
    """
    require_model(model)
    parser = load_parser(model)
    if only is not None:
        _RUN[only](parser)
        return
    get_ready(model, parser)
    typer.echo(f"headway: what {model} needs is compiled", err=True)


def get_ready(model: str, parser: Parser) -> None:
    """Compile or load all that the parser needs, so that its first sentence waits for nothing."""
    compile_side_by_side(model, parser, list(Task))
    for task in Task:
        _RUN[task](parser)


def compile_side_by_side(model: str, parser: Parser, tasks: Sequence[Task]) -> None:
    """Compile tasks of which nothing is kept, each in a process, if there are several; one alone compiles when needed.

    Whatever fails in another process is compiled in this one when it is needed.
    """
    from headway.inference.kernel_cache import must_compile

    able = [task for task in tasks if task is not Task.TEXT or parser.segmenter is not None]
    wanted = [task for task in able if must_compile(_module(task, parser))]
    if len(wanted) < 2 or not sys.executable:
        return
    others: list[subprocess.Popen[bytes]] = []
    try:
        with suppress(OSError):
            others.extend(_begin(model, task) for task in wanted[1:])
        _RUN[wanted[0]](parser)
        for other in others:
            other.wait()
    finally:
        for other in others:
            other.kill()
            other.wait()


def _begin(model: str, task: Task) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "headway", "warm-up", model, "--only", task.value]
    null = subprocess.DEVNULL
    return subprocess.Popen(command, env=os.environ | {"HEADWAY_QUIET": "1"}, stdin=null, stdout=null, stderr=null)


def _module(task: Task, parser: Parser) -> str:
    """The module whose kernels tell whether a task was done before."""
    projective = parser.model.trees.projective
    return {
        Task.TEXT: "headway.text.segmenter",
        Task.TREES: f"headway.inference.{'projective_tree' if projective else 'spanning_tree'}",
        Task.PROBABILITIES: f"headway.inference.{'eisner' if projective else 'matrix_tree'}",
    }[task]


def _split(parser: Parser) -> None:
    if parser.segmenter is not None:
        parser.drafts(_TEXT)


def _parse(parser: Parser) -> None:
    from headway.treebank import Sentence

    tags = _TAGS if parser.needs_tags else None
    parser.parse(Sentence.from_words(_WORDS, upos=tags, xpos=tags))


def _weigh(parser: Parser) -> None:
    """The probabilities of a tree: those of arc scores, which most models have, without a model."""
    import numpy as np

    from headway.inference import TreeDistribution

    projective, single_root = parser.model.trees
    found = TreeDistribution(np.zeros((3, 3)), projective=projective, single_root=single_root)
    found.log_prob(np.array([-1, 0, 1]))
    found.marginals  # noqa: B018


_RUN: dict[Task, Callable[[Parser], None]] = {Task.TEXT: _split, Task.TREES: _parse, Task.PROBABILITIES: _weigh}
