"""Processes as workers: order, errors, pieces that stay, and processes that die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.errors import NoTreeError, TrainingError, WorkerError
from headway.parallel import Here
from headway.processes import ATTEMPTS, Processes, _sendable

REPOSITORY = Path(__file__).resolve().parents[1]


def slow_square(x: int) -> int:
    time.sleep(0.02 * (3 - x % 4))
    return x * x


def fails_on_two(x: int) -> int:
    if x == 2:
        raise TrainingError("two")
    return x


def dies_once(x: int, mark: Path) -> int:
    """Kill the process that comes first."""
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return x
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def dies(x: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def with_piece(piece: dict[str, Any], *arguments: Any) -> tuple[int, Any, int]:
    """What a piece was asked so far, with the arguments and the process."""
    piece["calls"] = piece.get("calls", 0) + 1
    return piece["calls"], (piece["name"], *arguments), os.getpid()


def grown(piece: dict[str, Any], x: Any, mark: Path) -> Any:
    """The array times the calls so far, from a process that dies in the second call."""
    piece["calls"] = piece.get("calls", 0) + 1
    if piece["calls"] == 2:
        dies_once(0, mark)
    x *= piece["calls"] + 10 * piece["name"]
    return x


def piece_that_dies(piece: dict[str, Any], mark: Path) -> int:
    piece["calls"] = piece.get("calls", 0) + 1
    return dies_once(piece["calls"], mark) if piece["name"] == 1 else int(piece["calls"])


def fails_for_one(piece: dict[str, Any]) -> int:
    if piece["name"] == 1:
        raise TrainingError("no")
    return int(piece["name"])


def total(piece: Any, weights: Any) -> Any:
    return piece @ weights, weights.flags.writeable


def pieces(count: int) -> list[dict[str, Any]]:
    return [{"name": k} for k in range(count)]


def test_results_come_in_order_and_errors_reach_the_caller() -> None:
    workers = Processes(2)
    assert workers.map(slow_square, range(7)) == [x * x for x in range(7)]
    assert workers.map(slow_square, []) == []
    found = dict(workers.finished(slow_square, range(5)))
    assert found == {x: x * x for x in range(5)}
    with pytest.raises(TrainingError, match="two") as caught:
        workers.map(fails_on_two, range(4))
    assert "In a worker process" in caught.value.__notes__[0]


def test_pieces_stay_with_their_process() -> None:
    """Also where there are more of them than processes; what a call changes in them lasts."""
    with Processes(2).hold(pieces(5)) as held:
        first = held.each(with_piece, "a", 3)
        second = held.each(with_piece)
        assert [result[:2] for result in first] == [(1, (k, "a", 3)) for k in range(5)]
        assert [result[:2] for result in second] == [(2, (k,)) for k in range(5)]
        assert [result[2] for result in first] == [result[2] for result in second]
        assert len({result[2] for result in first}) == 2
        with pytest.raises(TrainingError, match="no"):
            held.each(fails_for_one)
        assert [result[0] for result in held.each(with_piece)] == [3] * 5  # and it goes on
        running = first[0][2]
    with pytest.raises(ProcessLookupError):
        os.kill(running, 0)


@pytest.mark.parametrize("with_memory", [True, False])
def test_arrays_go_there_and_back(with_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not with_memory:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    rng = np.random.default_rng(1)
    own = [rng.normal(size=(3, 70_000)), np.zeros((0, 70_000)), rng.normal(size=(1, 70_000))]
    weights = rng.normal(size=70_000)
    with Processes(2).hold(own) as held:
        for (found, writeable), (expected, _) in zip(
            held.each(total, weights), Here(own).each(total, weights), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
            assert writeable


def test_a_process_that_dies_is_replaced(tmp_path: Path) -> None:
    """Its pieces are what they were at first, and the call is made again; nobody else's are touched."""
    with Processes(2).hold(pieces(3)) as held:
        held.each(with_piece)
        assert held.each(piece_that_dies, tmp_path / "mark") == [2, 1, 2]
        assert held.each(piece_that_dies, tmp_path / "mark") == [3, 2, 3]
    assert Processes(2).map(dies_once, range(4), [tmp_path / "other"] * 4) == list(range(4))


def test_the_arrays_of_a_call_that_is_repeated(tmp_path: Path) -> None:
    """A process that replaces another gets them as they were, and nobody else's change."""
    x = np.random.default_rng(2).normal(size=200_000)
    before = x.copy()
    with Processes(2).hold(pieces(2)) as held:
        first = held.each(grown, x, tmp_path / "mark")
        second = held.each(grown, x, tmp_path / "mark")
    np.testing.assert_array_equal(x, before)
    for k in range(2):
        np.testing.assert_array_equal(first[k], (1 + 10 * k) * x)
    calls = {tuple(np.round(found[:3] / x[:3])) for found in second}
    assert calls in ({(1.0,) * 3, (12.0,) * 3}, {(2.0,) * 3, (11.0,) * 3})  # one of them was started anew


def test_processes_that_end_before_they_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.processes._serve", dies)
    with (
        pytest.raises(WorkerError, match=f"{ATTEMPTS} processes ended one after the other"),
        Processes(1).hold([np.zeros(1_000_000)]) as held,
    ):
        held.each(total, 1)


def test_work_that_kills_every_process_is_an_error() -> None:
    with pytest.raises(WorkerError, match=f"{ATTEMPTS} processes ended one after the other .* status -9"):
        Processes(1).map(dies, [1])


def test_less_than_one_process_is_refused() -> None:
    with pytest.raises(ValueError, match="0 processes; expected at least 1"):
        Processes(0)


def test_an_error_that_cannot_be_sent_is_sent_as_text() -> None:
    error = _sendable(NoTreeError("nothing", (1, 2), place="a.conllu, line 3"))
    assert str(error) == "a.conllu, line 3: no tree exists: nothing"

    class LocalError(Exception):
        pass

    assert str(_sendable(LocalError("x"))) == "LocalError: x"


SCRIPT = """
    import os, sys, time
    sys.path.insert(0, {repository!r})
    from headway.processes import Processes
    from tests.test_processes import pieces, with_piece
    def main():
        with Processes(2).hold(pieces(2)) as held:
            print(*[pid for _, _, pid in held.each(with_piece)], flush=True)
            {ending}
    if __name__ == "__main__":
        main()
"""


@pytest.mark.parametrize(("ending", "number"), [("time.sleep(60)", signal.SIGINT), ("time.sleep(60)", signal.SIGKILL)])
def test_processes_end_with_the_one_that_started_them(ending: str, number: int, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT.format(repository=str(REPOSITORY), ending=ending)), encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as started:
        assert started.stdout is not None
        line = started.stdout.readline().split()
        assert len(line) == 2
        if number == signal.SIGINT:
            os.killpg(started.pid, number)  # as a terminal does: to all of them
        else:
            started.send_signal(number)
        _, said = started.communicate(timeout=60)
    assert (b"KeyboardInterrupt" in said) == (number == signal.SIGINT)
    assert said.count(b"Traceback") <= 1  # no process says anything of its own
    for pid in map(int, line):
        _wait_until_gone(pid)


def _wait_until_gone(pid: int) -> None:
    for _ in range(600):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError(f"process {pid} is still there")
