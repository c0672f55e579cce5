"""Sentences of which some heads are known: constrained trees by enumeration, and training as with whole trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from headway.learning.examples import Trees
from headway.models.arc_factored import ArcExamples, ArcScorer, CodedTrees, PartialExamples, code_trees
from numpy.typing import NDArray

from headway.features.arc_features import ArcFeatures
from headway.features.coding import Coder
from headway.features.part_features import PartFeatures
from headway.features.templates import load_templates
from headway.inference.brute_force import all_trees
from headway.learning.latent_perceptron import LatentPerceptron
from headway.learning.perceptron import Perceptron
from headway.learning.progress import Pass
from headway.models.labeller import ROLES, LabelExamples, LabelScorer, surroundings
from headway.treebank import Sentence

from ..learning.dense import TREE_CLASSES
from .toy_treebank import LABELS, sentences

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def coded(text: list[Sentence]) -> tuple[Coder, CodedTrees]:
    coder = Coder.learn(text)
    return coder, code_trees(text, coder, LABELS)


def scorer_of(coder: Coder, trees: CodedTrees) -> ArcScorer:
    return ArcScorer(ArcFeatures.learn(load_templates("mcdonald2005"), coder, trees.coded, trees.heads))


def random_partial(seed: int, projective: bool, single_root: bool) -> tuple[PartialExamples, Ints]:
    """Short sentences of random words, trees of the class for them, and some of these trees' heads."""
    rng = np.random.default_rng(seed)
    text, whole = [], []
    for n in (4, 1, 3, 2, 5):
        every = all_trees(n, projective=projective, single_root=single_root)
        heads = every[rng.integers(len(every))]
        tags = rng.choice(["A", "B", "C"], n).tolist()
        text.append(Sentence.from_words(rng.choice(["x", "y", "z"], n).tolist(), upos=tags, heads=heads))
        whole.append(heads)
    coder = Coder.learn(text)
    trees = code_trees(text, coder, ())
    hidden = np.where(rng.random(trees.heads.shape) < 0.5, trees.heads, -1)
    return PartialExamples(scorer_of(coder, trees), trees.coded, hidden, projective, single_root), trees.heads


@pytest.mark.parametrize(("projective", "single_root"), TREE_CLASSES)
@pytest.mark.parametrize("seed", range(6))
def test_the_constrained_tree_is_the_best_of_all_that_have_the_known_arcs(
    seed: int, projective: bool, single_root: bool
) -> None:
    examples, _ = random_partial(seed, projective, single_root)
    every = np.arange(len(examples.lengths))
    scores = examples.score(np.random.default_rng(seed).normal(size=examples.size), every)
    before = scores.copy()
    found, trees = examples.constrained(scores, every), examples.best_trees(scores, every)
    np.testing.assert_array_equal(scores, before)
    for b, n in enumerate(examples.lengths.tolist()):
        known = examples.heads[b, : n + 1]
        right = [
            heads
            for heads in all_trees(n, projective=projective, single_root=single_root)
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


@pytest.mark.parametrize(("projective", "single_root"), TREE_CLASSES)
@pytest.mark.parametrize("temperature", [1.0, 30.0])
def test_above_temperature_0_arcs_have_marginals(temperature: float, projective: bool, single_root: bool) -> None:
    """By enumeration; and an update is the gradient of the known arcs' log-probability, by finite differences."""
    hard, _ = random_partial(7, projective, single_root)
    examples = replace(hard, temperature=temperature)
    rng, step = np.random.default_rng(7), 1e-5
    every = np.arange(len(examples.lengths))
    weights, direction = rng.normal(size=(2, examples.size))

    def both(at: Floats) -> tuple[float, list[Floats], list[Floats]]:
        scores, gain = examples.score(at, every), 0.0
        free, clamped = [], []
        for b, n in enumerate(examples.lengths.tolist()):
            trees = list(all_trees(n, projective=projective, single_root=single_root))
            known = examples.heads[b, : n + 1]
            right = [heads for heads in trees if all(heads[m] == known[m] for m in range(1, n + 1) if known[m] >= 0)]
            (all_z, all_arcs), (right_z, right_arcs) = (log_z(scores[b], some, temperature) for some in (trees, right))
            gain += right_z - all_z
            free.append(all_arcs)
            clamped.append(right_arcs)
        return gain, free, clamped

    _, free, clamped = both(weights)
    scores = examples.score(weights, every)
    best, constrained = examples.best(scores, examples.lengths, every), examples.constrained(scores, every)
    for found, expected in ((best, free), (constrained, clamped)):
        wanted = np.array(expected)
        np.testing.assert_allclose(found, np.where(wanted < 1e-4, 0.0, wanted), atol=1e-10)
    gradient = np.zeros(examples.size)
    examples.add(gradient, every, constrained - best)
    slope = (both(weights + step * direction)[0] - both(weights - step * direction)[0]) / (2 * step)
    assert gradient @ direction / temperature == pytest.approx(slope, rel=1e-4, abs=0.02)  # negligible ones left out
    sharp = replace(examples, temperature=1e-9)
    np.testing.assert_allclose(sharp.constrained(scores, every), hard.constrained(scores, every), atol=1e-12)


def test_costs_outputs_and_losses_are_of_known_words() -> None:
    text = [
        Sentence.from_words(["a", "b", "c"], heads=[-1, 2, -1, -1], partial=True),
        Sentence.from_words(["a", "b"], heads=[-1, -1, 1], partial=True),
    ]
    coder, trees = coded(text)
    assert trees.is_partial
    examples = PartialExamples(scorer_of(coder, trees), *trees[:2])
    latent = np.zeros((2, 4, 4))
    for b, h, m in [(0, 3, 1), (0, 0, 2), (0, 2, 3), (1, 0, 1), (1, 1, 2)]:
        latent[b, h, m] = 1.0
    every = np.arange(2)
    cost = np.zeros((2, 4, 4))
    cost[0, :3, 1] = 1.0
    cost[1, [0, 2, 3], 2] = 1.0
    np.testing.assert_array_equal(examples.cost(latent, every), cost)
    output = examples.output(latent, every)
    np.testing.assert_array_equal(output, [[-1, 3, -1, -1], [-1, -1, 1, -1]])
    assert examples.loss(output, every) == 1.0
    assert examples.loss(output[1:, :3], every[1:]) == 0.0
    np.testing.assert_array_equal(trees.labels, np.where(trees.heads >= 0, 0, -1))


@pytest.mark.parametrize(("projective", "single_root"), TREE_CLASSES)
@pytest.mark.parametrize("margin", [0.0, 30.0])
def test_with_all_heads_known_it_is_the_perceptron_bit_for_bit(
    margin: float, projective: bool, single_root: bool
) -> None:
    text = sentences(24, 3, crossing=not projective, two_roots=not single_root)
    coder, trees = coded(text)
    assert not trees.is_partial
    scorer, structures = scorer_of(coder, trees), Trees(projective, single_root)
    latent = PartialExamples(scorer, *trees[:2], projective, single_root)
    mine: list[Pass] = []
    theirs: list[Pass] = []

    def into(passes: list[Pass], least: int) -> object:
        def report(done: Pass) -> bool:
            passes.append(Pass(done.number, done.weights.copy(), dict(done.figures), {}))
            return done.number < least

        return report

    LatentPerceptron(structures, 6, margin, 4).fit(latent, into(mine, 6))  # type: ignore[arg-type]
    Perceptron(structures, 6, margin, 4).fit(ArcExamples(scorer, *trees), into(theirs, 6))  # type: ignore[arg-type]
    assert len(mine) >= 2
    theirs = [*theirs[: len(mine) - 1], theirs[-1]]  # once converged, passes that are left out count in the average
    for one, other in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)
        assert one.figures["mistakes"] == other.figures["mistakes"]
    assert mine[0].weights.any()


# Labels


def without_labels(trees: CodedTrees, seed: int) -> CodedTrees:
    """The same trees, half of the labels not known."""
    unknown = np.random.default_rng(seed).random(trees.labels.shape) < 0.5
    return CodedTrees(trees.coded, trees.heads, np.where(unknown, -1, trees.labels))


def test_labels_that_are_not_known_are_never_right() -> None:
    coder, whole = coded(sentences(6, 1))
    trees = without_labels(whole, 2)
    examples = LabelExamples(LabelScorer.learn(coder, trees, LABELS, tree=True), *trees)
    every = np.arange(6)
    gold = examples.gold(every)
    assert 0 < gold.sum() == (trees.labels >= 0).sum()
    for b, m in np.ndindex(*trees.labels.shape):
        number = int(trees.labels[b, m])
        assert gold[b, m].sum() == (number >= 0)
        assert number < 0 or gold[b, m, number] == 1.0


def test_features_of_labels_are_sized_from_the_known_ones() -> None:
    """As if the sentences had no other arcs; what stands around these is still the whole tree."""
    coder, whole = coded(sentences(8, 5))
    trees = without_labels(whole, 6)
    scorer = LabelScorer.learn(coder, trees, LABELS, tree=True)
    alone = np.where(trees.labels >= 0, trees.heads, -1)
    arcs = ArcFeatures.learn(load_templates("label"), coder, trees.coded, alone, trees.labels)
    assert scorer.features.blocks == arcs.blocks
    assert scorer.around is not None
    keys = [block.keys for block in scorer.around.blocks]
    parts = surroundings(whole.heads, whole.coded.lengths)
    every = PartFeatures.learn(
        ROLES, load_templates("tree_label"), coder, whole.coded, parts, whole.labels[whole.heads >= 0]
    )
    assert all(few <= many.keys for few, many in zip(keys, every.blocks, strict=True))
    assert sum(keys) < sum(block.keys for block in every.blocks)
    complete = LabelScorer.learn(coder, whole, LABELS, tree=True)
    assert complete.around is not None
    assert complete.around.blocks == every.blocks
