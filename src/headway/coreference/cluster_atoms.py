"""What the cluster that an antecedent stands for says about an arc: atoms `c.` for the templates of `pair_features`.

For an arc from a to m, the cluster consists of the mentions before m that are in one cluster with a. A tree that scores
arcs by two mentions alone cannot see it, but choosing each mention's arc from left to right can (`left_to_right`). For
arcs from the root, every atom is 0.

    size       how many mentions, binned
    kinds      which kinds there are: pronouns, names, others
    numbers, genders, persons   the values so far
    number, gender, person      are there values like m's, and others?
    string, head, words         the best match between m and one of them, as in `pairs`; head also: with a name
    others     how many of m's kind, but no pronouns, have another head
    sentences, mentions         how far back the last of them is, binned
    last       a is the last of them
    talk       how the last pronoun's speaker and m's are related
    governors  one depends on the same word as m, or on the same lemma
    nested     m is within one of them

Sets are numbers with a bit for each element. O(M^2) for a document.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headway.arrays import Ints
from headway.coreference.antecedents import Antecedents
from headway.coreference.attributes import ATTRIBUTES, NAME, PRONOUN
from headway.coreference.coding import CodedDocument
from headway.coreference.pairs import Atoms, distance_bin, shared_words, talk_between
from headway.inference.jit import kernel, part

CLUSTER_ATOMS = (
    *("size", "kinds", "numbers", "genders", "persons", "number", "gender", "person", "string", "head", "words"),
    *("others", "sentences", "mentions", "last", "talk", "governors", "nested"),
)
_NUMBER, _GENDER, _PERSON = (ATTRIBUTES.index(name) for name in ("number", "gender", "person"))
_MOST = 9  # values of number, gender or person that are told apart; UD has fewer in any language
_LAST = len(CLUSTER_ATOMS)  # where a cluster's row has its last mention


def with_cluster_atoms(coded: CodedDocument, antecedents: Antecedents, clusters: Ints) -> Antecedents:
    """The same arcs, with the atoms (K, P + Q) of pairs and of these clusters (M,)."""
    atoms = np.zeros((len(antecedents.antecedent), len(CLUSTER_ATOMS)), np.int16)
    _describe_all(coded, antecedents.antecedent, antecedents.start, clusters, atoms)
    return replace(antecedents, atoms=np.hstack([antecedents.atoms, atoms]))


@kernel
def _describe_all(d: CodedDocument, antecedent: Ints, start: Ints, clusters: Ints, atoms: Atoms) -> None:
    rows = cluster_rows(len(clusters))
    for m in range(1, len(start)):
        gather_clusters(d, clusters, m, rows)
        for k in range(start[m - 1], start[m]):
            a = antecedent[k]
            if a > 0:
                describe_cluster(d, rows[clusters[a - 1]], a, m, atoms[k])


@part
def cluster_rows(count: int) -> Ints:
    """For what is known of each cluster: its atoms, and its last mention."""
    return np.zeros((count, _LAST + 1), np.int64)


@part
def gather_clusters(d: CodedDocument, clusters: Ints, m: int, rows: Ints) -> None:
    """What the clusters of the mentions before m have in common with m."""
    for a in range(1, m):
        rows[clusters[a - 1]] = 0
    for a in range(1, m):
        _join(d, a, m, rows[clusters[a - 1]])


@part
def describe_cluster(d: CodedDocument, row: Ints, a: int, m: int, out: Atoms) -> None:
    """The atoms of an arc from a, whose cluster has this row, to m."""
    for i in range(1, _LAST):
        out[i] = 1 + row[i]
    out[0] = 1 + distance_bin(row[0])
    out[11] = 1 + min(row[11], 2)
    last = row[_LAST]
    out[12] = 1 + distance_bin(d.sentence[m] - d.sentence[last])
    out[13] = 1 + distance_bin(m - last - 1)
    out[14] = 2 if last == a else 1


@part
def _join(d: CodedDocument, a: int, m: int, row: Ints) -> None:
    """Let a mention count in the row of its cluster."""
    row[0] += 1
    row[1] |= 1 if d.kind[a] == PRONOUN else 2 if d.kind[a] == NAME else 4
    row[2] |= 1 << min(d.codes[a, _NUMBER], _MOST)
    row[3] |= 1 << min(d.codes[a, _GENDER], _MOST)
    row[4] |= 1 << min(d.codes[a, _PERSON], _MOST)
    row[5] |= _like(d.number[a], d.number[m])
    row[6] |= _like(d.gender[a], d.gender[m])
    row[7] |= _like(d.person[a], d.person[m])
    if (d.kind[a] == PRONOUN) == (d.kind[m] == PRONOUN):
        row[8] = max(row[8], 3 if d.string[a] == d.string[m] else 2 if d.core[a] == d.core[m] else 1)
    if d.kind[a] != PRONOUN and d.kind[m] != PRONOUN:
        same_head = d.lemma[a] == d.lemma[m]
        row[9] = max(row[9], (3 if d.kind[a] == NAME else 2) if same_head else 1)
        row[10] = max(row[10], _rank(shared_words(d.content, d.content_start, a, m)))
        row[11] += d.kind[a] == d.kind[m] and not same_head
    talk = talk_between(d, a, m)
    if d.kind[a] == PRONOUN and d.person[a] > 0 and talk > 1:
        row[15] = talk
    if d.governor_lemma[a] == d.governor_lemma[m] and d.governor_lemma[m] > 0:
        row[16] = max(row[16], 1)
    if d.sentence[a] == d.sentence[m]:
        if d.governor[d.head[a]] == d.governor[d.head[m]]:
            row[16] = 2
        if d.first[a] <= d.first[m] and d.last[m] <= d.last[a]:
            row[17] = 1
    row[_LAST] = a


@part
def _like(x: int, y: int) -> int:
    """A set: 1 if both are known and the same, 2 if they differ."""
    if x <= 0 or y <= 0:
        return 0
    return 1 if x == y else 2


@part
def _rank(shared: int) -> int:
    """How good a match of content words is: none, some, all of a's, all of m's, all."""
    return 1 if shared == 1 else 2 if shared == 5 else 3 if shared == 4 else 4 if shared == 3 else 5
