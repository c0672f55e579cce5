"""Coreference scores: MUC, B-cubed, CEAF, BLANC, LEA, mention identification, the CoNLL average.

The key (gold) and the response (predicted) partition mentions into clusters K_i and R_j. Their mentions may differ: a
mention is right if the other side has an equal one. Nothing is added to or removed from either side, as Pradhan et al.
(2014) demand. With `o_ij = |K_i & R_j|`, `pairs(x) = x (x - 1) / 2`, and sums over cells where `o_ij > 0`, recall is

- mentions: `sum o_ij` of `sum |K_i|`;
- MUC (Vilain et al. 1995): `sum (o_ij - 1)` of `sum (|K_i| - 1)`;
- B-cubed (Bagga and Baldwin 1998): `sum o_ij^2 / |K_i|` of `sum |K_i|`;
- CEAF-m (Luo 2005, phi_3): the largest `sum o_ij` over the one-to-one alignments of clusters, of `sum |K_i|`;
- CEAF-e (Luo 2005, phi_4): the largest such `sum 2 o_ij / (|K_i| + |R_j|)`, of the number of clusters K_i;
- LEA (Moosavi and Strube 2016): `sum |K_i| pairs(o_ij) / pairs(|K_i|)` of `sum |K_i|`.

Precision is recall with the two sides exchanged; F1 is their harmonic mean. MUC's numerator is the paper's
`|K_i| - |parts of K_i|`, where a mention missing from the response is a part of its own. In LEA, a singleton (a cluster
of one mention) has one link, to itself, which is right if the mention is a singleton on the other side too.

BLANC (Recasens and Hovy 2011; Luo et al. 2014) scores two kinds of links: coreferent pairs, C_k and C_r, and the other
pairs of mentions of one side, N_k and N_r. Right are `C_k & C_r`, of which there are `sum pairs(o_ij)`, and
`N_k & N_r`, the pairs of common mentions that are coreferent on neither side. Each of BLANC's three figures is the mean
over the two kinds, so its F1 is not a harmonic mean. A kind missing from the *key* is left out, whatever the response
has: if the key has only singletons, BLANC is the score of N; if it has only one cluster, that of C. Since this depends
on the key alone, exchanging the sides need not exchange BLANC's figures.

Several documents: numerators and denominators are summed over the documents before dividing, as in the reference scorer
(v8.01, and its branch with LEA). For BLANC, the counts of the two kinds of links are summed first, and the sums decide
which kinds the key has. So large documents weigh more, and a document without links does no harm.

Degenerate inputs: 0/0 is 0, as in the reference scorer. So
- if a side has no mention, or there is no document, every figure is 0;
- if both sides have only singletons, MUC is 0 even if they agree, since there is no link to find, and the CoNLL average
  of a perfect response is 2/3; the other metrics are 1 if both sides agree;
- with a single mention that is found, MUC and BLANC are 0 (there is no pair), and the others are 1;
- an empty cluster does not count.

The reference scorer drops a repeated mention with a warning; here it is an `EvaluationError`. Figures are fractions
between 0 and 1. Time per document is O(mentions), plus at worst O(C^3) to align the C clusters that share mentions with
several others. Overlaps are counted from the mentions, never from pairs of clusters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from itertools import zip_longest
from typing import Any, TypeAlias

import numpy as np

from headway.arrays import Floats, Ints
from headway.coreference.documents import Document
from headway.errors import EvaluationError

Partition: TypeAlias = Iterable[Collection[Hashable]]

# the number of each mention's cluster, and the sizes of the clusters, (C,)
_Side: TypeAlias = tuple[dict[Hashable, int], Ints]

# numerator and denominator of recall, then of precision
_Counts: TypeAlias = tuple[float, float, float, float]

# the rows of the counts; BLANC has two, one for each kind of link
_ROWS = ("mentions", "muc", "b_cubed", "ceaf_m", "ceaf_e", "lea", "coreferent", "not_coreferent")


@dataclass(frozen=True, slots=True)
class Ratio:
    """Recall, precision and F1, between 0 and 1. F1 is stored because BLANC's is not the harmonic mean."""

    recall: float
    precision: float
    f1: float


@dataclass(frozen=True, slots=True)
class CoreferenceScores:
    """The scores of a number of `documents`."""

    documents: int
    mentions: Ratio
    muc: Ratio
    b_cubed: Ratio
    ceaf_m: Ratio
    ceaf_e: Ratio
    blanc: Ratio
    lea: Ratio

    @property
    def conll(self) -> float:
        """The average of the CoNLL 2011 and 2012 shared tasks: the mean F1 of MUC, B-cubed and CEAF-e."""
        return (self.muc.f1 + self.b_cubed.f1 + self.ceaf_e.f1) / 3

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for `json.dumps`; the number of documents and the CoNLL average come first."""
        ratios = [f.name for f in fields(self) if f.name != "documents"]
        return {
            "documents": self.documents,
            "conll": self.conll,
            **{name: asdict(getattr(self, name)) for name in ratios},
        }


def evaluate_coreference(pairs: Iterable[tuple[Partition, Partition]], *, singletons: bool = True) -> CoreferenceScores:
    """Score one (key, response) pair per document; `singletons=False` first removes singletons from both sides.

    The example of Pradhan et al. (2014), with letters as mentions and strings as clusters:

    >>> scores = evaluate_coreference([(["abc", "defg"], ["ab", "cd", "fghi"])])
    >>> for name in ("muc", "b_cubed", "ceaf_m", "ceaf_e", "blanc", "lea"):
    ...     score = getattr(scores, name)
    ...     print(f"{name:8}{score.recall:.3f} {score.precision:.3f} {score.f1:.3f}")
    muc     0.400 0.400 0.400
    b_cubed 0.417 0.500 0.455
    ceaf_m  0.571 0.500 0.533
    ceaf_e  0.650 0.433 0.520
    blanc   0.444 0.325 0.368
    lea     0.238 0.333 0.278
    >>> print(f"{scores.conll:.3f}")
    0.458
    """
    smallest = 1 if singletons else 2
    totals: Floats = np.zeros((len(_ROWS), 4))
    documents = 0
    for documents, (key, response) in enumerate(pairs, start=1):
        key_side = _numbered(key, f"document {documents}, key", smallest)
        response_side = _numbered(response, f"document {documents}, response", smallest)
        totals += _counts(_Overlap.of(key_side, response_side))
    sums = dict(zip(_ROWS, totals.tolist(), strict=True))
    blanc = _blanc(sums.pop("coreferent"), sums.pop("not_coreferent"))
    return CoreferenceScores(documents=documents, blanc=blanc, **{row: _ratio(*sums[row]) for row in sums})


def score_documents(
    gold: Iterable[Document], predicted: Iterable[Document], *, singletons: bool = True
) -> CoreferenceScores:
    """Score the clusters of predicted documents against those of the gold ones."""
    pairs = ((key.partition(), response.partition()) for key, response in paired_documents(gold, predicted))
    return evaluate_coreference(pairs, singletons=singletons)


def paired_documents(gold: Iterable[Document], predicted: Iterable[Document]) -> Iterator[tuple[Document, Document]]:
    """Pairs of documents with the same text; an error names the first pair that differs."""
    for number, (key, response) in enumerate(zip_longest(gold, predicted), start=1):
        if key is None or response is None:
            side = "gold" if response is None else "predicted"
            raise EvaluationError(f"document {number} is only in the {side} file; give two files of the same text")
        if [s.forms for s in key.sentences] != [s.forms for s in response.sentences]:
            raise EvaluationError(
                f"document {number} ({key.name or 'unnamed'}) has other words in the predicted file; give two files "
                "of the same text"
            )
        yield key, response


def _numbered(clusters: Partition, place: str, smallest: int) -> _Side:
    """Number the clusters of at least `smallest` mentions; repeated mentions are refused in all clusters."""
    cluster_of: dict[Hashable, int] = {}
    for number, cluster in enumerate(clusters):
        for mention in cluster:
            if mention in cluster_of:
                where = "twice in a cluster" if cluster_of[mention] == number else "in two clusters"
                raise EvaluationError(f"{place}: the mention {mention!r} is {where}; expected it once")
            cluster_of[mention] = number
    sizes = {number: size for number, size in Counter(cluster_of.values()).items() if size >= smallest}
    position = {number: position for position, number in enumerate(sizes)}
    kept = {mention: position[number] for mention, number in cluster_of.items() if number in position}
    return kept, np.fromiter(sizes.values(), dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Overlap:
    """The sizes of the clusters of both sides, and the cells where they overlap: row, column, shared mentions, (N,)."""

    key: Ints
    response: Ints
    rows: Ints
    columns: Ints
    common: Ints

    @classmethod
    def of(cls, key: _Side, response: _Side) -> _Overlap:
        (in_key, key_sizes), (in_response, response_sizes) = key, response
        cells = Counter((in_key[mention], in_response[mention]) for mention in in_key.keys() & in_response.keys())
        table: Ints = np.array([(*cell, cells[cell]) for cell in sorted(cells)], dtype=np.int64).reshape(-1, 3)
        return cls(key_sizes, response_sizes, *table.T)


def _counts(overlap: _Overlap) -> Floats:
    """The counts of one document, (8, 4), in the order of `_ROWS` and `_Counts`."""
    key, response, common = overlap.key, overlap.response, overlap.common
    key_sizes, response_sizes = key[overlap.rows], response[overlap.columns]  # (N,) each, of the cells
    mentions = (int(key.sum()), int(response.sum()))
    phi_4 = 2 * common / (key_sizes + response_sizes)
    coreferent = (_pairs(key), _pairs(response))
    return np.array(
        [
            _symmetric(int(common.sum()), *mentions),
            _symmetric(int((common - 1).sum()), mentions[0] - len(key), mentions[1] - len(response)),
            _directed(common**2 / key_sizes, common**2 / response_sizes, *mentions),
            _symmetric(_best_alignment(overlap, common.astype(np.float64)), *mentions),
            _symmetric(_best_alignment(overlap, phi_4), len(key), len(response)),
            _directed(_lea(common, key_sizes, response_sizes), _lea(common, response_sizes, key_sizes), *mentions),
            _symmetric(_pairs(common), *coreferent),
            _symmetric(_common_strangers(overlap), *(_pairs(m) - c for m, c in zip(mentions, coreferent, strict=True))),
        ]
    )


def _symmetric(right: float, key: float, response: float) -> _Counts:
    return right, key, right, response


def _directed(recalled: Floats, precise: Floats, key: float, response: float) -> _Counts:
    """Counts from what each cell adds, summed exactly, so that the order of the clusters does not matter."""
    return math.fsum(recalled), key, math.fsum(precise), response


def _pairs(sizes: Ints | int) -> int:
    """The number of pairs within sets of these sizes."""
    return int(np.sum(sizes * (sizes - 1) // 2))


def _lea(common: Ints, sizes: Ints, other_sizes: Ints) -> Floats:
    """What each cell adds to LEA's recall, (N,): size * pairs(common) / pairs(size), or 1 for a right self-link."""
    return np.where(sizes == 1, other_sizes == 1, common * (common - 1) / np.maximum(sizes - 1, 1))


def _common_strangers(overlap: _Overlap) -> int:
    """Pairs of common mentions that are in different clusters on both sides: |N_k & N_r|."""
    common = overlap.common
    together_in_key = _pairs(np.bincount(overlap.rows, common).astype(np.int64))
    together_in_response = _pairs(np.bincount(overlap.columns, common).astype(np.int64))
    return _pairs(int(common.sum())) - together_in_key - together_in_response + _pairs(common)


def _best_alignment(overlap: _Overlap, similarity: Floats) -> float:
    """The largest sum of `similarity` (N,), over the one-to-one alignments of clusters."""
    rows, columns = overlap.rows, overlap.columns
    lone = (np.bincount(rows)[rows] == 1) & (np.bincount(columns)[columns] == 1)
    if lone.all():  # as when all clusters are right, or singletons
        return math.fsum(similarity)

    from scipy.optimize import linear_sum_assignment

    # a cell alone in its row and column is in every best alignment, so only the others have to be aligned
    _, row = np.unique(rows[~lone], return_inverse=True)
    _, column = np.unique(columns[~lone], return_inverse=True)
    matrix = np.zeros((row.max() + 1, column.max() + 1))
    matrix[row, column] = similarity[~lone]
    return math.fsum([*similarity[lone], *matrix[linear_sum_assignment(matrix, maximize=True)]])


def _ratio(right: float, key: float, also_right: float, response: float) -> Ratio:
    recall, precision = _share(right, key), _share(also_right, response)
    return Ratio(recall, precision, _share(2 * recall * precision, recall + precision))


def _blanc(coreferent: Sequence[float], not_coreferent: Sequence[float]) -> Ratio:
    """The mean of the kinds of links that the key has."""
    kinds = [_ratio(*counts) for counts in (coreferent, not_coreferent) if counts[1]]
    if not kinds:
        return Ratio(0.0, 0.0, 0.0)
    return Ratio(*(sum(figures) / len(kinds) for figures in zip(*map(astuple, kinds), strict=True)))


def _share(part: float, whole: float) -> float:
    """part / whole, or 0 if there is nothing."""
    return part / whole if whole else 0.0
