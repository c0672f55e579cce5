"""Mentions from trees: hand-written trees, and the agreement with GUM's own mentions where it is present."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.coreference import read_documents, tree_mentions
from headway.errors import TreebankError
from headway.treebank import Sentence
from tests.treebank.strategies import trees

GUM = Path(__file__).resolve().parents[3] / "shared" / "data" / "ud" / "UD_English-GUM"


def sentence(*rows: str) -> Sentence:
    """A sentence of rows "form UPOS head relation", with FEATS behind where there are some."""
    columns = [row.split() for row in rows]
    return Sentence.from_words(
        [column[0] for column in columns],
        upos=[column[1] for column in columns],
        feats=[column[4] if len(column) > 4 else "_" for column in columns],
        heads=[-1, *(int(column[2]) for column in columns)],
        labels=[None, *(column[3] for column in columns)],
    )


def mentions(*rows: str) -> list[str]:
    made = sentence(*rows)
    return [" ".join(made.forms[word - 1] for word in mention.words) for mention in tree_mentions([made])]


def test_nested_nominals_without_their_prepositions() -> None:
    rows = (
        "In ADP 3 case",
        "the DET 3 det",
        "house NOUN 8 obl",
        "of ADP 6 case",
        "my PRON 6 nmod:poss",
        "friend NOUN 3 nmod",
        "she PRON 8 nsubj",
        "slept VERB 0 root",
    )
    assert mentions(*rows) == ["the house of my friend", "my friend", "my", "she"]


def test_conjuncts_and_appositions_are_mentions_of_their_own() -> None:
    rows = (
        "Ann PROPN 0 root",
        ", PUNCT 4 punct",
        "a DET 4 det",
        "poet NOUN 1 appos",
        ", PUNCT 4 punct",
        "and CCONJ 8 cc",
        "his PRON 8 nmod:poss",
        "dog NOUN 1 conj",
    )
    assert mentions(*rows) == ["Ann", "a poet", "his dog", "his"]


def test_a_predicate_is_without_its_subject_and_copula() -> None:
    rows = (
        "It PRON 4 nsubj",
        "was AUX 4 cop",
        "a DET 4 det",
        "day NOUN 0 root",
        "of ADP 6 case",
        "rain NOUN 4 nmod",
        "in ADP 8 case",
        "Rome PROPN 4 obl",
        ". PUNCT 4 punct",
    )
    assert mentions(*rows) == ["It", "a day of rain", "rain", "Rome"]


def test_parts_of_names_and_modifiers_are_no_mentions() -> None:
    rows = (
        "President PROPN 2 nmod:desc",
        "Rosa PROPN 0 root",
        "Park PROPN 2 flat",
        "two NUM 6 nummod",
        "Berlin PROPN 6 compound",
        "buses NOUN 2 dep",
        "bus NOUN 8 compound",
        "stop NOUN 2 dep",
    )
    assert mentions(*rows) == ["President Rosa Park", "two Berlin buses", "Berlin", "bus stop"]


def test_relative_and_interrogative_pronouns_stand_for_nothing() -> None:
    rows = (
        "that PRON 2 nsubj PronType=Rel",
        "left VERB 0 root",
        "what PRON 2 obj PronType=Int",
        "this PRON 2 obl PronType=Dem",
        "which DET 2 obj Number=Sing|PronType=Int",
        "some DET 2 obj PronType=Ind",
    )
    assert mentions(*rows) == ["this", "some"]


def test_possessive_determiners() -> None:
    assert mentions("su DET 2 det Poss=Yes", "casa NOUN 0 root") == ["su casa", "su"]
    assert mentions("sa DET 2 det:poss", "maison NOUN 0 root") == ["sa maison", "sa"]
    assert mentions("la DET 2 det Definite=Def", "maison NOUN 0 root") == ["la maison"]


def test_punctuation_stays_inside_what_is_inside() -> None:
    rows = (
        '" PUNCT 2 punct',
        "cats NOUN 0 root",
        "of ADP 5 case",
        "( PUNCT 5 punct",
        "Rome PROPN 2 nmod",
        ") PUNCT 5 punct",
        ". PUNCT 2 punct",
    )
    assert mentions(*rows) == ["cats of ( Rome )", "Rome"]


def test_a_gap_ends_the_mention() -> None:
    rows = ("men NOUN 2 nsubj", "came VERB 0 root", "who PRON 4 nsubj PronType=Rel", "sang VERB 1 acl:relcl")
    assert mentions(*rows) == ["men"]


def test_sentences_are_numbered() -> None:
    one, two = sentence("go VERB 0 root", "home NOUN 1 obj"), sentence("he PRON 0 root")
    found = tree_mentions([one, two, one])
    assert [(mention.sentence, mention.words) for mention in found] == [(0, (2,)), (1, (1,)), (2, (2,))]
    assert {(mention.type, mention.rest) for mention in found} == {("_", "")}
    assert tree_mentions([]) == []


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        (Sentence.from_words(["a"], upos=["NOUN"]), "has no heads"),
        (Sentence.from_words(["a", "b"], upos=["NOUN"] * 2, heads=[-1, 2, 1]), "form a cycle"),
        (Sentence.from_words(["a"], heads=[-1, 0], labels=[None, "root"]), "lacks UPOS or DEPREL"),
        (Sentence.from_words(["a"], upos=["NOUN"], heads=[-1, 0]), "lacks UPOS or DEPREL"),
    ],
)
def test_a_tree_is_needed(wrong: Sentence, cause: str) -> None:
    with pytest.raises(TreebankError, match=cause):
        tree_mentions([wrong])


def path_to_root(heads: tuple[int, ...], word: int) -> list[int]:
    path = [word]
    while heads[path[-1]] > 0:
        path.append(heads[path[-1]])
    return path


@given(trees(max_words=8), st.data())
def test_mentions_are_runs_of_their_heads_descendants(heads: tuple[int, ...], data: st.DataObject) -> None:
    n = len(heads) - 1
    relations = st.sampled_from(["nmod", "case", "punct", "conj", "nsubj", "obl", "det", "compound"])
    upos = data.draw(st.lists(st.sampled_from(["NOUN", "PROPN", "ADP", "DET"]), min_size=n, max_size=n))
    labels = data.draw(st.lists(relations, min_size=n, max_size=n))
    made = Sentence.from_words(["w"] * n, upos=upos, heads=heads, labels=[None, *labels])
    found = [mention.words for mention in tree_mentions([made])]
    assert len(set(found)) == len(found)
    assert found == sorted(found, key=lambda words: (words[0], -words[-1]))
    for words in found:
        assert words == tuple(range(words[0], words[-1] + 1))
        tops = [word for word in words if all(word in path_to_root(heads, other) for other in words)]
        assert len(tops) == 1
        assert upos[tops[0] - 1] != "ADP"


@pytest.mark.skipif(not GUM.is_dir(), reason=f"no treebank at {GUM}")
def test_agreement_with_gum() -> None:
    """What the rules were tuned for, on the part that they were not tuned on."""
    found = gold = both = 0
    for document in read_documents(GUM / "en_gum-ud-dev.conllu.gz"):
        one = {(mention.sentence, mention.words) for mention in tree_mentions(document.sentences)}
        other = {(mention.sentence, mention.words) for mention in document.mentions}
        found, gold, both = found + len(one), gold + len(other), both + len(one & other)
    assert (f"{both / found:.3f}", f"{both / gold:.3f}") == ("0.884", "0.878")
