"""Every rule has a sentence that triggers it and no other, and a good treebank triggers none."""

from __future__ import annotations

import pytest

from headway.annotation.inventory import RELATIONS, UPOS, Inventory
from headway.annotation.state import sentence_of
from headway.annotation.validation import Message, validate
from headway.treebank import Sentence, read_treebank
from tests.annotation.toys import TINY

GOOD = """\
# text = The dog saw Ann.
1 The the DET _ _ 2 det _ _
2 dog dog NOUN _ Case=Nom|Number=Sing 3 nsubj _ _
3 saw see VERB _ _ 0 root _ _
4 Ann Ann PROPN _ _ 3 obj _ SpaceAfter=No
5 . . PUNCT _ _ 3 punct _ _
"""


def sentence(text: str) -> Sentence:
    lines = (line if line.startswith("#") else line.replace(" ", "\t") for line in text.splitlines())
    return sentence_of("\n".join(lines) + "\n")


def changed(*pairs: tuple[str, str]) -> Sentence:
    text = GOOD
    for old, new in pairs:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return sentence(text)


def test_a_good_sentence():
    assert validate(sentence(GOOD)) == []
    assert len(RELATIONS) == 37
    assert len(UPOS) == 17


def test_a_good_treebank():
    read, inventory = list(read_treebank(TINY)), Inventory()
    for each in read:
        inventory.add(each)
    assert inventory.has_ud_labels
    assert [message for each in read for message in validate(each, inventory)] == []


RULES = [
    ("no-head", 4, "warning", [("3 obj", "_ _")]),
    ("cycle", 3, "error", [("0 root", "4 dep")]),
    ("multiple-roots", 4, "error", [("3 obj", "0 root")]),
    ("root-label", 3, "error", [("0 root", "0 dep")]),
    ("root-label", 4, "error", [("3 obj", "3 root")]),
    ("unknown-label", 4, "error", [("3 obj", "3 ojb")]),
    ("no-label", 4, "warning", [("3 obj", "3 _")]),
    ("unknown-upos", 4, "error", [("PROPN", "NAME")]),
    ("invalid-feature", 2, "error", [("Case=Nom|Number=Sing", "Case=nom|Number=Sing")]),
    ("invalid-feature", 2, "error", [("Case=Nom|Number=Sing", "Sing")]),
    ("invalid-feature", 2, "error", [("Case=Nom|Number=Sing", "Case=Nom|Case=Acc")]),
    ("feature-order", 2, "error", [("Case=Nom|Number=Sing", "Number=Sing|Case=Nom")]),
    ("feature-order", 2, "error", [("Case=Nom|Number=Sing", "Case=Nom,Acc")]),
    ("empty-form", 4, "error", [("Ann Ann", "_ Ann"), ("saw Ann.", "saw _.")]),
    ("text", None, "error", [("The dog saw Ann.", "The dog saw Bob.")]),
    ("text", None, "error", [("SpaceAfter=No", "_")]),
    ("leaf-det", 4, "error", [("3 obj", "1 obj")]),
    ("leaf-punct", 4, "error", [("3 obj", "5 obj")]),
    ("leaf-aux-cop", 4, "error", [("2 det", "3 det"), ("3 obj", "2 obj"), ("3 nsubj", "3 aux")]),
    ("leaf-aux-cop", 4, "error", [("2 det", "3 det"), ("3 obj", "2 advmod"), ("3 nsubj", "3 cop")]),
    ("leaf-mark-case", 4, "error", [("2 det", "3 det"), ("3 obj", "2 obj"), ("3 nsubj", "3 case")]),
    ("leaf-mark-case", 4, "error", [("2 det", "3 det"), ("3 obj", "2 obj"), ("3 nsubj", "3 mark")]),
    ("leaf-cc", 4, "error", [("2 det", "3 det"), ("3 obj", "2 cc"), ("3 nsubj", "3 cc")]),
    ("right-to-left-conj", 2, "error", [("3 nsubj", "3 conj")]),
    ("right-to-left-appos", 2, "error", [("3 nsubj", "3 appos")]),
    ("right-to-left-flat", 2, "error", [("3 nsubj", "3 flat:name")]),
    ("right-to-left-fixed", 2, "error", [("3 nsubj", "3 fixed")]),
    ("right-to-left-goeswith", 2, "error", [("3 nsubj", "3 goeswith")]),
]


@pytest.mark.parametrize(("rule", "word", "level", "pairs"), RULES)
def test_each_rule_alone(rule, word, level, pairs):
    [message] = validate(changed(*pairs))
    assert (message.rule, message.word, message.level) == (rule, word, level)
    assert message.text


@pytest.mark.parametrize(
    "pairs",
    [
        [("4 Ann Ann PROPN _ _ 3 obj", "4 Ann Ann PROPN _ Polarity=Neg 5 advmod")],
        [("3 obj", "5 punct")],
        [("3 obj", "1 conj")],
        [("3 obj", "3 obl:tmod")],
        [("3 obj", "3 conj")],
        [("3 nsubj", "3 case"), ("2 det", "2 advmod")],
        [("Case=Nom|Number=Sing", "Case=Acc,Nom|Number[psor]=Sing")],
    ],
)
def test_what_is_allowed(pairs):
    assert validate(changed(*pairs)) == []


def test_messages_by_word():
    found = validate(changed(("3 obj", "3 ojb"), ("Case=Nom|Number=Sing", "x"), ("saw Ann.", "saw")))
    assert [message.word for message in found] == [None, 2, 4]
    assert found[2].to_dict() == {
        "word": 4,
        "level": "error",
        "rule": "unknown-label",
        "text": "the label ojb is not a relation of Universal Dependencies; is it misspelt?",
    }


def test_other_treebanks_have_their_own_labels():
    own = sentence("1 a _ N _ sg|nom 2 SUB _ _\n2 b _ V _ _ 0 ROOT _ _\n3 c _ V _ _ 0 OBJ _ _\n")
    inventory = Inventory()
    inventory.add(own)
    assert not inventory.has_ud_labels
    assert not inventory.has_ud_tags
    assert validate(own, inventory) == []
    other = sentence("1 a _ N _ _ 2 SBU _ _\n2 b _ V _ _ 0 ROOT _ _\n")
    assert validate(other, inventory) == [
        Message(1, "warning", "unknown-label", "the label SBU is new in this treebank")
    ]
    assert not validate(other, Inventory(labels=inventory.labels, upos=inventory.upos, model_labels=("SBU",)))


def test_a_long_text_is_shortened():
    [message] = validate(sentence("# text = b\n" + f"1 {'a' * 200} a X _ _ 0 root _ _\n"))
    assert len(message.text) < 130


def test_words_without_trees():
    assert {message.rule for message in validate(sentence("1 a _ X _ _ _ _ _ _\n2 b _ X _ _ _ _ _ _\n"))} == {"no-head"}
