"""A tree over the mentions of a document, and the clusters it stands for (fernandes2012, the latent trees).

Mention i is node i+1 of a tree below node 0, the artificial root. A mention hangs below an earlier one, its antecedent,
or below the root, and then it starts a cluster: a cluster is what hangs below one child of the root. Clusters of two or
more mentions are numbered from 1 in the order of their first mentions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headway.drawing.text_width import counted
from headway.errors import ArcError, HeadsError, ShapeError
from headway.treebank.trees import children_of

# White text is readable on all of them. Any two of them, and the colour of errors, are more than 20 apart in CIELAB,
# also for readers who do not see red or green.
CLUSTER_COLOURS = ("#0079c5", "#74002b", "#40824c", "#660080", "#00808e", "#5f3400", "#1557d9", "#492e59")


@dataclass(frozen=True, slots=True)
class MentionText:
    """A mention: its `sentence` (from 0), its first and last word (from 1), and the text to print in the tree."""

    sentence: int
    first: int
    last: int
    text: str


@dataclass(frozen=True, slots=True)
class Cluster:
    """A child of the root and the nodes below it, each followed by its own; `number` is 0 for a single mention."""

    number: int
    nodes: tuple[int, ...]

    @property
    def colour(self) -> str:
        """The colour of its number; the colours repeat after eight."""
        return CLUSTER_COLOURS[(self.number - 1) % len(CLUSTER_COLOURS)]


@dataclass(frozen=True, slots=True)
class LatentTree:
    """The heads of a tree, the nodes whose antecedent is wrong, and the clusters in the order of first mentions."""

    heads: tuple[int, ...]
    wrong: frozenset[int]
    clusters: tuple[Cluster, ...]

    def numbered(self) -> list[Cluster]:
        """The clusters of two or more mentions."""
        return [cluster for cluster in self.clusters if cluster.number]

    def alone(self) -> list[int]:
        """The nodes that are alone in their clusters."""
        return [cluster.nodes[0] for cluster in self.clusters if not cluster.number]

    def counts(self) -> str:
        """The numbers of clusters and mentions, without those that stand alone."""
        numbered = self.numbered()
        return f"{counted(len(numbered), 'cluster')} of {counted(sum(len(c.nodes) for c in numbered), 'mention')}"


def latent_tree(heads: ArrayLike, mentions: int, wrong: Collection[int] = ()) -> LatentTree:
    """The tree with these heads, (M+1,), over this many mentions; the heads of the nodes in `wrong` are wrong.

    >>> latent_tree([-1, 0, 0, 1, 0, 1, 3], 6).clusters
    (Cluster(number=1, nodes=(1, 3, 6, 5)), Cluster(number=0, nodes=(2,)), Cluster(number=0, nodes=(4,)))
    """
    checked = _checked(heads, mentions)
    for node in wrong:
        if not 1 <= node <= mentions:
            raise ArcError(f"node {node} cannot be wrong; expected a mention's node, from 1 to {mentions}")
        if not checked[node]:
            raise ArcError(f"node {node} cannot be wrong: it hangs below the root and starts a cluster")
    below = children_of(checked)
    clusters: list[Cluster] = []
    number = 0
    for first in below[0]:
        nodes, stack = [], [first]
        while stack:
            nodes.append(stack.pop())
            stack += reversed(below[nodes[-1]])
        number += len(nodes) > 1
        clusters.append(Cluster(number if len(nodes) > 1 else 0, tuple(nodes)))
    return LatentTree(checked, frozenset(wrong), tuple(clusters))


def _checked(heads: ArrayLike, mentions: int) -> tuple[int, ...]:
    array = np.asarray(heads)
    if array.shape != (mentions + 1,):
        raise ShapeError(f"heads has shape {array.shape}; expected ({mentions + 1},), the root and {mentions} mentions")
    if not np.issubdtype(array.dtype, np.integer):
        raise HeadsError(f"heads has dtype {array.dtype}; expected integers")
    if array[0] != -1:
        raise HeadsError(f"heads[0] is {array[0]}; expected -1, the root has no head")
    wrong = (array < 0) | (array >= np.arange(mentions + 1))
    wrong[0] = False
    if wrong.any():
        m = int(np.argmax(wrong))
        raise HeadsError(f"heads[{m}] is {array[m]}; expected 0 or the node of an earlier mention, below {m}")
    return tuple(array.tolist())


def alone_text(count: int) -> str:
    """
    >>> alone_text(212)
    '+ 212 mentions that stand alone'
    """
    return f"+ {counted(count, 'mention')} that {'stands' if count == 1 else 'stand'} alone"


def titles(tree: LatentTree, mentions: Sequence[MentionText]) -> list[str]:
    """A description of each node; nothing for the root."""
    names = ["", *(f"{plain_text(mention)} (sentence {mention.sentence + 1})" for mention in mentions)]
    said = list(names)
    for cluster in tree.clusters:
        first, *others = cluster.nodes
        size = counted(len(cluster.nodes), "mention")
        said[first] += f": starts cluster {cluster.number} of {size}" if others else ": alone"
        for node in others:
            said[node] += f": {'wrong, ' * (node in tree.wrong)}below {names[tree.heads[node]]}"
    return said


def plain_text(mention: MentionText) -> str:
    return " ".join(mention.text.split())
