"""What every distribution over the trees of one sentence can answer: what a parser's prediction carries.

`TreeDistribution` is one, for arc scores. A model that is not arc-factored brings its own: a higher-order parser its
pruner's, calibrated; a grammar the posterior of its derivations. All of them meet the same contract
(tests/inference/test_contract.py): every word's column of `marginals` sums to one, `argmax` is a tree of the class, and
`log_prob` is at most 0.
"""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import ArrayLike

from headway.arrays import Floats, Ints


class Distribution(Protocol):
    """A distribution over the trees of one sentence of n words."""

    @property
    def marginals(self) -> Floats:
        """P(head -> modifier), (n+1, n+1)."""
        ...

    def argmax(self) -> Ints:
        """Heads (n+1,) of the best tree."""
        ...

    def log_prob(self, heads: ArrayLike) -> Any:
        """log P(tree); -inf for a tree that the distribution does not have."""
        ...
