"""Every learner's loss beside the sum over an explicit list of all trees."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from headway.arrays import TreeClass
from headway.inference.brute_force import all_trees
from headway.neural import losses

N = 4
CLASSES = [TreeClass(p, s) for p in (False, True) for s in (False, True)]
GOLD = (-1, 2, 0, 2, 3)
PARTLY = (-1, 2, -1, -1, 3)


def drawn(seed: int = 0) -> torch.Tensor:
    return 2 * torch.randn(N + 1, N + 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def trees_with(known: tuple[int, ...], trees: TreeClass) -> list[tuple[int, ...]]:
    found = all_trees(N, **trees._asdict()).tolist()
    return [tuple(t) for t in found if all(k < 0 or k == h for k, h in zip(known[1:], t[1:], strict=True))]


def score(scores: torch.Tensor, heads: tuple[int, ...]) -> float:
    return sum(float(scores[h, m]) for m, h in enumerate(heads) if m > 0)


def wrong(heads: tuple[int, ...], known: tuple[int, ...]) -> int:
    return sum(k >= 0 and k != h for k, h in zip(known[1:], heads[1:], strict=True))


def found(loss: losses.Loss, heads: tuple[int, ...], trees: TreeClass, scores: torch.Tensor) -> float:
    """The loss of a sentence that has a shorter one beside it."""
    both = torch.stack([scores, drawn(9)])
    known = torch.tensor([heads, (-1, 0, 1, -1, -1)])
    return float(loss(both, known, torch.tensor([N, 2]), trees)[0])


@pytest.mark.parametrize("trees", CLASSES, ids=str)
@pytest.mark.parametrize("heads", [GOLD, PARTLY], ids=["tree", "some heads"])
def test_likelihood(heads: tuple[int, ...], trees: TreeClass) -> None:
    scores = drawn()
    every = np.logaddexp.reduce([score(scores, t) for t in trees_with((-1,) * 5, trees)])
    own = np.logaddexp.reduce([score(scores, t) for t in trees_with(heads, trees)])
    assert found(losses.partial_log_likelihood, heads, trees, scores) == pytest.approx(every - own, abs=1e-9)
    if heads == GOLD:
        assert found(losses.log_likelihood, heads, trees, scores) == pytest.approx(every - own, abs=1e-9)


@pytest.mark.parametrize("trees", CLASSES, ids=str)
@pytest.mark.parametrize("heads", [GOLD, PARTLY], ids=["tree", "some heads"])
@pytest.mark.parametrize(("loss", "cost"), [(losses.margin, 1.0), (losses.perceptron, 0.0)])
def test_margin(heads: tuple[int, ...], trees: TreeClass, loss: losses.Loss, cost: float) -> None:
    scores = drawn(1)
    gold = max(score(scores, t) for t in trees_with(heads, trees))
    worst = max(score(scores, t) + cost * wrong(t, heads) for t in trees_with((-1,) * 5, trees))
    assert found(loss, heads, trees, scores) == pytest.approx(worst - gold, abs=1e-9)


@pytest.mark.parametrize("trees", CLASSES, ids=str)
@pytest.mark.parametrize("heads", [GOLD, PARTLY], ids=["tree", "some heads"])
def test_expected_loss(heads: tuple[int, ...], trees: TreeClass) -> None:
    scores = drawn(2)
    every = trees_with((-1,) * 5, trees)
    weights = np.exp([score(scores, t) for t in every])
    expected = sum(w * wrong(t, heads) for w, t in zip(weights / weights.sum(), every, strict=True))
    assert found(losses.expected_loss, heads, trees, scores) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("heads", [GOLD, PARTLY], ids=["tree", "some heads"])
def test_cross_entropy(heads: tuple[int, ...]) -> None:
    scores = drawn(3)
    total = 0.0
    for m, h in enumerate(heads):
        if m > 0 and h >= 0:
            total += np.logaddexp.reduce([float(scores[k, m]) for k in range(N + 1) if k != m]) - float(scores[h, m])
    assert found(losses.cross_entropy, heads, CLASSES[0], scores) == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("trees", CLASSES, ids=str)
@pytest.mark.parametrize("order", [0.5, 1.0, 2.0, float("inf")])
def test_entropy(trees: TreeClass, order: float) -> None:
    scores = drawn(4)
    logs = np.array([score(scores, t) for t in trees_with((-1,) * 5, trees)])
    p = np.exp(logs - np.logaddexp.reduce(logs))
    if order == 1:
        expected = -(p * np.log(p)).sum()
    elif np.isinf(order):
        expected = -np.log(p.max())
    else:
        expected = np.log((p**order).sum()) / (1 - order)
    own = losses.entropy(scores[None], torch.tensor([N]), trees, order)
    assert float(own[0]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", losses.LOSSES)
def test_losses_have_gradients(name: str) -> None:
    """Finite differences along one direction, away from the kinks of the piecewise linear ones."""
    scores, direction = drawn(5)[None].requires_grad_(), drawn(6)[None]
    heads, lengths = torch.tensor([GOLD]), torch.tensor([N])

    def loss(step: float) -> torch.Tensor:
        return losses.LOSSES[name](scores + step * direction, heads, lengths, CLASSES[1])[0]

    (gradient,) = torch.autograd.grad(loss(0.0), scores)
    slope = ((loss(1e-6) - loss(-1e-6)) / 2e-6).detach()
    assert float((gradient * direction).sum()) == pytest.approx(float(slope), abs=1e-5)
