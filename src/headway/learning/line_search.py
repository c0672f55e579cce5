"""How far to go along a direction: a step that meets the strong Wolfe conditions (Moré and Thuente 1994).

With phi(t) the objective at a distance t along the direction, a step is accepted where

    phi(t) <= phi(0) + decrease t phi'(0)   and   |phi'(t)| <= curvature |phi'(0)|

The search keeps an interval that contains such steps, and tries the minimum of a cubic or a parabola through the ends'
values and slopes, as MINPACK's `dcsrch` does. Where rounding prevents progress, any lower value will do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

from headway.arrays import Floats, dot

Objective = Callable[[Floats], tuple[float, Floats]]
"""Weights to L(w) and its gradient, the regulariser included."""

_SHORTEST, _LONGEST = 1e-100, 1e10
_SHRINK = 0.66  # an interval that did not become this much smaller in two trials is halved
_NEAR, _FAR = 1.1, 4.0  # the next trial beyond the last, where no interval is known yet


class Point(NamedTuple):
    """Weights, L(w) and its gradient there."""

    weights: Floats
    value: float
    gradient: Floats


@dataclass(frozen=True)
class Wolfe:
    """The constants of the conditions; the search ends when the interval is relatively smaller than `width`."""

    decrease: float
    curvature: float
    width: float
    trials: int


class _Trial(NamedTuple):
    step: float
    value: float
    slope: float


def search_along(objective: Objective, at: Point, direction: Floats, first: float, wolfe: Wolfe) -> Point | None:
    """The point that a step along the direction leads to; None where none with a lower value was found."""
    origin = _Trial(0.0, at.value, dot(at.gradient, direction))
    if not origin.slope < 0:
        return None
    search, step = _Search(origin, wolfe, (0.0, (1 + _FAR) * first)), first
    for _ in range(wolfe.trials):
        weights = step * direction
        weights += at.weights
        value, gradient = objective(weights)
        trial = _Trial(step, value, dot(gradient, direction))
        if search.is_over(trial):
            return Point(weights, value, gradient) if value < at.value else None
        step = search.next_step(trial)
    return None


class _Search:
    """The interval that holds a step: `low` is its end of lower value, `other` the other one."""

    def __init__(self, origin: _Trial, wolfe: Wolfe, limits: tuple[float, float]) -> None:
        self.origin, self.wolfe, self.limits = origin, wolfe, limits
        self.low = self.other = origin
        self.is_bracketed, self.is_modified = False, True
        self.width, self.width_before = _LONGEST, 2 * _LONGEST

    def is_over(self, trial: _Trial) -> bool:
        """Whether the trial meets the conditions, or none that is better can be found."""
        steepest = self.wolfe.decrease * self.origin.slope
        enough = self.origin.value + trial.step * steepest
        if self.is_modified and trial.value <= enough and trial.slope >= steepest:
            self.is_modified = False
        low, high = self.limits
        if self.is_bracketed and (not low < trial.step < high or high - low <= self.wolfe.width * high):
            return True
        if trial.step == _LONGEST and trial.value <= enough and trial.slope <= steepest:
            return True
        if trial.step == _SHORTEST and (trial.value > enough or trial.slope >= steepest):
            return True
        return trial.value <= enough and abs(trial.slope) <= -self.wolfe.curvature * self.origin.slope

    def next_step(self, trial: _Trial) -> float:
        """Narrow the interval by the trial, and choose where to try next."""
        steepest = self.wolfe.decrease * self.origin.slope
        enough = self.origin.value + trial.step * steepest
        if self.is_modified and enough < trial.value <= self.low.value:
            # Lower, but not by enough: seen from the line of sufficient decrease
            low, other, step = self._narrowed(*(_tilted(each, -steepest) for each in (self.low, self.other, trial)))
            self.low, self.other = _tilted(low, steepest), _tilted(other, steepest)
        else:
            self.low, self.other, step = self._narrowed(self.low, self.other, trial)
        near, far = self.low.step, self.other.step
        if self.is_bracketed:
            if abs(far - near) >= _SHRINK * self.width_before:
                step = near + 0.5 * (far - near)
            self.width_before, self.width = self.width, abs(far - near)
            self.limits = min(near, far), max(near, far)
        else:
            self.limits = step + _NEAR * (step - near), step + _FAR * (step - near)
        step = min(max(step, _SHORTEST), _LONGEST)
        low_end, high_end = self.limits
        if self.is_bracketed and (not low_end < step < high_end or high_end - low_end <= self.wolfe.width * high_end):
            return near  # no further progress: the best that was found
        return step

    def _narrowed(self, low: _Trial, other: _Trial, trial: _Trial) -> tuple[_Trial, _Trial, float]:
        """The ends of the new interval, and the next step (MINPACK's `dcstep`)."""
        crosses = (trial.slope > 0) != (low.slope > 0)
        if trial.value > low.value:  # a minimum lies between
            cubic, parabola = _cubic(low, trial), _parabola(low, trial)
            near = abs(cubic - low.step) < abs(parabola - low.step)
            step = cubic if near else cubic + (parabola - cubic) / 2
            self.is_bracketed = True
            return low, trial, step
        if crosses:  # between, again
            cubic, secant = _cubic(trial, low), _secant(trial, low)
            step = cubic if abs(cubic - trial.step) > abs(secant - trial.step) else secant
            self.is_bracketed = True
            return trial, low, step
        if abs(trial.slope) < abs(low.slope):
            step = self._extrapolated(low, other, trial)
        elif self.is_bracketed:
            step = _cubic(trial, other)
        else:
            step = self._limit(low, trial)
        return trial, other, step

    def _extrapolated(self, low: _Trial, other: _Trial, trial: _Trial) -> float:
        """Beyond a trial that is lower and flatter, on the same side of the minimum."""
        fraction, bend = _cubic_fraction(trial, low)
        leads_on = fraction < 0 and bend != 0
        cubic = trial.step + fraction * (low.step - trial.step) if leads_on else self._limit(low, trial)
        secant = _secant(trial, low)
        nearer, farther = sorted((cubic, secant), key=lambda step: abs(step - trial.step))
        if not self.is_bracketed:
            return min(max(farther, self.limits[0]), self.limits[1])
        bound = trial.step + _SHRINK * (other.step - trial.step)
        return min(bound, nearer) if trial.step > low.step else max(bound, nearer)

    def _limit(self, low: _Trial, trial: _Trial) -> float:
        """The longest step in the direction from `low` to the trial."""
        return self.limits[trial.step > low.step]


def _tilted(trial: _Trial, slope: float) -> _Trial:
    """The trial, of phi(t) + slope t."""
    return _Trial(trial.step, trial.value + slope * trial.step, trial.slope + slope)


def _cubic(a: _Trial, b: _Trial) -> float:
    """Where the cubic through both is lowest."""
    return a.step + _cubic_fraction(a, b)[0] * (b.step - a.step)


def _cubic_fraction(a: _Trial, b: _Trial) -> tuple[float, float]:
    """The same as a fraction of the way from a to b, and the root that it comes from: 0 where there is no minimum."""
    theta = 3 * (a.value - b.value) / (b.step - a.step) + a.slope + b.slope
    scale = max(abs(theta), abs(a.slope), abs(b.slope))
    root = scale * sqrt(max(0.0, (theta / scale) ** 2 - (a.slope / scale) * (b.slope / scale)))
    root = root if b.step > a.step else -root
    over = (root - a.slope) + root + b.slope
    return ((root - a.slope) + theta) / over if over else 0.5, root


def _parabola(a: _Trial, b: _Trial) -> float:
    """Where the parabola through both values, with a's slope, is lowest."""
    width = b.step - a.step
    return a.step + a.slope / ((a.value - b.value) / width + a.slope) / 2 * width


def _secant(a: _Trial, b: _Trial) -> float:
    """Where the straight line through both slopes is zero."""
    return a.step + a.slope / (a.slope - b.slope) * (b.step - a.step)
