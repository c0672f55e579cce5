"""Development data: the score that chooses the pass, and the scale that makes scores probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from headway.features.coding import Coder
from headway.inference.batch import Floats, Ints, groups_by_length
from headway.inference.first_order import argmax, log_partition
from headway.models.arc_factored import ArcExamples, ArcText, CodedTrees, code_trees
from headway.models.arc_model import BATCH_CELLS
from headway.models.higher_order import PartScorer, decode_parts
from headway.models.pruning import Coverage, Pruner, coverage, kept_arcs
from headway.training.material import Material
from headway.training.settings import Settings
from headway.treebank import Sentence, is_punctuation

# Enough to tell the passes apart: the first weights of a training make sentences that are hard to finish exactly.
_ITERATIONS = 200


class Development(Protocol):
    """Development sentences, scored without punctuation."""

    def uas(self, weights: Floats, *, projective: bool | None = None) -> float:
        """Percentage of right heads; `projective` decodes in another class than the model was trained for."""
        ...

    def scale(self, weights: Floats) -> float:
        """The factor on the scores under which the development trees are most likely."""
        ...


def development(
    sentences: Sequence[Sentence], material: Material, settings: Settings, threads: int
) -> ArcDevelopment | PartDevelopment:
    """Development data for the model that is trained."""
    trees = code_trees(sentences, material.coder, material.labels)
    if material.pruner is None:
        assert isinstance(material.examples, ArcText)
        examples = ArcExamples(material.examples.scorer, *trees)
        return ArcDevelopment(examples, _scored(sentences, trees), settings, threads)
    assert not isinstance(material.examples, ArcText)
    scored = _scored(sentences, trees)
    return PartDevelopment(material.examples.scorer, material.pruner, trees, scored, settings, threads)


def arc_development(
    sentences: Sequence[Sentence], text: ArcText, coder: Coder, settings: Settings, threads: int
) -> ArcDevelopment:
    """Development data for a model that is learnt without trees."""
    trees = code_trees(sentences, coder, ())
    return ArcDevelopment(ArcExamples(text.scorer, *trees), _scored(sentences, trees), settings, threads)


def _scored(sentences: Sequence[Sentence], trees: CodedTrees) -> Any:
    """Which words count: all but punctuation."""
    scored = np.zeros(trees.heads.shape, np.bool_)
    for row, sentence in zip(scored, sentences, strict=True):
        row[1 : len(sentence) + 1] = [not is_punctuation(form) for form in sentence.forms]
    return scored


class ArcDevelopment:
    """For arc-factored models."""

    def __init__(self, examples: ArcExamples, scored: Any, settings: Settings, threads: int) -> None:
        self._examples, self._scored, self._threads = examples, scored, threads
        self._trees = {"projective": settings.projective, "single_root": settings.single_root}

    def uas(self, weights: Floats, *, projective: bool | None = None) -> float:
        """Percentage of right heads."""
        right = 0
        trees = self._trees if projective is None else {**self._trees, "projective": projective}
        lengths, gold = self._examples.lengths, self._examples.heads
        for which in groups_by_length(lengths, BATCH_CELLS):
            scores = self._examples.score(weights, which)
            arcs = scores if scores.ndim == 3 else scores.max(axis=-1)
            heads = argmax(arcs, lengths=lengths[which], threads=self._threads, **trees)
            width = heads.shape[1]
            right += int(((heads == gold[which, :width]) & self._scored[which, :width]).sum())
        return 100 * right / max(1, int(self._scored.sum()))

    def scale(self, weights: Floats) -> float:
        """The factor on the scores under which the development trees are most likely.

        Perceptron scores are far too large to be log-probabilities. One factor, found by golden section on its
        logarithm, mends that and changes no tree.
        """
        from scipy.optimize import minimize_scalar

        lengths = self._examples.lengths
        scored = [(which, self._examples.score(weights, which)) for which in groups_by_length(lengths, BATCH_CELLS)]
        gold = sum(float(np.vdot(self._examples.gold(which), scores)) for which, scores in scored)

        def loss(exponent: float) -> float:
            factor = float(np.exp(exponent))
            total = -factor * gold
            for which, scores in scored:
                arcs = factor * scores
                arcs = arcs if arcs.ndim == 3 else np.logaddexp.reduce(arcs, axis=-1)
                total += float(
                    np.sum(log_partition(arcs, lengths=lengths[which], threads=self._threads, **self._trees))
                )
            return total

        return float(np.exp(minimize_scalar(loss, bounds=(-12.0, 3.0), method="bounded", options={"xatol": 0.02}).x))


class PartDevelopment:
    """For higher-order models; the sentences are pruned once."""

    def __init__(
        self, scorer: PartScorer, pruner: Pruner, trees: CodedTrees, scored: Any, settings: Settings, threads: int
    ) -> None:
        self._scorer, self._trees, self._scored, self._threads = scorer, trees, scored, threads
        self._class = {"projective": settings.projective, "single_root": settings.single_root}
        self._kept = kept_arcs(pruner, trees.coded, threads=threads)
        self.coverage: Coverage = coverage(pruner, trees.coded, trees.heads, threads)

    def uas(self, weights: Floats, *, projective: bool | None = None) -> float:
        """Percentage of right heads."""
        right = 0
        coded, gold = self._trees.coded, self._trees.heads
        trees = self._class if projective is None else {**self._class, "projective": projective}
        for which in groups_by_length(coded.lengths, BATCH_CELLS):
            kept = [self._kept[i] for i in which.tolist()]
            options = {"exact": False, "iterations": _ITERATIONS, "threads": self._threads, **trees}
            found = decode_parts(self._scorer, weights, coded, which, kept, **options)
            for i, one in zip(which.tolist(), found, strict=True):
                heads: Ints = one.heads
                right += int(((heads == gold[i, : len(heads)]) & self._scored[i, : len(heads)]).sum())
        return 100 * right / max(1, int(self._scored.sum()))

    def scale(self, weights: Floats) -> float:
        """1: the probabilities of a higher-order parser are its pruner's, which is log-linear."""
        return 1.0
