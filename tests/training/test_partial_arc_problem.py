"""Sentences of which some heads are known: constrained trees by enumeration, and training as with whole trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from headway.arrays import TreeClass
from headway.features.arc_features import ArcFeatures
from headway.features.coding import Coder
from headway.features.templates import load_templates
from headway.inference.brute_force import all_trees
from headway.learning.latent_perceptron import LatentPerceptron
from headway.learning.perceptron import Perceptron
from headway.learning.progress import Pass
from headway.learning.structures import Trees
from headway.models.arc_scorer import ArcScorer
from headway.training.arc_problem import ArcProblem, PartialArcProblem
from headway.training.data import CodedTrees, code_trees
from headway.treebank import Sentence

from ..learning.dense import TREE_CLASSES
from ..models.toy_treebank import LABELS, sentences

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def coded(text: list[Sentence]) -> tuple[Coder, CodedTrees]:
    coder = Coder.learn(text)
    return coder, code_trees(text, coder, LABELS)


def scorer_of(coder: Coder, trees: CodedTrees) -> ArcScorer:
    return ArcScorer(ArcFeatures.learn(load_templates("mcdonald2005"), coder, trees.coded, trees.heads))


def random_partial(seed: int, tree_class: TreeClass) -> tuple[PartialArcProblem, Ints]:
    """Short sentences of random words, trees of the class for them, and some of these trees' heads."""
    rng = np.random.default_rng(seed)
    text, whole = [], []
    for n in (4, 1, 3, 2, 5):
        every = all_trees(n, **tree_class._asdict())
        heads = every[rng.integers(len(every))]
        tags = rng.choice(["A", "B", "C"], n).tolist()
        text.append(Sentence.from_words(rng.choice(["x", "y", "z"], n).tolist(), upos=tags, heads=heads))
        whole.append(heads)
    coder = Coder.learn(text)
    trees = code_trees(text, coder, ())
    hidden = np.where(rng.random(trees.heads.shape) < 0.5, trees.heads, -1)
    structures = Trees(tree_class)
    return PartialArcProblem(scorer_of(coder, trees), structures, trees.coded, hidden), trees.heads


@pytest.mark.parametrize("tree_class", TREE_CLASSES)
@pytest.mark.parametrize("seed", range(6))
def test_the_constrained_tree_is_the_best_of_all_that_have_the_known_arcs(seed: int, tree_class: TreeClass) -> None:
    examples, _ = random_partial(seed, tree_class)
    these = examples.some(np.arange(len(examples.lengths)))
    scores = these.score(np.random.default_rng(seed).normal(size=examples.size))
    before = scores.copy()
    found, trees = these.constrained(scores), these.best_trees(scores)
    np.testing.assert_array_equal(scores, before)
    for b, n in enumerate(examples.lengths.tolist()):
        known = examples.heads[b, : n + 1]
        right = [
            heads
            for heads in all_trees(n, **tree_class._asdict())
            if all(heads[m] == known[m] for m in range(1, n + 1) if known[m] >= 0)
        ]
        best = max(right, key=lambda heads: sum(scores[b, heads[m], m] for m in range(1, n + 1)))
        expected = np.zeros_like(scores[b])
        for m in range(1, n + 1):
            expected[best[m], m] = 1.0
        np.testing.assert_array_equal(found[b], expected)
        np.testing.assert_array_equal(trees[b, : n + 1], best)
        assert (trees[b, n + 1 :] == -1).all()


def log_z(scores: Floats, trees: list[Ints], temperature: float) -> tuple[float, Floats]:
    """log Z over listed trees, and the probability of each arc."""
    totals = np.array([sum(scores[heads[m], m] for m in range(1, len(heads))) for heads in trees]) / temperature
    top = totals.max()
    shares, found = np.exp(totals - top), np.zeros_like(scores)
    for share, heads in zip(shares / shares.sum(), trees, strict=True):
        for m in range(1, len(heads)):
            found[heads[m], m] += share
    return float(top + np.log(shares.sum())), found


@pytest.mark.parametrize("tree_class", TREE_CLASSES)
@pytest.mark.parametrize("temperature", [1.0, 30.0])
def test_above_temperature_0_arcs_have_marginals(temperature: float, tree_class: TreeClass) -> None:
    """By enumeration; and an update is the gradient of the known arcs' log-probability, by finite differences."""
    hard, _ = random_partial(7, tree_class)
    examples = replace(hard, temperature=temperature)
    rng, step = np.random.default_rng(7), 1e-5
    every = np.arange(len(examples.lengths))
    these = examples.some(every)
    weights, direction = rng.normal(size=(2, examples.size))

    def both(at: Floats) -> tuple[float, list[Floats], list[Floats]]:
        scores, gain = these.score(at), 0.0
        free, clamped = [], []
        for b, n in enumerate(examples.lengths.tolist()):
            trees = list(all_trees(n, **tree_class._asdict()))
            known = examples.heads[b, : n + 1]
            right = [heads for heads in trees if all(heads[m] == known[m] for m in range(1, n + 1) if known[m] >= 0)]
            (all_z, all_arcs), (right_z, right_arcs) = (log_z(scores[b], some, temperature) for some in (trees, right))
            gain += right_z - all_z
            free.append(all_arcs)
            clamped.append(right_arcs)
        return gain, free, clamped

    _, free, clamped = both(weights)
    scores = these.score(weights)
    best, constrained = these.best(scores), these.constrained(scores)
    for found, expected in ((best, free), (constrained, clamped)):
        wanted = np.array(expected)
        np.testing.assert_allclose(found, np.where(wanted < 1e-4, 0.0, wanted), atol=1e-10)
    gradient = np.zeros(examples.size)
    these.add(gradient, constrained - best)
    slope = (both(weights + step * direction)[0] - both(weights - step * direction)[0]) / (2 * step)
    assert gradient @ direction / temperature == pytest.approx(slope, rel=1e-4, abs=0.02)  # negligible ones left out
    sharp = replace(examples, temperature=1e-9)
    np.testing.assert_allclose(sharp.some(every).constrained(scores), hard.some(every).constrained(scores), atol=1e-12)


def test_costs_outputs_and_losses_are_of_known_words() -> None:
    text = [
        Sentence.from_words(["a", "b", "c"], heads=[-1, 2, -1, -1], partial=True),
        Sentence.from_words(["a", "b"], heads=[-1, -1, 1], partial=True),
    ]
    coder, trees = coded(text)
    assert trees.is_partial
    examples = PartialArcProblem(scorer_of(coder, trees), Trees(TreeClass()), *trees[:2])
    latent = np.zeros((2, 4, 4))
    for b, h, m in [(0, 3, 1), (0, 0, 2), (0, 2, 3), (1, 0, 1), (1, 1, 2)]:
        latent[b, h, m] = 1.0
    these, second = examples.some(np.arange(2)), examples.some(np.array([1]))
    cost = np.zeros((2, 4, 4))
    cost[0, :3, 1] = 1.0
    cost[1, [0, 2, 3], 2] = 1.0
    np.testing.assert_array_equal(these.cost(latent), cost)
    output = these.output(latent)
    np.testing.assert_array_equal(output, [[-1, 3, -1, -1], [-1, -1, 1, -1]])
    assert these.loss(output) == 1.0
    assert second.loss(output[1:, :3]) == 0.0
    np.testing.assert_array_equal(trees.labels, np.where(trees.heads >= 0, 0, -1))


@pytest.mark.parametrize("tree_class", TREE_CLASSES)
@pytest.mark.parametrize("margin", [0.0, 30.0])
def test_with_all_heads_known_it_is_the_perceptron_bit_for_bit(margin: float, tree_class: TreeClass) -> None:
    text = sentences(24, 3, crossing=not tree_class.projective, two_roots=not tree_class.single_root)
    coder, trees = coded(text)
    assert not trees.is_partial
    scorer, structures = scorer_of(coder, trees), Trees(tree_class)
    latent = PartialArcProblem(scorer, structures, *trees[:2])
    mine: list[Pass] = []
    theirs: list[Pass] = []

    def into(passes: list[Pass], least: int) -> object:
        def report(done: Pass) -> bool:
            passes.append(Pass(done.number, done.weights.copy(), dict(done.figures), {}))
            return done.number < least

        return report

    LatentPerceptron(6, margin, 4).fit(latent, into(mine, 6))  # type: ignore[arg-type]
    Perceptron(6, margin, 4).fit(ArcProblem(scorer, structures, trees.coded, trees), into(theirs, 6))  # type: ignore[arg-type]
    assert len(mine) >= 2
    theirs = [*theirs[: len(mine) - 1], theirs[-1]]  # once converged, passes that are left out count in the average
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)
        assert one.figures["mistakes"] == other.figures["mistakes"]
    assert mine[0].weights.any()
