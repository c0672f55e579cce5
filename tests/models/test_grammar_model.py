"""Grammars as parsers: their predictions against an enumeration of all trees, what is saved, what damage does to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.archive import Archive, save_archive
from headway.arrays import TreeClass
from headway.errors import ArchiveError, NoTreeError, TrainingError
from headway.inference.brute_force import all_trees
from headway.inference.operator_automata import LEFT, RIGHT, OperatorGrammar
from headway.inference.operator_grammar import FLOOR
from headway.models.grammar_model import MOST_TAGS, GrammarDistribution, GrammarModel, TagSymbols
from headway.models.protocol import Prediction
from headway.pipeline import Parser
from headway.text.saved import with_text_members
from headway.training.grammar_settings import MOST_STATES
from headway.treebank import Sentence, is_projective

from .lexical_oracle import ROOT, STOP, NaiveGrammar, state_after
from .model_parts import assert_same_predictions, label_names_of, predict
from .toy_treebank import LABELS, sentences

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

METHODS: dict[str, dict[str, Any]] = {
    "spectral": {"states": 3},
    "the paper's": {"method": "spectral", "states": 2, "context": 1, "ridge": 0.0, "backed_off": 0.01},
    "em": {"method": "em", "states": 2, "iterations": 3},
    "DET": {"method": "det", "states": 1},
    "DET+F": {"method": "det", "states": 2},
}
LEXICAL = (None, "LEX", "LEX+F", "LEX+FCP")
TRAINED_ON = tuple(sentences(30, 1))


def noise(count: int) -> tuple[Sentence, ...]:
    """Tags and trees at random: the statistics of few such sentences are far from those of any automaton."""
    rng = np.random.default_rng(2)
    text = []
    for length in rng.integers(2, 6, count).tolist():
        tags, trees = rng.choice(list("DNVS"), length).tolist(), all_trees(length, projective=True, single_root=True)
        text.append(Sentence.from_words(tags, upos=tags, xpos=tags, heads=trees[rng.integers(len(trees))]))
    return tuple(text)


def training_text(method: str) -> tuple[Sentence, ...]:
    return noise(40) if method == "the paper's" else TRAINED_ON


@cache
def induced(method: str = "spectral", lexical: str | None = None, *, labels: str = "none") -> GrammarModel:
    settings = {"method": method, **METHODS[method]}
    model = Parser.induce(training_text(method), lexical=lexical, labels=labels, **settings).model
    assert isinstance(model, GrammarModel)
    return model


def tagged(tags: str, forms: str = "") -> Sentence:
    """A sentence of one-letter tags; the forms are those tags unless given."""
    return Sentence.from_words(forms.split() or list(tags), upos=list(tags), xpos=list(tags))


NEW = [
    tagged("DNVS", "the stone1 moves ."),
    tagged("VNDS", "moves stone a ,"),
    tagged("QNVN", "what stone2 sees slowly"),  # a tag and words never seen
    tagged("SSSS", ". . . ."),
    tagged("QXQX"),
    tagged("NVAA", "stone1 turns often slowly"),
    tagged("JJNV", "big small stone7 moves"),
]
FOUR_WORDS = [*NEW, *(sentence for sentence in noise(40) if len(sentence) == 4)]


def naive_sequence(automata: OperatorGrammar, head: int, side: int, modifiers: list[int]) -> float:
    vector = automata.initial[head, side]
    for modifier in modifiers:
        vector = automata.operators[head, side, modifier] @ vector
    return float(automata.final[head, side] @ vector)


def naive_weight(model: GrammarModel, sentence: Sentence, heads: Ints, lexical: NaiveGrammar | None) -> float:
    """A tree as its heads' sequences, each from one of the two automata; words by the formulas of their counts."""
    grammar, n = model.grammar, len(sentence)
    numbers = {tag: i + 2 for i, tag in enumerate(grammar.symbols.names)}
    symbols = [0, *(numbers.get(tag, 1) for tag in sentence.xpos)]
    weight = 1.0
    for h, side in product(range(n + 1), (LEFT, RIGHT)):
        if (h, side) == (0, LEFT):
            continue
        outwards = range(h - 1, 0, -1) if side == LEFT else range(h + 1, n + 1)
        modifiers = [m for m in outwards if heads[m] == h]
        chosen = [symbols[m] for m in modifiers]
        sequence = naive_sequence(grammar.operators, symbols[h], side, chosen)
        if grammar.deterministic is not None:
            backed_off = naive_sequence(grammar.deterministic, symbols[h], side, chosen)
            sequence = (1 - grammar.backed_off) * sequence + grammar.backed_off * backed_off
        weight *= sequence
        if lexical is not None:
            weight *= naive_words(lexical, sentence, h, side, modifiers)
    return weight


def naive_words(lexical: NaiveGrammar, sentence: Sentence, h: int, side: int, modifiers: list[int]) -> float:
    head = lexical.node(sentence.forms[h - 1], sentence.xpos[h - 1]) if h else ROOT
    state, probability = 0, 1.0
    for m in modifiers:
        form, tag = sentence.forms[m - 1], sentence.xpos[m - 1]
        word, known_tag = lexical.node(form, tag)
        probability *= lexical.p_tag(known_tag, head, side, state)
        probability *= lexical.p_word(word, known_tag, head, side, state)
        state = state_after(lexical.configuration, tag, sentence.upos[m - 1], form)
    return probability * lexical.p_tag(STOP, head, side, state)


def naive_marginals(trees: Ints, weights: list[float]) -> Floats:
    n = trees.shape[1] - 1
    mu = np.zeros((n + 1, n + 1))
    for heads, weight in zip(trees, weights, strict=True):
        for m in range(1, n + 1):
            mu[heads[m], m] += weight / math.fsum(weights)
    return mu


def log_sum(mu: Floats, heads: Ints) -> float:
    return sum(math.log(max(mu[heads[m], m], 1e-12)) for m in range(1, len(heads)))


def own(found: Prediction) -> GrammarDistribution:
    assert isinstance(found.distribution, GrammarDistribution)
    return found.distribution


def tree_probability(found: Prediction) -> float:
    return float(np.exp(own(found).log_prob(found.heads)))


# What is predicted


def assert_of_all_trees(model: GrammarModel, lexical: NaiveGrammar | None = None) -> list[float]:
    """Predictions for sentences of four words; the tree's share of the weight of all trees, for each of them."""
    trees, shares = all_trees(4, projective=True, single_root=model.single_root), []
    for sentence, found in zip(FOUR_WORDS, predict(model, FOUR_WORDS), strict=True):
        weights = [naive_weight(model, sentence, heads, lexical) for heads in trees]
        mu = naive_marginals(trees, weights)
        positive = np.maximum(mu, 0.0)
        probabilities = positive[:, 1:] / positive[:, 1:].sum(axis=0)
        np.testing.assert_allclose(own(found).marginals[:, 1:], probabilities, atol=1e-9)
        np.testing.assert_array_equal(own(found).marginals[:, 0], 0.0)
        best = max(log_sum(mu, heads) for heads in trees)
        assert abs(log_sum(mu, found.heads) - best) < 1e-6
        [place] = [i for i, heads in enumerate(trees) if np.array_equal(heads, found.heads)]
        shares.append(weights[place] / math.fsum(weights))
        assert abs(tree_probability(found) - min(max(shares[-1], 0.0), 1.0)) < 1e-9
        for heads, weight in zip(trees, weights, strict=True):
            share = min(max(weight / math.fsum(weights), 0.0), 1.0)
            assert abs(math.exp(own(found).log_prob(heads)) - share) < 1e-9
        negative, tiny = found.floored
        arcs = ~np.eye(5, dtype=bool)[:, 1:]
        assert (mu[:, 1:] < -1e-9).sum() <= negative <= (mu[:, 1:][arcs] < 1e-9).sum()
        below = (mu[:, 1:][arcs] < FLOOR).sum()
        assert abs(negative + tiny - below) <= (np.abs(mu[:, 1:][arcs] - FLOOR) < 1e-9).sum()
    return shares


@pytest.mark.parametrize("lexical", LEXICAL)
@pytest.mark.parametrize("method", METHODS)
def test_predictions_are_those_of_all_trees(method: str, lexical: str | None) -> None:
    naive = None
    if lexical is not None:
        seen = training_text(method)
        naive = NaiveGrammar(lexical, seen, [sentence.xpos for sentence in seen], rare=2, back_off=5.0)
    negative = 0
    for single_root in (True, False):
        model = replace(induced(method, lexical), single_root=single_root)
        assert_of_all_trees(model, naive)
        negative += sum(found.floored[0] for found in predict(model, FOUR_WORDS))
    assert (negative > 0) == (method == "the paper's")


def test_predictions_of_a_broken_grammar() -> None:
    """Operators of both signs: a tree may have a negative share, or more than all there is."""
    grammar, shares = induced().grammar, []
    learnt = grammar.operators
    shapes = (learnt.initial.shape, learnt.final.shape, learnt.operators.shape)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        broken = replace(grammar, operators=OperatorGrammar(*(rng.normal(size=shape) for shape in shapes)))
        shares += assert_of_all_trees(replace(induced(), grammar=broken, single_root=seed % 2 == 0))
    assert min(shares) < 0
    assert max(shares) > 1


@pytest.mark.parametrize("method", METHODS)
def test_what_it_finds_are_probabilities(method: str) -> None:
    text = [*sentences(15, 3), *NEW]
    for sentence, found in zip(text, predict(induced(method), text), strict=True):
        mu = own(found).marginals
        assert mu.min() >= 0.0
        assert mu.max() <= 1.0
        np.testing.assert_allclose(mu[:, 1:].sum(axis=0), 1.0, atol=1e-12)
        assert np.diag(mu).sum() == mu[:, 0].sum() == 0.0
        assert own(found).log_prob(found.heads) <= 0.0
        assert own(found).argmax() is found.heads
        assert is_projective(found.heads)
        assert (found.heads == 0).sum() == 1
        assert len(found.heads) == len(sentence) + 1


@pytest.mark.parametrize("method", [method for method in METHODS if method != "the paper's"])
def test_it_learns_the_toy_language(method: str) -> None:
    gold = sentences(20, 4)
    found = predict(induced(method), gold)
    right = sum(
        int((a.heads[1:] == b.heads[1:]).sum()) for a, b in zip(found, gold, strict=True) if b.heads is not None
    )
    assert right / sum(map(len, gold)) > (0.8 if method == "DET" else 0.95)


@pytest.mark.parametrize("lexical", [None, "LEX+FCP"])
def test_sentences_of_one_word_and_of_none(lexical: str | None) -> None:
    model = induced("spectral", lexical, labels="after")
    text = [Sentence.from_words([]), tagged("N"), tagged("Q"), *sentences(2, 5), Sentence.from_words([])]
    empty, one, other, *_, last = predict(model, text)
    for found in (empty, last):
        assert (found.heads.tolist(), found.labels, found.floored) == ([-1], (None,), (0, 0))
        assert tree_probability(found) == 1.0
        assert own(found).marginals.tolist() == [[0.0]]
    for found in (one, other):
        assert found.heads.tolist() == [-1, 0]
        assert found.labels is not None
        assert found.labels[1] in LABELS
        np.testing.assert_allclose(own(found).marginals, [[0.0, 1.0], [0.0, 0.0]])
        assert tree_probability(found) == pytest.approx(1.0, abs=1e-12)
    assert predict(model, []) == []


def test_a_sentence_is_parsed_the_same_in_any_company() -> None:
    model = induced("spectral", "LEX+F", labels="after")
    text = [*sentences(12, 6, two_roots=True), *NEW]
    together = predict(model, text)
    for i in np.random.default_rng(0).permutation(len(text)).tolist():
        assert_same_predictions(predict(model, [text[i]]), [together[i]])
    assert_same_predictions(predict(model, text, threads=3), together)


def test_without_back_off_a_tag_never_seen_has_no_tree() -> None:
    settings = {**METHODS["spectral"], "backed_off": 0.0, "labels": "none"}
    model = Parser.induce(TRAINED_ON, **settings).model
    assert isinstance(model, GrammarModel)
    assert model.grammar.deterministic is None
    with pytest.raises(NoTreeError, match="sentence 1: "):
        predict(model, [NEW[0], NEW[2]])
    assert predict(model, [NEW[0]])[0].heads.tolist() == [-1, 2, 3, 0, 3]


def test_projective_trees_only() -> None:
    model = induced()
    assert model.trees == TreeClass(projective=True)
    assert model.with_trees(TreeClass(projective=True)) is model
    assert Parser(model).with_projective(True).model is model
    with pytest.raises(TrainingError, match="projective trees only; leave --non-projective out"):
        model.with_trees(TreeClass())
    with pytest.raises(TrainingError, match="projective trees only"):
        Parser(model).with_projective(False)


def test_heads_that_are_no_tree_of_the_class_have_no_probability() -> None:
    """Cycles, arcs that cross, two words on the root of a grammar with one."""
    for single_root, roots in ((True, -np.inf), (False, None)):
        [found] = predict(replace(induced(), single_root=single_root), [tagged("DNVS")])
        assert own(found).log_prob([-1, 2, 1, 0, 3]) == -np.inf
        assert own(found).log_prob([-1, 3, 4, 0, 3]) == -np.inf
        several = own(found).log_prob([-1, 0, 0, 0, 0])
        assert several == roots if single_root else several > -np.inf


def test_several_roots() -> None:
    text = sentences(30, 7, two_roots=True)
    with pytest.raises(TrainingError, match="--multi-root"):
        Parser.induce(text, states=2)
    parser = Parser.induce(text, states=3, labels="none", single_root=False)
    new = sentences(10, 8, two_roots=True)
    found = [int((parsed.heads == 0).sum()) for parsed in parser.parse(new)]
    assert found == [int((sentence.heads == 0).sum()) for sentence in new if sentence.heads is not None]
    assert set(found) == {1, 2}


def test_trees_that_are_not_projective_are_made_so() -> None:
    text = sentences(30, 9, crossing=True)
    assert not all(is_projective(sentence.heads) for sentence in text if sentence.heads is not None)
    parser = Parser.induce(text, states=3, labels="none")
    for sentence, parsed in zip(text, parser.parse(text), strict=True):
        assert is_projective(parsed.heads)
        assert sentence.heads is not None
        if not is_projective(sentence.heads):  # "indeed" hangs on the last noun: its nearest place without crossing
            verb = int(np.flatnonzero(sentence.heads == 0)[0])
            assert parsed.heads[1] == verb


# Labels


def test_labels_come_after_the_tree() -> None:
    model, gold = induced(labels="after"), sentences(20, 10)
    assert label_names_of(model) == tuple(
        sorted({label for s in TRAINED_ON for label in (s.labels or ())[1:] if label})
    )
    right = total = 0
    for sentence, found in zip(gold, predict(model, gold), strict=True):
        assert found.labels is not None
        assert found.labels[0] is None
        right += sum(a == b for a, b in zip(found.labels[1:], (sentence.labels or ())[1:], strict=True))
        total += len(sentence)
    assert right / total > 0.95
    bare = replace(model, labeller=None)
    assert [found.heads.tolist() for found in predict(bare, gold)] == [f.heads.tolist() for f in predict(model, gold)]


def relabelled(label: Callable[[str | None], str]) -> list[Sentence]:
    return [
        sentence.with_tree(sentence.heads, [None, *map(label, (sentence.labels or ())[1:])])
        for sentence in TRAINED_ON
        if sentence.heads is not None
    ]


def test_a_treebank_without_labels_has_no_labeller() -> None:
    assert label_names_of(induced()) == ()  # though it has labels: they were not asked for
    parser = Parser.induce(relabelled(lambda _: "_"), states=2)
    assert isinstance(parser.model, GrammarModel)
    assert parser.model.labeller is None
    assert label_names_of(parser.model) == ()
    [parsed] = parser.parse([NEW[0]])
    assert set(parsed.labels[1:]) <= {"_", None}


def test_words_without_a_label_among_others_stay_without() -> None:
    """They must not be taken for examples of some label."""
    parser = Parser.induce(relabelled(lambda label: "_" if label == "punct" else str(label)), states=2)
    parsed = list(parser.parse(sentences(10, 11)))
    stops = [
        label for each in parsed for label, tag in zip(each.labels[1:], each.sentence.xpos, strict=True) if tag == "S"
    ]
    assert len(stops) == 10
    assert set(stops) == {"_"}
    assert {label for each in parsed for label in each.labels[1:]} > {"_", "det", "subj"}


# Tags


def test_tags_are_symbols() -> None:
    words = Sentence.from_words(["a", "b", "c"], upos=["X", "Y", "X"], xpos=["N", "_", "A"])
    for column, names, tags in (("xpos", ("A", "N", "Y"), [0, 3, 4, 2]), ("upos", ("X", "Y"), [0, 2, 3, 2])):
        symbols = TagSymbols.learn([words], column)  # type: ignore[arg-type]
        assert (symbols.names, symbols.size) == (names, len(names) + 2)
        assert symbols.of(words).tolist() == tags
        assert symbols.of_words([words, Sentence.from_words([]), words]).tolist() == 2 * tags[1:]
        assert [symbols.name(i) for i in range(symbols.size)] == ["ROOT", "UNKNOWN", *names]
        assert [symbols.number(name) for name in (*names, "new", "ROOT", "UNKNOWN")] == [
            *range(2, symbols.size),
            1,
            1,
            1,
        ]
    assert TagSymbols.learn([words], "upos").of(Sentence.from_words([])).tolist() == [0]
    assert TagSymbols.learn([words], "upos").of_words([]).tolist() == []


@given(st.lists(st.lists(st.tuples(st.sampled_from("XY_"), st.sampled_from("ABC_")), max_size=4), max_size=4))
def test_symbols_of_many_sentences_are_those_of_each(tags: list[list[tuple[str, str]]]) -> None:
    """Tags never seen, and words without a tag, among them."""
    sentences = [
        Sentence.from_words(["w"] * len(some), upos=[u for u, _ in some], xpos=[x for _, x in some]) for some in tags
    ]
    for column in ("xpos", "upos"):
        for known in (sentences, sentences[:1]):
            symbols = TagSymbols.learn(known, column)  # type: ignore[arg-type]
            expected = [number for sentence in sentences for number in symbols.of(sentence)[1:].tolist()]
            assert symbols.of_words(sentences).tolist() == expected


@pytest.mark.parametrize("column", ["xpos", "upos"])
def test_only_the_tags_of_its_column_matter(column: str) -> None:
    parser, text = Parser.induce(TRAINED_ON, column=column, states=2, labels="none"), sentences(5, 12)
    for name in ("xpos", "upos"):
        columns: list[dict[str, Any]] = [{name: ("Z",) * len(sentence)} for sentence in text]
        changed = [replace(sentence, **column_of) for sentence, column_of in zip(text, columns, strict=True)]
        for one, two in zip(parser.parse(text), parser.parse(changed), strict=True):
            assert (np.abs(one.marginals - two.marginals).max() > 0.1) == (name == column)
            assert np.array_equal(one.marginals, two.marginals) == (name != column)


# Parsed sentences


def test_parsed_sentences_have_the_grammar_s_probabilities() -> None:
    model = induced(labels="after")
    for parsed, found in zip(
        Parser(model).parse([*sentences(4, 13), *NEW]), predict(model, [*sentences(4, 13), *NEW]), strict=True
    ):
        np.testing.assert_array_equal(parsed.marginals, own(found).marginals)
        assert parsed.floored == found.floored
        assert parsed.confidence.tree == tree_probability(found)
        words = range(1, len(parsed.heads))
        assert parsed.confidence.arcs.tolist() == [1.0, *(own(found).marginals[parsed.heads[m], m] for m in words)]
        data = parsed.to_dict()
        assert data["probability"] == tree_probability(found)
        assert data["status"] == "EXACT"
        assert [word["probability"] for word in data["words"]] == np.round(parsed.confidence.arcs[1:], 6).tolist()
        assert "<svg" in parsed.to_svg()


def test_mbr_is_what_it_does_anyway() -> None:
    parser, text = Parser(induced()), sentences(5, 14)
    for one, two in zip(parser.parse(text), parser.parse(text, mbr=True), strict=True):
        assert one.heads.tolist() == two.heads.tolist()


# Archives


@pytest.mark.parametrize("lexical", LEXICAL)
@pytest.mark.parametrize("method", METHODS)
def test_saved_and_loaded_it_is_the_same(method: str, lexical: str | None, tmp_path: Path) -> None:
    model = replace(induced(method, lexical), single_root=lexical is None, about={"seen": [1, "two"]})
    Parser(model).save(tmp_path / "m")
    loaded = Parser.load(tmp_path / "m").model
    assert isinstance(loaded, GrammarModel)
    text = [*sentences(4, 15), *NEW, Sentence.from_words([])]
    assert_same_predictions(predict(loaded, text), predict(model, text))
    for name in ("initial", "final", "operators"):
        np.testing.assert_array_equal(getattr(loaded.grammar.operators, name), getattr(model.grammar.operators, name))
    assert loaded.grammar.symbols == model.grammar.symbols
    assert (loaded.about, loaded.single_root, loaded.labeller) == (model.about, model.single_root, None)
    assert loaded.grammar.backed_off == model.grammar.backed_off
    assert (loaded.grammar.deterministic is None) == (METHODS[method].get("method") == "det")
    assert (loaded.grammar.lexical is None) == (lexical is None)


def test_labels_survive_being_saved(tmp_path: Path) -> None:
    model = induced("spectral", "LEX", labels="after")
    Parser(model).save(tmp_path / "m")
    loaded = Parser.load(tmp_path / "m").model
    assert label_names_of(loaded) == label_names_of(model)
    again = predict(loaded, sentences(8, 16))
    assert [found.labels for found in again] == [found.labels for found in predict(model, sentences(8, 16))]


def test_operators_that_are_zero_are_not_saved() -> None:
    archive = induced("the paper's").to_archive()
    operators = induced("the paper's").grammar.operators
    used = sum(bool(matrix.any()) for matrix in operators.operators.reshape(-1, 2, 2))
    assert archive.arrays["operators"].shape == (used, 2, 2)
    assert used < operators.operators[..., 0, 0].size / 2


def test_an_automaton_without_modifiers_can_be_saved(tmp_path: Path) -> None:
    """A treebank of one-word sentences: no tag has an operator."""
    words = [Sentence.from_words([form], xpos=["N"], heads=[-1, 0], labels=[None, "root"]) for form in ("a", "b")]
    parser = Parser.induce(words, states=2, backed_off=0.0)
    parser.save(tmp_path / "m")
    [parsed] = Parser.load(tmp_path / "m").parse([tagged("N")])
    assert (parsed.heads.tolist(), parsed.labels) == ([-1, 0], (None, "root"))


def _array(name: str, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Callable[[Archive], Archive]:
    return lambda archive: replace(archive, arrays={**archive.arrays, name: change(archive.arrays[name])})


def _without(name: str) -> Callable[[Archive], Archive]:
    return lambda archive: replace(archive, arrays={each: a for each, a in archive.arrays.items() if each != name})


def _data(**changes: Any) -> Callable[[Archive], Archive]:
    return lambda archive: replace(archive, data={**archive.data, **changes})


def _lexical(**changes: Any) -> Callable[[Archive], Archive]:
    return lambda archive: replace(archive, data={**archive.data, "lexical": {**archive.data["lexical"], **changes}})


def _set(value: float) -> Callable[[NDArray[Any]], NDArray[Any]]:
    def changed(array: NDArray[Any]) -> NDArray[Any]:
        array = array.copy()
        array.flat[-1] = value
        return array

    return changed


def _many_states(archive: Archive) -> Archive:
    """Small in the file, huge in memory."""
    size = len(archive.data["tags"]) + 2
    vectors = np.zeros((size, 2, 100_000))
    empty = {"operators": np.zeros((0, 100_000, 100_000)), "places": np.zeros(0, np.int64)}
    return replace(archive, arrays={**archive.arrays, "initial": vectors, "final": vectors, **empty})


def _many_tags(archive: Archive) -> Archive:
    tags = [f"T{i}" for i in range(100_000)]
    vectors = np.zeros((len(tags) + 2, 2, 3))
    return replace(
        archive, data={**archive.data, "tags": tags}, arrays={**archive.arrays, "initial": vectors, "final": vectors}
    )


ARRAYS = [
    f"{prefix}{name}" for prefix in ("", "deterministic_") for name in ("initial", "final", "operators", "places")
]
DAMAGE: Mapping[str, Callable[[Archive], Archive]] = {
    **{f"no {name}": _without(name) for name in ARRAYS},
    **{f"{name} without a dimension": _array(name, lambda array: np.asarray(array.flat[0])) for name in ARRAYS},
    **{f"one {name} too few": _array(name, lambda array: array[:-1]) for name in ARRAYS},
    **{f"one dimension of {name} too many": _array(name, lambda array: array[None]) for name in ARRAYS},
    **{f"{name} of nan": _array(name, _set(np.nan)) for name in ARRAYS if not name.endswith("places")},
    **{f"{name} of inf": _array(name, _set(np.inf)) for name in ARRAYS if not name.endswith("places")},
    "a state too few": _array("initial", lambda array: array[..., :-1]),
    "no state": _array("initial", lambda array: array[..., :0]),
    "another state at the end": _array("final", lambda array: np.repeat(array, 2, axis=-1)),
    "operators that are not square": _array("operators", lambda array: array[:, :, :-1]),
    "a place below all": _array("places", _set(-1)),
    "a place beyond all": _array("places", _set(1 << 40)),
    "a place beyond all in the deterministic ones": _array("deterministic_places", _set(1 << 40)),
    "places between places": _array("places", lambda array: array + 0.5),
    "many states": _many_states,
    "many tags": _many_tags,
    "no label weights": _without("label_weights"),
    "a label weight of nan": _array("label_weights", _set(np.nan)),
    "a label weight too few": _array("label_weights", lambda array: array[:-1]),
    "an unknown column": _data(column="feats"),
    "no column": _data(column=None),
    "a list of columns": _data(column=["xpos"]),
    "no tags": _data(tags=None),
    "a tag too few": lambda archive: _data(tags=archive.data["tags"][1:])(archive),
    "a tag too many": lambda archive: _data(tags=[*archive.data["tags"], "new"])(archive),
    "a share above one": _data(backed_off=1.5),
    "a share of nan": _data(backed_off=float("nan")),
    "no share": _data(backed_off=None),
    "a share that is text": _data(backed_off="much"),
    "lexical text": _data(lexical="LEX"),
    "an unknown lexical grammar": _lexical(configuration="LEX+X"),
    "lexical back-off of nothing": _lexical(back_off=0.0),
    "lexical tags that are missing": _lexical(tags=[]),
    **{f"no lexical {name}": _without(f"lexical_{name}") for name in ("contexts", "tags", "words", "counts")},
    "a lexical context beyond all": _array("lexical_contexts", _set(1 << 60)),
    "a lexical count below zero": _array("lexical_counts", _set(-1)),
    "no coder": _data(coder=None),
    "a labeller that is none": _data(labeller=3),
    "no description": _data(about=None),
    "no clusters": _data(clusters=None),
    "no labeller": lambda archive: replace(archive, data={k: v for k, v in archive.data.items() if k != "labeller"}),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_archive_is_one_sentence(kind: str, tmp_path: Path) -> None:
    whole = with_text_members(induced("spectral", "LEX+F", labels="after").to_archive(), None, None)
    path = tmp_path / "damaged.headway"
    save_archive(whole, path)
    assert len(list(Parser.load(path).parse(NEW))) == len(NEW)
    save_archive(DAMAGE[kind](whole), path)
    with pytest.raises(ArchiveError) as caught:
        Parser.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_the_largest_grammar_can_be_saved(tmp_path: Path) -> None:
    """What may be learnt may be loaded: 120 tags; 64 states."""
    names = [f"T{i:03}" for i in range(MOST_TAGS)]
    wide = [Sentence.from_words(names, xpos=names, heads=[-1, *range(MOST_TAGS)], labels=[None, *["x"] * MOST_TAGS])]
    for text, settings in ((wide, {"method": "det", "states": 1}), (TRAINED_ON[:2], {"states": MOST_STATES})):
        parser = Parser.induce(text, labels="none", **settings)
        parser.save(tmp_path / "m")
        assert_same_predictions(predict(Parser.load(tmp_path / "m").model, NEW[:1]), predict(parser.model, NEW[:1]))


def test_archives_say_what_they_are() -> None:
    archive = induced().to_archive()
    assert archive.kind == GrammarModel.kind == "grammar"
