"""Certificates: `decode` on hostile scores, each answer held against every tree there is.

A tree that is called CERTIFIED or EXACT must score what the best of all trees scores, up to the rounding of the numbers
in these two trees; one that is not must lie within its bound. Scores tie, differ by hundreds of powers of ten, forbid
by -inf and by large numbers; all kinds of parts, all four classes of trees.
"""

from __future__ import annotations

from math import fsum
from pathlib import Path

import numpy as np

from headway import GrandSiblingParts, SiblingParts, StateParts, decode
from headway.errors import NoTreeError
from headway.inference.dual_decomposition import Decoded, Status
from headway.inference.head_automata import Parts
from tests.fuzz.enumeration import Floats, Ints, best_score, parts_of
from tests.fuzz.harness import Draw
from tests.fuzz.mutations import pick

PROVED = (Status.CERTIFIED, Status.EXACT)
ORDERS = {"arcs": 2, "siblings": 3, "grandparents": 3, "grand_siblings": 4}
MODELS = (("arcs", "siblings"), ("arcs", "siblings", "grandparents"), tuple(ORDERS))
SIZES, SHARES = (1, 2, 3, 4, 5, 6, 7), (0.03, 0.07, 0.2, 0.25, 0.25, 0.12, 0.08)
ROUNDING = 1e-12  # of the sum of a tree's scores without their signs
CLOSED = 2e-11  # decode ends when bound and best tree differ by 1e-11 (1 + |best|)


def certificates(folder: Path) -> Draw:
    """Draws of one sentence each; a certificate that does not hold is an AssertionError."""

    def draw(rng: np.random.Generator) -> str | None:
        n = int(rng.choice(SIZES, p=SHARES))
        projective, single_root = bool(rng.integers(2)), bool(rng.integers(2))
        kinds = pick(rng, MODELS)
        hostile = pick(rng, HOSTILE)
        dense = {kind: hostile(rng, (n + 1,) * ORDERS[kind]) for kind in kinds}
        parts = _as_states(dense) if len(kinds) == 2 and rng.random() < 0.3 else _parts(dense)
        best, tree = best_score(dense, projective, single_root)
        try:
            found = decode(parts, projective=projective, single_root=single_root, exact=bool(rng.random() < 0.8))
        except NoTreeError:
            assert best == -np.inf, f"a tree scores {best}, but none was found"
            raise
        return _judged(found, dense, tree)

    for n in SIZES:  # the tables of all trees take a few seconds
        for flags in range(4):
            best_score({kind: np.zeros((n + 1,) * order) for kind, order in ORDERS.items()}, flags > 1, flags % 2 > 0)
    rng = np.random.default_rng(0)
    for model in MODELS:  # one step is too few to agree, so that branch and bound is compiled, too
        decode(_parts({kind: rng.normal(size=(6,) * ORDERS[kind]) for kind in model}), iterations=1)
    decode(_as_states({kind: rng.normal(size=(6,) * ORDERS[kind]) for kind in MODELS[0]}), iterations=1)
    return draw


def _judged(found: Decoded, dense: dict[str, Floats], best: Ints) -> str:
    heads = np.maximum(found.heads, 0)
    mine, other = _scores_of(heads, dense), _scores_of(best, dense)
    if -np.inf in mine:
        assert found.score == -np.inf, f"the tree has a forbidden part but scores {found.score}"
        assert found.status not in PROVED, "a forbidden tree is certified"
        return "no tree without forbidden parts found"
    slack = ROUNDING * (fsum(map(abs, mine)) + fsum(map(abs, other))) + CLOSED * (1 + abs(fsum(other)))
    assert abs(found.score - fsum(mine)) <= slack, f"the score {found.score} is not the tree's, {fsum(mine)}"
    short = fsum([*other, *(-score for score in mine)])
    if found.status not in PROVED:
        assert found.bound >= fsum(other) - slack, f"the bound {found.bound} is below the optimum, {fsum(other)}"
        return "bounded"
    assert short <= slack, f"{found.status} but {short} below the optimum, {fsum(other)}"
    return str(found.status)


def _scores_of(heads: Ints, dense: dict[str, Floats]) -> list[float]:
    return [float(scores.ravel()[cell]) for kind, scores in dense.items() for cell in parts_of(heads, kind)]


def _parts(dense: dict[str, Floats]) -> Parts:
    if len(dense) == 2:
        return SiblingParts.dense(dense["arcs"], dense["siblings"])
    return GrandSiblingParts.dense(dense["arcs"], dense["siblings"], dense["grandparents"], dense.get("grand_siblings"))


def _as_states(dense: dict[str, Floats]) -> StateParts:
    """Sibling parts as automata: the state is the sibling before, 0 at the start, as the root is nobody's sibling."""
    arcs, siblings = dense["arcs"], dense["siblings"]
    size = len(arcs)
    transitions, final = np.full((size,) * 4, -np.inf), np.full((size, 2, size), -np.inf)
    for h in range(size):
        final[h, :, 0] = 0.0
        for m in set(range(1, size)) - {h}:
            final[h, :, m] = siblings[h, m, h]
            transitions[h, m, 0, m] = siblings[h, h, m]
            for s in set(range(1, size)) - {h, m}:
                transitions[h, m, s, m] = siblings[h, s, m]
    return StateParts.dense(arcs, transitions, final)


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return rng.normal(size=shape)


def _ties(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Few different numbers, most of them not exact in binary."""
    return np.asarray(rng.integers(-2, 3, shape) * pick(rng, (1.0, 0.1, 1e-5, 3e7)), np.float64)


def _scaled(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    return rng.normal(size=shape) * float(10.0 ** rng.integers(-300, 290))


def _mixed(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Magnitudes from 10^-spread to 10^spread side by side."""
    spread = pick(rng, (3, 10, 100))
    return rng.normal(size=shape) * 10.0 ** rng.integers(-spread, spread + 1, shape)


def _masked(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Ordinary scores, some forbidden: by -inf, or by what people write instead."""
    scores = rng.normal(size=shape)
    mask = pick(rng, (-np.inf, -np.inf, -1e9, -1e15, -1e30, float(np.finfo(np.float32).min)))
    scores[rng.random(shape) < pick(rng, (0.1, 0.3, 0.6))] = mask
    return scores


def _disputed(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Parts that contradict each other: rare large rewards among small scores."""
    return rng.normal(size=shape) + 5.0 * (rng.random(shape) < 0.1)


HOSTILE = (_normal, _ties, _scaled, _mixed, _masked, _disputed)
