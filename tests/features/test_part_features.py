"""Templates over larger parts against features enumerated one by one, as text, in `naive`.

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

from headway.errors import ShapeError, TemplateError
from headway.features.arc_features import ArcFeatures
from headway.features.blocks import Block
from headway.features.coding import Coded, Coder
from headway.features.part_features import PartFeatures, PartList
from headway.features.templates import Atom, Template, load_templates, parse_templates, roles
from headway.treebank import Sentence

from . import naive
from .strategies import clusters, part_templates, sentences

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROLES = ("hsm", "ghm", "ghsm", "hmgsncd", "m")


@dataclass(frozen=True)
class Case:
    """Templates with blocks of any size; sentences with words the coder has not seen, and parts of each."""

    sentences: list[Sentence]
    coder: Coder
    features: PartFeatures
    parts: list[list[naive.Part]]  # those of each sentence
    seed: int

    @property
    def coded(self) -> Coded:
        return self.coder.code(self.sentences)

    @property
    def all(self) -> Ints:
        return np.arange(len(self.sentences))

    @property
    def listed(self) -> PartList:
        return part_list(self.parts, self.features.roles)

    @property
    def flat(self) -> list[tuple[Sentence, naive.Part]]:
        return [(sentence, part) for b, sentence in enumerate(self.sentences) for part in self.parts[b]]

    def whole(self, *shape: int) -> Floats:
        return np.random.default_rng(self.seed).integers(-9, 10, shape).astype(float)

    def amounts(self, *more: int) -> Floats:
        """One a part, a third of them zero."""
        amounts = self.whole(len(self.flat), *more)
        amounts[np.random.default_rng(self.seed + 1).random(amounts.shape) < 1 / 3] = 0.0
        return amounts


def part_list(parts: Sequence[Sequence[naive.Part]], over: str) -> PartList:
    flat = [part for some in parts for part in some]
    nodes = [[-1 if (node := part.nodes[role]) is None else node for role in over] for part in flat]
    return PartList(
        np.cumsum([0, *map(len, parts)]),
        np.array(nodes, np.int32).reshape(len(flat), len(over)),
        np.array([(part.direction, part.distance) for part in flat], np.int32).reshape(len(flat), 2),
    )


@st.composite
def parts_of(draw: st.DrawFn, sentence: Sentence, over: str) -> list[naive.Part]:
    node = st.one_of(st.none(), st.integers(0, len(sentence)))
    part = st.builds(
        naive.Part, st.fixed_dictionaries(dict.fromkeys(over, node)), st.integers(0, 5), st.integers(0, 20)
    )
    return draw(st.lists(part, max_size=8))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    over = draw(st.sampled_from(ROLES))
    text = draw(st.lists(sentences(), min_size=1, max_size=3))
    coder = Coder.learn([*draw(st.lists(sentences(), max_size=1)), *text[1:]], draw(clusters))
    table = draw(st.lists(part_templates(over), min_size=1, max_size=5, unique=True))
    blocks = [Block(template, draw(st.integers(1, 7)), 0, 0) for template in table]
    parts = [draw(parts_of(sentence, over)) for sentence in text]
    return Case(text, coder, PartFeatures.compile(over, blocks, coder), parts, draw(st.integers(0, 999)))


def naive_scores(case: Case, weights: Floats, labels: int) -> Floats:
    scores = np.zeros((len(case.flat), labels))
    for p, (sentence, part) in enumerate(case.flat):
        for label in range(labels):
            for index in naive.part_indices(case.features, sentence, case.coder, part, label):
                scores[p, label] += weights[index]
    return scores


def naive_sum(case: Case, amounts: Floats) -> Floats:
    """What adding the amounts (P, L) leaves in weights that were zero."""
    weights = np.zeros(case.features.size)
    for (sentence, part), row in zip(case.flat, amounts.tolist(), strict=True):
        for label, amount in enumerate(row):
            for index in naive.part_indices(case.features, sentence, case.coder, part, label):
                weights[index] += amount
    return weights


def score(case: Case, weights: Floats) -> Floats:
    scores = np.zeros(len(case.flat))
    case.features.score(weights, case.coded, case.listed, scores)
    return scores


def add(case: Case, amounts: Floats) -> Floats:
    weights = np.zeros(case.features.size)
    case.features.add(weights, case.coded, case.listed, amounts)
    return weights


@given(cases())
@settings(max_examples=80)
def test_scores(case: Case) -> None:
    weights = case.whole(case.features.size)
    scores = np.full(len(case.flat), 7.0)
    case.features.score(weights, case.coded, case.listed, scores)
    np.testing.assert_array_equal(scores, 7.0 + naive_scores(case, weights, 1)[:, 0])


@given(cases())
@settings(max_examples=80)
def test_adding(case: Case) -> None:
    amounts = case.amounts()
    np.testing.assert_array_equal(add(case, amounts), naive_sum(case, amounts[:, None]))


@given(cases())
def test_adding_is_the_adjoint_of_scoring(case: Case) -> None:
    weights, amounts = case.whole(case.features.size), case.amounts()
    assert np.vdot(amounts, score(case, weights)) == np.vdot(weights, add(case, amounts))


@given(cases())
def test_scores_are_linear_in_what_was_added(case: Case) -> None:
    weights, amounts = case.whole(case.features.size), case.amounts()
    before = score(case, weights)
    case.features.add(weights, case.coded, case.listed, amounts)
    np.testing.assert_array_equal(score(case, weights), before + score(case, add(case, amounts)))


@given(cases(), st.integers(1, 4))
def test_scores_of_labels(case: Case, labels: int) -> None:
    weights, scores = case.whole(case.features.size), np.full((len(case.flat), labels), 7.0)
    case.features.score(weights, case.coded, case.listed, scores)
    np.testing.assert_array_equal(scores, 7.0 + naive_scores(case, weights, labels))


@given(cases(), st.integers(1, 4))
def test_adding_labels(case: Case, labels: int) -> None:
    amounts, weights = case.amounts(labels), np.zeros(case.features.size)
    case.features.add(weights, case.coded, case.listed, amounts)
    np.testing.assert_array_equal(weights, naive_sum(case, amounts))


@given(cases(), st.integers(1, 3))
@settings(max_examples=20)
def test_single_precision(case: Case, labels: int) -> None:
    """Whole numbers are exact in it too."""
    weights = case.whole(case.features.size).astype(np.float32)
    np.testing.assert_array_equal(score(case, weights), score(case, weights.astype(float)))  # type: ignore[arg-type]
    amounts = case.amounts(labels)
    scores = np.zeros_like(amounts)
    case.features.score(weights, case.coded, case.listed, scores)
    np.testing.assert_array_equal(scores, naive_scores(case, weights.astype(float), labels))
    case.features.add(weights, case.coded, case.listed, amounts[:, 0])
    case.features.add(weights, case.coded, case.listed, amounts)
    both = add(case, amounts[:, 0]) + naive_sum(case, amounts)
    np.testing.assert_array_equal(weights, case.whole(case.features.size) + both)


@given(cases(), st.data())
def test_any_sentences_in_any_order(case: Case, data: st.DataObject) -> None:
    which = data.draw(st.lists(st.sampled_from(case.all.tolist()), min_size=1, max_size=4))
    weights = case.whole(case.features.size)
    together = part_list([case.parts[i] for i in which], case.features.roles)
    scores = np.zeros(len(together.nodes))
    case.features.score(weights, case.coded.some(np.array(which)), together, scores)
    ends, alone = case.listed.start, score(case, weights)
    np.testing.assert_array_equal(scores, np.concatenate([alone[ends[i] : ends[i + 1]] for i in which]))


@given(cases(), st.data())
def test_another_template_leaves_the_others_alone(case: Case, data: st.DataObject) -> None:
    amounts = case.amounts()
    block = Block(data.draw(part_templates(case.features.roles)), 3, 0, 0)
    more = PartFeatures.compile(case.features.roles, [*case.features.blocks, block], case.coder)
    weights = np.zeros(more.size)
    more.add(weights, case.coded, case.listed, amounts)
    np.testing.assert_array_equal(weights[: case.features.size], add(case, amounts))


@given(cases(), st.sampled_from([0, 3]))
def test_sizes_and_collisions_come_from_the_parts(case: Case, kinds: int) -> None:
    """With labels, from the labelled parts, and with room for wrong labels."""
    coder, coded = Coder.learn(case.sentences), Coder.learn(case.sentences).code(case.sentences)
    table = [block.template for block in case.features.blocks]
    labels = np.arange(len(case.flat)) % kinds if kinds else None
    given_labels = [0] * len(case.flat) if labels is None else labels.tolist()
    varied = {field for field, values in coder.fields.items() if len(values) > 1}
    if not any({atom.field for atom in template.atoms} <= varied for template in table):
        with pytest.raises(TemplateError, match="no field of the templates varies"):
            PartFeatures.learn(case.features.roles, table, coder, coded, case.listed, labels)
        return
    learned = PartFeatures.learn(case.features.roles, table, coder, coded, case.listed, labels)
    room = 4 if kinds else 2
    for block in learned.blocks:
        keys = {
            (naive.part_key(block.template, sentence, coder, part) + label * naive.multiplier(block.template, "label"))
            % 2**64
            for (sentence, part), label in zip(case.flat, given_labels, strict=True)
        }
        assert block.keys == len(keys)
        assert room * max(1, len(keys)) <= 1 << block.bits < 2 * room * max(1, len(keys))
        assert block.collisions == len(keys) - len({key >> (64 - block.bits) for key in keys})
    assert learned.size == sum(1 << block.bits for block in learned.blocks)
    collisions, keys_in_all = (sum(getattr(b, name) for b in learned.blocks) for name in ("collisions", "keys"))
    assert learned.collisions == collisions / max(1, keys_in_all)


def test_templates_that_say_nothing_new_are_left_out() -> None:
    text = [Sentence.from_words(["a", "b", "a"], upos=["N", "V", "V"], xpos=["1", "2", "2"])]
    coder = Coder.learn(text)
    table = parse_templates(
        "h.xpos s.upos\ns.upos h.upos\nh.feats s.form\ng.upos h.xpos | dir dist\ng.xpos h.xpos | dist"
    )
    parts = PartList(np.array([0, 1]), np.array([[0, 2, 1]], np.int32), np.zeros((1, 2), np.int32))
    learned = PartFeatures.learn("ghs", table, coder, coder.code(text), parts)
    assert [str(block.template) for block in learned.blocks] == [
        "h.xpos s.upos | -",
        "g.upos h.xpos | dir",
        "g.upos h.xpos | dist",
    ]


def small_case() -> Case:
    text = [Sentence.from_words(["a", "b", "a"], upos=["N", "V", "V"]), Sentence.from_words(["b"])]
    coder = Coder.learn(text)
    blocks = [Block(template, 5, 0, 0) for template in parse_templates("h.form s.upos m-1.form | - dir dist")]
    parts = [[naive.Part({"h": 0, "s": None, "m": 3}, 1, 2)], [naive.Part({"h": 1, "s": 1, "m": None}, 0, 1)]]
    return Case(text, coder, PartFeatures.compile("hsm", blocks, coder), parts, 1)


def test_arcs_are_parts() -> None:
    """A template over h and m has the same keys, and so the same weights, for a part as for an arc."""
    case = small_case()
    (template,) = parse_templates("h.form m-1.form m.upos | dir")
    arcs = ArcFeatures.compile([Block(template, 9, 0, 0)], case.coder)
    parts = PartFeatures.compile("mh", [Block(template, 9, 0, 0)], case.coder)
    weights, grid = case.whole(512), np.zeros((1, 4, 4))
    arcs.score(weights, case.coded.some(np.array([0])), grid)
    pairs = list(naive.arcs(case.sentences[0]))
    nodes = np.array([(m, h) for h, m in pairs], np.int32)
    ways = np.array([(2 + (m < h), 0) for h, m in pairs], np.int32)
    scores = np.zeros(len(pairs))
    parts.score(weights, case.coded.some(np.array([0])), PartList(np.array([0, len(pairs)]), nodes, ways), scores)
    assert scores.tolist() == [grid[0, h, m] for h, m in pairs]


def test_negligible_amounts_are_not_added() -> None:
    case = small_case()
    assert not add(case, np.array([1e-15, -1e-16])).any()
    weights = np.zeros(case.features.size)
    case.features.add(weights, case.coded, case.listed, np.array([[1e-15, 0.0], [1e-16, 0.5]]))
    np.testing.assert_array_equal(weights, naive_sum(case, np.array([[0.0, 0.0], [0.0, 0.5]])))


@pytest.mark.parametrize("which", [[], [0, 1]])
def test_no_parts(which: list[int]) -> None:
    case = small_case()
    parts = part_list([[] for _ in which], "hsm")
    weights = np.zeros(case.features.size)
    chosen = np.array(which, np.int64)
    case.features.score(weights, case.coded.some(chosen), parts, np.zeros(0))
    case.features.add(weights, case.coded.some(chosen), parts, np.zeros(0))
    case.features.score(weights, case.coded.some(chosen), parts, np.zeros((0, 2)))
    case.features.add(weights, case.coded.some(chosen), parts, np.zeros((0, 2)))
    assert not weights.any()


def test_no_templates() -> None:
    case = small_case()
    nothing = PartFeatures.compile("hsm", [], case.coder)
    assert (nothing.size, nothing.collisions) == (0, 0.0)
    scores = np.ones(2)
    nothing.score(np.zeros(0), case.coded, case.listed, scores)
    assert scores.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("over", "template", "cause"),
    [
        ("hsm", "g.form h.form", "g.form h.form | -: not a template over h, s, m, without feat"),
        ("hm", "b.form", "not a template over h, m, without feat"),
        ("hm", "h.form m.feat", "not a template over h, m, without feat"),
        ("hbm", "h.form", "hbm: roles are some of h, m, s, g, n, c, d, each once"),
        ("hmm", "h.form", "each once"),
    ],
)
def test_what_cannot_be_compiled(over: str, template: str, cause: str) -> None:
    with pytest.raises(TemplateError) as caught:
        PartFeatures.compile(over, [Block(parse_templates(template)[0], 3, 0, 0)], Coder.learn([]))
    assert cause in str(caught.value)


def test_feat_is_refused_however_the_template_was_made() -> None:
    with pytest.raises(TemplateError, match="without feat"):
        PartFeatures.compile("hs", [Block(Template((Atom("s", 0, "feat"),), "-"), 3, 0, 0)], Coder.learn([]))


@pytest.mark.parametrize("bits", [0, -1, 23, 64])
def test_blocks_out_of_bounds(bits: int) -> None:
    with pytest.raises(TemplateError, match=r"between 2 and 2\^22"):
        PartFeatures.compile("hs", [Block(parse_templates("s.form")[0], bits, 0, 0)], Coder.learn([]))


def test_lists_that_do_not_fit() -> None:
    case = small_case()
    start, nodes, ways = case.listed
    wrong = [
        (PartList(start, nodes[:, :2], ways), 2, r"parts over hsm need nodes \(P, 3\) and ways \(P, 2\)"),
        (PartList(start, nodes, ways[:1]), 2, r"ways \(P, 2\)"),
        (PartList(start[1:], nodes, ways), 2, "the parts of 2 sentences must start at 0"),
        (PartList(start + 1, nodes, ways), 2, "the parts of 2 sentences must start at 0"),
        (PartList(start - np.array([0, 0, 1]), nodes, ways), 2, "end with the list"),
        (PartList(start, nodes, ways), 3, "3 values for 2 parts"),
        (PartList(start, nodes + np.int32(1), ways), 2, "a node outside the longest sentence"),
        (PartList(start, nodes - np.int32(1), ways), 2, "a node outside the longest sentence"),
    ]
    weights = np.zeros(case.features.size)
    for parts, size, cause in wrong:
        with pytest.raises(ShapeError, match=cause):
            case.features.score(weights, case.coded, parts, np.zeros(size))
        with pytest.raises(ShapeError, match=cause):
            case.features.add(weights, case.coded, parts, np.zeros(size))
        with pytest.raises(ShapeError, match=cause):
            case.features.score(weights, case.coded, parts, np.zeros((size, 2)))
        with pytest.raises(ShapeError, match=cause):
            case.features.add(weights, case.coded, parts, np.zeros((size, 2)))


@pytest.mark.parametrize(("name", "over"), [("sibling", "hsm"), ("grandsibling", "ghsm"), ("tree_label", "hmgsncd")])
def test_the_packaged_tables(name: str, over: str) -> None:
    """On long sentences with many parts each."""
    rng = np.random.default_rng(5)
    text = []
    for n in (30, 3, 12):
        words = [f"w{i}" for i in rng.integers(0, 9, n)]
        tags = [f"t{i}" for i in rng.integers(0, 4, n)]
        text.append(Sentence.from_words(words, lemmas=words[::-1], upos=tags, xpos=tags[::-1]))
    coder = Coder.learn(text)
    parts = []
    for sentence in text:
        rows = rng.integers(-1, len(sentence) + 1, (50, len(over))).tolist()
        parts.append(
            [
                naive.Part({role: None if node < 0 else node for role, node in zip(over, row, strict=True)}, *way)
                for row, way in zip(rows, rng.integers(0, 20, (50, 2)).tolist(), strict=True)
            ]
        )
    table = load_templates(name)
    assert frozenset.union(*map(roles, table)) == set(over)
    case = Case(text, coder, PartFeatures.compile(over, [Block(t, 6, 0, 0) for t in table], coder), parts, 8)
    weights, amounts = case.whole(case.features.size), case.amounts()
    np.testing.assert_array_equal(score(case, weights), naive_scores(case, weights, 1)[:, 0])
    np.testing.assert_array_equal(add(case, amounts), naive_sum(case, amounts[:, None]))
