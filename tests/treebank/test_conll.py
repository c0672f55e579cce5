"""CoNLL-U and CoNLL-X: what is read, that it is written back byte for byte, and every way to be malformed."""

from __future__ import annotations

import io
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.treebank import Sentence, TreebankError, conll_reader, read_treebank, write_treebank

from .strategies import Written, head_choices, written_sentences

Format = Literal["conllu", "conllx"]


def read(text: str | bytes, format: Format | None = None) -> list[Sentence]:
    return list(read_treebank(io.BytesIO(text if isinstance(text, bytes) else text.encode()), format=format))


def write(sentences: list[Sentence], format: Format | None = None) -> bytes:
    stream = io.BytesIO()
    write_treebank(sentences, stream, format=format)
    return stream.getvalue()


def row(number: object, form: str = "w", head: object = "_", label: str = "_") -> str:
    return f"{number}\t{form}\t_\t_\t_\t_\t{head}\t{label}\t_\t_"


def check_columns(sentence: Sentence, written: Written) -> None:
    assert (sentence.forms, sentence.lemmas, sentence.upos, sentence.xpos, sentence.feats) == written.columns[1:6]
    assert (sentence.layout.deps, sentence.layout.misc) == written.columns[8:]
    assert sentence.layout.comments == written.comments
    if written.heads is None:
        assert sentence.heads is None
        assert sentence.labels is None
    else:
        assert sentence.heads is not None
        assert tuple(sentence.heads.tolist()) == written.heads
        assert sentence.labels == (None, *written.columns[7])


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@given(sentences=st.lists(written_sentences(), max_size=4))
def test_conllu_round_trip(newline: str, sentences: list[Written]) -> None:
    text = "".join(sentence.text(newline) for sentence in sentences).encode()
    found = read(text)
    for sentence, written in zip(found, sentences, strict=True):
        check_columns(sentence, written)
    assert write(found) == text
    assert "".join(sentence.to_conllu() for sentence in found).encode() == text


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@given(sentences=st.lists(written_sentences(conllu=False), max_size=4))
def test_conllx_round_trip(newline: str, sentences: list[Written]) -> None:
    text = "".join(sentence.text(newline) for sentence in sentences).encode()
    found = read(text, "conllx")
    for sentence, written in zip(found, sentences, strict=True):
        check_columns(sentence, written)
    assert write(found) == text
    assert "".join(sentence.to_conllx() for sentence in found).encode() == text


@given(written=written_sentences(), data=st.data())
def test_with_tree_changes_two_columns_and_no_other_byte(written: Written, data: st.DataObject) -> None:
    (sentence,) = read(written.text())
    n = len(sentence)
    heads = data.draw(head_choices().filter(lambda heads: len(heads) <= n + 1))
    heads += (0,) * (n + 1 - len(heads))
    labels = [None, *(f"new{m}" for m in range(1, n + 1))]
    changed = sentence.with_tree(heads, labels).to_conllu().split("\n")
    for before, after in zip([*written.lines, "", ""], changed, strict=True):
        fields = before.split("\t")
        if fields[0].isdecimal() and not before.startswith("#"):
            fields[6:8] = [str(heads[int(fields[0])]), f"new{fields[0]}"]
        assert after == "\t".join(fields)


@given(written=written_sentences())
def test_the_other_format_keeps_the_words_and_the_tree(written: Written) -> None:
    """CoNLL-X has no place for the rest, and its last columns mean something else."""
    (sentence,) = read(written.text())
    text = sentence.to_conllx()
    expected = ["\t".join([*fields[:8], "_", "_"]) for fields in zip(*written.columns, strict=True)]
    assert text == "".join(f"{line}\n" for line in [*expected, ""])
    (again,) = read(text, "conllx")
    assert again.forms == sentence.forms
    assert write([again], "conllu") == text.encode()


@given(sentences=st.lists(written_sentences(), max_size=4), data=st.data())
def test_blank_lines_and_places(sentences: list[Written], data: st.DataObject) -> None:
    """Any number of blank lines before and between, none needed at the end; a place is the first line's number."""
    lines: list[str] = []
    places = []
    for written in sentences:
        lines += [""] * data.draw(st.integers(1 if places else 0, 3))
        places.append(len(lines) + 1)
        lines += written.lines
    newline = data.draw(st.sampled_from(["\n", "\r\n"]))
    text = newline.join(lines) + data.draw(st.sampled_from(["", newline, 3 * newline]))
    found = read(text)
    assert [sentence.place.line for sentence in found] == places
    for sentence, written in zip(found, sentences, strict=True):
        check_columns(sentence, written)


def test_a_byte_order_mark_is_dropped() -> None:
    text = row(1) + "\n\n"
    assert write(read("\ufeff" + text)) == text.encode()
    assert write(read("\ufeff\n" + text)) == text.encode()
    assert read("\ufeff") == []
    with pytest.raises(TreebankError, match="line 3: the ID"):  # one at the start only
        read(text + "\ufeff" + text)


def test_comments_alone_are_a_sentence_of_no_words() -> None:
    text = b"# newdoc\n\n# text = a\n" + row(1).encode() + b"\n\n"
    found = read(text)
    assert [len(sentence) for sentence in found] == [0, 1]
    assert write(found) == text


def test_a_comment_may_have_tabs() -> None:
    text = f"#\t\ta\t\n{row(1)}\n\n"
    assert write(read(text)) == text.encode()


def test_line_ends_mixed_in_one_sentence_become_the_first() -> None:
    mixed = f"{row(1)}\r\n{row(2)}\n\r\n{row(1)}\n{row(2)}\r\n\n"
    assert write(read(mixed)).decode() == f"{row(1)}\r\n{row(2)}\r\n\r\n{row(1)}\n{row(2)}\n\n"


def test_only_line_feeds_end_lines() -> None:
    """Python would also split at these; they are characters like any other."""
    form = "a\x0b\x0c\x1c\x85\u2028\u2029b c\x00d\re"
    (sentence,) = read(row(1, form) + "\n")
    assert sentence.forms == (form,)
    assert write([sentence]).decode() == row(1, form) + "\n\n"


def test_text_is_not_normalised() -> None:
    (sentence,) = read(row(1, "e\u0301\u00e9") + "\n")
    assert sentence.forms == ("e\u0301\u00e9",)


HUGE = "9" * 1_000_000

# Lines of a sentence, the line that is wrong, what must be said about it.
MALFORMED = {
    "no tabs": (
        [row(1), "2 w _ _ _ _ 1 x _ _"],
        2,
        "has 1 column; expected 10 with tabs between them; if it is plain text, parse it first",
    ),
    "nine columns": (["# c", row(1)[:-2]], 2, "has 9 columns; expected 10"),
    "eleven columns": ([row(1) + "\t_"], 1, "has 11 columns; expected 10"),
    "only spaces": ([row(1), "  "], 2, "only spaces"),
    "comment after a word": ([row(1), "# c"], 2, "a comment stands after the first word"),
    "comment of ten columns": ([row(1), row("#")], 2, "a comment stands after the first word"),
    "starts at 0": ([row(0)], 1, "the ID is '0'; expected 1"),
    "starts at 2": ([row(2)], 1, "the ID is '2'; expected 1"),
    "gap": ([row(1), row(3)], 2, "the ID is '3'; expected 2"),
    "twice": ([row(1), row(1)], 2, "the ID is '1'; expected 2"),
    "leading zero": ([row("01")], 1, "the ID is '01'; expected 1"),
    "another script's digit": ([row("\u0661")], 1, "the ID is '\\u0661'; expected 1"),
    "negative": ([row("-1")], 1, "the ID is '-1'; expected 1"),
    "no id": ([row("")], 1, "the ID is ''; expected 1"),
    "a million digits": ([row(HUGE)], 1, "the ID is '999999999999999999999999999999'...; expected 1"),
    "a million digits in a range": ([row(f"1-{HUGE}"), row(1)], 1, "the ID is '1-9999999999999999999999999999'..."),
    "range backwards": ([row(1), row("2-1"), row(2)], 2, "the multiword token is 2-1"),
    "range too late": ([row(1), row("1-2"), row(2)], 2, "the multiword token is 1-2"),
    "range too early": ([row("2-3"), row(1), row(2), row(3)], 1, "the multiword token is 2-3"),
    "ranges overlap": ([row("1-2"), row(1), row("2-3"), row(2), row(3)], 3, "the multiword token is 2-3"),
    "range past the end": (["# c", row("1-3"), row(1), row(2)], 2, "ends with word 3 of 2"),
    "empty node of another word": ([row(1), row("2.1"), row(2)], 2, "the empty node is 2.1; expected 1.1"),
    "empty nodes out of order": ([row(1), row("1.2")], 2, "the empty node is 1.2; expected 1.1"),
    "empty node twice": ([row("0.1"), row("0.1"), row(1)], 2, "the empty node is 0.1; expected 0.2"),
    "empty form": ([row(1), row(2, "")], 2, "column 2 is empty"),
    "empty last column": (["# c\t\t", row(1)[:-1]], 2, "column 10 is empty"),
    "empty last column of a range": ([row("1-2")[:-1], row(1), row(2)], 1, "column 10 is empty"),
    "head is a word": ([row(1, head=0), row(2, head="x")], 2, "the HEAD of word 2 is 'x'; expected 0 (the root) to 2"),
    "head outside": ([row("1-2"), row(1, head=0), row(2, head=3)], 3, "the HEAD of word 2 is '3'"),
    "head negative": ([row(1, head=-1)], 1, "the HEAD of word 1 is '-1'"),
    "head with a sign": ([row(1, head="+0")], 1, "the HEAD of word 1 is '+0'"),
    "head with zeros": ([row(1, head="00")], 1, "the HEAD of word 1 is '00'"),
    "head with an underscore": ([*map(row, range(1, 11), "w" * 11, ["1_0"] + [0] * 9)], 1, "word 1 is '1_0'"),
    "head with a space": ([row(1, head=" 0")], 1, "the HEAD of word 1 is ' 0'"),
    "head past 64 bits": ([row(1, head="99999999999999999999")], 1, "is '99999999999999999999'; expected 0"),
    "head of a million digits": ([row(1, head=HUGE)], 1, "'...; expected 0"),
    "own head": (["# c", row(1, head=0), row(2, head=2)], 3, "word 2 is its own HEAD"),
    "some heads": ([row(1, head=0), row(2), row(3, head=1)], 2, "word 2 has no HEAD but others have"),
    "label without head": ([row(1), row(2, label="obj")], 2, "word 2 has a DEPREL but no HEAD"),
}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(name: str, newline: str) -> None:
    """One sentence with file, line, cause and remedy; the sentences around it are read with skip_bad."""
    lines, wrong, said = MALFORMED[name]
    good = [row(1, "good", 0, "root"), ""]
    text = newline.join([*good, *lines, "", *good])
    with pytest.raises(TreebankError) as caught:
        read(text)
    error = caught.value
    assert str(error).startswith(f"stream, line {wrong + 2}: ")
    assert said in str(error)
    assert ";" in str(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 200
    assert (error.source, error.line) == ("stream", wrong + 2)
    skipped: list[TreebankError] = []
    found = list(read_treebank(io.StringIO(text, newline=""), skip_bad=skipped.append))
    assert [sentence.forms for sentence in found] == [("good",), ("good",)]
    assert [sentence.place.line for sentence in found] == [1, len(lines) + 4]
    assert [str(problem) for problem in skipped] == [str(error)]


@pytest.mark.parametrize(
    ("lines", "wrong", "said"),
    [
        (["# c", row(1)], 1, "no comments"),
        ([row(1), row("1.1")], 2, "no ID '1.1'"),
        ([row("1-2"), row(1), row(2)], 1, "no ID '1-2'"),
    ],
)
def test_conllx_refuses_what_only_conllu_has(lines: list[str], wrong: int, said: str) -> None:
    with pytest.raises(TreebankError, match="format='conllu'") as caught:
        read("\n".join(lines), "conllx")
    assert caught.value.line == wrong
    assert said in str(caught.value)


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"])
def test_invalid_utf_8(bad: bytes) -> None:
    lines = [row(1).encode(), b"", row(1).encode(), row(2).encode().replace(b"w", b"w" + bad), b"", row(1).encode()]
    with pytest.raises(TreebankError, match=f"line 4: byte 0x{bad[0]:02x} is not valid UTF-8"):
        read(b"\n".join(lines))
    skipped: list[TreebankError] = []
    assert len(list(read_treebank(io.BytesIO(b"\n".join(lines)), skip_bad=skipped.append))) == 2
    assert len(skipped) == 1


@pytest.mark.parametrize("lines", [4, 5, 9])
def test_a_sentence_without_end(monkeypatch: pytest.MonkeyPatch, lines: int) -> None:
    monkeypatch.setattr(conll_reader, "LONGEST_SENTENCE", 4)
    text = "".join(row(i) + "\n" for i in range(1, lines + 1)) + "\n" + row(1) + "\n"
    skipped: list[TreebankError] = []
    found = list(read_treebank(io.StringIO(text), skip_bad=skipped.append))
    assert [len(sentence) for sentence in found] == ([4, 1] if lines == 4 else [1])
    assert found[-1].place.line == lines + 2
    assert [error.line for error in skipped] == ([] if lines == 4 else [1])
    assert all("blank line after every sentence" in str(error) for error in skipped)


def check_blocks(data: bytes, largest: int, mark: bytes = b"") -> None:
    """Compare with splitting in memory: first line, whether too large, and text of each block."""
    expected: list[tuple[int, bytes]] = []
    current: list[bytes] = []
    for number, line in enumerate([*data.splitlines(keepends=True), b"\n"], start=1):
        if line.strip():
            current.append(line)
        elif current:
            expected.append((number - len(current), b"".join(current)))
            current = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conll_reader, "LARGEST_SENTENCE", largest)
        found = list(conll_reader.blocks(io.BufferedReader(io.BytesIO(mark + data))))  # type: ignore[arg-type]
    assert [(block.line, block.text, block.too_large) for block in found] == [
        (line, b"", True) if len(text) > largest else (line, text, False) for line, text in expected
    ]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("length", range(1, 50))
def test_lines_that_come_in_parts(length: int, mark: bytes) -> None:
    """No part of a line may look like a blank line, or be counted twice, whatever the line's length."""
    line = b"a" * length + b"\n"
    check_blocks(line + b"b\n\nc\n", 10, mark)
    check_blocks(b"b\n" + line + b"b\r\n\r\n" + line + b"\nc", 10, mark)


@given(
    pieces=st.lists(st.sampled_from([b"\n", b"\r\n", b"a\n", b"aaaa\n", b"a" * 16, b"a" * 40 + b"\n"])),
    largest=st.integers(10, 20),
)
def test_blocks(pieces: list[bytes], largest: int) -> None:
    check_blocks(b"".join(pieces), largest)
