"""Trees as text. The oracle is a decoder: it follows the drawn lines, character by character, back to the heads."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.drawing import tree_text
from headway.drawing.text_width import columns
from headway.errors import ShapeError, TreebankError
from headway.treebank import Sentence
from tests.drawing.strategies import probabilities, sentences

DOWN, UP, BOTH = "┌┬.", "└┴'", "├┼+"
DOGS = Sentence.from_words(
    ["Dogs", "bark", "loudly"],
    upos=["NOUN", "VERB", "ADV"],
    heads=[-1, 2, 0, 2],
    labels=[None, "nsubj", "root", "advmod"],
)


def decoded(lines: list[str]) -> list[int]:
    """The heads of words 1..n, from the lines alone: find the arrow, the joint behind it, and follow its line."""
    heads = []
    for row, line in enumerate(lines):
        tip = max(line.find("►"), line.find(">"))
        assert tip >= 0
        joint = next((i for i in range(tip - 1, -1, -1) if line[i] in DOWN + UP + BOTH), None)
        if joint is None:
            assert line.lstrip()[0] in "═=►>"
            heads.append(0)
            continue
        assert line[joint] not in BOTH  # an arrow stands for one arc
        step = 1 if line[joint] in DOWN else -1
        end = row + step
        while lines[end][joint] not in BOTH + (UP if step > 0 else DOWN):
            assert lines[end][joint] in "│|"
            end += step
        heads.append(end + 1)
    return heads


def arcs_only(text: str, sentence: Sentence) -> list[str]:
    """What stands before the words; all forms are the same letter, which no arc is drawn with."""
    lines = text.split("\n") if len(sentence) else []
    assert len(lines) == len(sentence)
    return [line.partition("w")[0] for line in lines]


@given(sentences(max_words=12), st.booleans())
def test_the_lines_lead_back_to_the_heads(sentence: Sentence, ascii: bool) -> None:
    assert sentence.heads is not None
    plain = Sentence.from_words(["w"] * len(sentence), heads=sentence.heads)
    lines = arcs_only(tree_text(plain, ascii=ascii), plain)
    assert decoded(lines) == sentence.heads[1:].tolist()
    assert len(set(map(len, lines))) <= 1
    if ascii:
        assert "".join(lines).isascii()


@given(sentences(max_words=12, kind="projective"))
def test_lines_of_a_projective_tree_do_not_cross(sentence: Sentence) -> None:
    plain = Sentence.from_words(["w"] * len(sentence), heads=sentence.heads)
    assert not re.search("[─═►]│", tree_text(plain))


@pytest.mark.parametrize("seed", range(4))
def test_sixty_words_fit_into_a_hundred_columns(seed: int) -> None:
    rng = random.Random(seed)
    heads = [-1, 0]
    for word in range(2, 61):  # mostly short arcs, as in language, and some that cross
        heads.append(rng.choice([word - 1, max(1, word - 2), max(1, word - 2 - rng.randrange(4))]))
    sentence = Sentence.from_words(["w"] * 60, heads=heads, labels=[None, *["nsubj:pass"] * 60])
    text = tree_text(sentence)
    assert max(map(columns, text.split("\n"))) <= 100
    assert decoded(arcs_only(text, sentence)) == heads[1:]


@given(sentences(max_words=12), st.integers(12, 30))
def test_too_wide_a_tree_is_an_indented_list_that_leads_back_to_the_heads(sentence: Sentence, width: int) -> None:
    assert sentence.heads is not None
    plain = Sentence.from_words(["w"] * len(sentence), heads=sentence.heads)
    text = tree_text(plain, width=width)
    if "►" in text or not text:
        assert all(columns(line) <= width for line in text.split("\n"))
        return
    heads, path = {}, {-1: 0}
    for line in text.split("\n"):
        match = re.fullmatch(r" *(\d+)( +)w(?: +under (\d+))?", line)
        assert match
        number, depth = int(match[1]), len(match[2]) - 1
        path[depth] = number
        heads[number] = int(match[3]) if match[3] else path[max((d for d in path if d < depth), default=-1)]
        path = {d: word for d, word in path.items() if d <= depth}
    assert [heads[m] for m in range(1, len(sentence) + 1)] == sentence.heads[1:].tolist()


def test_a_tree_looks_like_this() -> None:
    assert tree_text(DOGS).split("\n") == [
        "  ┌► Dogs    NOUN  nsubj",
        "═►┼─ bark    VERB  root",
        "  └► loudly  ADV   advmod",
    ]
    assert tree_text(DOGS, ascii=True).split("\n") == [
        "  .> Dogs    NOUN  nsubj",
        "=>+- bark    VERB  root",
        "  '> loudly  ADV   advmod",
    ]
    assert tree_text(DOGS, width=24).split("\n") == [
        "2 bark      VERB  root",
        "1   Dogs    NOUN  nsubj",
        "3   loudly  ADV   advmod",
    ]


def test_wide_characters_take_two_columns() -> None:
    sentence = Sentence.from_words(["犬", "e\u0301", "が"], heads=[-1, 0, 1, 1], labels=[None, "a", "b", "c"])
    lines = tree_text(sentence).split("\n")
    assert len({columns(line) for line in lines}) == 1


@given(st.data(), st.floats(0, 1))
def test_unsure_arcs_have_a_question_mark_and_a_percentage(data: st.DataObject, below: float) -> None:
    sentence = data.draw(sentences(max_words=6).filter(lambda sentence: len(sentence) > 0))
    p = data.draw(probabilities(len(sentence)))
    plain = tree_text(sentence).split("\n")
    marked = tree_text(sentence, probabilities=p, unsure_below=below).split("\n")
    every = tree_text(sentence, probabilities=p).split("\n")
    for line, with_mark, with_percentage, each in zip(plain, marked, every, p[1:], strict=True):
        assert with_mark.startswith(line)
        assert with_mark.removeprefix(line).strip() == (f"? {each:.0%}" if each < below else "")
        assert with_percentage.removeprefix(line).strip() == f"{each:.0%}"


@given(sentences(max_words=6), st.booleans())
def test_colours_are_only_added(sentence: Sentence, ascii: bool) -> None:
    coloured = tree_text(sentence, probabilities=[0.2] * (len(sentence) + 1), unsure_below=0.5, color=True, ascii=ascii)
    plain = tree_text(sentence, probabilities=[0.2] * (len(sentence) + 1), unsure_below=0.5, ascii=ascii)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain
    assert "\x1b" not in plain
    assert ("\x1b" in coloured) == (len(sentence) > 0)


@given(sentences(max_words=4, wild=True), st.booleans())
def test_nothing_a_file_holds_can_steer_the_terminal(sentence: Sentence, ascii: bool) -> None:
    text = tree_text(sentence, ascii=ascii)
    assert text.count("\n") == max(0, len(sentence) - 1)
    assert all(c.isprintable() or c in "\n\u200c\u200d" for c in text)


def test_long_words_are_cut() -> None:
    sentence = Sentence.from_words(["x" * 500], heads=[-1, 0], labels=[None, "y" * 500])
    assert columns(tree_text(sentence)) < 70
    assert "..." in tree_text(sentence, ascii=True)


def test_what_cannot_be_drawn() -> None:
    assert tree_text(Sentence.from_words([], heads=[-1])) == ""
    with pytest.raises(TreebankError, match="no heads to draw"):
        tree_text(Sentence.from_words(["a"]))
    with pytest.raises(ShapeError, match="shape"):
        tree_text(DOGS, probabilities=[1.0])
