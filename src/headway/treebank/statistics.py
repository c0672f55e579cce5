"""Statistics of a treebank, from one pass over its sentences in flat memory.

The proportions of arcs and of trees concern the sentences that have a tree; sentences without heads, and those whose
heads form a cycle, are counted separately. "Non-projective" and "crossing" are defined in `headway.treebank.trees`; a
tree is multi-root if several words depend on the root. "_" counts neither as a label nor as a tag.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from headway.treebank.sentence import Sentence
from headway.treebank.trees import crossing_arcs, is_tree, non_projective_arcs


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts; the proportions, from 0 to 1, are properties.

    >>> crossing = Sentence.from_words(["c", "a", "b"], heads=[-1, 3, 0, 2], labels=[None, "x", "root", "x"])
    >>> statistics = Statistics.of([crossing, Sentence.from_words(["d"])])
    >>> statistics.sentences, statistics.tokens, statistics.non_projective_arcs, statistics.crossing_arcs
    (2, 4, 1, 2)
    >>> statistics.labels, statistics.sentences_without_heads
    (Counter({'x': 2, 'root': 1}), 1)
    """

    sentences: int = 0
    tokens: int = 0
    longest: int = 0
    arcs: int = 0
    non_projective_arcs: int = 0
    crossing_arcs: int = 0
    trees: int = 0
    non_projective_trees: int = 0
    multi_root_trees: int = 0
    sentences_without_heads: int = 0
    sentences_with_cycle: int = 0
    tokens_with_lemma: int = 0
    tokens_with_feats: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    upos: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, sentences: Iterable[Sentence]) -> Statistics:
        """Count everything, one sentence in memory at a time."""
        counts: Counter[str] = Counter()
        labels: Counter[str] = Counter()
        upos: Counter[str] = Counter()
        longest = 0
        for sentence in sentences:
            counts.update(_counts(sentence))
            labels.update(label for label in sentence.labels or () if label is not None)
            upos.update(sentence.upos)
            longest = max(longest, len(sentence))
        del labels["_"], upos["_"]
        return cls(**counts, longest=longest, labels=labels, upos=upos)

    @property
    def mean_length(self) -> float:
        """Words per sentence."""
        return _share(self.tokens, self.sentences)

    @property
    def non_projective_arc_share(self) -> float:
        """The proportion of arcs that are non-projective."""
        return _share(self.non_projective_arcs, self.arcs)

    @property
    def crossing_arc_share(self) -> float:
        """The proportion of arcs that cross another."""
        return _share(self.crossing_arcs, self.arcs)

    @property
    def non_projective_tree_share(self) -> float:
        """The proportion of trees that are not projective."""
        return _share(self.non_projective_trees, self.trees)

    @property
    def multi_root_share(self) -> float:
        """The proportion of trees with several words under the root."""
        return _share(self.multi_root_trees, self.trees)

    @property
    def lemma_share(self) -> float:
        """The proportion of tokens with a lemma."""
        return _share(self.tokens_with_lemma, self.tokens)

    @property
    def feats_share(self) -> float:
        """The proportion of tokens with morphological features."""
        return _share(self.tokens_with_feats, self.tokens)


def _counts(sentence: Sentence) -> dict[str, int]:
    n = len(sentence)
    counts = {
        "sentences": 1,
        "tokens": n,
        "tokens_with_lemma": n - sentence.lemmas.count("_"),
        "tokens_with_feats": n - sentence.feats.count("_"),
    }
    heads = sentence.heads
    if heads is None:
        return counts | {"sentences_without_heads": 1}
    if not is_tree(heads):
        return counts | {"sentences_with_cycle": 1}
    crossing = int(crossing_arcs(heads).sum())
    return counts | {
        "trees": 1,
        "arcs": n,
        "crossing_arcs": crossing,
        "non_projective_trees": int(crossing > 0),
        # Most trees have no crossing arcs, and then no non-projective ones either.
        "non_projective_arcs": int(non_projective_arcs(heads).sum()) if crossing else 0,
        "multi_root_trees": int((heads == 0).sum() > 1),
    }


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
