"""Distributions over trees whose scores have any exponent, against exact integers.

Scores are drawn from 10^-320 to 10^300, in one magnitude or in mixtures, as masks, with ties and without; every result
is compared with an enumeration that adds the scores as integers and shares nothing with the library.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headway.errors import NoTreeError, PrecisionError
from headway.inference import LabelledTreeDistribution, TreeDistribution
from tests.fuzz.harness import Draw, expecting_success, run_one
from tests.inference.exact import trees

_WORDS = (1, 2, 2, 3, 3, 3, 4, 4)
# Sentences in one draw.
SENTENCES = 16
# What may be off, beside the last bits of what is reported: probabilities and entropies; and scores below VAST.
_CLOSE = 1e-9


@dataclass(frozen=True)
class Oracle:
    """The trees that exist, (T, n+1); how far below the best one each scores; the score of the best."""

    heads: NDArray[np.int64]
    totals: NDArray[np.object_]
    unit: int
    below: NDArray[np.float64]
    probability: NDArray[np.float64]

    @property
    def log_sum(self) -> float:
        return math.log(math.fsum(np.exp(self.below)))

    @property
    def log_partition(self) -> float:
        return float(max(self.totals) / self.unit + self.log_sum)

    @property
    def log_probability(self) -> NDArray[np.float64]:
        return self.below - self.log_sum

    @property
    def entropy(self) -> float:
        used = self.probability > 0
        return -math.fsum(self.probability[used] * self.log_probability[used])

    def marginals(self) -> NDArray[np.float64]:
        nodes = self.heads.shape[1]
        mu = np.zeros((nodes, nodes))
        for m in range(1, nodes):
            np.add.at(mu[:, m], self.heads[:, m], self.probability)
        return mu


@cache
def _trees(n: int, projective: bool, single_root: bool) -> NDArray[np.int64]:
    return np.array(trees(n, projective=projective, single_root=single_root))


def _integers(scores: NDArray[np.float64]) -> tuple[NDArray[np.object_], int]:
    """Scores as integers in one unit, None where forbidden; 1 / unit."""
    finite = np.isfinite(scores)
    ratios = [x.as_integer_ratio() for x in scores[finite].tolist()]
    unit = max((bottom for _, bottom in ratios), default=1)
    result = np.full(scores.shape, None, dtype=object)
    result[finite] = [top * (unit // bottom) for top, bottom in ratios]
    return result, unit


def enumerate_trees(scores: NDArray[np.float64], projective: bool, single_root: bool) -> Oracle | None:
    """The distribution by enumeration; None if no tree exists."""
    n = len(scores) - 1
    integers, unit = _integers(scores)
    heads = _trees(n, projective, single_root)
    arcs = integers[heads[:, 1:], np.arange(1, n + 1)]
    possible = (arcs != np.array(None)).all(axis=1)
    if not possible.any():
        return None
    totals = arcs[possible].sum(axis=1)
    best = max(totals)
    below = np.array([_ratio(total - best, unit) for total in totals])
    weight = np.exp(below)
    return Oracle(heads[possible], totals, unit, below, weight / math.fsum(weight))


def _ratio(top: int, bottom: int) -> float:
    try:
        return top / bottom
    except OverflowError:
        return math.copysign(math.inf, top)


def draw_scores(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Scores of some magnitudes: one, a few, or all there are; often on a grid, so that trees tie."""
    kind = rng.integers(5)
    if kind == 0:
        exponents = np.full(shape, rng.integers(0, 301))
    elif kind == 1:  # masks
        exponents = np.where(rng.random(shape) < rng.random(), rng.choice([9, 15, 30, 38, 300]), 0)
    elif kind == 2:
        exponents = rng.choice(rng.integers(-320, 301, size=3), size=shape)
    elif kind == 3:
        exponents = rng.integers(-320, 301, size=shape)
    else:
        exponents = rng.integers(0, 8, size=shape)
    digits = int(rng.integers(0, 17))
    scores = np.round(rng.normal(size=shape) * 3, digits) * np.array(
        [float(f"1e{e}") for e in exponents.ravel()]
    ).reshape(shape)
    if kind == 1 and rng.random() < 0.5:  # all masks equal
        scores = np.where(exponents > 0, -(10.0**exponents), scores)
    elif kind == 1:
        scores = np.where(exponents > 0, -np.abs(scores), scores)
    scores = np.asarray(np.clip(scores, -1e300, 1e300), np.float64)
    if rng.random() < 0.3:
        scores[rng.random(shape) < 0.4 * rng.random()] = -np.inf
    return scores


def close(found: ArrayLike, expected: ArrayLike, size: float = 1.0) -> bool:
    """Equal up to `_CLOSE`, and where numbers are large up to their last digits."""
    return bool(np.all(np.abs(np.asarray(found) - expected) <= _CLOSE * size + 1e-14 * np.abs(expected)))


def _flags(rng: np.random.Generator) -> dict[str, bool]:
    return {"projective": bool(rng.integers(2)), "single_root": bool(rng.integers(2))}


@dataclass(frozen=True)
class Case:
    """One draw: a distribution, and what enumeration says of it."""

    rng: np.random.Generator
    scores: NDArray[np.float64]
    flags: dict[str, bool]
    distribution: TreeDistribution
    oracle: Oracle


def sums(folder: Path) -> Draw:
    """A padded batch of sentences: log Z, marginals, entropy, argmax; for one of them something else."""
    others = (_check_kl, _check_kbest, _check_pairs, _check_samples, _check_mbr, _check_covariance, _check_renyi)

    def draw(rng: np.random.Generator) -> str | None:
        flags = _flags(rng)
        sentences = [draw_scores(rng, (n + 1, n + 1)) for n in rng.choice(_WORDS, size=SENTENCES).tolist()]
        oracles = [enumerate_trees(scores, **flags) for scores in sentences]
        for scores, oracle in zip(sentences, oracles, strict=True):
            if oracle is None:
                _check_refusal(scores, flags)
        cases = [(scores, oracle) for scores, oracle in zip(sentences, oracles, strict=True) if oracle is not None]
        with expecting_success():
            _check_sums(rng, cases, flags)
            scores, oracle = cases[rng.integers(len(cases))]
            check = others[rng.integers(len(others))]
            case = Case(rng, scores, flags, TreeDistribution(scores, threads=1, **flags), oracle)
            return check(case) or check.__name__

    for seed in range(60):  # compile everything
        run_one(draw, seed)
    return draw


def _check_refusal(scores: NDArray[np.float64], flags: dict[str, bool]) -> None:
    try:
        TreeDistribution(scores, threads=1, **flags).marginals  # noqa: B018
    except NoTreeError:
        return
    raise AssertionError(f"marginals of no tree: {scores!r}")


def _check_sums(
    rng: np.random.Generator, cases: list[tuple[NDArray[np.float64], Oracle]], flags: dict[str, bool]
) -> None:
    nodes = max(len(scores) for scores, _ in cases)
    batch = np.full((len(cases), nodes, nodes), rng.choice([0.0, np.nan, -1e300, np.inf]))
    rows = np.full((len(cases), nodes), -1)
    for b, (scores, oracle) in enumerate(cases):
        batch[b, : len(scores), : len(scores)] = scores
        rows[b, : len(scores)] = oracle.heads[rng.integers(len(oracle.heads))]
    lengths = [len(scores) - 1 for scores, _ in cases]
    distribution = TreeDistribution(batch, lengths=lengths, threads=1, **flags)
    marginals, best, log_p = distribution.marginals, distribution.argmax(), distribution.log_prob(rows)
    for b, (scores, oracle) in enumerate(cases):
        own = slice(0, len(scores))
        mu, expected = marginals[b, own, own], oracle.marginals()
        assert np.abs(mu[:, 1:].sum(axis=0) - 1.0).max() < 1e-12, f"columns of {scores!r}"
        assert np.all(np.abs(mu - expected) <= _CLOSE * expected + 1e-300), f"marginals of {scores!r}"
        assert close(distribution.log_partition[b], oracle.log_partition), f"log Z of {scores!r}"
        assert close(distribution.entropy[b], oracle.entropy), f"entropy of {scores!r}"
        assert distribution.entropy[b] >= 0.0, f"entropy of {scores!r}"
        assert close(log_p[b], oracle.log_probability[_row(rows[b, own], oracle)]), f"log P under {scores!r}"
        assert oracle.below[_row(best[b, own], oracle)] >= -_CLOSE, f"argmax of {scores!r}"


def _row(heads: NDArray[np.int64], oracle: Oracle) -> int:
    rows = np.flatnonzero((oracle.heads == heads).all(axis=1))
    assert len(rows) == 1, f"{heads} is no tree of the class"
    return int(rows[0])


def _check_kl(case: Case) -> str | None:
    rng, scores, distribution, oracle = case.rng, case.scores, case.distribution, case.oracle
    other = np.where(
        np.isinf(scores), scores, np.where(rng.random(scores.shape) < 0.5, scores, draw_scores(rng, scores.shape))
    )
    theirs = enumerate_trees(other, **case.flags)
    if theirs is None:
        return "no other tree"
    try:
        found = distribution.kl(TreeDistribution(other, threads=1, **case.flags))
    except PrecisionError:
        return "kl refused"
    log_q = dict(zip(map(tuple, theirs.heads.tolist()), theirs.log_probability.tolist(), strict=True))
    terms = [
        p * (log_p - log_q[tuple(heads)])
        for heads, p, log_p in zip(oracle.heads.tolist(), oracle.probability, oracle.log_probability, strict=True)
        if tuple(heads) in log_q and p > 0
    ]
    if len(terms) < (oracle.probability > 0).sum() or not all(tuple(h) in log_q for h in oracle.heads.tolist()):
        assert found == math.inf
        return "kl infinite"
    expected = math.fsum(terms)
    assert abs(found - expected) <= 1e-7 * max(1.0, abs(expected)), (found, expected)
    return None


def _check_kbest(case: Case) -> None:
    rng, distribution, oracle = case.rng, case.distribution, case.oracle
    k = int(rng.integers(1, 6))
    found = distribution.kbest(k)
    assert len(found) == min(k, len(oracle.heads))
    assert len({tuple(heads.tolist()) for heads, _ in found}) == len(found)
    expected = sorted((total for total in oracle.totals), reverse=True)[:k]
    for (heads, score), total in zip(found, expected, strict=True):
        own = oracle.totals[_row(heads, oracle)]
        assert abs(_ratio(own - total, oracle.unit)) <= _CLOSE, (found, expected)
        assert close(score, own / oracle.unit)


def _check_pairs(case: Case) -> None:
    scores, distribution, oracle = case.scores, case.distribution, case.oracle
    pairs = distribution.pair_marginals()
    nodes = len(scores)
    expected = np.zeros((nodes,) * 4)
    for heads, p in zip(oracle.heads, oracle.probability, strict=True):
        for a in range(1, nodes):
            for b in range(1, nodes):
                expected[heads[a], a, heads[b], b] += p
    assert close(pairs, expected)


def _check_samples(case: Case) -> None:
    rng, distribution, oracle = case.rng, case.distribution, case.oracle
    for heads in distribution.sample(3, rng):
        assert oracle.log_probability[_row(heads, oracle)] > -80.0
    distinct = distribution.sample_without_replacement(4, rng)
    rows = {_row(heads, oracle) for heads in distinct}
    assert len(rows) == len(distinct) == min(4, len(oracle.heads))
    assert oracle.log_probability[_row(distinct[0], oracle)] > -80.0


def _check_mbr(case: Case) -> None:
    scores, distribution, oracle = case.scores, case.distribution, case.oracle
    words = np.arange(1, len(scores))
    mu = oracle.marginals()
    values = mu[oracle.heads[:, 1:], words].sum(axis=1)
    assert values[_row(distribution.mbr(), oracle)] >= values.max() - 1e-8


def _check_covariance(case: Case) -> None:
    rng, scores, distribution, oracle = case.rng, case.scores, case.distribution, case.oracle
    f = rng.normal(size=scores.shape)
    words = np.arange(1, len(scores))
    values = f[oracle.heads[:, 1:], words].sum(axis=1)
    values -= math.fsum(oracle.probability * values)
    expected = np.zeros(scores.shape)
    for heads, p, value in zip(oracle.heads, oracle.probability, values, strict=True):
        expected[heads[1:], words] += p * value
    assert close(distribution.covariance_with_arcs(f), expected, 1e-1)


def _check_renyi(case: Case) -> str | None:
    rng, distribution, oracle = case.rng, case.distribution, case.oracle
    alpha = float(rng.choice([0.0, 0.5, 2.0, 3.7]))
    try:
        found = distribution.renyi(alpha)
    except PrecisionError:
        return "renyi refused"
    powers = np.exp(alpha * oracle.below) if alpha > 0 else np.ones(len(oracle.below))
    expected = (math.log(math.fsum(powers)) - alpha * oracle.log_sum) / (1.0 - alpha)
    assert close(found, expected, 10.0), (found, expected)
    return None


def labels(folder: Path) -> Draw:
    """Labelled marginals and log Z, against trees over every label."""

    def draw(rng: np.random.Generator) -> str | None:
        n, count = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        flags = _flags(rng)
        scores = draw_scores(rng, (n + 1, n + 1, count))
        integers, unit = _integers(scores)
        distribution = LabelledTreeDistribution(scores, threads=1, **flags)
        outcomes = []
        for heads in _trees(n, **flags).tolist():
            for choice in np.ndindex(*(count,) * n):
                arcs = [integers[heads[m], m, choice[m - 1]] for m in range(1, n + 1)]
                if None not in arcs:
                    outcomes.append((sum(arcs), heads, choice))
        if not outcomes:
            distribution.marginals  # noqa: B018
            raise AssertionError("marginals of no tree")
        best = max(total for total, _, _ in outcomes)
        weights = [math.exp(max(_ratio(total - best, unit), -1e4)) for total, _, _ in outcomes]
        z = math.fsum(weights)
        expected = np.zeros(scores.shape)
        for (_, heads, choice), weight in zip(outcomes, weights, strict=True):
            for m in range(1, n + 1):
                expected[heads[m], m, choice[m - 1]] += weight / z
        with expecting_success():
            found = distribution.marginals
        assert close(found, expected), (found, expected)
        assert np.abs(found[:, 1:].sum(axis=(0, 2)) - 1.0).max() < 1e-12
        assert close(distribution.log_partition, best / unit + math.log(z))
        entropy = -math.fsum(w / z * math.log(w / z) for w in weights if w > 0)
        assert close(distribution.entropy, entropy), (distribution.entropy, entropy)
        heads, chosen = distribution.argmax()
        total = sum(integers[heads[m], m, chosen[m]] for m in range(1, n + 1))
        assert _ratio(best - total, unit) <= _CLOSE
        assert close(distribution.log_prob(heads, chosen), _ratio(total - best, unit) - math.log(z))
        return None

    for seed in range(30):
        run_one(draw, seed)
    return draw
