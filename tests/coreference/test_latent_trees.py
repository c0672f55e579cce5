"""Latent trees against enumeration, the maximum arborescence, and a perceptron whose weights are a dictionary."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.coreference import Document, read_documents
from headway.coreference.antecedents import Antecedents, Sieves
from headway.coreference.coding import LEAST, CodedDocument, MentionCoder
from headway.coreference.latent_trees import (
    NEGLIGIBLE,
    MentionStretch,
    MentionTrees,
    best_heads,
    closest_trees,
    clusters_of,
    mention_trees,
)
from headway.coreference.pair_features import PairFeatures, parse_pair_templates, stretch
from headway.inference.first_order import argmax
from headway.learning.latent_perceptron import LatentPerceptron
from headway.learning.perceptron import Perceptron
from headway.learning.problem import ARGMAX
from headway.learning.progress import Pass

from .naive_pairs import naive_antecedents, naive_atoms, naive_attributes, naive_mentions, naive_path
from .toy_documents import document, random_document, sentence

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Coded = tuple[CodedDocument, Antecedents, Ints]

GUM = Path(__file__).resolve().parents[3] / "shared" / "data" / "ud" / "UD_English-GUM"
SEEDS = st.integers(0, 2**32 - 1)
SIEVES = Sieves(2, 1)
FEATURES = PairFeatures.compile(
    parse_pair_templates("p.head p.sentences | - m am\na.label m.first | - m\np.path | -\nm.seen p.talk | -"), [18] * 7
)
SMALL = PairFeatures.compile(FEATURES.templates, [8] * 7)  # weights that arcs share
WHOLE = np.array([0])  # the only example where a document is one


@cache
def coder() -> MentionCoder:
    return MentionCoder.learn([random_document(seed) for seed in range(30)])


def coded_arcs(text: Document, numbering: MentionCoder | None = None) -> Coded:
    coded = (numbering or coder()).code(text)
    return coded, SIEVES.antecedents(coded, text.clusters), text.clusters


def rows_of(arcs: Antecedents) -> list[list[int]]:
    return [arcs.antecedent[start:end].tolist() for start, end in pairwise(arcs.start.tolist())]


def heads_of(chosen: Floats, arcs: Antecedents) -> list[int]:
    """The tree of a document's arcs, one a mention."""
    assert set(chosen.tolist()) <= {0.0, 1.0}
    assert arcs.mention[chosen > 0].tolist() == list(range(1, len(arcs.start)))
    return [-1, *arcs.antecedent[chosen > 0].tolist()]


def naive_clusters(heads: Sequence[int]) -> list[int]:
    """The ancestor below the root of each mention, numbered as they come."""
    tops = []
    for m in range(1, len(heads)):
        while heads[m]:
            m = heads[m]
        tops.append(m)
    return [list(dict.fromkeys(tops)).index(top) for top in tops]


def small(seed: int) -> Document:
    """At most six mentions, so that all trees can be listed."""
    return random_document(seed, sentences=2, words=5, mentions=3)


def listed(arcs: Antecedents, scores: Floats) -> list[tuple[float, list[int]]]:
    """Every tree of candidate arcs with its score."""
    places = [range(start, end) for start, end in pairwise(arcs.start.tolist())]
    return [(float(scores[list(tree)].sum()), [-1, *arcs.antecedent[list(tree)].tolist()]) for tree in product(*places)]


@given(SEEDS)
def test_the_best_tree_is_the_maximum_arborescence(seed: int) -> None:
    text = random_document(seed)
    coded, arcs, clusters = coded_arcs(text)
    scores = np.random.default_rng(seed).normal(size=len(arcs.antecedent))
    trees = mention_trees(FEATURES, [(coded, arcs, clusters)], None)
    dense = np.full((len(clusters) + 1,) * 2, -np.inf)
    dense[arcs.antecedent, arcs.mention] = scores
    expected = argmax(dense, single_root=False)
    if len(clusters):
        np.testing.assert_array_equal(heads_of(trees.some(WHOLE).best(scores), arcs), expected)
    np.testing.assert_array_equal(best_heads(scores, arcs), expected)


@settings(max_examples=50)
@given(SEEDS)
def test_best_and_constrained_against_enumeration(seed: int) -> None:
    text = small(seed)
    coded, arcs, clusters = coded_arcs(text)
    if not len(clusters):
        return
    scores = np.random.default_rng(seed).normal(size=len(arcs.antecedent))
    trees = mention_trees(FEATURES, [(coded, arcs, clusters)], None)
    every = listed(arcs, scores)
    right = [(score, heads) for score, heads in every if naive_clusters(heads) == clusters.tolist()]
    assert heads_of(trees.some(WHOLE).best(scores), arcs) == max(every)[1]
    assert heads_of(trees.some(WHOLE).constrained(scores), arcs) == max(right)[1]


def arc_probabilities(trees: list[tuple[float, list[int]]], arcs: Antecedents, temperature: float) -> Floats:
    """The probability of each arc where a tree's is proportional to exp(score / temperature)."""
    top = max(score for score, _ in trees)
    total, found = 0.0, np.zeros(len(arcs.antecedent))
    for score, heads in trees:
        probability = math.exp((score - top) / temperature)
        total += probability
        for k, (a, m) in enumerate(zip(arcs.antecedent.tolist(), arcs.mention.tolist(), strict=True)):
            found[k] += probability * (heads[m] == a)
    return found / total


@settings(max_examples=40)
@given(SEEDS, st.sampled_from([0.5, 2.0, 30.0]))
def test_shares_are_the_probabilities_of_arcs(seed: int, temperature: float) -> None:
    text = small(seed)
    coded, arcs, clusters = coded_arcs(text)
    if not len(clusters):
        return
    scores = np.random.default_rng(seed).normal(size=len(arcs.antecedent))
    trees = mention_trees(FEATURES, [(coded, arcs, clusters)], None, temperature=temperature)
    every = listed(arcs, scores)
    right = [(score, heads) for score, heads in every if naive_clusters(heads) == clusters.tolist()]
    for shares, among in (
        (trees.some(WHOLE).best(scores), every),
        (trees.some(WHOLE).constrained(scores), right),
    ):
        expected = arc_probabilities(among, arcs, temperature)
        np.testing.assert_allclose(shares, np.where(expected < NEGLIGIBLE, 0.0, expected), atol=1e-12)
    sharp = replace(trees, temperature=1e-9)
    hard = replace(trees, temperature=0.0)
    np.testing.assert_array_equal(sharp.some(WHOLE).best(scores), hard.some(WHOLE).best(scores))
    huge = trees.some(WHOLE).best(1e300 * scores)
    np.testing.assert_array_equal(huge, hard.some(WHOLE).best(scores))


@settings(max_examples=15)
@given(SEEDS)
def test_a_soft_update_is_the_gradient_of_the_log_probability(seed: int) -> None:
    """Of the gold clusters, all their trees summed, by finite differences along a random direction."""
    text, temperature, step = small(seed), 2.0, 1e-5
    coded, arcs, clusters = coded_arcs(text)
    if not len(clusters):
        return
    trees = mention_trees(FEATURES, [(coded, arcs, clusters)], None, temperature=temperature)
    rng = np.random.default_rng(seed)
    weights, direction = rng.normal(size=(2, trees.size))

    def log_probability(at: Floats) -> float:
        every = listed(arcs, trees.some(WHOLE).score(at))
        right = [score for score, heads in every if naive_clusters(heads) == clusters.tolist()]
        sums = [np.logaddexp.reduce(np.array(scores) / temperature) for scores in (right, [s for s, _ in every])]
        return float(sums[0] - sums[1])

    this, gradient = trees.some(WHOLE), np.zeros(trees.size)
    scores = this.score(weights)
    this.add(gradient, this.constrained(scores) - this.best(scores))
    slope = (log_probability(weights + step * direction) - log_probability(weights - step * direction)) / (2 * step)
    # what is negligible is left out of the gradient
    assert gradient @ direction / temperature == pytest.approx(slope, rel=1e-5, abs=50 * NEGLIGIBLE)


@settings(max_examples=60)
@given(SEEDS, st.booleans())
def test_constrained_yields_the_gold_clusters(seed: int, zero: bool) -> None:
    """Of any clusters, under any weights; also where all arcs are alike."""
    text = random_document(seed)
    coded, arcs, clusters = coded_arcs(text)
    if not len(clusters):
        return
    trees = mention_trees(SMALL, [(coded, arcs, clusters)], None)
    weights = np.random.default_rng(seed).normal(size=trees.size) * (0.0 if zero else 3.0)
    this = trees.some(WHOLE)
    latent = this.constrained(this.score(weights))
    heads = heads_of(latent, arcs)
    assert naive_clusters(heads) == text.clusters.tolist()
    np.testing.assert_array_equal(clusters_of(np.array(heads)), text.clusters)
    assert this.loss(this.output(latent)) == 0


def test_of_equals_the_nearest() -> None:
    text = random_document(3)
    coded, arcs, clusters = coded_arcs(text)
    trees = mention_trees(FEATURES, [(coded, arcs, clusters)], None)
    nothing = np.zeros(len(arcs.antecedent))
    assert heads_of(trees.some(WHOLE).best(nothing), arcs) == [-1, *(row[-1] for row in rows_of(arcs))]


@settings(max_examples=50)
@given(SEEDS)
def test_the_loss_counts_the_mentions_that_are_wrong(seed: int) -> None:
    text = small(seed)
    coded, arcs, clusters = coded_arcs(text)
    trees = mention_trees(FEATURES, [(coded, arcs, clusters)], None)
    gold = clusters.tolist()
    for _, heads in listed(arcs, np.zeros(len(arcs.antecedent))) if gold else []:
        wrong = 0
        for m in range(1, len(heads)):
            earlier = [a for a in range(1, m) if gold[a - 1] == gold[m - 1]]
            wrong += heads[m] not in (earlier or [0])
        chosen = (np.array(heads)[arcs.mention] == arcs.antecedent).astype(np.float64)
        this = trees.some(WHOLE)
        output = this.output(chosen)
        np.testing.assert_array_equal(arcs.antecedent[output], heads[1:])
        assert this.loss(output) == wrong
        assert (wrong == 0) == (naive_clusters(heads) == gold)


@given(SEEDS, st.sampled_from([0.0, 0.5, 1.0, 4.0]))
def test_the_cost_of_arcs(seed: int, root_weight: float) -> None:
    text = random_document(seed)
    coded, arcs, clusters = coded_arcs(text)
    if not len(clusters):
        return
    this = mention_trees(FEATURES, [(coded, arcs, clusters)], None, root_weight).some(WHOLE)
    latent = this.constrained(np.random.default_rng(seed).normal(size=len(arcs.antecedent)))
    before = latent.copy()
    cost = this.cost(latent)
    np.testing.assert_array_equal(latent, before)
    for is_latent, a, found in zip(latent.tolist(), arcs.antecedent.tolist(), cost.tolist(), strict=True):
        assert found == (0.0 if is_latent else root_weight if a == 0 else 1.0)
    assert mention_trees(FEATURES, [(coded, arcs, clusters)], None).root_weight == 1.0


@given(SEEDS)
def test_closest_trees(seed: int) -> None:
    text = random_document(seed)
    coded, arcs, clusters = coded_arcs(text)
    if not len(clusters):
        return
    closest = closest_trees(mention_trees(FEATURES, [(coded, arcs, clusters)], None, 2.0))
    gold = clusters.tolist()
    expected = [-1]
    for m, row in enumerate(rows_of(arcs), start=1):
        right = [a for a in row if a and gold[a - 1] == gold[m - 1]]
        expected.append(max(right, default=0))
    this = closest.some(WHOLE)
    chosen = this.constrained(np.random.default_rng(seed).normal(size=len(arcs.antecedent)))
    assert heads_of(chosen, arcs) == expected
    np.testing.assert_array_equal(this.cost(chosen), np.where(arcs.antecedent == 0, 2.0, 1.0) * (1 - chosen))
    assert closest.lengths.tolist() == [len(this.arcs.start) - 1] == [len(gold)]


@pytest.mark.parametrize("heads", [[-1], [-1, 0], [-1, 0, 1, 0, 2, 3, 0, 4], [-1, 0, 0, 2, 1], [-1, 0, 1, 1, 3]])
def test_clusters_of_a_tree(heads: list[int]) -> None:
    assert clusters_of(np.array(heads)).tolist() == naive_clusters(heads)


# Stretches


def examples(trees: MentionTrees) -> list[MentionStretch]:
    """Every stretch, one at a time."""
    found = [trees.some(np.array([i])) for i in range(len(trees.lengths))]
    assert [len(this.arcs.start) - 1 for this in found] == trees.lengths.tolist()
    return found


@pytest.mark.parametrize("longest", [1, 3, 100, None])
def test_stretches_cover_each_mention_once(longest: int | None) -> None:
    """Those of a document without mentions too, of which there are none."""
    texts = [random_document(seed) for seed in range(6)] + [document([sentence("a X 0 x")], []), random_document(7)]
    parts = [coded_arcs(text) for text in texts]
    trees = mention_trees(FEATURES, parts, longest)
    whole = mention_trees(FEATURES, parts, None)
    sizes = [
        min(longest or n, n - done)
        for n in map(len, (t.mentions for t in texts))
        for done in range(0, n, longest or n or 1)
    ]
    assert trees.lengths.tolist() == sizes
    assert sum(sizes) == sum(len(text.mentions) for text in texts) > 20
    assert len(trees.stretches) == len(trees.right) == len(sizes)
    weights = np.random.default_rng(0).normal(size=trees.size)
    pieces, wholes = ([this.score(weights) for this in examples(t)] for t in (trees, whole))
    np.testing.assert_array_equal(np.concatenate(pieces), np.concatenate(wholes))
    np.testing.assert_array_equal(np.concatenate(trees.right), np.concatenate(whole.right))
    for choose in ("best", "constrained"):
        one, other = (
            [getattr(this, choose)(s) for this, s in zip(examples(t), scores, strict=True)]
            for t, scores in ((trees, pieces), (whole, wholes))
        )
        np.testing.assert_array_equal(np.concatenate(one), np.concatenate(other))
        assert np.concatenate(one).sum() == sum(sizes)
    one, other = np.zeros(trees.size), np.zeros(trees.size)
    for t, scores, total in ((trees, pieces, one), (whole, wholes, other)):
        for this, amounts in zip(examples(t), scores, strict=True):
            this.add(total, amounts)
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


# Learning


def passes_of(learner: Any, examples: Any) -> list[tuple[Floats, dict[str, float]]]:
    found: list[tuple[Floats, dict[str, float]]] = []

    def report(done: Pass) -> bool:
        found.append((done.weights.copy(), dict(done.figures)))
        return True

    np.testing.assert_array_equal(learner.fit(examples, report), found[-1][0])
    return found


@dataclass(frozen=True)
class Given:
    """Stretches whose right tree is given, the closest one, as the perceptron takes them."""

    trees: MentionTrees

    offers = ARGMAX

    @property
    def lengths(self) -> Ints:
        return self.trees.lengths

    @property
    def size(self) -> int:
        return self.trees.size

    def some(self, which: Ints) -> GivenStretch:
        return GivenStretch(self.trees.some(which))


@dataclass(frozen=True)
class GivenStretch:
    stretch: MentionStretch

    @property
    def lengths(self) -> Ints:
        return np.array([len(self.stretch.arcs.start) - 1])

    def score(self, weights: Floats) -> Floats:
        return self.stretch.score(weights)

    def add(self, into: Floats, amounts: Floats) -> None:
        self.stretch.add(into, amounts)

    def gold(self) -> Floats:
        gold = np.zeros(len(self.stretch.right))
        for start, end in pairwise(self.stretch.arcs.start.tolist()):
            gold[start + np.flatnonzero(self.stretch.right[start:end])[-1]] = 1.0
        return gold

    def cost(self) -> Floats:
        return self.stretch.cost(self.gold())

    def best(self, scores: Floats) -> Floats:
        return self.stretch.best(scores)


@pytest.mark.parametrize("margin", [0.0, 3.0, 0.1])
@pytest.mark.parametrize("root_weight", [1.0, 2.5])
@pytest.mark.parametrize("longest", [2, None])
@pytest.mark.parametrize("temperature", [0.0, 30.0])
def test_with_the_tree_given_it_is_the_perceptron(
    margin: float, root_weight: float, longest: int | None, temperature: float
) -> None:
    """Update by update: the same weights after each pass, bit for bit."""
    texts = [random_document(seed) for seed in range(10)]
    trees = mention_trees(FEATURES, list(map(coded_arcs, texts)), longest, root_weight, temperature)
    mine = passes_of(LatentPerceptron(4, margin, 7), closest_trees(trees))
    theirs = passes_of(Perceptron(4, margin, 7), Given(trees))
    assert len(mine) == len(theirs) == 4  # neither has converged
    for (weights, figures), (others, other_figures) in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(weights, others)
        assert figures["mistakes"] == other_figures["mistakes"] > 0
    latent = passes_of(LatentPerceptron(4, margin, 7), trees)
    assert not np.array_equal(latent[-1][0], theirs[-1][0])  # or the trees would not be latent


class Naive:
    """Latent trees of documents from their words: the weights are a dictionary by template and values."""

    def __init__(self, texts: Sequence[Document], longest: int | None, root_weight: float) -> None:
        self.root_weight = root_weight
        counts: Counter[tuple[str, str]] = Counter()
        described = [naive_attributes(text) for text in texts]
        for attributes in (each for mentions in described for each in mentions):
            counts.update(attributes.items())
        self.mentions: list[list[tuple[int, list[Any], bool]]] = []  # (antecedent, features, is it right) of each arc
        self.examples: list[list[int]] = []
        for text, attributes in zip(texts, described, strict=True):
            known = [
                {name: value if counts[name, value] >= LEAST else "unknown" for name, value in each.items()}
                for each in attributes
            ]
            rows = naive_antecedents(text, SIEVES.mentions, SIEVES.sentences, text.clusters.tolist())
            begin = len(self.mentions)
            for m, row in enumerate(rows, start=1):
                self.mentions.append([(a, self.fired(text, known, row, a, m), self.right(text, a, m)) for a in row])
            step = longest or max(1, len(rows))
            every = list(range(begin, len(self.mentions)))
            self.examples += [every[i : i + step] for i in range(0, len(every), step)]

    def fired(self, text: Document, known: list[dict[str, str]], row: list[int], a: int, m: int) -> list[Any]:
        mentions = naive_mentions(text)
        values: dict[str, Any] = {f"p.{name}": value for name, value in naive_atoms(mentions, row, a, m).items()}
        values["p.path"] = naive_path(mentions[a - 1], mentions[m - 1]) if a else "root"
        for name, value in known[m - 1].items():
            values[f"m.{name}"] = value
            values[f"a.{name}"] = known[a - 1][name] if a else "root"
        return [(template, *(values[atom] for atom in (*template, "p.root"))) for template in FEATURES.templates]

    def right(self, text: Document, a: int, m: int) -> bool:
        clusters = text.clusters.tolist()
        first = clusters.index(clusters[m - 1]) + 1
        return first == m if a == 0 else clusters[a - 1] == clusters[m - 1]

    def train(self, epochs: int, margin: float, seed: int) -> list[dict[Any, float]]:
        """The average of the weights after each example, at the end of each pass."""
        weights: Counter[Any] = Counter()
        total: Counter[Any] = Counter()
        averages, steps = [], 0
        for epoch in range(epochs):
            for i in np.random.default_rng((seed, epoch)).permutation(len(self.examples)).tolist():
                changes: Counter[Any] = Counter()
                for m in self.examples[i]:
                    scored = [(sum(weights[f] for f in fired), a, fired, ok) for a, fired, ok in self.mentions[m]]
                    latent = max((s, a, fired) for s, a, fired, ok in scored if ok)
                    costs = [0.0 if a == latent[1] else self.root_weight if a == 0 else 1.0 for _, a, _, _ in scored]
                    found = max((s + margin * c, a, f) for (s, a, f, _), c in zip(scored, costs, strict=True))
                    for feature in latent[2]:
                        changes[feature] += 1
                    for feature in found[2]:
                        changes[feature] -= 1
                for feature, change in changes.items():
                    weights[feature] += change
                for feature, value in weights.items():
                    total[feature] += value
                steps += 1
            averages.append({feature: value / steps for feature, value in total.items()})
        return averages


@pytest.mark.parametrize("longest", [None, 1, 3])
@pytest.mark.parametrize(("margin", "root_weight"), [(0.0, 1.0), (4.0, 1.0), (2.5, 2.5)])
def test_learning_against_a_dictionary_of_weights(longest: int | None, margin: float, root_weight: float) -> None:
    texts = [random_document(seed) for seed in range(20, 30)]
    numbering = MentionCoder.learn(texts)
    parts = [coded_arcs(text, numbering) for text in texts]
    trees = mention_trees(FEATURES, parts, longest, root_weight)
    naive = Naive(texts, longest, root_weight)
    assert [len(example) for example in naive.examples] == trees.lengths.tolist()
    passes, averages = passes_of(LatentPerceptron(3, margin, 5), trees), naive.train(3, margin, 5)
    assert len(passes) == 3
    for (weights, _), expected in zip(passes, averages, strict=True):
        scores = np.concatenate([FEATURES.score(weights, stretch(coded, arcs)) for coded, arcs, _ in parts])
        known = [sum(expected.get(f, 0.0) for f in fired) for mention in naive.mentions for _, fired, _ in mention]
        assert np.abs(scores).max() > 1
        np.testing.assert_allclose(scores, known, rtol=1e-9, atol=1e-9)


# Real documents


@pytest.mark.skipif(not GUM.is_dir(), reason=f"no treebank at {GUM}")
def test_constrained_yields_the_gold_clusters_of_gum() -> None:
    """Of every development document, with the sieves that come with Headway."""
    documents = list(read_documents(GUM / "en_gum-ud-dev.conllu.gz"))
    numbering = MentionCoder.learn(documents)
    rng = np.random.default_rng(0)
    inserted = 0
    for text in documents:
        coded = numbering.code(text)
        arcs = Sieves().antecedents(coded, text.clusters)
        inserted += len(arcs.antecedent) - len(Sieves().antecedents(coded).antecedent)
        trees = mention_trees(SMALL, [(coded, arcs, text.clusters)], None).some(WHOLE)
        for scale in (0.0, 1.0, 100.0):
            weights = rng.normal(size=SMALL.size) * scale
            heads = heads_of(trees.constrained(trees.score(weights)), arcs)
            np.testing.assert_array_equal(clusters_of(np.array(heads)), text.clusters)
    assert len(documents) > 20
    assert inserted > 0  # what no sieve lets through
