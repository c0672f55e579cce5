"""The heat map: a cell for every head of every word, numbers where they can be read, the tree outlined."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from headway.drawing import heatmap_drawing, palette
from headway.drawing.heatmap import CELL, shade
from headway.drawing.primitives import Drawing, Group, Rectangle, Text
from headway.errors import ScoresError, ShapeError
from headway.treebank import Sentence
from tests.drawing.strategies import sentences

WORDS = Sentence.from_words(["Dogs", "bark"], heads=[-1, 2, 0])
MARGINALS = np.array([[0.0, 0.1, 0.9], [0.0, 0.0, 0.004], [0.0, 0.896, 0.0]])


def cells(drawing: Drawing) -> dict[str, Group]:
    return {mark.title: mark for mark in drawing.marks if isinstance(mark, Group)}


def test_cells_have_the_shade_and_the_number_of_their_probability() -> None:
    found = cells(heatmap_drawing(WORDS, MARGINALS))
    expected = {
        "the root → Dogs: 0.1000": (0.1, "0.10"),
        "the root → bark: 0.9000": (0.9, "0.90"),
        "Dogs → bark: 0.0040": (0.004, None),
        "bark → Dogs: 0.8960": (0.896, "0.90"),
    }
    assert set(found) == {*expected, "no word is its own head"}
    for title, (p, number) in expected.items():
        square, *written = found[title].marks
        assert isinstance(square, Rectangle)
        assert square.fill == shade(p)
        assert [mark.text for mark in written if isinstance(mark, Text)] == ([] if number is None else [number])


def test_shades_get_darker() -> None:
    shades = [sum(bytes.fromhex(shade(p)[1:])) for p in np.linspace(0, 1, 101)]
    assert shades == sorted(shades, reverse=True)
    assert shade(-1) == shade(0)
    assert shade(2) == shade(1)


@given(sentences(max_words=6))
def test_heads_are_down_modifiers_across_and_the_tree_is_outlined(sentence: Sentence) -> None:
    n = len(sentence)
    rng = np.random.default_rng(n)
    marginals = rng.random((n + 1, n + 1))
    drawing = heatmap_drawing(sentence, marginals)
    squares = [mark.marks[0] for mark in drawing.marks if isinstance(mark, Group)]
    assert len(squares) == n * (n + 1)
    corner = min(((s.x, s.y) for s in squares if isinstance(s, Rectangle)), default=(0.0, 0.0))
    shaded = {}
    for square in squares:
        assert isinstance(square, Rectangle)
        shaded[round((square.y - corner[1]) / CELL), 1 + round((square.x - corner[0]) / CELL)] = square.fill
    assert shaded == {
        (h, m): palette.NO_CELL if h == m else shade(marginals[h, m]) for h in range(n + 1) for m in range(1, n + 1)
    }
    outlines = [
        (round((mark.y - 1 - corner[1]) / CELL), 1 + round((mark.x - 1 - corner[0]) / CELL))
        for mark in drawing.marks
        if isinstance(mark, Rectangle) and mark.stroke == palette.OUTLINE and mark.width == CELL - 2
    ]
    assert sentence.heads is not None
    assert outlines == [(h, m) for m, h in enumerate(sentence.heads.tolist()) if m]


def test_without_a_tree_nothing_is_outlined() -> None:
    drawing = heatmap_drawing(Sentence.from_words(["Dogs", "bark"]), MARGINALS)
    assert not any(isinstance(mark, Rectangle) and mark.stroke == palette.OUTLINE for mark in drawing.flat())
    assert "the tree's arcs" not in [mark.text for mark in drawing.flat() if isinstance(mark, Text)]


def test_it_says_the_likeliest_heads_in_words() -> None:
    assert heatmap_drawing(WORDS, MARGINALS).description == "Dogs: bark 0.90. bark: the root 0.90."


def test_long_words_are_cut() -> None:
    sentence = Sentence.from_words(["x" * 500], heads=[-1, 0])
    assert heatmap_drawing(sentence, np.ones((2, 2))).width < 600


def test_what_are_no_marginals_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"shape \(2, 2\); expected \(3, 3\) for 2 words"):
        heatmap_drawing(WORDS, np.ones((2, 2)))
    with pytest.raises(ScoresError, match=r"marginals\[0, 2\] is 1.9"):
        heatmap_drawing(WORDS, MARGINALS + np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]]))


def test_the_first_column_and_the_diagonal_are_not_looked_at() -> None:
    unused = MARGINALS.copy()
    unused[:, 0] = np.nan
    np.fill_diagonal(unused, np.nan)
    assert heatmap_drawing(WORDS, unused).marks == heatmap_drawing(WORDS, MARGINALS).marks
