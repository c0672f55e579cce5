"""The temperature of a network's labels: the number that their scores are divided by.

A network that was trained long enough is nearly certain of every label, right or wrong. With T the labels of
development trees, given their heads, are as likely as they can be,

    P(l | h, m)  proportional to  exp(score(h, m, l) / T)

The best label stays the best. Arc scores have a temperature of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from headway.arrays import Floats, Ints
from headway.neural.model import NeuralModel
from headway.treebank import Sentence

_LOWEST, _HIGHEST = -3.0, 5.0  # logarithms


def with_label_temperature(model: NeuralModel, dev: Sequence[Sentence]) -> NeuralModel:
    """The model with the temperature for these trees. Partial trees do not count, nor labels that it does not know."""
    whole = [tree for tree in dev if tree.heads is not None and (tree.heads[1:] >= 0).all()]
    names = {name: number for number, name in enumerate(model.tasks.labels)}
    gold = np.array([names.get(label or "", -1) for tree in whole for label in (tree.labels or ())[1:]], np.int64)
    if not (gold >= 0).any():
        return model
    scores = model.label_scores(whole)
    possible = (gold >= 0) & (scores[np.arange(len(gold)), gold] > -np.inf)
    return replace(model, label_temperature=_fitted(scores[possible], gold[possible]))


def _fitted(scores: Floats, gold: Ints) -> float:
    """The temperature at which these labels are most likely."""
    from scipy.optimize import minimize_scalar

    below = scores - scores.max(axis=1, keepdims=True)
    right = below[np.arange(len(gold)), gold]

    def loss(exponent: float) -> float:
        inverse = np.exp(-exponent)
        return float((np.log(np.exp(below * inverse).sum(axis=1)) - right * inverse).sum())

    return float(np.exp(minimize_scalar(loss, bounds=(_LOWEST, _HIGHEST), method="bounded").x))
