"""The scores of the CoNLL 2018 shared task on UD parsing (Zeman et al. 2018): the two files may have different words.

Gold and predicted files hold the same text apart from spaces, possibly cut into different tokens, words and sentences.
Each token is a span of characters. Words are aligned first, then arcs are compared through the alignment:

- words that are tokens are aligned if their spans are equal;
- around multiword tokens, take the smallest span that contains whole multiword tokens only; its words are aligned by a
  longest common subsequence of their lower-cased forms;
- an arc is right if its word is aligned and the two heads are aligned with each other, or are both the root. Labels are
  compared without their subtypes ("nmod:poss" is "nmod").

With `correct` of `gold` and `predicted` words: precision correct/predicted, recall correct/gold, F1 2 correct/(gold +
predicted), all in percent. CLAS is LAS over content words: those whose label is neither a function word's nor
punctuation's. As in the official scorer, a tree with a cycle, or with no root or several, is an error.

Where the description and the official scorer differ, we follow the scorer, to agree to the last digit: words left of a
span, or that reach beyond it, can take part in the span's alignment (`_span_start`, `_span_end`).

O(words) time, except for the alignment within a span, O(gold words * predicted words). The files are read in step and
scored piece by piece. A piece ends where sentences end in both files after equal last tokens; from there on the
scorer's state does not depend on what came before. So memory is flat unless the files never agree on a last token.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from headway.errors import EvaluationError
from headway.evaluation.pairing import Source, tree_of, two_sources
from headway.treebank import Sentence
from headway.treebank.annotations import multiword_tokens

_CORE = {"nsubj", "obj", "iobj", "csubj", "ccomp", "xcomp"}
_NON_CORE = {"obl", "vocative", "expl", "dislocated", "advcl", "advmod", "discourse"}
_NOMINAL = {"nmod", "appos", "nummod", "acl", "amod"}
_LOOSE = {"conj", "fixed", "flat", "compound", "list", "parataxis", "orphan", "goeswith", "reparandum", "root", "dep"}
_CONTENT = _CORE | _NON_CORE | _NOMINAL | _LOOSE
_ROOT = -1
_SIDES = ("correct", "gold", "predicted")
_LARGEST_TABLE = 10_000_000  # cells of an alignment; real multiword spans have dozens

Alignment: TypeAlias = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class F1:
    """`correct` words out of `gold` and `predicted` ones; precision, recall and F1 in percent, 0 out of nothing.

    >>> score = F1(correct=3, gold=4, predicted=6)
    >>> score.precision, score.recall, score.f1
    (50.0, 75.0, 60.0)
    """

    correct: int
    gold: int
    predicted: int

    @property
    def precision(self) -> float:
        return _percent(self.correct, self.predicted)

    @property
    def recall(self) -> float:
        return _percent(self.correct, self.gold)

    @property
    def f1(self) -> float:
        return _percent(2 * self.correct, self.gold + self.predicted)


@dataclass(frozen=True, slots=True)
class Conll2018Scores:
    """How many tokens and sentences have the same characters; how many words are aligned, and how many of these have
    the right tag (UPOS), the right head (UAS), and label too (LAS, CLAS).
    """

    tokens: F1
    sentences: F1
    words: F1
    upos: F1
    uas: F1
    las: F1
    clas: F1

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Counts and percentages of each score, ready for `json.dumps`."""
        names = ("correct", "gold", "predicted", "precision", "recall", "f1")
        scores = {each.name: getattr(self, each.name) for each in fields(self)}
        return {key: {name: getattr(score, name) for name in names} for key, score in scores.items()}


def evaluate_conll2018(gold: Source, predicted: Source) -> Conll2018Scores:
    """Compare two treebanks of the same text, whose tokens may differ, by the rules of CoNLL 2018.

    >>> from headway.treebank import Sentence
    >>> gold = Sentence.from_words(["can", "not", "go"], heads=[-1, 3, 3, 0], labels=[None, "aux", "advmod", "root"])
    >>> predicted = Sentence.from_words(["cannot", "go"], heads=[-1, 2, 0], labels=[None, "aux", "root"])
    >>> scores = evaluate_conll2018([gold], [predicted])
    >>> scores.words.correct, scores.las.recall, scores.las.precision, scores.las.f1
    (1, 33.33333333333333, 50.0, 40.0)
    """
    counts: Counter[str | tuple[str, str]] = Counter()
    for piece in _pieces(*(_Side(sentences) for sentences in two_sources(gold, predicted))):
        counts.update(_counts(*piece))
    words = counts["gold"], counts["predicted"]
    if words[0] == 0:
        raise EvaluationError("the gold treebank has no words; there is nothing to evaluate")
    return Conll2018Scores(
        tokens=F1(*(counts["tokens", which] for which in _SIDES)),
        sentences=F1(*(counts["sentences", which] for which in _SIDES)),
        words=F1(counts["aligned"], *words),
        upos=F1(counts["tags"], *words),
        uas=F1(counts["heads"], *words),
        las=F1(counts["arcs"], *words),
        clas=F1(counts["content_arcs"], counts["content_gold"], counts["content_predicted"]),
    )


class _Word(NamedTuple):
    """A word over the characters start..end (of its token, if that is a multiword token)."""

    start: int
    end: int
    multiword: bool
    form: str  # lower case
    parent: int  # position of the head among the words of the piece, or _ROOT
    label: str  # without the subtype
    upos: str


@dataclass(frozen=True, slots=True)
class _Piece:
    """Words, and where tokens and sentences start and end, in characters."""

    words: list[_Word] = field(default_factory=list)
    tokens: list[tuple[int, int]] = field(default_factory=list)
    sentences: list[tuple[int, int]] = field(default_factory=list)


class _Side:
    """One treebank as it is read: the current piece, and the text not yet matched by the other side."""

    def __init__(self, sentences: Iterator[Sentence]) -> None:
        self._sentences = sentences
        self.piece = _Piece()
        self.unmatched = ""
        self.end = 0  # characters read so far
        self.last_token = (0, 0)
        self.place = "the start"

    def read(self) -> bool:
        """Add the next sentence to the piece; False when there is none."""
        sentence = next(self._sentences, None)
        if sentence is None:
            return False
        self.place = str(sentence.place)
        heads, labels = _one_root_tree(sentence)
        piece, start, offset = self.piece, self.end, len(self.piece.words)
        multiword = {token.first: token for token in multiword_tokens(sentence)}
        last = 0  # word of the current token
        for m, form in enumerate(sentence.forms, start=1):
            if m > last:
                token = multiword.get(m)
                text, last = (_without_spaces(token.form), token.last) if token else (_without_spaces(form), m)
                if not text:
                    raise EvaluationError(f"{self.place}: the form of word {m} consists of spaces; give it a form")
                self.last_token = self.end, self.end + len(text)
                piece.tokens.append(self.last_token)
                self.unmatched += text
                self.end += len(text)
            lower = form.lower() if token else text.lower()  # the words of a multiword token keep their spaces
            parent = offset + heads[m] - 1 if heads[m] else _ROOT
            label, upos = labels[m].split(":")[0], sentence.upos[m - 1]
            piece.words.append(_Word(*self.last_token, token is not None, lower, parent, label, upos))
        if len(sentence):
            piece.sentences.append((start, self.end))
        return True


def _counts(one_side: _Piece, other_side: _Piece) -> dict[str | tuple[str, str], int]:
    """The counts of one piece, of all words and of content words."""
    gold, predicted = one_side.words, other_side.words
    pairs = align(gold, predicted)
    partner = {p: g for g, p in pairs} | {_ROOT: _ROOT}
    heads = [(gold[g], predicted[p]) for g, p in pairs if partner.get(predicted[p].parent) == gold[g].parent]
    arcs = [one for one, other in heads if one.label == other.label]
    spans = {
        "tokens": (one_side.tokens, other_side.tokens),
        "sentences": (one_side.sentences, other_side.sentences),
    }
    return {
        **{(name, "correct"): len(set(ours) & set(theirs)) for name, (ours, theirs) in spans.items()},
        **{
            (name, which): len(each) for name, own in spans.items() for which, each in zip(_SIDES[1:], own, strict=True)
        },
        "tags": sum(gold[g].upos == predicted[p].upos for g, p in pairs),
        "gold": len(gold),
        "predicted": len(predicted),
        "aligned": len(pairs),
        "heads": len(heads),
        "arcs": len(arcs),
        "content_gold": sum(word.label in _CONTENT for word in gold),
        "content_predicted": sum(word.label in _CONTENT for word in predicted),
        "content_arcs": sum(word.label in _CONTENT for word in arcs),
    }


def _pieces(gold: _Side, predicted: _Side) -> Iterator[tuple[_Piece, _Piece]]:
    """The pieces of both sides, cut where the alignment to the left cannot affect the alignment to the right."""
    while True:
        behind, ahead = (gold, predicted) if gold.end <= predicted.end else (predicted, gold)
        if not behind.read():
            break
        _match_text(gold, predicted)
        if gold.last_token == predicted.last_token:
            yield gold.piece, predicted.piece
            gold.piece, predicted.piece = _Piece(), _Piece()
    while ahead.end == behind.end and ahead.read():
        pass
    if ahead.end > behind.end:
        raise EvaluationError(
            f"{ahead.place}: the other treebank has ended, but here the text continues with {ahead.unmatched[:20]!r}; "
            "give two files of the same text"
        )
    yield gold.piece, predicted.piece


def _match_text(gold: _Side, predicted: _Side) -> None:
    """Remove the text that both sides have."""
    shared = min(len(gold.unmatched), len(predicted.unmatched))
    if gold.unmatched[:shared] != predicted.unmatched[:shared]:
        pairs = zip(gold.unmatched, predicted.unmatched, strict=False)
        at = next(i for i, (a, b) in enumerate(pairs) if a != b)
        here, there = (side.unmatched[at : at + 20] for side in (gold, predicted))
        raise EvaluationError(
            f"{gold.place} and {predicted.place}: the texts differ, gold continues with {here!r}, "
            f"predicted with {there!r}; give two files of the same text"
        )
    gold.unmatched, predicted.unmatched = gold.unmatched[shared:], predicted.unmatched[shared:]


def _one_root_tree(sentence: Sentence) -> tuple[list[int], list[str]]:
    """Heads and labels by node; the tree must have one root."""
    heads, labels = tree_of(sentence)
    roots = heads.count(0)
    if roots != 1 and len(sentence) > 0:
        raise EvaluationError(
            f"{sentence.place}: the tree has {roots} roots, but CoNLL 2018 scores trees with one root; "
            "parse with a single root, or leave out --conll2018 (use evaluate)"
        )
    return heads, labels


@lru_cache(maxsize=1 << 16)
def _without_spaces(form: str) -> str:
    return "".join(character for character in form if unicodedata.category(character) != "Zs")


def align(gold: Sequence[_Word], predicted: Sequence[_Word]) -> Alignment:
    """Pairs of positions (in gold, in predicted) of aligned words, in order."""
    pairs: Alignment = []
    g = p = 0
    while g < len(gold) and p < len(predicted):
        one, other = gold[g], predicted[p]
        if one.multiword or other.multiword:
            first_g, first_p = _span_start(one, other, g, p)
            g, p = _span_end(gold, predicted, first_g, first_p, one.end if one.multiword else other.end)
            pairs += _common_subsequence(gold[first_g:g], predicted[first_p:p], first_g, first_p)
        elif (one.start, one.end) == (other.start, other.end):
            pairs.append((g, p))
            g, p = g + 1, p + 1
        elif one.start <= other.start:
            g += 1
        else:
            p += 1
    return pairs


def _span_start(one: _Word, other: _Word, g: int, p: int) -> tuple[int, int]:
    """Skip a plain word that begins left of the multiword token on the other side.

    The official scorer skips one word, never more. So after a long token on one side, further words left of the span
    are included in it.
    """
    if one.multiword:
        return g, p + (not other.multiword and other.start < one.start)
    return g + (one.start < other.start), p


def _span_end(gold: Sequence[_Word], predicted: Sequence[_Word], g: int, p: int, end: int) -> tuple[int, int]:
    """The positions after the span, which ends at character `end` or where the last of its multiword tokens does.

    Words are included in the order of their starts until both sides are beyond the end. As in the official scorer, a
    plain word that reaches beyond the end is included if the other side is not yet beyond it.
    """
    while not (_is_beyond(gold, g, end) and _is_beyond(predicted, p, end)):
        from_gold = g < len(gold) and (p == len(predicted) or gold[g].start <= predicted[p].start)
        word = gold[g] if from_gold else predicted[p]
        if word.multiword:
            end = max(end, word.end)
        g, p = (g + 1, p) if from_gold else (g, p + 1)
    return g, p


def _is_beyond(words: Sequence[_Word], position: int, end: int) -> bool:
    """Is the word outside a span that ends at `end`? A word of a multiword token counts as the whole token."""
    if position == len(words):
        return True
    word = words[position]
    return word.start >= end if word.multiword else word.end > end


def _common_subsequence(gold: Sequence[_Word], predicted: Sequence[_Word], first_g: int, first_p: int) -> Alignment:
    """A longest common subsequence of the forms; among several, the one that skips gold words first."""
    rows, columns = len(gold), len(predicted)
    if rows * columns > _LARGEST_TABLE:
        raise EvaluationError(
            f"{rows} gold and {columns} predicted words overlap in one chain of multiword tokens, too many to align; "
            "check the multiword tokens"
        )
    equal = [[one.form == other.form for other in predicted] for one in gold]
    longest = [[0] * (columns + 1) for _ in range(rows + 1)]  # of gold[g:] and predicted[p:]
    for g in reversed(range(rows)):
        for p in reversed(range(columns)):
            skipped = max(longest[g + 1][p], longest[g][p + 1])
            longest[g][p] = longest[g + 1][p + 1] + 1 if equal[g][p] else skipped
    pairs: Alignment = []
    g = p = 0
    while g < rows and p < columns:
        if equal[g][p]:
            pairs.append((first_g + g, first_p + p))
            g, p = g + 1, p + 1
        elif longest[g][p] == longest[g + 1][p]:
            g += 1
        else:
            p += 1
    return pairs


def _percent(part: int, whole: int) -> float:
    """A percentage, in the official scorer's order of operations: 100 times the share."""
    return 100 * (part / whole) if whole else 0.0
