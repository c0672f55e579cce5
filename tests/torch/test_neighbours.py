"""A sentence's log Z, marginals, entropy and gradients do not depend on what else is in its batch, nor on the order in
which they are asked for; sentences without a tree are allowed in, as nobody looks (`validate_args=False`)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from torch import Tensor

from headway.torch import TreeDistribution
from tests.inference.strategies import TREE_CLASSES, Floats
from tests.inference.test_neighbours import LENGTHS, one_of
from tests.torch.test_kernels import padded

KINDS = ["ordinary", "no head", "no way out", "cycle", "pruned", "pinned"]
ASKED = ["log_partition", "marginals", "entropy", "slope of log Z", "slope of entropy", "covariance"]
sentences = st.builds(one_of, st.sampled_from(KINDS), st.sampled_from(LENGTHS), st.integers(0, 255))


def ask(d: TreeDistribution, scores: Tensor, name: str) -> Tensor:
    if name == "covariance":
        return d.covariance_with_arcs(torch.sin(torch.arange(float(scores.shape[-1]))).to(scores).expand_as(scores))
    if not name.startswith("slope"):
        return getattr(d, name)
    value = d.log_partition if name.endswith("log Z") else d.entropy
    finite = torch.isfinite(value)
    (slope,) = torch.autograd.grad(value[finite].sum(), scores, retain_graph=True)
    return slope


def answers(matrices: list[Floats], flags: dict[str, bool], order: list[str]) -> dict[str, Tensor]:
    scores, lengths = padded(matrices)
    scores = torch.where(torch.isnan(scores), 0.0, scores).requires_grad_()
    d = TreeDistribution(scores, lengths, **flags, validate_args=False)
    return {name: ask(d, scores, name).detach() for name in order}


@pytest.mark.parametrize("flags", TREE_CLASSES)
@settings(max_examples=10)
@given(matrices=st.lists(sentences, min_size=2, max_size=6), order=st.permutations(ASKED))
def test_alone_or_among_others(flags: dict[str, bool], matrices: list[Floats], order: list[str]) -> None:
    together = answers(matrices, flags, order)
    for b, matrix in enumerate(matrices):
        alone: Any = answers([matrix], flags, order)
        if alone["log_partition"][0] == -torch.inf:
            assert together["log_partition"][b] == -torch.inf
            assert not together["marginals"][b].any()
            continue
        nodes = len(matrix)
        for name, found in together.items():
            ours, own = found[b], alone[name][0]
            if ours.ndim == 2:
                assert not ours[nodes:].any()
                assert not ours[:, nodes:].any()
                ours, own = ours[:nodes, :nodes], own[:nodes, :nodes]
            if name in ("log_partition", "marginals", "slope of log Z"):
                assert torch.equal(ours, own), name
            torch.testing.assert_close(ours, own, rtol=1e-12, atol=1e-12)
