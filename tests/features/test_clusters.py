"""Files of word clusters: what is read, and errors that name the file and the line."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from headway.errors import HeadwayError, TrainingError
from headway.features.clusters import NO_CLUSTERS, Clusters, read_clusters


def test_a_word_a_line_and_anything_after_it(tmp_path: Path) -> None:
    path = tmp_path / "paths"
    path.write_bytes("0110\tdog\t17\n1\tÜber\r\n001\tNew York\textra\tmore\n0\tlast".encode())
    expected = {"dog": "0110", "Über": "1", "New York": "001", "last": "0"}
    assert read_clusters(path) == Clusters(expected)
    assert read_clusters(str(path)).paths == expected


def test_compressed(tmp_path: Path) -> None:
    path = tmp_path / "paths.gz"
    path.write_bytes(gzip.compress(b"01\tdog\t3\n"))
    assert read_clusters(path).paths == {"dog": "01"}


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_compressed_data_that_break_off(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "paths"
    whole = pack(b"01\tdog\t3\n")
    flipped = bytearray(whole)
    flipped[-10] ^= 0xFF
    for data in (whole[:-4], whole[: len(whole) // 2], bytes(flipped)):
        path.write_bytes(data)
        with pytest.raises(TrainingError, match=r"paths, line \d: the data break off .*; get a complete copy"):
            read_clusters(path)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (b"0110", "expected bits, a tab and a word, in UTF-8"),
        (b"", "expected bits, a tab and a word"),
        (b"01\t\xff\xfe\t3", "in UTF-8"),
        (b"01 dog", "expected bits, a tab and a word"),
        (b"dog\t0110\t3", "'dog' is not a path of 0 and 1"),
        (b"012\tdog\t3", "'012' is not a path"),
        (b"\tdog\t3", "'' is not a path"),
        (b"01\t\t3", "'01'"),
        ("\u0661\tdog\t3".encode(), r"'\u0661' is not a path"),  # a digit, too
        (b"x" * 5000 + b"\tdog", "x" * 40 + "' is not a path"),
    ],
)
def test_lines_that_are_none(tmp_path: Path, line: bytes, cause: str) -> None:
    path = tmp_path / "paths"
    path.write_bytes(b"0\ta\t1\n1\tb\t1\n" + line + b"\n0\tc\t1\n")
    with pytest.raises(TrainingError) as caught:
        read_clusters(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, line 3: ")
    assert cause in message
    assert "\n" not in message
    assert len(message) < len(str(path)) + 150


def test_an_empty_file_and_none(tmp_path: Path) -> None:
    path = tmp_path / "paths"
    path.write_bytes(b"")
    with pytest.raises(TrainingError, match="has no clusters; expected lines of bits"):
        read_clusters(path)
    with pytest.raises(HeadwayError, match="absent"):
        read_clusters(tmp_path / "absent")


def test_lower_case_stands_in() -> None:
    clusters = Clusters({"dog": "0110", "Dog": "1", "Cat": "11"})
    assert [clusters.path(form) for form in ("dog", "Dog", "DOG", "Cat", "cat", "CAT")] == [
        "0110", "1", "0110", "11", "_", "_",
    ]  # fmt: skip
    assert NO_CLUSTERS.path("dog") == "_"
