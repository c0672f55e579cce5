"""Coreference scores: MUC, B-cubed, CEAF, BLANC, LEA, mention identification, the CoNLL average.

Key and response are partitions of mentions into clusters K_i and R_j, of the same mentions or of others: a mention is
right when the other side has an equal one. Nothing is added to or taken from either side, as Pradhan et al. (2014) ask.
With `o_ij = |K_i & R_j|`, `pairs(x) = x (x - 1) / 2`, and sums over the cells where `o_ij > 0`, recall is

- mentions: `sum o_ij` of `sum |K_i|`;
- MUC (Vilain et al. 1995): `sum (o_ij - 1)` of `sum (|K_i| - 1)`;
- B-cubed (Bagga and Baldwin 1998): `sum o_ij^2 / |K_i|` of `sum |K_i|`;
- CEAF-m (Luo 2005, phi_3): the largest `sum o_ij` over the one-to-one alignments of clusters, of `sum |K_i|`;
- CEAF-e (Luo 2005, phi_4): the largest such `sum 2 o_ij / (|K_i| + |R_j|)`, of the number of clusters K_i;
- LEA (Moosavi and Strube 2016): `sum |K_i| pairs(o_ij) / pairs(|K_i|)` of `sum |K_i|`.

Precision is the recall of the two sides exchanged; F1 is their harmonic mean. MUC's numerator is the paper's
`|K_i| - |parts of K_i|`, where a mention the response lacks is a part of its own. In LEA a cluster of one has one link,
to itself, which is right when the mention is a cluster of one on the other side too.

BLANC (Recasens and Hovy 2011; Luo et al. 2014) has two kinds of links, each with recall, precision and F1: coreferent
pairs, C_k and C_r, and the other pairs of mentions of one side, N_k and N_r. Right are `C_k & C_r`, of which there are
`sum pairs(o_ij)`, and `N_k & N_r`, the other pairs of common mentions less those that are coreferent on one side. Each
of BLANC's three figures is the mean of the two kinds' (so its F1 is no harmonic mean). A kind that the *key* lacks is
left out, whatever the response has: with only clusters of one in the key BLANC is the score of N, with only one
cluster in the key that of C. As this asks the key alone, exchanging the sides need not exchange BLANC's figures then.

Documents: the numerators and denominators are summed over the documents and divided last, as the reference scorer
(v8.01, and its branch with LEA) does; for BLANC it sums the counts of the two kinds of links, and looks at the sums to
see which kinds the key has. So do we: a document weighs by its size, and one without links does no harm.

Degenerate inputs: 0/0 is 0, as in the reference scorer. So
- no mention on either side, or no document at all: every figure is 0. No mention on one side: the same;
- only clusters of one on both sides: MUC is 0, even where both sides agree, since there is no link to find, and
  the CoNLL average of a perfect response is then 2/3; the other metrics are 1 where they agree;
- one mention, found: MUC and BLANC are 0 (there is no pair), the others 1;
- an empty cluster counts for nothing.

The reference scorer drops a repeated mention with a warning; here it is an `EvaluationError`. Figures are fractions
between 0 and 1. Time for a document is O(mentions) but for the alignments, at worst O(clusters^3), of the clusters that
share mentions with more than one cluster; the overlaps are counted from the mentions, never from pairs of clusters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from itertools import zip_longest
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headway.coreference.documents import Document
from headway.errors import EvaluationError

Partition: TypeAlias = Iterable[Collection[Hashable]]
Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

# of a document or of many: numerator and denominator of recall, then of precision
_Counts: TypeAlias = tuple[float, float, float, float]

# the rows of the counts: BLANC has two, its two kinds of links
_ROWS = ("mentions", "muc", "b_cubed", "ceaf_m", "ceaf_e", "lea", "coreferent", "not_coreferent")


@dataclass(frozen=True, slots=True)
class Ratio:
    """Recall, precision and F1, between 0 and 1; F1 is stored because BLANC's is not the harmonic mean."""

    recall: float
    precision: float
    f1: float


@dataclass(frozen=True, slots=True)
class CoreferenceScores:
    """What `evaluate_coreference` found over `documents` documents."""

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
        """The score of the CoNLL 2011 and 2012 shared tasks: the mean F1 of MUC, B-cubed and CEAF-e."""
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
    """Score one (key, response) a document; `singletons=False` first leaves out the clusters of one on both sides.

    The example of Pradhan et al. (2014); strings do for mentions, and a string of letters for a cluster of them:

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
    for key, response in pairs:
        documents += 1
        key_side = _Side.of(key, f"document {documents}, key", smallest)
        response_side = _Side.of(response, f"document {documents}, response", smallest)
        totals += _counts(_Overlap.of(key_side, response_side))
    sums = dict(zip(_ROWS, totals.tolist(), strict=True))
    blanc = _blanc(sums.pop("coreferent"), sums.pop("not_coreferent"))
    return CoreferenceScores(documents=documents, blanc=blanc, **{row: _ratio(*sums[row]) for row in sums})


def score_documents(
    gold: Iterable[Document], predicted: Iterable[Document], *, singletons: bool = True
) -> CoreferenceScores:
    """Score clusters against the right ones, document by document."""
    pairs = ((key.partition(), response.partition()) for key, response in paired_documents(gold, predicted))
    return evaluate_coreference(pairs, singletons=singletons)


def paired_documents(gold: Iterable[Document], predicted: Iterable[Document]) -> Iterator[tuple[Document, Document]]:
    """The documents of two files that hold the same text; an error names the first that differ."""
    for number, (key, response) in enumerate(zip_longest(gold, predicted), start=1):
        if key is None or response is None:
            more, fewer = ("gold", "predicted") if response is None else ("predicted", "gold")
            raise EvaluationError(f"document {number} is {more} only, not {fewer}; give two files of one text")
        if [s.forms for s in key.sentences] != [s.forms for s in response.sentences]:
            raise EvaluationError(
                f"document {number} ({key.name or 'unnamed'}) has other words in the predicted file; give two files "
                "of one text"
            )
        yield key, response


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """The clusters of key or response: the number of each mention's cluster, and the clusters' sizes, (C,)."""

    cluster_of: dict[Hashable, int]
    sizes: Ints

    @classmethod
    def of(cls, clusters: Partition, place: str, smallest: int) -> _Side:
        """Number the clusters of at least `smallest` mentions; a repeated mention is refused in the others too."""
        cluster_of: dict[Hashable, int] = {}
        for number, cluster in enumerate(clusters):
            for mention in cluster:
                if mention in cluster_of:
                    where = "twice in a cluster" if cluster_of[mention] == number else "in two clusters"
                    raise EvaluationError(f"{place}: the mention {mention!r} is {where}; a partition has it once")
                cluster_of[mention] = number
        sizes = {number: size for number, size in Counter(cluster_of.values()).items() if size >= smallest}
        position = {number: position for position, number in enumerate(sizes)}
        return cls(
            {mention: position[number] for mention, number in cluster_of.items() if number in position},
            np.fromiter(sizes.values(), dtype=np.int64),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Overlap:
    """Sizes of the clusters of both sides, and the cells where they overlap: row, column, mentions in common, (N,)."""

    key: Ints
    response: Ints
    rows: Ints
    columns: Ints
    common: Ints

    @classmethod
    def of(cls, key: _Side, response: _Side) -> _Overlap:
        shared = key.cluster_of.keys() & response.cluster_of.keys()
        cells = Counter((key.cluster_of[mention], response.cluster_of[mention]) for mention in shared)
        table: Ints = np.array([(*cell, cells[cell]) for cell in sorted(cells)], dtype=np.int64).reshape(-1, 3)
        return cls(key.sizes, response.sizes, *table.T)


def _counts(overlap: _Overlap) -> Floats:
    """What one document adds, (8, 4), in the order of `_ROWS` and `_Counts`."""
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
    """Counts from what each cell adds; summed exactly, so that the order of the clusters cannot matter."""
    return math.fsum(recalled), key, math.fsum(precise), response


def _pairs(sizes: Ints | int) -> int:
    """How many pairs of mentions there are inside sets of these sizes."""
    return int(np.sum(sizes * (sizes - 1) // 2))


def _lea(common: Ints, sizes: Ints, other_sizes: Ints) -> Floats:
    """What each cell adds to LEA's recall: size * pairs(common) / pairs(size), or 1 for a right self-link, (N,)."""
    return np.where(sizes == 1, other_sizes == 1, common * (common - 1) / np.maximum(sizes - 1, 1))


def _common_strangers(overlap: _Overlap) -> int:
    """Pairs of common mentions that are in different clusters on both sides: |N_k & N_r|."""
    common = overlap.common
    together_in_key = _pairs(np.bincount(overlap.rows, common).astype(np.int64))
    together_in_response = _pairs(np.bincount(overlap.columns, common).astype(np.int64))
    return _pairs(int(common.sum())) - together_in_key - together_in_response + _pairs(common)


def _best_alignment(overlap: _Overlap, similarity: Floats) -> float:
    """The largest sum of `similarity`, (N,) by cell, over the one-to-one alignments of clusters."""
    rows, columns = overlap.rows, overlap.columns
    lone = (np.bincount(rows)[rows] == 1) & (np.bincount(columns)[columns] == 1)
    if lone.all():  # so it is where all clusters are right, or of one mention
        return math.fsum(similarity)

    from scipy.optimize import linear_sum_assignment

    # a cell alone in its row and column is in every best alignment: the others are a smaller problem
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
    """A share of nothing is 0."""
    return part / whole if whole else 0.0
