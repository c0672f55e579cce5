"""No acknowledged change is lost when the process is killed, and all of them can be undone afterwards."""

from __future__ import annotations

from headway.annotation import Workspace
from tests.annotation.kills import kill_annotators
from tests.annotation.toys import FOUR, treebank


def test_kills_lose_nothing(tmp_path):
    path = treebank(tmp_path)
    report = kill_annotators(path, kills=3)
    assert report.lost == []
    assert len(report.acknowledged) > 3
    with Workspace.open(path) as workspace:
        for i in range(len(workspace)):
            while workspace.view(i)["can_undo"]:
                workspace.undo(i, workspace.state(i).version)
    assert path.read_text() == FOUR
    assert not list(tmp_path.glob(".headway-*"))
