"""L-BFGS and conjugate gradient: SciPy's optima by SciPy's ways, and nothing but their state to go on from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der
from scipy.special import expit

from headway.arrays import Floats, dot
from headway.errors import CheckpointError
from headway.learning.descent import Descent
from headway.learning.line_search import Point, Wolfe, search_along
from headway.learning.progress import Pass, State

every_optimiser = pytest.mark.parametrize("optimiser", ["lbfgs", "cg"])


def valley(weights: Floats) -> tuple[float, Floats]:
    """Rosenbrock's, its minimum at 2 everywhere."""
    return float(rosen(weights - 1)), rosen_der(weights - 1)


def uneven(weights: Floats) -> tuple[float, Floats]:
    """Convex and smooth, with curvatures from 1 to 1000."""
    scales = np.geomspace(1, 1000, len(weights))
    value = np.logaddexp(scales * weights - 1, -weights).sum() + weights @ weights / 2
    return float(value), (scales + 1) * expit((scales + 1) * weights - 1) - 1 + weights


@every_optimiser
@pytest.mark.parametrize(("objective", "size"), [(valley, 2), (valley, 12), (uneven, 1), (uneven, 30)])
def test_the_optimum_is_scipys(optimiser: Any, objective: Any, size: int) -> None:
    found = Descent(3000, optimiser, tolerance=1e-9).minimise(objective, size, lambda _: True)
    expected = minimize(objective, np.zeros(size), jac=True, method="BFGS", options={"gtol": 1e-9})
    assert objective(found)[0] == pytest.approx(objective(expected.x)[0], abs=1e-10)
    np.testing.assert_allclose(found, expected.x, atol=1e-5)


@pytest.mark.parametrize(("optimiser", "method", "options"), [("lbfgs", "L-BFGS-B", {"maxcor": 6}), ("cg", "CG", {})])
def test_the_first_steps_are_scipys(optimiser: Any, method: str, options: dict[str, Any]) -> None:
    """Until rounding tells the ways apart."""
    ours: list[float] = []
    theirs: list[float] = []

    def report(done: Pass) -> bool:
        ours.append(done.figures["objective"])
        return True

    def watch(intermediate_result: Any) -> None:
        theirs.append(float(intermediate_result.fun))

    Descent(15, optimiser, tolerance=0.0).minimise(valley, 10, report)
    minimize(valley, np.zeros(10), jac=True, method=method, callback=watch, options={**options, "maxiter": 15})
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def textbook(objective: Any, weights: Floats, steps: int) -> list[Point]:
    """L-BFGS by its formulas, with the pairs in a list; where a step leads nowhere it is over."""
    pairs: list[tuple[Floats, Floats]] = []
    points = [Point(weights, *objective(weights))]
    for _ in range(steps):
        at = points[-1]
        direction, shares = -at.gradient, []
        for s, y in reversed(pairs):
            shares.insert(0, dot(s, direction) / dot(s, y))
            direction = direction - shares[0] * y
        if pairs:
            s, y = pairs[-1]
            direction = direction * (dot(s, y) / dot(y, y))
        for (s, y), share in zip(pairs, shares, strict=True):
            direction = direction + (share - dot(y, direction) / dot(s, y)) * s
        first = 1.0 if pairs else 1.0 / np.sqrt(dot(direction, direction))
        found = search_along(objective, at, direction, first, Wolfe(1e-3, 0.9, 0.1, 20))
        assert found is not None
        points.append(found)
        pairs = [*pairs, (found.weights - at.weights, found.gradient - at.gradient)][-6:]
    return points


def states_of(objective: Any, size: int, steps: int, resume: State | None = None) -> list[State]:
    """After each step."""
    states: list[State] = []

    def report(done: Pass) -> bool:
        states.append({name: array.copy() for name, array in done.state.items()})
        return True

    Descent(steps, tolerance=0.0).minimise(objective, size, report, resume)
    return states


@pytest.mark.parametrize(("objective", "size", "steps"), [(valley, 12, 25), (uneven, 200_001, 14)])
def test_the_steps_are_the_textbooks_bit_for_bit(objective: Any, size: int, steps: int) -> None:
    """Long enough for every row of pairs to be written twice; and vectors longer than a block of `add_scaled`."""
    found, (_, *expected) = states_of(objective, size, steps), textbook(objective, np.zeros(size), steps)
    assert len(found) == steps
    for state, point in zip(found, expected, strict=True):
        np.testing.assert_array_equal(state["weights"], point.weights)


@pytest.mark.parametrize("after", [3, 6, 9, 17])
def test_a_state_with_its_pairs_in_order_is_understood(after: int) -> None:
    """Headway 0.1 kept the oldest pair in the first row, and never counted more than there were rows."""
    states = states_of(valley, 12, 25)
    state = states[after - 1]
    pairs = int(state["pairs"][0])
    assert pairs == after
    order = [number % 6 for number in range(max(0, pairs - 6), pairs)]
    former = dict(state, pairs=np.array([min(pairs, 6)]))
    for name in ("moves", "changes"):
        former[name] = np.zeros_like(state[name])
        former[name][: len(order)] = state[name][order]
    for found, expected in zip(states_of(valley, 12, 25, former), states[after:], strict=True):
        np.testing.assert_array_equal(found["weights"], expected["weights"])


@pytest.mark.parametrize("first", [1e-9, 1e-3, 1.0, 50.0])
@pytest.mark.parametrize("curvature", [0.1, 0.9])
def test_steps_meet_the_wolfe_conditions(first: float, curvature: float) -> None:
    wolfe = Wolfe(decrease=1e-4, curvature=curvature, width=1e-12, trials=60)
    rng = np.random.default_rng(3)
    for objective in (valley, uneven):
        for _ in range(20):
            weights = rng.normal(size=5)
            at = Point(weights, *objective(weights))
            direction = -at.gradient * rng.uniform(0.5, 2.0, 5)
            found = search_along(objective, at, direction, first, wolfe)
            assert found is not None
            slope, step = dot(at.gradient, direction), float((found.weights - weights)[0] / direction[0])
            assert found.value <= at.value + wolfe.decrease * step * slope
            assert abs(dot(found.gradient, direction)) <= -curvature * slope


def test_nothing_is_found_uphill() -> None:
    at = Point(np.zeros(3), *valley(np.zeros(3)))
    assert search_along(valley, at, at.gradient, 1.0, Wolfe(1e-3, 0.9, 0.1, 20)) is None


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("pairs", np.array([7])),
        ("pairs", np.array([-1])),
        ("moves", np.zeros((6, 4))),
        ("changes", -np.ones((6, 4))),
        ("changes", np.ones((5, 4))),
        ("gradient", np.ones(3)),
        ("figures", np.ones(1)),
    ],
)
def test_a_state_that_cannot_be_is_refused(name: str, wrong: Any) -> None:
    states: list[State] = []

    def stop_at_five(done: Pass) -> bool:
        states.append({key: array.copy() for key, array in done.state.items()})
        return done.number < 5

    descent = Descent(50, tolerance=0.0)
    descent.minimise(valley, 4, stop_at_five)
    with pytest.raises(CheckpointError):
        descent.minimise(valley, 4, stop_at_five, {**states[-1], name: wrong})


def test_sums_have_one_order() -> None:
    """Whatever the place in memory; BLAS would have another for every number of threads."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(2, 100_003))
    expected = dot(x, y)
    for shift in range(9):
        moved = np.zeros(len(x) + 9)[shift : shift + len(x)]
        moved[:] = x
        assert dot(moved, y) == expected
    assert expected == pytest.approx(float(np.sum(x.astype(np.longdouble) * y)), rel=1e-11)
