"""A temperature for each sentence: by its words alone, whatever stands beside it; the best tree stays the best."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks are trained with torch")
pytest.importorskip("onnx", reason="graphs are made with onnx")
pytest.importorskip("onnxruntime", reason="graphs run on onnxruntime")
pytest.importorskip("tokenizers", reason="subwords are cut by tokenizers")

from headway import Parser, Sentence
from headway.archive import load_archive, save_archive
from headway.errors import ArchiveError
from headway.neural.device import DeviceModel, sentence_temperatures
from headway.neural.sentence_temperature import SentenceTemperature
from tests.neural.tiny import model_of, sentences

TREES = sentences(10)
PLAIN = [Sentence.from_words(tree.forms) for tree in TREES]
GIVEN = SentenceTemperature(0.2, -0.7, 1.5, 0.3, (0.5, -1.0, 2.0, 0.0, 1.0, -0.3, 0.2, 0.7))
MODEL = replace(model_of("bert", TREES), sentence_temperature=GIVEN)


def naive(arcs, vectors):
    """Of one sentence, without padding."""
    n = len(arcs) - 1
    doubts = []
    for m in range(1, n + 1):
        weights = [np.exp(arcs[h, m]) for h in range(n + 1) if h != m]
        doubts.append(1 - max(weights) / sum(weights))
    odds = np.mean(vectors[1:], axis=0) @ np.array(GIVEN.direction) + GIVEN.bias
    disorder = 1 / (1 + np.exp(-odds))
    return np.exp(GIVEN.constant + GIVEN.doubt * np.mean(doubts) + GIVEN.disorder * disorder)


def test_temperatures_are_those_of_the_formula_whatever_the_padding():
    rng = np.random.default_rng(0)
    lengths = np.array([3, 1, 6])
    arcs, vectors = rng.normal(size=(3, 7, 7)) * 3, rng.normal(size=(3, 7, 8)).astype(np.float32)
    wanted = [naive(arcs[b, : n + 1, : n + 1], vectors[b, : n + 1]) for b, n in enumerate(lengths)]
    assert np.ptp(wanted) > 0.1
    np.testing.assert_allclose(GIVEN.temperatures(arcs, vectors, lengths), wanted, rtol=1e-6)
    tensors = torch.from_numpy(arcs), torch.from_numpy(vectors).double(), torch.from_numpy(lengths)
    np.testing.assert_allclose(sentence_temperatures(GIVEN, *tensors).numpy(), wanted, rtol=1e-6)


def test_trees_stay_and_probabilities_change():
    usual = list(Parser(replace(MODEL, sentence_temperature=None)).parse(PLAIN))
    own = list(Parser(MODEL).parse(PLAIN))
    ratios = []
    for one, other in zip(usual, own, strict=True):
        assert one.heads.tolist() == other.heads.tolist()
        scores = [found.distribution.score(one.heads) for found in (one, other)]
        ratios.append(scores[0] / scores[1])
    assert np.ptp(ratios) > 0.01  # each sentence has its own
    alone = Parser(MODEL).parse(PLAIN[3])
    np.testing.assert_allclose(alone.confidence.arcs[1:], own[3].confidence.arcs[1:], atol=1e-6)
    assert Parser(MODEL).parse(Sentence.from_words([])).heads.tolist() == [-1]


def test_a_device_gives_the_same_probabilities():
    found = Parser(DeviceModel.of(MODEL, torch.device("cpu"))).parse(PLAIN)
    for one, other in zip(Parser(MODEL).parse(PLAIN), found, strict=True):
        np.testing.assert_allclose(one.confidence.arcs[1:], other.confidence.arcs[1:], atol=0.02)


def test_saved_and_damaged(tmp_path):
    Parser(MODEL).save(tmp_path / "own.headway")
    assert Parser.load(tmp_path / "own.headway").model.sentence_temperature == GIVEN
    archive = load_archive(tmp_path / "own.headway")
    for damage in ({"doubt": "much"}, {"direction": 3}, {"direction": [float("1e400")]}, {"bias": None}):
        data = {**archive.data, "sentence_temperature": {**GIVEN.to_data(), **damage}}
        save_archive(replace(archive, data=data), tmp_path / "damaged.headway")
        with pytest.raises(ArchiveError):
            Parser.load(tmp_path / "damaged.headway")
    misfit = replace(MODEL, sentence_temperature=replace(GIVEN, direction=(1.0,)))
    with pytest.raises(ArchiveError, match="does not fit"):
        Parser(misfit).parse(PLAIN[0])
