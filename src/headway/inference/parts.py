"""The kinds of parts beside arcs, as data: which nodes a part has, and where it sits in its head's automaton.

| kind | nodes | paper |
| --- | --- | --- |
| siblings | head h, sibling s, modifier m: adjacent children on one side | koo2010 example 1 |
| grandparents | grandparent g, head h, modifier m | koo2010 example 3 |
| grand_siblings | g, h, s, m | koo2010 example 3 |

A head's automaton reads its modifiers outwards. A part sits either on a pair of neighbours (s, m), START and END
included, or on the arc to m; and it either ignores the head's own head, or has a copy for each g. These two properties
are read off the nodes. They are all that `head_automata` (scores) and the features know of a kind.

A new kind that sits in one of these four places is one more row of `KINDS`. A third-order kind with two siblings
(h, r, s, m) is also a new place: `candidates` would list the triples of neighbours, and `head_automata._best_side`
would remember the last two modifiers rather than one.
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
    grand_sibling_nodes,
    grandparent_nodes,
    sibling_nodes,
    starts_of,
)
from headway.inference.jit import part


@dataclass(frozen=True, eq=False)
class PartKind:
    """One kind of part, known by its identity.

    `nodes` lists its parts; `roles` are the columns. A head's parts stand together: its arcs or pairs in their order,
    and below a grandparent once for each arc that enters it.
    """

    name: str
    roles: str
    nodes: Callable[[Candidates], NodeRows]

    @property
    def on_pairs(self) -> bool:
        """Whether a part sits on two neighbours rather than on one arc."""
        return "s" in self.roles

    @property
    def below_grandparent(self) -> bool:
        """Whether there is a part for each head that the head may have."""
        return "g" in self.roles


SIBLINGS = PartKind("siblings", "hsm", sibling_nodes)
GRANDPARENTS = PartKind("grandparents", "ghm", grandparent_nodes)
GRAND_SIBLINGS = PartKind("grand_siblings", "ghsm", lambda these: grand_sibling_nodes(these, sibling_nodes(these)))

# In the order of the weights, and of the parts of a sentence in a row.
KINDS = (SIBLINGS, GRANDPARENTS, GRAND_SIBLINGS)


@cache
def places(kinds: tuple[PartKind, ...]) -> tuple[Bools, Bools]:
    """`on_pairs` and `below_grandparent` of K kinds, (K,) each, as kernels take them."""
    on_pairs = np.array([kind.on_pairs for kind in kinds], np.bool_)
    return on_pairs, np.array([kind.below_grandparent for kind in kinds], np.bool_)


@part
def starts_in_a_row(these: Candidates, on_pairs: Bools, below_grandparent: Bools, first: int) -> Ints:
    """(K, n+2) where the parts of each head begin, kind after kind in a row; the first part has number `first`."""
    starts = np.empty((len(on_pairs), len(these.enters)), np.int64)
    for k in range(len(on_pairs)):
        starts[k] = first + starts_of(these, on_pairs[k], below_grandparent[k])
        first = starts[k, -1]
    return starts
