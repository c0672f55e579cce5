"""Head-automata grammars from trees (luque2012): what they are learnt with, and the choice among them on dev data.

The spectral method learns the automata of all numbers of states at once, EM gives a grammar after every step; the one
with the best development score is kept, or without development data the one asked for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal, get_args

import numpy as np

from headway.errors import TrainingError
from headway.evaluation.attachment import percent
from headway.inference.forward_states import StateAutomaton, state_automaton
from headway.inference.operator_grammar import LEFT, RIGHT, OperatorGrammar, mbr, posteriors
from headway.learning.deterministic import deterministic_grammar
from headway.learning.expectation_maximization import em_steps
from headway.learning.modifier_trie import ModifierTrie
from headway.learning.monitor import Progress, Show
from headway.learning.spectral import CONTEXT, RIDGE, spectral_grammar
from headway.models.grammar_model import (
    MOST_STATES,
    MOST_TAGS,
    UNKNOWN,
    Column,
    Grammar,
    TagSymbols,
    factors_of,
    tags_of,
)
from headway.models.lexical_grammar import Configuration, LexicalGrammar
from headway.treebank import Sentence, is_punctuation, require_tree

Method = Literal["spectral", "em", "det"]
Direction = Literal["left", "right"]

BACKED_OFF = 0.1  # the share of DET+F, chosen on the development sentences of experiments/luque2012
SPECTRAL_STATES = (1, 2, 3, 5, 7, 9, 12, 15, 20)  # to choose from
_STATES: dict[Method, int] = {"spectral": 9, "em": 15, "det": 2}


@dataclass(frozen=True)
class Induction:
    """What a grammar is learnt with.

    `states` None asks the development data, for the spectral method; else it is 9 (spectral), 15 (em), or 2 (det:
    DET+F; 1 is DET). `context` and `ridge` are `headway.learning.spectral`'s, `iterations` and `restarts` EM's. A share
    `backed_off` of the sequences comes from DET+F. `lexical` is LEX, LEX+F or LEX+FCP. `column` names the tags: xpos,
    or upos where there are too many of those.
    """

    method: Method = "spectral"
    states: int | None = None
    lexical: Configuration | None = None
    column: Column | None = None
    context: int = CONTEXT
    ridge: float = RIDGE
    iterations: int = 50
    restarts: int = 1
    backed_off: float = BACKED_OFF
    single_root: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise TrainingError(f"unknown method {self.method!r}; there are {', '.join(get_args(Method))}")
        if self.lexical is not None and self.lexical not in get_args(Configuration):
            raise TrainingError(
                f"unknown lexical grammar {self.lexical!r}; choose {', '.join(get_args(Configuration))}"
            )
        if self.column not in (None, *get_args(Column)):
            raise TrainingError(f"unknown column {self.column!r}; tags are in {' or '.join(get_args(Column))}")
        if self.states is not None and not 1 <= self.states <= (2 if self.method == "det" else MOST_STATES):
            most = "1 (DET) or 2 (DET+F)" if self.method == "det" else f"1 to {MOST_STATES}"
            raise TrainingError(f"{self.states} states; {self.method} has {most}")
        if self.iterations < 1 or self.restarts < 1:
            raise TrainingError(f"{self.iterations} iterations and {self.restarts} restarts; at least one is needed")
        if not 0 <= self.backed_off < 1:
            raise TrainingError(f"a share of {self.backed_off} is backed off; expected 0 or more, and less than 1")


@dataclass(frozen=True)
class Induced:
    """The grammar that was kept, its figures, and those of all that were tried."""

    grammar: Grammar
    chosen: dict[str, Any]
    history: list[dict[str, Any]]


def induce(
    train: Sequence[Sentence],
    dev: Sequence[Sentence] | None,
    settings: Induction,
    *,
    threads: int = 1,
    show: Show | None = None,
) -> Induced:
    """Learn grammars from projective trees, and keep the best."""
    column = settings.column or _column(train)
    symbols = TagSymbols.learn(train, column)
    if len(symbols.names) > MOST_TAGS:
        remedy = "take the universal ones (--column upos)" if column == "xpos" else "give a treebank with coarser ones"
        raise TrainingError(
            f"the {column} column has {len(symbols.names)} different tags, too many for a grammar over tags "
            f"({MOST_TAGS} at most); {remedy}"
        )
    trie = trie_of(train, symbols)
    lexical = settings.lexical and LexicalGrammar.learn(settings.lexical, train, [tags_of(s, column) for s in train])
    score = None if dev is None else GrammarDevelopment(dev, symbols, lexical, settings.single_root, threads)
    share = 0.0 if settings.method == "det" else settings.backed_off
    frame = Grammar(symbols, deterministic_grammar(trie, first=True), lexical=lexical)
    if share:
        frame = replace(frame, deterministic=frame.operators, backed_off=share)
    return _best(trie, frame, settings, score, show)


def _best(
    trie: ModifierTrie, frame: Grammar, settings: Induction, dev: GrammarDevelopment | None, show: Show | None
) -> Induced:
    """The best of the candidates on development data, or without any the likeliest, or the only one."""
    started = time.monotonic()
    states = _states(settings, choose=dev is not None)
    total = settings.restarts * settings.iterations if settings.method == "em" else len(states)
    history: list[dict[str, Any]] = []
    best, merit = frame, -np.inf
    for figures, operators in _candidates(trie, settings, states):
        grammar = replace(frame, operators=operators)
        scores = None if dev is None else dev.scores(grammar)
        history.append({**figures, "dev": scores and scores.uas, "negative": scores and scores.negative})
        own = scores.uas if scores else figures.get("log_likelihood", 0.0)
        if own > merit:
            best, merit, chosen = grammar, own, history[-1]
        if show is not None:
            shown = {name: value for name, value in figures.items() if name == "log_likelihood"}
            seconds = time.monotonic() - started
            show(Progress("grammar", len(history), total, shown, history[-1]["dev"], seconds))
    return Induced(best, chosen, history)


def trie_of(sentences: Sequence[Sentence], symbols: TagSymbols) -> ModifierTrie:
    """The modifier sequences of a treebank."""
    lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
    words = np.concatenate([symbols.of(sentence)[1:] for sentence in sentences])
    return ModifierTrie.of(symbols.size, lengths, words, np.concatenate([require_tree(s)[1:] for s in sentences]))


def _column(sentences: Sequence[Sentence]) -> Column:
    """xpos, or upos if there are too many of those."""
    return "xpos" if len(TagSymbols.learn(sentences, "xpos").names) <= MOST_TAGS else "upos"


def _states(settings: Induction, *, choose: bool) -> tuple[int, ...]:
    if settings.states is not None:
        return (settings.states,)
    return SPECTRAL_STATES if choose and settings.method == "spectral" else (_STATES[settings.method],)


def _candidates(
    trie: ModifierTrie, settings: Induction, states: Sequence[int]
) -> Iterator[tuple[dict[str, Any], OperatorGrammar]]:
    """Grammars, each with its figures."""
    if settings.method == "det":
        yield {"states": states[0]}, deterministic_grammar(trie, first=states[0] == 2)
    elif settings.method == "spectral":
        largest = spectral_grammar(trie, states[-1], context=settings.context, ridge=settings.ridge)
        for number in states:
            yield {"states": number}, largest.leading(number)
    else:
        for restart in range(settings.restarts):
            steps = em_steps(trie, states[0], np.random.default_rng(settings.seed + restart))
            for step in islice(steps, settings.iterations):
                figures = {"states": states[0], "restart": restart, "iteration": step.number}
                yield {**figures, "log_likelihood": step.log_likelihood}, step.grammar


@dataclass(frozen=True)
class GrammarScores:
    """Percentages of right heads, without punctuation and with; the share of arcs whose marginal is negative, and how
    many sentences have a negative Z: spectral grammars only come near to distributions."""

    uas: float
    uas_with_punctuation: float
    negative: float
    negative_sentences: int


class GrammarDevelopment:
    """Development sentences, made ready to be parsed by one grammar after the other."""

    def __init__(
        self,
        sentences: Sequence[Sentence],
        symbols: TagSymbols,
        lexical: LexicalGrammar | None,
        single_root: bool,
        threads: int,
    ) -> None:
        self._symbols = list(map(symbols.of, sentences))
        self._factors = factors_of(lexical, sentences, symbols.column)
        self._heads = [require_tree(sentence) for sentence in sentences]
        self._scored = [np.array([not is_punctuation(form) for form in sentence.forms]) for sentence in sentences]
        self._single_root, self._threads = single_root, threads

    def scores(self, grammar: Grammar) -> GrammarScores:
        """Parse them."""
        options = {"single_root": self._single_root}
        found = posteriors(grammar.mixture, self._symbols, self._factors, threads=self._threads, **options)
        decoded = mbr(found, **options)
        right = right_of_all = 0
        for (heads, _), gold, scored in zip(decoded, self._heads, self._scored, strict=True):
            good = heads[1:] == gold[1:]
            right += int(good[scored].sum())
            right_of_all += int(good.sum())
        return GrammarScores(
            percent(right, sum(int(scored.sum()) for scored in self._scored)),
            percent(right_of_all, sum(map(len, self._scored))),
            sum(floored.negative for _, floored in decoded) / max(sum(len(s) ** 2 for s in self._scored), 1),
            sum(posterior.sign < 0 for posterior in found),
        )


def state_picture(
    grammar: Grammar, tag: str, direction: Direction, sentences: Sequence[Sentence], *, clusters: int = 10
) -> StateAutomaton:
    """The deterministic picture of one automaton's states (section 5.3), over the frequent prefixes of some trees."""
    symbols = grammar.symbols
    head = 0 if tag == symbols.name(0) else symbols.number(tag)
    if head == UNKNOWN:
        raise TrainingError(f"the grammar has no tag {tag!r}; its tags are {', '.join(symbols.names)}")
    if not any(map(len, sentences)):
        raise TrainingError("there are no trees to see the automaton at work in; give a treebank with some")
    side = LEFT if direction == "left" else RIGHT
    seen = trie_of(sentences, symbols).sequences(head, side)
    operators = grammar.operators
    automaton = (operators.initial[head, side], operators.operators[head, side])
    strings, counts = [sequence for sequence, _ in seen], [int(count) for _, count in seen]
    return state_automaton(*automaton, strings, counts, clusters=clusters)
