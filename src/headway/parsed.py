"""A parsed sentence: its tree, what is proved of it, and the distribution behind it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from headway.arrays import Floats, Ints
from headway.drawing import to_svg, tree_drawing
from headway.inference.dual_decomposition import Status
from headway.inference.protocol import Distribution
from headway.models.stretches import arc_probabilities
from headway.treebank import Sentence
from headway.treebank.annotations import features_of, multiword_tokens, offsets_of

UNSURE_BELOW = 0.7  # arcs less probable than this are dashed in pictures
WIDTH = 1600.0  # pixels; pictures that are wider are wrapped into rows


@dataclass(frozen=True)
class Confidence:
    """How probable the whole tree is, and each word's head (arcs[0] is 1)."""

    tree: float
    arcs: Floats


@dataclass(frozen=True)
class Parsed:
    """A sentence with the tree the parser found, and whether that is proved to be the best under the model.

    `distribution` has every tree's probability, whatever the labels; for a higher-order model it is its pruner's,
    calibrated. `floored` counts the arcs whose marginal was negative, or too small to count.

    `label_probabilities` (n+1,) are those of the labels, given the arcs; entry 0 is 1. Times `confidence.arcs` they are
    the probabilities of labelled arcs. None for a model without labels, and for one that chooses them after the tree
    by a perceptron, whose scores have no scale.
    """

    sentence: Sentence
    distribution: Distribution
    status: Status = Status.EXACT
    gap: float = 0.0
    floored: tuple[int, int] = (0, 0)
    label_probabilities: Floats | None = None

    @property
    def heads(self) -> Ints:
        """(n+1,), heads[0] == -1."""
        assert self.sentence.heads is not None
        return self.sentence.heads

    @property
    def labels(self) -> tuple[str | None, ...]:
        """n+1 entries, labels[0] is None."""
        assert self.sentence.labels is not None
        return self.sentence.labels

    @property
    def marginals(self) -> Floats:
        """P(head -> modifier), (n+1, n+1)."""
        return self.distribution.marginals

    @cached_property
    def confidence(self) -> Confidence:
        """The probability of the tree and of each of its arcs; calibrated where the model was trained with dev data."""
        tree = float(np.exp(self.distribution.log_prob(self.heads)))
        return Confidence(tree, arc_probabilities(self.distribution, self.heads))

    @property
    def is_proved(self) -> bool:
        """Whether the tree is proved to be the best under the model."""
        return self.status.is_proof

    @property
    def offsets(self) -> tuple[tuple[int, int], ...] | None:
        """Where each word begins and ends in the text it was read from, in characters; None if there was no text."""
        return offsets_of(self.sentence)

    def to_conllu(self) -> str:
        """The parsed sentence as CoNLL-U."""
        return self.sentence.to_conllu()

    def to_json(self) -> dict[str, Any]:
        """The parsed sentence as plain data: one dictionary per word, every arc with its probability.

        `feats` has the features by name, true for one without a value. Multiword tokens are listed beside the words, by
        the first and the last of theirs.
        """
        s, confidence = self.sentence, self.confidence
        offsets = self.offsets or (None,) * len(s)
        words = [
            {
                "id": m,
                "form": s.forms[m - 1],
                "lemma": s.lemmas[m - 1],
                "upos": s.upos[m - 1],
                "xpos": s.xpos[m - 1],
                "feats": features_of(s.feats[m - 1]),
                "head": int(self.heads[m]),
                "label": self.labels[m],
                "probability": round(float(confidence.arcs[m]), 6),
                "offsets": offsets[m - 1],
            }
            for m in range(1, len(s) + 1)
        ]
        tokens = [
            {
                "first": t.first,
                "last": t.last,
                "form": t.form,
                "offsets": _from(offsets[t.first - 1], offsets[t.last - 1]),
            }
            for t in multiword_tokens(s)
        ]
        proof = {"probability": confidence.tree, "status": str(self.status), "gap": self.gap}
        return {"words": words, "multiword_tokens": tokens, **proof}

    def to_svg(self, *, unsure_below: float = UNSURE_BELOW, width: float | None = WIDTH) -> str:
        """The tree as a picture: arcs are shaded by probability, and dashed below one. Notebooks show it.

        A sentence wider than `width` pixels is wrapped into rows.
        """
        arcs = self.confidence.arcs
        return to_svg(tree_drawing(self.sentence, probabilities=arcs, unsure_below=unsure_below, width=width))

    _repr_svg_ = to_svg


def _from(first: tuple[int, int] | None, last: tuple[int, int] | None) -> tuple[int, int] | None:
    """The place of a token that begins and ends with these words."""
    return None if first is None or last is None else (first[0], last[1])
