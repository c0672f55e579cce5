"""Sentences built in memory: what they hold, what they refuse, and how they are written."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from headway.errors import HeadsError
from headway.treebank import Place, Sentence, TreebankError, read_treebank, require_tree


def lines_of(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.split("\n")]


def test_columns_and_tree() -> None:
    sentence = Sentence.from_words(
        ["Dogs", "bark"], upos=["NOUN", "VERB"], heads=np.array([-1, 2, 0], np.int32), labels=[None, "nsubj", "root"]
    )
    assert len(sentence) == 2
    assert sentence.forms == ("Dogs", "bark")
    assert sentence.upos == ("NOUN", "VERB")
    assert sentence.lemmas == sentence.xpos == sentence.feats == ("_", "_")
    assert sentence.heads is not None
    assert sentence.heads.dtype == np.int64
    assert sentence.heads.tolist() == [-1, 2, 0]
    assert sentence.labels == (None, "nsubj", "root")
    expected = [["1", "Dogs", "_", "NOUN", "_", "_", "2", "nsubj", "_", "_"]]
    expected += [["2", "bark", "_", "VERB", "_", "_", "0", "root", "_", "_"], [""], [""]]
    assert lines_of(sentence.to_conllu()) == lines_of(sentence.to_conllx()) == expected


def test_without_a_tree() -> None:
    sentence = Sentence.from_words(["Dogs"])
    assert sentence.heads is None
    assert sentence.labels is None
    assert lines_of(sentence.to_conllu())[0][6:8] == ["_", "_"]


def test_with_tree_leaves_the_sentence_alone() -> None:
    heads = np.array([-1, 0, 1])
    before = Sentence.from_words(["a", "b"], heads=[-1, 2, 0], labels=[None, "x", "y"])
    after = before.with_tree(heads)
    heads[1] = 2
    assert after.heads is not None
    assert before.heads is not None
    assert after.heads.tolist() == [-1, 0, 1]
    assert after.labels == (None, "_", "_")
    assert before.heads.tolist() == [-1, 2, 0]
    assert before.labels == (None, "x", "y")


def test_no_words() -> None:
    empty = Sentence.from_words([], heads=[-1])
    assert len(empty) == 0
    assert empty.labels == (None,)
    assert empty.to_conllu() == "\n"
    assert require_tree(empty).tolist() == [-1]


@pytest.mark.parametrize("bad", ["", "a\tb", "a\nb", "a\r", None, 7])
@pytest.mark.parametrize("name", ["forms", "lemmas", "upos", "xpos", "feats", "labels"])
def test_text_that_would_break_a_file(name: str, bad: object) -> None:
    columns: dict[str, object] = {"forms": ["a", "b"], "heads": [-1, 2, 0]}
    columns[name] = [None, "x", bad] if name == "labels" else ["x", bad]
    with pytest.raises(TreebankError, match=f"{name} of word 2"):
        Sentence.from_words(**columns)  # type: ignore[arg-type]


def test_lengths_must_agree() -> None:
    with pytest.raises(TreebankError, match="3 upos for 2 words"):
        Sentence.from_words(["a", "b"], upos=["x"] * 3)
    with pytest.raises(TreebankError, match="2 heads for 2 words"):
        Sentence.from_words(["a", "b"], heads=[-1, 0])
    with pytest.raises(TreebankError, match="2 labels for 2 words"):
        Sentence.from_words(["a", "b"], heads=[-1, 0, 1], labels=["x", "y"])
    with pytest.raises(TreebankError, match="labels\\[0\\] is None"):
        Sentence.from_words(["a"], heads=[-1, 0], labels=["x", "y"])
    with pytest.raises(TreebankError, match="without heads"):
        Sentence.from_words(["a"], labels=[None, "y"])
    with pytest.raises(HeadsError, match="heads\\[1\\] is 5"):
        Sentence.from_words(["a"], heads=[-1, 5])


def test_require_tree_names_place_and_words() -> None:
    rows = [("1", "a", "3"), ("2", "b", "1"), ("3", "c", "2"), ("4", "d", "0")]
    text = "\n\n# c\n" + "".join(f"{i}\t{form}\t_\t_\t_\t_\t{head}\tx\t_\t_\n" for i, form, head in rows)
    import io

    (sentence,) = read_treebank(io.StringIO(text))
    with pytest.raises(TreebankError) as caught:
        require_tree(sentence)
    assert str(caught.value).startswith("stream, line 3: ")
    assert "1 (a) -> 3 (c) -> 2 (b) -> 1 (a)" in str(caught.value)
    assert (caught.value.source, caught.value.line) == ("stream", 3)
    with pytest.raises(TreebankError, match="sentence in memory: the sentence has no heads"):
        require_tree(Sentence.from_words(["a"]))


def test_places() -> None:
    assert str(Place("train.conllu", 17)) == "train.conllu, line 17"
    assert repr(Sentence.from_words(["a", "b"])) == "<Sentence of 2 words: sentence in memory>"


def test_sentences_and_errors_travel_between_processes() -> None:
    sentence = Sentence.from_words(["a"], heads=[-1, 0])
    assert pickle.loads(pickle.dumps(sentence)).to_conllu() == sentence.to_conllu()
    error = pickle.loads(pickle.dumps(TreebankError("cause; remedy", "f", 3)))
    assert (str(error), error.source, error.line) == ("f, line 3: cause; remedy", "f", 3)


def test_importing_loads_nothing_heavy() -> None:
    code = "import headway.treebank, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "headway.treebank.files" in loaded
    assert not {"numba", "llvmlite", "scipy", "torch"} & set(loaded)
