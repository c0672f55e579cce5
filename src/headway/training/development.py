"""Development data: the score that chooses the pass, and the scale that makes scores log-probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headway.arrays import Bools, Floats, Ints, TreeClass, dot
from headway.features.coding import Coder
from headway.inference.batch import as_batch, groups_by_length
from headway.inference.first_order import best_heads, tree_sums
from headway.learning.structures import Trees
from headway.models.arc_scorer import ArcScorer
from headway.models.dual_decoder import decode_all
from headway.models.part_scorer import PartScorer, sentence_parts
from headway.models.pruning import Coverage, Pruner, coverage, kept_arcs
from headway.models.root_labels import mask_arc_labels, roots_among
from headway.models.tree_decoder import BATCH_CELLS
from headway.parallel import Executor
from headway.training.arc_problem import ArcProblem
from headway.training.data import CodedTrees, code_trees
from headway.treebank import Sentence, is_punctuation

# Enough to tell the passes apart: the first weights of a training make sentences that are hard to finish exactly.
_ITERATIONS = 200
EXPONENTS = (-12.0, 3.0)  # between these is the logarithm of the scale that is looked for


def scored_words(sentences: Sequence[Sentence]) -> Bools:
    """Which words count, (B, N+1): all but punctuation."""
    scored = np.zeros((len(sentences), max(map(len, sentences), default=0) + 1), np.bool_)
    for row, sentence in zip(scored, sentences, strict=True):
        row[1 : len(sentence) + 1] = [not is_punctuation(form) for form in sentence.forms]
    return scored


def arc_development(
    sentences: Sequence[Sentence],
    scorer: ArcScorer,
    coder: Coder,
    labels: Sequence[str],
    trees: TreeClass,
    executor: Executor,
    roots: tuple[str, ...] = (),
) -> ArcDevelopment:
    """Development data for an arc-factored model; `roots` are the labels of the root's children alone."""
    coded = code_trees(sentences, coder, labels)
    problem = ArcProblem(scorer, Trees(trees, executor), coded.coded, coded)
    return ArcDevelopment(problem, scored_words(sentences), roots_among(labels, roots))


@dataclass(frozen=True)
class ArcDevelopment:
    """Development sentences for an arc-factored model, and which of their words are scored."""

    problem: ArcProblem
    scored: Bools
    roots: tuple[str, ...] = ()

    def uas(self, weights: Floats, projective: bool | None = None) -> float:
        """Percentage of right heads; `projective` decodes in another class than that of the training."""
        trees, executor = self.problem.structures.trees, self.problem.structures.executor
        trees = trees if projective is None else trees._replace(projective=projective)
        right = 0
        for which in groups_by_length(self.problem.lengths, BATCH_CELLS):
            these = self.problem.some(which)
            scores = these.score(weights)
            arcs = scores
            if scores.ndim == 4:  # as the model will choose: labels that fit the arc
                arcs = mask_arc_labels(scores, self.problem.scorer.labels, self.roots).max(axis=-1)
            heads = best_heads(as_batch(arcs, these.lengths), trees, executor)
            right += int(((heads == these.heads) & self.scored[which, : heads.shape[1]]).sum())
        return 100 * right / max(1, int(self.scored.sum()))

    def scale(self, weights: Floats) -> float:
        """The factor on the scores under which the development trees are most likely.

        Perceptron scores are far too large to be log-probabilities. One factor, found by golden section on its
        logarithm, mends that and changes no tree.
        """
        from scipy.optimize import minimize_scalar

        trees, executor = self.problem.structures.trees, self.problem.structures.executor
        chunks = [self.problem.some(which) for which in groups_by_length(self.problem.lengths, BATCH_CELLS)]
        scored = [(these, these.score(weights)) for these in chunks]
        gold = sum(dot(these.gold(), scores) for these, scores in scored)

        def loss(exponent: float) -> float:
            factor = float(np.exp(exponent))
            total = -factor * gold
            for these, scores in scored:
                arcs = factor * scores
                arcs = arcs if arcs.ndim == 3 else np.logaddexp.reduce(arcs, axis=-1)
                total += float(np.sum(tree_sums(as_batch(arcs, these.lengths), trees, executor)))
            return total

        return float(np.exp(minimize_scalar(loss, bounds=EXPONENTS, method="bounded", options={"xatol": 0.02}).x))


@dataclass(frozen=True)
class PartDevelopment:
    """Development sentences for a higher-order model; they are pruned once."""

    scorer: PartScorer
    pruner: Pruner
    gold: CodedTrees
    sentences: Sequence[Sentence]
    trees: TreeClass
    executor: Executor

    @cached_property
    def coverage(self) -> Coverage:
        """What the pruner leaves of them."""
        return coverage(self.pruner, self.gold.coded, self.gold.heads, self.executor)

    @cached_property
    def _kept(self) -> list[Bools]:
        return kept_arcs(self.pruner, self.gold.coded, executor=self.executor)

    @cached_property
    def _scored(self) -> Bools:
        return scored_words(self.sentences)

    def uas(self, weights: Floats, projective: bool | None = None) -> float:
        """Percentage of right heads; `projective` decodes in another class than that of the training."""
        trees = self.trees if projective is None else self.trees._replace(projective=projective)
        options = {"exact": False, "iterations": _ITERATIONS, **trees._asdict()}
        right = 0
        for which in groups_by_length(self.gold.coded.lengths, BATCH_CELLS):
            batch = self.scorer.batch(self.gold.coded.some(which), [self._kept[i] for i in which.tolist()])
            parts = sentence_parts(batch, self.scorer.scores(weights, batch, self.executor))
            for i, one in zip(which.tolist(), decode_all(parts, self.executor, **options), strict=True):
                heads: Ints = one.heads
                own = slice(len(heads))
                right += int(((heads == self.gold.heads[i, own]) & self._scored[i, own]).sum())
        return 100 * right / max(1, int(self._scored.sum()))
