"""Shards and their documents: every document is in one shard, whatever the sizes; what is damaged is said to be."""

from __future__ import annotations

import gzip
import json
import lzma
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import TreebankError
from headway.ray import documents as reader
from headway.ray.documents import Fields, Raw, documents
from headway.ray.plan import Unit, inputs_of, plan, require_documents
from headway.treebank import Sentence
from tests.ray.poison import treebank

TEXT = Fields()
LINES = st.lists(st.sampled_from(["", " ", "Ape.", "Bär sah.", "ccc " * 9]), max_size=12)


def read(folder: Path, size: int, unit: Unit = "line", fields: Fields = TEXT) -> list[list[Raw]]:
    """The documents of each shard."""
    return [
        [raw for piece in shard.pieces for raw in documents(piece, unit, fields)]
        for shard in plan(inputs_of([str(folder)]), unit, size)
    ]


def flat(shards: list[list[Raw]]) -> list[Raw]:
    return [raw for shard in shards for raw in shard]


@given(files=st.lists(LINES, min_size=1, max_size=3), end=st.sampled_from(["\n", "\r\n"]), size=st.integers(1, 60))
def test_lines_are_in_one_shard_each(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[str]], end: str, size: int
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    for number, lines in enumerate(files):
        (folder / f"{number}.txt").write_bytes(end.join(lines).encode())
    found = flat(read(folder, size))
    assert [raw.content for raw in found] == [line for lines in files for line in lines if line.strip()]
    assert len({raw.id for raw in found}) == len(found)
    for raw in found:
        name, _, offset = raw.id.partition(":")
        assert (folder / name).read_bytes()[int(offset) :].decode().startswith(raw.source)


@given(files=st.lists(LINES, min_size=1, max_size=3), end=st.sampled_from(["\n", "\r\n"]), size=st.integers(1, 60))
def test_paragraphs_are_in_one_shard_each(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[str]], end: str, size: int
) -> None:
    folder = tmp_path_factory.mktemp("paragraphs")
    expected = []
    for number, lines in enumerate(files):
        text = end.join(lines)
        (folder / f"{number}.txt").write_bytes(text.encode())
        expected += [part.split() for part in re.split(r"(?:^|(?<=\n))[ \r]*(?:\n|$)", text) if part.strip()]
    assert [str(raw.content).split() for raw in flat(read(folder, size, "paragraph"))] == expected


@given(sentences=st.lists(st.sampled_from(["a", "b c", "d e f g"]), max_size=9), size=st.integers(1, 99))
def test_sentences_are_in_one_shard_each(
    tmp_path_factory: pytest.TempPathFactory, sentences: list[str], size: int
) -> None:
    folder = tmp_path_factory.mktemp("treebank")
    (folder / "a.conllu").write_text(treebank(*sentences))
    found = flat(read(folder, size))
    assert [raw.id for raw in found] == [f"s{number + 1}" for number in range(len(sentences))]
    assert [" ".join(raw.content.forms) for raw in found if isinstance(raw.content, Sentence)] == sentences


@given(groups=st.lists(st.integers(1, 4), min_size=1, max_size=4), size=st.integers(1, 900))
def test_rows_are_in_one_shard_each(tmp_path_factory: pytest.TempPathFactory, groups: list[int], size: int) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path_factory.mktemp("rows") / "a.parquet"
    texts = [f"text {number}" for number in range(sum(groups))]
    schema = pyarrow.schema([("text", pyarrow.string())])
    with parquet.ParquetWriter(path, schema) as writer:
        start = 0
        for rows in groups:
            writer.write_table(pyarrow.table({"text": texts[start : start + rows]}, schema), row_group_size=rows)
            start += rows
    found = flat(read(path, size))
    assert [(raw.id, raw.content) for raw in found] == [(f"a.parquet:{n}", text) for n, text in enumerate(texts)]


def test_shards_have_the_size_that_was_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"ab\n" * 100)
    (tmp_path / "b.txt").write_bytes(b"")
    (tmp_path / "c.txt").write_bytes(b"ab\n" * 10)
    found = inputs_of([str(tmp_path)])
    assert [shard.size for shard in plan(found, "line", 64)] == [64, 64, 64, 64, 64, 10]
    assert [[piece.name for piece in shard.pieces] for shard in plan(found, "file", 64)] == [
        ["a.txt"],
        ["b.txt", "c.txt"],
    ]
    assert [raw.content for raw in flat(read(tmp_path, 64, "file"))] == ["ab\n" * 100, "", "ab\n" * 10]


def test_a_file_is_taken_once_and_named_without_what_all_share(tmp_path: Path) -> None:
    for name in ("2020/a.txt", "2021/b.jsonl", "2021/.hidden"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    found = inputs_of([f"{tmp_path}/*/*.txt", str(tmp_path)])
    assert [(each.name, each.kind) for each in found] == [("2020/a.txt", "text"), ("2021/b.jsonl", "jsonl")]
    assert [each.name for each in inputs_of([str(tmp_path / "2020" / "a.txt")])] == ["a.txt"]
    assert [each.name for each in inputs_of([f"file://{tmp_path}/*/*.txt"])] == ["a.txt"]
    with pytest.raises(TreebankError, match=r"nothing/\*: no file has this name; check it"):
        inputs_of([f"{tmp_path}/nothing/*"])


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_packed_files_are_whole_shards(tmp_path: Path, suffix: str) -> None:
    data = b'{"text": "one"}\n\n{"text": "two"}\n'
    (tmp_path / f"a.jsonl{suffix}").write_bytes(packed(data, suffix))
    (tmp_path / f"b.jsonl{suffix}").write_bytes(packed(data, suffix))
    shards = read(tmp_path, 1)
    assert [[raw.content for raw in shard] for shard in shards] == [["one", "two"], ["one", "two"]]
    assert shards[1][1].id == f"b.jsonl{suffix}:17"


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_packed_file_that_breaks_off_ends_in_an_error(tmp_path: Path, suffix: str) -> None:
    lines = b"".join(b'{"text": "%032x"}\n' % (number * 0x9E3779B97F4A7C15 % 2**128) for number in range(20_000))
    whole = packed(lines, suffix)
    (tmp_path / f"a.jsonl{suffix}").write_bytes(whole[: len(whole) // 2])
    *good, last = flat(read(tmp_path, 10**9))
    assert len(good) > 1000
    assert [raw.content for raw in good] == [json.loads(line)["text"] for line in lines.splitlines()[: len(good)]]
    assert last.content is None
    assert "the data break off or are damaged" in last.problem


def test_what_is_wrong_with_a_document_is_said(tmp_path: Path) -> None:
    lines = [
        b'{"text": "good", "id": 7}',
        b'{"text": "no id"}',
        b'{"id": 8}',
        b'{"text": 5, "id": 9}',
        b'{"text": "\\ud800", "id": 10}',
        b'["text"]',
        b"{",
        b'{"text": "\xff"}',
        b"[" * 100_000,
    ]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    found = flat(read(tmp_path, 10**6, fields=Fields("text", "id")))
    assert [raw.id for raw in found[:5]] == ["7", "a.jsonl:26", "8", "9", "10"]
    causes = ["", "no field 'id'", "no field 'text'", "int in the field 'text'", "half of a character"]
    causes += ["expected an object, got list", "not valid JSON", "not valid UTF-8", "not valid JSON"]
    assert len(found) == len(causes)
    for raw, cause in zip(found, causes, strict=True):
        assert cause in raw.problem
        assert (raw.content is None) == bool(cause)


def test_bad_bytes_and_bad_sentences_cost_one_document(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfgood\nb\xffd\ngood\n")
    good, bad, last = flat(read(tmp_path, 10**6))
    assert (good.content, last.content) == ("good", "good")
    assert bad.problem == "0xff at byte 2 of it is not valid UTF-8; save it as UTF-8"
    (tmp_path / "a.txt").unlink()
    (tmp_path / "a.conllu").write_text(treebank("a b") + "1\tx\n\n" + treebank("c"))
    problems = [raw.problem for raw in flat(read(tmp_path, 10**6))]
    assert [bool(problem) for problem in problems] == [False, True, False]
    assert problems[1].startswith("a.conllu:56, line 1: the line has 2 columns")


def test_a_document_has_a_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LARGEST", 10)
    (tmp_path / "a.txt").write_bytes(b"a" * 11 + b"\nshort\n" + b"b" * 50)
    assert [raw.content for raw in flat(read(tmp_path, 4))] == [None, "short", None]
    (tmp_path / "a.txt").write_bytes(b"12345678\n12345\n\nshort\n\n" + b"b" * 50)
    assert [raw.content for raw in flat(read(tmp_path, 4, "paragraph"))] == [None, "short\n", None]
    monkeypatch.setattr("headway.ray.plan.LARGEST", 10)
    with pytest.raises(TreebankError, match="too many for one document; cut it with --documents paragraph"):
        require_documents(inputs_of([str(tmp_path)]), "file")


def test_what_is_no_parquet_is_an_error_of_the_file(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing else")
    (raw,) = flat(read(tmp_path, 10**6))
    assert "damaged" in raw.problem
    parquet.write_table(pyarrow.table({"body": ["x"]}), tmp_path / "a.parquet")
    with pytest.raises(TreebankError, match=r"there is no column 'text'; the columns are \['body'\]"):
        read(tmp_path, 10**6)


def test_a_file_that_is_gone_is_an_error_of_the_system(tmp_path: Path) -> None:
    """It may come back: whoever reads it tries again."""
    (tmp_path / "a.txt").write_text("x")
    (shard,) = plan(inputs_of([str(tmp_path)]), "line", 10)
    (tmp_path / "a.txt").unlink()
    with pytest.raises(FileNotFoundError):
        list(documents(shard.pieces[0], "line", Fields()))


def packed(data: bytes, suffix: str) -> bytes:
    if suffix == ".gz":
        return gzip.compress(data)
    if suffix == ".xz":
        return lzma.compress(data)
    pyarrow = pytest.importorskip("pyarrow")
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()
