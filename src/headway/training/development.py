"""Development data: the score that chooses the pass, and the scale that makes scores probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.evaluation import is_punctuation
from headway.inference.batch import Floats, groups_by_length
from headway.inference.first_order import argmax, log_partition
from headway.models.arc_factored import ArcExamples, code_trees
from headway.models.arc_model import BATCH_CELLS
from headway.training.material import Material
from headway.training.settings import Settings
from headway.treebank import Sentence


class Development:
    """Development sentences, scored without punctuation."""

    def __init__(self, sentences: Sequence[Sentence], material: Material, settings: Settings, threads: int) -> None:
        coded, heads, labels = code_trees(sentences, material.coder, material.labels)
        self._examples = ArcExamples(material.scorer, coded, heads, labels)
        self._trees = {"projective": settings.projective, "single_root": settings.single_root}
        self._threads = threads
        self._scored = np.zeros(heads.shape, np.bool_)
        for row, sentence in zip(self._scored, sentences, strict=True):
            row[1 : len(sentence) + 1] = [not is_punctuation(form) for form in sentence.forms]

    def uas(self, weights: Floats, *, projective: bool | None = None) -> float:
        """Percentage of right heads; `projective` decodes in another class than the model was trained for."""
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
