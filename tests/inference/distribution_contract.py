"""What every `headway.inference.protocol.Distribution` must meet, wherever it comes from."""

from __future__ import annotations

import numpy as np

from headway.arrays import TreeClass
from headway.inference.brute_force import all_trees
from headway.inference.heads import is_in_class
from headway.inference.protocol import Distribution


def check_distribution(distribution: Distribution, n: int, trees: TreeClass, rounding: float = 0.0) -> None:
    """One distribution over the trees of a class over n words.

    Every word's column of the marginals sums to one; the argmax is a tree of the class, and a possible one; no tree has
    a probability above one, and heads that are no tree of the class, or any at all, have none.
    """
    mu = distribution.marginals
    assert mu.shape == (n + 1, n + 1)
    assert (mu >= 0).all()
    np.testing.assert_allclose(mu[:, 1:].sum(axis=0), 1.0, rtol=0, atol=1e-9 + rounding)
    assert not mu[:, 0].any()
    best = distribution.argmax()
    assert best.shape == (n + 1,)
    assert is_in_class(best, trees)
    assert -np.inf < float(distribution.log_prob(best)) <= 1e-9 + rounding
    if n > 4:
        return
    total = 0.0
    for heads in all_trees(n, projective=False, single_root=False):
        log_p = float(distribution.log_prob(heads))
        assert log_p <= 1e-9 + rounding
        if not is_in_class(heads, trees):
            assert log_p == -np.inf
        total += np.exp(log_p)
    assert total <= 1.0 + 1e-9 + 100 * rounding
    if n > 1:
        cycle = np.array([-1, *range(2, n + 1), 1])
        assert float(distribution.log_prob(cycle)) == -np.inf
