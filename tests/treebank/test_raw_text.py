"""Raw text behind treebanks, and text files read piece by piece."""

from __future__ import annotations

import gzip
import io
import lzma
import tracemalloc
from dataclasses import replace
from itertools import accumulate, chain, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import TreebankError
from headway.treebank import Sentence, raw_text, read_treebank
from headway.treebank.annotations import Joints, offsets_of, with_first_comments
from headway.treebank.raw_text import (
    LONGEST_LINE,
    LONGEST_PARAGRAPH,
    NOTHING,
    SENTENCE,
    TOKEN,
    WORD,
    Token,
    ends_of,
    one_sentence_per_line,
    paragraphs,
    pieces_of,
    pretokenised,
    sentence_from_tokens,
    split_paragraphs,
    tokens_of,
)

TINY = Path(__file__).parents[2] / "examples" / "tiny.conllu"

CONTRACTED = """\
# newpar
# text = He can't. Não do (no)
1\tHe\t_\t_\t_\t_\t_\t_\t_\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\tca\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
3\tn't\t_\t_\t_\t_\t_\t_\t_\t_
3.1\tghost\t_\t_\t_\t_\t_\t_\t_\t_
4\t.\t_\t_\t_\t_\t_\t_\t_\t_

# newpar id = 2
1-2\tdo\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\t_\t_\t_\t_\t_\t_\t_\t_
2\to\t_\t_\t_\t_\t_\t_\t_\t_
3-4\ttrata-se\t_\t_\t_\t_\t_\t_\t_\tX=y|SpaceAfter=No
3\ttrata\t_\t_\t_\t_\t_\t_\t_\t_
4\tse\t_\t_\t_\t_\t_\t_\t_\t_

# newpar_block = this is not one
1\tOk\t_\t_\t_\t_\t_\t_\t_\t_

# newdoc
1\tEnd\t_\t_\t_\t_\t_\t_\t_\t_

"""


def pieces(text: str, ends: list[int], least: int) -> list[str]:
    """The text cut after every character that has a mark of at least so much."""
    found, start = [], 0
    for i, mark in enumerate(ends):
        if mark >= least:
            found.append(text[start : i + 1].strip())
            start = i + 1
    assert not text[start:].strip()
    return found


def test_raw_text_of_multiword_tokens_and_paragraphs() -> None:
    result = raw_text.raw_text(read_treebank(io.StringIO(CONTRACTED)))
    assert result.text == "He can't.\n\ndo trata-seOk\n\nEnd"
    ends = result.ends.tolist()
    assert pieces(result.text, ends, SENTENCE) == ["He can't.", "do trata-se", "Ok", "End"]
    assert pieces(result.text, ends, TOKEN) == ["He", "can't", ".", "do", "trata-se", "Ok", "End"]
    assert pieces(result.text, ends, WORD) == ["He", "ca", "n't", ".", "do", "trata", "-se", "Ok", "End"]
    assert set(ends) == {NOTHING, WORD, TOKEN, SENTENCE}


def test_raw_text_of_a_treebank_is_what_its_comments_say() -> None:
    sentences = list(read_treebank(TINY))
    said = [line.removeprefix("# text = ") for s in sentences for line in s.layout.comments if "# text" in line]
    result = raw_text.raw_text(sentences)
    assert result.text == " ".join(said)
    assert pieces(result.text, result.ends.tolist(), SENTENCE) == said
    assert pieces(result.text, result.ends.tolist(), TOKEN) == [form for s in sentences for form in s.forms]


def test_raw_text_of_nothing() -> None:
    assert raw_text.raw_text([]).text == ""
    assert raw_text.raw_text([Sentence.from_words([])]).ends.tolist() == []


words = st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1, max_size=4)


@given(st.lists(st.lists(st.tuples(words, st.booleans()), min_size=1, max_size=5), max_size=4))
def test_raw_text_round_trip(drawn: list[list[tuple[str, bool]]]) -> None:
    sentences = []
    for tokens in drawn:
        sentence = Sentence.from_words(form for form, _ in tokens)
        misc = tuple("_" if space else "SpaceAfter=No" for _, space in tokens)
        sentences.append(replace(sentence, layout=replace(sentence.layout, misc=misc)))
    result = raw_text.raw_text(sentences)
    ends = result.ends.tolist()
    assert pieces(result.text, ends, TOKEN) == [form for tokens in drawn for form, _ in tokens]
    assert ends.count(SENTENCE) == len(drawn)
    assert result.text.count(" ") == sum(space for tokens in drawn for _, space in tokens) - bool(
        drawn and drawn[-1][-1][1]
    )


def test_guessed_spaces() -> None:
    sentence = Sentence.from_words(["Dogs", "(", "big", ")", "bark", "."])
    assert raw_text.raw_text([sentence, sentence], guess_spaces=True).text == "Dogs (big) bark. Dogs (big) bark."


@pytest.mark.parametrize(
    ("form", "parts", "cuts"),
    [
        ("don't", ("do", "n't"), (2,)),
        ("tu-se-o", ("tu", "-se", "o"), (2, 5)),
        ("do", ("de", "o"), None),
        ("do", ("d",), None),
        ("a-", ("a", "b"), None),
        ("dog", ("dog",), ()),
    ],
)
def test_cuts(form: str, parts: tuple[str, ...], cuts: tuple[int, ...] | None) -> None:
    assert Token(form, parts, True).cuts() == cuts


def test_tokens_say_whether_a_space_follows() -> None:
    first = next(iter(read_treebank(io.StringIO(CONTRACTED))))
    assert list(tokens_of(first)) == [
        ("He", ("He",), True),
        ("can't", ("ca", "n't"), False),
        (".", (".",), True),
    ]


DRAWN = st.lists(st.tuples(st.lists(st.text("ab-é", min_size=1), min_size=1, max_size=3), st.booleans()), min_size=1)


@given(DRAWN)
def test_a_sentence_has_the_tokens_it_is_made_from(drawn: list[tuple[list[str], bool]]) -> None:
    tokens = [Token("".join(words), tuple(words), space) for words, space in drawn]
    count = sum(len(words) for words, _ in drawn)
    offsets = tuple((i, i + 1) for i in range(count))
    made = sentence_from_tokens(tokens, offsets)
    (read,) = read_treebank(io.StringIO(made.to_conllu()))
    for sentence in (made, read):
        assert list(tokens_of(sentence)) == tokens
        assert offsets_of(sentence) == offsets
        assert raw_text.raw_text([sentence]).text == sentence.layout.comments[0].removeprefix("# text = ").rstrip(" ")
    assert (made.layout.offsets, read.layout.offsets) == (offsets, None)
    assert read.to_conllu() == made.to_conllu()


@given(DRAWN, st.data())
def test_pieces_of_a_draft_are_its_tokens(drawn: list[tuple[list[str], bool]], data: st.DataObject) -> None:
    tokens = [Token("".join(words), tuple(words), space) for words, space in drawn]
    edges = list(accumulate(len(token.words) for token in tokens))
    count = edges[-1]
    made = sentence_from_tokens(tokens, tuple((i, i + 1) for i in range(count)))
    layout = replace(made.layout, joints=Joints((9,) * count, (1,) * count))
    tags = tuple(f"T{i}" for i in range(count))
    draft = with_first_comments(replace(made, upos=tags, layout=layout), "# newpar")
    chosen = sorted(data.draw(st.sets(st.sampled_from(range(len(tokens) - 1))) if count > edges[0] else st.just(set())))
    pieces = pieces_of(draft, [edges[i] for i in chosen])
    assert [token for piece in pieces for token in tokens_of(piece)] == tokens
    assert tuple(chain(*(piece.forms for piece in pieces))) == draft.forms
    assert tuple(chain(*(piece.upos for piece in pieces))) == tags
    assert tuple(chain(*(offsets_of(piece) or () for piece in pieces))) == offsets_of(draft)
    firsts = [0, *(i + 1 for i in chosen)]
    own = [tokens[start:stop] for start, stop in pairwise([*firsts, len(tokens)])]
    assert [list(tokens_of(piece)) for piece in pieces] == own
    texts = [sentence_from_tokens(some, None).layout.comments for some in own]
    assert [piece.layout.comments for piece in pieces] == [("# newpar", *texts[0]), *texts[1:]]
    assert all(piece.layout.joints is None for piece in pieces)
    assert all("joints" not in piece.to_conllu() for piece in pieces)


def test_ends_of_a_draft_are_where_its_splitter_thinks() -> None:
    made = sentence_from_tokens([(form, (form,), True) for form in "abcd"], None)
    assert ends_of(made) == []
    draft = replace(made, layout=replace(made.layout, joints=Joints((1, 0, 30, 99), (1, 1, 1, 1))))
    assert ends_of(draft) == [1, 3]


TEXT = "First one.\r\nStill it.\r\n \t\r\n\r\nSecond\rone.\r\rThird.\n\n\n  Fourth é.  \n\u2029Fifth\n"
PARAGRAPHS = ["First one.\r\nStill it.", "Second\rone.", "Third.", "Fourth é.", "Fifth"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, b"\xef\xbb\xbf".__add__])
def test_paragraphs_of_files(tmp_path: Path, pack: object) -> None:
    path = tmp_path / "text"
    path.write_bytes(pack(TEXT.encode()))  # type: ignore[operator]
    found = list(paragraphs(path))
    assert [text for _, text in found] == PARAGRAPHS
    assert all(TEXT[offset:].startswith(text) for offset, text in found)


@given(st.text(st.sampled_from("ab.\n\r \t\u2029é"), max_size=40), st.integers(1, 5))
def test_paragraphs_do_not_depend_on_the_pieces(text: str, size: int) -> None:
    whole = list(split_paragraphs([text]))
    assert whole == list(split_paragraphs(text[i : i + size] for i in range(0, len(text), size)))
    assert "".join("".join(part.split()) for _, part in whole) == "".join(text.split())
    assert all(text[offset : offset + len(part)] == part for offset, part in whole)


class Endless(io.RawIOBase):
    """So many bytes of words without a blank line."""

    def __init__(self, unit: bytes, count: int) -> None:
        self.unit, self.left = unit, count

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        piece = (self.unit * (size // len(self.unit) + 1))[: min(size // 12 * 12 or size, self.left)]  # whole words
        self.left -= len(piece)
        return piece


@pytest.mark.parametrize("unit", [b"word. ", b"x", b" ", b"\n"])
def test_a_long_file_without_blank_lines_is_read_in_flat_memory(unit: bytes) -> None:
    size = 3_000_000
    tracemalloc.start()
    longest = total = 0
    for _, text in paragraphs(Endless(unit, size)):  # type: ignore[arg-type]
        longest = max(longest, len(text))
        total += len(text) - text.count(" ")
        if unit == b"word. ":
            assert text.startswith("word.")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert longest <= LONGEST_PARAGRAPH
    assert peak < 4_000_000
    assert total == {b"word. ": size - size // 6, b"x": size}.get(unit, 0)


@pytest.mark.parametrize("read", [paragraphs, one_sentence_per_line, pretokenised])
def test_what_is_not_utf8_is_an_error_with_its_place(tmp_path: Path, read: object) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes("one\ntwo\nthr\u00e9e".encode("latin-1"))
    with pytest.raises(TreebankError, match=r"latin.txt, line 3: 0xe9 at byte 12 is not valid UTF-8; save") as caught:
        list(read(path))  # type: ignore[operator]
    assert caught.value.line == 3


def test_a_character_cut_off_at_the_end_is_an_error() -> None:
    with pytest.raises(TreebankError, match="0xc3 at byte 3"):
        list(paragraphs(io.BytesIO("ab\u00e9".encode()[:-1])))


def test_a_damaged_archive_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"some words\n" * 1000)[:-20])
    with pytest.raises(TreebankError, match="break off"):
        list(paragraphs(path))


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TreebankError, match="cannot be opened"):
        list(paragraphs(tmp_path / "none.txt"))


def test_one_sentence_per_line() -> None:
    text = "One here.\r\n\r\n  Two.\rThree\u2028still\n"
    found = list(one_sentence_per_line(io.BytesIO(text.encode())))
    assert found == [(0, "One here."), (15, "Two."), (20, "Three\u2028still")]
    assert all(text[offset:].startswith(line) for offset, line in found)


def test_pretokenised() -> None:
    text = "Dogs  bark\t.\r\n\nThirty 34\u00a0470 \n"
    one, two = pretokenised(io.BytesIO(text.encode()))
    assert one.forms == ("Dogs", "bark", ".")
    assert two.forms == ("Thirty", "34\u00a0470")
    assert [text[start:end] for s in (one, two) for start, end in offsets_of(s) or ()] == [*one.forms, *two.forms]
    assert str(two.place) == "stream, line 3"
    assert one.layout.comments == ("# text = Dogs bark .",)
    assert one.layout.misc == ("_", "_", "_")
    assert [line.rpartition("\t")[2] for line in one.to_conllu().split("\n")[1:4]] == [
        "TokenRange=0:4",
        "TokenRange=6:10",
        "TokenRange=11:12",
    ]


def test_a_line_that_is_too_long_is_an_error() -> None:
    with pytest.raises(TreebankError, match="line 2: the line has more than"):
        list(one_sentence_per_line(io.BytesIO(b"short\n" + b"x" * (LONGEST_LINE + 100_000))))
