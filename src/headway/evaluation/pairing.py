"""Gold and predicted sentences side by side, from paths, open files or sentences in memory.

Both sides are read in step and nothing is kept, so files of any size are compared in flat memory. Whatever makes a
comparison meaningless is an error that names both places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from os import PathLike
from typing import IO, Any, TypeAlias, cast

from headway.errors import ArgumentError, EvaluationError
from headway.treebank import Sentence, read_treebank, require_tree

_Readable: TypeAlias = str | PathLike[str] | IO[Any]
Source: TypeAlias = _Readable | Iterable[Sentence]

_END = object()  # after the last sentence
_REMEDY = "give two files of the same words, or score words that differ with --conll2018 (evaluate_conll2018)"


def sentences_of(source: Source) -> Iterator[Sentence]:
    """The sentences of a path ("-" is standard input), of an open file, or of any iterable of sentences."""
    if isinstance(source, str | PathLike) or hasattr(source, "read"):
        return read_treebank(cast(_Readable, source))
    if not isinstance(source, Iterable):
        raise ArgumentError(f"expected a path, an open file or sentences, got {type(source).__name__}")
    return iter(source)


def two_sources(gold: Source, predicted: Source) -> tuple[Iterator[Sentence], Iterator[Sentence]]:
    """Open both sides; only one of them can be standard input."""
    if isinstance(gold, str) and gold == "-" == predicted:
        raise EvaluationError("gold and predicted are both standard input; give a file name for one of them")
    return sentences_of(gold), sentences_of(predicted)


def in_step(gold: Source, predicted: Source) -> Iterator[tuple[Sentence, Sentence]]:
    """Pairs of sentences with the same words, one with the gold tree and one with the predicted tree."""
    golds, predictions = two_sources(gold, predicted)
    last = ("its start", "its start")
    for one, other in zip_longest(golds, predictions, fillvalue=_END):
        for each in (one, other):
            if each is not _END and not isinstance(each, Sentence):
                raise ArgumentError(f"expected sentences, got {type(each).__name__} among them")
        if not isinstance(other, Sentence):
            raise _left_over(cast(Sentence, one), "gold", "predicted", last[1])
        if not isinstance(one, Sentence):
            raise _left_over(other, "predicted", "gold", last[0])
        require_same_words(one, other, _REMEDY)
        last = (str(one.place), str(other.place))
        yield one, other


def tree_of(sentence: Sentence) -> tuple[list[int], list[str]]:
    """Heads and labels by node, as plain lists; a sentence without a tree is an error, and so are heads that are none.

    >>> tree_of(Sentence.from_words(["Dogs", "bark"], heads=[-1, 2, 0], labels=[None, "nsubj", "root"]))
    ([-1, 2, 0], ['_', 'nsubj', 'root'])
    """
    if sentence.heads is None or sentence.labels is None:
        raise EvaluationError(f"{sentence.place}: the sentence has no heads; parse it, or annotate it, first")
    if sentence.heads[1:].min(initial=0) < 0:
        raise EvaluationError(f"{sentence.place}: some words have no heads; parse it, or annotate the rest, first")
    heads: list[int] = sentence.heads.tolist()
    if not _reach_the_root(heads):
        require_tree(sentence)  # its error names the words of the cycle
    return heads, [label or "_" for label in sentence.labels]


def _reach_the_root(heads: list[int]) -> bool:
    """Does every word? O(n) on a list, several times faster than an array for sentences of ordinary length.

    >>> _reach_the_root([-1, 2, 0]), _reach_the_root([-1, 2, 1])
    (True, False)
    """
    met_by = [0] * len(heads)  # the word whose walk up met this one first
    for start in range(1, len(heads)):
        word = start
        while word and not met_by[word]:
            met_by[word] = start
            word = heads[word]
        if word and met_by[word] == start:
            return False
    return True


def _left_over(sentence: Sentence, longer: str, shorter: str, last: str) -> EvaluationError:
    return EvaluationError(
        f"{sentence.place}: this {longer} sentence has no partner, the {shorter} treebank ends at {last}; "
        "give two files of the same text"
    )


def require_same_words(gold: Sentence, predicted: Sentence, remedy: str) -> None:
    """Refuse two sentences with different words; the error names the first, and ends with the remedy."""
    if gold.forms == predicted.forms:
        return
    if len(gold) != len(predicted):
        cause = f"{len(gold)} gold words, but {len(predicted)} predicted words"
    else:
        pairs = zip(gold.forms, predicted.forms, strict=True)
        m, (form, other) = next((m, pair) for m, pair in enumerate(pairs, 1) if pair[0] != pair[1])
        cause = f"word {m} is {form!r} in gold, but {other!r} in predicted"
    raise EvaluationError(f"{gold.place} and {predicted.place}: {cause}; {remedy}")
