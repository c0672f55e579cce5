"""The journal: all of its changes or a clear error, wherever it is cut off; and a disk that is full."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headway.annotation import EditError, JournalError, Workspace
from headway.annotation.edits import SetDone, SetHead, SetNote
from headway.annotation.journal import Journal, Start, read_journal
from headway.annotation.replay import Replay, replay
from tests.annotation.toys import FakeParser, treebank
from tests.test_disk import limited


def annotated(folder: Path) -> Path:
    """A file with a journal that has everything: edits, undos, redos, versions of the file, another model."""
    path = treebank(folder)
    with Workspace.open(path, FakeParser()) as workspace:
        workspace.edit(0, 0, SetHead(1, 2), by="a")
        workspace.edit(0, 1, SetHead(2, 0), by="b")
        workspace.flush()
        workspace.undo(0, 2)
        workspace.edit(2, 0, SetDone(), by="a")
        workspace.use(FakeParser(seed=1))
        workspace.redo(0, workspace.state(0).version)
        workspace.edit(3, workspace.state(3).version, SetNote("é x"), by="b")
        workspace.snapshot()
    return path


def journal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.journal")


def states_of(found: Replay | None) -> dict[int, tuple[int, dict[str, object]]]:
    return {} if found is None else {i: (state.version, state.to_record()) for i, state in found.states.items()}


def test_everything_is_there_again(tmp_path):
    path = annotated(tmp_path)
    with Workspace.open(path, FakeParser(seed=1)) as workspace:
        assert workspace.state(0).pins == {1, 2}
        assert workspace.state(2).done
        assert workspace.state(3).note == "é x"
        assert [workspace.state(i).version for i in range(4)] == [5, 1, 2, 2]
        assert [(workspace.view(i)["can_undo"], workspace.view(i)["can_redo"]) for i in range(4)] == [
            (True, False),
            (False, False),
            (True, False),
            (True, False),
        ]
        assert workspace.progress("a")["done"] == 2


def test_cut_off_anywhere_what_was_acknowledged_is_there(tmp_path):
    """A line counts if it is whole; nothing else is read, and nothing that is whole is lost."""
    path = treebank(tmp_path, "1\tGo\t_\t_\t_\t_\t_\t_\t_\t_\n\n" * 2)
    with Workspace.open(path) as workspace:
        workspace.edit(0, 0, SetHead(1, 0))
        workspace.edit(1, 0, SetNote("é"))
    whole = journal_of(path).read_bytes()
    expected: dict[int, dict[int, tuple[int, dict[str, object]]]] = {}
    ends = [end for _, end, _ in read_journal(journal_of(path))]
    cut = tmp_path / "cut"
    for end in ends:
        cut.write_bytes(whole[:end])
        last = {}
        for _, _, record in read_journal(cut):
            if hasattr(record, "sentence"):
                last[record.sentence] = (record.version, dict(record.after))
        expected[end] = last
    cut.write_bytes(whole)
    for size in range(len(whole), -1, -1):
        os.truncate(cut, size)
        complete = max((end for end in ends if end <= size), default=0)
        found = replay(cut)
        assert (0 if found is None else found.end) == complete
        assert states_of(found) == expected.get(complete, {})


def test_a_torn_line_is_dropped_and_the_journal_goes_on(tmp_path):
    """The file is older than the journal, as after a kill; the last change was not acknowledged."""
    path = treebank(tmp_path)
    original = path.read_bytes()
    with Workspace.open(path) as workspace:
        workspace.edit(0, 0, SetHead(1, 2))
        workspace.edit(0, 1, SetHead(2, 0))
    lines = journal_of(path).read_bytes().splitlines(keepends=True)
    journal_of(path).write_bytes(b"".join(lines[:2]) + lines[2][:-20])
    path.write_bytes(original)
    with Workspace.open(path) as workspace:
        assert workspace.state(0).pins == {1}
        workspace.edit(0, 1, SetHead(3, 2))
    with Workspace.open(path) as workspace:
        assert workspace.state(0).pins == {1, 3}
        workspace.undo(0, 2)
        assert workspace.state(0).pins == {1}


def test_a_journal_that_has_not_begun(tmp_path):
    path = treebank(tmp_path)
    journal_of(path).write_bytes(b'{"headway": "annot')
    with Workspace.open(path) as workspace:
        workspace.edit(0, 0, SetNote("a"))
    with Workspace.open(path) as workspace:
        assert workspace.state(0).note == "a"


def damaged(line: str) -> list[str]:
    """The same line with something wrong about it."""
    record = json.loads(line)
    wrong = ["", "{}", "[]", "null", "x", line[:-5], "[" * 100_000]
    if "after" in record:
        for name, value in (("sentence", "0"), ("kind", "fly"), ("version", 77), ("time", None), ("after", {})):
            wrong.append(json.dumps({**record, name: value}))
        for name, value in (("conllu", "1\tx\n"), ("pins", [9]), ("pins", None), ("forbidden", [1]), ("conllu", None)):
            wrong.append(json.dumps({**record, "after": {**record["after"], name: value, "original": False}}))
    return wrong


def test_any_other_damage_is_an_error_that_names_the_line(tmp_path):
    path = treebank(tmp_path)
    with Workspace.open(path) as workspace:
        workspace.edit(0, 0, SetHead(1, 2))
        workspace.edit(1, 0, SetHead(1, 2, "obj"))
    lines = journal_of(path).read_text().splitlines()
    before = path.read_bytes()
    for number in range(1, 4):
        for wrong in damaged(lines[number - 1]):
            journal_of(path).write_text("\n".join([*lines[: number - 1], wrong, *lines[number:]]) + "\n")
            with pytest.raises(JournalError, match=rf"a\.conllu\.journal, line {number}: .*move it away"):
                Workspace.open(path)
            assert path.read_bytes() == before
    journal_of(path).unlink()
    Workspace.open(path).close()


def test_a_missing_line_is_noticed(tmp_path):
    path = treebank(tmp_path)
    with Workspace.open(path) as workspace:
        for version, note in enumerate("abc"):
            workspace.edit(0, version, SetNote(note))
    lines = journal_of(path).read_bytes().splitlines(keepends=True)
    journal_of(path).write_bytes(b"".join([*lines[:2], *lines[3:]]))
    with pytest.raises(JournalError, match=r"line 3: the change does not follow .* some are missing"):
        Workspace.open(path)


def test_a_kill_between_announcing_and_replacing(tmp_path):
    """The file is the old one or the new one, and the journal knows both."""
    path = treebank(tmp_path)
    original = path.read_bytes()
    with Workspace.open(path) as workspace:
        workspace.edit(0, 0, SetHead(1, 2))
    written = path.read_bytes()
    whole = journal_of(path).read_bytes().splitlines(keepends=True)
    assert [json.loads(line).keys() & {"writing", "written"} for line in whole[2:]] == [{"writing"}, {"written"}]
    for content, lines, fits in (
        (original, whole[:2], True),
        (original, whole[:3], True),
        (written, whole[:3], True),
        (written, whole, True),
        (original, whole, False),  # somebody put the old file back
        (written, whole[:2], False),
    ):
        path.write_bytes(content)
        journal_of(path).write_bytes(b"".join(lines))
        with Workspace.open(path) as workspace:
            assert bool(workspace.state(0).version == 1) == fits
            assert workspace.state(0).pins == ({1} if fits or content == written else set())
        for aside in tmp_path.glob("a.conllu.journal.*"):
            aside.unlink()


def test_an_existing_journal_is_not_overwritten(tmp_path):
    (tmp_path / "j").write_text("something")
    with pytest.raises(JournalError, match=r"cannot be written \(File exists\), so nothing was changed"):
        Journal.create(tmp_path / "j", Start("0", 1))
    assert (tmp_path / "j").read_text() == "something"


# ---------------------------------------------------------------------------------- full disks


def test_a_change_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    path = treebank(tmp_path)
    with Workspace.open(path, FakeParser()) as workspace:
        workspace.edit(0, 0, SetHead(1, 2))
        before, journal = workspace.state(0), journal_of(path).read_bytes()

        def full(file: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(JournalError, match=r"No space left on device\), so nothing was changed; make room"):
                workspace.edit(0, 1, SetHead(2, 0))
            assert workspace.state(0).same_as(before)
            assert workspace.state(0).version == 1
        assert journal_of(path).read_bytes().startswith(journal)
        assert workspace.edit(0, 1, SetHead(3, 2)).pins == {1, 3}
    with Workspace.open(path, FakeParser()) as workspace:
        assert workspace.state(0).pins == {1, 3}


FULL = """
import sys
from headway.annotation import JournalError, Workspace
from headway.annotation.edits import SetNote

workspace = Workspace.open(sys.argv[1])
version = 0
try:
    while True:
        version = workspace.edit(0, version, SetNote(f"note {version}")).version
except JournalError as error:
    assert workspace.state(0).version == version
    assert workspace.state(0).note == f"note {version - 1}"
    print(version, error)
try:
    workspace.undo(0, version)
except JournalError:
    print("still full")
workspace.close()
"""


def test_a_disk_that_fills_up(tmp_path):
    """Every change before the disk was full is there, and none after."""
    path = treebank(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, preexec_fn=limited(8192), check=False
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert "a.conllu.journal: cannot be written (File too large), so nothing was changed; make room" in first
    assert second == "still full"
    version = int(first.split()[0])
    assert version > 3
    assert journal_of(path).read_bytes().endswith(b"\n")
    with Workspace.open(path) as workspace:
        assert workspace.state(0).version == version
        assert workspace.state(0).note == f"note {version - 1}"
        workspace.undo(0, version)
        assert workspace.state(0).note == f"note {version - 2}"


def test_a_file_that_cannot_be_written_is_told_of_and_tried_again(tmp_path):
    folder = tmp_path / "a"
    folder.mkdir()
    path = treebank(folder)
    with Workspace.open(path) as workspace:
        workspace.edit(0, 0, SetNote("kept"))
        workspace.flush()
        aside = path.rename(tmp_path / "aside")
        path.mkdir()  # where nothing can take its name
        workspace.edit(0, 1, SetNote("kept, too"))
        with pytest.raises(JournalError, match="cannot be written"):
            workspace.overwrite()
        assert "cannot be written" in str(workspace.problem)
        path.rmdir()
        shutil.copy2(aside, path)
        workspace.overwrite()
        assert workspace.problem is None
        assert "# note = kept, too" in path.read_text()


def test_an_undo_needs_the_journal(tmp_path):
    path = treebank(tmp_path)
    with Workspace.open(path) as workspace:
        workspace.edit(0, 0, SetNote("a"))
        content = journal_of(path).read_bytes()
        journal_of(path).write_bytes(b"x" * len(content))
        with pytest.raises(JournalError, match="another program has changed the journal"):
            workspace.undo(0, 1)
        journal_of(path).write_bytes(content)
        assert workspace.undo(0, 1).note == ""
        with pytest.raises(EditError, match="nothing to undo"):
            workspace.undo(0, 2)
