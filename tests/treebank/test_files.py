"""Files and streams: compression, formats by name, replacing a file whole or not at all, hostile bytes, flat memory."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import random
import struct
import subprocess
import sys
import tempfile
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.treebank import Sentence, TreebankError, read_treebank, streams, write_treebank

ROW = "{}\t{}\t_\t_\t_\t_\t0\troot\t_\t_\n"
TEXT = (ROW.format(1, "naïve") + ROW.format(2, "日本") + "\n" + ROW.format(1, "b") + "\n").encode()
FORMS = [("naïve", "日本"), ("b",)]


def forms(source: Any, **options: Any) -> list[tuple[str, ...]]:
    return [sentence.forms for sentence in read_treebank(source, **options)]


def sentences() -> list[Sentence]:
    return list(read_treebank(io.BytesIO(TEXT)))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


PACK: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("packed", PACK)
@pytest.mark.parametrize("name", ["a.conllu", "a.conllu.gz", "a.conllu.xz", "noname", "a.conll"])
def test_compression_is_told_by_the_first_bytes(tmp_path: Path, name: str, packed: str) -> None:
    path = tmp_path / name
    path.write_bytes(PACK[packed](TEXT))
    assert forms(path) == forms(str(path)) == FORMS
    with path.open("rb") as stream:
        assert forms(stream) == FORMS
        assert not stream.closed
    with path.open("rb", buffering=0) as raw:
        assert forms(raw) == FORMS


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_files_packed_in_parts(pack: Callable[[bytes], bytes]) -> None:
    """As `cat a.gz b.gz` and `cat a.xz b.xz` make them; xz streams may be padded."""
    padding = b"\0" * 1_000_000 if pack is lzma.compress else b""
    assert forms(io.BytesIO(pack(TEXT) + padding + pack(TEXT) + padding)) == FORMS + FORMS


def test_compressed_by_the_name_when_written(tmp_path: Path) -> None:
    for suffix, unpack in {"": bytes, ".gz": gzip.decompress, ".xz": lzma.decompress, ".GZ": gzip.decompress}.items():
        path = tmp_path / f"a.conllu{suffix}"
        write_treebank(sentences(), path)
        assert unpack(path.read_bytes()) == TEXT
        first = path.read_bytes()
        write_treebank(sentences(), path)
        assert path.read_bytes() == first
    assert len(names(tmp_path)) == 4


class Dripping(io.RawIOBase):
    """A raw stream that gives, and takes, one byte at a time."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)

    def read(self, size: int = -1) -> bytes:
        piece = bytes(self.data[:1])
        del self.data[:1]
        return piece

    def write(self, data: Any) -> int:
        self.data += data[:1]
        return 1


@pytest.mark.parametrize("packed", PACK)
def test_streams_that_drip(packed: str) -> None:
    assert forms(Dripping(PACK[packed](b"\xef\xbb\xbf" + TEXT))) == FORMS
    stream = Dripping()
    write_treebank(sentences(), stream)
    assert bytes(stream.data) == TEXT


def test_streams_that_say_nothing() -> None:
    """Their write returns None, and must not be asked for ever."""
    taken: list[bytes] = []

    class Silent:
        def write(self, data: bytes) -> None:
            taken.append(data)

    write_treebank(sentences(), Silent())  # type: ignore[arg-type]
    assert b"".join(taken) == TEXT


def test_text_streams() -> None:
    assert forms(io.StringIO(TEXT.decode())) == FORMS
    assert forms(io.StringIO("\ufeff" + TEXT.decode())) == FORMS
    stream = io.StringIO()
    write_treebank(sentences(), stream)
    assert stream.getvalue() == TEXT.decode()
    for mode in ("w+", "w+b"):
        with tempfile.NamedTemporaryFile(mode, **({} if "b" in mode else {"encoding": "utf-8"})) as file:
            write_treebank(sentences(), file)  # type: ignore[arg-type]
            file.seek(0)
            assert forms(file) == FORMS


def test_text_streams_in_the_wrong_encoding() -> None:
    with pytest.raises(TreebankError, match="line 1: the data break off"):
        forms(io.TextIOWrapper(io.BytesIO(TEXT), encoding="ascii"))
    with pytest.raises(TreebankError, match="line 1: byte 0xed is not valid UTF-8"):
        forms(io.TextIOWrapper(io.BytesIO(TEXT), encoding="ascii", errors="surrogateescape"))
    with pytest.raises(TreebankError, match=r"stream, line 1: the character '\\xef' cannot be written as ascii"):
        write_treebank(sentences(), io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    with pytest.raises(TreebankError, match=r"sentence in memory: the character '\\ud800' cannot be written as utf-8"):
        write_treebank([Sentence.from_words(["\ud800"])], io.BytesIO())


def test_a_stream_is_read_as_it_comes() -> None:
    """The first sentence is there before the second is written."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source, os.fdopen(writing, "wb", buffering=0) as target:
        found = read_treebank(source)
        for _ in range(3):
            target.write(TEXT)
            assert [next(found).forms, next(found).forms] == FORMS


def test_standard_input_and_output() -> None:
    code = "from headway.treebank import *; print('first'); write_treebank(read_treebank('-'), '-'); print('last')"
    for options in ([], ["-u"]):
        done = subprocess.run(
            [sys.executable, *options, "-c", code],
            input=gzip.compress(TEXT),
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
        )
        assert done.stdout.replace(b"\r\n", b"\n") == b"first\n" + TEXT + b"last\n"
    failed = subprocess.run(
        [sys.executable, "-c", "from headway.treebank import *; list(read_treebank('-'))"],
        input=b"x",
        capture_output=True,
    )
    assert b"standard input, line 1: the line has 1 column;" in failed.stderr


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("a.conllu", "conllu"),
        ("a.CONLLU.gz", "conllu"),
        ("a.txt", "conllu"),
        ("a", "conllu"),
        (".gz", "conllu"),
        ("a.conll", "conllx"),
        ("a.conll.xz", "conllx"),
        ("a.conllx", "conllx"),
    ],
)
def test_the_name_says_the_format(tmp_path: Path, name: str, format: str) -> None:
    path = tmp_path / name
    path.write_bytes(TEXT)
    assert {sentence.layout.format for sentence in read_treebank(path)} == {format}
    assert {sentence.layout.format for sentence in read_treebank(path, format="conllx")} == {"conllx"}
    assert {sentence.layout.format for sentence in read_treebank(path, format="conllu")} == {"conllu"}
    with path.open("rb") as stream:
        assert {sentence.layout.format for sentence in read_treebank(stream)} == {format}


def test_the_name_says_the_format_when_written(tmp_path: Path) -> None:
    line = "1\ta\t_\t_\t_\t_\t_\t_\tdeps\tmisc\n"
    (sentence,) = read_treebank(io.StringIO("# c\n" + line))
    write_treebank([sentence], tmp_path / "a.conll")
    assert (tmp_path / "a.conll").read_text() == "1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
    write_treebank([sentence], tmp_path / "b.conll", format="conllu")
    assert (tmp_path / "b.conll").read_text() == f"# c\n{line}\n"
    (x,) = read_treebank(io.StringIO(line), format="conllx")
    write_treebank([x, sentence], tmp_path / "c.txt")  # each in its own format
    assert (tmp_path / "c.txt").read_text() == f"{line}\n# c\n{line}\n"


def test_an_unknown_format_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'conll09'; expected 'conllu' or 'conllx'"):
        read_treebank("a", format="conll09")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'conll09'; expected 'conllu' or 'conllx'"):
        write_treebank([], tmp_path / "a", format="conll09")  # type: ignore[arg-type]
    assert names(tmp_path) == []


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(TreebankError, match="No such file") as caught:
        forms(tmp_path / "missing.conllu")
    assert caught.value.source == str(tmp_path / "missing.conllu")
    assert caught.value.line is None
    with pytest.raises(TreebankError, match="Is a directory"):
        forms(tmp_path)
    with pytest.raises(TreebankError, match="Is a directory"):
        write_treebank(sentences(), tmp_path)
    with pytest.raises(TreebankError, match="No such file"):
        write_treebank(sentences(), tmp_path / "missing" / "a.conllu")
    assert names(tmp_path) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_files_that_may_not_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_bytes(TEXT)
    path.chmod(0o400)
    with pytest.raises(TreebankError, match="Permission denied"):
        write_treebank([], path)
    path.chmod(0)
    with pytest.raises(TreebankError, match="Permission denied"):
        forms(path)


def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.conllu"
    path.write_bytes(TEXT)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(TreebankError, match="Permission denied"):
        write_treebank([], path)
    assert path.read_bytes() == TEXT


@pytest.mark.parametrize("text", [b"", b"\n", b"\n\r\n\n", b"\xef\xbb\xbf"])
def test_nothing_to_read(text: bytes) -> None:
    assert forms(io.BytesIO(text)) == []
    assert forms(io.BytesIO(gzip.compress(text))) == []
    assert forms(io.BytesIO(lzma.compress(text))) == []


# -- whole or not at all -------------------------------------------------------------------------------------------


class StopError(Exception):
    """Something that goes wrong while writing."""


def interrupted(error: BaseException) -> Iterator[Sentence]:
    yield from sentences() * 50
    raise error


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("error", [StopError(), KeyboardInterrupt(), SystemExit(1), OSError("not of the target")])
def test_an_error_leaves_the_old_file(tmp_path: Path, suffix: str, error: BaseException) -> None:
    path = tmp_path / f"a.conllu{suffix}"
    path.write_bytes(b"old")
    with pytest.raises(type(error)) as caught:
        write_treebank(interrupted(error), path)
    assert caught.value is error
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", PACK)
def test_a_full_disk_leaves_the_old_file(tmp_path: Path, suffix: str) -> None:
    """The limit on a file's size stands in for the disk's; it is set in a process of its own."""
    path = tmp_path / f"a.conllu{suffix}"
    path.write_bytes(b"old")
    code = """
import random, resource, signal, sys
from headway.treebank import *
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
words = random.Random(0)
try:
    write_treebank((Sentence.from_words([str(words.random())] * 9) for _ in range(10_000)), sys.argv[1])
except TreebankError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == f"{path}: writing failed (File too large); make room, or choose another name\n"
    assert done.stderr == ""
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == [path.name]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_devices_are_written_to_not_replaced() -> None:
    with pytest.raises(TreebankError, match="/dev/full: writing failed"):
        write_treebank(sentences(), "/dev/full")
    write_treebank(sentences(), "/dev/null")
    assert Path("/dev/null").is_char_device()


def test_a_reader_that_goes_away_is_the_callers_affair() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb", buffering=0) as target, pytest.raises(BrokenPipeError):
        write_treebank(sentences(), target)


def test_reading_and_writing_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_bytes(TEXT * 2000)
    write_treebank((sentence.with_tree([-1] + [0] * len(sentence)) for sentence in read_treebank(path)), path)
    assert path.read_bytes() == TEXT.replace(b"root", b"_") * 2000


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link = tmp_path / "link.conllu"
    link.symlink_to(path)
    write_treebank(sentences(), link)
    assert link.is_symlink()
    assert path.read_bytes() == TEXT
    assert path.stat().st_mode & 0o777 == 0o640
    fresh = tmp_path / "fresh.conllu"
    write_treebank(sentences(), fresh)
    plain = tmp_path / "plain"
    plain.touch()
    assert fresh.stat().st_mode == plain.stat().st_mode


# -- hostile bytes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_cut_or_damaged_archives(pack: Callable[[bytes], bytes]) -> None:
    """Every cut and every damaged byte: the right sentences, or a clear error; never wrong sentences at the end."""
    text = TEXT * 20
    whole = pack(text)
    for cut in range(6, len(whole)):
        with pytest.raises(TreebankError, match=r"stream, line [0-9]+: "):
            forms(io.BytesIO(whole[:cut]))
    for position in range(6, len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0x55
        try:
            assert forms(io.BytesIO(bytes(damaged))) == FORMS * 20
        except TreebankError as error:
            assert error.line is not None  # noqa: PT017  (some damage, as to gzip's date, does no harm)
    with pytest.raises(TreebankError, match="break off"):
        forms(io.BytesIO(whole + b"garbage"))


def test_skip_bad_does_not_hide_a_cut_file() -> None:
    skipped: list[TreebankError] = []
    with pytest.raises(TreebankError, match="break off"):
        forms(io.BytesIO(gzip.compress(TEXT * 20)[:-9]), skip_bad=skipped.append)
    assert skipped == []


@given(data=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        forms(io.BytesIO(data))
    except TreebankError as error:
        assert error.source == "stream"  # noqa: PT017


@given(seed=st.integers(0, 10_000))
def test_a_treebank_with_damaged_bytes_is_read_or_refused(seed: int) -> None:
    """What is read after damage is written back unchanged, line ends and order marks aside."""
    chance = random.Random(seed)
    data = bytearray(TEXT * 3)
    for _ in range(chance.randint(1, 4)):
        data[chance.randrange(len(data))] = chance.choice(b"\0\t\n19_-.# \xff\xe2")
    skipped: list[TreebankError] = []
    found = list(read_treebank(io.BytesIO(bytes(data)), skip_bad=skipped.append))
    stream = io.BytesIO()
    write_treebank(found, stream)
    assert all(text in data for text in stream.getvalue().split(b"\n\n"))
    assert len(found) + len(skipped) <= 10


def test_an_xz_file_that_asks_for_much_memory_is_refused() -> None:
    """The dictionary size in the block's header, raised to 1.5 GB with its checksum put right."""
    packed = bytearray(lzma.compress(TEXT, check=lzma.CHECK_CRC32))
    size = (packed[12] + 1) * 4
    assert packed[14:16] == b"\x21\x01"  # LZMA2, one byte of properties
    packed[16] = 37
    packed[12 + size - 4 : 12 + size] = struct.pack("<I", zlib.crc32(packed[12 : 12 + size - 4]))
    with pytest.raises(TreebankError, match="Memory usage limit exceeded"):
        forms(io.BytesIO(bytes(packed)))
    largest = lzma.compress(TEXT, preset=9 | lzma.PRESET_EXTREME)
    assert forms(io.BytesIO(largest)) == FORMS


def bomb(data: bytes, times: int) -> bytes:
    """gzip of `times` copies, made without holding them."""
    packer = zlib.compressobj(wbits=31)
    return b"".join(packer.compress(data) for _ in range(times)) + packer.flush()


@pytest.mark.parametrize(
    ("piece", "said"),
    [(b"a" * 1_000_000, "more than"), (b"\0" * 1_000_000, "more than"), (b"\n" * 10_000, None)],
)
def test_a_gzip_bomb_takes_little_memory(piece: bytes, said: str | None) -> None:
    data = bomb(piece, 40)
    tracemalloc.start()
    try:
        if said is None:
            assert forms(io.BytesIO(data)) == []
        else:
            with pytest.raises(TreebankError, match=said):
                forms(io.BytesIO(data))
        assert tracemalloc.get_traced_memory()[1] < 25_000_000
    finally:
        tracemalloc.stop()


def test_memory_is_flat() -> None:
    """Long words, so that bytes count and not Python's objects, and few sentences, since tracing is slow."""
    text = (ROW.format(1, "long" * 500) + "\n").encode() * 50

    def peak(times: int) -> int:
        data = bomb(text, times)
        tracemalloc.start()
        with tempfile.TemporaryFile() as target:
            write_treebank(read_treebank(io.BytesIO(data)), target)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(1)  # what is allocated once
    assert peak(100) < 1.1 * peak(20)


def test_a_file_half_read_is_closed(tmp_path: Path) -> None:
    """A warning about an open file would be an error here."""
    path = tmp_path / "a.conllu"
    path.write_bytes(TEXT)
    next(read_treebank(path))
    assert streams.name_of(path, "") == str(path)
