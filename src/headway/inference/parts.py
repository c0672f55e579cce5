"""The kinds of parts beside arcs, as data: which nodes a part has, and where it sits in its head's automaton.

| kind | nodes | paper |
| --- | --- | --- |
| siblings | head h, sibling s, modifier m: adjacent children on one side | koo2010 example 1 |
| grandparents | grandparent g, head h, modifier m | koo2010 example 3 |
| grand_siblings | g, h, s, m | koo2010 example 3 |
| tri_siblings | h, r, s, m: three neighbours, r before s | Koo and Collins 2010, model 2 |
| grand_tri_siblings | g, h, r, s, m | |

A head's automaton reads its modifiers outwards. A part sits on the arc to m, on a pair of neighbours (s, m), or on a
triple (r, s, m), START and END included; and it either ignores the head's own head, or has a copy for each g. These two
properties are read off the nodes. They are all that `head_automata` (scores) and the features know of a kind.

A new kind that sits in one of these six places is one more row of `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from headway.arrays import Bools, Ints
from headway.inference.candidates import (
    Candidates,
    NodeRows,
    arc_nodes,
    grand_nodes,
    sibling_nodes,
    starts_of,
    tri_sibling_nodes,
)
from headway.inference.jit import part


@dataclass(frozen=True, eq=False)
class PartKind:
    """One kind of part, known by its identity.

    `nodes` lists its parts; `roles` are the columns. A head's parts stand together: its arcs, pairs or triples in their
    order, and below a grandparent once for each arc that enters it.
    """

    name: str
    roles: str
    nodes: Callable[[Candidates], NodeRows]

    @property
    def neighbours(self) -> int:
        """How many neighbouring modifiers a part sits on: 1, an arc; 2, a pair; 3, a triple."""
        return sum(role in "rsm" for role in self.roles)

    @property
    def below_grandparent(self) -> bool:
        """Whether there is a part for each head that the head may have."""
        return "g" in self.roles


SIBLINGS = PartKind("siblings", "hsm", sibling_nodes)
GRANDPARENTS = PartKind("grandparents", "ghm", lambda these: grand_nodes(these, arc_nodes(these), 1))
GRAND_SIBLINGS = PartKind("grand_siblings", "ghsm", lambda these: grand_nodes(these, sibling_nodes(these), 2))
TRI_SIBLINGS = PartKind("tri_siblings", "hrsm", tri_sibling_nodes)
GRAND_TRI_SIBLINGS = PartKind("grand_tri_siblings", "ghrsm", lambda x: grand_nodes(x, tri_sibling_nodes(x), 3))

# In the order of the weights, and of the parts of a sentence in a row.
KINDS = (SIBLINGS, GRANDPARENTS, GRAND_SIBLINGS, TRI_SIBLINGS, GRAND_TRI_SIBLINGS)


@cache
def places(kinds: tuple[PartKind, ...]) -> tuple[Ints, Bools]:
    """`neighbours` and `below_grandparent` of K kinds, (K,) each, as kernels take them."""
    neighbours = np.array([kind.neighbours for kind in kinds], np.int64)
    return neighbours, np.array([kind.below_grandparent for kind in kinds], np.bool_)


@part
def starts_in_a_row(these: Candidates, neighbours: Ints, below_grandparent: Bools, first: int) -> Ints:
    """(K, n+2) where the parts of each head begin, kind after kind in a row; the first part has number `first`."""
    starts = np.empty((len(neighbours), len(these.enters)), np.int64)
    for k in range(len(neighbours)):
        starts[k] = first + starts_of(these, neighbours[k], below_grandparent[k])
        first = starts[k, -1]
    return starts
