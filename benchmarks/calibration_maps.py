"""Which map from its pruner's probabilities to a higher-order parser's own fits best? Three are compared.

python benchmarks/calibration_maps.py model.headway dev.conllu     # a sibling or grand-sibling model

    constant    pi + (1 - pi) p^kappa, which never falls below pi
    odds        logit of a + b logit p
    two slopes  logit of a + b log p - c log(1 - p), beta calibration: what Headway uses

Each is fitted to the parser's arcs in one half of the sentences (every second one), and measured on the other half;
then the halves change places. Printed: bits per arc that the map leaves, the expected calibration error, the mean
probability of the arcs to which the pruner gives less than 1%, and the share of them that is right.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import headway as hw
from headway.evaluation import reliability
from headway.models.calibration import CalibratedDistribution
from headway.treebank import require_tree

Floats = NDArray[np.float64]
Map = Callable[[Floats, Floats], Floats]
UNLIKELY = 0.01


def constant(x: Floats, p: Floats) -> Floats:
    made: Floats = x[0] + (1 - x[0]) * p ** x[1]
    return made


def odds(x: Floats, p: Floats) -> Floats:
    return two_slopes(np.array([x[0], x[1], x[1]]), p)


def two_slopes(x: Floats, p: Floats) -> Floats:
    made: Floats = np.exp(-np.logaddexp(0.0, -(x[0] + x[1] * np.log(p) - x[2] * np.log1p(-p))))
    return made


MAPS: dict[str, tuple[Map, Sequence[float], Sequence[tuple[float | None, float | None]]]] = {
    "constant": (constant, (0.2, 1.0), ((0.0, 0.99), (0.1, 10.0))),
    "odds": (odds, (0.0, 1.0), ((None, None), (1e-3, None))),
    "two slopes": (two_slopes, (0.0, 1.0, 1.0), ((None, None), (1e-3, None), (1e-3, None))),
}


def bits(p: Floats, right: NDArray[np.bool_]) -> Floats:
    found: Floats = -np.log2(np.where(right, p, 1 - p))
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model", help="a sibling or grand-sibling model")
    options.add_argument("treebank", help="sentences it was not trained on")
    given = options.parse_args()
    p, right, half = arcs_of(hw.Parser.load(given.model), list(hw.read_treebank(given.treebank)))
    unlikely = p < UNLIKELY
    print(f"{len(p)} arcs, {100 * right.mean():.2f}% right; below {UNLIKELY:.0%}: {unlikely.sum()}", end=", ")
    print(f"{100 * right[unlikely].mean():.1f}% right; the pruner's own probabilities: {summary(p, right, unlikely)}")
    for name, (made, start, bounds) in MAPS.items():
        sure = np.empty_like(p)
        for k in (0, 1):
            known = half == k
            fitted = minimize(
                lambda x, known=known, made=made: bits(made(x, p[known]), right[known]).mean(),
                start,
                bounds=bounds,
                method="Nelder-Mead",
                options={"maxiter": 2000, "xatol": 1e-6, "fatol": 1e-10},
            )
            sure[~known] = made(fitted.x, p[~known])
        print(f"{name}: {summary(sure, right, unlikely)}; last fit {np.round(fitted.x, 3).tolist()}")


def arcs_of(parser: hw.Parser, gold: list[hw.Sentence]) -> tuple[Floats, NDArray[np.bool_], NDArray[np.int64]]:
    """The pruner's probabilities of the parser's arcs that are neither 0 nor 1; which are right; in which half."""
    own: list[Any] = []
    right: list[Any] = []
    half: list[Any] = []
    for k, (tree, found) in enumerate(zip(gold, parser.parse(iter(gold), exact=False, retag=True), strict=True)):
        words = np.arange(1, len(tree) + 1)
        assert isinstance(found.distribution, CalibratedDistribution)
        own.append(found.distribution.pruner.marginals[found.heads[1:], words])
        right.append(found.heads[1:] == require_tree(tree)[1:])
        half.append(np.full(len(tree), k % 2))
    p = np.concatenate(own)
    doubtful = (p > 0) & (p < 1)
    return p[doubtful], np.concatenate(right)[doubtful], np.concatenate(half)[doubtful]


def summary(p: Floats, right: NDArray[np.bool_], unlikely: NDArray[np.bool_]) -> str:
    error = 100 * reliability(p, right).expected_error
    rare = f"mean below {UNLIKELY:.0%}: {p[unlikely].mean():.2f}"
    return f"{bits(p, right).mean():.4f} bits per arc, error {error:.2f}%, {rare}"


if __name__ == "__main__":
    main()
