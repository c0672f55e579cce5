"""Attachment scores by the rules of the CoNLL-X shared task (Buchholz and Marsi 2006).

For each word we count whether the head is right (UAS), whether head and label are right (LAS), and whether the label is
right. Labels are compared as they are, subtypes included. Each figure is given over all words and without punctuation,
as the official scorer defines it: a word is punctuation if every character of its form is in a Unicode category P. So
"--", "«", "·" and "%" are left out; symbols such as "$", "`", "°" and "+" are scored, and so is "'s".

A percentage is `100 - 100 * wrong / total`, in this order of operations, from integer counts. This is the official
scorer's own expression, so two printed decimals agree to the last digit. A share of nothing is 0.

The tables leave out punctuation, as the official scorer does. In `by_label`, an arc is right if head and label are
("DEPREL + ATTACHMENT" there). `by_distance` has the official bins, but counts an arc as right only if its head is; the
official table accepts any head in the same bin (ours are the precision and recall of McDonald and Nivre 2007). Exact
trees are a share of the sentences that have a scored word.

One pass, O(words) time. Memory holds eight integers per sentence, for the significance tests, and a table of label and
distance confusions. We differ from the official scorer in one more respect: it requires the same coarse tags in both
files, we require only the same forms.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from itertools import compress
from operator import and_, eq
from typing import Any, TypeAlias

import numpy as np

from headway.arrays import Ints
from headway.errors import EvaluationError
from headway.evaluation.pairing import Source, in_step, tree_of
from headway.treebank import Sentence, is_punctuation

# gold label, predicted label, gold distance, predicted distance, head right
_Cell: TypeAlias = tuple[str, str, str, str, bool]

_DISTANCES = ("root", "1", "2", "3-6", "7+")
_DISTANCE_NAMES = ("root", "1", "2", "3-6", "3-6", "3-6", "3-6", "7+")  # by distance, 0 standing for the root
_LENGTHS = (10, 20, 30, 40, 50)  # the longest sentence of each bin but the last
_LENGTH_NAMES = ("1-10", "11-20", "21-30", "31-40", "41-50", "51+")


@dataclass(frozen=True, slots=True)
class Row:
    """One label or distance: `count` gold and `predicted` predicted arcs; percentages. Recall is over the gold arcs."""

    name: str
    count: int
    predicted: int
    uas: float
    las: float
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class LengthRow:
    """Sentences in a range of lengths (in words, punctuation included): how many, their scored words, percentages."""

    name: str
    sentences: int
    count: int
    uas: float
    las: float


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """For each sentence, how many words are scored, and how many have the right head, label, or both; (S,) each."""

    words: Ints
    heads: Ints
    labels: Ints
    arcs: Ints

    def percent(self, right: Ints) -> float:
        """100 times the share of `right` among the scored words."""
        return percent(int(right.sum()), int(self.words.sum()))

    def exact(self, right: Ints) -> float:
        """100 times the share of sentences in which every scored word is `right`; those with none are left out."""
        scored = self.words > 0
        return percent(int((right == self.words)[scored].sum()), int(scored.sum()))


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The result of `evaluate`: percentages, tables, and the counts per sentence for the significance tests."""

    tokens: int
    scored: int
    uas: float
    las: float
    uas_no_punct: float
    las_no_punct: float
    label_accuracy: float
    label_accuracy_no_punct: float
    exact: float
    exact_labelled: float
    exact_no_punct: float
    exact_labelled_no_punct: float
    by_label: tuple[Row, ...] = field(repr=False)
    by_distance: tuple[Row, ...] = field(repr=False)
    by_length: tuple[LengthRow, ...] = field(repr=False)
    per_sentence: Tally = field(repr=False)
    per_sentence_no_punct: Tally = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the arrays, ready for `json.dumps`; the number of sentences comes first."""
        tables = ("by_label", "by_distance", "by_length")
        arrays = ("per_sentence", "per_sentence_no_punct")
        numbers = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in tables + arrays}
        return {
            "sentences": len(self.per_sentence.words),
            **numbers,
            **{table: [asdict(row) for row in getattr(self, table)] for table in tables},
        }


def evaluate(gold: Source, predicted: Source) -> Scores:
    """Compare predicted trees with gold ones: two paths ("-" is standard input), or two iterables of sentences.

    Several words may be on the root, but heads that form a cycle are no tree, and an error.

    >>> from headway.treebank import Sentence, is_punctuation
    >>> words = ["Dogs", "bark", "."]
    >>> gold = Sentence.from_words(words, heads=[-1, 2, 0, 2], labels=[None, "nsubj", "root", "punct"])
    >>> predicted = Sentence.from_words(words, heads=[-1, 2, 0, 1], labels=[None, "obj", "root", "punct"])
    >>> scores = evaluate([gold], [predicted])
    >>> print(f"{scores.uas:.2f} {scores.las:.2f} {scores.uas_no_punct:.2f} {scores.las_no_punct:.2f}")
    66.67 33.33 100.00 50.00
    """
    counts = _Counts()
    for pair in in_step(gold, predicted):
        counts.add(*pair)
    return counts.scores()


def percent(right: int, total: int) -> float:
    """100 * right / total as the CoNLL-X scorer computes it, from the number of wrong ones; 0 if `total` is 0.

    >>> percent(3, 4)
    75.0
    """
    return 100 - (total - right) * 100.0 / total if total else 0.0


class _Counts:
    """Integer counts of the pairs seen so far."""

    def __init__(self) -> None:
        self._columns = tuple(array("q") for _ in range(8))
        self._cells: Counter[_Cell] = Counter()

    def add(self, gold: Sentence, predicted: Sentence) -> None:
        (_, *gold_heads), (_, *gold_labels) = tree_of(gold)
        (_, *predicted_heads), (_, *predicted_labels) = tree_of(predicted)
        head_right = list(map(eq, gold_heads, predicted_heads))
        label_right = list(map(eq, gold_labels, predicted_labels))
        arc_right = list(map(and_, head_right, label_right))
        scored = [not is_punctuation(form) for form in gold.forms]

        right = (head_right, label_right, arc_right)
        everywhere = (len(gold), *map(sum, right))
        no_punct = (sum(scored), *(sum(map(and_, scored, which)) for which in right))
        for column, count in zip(self._columns, everywhere + no_punct, strict=True):
            column.append(count)

        distances = _distances(gold_heads), _distances(predicted_heads)
        cells = zip(gold_labels, predicted_labels, *distances, head_right, strict=True)
        self._cells.update(compress(cells, scored))

    def scores(self) -> Scores:
        columns = [np.array(column, dtype=np.int64) for column in self._columns]
        every, no_punct = Tally(*columns[:4]), Tally(*columns[4:])
        tokens = int(every.words.sum())
        if tokens == 0:
            raise EvaluationError("the gold treebank has no words; there is nothing to evaluate")
        return Scores(
            tokens=tokens,
            scored=int(no_punct.words.sum()),
            uas=every.percent(every.heads),
            las=every.percent(every.arcs),
            uas_no_punct=no_punct.percent(no_punct.heads),
            las_no_punct=no_punct.percent(no_punct.arcs),
            label_accuracy=every.percent(every.labels),
            label_accuracy_no_punct=no_punct.percent(no_punct.labels),
            exact=every.exact(every.heads),
            exact_labelled=every.exact(every.arcs),
            exact_no_punct=no_punct.exact(no_punct.heads),
            exact_labelled_no_punct=no_punct.exact(no_punct.arcs),
            by_label=_by_label(self._cells),
            by_distance=_by_distance(self._cells),
            by_length=_by_length(every.words, no_punct),
            per_sentence=every,
            per_sentence_no_punct=no_punct,
        )


def _distances(heads: list[int]) -> list[str]:
    return [_DISTANCE_NAMES[min(abs(h - m), 7) if h else 0] for m, h in enumerate(heads, 1)]


def _by_label(cells: Counter[_Cell]) -> tuple[Row, ...]:
    rows = _rows(cells, lambda cell: cell[:2], labelled=True)
    return tuple(sorted(rows, key=lambda row: (-row.count, -row.predicted, row.name)))


def _by_distance(cells: Counter[_Cell]) -> tuple[Row, ...]:
    rows = _rows(cells, lambda cell: cell[2:4], labelled=False)
    return tuple(sorted(rows, key=lambda row: _DISTANCES.index(row.name)))


def _rows(cells: Counter[_Cell], names: Callable[[_Cell], tuple[str, str]], *, labelled: bool) -> list[Row]:
    """One row per name; `names` gives the gold and the predicted name of a cell's arcs."""
    gold, predicted, heads, both = (Counter[str]() for _ in range(4))
    for cell, count in cells.items():
        gold_label, predicted_label, _, _, head_right = cell
        name, predicted_name = names(cell)
        gold[name] += count
        predicted[predicted_name] += count
        heads[name] += count * head_right
        both[name] += count * (head_right and gold_label == predicted_label)
    right = both if labelled else heads
    return [
        Row(
            name=name,
            count=gold[name],
            predicted=predicted[name],
            uas=percent(heads[name], gold[name]),
            las=percent(both[name], gold[name]),
            precision=_share(right[name], predicted[name]),
            recall=_share(right[name], gold[name]),
            f1=_share(2 * right[name], gold[name] + predicted[name]),
        )
        for name in gold.keys() | predicted.keys()
    ]


def _share(part: int, whole: int) -> float:
    """A percentage in the order of operations of the official scorer's tables."""
    return part / whole * 100 if whole else 0.0


def _by_length(lengths: Ints, tally: Tally) -> tuple[LengthRow, ...]:
    bins = np.searchsorted(_LENGTHS, lengths)  # 1-10 is bin 0
    rows = []
    for number, name in enumerate(_LENGTH_NAMES):
        inside = (bins == number) & (lengths > 0)
        words, heads, arcs = (int(counts[inside].sum()) for counts in (tally.words, tally.heads, tally.arcs))
        if inside.any():
            rows.append(LengthRow(name, int(inside.sum()), words, percent(heads, words), percent(arcs, words)))
    return tuple(rows)
