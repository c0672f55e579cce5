"""Lexical grammars: every probability against the naive twin, sums to one, states, and what a file may do to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.archive import Archive, load_archive, save_archive
from headway.errors import TrainingError, TreebankError
from headway.features.coding import fine_tags
from headway.inference.operator_automata import ModifierFactor, OperatorGrammar
from headway.inference.operator_grammar import tree_weight
from headway.models.lexical_grammar import BACK_OFF, RARE, Configuration, LexicalGrammar
from headway.treebank import Sentence, read_treebank

from .lexical_oracle import LEFT, RIGHT, ROOT, STOP, NaiveGrammar, state_after

TINY = Path(__file__).parents[2] / "examples" / "tiny.conllu"
CONFIGURATIONS: tuple[Configuration, ...] = ("LEX", "LEX+F", "LEX+FCP")
STATES = {"LEX": 1, "LEX+F": 2, "LEX+FCP": 4}

FORMS = ("a", "b", "A", ",", "&", "--", "rare")
TAGS = ("N", "V", "CC", ",", "_")
UPOS = ("_", "X", "CCONJ", "PUNCT")


@dataclass(frozen=True)
class Case:
    """A treebank, sentences to weigh, and a grammar learnt both ways."""

    grammar: LexicalGrammar
    naive: NaiveGrammar
    train: list[Sentence]
    text: list[Sentence]


def tags_of(sentences: Sequence[Sentence]) -> list[tuple[str, ...]]:
    """The tests keep the tags as XPOS, whatever they are."""
    return [sentence.xpos for sentence in sentences]


def learnt(
    configuration: Configuration,
    train: list[Sentence],
    text: Sequence[Sentence] = (),
    rare: int = RARE,
    back_off: float = BACK_OFF,
) -> Case:
    tags = tags_of(train)
    grammar = LexicalGrammar.learn(configuration, train, tags, rare=rare, back_off=back_off)
    return Case(grammar, NaiveGrammar(configuration, train, tags, rare, back_off), train, list(text))


@st.composite
def sentences(draw: st.DrawFn, forms: tuple[str, ...] = FORMS, tags: tuple[str, ...] = TAGS) -> Sentence:
    """Any words under any tree, crossing arcs and several roots too."""
    n = draw(st.integers(0, 7))
    order = draw(st.permutations(range(1, n + 1)))
    heads = [-1] * (n + 1)
    for place, word in enumerate(order):
        heads[word] = draw(st.sampled_from([0, *order[:place]]))
    columns = [draw(st.lists(st.sampled_from(values), min_size=n, max_size=n)) for values in (forms, UPOS, tags)]
    return Sentence.from_words(columns[0], upos=columns[1], xpos=columns[2], heads=heads)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    train = draw(st.lists(sentences(), min_size=1, max_size=8).filter(lambda found: any(map(len, found))))
    text = draw(st.lists(sentences((*FORMS, "new"), (*TAGS, "NEW")), max_size=2))
    numbers = draw(st.integers(1, 4)), draw(st.sampled_from([0.1, 1.0, 5.0, 12.5]))
    return learnt(draw(st.sampled_from(CONFIGURATIONS)), train, text, *numbers)


def assert_as_naive(naive: NaiveGrammar, sentence: Sentence, factor: ModifierFactor) -> None:
    """Every number of a sentence's factor."""
    n, states = len(sentence), STATES[naive.configuration]
    assert factor.log_weights.shape == (n + 1, n + 1, states)
    assert factor.log_stops.shape == (n + 1, 2, states)
    expected_weights = np.full_like(factor.log_weights, -np.inf)
    expected_stops = np.zeros_like(factor.log_stops)
    nodes = [ROOT, *map(naive.node, sentence.forms, sentence.xpos)]
    for h, head in enumerate(nodes):
        for state in range(states):
            for direction in (LEFT, RIGHT) if h else (RIGHT,):
                expected_stops[h, direction, state] = math.log(naive.p_tag(STOP, head, direction, state))
            for m in range(1, n + 1):
                word, tag = nodes[m]
                direction = RIGHT if h < m else LEFT
                if h != m:
                    p = naive.p_tag(tag, head, direction, state) * naive.p_word(word, tag, head, direction, state)
                    expected_weights[h, m, state] = math.log(p)
    np.testing.assert_allclose(factor.log_weights, expected_weights, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(factor.log_stops, expected_stops, rtol=1e-12, atol=1e-13)
    columns = zip(sentence.xpos, sentence.upos, sentence.forms, strict=True)
    assert factor.follows.tolist() == [0, *(state_after(naive.configuration, *word) for word in columns)]


@given(cases())
def test_as_the_formulas_say(case: Case) -> None:
    """Seen and unseen words, tags and contexts."""
    everything = case.train + case.text
    factors = case.grammar.factors(everything, tags_of(everything))
    assert len(factors) == len(everything)
    for sentence, factor in zip(everything, factors, strict=True):
        assert_as_naive(case.naive, sentence, factor)


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("rare", [1, RARE, 6])
def test_as_the_formulas_say_on_real_sentences(configuration: Configuration, rare: int) -> None:
    every = [s.with_tree(s.heads) for s in read_treebank(TINY) if s.heads is not None]
    tags = [fine_tags(sentence) for sentence in every]
    tagged = [
        Sentence.from_words(s.forms, upos=s.upos, xpos=its_tags, heads=s.heads)
        for s, its_tags in zip(every, tags, strict=True)
    ]
    case = learnt(configuration, tagged[:30], rare=rare)  # the others have new words
    for sentence, factor in zip(tagged, case.grammar.factors(tagged, tags), strict=True):
        assert_as_naive(case.naive, sentence, factor)


@settings(max_examples=30)
@given(cases(), st.data())
def test_outcomes_sum_to_one(case: Case, data: st.DataObject) -> None:
    """A head before, and one after, every word with every tag: tags and STOP sum to 1, and the words of a tag to it."""
    naive = case.naive
    words, tags = sorted(naive.words), sorted(naive.tags)  # UNKNOWN is a word, and a tag, that was not seen
    outcomes = [(word, tag) for tag in tags for word in words]
    head_word, head_tag = data.draw(st.sampled_from(outcomes))
    forms, xpos = zip((head_word, head_tag), *outcomes, (head_word, head_tag), strict=True)
    [factor] = case.grammar.factors([Sentence.from_words(forms)], [xpos])
    last = len(forms)
    with_tag = np.array([xpos[1:-1]]) == np.array(tags)[:, None]
    heads = (
        (1, RIGHT, slice(2, last), naive.node(head_word, head_tag)),
        (last, LEFT, slice(2, last), naive.node(head_word, head_tag)),
        (0, RIGHT, slice(2, last), ROOT),
    )
    for h, direction, modifiers, head in heads:
        for state in range(STATES[naive.configuration]):
            p = np.exp(factor.log_weights[h, modifiers, state])
            assert p.sum() + math.exp(factor.log_stops[h, direction, state]) == pytest.approx(1, abs=1e-12)
            tag_sums = with_tag @ p
            expected = [naive.p_tag(tag, head, direction, state) for tag in tags]
            np.testing.assert_allclose(tag_sums, expected, rtol=1e-12)


@given(cases())
def test_a_tree_is_as_probable_as_its_outcomes(case: Case) -> None:
    """Through the operator grammar of one state that weighs everything one: the factor's states are walked there."""
    ones = OperatorGrammar(np.ones((2, 2, 1)), np.ones((2, 2, 1)), np.ones((2, 2, 2, 1, 1)))
    naive = case.naive
    for sentence, factor in zip(case.train, case.grammar.factors(case.train, tags_of(case.train)), strict=True):
        if not len(sentence) or sentence.heads is None:
            continue  # an empty tree generates nothing there, not even the root's STOP
        expected = 0.0
        for head, direction, state, (tag, word) in naive.outcomes(sentence, sentence.xpos):
            expected += math.log(naive.p_tag(tag, head, direction, state))
            expected += math.log(naive.p_word(word, tag, head, direction, state)) if tag != STOP else 0.0
        symbols = np.array([0] + [1] * len(sentence))
        found, sign = tree_weight(ones, symbols, sentence.heads, factor)
        assert sign == 1
        assert found == pytest.approx(expected, rel=1e-12)


def test_by_hand() -> None:
    """ "dog" under "barks" once, nothing under it once; all of it with pencil and paper."""
    train = [
        Sentence.from_words(["dog", "barks"], xpos=["N", "V"], heads=[-1, 2, 0]),
        Sentence.from_words(["barks"], xpos=["V"], heads=[-1, 0]),
    ]
    [factor] = LexicalGrammar.learn("LEX", train, tags_of(train), rare=1).factors(train[:1], [("N", "V")])
    # All outcomes: N, V, V, STOP three times to the left (two of V) and five to the right (two of the root); 8 STOPs.
    last_n, last_stop = (1 + 1) / (11 + 4), (8 + 1) / (11 + 4)  # N, V, the unknown tag and STOP
    # Contexts of "barks" to the left, with its word and without: N once, STOP twice.
    middle_n = 3 / (3 + 5 * 2) * (1 / 3) + 10 / 13 * last_n
    p_a = 3 / 13 * (1 / 3) + 10 / 13 * middle_n
    last_dog = (1 + 1 / 3) / (1 + 1)  # dog, barks and UNKNOWN
    middle_dog = 1 / (1 + 5) * 1 + 5 / 6 * last_dog
    p_b = 1 / 6 * 1 + 5 / 6 * middle_dog
    assert factor.log_weights[2, 1, 0] == pytest.approx(math.log(p_a * p_b), rel=1e-13)
    # To the right it had STOP twice, and nothing else.
    middle_stop = 2 / (2 + 5) * 1 + 5 / 7 * last_stop
    assert factor.log_stops[2, RIGHT, 0] == pytest.approx(math.log(2 / 7 + 5 / 7 * middle_stop), rel=1e-13)


@pytest.mark.parametrize(
    ("tag", "upos", "form", "state"),
    [
        ("CC", "_", "and", 1),
        ("CC", "PUNCT", "&", 1),
        ("KON", "CCONJ", "und", 1),
        ("CCONJ", "_", "und", 1),
        (",", "_", ",", 2),
        (":", "_", "...", 2),
        ("-LRB-", "_", "-LRB-", 2),
        ("''", "_", "''", 2),
        ("NFP", "SYM", "*~*", 2),
        ("HYPH", "X", "x", 2),
        ("I?", "PUNCT", "etc", 2),
        ("IK", "_", "«", 2),
        ("$", "SYM", "$", 3),
        ("#", "_", "#", 2),  # by its form
        ("SCONJ", "SCONJ", "that", 3),
        ("POS", "PART", "'s", 3),
        ("NN", "NOUN", "co-op", 3),
        ("_", "_", "word", 3),
    ],
)
def test_states_after_a_word(tag: str, upos: str, form: str, state: int) -> None:
    sentence = Sentence.from_words([form, "x"], upos=[upos, "_"], xpos=[tag, "N"], heads=[-1, 2, 0])
    for configuration, expected in {"LEX": 0, "LEX+F": 1, "LEX+FCP": state}.items():
        grammar = LexicalGrammar.learn(configuration, [sentence], [sentence.xpos])  # type: ignore[arg-type]
        [factor] = grammar.factors([sentence], [sentence.xpos])
        assert factor.follows[1] == expected


def test_what_follows_a_comma_is_learnt() -> None:
    """After a comma an adjective always follows, after a conjunction a noun; the first modifier is never an adverb."""
    rows = [
        (["n", ",", "j"], ["N", ",", "J"], [-1, 0, 1, 1]),
        (["n", "and", "n"], ["N", "CC", "N"], [-1, 0, 1, 1]),
        (["n", "j", "r"], ["N", "J", "R"], [-1, 0, 1, 1]),
    ] * 4
    train = [Sentence.from_words(forms, xpos=tags, heads=heads) for forms, tags, heads in rows]
    grammar = LexicalGrammar.learn("LEX+FCP", train, tags_of(train), rare=1)
    [factor] = grammar.factors([Sentence.from_words(["n", "j", "n", "r"])], [["N", "J", "N", "R"]])
    adjective, noun, adverb = factor.log_weights[1, 2:]
    assert adjective.argmax() == 2
    assert noun.argmax() == 1
    assert adverb.argmax() == 3


def test_words_seen_less_often_than_rare_times_are_one() -> None:
    train = [Sentence.from_words(["x", "y", "z"], xpos=["N"] * 3, heads=[-1, 2, 0, 2])]
    train += [Sentence.from_words(["x", "x", "y"], xpos=["N"] * 3, heads=[-1, 2, 0, 2])]
    grammar = LexicalGrammar.learn("LEX", train, tags_of(train), rare=2)
    assert set(grammar.words) == {"x", "y"}
    [factor] = grammar.factors([Sentence.from_words(["x", "z", "new", "y"])], [["N"] * 4])
    weights = factor.log_weights[1, 2:, 0]
    assert weights[0] == weights[1] != weights[2]


def test_sentences_without_words() -> None:
    train = [Sentence.from_words([], heads=[-1]), Sentence.from_words(["x"], xpos=["N"], heads=[-1, 0])]
    case = learnt("LEX+FCP", train, rare=1)
    assert_as_naive(case.naive, train[0], case.grammar.factors(train[:1], [()])[0])
    assert case.grammar.factors([], []) == []


def test_what_cannot_be_learnt() -> None:
    good = Sentence.from_words(["x"], xpos=["N"], heads=[-1, 0])
    with pytest.raises(TrainingError, match="choose LEX, LEX"):
        LexicalGrammar.learn("LEX+G", [good], [["N"]])  # type: ignore[arg-type]
    for numbers in ({"rare": 0}, {"back_off": 0.0}, {"back_off": math.inf}, {"back_off": math.nan}):
        with pytest.raises(TrainingError, match="rare is"):
            LexicalGrammar.learn("LEX", [good], [["N"]], **numbers)
    for nothing in ([], [Sentence.from_words([], heads=[-1])]):
        with pytest.raises(TrainingError, match="no words"):
            LexicalGrammar.learn("LEX", nothing, [()] * len(nothing))
    with pytest.raises(TreebankError, match="no heads"):
        LexicalGrammar.learn("LEX", [Sentence.from_words(["x"])], [["N"]])
    with pytest.raises(TreebankError, match="cycle"):
        LexicalGrammar.learn("LEX", [Sentence.from_words(["x", "y"], heads=[-1, 2, 1])], [["N", "N"]])
    with pytest.raises(TreebankError, match="2 tags for 1 words"):
        LexicalGrammar.learn("LEX", [good], [["N", "N"]])
    with pytest.raises(TreebankError, match="tags for 2 sentences, but 1"):
        LexicalGrammar.learn("LEX", [good], [["N"], ["N"]])
    with pytest.raises(TreebankError, match="0 tags for 1 words"):
        LexicalGrammar.learn("LEX", [good], [["N"]]).factors([good], [[]])


def test_contexts_must_fit_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """One word and UNKNOWN, one tag and the unknown one, the root: (2 + 1) (2 + 1) 2 contexts."""
    sentence = Sentence.from_words(["x"], heads=[-1, 0])
    monkeypatch.setattr("headway.models.lexical_grammar._LARGEST", 18)
    LexicalGrammar.learn("LEX", [sentence], [["N"]], rare=1)
    monkeypatch.setattr("headway.models.lexical_grammar._LARGEST", 17)
    with pytest.raises(TrainingError, match="64 bits"):
        LexicalGrammar.learn("LEX", [sentence], [["N"]], rare=1)


def toy() -> Case:
    train = [
        Sentence.from_words(["a", "b", ",", "c"], xpos=["N", "V", ",", "N"], heads=[-1, 2, 0, 2, 2]),
        Sentence.from_words(["a", "c"], xpos=["N", "V"], heads=[-1, 2, 0]),
    ]
    return learnt("LEX+FCP", train, rare=2)


@settings(max_examples=30)
@given(cases())
def test_saved_and_loaded(case: Case) -> None:
    data, arrays = case.grammar.to_arrays()
    again = LexicalGrammar.from_arrays(data, arrays)
    assert (again.configuration, again.back_off) == (case.grammar.configuration, case.grammar.back_off)
    assert (again.tags, again.words) == (case.grammar.tags, case.grammar.words)
    for found, expected in zip(again.levels, case.grammar.levels, strict=True):
        for name, column in expected._asdict().items():
            np.testing.assert_array_equal(getattr(found, name), column, err_msg=name)


def test_saved_in_a_file(tmp_path: Path) -> None:
    case = toy()
    save_archive(Archive("test", *case.grammar.to_arrays()), tmp_path / "grammar")
    archive = load_archive(tmp_path / "grammar", "test")
    again = LexicalGrammar.from_arrays(archive.data, archive.arrays)
    for one, other in zip(
        case.grammar.factors(case.train, tags_of(case.train)),
        again.factors(case.train, tags_of(case.train)),
        strict=True,
    ):
        np.testing.assert_array_equal(one.log_weights, other.log_weights)
        np.testing.assert_array_equal(one.log_stops, other.log_stops)


@pytest.mark.parametrize(
    "damage",
    [
        {"configuration": "LEX+G"},
        {"configuration": ["LEX"]},
        {"configuration": "LEX"},  # its contexts are too many
        {"back_off": 0.0},
        {"back_off": math.nan},
        {"back_off": "5"},
        {"tags": ["N"]},
        {"tags": ["N", "V", "N"]},
        {"tags": ["N", "V", ",", "N"]},
        {"tags": "NV,"},
        {"words": []},
        {"words": [1, 2]},
        {"words": None},
    ],
)
def test_damaged_data(damage: dict[str, Any]) -> None:
    data, arrays = toy().grammar.to_arrays()
    with pytest.raises(ValueError, match="its lexical grammar"):
        LexicalGrammar.from_arrays(data | damage, arrays)


def changed(array: NDArray[Any], place: int, value: int) -> NDArray[Any]:
    copy = array.copy()
    copy[place] = value
    return copy


@pytest.mark.parametrize("name", ["contexts", "tags", "words", "counts"])
def test_damaged_arrays(name: str) -> None:
    data, arrays = toy().grammar.to_arrays()
    column = arrays[name]
    for bad in (
        column[:-1],
        column[:0],
        column[None],
        column.astype(float),
        column > 0,
        changed(column, 0, -1),
        changed(column, -1, np.iinfo(np.int64).min),
        changed(column, 0, np.iinfo(np.int64).max),
    ):
        with pytest.raises(ValueError, match="its lexical grammar"):
            LexicalGrammar.from_arrays(data, arrays | {name: bad})
    with pytest.raises(KeyError):
        LexicalGrammar.from_arrays(data, {other: arrays[other] for other in arrays if other != name})
    with pytest.raises(ValueError, match="no counts"):
        LexicalGrammar.from_arrays(data, {other: arrays[other][:0] for other in arrays})


def test_the_smallest_damage() -> None:
    """Three tags and the unknown one, two words and UNKNOWN: 4 and 3 are the largest numbers they have."""
    grammar = toy().grammar
    data, arrays = grammar.to_arrays()
    assert (list(grammar.tags), list(grammar.words)) == (["N", "V", ","], ["a", "c"])
    a_word = int(np.flatnonzero(arrays["tags"])[0])
    a_stop = int(np.flatnonzero(arrays["tags"] == 0)[0])
    contexts = (3 + 1) * (4 + 1) * 2 * 4
    largest = {"contexts": (contexts - 1, contexts), "tags": (4, 5), "words": (3, 4)}
    for name, (fits, too_large) in largest.items():
        LexicalGrammar.from_arrays(data, arrays | {name: changed(arrays[name], a_word, fits)})
        with pytest.raises(ValueError, match="no name for"):
            LexicalGrammar.from_arrays(data, arrays | {name: changed(arrays[name], a_word, too_large)})
    for name, place, value in (("tags", a_word, 0), ("words", a_word, 0), ("tags", a_stop, 1), ("words", a_stop, 1)):
        with pytest.raises(ValueError, match="without"):
            LexicalGrammar.from_arrays(data, arrays | {name: changed(arrays[name], place, value)})
    with pytest.raises(ValueError, match="not positive"):
        LexicalGrammar.from_arrays(data, arrays | {"counts": changed(arrays["counts"], 0, 0)})


@given(st.sampled_from(["contexts", "tags", "words", "counts"]), st.integers(0, 10), st.integers(-3, 200))
def test_any_number_is_refused_or_harmless(name: str, place: int, value: int) -> None:
    """Compiled code indexes the levels: what is not refused still gives probabilities."""
    case = toy()
    data, arrays = case.grammar.to_arrays()
    try:
        grammar = LexicalGrammar.from_arrays(data, arrays | {name: changed(arrays[name], place, value)})
    except ValueError:
        return
    for factor in grammar.factors(case.train, tags_of(case.train)):
        arcs = ~np.eye(len(factor.follows), dtype=bool)
        arcs[:, 0] = False
        assert (factor.log_weights[arcs] < 0).all()
        assert np.isfinite(factor.log_weights[arcs]).all()
        assert (factor.log_stops[1:] < 0).all()
        assert np.isfinite(factor.log_stops).all()


def test_files_of_any_order_are_the_same_grammar() -> None:
    case = toy()
    data, arrays = case.grammar.to_arrays()
    order = np.random.default_rng(0).permutation(len(arrays["counts"]))
    again = LexicalGrammar.from_arrays(data, {name: array[order] for name, array in arrays.items()})
    for found, expected in zip(again.levels, case.grammar.levels, strict=True):
        for column, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(column, other)
