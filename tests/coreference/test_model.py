"""The model of latent trees: what it chooses, how it is saved, and files that hold none."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.archive import Archive, load_archive, save_archive
from headway.arrays import Ints
from headway.coreference import Document
from headway.coreference.antecedents import Sieves
from headway.coreference.coding import MentionCoder
from headway.coreference.mention_finder import MentionFinder, SpanFeatures
from headway.coreference.model import CoreferenceModel
from headway.coreference.pair_features import PairFeatures, parse_pair_templates, stretch
from headway.coreference.resolver import Resolver
from headway.errors import ArchiveError, TreebankError
from headway.models.protocol import Options
from headway.parallel import SERIAL, Threads
from headway.treebank import Sentence

from .naive_pairs import naive_antecedents
from .toy_documents import document, random_document, sentence


@cache
def model() -> CoreferenceModel:
    """Under random weights that single precision holds."""
    coder = MentionCoder.learn([random_document(seed) for seed in range(20)])
    features = PairFeatures.compile(parse_pair_templates("p.head m.first | - m\na.lemma p.path | - am"), [7, 9, 8, 6])
    weights = np.random.default_rng(1).normal(size=features.size).astype(np.float32).astype(np.float64)
    return CoreferenceModel(coder, Sieves(3, 1), features, weights, {"seed": 1, "from": "nowhere"})


def heads(text: Document, under: CoreferenceModel | None = None) -> Ints:
    (found,) = (under or model()).predict([text], Options(), SERIAL)
    return found


@given(st.integers(0, 2**32 - 1))
def test_heads_are_each_mentions_best_candidates(seed: int) -> None:
    text = random_document(seed)
    coded = model().coder.code(text)
    scores = model().features.score(model().weights, stretch(coded, model().sieves.antecedents(coded))).tolist()
    expected = [-1]
    for row in naive_antecedents(text, 3, 1):
        own, scores = scores[: len(row)], scores[len(row) :]
        expected.append(max(zip(own, row, strict=True))[1])
    assert heads(text).tolist() == expected
    assert heads(text.with_clusters(np.zeros(len(text.mentions), np.int64))).tolist() == expected


def test_documents_without_mentions() -> None:
    assert heads(document([sentence("a X 0 x")], [])).tolist() == [-1]
    assert heads(document([], [])).tolist() == [-1]


def test_a_sentence_without_a_tree() -> None:
    with pytest.raises(TreebankError, match="has no heads"):
        heads(document([Sentence.from_words(["a"], upos=["NOUN"])], [(0, (1,))]))


def test_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "toy.headway"
    save_archive(model().to_archive(), path)
    found = CoreferenceModel.from_archive(load_archive(path, CoreferenceModel.kind))
    assert (found.coder, found.sieves, found.about) == (model().coder, model().sieves, model().about)
    assert (found.features.templates, found.features.bits) == (model().features.templates, model().features.bits)
    np.testing.assert_array_equal(found.weights, model().weights)
    for seed in range(30, 40):
        np.testing.assert_array_equal(heads(random_document(seed), found), heads(random_document(seed)))


def put(data: Any, *path: Any) -> None:
    """The last of the path in the place that the others name."""
    *keys, last, value = path
    for key in keys:
        data = data[key]
    data[last] = value


KEYS = ("values", "sieves", "templates", "bits", "about")
DAMAGE: dict[str, Callable[[dict[str, Any]], Any]] = {
    **{f"no {key}": lambda data, key=key: data.pop(key) for key in KEYS},  # type: ignore[misc]
    **{f"{key} a number": lambda data, key=key: put(data, key, 3) for key in KEYS},  # type: ignore[misc]
    **{f"{key} nothing": lambda data, key=key: put(data, key, None) for key in KEYS},  # type: ignore[misc]
    "an attribute missing": lambda data: data["values"].pop("kind"),
    "an attribute more": lambda data: put(data, "values", "colour", []),
    "values of one a number": lambda data: put(data, "values", "kind", 3),
    "values of lists": lambda data: put(data, "values", "kind", [["a"]]),
    "a list of values": lambda data: put(data, "values", list(data["values"])),
    "an unknown atom": lambda data: put(data, "templates", 0, "p.colour"),
    "a template too few": lambda data: data["templates"].pop(),
    "a template too many": lambda data: data["templates"].append("p.head"),
    "bits too few": lambda data: data["bits"].pop(),
    "other bits": lambda data: put(data, "bits", 0, 8),
    "no bits": lambda data: put(data, "bits", 0, 0),
    "negative bits": lambda data: put(data, "bits", 0, -1),
    "many bits": lambda data: put(data, "bits", 0, 60),
    "bits a word": lambda data: put(data, "bits", 0, "x"),
    "bits without end": lambda data: put(data, "bits", 0, float("inf")),
    "bits no number": lambda data: put(data, "bits", 0, float("nan")),
    "a sieve missing": lambda data: data["sieves"].pop("mentions"),
    "a sieve a word": lambda data: put(data, "sieves", "mentions", "x"),
    "a negative sieve": lambda data: put(data, "sieves", "sentences", -1),
    "a sieve without end": lambda data: put(data, "sieves", "mentions", float("inf")),
    "a sieve too large": lambda data: put(data, "sieves", "mentions", 10**30),
}


@pytest.mark.parametrize("name", list(DAMAGE))
def test_damaged_models(tmp_path: Path, name: str) -> None:
    archive = model().to_archive()
    data = json.loads(json.dumps(archive.data))
    DAMAGE[name](data)
    path = tmp_path / "damaged"
    save_archive(Archive(CoreferenceModel.kind, data, archive.arrays), path)
    with pytest.raises(ArchiveError) as caught:
        Resolver.load(path)
    assert str(caught.value).startswith(f"{path}: a damaged model, or not a model (")
    assert str(caught.value).endswith("; save it again")
    assert "\n" not in str(caught.value)


def test_weights_no_model_has(tmp_path: Path) -> None:
    archive, path = model().to_archive(), tmp_path / "damaged"
    weights = archive.arrays["weights"]
    nan, infinite = weights.copy(), weights.copy()
    nan[3], infinite[5] = np.nan, np.inf
    for arrays in ({}, *({"weights": each} for each in (nan, infinite, weights[1:], weights[None], np.zeros(0)))):
        save_archive(Archive(CoreferenceModel.kind, archive.data, arrays), path)
        with pytest.raises(ArchiveError, match="a damaged model"):
            Resolver.load(path)


def test_files_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "other"
    with pytest.raises(ArchiveError, match="no such file; give the path of a saved model"):
        Resolver.load(path)
    save_archive(Archive("model", {}, {}), path)
    with pytest.raises(ArchiveError, match="holds a 'model', which is no kind of model known here"):
        Resolver.load(path)
    save_archive(Archive("arc", {}, {}), path)
    with pytest.raises(ArchiveError, match=r"other: a model for parsing, not for coreference; give another file"):
        Resolver.load(path)
    save_archive(model().to_archive(), path)
    whole = path.read_bytes()
    for cut in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(ArchiveError):
            Resolver.load(path)


def test_documents_are_predicted_in_their_order_by_any_executor() -> None:
    texts = [random_document(seed) for seed in range(12)]
    alone = [heads(text).tolist() for text in texts]
    for executor in (SERIAL, Threads(3)):
        assert [found.tolist() for found in model().predict(texts, Options(), executor)] == alone
    assert model().predict([], Options(), Threads(2)) == []


def test_what_the_registry_asks() -> None:
    assert (model().kind, model().task, model().requires) == ("coreference", "coreference", {"trees"})


def test_the_description() -> None:
    found = model().describe()
    assert found.rows[0] == ("model", "coreference")
    assert ("weights", str(model().weights.size)) in found.rows
    assert ("antecedents", "distance in mentions 3, of pronouns in sentences 1; further if they match") in found.rows
    (table,) = found.tables
    assert table.rows[0] == ("pairs: 4 templates", "weights")
    assert table.rows[1:-1] == tuple(
        (" ".join(template), str(1 << bits))
        for template, bits in zip(model().features.templates, model().features.bits, strict=True)
    )
    assert table.rows[-1] == ("all", str(model().weights.size))
    assert parse_pair_templates("\n".join(found.templates["pairs"])) == model().features.templates
    assert found.data["sieves"] == {"mentions": 3, "sentences": 1}
    assert found.data["about"] == model().about
    assert found.data["weights"] == sum(block["weights"] for block in found.data["templates"]["pairs"])
    assert json.loads(json.dumps(found.data)) == found.data


@pytest.mark.parametrize("name", list(DAMAGE))
def test_damage_is_an_error_of_lookup_or_value(name: str) -> None:
    archive = model().to_archive()
    data = json.loads(json.dumps(archive.data))
    DAMAGE[name](data)
    with pytest.raises((KeyError, TypeError, ValueError)):
        CoreferenceModel.from_archive(Archive(CoreferenceModel.kind, data, archive.arrays))


# A model that has learnt to find mentions


@cache
def finding() -> CoreferenceModel:
    features = SpanFeatures.compile([("h.upos", "h.label"), ("s.rule",)], [6, 2])
    weights = np.random.default_rng(2).normal(size=features.size).astype(np.float32).astype(np.float64)
    return replace(model(), finder=MentionFinder(features, weights, -0.25))


def test_the_finder_is_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "toy.headway"
    save_archive(finding().to_archive(), path)
    found = CoreferenceModel.from_archive(load_archive(path, CoreferenceModel.kind)).finder
    expected = finding().finder
    assert found is not None
    assert expected is not None
    assert (found.features.templates, found.features.bits) == (expected.features.templates, expected.features.bits)
    assert found.threshold == expected.threshold
    for seed in range(30, 40):
        sentences = random_document(seed).sentences
        assert found.find(sentences) == expected.find(sentences)


def test_the_description_of_a_finder() -> None:
    found = finding().describe()
    assert ("mentions", "given, or found by a learnt model") in found.rows
    assert ("mentions", "given, or found by rules") in model().describe().rows
    pairs, spans = found.tables
    assert pairs == model().describe().tables[0]
    assert spans.rows == (("spans: 2 templates", "weights"), ("h.upos h.label", "64"), ("s.rule", "4"), ("all", "68"))
    assert found.data["weights"] == model().features.size + 68


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data["finder"].pop("bits"),
        lambda data: put(data, "finder", None),
        lambda data: put(data, "finder", "templates", 0, "p.head"),
        lambda data: put(data, "finder", "bits", 0, 7),
        lambda data: put(data, "finder", "threshold", float("nan")),
        lambda data: put(data, "finder", "threshold", "0"),
    ],
)
def test_a_damaged_finder(damage: Callable[[dict[str, Any]], Any]) -> None:
    archive = finding().to_archive()
    data = json.loads(json.dumps(archive.data))
    damage(data)
    with pytest.raises((KeyError, TypeError, ValueError)):
        CoreferenceModel.from_archive(Archive(CoreferenceModel.kind, data, archive.arrays))


def test_weights_no_finder_has() -> None:
    archive = finding().to_archive()
    for weights in (None, np.zeros(3, np.float32), np.full(68, np.inf, np.float32)):
        arrays = {name: array for name, array in archive.arrays.items() if name != "finder_weights"}
        arrays |= {} if weights is None else {"finder_weights": weights}
        with pytest.raises((KeyError, ValueError)):
            CoreferenceModel.from_archive(Archive(CoreferenceModel.kind, archive.data, arrays))
