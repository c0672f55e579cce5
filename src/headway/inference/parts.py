"""The kinds of parts beside arcs, as data: who takes part, and where a part sits in its head's automaton.

| kind | nodes | paper |
| --- | --- | --- |
| siblings | head h, sibling s, modifier m: adjacent children on one side | koo2010 example 1 |
| grandparents | grandparent g, head h, modifier m | koo2010 example 3 |
| grand_siblings | g, h, s, m | koo2010 example 3 |

A head's automaton reads its modifiers outwards. A part either sits on a pair of neighbours (s, m), START and END
included, or on the arc to m; and it either does not depend on the head's own head, or has a copy for each g. These two
properties are read off the nodes, and place the part in the table of `head_automata`: a kind with two siblings would be
a third place to sit, and everything else about it a row of `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headway.arrays import Ints
from headway.inference.candidates import (
    Candidates,
    Nodes,
    grand_sibling_nodes,
    grandparent_nodes,
    sibling_nodes,
)


@dataclass(frozen=True)
class PartKind:
    """One kind of part.

    `roles` are its nodes, in the order of the columns of `nodes`; `starts` says where the parts of each head begin
    among all of this kind, (n+2,) with their number last.
    """

    name: str
    roles: str
    nodes: Callable[[Candidates], Nodes]
    starts: Callable[[Candidates], Ints]

    @property
    def on_pairs(self) -> bool:
        """Whether a part sits on two neighbours rather than on one arc."""
        return "s" in self.roles

    @property
    def below_grandparent(self) -> bool:
        """Whether there is a part for each head that the head may have."""
        return "g" in self.roles


SIBLINGS = PartKind("siblings", "hsm", sibling_nodes, lambda these: these.pairs[::2])
GRANDPARENTS = PartKind("grandparents", "ghm", grandparent_nodes, lambda these: these.grands)
GRAND_SIBLINGS = PartKind(
    "grand_siblings",
    "ghsm",
    lambda these: grand_sibling_nodes(these, sibling_nodes(these)),
    lambda these: these.grand_pairs,
)

# In the order of the weights, and of the parts of a sentence in a row.
KINDS = (SIBLINGS, GRANDPARENTS, GRAND_SIBLINGS)
