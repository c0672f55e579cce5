"""The losses of second-order scores in `experiments/neural`, beside every tree and every set of modifiers."""

from __future__ import annotations

import sys
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from headway.arrays import TreeClass
from tests.inference.parts_oracle import Heads, score, trees

WORDS = (4, 3, 1)


@pytest.fixture(scope="module")
def second_order() -> Any:
    folder = str(Path(__file__).parents[2] / "experiments" / "neural")
    sys.path.insert(0, folder)
    import second_order_scores

    sys.path.remove(folder)
    return second_order_scores


def made(second_order: Any, seed: int, grandparents: bool) -> tuple[Any, Any]:
    """Scores of a random scorer for sentences of `WORDS`, with scores of arcs."""
    torch.manual_seed(seed)
    scorer = second_order.SecondOrder(6, 0.0, grandparents).double()
    nodes = max(WORDS) + 1
    words = 2 * torch.randn(len(WORDS), nodes, 6, dtype=torch.float64)
    return torch.randn(len(WORDS), nodes, nodes, dtype=torch.float64), scorer(words)


def drawn(seed: int, single_root: bool) -> Any:
    rng = np.random.default_rng(seed)
    heads = np.full((len(WORDS), max(WORDS) + 1), -1)
    for row, n in zip(heads, WORDS, strict=True):
        every = trees(n, False, single_root)
        row[: n + 1] = every[rng.integers(len(every))]
    return torch.from_numpy(heads)


def dense(arcs: Any, scores: Any, b: int) -> dict[str, Any]:
    n = WORDS[b] + 1
    found = {"arcs": arcs[b, :n, :n], "siblings": scores.siblings[b, :n, :n, :n]}
    if scores.grandparents is not None:
        found["grandparents"] = scores.grandparents[b, :n, :n, :n]
    return {name: values.detach().numpy() for name, values in found.items()}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("grandparents", [True, False])
def test_conditional_loss_is_that_of_trees_with_one_other_head(
    second_order: Any, seed: int, single_root: bool, grandparents: bool
) -> None:
    arcs, scores = made(second_order, seed, grandparents)
    heads = drawn(seed, single_root)
    found = second_order.conditional_loss(arcs, scores, heads, torch.tensor(WORDS), TreeClass(False, single_root))
    for b, n in enumerate(WORDS):
        gold: Heads = tuple(heads[b, : n + 1].tolist())
        own, expected = dense(arcs, scores, b), 0.0
        for m in range(1, n + 1):
            like = [t for t in trees(n, False, single_root) if all(t[i] == gold[i] for i in range(n + 1) if i != m)]
            expected += np.logaddexp.reduce([score(t, own) for t in like]) - score(gold, own)
        assert found[b].item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_automata_loss_is_that_of_all_sets_of_modifiers(second_order: Any, seed: int) -> None:
    arcs, scores = made(second_order, seed, False)
    heads = drawn(seed, False)
    found = second_order.automata_loss(arcs, scores, heads, torch.tensor(WORDS), TreeClass(False, False))
    for b, n in enumerate(WORDS):
        own, expected = dense(arcs, scores, b), 0.0
        for h in range(n + 1):
            for outwards in (range(h - 1, 0, -1), range(h + 1, n + 1)):
                sets = [some for k in range(len(outwards) + 1) for some in combinations(outwards, k)]
                gold = tuple(m for m in outwards if heads[b, m] == h)
                expected += np.logaddexp.reduce([of_side(h, some, own) for some in sets]) - of_side(h, gold, own)
        assert found[b].item() == pytest.approx(expected, abs=1e-9)


def of_side(h: int, modifiers: tuple[int, ...], own: dict[str, Any]) -> float:
    pairs = pairwise([h, *modifiers, h]) if modifiers else ()
    return float(sum(own["arcs"][h, m] for m in modifiers) + sum(own["siblings"][h, s, m] for s, m in pairs))


@pytest.mark.parametrize("loss", ["conditional_loss", "automata_loss"])
def test_gradients_are_finite(second_order: Any, loss: str) -> None:
    """Padding, and arcs that no tree has, must not make them infinite."""
    torch.manual_seed(0)
    scorer = second_order.SecondOrder(6, 0.3, loss == "conditional_loss")
    words = torch.randn(len(WORDS), max(WORDS) + 1, 6, requires_grad=True)
    arcs = torch.randn(len(WORDS), max(WORDS) + 1, max(WORDS) + 1, requires_grad=True)
    trees_of = TreeClass(False, True)
    found = getattr(second_order, loss)(arcs, scorer(words), drawn(1, True), torch.tensor(WORDS), trees_of)
    found.sum().backward()
    for weight in (words, arcs, *scorer.parameters()):
        assert weight.grad is not None
        assert weight.grad.isfinite().all()
    assert words.grad.abs().sum() > 0


def test_scores_depend_on_the_side_and_on_all_three_words(second_order: Any) -> None:
    torch.manual_seed(0)
    scorer = second_order.SecondOrder(6, 0.0, False).double()
    words = torch.randn(1, 5, 6, dtype=torch.float64)
    there, back = scorer(words).siblings[0], scorer(words.flip(1)).siblings[0].flip(0, 1, 2)
    for part in ((2, 3, 4), (2, 2, 4), (2, 4, 2), (2, 1, 0), (2, 2, 1), (2, 1, 2)):  # between, START and END
        assert not torch.allclose(there[part], back[part])
    for word in (0, 1, 2):
        other = words.clone()
        other[0, word] += 1
        assert not torch.allclose(scorer(other).siblings[0, 0, 1, 2], there[0, 1, 2])
