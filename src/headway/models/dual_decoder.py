"""Decoding parts: the best tree under head automata, with a proof (`headway.inference.dual_decomposition`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.arrays import Bools, Ints, TreeClass
from headway.features.blocks import Weights
from headway.features.coding import Coded
from headway.inference.batch import one_sentence
from headway.inference.dual_decomposition import Decoded, decode
from headway.inference.head_automata import Parts
from headway.inference.tree_distribution import TreeDistribution
from headway.models.calibration import UNCALIBRATED, CalibratedDistribution, Calibration
from headway.models.composed import DecodedTree
from headway.models.part_scorer import PartScorer, sentence_parts
from headway.models.protocol import Options
from headway.models.pruning import Pruned, Pruner
from headway.models.scorer import Trained
from headway.parallel import Executor

# Cells of one batch's padded score matrices: as many sentences as keep the parts of a batch within some megabytes.
BATCH_CELLS = 60_000
# Steps of branch and bound on one sentence; benchmarks/higher_order.py proves all trees in it.
_BUDGET = 20_000
# Cells that a search may read for each word of a sentence, some milliseconds; ordinary sentences need a tenth of them.
# A long sentence's steps are costly, so it has fewer: its time grows with its length, not with its cube.
_WORK_PER_WORD = 5_000_000
_MOST_WORK = 1_500_000_000  # reached at 300 words: three seconds


@dataclass(frozen=True)
class PartScores:
    """The scored parts of each sentence of a batch, and what the pruner computed on the way."""

    parts: list[Parts]
    pruned: Pruned


@dataclass(frozen=True, repr=False)
class PrunedPartScorer:
    """A pruner that leaves a few heads per word, and a scorer of the parts these make."""

    pruner: Pruner
    parts: Trained[PartScorer]

    @property
    def weights(self) -> Weights:
        """The weights of the parts."""
        return self.parts.weights

    def scores(self, batch: Coded, executor: Executor, allowed: Bools | None = None) -> PartScores:
        """Prune a batch, and score its parts; where arcs are not allowed, the pruner's marginals know of it."""
        pruned = self.pruner.prune(batch, executor=executor, allowed=allowed)
        listed = self.parts.scorer.batch(batch, list(pruned.kept))
        return PartScores(sentence_parts(listed, self.parts.scores(listed, executor)), pruned)


@dataclass(frozen=True)
class DualDecoder:
    """Trees of a class by their parts; their probabilities are the pruner's, calibrated."""

    trees: TreeClass
    calibration: Calibration = UNCALIBRATED
    cells: int = BATCH_CELLS

    def decode(self, scores: PartScores, lengths: Ints, options: Options, executor: Executor) -> list[DecodedTree]:
        """The trees of a batch; with `exact`, each is proved to be the best."""
        decoded = decode_all(
            scores.parts, executor, **self.trees._asdict(), exact=options.exact, budget=_BUDGET, seconds=options.seconds
        )
        return [
            DecodedTree(one.heads, self._distribution(scores.pruned, b, one.heads), one.status, one.gap)
            for b, one in enumerate(decoded)
        ]

    def _distribution(self, pruned: Pruned, b: int, heads: Ints) -> CalibratedDistribution:
        n = len(heads) - 1
        known = pruned.log_z[b : b + 1], pruned.marginals[b : b + 1, : n + 1, : n + 1].copy()
        pruner = TreeDistribution.of_batch(one_sentence(pruned.scores, b, n), self.trees, known)
        return CalibratedDistribution(heads, pruner, self.calibration)


def decode_all(parts: list[Parts], executor: Executor, **options: Any) -> list[Decoded]:
    """The best tree of each sentence, in time that grows with its length at most; `options` are those of `decode`."""

    def one(own: Parts) -> Decoded:
        return decode(own, work=min(_WORK_PER_WORD * own.candidates.n, _MOST_WORK), **options)

    return executor.map(one, parts)
