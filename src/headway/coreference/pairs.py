"""How two mentions of a document compare: the atoms of a pair, small numbers that templates combine.

An arc goes from an antecedent a to a later mention m. For arcs from the root, every other atom is 0.

    root        the antecedent is the root
    string      same words; same core; other
    head        same lemma of the head; other
    words       content words: the same; all of m's in a; all of a's in m; some shared; none
    modifiers   if the heads match: how many content words of each the other lacks
    initials    one spells the other's initials
    sentences   the distance in sentences, binned;     mentions   how many mentions lie between, binned
    between     if the heads match: how many antecedents in between have the same head
    rivals      how many antecedents in between agree with m
    nested      m within a
    talk        how the speakers and addressees of the two are related
    number, gender, person, type    same; different; unknown
    syntax      how far up and down the tree of their sentence one goes from head to head
    path        the labels on that path, hashed
    governors   the heads' heads are the same word, or have the same lemma
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Ints
from headway.coreference.coding import CodedDocument
from headway.inference.jit import kernel, part

Atoms = NDArray[np.int16]

PAIR_ATOMS = (
    *("root", "string", "head", "words", "modifiers", "initials", "sentences", "mentions", "between", "rivals"),
    *("nested", "talk", "number", "gender", "person", "type", "syntax", "path", "governors"),
)
_LONGEST_PATH = 5
_MOST = 7  # rivals
_ODD = np.uint64(0x9E3779B97F4A7C15)  # after multiplying by it, the upper bits depend on the whole number


def pair_atoms(coded: CodedDocument, antecedent: Ints, start: Ints) -> Atoms:
    """The atoms (K, P) of arcs, in the order of `antecedents.Antecedents`."""
    atoms = np.zeros((len(antecedent), len(PAIR_ATOMS)), np.int16)
    _compare_all(coded, antecedent, start, atoms)
    return atoms


@kernel
def _compare_all(d: CodedDocument, antecedent: Ints, start: Ints, atoms: Atoms) -> None:
    for m in range(1, len(start)):
        alike = rivals = 0
        for k in range(start[m] - 1, start[m - 1] - 1, -1):
            a = antecedent[k]
            if a == 0:
                atoms[k, 0] = 1
                continue
            _compare(d, a, m, alike, rivals, atoms[k])
            alike += d.lemma[a] == d.lemma[m]
            rivals += _agree(d, a, m)


@part
def _compare(d: CodedDocument, a: int, m: int, alike: int, rivals: int, out: Atoms) -> None:
    same_head = d.lemma[a] == d.lemma[m]
    same_sentence = d.sentence[a] == d.sentence[m]
    out[1] = 3 if d.string[a] == d.string[m] else 2 if d.core[a] == d.core[m] else 1
    out[2] = 2 if same_head else 1
    out[3] = shared_words(d.content, d.content_start, a, m)
    out[4] = 2 + 3 * min(_lacking(d, m, a), 2) + min(_lacking(d, a, m), 2) if same_head else 1
    out[5] = 2 if are_initials(d.initials, d.core, a, m) else 1
    out[6] = 1 + distance_bin(d.sentence[m] - d.sentence[a])
    out[7] = 1 + distance_bin(m - a - 1)
    out[8] = 2 + min(alike, 2) if same_head else 1
    out[9] = 1 + min(rivals, _MOST)
    out[10] = _nested(d, a, m) if same_sentence else 1
    out[11] = talk_between(d, a, m)
    out[12] = _same(d.number[a], d.number[m])
    out[13] = _same(d.gender[a], d.gender[m])
    out[14] = _same(d.person[a], d.person[m])
    out[15] = _same(d.type[a], d.type[m])
    out[16], out[17] = _syntax(d.governor, d.label, d.head[a], d.head[m]) if same_sentence else (1, 1)
    out[18] = 1
    if same_sentence and d.governor[d.head[a]] == d.governor[d.head[m]]:
        out[18] = 3
    elif d.governor_lemma[a] == d.governor_lemma[m] and d.governor_lemma[m] > 0:
        out[18] = 2


@part
def distance_bin(distance: int) -> int:
    """0, 1, 2, 3, 4, 5-6, 7-9, 10-15, 16-30, 31-63, 64 and more."""
    if distance <= 4:
        return distance
    if distance <= 6:
        return 5
    if distance <= 9:
        return 6
    if distance <= 15:
        return 7
    if distance <= 30:
        return 8
    return 9 if distance <= 63 else 10


@part
def shared_words(content: Ints, start: Ints, a: int, m: int) -> int:
    """Content words shared: 1 none, 2 all, 3 all of m's, 4 all of a's, 5 some."""
    i, end_i = start[a], start[a + 1]
    j, end_j = start[m], start[m + 1]
    of_a, of_m, shared = end_i - i, end_j - j, 0
    while i < end_i and j < end_j:
        if content[i] == content[j]:
            shared += 1
            i += 1
            j += 1
        elif content[i] < content[j]:
            i += 1
        else:
            j += 1
    if shared == 0:
        return 1
    if shared == of_m:
        return 2 if shared == of_a else 3
    return 4 if shared == of_a else 5


@part
def _lacking(d: CodedDocument, a: int, m: int) -> int:
    """How many content words of a are not in m."""
    count = 0
    for i in range(d.content_start[a], d.content_start[a + 1]):
        found = False
        for j in range(d.content_start[m], d.content_start[m + 1]):
            found |= d.content[i] == d.content[j]
        count += not found
    return count


@part
def are_initials(initials: Ints, core: Ints, a: int, m: int) -> bool:
    """Does one mention spell the other's initials?"""
    if initials[a] > 0 and initials[a] == core[m]:
        return True
    return bool(initials[m] > 0 and initials[m] == core[a])


@part
def _nested(d: CodedDocument, a: int, m: int) -> int:
    """2 if m is within a. No mention is within a later one: of two that begin together, the longer is first."""
    return 2 if d.first[a] <= d.first[m] and d.last[m] <= d.last[a] else 1


@part
def talk_between(d: CodedDocument, a: int, m: int) -> int:
    """1: a speaker is unknown; 2-3: the same speaker, to the same addressee or another; 4-7: who speaks to whom."""
    if d.speaker[a] <= 0 or d.speaker[m] <= 0:
        return 1
    if d.speaker[a] == d.speaker[m]:
        return 2 if d.addressee[a] == d.addressee[m] else 3
    if d.speaker[a] == d.addressee[m]:
        return 4 if d.speaker[m] == d.addressee[a] else 5
    return 6 if d.speaker[m] == d.addressee[a] else 7


@part
def _same(x: int, y: int) -> int:
    """1: one is unknown; 2: the same; 3: different."""
    if x <= 0 or y <= 0:
        return 1
    return 2 if x == y else 3


@part
def _agree(d: CodedDocument, a: int, m: int) -> bool:
    """Nothing that is known about the two differs."""
    number, gender = _same(d.number[a], d.number[m]), _same(d.gender[a], d.gender[m])
    return number < 3 and gender < 3 and _same(d.person[a], d.person[m]) < 3


@part
def _syntax(governor: Ints, label: Ints, x: int, y: int) -> tuple[int, int]:
    """The path from word y up to the lowest common ancestor and down to x: its length and labels; 1 if too long."""
    path = np.uint64(17)
    node, up = y, 0
    down = _steps_up(governor, x, node)
    while down < 0:
        path = path * np.uint64(31) + np.uint64(label[node])
        node, up = governor[node], up + 1
        if node < 0 or up > _LONGEST_PATH:
            return 1, 1
        down = _steps_up(governor, x, node)
    if up + down > _LONGEST_PATH:
        return 1, 1
    top, node = node, x
    while node != top:
        path = path * np.uint64(37) + np.uint64(label[node]) + np.uint64(1)
        node = governor[node]
    mixed = (path * _ODD) >> np.uint64(49)  # 15 bits fit an atom
    return 2 + 4 * min(up, 3) + min(down, 3), int(mixed)


@part
def _steps_up(governor: Ints, word: int, ancestor: int) -> int:
    """How many heads above a word an ancestor is; -1 if it is not one, or too far."""
    for steps in range(_LONGEST_PATH + 1):
        if word == ancestor:
            return steps
        word = governor[word]
        if word < 0:
            return -1
    return -1
