"""The monitor of a learner: which pass it keeps, and when it stops."""

from __future__ import annotations

import numpy as np

from headway.learning.monitor import Monitor
from headway.learning.progress import Pass


def watch(scores: list[float], patience: int) -> tuple[Monitor, int]:
    """A monitor that saw passes with these development scores, and how many it let happen."""
    remaining = iter(scores)
    monitor = Monitor("tree", len(scores), patience, lambda _: next(remaining))
    for number in range(1, len(scores) + 1):
        if not monitor(Pass(number, np.full(3, float(number)), {}, {})):
            break
    return monitor, len(monitor.history)


def test_early_stopping_keeps_the_best_pass() -> None:
    monitor, passes = watch([50.0, 70.0, 60.0, 70.0, 65.0, 90.0], 3)
    assert passes == 5
    assert monitor.best_pass() == 2
    assert monitor.best is not None
    assert monitor.best.tolist() == [2.0] * 3
    assert [entry["dev"] for entry in monitor.history] == [50.0, 70.0, 60.0, 70.0, 65.0]


def test_patience_counts_from_the_best() -> None:
    assert watch([50.0, 40.0, 60.0, 40.0, 70.0, 40.0], 2)[1] == 6
    assert watch([50.0, 40.0, 30.0, 90.0], 2)[1] == 3
    assert watch([50.0, 40.0], 1)[1] == 2


def test_the_best_weights_are_a_copy() -> None:
    weights = np.ones(2)
    monitor = Monitor("tree", 2, 2, lambda _: 1.0)
    monitor(Pass(1, weights, {}, {}))
    weights[:] = 9.0
    assert monitor.best is not None
    assert monitor.best.tolist() == [1.0, 1.0]


def test_without_development_data_the_last_pass_is_kept() -> None:
    monitor = Monitor("tree", 3, 1)
    for number in (1, 2, 3):
        assert monitor(Pass(number, np.full(1, float(number)), {"mistakes": 0.5}, {}))
    assert monitor.best_pass() == 3
    assert monitor.best is not None
    assert monitor.best.tolist() == [3.0]
