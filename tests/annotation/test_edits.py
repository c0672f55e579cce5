"""What every change does to a state, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway.annotation.edits import (
    Accept,
    Allow,
    Delete,
    Edit,
    Forbid,
    Insert,
    Join,
    SetColumn,
    SetDone,
    SetHead,
    SetLabel,
    SetNote,
    Split,
    Unpin,
    edit_of,
)
from headway.annotation.state import State, original_state
from headway.errors import EditError
from headway.treebank.annotations import comment

TEXT = """\
# text = Dogs bark now.
1\tDogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\t_
2\tbark\tbark\tVERB\t_\t_\t0\troot\t_\tSuggested=Yes
3\tnow\tnow\tADV\t_\t_\t_\t_\t_\tSpaceAfter=No
4\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_
"""


@pytest.fixture
def state() -> State:
    return original_state(TEXT)


def test_a_head_is_pinned_and_its_label_open_if_the_head_is_new(state):
    after = SetHead(3, 2).apply(state)
    assert after.sentence.heads.tolist() == [-1, 2, 0, 2, 2]
    assert after.sentence.labels[3] == "_"
    assert after.pins == {1, 3, 4}
    assert after.original is None
    assert SetHead(4, 1).apply(state).sentence.labels[4] == "_"
    assert SetHead(4, 2).apply(state).sentence.labels[4] == "punct"
    assert SetHead(4, 1, "dep").apply(state).sentence.labels[4] == "dep"


def test_a_label_pins_the_head_that_is_shown(state):
    after = SetLabel(2, "parataxis").apply(state)
    assert (after.sentence.heads[2], after.sentence.labels[2], 2 in after.pins) == (0, "parataxis", True)
    with pytest.raises(EditError, match=r"word 3 \(now\) has no head yet"):
        SetLabel(3, "advmod").apply(state)


def test_the_later_of_two_choices_counts(state):
    forbidden = Forbid(1, 2).apply(state)
    assert forbidden.forbidden == {(2, 1)}
    assert 1 not in forbidden.pins
    assert forbidden.sentence.heads[1] == -1
    again = SetHead(1, 2).apply(forbidden)
    assert again.forbidden == set()
    assert 1 in again.pins
    assert Allow(1, 2).apply(forbidden).forbidden == set()
    other = Forbid(1, 3).apply(state)
    assert 1 in other.pins
    assert other.sentence.heads[1] == 2


def test_done_is_all_pinned_until_a_word_is_not(state):
    whole = SetHead(3, 2, "advmod").apply(state)
    done = SetDone().apply(whole)
    assert done.done
    assert done.pins == {1, 2, 3, 4}
    assert SetLabel(3, "obl").apply(done).done
    for edit in (Unpin(3), Forbid(3, 2), Split(1, at=2), Insert(0, "x")):
        assert not edit.apply(done).done
    assert Join(3).apply(done).done
    undone = SetDone(False).apply(done)
    assert not undone.done
    assert undone.pins == done.pins
    with pytest.raises(EditError, match=r"word 3 \(now\) has no head"):
        SetDone().apply(state)


def test_a_cycle_is_not_done(state):
    cycle = SetHead(2, 1).apply(SetHead(3, 2).apply(state))
    with pytest.raises(EditError, match=r"the heads form a cycle, 1 \(Dogs\) -> 2 \(bark\) -> 1 \(Dogs\)"):
        SetDone().apply(cycle)


def test_accepting_pins_what_is_shown(state):
    assert Accept().apply(state).pins == {1, 2, 4}
    with pytest.raises(EditError, match="no head is shown"):
        Accept().apply(original_state("1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n"))


@pytest.mark.parametrize("column", ["form", "lemma", "upos", "xpos", "feats", "misc"])
def test_columns(state, column):
    after = SetColumn(3, column, "Abc=D").apply(state)
    fields = after.sentence.to_conllu().splitlines()[3].split("\t")
    place = {"form": 1, "lemma": 2, "upos": 3, "xpos": 4, "feats": 5, "misc": 9}[column]
    expected = TEXT.splitlines()[3].split("\t")
    expected[place] = "Abc=D"
    assert fields == expected
    assert SetColumn(3, column, "").apply(state).sentence.to_conllu().splitlines()[3].split("\t")[place] == "_"


def test_the_text_follows_a_form(state):
    assert comment(SetColumn(3, "form", "loudly").apply(state).sentence, "text") == "Dogs bark loudly."
    assert comment(SetColumn(2, "misc", "SpaceAfter=No").apply(state).sentence, "text") == "Dogs barknow."


def test_notes(state):
    noted = SetNote("check\nthis  again ").apply(state)
    assert noted.note == "check this again"
    assert noted.sentence.layout.comments == ("# text = Dogs bark now.", "# note = check this again")
    assert SetNote("other").apply(noted).sentence.layout.comments[-1] == "# note = other"
    assert SetNote("").apply(noted).sentence.layout.comments == ("# text = Dogs bark now.",)
    assert SetNote("").apply(state) is state


REFUSED = [
    (SetHead(5, 1), r"there is no word 5; the sentence has 4"),
    (SetHead(0, 1), r"there is no word 0"),
    (
        SetHead(1, 1),
        r"the head of word 1 \(Dogs\) cannot be 1; expected 0 \(the root\) to 4, other than the word itself",
    ),
    (SetHead(1, 5), r"cannot be 5"),
    (SetHead(1, -1), r"cannot be -1"),
    (SetHead(1, 2, "a b"), r"the label is 'a b'; expected a name without spaces"),
    (SetHead(1, 2, "_"), r"the label is '_'"),
    (SetLabel(1, ""), r"the label is ''"),
    (SetLabel(1, "a\tb"), r"the label is"),
    (Forbid(1, 1), r"1 cannot be the head of word 1 \(Dogs\) anyway"),
    (Forbid(1, 9), r"9 cannot be the head"),
    (SetColumn(1, "head", "2"), r"there is no column 'head'; there are form, lemma, upos, xpos, feats, misc"),
    (SetColumn(1, "form", "a\nb"), r"expected text without tabs, line ends"),
    (SetColumn(1, "form", "\ud800"), r"half a character"),
    (SetColumn(1, "form", "x" * 10_001), r"at most 10,000 are accepted"),
    (SetColumn(1, "misc", "A=1|Suggested=Yes"), r"Suggested in MISC is Headway's own mark"),
    (Split(1, at=0), r"cannot be split after 0 characters, as it has 4; give a number from 1 to 3"),
    (Split(1, at=4), r"cannot be split after 4 characters"),
    (Split(4, at=1), r"word 4 \(.\) has one character only"),
    (Split(1), r"say either after which character"),
    (Split(1, at=1, forms=("a", "b")), r"say either"),
    (Split(1, forms=("a",)), r"there are 1 forms"),
    (Split(1, forms=("a", " ")), r"the form is ' '"),
    (Join(4), r"word 4 \(.\) is the last"),
    (Insert(5, "a"), r"there is no word 5"),
    (Insert(-1, "a"), r"there is no word -1"),
    (Insert(1, ""), r"the form is ''"),
    (Delete(9), r"there is no word 9"),
    (SetNote("x" * 10_001), r"the note has 10,001 characters"),
]


@pytest.mark.parametrize(("edit", "cause"), REFUSED, ids=lambda value: str(value)[:30])
def test_refused(state, edit: Edit, cause: str):
    with pytest.raises(EditError, match=cause):
        edit.apply(state)


GOOD = [
    ({"action": "head", "word": 3, "head": 2}, SetHead(3, 2)),
    ({"action": "head", "word": 3, "head": 0, "label": "root"}, SetHead(3, 0, "root")),
    ({"action": "head", "word": 3, "head": 0, "label": None}, SetHead(3, 0)),
    ({"action": "label", "word": 3, "label": "obl"}, SetLabel(3, "obl")),
    ({"action": "unpin", "word": 3}, Unpin(3)),
    ({"action": "forbid", "word": 3, "head": 2}, Forbid(3, 2)),
    ({"action": "allow", "word": 3, "head": 2}, Allow(3, 2)),
    ({"action": "column", "word": 1, "column": "upos", "value": "X"}, SetColumn(1, "upos", "X")),
    ({"action": "split", "word": 1, "at": 2}, Split(1, at=2)),
    ({"action": "split", "word": 1, "forms": ["a", "b"]}, Split(1, forms=("a", "b"))),
    ({"action": "join", "word": 1}, Join(1)),
    ({"action": "insert", "after": 0, "form": "x"}, Insert(0, "x")),
    ({"action": "delete", "word": 1}, Delete(1)),
    ({"action": "note", "text": "x"}, SetNote("x")),
    ({"action": "done", "done": False}, SetDone(False)),
    ({"action": "accept"}, Accept()),
]


@pytest.mark.parametrize(("data", "edit"), GOOD, ids=lambda value: str(value)[:40])
def test_edits_from_json(data, edit):
    assert edit_of(data) == edit


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        ([], "an edit has an action, one of head, label"),
        ({"action": "fly"}, "an edit has an action"),
        ({"action": ["head"]}, "an edit has an action"),
        ({"action": "head", "word": 1}, "the action head needs 'head'"),
        ({"action": "head", "word": None, "head": 1}, "needs 'word'"),
        ({"action": "head", "word": True, "head": 1}, "'word' is 'True'; expected a whole number"),
        ({"action": "head", "word": "1", "head": 1}, "'word' is '1'; expected a whole number"),
        ({"action": "head", "word": 1.0, "head": 1}, "expected a whole number"),
        ({"action": "unpin", "word": 1, "head": 2}, "the action unpin has no 'head'; it has word"),
        ({"action": "accept", "word": 1}, "it has nothing"),
        ({"action": "done", "done": 1}, "expected true or false"),
        ({"action": "split", "word": 1, "forms": ["a", 2]}, "not a list of texts"),
        ({"action": "note", "text": 3}, "expected text"),
    ],
)
def test_what_is_no_edit(data, cause):
    with pytest.raises(EditError, match=cause):
        edit_of(data)


def test_nothing_else_changes(state):
    """An edit of one word leaves the rest of the state as it is."""
    state = replace(state, forbidden=frozenset({(4, 3)}))
    after = SetHead(3, 2, "advmod").apply(state)
    assert after.forbidden == state.forbidden
    assert after.pins - {3} == state.pins
    assert after.version == state.version
    assert [head for m, head in enumerate(after.sentence.heads) if m != 3] == [-1, 2, 0, 2]
