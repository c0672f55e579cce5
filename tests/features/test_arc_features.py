"""Compiled templates against features enumerated one by one, as text, in `naive`.

Weights and amounts are whole numbers, so that sums are exact in any order and `==` means equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.errors import TemplateError
from headway.features.arc_features import ArcFeatures, Block
from headway.features.blocks import Weights
from headway.features.coding import Coded, Coder
from headway.features.templates import Template, load_templates, parse_templates
from headway.parallel import executor_for
from headway.treebank import Sentence

from . import naive
from .strategies import FORMS, TAGS, clusters, sentences, templates

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """Templates with blocks of any size, and sentences with words the coder has not seen."""

    sentences: list[Sentence]
    coder: Coder
    features: ArcFeatures
    seed: int

    @property
    def coded(self) -> Coded:
        return self.coder.code(self.sentences)

    @property
    def all(self) -> Ints:
        return np.arange(len(self.sentences))

    def whole(self, *shape: int) -> Floats:
        return np.random.default_rng(self.seed).integers(-9, 10, shape).astype(float)

    def amounts(self, *more: int) -> Floats:
        """One an arc, a third of them zero; nothing where there is no arc."""
        width = max(map(len, self.sentences)) + 1
        amounts = self.whole(len(self.sentences), width, width, *more)
        amounts[np.random.default_rng(self.seed + 1).random(amounts.shape[:3]) < 1 / 3] = 0.0
        return amounts * expand(is_arc(self.sentences), amounts)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    text = draw(st.lists(sentences(), min_size=1, max_size=3))
    coder = Coder.learn([*draw(st.lists(sentences(), max_size=1)), *text[1:]], draw(clusters))
    table = draw(st.lists(templates(), min_size=1, max_size=5, unique=True))
    blocks = [Block(template, draw(st.integers(1, 7)), 0, 0) for template in table]
    return Case(text, coder, ArcFeatures.compile(blocks, coder), draw(st.integers(0, 999)))


def is_arc(text: Sequence[Sentence]) -> NDArray[np.bool_]:
    width = max(map(len, text)) + 1
    mask = np.zeros((len(text), width, width), np.bool_)
    for b, sentence in enumerate(text):
        for h, m in naive.arcs(sentence):
            mask[b, h, m] = True
    return mask


def expand(mask: NDArray[np.bool_], like: Floats) -> NDArray[np.bool_]:
    return mask.reshape(*mask.shape, *[1] * (like.ndim - 3))


def score(case: Case, weights: Floats, which: Ints | None = None, threads: int = 1) -> Floats:
    chosen = case.all if which is None else which
    width = int(case.coded.lengths[chosen].max()) + 1
    scores = np.zeros((len(chosen), width, width))
    case.features.score(weights, case.coded.some(chosen), scores, executor_for(threads))
    return scores


def add(case: Case, amounts: Floats, threads: int = 1) -> Floats:
    weights = np.zeros(case.features.size)
    case.features.add(weights, case.coded, amounts, executor_for(threads))
    return weights


@given(cases())
@settings(max_examples=60)
def test_scores(case: Case) -> None:
    weights = case.whole(case.features.size)
    expected = naive.score(case.features, case.sentences, case.coder, weights)
    mask = is_arc(case.sentences)
    np.testing.assert_array_equal(score(case, weights)[mask], expected[mask])


@given(cases())
def test_scores_are_added_to_what_is_there(case: Case) -> None:
    weights = case.whole(case.features.size)
    expected = score(case, weights) + 7.0
    scores = np.full_like(expected, 7.0)
    case.features.score(weights, case.coded, scores)
    np.testing.assert_array_equal(scores, expected)


@given(cases(), st.data())
def test_any_sentences_in_any_order(case: Case, data: st.DataObject) -> None:
    """A sentence's scores do not depend on its neighbours or on the padding."""
    which = np.array(data.draw(st.lists(st.sampled_from(case.all.tolist()), min_size=1, max_size=4)))
    weights = case.whole(case.features.size)
    together = score(case, weights, which)
    for b, i in enumerate(which.tolist()):
        n = len(case.sentences[i])
        np.testing.assert_array_equal(together[b, : n + 1, : n + 1], score(case, weights, np.array([i]))[0])


@given(cases())
@settings(max_examples=60)
def test_adding(case: Case) -> None:
    amounts = case.amounts()
    np.testing.assert_array_equal(add(case, amounts), naive.add(case.features, case.sentences, case.coder, amounts))


@given(cases())
def test_adding_is_the_adjoint_of_scoring(case: Case) -> None:
    weights, amounts = case.whole(case.features.size), case.amounts()
    assert np.vdot(amounts, score(case, weights)) == np.vdot(weights, add(case, amounts))


def rows_of(case: Case) -> tuple[Ints, Ints, Ints, Ints]:
    """A shuffled row for about half of the arcs, -1 for the others; and where they are."""
    rng = np.random.default_rng(case.seed)
    mask = is_arc(case.sentences)
    b, h, m = np.nonzero(mask & (rng.random(mask.shape) < 0.5))
    wanted = np.full(mask.shape, -1, np.int64)
    wanted[b, h, m] = rng.permutation(len(b))
    return wanted, b, h, m


@given(cases())
@settings(max_examples=60)
def test_scores_of_some_arcs(case: Case) -> None:
    wanted, b, h, m = rows_of(case)
    weights, scores = case.whole(case.features.size), np.full(len(b), 7.0)
    case.features.score_some(weights, case.coded, wanted, scores)
    expected = 7.0 + naive.score(case.features, case.sentences, case.coder, weights)
    np.testing.assert_array_equal(scores[wanted[b, h, m]], expected[b, h, m])


@given(cases())
@settings(max_examples=60)
def test_adding_some_arcs(case: Case) -> None:
    wanted, b, h, m = rows_of(case)
    amounts = np.where(wanted >= 0, case.amounts(), 0.0)
    rows, weights = np.zeros(len(b)), np.zeros(case.features.size)
    rows[wanted[b, h, m]] = amounts[b, h, m]
    case.features.add_some(weights, case.coded, wanted, rows)
    np.testing.assert_array_equal(weights, naive.add(case.features, case.sentences, case.coder, amounts))


@given(cases(), st.integers(1, 4))
def test_scores_of_labels(case: Case, labels: int) -> None:
    wanted, b, h, m = rows_of(case)
    weights, scores = case.whole(case.features.size), np.full((len(b), labels), 7.0)
    case.features.score_labels(weights, case.coded, wanted, scores)
    expected = 7.0 + naive.score_labels(case.features, case.sentences, case.coder, weights, labels)
    np.testing.assert_array_equal(scores[wanted[b, h, m]], expected[b, h, m])


@given(cases(), st.integers(1, 4))
def test_adding_labels(case: Case, labels: int) -> None:
    wanted, b, h, m = rows_of(case)
    amounts = case.amounts(labels)
    rows = np.zeros((len(b), labels))
    rows[wanted[b, h, m]] = amounts[b, h, m]
    weights = np.zeros(case.features.size)
    case.features.add_labels(weights, case.coded, wanted, rows)
    kept = np.where(expand(wanted >= 0, amounts), amounts, 0.0)
    np.testing.assert_array_equal(weights, naive.add_labels(case.features, case.sentences, case.coder, kept))


def long_case(n: int = 40, size: int = 9) -> Case:
    """Sentences long enough for every distance, for several pieces of work, and for buffers to fill up."""
    rng = np.random.default_rng(5)

    def sentence(length: int) -> Sentence:
        many = [f"f{i}" for i in range(6)]
        feats = ["|".join(rng.permutation(many)[: rng.integers(1, 7)]) for _ in range(length)]
        forms = [FORMS[i] for i in rng.integers(0, len(FORMS), length)]
        tags = [TAGS[i] for i in rng.integers(0, len(TAGS), length)]
        return Sentence.from_words(forms, xpos=tags, feats=feats)

    text = [sentence(int(length)) for length in (n, *rng.integers(1, 12, size - 1))]
    coder = Coder.learn(text)
    table = parse_templates(
        "h.form m.xpos | dist dir\nh.feat m.feat | dist\nb.form h.xpos | dir\nm.feat h-2.form\nb.xpos m+2.form | dist"
    )
    return Case(text, coder, ArcFeatures.compile([Block(t, 9, 0, 0) for t in table], coder), 6)


def test_long_sentences() -> None:
    case = long_case()
    weights, amounts = case.whole(case.features.size), case.amounts()
    expected = naive.score(case.features, case.sentences, case.coder, weights)
    mask = is_arc(case.sentences)
    np.testing.assert_array_equal(score(case, weights)[mask], expected[mask])
    np.testing.assert_array_equal(add(case, amounts), naive.add(case.features, case.sentences, case.coder, amounts))


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("precision", [np.float64, np.float32])
def test_some_arcs_of_long_sentences(share: float, precision: type) -> None:
    """Some arcs, all arcs, and rows where there is no arc (the diagonal, the padding), which are ignored."""
    case = long_case()
    rng = np.random.default_rng(8)
    mask = is_arc(case.sentences)
    wanted = np.where(rng.random(mask.shape) < share, np.arange(mask.size).reshape(mask.shape), -1)
    listed = mask & (wanted >= 0)
    weights: Weights = case.whole(case.features.size).astype(precision)
    amounts = case.whole(mask.size)
    scores = np.zeros(mask.size)
    case.features.score_some(weights, case.coded, wanted, scores)
    expected = np.where(listed, score(case, weights.astype(float)), 0.0)
    np.testing.assert_array_equal(scores.reshape(mask.shape), expected)
    case.features.add_some(weights, case.coded, wanted, amounts)
    expected = case.whole(case.features.size) + add(case, np.where(listed, amounts.reshape(mask.shape), 0.0))
    np.testing.assert_array_equal(weights, expected)


def test_negligible_amounts_are_not_added() -> None:
    case = long_case(8, 2)
    wanted = np.full((2, 9, 9), -1, np.int64)
    wanted[0, 0, 1], wanted[0, 0, 2], wanted[0, 3, 4] = 0, 1, 2
    one, all_three = np.zeros(case.features.size), np.zeros(case.features.size)
    case.features.add_some(all_three, case.coded, wanted, np.array([1e-16, 0.5, -1e-15]))
    case.features.add_some(one, case.coded, np.where(wanted == 1, 0, -1), np.array([0.5]))
    np.testing.assert_array_equal(all_three, one)
    assert one.any()


def test_no_arcs_at_all() -> None:
    case = long_case(8, 2)
    weights, wanted = np.zeros(case.features.size), np.full((2, 9, 9), -1, np.int64)
    case.features.score_some(weights, case.coded, wanted, np.zeros(0))
    case.features.add_some(weights, case.coded, wanted, np.zeros(0))
    assert not weights.any()


@pytest.mark.parametrize("threads", [2, 3, 64])
def test_threads_change_nothing(threads: int) -> None:
    """Also to the last bit of numbers that round: each weight is added to in the same order."""
    case = long_case()
    rng = np.random.default_rng(7)
    weights, amounts = rng.normal(size=case.features.size), rng.normal(size=case.amounts().shape)
    amounts[~is_arc(case.sentences)] = 0.0
    np.testing.assert_array_equal(score(case, weights, threads=threads), score(case, weights))
    np.testing.assert_array_equal(add(case, amounts, threads), add(case, amounts))


def test_blocks_do_not_overlap() -> None:
    """One template at a time touches its own stretch of the weights, and together they fill all of them."""
    case = long_case()
    whole, offset = add(case, np.abs(case.amounts())), 0
    for block in case.features.blocks:
        alone = ArcFeatures.compile([block], case.coder)
        assert alone.size == 1 << block.bits
        weights = np.zeros(alone.size)
        alone.add(weights, case.coded, np.abs(case.amounts()))
        assert weights.any()
        np.testing.assert_array_equal(whole[offset : offset + alone.size], weights)
        offset += alone.size
    assert offset == case.features.size


@given(cases(), templates())
def test_another_template_leaves_the_others_alone(case: Case, template: Template) -> None:
    amounts = case.amounts()
    more = ArcFeatures.compile([*case.features.blocks, Block(template, 3, 0, 0)], case.coder)
    weights = np.zeros(more.size)
    more.add(weights, case.coded, amounts)
    np.testing.assert_array_equal(weights[: case.features.size], add(case, amounts))


def padded_heads(text: Sequence[Sentence]) -> Ints:
    heads = np.full((len(text), max(map(len, text)) + 1), -1, np.int64)
    for row, sentence in zip(heads, text, strict=True):
        assert sentence.heads is not None
        row[: len(sentence) + 1] = sentence.heads
    return heads


@given(st.lists(sentences(), min_size=2, max_size=4), st.lists(templates(), min_size=1, max_size=4, unique=True))
@settings(max_examples=40)
@pytest.mark.parametrize("kinds", [0, 3])
def test_sizes_and_collisions_come_from_the_trees(kinds: int, text: list[Sentence], table: list[Template]) -> None:
    """With labels, from the labelled trees, and with room for wrong labels."""
    coder = Coder.learn(text)
    heads = padded_heads(text)
    labels = None if not kinds else np.where(heads < 0, -1, (7 * heads + np.arange(heads.shape[1])) % kinds)
    room = 4 if kinds else 2
    varied = {field for field, values in coder.fields.items() if len(values) > 1} | ({"feat"} if coder.feats else set())
    if not any({atom.field for atom in template.atoms} <= varied for template in table):
        with pytest.raises(TemplateError, match="no field of the templates varies"):
            ArcFeatures.learn(table, coder, coder.code(text), heads, labels)
        return
    learned = ArcFeatures.learn(table, coder, coder.code(text), heads, labels)
    total_keys = total_collisions = 0
    for block in learned.blocks:
        fired = [
            (naive.key(feature, coder) + label * naive.multiplier(block.template, "label")) % 2**64
            for b, sentence in enumerate(text)
            for m, h in enumerate(sentence.heads.tolist()[1:], start=1)  # type: ignore[union-attr]
            for label in [0 if labels is None else int(labels[b, m])]
            for feature in naive.features(block.template, sentence, coder, h, m)
        ]
        keys = set(fired)
        assert block.keys == len(keys)
        assert room * max(1, len(keys)) <= 1 << block.bits < 2 * room * max(1, len(keys))
        assert block.collisions == len(keys) - len({key >> (64 - block.bits) for key in keys})
        total_keys, total_collisions = total_keys + block.keys, total_collisions + block.collisions
    assert learned.size == sum(1 << block.bits for block in learned.blocks)
    assert learned.collisions == total_collisions / max(1, total_keys)


def learned_from(text: Sequence[Sentence], table: str) -> list[str]:
    coder = Coder.learn(text)
    learned = ArcFeatures.learn(parse_templates(table), coder, coder.code(text), padded_heads(text))
    return [str(block.template) for block in learned.blocks]


def test_templates_over_a_field_that_never_varies_are_left_out() -> None:
    text = [Sentence.from_words(["a", "b"], upos=["N", "N"], heads=[-1, 0, 1])]
    assert learned_from(text, "h.upos\nh.form m.upos\nh.form m.form\nb.upos\nm.feat\nm.feats") == ["h.form m.form | -"]


def test_templates_over_identical_fields_are_left_out() -> None:
    """Lower case forms are forms here, and fine tags are coarse tags renamed."""
    text = [Sentence.from_words(["a", "b", "a"], upos=["N", "V", "V"], xpos=["1", "2", "2"], heads=[-1, 0, 1, 1])]
    table = "h.form\nh.lower\nm.lower\nh.upos m.xpos | dir\nm.upos h.xpos | dir dist\nh+1.xpos\nh.upos"
    assert learned_from(text, table) == [
        "h.form | -",
        "m.lower | -",
        "h.upos m.xpos | dir",
        "m.upos h.xpos | dist",
        "h+1.xpos | -",
        "h.upos | -",
    ]


def test_fields_that_differ_anywhere_are_both_kept() -> None:
    text = [Sentence.from_words(["a", "A", "b"], heads=[-1, 0, 1, 1])]
    assert learned_from(text, "h.form\nh.lower") == ["h.form | -", "h.lower | -"]


@pytest.mark.parametrize("name", ["mcdonald2005", "mcdonald2006", "standard", "label", "joint"])
def test_the_packaged_tables(name: str) -> None:
    case = long_case(12, 4)
    table = load_templates(name)
    features = ArcFeatures.compile([Block(template, 6, 0, 0) for template in table], case.coder)
    case = Case(case.sentences, case.coder, features, 8)
    weights = case.whole(features.size)
    mask = is_arc(case.sentences)
    expected = naive.score(features, case.sentences, case.coder, weights)
    np.testing.assert_array_equal(score(case, weights)[mask], expected[mask])


@pytest.mark.parametrize("bits", [0, -1, 23, 64])
def test_blocks_out_of_bounds(bits: int) -> None:
    (template,) = parse_templates("h.form")
    with pytest.raises(TemplateError, match=r"between 2 and 2\^22"):
        ArcFeatures.compile([Block(template, bits, 0, 0)], Coder.learn([]))


@pytest.mark.parametrize("line", ["h.form s.form", "g-1.xpos", "m.form n.form", "c.form", "d.form h.form"])
def test_templates_of_larger_parts_are_refused(line: str) -> None:
    (template,) = parse_templates(line)
    with pytest.raises(TemplateError, match="a table of arcs has the nodes h, m and b only"):
        ArcFeatures.compile([Block(template, 3, 0, 0)], Coder.learn([]))
