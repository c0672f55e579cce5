"""Temperatures for single sentences of `en`: fitted on development sentences and on words in random order.

What tells words in random order from sentences is learnt from the training part, every SKIP-th sentence, and as many
with their words in random order. The three other numbers make the trees of the development part as likely as they can
be, and those of its sentences in random order, whose arcs are still those between the same words; all that as if one
sentence in FORTY were in random order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize

from headway.inference.batch import as_batch
from headway.inference.first_order import tree_sums
from headway.neural.model import NeuralModel
from headway.neural.reading import groups_by_size
from headway.neural.sentence_temperature import SentenceTemperature, doubts_of, means_of
from headway.parallel import SERIAL
from headway.treebank import Sentence, require_tree

SKIP, FORTY, PENALTY = 3, 40, 1e-4
SEED_OF_TRAINING, SEED_OF_FIT = 5, 1
EXPONENTS = np.linspace(-1.0, 3.0, 17)
Floats = NDArray[np.float64]


class Seen(NamedTuple):
    """Of sentences: their doubts u, the means of their words' vectors, and, where they have trees, the scores of these
    and log Z at the temperatures exp(EXPONENTS)."""

    doubts: Floats
    means: Floats
    right: Floats
    sums: Floats


def in_random_order(sentences: Sequence[Sentence], seed: int) -> list[Sentence]:
    """The words in the order that `scrambled` draws, with the trees they had."""
    rng = np.random.default_rng(seed)
    found = []
    for one in sentences:
        order = rng.permutation(len(one))
        place = np.concatenate([[0], np.argsort(order) + 1])
        heads = place[require_tree(one)[1:][order]]
        found.append(Sentence.from_words([one.forms[i] for i in order], heads=[-1, *heads.tolist()]))
    return found


def seen(model: NeuralModel, sentences: Sequence[Sentence], *, trees: bool) -> Seen:
    reading = model.reader.read(sentences)
    count = len(sentences)
    doubts, right, sums = np.zeros(count), np.zeros(count), np.zeros((count, len(EXPONENTS)))
    means: list[Floats] = [np.zeros(0)] * count
    for which in groups_by_size(reading.sizes, 256):
        lengths = reading.lengths[which]
        outputs = model.network.run(reading.batch(which))
        arcs = outputs["arcs"].astype(np.float64) / model.temperature
        doubts[which] = doubts_of(arcs, lengths)
        for i, own in zip(which.tolist(), means_of(outputs["label_modifiers"], lengths), strict=True):
            means[i] = own
        if trees:
            for b, i in enumerate(which.tolist()):
                heads = require_tree(sentences[i])
                right[i] = arcs[b, heads[1:], np.arange(1, len(heads))].sum()
            for k, exponent in enumerate(EXPONENTS):
                sums[which, k] = tree_sums(as_batch(arcs / np.exp(exponent), lengths), model.trees, SERIAL)
    return Seen(doubts, np.stack(means), right, sums)


def discriminator(real: Floats, random: Floats) -> tuple[Floats, float]:
    """Weights and constant of the log-odds that words are in random order, one sentence in FORTY being so."""
    x, gold = np.concatenate([real, random]), np.repeat([0.0, 1.0], [len(real), len(random)])
    middle, spread = x.mean(axis=0), x.std(axis=0) + 1e-6
    x = np.column_stack([(x - middle) / spread, np.ones(len(x))])

    def loss(weights: Floats) -> tuple[float, Floats]:
        odds = x @ weights
        value = float(np.mean(np.logaddexp(0, odds) - gold * odds) + PENALTY * weights[:-1] @ weights[:-1])
        share = 1 / (1 + np.exp(-odds))
        return value, x.T @ (share - gold) / len(x) + 2 * PENALTY * np.append(weights[:-1], 0)

    found = minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x
    direction = found[:-1] / spread
    return direction, float(found[-1] - direction @ middle - np.log(FORTY))


def fitted(real: Seen, random: Seen, direction: Floats, bias: float) -> SentenceTemperature:
    """The three numbers that make the trees most likely."""
    curves = [(each, CubicSpline(EXPONENTS, each.sums, axis=1), w) for each, w in ((real, 1.0), (random, 1 / FORTY))]

    def loss(numbers: Floats) -> float:
        total = 0.0
        for each, curve, weight in curves:
            disorder = 1 / (1 + np.exp(-(each.means @ direction + bias)))
            exponents = np.clip(numbers @ [np.ones(len(disorder)), each.doubts, disorder], *EXPONENTS[[0, -1]])
            total += weight * float((_along(curve, exponents) - each.right / np.exp(exponents)).sum())
        return total

    constant, doubt, disorder = map(float, minimize(loss, np.array([0.0, 0.0, 0.5]), method="Nelder-Mead").x)
    return SentenceTemperature(constant, doubt, disorder, bias, tuple(map(float, direction)))


def _along(curve: CubicSpline, exponents: Floats) -> Floats:
    """Each sentence's own curve at its own place."""
    piece = np.clip(np.searchsorted(EXPONENTS, exponents) - 1, 0, len(EXPONENTS) - 2)
    found: Floats = np.zeros(len(exponents))
    for power in curve.c:  # the highest first
        found = found * (exponents - EXPONENTS[piece]) + power[piece, np.arange(len(exponents))]
    return found


def with_sentence_temperatures(model: NeuralModel, train: Sequence[Sentence], dev: Sequence[Sentence]) -> NeuralModel:
    """The same model, whose sentences have temperatures of their own beside the one of all."""
    plain, some = replace(model, sentence_temperature=None), train[::SKIP]
    sides = (seen(plain, each, trees=False).means for each in (some, in_random_order(some, SEED_OF_TRAINING)))
    direction, bias = discriminator(*sides)
    real, random = (seen(plain, each, trees=True) for each in (dev, in_random_order(dev, SEED_OF_FIT)))
    return replace(plain, sentence_temperature=fitted(real, random, direction, bias))
