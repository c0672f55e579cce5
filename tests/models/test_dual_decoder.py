"""Decoding the parts of several sentences: against enumeration, and alike on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from headway.arrays import TreeClass
from headway.inference.dual_decomposition import Status
from headway.models.dual_decoder import decode_all
from headway.models.part_scorer import sentence_parts
from headway.parallel import SERIAL, Threads

from .part_cases import ORDERS, best_of_all, toy_world


@pytest.mark.parametrize("order", list(ORDERS))
def test_several_sentences_are_decoded_at_once(order: str) -> None:
    case, which = toy_world(order, 5), np.array([3, 0, 5, 1])
    weights = np.random.default_rng(6).normal(size=case.scorer.size)
    kept = [case.kept[i] for i in which]
    batch = case.scorer.batch(case.trees.coded.some(which), kept)
    parts_of_all = sentence_parts(batch, case.scorer.scores(weights, batch))
    found = decode_all(parts_of_all, SERIAL)
    for i, one in zip(which.tolist(), found, strict=True):
        expected, parts = best_of_all(case, i, np.array(case.scores(i, weights)), TreeClass())
        assert one.score == pytest.approx(expected, rel=1e-12)
        assert case.present(i, one.heads.tolist()) == parts
        assert one.status is not Status.ITERATION_LIMIT
    for options in ({}, {"exact": False, "iterations": 2}):
        alone, together = (decode_all(parts_of_all, executor, **options) for executor in (SERIAL, Threads(2)))
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one.heads, other.heads)
            assert (one.score, one.bound, one.status) == (other.score, other.bound, other.status)
