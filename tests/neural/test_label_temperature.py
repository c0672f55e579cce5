"""The temperature of labels: found again where labels are drawn with it, saved, and without a say in what is best."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks are trained with torch")
pytest.importorskip("onnx", reason="graphs are made with onnx")
pytest.importorskip("onnxruntime", reason="graphs run on onnxruntime")
pytest.importorskip("tokenizers", reason="subwords are cut by tokenizers")

from headway import Parser, Sentence
from headway.archive import Archive
from headway.models.protocol import Options
from headway.neural.device import DeviceModel
from headway.neural.label_temperature import with_label_temperature
from headway.neural.model import NeuralModel
from headway.parallel import SERIAL
from tests.neural.tiny import model_of, sentences

TREES = sentences()
MODEL = model_of("lstm", TREES, quantised=False)


def drawn(temperature: float) -> list[Sentence]:
    """Many trees whose labels are drawn from the network's own distribution at a temperature."""
    rng, trees = np.random.default_rng(4), TREES * 12
    scores, at = MODEL.label_scores(trees) / temperature, 0
    shares = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
    found = []
    for tree in trees:
        own = shares[at : at + len(tree)]
        at += len(tree)
        labels = [MODEL.tasks.labels[rng.choice(len(share), p=share)] for share in own]
        found.append(tree.with_tree(tree.heads, [None, *labels]))
    return found


@pytest.mark.parametrize("temperature", [0.3, 1.5])
def test_it_is_that_of_the_labels(temperature: float) -> None:
    """And there the labels score what is expected of them, as where a likelihood is highest."""
    trees = drawn(temperature)
    found = with_label_temperature(MODEL, trees)
    assert found.label_temperature == pytest.approx(temperature, rel=0.15)
    scores, names = MODEL.label_scores(trees), list(MODEL.tasks.labels)
    gold = [names.index(label) for tree in trees for label in tree.labels[1:]]
    weights = np.exp(scores / found.label_temperature)
    mean = (weights * np.where(weights > 0, scores, 0.0)).sum(axis=1) / weights.sum(axis=1)
    assert mean.sum() == pytest.approx(scores[np.arange(len(gold)), gold].sum(), rel=1e-3)
    assert (found.temperature, found.about) == (MODEL.temperature, MODEL.about)


def test_it_divides_the_scores_of_labels_and_changes_no_label() -> None:
    warm, some = replace(MODEL, label_temperature=4.0), TREES[:4]
    ways = (MODEL, warm, DeviceModel.of(warm, torch.device("cpu")))
    for tree, plain, found, there in zip(some, *(way.predict(some, Options(), SERIAL) for way in ways), strict=True):
        assert found.labels == plain.labels == there.labels
        scores = np.exp(MODEL.label_scores([tree.with_tree(found.heads)]) / 4)
        expected = [1.0, *(scores.max(axis=1) / scores.sum(axis=1))]
        np.testing.assert_allclose(found.label_probabilities, expected, rtol=1e-4)
        np.testing.assert_allclose(there.label_probabilities, expected, rtol=1e-3)
        assert found.label_probabilities.min() < plain.label_probabilities.min()
        np.testing.assert_array_equal(found.distribution.marginals, plain.distribution.marginals)


def test_trees_without_known_labels_change_nothing() -> None:
    strange = [tree.with_tree(tree.heads, [None, *["strange"] * len(tree)]) for tree in TREES]
    partial = [tree.with_tree(np.full(len(tree) + 1, -1), partial=True) for tree in TREES]
    for dev in (strange, partial, []):
        assert with_label_temperature(MODEL, dev) is MODEL


def test_it_is_saved_and_older_models_have_none() -> None:
    warm = replace(MODEL, label_temperature=2.5).to_archive()
    assert NeuralModel.from_archive(warm).label_temperature == 2.5
    older = {name: value for name, value in warm.data.items() if name != "label_temperature"}
    assert NeuralModel.from_archive(Archive(warm.kind, older, warm.arrays)).label_temperature == 1.0
    for damaged in (0.0, -1.0, "x", float("nan")):
        with pytest.raises(ValueError, match="temperature"):
            NeuralModel.from_archive(Archive(warm.kind, {**warm.data, "label_temperature": damaged}, warm.arrays))


@pytest.mark.parametrize("name", ["lstm", "bert"])
def test_half_a_surrogate_pair_is_a_word_like_any_other(name: str) -> None:
    found = Parser(model_of(name, TREES)).parse(["the", "\udc80", "do\ud83dg", "sees"])
    assert [word.text for word in found] == ["the", "\udc80", "do\ud83dg", "sees"]
