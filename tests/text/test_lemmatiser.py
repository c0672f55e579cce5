"""Lemmas by rule: what was seen comes back, what was not goes by its longest ending."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.text.lemmatiser import Lemmatiser, Tag
from headway.treebank import Sentence

NOUN: Tag = ("NOUN", "NNS", "Number=Plur")
NAME: Tag = ("PROPN", "NNP", "_")
VERB: Tag = ("VERB", "_", "Tense=Past")

Word = tuple[str, str, Tag]  # form, lemma, tag


def treebank(*words: Word) -> list[Sentence]:
    """One sentence."""
    columns = {"lemmas": [w[1] for w in words], "upos": [w[2][0] for w in words]}
    columns |= {"xpos": [w[2][1] for w in words], "feats": [w[2][2] for w in words]}
    return [Sentence.from_words([w[0] for w in words], **columns)]


def learnt(*words: Word) -> Lemmatiser:
    found = Lemmatiser.learn(treebank(*words))
    assert found is not None
    return found


letters = st.text(st.sampled_from("abcABİßǅé"), min_size=1, max_size=7)
words = st.lists(st.tuples(letters, letters, st.sampled_from([NOUN, NAME, VERB])), min_size=1, max_size=30)


@given(words)
def test_every_training_word_has_its_commonest_lemma(text: list[Word]) -> None:
    """Of lemmas seen equally often, one of them. The tag is XPOS, or UPOS and FEATS where there is none."""
    found = learnt(*text)
    for form, _, tag in text:
        counts = Counter(lemma for other, lemma, its in text if (other, its) == (form, tag))
        most = max(counts.values())
        assert counts[found.lemma(form, tag)] == most


@given(words, letters)
def test_every_word_has_a_lemma(text: list[Word], new: str) -> None:
    found = learnt(*text)
    for tag in (NOUN, NAME, VERB, ("X", "_", "_")):
        assert found.lemma(new, tag)
    assert found.lemma(new, ("X", "_", "_")) == new  # a tag that no training word has


@given(words, letters)
def test_saved_and_loaded(text: list[Word], new: str) -> None:
    found = learnt(*text)
    again = Lemmatiser.from_data(json.loads(json.dumps(found.to_data())))
    assert again == found
    assert again.lemma(new, NOUN) == found.lemma(new, NOUN)


def test_a_new_word_goes_by_its_longest_ending() -> None:
    found = learnt(
        ("dogs", "dog", NOUN), ("cats", "cat", NOUN), ("cities", "city", NOUN), ("parties", "party", NOUN),
        ("movies", "movie", NOUN), ("wolves", "wolf", NOUN),
    )  # fmt: skip
    for form, lemma in {"books": "book", "ponies": "pony", "Kitties": "kitty", "shelves": "shelf", "b": "b"}.items():
        assert found.lemma(form, NOUN) == lemma
    assert found.lemma("removies", NOUN) == "removie"  # "ovies", against the commoner "ies"


def test_endings_are_of_five_characters_at_most() -> None:
    """ "xabcde" and "yabcde" end alike as far as anyone looks; the commoner decides for others, each its own."""
    found = learnt(*[("xabcde", "xabcd", NOUN)] * 2, ("yabcde", "y", NOUN))
    assert found.lemma("zabcde", NOUN) == "zabcd"
    assert found.lemma("yabcde", NOUN) == "y"
    assert found.exceptions == {"NNS": {"yabcde": "y"}}


def test_rules_are_a_tags_own() -> None:
    found = learnt(("walks", "walk", VERB), ("dogs", "dog", NOUN), ("James", "James", NAME), ("Dogs", "dog", NOUN))
    assert found.lemma("Williams", NAME) == "Williams"
    assert found.lemma("Stones", NOUN) == "stone"
    assert found.lemma("jumps", VERB) == "jump"
    assert found.lemma("jumps", ("VERB", "_", "Tense=Pres")) == "jumps"
    assert found.lemma("jumps", ("NOUN", "NNS", "anything")) == "jump"  # XPOS is all that counts


def test_capitals_stay_where_the_lemmas_have_them() -> None:
    found = learnt(("Paris", "Paris", NAME), ("The", "the", ("DET", "DT", "_")), ("NASA", "NASA", NAME))
    assert found.lemma("Berlin", NAME) == "Berlin"
    assert found.lemma("THIS", ("DET", "DT", "_")) == "this"


def test_a_rule_that_cuts_all_leaves_the_word() -> None:
    found = learnt(("was", "be", VERB), ("a", "e", VERB))
    assert found.lemma("was", VERB) == "be"
    assert found.lemma("q", NOUN) == "q"
    shorter = Lemmatiser({"NNS": {"": (9, "", False)}}, {})
    assert shorter.lemma("Dog", NOUN) == "Dog"


def test_a_treebank_without_lemmas() -> None:
    assert Lemmatiser.learn([]) is None
    assert Lemmatiser.learn(treebank(("a", "_", NOUN), ("b", "_", NOUN))) is None
    assert Lemmatiser.learn(treebank(("A", "_", NOUN), ("_", "_", NOUN))) is None  # "_" is a word here, not a lemma


def test_words_without_a_lemma_among_others() -> None:
    """They teach nothing; only the word "_" has the lemma "_"."""
    found = learnt(("dogs", "dog", NOUN), ("xyzzy", "_", NAME), ("_", "_", ("PUNCT", "SYM", "_")))
    assert found.lemma("xyzzy", NAME) == "xyzzy"
    assert found.lemma("_", ("PUNCT", "SYM", "_")) == "_"


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"rules": {}},
        {"exceptions": {}},
        {"rules": {"N": {"": [1]}}, "exceptions": {}},
        {"rules": {"N": {"": ["x", "", 0]}}, "exceptions": {}},
    ],
)
def test_damaged_data(data: dict[str, object]) -> None:
    with pytest.raises((KeyError, ValueError)):
        Lemmatiser.from_data(data)
