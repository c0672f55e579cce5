"""Which spans of a tree may be mentions, and what is known of each: the candidates of `mention_finder`.

A candidate belongs to a word h. It covers h, the subtrees of some of its nearest children on the left, and those of
some on the right: a subtree without its relative clause, a noun without its preposition, a coordination or its first
conjunct. On the right, the subtree beside that of h counts as one more child, because parsers often attach a modifier
too high. Subtrees with gaps end the list, and so does the number MOST. So a word with l and r children has at most
(l + 1)(r + 2) candidates, and never more than (MOST + 1)(MOST + 2).

Each has a row of numbers: the FIELDS of the words that matter, NODES, and the ATOMS of the span.

    h  its head             g  the head of h
    f  first word           l  last word            b  the word before     a  the word after
    x  the outermost left child inside              u  the next left child, which is left out
    y  the outermost right child inside             v  the next right child, which is left out
    p  the first word of y's subtree                q  the first word of v's subtree

    length    in words, binned             rest   which ends leave out a child: left, right
    rule      `tree_mentions` has it       side   the subtree beside is inside
    lefts, rights, outer_lefts, outer_rights    the relations of the children inside and left out, as sets

Fields are hashed, 0 where there is no such word. Time is linear in the candidates, apart from walks up the tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from zlib import crc32

import numpy as np

from headway.arrays import Ints
from headway.coreference.attributes import features_of
from headway.coreference.coding import governors
from headway.coreference.mentions import tree_mentions
from headway.inference.jit import kernel, part
from headway.treebank import Sentence, require_tree
from headway.treebank.trees import children_of

NODES = ("h", "g", "f", "l", "b", "a", "x", "u", "y", "v", "p", "q")
FIELDS = (
    *("form", "lemma", "upos", "xpos", "label", "pronoun", "number", "suffix", "capital"),
    *("count", "others", "determiner", "case", "predicate"),
)
ATOMS = ("length", "rest", "rule", "side", "lefts", "rights", "outer_lefts", "outer_rights")
SPAN_NAMES = (*(f"{node}.{field}" for node in NODES for field in FIELDS), *(f"s.{atom}" for atom in ATOMS))

MOST = 12  # children on one side: no real mention has more
_NOMINAL = frozenset({"NOUN", "PROPN", "PRON", "NUM"})
_RELATIONS = (
    *("acl", "advcl", "advmod", "amod", "appos", "aux", "case", "cc", "ccomp", "clf", "compound", "conj", "cop"),
    *("csubj", "dep", "det", "discourse", "dislocated", "expl", "fixed", "flat", "goeswith", "iobj", "list", "mark"),
    *("nmod", "nsubj", "nummod", "obj", "obl", "orphan", "parataxis", "punct", "reparandum", "root", "vocative"),
    "xcomp",
)
_BIT = {relation: 1 << i for i, relation in enumerate(_RELATIONS)}
_OTHER = 1 << len(_RELATIONS)


class SpanRows(NamedTuple):
    """Words numbered from 0 through a document of W words, and K candidates; word W is none."""

    fields: Ints  # (W+1, FIELDS)
    nodes: Ints  # (K, NODES)
    atoms: Ints  # (K, ATOMS)


@dataclass(frozen=True)
class Spans:
    """The candidates of a document; those of sentence s are start[s] to start[s+1]."""

    rows: SpanRows
    start: Ints
    offsets: Ints  # (S+1,) the first word of each sentence

    def of(self, sentence: int) -> SpanRows:
        """The candidates of one sentence."""
        some = slice(int(self.start[sentence]), int(self.start[sentence + 1]))
        return SpanRows(self.rows.fields, self.rows.nodes[some], self.rows.atoms[some])

    def words(self) -> Iterator[tuple[int, int, int]]:
        """The sentence, first and last word of each, numbered from 1 in its sentence."""
        sentence = np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))
        first, last = (self.rows.nodes[:, 2:4] - self.offsets[sentence][:, None] + 1).T
        return zip(sentence.tolist(), first.tolist(), last.tolist(), strict=True)


def candidate_spans(sentences: Sequence[Sentence]) -> Spans:
    """The candidates of a document's sentences, which need trees, UPOS and DEPREL."""
    offsets = np.concatenate(([0], np.cumsum([len(sentence) for sentence in sentences]))).astype(np.int64)
    head = governors(sentences, offsets)
    low, high, whole = np.arange(len(head)), np.arange(len(head)), np.ones(len(head), np.int64)
    _extents(head, low, high, whole)
    bits = np.array([_bit(str(label)) for s in sentences for label in (s.labels or ())[1:]], np.int64)
    ends = np.repeat(offsets[1:], np.diff(offsets))
    starts = np.zeros(len(head) + 1, np.int64)
    nothing = np.zeros((0, 0), np.int64)
    _list(head, low, high, whole, bits, ends, starts, nothing, nothing)
    np.cumsum(starts, out=starts)
    nodes = np.zeros((int(starts[-1]), len(NODES)), np.int64)
    atoms = np.zeros((int(starts[-1]), len(ATOMS)), np.int64)
    _list(head, low, high, whole, bits, ends, starts, nodes, atoms)
    spans = Spans(SpanRows(_fields(sentences), nodes, atoms), starts[offsets], offsets)
    by_rule = {(m.sentence, m.words[0], m.words[-1]) for m in tree_mentions(sentences)}
    atoms[:, 2] = [words in by_rule for words in spans.words()]
    return spans


def _fields(sentences: Sequence[Sentence]) -> Ints:
    """(W+1, FIELDS) the fields of all words, and zeros for none."""
    counts: Counter[tuple[str, str]] = Counter()
    others: Counter[str] = Counter()  # as nominals that stand on their own
    for sentence in sentences:
        for lemma, tag, label in zip(sentence.lemmas, sentence.upos, (sentence.labels or ())[1:], strict=True):
            counts[lemma, tag] += 1
            others[lemma] += tag in _NOMINAL and label != "compound"
    rows = [[*map(_hashed, words)] for s in sentences for words in _words(s, counts, others)]
    return np.array([*rows, [0] * len(FIELDS)], np.int64)


def _words(sentence: Sentence, counts: Counter[tuple[str, str]], others: Counter[str]) -> Iterator[tuple[str, ...]]:
    """The fields of each word."""
    children = children_of(require_tree(sentence).tolist())
    labels = ["", *map(str, (sentence.labels or ())[1:])]
    columns = zip(sentence.forms, sentence.lemmas, sentence.upos, sentence.xpos, sentence.feats, strict=True)
    for word, (form, lemma, upos, xpos, feats) in enumerate(columns, start=1):
        given = features_of(feats)
        below = {labels[child].partition(":")[0]: child for child in reversed(children[word])}
        lower = form.lower()
        yield (
            lower,
            lower if lemma == "_" else lemma.lower(),
            upos,
            xpos,
            labels[word],
            "".join(given.get(name, "_") for name in ("PronType", "Poss", "Case")),
            given.get("Number", "_"),
            lower[-3:],
            "1" if form[0].isupper() else "0",
            str(counts[lemma, upos].bit_length()),
            str((others[lemma] - (upos in _NOMINAL and labels[word] != "compound")).bit_length()),
            _lemma_at(sentence, below.get("det")) if "nmod" not in below else "nmod",
            _lemma_at(sentence, below.get("case")),
            f"{'cop' in below} {'nsubj' in below or 'csubj' in below}",
        )


def _lemma_at(sentence: Sentence, word: int | None) -> str:
    return "" if word is None else sentence.lemmas[word - 1].lower()


@lru_cache(maxsize=1 << 16)
def _hashed(text: str) -> int:
    return crc32(text.encode()) + 1


@lru_cache(maxsize=1 << 10)
def _bit(label: str) -> int:
    return _BIT.get(label.partition(":")[0], _OTHER)


@kernel
def _extents(head: Ints, low: Ints, high: Ints, size: Ints) -> None:
    """The first and last word of each subtree, and how many words it has."""
    for word in range(len(head)):
        above = head[word]
        while above >= 0:
            low[above] = min(low[above], word)
            high[above] = max(high[above], word)
            size[above] += 1
            above = head[above]


@kernel
def _list(
    head: Ints, low: Ints, high: Ints, size: Ints, bits: Ints, ends: Ints, start: Ints, nodes: Ints, atoms: Ints
) -> None:
    """Count each word's candidates in start[h+1]; if `nodes` has room for them, list them there instead."""
    listing = len(nodes) > 0
    count = len(head)
    left, right = np.empty(count + 1, np.int64), np.empty(count + 2, np.int64)
    for h in range(count):
        lefts = _children(head, h, -1, low[h], left)
        usable_lefts = _adjacent(low, high, size, h, -1, left, min(lefts, MOST))
        rights = _children(head, h, 1, high[h], right)
        usable_rights = _adjacent(low, high, size, h, 1, right, min(rights, MOST))
        sides = 0
        edge = high[right[rights - 1]] if rights > 0 else h
        if usable_rights == rights and edge == high[h] and head[h] >= 0:
            beside = _beside(head, low, high, size, h, ends[h])
            if beside >= 0:
                right[rights] = beside
                sides = 1
        if not listing:
            start[h + 1] = (usable_lefts + 1) * (usable_rights + sides + 1)
            continue
        k = start[h]
        for i in range(usable_lefts + 1):
            for j in range(usable_rights + sides + 1):
                _fill(head, low, high, bits, ends, h, left, lefts, i, right, rights, j, nodes[k], atoms[k])
                k += 1


@part
def _children(head: Ints, h: int, step: int, last: int, found: Ints) -> int:
    """The children of h on one side, nearest first; returns how many."""
    count = 0
    word = h + step
    while word * step <= last * step:
        if head[word] == h:
            found[count] = word
            count += 1
        word += step
    return count


@part
def _adjacent(low: Ints, high: Ints, size: Ints, h: int, step: int, children: Ints, count: int) -> int:
    """How many of the children's subtrees, nearest first, have no gaps in them and before them."""
    edge = h
    for i in range(count):
        child = children[i]
        near, far = (low[child], high[child]) if step > 0 else (high[child], low[child])
        if near != edge + step or high[child] - low[child] + 1 != size[child]:
            return i
        edge = far
    return count


@part
def _beside(head: Ints, low: Ints, high: Ints, size: Ints, h: int, end: int) -> int:
    """The word with the same head as h whose subtree begins where that of h ends; -1 if there is none."""
    word = int(high[h]) + 1
    if word >= end:
        return -1
    while head[word] >= 0 and head[word] != head[h]:
        word = head[word]
    if head[word] != head[h] or low[word] != high[h] + 1 or high[word] - low[word] + 1 != size[word]:
        return -1
    return word


@part
def _fill(
    head: Ints,
    low: Ints,
    high: Ints,
    bits: Ints,
    ends: Ints,
    h: int,
    left: Ints,
    lefts: int,
    i: int,
    right: Ints,
    rights: int,
    j: int,
    nodes: Ints,
    atoms: Ints,
) -> None:
    """The nodes and atoms of the candidate with i children on the left and j on the right."""
    none = len(head)
    first = low[left[i - 1]] if i > 0 else h
    last = high[right[j - 1]] if j > 0 else h
    nodes[0] = h
    nodes[1] = head[h] if head[h] >= 0 else none
    nodes[2], nodes[3] = first, last
    nodes[4] = first - 1 if first > 0 and ends[first - 1] == ends[first] else none
    nodes[5] = last + 1 if last + 1 < ends[last] else none
    nodes[6] = left[i - 1] if i > 0 else none
    nodes[7] = left[i] if i < lefts else none
    nodes[8] = right[j - 1] if j > 0 else none
    nodes[9] = right[j] if j < rights else none
    nodes[10] = low[right[j - 1]] if j > 0 else none
    nodes[11] = low[right[j]] if j < rights else none
    atoms[0] = _length_bin(last - first + 1)
    atoms[1] = 1 + (i < lefts) + 2 * (j < rights)
    atoms[3] = j > rights
    for c in range(lefts):
        atoms[4 if c < i else 6] |= bits[left[c]]
    for c in range(min(max(rights, j), rights + 1)):
        atoms[5 if c < j else 7] |= bits[right[c]]


@part
def _length_bin(length: int) -> int:
    """1, 2, 3, 4, 5-7, 8-12, 13 and more."""
    if length <= 4:
        return length
    return 5 if length <= 7 else 6 if length <= 12 else 7
