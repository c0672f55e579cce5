"""Development data: scores against a loop over sentences, and the scale that makes trees likely."""

from __future__ import annotations

import numpy as np
import pytest

from headway.arrays import Floats
from headway.inference import TreeDistribution
from headway.training.arc_trainer import ArcPreparation
from headway.treebank import Sentence

from ..models.toy_treebank import sentences
from .toy_trainings import fitted, prepared, settings_for


def naive_uas(weights: Floats, made: ArcPreparation, gold: list[Sentence], **flags: bool) -> float:
    right, total, scorer = 0, 0, made.problem.scorer
    for sentence in gold:
        assert sentence.heads is not None
        scores = scorer.scores(weights, made.coder.code([sentence]))[0]
        found = TreeDistribution(scores if scores.ndim == 2 else scores.max(axis=-1), **flags).argmax()
        for m, form in enumerate(sentence.forms, start=1):
            if form not in (".", ";"):
                right += int(found[m] == sentence.heads[m])
                total += 1
    return 100 * right / total


@pytest.mark.parametrize("labels", ["none", "joint"])
def test_development_uas_leaves_punctuation_out(labels: str) -> None:
    text, dev = sentences(20, 6, crossing=True), sentences(15, 7, crossing=True, two_roots=True)
    settings = settings_for("perceptron", labels=labels)
    made = prepared(settings, text, dev)
    weights = np.random.default_rng(8).normal(size=made.size)
    held_out = made.dev
    assert held_out is not None
    for projective in (False, True):
        expected = naive_uas(weights, made, dev, projective=projective, single_root=True)
        assert held_out.uas(weights, projective=projective) == pytest.approx(expected, rel=1e-12)
        assert made.uas(weights, projective) == held_out.uas(weights, projective)
    assert held_out.uas(weights) == held_out.uas(weights, projective=False)
    assert 0.0 < held_out.uas(weights) < 100.0


@pytest.mark.parametrize("labels", ["none", "joint"])
def test_the_scale_makes_the_development_trees_likely(labels: str) -> None:
    """No other factor on a grid is better, and it is far better than none."""
    settings = settings_for("perceptron", labels=labels)
    text, dev = sentences(8, 9), sentences(12, 10, crossing=True)
    best = fitted(prepared(settings, text), settings).best
    assert best is not None
    weights, made = 50.0 * best, prepared(settings, text, dev)
    held_out = made.dev
    assert held_out is not None
    scorer, coded = made.problem.scorer, made.coder.code(dev)

    def likelihood(factor: float) -> float:
        total = 0.0
        for i, sentence in enumerate(dev):
            assert sentence.heads is not None
            assert sentence.labels is not None
            scores = factor * scorer.scores(weights, coded.some(np.array([i])))[0]
            words = np.arange(1, len(sentence) + 1)
            if labels == "none":
                total += TreeDistribution(scores).log_prob(sentence.heads)
                continue
            number = [made.labels.index(str(x)) if x in made.labels else 0 for x in sentence.labels[1:]]
            total += scores[sentence.heads[1:], words, number].sum()
            total -= TreeDistribution(np.logaddexp.reduce(scores, axis=-1)).log_partition
        return float(total)

    scale = held_out.scale(weights)
    reached = likelihood(scale)
    assert reached > likelihood(1.0) + 1.0
    assert all(reached > likelihood(scale * factor) - 0.05 for factor in (0.25, 0.5, 0.8, 1.25, 2.0, 4.0))
    assert held_out.scale(10.0 * weights) == pytest.approx(scale / 10, rel=0.1)
