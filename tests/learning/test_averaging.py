"""The driver of averaged training against a twin that keeps every weight vector there ever was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headway.learning.averaging import average, averaged_weights, run_passes, untrained

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def update_of(weights: Floats, i: int) -> Floats:
    """Any update that depends on the weights, so that the order of the examples matters."""
    return np.round(np.sin(np.arange(weights.size) * (i + 1)).reshape(weights.shape) - weights / 2, 3)


def run(order: Ints, weights: Floats, total: Floats, seen: int) -> list[int]:
    for now, i in enumerate(order.tolist(), start=seen):
        update = update_of(weights, i)
        weights += update
        total += now * update
    return order.tolist()


def naive(examples: Ints, shape: Any, epochs: int, seed: int) -> tuple[list[Floats], list[list[int]]]:
    """The mean of all weights so far after each pass, and the order of each pass."""
    weights, kept, means, orders = np.zeros(shape), [], [], []
    for epoch in range(epochs):
        orders.append(np.random.default_rng((seed, epoch)).permutation(examples).tolist())
        for i in orders[-1]:
            weights = weights + update_of(weights, i)
            kept.append(weights)
        means.append(np.mean(kept, axis=0))
    return means, orders


@pytest.mark.parametrize("shape", [5, (3, 2)])
@pytest.mark.parametrize("seed", [0, 7])
def test_the_average_is_of_the_weights_after_each_example(shape: Any, seed: int) -> None:
    examples = np.array([2, 3, 5, 8])
    means, orders = naive(examples, shape, 3, seed)
    shown: list[tuple[int, list[int]]] = []
    found = averaged_weights(run, examples, shape, 3, seed, lambda *figures: shown.append(figures))
    np.testing.assert_allclose(found, means[-1], rtol=0, atol=1e-12)
    assert shown == [(k + 1, order) for k, order in enumerate(orders)]
    assert len({tuple(order) for order in orders}) > 1
    assert all(sorted(order) == examples.tolist() for order in orders)
    np.testing.assert_array_equal(averaged_weights(run, examples, shape, 3, seed), found)


def test_each_pass_has_its_average_and_training_goes_on_from_any() -> None:
    examples = np.arange(4)
    means, orders = naive(examples, 5, 4, 1)
    state = untrained(5)
    for epoch, order in run_passes(run, examples, state, 2, 1):
        assert order == orders[epoch - 1]
        assert state["pass"].tolist() == [epoch]
        np.testing.assert_allclose(average(state, epoch * 4), means[epoch - 1], rtol=0, atol=1e-12)
    saved = {name: array.copy() for name, array in state.items()}
    assert [epoch for epoch, _ in run_passes(run, examples, saved, 4, 1)] == [3, 4]
    np.testing.assert_array_equal(average(saved, 16), averaged_weights(run, examples, 5, 4, 1))
    assert list(run_passes(run, examples, saved, 4, 1)) == []


def test_a_pass_is_made_when_it_is_asked_for() -> None:
    """So that who asks may end the training after any pass."""
    state = untrained(5)
    next(run_passes(run, np.arange(4), state, 10, 0))
    np.testing.assert_array_equal(average(state, 4), averaged_weights(run, np.arange(4), 5, 1, 0))


def test_no_example_and_no_pass() -> None:
    nothing: Ints = np.arange(0)
    assert averaged_weights(run, nothing, 3, 2, 0).tolist() == [0.0] * 3
    assert averaged_weights(run, np.arange(4), 3, 0, 0).tolist() == [0.0] * 3
