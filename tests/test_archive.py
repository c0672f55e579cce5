"""Archives: what is saved is loaded; what is damaged or hostile is one error; a failed write changes nothing."""

from __future__ import annotations

import errno
import io
import json
import os
import pickle
import re
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from headway.archive import VERSION, Archive, load_archive, save_archive
from headway.errors import ArchiveError, ArgumentError, MissingFileError

KIND = "thing"
# Long enough for a member to be read in pieces: its header is looked at before its checksum is known.
ARRAYS: dict[str, NDArray[Any]] = {
    "weights": np.linspace(-1.0, 1.0, 3000, dtype=np.float32),
    "empty": np.zeros(0),
    "pass": np.array([3]),
    "bytes": np.random.default_rng(0).integers(0, 256, 1500, np.uint8),
    "signed": np.arange(-60, 60, dtype=np.int8).reshape(3, 40),
    "no bytes": np.zeros(0, np.uint8),
}
THING = Archive(KIND, {"text": "é|\t", "list": [1, 2.5, None], "deep": {"a": [True]}}, ARRAYS)


def assert_same(found: Archive, expected: Archive) -> None:
    assert found.kind == expected.kind
    assert {key: found.data[key] for key in expected.data} == dict(expected.data)
    assert set(found.arrays) == set(expected.arrays)
    for name, array in expected.arrays.items():
        assert (found.arrays[name].dtype, found.arrays[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found.arrays[name], array)


def saved(path: Path, *, compress: bool = True) -> bytes:
    save_archive(THING, path, compress=compress)
    return path.read_bytes()


def refused(path: Path) -> str:
    """The message: one sentence that begins with the path."""
    with pytest.raises(ArchiveError) as caught:
        load_archive(path, KIND)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert len(message) < len(str(path)) + 300
    return message


def npy(array: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def with_header(header: str, content: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode("latin-1") + b"\n"
    size = struct.pack("<H" if version == b"\x01\x00" else "<I", len(text))
    return b"\x93NUMPY" + version + size + text + content


def write_zip(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)


def head(**data: Any) -> bytes:
    return json.dumps({"headway": VERSION, "kind": KIND, **data}).encode()


@pytest.mark.parametrize("compress", [True, False])
def test_round_trip(tmp_path: Path, compress: bool) -> None:
    path = tmp_path / "a.thing"
    save_archive(THING, path, compress=compress)
    assert_same(load_archive(path, KIND), THING)
    assert load_archive(str(path), KIND).arrays["weights"].flags.writeable
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.thing"]


@given(
    array=hnp.arrays(
        st.sampled_from([np.dtype(name) for name in ("f4", "f8", "i4", "i8", "i1", "u1")]),
        hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5),
    ),
    text=st.text(),
)
def test_any_array_and_text(tmp_path_factory: pytest.TempPathFactory, array: Any, text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    path = tmp_path_factory.mktemp("archive") / "a"
    thing = Archive(KIND, {"text": text}, {"array": array, "turned": np.asarray(array).T})
    save_archive(thing, path)
    assert_same(load_archive(path, KIND), thing)


def test_it_is_a_zip_of_json_and_arrays(tmp_path: Path) -> None:
    path = tmp_path / "a.thing"
    saved(path)
    with zipfile.ZipFile(path) as file:
        assert set(file.namelist()) == {"headway.json", *(f"{name}.npy" for name in ARRAYS)}
        assert json.loads(file.read("headway.json")) == {"headway": VERSION, "kind": KIND, **THING.data}
        np.testing.assert_array_equal(np.load(io.BytesIO(file.read("weights.npy"))), ARRAYS["weights"])


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_the_file_has_the_permissions_of_any_new_file(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        saved(tmp_path / "a")
    finally:
        assert os.umask(before) == mask
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("compress", [True, False])
def test_bytes_are_stored_as_they_are(tmp_path: Path, compress: bool) -> None:
    path = tmp_path / "a"
    saved(path, compress=compress)
    assert ARRAYS["bytes"].tobytes() in path.read_bytes()


def test_the_same_content_makes_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = saved(tmp_path / "a")
    monkeypatch.setattr(time, "time", lambda: 1e9)
    monkeypatch.setattr(time, "localtime", lambda *_: time.gmtime(1e9))
    assert saved(tmp_path / "b") == whole


def test_what_was_loaded_outlives_its_file(tmp_path: Path) -> None:
    """Also where it is written over in its place: a process that has mapped the bytes would die."""
    path = tmp_path / "a"
    saved(path)
    found = load_archive(path, KIND)
    save_archive(Archive(KIND, {}, {"bytes": np.zeros(1500, np.uint8)}), path)
    assert_same(found, THING)
    saved(path)
    found = load_archive(path, KIND)
    path.write_bytes(b"")
    assert_same(found, THING)


def test_a_file_that_is_replaced_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was opened is read to its end; a file that is cut off under the reader's hands is refused."""
    path, other = tmp_path / "a", tmp_path / "b"
    saved(path)
    opened = zipfile.ZipFile.open

    def replacing(self: zipfile.ZipFile, *arguments: Any, **options: Any) -> Any:
        if other.exists():
            other.replace(path)
        return opened(self, *arguments, **options)

    save_archive(Archive(KIND, {}, {"bytes": np.zeros(9, np.uint8)}), other)
    monkeypatch.setattr(zipfile.ZipFile, "open", replacing)
    assert_same(load_archive(path, KIND), THING)
    saved(path)

    def cutting(self: zipfile.ZipFile, *arguments: Any, **options: Any) -> Any:
        os.truncate(path, 100)
        return opened(self, *arguments, **options)

    monkeypatch.setattr(zipfile.ZipFile, "open", cutting)
    refused(path)


@pytest.mark.parametrize("name", ["bytes", "signed"])
@pytest.mark.parametrize("compress", [True, False])
def test_a_flipped_byte_of_what_is_mapped(tmp_path: Path, name: str, compress: bool) -> None:
    content = bytearray(saved(tmp_path / "whole", compress=compress))
    start = content.index(ARRAYS[name].tobytes())
    for position in (start, start + 60, start + ARRAYS[name].nbytes - 1):
        content[position] ^= 0x10
        (tmp_path / "flipped").write_bytes(content)
        assert "CRC" in refused(tmp_path / "flipped")
        content[position] ^= 0x10
    (tmp_path / "flipped").write_bytes(content)
    assert_same(load_archive(tmp_path / "flipped", KIND), THING)


@pytest.mark.parametrize("dtype", ["|i1", "|u1"])
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("length", [0, 15, 17, 10**9])
def test_a_header_of_bytes_accounts_for_every_one(tmp_path: Path, dtype: str, compression: int, length: int) -> None:
    path = tmp_path / "a"
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({length},), }}"
    write_zip(path, {"headway.json": head(), "weights.npy": with_header(header, bytes(16))}, compression)
    assert "weights.npy does not hold the array it claims" in refused(path)


def test_a_stored_member_that_claims_more_than_the_file_has(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_zip(path, {"headway.json": head(), "weights.npy": npy(np.zeros(50, np.uint8))}, zipfile.ZIP_STORED)
    content = path.read_bytes()
    for size in (177, 179, 10**6):
        path.write_bytes(patched_sizes(content, b"weights.npy", packed=size, unpacked=size))
        refused(path)


# What is damaged by accident


@pytest.mark.parametrize("compress", [True, False])
def test_truncated_files(tmp_path: Path, compress: bool) -> None:
    content = saved(tmp_path / "whole", compress=compress)
    path = tmp_path / "part"
    for size in [*range(0, len(content), 97), len(content) - 1]:
        path.write_bytes(content[:size])
        refused(path)


@pytest.mark.parametrize(("compress", "flip"), [(True, 0x06), (False, 0x01), (False, 0xFF)])
def test_flipped_bytes(tmp_path: Path, compress: bool, flip: int) -> None:
    """Every byte outside the arrays' contents, and some inside: an error, or what was saved.

    The names of members are bare text in a zip's directory: a flip there may lose an array, never change one.
    """
    content = saved(tmp_path / "whole", compress=compress)
    path = tmp_path / "flipped"
    headers = [found.start() for found in re.finditer(b"PK\x03\x04", content)]
    assert len(headers) == 1 + len(ARRAYS)
    around = {at + k for at in headers for k in range(230)}
    for position in sorted({*around, *range(0, len(content), 997), *range(len(content) - 700, len(content))}):
        damaged = bytearray(content)
        damaged[position] ^= flip
        path.write_bytes(damaged)
        try:
            found = load_archive(path, KIND)
        except ArchiveError:
            continue
        assert {key: found.data[key] for key in THING.data} == dict(THING.data)
        for name in set(found.arrays) & set(ARRAYS):
            np.testing.assert_array_equal(found.arrays[name], ARRAYS[name])


@given(st.binary(max_size=300))
def test_random_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("random") / "a"
    for start in (b"", b"PK\x03\x04", b"PK\x05\x06"):
        path.write_bytes(start + content)
        refused(path)


def test_absent_files_and_directories(tmp_path: Path) -> None:
    assert "no such file; give the path of a saved thing" in refused(tmp_path / "absent")
    with pytest.raises(MissingFileError):
        load_archive(tmp_path / "absent", KIND)
    assert "cannot be read" in refused(tmp_path)


# What is not an archive of Headway, or of another kind or version


def test_an_empty_path() -> None:
    for act in (lambda: load_archive(""), lambda: save_archive(THING, "")):
        with pytest.raises(ArgumentError, match="expected the path of a file, got an empty text"):
            act()


def test_other_zip_files(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_zip(path, {"readme.txt": b"hello"})
    assert "not one that Headway wrote" in refused(path)
    for text in (b"[]", b"3", b"{}", b'{"headway": "1"}'):
        write_zip(path, {"headway.json": text})
        assert "not one that Headway wrote" in refused(path)
    for text in (b"{", b"\xff\xfe", b"", b"[" * 100_000, b"9" * 5000):
        write_zip(path, {"headway.json": text})
        assert "headway.json is damaged" in refused(path)


def test_other_kinds_and_versions(tmp_path: Path) -> None:
    path = tmp_path / "a"
    save_archive(Archive("checkpoint", {}, {}), path)
    assert "holds a 'checkpoint', not a thing" in refused(path)
    write_zip(path, {"headway.json": json.dumps({"headway": VERSION, "kind": "x" * 10_000}).encode()})
    assert "not a thing" in refused(path)
    write_zip(path, {"headway.json": json.dumps({"headway": VERSION + 1, "kind": KIND}).encode()})
    assert f"version {VERSION + 1} of the format, this is version {VERSION}; update headway" in refused(path)
    write_zip(path, {"headway.json": json.dumps({"headway": VERSION - 1, "kind": KIND}).encode()})
    assert f"version {VERSION - 1} of the format" in refused(path)
    assert "convert it with experiments/convert_models.py" in refused(path)


# What is hostile


class Touch:
    """Unpickling this creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return Path.touch, (self.path,)  # type: ignore[return-value]


def test_pickles_are_refused_and_never_run(tmp_path: Path) -> None:
    marker, path = tmp_path / "pwned", tmp_path / "a"
    array = np.array([Touch(marker)], object)
    for content in (npy(array, allow_pickle=True), pickle.dumps(array)):
        write_zip(path, {"headway.json": head(), "weights.npy": content})
        assert "weights.npy is damaged" in refused(path)
    assert not marker.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        npy(np.zeros(3, np.float16)),
        npy(np.zeros(3, bool)),
        npy(np.zeros(3, ">f8")),
        npy(np.zeros(3, "U4")),
        npy(np.zeros(3, [("a", "<f8")])),
        npy(np.asfortranarray(np.zeros((2, 3)))),
        npy(np.zeros(3))[:-1],
        npy(np.zeros(3)) + b"\0",
        with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-2, -1), }", b"\0" * 16),
        with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", b"\0" * 15),
        with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"),
        with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 9999999999999999999999), }"),
        with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "0, " * 200 + "), }"),
        with_header("{'descr': '|V0', 'fortran_order': False, 'shape': (0,), }"),
        with_header("{'descr': '<f8', 'fortran_order': False, 'shape': " + "(" * 300 + "), }"),
        with_header("-" * 20_000 + "1"),
        with_header('"""'),
        with_header("__import__('os').abort()"),
        with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (0,), }", version=b"\x03\x00"),
    ],
)
def test_arrays_that_are_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a"
    write_zip(path, {"headway.json": head(), "weights.npy": content})
    refused(path)


@pytest.mark.parametrize("length", [0, 1, 3, 10**9])
def test_a_header_accounts_for_every_byte(tmp_path: Path, length: int) -> None:
    path = tmp_path / "a"
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({length},), }}"
    write_zip(path, {"headway.json": head(), "weights.npy": with_header(header, bytes(16))})
    assert "weights.npy does not hold the array it claims" in refused(path)


@pytest.mark.parametrize(
    "name", ["../evil.txt", "/etc/evil", "weights.py", "weights.npy/", "headway.json/x", "x" * 5000]
)
def test_members_of_other_names(tmp_path: Path, name: str) -> None:
    path = tmp_path / "deep" / "a"
    path.parent.mkdir()
    write_zip(path, {"headway.json": head(), name: b"hello"})
    assert "that no archive of Headway has" in refused(path)
    assert [entry.name for entry in path.parent.iterdir()] == ["a"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["deep"]


def test_names_of_arrays_are_never_paths(tmp_path: Path) -> None:
    """An array of any name stays in memory."""
    path = tmp_path / "a"
    write_zip(path, {"headway.json": head(), "../evil.npy": npy(np.zeros(2))})
    assert set(load_archive(path, KIND).arrays) == {"../evil"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def patched_sizes(content: bytes, name: bytes, *, packed: int | None = None, unpacked: int | None = None) -> bytes:
    """The zip with other sizes declared for a member, in its directory."""
    damaged = bytearray(content)
    entry = content.rindex(name) - 46
    assert content[entry : entry + 4] == b"PK\x01\x02"
    if packed is not None:
        damaged[entry + 20 : entry + 24] = struct.pack("<I", packed)
    if unpacked is not None:
        damaged[entry + 24 : entry + 28] = struct.pack("<I", unpacked)
    return bytes(damaged)


def test_declared_sizes_are_bounded_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    write_zip(path, {"headway.json": head(), "weights.npy": npy(np.zeros(100))})
    content = path.read_bytes()
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_, **__: pytest.fail("read what it should have refused"))
    for name in (b"headway.json", b"weights.npy"):
        for packed in (None, 2**31):
            path.write_bytes(patched_sizes(content, name, packed=packed, unpacked=2**32 - 2))
            assert "more than any archive of Headway" in refused(path)


def test_sizes_that_do_not_hold(tmp_path: Path) -> None:
    """A member may claim more than it holds, under the right checksum, with a header that agrees to the claim."""
    path = tmp_path / "a"
    header = with_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000,), }")
    write_zip(path, {"headway.json": head(), "weights.npy": header + b"\0" * 24})
    content = path.read_bytes()
    for size in (len(header) + 8_000_000, len(header) + 16, 5):
        path.write_bytes(patched_sizes(content, b"weights.npy", unpacked=size))
        refused(path)


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    """300 MB of zeros in 300 kB."""
    path = tmp_path / "a"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("headway.json", head())
        with file.open("weights.npy", "w") as member:
            for _ in range(300):
                member.write(bytes(1 << 20))
    assert path.stat().st_size < 1 << 20
    assert "more than any archive of Headway" in refused(path)


def test_many_members(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_zip(path, {"headway.json": head(), **{f"a{i}.npy": npy(np.zeros(1)) for i in range(200)}})
    assert "has 201 members" in refused(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions(tmp_path: Path, compression: int) -> None:
    path = tmp_path / "a"
    write_zip(path, {"headway.json": head()}, compression)
    assert "compressed in a way that Headway never does" in refused(path)


def test_names_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_zip(path, {"headway.json": head(), "é.npy": npy(np.zeros(1))})
    path.write_bytes(path.read_bytes().replace("é".encode(), b"\xff\xfe"))
    refused(path)


def test_encrypted_members(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_zip(path, {"headway.json": head()})
    damaged = bytearray(path.read_bytes())
    damaged[damaged.rindex(b"headway.json") - 46 + 8] |= 1
    path.write_bytes(damaged)
    refused(path)


# Writing


def failing(number: int) -> Callable[..., None]:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize("step", ["os.fsync", "numpy.lib.format.write_array", "pathlib.Path.replace"])
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    path = tmp_path / "a"
    before = saved(path)
    monkeypatch.setattr(step, failing(errno.ENOSPC))
    with pytest.raises(
        ArchiveError,
        match=r"\(No space left on device\); make room, .* name; what was there is untouched",
    ):
        save_archive(Archive(KIND, {}, {"weights": np.zeros(5)}), path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    before = saved(path)

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_archive(Archive(KIND, {}, {}), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_nowhere_to_write(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="cannot be written"):
        save_archive(THING, tmp_path / "absent" / "a")
    (tmp_path / "directory").mkdir()
    with pytest.raises(ArchiveError, match="cannot be written"):
        save_archive(THING, tmp_path / "directory")
    assert [entry.name for entry in tmp_path.iterdir()] == ["directory"]
