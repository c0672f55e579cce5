"""Words split, joined, inserted and deleted: everything that goes by a number follows its word.

Words and empty nodes are recognised by their lemmas, so the tests know what belongs together without any arithmetic.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headway.annotation.renumbering import delete_word, insert_word, join_words, split_word
from headway.annotation.state import State, sentence_of, shown_heads, shown_labels
from headway.errors import EditError
from headway.treebank.annotations import comment, misc_entry, multiword_tokens
from headway.treebank.raw_text import raw_text
from headway.treebank.trees import is_tree
from tests.annotation.strategies import states


def names(state: State) -> list[str]:
    return ["root", *state.sentence.lemmas]


def heads_by_name(state: State) -> dict[str, tuple[str | None, str | None]]:
    """Of every word: its head's name, None if unknown, and its label."""
    own = names(state)
    heads, labels = shown_heads(state.sentence), shown_labels(state.sentence)
    return {own[m]: (own[heads[m]] if heads[m] >= 0 else None, labels[m]) for m in range(1, len(own))}


def node_names(state: State) -> dict[str, str]:
    """By ID, the words and the empty nodes."""
    found = {str(m): name for m, name in enumerate(names(state))}
    for _, line in state.sentence.layout.extra_lines:
        number, _, lemma, *_ = line.split("\t")
        if "." in number:
            found[number] = lemma
    return found


def deps_by_name(state: State) -> dict[str, set[tuple[str, str]]]:
    """Of every word and empty node: its enhanced dependencies."""
    by_id = node_names(state)
    columns = {str(m): column for m, column in enumerate(state.sentence.layout.deps, start=1)}
    for _, line in state.sentence.layout.extra_lines:
        number, *_, deps, _ = line.split("\t")
        if "." in number:
            columns[number] = deps
    split = {
        number: [entry.partition(":") for entry in column.split("|") if entry != "_"]
        for number, column in columns.items()
    }
    return {by_id[number]: {(by_id[head], label) for head, _, label in entries} for number, entries in split.items()}


def tokens_by_name(state: State) -> list[tuple[str, list[str]]]:
    return [(token.form, names(state)[token.first : token.last + 1]) for token in multiword_tokens(state.sentence)]


def order_of_nodes(state: State) -> list[str]:
    """Words and empty nodes as they stand in the file."""
    by_id, found = node_names(state), []
    for line in state.sentence.to_conllu().splitlines():
        number = line.partition("\t")[0]
        if line and not line.startswith("#") and "-" not in number:
            found.append(by_id[number])
    return found


def pins_by_name(state: State) -> set[str]:
    return {names(state)[m] for m in state.pins}


def forbidden_by_name(state: State) -> set[tuple[str, str]]:
    return {(names(state)[h], names(state)[m]) for h, m in state.forbidden}


def check(state: State) -> None:
    """What holds of every state: its text can be read back, and what is pinned has a head."""
    read = sentence_of(state.sentence.to_conllu())
    assert read.to_conllu() == state.sentence.to_conllu()
    heads = shown_heads(state.sentence)
    assert all(heads[m] >= 0 for m in state.pins)
    assert all(0 <= h <= len(state.sentence) and 1 <= m <= len(state.sentence) and h != m for h, m in state.forbidden)
    assert is_tree([-1, *(max(head, 0) for head in heads[1:])])
    assert not state.done or len(state.pins) == len(state.sentence)


def without(known: dict[str, tuple[str | None, str | None]], gone: str) -> dict[str, tuple[str | None, str | None]]:
    """Heads after a word has gone."""
    return {m: (None, "_") if head == gone else (head, label) for m, (head, label) in known.items() if m != gone}


@given(states(), st.data())
def test_a_split_and_a_join_give_the_same_sentence(state, data):
    word = data.draw(st.integers(1, len(state.sentence)))
    form = state.sentence.forms[word - 1]
    assume(len(form) > 1)
    at = data.draw(st.integers(1, len(form) - 1))
    split = split_word(state, word, (form[:at], form[at:]))
    check(split)
    joined = join_words(split, word)
    assert joined.sentence.to_conllu() == state.sentence.to_conllu()
    assert (joined.pins, joined.forbidden) == (state.pins, state.forbidden)


@given(states(), st.data())
def test_splitting_brings_everything_along(state, data):
    word = data.draw(st.integers(1, len(state.sentence)))
    form = state.sentence.forms[word - 1]
    assume(len(form) > 1)
    split = split_word(state, word, (form[:1], form[1:]))
    check(split)
    assert heads_by_name(split) == {**heads_by_name(state), "_": (None, "_")}
    assert deps_by_name(split) == {**deps_by_name(state), "_": set()}
    assert pins_by_name(split) == pins_by_name(state)
    assert forbidden_by_name(split) == forbidden_by_name(state)
    assert raw_text([split.sentence]).text == raw_text([state.sentence]).text
    assert comment(split.sentence, "text") == comment(state.sentence, "text")
    place = names(state)[word]
    assert [name for name in order_of_nodes(split) if name != "_"] == order_of_nodes(state)
    assert order_of_nodes(split)[order_of_nodes(split).index(place) + 1] == "_"
    assert [(form, [m for m in own if m != "_"]) for form, own in tokens_by_name(split)] == tokens_by_name(state)
    inside = any(place in own for _, own in tokens_by_name(state))
    assert any("_" in own for _, own in tokens_by_name(split)) == inside


@given(states(min_size=2), st.data())
def test_deleting_brings_everything_along(state, data):
    word = data.draw(st.integers(1, len(state.sentence)))
    gone = names(state)[word]
    left = delete_word(state, word)
    check(left)
    assert heads_by_name(left) == without(heads_by_name(state), gone)
    assert deps_by_name(left) == {
        m: {arc for arc in arcs if arc[0] != gone} for m, arcs in deps_by_name(state).items() if m != gone
    }
    known = heads_by_name(state)
    assert pins_by_name(left) == {m for m in pins_by_name(state) if m != gone and known[m][0] != gone}
    assert forbidden_by_name(left) == {arc for arc in forbidden_by_name(state) if gone not in arc}
    assert order_of_nodes(left) == [name for name in order_of_nodes(state) if name != gone]
    before = [(form, [m for m in own if m != gone]) for form, own in tokens_by_name(state)]
    assert tokens_by_name(left) == [(form, own) for form, own in before if len(own) > 1]
    for form, own in before:
        if len(own) == 1:  # the token is a word now
            assert left.sentence.forms[names(left).index(own[0]) - 1] == form


@given(states(), st.data())
def test_inserting_brings_everything_along(state, data):
    after = data.draw(st.integers(0, len(state.sentence)))
    more = insert_word(state, after, "new")
    check(more)
    assert more.sentence.forms[after] == "new"
    assert heads_by_name(more) == {**heads_by_name(state), "_": (None, "_")}
    assert deps_by_name(more) == {**deps_by_name(state), "_": set()}
    assert pins_by_name(more) == pins_by_name(state)
    assert forbidden_by_name(more) == forbidden_by_name(state)
    assert [name for name in order_of_nodes(more) if name != "_"] == order_of_nodes(state)
    if comment(state.sentence, "text") is not None:
        assert comment(more.sentence, "text") == raw_text([more.sentence]).text
    assert [(form, [m for m in own if m != "_"]) for form, own in tokens_by_name(more)] == tokens_by_name(state)
    assert delete_word(more, after + 1).sentence.to_conllu() == state.sentence.to_conllu()


@given(states(min_size=2), st.data())
def test_joining_brings_everything_along(state, data):
    word = data.draw(st.integers(1, len(state.sentence) - 1))
    first, second = names(state)[word : word + 2]
    if any((first in own) != (second in own) for _, own in tokens_by_name(state)):
        with pytest.raises(EditError, match="multiword token"):
            join_words(state, word)
        return
    joined = join_words(state, word)
    check(joined)
    one = names(joined)[word]
    assert one in (first, second)
    other = second if one == first else first

    def renamed(name):
        return one if name == other else name

    known = heads_by_name(state)
    assert {m: own for m, own in heads_by_name(joined).items() if m != one} == {
        m: (renamed(head), label) for m, (head, label) in known.items() if m not in (first, second)
    }
    assert heads_by_name(joined)[one] == known[one]  # and not the other word, which is in it
    assert (one in pins_by_name(joined)) == (one in pins_by_name(state))
    assert {m for m in pins_by_name(joined) if m != one} == pins_by_name(state) - {first, second}
    renamed_arcs = {(renamed(h), renamed(m)) for h, m in forbidden_by_name(state)}
    assert forbidden_by_name(joined) == {(h, m) for h, m in renamed_arcs if h != m}
    deps = deps_by_name(state)
    united = {(renamed(h), label) for h, label in deps[first] | deps[second] if renamed(h) != one}
    assert deps_by_name(joined)[one] == united
    assert [name for name in order_of_nodes(joined) if name != one] == [
        name for name in order_of_nodes(state) if name not in (first, second)
    ]
    if (
        is_tree([-1, *(max(head, 0) for head in shown_heads(state.sentence)[1:])])
        and min(shown_heads(state.sentence)[1:]) >= 0
    ):
        assert min(shown_heads(joined.sentence)[1:]) >= 0


def state_of(*lines: str) -> State:
    return State(sentence_of("\n".join(line.replace(" ", "\t") for line in lines) + "\n"))


def test_the_word_nearer_to_the_root_is_kept():
    state = state_of("1 a A _ _ _ 3 x _ _", "2 b B _ _ _ 0 root _ _", "3 c C _ _ _ 2 y _ _")
    joined = join_words(state, 1)
    assert joined.sentence.forms == ("ab", "c")
    assert joined.sentence.lemmas == ("B", "C")
    assert joined.sentence.heads.tolist() == [-1, 0, 1]
    assert joined.sentence.labels == (None, "root", "y")


def test_of_two_sisters_the_pinned_one_is_kept():
    lines = "1 a A _ _ _ 3 x _ _", "2 b B _ _ _ 3 y _ _", "3 c C _ _ _ 0 root _ _"
    assert join_words(state_of(*lines), 1).sentence.lemmas == ("A", "C")
    pinned = join_words(replace(state_of(*lines), pins=frozenset({2})), 1)
    assert pinned.sentence.lemmas == ("B", "C")
    assert pinned.pins == {1}


def test_forms_that_are_not_pieces_make_a_multiword_token():
    state = state_of("1 do de+o ADP _ _ 2 x _ Gloss=of|SpaceAfter=No|TokenRange=3:5", "2 mar mar NOUN _ _ 0 root _ _")
    split = split_word(state, 1, ("de", "o"))
    assert split.sentence.to_conllu().replace("\t", " ").splitlines() == [
        "1-2 do _ _ _ _ _ _ _ SpaceAfter=No|TokenRange=3:5",
        "1 de de+o ADP _ _ 3 x _ Gloss=of",
        "2 o _ _ _ _ _ _ _ _",
        "3 mar mar NOUN _ _ 0 root _ _",
        "",
    ]
    joined = join_words(split, 1)
    assert joined.sentence.to_conllu() == state.sentence.to_conllu()


def test_places_in_the_text_are_split_and_joined():
    state = state_of("1 dont do VERB _ _ 0 root _ TokenRange=7:11")
    split = split_word(state, 1, ("do", "n", "t"))
    assert split.sentence.layout.misc == (
        "TokenRange=7:9|SpaceAfter=No",
        "SpaceAfter=No|TokenRange=9:10",
        "TokenRange=10:11",
    )
    joined = join_words(join_words(split, 1), 1)
    assert joined.sentence.layout.misc == ("TokenRange=7:11",)
    other = split_word(state_of("1 dont do VERB _ _ 0 root _ TokenRange=7:12"), 1, ("do", "nt"))
    assert [misc_entry(misc, "TokenRange") for misc in other.sentence.layout.misc] == [None, None]


def test_a_text_that_did_not_fit_is_left_alone():
    state = State(sentence_of("# text = something else\n1\tab\t_\t_\t_\t_\t_\t_\t_\t_\n"))
    assert comment(insert_word(state, 1, "c").sentence, "text") == "something else"


def test_the_only_word_cannot_be_deleted():
    with pytest.raises(EditError, match=r"word 1 \(a\) is the only one"):
        delete_word(state_of("1 a _ _ _ _ _ _ _ _"), 1)
