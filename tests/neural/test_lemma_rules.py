"""Lemmas by rules: used where they are better on development sentences, on every device, saved with the model."""

from __future__ import annotations

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="networks are trained with torch")
pytest.importorskip("onnx", reason="graphs are made with onnx")
pytest.importorskip("onnxruntime", reason="graphs run on onnxruntime")
pytest.importorskip("tokenizers", reason="subwords are cut by tokenizers")

from headway import Sentence
from headway.models.protocol import Options
from headway.neural.device import DeviceModel
from headway.neural.lemma_rules import right_lemmas, with_lemma_rules
from headway.neural.model import NeuralModel
from headway.parallel import SERIAL
from tests.neural.tiny import model_of, sentences

TREES = sentences()
MODEL = model_of("lstm", TREES, quantised=False)  # untrained: its edits are bad


def lemmas(model: NeuralModel | DeviceModel, some: list[Sentence]) -> list[tuple[str, ...]]:
    return [found.columns["lemmas"] for found in model.predict(some, Options(), SERIAL)]


def retagged(some: list[Sentence]) -> list[Sentence]:
    """The sentences with the tags that the network gives them."""
    found = MODEL.predict(some, Options(), SERIAL)
    return [
        replace(own, **{name: each.columns.get(name, getattr(own, name)) for name in ("upos", "xpos", "feats")})
        for own, each in zip(some, found, strict=True)
    ]


def test_the_lemmas_of_training_words_come_back() -> None:
    """Of words that always have the same one, given the tags that the network finds."""
    train = retagged(TREES)
    ruled = with_lemma_rules(MODEL, train, None)
    assert ruled.lemmatiser is not None
    seen: dict[tuple[str, ...], set[str]] = {}
    for own in train:
        for form, lemma, *tag in zip(own.forms, own.lemmas, own.upos, own.xpos, own.feats, strict=True):
            seen.setdefault((form, *tag), set()).add(lemma)
    sure = 0
    for own, found in zip(train, lemmas(ruled, train), strict=True):
        for word, lemma in zip(zip(own.forms, own.upos, own.xpos, own.feats, strict=True), found, strict=True):
            assert lemma in seen[word]
            sure += len(seen[word]) == 1
    assert sure > 20
    assert lemmas(DeviceModel.of(ruled, torch.device("cpu")), train) == lemmas(ruled, train)


def test_tags_that_the_network_does_not_find_do_not_count() -> None:
    """A treebank whose words all have one tag teaches none, and the network finds none."""
    alike = [replace(own, xpos=("X",) * len(own)) for own in TREES]
    model = model_of("lstm", alike, quantised=False)
    assert "xpos" not in model.gives
    tags = [own.columns for own in model.predict(alike, Options(), SERIAL)]
    train = [replace(own, upos=each["upos"], feats=each["feats"]) for own, each in zip(alike, tags, strict=True)]
    ruled = with_lemma_rules(model, train, None)
    verbs = [(own.forms[2], found[2]) for own, found in zip(train, lemmas(ruled, train), strict=True)]
    assert all(lemma == form[:-1] for form, lemma in verbs)  # "sees"


def test_only_lemmas_change() -> None:
    ruled = with_lemma_rules(MODEL, retagged(TREES), None)
    for plain, found in zip(*(model.predict(TREES, Options(), SERIAL) for model in (MODEL, ruled)), strict=True):
        assert found.heads.tolist() == plain.heads.tolist()
        assert {**plain.columns, "lemmas": ()} == {**found.columns, "lemmas": ()}


def test_development_sentences_decide() -> None:
    train = retagged(TREES)
    assert right_lemmas(with_lemma_rules(MODEL, train, train), train) > right_lemmas(MODEL, train)
    as_edited = [replace(own, lemmas=own_lemmas) for own, own_lemmas in zip(train, lemmas(MODEL, train), strict=True)]
    assert with_lemma_rules(MODEL, train, as_edited) is MODEL
    without = [replace(own, lemmas=("_",) * len(own)) for own in train]
    assert with_lemma_rules(MODEL, without, None) is MODEL


def test_the_rules_are_saved() -> None:
    ruled = with_lemma_rules(MODEL, retagged(TREES), None)
    again = NeuralModel.from_archive(ruled.to_archive())
    assert again.lemmatiser == ruled.lemmatiser
    assert lemmas(again, TREES) == lemmas(ruled, TREES)
