"""What a network chooses for a word, and back to the columns of a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import Sentence
from headway.neural.targets import UNTAUGHT, Tasks, edit_of, edited

WORDS = st.text(min_size=1, max_size=8, alphabet=st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]))


@given(WORDS, WORDS)
def test_an_edit_makes_the_lemma(form: str, lemma: str) -> None:
    assert edited(form, edit_of(form, lemma)) == lemma


def test_an_edit_says_what_words_have_in_common() -> None:
    assert edit_of("Cities", "city") == edit_of("Ponies", "pony")
    assert edit_of("went", "go") == "= go"
    assert edited("ab", "k 2 1 1 xy") == "ab"  # too short for it


def sentences() -> list[Sentence]:
    first = Sentence.from_words(
        ["Dogs", "barked"],
        lemmas=["dog", "bark"],
        upos=["NOUN", "VERB"],
        xpos=["NNS", "VBD"],
        feats=["Number=Plur", "Tense=Past|VerbForm=Fin"],
        heads=[-1, 2, 0],
        labels=[None, "nsubj", "root"],
    )
    second = Sentence.from_words(
        ["Cats", "jumped", "in"],
        lemmas=["cat", "jump", "in"],
        upos=["NOUN", "VERB", "ADV"],
        xpos=["NNS", "VBD", "RB"],
        feats=["Number=Plur", "VerbForm=Fin", "_"],
        heads=[-1, 2, 0, 2],
        labels=[None, "nsubj", "root", "advmod"],
    )
    return [first, second]


def test_values_come_back() -> None:
    some = sentences()
    tasks = Tasks.learn(some, tags=True, labels=True)
    assert set(tasks.labels) == {"nsubj", "root", "advmod"}
    targets = tasks.targets(some)
    assert targets["upos"].shape == (2, 4)
    assert targets["upos"][0, 3] == targets["upos"][0, 0] == UNTAUGHT
    assert targets["feats:Tense"][0].tolist() == [UNTAUGHT, 0, 1, UNTAUGHT]
    for row, sentence in enumerate(some):
        chosen = {name: targets[name][row, 1 : len(sentence) + 1] for name in tasks.tags}
        unseen = [k for k, number in enumerate(chosen["lemmas"]) if number == UNTAUGHT]
        chosen["lemmas"] = chosen["lemmas"].clip(0)
        columns = tasks.columns(sentence.forms, chosen)
        assert columns["upos"] == sentence.upos
        assert columns["xpos"] == sentence.xpos
        assert columns["feats"] == sentence.feats
        assert [v for k, v in enumerate(columns["lemmas"]) if k not in unseen] == [
            v for k, v in enumerate(sentence.lemmas) if k not in unseen
        ]


def test_unknown_heads_teach_no_label() -> None:
    partly = Sentence.from_words(["a", "b"], heads=[-1, -1, 0], labels=[None, "_", "root"], partial=True)
    tasks = Tasks.learn([*sentences(), partly], tags=False, labels=True)
    assert tasks.tags == ()
    assert tasks.targets([partly])["labels"].tolist() == [[UNTAUGHT, UNTAUGHT, tasks.labels.index("root")]]


def test_saved_tasks() -> None:
    tasks = Tasks.learn(sentences(), tags=True, labels=True)
    assert Tasks.from_data(tasks.to_data()) == tasks
    for damage in ({"upos": []}, {"upos": [1]}, {"lemmas": ["k x 1 0 y"]}, {"lemmas": ["nonsense"]}):
        with pytest.raises((ValueError, TypeError, LookupError)):
            Tasks.from_data({**tasks.to_data(), **damage})
