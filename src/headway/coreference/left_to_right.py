"""The tree of a document from left to right, with features of the clusters so far.

Each mention in turn takes its best arc, given the clusters that the mentions before it form. With features of pairs
alone, this is the best tree of all. With those of clusters, an early choice changes what later arcs score, and the
choices are greedy: nothing is proved about the tree as a whole. O(M^2) and the scores of the arcs.
"""

from __future__ import annotations

import numpy as np

from headway.arrays import Ints
from headway.coreference.antecedents import Antecedents
from headway.coreference.cluster_atoms import CLUSTER_ATOMS, cluster_rows, describe_cluster, gather_clusters
from headway.coreference.coding import CodedDocument
from headway.coreference.keyed_rows import CompiledTemplates, sum_at
from headway.coreference.pair_features import PairFeatures, fire_arc, room_for_arc
from headway.coreference.pairs import Atoms
from headway.features.blocks import Weights
from headway.inference.jit import kernel


def heads_left_to_right(
    features: PairFeatures, weights: Weights, coded: CodedDocument, antecedents: Antecedents
) -> Ints:
    """The tree of a document, heads (M+1,) with heads[0] == -1; the antecedents have atoms of pairs only."""
    heads = np.full(len(antecedents.start), -1, np.int64)
    atoms = np.zeros((2, antecedents.atoms.shape[1] + len(CLUSTER_ATOMS)), np.int16)
    _choose_all(
        weights, coded, antecedents.antecedent, antecedents.start, antecedents.atoms, features.compiled, atoms, heads
    )
    return heads


@kernel
def _choose_all(
    weights: Weights,
    d: CodedDocument,
    antecedent: Ints,
    start: Ints,
    pairs: Atoms,
    c: CompiledTemplates,
    atoms: Atoms,
    heads: Ints,
) -> None:
    """Of several best arcs, the nearest. `atoms` has room for those of two arcs: from the root, and from a mention."""
    count = pairs.shape[1]
    starts, places, multipliers, offset, drop = c.start, c.place, c.multiplier, c.offset, c.drop
    values, keys = room_for_arc(d.codes, atoms), np.empty(len(offset), np.uint64)
    clusters, found = np.zeros(len(start), np.int64), 0
    rows = cluster_rows(len(start))
    for m in range(1, len(start)):
        gather_clusters(d, clusters, m, rows)
        top = -np.inf
        for k in range(start[m - 1], start[m]):
            a = antecedent[k]
            own = atoms[min(a, 1)]
            own[:count] = pairs[k]
            if a > 0:
                describe_cluster(d, rows[clusters[a - 1]], a, m, own[count:])
            fire_arc(d.codes, own, a, m, starts, places, multipliers, values, keys)
            score = sum_at(weights, offset, drop, keys)
            if score >= top:
                top, heads[m] = score, a
        if heads[m] == 0:
            clusters[m - 1] = found
            found += 1
        else:
            clusters[m - 1] = clusters[heads[m] - 1]
