"""The possible antecedents of each mention: sieves over the arcs of a document.

Most of the M^2 / 2 arcs of a document are not worth scoring. As with the sieves of Lee et al. 2011, from which the
systems of Fernandes et al. 2012 take their candidate arcs, an arc is kept if any sieve lets it through:

    near      the antecedent is one of the previous `mentions`
    pronoun   the mention is a pronoun, and the antecedent is at most `sentences` back, or the same string
    match     neither is a pronoun, and core, head, a content word or the initials are the same, at any distance

Arcs only go forward, so the best arborescence of a document consists of each mention's best arc: there are no cycles to
break. The root is always possible. In training, if no sieve lets a right antecedent of a mention through, the nearest
right one is added, so that every gold cluster has a tree. O(M^2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headway.arrays import Bools, Ints
from headway.coreference.attributes import PRONOUN
from headway.coreference.coding import CodedDocument
from headway.coreference.pairs import Atoms, are_initials, pair_atoms, shared_words
from headway.inference.jit import kernel, part


@dataclass(frozen=True)
class Antecedents:
    """Arcs to the mentions of a document: those to m are start[m-1] to start[m], from the root, then ascending."""

    antecedent: Ints  # (K,) 0 is the root
    start: Ints  # (M+1,)
    atoms: Atoms  # (K, P)

    @property
    def mention(self) -> Ints:
        """(K,) the mention that each arc goes to."""
        return np.repeat(np.arange(1, len(self.start)), np.diff(self.start))


@dataclass(frozen=True)
class Sieves:
    """How many mentions back an antecedent may be that nothing else suggests; for pronouns, how many sentences."""

    mentions: int = 20
    sentences: int = 5

    def antecedents(self, coded: CodedDocument, clusters: Ints | None = None) -> Antecedents:
        """The arcs that a sieve lets through; with gold `clusters` (M,), also those that these need."""
        gold = np.zeros(0, np.int64) if clusters is None else clusters
        start = np.zeros(len(coded.sentence), np.int64)
        _sieve(coded, self.mentions, self.sentences, gold, start, np.zeros(0, np.int64))
        np.cumsum(start, out=start)
        antecedent = np.zeros(int(start[-1]), np.int64)
        _sieve(coded, self.mentions, self.sentences, gold, start, antecedent)
        return Antecedents(antecedent, start, pair_atoms(coded, antecedent, start))


def right_arcs(antecedents: Antecedents, clusters: Ints) -> Bools:
    """Which arcs (K,) a tree of these clusters may have: within a cluster, and from the root to its first mention."""
    antecedent, mention = antecedents.antecedent, antecedents.mention
    is_first = np.zeros(len(clusters) + 1, np.bool_)
    is_first[1 + np.unique(clusters, return_index=True)[1]] = True
    cluster = np.concatenate(([-1], clusters))
    return np.where(antecedent == 0, is_first[mention], cluster[antecedent] == cluster[mention])


@kernel
def _sieve(d: CodedDocument, mentions: int, sentences: int, gold: Ints, start: Ints, antecedent: Ints) -> None:
    """Count each mention's antecedents in start[m]; if `antecedent` has room for them, list them there instead."""
    listing = len(antecedent) > 0
    sentence, kind, string, lemma, core, initials = d.sentence, d.kind, d.string, d.lemma, d.core, d.initials
    content, content_start = d.content, d.content_start
    for m in range(1, len(sentence)):
        found, nearest, is_kept = 1, 0, False
        for a in range(1, m):
            is_right = len(gold) > 0 and gold[a - 1] == gold[m - 1]
            if is_right:
                nearest = a
            if m - a <= mentions:
                passes = True
            elif kind[m] == PRONOUN:
                passes = sentence[m] - sentence[a] <= sentences or string[a] == string[m]
            elif kind[a] == PRONOUN:
                passes = False
            else:
                passes = _matches(lemma, core, initials, content, content_start, a, m)
            if passes:
                is_kept |= is_right
                if listing:
                    antecedent[start[m - 1] + found] = a
                found += 1
        if nearest > 0 and not is_kept:
            if listing:
                _insert(antecedent[start[m - 1] + 1 : start[m]], nearest)
            found += 1
        if not listing:
            start[m] = found


# Takes arrays, not the tuple that holds them: passing the tuple would count references to all its arrays per pair.
@part
def _matches(lemma: Ints, core: Ints, initials: Ints, content: Ints, content_start: Ints, a: int, m: int) -> bool:
    if lemma[a] == lemma[m] or core[a] == core[m]:
        return True
    return shared_words(content, content_start, a, m) > 1 or are_initials(initials, core, a, m)


@part
def _insert(row: Ints, value: int) -> None:
    """Insert into an ascending row whose last place is free."""
    i = len(row) - 1
    while i > 0 and row[i - 1] > value:
        row[i] = row[i - 1]
        i -= 1
    row[i] = value
