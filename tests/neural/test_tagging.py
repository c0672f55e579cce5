"""The tasks of a tagger, of which the small ones are scored together."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from headway.neural.tagging import Tagger
from headway.neural.targets import UNTAUGHT

SIZES = {"lemmas": 70, "upos": 5, "feats:Case": 2, "xpos": 9}


def scored():
    torch.manual_seed(3)
    tagger, words = Tagger(6, SIZES), torch.randn(2, 4, 6, requires_grad=True)
    targets = {name: torch.randint(0, size, (2, 4)) for name, size in SIZES.items()}
    for each in targets.values():
        each[1, 2:] = UNTAUGHT
    return tagger, words, targets


def test_each_task_has_the_scores_of_its_own_layer():
    tagger, words, _ = scored()
    found, small = tagger(words)
    assert list(found) == list(SIZES)
    for name in SIZES:
        torch.testing.assert_close(found[name], tagger.layer(name)(words))
    assert small.shape == (2, 4, 3, 9)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_and_its_gradient_are_the_sum_over_the_tasks(smoothing):
    tagger, words, targets = scored()
    weights = [words, *tagger.parameters()]
    loss = tagger.loss(*tagger(words), targets, smoothing)
    one_by_one = sum(
        torch.nn.functional.cross_entropy(
            tagger.layer(name)(words).flatten(0, 1),
            targets[name].flatten(),
            ignore_index=UNTAUGHT,
            reduction="sum",
            label_smoothing=smoothing,
        )
        for name in SIZES
    )
    torch.testing.assert_close(loss, one_by_one)
    for own, expected in zip(torch.autograd.grad(loss, weights), torch.autograd.grad(one_by_one, weights), strict=True):
        torch.testing.assert_close(own, expected)


def test_features_whose_names_are_nearly_alike():
    sizes = {"feats:a.b": 2, "feats:a_b": 5, "feats:a..b": 3}
    found, _ = Tagger(6, sizes)(torch.randn(1, 2, 6))
    assert {name: scores.shape[2] for name, scores in found.items()} == sizes


@pytest.mark.parametrize("sizes", [{}, {"lemmas": 70}, {"upos": 4}])
def test_tasks_of_one_kind_only(sizes):
    tagger = Tagger(6, sizes)
    targets = {name: torch.zeros(2, 4, dtype=torch.int64) for name in sizes}
    assert (tagger.loss(*tagger(torch.randn(2, 4, 6)), targets, 0.0).item() > 0) == bool(sizes)
