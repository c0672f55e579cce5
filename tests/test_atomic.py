"""Files are written whole or not at all, whatever fails and whenever."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from headway import atomic
from headway.atomic import claimed, remove_abandoned_drafts, replacing, write_file

STEPS = ["pathlib.Path.open", "os.fsync", "shutil.copymode", "pathlib.Path.replace"]


class TargetError(Exception):
    """What the tests' failures become."""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_text_and_bytes(tmp_path: Path) -> None:
    write_file(tmp_path / "a", "naïve\n")
    write_file(str(tmp_path / "b"), b"\xff\n")
    assert (tmp_path / "a").read_bytes() == "naïve\n".encode()
    assert (tmp_path / "b").read_bytes() == b"\xff\n"
    assert names(tmp_path) == ["a", "b"]


def test_until_it_is_complete_the_old_file_is_there(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with replacing(path, TargetError) as file:
        file.write(b"new")
        file.flush()
        (temporary,) = set(names(tmp_path)) - {"a"}
        assert temporary.startswith(".headway-")
        assert temporary.endswith(".tmp")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), SystemExit()])
def test_any_failure_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(step, fail)
    with pytest.raises(TargetError if isinstance(error, OSError) else type(error)):  # noqa: SIM117
        with replacing(path, TargetError) as file:
            file.write(b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_errors_of_the_writer_pass_unchanged(tmp_path: Path) -> None:
    error = OSError("of another file")
    with pytest.raises(OSError, match="of another file") as caught, replacing(tmp_path / "a", TargetError):
        raise error
    assert caught.value is error
    assert names(tmp_path) == []


def test_an_error_names_the_path_and_not_the_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "none" / "a"
    with pytest.raises(FileNotFoundError) as caught:
        write_file(path, "")
    assert caught.value.filename == str(path)
    with pytest.raises(IsADirectoryError) as caught:
        write_file(tmp_path, "")
    assert (caught.value.filename, names(tmp_path)) == (str(tmp_path), [])


def test_links_and_permissions_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_file(link, "new")
    assert link.is_symlink()
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o640)


def test_pipes_and_devices_are_written_to(tmp_path: Path) -> None:
    write_file("/dev/null", "nothing")
    assert Path("/dev/null").is_char_device()
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_file(tmp_path / "pipe", "words")
    assert os.read(reading, 10) == b"words"
    os.close(reading)
    assert names(tmp_path) == ["pipe"]


def test_a_draft_that_a_kill_left_is_removed_by_the_next_writer(tmp_path: Path) -> None:
    """Not one that is being written: two may write one file, and the last to finish has it."""
    path = tmp_path / "a"
    child = os.fork()
    if child == 0:
        with replacing(path, TargetError) as file:
            file.write(b"half")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    (draft,) = names(tmp_path)
    write_file(path, "whole")
    assert names(tmp_path) == ["a"]
    with replacing(path, TargetError) as first:
        first.write(b"first")
        assert draft in names(tmp_path)
        write_file(path, "second")
        assert len(names(tmp_path)) == 2
        assert path.read_bytes() == b"second"
    assert (names(tmp_path), path.read_bytes()) == (["a"], b"first")


def test_a_signal_at_any_line_before_there_is_content_leaves_nothing(tmp_path: Path) -> None:
    for moment in count(1):
        folder = tmp_path / str(moment)
        folder.mkdir()
        context = replacing(folder / "a", TargetError)
        if not told_to_leave(context.__enter__, moment):
            context.__exit__(None, None, None)
            break
        assert names(folder) == [], moment
    assert moment > 20
    assert names(folder) == ["a"]


def test_a_signal_while_the_draft_is_opened_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Path.open

    def told(self: Path, *how: Any) -> Any:
        opened(self, *how).close()
        if how[0] == "xb":
            raise SystemExit
        return opened(self, *how)

    monkeypatch.setattr(Path, "open", told)
    with pytest.raises(SystemExit), replacing(tmp_path / "a", TargetError):
        pass
    assert names(tmp_path) == []


def told_to_leave(work: Callable[[], Any], moment: int) -> bool:
    """Do the work, with an exception before a line of the module: the one with this number. Whether it was reached."""
    lines = count(1)

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != atomic.__file__:
            return None
        if event == "line" and next(lines) == moment:
            raise SystemExit
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except SystemExit:
        return True
    finally:
        sys.settrace(before)
    return False


def test_drafts_in_a_folder_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".headway-0123456789abcdef.tmp").write_bytes(b"left")
    (tmp_path / "mine.tmp").write_bytes(b"mine")
    with replacing(tmp_path / "a", TargetError) as file:
        file.write(b"whole")
        remove_abandoned_drafts(tmp_path)
        assert len(names(tmp_path)) == 2
    assert names(tmp_path) == ["a", "mine.tmp"]


def test_a_claimed_folder_is_refused_to_others(tmp_path: Path) -> None:
    folder, refusal = tmp_path / "folder", TargetError("taken")
    with claimed(folder, refusal):
        with pytest.raises(TargetError, match="taken"), claimed(folder, refusal):
            pytest.fail("two have it")
        with claimed(tmp_path / "another", refusal):
            pass
    with claimed(folder, refusal):
        pass
    with claimed(tmp_path / "absent" / "folder", refusal):
        pass
    assert names(tmp_path) == []
