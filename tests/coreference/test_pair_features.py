"""Features of arcs between mentions: keys by Python's integers, scores one weight after the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.coreference import Document
from headway.coreference.antecedents import Antecedents, Sieves, right_arcs
from headway.coreference.attributes import ATTRIBUTES
from headway.coreference.coding import CodedDocument, MentionCoder
from headway.coreference.keyed_rows import Template
from headway.coreference.pair_features import PairFeatures, pair_templates, parse_pair_templates, stretch
from headway.coreference.pairs import PAIR_ATOMS
from headway.errors import TemplateError

from .toy_documents import document, random_document, sentence

Floats = NDArray[np.float64]
SEEDS = st.integers(0, 2**32 - 1)
SIEVES = Sieves(3, 1)
FEW = parse_pair_templates("p.head p.sentences | - m am\na.label m.first | - m\np.path | -")


@cache
def coder() -> MentionCoder:
    return MentionCoder.learn([random_document(seed) for seed in range(30)])


def coded_arcs(text: Document) -> tuple[CodedDocument, Antecedents]:
    coded = coder().code(text)
    return coded, SIEVES.antecedents(coded)


class Naive:
    """The features as the module's text has them, in Python's integers."""

    def __init__(self, templates: Sequence[Template], bits: Sequence[int]) -> None:
        self.templates, self.bits = templates, bits
        self.begin = [sum(1 << b for b in bits[:t]) for t in range(len(bits))]
        self.multipliers = []
        for template in templates:
            text = " ".join((*template, "p.root"))
            digests = {atom: blake2b(f"{text} {atom}".encode(), digest_size=8) for atom in (*template, "p.root")}
            self.multipliers.append({a: int.from_bytes(d.digest(), "little") | 1 for a, d in digests.items()})

    def keys(self, coded: CodedDocument, arcs: Antecedents, k: int) -> list[int]:
        a, m = int(arcs.antecedent[k]), int(arcs.mention[k])
        values = {f"p.{name}": int(arcs.atoms[k, i]) for i, name in enumerate(PAIR_ATOMS)}
        for i, name in enumerate(ATTRIBUTES):
            values[f"a.{name}"], values[f"m.{name}"] = int(coded.codes[a, i]), int(coded.codes[m, i])
        return [sum(x * (values[atom] + 1) for atom, x in each.items()) % 2**64 for each in self.multipliers]

    def places(self, coded: CodedDocument, arcs: Antecedents, k: int) -> list[int]:
        """Where the weights of an arc are."""
        keys = self.keys(coded, arcs, k)
        return [at + key // 2 ** (64 - b) for at, key, b in zip(self.begin, keys, self.bits, strict=True)]


def both(templates: Sequence[Template], seed: int) -> tuple[PairFeatures, Naive, Floats]:
    """Features with blocks of random sizes, their twin, and weights."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(1, 12, len(templates)).tolist()
    features = PairFeatures.compile(templates, bits)
    assert features.size == sum(2**b for b in bits)
    return features, Naive(templates, bits), rng.normal(size=features.size)


@given(SEEDS)
def test_keys_and_scores_against_plain_python(seed: int) -> None:
    coded, arcs = coded_arcs(random_document(seed))
    features, naive, weights = both(FEW, seed)
    every = np.arange(len(arcs.antecedent))
    assert features.keys(stretch(coded, arcs), every).tolist() == [naive.keys(coded, arcs, k) for k in every.tolist()]
    scores = features.score(weights, stretch(coded, arcs))
    expected = [sum(weights[place] for place in naive.places(coded, arcs, k)) for k in every.tolist()]
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("types", [False, True])
def test_the_whole_table_against_plain_python(types: bool) -> None:
    features, naive, weights = both(pair_templates(types=types), 5)
    for seed in range(4):
        coded, arcs = coded_arcs(random_document(seed))
        scores = features.score(weights, stretch(coded, arcs))
        places = [naive.places(coded, arcs, k) for k in range(len(scores))]
        np.testing.assert_allclose(scores, [sum(weights[each]) for each in places], rtol=1e-12, atol=1e-12)
        single = features.score(weights.astype(np.float32), stretch(coded, arcs))
        np.testing.assert_allclose(single, scores, rtol=1e-5, atol=1e-5)


@given(SEEDS)
def test_adding_is_the_adjoint_of_scoring(seed: int) -> None:
    """<w, add(amounts)> is the sum of amounts x scores; and what is added is what was there."""
    coded, arcs = coded_arcs(random_document(seed))
    features, naive, weights = both(FEW, seed)
    rng = np.random.default_rng(seed)
    amounts = np.where(rng.random(len(arcs.antecedent)) < 0.5, 0.0, rng.normal(size=len(arcs.antecedent)))
    added = np.zeros(features.size)
    features.add(added, stretch(coded, arcs), amounts)
    assert weights @ added == pytest.approx(amounts @ features.score(weights, stretch(coded, arcs)), rel=1e-9, abs=1e-9)
    expected = np.zeros(features.size)
    for k, amount in enumerate(amounts):
        for place in naive.places(coded, arcs, k):
            expected[place] += amount
    np.testing.assert_allclose(added, expected, rtol=1e-12, atol=1e-12)
    again = weights.copy()
    features.add(again, stretch(coded, arcs), amounts)
    np.testing.assert_allclose(again, weights + expected, rtol=1e-12, atol=1e-12)


@given(SEEDS)
def test_stretches_score_like_the_whole(seed: int) -> None:
    coded, arcs = coded_arcs(random_document(seed))
    features, _, weights = both(FEW, seed)
    count = len(arcs.start) - 1
    whole = features.score(weights, stretch(coded, arcs))
    every = features.keys(stretch(coded, arcs), np.arange(len(whole)))
    np.testing.assert_array_equal(features.score(weights, stretch(coded, arcs, 1, count)), whole)
    for first in range(1, count + 1):
        for last in range(first, count + 1):
            part = stretch(coded, arcs, first, last)
            inside = slice(int(arcs.start[first - 1]), int(arcs.start[last]))
            np.testing.assert_array_equal(features.score(weights, part), whole[inside])
            np.testing.assert_array_equal(features.keys(part, np.arange(len(part.antecedent))), every[inside])
            mine, theirs = np.zeros(features.size), np.zeros(features.size)
            features.add(mine, part, whole[inside])
            features.add(
                theirs, stretch(coded, arcs), np.where((arcs.mention >= first) & (arcs.mention <= last), whole, 0)
            )
            np.testing.assert_array_equal(mine, theirs)


def test_the_root_is_known_to_every_template() -> None:
    """A mention of which nothing is known below the root, and below one of which nothing is known either."""
    text = document([sentence("a X 0 x"), sentence("b X 0 x")], [(0, (1,)), (1, (1,))])
    coded = MentionCoder.learn([]).code(text)
    arcs = SIEVES.antecedents(coded)
    features = PairFeatures.compile([("m.head",), ("m.lemma", "m.cite")], [1, 1])
    keys = features.keys(stretch(coded, arcs), np.arange(3))
    np.testing.assert_array_equal(keys[0], keys[1])  # both from the root, both unknown
    assert (keys[1] != keys[2]).all()


def test_keys_of_some_arcs() -> None:
    coded, arcs = coded_arcs(random_document(3))
    features, naive, _ = both(FEW, 3)
    which = np.array([len(arcs.antecedent) - 1, 0, 2, 2])
    found = features.keys(stretch(coded, arcs), which)
    assert found.tolist() == [naive.keys(coded, arcs, k) for k in which.tolist()]


# Tables


def test_ways_to_fire() -> None:
    assert parse_pair_templates("p.head | -") == (("p.head",),)
    assert parse_pair_templates("p.head | m") == (("p.head", "m.cite"),)
    assert parse_pair_templates("p.head | am") == (("p.head", "a.cite", "m.cite"),)
    assert parse_pair_templates("a.lemma p.head|- am") == (
        ("a.lemma", "p.head"),
        ("a.lemma", "p.head", "a.cite", "m.cite"),
    )


def test_comments_blank_lines_and_what_is_said_twice() -> None:
    table = "# about\n\n  p.head m.cite | -  # the same as the next\np.head | m am\nm.cite p.head p.head | - m\n"
    assert parse_pair_templates(table) == (("p.head", "m.cite"), ("p.head", "a.cite", "m.cite"))
    assert parse_pair_templates("# nothing\n") == ()


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("p.colour | -", "unknown atom 'p.colour'"),
        ("m.head head | -", "unknown atom 'head'"),
        ("h.head | -", "unknown atom 'h.head'"),
        ("p.head | x", "unknown way 'x'"),
        ("p.head | - a", "unknown way 'a'"),
        ("p.head", "not a template"),
        ("p.head |", "not a template"),
        ("| -", "not a template"),
    ],
)
def test_tables_that_make_no_sense(line: str, cause: str) -> None:
    with pytest.raises(TemplateError) as caught:
        parse_pair_templates(f"# table\np.head | -\n{line}\np.string | -", "mine.txt")
    assert str(caught.value).startswith(f"mine.txt, line 3: {cause}; write lines such as")


def test_types_are_used_where_they_are_asked_for() -> None:
    without, with_types = pair_templates(types=False), pair_templates(types=True)
    assert not any(atom in ("a.type", "m.type", "p.type") for template in without for atom in template)
    assert {("p.type",), ("a.type", "m.type")} <= set(with_types)
    assert [t for t in with_types if t in without] == list(without)
    assert {("p.head",), ("p.string", "m.cite")} <= set(without)
    assert len({frozenset(template) for template in with_types}) == len(with_types)


# Sizes


def test_blocks_are_sized_from_the_keys_seen() -> None:
    """Two places for each key, a power of two."""
    material = []
    for seed in range(8):
        text = random_document(seed)
        coded, arcs = coded_arcs(text)
        material.append((coded, arcs, np.flatnonzero(right_arcs(arcs, text.clusters))))
    features = PairFeatures.learn(FEW, ((stretch(coded, arcs), which) for coded, arcs, which in material))
    naive = Naive(FEW, [1] * len(FEW))
    assert features.templates == FEW
    for t, bits in enumerate(features.bits):
        keys = {naive.keys(coded, arcs, k)[t] for coded, arcs, which in material for k in which.tolist()}
        assert 2 ** (bits - 1) < 2 * len(keys) <= 2**bits
    assert len(set(features.bits)) > 1
    assert features.size == sum(2**bits for bits in features.bits)


def test_no_arcs_at_all() -> None:
    coded, arcs = coded_arcs(document([sentence("a X 0 x")], []))
    nothing = np.zeros(0, np.int64)
    for material in ([], [(stretch(coded, arcs), nothing)]):
        features = PairFeatures.learn(FEW, material)
        assert features.bits == (1,) * len(FEW)
        assert features.score(np.zeros(features.size), stretch(coded, arcs)).shape == (0,)


@pytest.mark.parametrize(
    ("templates", "bits", "cause"),
    [
        ([("p.head",)], [0], "a block has between"),
        ([("p.head",)], [23], "a block has between"),
        ([("p.head",)], [4, 4], "are damaged"),
        ([("p.head",), ("m.first",)], [4], "are damaged"),
        ([("p.head", "x.first")], [4], "are damaged"),
    ],
)
def test_what_no_model_has(templates: list[Template], bits: list[int], cause: str) -> None:
    with pytest.raises(TemplateError, match=cause):
        PairFeatures.compile(templates, bits)
