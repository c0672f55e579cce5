"""Progress: drawn on a terminal, on standard error; silent in a pipe."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from headway.cli.failures import note
from headway.cli.progress import counted, training_progress
from headway.learning.monitor import Progress
from headway.pipeline import Parser
from headway.treebank import read_treebank


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watched(monkeypatch: Any) -> Terminal:
    """A terminal as standard error. No fixture: pytest sets standard error anew before the test itself."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    return stream


def test_training_on_a_terminal(monkeypatch: Any) -> None:
    terminal = watched(monkeypatch)
    with training_progress() as show:
        assert show is not None
        show(Progress("tree", 1, 8, {"objective": 1234.5, "gradient": 0.25}, 81.239, 1.0))
        show(Progress("tree", 7, 8, {"objective": 12.5, "gradient": 0.125}, None, 2.0))
        show(Progress("labels", 1, 5, {"mistakes": 0.5}, None, 2.5))
        show(Progress("tree", 1, 8, {"objective": 99.0}, 88.888, 1.0))
    last = terminal.getvalue().split("tree")[-1]
    assert "1/8" in last
    assert "objective 99" in last
    assert "dev UAS 88.89" in last
    assert "labels" in last
    assert "1/5" in last
    assert "mistakes 0.5" in last
    assert "reading" not in last


def test_the_time_that_is_left(monkeypatch: Any) -> None:
    """By the mean pace of the passes that were made here; those before an interruption do not count."""
    for passes, expected in (
        ([(1, 30.0)], "up to 0:03:30 left"),
        ([(1, 30.0), (2, 40.0)], "up to 0:02:00 left"),
        ([(5, 100.0), (6, 110.0)], "up to 0:00:20 left"),
        ([(5, 1.0), (1, 20.0)], "up to 0:02:20 left"),
        ([(5, 100.0)], None),
        ([(1, 30.0), (8, 40.0)], None),
    ):
        terminal = watched(monkeypatch)
        with training_progress() as show:
            assert show is not None
            for number, seconds in passes:
                show(Progress("network", number, 8, {"loss": 0.5}, None, seconds))
        last = terminal.getvalue().split("network")[-1]
        assert expected in last if expected else " left" not in last
        assert "loss 0.5" in last


def test_parsing_on_a_terminal(monkeypatch: Any, model: Path, test_file: Path) -> None:
    terminal = watched(monkeypatch)
    sentences = list(read_treebank(test_file))
    parsed = list(counted(Parser.load(model).parse(sentences * 20)))
    assert len(parsed) == 400
    words = 20 * sum(map(len, sentences))
    assert f"{words:,} words" in terminal.getvalue()


def test_notes_on_a_terminal(monkeypatch: Any) -> None:
    terminal = watched(monkeypatch)
    note("going on from m.checkpoint")
    assert terminal.getvalue() == "headway: going on from m.checkpoint\n"


def test_silence_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with training_progress() as show:
        assert show is None
    assert list(counted([])) == []
    note("nobody reads this")
    assert capsys.readouterr() == ("", "")
