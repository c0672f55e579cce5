"""The random instances of koo2010's table 2, drawn in three ways: the paper does not say how it drew its own.

All that is known is that transitions of the automata have random scores, and that there are ten words. Here an instance
has all arcs, any number of words may be on the root, and instance i comes from the seed i. The ways differ in what is
drawn, independently, and from which distribution:

* `normal`: every transition standard normal, g(h, s, m) for siblings and g(g, h, s, m) for grand-siblings, START and
  END included, as the paper's formulas have it (examples 1 and 3). A side without children is then the transition from
  START to END, and has a score of its own.
* `uniform`: the same transitions, uniform on [0, 1).
* `parts`: a standard normal score for every arc and every sibling pair and, for grand-siblings, every grandparent part
  (g, h, m); a transition has their sum. A side without children scores 0.

The root has no grandparent, so that its transitions are those of siblings. Our automata have no transition from START
to END. But each side leaves START once: a score e for leaving it to END, compared with the others, is -e for all the
others, and e on the arc from g that the head is then below (for siblings and for the root, a constant, left out).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from headway.arrays import Floats
from headway.inference.head_automata import GrandSiblingParts, SiblingParts

Order = Literal["sibling", "grandsibling"]
ScoredParts = SiblingParts | GrandSiblingParts
Draw = Callable[..., Floats]


@dataclass(frozen=True)
class Way:
    """How an instance is drawn: what the table says of it, and the parts that a generator's scores make."""

    what: str
    parts: Callable[[Order, int, np.random.Generator], ScoredParts]


def random_parts(order: Order, words: int, seed: int, way: str) -> ScoredParts:
    """One instance."""
    return WAYS[way].parts(order, words + 1, np.random.default_rng(seed))


def _transitions(order: Order, nodes: int, draw: Draw) -> ScoredParts:
    """Independent scores for all transitions, those from START to END included."""
    siblings, empty = draw(size=(nodes,) * 3), draw(size=(nodes, 2))
    h, m = np.nonzero(~np.eye(nodes, dtype=np.bool_))
    siblings[h, h, m] -= empty[h, (m > h).astype(int)]
    arcs = np.zeros((nodes, nodes))
    if order == "sibling":
        return SiblingParts.dense(arcs, siblings)
    grands, empty = draw(size=(nodes,) * 4), draw(size=(nodes, nodes, 2))
    grands[:, h, h, m] -= empty[:, h, (m > h).astype(int)]
    siblings[1:] = 0.0
    return GrandSiblingParts.dense(empty.sum(axis=2), siblings, np.zeros((nodes,) * 3), grands)


def _sums(order: Order, nodes: int, draw: Draw) -> ScoredParts:
    """Independent scores for arcs, siblings and grandparents."""
    arcs, siblings = draw(size=(nodes,) * 2), draw(size=(nodes,) * 3)
    if order == "sibling":
        return SiblingParts.dense(arcs, siblings)
    return GrandSiblingParts.dense(arcs, siblings, draw(size=(nodes,) * 3))


WAYS = {
    "normal": Way(
        "every transition of every automaton standard normal, also from START to END of a side without children",
        lambda order, nodes, rng: _transitions(order, nodes, rng.normal),
    ),
    "uniform": Way(
        "the same transitions, uniform on [0, 1)",
        lambda order, nodes, rng: _transitions(order, nodes, rng.uniform),
    ),
    "parts": Way(
        "every arc, sibling pair and (G+S) grandparent part standard normal, a transition their sum; a side without "
        "children 0",
        lambda order, nodes, rng: _sums(order, nodes, rng.normal),
    ),
}
