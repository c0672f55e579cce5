"""What a drawing says: arcs, probabilities, right and wrong arcs, and the words for those who cannot see it."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headway as hw
from headway.drawing import agreement, comparison_drawing, palette, tree_drawing
from headway.drawing.primitives import Drawing, Group, Path, Text, mixed
from headway.drawing.text_width import columns, cut, text_width
from headway.errors import ArgumentError, EvaluationError, ScoresError, ShapeError, TreebankError
from headway.treebank import Sentence
from tests.drawing.strategies import probabilities, sentences
from tests.evaluation.strategies import Tree, tree_pairs

DOGS = Sentence.from_words(
    ["Dogs", "bark", "loudly"],
    upos=["NOUN", "VERB", "ADV"],
    heads=[-1, 2, 0, 2],
    labels=[None, "nsubj", "root", "advmod"],
)


def groups(drawing: Drawing) -> list[Group]:
    return [mark for mark in drawing.marks if isinstance(mark, Group)]


def texts(drawing: Drawing) -> list[str]:
    return [mark.text for mark in drawing.flat() if isinstance(mark, Text)]


def path_of(group: Group) -> Path:
    (path,) = (mark for mark in group.marks if isinstance(mark, Path))
    return path


def test_words_tags_and_labels_are_written_once() -> None:
    drawing = tree_drawing(DOGS)
    assert sorted(texts(drawing)) == sorted([*DOGS.forms, *DOGS.upos, "nsubj", "root", "advmod"])
    assert [group.title for group in groups(drawing)] == ["Dogs: nsubj of bark", "bark: root", "loudly: advmod of bark"]
    assert drawing.title == "Dependency tree: Dogs bark loudly"
    assert drawing.description == "Dogs: nsubj of bark. bark: root. loudly: advmod of bark."


def test_what_is_not_there_is_not_written() -> None:
    plain = Sentence.from_words(["Dogs", "bark"], heads=[-1, 2, 0])
    assert texts(tree_drawing(plain)) == ["Dogs", "bark"]
    assert [group.title for group in groups(tree_drawing(plain))] == ["Dogs: under bark", "bark: root"]
    assert tree_drawing(plain).height < tree_drawing(DOGS).height


def test_a_sentence_without_a_tree_cannot_be_drawn() -> None:
    with pytest.raises(TreebankError, match="sentence in memory: the sentence has no heads to draw; parse it first"):
        tree_drawing(Sentence.from_words(["Dogs"]))


@given(st.data(), st.floats(0, 1))
def test_arcs_are_shaded_by_probability_and_dashed_below_the_threshold(data: st.DataObject, threshold: float) -> None:
    sentence = data.draw(sentences())
    p = data.draw(probabilities(len(sentence)))
    drawing = tree_drawing(sentence, probabilities=p, unsure_below=threshold)
    assert len(groups(drawing)) == len(sentence)
    for group, each in zip(groups(drawing), p[1:], strict=True):
        path, marked = path_of(group), f"{each:.2f}"
        assert (path.dash is not None) == (each < threshold)
        assert group.title.endswith(f" ({marked})")
        labels = [mark.text for mark in group.marks if isinstance(mark, Text)]
        assert any(label.split()[-1] == marked for label in labels) == (each < threshold)
    assert "probability of the head:" in texts(drawing)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, np.nan])
def test_what_is_no_threshold_is_refused(wrong: float) -> None:
    for p in (None, [1, 0.5, 0.5, 0.5]):
        with pytest.raises(ArgumentError, match=f"unsure_below is {wrong}; expected a probability"):
            tree_drawing(DOGS, probabilities=p, unsure_below=wrong)


@pytest.mark.parametrize("wrong", [0, -1.0, np.nan])
def test_what_is_no_width_is_refused(wrong: float) -> None:
    for draw in (tree_drawing, partial(comparison_drawing, DOGS)):
        with pytest.raises(ArgumentError, match=f"width is {wrong}; expected a number of pixels above 0, or None"):
            draw(DOGS, width=wrong)


def test_a_surer_arc_is_darker() -> None:
    found = [path_of(groups(tree_drawing(DOGS, probabilities=[1, p, 1, 1]))[0]) for p in (0.5, 0.75, 1.0)]
    assert [sum(bytes.fromhex(path.colour[1:])) for path in found] == sorted(
        (sum(bytes.fromhex(path.colour[1:])) for path in found), reverse=True
    )
    assert len({path.colour for path in found}) == 3
    assert found[0].width < found[2].width


@pytest.mark.parametrize(
    ("p", "error", "words"),
    [
        ([1, 1], ShapeError, r"shape \(2,\); expected \(4,\)"),
        ([1, 1, 1.1, 1], ScoresError, r"probabilities\[2\] is 1.1"),
        ([1, 1, 1, np.nan], ScoresError, r"probabilities\[3\] is nan"),
    ],
)
def test_what_is_no_probability_is_refused(p: list[float], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        tree_drawing(DOGS, probabilities=p)


def test_the_roots_entry_is_not_looked_at() -> None:
    p = [np.nan, 1, 1, 1]
    assert tree_drawing(DOGS, probabilities=p) == tree_drawing(DOGS, probabilities=np.ones(4))


@given(tree_pairs())
def test_the_counts_are_those_of_evaluate(pair: tuple[Tree, Tree]) -> None:
    gold, predicted = (tree.sentence() for tree in pair)
    counts, scores = agreement(gold, predicted), hw.evaluate([gold], [predicted]).per_sentence
    found = (counts.words, counts.heads, counts.labels, counts.both)
    assert found == tuple(int(each[0]) for each in (scores.words, scores.heads, scores.labels, scores.arcs))
    drawing = comparison_drawing(gold, predicted)
    assert str(counts) in texts(drawing)
    assert drawing.description.endswith(f"{counts}.")
    titles = [group.title.split(": ")[0] for group in groups(drawing) if group.title.split(": ")[0] in KINDS]
    assert titles.count("wrong") == titles.count("missed") == counts.words - counts.heads
    assert titles.count("wrong label") == counts.heads - counts.both
    assert len(groups(drawing)) == 2 * counts.words - counts.heads


KINDS = ("wrong", "missed", "wrong label")


def test_wrong_arcs_are_red_above_and_missed_ones_blue_below() -> None:
    predicted = DOGS.with_tree([-1, 0, 1, 2], [None, "root", "obj", "obl"])
    drawing = comparison_drawing(DOGS, predicted)
    found = {group.title: path_of(group) for group in groups(drawing)}
    assert list(found) == [
        "wrong: Dogs: root",
        "wrong: bark: obj of Dogs",
        "wrong label: loudly: obl of bark, not advmod",
        "missed: Dogs: nsubj of bark",
        "missed: bark: root",
    ]
    words = {mark.text: mark for mark in drawing.flat() if isinstance(mark, Text)}
    for title, path in found.items():
        kind = title.partition(":")[0]
        above = all(segment.to[1] < words["Dogs"].y for segment in path.segments)
        below = all(segment.to[1] > words["NOUN"].y for segment in path.segments)
        assert (above, below) == ((False, True) if kind == "missed" else (True, False))
        assert path.colour == {"wrong": palette.WRONG, "missed": palette.MISSED, "wrong label": palette.RIGHT}[kind]
    assert words["obl [advmod]"].colour == palette.WRONG
    assert "of 3 words right: heads 1, labels 0, both 0" in words


def test_right_trees_are_grey_and_have_nothing_below() -> None:
    drawing = comparison_drawing(DOGS, DOGS)
    assert {path_of(group).colour for group in groups(drawing)} == {palette.RIGHT}
    assert "of 3 words right: heads 3, labels 3, both 3" in texts(drawing)


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["Dogs", "bark"], "3 gold words, but 2 predicted words"),
        (["Dogs", "Bark", "loudly"], "word 2 is 'bark' in gold"),
    ],
)
def test_other_words_cannot_be_compared(words: list[str], cause: str) -> None:
    other = Sentence.from_words(words, heads=[-1, *range(len(words))])
    with pytest.raises(EvaluationError, match=f"{cause}.*; draw two trees of the same words"):
        comparison_drawing(DOGS, other)


def test_widths_of_texts() -> None:
    assert text_width("iii", 10) < text_width("nnn", 10) < text_width("WWW", 10)
    assert text_width("étê", 12) == text_width("ete", 12) == text_width("e\u0301te\u0302", 12)
    assert text_width("犬", 10) == 2 * text_width("x", 10)
    assert text_width("", 10) == text_width("\u200b", 10) == 0
    assert text_width("dog", 10, bold=True) > text_width("dog", 10)
    assert [columns(text) for text in ("", "dog", "犬が", "e\u0301")] == [0, 3, 4, 1]


@given(st.text(max_size=12), st.integers(3, 8))
def test_a_cut_text_fits(text: str, most: int) -> None:
    found = cut(text, most)
    assert columns(found) <= most
    assert found == text if columns(text) <= most else text.startswith(found.removesuffix("…"))


def test_mixed_colours_go_from_one_to_the_other() -> None:
    assert [mixed("#102030", "#506070", share) for share in (-1, 0, 0.5, 1, 2)] == [
        *["#102030"] * 2,
        "#304050",
        *["#506070"] * 2,
    ]
