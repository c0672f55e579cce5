"""Coreference scores from the papers' definitions, by loops over mentions, pairs and permutations, in fractions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, permutations

Partition = Sequence[frozenset[str]]
Share = tuple[Fraction, Fraction]  # numerator and denominator of a recall
Figures = tuple[Fraction, Fraction, Fraction]  # recall, precision, F1

NAMES = ("mentions", "muc", "b_cubed", "ceaf_m", "ceaf_e", "blanc", "lea")


def score(documents: Sequence[tuple[Partition, Partition]]) -> dict[str, Figures]:
    """Recall, precision and F1 of every metric, the counts of the documents summed first."""
    figures = {name: _figures(recall, documents) for name, recall in _RECALLS.items()}
    coreferent, other = figures.pop("coreferent"), figures.pop("other")
    key_has_coreferent = any(_coreferent(key) for key, _ in documents)
    key_has_other = any(_other(key) for key, _ in documents)
    if key_has_coreferent and key_has_other:
        recall, precision, f1 = ((c + n) / 2 for c, n in zip(coreferent, other, strict=True))
        figures["blanc"] = recall, precision, f1
    elif key_has_coreferent:
        figures["blanc"] = coreferent
    elif key_has_other:
        figures["blanc"] = other
    else:
        figures["blanc"] = Fraction(0), Fraction(0), Fraction(0)
    return figures


def _figures(
    recall: Callable[[Partition, Partition], Share], documents: Sequence[tuple[Partition, Partition]]
) -> Figures:
    forth = _total([recall(key, response) for key, response in documents])
    back = _total([recall(response, key) for key, response in documents])
    return forth, back, _f1(forth, back)


def _total(shares: Sequence[Share]) -> Fraction:
    above, below = sum(share[0] for share in shares), sum(share[1] for share in shares)
    return Fraction(above) / below if below else Fraction(0)


def _f1(recall: Fraction, precision: Fraction) -> Fraction:
    return 2 * recall * precision / (recall + precision) if recall + precision else Fraction(0)


def _mentions_of(partition: Partition) -> list[str]:
    return [mention for cluster in partition for mention in cluster]


def _cluster_of(mention: str, partition: Partition) -> frozenset[str]:
    return next((cluster for cluster in partition if mention in cluster), frozenset())


def _mentions(key: Partition, response: Partition) -> Share:
    found = [mention for mention in _mentions_of(key) if mention in _mentions_of(response)]
    return Fraction(len(found)), Fraction(len(_mentions_of(key)))


def _muc(key: Partition, response: Partition) -> Share:
    """A key cluster that the response has in p parts lacks p - 1 of its links; an unknown mention is a part."""
    above = below = 0
    for cluster in key:
        parts = {_cluster_of(mention, response) or mention for mention in cluster}
        above += len(cluster) - len(parts)
        below += len(cluster) - 1
    return Fraction(above), Fraction(below)


def _b_cubed(key: Partition, response: Partition) -> Share:
    mentions = _mentions_of(key)
    shares = []
    for mention in mentions:
        mine = _cluster_of(mention, key)
        shares.append(Fraction(len(mine & _cluster_of(mention, response)), len(mine)))
    return sum(shares, Fraction(0)), Fraction(len(mentions))


def _ceaf_m(key: Partition, response: Partition) -> Share:
    best = max(sum(len(k & r) for k, r in alignment) for alignment in _alignments(key, response))
    return Fraction(best), Fraction(len(_mentions_of(key)))


def _ceaf_e(key: Partition, response: Partition) -> Share:
    best = max(
        sum((Fraction(2 * len(k & r), len(k) + len(r)) for k, r in alignment), Fraction(0))
        for alignment in _alignments(key, response)
    )
    return best, Fraction(len(key))


def _alignments(key: Partition, response: Partition) -> Iterator[list[tuple[frozenset[str], frozenset[str]]]]:
    few, many = sorted((key, response), key=len)
    return (list(zip(few, chosen, strict=True)) for chosen in permutations(many, len(few)))


def _coreferent(partition: Partition) -> set[frozenset[str]]:
    return {frozenset(pair) for cluster in partition for pair in combinations(cluster, 2)}


def _other(partition: Partition) -> set[frozenset[str]]:
    return {frozenset(pair) for pair in combinations(_mentions_of(partition), 2)} - _coreferent(partition)


def _lea(key: Partition, response: Partition) -> Share:
    right = set().union(*(_links(cluster) for cluster in response))
    above = sum(
        (Fraction(len(cluster) * len(_links(cluster) & right), len(_links(cluster))) for cluster in key), Fraction(0)
    )
    return above, Fraction(sum(map(len, key)))


def _links(cluster: frozenset[str]) -> set[frozenset[str]]:
    return {cluster} if len(cluster) == 1 else {frozenset(pair) for pair in combinations(cluster, 2)}


_RECALLS: dict[str, Callable[[Partition, Partition], Share]] = {
    "mentions": _mentions,
    "muc": _muc,
    "b_cubed": _b_cubed,
    "ceaf_m": _ceaf_m,
    "ceaf_e": _ceaf_e,
    "coreferent": lambda key, response: (
        Fraction(len(_coreferent(key) & _coreferent(response))),
        Fraction(len(_coreferent(key))),
    ),
    "other": lambda key, response: (Fraction(len(_other(key) & _other(response))), Fraction(len(_other(key)))),
    "lea": _lea,
}
