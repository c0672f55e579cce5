"""Learning grammars: what may be asked for, what reaches the learners, and which of the grammars is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest

from headway.errors import TrainingError, TreebankError
from headway.features.coding import Coder
from headway.inference.operator_automata import LEFT, RIGHT, OperatorGrammar
from headway.inference.operator_grammar import posteriors
from headway.learning.deterministic import deterministic_grammar
from headway.learning.expectation_maximization import em_steps
from headway.learning.monitor import Progress, Show
from headway.learning.spectral import CONTEXT, RIDGE, spectral_grammar
from headway.models.grammar_model import MOST_TAGS, Grammar, GrammarModel, TagSymbols
from headway.parallel import SERIAL, executor_for
from headway.pipeline import Parser
from headway.training import grammar_trainer
from headway.training.grammar_settings import MOST_STATES, GrammarSettings
from headway.training.grammar_trainer import SPECTRAL_STATES, GrammarDevelopment, Induced, state_picture, trie_of
from headway.training.stages import Run
from headway.treebank import Sentence
from tests.models.toy_treebank import sentences

TRAIN = sentences(30, 1)
DEV = [*sentences(12, 2), *sentences(12, 3, crossing=True)]  # no automaton gets all of the second kind right


def induce(
    train: Sequence[Sentence],
    dev: Sequence[Sentence] | None,
    settings: GrammarSettings,
    *,
    threads: int = 1,
    show: Show | None = None,
) -> Induced:
    return grammar_trainer.induce(train, dev, settings, Run(executor_for(threads), show))


def noisy(text: Sequence[Sentence], share: float) -> list[Sentence]:
    """A share of the tags drawn at random, so that scores differ from grammar to grammar."""
    rng = np.random.default_rng(0)
    changed = []
    for sentence in text:
        drawn = rng.choice(list("DJNVAS"), len(sentence))
        tags = np.where(rng.random(len(sentence)) < share, drawn, sentence.xpos).tolist()
        changed.append(replace(sentence, xpos=tuple(tags)))
    return changed


NOISY_TRAIN, NOISY_DEV = noisy(sentences(30, 21), 0.1), noisy(DEV, 0.3)


def right_heads(grammar: Grammar, gold: Sequence[Sentence], *, single_root: bool = True) -> float:
    """The percentage, but for full stops and semicolons, of the toy treebank."""
    parser = Parser(GrammarModel(Coder.learn(TRAIN), grammar, None, single_root, {}))
    right = total = 0
    for sentence, parsed in zip(gold, parser.parse(gold), strict=True):
        assert sentence.heads is not None
        for m, form in enumerate(sentence.forms, start=1):
            if form not in ".;":
                total += 1
                right += int(parsed.heads[m] == sentence.heads[m])
    return 100 * right / total


def assert_same_operators(ours: OperatorGrammar, theirs: OperatorGrammar) -> None:
    for name in ("initial", "final", "operators"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def differ(ours: OperatorGrammar, theirs: OperatorGrammar) -> bool:
    return ours.operators.shape != theirs.operators.shape or not np.allclose(ours.operators, theirs.operators)


# Settings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"method": "magic"}, "method is 'magic'; expected any of spectral, em, det"),
        ({"lexical": "LEX+X"}, r"lexical is 'LEX\+X'; expected any of LEX, LEX\+F, LEX\+FCP"),
        ({"column": "feats"}, "column is 'feats'; expected any of xpos, upos"),
        ({"states": 0}, "states is 0; expected 1 or more"),
        ({"states": MOST_STATES + 1}, "65 states; spectral has 1 to 64"),
        ({"method": "em", "states": MOST_STATES + 1}, "65 states; em has 1 to 64"),
        ({"method": "det", "states": 3}, r"3 states; det has 1 \(DET\) or 2 \(DET\+F\)"),
        ({"method": "em", "iterations": 0}, "iterations is 0; expected 1 or more"),
        ({"method": "em", "restarts": 0}, "restarts is 0; expected 1 or more"),
        ({"backed_off": -0.1}, "backed_off is -0.1; expected 0 or more"),
        ({"backed_off": 1.0}, "backed_off is 1.0; expected 0 or more, and less than 1"),
        ({"backed_off": float("nan")}, "backed_off is nan"),
        ({"context": 0, "states": 2}, "context is 0; expected 1 or more"),
        ({"ridge": -1.0, "states": 2}, "ridge is -1.0; expected 0 or more"),
        ({"ridge": float("inf"), "states": 2}, "ridge is inf"),
        ({"scale": 1.5, "states": 2}, "scale is 1.5; expected 0 to 1"),
        ({"tags": "silver"}, "tags is 'silver'; expected any of predicted, gold"),
        ({"labels": "joint"}, "labels is 'joint'; expected any of after, none"),
        ({"seed": -1}, "seed is -1; expected 0 or more"),
        ({"method": "det", "ridge": 1.0}, "ridge is for the method spectral; leave it out with det"),
        ({"iterations": 3}, "iterations is for the method em; leave it out with spectral"),
        ({"method": "det", "backed_off": 0.5}, "backed_off is for the method spectral or em; leave it out with det"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(TrainingError, match=said):
        Parser.induce(TRAIN[:4], **settings)


@pytest.mark.parametrize(
    ("settings", "states"),
    [
        ({}, 9),
        ({"method": "em", "iterations": 1}, 15),
        ({"method": "det"}, 2),
        ({"states": 4}, 4),
        ({"method": "em", "iterations": 1, "states": 3}, 3),
        ({"method": "det", "states": 1}, 1),
    ],
)
def test_states_that_were_not_asked_for(settings: dict[str, Any], states: int) -> None:
    found = induce(TRAIN, None, GrammarSettings(**settings))
    assert (found.chosen["states"], found.grammar.operators.states) == (states, states)
    assert found.history == [found.chosen]
    assert found.chosen["dev"] is None
    assert found.chosen["negative"] is None


# What is learnt


def test_the_sequences_are_those_of_the_trees() -> None:
    symbols = TagSymbols.learn(TRAIN, "xpos")
    trie = trie_of(TRAIN, symbols)
    seen: dict[tuple[str, int], Counter[tuple[str, ...]]] = {}
    for sentence in TRAIN:
        assert sentence.heads is not None
        heads = sentence.heads.tolist()
        tags = ("ROOT", *sentence.xpos)
        for h in range(len(tags)):
            left = tuple(tags[m] for m in range(h - 1, 0, -1) if heads[m] == h)
            right = tuple(tags[m] for m in range(h + 1, len(tags)) if heads[m] == h)
            seen.setdefault((tags[h], LEFT), Counter())[left] += 1
            seen.setdefault((tags[h], RIGHT), Counter())[right] += 1
    for head in range(symbols.size):
        for side in (LEFT, RIGHT):
            found = {tuple(map(symbols.name, x)): count for x, count in trie.sequences(head, side)}
            assert found == seen.get((symbols.name(head), side), {})


@pytest.mark.parametrize("settings", [{}, {"context": 1, "ridge": 0.0}, {"context": 4}, {"ridge": 2.5}, {"scale": 0.5}])
def test_spectral_settings_reach_the_learner(settings: dict[str, Any]) -> None:
    found = induce(TRAIN, None, GrammarSettings(states=3, **settings))
    trie = trie_of(TRAIN, found.grammar.symbols)
    given = {"context": CONTEXT, "ridge": RIDGE, **settings}
    assert_same_operators(found.grammar.operators, spectral_grammar(trie, 3, **given))
    assert not settings or differ(found.grammar.operators, spectral_grammar(trie, 3))


@pytest.mark.parametrize("method", ["spectral", "em"])
def test_a_share_comes_from_det_f(method: str) -> None:
    settings: dict[str, Any] = {"method": method, "states": 2, **({"iterations": 2} if method == "em" else {})}
    found = induce(TRAIN, None, GrammarSettings(backed_off=0.25, **settings))
    assert found.grammar.backed_off == 0.25
    assert found.grammar.deterministic is not None
    trie = trie_of(TRAIN, found.grammar.symbols)
    assert_same_operators(found.grammar.deterministic, deterministic_grammar(trie, first=True))
    without = induce(TRAIN, None, GrammarSettings(backed_off=0.0, **settings)).grammar
    assert (without.deterministic, without.backed_off) == (None, 0.0)
    assert_same_operators(without.operators, found.grammar.operators)


@pytest.mark.parametrize("states", [1, 2])
def test_deterministic_automata_back_off_from_nothing(states: int) -> None:
    found = induce(TRAIN, None, GrammarSettings("det", states)).grammar
    assert (found.deterministic, found.backed_off) == (None, 0.0)
    trie = trie_of(TRAIN, found.symbols)
    assert_same_operators(found.operators, deterministic_grammar(trie, first=states == 2))


@pytest.mark.parametrize("lexical", ["LEX", "LEX+F", "LEX+FCP"])
def test_words_are_those_of_the_configuration(lexical: str) -> None:
    found = induce(TRAIN, None, GrammarSettings("det", lexical=lexical)).grammar.lexical  # type: ignore[arg-type]
    assert found is not None
    assert found.configuration == lexical
    assert set(found.tags) == {tag for sentence in TRAIN for tag in sentence.xpos}


def test_a_treebank_must_have_trees() -> None:
    bare = Sentence.from_words(["a"], xpos=["N"])
    for text, said in (([], "has no sentence with words"), ([Sentence.from_words([])], "has no sentence with words")):
        with pytest.raises(TrainingError, match=said):
            Parser.induce(text)
    with pytest.raises(TreebankError):
        Parser.induce([*TRAIN[:2], bare])
    with pytest.raises(TreebankError):
        Parser.induce(TRAIN[:2], [bare])
    with pytest.raises(TrainingError, match="the development data: has no sentence with words"):
        Parser.induce(TRAIN[:2], [])


# Columns


def with_tags(many: int, few: int) -> list[Sentence]:
    """One sentence with so many different tags in the one column and in the other; every word under the next."""
    xpos, upos = ([f"{prefix}{i % number}" for i in range(many)] for prefix, number in (("x", many), ("u", few)))
    heads = [-1, *range(2, many + 1), 0]
    return [Sentence.from_words(xpos, xpos=xpos, upos=upos, heads=heads)]


@pytest.mark.parametrize(
    ("many", "few", "asked", "column"),
    [
        (MOST_TAGS, 3, None, "xpos"),
        (MOST_TAGS, 3, "upos", "upos"),
        (MOST_TAGS + 1, 3, None, "upos"),
        (MOST_TAGS + 1, 3, "upos", "upos"),
        (MOST_TAGS + 1, MOST_TAGS, None, "upos"),
    ],
)
def test_the_column_is_the_one_that_fits(many: int, few: int, asked: Any, column: str) -> None:
    found = induce(with_tags(many, few), None, GrammarSettings("det", 1, column=asked))
    assert found.grammar.symbols.column == column
    assert found.grammar.symbols.names == tuple(
        sorted({f"{column[0]}{i}" for i in range(few if column == "upos" else many)})
    )


def test_too_many_tags() -> None:
    with pytest.raises(TrainingError) as caught:
        induce(with_tags(MOST_TAGS + 1, 3), None, GrammarSettings("det", column="xpos"))
    assert str(caught.value) == (
        "the xpos column has 121 different tags, too many for a grammar over tags (120 at most); "
        "take the universal ones (--column upos)"
    )
    for asked in (None, "upos"):
        with pytest.raises(TrainingError, match="the upos column has 121 different tags") as caught:
            induce(with_tags(MOST_TAGS + 1, MOST_TAGS + 1), None, GrammarSettings("det", column=asked))
        assert "--column upos" not in str(caught.value)


# Which grammar is kept


def test_development_data_choose_the_states(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = (1, 2, 3, 5)
    settings: dict[str, Any] = {"context": 2, "ridge": 1.0, "backed_off": 0.1}
    monkeypatch.setattr(grammar_trainer, "SPECTRAL_STATES", numbers)
    found = induce(NOISY_TRAIN, NOISY_DEV, GrammarSettings(**settings))
    assert [entry["states"] for entry in found.history] == list(numbers)
    alone = [induce(NOISY_TRAIN, None, GrammarSettings(states=states, **settings)).grammar for states in numbers]
    scores = [right_heads(grammar, NOISY_DEV) for grammar in alone]
    assert [entry["dev"] for entry in found.history] == pytest.approx(scores)
    best = scores.index(max(scores))  # the fewest states where several are as good
    assert 0 < best < len(scores) - 1
    assert found.chosen == found.history[best]
    assert found.grammar.operators.states == numbers[best]
    assert right_heads(found.grammar, NOISY_DEV) == pytest.approx(max(scores))


def test_states_that_were_asked_for_stay() -> None:
    found = induce(TRAIN, NOISY_DEV, GrammarSettings(states=3))
    assert [entry["states"] for entry in found.history] == [3]
    assert found.chosen["dev"] == pytest.approx(right_heads(found.grammar, NOISY_DEV))


def test_scores_are_those_of_the_whole_model() -> None:
    """With its words, and with as many roots as it may have."""
    train, dev = sentences(20, 5, two_roots=True), noisy(sentences(20, 6, two_roots=True), 0.3)
    found = induce(train, dev, GrammarSettings("det", lexical="LEX+F", single_root=False))
    score = right_heads(found.grammar, dev, single_root=False)
    assert found.chosen["dev"] == pytest.approx(score)
    assert right_heads(found.grammar, dev) != pytest.approx(score)
    assert right_heads(replace(found.grammar, lexical=None), dev, single_root=False) != pytest.approx(score)


def em(**changes: Any) -> GrammarSettings:
    return GrammarSettings(**{"method": "em", "states": 3, "iterations": 5, "restarts": 2, "seed": 4, **changes})


def test_development_data_choose_the_step_of_em() -> None:
    found = induce(NOISY_TRAIN, NOISY_DEV, em())
    places = [(entry["restart"], entry["iteration"]) for entry in found.history]
    assert places == [(restart, step) for restart in range(2) for step in range(1, 6)]
    trie = trie_of(NOISY_TRAIN, found.grammar.symbols)
    grammars = [
        step.grammar
        for restart in range(2)
        for step in islice(em_steps(trie, 3, np.random.default_rng(4 + restart)), 5)
    ]
    scores = [right_heads(replace(found.grammar, operators=operators), NOISY_DEV) for operators in grammars]
    assert [entry["dev"] for entry in found.history] == pytest.approx(scores)
    best = scores.index(max(scores))
    assert 0 < best < len(scores) - 1
    assert found.chosen == found.history[best]
    assert_same_operators(found.grammar.operators, grammars[best])


def test_without_development_data_the_likeliest_is_kept() -> None:
    found = induce(TRAIN, None, em(restarts=4))
    likelihoods = [entry["log_likelihood"] for entry in found.history]
    assert len(likelihoods) == 20
    assert all(entry["dev"] is None for entry in found.history)
    assert found.chosen == found.history[int(np.argmax(likelihoods))]
    ends = likelihoods[4::5]
    assert len(set(ends)) == 4
    assert (found.chosen["restart"], found.chosen["iteration"]) == (ends.index(max(ends)), 5)
    trie = trie_of(TRAIN, found.grammar.symbols)
    *_, last = islice(em_steps(trie, 3, np.random.default_rng(4 + found.chosen["restart"])), 5)
    assert_same_operators(found.grammar.operators, last.grammar)


@pytest.mark.parametrize("method", ["spectral", "em", "det"])
def test_it_can_be_repeated(method: str) -> None:
    settings: dict[str, Any] = {"method": method, "states": 2, "lexical": "LEX+F"}
    if method == "em":
        settings["iterations"] = 3
    one, two = (induce(TRAIN, NOISY_DEV, GrammarSettings(**settings)) for _ in range(2))
    assert_same_operators(one.grammar.operators, two.grammar.operators)
    assert (one.chosen, one.history) == (two.chosen, two.history)
    threaded = induce(TRAIN, NOISY_DEV, GrammarSettings(**settings), threads=3)
    assert threaded.history == one.history
    other = induce(TRAIN, NOISY_DEV, GrammarSettings(seed=1, **settings))
    assert differ(one.grammar.operators, other.grammar.operators) == (method == "em")


# What is shown


@pytest.mark.parametrize(
    ("settings", "dev", "total"),
    [
        ({}, None, 1),
        ({}, NOISY_DEV, len(SPECTRAL_STATES)),
        ({"states": 2}, NOISY_DEV, 1),
        ({"method": "det"}, NOISY_DEV, 1),
        ({"method": "em", "states": 2, "iterations": 3, "restarts": 2}, None, 6),
    ],
)
def test_every_grammar_is_shown(settings: dict[str, Any], dev: list[Sentence] | None, total: int) -> None:
    shown: list[Progress] = []
    found = induce(TRAIN, dev, GrammarSettings(**settings), show=shown.append)
    assert [(each.stage, each.number, each.passes) for each in shown] == [
        ("grammar", number, total) for number in range(1, total + 1)
    ]
    assert [each.dev for each in shown] == [entry["dev"] for entry in found.history]
    likelihoods = [entry["log_likelihood"] for entry in found.history if "log_likelihood" in entry]
    assert [each.figures["log_likelihood"] for each in shown if each.figures] == likelihoods
    assert len(likelihoods) == (total if settings.get("method") == "em" else 0)


# Scores


def test_scores_count_what_they_say() -> None:
    """Punctuation apart; negative marginals of a grammar that has many, and sentences whose Z is negative."""
    found = induce(TRAIN, None, GrammarSettings(states=2, backed_off=0.0)).grammar
    rng = np.random.default_rng(1)
    mixed = OperatorGrammar(
        rng.normal(size=found.operators.initial.shape),
        rng.normal(size=found.operators.final.shape),
        rng.normal(size=found.operators.operators.shape),
    )
    grammar = replace(found, operators=mixed)
    scores = GrammarDevelopment(DEV, grammar.symbols, None, True, SERIAL).scores(grammar)
    assert scores.uas == pytest.approx(right_heads(grammar, DEV))
    negative = arcs = signs = right = words = 0
    parser = Parser(GrammarModel(Coder.learn(TRAIN), grammar, None, True, {}))
    for sentence, parsed in zip(DEV, parser.parse(DEV), strict=True):
        [posterior] = posteriors(mixed, [grammar.symbols.of(sentence)])
        for h in range(len(sentence) + 1):
            for m in range(1, len(sentence) + 1):
                if h != m:
                    arcs += 1
                    negative += posterior.marginals[h, m] < 0
        signs += posterior.sign < 0
        assert sentence.heads is not None
        right += sum(a == b for a, b in zip(parsed.heads.tolist()[1:], sentence.heads.tolist()[1:], strict=True))
        words += len(sentence)
    assert 0.1 < negative / arcs < 0.9
    assert scores.negative == pytest.approx(negative / arcs)
    assert 0 < signs == scores.negative_sentences < len(DEV)
    assert scores.uas_with_punctuation == pytest.approx(100 * right / words)
    assert scores.uas_with_punctuation != scores.uas


def test_history_has_the_share_of_negative_marginals() -> None:
    found = induce(TRAIN, DEV, GrammarSettings(states=3, context=1, ridge=0.0))
    scores = GrammarDevelopment(DEV, found.grammar.symbols, None, True, SERIAL).scores(found.grammar)
    assert found.chosen["negative"] == scores.negative


# Pictures of states


@pytest.mark.parametrize(
    ("tag", "direction"), [("N", "left"), ("V", "left"), ("V", "right"), ("ROOT", "right"), ("S", "left")]
)
def test_a_picture_has_seen_every_sequence(tag: str, direction: Any) -> None:
    grammar = induce(TRAIN, None, GrammarSettings(states=3)).grammar
    seen: Counter[tuple[int, ...]] = Counter()
    for sentence in DEV:
        assert sentence.heads is not None
        symbols, heads = grammar.symbols.of(sentence).tolist(), sentence.heads.tolist()
        for h in range(len(symbols)):
            if grammar.symbols.name(symbols[h]) == tag:
                outwards = range(h - 1, 0, -1) if direction == "left" else range(h + 1, len(symbols))
                seen[tuple(symbols[m] for m in outwards if heads[m] == h)] += 1
    picture = state_picture(grammar, tag, direction, DEV)
    assert picture.stops.sum() + picture.lost == seen.total()
    for sequence, count in seen.items():
        if count >= 5:
            state = picture.state_of(sequence)
            assert state is not None
            assert picture.stops[state] >= count
    assert state_picture(grammar, tag, direction, DEV, clusters=1).states == 1


def test_pictures_of_what_is_not_there() -> None:
    grammar = induce(TRAIN, None, GrammarSettings(states=3)).grammar
    for tag in ("Q", "UNKNOWN", ""):
        with pytest.raises(TrainingError, match=f"the grammar has no tag '{tag}'; its tags are A, D, J, N, S, V"):
            state_picture(grammar, tag, "left", DEV)
    for nothing in ([], [Sentence.from_words([])]):
        with pytest.raises(TrainingError, match="there are no trees to see the automaton at work in"):
            state_picture(grammar, "N", "left", nothing)
    with pytest.raises(TreebankError):
        state_picture(grammar, "N", "left", [Sentence.from_words(["a"], xpos=["N"])])
    alone = [Sentence.from_words(["a"], xpos=["V"], heads=[-1, 0])]  # a tag of the grammar, but not of these trees
    assert state_picture(grammar, "N", "left", alone).visits.tolist() == [0]
