"""State automata for the tests: random ones, the best tree under them by enumeration; siblings written as states."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from headway.inference.head_automata import StateParts

from .parts_oracle import Heads, children, trees

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class States:
    """The dense arrays of `StateParts`: arcs [h, m], transitions [h, m, s, t], final [h, side, s]."""

    arcs: Floats
    transitions: Floats
    final: Floats

    @property
    def parts(self) -> StateParts:
        return StateParts.dense(self.arcs, self.transitions, self.final)

    def side(self, h: int, right: bool, modifiers: tuple[int, ...], alpha: float = 0.0) -> float:
        """The best way through the states that takes these modifiers of a side."""
        best = -np.inf
        for states in product(range(self.final.shape[-1]), repeat=len(modifiers)):
            total, before = 0.0, 0
            for m, state in zip(modifiers, states, strict=True):
                total += (1.0 - alpha) * self.arcs[h, m] + self.transitions[h, m, before, state]
                before = state
            best = max(best, total + self.final[h, int(right), before])
        return float(best)

    def score(self, heads: Heads) -> float:
        """Of a tree."""
        return sum(
            self.side(h, bool(right), tuple(side))
            for h in range(len(heads))
            for right, side in enumerate(children(heads, h))
        )

    def best(self, *, projective: bool, single_root: bool) -> float:
        """The score of the best tree of the class."""
        return max(self.score(heads) for heads in trees(len(self.arcs) - 1, projective, single_root))


def random_states(rng: np.random.Generator, n: int, states: int, forbid: float) -> States:
    """`forbid` is the share of arcs, transitions and ends that are forbidden; START may always be stopped in."""
    arcs, transitions = rng.normal(size=(n + 1,) * 2), rng.normal(size=(n + 1, n + 1, states, states))
    final = rng.normal(size=(n + 1, 2, states))
    for scores in (arcs, transitions, final[..., 1:]):
        scores[rng.random(scores.shape) < forbid] = -np.inf
    return States(arcs, transitions, final)


def siblings_as_states(arcs: Floats, siblings: Floats) -> StateParts:
    """The state is the sibling before; word 0 is nobody's sibling, so that state 0 can be START."""
    n = len(arcs) - 1
    transitions, final = np.full((n + 1,) * 4, -np.inf), np.full((n + 1, 2, n + 1), -np.inf)
    for h in range(n + 1):
        final[h, :, 0] = 0.0
        for m in (m for m in range(1, n + 1) if m != h):
            final[h, :, m] = siblings[h, m, h]
            for s in (s for s in range(n + 1) if s not in (h, m) or s == 0):
                transitions[h, m, s, m] = siblings[h, s or h, m]
    return StateParts.dense(arcs, transitions, final)
