"""Derivatives: against finite differences, against enumeration, through torch.func, and what they cost."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from headway.arrays import TreeClass
from headway.torch import LabelledTreeDistribution, TreeDistribution
from headway.torch.kernels import Kernels
from headway.torch.numba_kernels import NumbaKernels
from tests.inference import exact
from tests.inference.strategies import TREE_CLASSES
from tests.torch.cases import LENGTHS, TREES, masked, random_scores
from tests.torch.each_kernel import each_kernel, only

every_class = pytest.mark.parametrize("flags", TREE_CLASSES)

DIRECTION = random_scores(17)
OTHER = random_scores(18)
QUANTITIES = {
    "log_partition": lambda d: d.log_partition,
    "marginals": lambda d: d.marginals,
    "log_prob": lambda d: d.log_prob(TREES),
    "log_partition_of": lambda d: d.log_partition_of(torch.where(torch.arange(5) == 2, TREES, -1)),
    "entropy": lambda d: d.entropy,
    "kl": lambda d: d.kl(TreeDistribution(masked(OTHER), LENGTHS, *d.trees)),
    "expectation": lambda d: d.expectation(DIRECTION),
    "covariance_with_arcs": lambda d: d.covariance_with_arcs(DIRECTION),
}


@each_kernel
@every_class
@pytest.mark.parametrize("quantity", QUANTITIES.values(), ids=QUANTITIES)
def test_first_and_second_derivatives(
    quantity: Callable[[TreeDistribution], Tensor], flags: dict[str, bool], kernels: Kernels
) -> None:
    def function(scores: Tensor) -> Tensor:
        return quantity(TreeDistribution(masked(scores), LENGTHS, **flags))

    scores = random_scores(1).requires_grad_()
    with only(kernels):
        assert gradcheck(function, scores, fast_mode=True)
        assert gradgradcheck(function, scores, fast_mode=True)


@every_class
def test_every_entry_of_the_derivatives(flags: dict[str, bool]) -> None:
    """Without `fast_mode`, which compares random projections only."""
    scores = random_scores(2).requires_grad_()
    assert gradcheck(lambda s: TreeDistribution(masked(s), LENGTHS, **flags).log_partition, scores)
    assert gradcheck(lambda s: TreeDistribution(masked(s), LENGTHS, **flags).marginals, scores)


@every_class
def test_derivatives_by_a_function(flags: dict[str, bool]) -> None:
    f, g = random_scores(3).requires_grad_(), random_scores(4).requires_grad_()

    def covariance(f: Tensor, g: Tensor) -> Tensor:
        return TreeDistribution(masked(random_scores(5)), LENGTHS, **flags).covariance(f, g)

    assert gradcheck(covariance, (f, g), fast_mode=True)
    assert gradgradcheck(covariance, (f, g), fast_mode=True)


@each_kernel
@every_class
def test_log_partition_marginals_covariance_third_cumulant_by_enumeration(
    flags: dict[str, bool], kernels: Kernels
) -> None:
    rng = np.random.default_rng(6)
    scores, f, g = (rng.normal(size=(5, 5)) for _ in range(3))
    scores[1, 2] = scores[0, 4] = -np.inf
    reference = exact.tree_distribution(scores, **flags)
    arcs = [(h, m) for h in range(5) for m in range(1, 5) if h != m]
    value = {
        name: {heads: exact.part_sum(x, exact.arcs(heads)) for heads in reference} for name, x in (("f", f), ("g", g))
    }
    mean = {name: reference.expectation(values.__getitem__) for name, values in value.items()}

    def third(arc: tuple[int, int]) -> float:
        """E[(f - E f) (g - E g) (1[arc] - P(arc))]."""
        p = reference.probability_that(lambda heads: arc in exact.arcs(heads))

        def product(heads: exact.Heads) -> Fraction:
            return (value["f"][heads] - mean["f"]) * (value["g"][heads] - mean["g"]) * ((arc in exact.arcs(heads)) - p)

        return float(reference.expectation(product))

    x = torch.tensor(scores, requires_grad=True)
    with only(kernels):
        d = TreeDistribution(x, **flags)
        (mu,) = torch.autograd.grad(d.log_partition, x, create_graph=True)
        (slope,) = torch.autograd.grad((mu * torch.tensor(f)).sum(), x, create_graph=True)
        (curve,) = torch.autograd.grad((slope * torch.tensor(g)).sum(), x)
    expected = reference.marginals((5, 5), exact.arcs).astype(float)
    np.testing.assert_allclose(mu.detach().numpy(), expected, rtol=0, atol=1e-12)
    covariances = exact.covariance_with_arcs(reference, np.where(np.isinf(scores), 0.0, f)).astype(float)
    np.testing.assert_allclose(slope.detach().numpy(), covariances, rtol=0, atol=1e-12)
    for arc in arcs:
        assert curve[arc].item() == pytest.approx(third(arc), rel=0, abs=1e-12)


@each_kernel
@every_class
@pytest.mark.parametrize("scale", [1.0, 30.0, 300.0])
def test_gradients_are_finite_whatever_is_forbidden(scale: float, flags: dict[str, bool], kernels: Kernels) -> None:
    """In sentences without a tree they are zero, if nobody looks."""
    scores = random_scores(7, scale)
    scores[1, :, 2] = scores[2, 0] = -torch.inf
    scores = masked(scores).requires_grad_()
    with only(kernels):
        d = TreeDistribution(scores, LENGTHS, **flags, validate_args=False)
        for total in (d.log_partition[[0, 3, 4, 5]].sum(), d.entropy[[0, 3, 4, 5]].sum(), d.marginals.square().sum()):
            (grad,) = torch.autograd.grad(total, scores, retain_graph=True)
            assert grad.isfinite().all()
            assert not grad[[1, 2]].any()
            assert not grad[scores.detach() == -torch.inf].any()


class Counting:
    """Kernels that note what they are asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., object]:
        method: Callable[..., object] = getattr(NumbaKernels(), name)

        def noted(*arguments: object) -> object:
            self.asked.append(name)
            return method(*arguments)

        return noted


def test_loss_and_gradient_are_one_pass() -> None:
    kernels, scores = Counting(), random_scores(8).requires_grad_()
    with only(kernels):  # type: ignore[arg-type]
        TreeDistribution(masked(scores), LENGTHS).nll(TREES).sum().backward()
        assert kernels.asked == ["marginals"]
        kernels.asked.clear()
        d = TreeDistribution(masked(scores), LENGTHS)
        (d.nll(TREES) + 0.1 * d.entropy).sum().backward()
        assert kernels.asked == ["marginals", "covariance"]
        kernels.asked.clear()
        d = TreeDistribution(masked(scores).detach(), LENGTHS)
        d.log_partition, d.log_prob(TREES), d.log_partition, d.marginals, d.entropy
        assert kernels.asked == ["begin"]


def test_what_was_computed_without_gradients_is_not_reused_with_them() -> None:
    scores = random_scores(9).requires_grad_()
    d = TreeDistribution(masked(scores), LENGTHS)
    with torch.no_grad():
        before = d.log_partition, d.marginals
    assert not before[0].requires_grad
    d.log_partition.sum().backward()
    torch.testing.assert_close(scores.grad, before[1], rtol=0, atol=1e-15)
    d = TreeDistribution(scores)
    with torch.inference_mode():
        assert not d.marginals.requires_grad
    assert d.log_partition.requires_grad


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own, in torch.func.jvp
@each_kernel
@every_class
def test_torch_func(flags: dict[str, bool], kernels: Kernels) -> None:
    scores, f = random_scores(10), random_scores(11)

    def of(scores: Tensor, lengths: Tensor) -> TreeDistribution:
        return TreeDistribution(scores, lengths, **flags, validate_args=False)

    with only(kernels):
        d = of(scores, LENGTHS)
        slope = d.covariance_with_arcs(f)
        log_z = lambda s: of(s, LENGTHS).log_partition.sum()  # noqa: E731
        close = partial(torch.testing.assert_close, rtol=0, atol=1e-12)
        close(torch.func.grad(log_z)(scores), d.marginals)
        _, pullback = torch.func.vjp(lambda s: of(s, LENGTHS).marginals, scores)
        close(pullback(f)[0], slope)
        _, forward = torch.func.jvp(lambda s: of(s, LENGTHS).marginals, (scores,), (f,))
        close(forward, slope)
        curve = torch.func.grad(lambda s: of(s, LENGTHS).covariance(f, OTHER).sum())(scores)
        _, forward = torch.func.jvp(lambda s: of(s, LENGTHS).covariance_with_arcs(f), (scores,), (OTHER,))
        close(forward, curve)
        _, forward = torch.func.jvp(lambda s: of(s, LENGTHS).log_partition, (scores,), (f,))
        close(forward, d.expectation(f))
        _, both = torch.func.jvp(torch.func.grad(log_z), (scores,), (f,))
        close(both, slope)
        close(torch.vmap(lambda s, n: of(s, n).marginals)(scores, LENGTHS), d.marginals)
        close(torch.vmap(lambda s, n: of(s, n).argmax())(scores, LENGTHS), d.argmax())
        one_by_one = torch.vmap(torch.func.grad(lambda s, n: of(s, n).log_partition))
        close(one_by_one(scores, LENGTHS), d.marginals)
        hessian = torch.func.hessian(lambda s: of(s, LENGTHS[0]).log_partition)(scores[0])
        close((hessian * f[0]).sum((-2, -1)), slope[0])


@every_class
def test_operators_are_what_torch_expects(flags: dict[str, bool]) -> None:
    scores = torch.where(masked(random_scores(12)) > -torch.inf, random_scores(12), 0.0).requires_grad_()
    arguments = (scores, LENGTHS, *TreeClass(**flags))
    for name in ("log_partition", "marginals", "argmax"):
        torch.library.opcheck(getattr(torch.ops.headway, name).default, arguments)
    with_direction = (scores, LENGTHS, DIRECTION.clone().requires_grad_(), *TreeClass(**flags))
    checks = ("test_schema", "test_faketensor", "test_autograd_registration")
    torch.library.opcheck(torch.ops.headway.covariance.default, with_direction, test_utils=checks)
    torch.library.opcheck(torch.ops.headway.in_class.default, (TREES, LENGTHS, *TreeClass(**flags)))


@every_class
def test_labelled_derivatives(flags: dict[str, bool]) -> None:
    scores = torch.randn(4, 4, 3, generator=torch.Generator().manual_seed(13), dtype=torch.float64)
    forbidden = torch.zeros(4, 4, 3, dtype=torch.bool)
    forbidden[1, 2, 0] = forbidden[2, 3] = True
    heads, labels = torch.tensor([-1, 0, 1, 1]), torch.tensor([-1, 2, 1, 0])
    scores.requires_grad_()

    def of(scores: Tensor) -> LabelledTreeDistribution:
        return LabelledTreeDistribution(torch.where(forbidden, -torch.inf, scores), **flags)

    for function in (
        lambda s: of(s).log_prob(heads, labels),
        lambda s: of(s).marginals,
        lambda s: of(s).entropy,
        lambda s: of(s).log_partition_of(torch.tensor([-1, 0, -1, -1]), torch.tensor([-1, -1, 1, -1])),
    ):
        assert gradcheck(function, scores, fast_mode=True)
        assert gradgradcheck(function, scores, fast_mode=True)
