"""Inputs: what they hold, told by their names or first lines; nothing is lost, and nothing waited for."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headway.errors import TreebankError
from headway.treebank import Sentence, inputs
from headway.treebank.annotations import offsets_of
from headway.treebank.inputs import Input, InputFormat, open_input
from headway.treebank.raw_text import Newlines, Token, sentence_from_tokens

WORD = "1\tun\t_\t_\t_\t_\t_\t_\t_\t_\n"


class AtSpaces:
    """A splitter: full stops end sentences, spaces end words."""

    def sentences(self, text: str, offset: int, *, newlines: Newlines) -> list[Sentence]:
        self.newlines = newlines
        found, start = [], 0
        for end in [i + 1 for i, character in enumerate(text) if character == "."] or [len(text)]:
            found.append(self.sentence(text[start:end], offset + start))
            start = end
        return found

    def sentence(self, text: str, offset: int) -> Sentence:
        words = text.split()
        starts = [text.index(word) for word in words]
        offsets = tuple((offset + at, offset + at + len(word)) for at, word in zip(starts, words, strict=True))
        return sentence_from_tokens([Token(word, (word,), True) for word in words], offsets)


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("Dogs bark.\n", "text"),
        ("\ufeffDogs\n", "text"),
        ("# a heading\n\nDogs bark.\n", "text"),
        ("#dogs bark", "text"),
        ("a\tb\n", "text"),
        ("", "text"),
        (WORD, "conllu"),
        ("\ufeff" + WORD, "conllu"),
        (WORD.strip(), "conllu"),
        (f"\r\n# text = un\r\n# x\n{WORD}", "conllu"),
        (f"\ufeff# text = un\n{WORD}", "conllu"),
        (f"Dogs bark.\n{WORD}", "text"),
        ("x" * (inputs._PEEKED + 5), "text"),
        ("\t" * 9 + "x" * inputs._PEEKED, "text"),
        ("# x" * inputs._PEEKED, "text"),
        ("# x\n" * (inputs._PEEKED // 4) + WORD, "text"),
        ("# x\n" * (inputs._PEEKED // 4 - 100) + WORD, "conllu"),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_the_first_line_tells_what_it_is_and_nothing_is_lost(
    text: str, format: str, pack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = text.encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(pack(data))))
    with open_input("-") as found:
        assert found.format == format
        assert found.source.name == "standard input"
        assert found.source.read() == data


def slow(*pieces: str) -> Any:
    """A stream that gives one piece at a time, and must not be asked for more."""

    class Slow:
        rest = [piece.encode() for piece in pieces]  # noqa: RUF012  (used once)

        def read1(self, size: int) -> bytes:
            assert self.rest, "waits for more"
            piece, more = self.rest[0][:size], self.rest[0][size:]
            self.rest[:1] = [more] if more else []
            return piece

        read = read1

    return Slow()


@pytest.mark.parametrize("line", ["Dogs bark.\n", WORD, "Go\n"])
def test_no_more_than_the_first_line_is_waited_for(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=slow(line[:8], line[8:]) if line[8:] else slow(line)))
    with open_input("-") as found:
        assert found.format == ("conllu" if line == WORD else "text")
        assert found.source.readline() == line.encode()


def test_what_is_known_is_not_looked_at() -> None:
    for format in ("text", "lines", "tokens", "conllu", "conllx"):
        with open_input(slow("Dogs"), format) as found:  # the four bytes that cannot be gzip or xz
            assert found.format == format
            assert found.source.read1(10) == b"Dogs"


@pytest.mark.parametrize(
    ("name", "format"), [("a.conllu", "conllu"), ("a.conll.gz", "conllx"), ("a.txt", "conllx"), ("a", "conllx")]
)
def test_the_name_goes_before_the_content(tmp_path: Path, name: str, format: str) -> None:
    (tmp_path / name).write_text(WORD)
    with open_input(tmp_path / name, treebank="conllx") as found:
        assert found.format == format
        ((sentence,),) = found.portions(None)
    assert (sentence.layout.format, str(sentence.place)) == (format, f"{tmp_path / name}, line 1")
    with open_input(tmp_path / name, "tokens") as found:
        assert found.format == "tokens"


def test_a_treebank_comes_with_its_trees_if_these_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text("1\ta\t_\t_\t_\t_\t2\tx\t_\t_\n2\tb\t_\t_\t_\t_\t_\t_\t_\t_\n\n")
    for trees in (False, True):
        with open_input(path) as found:
            ((sentence,),) = found.portions(None, trees=trees)
        assert (None if sentence.heads is None else sentence.heads.tolist()) == ([-1, 2, -1] if trees else None)


@pytest.mark.parametrize("format", [None, "text", "conllu"])
def test_input_that_breaks_off(tmp_path: Path, format: InputFormat | None) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"Dogs bark. " * 20)[:15])

    def read() -> None:
        with open_input(path, format) as found:
            for portion in found.portions(AtSpaces()):
                list(portion)

    with pytest.raises(TreebankError, match="line 1: the data break off") as caught:
        read()
    assert caught.value.source == str(path)
    with pytest.raises(TreebankError, match="cannot be opened"), open_input(tmp_path / "none"):
        pass


TEXT = "Dogs bark. Cats sleep.\n\n\nBirds sing.\n"
FORMS = [("Dogs", "bark."), ("Cats", "sleep."), ("Birds", "sing.")]


def test_what_a_line_end_is_goes_to_the_splitter() -> None:
    for newlines in ("auto", "keep", "ignore"):
        splitter = AtSpaces()
        with open_input(io.BytesIO(TEXT.encode()), "text") as found:
            for portion in found.portions(splitter, newlines=newlines):
                list(portion)
        assert splitter.newlines == newlines


def read(text: str, format: InputFormat, *, typed: bool = False) -> list[list[Sentence]]:
    with open_input(io.BytesIO(text.encode()), format) as found:
        return [list(portion) for portion in found.portions(AtSpaces(), typed=typed)]


@pytest.mark.parametrize(("typed", "sizes"), [(False, [3]), (True, [2, 1])])
def test_sentences_of_a_text_are_numbered(typed: bool, sizes: list[int]) -> None:
    portions = read(TEXT, "text", typed=typed)
    assert list(map(len, portions)) == sizes
    found = [sentence for portion in portions for sentence in portion]
    assert [sentence.forms for sentence in found] == FORMS
    assert [sentence.layout.comments for sentence in found] == [
        ("# newpar", "# sent_id = 1", "# text = Dogs bark."),
        ("# sent_id = 2", "# text = Cats sleep."),
        ("# newpar", "# sent_id = 3", "# text = Birds sing."),
    ]
    for sentence in found:
        assert tuple(TEXT[start:end] for start, end in offsets_of(sentence) or ()) == sentence.forms


@pytest.mark.parametrize("format", ["lines", "tokens"])
@pytest.mark.parametrize(("typed", "sizes"), [(False, [2]), (True, [1, 1])])
def test_lines_are_sentences(format: InputFormat, typed: bool, sizes: list[int]) -> None:
    portions = read("Dogs bark. Cats\n\nBirds sing.", format, typed=typed)
    assert list(map(len, portions)) == sizes
    found = [sentence for portion in portions for sentence in portion]
    assert [sentence.forms for sentence in found] == [("Dogs", "bark.", "Cats"), ("Birds", "sing.")]
    assert [sentence.layout.comments[0] for sentence in found] == ["# sent_id = 1", "# sent_id = 2"]


def test_a_paragraph_is_there_as_soon_as_it_is_typed() -> None:
    with open_input(slow("Dogs bark.\n", "\n", "Cats sleep.\n", "\n"), "text") as found:
        portions = found.portions(AtSpaces(), typed=True)
        for number, forms in enumerate([("Dogs", "bark."), ("Cats", "sleep.")], start=1):
            (sentence,) = next(portions)
            assert (sentence.forms, sentence.layout.comments[1]) == (forms, f"# sent_id = {number}")


def test_typed_text_that_is_not_utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"Dogs\nna\xefve\n")))
    with (
        open_input("-", "text") as found,
        pytest.raises(TreebankError, match="standard input, line 2: the line is not valid UTF-8"),
    ):
        list(found.portions(AtSpaces(), typed=True))


@pytest.mark.parametrize("format", ["text", "lines"])
def test_text_needs_a_splitter(format: InputFormat) -> None:
    with open_input(io.BytesIO(b"Dogs"), format) as found:
        assert isinstance(found, Input)
        with pytest.raises(ValueError, match=f"an input of {format} has to be split into words; give a splitter"):
            [list(portion) for portion in found.portions(None)]


def test_heads_that_will_be_overwritten_may_be_missing() -> None:
    rows = ["1\ta\t_\t_\t_\t_\t2\tdet\t_\t_", "2\tdog\t_\t_\t_\t_\t_\t_\t_\t_", "3\tbarks\t_\t_\t_\t_\t_\troot\t_\t_"]
    with open_input(io.BytesIO("\n".join([*rows, "", ""]).encode()), "conllu") as found:
        ((sentence,),) = found.portions(None)
    assert sentence.forms == ("a", "dog", "barks")
    assert sentence.heads is sentence.labels is None
    with (
        open_input(io.BytesIO(rows[0].replace("\t2\t", "\t7\t").encode()), "conllu") as found,
        pytest.raises(TreebankError, match="the HEAD of word 1 is '7'"),
    ):
        list(next(iter(found.portions(None))))
