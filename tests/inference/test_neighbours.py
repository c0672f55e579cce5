"""A sentence's answers do not depend on what else is in its batch, in whatever order they are asked for, bit for bit.

Neighbours are as bad as they may be: without any tree, without words, with scores that float64 sums do not hold, with
cycles that leave linear numbers, with pinned heads. All of them share one workspace, and what one leaves there must not
be read by the next. Padding is nan.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.arrays import TreeClass
from headway.inference import TreeDistribution
from headway.inference.batch import Batch, as_batch
from headway.inference.escape_walks import FEW_WORDS
from headway.inference.first_order import begin, tree_sums, try_arc_covariances, try_arc_marginals
from headway.parallel import SERIAL, Executor, executor_for

from . import exact
from .strategies import TREE_CLASSES, Floats, boost_cycle, ladder_scores, normal_scores, pruned_scores, score_matrices
from .test_log_partition_first import padded

every_class = pytest.mark.parametrize("flags", TREE_CLASSES)
both_roots = pytest.mark.parametrize("single_root", [False, True], ids=["multi", "single"])

# On both sides of every border: no word, one, one group of words, two, four, eight.
LENGTHS = [0, 1, 2, 3, 5, FEW_WORDS, FEW_WORDS + 1, 2 * FEW_WORDS, 2 * FEW_WORDS + 1, 17, 4 * FEW_WORDS + 1]


def without_heads(n: int, seed: int) -> Floats:
    """No tree: one word has no head at all. Which word decides when an elimination finds out."""
    scores = normal_scores(n, seed)
    scores[:, 1 + seed % n] = -np.inf
    return scores


def without_way_out(n: int, seed: int) -> Floats:
    """No tree: two words have none but each other as their head."""
    scores = normal_scores(n, seed)
    first, second = 1 + seed % n, 1 + (seed + 1) % n
    for word, other in ((first, second), (second, first)):
        scores[:, word] = -np.inf
        scores[other, word] = 1.0
    return scores


def pinned(n: int, seed: int) -> Floats:
    """Some words' heads are known: a chain, of which some links are the only ones allowed."""
    scores = normal_scores(n, seed)
    for word in range(2, n + 1):
        if (seed >> word % 8) & 1:
            own = scores[word - 1, word]
            scores[:, word] = -np.inf
            scores[word - 1, word] = own
    return scores


def one_of(kind: str, n: int, seed: int) -> Floats:
    if n < 2:
        return normal_scores(n, seed)
    if kind == "wide":
        return normal_scores(min(n, 9), seed, 10.0 ** (3 + seed % 4))
    if kind == "spread":
        return normal_scores(n, seed, 150.0)
    if kind == "cycle":
        return boost_cycle(normal_scores(n, seed), [1, 2], (40.0, 600.0)[seed % 2])
    if kind == "pruned":
        return pruned_scores(n, seed, (0,), 2)
    if kind == "ladder":
        return ladder_scores(seed, 60.0 + seed % 300)
    make = {"ordinary": normal_scores, "pinned": pinned, "no head": without_heads, "no way out": without_way_out}
    return make[kind](n, seed)


KINDS = ["ordinary", "no head", "no way out", "wide", "spread", "cycle", "pruned", "ladder", "pinned"]
sentences = st.builds(one_of, st.sampled_from(KINDS), st.sampled_from(LENGTHS), st.integers(0, 255))


class Questions:
    """What can be asked of one batch; marginals go on from log Z, if that was asked for before."""

    def __init__(self, batch: Batch, f: Floats, flags: dict[str, bool], executor: Executor) -> None:
        self.batch, self.f, self.trees, self.executor = batch, f, TreeClass.of(**flags), executor
        self.begun: Any = None

    def log_z_first(self) -> list[Floats]:
        self.begun = begin(self.batch, self.trees, self.executor)
        return [self.begun.log_z.copy()]

    def log_z(self) -> list[Floats]:
        return [tree_sums(self.batch, self.trees, self.executor)]

    def marginals(self) -> list[Floats]:
        begun, self.begun = self.begun, None
        return list(try_arc_marginals(self.batch, self.trees, self.executor, begun))

    def covariance(self) -> list[Floats]:
        return list(try_arc_covariances(self.batch, self.f, self.trees, self.executor))


ASKED = ["log_z_first", "log_z", "marginals", "covariance"]


def function_of(scores: Floats) -> Floats:
    """An arc-factored function that differs from cell to cell; nothing where an arc is forbidden or is none."""
    f = np.sin(1.0 + np.arange(scores.size)).reshape(scores.shape)
    f[np.isneginf(scores)] = 0.0
    f[:, 0] = 0.0
    np.fill_diagonal(f, 0.0)
    return f


def answers(matrices: list[Floats], flags: dict[str, bool], order: list[str], threads: int) -> dict[str, list[Floats]]:
    """By the last time a question was asked."""
    arguments = padded(matrices)
    f = np.zeros(arguments["scores"].shape)
    for own, matrix in zip(f, matrices, strict=True):
        own[: len(matrix), : len(matrix)] = function_of(matrix)
    executor = SERIAL if threads == 1 else executor_for(threads)
    questions = Questions(as_batch(**arguments), f, flags, executor)
    return {name: getattr(questions, name)() for name in order}


@every_class
@settings(max_examples=25)
@given(
    matrices=st.lists(sentences, min_size=2, max_size=9),
    order=st.lists(st.sampled_from(ASKED), min_size=2, max_size=5),
    threads=st.sampled_from([1, 2]),
)
def test_alone_or_among_others(flags: dict[str, bool], matrices: list[Floats], order: list[str], threads: int) -> None:
    together = answers(matrices, flags, order, threads)
    for b, matrix in enumerate(matrices):
        n, alone = len(matrix) - 1, answers([matrix], flags, sorted(set(order)), 1)
        for name, found in together.items():
            for ours, own in zip(found, alone[name], strict=True):
                assert not np.isnan(ours[b]).any(), name
                if ours.ndim == 1:
                    assert ours[b] == own[0], name
                    continue
                np.testing.assert_array_equal(ours[b, : n + 1, : n + 1], own[0, : n + 1, : n + 1], name)
                assert not ours[b, n + 1 :].any(), name
                assert not ours[b, :, n + 1 :].any(), name


@every_class
@settings(max_examples=15)
@given(matrices=st.lists(score_matrices(max_words=4, solvable=False), min_size=2, max_size=5), first=st.booleans())
def test_by_enumeration(flags: dict[str, bool], matrices: list[Floats], first: bool) -> None:
    """-inf and zeros where there is no tree; right where there is one, whoever else is there."""
    order = ["log_z_first", "marginals", "covariance"] if first else ["covariance", "marginals"]
    found = answers([*matrices, without_heads(3, 1), *matrices], flags, order, 1)
    log_z, mu = found["marginals"]
    slope = found["covariance"][2]
    for b, matrix in enumerate([*matrices, None, *matrices]):
        if matrix is None or len(reference := exact.tree_distribution(matrix, **flags)) == 0:
            assert log_z[b] == -np.inf
            assert not mu[b].any()
            assert not slope[b].any()
            continue
        n = len(matrix) - 1
        own = np.s_[b, : n + 1, : n + 1]
        assert log_z[b] == pytest.approx(reference.log_partition, rel=1e-12, abs=1e-10)
        expected = exact.arc_marginals(reference, n).astype(np.float64)
        np.testing.assert_allclose(mu[own], expected, rtol=1e-9, atol=1e-300)
        expected = exact.covariance_with_arcs(reference, function_of(matrix)).astype(np.float64)
        np.testing.assert_allclose(slope[own], expected, rtol=0, atol=1e-10)


@both_roots
@settings(max_examples=25)
@given(n=st.sampled_from(LENGTHS[2:]), seed=st.integers(0, 255), kind=st.sampled_from(KINDS))
def test_what_is_certain_is_exactly_so(single_root: bool, n: int, seed: int, kind: str) -> None:
    """A pinned head has probability 1, not nearly 1, and a forbidden one 0; also after log Z. (Non-projective.)"""
    scores, flags = pinned(n, seed), {"projective": False, "single_root": single_root}
    for order in (["marginals"], ["log_z_first", "marginals"]):
        mu = answers([one_of(kind, 7, seed), scores, one_of(kind, 5, seed)], flags, order, 1)["marginals"][1][1]
        forbidden = np.isneginf(scores)
        assert not mu[: n + 1, : n + 1][forbidden].any()
        assert (mu <= 1.0).all()
        certain = forbidden[:, 1:].sum(axis=0) >= n - 1
        assert (mu[: n + 1, 1 : n + 1].max(axis=0)[certain] == 1.0).all()


@every_class
@settings(max_examples=10)
@given(
    matrices=st.lists(
        st.builds(
            one_of,
            st.sampled_from(["ordinary", "wide", "spread", "cycle", "pinned"]),
            st.sampled_from(LENGTHS),
            st.integers(0, 255),
        ),
        min_size=2,
        max_size=6,
    ),
    order=st.permutations(["log_partition", "marginals", "entropy", "max"]),
)
def test_whole_distributions(flags: dict[str, bool], matrices: list[Floats], order: list[str]) -> None:
    """What users ask, entropies too, in every order."""
    together = TreeDistribution(**padded(matrices), **flags)
    found = {name: getattr(together, name) for name in order}
    for b, matrix in enumerate(matrices):
        alone = TreeDistribution(matrix, **flags)
        own = np.s_[: len(matrix), : len(matrix)]
        np.testing.assert_array_equal(found["marginals"][b][own], alone.marginals)
        assert found["log_partition"][b] == alone.log_partition
        assert found["max"][b] == alone.max
        assert found["entropy"][b] == pytest.approx(alone.entropy, rel=1e-12, abs=1e-12)
