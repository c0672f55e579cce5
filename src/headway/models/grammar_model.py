"""A split head-automata grammar as a parser: tags in, the tree of least risk under its marginals out (luque2012).

The grammar has an operator automaton for every tag and direction. Beside it, in a share `backed_off` of the cases, each
sequence of modifiers comes from the smoothed `deterministic` automaton instead: an exact mixture, under which no
sentence is impossible, whatever tags it has. With a lexical grammar, its probabilities of words multiply those of the
tags (equation 21), in one exact product of automata.

Decoding is MBR over the log marginals. A spectral grammar may give an arc a negative or tiny marginal; such a one is
floored, counted in `Own.negative` or `Own.tiny`, and never hidden.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from headway.archive import Archive
from headway.errors import TrainingError
from headway.features.blocks import Weights
from headway.features.coding import Coder, fine_tags
from headway.inference.batch import Floats, Ints, groups_by_length
from headway.inference.operator_grammar import (
    FLOOR,
    ModifierFactor,
    OperatorGrammar,
    Posterior,
    mbr,
    posteriors,
    tree_weight,
)
from headway.models.arc_model import BATCH_CELLS, Own, Prediction
from headway.models.labeller import LabelScorer
from headway.models.lexical_grammar import LexicalGrammar
from headway.models.saved import KIND, coder_data, coder_of, labeller_data, labeller_of, weights_of
from headway.treebank import Sentence

Column = Literal["xpos", "upos"]

UNKNOWN, _FIRST = 1, 2  # symbols of a tag never seen, and of the first tag; 0 is the root
MOST_TAGS, MOST_STATES = 120, 64  # operators are a square of tags by the square of states
_LEXICAL = "lexical_"


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
    def _numbers(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names, _FIRST)}

    def number(self, tag: str) -> int:
        """The symbol of a tag."""
        return self._numbers.get(tag, UNKNOWN)

    def of(self, sentence: Sentence) -> Ints:
        """The symbols (n+1,) of a sentence, the root's first."""
        return np.array([0, *map(self.number, tags_of(sentence, self.column))], np.int64)

    def name(self, symbol: int) -> str:
        """The tag of a symbol."""
        return ("ROOT", "UNKNOWN", *self.names)[symbol]


def tags_of(sentence: Sentence, column: Column) -> Sequence[str]:
    """The tags of a sentence; the universal one for a word without another."""
    return fine_tags(sentence) if column == "xpos" else sentence.upos


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class GrammarModel:
    """A grammar, and what labels its trees; `about` is what the model says of itself."""

    coder: Coder
    grammar: Grammar
    labeller: LabelScorer | None
    label_weights: Weights
    single_root: bool
    about: Mapping[str, Any]

    projective = True

    def with_projective(self, projective: bool) -> GrammarModel:
        """Grammars derive projective trees only."""
        if not projective:
            raise TrainingError("a head-automata grammar derives projective trees only; leave --non-projective out")
        return self

    @property
    def label_names(self) -> tuple[str, ...]:
        """The labels the model knows; none when it was trained without."""
        return self.labeller.labels if self.labeller else ()

    def predict(self, sentences: Sequence[Sentence], *, threads: int = 1) -> list[Prediction]:
        """The trees of some sentences, in their order."""
        grammar, single_root = self.grammar, self.single_root
        symbols = list(map(grammar.symbols.of, sentences))
        factors = factors_of(grammar.lexical, sentences, grammar.symbols.column)
        found = posteriors(grammar.mixture, symbols, factors, single_root=single_root, threads=threads)
        decoded = mbr(found, single_root=single_root)
        labels = self._labels(sentences, [heads for heads, _ in decoded])
        predictions = []
        for i, (posterior, (heads, floored), names) in enumerate(zip(found, decoded, labels, strict=True)):
            weight = tree_weight(grammar.mixture, symbols[i], heads, factors[i] if factors else None)
            mu = _floored(posterior.marginals)
            with np.errstate(divide="ignore"):
                scores = np.log(mu)
            tree = _tree_probability(weight, posterior)
            probabilities = Own(mu, tree, floored.negative, floored.tiny)
            predictions.append(Prediction(heads, names, scores, own=probabilities))
        return predictions

    def _labels(self, sentences: Sequence[Sentence], heads: Sequence[Ints]) -> list[tuple[str | None, ...] | None]:
        if self.labeller is None:
            return [None] * len(sentences)
        coded = self.coder.code(sentences)
        found: list[tuple[str | None, ...] | None] = [None] * len(sentences)
        for which in groups_by_length(coded.lengths, BATCH_CELLS):
            padded = np.full((len(which), int(coded.lengths[which].max()) + 1), -1, np.int64)
            for row, i in zip(padded, which.tolist(), strict=True):
                row[: len(heads[i])] = heads[i]
            chosen = self.labeller.score(self.label_weights, coded, which, padded).argmax(axis=-1)
            for row, i in zip(chosen, which.tolist(), strict=True):
                found[i] = (None, *(self.label_names[j] for j in row[1 : len(sentences[i]) + 1].tolist()))
        return found

    def to_archive(self) -> Archive:
        """What is saved: the operators that are not zero, in double precision, and the tags they stand for."""
        grammar = self.grammar
        data: dict[str, Any] = {
            "model": "grammar",
            "about": dict(self.about),
            "single_root": self.single_root,
            "coder": coder_data(self.coder),
            "column": grammar.symbols.column,
            "tags": list(grammar.symbols.names),
            "backed_off": grammar.backed_off,
            "lexical": None,
            "labeller": labeller_data(self.labeller),
        }
        arrays = {"label_weights": self.label_weights.astype(np.float32), **_operator_arrays("", grammar.operators)}
        if grammar.deterministic is not None:
            arrays |= _operator_arrays("deterministic_", grammar.deterministic)
        if grammar.lexical is not None:
            data["lexical"], tables = grammar.lexical.to_arrays()
            arrays |= {f"{_LEXICAL}{name}": table for name, table in tables.items()}
        return Archive(KIND, data, arrays)

    @classmethod
    def from_archive(cls, archive: Archive) -> GrammarModel:
        """The model of an archive; any of the built-in errors of lookup and value where it is damaged."""
        data, arrays = archive.data, archive.arrays
        if data["column"] not in get_args(Column):
            raise ValueError("it reads tags of an unknown column")
        symbols = TagSymbols(data["column"], tuple(map(str, data["tags"])))
        coder = coder_of(data["coder"])
        backed_off = float(data["backed_off"])
        if not 0 <= backed_off < 1:
            raise ValueError(f"{backed_off} of its sequences are deterministic")
        deterministic = _operators_of("deterministic_", archive, symbols.size) if backed_off else None
        lexical = None
        if data["lexical"] is not None:
            tables = {name.removeprefix(_LEXICAL): table for name, table in arrays.items() if name.startswith(_LEXICAL)}
            lexical = LexicalGrammar.from_arrays(data["lexical"], tables)
        labeller = labeller_of(data["labeller"], coder)
        return cls(
            coder,
            Grammar(symbols, _operators_of("", archive, symbols.size), deterministic, backed_off, lexical),
            labeller,
            weights_of(archive, "label_weights", labeller.size if labeller else 0),
            bool(data["single_root"]),
            dict(data["about"]),
        )


def _floored(marginals: Floats) -> Floats:
    """Marginals as probabilities: none below the floor, every word's summing to one."""
    mu = np.maximum(marginals, FLOOR)
    np.fill_diagonal(mu, 0.0)
    mu[:, 0] = 0.0
    mu[:, 1:] /= mu[:, 1:].sum(axis=0)
    return mu


def _tree_probability(weight: tuple[float, int], posterior: Posterior) -> float:
    """P(tree | sentence), for a spectral grammar brought into [0, 1]."""
    log_weight, sign = weight
    if sign * posterior.sign <= 0:
        return 0.0
    return float(np.exp(min(log_weight - posterior.log_partition, 0.0)))


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
    states = initial.shape[-1] if initial.ndim else 0
    if size > _FIRST + MOST_TAGS or not 1 <= states <= MOST_STATES:
        raise ValueError(f"it has {size - _FIRST} tags and {states} states")
    if initial.shape != (size, 2, states) or blocks.shape != (len(places), states, states) or places.ndim != 1:
        raise ValueError("its operators do not fit its tags")
    all_blocks = np.zeros((2 * size * size, states, states))
    if len(places) and not (places.dtype.kind == "i" and places.min() >= 0 and places.max() < len(all_blocks)):
        raise ValueError("its operators are of symbols that it has not")
    all_blocks[places] = blocks
    return OperatorGrammar(initial, final, all_blocks.reshape(size, 2, size, states, states))
