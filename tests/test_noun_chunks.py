"""Noun chunks of trees as UD draws them, beside what an annotator would mark."""

from __future__ import annotations

import pytest

spacy = pytest.importorskip("spacy")

from spacy.tokens import Doc  # noqa: E402

import headway.spacy  # noqa: E402, F401  registers the component

# Every word as form/tag/head/label; chunks are what stands in brackets.
CASES = {
    "She saw the old man with a telescope": (
        "She/PRON/2/nsubj saw/VERB/0/root the/DET/5/det old/ADJ/5/amod man/NOUN/2/obj with/ADP/8/case a/DET/8/det "
        "telescope/NOUN/2/obl",
        ["She", "the old man", "a telescope"],
    ),
    "the predicate is a phrase, its subject another": (
        "Ann/PROPN/5/nsubj is/AUX/5/cop not/PART/5/advmod a/DET/5/det doctor/NOUN/0/root",
        ["Ann", "a doctor"],
    ),
    "names go on behind their head": (
        "Barack/PROPN/3/nsubj Obama/PROPN/1/flat met/VERB/0/root Mary/PROPN/3/obj Ann/PROPN/4/flat Smith/PROPN/4/flat",
        ["Barack Obama", "Mary Ann Smith"],
    ),
    "owners and titles are part of the phrase": (
        "John/PROPN/4/nmod:poss 's/PART/1/case big/ADJ/4/amod dog/NOUN/5/nsubj ate/VERB/0/root his/PRON/8/nmod:poss "
        "cat/NOUN/8/compound food/NOUN/5/obj",
        ["John's big dog", "his cat food"],
    ),
    "coordination": (
        "dogs/NOUN/5/nsubj and/CCONJ/4/cc the/DET/4/det cats/NOUN/1/conj sleep/VERB/0/root",
        ["dogs", "the cats"],
    ),
    "what is coordinated inside a phrase is no phrase": (
        "cat/NOUN/4/compound and/CCONJ/3/cc dog/NOUN/1/conj food/NOUN/5/nsubj smells/VERB/0/root",
        ["cat and dog food"],
    ),
    "of-phrases and appositions": (
        "the/DET/2/det king/NOUN/7/nsubj of/ADP/4/case France/PROPN/2/nmod the/DET/6/det bald/NOUN/2/appos "
        "left/VERB/0/root",
        ["the king", "France", "the bald"],
    ),
    "expletives, times and quantities": (
        "There/PRON/2/expl were/VERB/0/root almost/ADV/4/advmod five/NUM/6/nummod big/ADJ/6/amod dogs/NOUN/2/nsubj "
        "here/ADV/2/advmod yesterday/NOUN/2/obl:unmarked",
        ["almost five big dogs", "yesterday"],
    ),
    "clauses": (
        "they/PRON/2/nsubj say/VERB/0/root that/SCONJ/6/mark it/PRON/6/nsubj 's/AUX/6/cop art/NOUN/2/ccomp "
        "who/PRON/8/nsubj knows/VERB/6/parataxis",
        ["they", "it", "art", "who"],
    ),
    "a modifier between is kept, one before is not": (
        "only/ADV/5/advmod the/DET/5/det then/ADV/5/advmod American/ADJ/5/amod leader/NOUN/6/nsubj spoke/VERB/0/root",
        ["the then American leader"],
    ),
}


def doc_of(rows: str, lang: str = "en") -> Doc:
    nlp = spacy.blank(lang)
    nlp.add_pipe("headway")
    words = [row.rsplit("/", 3) for row in rows.split()]
    heads = [int(head) - 1 if head != "0" else i for i, (_, _, head, _) in enumerate(words)]
    deps = ["ROOT" if label == "root" else label for *_, label in words]
    spaces = [not (i + 1 < len(words) and words[i + 1][0].startswith("'")) for i in range(len(words))]
    forms = [word[0] for word in words]
    return Doc(nlp.vocab, words=forms, spaces=spaces, pos=[word[1] for word in words], heads=heads, deps=deps)


@pytest.mark.parametrize("name", CASES)
def test_chunks(name: str) -> None:
    rows, expected = CASES[name]
    doc = doc_of(rows)
    assert [chunk.text for chunk in doc.noun_chunks] == expected
    assert {chunk.label_ for chunk in doc.noun_chunks} <= {"NP"}
    again = Doc(doc.vocab).from_bytes(doc.to_bytes())
    assert [chunk.text for chunk in again.noun_chunks] == expected


def test_genitives_with_a_case_are_phrases_of_their_own() -> None:
    doc = doc_of("町/NOUN/3/nmod の/ADP/1/case 人/NOUN/4/nsubj 来た/VERB/0/root", "xx")
    assert [chunk.text.strip() for chunk in doc.noun_chunks] == ["町", "人"]


def test_crossing_arcs_give_no_overlaps() -> None:
    doc = doc_of("big/ADJ/3/amod dogs/NOUN/4/nsubj cats/NOUN/4/obj see/VERB/0/root")
    assert [chunk.text for chunk in doc.noun_chunks] == ["dogs", "cats"]


def test_chunks_of_a_span() -> None:
    doc = doc_of(CASES["coordination"][0])
    assert [chunk.text for chunk in doc[1:5].noun_chunks] == ["the cats"]


def test_languages_with_rules_for_ud_keep_them() -> None:
    own = spacy.blank("fr").vocab.get_noun_chunks
    nlp = spacy.blank("fr")
    nlp.add_pipe("headway")
    assert nlp.vocab.get_noun_chunks is own
