"""How far an annotator has come, and the time left."""

from __future__ import annotations

from itertools import count

from headway.annotation import Workspace
from headway.annotation.edits import SetDone, SetHead
from headway.annotation.progress import Speeds
from tests.annotation.toys import FakeParser, treebank


def finished(speeds: Speeds, by: str, times: list[float], start: float = 0.0) -> None:
    """Sentences that took so long, one after the other."""
    speeds.changed(by, -1, start, finished=False)
    for i, seconds in enumerate(times):
        start += seconds
        speeds.changed(by, i, start, finished=True)


def test_the_median_of_ones_own_sentences():
    speeds = Speeds()
    finished(speeds, "a", [10, 20, 90])
    finished(speeds, "b", [100, 100])
    assert speeds.progress("a", 3, 100)["seconds_left"] == 20 * 97
    assert speeds.progress("a", 312, 432)["text"] == "312 of 432, about 40 minutes left at your speed"
    assert speeds.progress("b", 3, 100)["seconds_left"] == 100 * 97
    assert speeds.progress("new", 5, 6) == {
        "done": 5,
        "all": 6,
        "seconds_left": 60,
        "text": "5 of 6, about a minute left at the speed so far",
    }


def test_pauses_do_not_count():
    speeds = Speeds()
    finished(speeds, "a", [10, 301, 30, 300])
    speeds.changed("a", 4, 10_000, finished=False)
    speeds.changed("a", 4, 10_050, finished=True)
    # The second sentence took a pause and nothing else, so nothing is known of it.
    assert speeds.progress("a", 0, 1)["seconds_left"] == (30 + 50) / 2


def test_all_changes_of_a_sentence_count():
    speeds = Speeds()
    for time, sentence, done in ((0, 0, False), (5, 1, False), (6, 2, False), (16, 1, True)):
        speeds.changed("a", sentence, time, finished=done)
    assert speeds.progress("a", 1, 2)["seconds_left"] == 5 + 10


def test_nothing_known_and_all_done():
    speeds = Speeds()
    assert speeds.progress("a", 0, 1200)["text"] == "0 of 1,200"
    finished(speeds, "a", [10])
    assert speeds.progress("a", 4, 4)["text"] == "4 of 4, all done"
    assert speeds.progress("a", 4, 4)["seconds_left"] == 0


def test_a_clock_that_is_set_back():
    speeds = Speeds()
    speeds.changed("a", 0, 100.0, finished=False)
    speeds.changed("a", 0, 50.0, finished=True)
    assert speeds.progress("a", 1, 2)["seconds_left"] is None


def test_the_speed_survives_a_restart(tmp_path):
    path = treebank(tmp_path)
    clock = count(0, 20.0).__next__
    with Workspace.open(path, FakeParser(), clock=clock) as workspace:
        workspace.edit(0, 0, SetHead(1, 2), by="a")
        workspace.edit(0, 1, SetHead(2, 0), by="a")
        workspace.edit(0, 2, SetDone(), by="a")
        expected = {
            "done": 2,
            "all": 4,
            "seconds_left": 80.0,
            "text": "2 of 4, about a minute left at your speed",
        }
        assert workspace.progress("a") == expected
    with Workspace.open(path, FakeParser()) as workspace:
        assert workspace.progress("a") == expected
