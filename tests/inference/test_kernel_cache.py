"""The cache of compiled kernels: whatever became of its files, kernels run, and are kept again."""

from __future__ import annotations

import errno
import importlib.util
import os
import pickle
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from numba.core import config

from headway.inference import kernel_cache
from headway.inference.jit import kernel

Load = Callable[[], Any]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """A new kernel of the same source, as another process would have it."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("HEADWAY_QUIET", raising=False)
    kernel_cache._say_once.cache_clear()
    kernel_cache._temporary_folder.cache_clear()
    source = tmp_path / "tripled.py"
    source.write_text("def tripled(x):\n    return 3 * x\n", "utf-8")
    spec = importlib.util.spec_from_file_location("tripled", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda: kernel(module.tripled)


def hits(load: Load) -> int:
    """Whether a new kernel finds itself in the cache; it is right in any case."""
    made = load()
    assert made(7) == 21
    return sum(made._cache_hits.values())


def file(tmp_path: Path, suffix: str) -> Path:
    (found,) = (tmp_path / "cache").rglob(f"*.{suffix}")
    return found


def test_what_was_compiled_is_found(load: Load) -> None:
    assert [hits(load) for _ in range(3)] == [0, 1, 1]


MARGINALS = """
import numpy as np
from headway import TreeDistribution
scores = np.random.default_rng(0).normal(size=(4, 26, 26))
print(TreeDistribution(scores, threads=1).marginals.tobytes().hex())
"""


def test_the_process_that_compiles_and_one_that_loads_agree_to_the_last_bit(tmp_path: Path) -> None:
    """A part that is called, not inlined, is another compilation of it in each: this failed when LLVM could choose."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "HEADWAY_QUIET": "1"}
    compiled, loaded = (
        subprocess.run([sys.executable, "-c", MARGINALS], env=environment, capture_output=True, check=True).stdout
        for _ in range(2)
    )
    assert compiled == loaded


def with_checksum(content: bytes) -> bytes:
    return content + zlib.crc32(content).to_bytes(4, "little")


GARBLED: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "short by one": lambda content: content[:-1],
    "flipped": lambda content: content[:-50] + bytes([content[-50] ^ 1]) + content[-49:],
    "noise": lambda content: os.urandom(len(content)),
    "of another type": lambda content: with_checksum(pickle.dumps(17)),
    "of a class that is gone": lambda content: with_checksum(b"cnumba.core\nno_such_class\n."),
    "of a module that is gone": lambda content: with_checksum(b"cno_such_module\nany\n."),
}


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("name", GARBLED)
def test_what_is_garbled_is_compiled_again(load: Load, tmp_path: Path, suffix: str, name: str) -> None:
    hits(load)
    found = file(tmp_path, suffix)
    found.write_bytes(GARBLED[name](found.read_bytes()))
    assert [hits(load), hits(load)] == [0, 1]


def test_a_missing_file_is_compiled_again(load: Load, tmp_path: Path) -> None:
    for suffix in ("nbi", "nbc"):
        hits(load)
        file(tmp_path, suffix).unlink()
        assert [hits(load), hits(load)] == [0, 1]


def test_a_full_disk_is_named_once(load: Load, monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(kernel_cache._CheckedFile, "_save_data", fail)
    assert [hits(load), hits(load)] == [0, 0]
    said = capsys.readouterr().err
    assert said.count("No space left on device") == 1
    assert str(tmp_path / "cache") in said
    assert "NUMBA_CACHE_DIR" in said


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """As in a container whose files are read-only, for a user without a home: all but the temporary folder fail."""
    monkeypatch.setattr(kernel_cache._Kept, "_locator_classes", [kernel_cache._Temporary])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / f"headway-kernels-{os.getuid()}"


def test_where_nothing_can_be_written_a_temporary_folder_serves(load: Load, nowhere: Path, capsys: Any) -> None:
    assert [hits(load), hits(load)] == [0, 1]
    assert nowhere.stat().st_mode & 0o777 == 0o700
    said = capsys.readouterr().err
    assert said.count("compiled kernels are kept in") == 1
    assert str(nowhere) in said


@pytest.mark.parametrize("kind", ["open to others", "a link"])
def test_a_temporary_folder_that_others_may_have_filled_is_not_used(
    load: Load, nowhere: Path, tmp_path: Path, kind: str
) -> None:
    """What is in it is run."""
    if kind == "a link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        nowhere.symlink_to(tmp_path / "theirs")
    else:
        nowhere.mkdir()
        nowhere.chmod(0o777)
    assert hits(load) == 0
    assert list(nowhere.iterdir()) == []
    assert len(list(tmp_path.glob("headway-kernels-*"))) == 2


def test_where_no_folder_can_be_written_kernels_run_and_one_line_says_so(
    load: Load, nowhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def fail(*_: Any, **__: Any) -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", fail)
    assert [hits(load), hits(load)] == [0, 0]
    assert capsys.readouterr().err.count("compiled kernels cannot be kept") == 1


def test_what_was_compiled_beside_the_source_serves_who_writes_elsewhere(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an image: compiled by the one who built it, run by one who cannot write there."""
    monkeypatch.setattr(config, "CACHE_DIR", "")
    assert hits(load) == 0
    assert list((tmp_path / "__pycache__").glob("*.nbc"))
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "cache"))
    assert hits(load) == 1
    assert not list((tmp_path / "cache").rglob("*.nbc"))


def test_a_change_of_another_source_compiles_again(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [hits(load), hits(load)] == [0, 1]
    monkeypatch.setattr(kernel_cache, "kernel_sources", lambda: "another")
    assert [hits(load), hits(load)] == [0, 1]


def test_the_sources_of_kernels_are_those_with_kernels_and_what_they_import(tmp_path: Path) -> None:
    package = tmp_path / "headway"
    package.mkdir()
    (package / "__init__.py").write_text("", "utf-8")
    (package / "called.py").write_text("from headway.inference.jit import part\n", "utf-8")
    (package / "constants.py").write_text("X = 1\n", "utf-8")
    (package / "caller.py").write_text(
        "from headway.inference.jit import kernel\nfrom headway.constants import X\n", "utf-8"
    )
    (package / "command.py").write_text("from headway.caller import run\n", "utf-8")

    def digest_after(name: str, text: str) -> str:
        (package / name).write_text((package / name).read_text("utf-8") + text, "utf-8")
        return kernel_cache.kernel_sources.__wrapped__(package)

    unchanged = digest_after("command.py", "")
    assert digest_after("command.py", "Y = 2\n") == unchanged
    found = [digest_after(name, "# changed\n") for name in ("called.py", "constants.py", "caller.py")]
    assert len({unchanged, *found}) == 4


def test_a_module_must_compile_until_something_is_kept(load: Load) -> None:
    kernel_cache._caches.pop("tripled", None)
    assert not kernel_cache.must_compile("tripled")  # has no kernels yet
    made = load()
    assert kernel_cache.must_compile("tripled")
    made(7)
    assert not kernel_cache.must_compile("tripled")
