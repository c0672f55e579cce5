"""Sentences and features for tests of scorers and problems."""

from __future__ import annotations

import numpy as np

from headway.arrays import Bools, Floats
from headway.features.arc_features import ArcFeatures
from headway.features.blocks import Block
from headway.features.coding import Coder
from headway.features.templates import Template
from headway.treebank import Sentence, require_tree

from ..features import naive

LABELS = ("x", "y", "z")


def features(table: list[Template], coder: Coder, bits: int = 4) -> ArcFeatures:
    """Blocks of so many bits each."""
    return ArcFeatures.compile([Block(template, bits, 0, 0) for template in table], coder)


def labelled(text: list[Sentence], seed: int) -> list[Sentence]:
    """The same trees with random labels."""
    rng = np.random.default_rng(seed)
    return [s.with_tree(require_tree(s), [None, *rng.choice(LABELS, len(s)).tolist()]) for s in text]


def whole(seed: int, *shape: int) -> Floats:
    """Whole numbers, whose sums are exact in any order."""
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(float)


def arc_mask(text: list[Sentence]) -> Bools:
    """Where there are arcs at all."""
    width = max(map(len, text)) + 1
    mask = np.zeros((len(text), width, width), np.bool_)
    for b, sentence in enumerate(text):
        for h, m in naive.arcs(sentence):
            mask[b, h, m] = True
    return mask
