"""`headway warm-up`, and what `headway parse` does where nothing has been compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway.cli import warm_up
from headway.cli.warm_up import Task, compile_side_by_side
from headway.pipeline import Parser
from tests.cli.conftest import Invoke, one_error


class _Process:
    """Another process, which does nothing; it counts how often it was waited for and killed."""

    def __init__(self) -> None:
        self.waits = self.kills = 0

    def wait(self) -> int:
        self.waits += 1
        return 0

    def kill(self) -> None:
        self.kills += 1


@pytest.fixture(scope="module")
def parser(model: Path) -> Parser:
    return Parser.load(model)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is done here, what elsewhere; every module must compile."""
    found: dict[str, Any] = {"here": [], "elsewhere": {}}

    def begin(model: str, task: Task) -> _Process:
        found["elsewhere"][task] = _Process()
        return found["elsewhere"][task]  # type: ignore[no-any-return]

    monkeypatch.setattr(warm_up, "_begin", begin)
    monkeypatch.setattr(warm_up, "_RUN", {task: lambda _, task=task: found["here"].append(task) for task in Task})
    monkeypatch.setattr("headway.inference.kernel_cache.must_compile", lambda module: True)
    return found


def test_each_task_is_done_once_and_all_are_waited_for(parser: Parser, done: dict[str, Any]) -> None:
    compile_side_by_side("en", parser, list(Task))
    assert sorted([*done["here"], *done["elsewhere"]]) == sorted(Task)
    assert len(done["here"]) == 1
    assert all(process.waits for process in done["elsewhere"].values())


def test_one_task_needs_no_other_process(parser: Parser, done: dict[str, Any]) -> None:
    compile_side_by_side("en", parser, [Task.TREES])
    assert done == {"here": [], "elsewhere": {}}


def test_nothing_is_started_where_everything_is_kept(
    parser: Parser, done: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.inference.kernel_cache.must_compile", lambda module: False)
    compile_side_by_side("en", parser, list(Task))
    assert done == {"here": [], "elsewhere": {}}


def test_other_processes_end_with_this_one(
    parser: Parser, done: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(warm_up, "_RUN", dict.fromkeys(Task, interrupted))
    with pytest.raises(KeyboardInterrupt):
        compile_side_by_side("en", parser, list(Task))
    assert [process.kills for process in done["elsewhere"].values()] == [1, 1]


def test_another_process_can_do_a_task(model: Path) -> None:
    assert warm_up._begin(str(model), Task.TREES).wait() == 0


def test_the_command_says_when_it_is_done(invoke: Invoke, model: Path) -> None:
    assert invoke("warm-up", model).stderr == f"headway: what {model} needs is compiled\n"


def test_a_model_that_is_not_there_is_named(invoke: Invoke) -> None:
    assert "no_such.headway" in one_error(invoke("warm-up", "no_such.headway", status=1))
