"""Long sentences in rows: every word once, rows no wider than asked, arcs that go on where they left off."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.drawing import comparison_drawing, to_svg, tree_drawing
from headway.drawing.primitives import Drawing, Group, Path, Polygon, Text
from headway.drawing.trees import MARGIN, WORD_SIZE
from headway.treebank import Sentence
from tests.drawing.geometry import Box, box, meets, pieces
from tests.drawing.strategies import sentences

LABELS = ("nsubj", "obj", "compound:prt", "det")


def tree(n: int, seed: int) -> Sentence:
    """Arcs of all lengths, some of which cross several rows."""
    rng = random.Random(seed)
    heads = [-1, 0, *(rng.choice([m - 1, 1, rng.randrange(1, m)]) for m in range(2, n + 1))]
    labels = [None, "root", *(rng.choice(LABELS) for _ in range(n - 1))]
    return Sentence.from_words([f"word{m}" for m in range(1, n + 1)], upos=["NOUN"] * n, heads=heads, labels=labels)


def groups(drawing: Drawing) -> list[Group]:
    return [mark for mark in drawing.marks if isinstance(mark, Group)]


def words(drawing: Drawing) -> list[Text]:
    return [mark for mark in drawing.marks if isinstance(mark, Text) and mark.size == WORD_SIZE]


def rows(drawing: Drawing) -> list[list[Text]]:
    """The words by their baseline, from top to bottom."""
    lines: dict[float, list[Text]] = {}
    for word in words(drawing):
        lines.setdefault(round(word.y, 2), []).append(word)
    return [lines[y] for y in sorted(lines)]


@pytest.mark.parametrize("width", [300.0, 700.0, 1600.0])
@pytest.mark.parametrize("seed", range(3))
def test_every_word_stands_once_in_order_in_rows_of_that_width(width: float, seed: int) -> None:
    sentence = tree(60, seed)
    drawing = tree_drawing(sentence, width=width)
    found = rows(drawing)
    assert [word.text for row in found for word in row] == list(sentence.forms)
    assert all(a.x < b.x for row in found for a, b in pairwise(row))
    assert drawing.width <= width < tree_drawing(sentence).width
    assert drawing.height > tree_drawing(sentence).height
    assert len(found[-1]) >= min(map(len, found)) > 1
    assert len(groups(drawing)) == len(sentence)
    assert drawing.description == tree_drawing(sentence).description


@given(sentences(max_words=12), st.sampled_from([1.0, 150.0, 400.0]))
@settings(max_examples=40)
def test_nothing_is_written_over_anything_else(sentence: Sentence, width: float) -> None:
    drawing = tree_drawing(sentence, width=width)
    sheet = Box(0, 0, drawing.width, drawing.height)
    letters = [box(mark) for mark in drawing.flat() if isinstance(mark, Text)]
    assert all(sheet.holds(each) for each in letters)
    for a, one in enumerate(letters):
        assert not any(one.overlaps(other) for other in letters[:a])
    for group in groups(drawing):
        own = [box(mark) for mark in group.marks if isinstance(mark, Text)]
        for path in (mark for mark in group.marks if isinstance(mark, Path)):
            for piece in pieces(path):
                assert not any(meets(piece, each) for each in letters if each not in own)


@pytest.mark.parametrize("seed", range(4))
def test_arcs_go_on_where_they_left_off(seed: int) -> None:
    """Towards every edge, arcs come in the same order from top to bottom on both of its sides."""
    drawing = tree_drawing(tree(50, seed), width=500.0)
    count = len(rows(drawing))
    assert count > 3
    bases = [row[0].y for row in rows(drawing)]
    leaving: list[list[tuple[float, str]]] = [[] for _ in range(count)]
    coming: list[list[tuple[float, str]]] = [[] for _ in range(count)]
    for group in groups(drawing):
        arrows = [mark for mark in group.marks if isinstance(mark, Polygon)]
        assert len(arrows) == 1  # however many rows the arc crosses
        for path in (mark for mark in group.marks if isinstance(mark, Path)):
            ends = [point for piece in pieces(path) for point in piece]
            row = next(i for i, base in enumerate(bases) if max(y for _, y in ends) < base)
            for x, y in ends:
                if x < MARGIN / 2:
                    coming[row].append((y, group.title))
                if x > drawing.width - MARGIN / 2:
                    leaving[row].append((y, group.title))
    assert leaving[-1] == coming[0] == []
    for before, after in zip(leaving, coming[1:], strict=False):
        assert before
        assert [title for _, title in sorted(before)] == [title for _, title in sorted(after)]


def test_a_sentence_that_fits_is_drawn_as_without_a_width() -> None:
    sentence = tree(8, 0)
    plain = tree_drawing(sentence)
    assert to_svg(tree_drawing(sentence, width=plain.width)) == to_svg(plain)
    assert len(rows(tree_drawing(sentence, width=plain.width - 1))) == 2
    assert len(rows(tree_drawing(sentence, width=1.0))) == 8
    assert tree_drawing(Sentence.from_words([], heads=[-1]), width=10.0).width > 0


def test_comparisons_are_wrapped_too() -> None:
    gold = tree(40, 1)
    predicted = tree(40, 2)
    drawing = comparison_drawing(gold, predicted, width=600.0)
    assert drawing.width <= 600
    assert [word.text for row in rows(drawing) for word in row] == list(gold.forms)
    titles = [group.title for group in groups(comparison_drawing(gold, predicted))]
    assert [group.title for group in groups(drawing)] == titles
