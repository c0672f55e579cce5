"""Executors: what they return and raise, and the slices that work is cut into."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.arrays import TreeClass
from headway.parallel import SERIAL, Executor, Threads, executor_for, run_slices

every_executor = pytest.mark.parametrize("executor", [SERIAL, Threads(1), Threads(3)])


@every_executor
def test_results_come_in_the_order_of_the_items(executor: Executor) -> None:
    """Also where the first takes longest."""

    def slow(item: int, other: int) -> tuple[int, int]:
        time.sleep(0.002 * (8 - item))
        return item, other

    assert executor.map(slow, range(8), range(10, 18)) == list(zip(range(8), range(10, 18), strict=True))


@every_executor
def test_no_items(executor: Executor) -> None:
    assert executor.map(abs, []) == []


@every_executor
def test_an_exception_reaches_the_caller(executor: Executor) -> None:
    def fails(item: int) -> int:
        if item >= 3:
            raise KeyError(item)
        return item

    with pytest.raises(KeyError, match="3"):
        executor.map(fails, range(6))
    assert executor.map(fails, range(3)) == [0, 1, 2]


def test_threads_run_at_the_same_time() -> None:
    together = threading.Barrier(3, timeout=30)
    assert sorted(Threads(3).map(lambda _: together.wait(), range(3))) == [0, 1, 2]


def test_serial_work_stays_in_the_calling_thread() -> None:
    assert set(SERIAL.map(lambda _: threading.get_ident(), range(4))) == {threading.get_ident()}


def test_the_executor_for_a_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    assert executor_for(1) is SERIAL
    assert executor_for(4) == Threads(4)
    assert (executor_for(1).workers, executor_for(4).workers) == (1, 4)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert executor_for(None) == Threads(6)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert executor_for(None) is SERIAL


@pytest.mark.parametrize("threads", [0, -1])
def test_less_than_one_thread_is_refused(threads: int) -> None:
    with pytest.raises(ValueError, match=f"threads is {threads}; expected at least 1, or None for every core"):
        executor_for(threads)


@given(st.integers(0, 200), st.integers(1, 30), st.sampled_from([1, 2, 3, 7]), st.none() | st.integers(1, 8))
def test_slices_cover_every_index_once(size: int, grain: int, workers: int, most: int | None) -> None:
    slices: list[tuple[int, int]] = []
    run_slices(lambda *ends: slices.append(ends), size, executor_for(workers), grain=grain, most=most)
    covered = np.concatenate([np.arange(start, stop) for start, stop in slices])
    np.testing.assert_array_equal(np.sort(covered), np.arange(size))
    assert all(start % grain == 0 for start, _ in slices)
    assert all(start < stop for start, stop in slices) or not size
    if most == 1 or workers == 1 or size <= grain:
        assert slices == [(0, size)]


def test_an_exception_of_a_slice_reaches_the_caller() -> None:
    def run(start: int, stop: int) -> None:
        if start > 0:
            raise ValueError(f"from {start} to {stop}")

    with pytest.raises(ValueError, match="from"):
        run_slices(run, 100, Threads(2))


@pytest.mark.parametrize(
    ("trees", "spelt"),
    [
        (TreeClass(), "non-projective, one word on the root"),
        (TreeClass(single_root=False), "non-projective, any number of words on the root"),
        (TreeClass(projective=True), "projective, one word on the root"),
        (TreeClass(True, False), "projective, any number of words on the root"),
    ],
)
def test_a_class_of_trees_spells_itself(trees: TreeClass, spelt: str) -> None:
    assert str(trees) == spelt
    assert TreeClass(**trees._asdict()) == trees
