"""What is known of a mention by itself: hand-written mentions, and random documents against plain Python."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.coreference.attributes import ATTRIBUTES, KINDS, DescribedMention, describe_mentions
from headway.errors import TreebankError
from headway.treebank import Sentence

from .naive_pairs import naive_attributes, naive_mentions, naive_talk
from .toy_documents import document, random_document, sentence

SEEDS = st.integers(0, 2**32 - 1)
HOUSE = sentence(
    "In ADP 3 case",
    "the DET 3 det _ the",
    "Houses NOUN 8 obl Number=Plur house",
    "of ADP 6 case",
    "my PRON 6 nmod:poss Person=1",
    "friend NOUN 3 nmod Number=Sing",
    ", PUNCT 3 punct",
    "slept VERB 0 root _ sleep",
    "he PRON 8 nsubj Gender=Masc|Number=Sing|Person=3",
)


def described(made: Sentence, *words: int) -> tuple[DescribedMention, dict[str, str]]:
    (found,) = describe_mentions(document([made], [(0, words)]))
    return found


def test_a_noun_with_all_that_hangs_from_it() -> None:
    mention, attributes = described(HOUSE, 2, 3, 4, 5, 6, 7)
    assert (mention.head, mention.core) == (3, (3, 4, 5, 6))
    assert mention.content() == {"house", "friend", "my"}
    assert {name: attributes[name] for name in ("kind", "cite", "head", "lemma", "tag", "label", "governor")} == {
        "kind": "nominal", "cite": "nominal", "head": "houses", "lemma": "house", "tag": "NOUN", "label": "obl",
        "governor": "sleep",
    }  # fmt: skip
    assert {name: attributes[name] for name in ("relation", "first", "last", "before", "after", "determiner")} == {
        "relation": "obl sleep", "first": "the", "last": ",", "before": "in", "after": "slept", "determiner": "the",
    }  # fmt: skip
    assert (attributes["number"], attributes["gender"], attributes["person"]) == ("Plur", "_", "_")
    assert (attributes["length"], attributes["seen"], attributes["count"]) == ("6", "new", "1")


def test_a_pronoun_cites_itself() -> None:
    mention, attributes = described(HOUSE, 9)
    assert KINDS[mention.kind] == attributes["kind"] == "pronoun"
    assert (attributes["cite"], attributes["gender"], attributes["person"]) == ("he", "Masc", "3")
    assert (attributes["before"], attributes["after"]) == ("slept", "_")


def test_the_head_of_words_that_hang_apart_is_the_first() -> None:
    assert described(HOUSE, 5, 9)[0].head == 5
    assert described(HOUSE, 1, 4)[0].head == 1


def test_edges_stay_where_they_are_the_head() -> None:
    mention, _ = described(sentence("the DET 0 root", "big ADJ 1 amod", "of ADP 1 case"), 1, 2, 3)
    assert (mention.head, mention.core) == (1, (1, 2))
    alone, _ = described(sentence(", PUNCT 0 punct"), 1)
    assert alone.core == (1,)


@pytest.mark.parametrize(
    ("tag", "words", "kind"),
    [
        ("PRON", (1,), "pronoun"),
        ("PRON", (1, 2), "pronoun"),
        ("DET", (1,), "pronoun"),
        ("DET", (1, 2), "nominal"),
        ("PROPN", (1,), "name"),
        ("NOUN", (1,), "nominal"),
        ("NUM", (1,), "nominal"),
        ("VERB", (1, 2), "other"),
    ],
)
def test_kinds(tag: str, words: tuple[int, ...], kind: str) -> None:
    assert described(sentence(f"x {tag} 0 root", "y NOUN 1 nmod"), *words)[1]["kind"] == kind


def test_a_coordination_is_plural() -> None:
    rows = ("Ann PROPN 0 root Number=Sing", "and CCONJ 3 cc", "Bob PROPN 1 conj Number=Sing")
    assert described(sentence(*rows), 1, 2, 3)[1]["number"] == "Plur"
    assert described(sentence(*rows), 1)[1]["number"] == "Sing"


@pytest.mark.parametrize(
    ("first", "expected"),
    [("These DET 2 det _ this", "this"), ("My PRON 2 nmod:poss", "PRON"), ("Two NUM 2 nummod", "NUM"),
     ("Big ADJ 2 amod", "_")],
)  # fmt: skip
def test_determiners(first: str, expected: str) -> None:
    made = sentence(first, "dogs NOUN 0 root")
    assert described(made, 1, 2)[1]["determiner"] == expected
    assert described(made, 2)[1]["determiner"] == "_"


@pytest.mark.parametrize(
    ("forms", "tags", "initials"),
    [
        ("the United States of America", "DET PROPN PROPN ADP PROPN", "usa"),
        ("United nations", "PROPN PROPN", "u"),
        ("America", "PROPN", "_"),
        ("big Dogs", "ADJ NOUN", "_"),
        ("de la", "PROPN PROPN", "_"),
    ],
)
def test_initials(forms: str, tags: str, initials: str) -> None:
    words, upos = forms.split(), tags.split()
    top = next(i for i, tag in enumerate(upos, start=1) if tag in ("PROPN", "NOUN"))
    rows = [
        f"{form} {tag} {0 if i == top else top} {'det' if tag == 'DET' else 'flat'}"
        for i, (form, tag) in enumerate(zip(words, upos, strict=True), start=1)
    ]
    assert described(sentence(*rows), *range(1, len(words) + 1))[0].initials() == initials


def test_what_other_mentions_add() -> None:
    made = sentence("the DET 2 det", "dog NOUN 0 root", "a DET 4 det", "dog NOUN 2 nmod", "old ADJ 4 amod")
    spans = [(0, (1, 2, 3, 4, 5)), (0, (2,)), (0, (3, 4, 5)), (1, (1, 2)), (1, (3, 4))]
    found = [attributes for _, attributes in describe_mentions(document([made, made], spans))]
    assert [attributes["seen"] for attributes in found] == ["new", "head", "head", "string", "string"]
    assert [attributes["inside"] for attributes in found] == ["no", "yes", "yes", "no", "no"]
    assert {attributes["count"] for attributes in found} == {"3"}  # 4 to 7


def talk(*sentences: str) -> list[tuple[str, str]]:
    """The speakers and addressees of mentions in sentences "speaker addressee", "-" for nobody."""
    made = []
    for pair in sentences:
        named = zip(("speaker", "addressee"), pair.split(), strict=True)
        comments = [f"# {name} = {value}" for name, value in named if value != "-"]
        made.append(sentence("I PRON 0 root", comments=comments))
    text = document(made, [(number, (1,)) for number in range(len(made))])
    for mine, theirs in zip(describe_mentions(text), naive_talk(text), strict=True):
        assert (mine[0].speaker or None, mine[0].addressee or None) == theirs
    return [(mention.speaker, mention.addressee) for mention, _ in describe_mentions(text)]


def test_who_speaks_to_whom() -> None:
    assert talk("A -", "A -", "B -", "C -", "C -", "A -") == [
        ("A", "B"), ("A", "B"), ("B", "A"), ("C", "B"), ("C", "B"), ("A", "C"),
    ]  # fmt: skip
    assert talk("A C", "B A", "- -", "B -") == [("A", "C"), ("B", "A"), ("", ""), ("B", "A")]
    assert talk("A -", "- -", "A B") == [("A", ""), ("", ""), ("A", "B")]
    assert talk("- A") == [("", "A")]


@settings(max_examples=60)
@given(SEEDS)
def test_against_plain_python(seed: int) -> None:
    text = random_document(seed)
    found, expected = describe_mentions(text), naive_attributes(text)
    assert len(found) == len(expected) == len(text.mentions)
    for (mention, attributes), naive, twin in zip(found, expected, naive_mentions(text), strict=True):
        assert {name: attributes[name] for name in naive} == naive
        assert set(attributes) == set(ATTRIBUTES)
        assert (mention.head, list(mention.core)) == (twin.head, twin.core_words)
        assert mention.content() == twin.content
        assert mention.initials() == (twin.initials or "_")
        assert (mention.speaker or None, mention.addressee or None) == (twin.speaker, twin.addressee)


def test_no_mentions() -> None:
    assert describe_mentions(document([HOUSE], [])) == []


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        (Sentence.from_words(["a"]), "has no heads"),
        (Sentence.from_words(["a", "b"], heads=[-1, 2, 1]), "form a cycle"),
        (Sentence.from_words(["a", "b"], heads=[-1, 2, -1], partial=True), "has no head"),
    ],
)
def test_a_tree_is_needed(wrong: Sentence, cause: str) -> None:
    """Also of a sentence without mentions."""
    for text in (document([wrong], [(0, (1,))]), document([HOUSE, wrong], [(0, (1,))])):
        with pytest.raises(TreebankError, match=cause):
            describe_mentions(text)
