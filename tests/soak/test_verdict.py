"""The soak test sees what goes wrong: each bad ending has its verdict, and a good one passes."""

from __future__ import annotations

import signal

import pytest

from tests.soak.injuries import INJURIES, OLD, Ending, Run, verdict

NEW = OLD.replace(b"old", b"new") * 2
REFUSED = "headway: error: out.conllu: writing failed (File too large); make room, or choose another name\n"


@pytest.fixture
def run(tmp_path):
    made = Run(tmp_path / "in.txt", tmp_path / "out.conllu")
    made.target.write_bytes(OLD)
    return made


@pytest.mark.parametrize(
    ("injury", "ending", "word"),
    [
        ("none, to a pipe", Ending(0, "", 3.0, NEW), "complete"),
        ("kill -9", Ending(-signal.SIGKILL, "", 0.0), "killed"),
        ("SIGTERM", Ending(143, "", 0.5), "left"),
        ("Ctrl-C", Ending(130, "\nheadway: interrupted\n", 0.5), "left"),
        ("closed pipe", Ending(1, "", 2.0), "ended quietly"),
        ("full disk", Ending(1, REFUSED, 2.0), "refused"),
    ],
)
def test_good_endings(run, injury, ending, word):
    assert injury in INJURIES
    assert verdict(injury, run, ending) == word


@pytest.mark.parametrize(
    ("injury", "ending", "cause"),
    [
        ("none", Ending(1, REFUSED, 2.0), "writing failed"),
        ("none, to a pipe", Ending(0, "", 3.0, NEW[:-9]), "incomplete output"),
        ("SIGTERM", Ending(143, "", 1.5), "left after more than 1 s"),
        ("Ctrl-C", Ending(1, "", 0.5), "exit 1"),
        ("closed pipe", Ending(1, "headway: error: Broken pipe\n", 2.0), "Broken pipe"),
        ("full disk", Ending(1, "Traceback (most recent call last):\nOSError: File too large\n", 2.0), "a traceback"),
        ("full disk", Ending(1, REFUSED * 2, 2.0), "exit 1"),
    ],
)
def test_bad_endings(run, injury, ending, cause):
    found = verdict(injury, run, ending)
    assert found.startswith("BAD: ")
    assert cause in found


def test_what_is_left_in_the_folder(run):
    run.target.write_bytes(NEW)
    assert verdict("none", run, Ending(0, "", 2.0)) == "complete"
    assert verdict("full disk", run, Ending(1, REFUSED, 2.0)).startswith("BAD: exit 1")
    run.target.write_bytes(NEW[:-1])
    assert "neither the old nor a complete one" in verdict("kill -9", run, Ending(-signal.SIGKILL, "", 0.0))
    run.target.write_bytes(OLD)
    (run.target.parent / ".headway-12.tmp").touch()
    assert "a draft is left" in verdict("SIGTERM", run, Ending(143, "", 0.1))
    assert verdict("kill -9", run, Ending(-signal.SIGKILL, "", 0.0)) == "killed"
