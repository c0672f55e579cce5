"""Mentions from dependency trees, learnt: a log-linear model of which spans are mentions.

    P(span is a mention) = 1 / (1 + exp(-w·f(span) / T))

The spans are the candidates of `mention_spans`, and each is judged by itself; the features are a table of templates
over them (`mention_templates.txt`), whether the rules of `mentions` find the span among them. The weights are learnt
by averaged stochastic gradient in steps of 1 / T, a sentence at a time: the perceptron of `headway.learning`, whose
best choice is shared out by its probability, as in `latent_trees`.

Spans whose score is above a threshold are mentions. It is the one with the best F1 on every fifth training document,
for weights that are learnt from the others, and 0 if there are no mentions in these. Then the weights are learnt again,
from all documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources

import numpy as np

from headway.arrays import Bools, Floats, Ints
from headway.coreference.documents import Document, Mention
from headway.coreference.keyed_rows import (
    CompiledTemplates,
    Template,
    add_at,
    compile_templates,
    fire_row,
    sum_at,
)
from headway.coreference.mention_spans import SPAN_NAMES, SpanRows, Spans, candidate_spans
from headway.features.blocks import Keys, Weights, bits_for
from headway.inference.jit import kernel, part
from headway.learning.perceptron import Perceptron
from headway.learning.problem import ARGMAX, Quantity
from headway.learning.progress import Pass
from headway.treebank import Sentence

TEMPERATURE = 50.0
PASSES = 6
HELD_OUT = 5  # every fifth document
# Too small a probability of the wrong answer to learn from; most spans have less.
NEGLIGIBLE = 1e-4


@dataclass(frozen=True, repr=False)
class SpanFeatures:
    """Templates, each with a block of 2^bits weights."""

    templates: tuple[Template, ...]
    bits: tuple[int, ...]
    compiled: CompiledTemplates

    @classmethod
    def compile(cls, templates: Sequence[Template], bits: Sequence[int]) -> SpanFeatures:
        """Features with blocks of these sizes, as listed in a saved model."""
        return cls(tuple(templates), tuple(bits), compile_templates(templates, SPAN_NAMES, bits))

    @classmethod
    def learn(cls, templates: Sequence[Template], mentions: Iterable[SpanRows]) -> SpanFeatures:
        """Features with blocks sized from the keys of the mentions."""
        sketch = cls.compile(templates, [1] * len(templates))
        fired = [list(map(np.unique, sketch.keys(rows).T)) for rows in mentions]
        counts = [len(np.unique(np.concatenate(keys))) for keys in zip(*fired, strict=True)] or [0] * len(templates)
        return cls.compile(templates, list(map(bits_for, counts)))

    @property
    def size(self) -> int:
        """The number of weights."""
        return sum(1 << bits for bits in self.bits)

    def keys(self, rows: SpanRows) -> Keys:
        """The keys (K, T)."""
        keys = np.zeros((len(rows.nodes), len(self.templates)), np.uint64)
        _fire_all(rows, self.compiled, keys)
        return keys

    def score(self, weights: Weights, rows: SpanRows) -> Floats:
        """w·f of every span, (K,)."""
        scores = np.zeros(len(rows.nodes))
        _score(weights, rows, self.compiled, scores)
        return scores

    def add(self, weights: Weights, rows: SpanRows, amounts: Floats) -> None:
        """weights += amounts (K,) x features."""
        _add(weights, rows, self.compiled, amounts)


@dataclass(frozen=True)
class SpanProblem:
    """The sentences of documents, and which of their candidates are mentions."""

    features: SpanFeatures
    sentences: Sequence[tuple[SpanRows, Bools]]

    offers: frozenset[Quantity] = ARGMAX

    @cached_property
    def lengths(self) -> Ints:
        """How many candidates each sentence has."""
        return np.array([len(is_mention) for _, is_mention in self.sentences], np.int64)

    @property
    def size(self) -> int:
        return self.features.size

    def some(self, which: Ints) -> SentenceSpans:
        """The sentence with this number: one at a time."""
        return SentenceSpans(self.features, *self.sentences[which.item()])


@dataclass(frozen=True)
class SentenceSpans:
    """One sentence; scores are those of its candidates, (K,)."""

    features: SpanFeatures
    rows: SpanRows
    is_mention: Bools

    def score(self, weights: Weights) -> Floats:
        return self.features.score(weights, self.rows)

    def add(self, into: Weights, amounts: Floats) -> None:
        self.features.add(into, self.rows, amounts)

    def best(self, scores: Floats) -> Floats:
        """The probability of each, and exactly what is right where it is almost certain."""
        shares: Floats = 1.0 / (1.0 + np.exp(-scores / TEMPERATURE))
        gold = self.gold()
        return np.where(np.abs(shares - gold) < NEGLIGIBLE, gold, shares)

    def gold(self) -> Floats:
        return self.is_mention.astype(np.float64)

    def cost(self) -> Floats:
        """1 for a span that is no mention; a mention left out costs as much."""
        return np.where(self.is_mention, -1.0, 1.0)


@dataclass(frozen=True, repr=False)
class MentionFinder:
    """Finds mentions in trees: spans that score above the threshold."""

    features: SpanFeatures
    weights: Floats
    threshold: float

    @classmethod
    def learn(cls, documents: Sequence[Document], seed: int = 0) -> MentionFinder:
        """Learn from documents with trees and mentions; mentions with gaps are ignored."""
        examples = [_example(document) for document in documents]
        mentions = (_some(spans.rows, is_mention) for spans, is_mention in examples)
        features = SpanFeatures.learn(mention_templates(), mentions)
        held_out = examples[HELD_OUT - 1 :: HELD_OUT]
        threshold = 0.0
        if any(is_mention.any() for _, is_mention in held_out):
            rest = [each for i, each in enumerate(examples, start=1) if i % HELD_OUT]
            weights = _fitted(features, rest, seed)
            threshold = best_threshold(
                np.concatenate([features.score(weights, spans.rows) for spans, _ in held_out]),
                np.concatenate([is_mention for _, is_mention in held_out]),
                sum(len(document.mentions) for document in documents[HELD_OUT - 1 :: HELD_OUT]),
            )
        return cls(features, _fitted(features, examples, seed), threshold)

    def find(self, sentences: Sequence[Sentence]) -> list[Mention]:
        """The mentions of a document's sentences, in the order of a document."""
        spans = candidate_spans(sentences)
        scores = self.features.score(self.weights, spans.rows)
        found = [words for words, score in zip(spans.words(), scores, strict=True) if score > self.threshold]
        found.sort(key=lambda words: (words[0], words[1], -words[2]))
        return [Mention(sentence, tuple(range(first, last + 1))) for sentence, first, last in found]


def mention_templates() -> tuple[Template, ...]:
    """Headway's own templates of spans."""
    table = (resources.files("headway.coreference") / "mention_templates.txt").read_text("utf-8")
    lines = (line.partition("#")[0].split() for line in table.splitlines())
    return tuple(tuple(line) for line in lines if line)


def best_threshold(scores: Floats, is_mention: Bools, mentions: int) -> float:
    """The threshold with the best F1, halfway between two scores; `mentions` are how many there are in all.

    >>> best_threshold(np.array([3.0, -1.0, 1.0, -2.0]), np.array([True, True, False, False]), 2)
    -1.5
    """
    order = np.argsort(-scores, kind="stable")
    found = np.arange(1, len(order) + 1)
    right = np.cumsum(is_mention[order])
    f1 = 2 * right / (found + mentions)
    ranked = scores[order]
    f1[:-1][ranked[:-1] == ranked[1:]] = -1.0  # no threshold between equal scores
    last = int(np.argmax(f1))
    return float((ranked[last] + ranked[last + 1]) / 2) if last + 1 < len(ranked) else float(ranked[last] - 1.0)


def _example(document: Document) -> tuple[Spans, Bools]:
    """The candidates of a document, and which of them are mentions."""
    spans = candidate_spans(document.sentences)
    marked = {
        (m.sentence, m.words[0], m.words[-1]) for m in document.mentions if len(m.words) == m.words[-1] - m.words[0] + 1
    }
    return spans, np.array([words in marked for words in spans.words()], np.bool_)


def _fitted(features: SpanFeatures, examples: Sequence[tuple[Spans, Bools]], seed: int) -> Floats:
    sentences = [each for spans, is_mention in examples for each in _sentences(spans, is_mention)]
    return Perceptron(PASSES, 0.0, seed).fit(SpanProblem(features, sentences), _go_on)


def _go_on(done: Pass) -> bool:
    return True


def _sentences(spans: Spans, is_mention: Bools) -> Iterator[tuple[SpanRows, Bools]]:
    for s in range(len(spans.start) - 1):
        yield spans.of(s), is_mention[spans.start[s] : spans.start[s + 1]]


def _some(rows: SpanRows, which: Bools) -> SpanRows:
    return SpanRows(rows.fields, rows.nodes[which], rows.atoms[which])


@kernel
def _score(weights: Weights, rows: SpanRows, c: CompiledTemplates, scores: Floats) -> None:
    fields, nodes, atoms = rows.fields, rows.nodes, rows.atoms
    starts, places, multipliers, offset, drop = c.start, c.place, c.multiplier, c.offset, c.drop
    values, keys = _room(fields, nodes, atoms), np.empty(len(offset), np.uint64)
    for k in range(len(nodes)):
        _gather(fields, nodes[k], atoms[k], values)
        fire_row(values, starts, places, multipliers, keys)
        scores[k] = sum_at(weights, offset, drop, keys)


@kernel
def _add(weights: Weights, rows: SpanRows, c: CompiledTemplates, amounts: Floats) -> None:
    fields, nodes, atoms = rows.fields, rows.nodes, rows.atoms
    starts, places, multipliers, offset, drop = c.start, c.place, c.multiplier, c.offset, c.drop
    values, keys = _room(fields, nodes, atoms), np.empty(len(offset), np.uint64)
    for k in range(len(nodes)):
        if amounts[k] == 0.0:
            continue
        _gather(fields, nodes[k], atoms[k], values)
        fire_row(values, starts, places, multipliers, keys)
        add_at(weights, offset, drop, keys, amounts[k])


@kernel
def _fire_all(rows: SpanRows, c: CompiledTemplates, fired: Keys) -> None:
    values = _room(rows.fields, rows.nodes, rows.atoms)
    for k in range(len(rows.nodes)):
        _gather(rows.fields, rows.nodes[k], rows.atoms[k], values)
        fire_row(values, c.start, c.place, c.multiplier, fired[k])


@part
def _room(fields: Ints, nodes: Ints, atoms: Ints) -> Ints:
    """For the row of one span."""
    return np.empty(fields.shape[1] * nodes.shape[1] + atoms.shape[1], np.int64)


@part
def _gather(fields: Ints, nodes: Ints, atoms: Ints, values: Ints) -> None:
    """The row of one span: the fields of its nodes, then its atoms."""
    count = fields.shape[1]
    for n in range(len(nodes)):
        for i in range(count):
            values[n * count + i] = fields[nodes[n], i]
    for i in range(len(atoms)):
        values[len(nodes) * count + i] = atoms[i]
