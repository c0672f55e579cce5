"""Comments, MISC entries, multiword tokens, spaces, probabilities and offsets."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest

from headway.treebank import Sentence, TreebankError, read_treebank
from headway.treebank.annotations import (
    MultiwordToken,
    comment,
    head_probabilities,
    misc_entry,
    multiword_tokens,
    offsets_of,
    spaces_after,
    starts_paragraph,
    with_comment,
    with_first_comments,
    with_head_probabilities,
    with_misc_entries,
)
from headway.treebank.raw_text import Token, sentence_from_tokens


def dogs(*comments: str, misc: tuple[str, ...] = ("_", "_")) -> Sentence:
    sentence = Sentence.from_words(["Dogs", "bark"])
    return replace(sentence, layout=replace(sentence.layout, comments=comments, misc=misc))


CONTRACTED = """\
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\tX=y|SpaceAfter=No
1\tDo\t_\t_\t_\t_\t_\t_\t_\t_
2\tn't\t_\t_\t_\t_\t_\t_\t_\t_
2.1\tyou\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
3\t,\t_\t_\t_\t_\t_\t_\t_\t_
4\tplease\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No

"""


def test_comments_are_read_by_their_names() -> None:
    sentence = dogs("#text=Dogs bark", "# text = other", "#  speaker =  Ann = Bo ", "# text", "# empty =")
    assert comment(sentence, "text") == "Dogs bark"
    assert comment(sentence, "speaker") == "Ann = Bo"
    assert comment(sentence, "empty") == ""
    assert comment(sentence, "tex") is None
    assert comment(dogs("# text"), "text") is None


def test_comments_are_set() -> None:
    sentence = dogs("# a = 1", "# b = 2", "#a=3", "# a", "# ab = 4")
    assert with_comment(sentence, "a", "5").layout.comments == ("# b = 2", "# a", "# ab = 4", "# a = 5")
    assert with_first_comments(dogs("# b"), "# newpar", "# a = 1").layout.comments == ("# newpar", "# a = 1", "# b")
    assert sentence.layout.comments[0] == "# a = 1"


@pytest.mark.parametrize(
    ("line", "starts"),
    [
        ("# newpar", True),
        ("#newpar id = 3", True),
        ("# newdoc", True),
        ("# newpar_x", False),
        ("# text = newpar", False),
    ],
)
def test_paragraphs(line: str, starts: bool) -> None:
    assert starts_paragraph(dogs("# x", line)) is starts


def test_misc_entries() -> None:
    misc = "A=1|B=x=y|A=2|AB=3|C"
    assert [misc_entry(misc, name) for name in ("A", "B", "C", "D")] == ["2", "x=y", None, None]
    assert misc_entry("_", "A") is None
    assert with_misc_entries(misc, A="9", B=None) == "AB=3|C|A=9"
    assert with_misc_entries("_", A="1", B="2") == "A=1|B=2"
    assert with_misc_entries("A=1", A=None) == "_"


def test_multiword_tokens_and_spaces() -> None:
    (sentence,) = read_treebank(io.StringIO(CONTRACTED))
    assert list(multiword_tokens(sentence)) == [MultiwordToken(1, 2, "Don't", "X=y|SpaceAfter=No")]
    assert spaces_after(sentence) == [False, False, True, False]


@pytest.mark.parametrize(
    ("misc", "offsets"),
    [
        (("TokenRange=0:4", "SpaceAfter=No|TokenRange=5:9|X=y"), ((0, 4), (5, 9))),
        (("TokenRange=0:4", "_"), None),
        (("TokenRange=0:4", "NoTokenRange=5:9"), None),
        (("TokenRange=0:4", "TokenRange=5"), None),
    ],
)
def test_offsets_of_a_file(misc: tuple[str, ...], offsets: tuple[tuple[int, int], ...] | None) -> None:
    sentence = dogs(misc=misc)
    assert offsets_of(sentence) == offsets
    assert offsets_of(next(read_treebank(io.StringIO(sentence.to_conllu())))) == offsets
    assert next(read_treebank(io.StringIO(sentence.to_conllu()))).to_conllu() == sentence.to_conllu()


def made_from_text() -> Sentence:
    return sentence_from_tokens(
        [Token("Don't", ("Do", "n't"), False), Token(",", (",",), True)], ((7, 9), (9, 12), (12, 13))
    )


def test_offsets_are_written_as_misc() -> None:
    sentence = made_from_text()
    assert offsets_of(sentence) == ((7, 9), (9, 12), (12, 13))
    assert sentence.layout.misc == ("_", "_", "_")
    assert sentence.to_conllu().split("\n")[1:5] == [
        "1-2\tDon't" + "\t_" * 7 + "\tSpaceAfter=No|TokenRange=7:12",
        "1\tDo" + "\t_" * 7 + "\tTokenRange=7:9",
        "2\tn't" + "\t_" * 7 + "\tTokenRange=9:12",
        "3\t," + "\t_" * 7 + "\tTokenRange=12:13",
    ]
    assert "TokenRange" not in sentence.to_conllx()


def test_offsets_stay_before_probabilities() -> None:
    sentence = with_head_probabilities(made_from_text(), np.array([1.0, 0.5, 0.75, 1.0]), unsure_below=0.6)
    misc = [line.rpartition("\t")[2] for line in sentence.to_conllu().split("\n")[1:5]]
    assert misc == [
        "SpaceAfter=No|TokenRange=7:12",
        "TokenRange=7:9|Unsure=Yes|HeadProbability=0.5000",
        "TokenRange=9:12|HeadProbability=0.7500",
        "TokenRange=12:13|HeadProbability=1.0000",
    ]
    assert offsets_of(sentence) == offsets_of(made_from_text())


def test_probabilities_are_written_and_read() -> None:
    probabilities = np.array([1.0, 0.93121, 0.25])
    sentence = with_head_probabilities(dogs(misc=("HeadProbability=0.1|X=y|Unsure=Yes", "_")), probabilities)
    assert sentence.layout.misc == ("X=y|HeadProbability=0.9312", "HeadProbability=0.2500")
    np.testing.assert_array_equal(head_probabilities(sentence), [1.0, 0.9312, 0.25])  # type: ignore[arg-type]
    marked = with_head_probabilities(sentence, probabilities, unsure_below=0.5, only_unsure=True)
    assert marked.layout.misc == ("X=y", "Unsure=Yes|HeadProbability=0.2500")
    assert head_probabilities(marked) is None


def test_columns_of_conllx_are_no_misc() -> None:
    row = "1\tGo\t_\t_\t_\t_\t0\troot\t0\tHeadProbability=0.5\n"
    (sentence,) = read_treebank(io.StringIO(row), format="conllx")
    assert head_probabilities(sentence) is None
    noted = with_head_probabilities(sentence, np.array([1.0, 0.25]))
    assert noted.to_conllu() == "1\tGo\t_\t_\t_\t_\t0\troot\t_\tHeadProbability=0.2500\n\n"


@pytest.mark.parametrize("value", ["x", "1.1", "-0.1", "nan", ""])
def test_probabilities_that_are_none(value: str) -> None:
    row = f"1\tGo\t_\t_\t_\t_\t0\troot\t_\tHeadProbability={value}\n"
    (sentence,) = read_treebank(io.StringIO(row))
    with pytest.raises(TreebankError, match=r"stream, line 1: a HeadProbability is .*; expected a number from 0 to 1"):
        head_probabilities(sentence)
