"""What a file says of its heads, and how a state is written to it."""

from __future__ import annotations

import pytest
from hypothesis import given

from headway.annotation.edits import SetDone, SetHead
from headway.annotation.pieces import Pieces, with_tail
from headway.annotation.state import State, original_state, require_write_choice
from headway.errors import ArgumentError, TreebankError
from tests.annotation.strategies import states

MIXED = """\
1\ta\t_\t_\t_\t_\t2\tx\t_\tGloss=a|Suggested=Yes
2\tb\t_\t_\t_\t_\t0\troot\t_\t_
3\tc\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No

"""


def test_suggested_heads_are_not_pinned():
    state = original_state(MIXED)
    assert state.pins == {2}
    assert state.sentence.heads.tolist() == [-1, 2, 0, -1]
    assert state.sentence.layout.misc == ("Gloss=a", "_", "SpaceAfter=No")
    assert not state.done
    assert state.file_text("all") == state.file_text("pinned") == MIXED


def test_what_is_written():
    state = SetHead(3, 2, "y").apply(original_state(MIXED))
    assert [line.split("\t")[6:] for line in state.file_text("all").splitlines()[:-1]] == [
        ["2", "x", "_", "Gloss=a|Suggested=Yes"],
        ["0", "root", "_", "_"],
        ["2", "y", "_", "SpaceAfter=No"],
    ]
    assert [line.split("\t")[6:] for line in state.file_text("pinned").splitlines()[:-1]] == [
        ["_", "_", "_", "Gloss=a"],
        ["0", "root", "_", "_"],
        ["2", "y", "_", "SpaceAfter=No"],
    ]
    done = SetDone().apply(state)
    assert "Suggested" not in done.file_text("all")
    assert done.file_text("all") == done.file_text("pinned")


def test_only_suggestions():
    state = original_state(MIXED.replace("\t0\troot\t_\t_", "\t0\troot\t_\tSuggested=Yes"))
    changed = State(state.sentence)
    assert changed.file_text("pinned").count("\t_\t_\t_\t") >= 3
    assert changed.file_text("all").count("Suggested=Yes") == 2


@given(states())
def test_a_record_is_the_state(state):
    read = State.from_record(state.to_record(), 7)
    assert read.same_as(state)
    assert read.version == 7


@given(states())
def test_the_file_alone_says_what_is_pinned(state):
    """Without a journal, pins and pinned heads are the same again, however they were written."""
    for write in ("all", "pinned"):
        read = original_state(state.file_text(write))
        assert read.pins == state.pins
        assert {m: int(read.sentence.heads[m]) for m in read.pins} == {
            m: int(state.sentence.heads[m]) for m in state.pins
        }
    assert original_state(state.file_text("all")).sentence.to_conllu() == state.sentence.to_conllu()


def test_an_untouched_sentence_is_done_if_all_is_pinned():
    assert original_state("1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n").done
    assert not original_state("1\ta\t_\t_\t_\t_\t0\troot\t_\tSuggested=Yes\n").done
    assert not original_state("1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n").done


def test_write_choices():
    assert require_write_choice("all") == "all"
    with pytest.raises(ArgumentError, match="write is 'some'; expected 'all' or 'pinned'"):
        require_write_choice("some")


PLAIN = b"1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n"


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"", 0),
        (b"\n\n", 0),
        (PLAIN, 1),
        (PLAIN[:-1], 1),
        (b"\xef\xbb\xbf" + PLAIN + b"\n" + PLAIN + b"\n\n\n", 2),
        (b"\n\n" + PLAIN + b"\n\n\n" + PLAIN, 2),
        ((PLAIN + b"\n" + PLAIN).replace(b"\n", b"\r\n"), 2),
        (PLAIN + b"\r\n\n" + PLAIN, 2),
    ],
)
def test_pieces_are_the_file(data, count):
    pieces = Pieces.of(data)
    assert pieces.head + b"".join(pieces.texts) == data
    assert len(pieces) == len(list(pieces.states("a"))) == count


def test_the_line_of_a_damaged_sentence():
    data = b"\n" + PLAIN + b"\n\n" + PLAIN + b"3\tb\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
    with pytest.raises(TreebankError, match=r"^a.conllu, line 6: the ID is '3'; expected 2"):
        list(Pieces.of(data).states("a.conllu"))
    with pytest.raises(TreebankError, match=r"line 2: byte 0xff is not valid UTF-8"):
        list(Pieces.of(PLAIN + b"2\t\xff\n").states("a"))


def test_a_sentence_without_end(monkeypatch):
    monkeypatch.setattr("headway.annotation.pieces.LONGEST_SENTENCE", 3)
    lines = b"".join(PLAIN.replace(b"1", str(m).encode(), 1) for m in range(1, 5))
    with pytest.raises(TreebankError, match=r"a, line 3: the sentence has more than .* put a blank line after every"):
        list(Pieces.of(PLAIN + b"\n" + lines).states("a"))


def test_blank_lines_after_a_changed_sentence_stay():
    assert with_tail("x\n\n", PLAIN) == b"x\n\n"
    assert with_tail("x\n\n", PLAIN + b"\n") == b"x\n\n"
    assert with_tail("x\r\n\r\n", PLAIN + b"\r\n\r\n\r\n") == b"x\r\n\r\n\r\n\r\n"
