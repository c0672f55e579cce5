"""From what is known of a sentence to what is shown: the best tree with the pinned heads, and its probabilities.

The tree of a state depends on its words, its pins and its forbidden arcs alone; all probabilities are conditioned on
them. Where no tree is left, the `problem` says why, and the heads stay as they were: a file may hold a cycle, or two
words on the root, which an annotator wants to see. Without a parser, heads that a model once suggested stay as well,
except on a cycle with pinned ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from headway.annotation.state import State, pinned_only, shown_heads, shown_labels, with_arcs
from headway.arrays import Floats
from headway.errors import EditError, HeadwayError, SizeError
from headway.models.constraints import named
from headway.parsed import Parsed
from headway.treebank import Sentence
from headway.treebank.trees import cycle

MOST_ALTERNATIVES = 5
LEAST_ALTERNATIVE = 0.001  # heads less probable than this are not shown


class Parses(Protocol):
    """What a workspace needs of a parser; `headway.pipeline.Parser` is one."""

    @property
    def parse(self) -> Callable[..., Any]: ...


@dataclass(frozen=True, eq=False)
class Shown:
    """A state with the tree that is shown; probabilities (n+1,) of heads and of labels, where they are known.

    `alternatives` has, for every word, heads with their probabilities, best first. `certainty` is the probability of
    the least certain head that nobody has pinned.
    """

    state: State
    probabilities: Floats | None = None
    label_probabilities: Floats | None = None
    alternatives: tuple[tuple[tuple[int, float], ...], ...] = ()
    status: str | None = None
    problem: str | None = None

    @property
    def certainty(self) -> float | None:
        """1 where every word is pinned; None where nothing is known."""
        if self.probabilities is None:
            return None
        return certainty_of(self.state.pins, self.probabilities)


def certainty_of(pins: frozenset[int], probabilities: Floats) -> float:
    """The probability of the least certain head that nobody has pinned, 1 if there is none."""
    unpinned = [m for m in range(1, len(probabilities)) if m not in pins]
    return float(probabilities[unpinned].min(initial=1.0))


def decoded(state: State, parser: Parses | None) -> Shown:
    """What is shown of a state."""
    if parser is None:
        return _settled(state)
    if not len(state.sentence):
        return Shown(state)
    try:
        return _shown(state, _parse(state, parser))
    except HeadwayError as error:
        return Shown(state, problem=str(error))


def decoded_together(states: Sequence[State], parser: Parses) -> list[Shown]:
    """What is shown of several states, parsed as one portion where that is possible."""
    ready = [state for state in states if len(state.sentence) and not state.forbidden]
    try:
        parsed = iter(list(parser.parse([pinned_only(state) for state in ready], keep_heads=True)))
    except HeadwayError:  # one of them has no tree
        return [decoded(state, parser) for state in states]
    return [
        _shown(state, next(parsed)) if len(state.sentence) and not state.forbidden else decoded(state, parser)
        for state in states
    ]


def _parse(state: State, parser: Parses) -> Parsed:
    given = pinned_only(state)
    heads = np.array(shown_heads(given))
    labels = [None if label == "_" else label for label in shown_labels(given)]
    found: Parsed = parser.parse(_bare(given), heads=heads, labels=labels, forbid=sorted(state.forbidden))
    return found


def _bare(sentence: Sentence) -> Sentence:
    return replace(sentence, heads=None, labels=None)


def _shown(state: State, parsed: Parsed) -> Shown:
    arcs = parsed.confidence.arcs
    return Shown(
        replace(state, sentence=replace(parsed.sentence, layout=state.sentence.layout)),
        arcs,
        parsed.label_probabilities,
        tuple(_alternatives(parsed, arcs)),
        str(parsed.status),
    )


def _alternatives(parsed: Parsed, arcs: Floats) -> Iterator[tuple[tuple[int, float], ...]]:
    """The likeliest heads of every word; the one that is shown is always among them."""
    heads = parsed.heads.tolist()
    try:
        marginals = parsed.marginals
    except SizeError:  # a very long sentence: only the heads of its tree have probabilities
        yield from (((heads[m], float(arcs[m])),) for m in range(1, len(heads)))
        return
    for m in range(1, len(heads)):
        column = marginals[:, m]
        best = [h for h in _likeliest(column) if column[h] >= LEAST_ALTERNATIVE and h != m]
        if heads[m] not in best:
            best = [*best[: MOST_ALTERNATIVES - 1], heads[m]]
        yield tuple((h, float(column[h])) for h in best)


def _likeliest(column: Floats) -> Iterable[int]:
    order: list[int] = np.argsort(-column, kind="stable")[:MOST_ALTERNATIVES].tolist()
    return order


def _settled(state: State) -> Shown:
    """Without a parser: suggested heads on a cycle go; a cycle of pinned ones is a problem."""
    heads, labels = shown_heads(state.sentence), shown_labels(state.sentence)
    changed = False
    while words := cycle([-1, *(max(head, 0) for head in heads[1:])]):
        loose = [m for m in words if m not in state.pins]
        if not loose:
            path = " -> ".join(named(state.sentence, m) for m in (*words, words[0]))
            return Shown(state, problem=f"the heads form a cycle, {path}; unpin one of these words")
        for m in loose:
            heads[m] = -1
        changed = True
    return Shown(replace(state, sentence=with_arcs(state.sentence, heads, labels)) if changed else state)


def require_tree(before: Shown, after: Shown) -> None:
    """Refuse a change after which no tree is left, unless there was none before."""
    if after.problem is not None and before.problem is None:
        raise EditError(after.problem)
