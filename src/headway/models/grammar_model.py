"""A split head-automata grammar as a parser: tags in, the tree of least risk under its marginals out (luque2012).

The grammar has an operator automaton for every tag and direction. Beside it, in a share `backed_off` of the cases, each
sequence of modifiers comes from the smoothed `deterministic` automaton instead: an exact mixture, under which no
sentence is impossible, whatever tags it has. With a lexical grammar, its probabilities of words multiply those of the
tags (equation 21), in one exact product of automata.

Decoding is MBR over the log marginals. A spectral grammar may give an arc a negative or tiny marginal; it is floored,
counted in `Prediction.floored`, and never hidden.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from headway.archive import Archive
from headway.arrays import Bools, Floats, Ints, TreeClass
from headway.errors import NoTreeError, TrainingError
from headway.features.coding import Coder, fine_tags
from headway.inference.batch import groups_by_length
from headway.inference.heads import as_heads, is_in_class
from headway.inference.operator_automata import ModifierFactor, OperatorGrammar, as_factors
from headway.inference.operator_grammar import FLOOR, Posterior, mbr, posteriors, tree_weight
from headway.models.composed import named_labels
from headway.models.constraints import Constraints
from headway.models.description import describe_features
from headway.models.labeller import AfterLabels
from headway.models.lexical_grammar import LexicalGrammar
from headway.models.protocol import Description, Options, Prediction, Task
from headway.models.saved import about_of, coder_data, coder_of, labeller_members, labeller_of, required_columns
from headway.models.tree_decoder import BATCH_CELLS
from headway.parallel import Executor
from headway.saved_values import column_values, flag, number
from headway.treebank import Sentence

Column = Literal["xpos", "upos"]

UNKNOWN, _FIRST = 1, 2  # symbols of a tag never seen, and of the first tag; 0 is the root
_ABSENT = -1  # in place of a symbol, where a word has no tag of its language's own
MOST_TAGS = 120
# A sentence of so many words takes about a minute with so many states.
_MOST_WORDS, _FEW_STATES = 1000, 8
_MOST_OPERATORS = 40_000_000  # twice the square of symbols times states: 320 MB, and as much again to work with
_LEXICAL = "lexical_"


class _Numbers(dict[str, int]):
    """Symbols by tag, `UNKNOWN` for all others; looked up without a Python call where the tag is known."""

    def __missing__(self, tag: str) -> int:
        return UNKNOWN


@dataclass(frozen=True)
class TagSymbols:
    """The tags of one column of a treebank, numbered as symbols of a grammar."""

    column: Column
    names: tuple[str, ...]

    @classmethod
    def learn(cls, sentences: Sequence[Sentence], column: Column) -> TagSymbols:
        """Number the tags of some sentences."""
        return cls(column, tuple(sorted({tag for sentence in sentences for tag in tags_of(sentence, column)})))

    @property
    def size(self) -> int:
        """How many symbols there are, the root's and the unknown tag's among them."""
        return _FIRST + len(self.names)

    @cached_property
    def _numbers(self) -> _Numbers:
        return _Numbers({name: i for i, name in enumerate(self.names, _FIRST)})

    def number(self, tag: str) -> int:
        """The symbol of a tag."""
        return self._numbers[tag]

    def of(self, sentence: Sentence) -> Ints:
        """The symbols (n+1,) of a sentence, the root's first."""
        return np.array([0, *map(self.number, tags_of(sentence, self.column))], np.int64)

    def of_words(self, sentences: Sequence[Sentence]) -> Ints:
        """The symbols of all words, one sentence after the other, without the root's."""
        if self.column == "upos":
            return _numbered([sentence.upos for sentence in sentences], self._numbers)
        symbols = _numbered([sentence.xpos for sentence in sentences], _Numbers({**self._numbers, "_": _ABSENT}))
        absent = np.flatnonzero(symbols == _ABSENT)
        if len(absent):  # as in `fine_tags`
            symbols[absent] = _numbered([sentence.upos for sentence in sentences], self._numbers)[absent]
        return symbols

    def name(self, symbol: int) -> str:
        """The tag of a symbol."""
        return ("ROOT", "UNKNOWN", *self.names)[symbol]


def _numbered(columns: Sequence[Sequence[str]], numbers: _Numbers) -> Ints:
    return np.fromiter(map(numbers.__getitem__, chain.from_iterable(columns)), np.int64, sum(map(len, columns)))


def tags_of(sentence: Sentence, column: Column) -> Sequence[str]:
    """The tags of a sentence; the universal one for a word without another."""
    return fine_tags(sentence) if column == "xpos" else sentence.upos


@dataclass(frozen=True, repr=False)
class Grammar:
    """What gives trees their probabilities; `deterministic` and `lexical` may be absent."""

    symbols: TagSymbols
    operators: OperatorGrammar
    deterministic: OperatorGrammar | None = None
    backed_off: float = 0.0
    lexical: LexicalGrammar | None = None

    @cached_property
    def mixture(self) -> OperatorGrammar:
        """The operators with their share of the deterministic automata."""
        if self.deterministic is None:
            return self.operators
        return self.operators.mixed(self.deterministic, self.backed_off)


def factors_of(
    lexical: LexicalGrammar | None, sentences: Sequence[Sentence], column: Column
) -> list[ModifierFactor] | None:
    """What a lexical grammar, if there is one, says of the words of every sentence."""
    if lexical is None:
        return None
    return lexical.factors(sentences, [tags_of(sentence, column) for sentence in sentences])


def _restricted(
    factors: Sequence[ModifierFactor] | None, sentences: Sequence[Ints], allowed: Sequence[Bools | None]
) -> list[ModifierFactor]:
    """The factors of sentences, given by their symbols, that have allowed arcs only."""
    return [
        factor if mask is None else factor.only(mask)
        for factor, mask in zip(as_factors(factors, sentences), allowed, strict=True)
    ]


def _impossible(error: NoTreeError, sentences: Sequence[Sentence], allowed: Sequence[Bools | None]) -> NoTreeError:
    """The same error, or where only some arcs are allowed, one that blames it on those."""
    assert error.sentence is not None
    if allowed[error.sentence] is None:
        return error
    text = " ".join(sentences[error.sentence].forms)
    cause = f"the grammar gives weight 0 to every tree of {text!r} that has the given heads; leave some of them open"
    return NoTreeError(cause, error.words)


@dataclass(frozen=True, repr=False)
class GrammarDistribution:
    """The posterior of one sentence's derivations, brought into [0, 1] where a spectral grammar leaves it.

    Where only some arcs are `allowed` (n+1, n+1), the factor rules out the others.
    """

    grammar: OperatorGrammar
    symbols: Ints
    factor: ModifierFactor | None
    posterior: Posterior
    heads: Ints
    trees: TreeClass
    allowed: Bools | None = None

    @cached_property
    def marginals(self) -> Floats:
        """P(head -> modifier): none of an allowed arc below the floor, every word's summing to one."""
        mu = np.maximum(self.posterior.marginals, FLOOR)
        if self.allowed is not None:
            mu[~self.allowed] = 0.0
        np.fill_diagonal(mu, 0.0)
        mu[:, 0] = 0.0
        mu[:, 1:] /= mu[:, 1:].sum(axis=0)
        return mu

    def argmax(self) -> Ints:
        """The tree of least risk: a grammar with hidden states has no better one that could be found."""
        return self.heads

    def log_prob(self, heads: ArrayLike) -> float:
        """log P(tree | sentence), at most 0; -inf for heads that are no tree of the class."""
        if not is_in_class(as_heads(heads, len(self.symbols) - 1), self.trees):
            return -np.inf
        log_weight, sign = tree_weight(self.grammar, self.symbols, heads, self.factor)
        if sign * self.posterior.sign <= 0:
            return -np.inf
        return min(log_weight - self.posterior.log_partition, 0.0)


@dataclass(frozen=True, repr=False)
class GrammarModel:
    """A grammar, and what labels its trees."""

    coder: Coder
    grammar: Grammar
    labeller: AfterLabels | None
    single_root: bool
    about: Mapping[str, Any]

    kind: ClassVar[str] = "grammar"
    task: ClassVar[Task] = "parsing"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.trees}>"

    @property
    def trees(self) -> TreeClass:
        return TreeClass(projective=True, single_root=self.single_root)

    def with_trees(self, trees: TreeClass) -> GrammarModel:
        """Grammars derive projective trees only, with the roots they were learnt with."""
        if trees != self.trees:
            raise TrainingError("a head-automata grammar derives projective trees only; leave --non-projective out")
        return self

    @property
    def most_words(self) -> int:
        """Longer sentences are parsed in stretches: a chart takes time that grows with n^3 and the states' square."""
        return int(_MOST_WORDS * min(1.0, _FEW_STATES / self.grammar.operators.states) ** (2 / 3))

    @property
    def requires(self) -> frozenset[str]:
        return required_columns(self.coder)

    def predict(
        self,
        given: Sequence[Sentence],
        options: Options,
        executor: Executor,
        constraints: Sequence[Constraints | None] | None = None,
    ) -> list[Prediction]:
        """The trees of least risk of some sentences, in their order."""
        grammar, single_root = self.grammar, self.single_root
        symbols = list(map(grammar.symbols.of, given))
        factors = factors_of(grammar.lexical, given, grammar.symbols.column)
        allowed: list[Bools | None] = [None] * len(given)
        if constraints is not None:
            allowed = [None if own is None else own.allowed for own in constraints]
            factors = _restricted(factors, symbols, allowed)
        try:
            found = posteriors(grammar.mixture, symbols, factors, single_root=single_root, executor=executor)
        except NoTreeError as error:
            raise _impossible(error, given, allowed) from None
        decoded = mbr(found, single_root=single_root, allowed=allowed)
        labels = self._labels(given, [heads for heads, _ in decoded])
        predictions = []
        for i, (posterior, (heads, floored), names) in enumerate(zip(found, decoded, labels, strict=True)):
            factor = factors[i] if factors else None
            distribution = GrammarDistribution(
                grammar.mixture, symbols[i], factor, posterior, heads, self.trees, allowed[i]
            )
            predictions.append(Prediction(heads, names, distribution, floored=(floored.negative, floored.tiny)))
        return predictions

    def _labels(self, sentences: Sequence[Sentence], heads: Sequence[Ints]) -> list[tuple[str | None, ...] | None]:
        found: list[tuple[str | None, ...] | None] = [None] * len(sentences)
        if self.labeller is None:
            return found
        coded = self.coder.code(sentences)
        for which in groups_by_length(coded.lengths, BATCH_CELLS):
            names = named_labels(self.labeller, coded.some(which), [heads[i] for i in which.tolist()], None)
            for i, own in zip(which.tolist(), names, strict=True):
                found[i] = own.names
        return found

    def describe(self) -> Description:
        symbols, states = self.grammar.symbols, self.grammar.operators.states
        shape = f"{states} state{'s' * (states != 1)}, {len(symbols.names)} tags ({symbols.column})"
        lexical = f", {self.grammar.lexical.configuration}" if self.grammar.lexical else ""
        return describe_features(self, "grammar", {}, self.labeller, self.coder, [("grammar", f"{shape}{lexical}")])

    def to_archive(self) -> Archive:
        """What is saved: the operators that are not zero, in double precision, and the tags they stand for."""
        grammar = self.grammar
        labeller, label_weights = labeller_members(self.labeller)
        data: dict[str, Any] = {
            "about": dict(self.about),
            "single_root": self.single_root,
            **coder_data(self.coder),
            "column": grammar.symbols.column,
            "tags": list(grammar.symbols.names),
            "backed_off": grammar.backed_off,
            "lexical": None,
            "labeller": labeller,
        }
        arrays = {**label_weights, **_operator_arrays("", grammar.operators)}
        if grammar.deterministic is not None:
            arrays |= _operator_arrays("deterministic_", grammar.deterministic)
        if grammar.lexical is not None:
            data["lexical"], tables = grammar.lexical.to_arrays()
            arrays |= {f"{_LEXICAL}{name}": table for name, table in tables.items()}
        return Archive(self.kind, data, arrays)

    @classmethod
    def from_archive(cls, archive: Archive) -> GrammarModel:
        """The model that was saved; a built-in error of lookup or value where the archive is damaged."""
        data, arrays = archive.data, archive.arrays
        if data["column"] not in get_args(Column):
            raise ValueError("it reads tags of an unknown column")
        symbols = TagSymbols(data["column"], column_values(data["tags"], "a tag"))
        coder = coder_of(data)
        backed_off = number(data["backed_off"], "backed_off")
        if not 0 <= backed_off < 1:
            raise ValueError(f"{backed_off} of its sequences are deterministic")
        prefixes = ("", "deterministic_") if backed_off else ("",)
        states = sum(_states_of(prefix, archive) for prefix in prefixes)
        if len(symbols.names) > MOST_TAGS or states < 1 or not operators_fit(symbols.size, states):
            raise ValueError(f"it has {len(symbols.names)} tags and {states} states")
        deterministic = _operators_of("deterministic_", archive, symbols.size) if backed_off else None
        lexical = None
        tables = {name.removeprefix(_LEXICAL): table for name, table in arrays.items() if name.startswith(_LEXICAL)}
        if tables or data["lexical"] is not None:
            lexical = LexicalGrammar.from_arrays(data["lexical"], tables)
        return cls(
            coder,
            Grammar(symbols, _operators_of("", archive, symbols.size), deterministic, backed_off, lexical),
            labeller_of(archive, coder),
            flag(data["single_root"], "single_root"),
            about_of(data),
        )


def operators_fit(symbols: int, states: int) -> bool:
    """Whether operators of so many symbols and states can be built; they would fill the memory otherwise."""
    return 2 * (symbols * states) ** 2 <= _MOST_OPERATORS


def _states_of(prefix: str, archive: Archive) -> int:
    initial = archive.arrays[f"{prefix}initial"]
    return initial.shape[-1] if initial.ndim else 0


def _operator_arrays(prefix: str, grammar: OperatorGrammar) -> dict[str, Any]:
    """initial, final, and the operators that are not zero, with their places."""
    blocks = grammar.operators.reshape(-1, grammar.states, grammar.states)
    places = np.flatnonzero(blocks.any(axis=(1, 2)))
    return {
        f"{prefix}initial": grammar.initial,
        f"{prefix}final": grammar.final,
        f"{prefix}operators": blocks[places],
        f"{prefix}places": places,
    }


def _operators_of(prefix: str, archive: Archive, size: int) -> OperatorGrammar:
    """The grammar that was saved; compiled code indexes it without looking, so its shapes and places are checked."""
    initial, final, blocks, places = (
        archive.arrays[f"{prefix}{name}"] for name in ("initial", "final", "operators", "places")
    )
    states = _states_of(prefix, archive)
    if initial.shape != (size, 2, states) or blocks.shape != (len(places), states, states) or places.ndim != 1:
        raise ValueError("its operators do not fit its tags")
    all_blocks = np.zeros((2 * size * size, states, states))
    if len(places) and not (places.dtype.kind == "i" and places.min() >= 0 and places.max() < len(all_blocks)):
        raise ValueError("its operators are of symbols that it does not have")
    all_blocks[places] = blocks
    return OperatorGrammar(initial, final, all_blocks.reshape(size, 2, size, states, states))
