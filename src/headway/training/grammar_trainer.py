"""Head-automata grammars from trees (luque2012): the candidates, and the choice among them on development data.

The spectral method learns the automata of all numbers of states at once, EM gives a grammar after every step; the one
with the best development score is kept, or without development data the one asked for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, Literal

import numpy as np

from headway import __version__
from headway.errors import TrainingError
from headway.evaluation.attachment import percent
from headway.features.coding import Coder
from headway.inference.forward_states import StateAutomaton, state_automaton
from headway.inference.operator_automata import LEFT, RIGHT, OperatorGrammar
from headway.inference.operator_grammar import mbr, posteriors
from headway.learning.deterministic import deterministic_grammar
from headway.learning.expectation_maximization import Sequences, em_steps, shards_of
from headway.learning.modifier_trie import ModifierTrie, first_without_tree
from headway.learning.monitor import Progress, Show
from headway.learning.spectral import spectral_grammar
from headway.models.grammar_model import (
    MOST_TAGS,
    UNKNOWN,
    Column,
    Grammar,
    GrammarModel,
    TagSymbols,
    factors_of,
    operators_fit,
    tags_of,
)
from headway.models.lexical_grammar import LexicalGrammar
from headway.parallel import Executor, Held
from headway.training.data import TrainingData, code_trees, label_names
from headway.training.grammar_settings import STATES, GrammarSettings
from headway.training.labels import train_labels
from headway.training.preparation import workers_for
from headway.training.settings import Settings
from headway.training.stages import Run
from headway.treebank import Sentence, is_punctuation, require_tree

Direction = Literal["left", "right"]

SPECTRAL_STATES = (1, 2, 3, 5, 7, 9, 12, 15, 20)  # to choose from


def train_grammar_model(data: TrainingData, settings: GrammarSettings, frame: Settings, run: Run) -> GrammarModel:
    """A grammar as a parser; `frame` are the settings of its labels, which are chosen after the tree."""
    chosen = settings.complete()
    induced = induce(data.train, data.dev, chosen, run)
    coder = Coder.learn(data.train)
    names = label_names(data.train)
    labeller = None
    if chosen.labels == "after" and names != ("_",):
        trees = code_trees(data.train, coder, names)
        labeller = train_labels(coder, trees, names, frame, run, roots=data.roots, tree=False)
    about = {
        "headway": __version__,
        "settings": asdict(chosen),
        "train": data.about(),
        "chosen": induced.chosen,
        "history": induced.history,
    }
    return GrammarModel(coder, induced.grammar, labeller, chosen.single_root, about)


@dataclass(frozen=True)
class Induced:
    """The grammar that was kept, its figures, and those of all that were tried."""

    grammar: Grammar
    chosen: dict[str, Any]
    history: list[dict[str, Any]]


def induce(
    train: Sequence[Sentence],
    dev: Sequence[Sentence] | None,
    settings: GrammarSettings,
    run: Run,
) -> Induced:
    """Learn grammars from projective trees, and keep the best."""
    settings = settings.complete()
    symbols = require_tags(train, settings, choose=dev is not None)
    column = symbols.column
    trie = trie_of(train, symbols)
    lexical = settings.lexical and LexicalGrammar.learn(settings.lexical, train, [tags_of(s, column) for s in train])
    score = None if dev is None else GrammarDevelopment(dev, symbols, lexical, settings.single_root, run.executor)
    share = settings.backed_off or 0.0
    frame = Grammar(symbols, deterministic_grammar(trie, first=True), lexical=lexical)
    if share:
        frame = replace(frame, deterministic=frame.operators, backed_off=share)
    if settings.method != "em" or (settings.shards or 1) == 1:
        return _best(trie, frame, settings, score, run.show)
    with workers_for(settings.shards or 1, run.workers).hold(shards_of(trie, settings.shards or 1)) as shards:
        return _best(trie, frame, settings, score, run.show, shards)


def require_tags(train: Sequence[Sentence], settings: GrammarSettings, *, choose: bool) -> TagSymbols:
    """The tags of a treebank, unless they are too many for a grammar; `choose`: its states are yet to be chosen."""
    column = settings.column or _column(train)
    symbols = TagSymbols.learn(train, column)
    if len(symbols.names) > MOST_TAGS:
        remedy = "take the universal ones (--column upos)" if column == "xpos" else "give a treebank with coarser ones"
        raise TrainingError(
            f"the {column} column has {len(symbols.names)} different tags, too many for a grammar over tags "
            f"({MOST_TAGS} at most); {remedy}"
        )
    states = max(_states(settings, choose=choose)) + (2 if settings.backed_off else 0)
    if not operators_fit(symbols.size, states):
        raise TrainingError(f"{len(symbols.names)} tags with {states} states do not fit into memory; take fewer states")
    return symbols


def _best(
    trie: ModifierTrie,
    frame: Grammar,
    settings: GrammarSettings,
    dev: GrammarDevelopment | None,
    show: Show | None,
    shards: Held[Sequences] | None = None,
) -> Induced:
    """The best of the candidates on development data, or without any the likeliest, or the only one."""
    started = time.monotonic()
    states = _states(settings, choose=dev is not None)
    restarts, iterations = settings.restarts or 1, settings.iterations or 1
    total = restarts * iterations if settings.method == "em" else len(states)
    history: list[dict[str, Any]] = []
    best, merit = frame, -np.inf
    for figures, operators in _candidates(trie, settings, states, shards):
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
    nodes = [require_tree(sentence) if sentence.heads is None else sentence.heads for sentence in sentences]
    lengths = np.fromiter(map(len, nodes), np.int64, len(nodes)) - 1
    heads = np.concatenate(nodes) if nodes else np.empty(0, np.int64)
    wrong = first_without_tree(lengths, heads)
    if wrong >= 0:
        require_tree(sentences[wrong])
    words = np.delete(heads, np.cumsum(lengths + 1) - lengths - 1)
    return ModifierTrie.of(symbols.size, lengths, symbols.of_words(sentences), words)


def _column(sentences: Sequence[Sentence]) -> Column:
    """xpos, or upos if there are too many of those."""
    return "xpos" if len(TagSymbols.learn(sentences, "xpos").names) <= MOST_TAGS else "upos"


def _states(settings: GrammarSettings, *, choose: bool) -> tuple[int, ...]:
    if settings.states is not None:
        return (settings.states,)
    return SPECTRAL_STATES if choose and settings.method == "spectral" else (STATES[settings.method],)


def _candidates(
    trie: ModifierTrie, settings: GrammarSettings, states: Sequence[int], shards: Held[Sequences] | None
) -> Iterator[tuple[dict[str, Any], OperatorGrammar]]:
    """Grammars, each with its figures."""
    if settings.method == "det":
        yield {"states": states[0]}, deterministic_grammar(trie, first=states[0] == 2)
    elif settings.method == "spectral":
        statistics = {"ridge": settings.ridge or 0.0, "scale": settings.scale or 0.0}
        largest = spectral_grammar(trie, states[-1], context=settings.context or 1, **statistics)
        for number in states:
            yield {"states": number}, largest.leading(number)
    else:
        for restart in range(settings.restarts or 1):
            steps = em_steps(trie, states[0], np.random.default_rng(settings.seed + restart), shards)
            for step in islice(steps, settings.iterations or 1):
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
        executor: Executor,
    ) -> None:
        self._symbols = list(map(symbols.of, sentences))
        self._factors = factors_of(lexical, sentences, symbols.column)
        self._heads = [require_tree(sentence) for sentence in sentences]
        self._scored = [np.array([not is_punctuation(form) for form in sentence.forms]) for sentence in sentences]
        self._single_root, self._executor = single_root, executor

    def scores(self, grammar: Grammar) -> GrammarScores:
        """Parse them."""
        single_root = self._single_root
        found = posteriors(
            grammar.mixture, self._symbols, self._factors, single_root=single_root, executor=self._executor
        )
        decoded = mbr(found, single_root=single_root)
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
