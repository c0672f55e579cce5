"""Learning from targets: value and gradient from all trees of a text, what training reaches, and what contributes."""

from __future__ import annotations

from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import pytest

from headway.arrays import Floats, TreeClass, dot
from headway.learning import problem as problem_module
from headway.learning.descent import Descent
from headway.learning.generalized_expectation import GeneralizedExpectation
from headway.learning.structures import Trees
from headway.parallel import Threads

from .dense import (
    SINGLE_ROOT,
    TREE_CLASSES,
    DenseConstraints,
    DenseText,
    Listed,
    assert_gradient,
    central_differences,
    fitted,
    random_text,
)

C = 3.0
LENGTHS = (3, 1, 4, 2)
every_class = pytest.mark.parametrize("trees", TREE_CLASSES)
every_criterion = pytest.mark.parametrize("criterion", ["squared", "kl"])


def possible_words(values: list[Floats], k: int) -> int:
    """Words that some arc would make match constraint k: its units."""
    return sum(
        any(value[k, h, m] for h in range(value.shape[1]) if h != m)
        for value in values
        for m in range(1, value.shape[1])
    )


def random_constraints(seed: int, text: DenseText, low: Floats, high: Floats, weights: Floats) -> DenseConstraints:
    """Predicates that hold for two arcs in five, so that most arcs have several, column 0 and diagonal not spared."""
    rng = np.random.default_rng(seed)
    values = [(rng.random((len(low), n + 1, n + 1)) < 0.4).astype(float) for n in text.lengths.tolist()]
    units = np.array([possible_words(values, k) for k in range(len(low))], np.float64)
    return DenseConstraints(values, low, high, weights, units)


def point_constraints(seed: int, text: DenseText, targets: list[float]) -> DenseConstraints:
    point = np.array(targets)
    return random_constraints(seed, text, point, point, np.ones(len(point)))


def enumerated_shares(constraints: DenseConstraints, listed: Listed, weights: Floats) -> Floats:
    """(K,), the mean of each constraint's count over all trees, over its units; 0 where there are none."""
    shares = np.zeros(len(constraints.units))
    for k, units in enumerate(constraints.units.tolist()):
        counts = listed.sums([value[k] for value in constraints.values])
        means = [np.exp(p) @ count for p, count in zip(listed.log_probabilities(weights), counts, strict=True)]
        shares[k] = sum(means) / units if units else 0.0
    return shares


def distance(criterion: str, low: float, high: float, share: float) -> float:
    """G, from its definition."""
    target = low if share < low else high
    if low <= share <= high:
        return 0.0
    if criterion == "squared":
        return (target - share) ** 2
    coins = ((target, share), (1 - target, 1 - share))
    return sum(p * log(p / q) for p, q in coins if p > 0)


def enumerated_objective(
    constraints: DenseConstraints, listed: Listed, weights: Floats, criterion: str, c: float = C
) -> float:
    total = 0.5 * dot(weights, weights)
    for k, share in enumerate(enumerated_shares(constraints, listed, weights).tolist()):
        if constraints.units[k]:
            ends = float(constraints.low[k]), float(constraints.high[k])
            total += c * float(constraints.weights[k]) * distance(criterion, *ends, share)
    return total


def some_weights(text: DenseText, seed: int, size: float = 0.5) -> Floats:
    return size * np.random.default_rng(seed).normal(size=text.size)


@every_class
@every_criterion
@pytest.mark.parametrize("chunk", [1, 10**6])
def test_objective_and_gradient(trees: TreeClass, criterion: Any, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points, ends of the scale, and ranges that the share lies above, below and inside of; six that overlap."""
    monkeypatch.setattr(problem_module, "_CHUNK", chunk)
    text = random_text(101, trees, lengths=LENGTHS)
    listed = Listed(text)
    weights = some_weights(text, 102)
    drafted = point_constraints(103, text, [0.5] * 6)
    assert max(value[:, 0, 1:].sum(axis=0).max() for value in drafted.values) > 1
    shares = enumerated_shares(drafted, listed, weights)
    assert ((shares > 0.05) & (shares < 0.95)).all()
    low = np.array([0.9, 0.1, 0.0, 0.5 * (shares[3] + 1.0), 0.25 * shares[4], 0.5 * shares[5]])
    high = np.array([0.9, 0.1, 0.0, 1.0, 0.5 * shares[4], 0.5 * (shares[5] + 1.0)])
    importance = np.array([1.0, 0.3, 2.0, 0.7, 5.0, 1.5])
    constraints = DenseConstraints(drafted.values, low, high, importance, drafted.units)
    learner = GeneralizedExpectation(constraints, criterion, C)
    np.testing.assert_allclose(learner.expectations(text, weights), shares, rtol=1e-12)
    value, gradient = learner.objective(text, weights)
    assert value == pytest.approx(enumerated_objective(constraints, listed, weights, criterion), rel=1e-12)
    assert_gradient(gradient, lambda w: enumerated_objective(constraints, listed, w, criterion), weights)


@every_class
@every_criterion
@pytest.mark.parametrize("k", range(4))
def test_every_constraint_alone(trees: TreeClass, criterion: Any, k: int) -> None:
    """Its gradient, which the regulariser's cannot hide."""
    text = random_text(104, trees, lengths=LENGTHS)
    listed = Listed(text)
    weights = some_weights(text, 105)
    constraints = point_constraints(106, text, [0.9, 0.2, 0.0, 1.0])
    importance = np.zeros(4)
    importance[k] = 2.0
    alone = DenseConstraints(constraints.values, constraints.low, constraints.high, importance, constraints.units)
    _, gradient = GeneralizedExpectation(alone, criterion, C).objective(text, weights)

    def expected(weights: Floats) -> float:
        return enumerated_objective(alone, listed, weights, criterion) - 0.5 * dot(weights, weights)

    assert_gradient(gradient - weights, expected, weights)


@every_criterion
def test_inside_its_range_a_constraint_contributes_nothing(criterion: Any) -> None:
    text = random_text(107, lengths=LENGTHS)
    weights = some_weights(text, 108)
    whole = random_constraints(109, text, np.zeros(3), np.ones(3), np.full(3, 1e6))
    shares = enumerated_shares(whole, Listed(text), weights)
    ranges = ((np.zeros(3), np.ones(3)), (shares - 1e-3, shares + 1e-3))
    for low, high in ranges:
        constraints = DenseConstraints(whole.values, low, high, whole.weights, whole.units)
        value, gradient = GeneralizedExpectation(constraints, criterion, C).objective(text, weights)
        assert value == 0.5 * dot(weights, weights)
        np.testing.assert_array_equal(gradient, weights)
    just_outside = DenseConstraints(whole.values, shares + 1e-3, shares + 2e-3, whole.weights, whole.units)
    assert GeneralizedExpectation(just_outside, criterion, C).objective(text, weights)[0] > value + 1.0


@every_criterion
def test_without_units_a_constraint_is_left_out(criterion: Any) -> None:
    """One that matches no arc, and one said to speak of nothing; without them all is the same."""
    text = random_text(110, lengths=LENGTHS)
    weights = some_weights(text, 111)
    both = point_constraints(112, text, [0.9, 0.3, 0.7, 0.8])
    for value in both.values:
        value[2] = 0.0
    units = both.units.copy()
    units[2:] = 0.0
    constraints = DenseConstraints(both.values, both.low, both.high, both.weights, units)
    two = DenseConstraints([v[:2] for v in both.values], both.low[:2], both.high[:2], both.weights[:2], units[:2])
    left, right = (GeneralizedExpectation(each, criterion, C).objective(text, weights) for each in (constraints, two))
    assert left[0] == pytest.approx(right[0], rel=1e-14)
    np.testing.assert_allclose(left[1], right[1], rtol=1e-13)
    assert left[0] > 0.5 * dot(weights, weights) + 0.01
    assert GeneralizedExpectation(constraints, criterion, C).expectations(text, weights)[2] == 0.0


@every_criterion
def test_a_weight_of_two_is_two_constraints(criterion: Any) -> None:
    text = random_text(113, lengths=LENGTHS)
    weights = some_weights(text, 114)
    once = point_constraints(115, text, [0.9, 0.2])
    heavy = DenseConstraints(once.values, once.low, once.high, np.array([2.0, 1.0]), once.units)
    order = [0, 0, 1]
    doubled = DenseConstraints(
        [v[order] for v in once.values], once.low[order], once.high[order], np.ones(3), once.units[order]
    )
    left, right, light = (
        GeneralizedExpectation(each, criterion, C).objective(text, weights) for each in (heavy, doubled, once)
    )
    assert left[0] == pytest.approx(right[0], rel=1e-13)
    np.testing.assert_allclose(left[1], right[1], rtol=1e-12)
    assert np.abs(left[1] - light[1]).max() > 1e-3


def test_features_and_predicates_have_nothing_to_do_with_each_other() -> None:
    """A model whose one feature marks arcs from the root moves a share of other arcs, as far as trees tie them."""
    n = 3
    features = np.zeros((n + 1, n + 1, 1))
    features[0, 1:, 0] = 1.0
    text = DenseText([features], Trees(TreeClass(single_root=False)))
    value = np.zeros((1, n + 1, n + 1))
    value[0, 1:, 1:] = 1.0  # arcs between words
    half = np.array([0.5])
    constraints = DenseConstraints([value], half, half, np.ones(1), np.array([3.0]))
    learner = GeneralizedExpectation(constraints, "squared", 1e6, Descent(100))
    weights, _ = fitted(learner, text)
    # Of the 16 trees over 3 words, 9 have one word on the root, 6 two, 1 three.
    number = np.array([9, 6, 1]) * np.exp(weights[0] * np.array([1, 2, 3]))
    assert float(number @ [2, 1, 0]) / number.sum() / 3 == pytest.approx(0.5, abs=1e-3)
    single_root = replace(text, structures=Trees(SINGLE_ROOT))
    single = GeneralizedExpectation(constraints, "squared", 1e6).objective(single_root, np.array([0.4]))
    assert single[1] == pytest.approx([0.4], abs=1e-9)  # one root arc in every tree: nothing to move


@every_class
@every_criterion
@pytest.mark.parametrize("optimiser", ["lbfgs", "cg"])
def test_every_step_falls(trees: TreeClass, criterion: Any, optimiser: Any) -> None:
    text = random_text(116, trees, lengths=LENGTHS)
    listed = Listed(text)
    constraints = point_constraints(117, text, [0.9, 0.2, 0.6, 0.1])
    learner = GeneralizedExpectation(constraints, criterion, 20.0, Descent(300, optimiser))
    weights, passes = fitted(learner, text)
    start, first_gradient = learner.objective(text, np.zeros(text.size))
    assert (np.diff([start, *(done.figures["objective"] for done in passes)]) < 0).all()
    for done in passes:
        expected = enumerated_objective(constraints, listed, done.weights, criterion, 20.0)
        assert done.figures["objective"] == pytest.approx(expected, rel=1e-11)
    _, gradient = learner.objective(text, weights)
    assert np.linalg.norm(gradient) < 1e-3 * np.linalg.norm(first_gradient)


@every_class
@every_criterion
def test_targets_that_can_be_reached_are(trees: TreeClass, criterion: Any) -> None:
    """The targets are some weights' shares. As ranges, smaller weights reach them."""
    text = random_text(118, trees, lengths=(3, 4, 2, 4))
    listed = Listed(text)
    drafted = point_constraints(119, text, [0.5] * 4)
    targets = enumerated_shares(drafted, listed, some_weights(text, 120, 1.0))
    at_zero = enumerated_shares(drafted, listed, np.zeros(text.size))
    assert np.abs(targets - at_zero).max() > 0.04
    found = []
    for slack in (0.0, 0.02):
        low, high = targets - slack, targets + slack
        constraints = DenseConstraints(drafted.values, low, high, drafted.weights, drafted.units)
        descent = Descent(500, tolerance=1e-7)
        learner = GeneralizedExpectation(constraints, criterion, 1e6, descent)
        weights, _ = fitted(learner, text)
        shares = enumerated_shares(constraints, listed, weights)
        assert (shares > low - 1e-4).all()
        assert (shares < high + 1e-4).all()
        found.append(float(np.linalg.norm(weights)))
    assert found[1] < found[0]


@every_criterion
def test_targets_that_contradict_each_other(criterion: Any) -> None:
    """The same predicate with two targets: either distance is least at the mean, by weight, of the targets."""
    text = random_text(121, lengths=(3, 4, 2))
    constraints = point_constraints(122, text, [0.3, 0.5])
    for value in constraints.values:
        value[1] = value[0]
    same = np.full(2, constraints.units[0])
    weighted = DenseConstraints(constraints.values, constraints.low, constraints.high, np.array([3.0, 1.0]), same)
    learner = GeneralizedExpectation(weighted, criterion, 1e5, Descent(300, tolerance=1e-8))
    weights, _ = fitted(learner, text)
    np.testing.assert_allclose(enumerated_shares(weighted, Listed(text), weights), 0.35, atol=1e-4)


def test_c_is_how_close_the_fit_is() -> None:
    text = random_text(123, lengths=LENGTHS)
    listed = Listed(text)
    constraints = point_constraints(124, text, [0.9, 0.2, 0.6])
    gaps = []
    for c in (0.1, 10.0, 1000.0):
        weights, _ = fitted(GeneralizedExpectation(constraints, "squared", c, Descent(300)), text)
        shares = enumerated_shares(constraints, listed, weights)
        gaps.append(float(((shares - constraints.low) ** 2).sum()))
    assert (np.diff(gaps) < 0).all()


@every_criterion
@pytest.mark.parametrize("target", [0.0, 0.5, 1.0])
def test_a_share_without_a_choice(criterion: Any, target: float) -> None:
    """Sentences of one word: the share of root arcs is 1 whatever the weights. No inf, no nan, nothing to learn."""
    text = random_text(125, lengths=(1, 1))
    value = np.zeros((1, 2, 2))
    value[0, 0, 1] = 1.0
    point = np.array([target])
    constraints = DenseConstraints([value, value], point, point, np.ones(1), np.array([2.0]))
    weights = some_weights(text, 126)
    learner = GeneralizedExpectation(constraints, criterion, C)
    found, gradient = learner.objective(text, weights)
    assert learner.expectations(text, weights)[0] == 1.0
    assert np.isfinite(found)
    assert (found == 0.5 * dot(weights, weights)) == (target == 1.0)
    np.testing.assert_allclose(gradient, weights, rtol=1e-6)
    trained, passes = fitted(learner, text)
    assert np.abs(trained).max() < 1e-6
    assert len(passes) == 1


@pytest.mark.parametrize("criterion", ["squared", "kl"])
def test_a_share_above_one(criterion: Any) -> None:
    """Several words on the root where the unit is the sentence: value and gradient still belong together."""
    text = random_text(127, TreeClass(single_root=False), lengths=(3, 4))
    values = [np.zeros((1, n + 1, n + 1)) for n in (3, 4)]
    for value in values:
        value[0, 0, 1:] = 1.0
    point = np.array([0.9])
    constraints = DenseConstraints(values, point, point, np.ones(1), np.array([2.0]))
    learner = GeneralizedExpectation(constraints, criterion, C)
    weights = some_weights(text, 128, 0.1)
    assert learner.expectations(text, weights)[0] > 1.2
    gradient = learner.objective(text, weights)[1]
    slopes = central_differences(lambda w: learner.objective(text, w)[0], weights)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-8)


@every_criterion
def test_threads_change_nothing(criterion: Any) -> None:
    text = random_text(129)
    constraints = point_constraints(130, text, [0.9, 0.2, 0.6])
    weights = some_weights(text, 131)
    one, three = (
        GeneralizedExpectation(constraints, criterion, C).objective(replace(text, structures=trees), weights)
        for trees in (Trees(SINGLE_ROOT), Trees(SINGLE_ROOT, Threads(3)))
    )
    assert one[0] == three[0]
    np.testing.assert_array_equal(one[1], three[1])
