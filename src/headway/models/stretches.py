"""Sentences of any length in bounded memory: a very long one is parsed in stretches.

A search takes memory that grows with the square of a sentence's length, and time that grows with its cube. A sentence
of more than `MOST_WORDS` words is therefore cut into stretches of at most so many, after a punctuation mark where there
is one in the second half of a stretch. Every stretch is parsed as a sentence, and so are the words on the stretches'
roots, as one sentence more: their heads and labels there join the stretches to one tree of the model's class. (Where a
tree may have several words on the root, the stretches' roots stay there.) The status is `IN_STRETCHES`: nothing is
proved of the whole tree.

Known heads are kept and forbidden arcs avoided in stretches, too, as far as stretches can: a head in another stretch
makes both words the roots of theirs, and a stretch has one.

Time and memory grow in proportion to the length. A model whose searches cost more than others says after how many words
to cut (`most_words`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature

import numpy as np
from numpy.typing import ArrayLike

from headway.arrays import Floats, Ints
from headway.errors import ArgumentError, NoTreeError, SizeError
from headway.inference.dual_decomposition import Status
from headway.inference.protocol import Distribution
from headway.models.constraints import Constraints, named, require_agreement, require_tree_under
from headway.models.labelling import NamedLabels
from headway.models.protocol import Options, Prediction, TreeModel
from headway.parallel import Executor
from headway.treebank import Sentence
from headway.treebank.sentence import is_punctuation

MOST_WORDS = 1000


@dataclass(frozen=True)
class StretchedDistribution:
    """What is known of a tree that was joined from stretches: its probability, and its arcs' (n+1,), arcs[0] being 1.

    All marginals would be a matrix of n^2 numbers that nobody computed.
    """

    heads: Ints
    arcs: Floats
    log_probability: float

    @property
    def marginals(self) -> Floats:
        raise self._too_long()

    def argmax(self) -> Ints:
        """Heads (n+1,) of the tree."""
        return self.heads

    def log_prob(self, heads: ArrayLike) -> float:
        """log P of the tree itself: the sum of its stretches', and of the tree that joins them."""
        if not np.array_equal(heads, self.heads):
            raise self._too_long()
        return self.log_probability

    def _too_long(self) -> SizeError:
        return SizeError(
            f"a sentence of {len(self.heads) - 1} words is parsed in stretches, and has probabilities for its own arcs "
            "only (confidence); split it for more"
        )


def arc_probabilities(distribution: Distribution, heads: Ints) -> Floats:
    """P(head -> word) of every word of the predicted tree, (n+1,); 1 for the root."""
    if isinstance(distribution, StretchedDistribution):
        return distribution.arcs
    arcs = np.ones(len(heads))
    arcs[1:] = distribution.marginals[heads[1:], np.arange(1, len(heads))]
    return arcs


def predict_any_length(
    model: TreeModel,
    sentences: Sequence[Sentence],
    options: Options,
    executor: Executor,
    constraints: Sequence[Constraints | None] | None = None,
) -> list[Prediction]:
    """The trees of some sentences, in their order; an error names the words where no tree meets the constraints."""
    given = [None] * len(sentences) if constraints is None else list(constraints)
    if any(given):
        _require_constrainable(model)
    most = most_words(model)
    for sentence, own in zip(sentences, given, strict=True):
        if own is not None:
            check = require_tree_under if len(sentence) <= most else require_agreement
            check(sentence, own, model.trees)
    if all(len(sentence) <= most for sentence in sentences):
        found = _predicted(model, sentences, options, executor, given)
    else:
        short = [i for i, sentence in enumerate(sentences) if len(sentence) <= most]
        some = [sentences[i] for i in short], options, executor, [given[i] for i in short]
        rest = iter(_predicted(model, *some))
        found = [
            next(rest) if len(sentence) <= most else _joined(model, sentence, options, executor, own)
            for sentence, own in zip(sentences, given, strict=True)
        ]
    return list(map(_with_known_labels, found, given))


def _predicted(
    model: TreeModel,
    sentences: Sequence[Sentence],
    options: Options,
    executor: Executor,
    constraints: Sequence[Constraints | None],
) -> list[Prediction]:
    """Where there are no constraints, a model need not know that there could be."""
    if not any(constraints):
        return model.predict(sentences, options, executor)
    return model.predict(sentences, options, executor, constraints)


def _require_constrainable(model: TreeModel) -> None:
    if "constraints" not in signature(model.predict).parameters:
        raise ArgumentError(
            f"a model of the kind {model.kind} cannot keep given heads or avoid arcs, as its predict takes no "
            "constraints; parse without them, or with another kind of model"
        )


def _with_known_labels(found: Prediction, given: Constraints | None) -> Prediction:
    if given is None:
        return found
    labels = given.labelled(NamedLabels(found.labels, found.label_probabilities))
    return replace(found, labels=labels.names, label_probabilities=labels.probabilities)


def most_words(model: TreeModel) -> int:
    """The longest sentence that is parsed as one."""
    return min(MOST_WORDS, getattr(model, "most_words", MOST_WORDS))


def _joined(
    model: TreeModel, sentence: Sentence, options: Options, executor: Executor, given: Constraints | None
) -> Prediction:
    n, cuts = len(sentence), list(_stretches(sentence, most_words(model)))
    seconds = None if options.seconds is None else options.seconds / (len(cuts) + 1)
    own = replace(options, seconds=seconds)
    apart = None if given is None else _apart(sentence, cuts, given, model.trees.single_root)
    tree = _Tree(n)
    try:
        for start in range(0, len(cuts), executor.workers):
            some = cuts[start : start + executor.workers]
            parts = [_words(sentence, words) for words in some]
            limits = None if apart is None else [apart.among(words) for words in some]
            for words, found in zip(some, predict_any_length(model, parts, own, executor, limits), strict=True):
                tree.add(words, found)
        roots = np.flatnonzero(tree.heads == 0)
        if model.trees.single_root:
            limits = None if given is None else [given.among(roots)]
            [found] = predict_any_length(model, [_words(sentence, roots)], own, executor, limits)
            tree.add(roots, found)
    except NoTreeError:
        if given is None:
            raise
        raise _not_apart(sentence, cuts, "the forbidden arcs leave no tree; allow some") from None
    return tree.prediction()


def _apart(sentence: Sentence, cuts: Sequence[Ints], given: Constraints, single_root: bool) -> Constraints:
    """What every stretch must heed: where a head is in another stretch, both words are on the roots of theirs.

    With a single root, being on that of a stretch is not yet being on the sentence's, so it is never forbidden.
    """
    stretch = np.repeat(np.arange(len(cuts) + 1), [1, *map(len, cuts)])  # the root's is 0
    heads = given.heads.copy()
    words = np.flatnonzero(heads > 0)
    words = words[stretch[words] != stretch[heads[words]]]
    above = heads[words]
    heads[words] = 0
    inner = heads[above] > 0
    heads[above[~inner]] = 0
    crowded = np.bincount(stretch[heads == 0], minlength=len(cuts) + 1) > 1
    wrong = inner | crowded[stretch[words]] | crowded[stretch[above]] | (not single_root)
    if wrong.any():
        m, h = int(words[wrong][0]), int(above[wrong][0])
        kept = f"{named(sentence, h)} cannot be kept as the head of {named(sentence, m)}, which is in another stretch"
        raise _not_apart(sentence, cuts, f"{kept}; leave that head open")
    forbidden = tuple((h, m) for h, m in given.forbidden if h or not single_root)
    return Constraints(heads, None, forbidden)


def _not_apart(sentence: Sentence, cuts: Sequence[Ints], cause: str) -> SizeError:
    most = max(map(len, cuts))
    return SizeError(
        f"a sentence of {len(sentence)} words is parsed in stretches of at most {most}, and {cause}, or split the "
        "sentence"
    )


class _Tree:
    """A tree of n words that is put together."""

    def __init__(self, n: int) -> None:
        self.heads = np.full(n + 1, -1, np.int64)
        self._labels: list[str | None] = [None] * (n + 1)
        self._label_probabilities: Floats | None = None
        self._arcs = np.ones(n + 1)
        self._log_probability = 0.0
        self._floored = np.zeros(2, np.int64)
        self._columns: dict[str, list[str]] = {}

    def add(self, words: Ints, found: Prediction) -> None:
        """The tree of some words, which are on the root or not yet in the tree."""
        nodes = np.concatenate([[0], words])
        if (self.heads[words] < 0).all():  # a stretch, whose words know their neighbours
            self._keep(words, found.columns or {})
        self.heads[words] = nodes[found.heads[1:]]
        self._arcs[words] *= arc_probabilities(found.distribution, found.heads)[1:]
        self._log_probability += float(found.distribution.log_prob(found.heads))
        self._floored += found.floored
        if found.labels is not None:
            for word, label in zip(words.tolist(), found.labels[1:], strict=True):
                self._labels[word] = label
        if found.label_probabilities is not None:
            if self._label_probabilities is None:
                self._label_probabilities = np.ones(len(self.heads))
            self._label_probabilities[words] = found.label_probabilities[1:]

    def _keep(self, words: Ints, columns: Mapping[str, tuple[str, ...]]) -> None:
        for name, column in columns.items():
            kept = self._columns.setdefault(name, ["_"] * (len(self.heads) - 1))
            kept[words[0] - 1 : words[-1]] = column

    def prediction(self) -> Prediction:
        labels = None if self._labels[-1] is None else tuple(self._labels)
        negative, tiny = self._floored.tolist()
        return Prediction(
            self.heads,
            labels,
            StretchedDistribution(self.heads, self._arcs, self._log_probability),
            Status.IN_STRETCHES,
            np.inf,
            (negative, tiny),
            {name: tuple(column) for name, column in self._columns.items()} or None,
            self._label_probabilities,
        )


def _stretches(sentence: Sentence, length: int) -> Iterator[Ints]:
    """The words of each stretch."""
    start, n = 1, len(sentence)
    while n - start >= length:
        most = start + length
        ends = (stop for stop in range(most, start + length // 2, -1) if is_punctuation(sentence.forms[stop - 2]))
        stop = next(ends, most)
        yield np.arange(start, stop)
        start = stop
    yield np.arange(start, n + 1)


def _words(sentence: Sentence, words: Ints) -> Sentence:
    """Some words of a sentence as a sentence, without a tree."""

    def some(column: tuple[str, ...]) -> list[str]:
        return [column[m - 1] for m in words.tolist()]

    made = Sentence.from_words(
        some(sentence.forms),
        lemmas=some(sentence.lemmas),
        upos=some(sentence.upos),
        xpos=some(sentence.xpos),
        feats=some(sentence.feats),
    )
    return replace(made, place=sentence.place)
