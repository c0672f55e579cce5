"""The probabilities of all heads of all words as a table of shaded cells, one row per head and one column per modifier.

The cells of the sentence's own tree are outlined. Probabilities above 0.005, which two decimals can show, are written
in their cells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from headway.arrays import Floats
from headway.drawing import palette
from headway.drawing.primitives import Anchor, Drawing, Group, Mark, Rectangle, Text, mixed
from headway.drawing.text_width import cut, text_width
from headway.drawing.trees import name_of_node, require_heads
from headway.errors import ScoresError, ShapeError
from headway.treebank import Sentence

CELL = 30.0
SHOWN = 0.005
_WORD_SIZE, _NUMBER_SIZE, _CAPTION_SIZE = 12.0, 9.0, 11.0
_LONGEST_WORD = 24  # in columns of a terminal
_MARGIN = 14.0
_SPACE = 8.0
_SLOPE = 0.7072  # column titles are at 45 degrees
_SCALE_STEPS = 40
_SCALE = (160.0, 10.0)
_OUTLINED, _COLUMN = "the tree's arcs", "a column: one word's heads"


def heatmap_drawing(sentence: Sentence, marginals: ArrayLike) -> Drawing:
    """The table of P(head -> modifier), (n+1, n+1); the tree's cells are outlined if the sentence has a tree."""
    n = len(sentence)
    p = _marginals(marginals, n)
    names = ["ROOT", *(cut(form, _LONGEST_WORD) for form in sentence.forms)]
    sizes = [text_width(name, _WORD_SIZE) for name in names]
    left = _MARGIN + max(sizes) + _SPACE
    top = _MARGIN + max(sizes[1:], default=0.0) * _SLOPE + _WORD_SIZE + _SPACE
    marks: list[Mark | Group] = []
    for m in range(1, n + 1):
        x = left + (m - 0.5) * CELL
        marks.append(Text(x + 3, top - _SPACE, names[m], _WORD_SIZE, palette.WORD, anchor="start", rotation=-45.0))
    for h in range(n + 1):
        y = top + (h + 0.5) * CELL + 0.35 * _WORD_SIZE
        marks.append(Text(left - _SPACE, y, names[h], _WORD_SIZE, palette.WORD, anchor="end", bold=h == 0))
        for m in range(1, n + 1):
            marks.append(_cell(sentence, h, m, float(p[h, m]), left, top))
    if sentence.heads is not None:
        require_heads(sentence, sentence.heads)
        for m, h in enumerate(sentence.heads[1:].tolist(), start=1):
            x, y = left + (m - 1) * CELL, top + h * CELL
            marks.append(Rectangle(x + 1, y + 1, CELL - 2, CELL - 2, None, palette.OUTLINE, 2.0))
    bottom = top + (n + 1) * CELL
    legend, legend_width = _legend(left, bottom + 14, sentence.heads is not None)
    # A slanted title reaches beyond its column.
    reach = max(
        (left + (m - 0.5) * CELL + 3 + sizes[m] * _SLOPE + _WORD_SIZE / 2 for m in range(1, n + 1)), default=0.0
    )
    width = max(left + n * CELL, reach, left + legend_width) + _MARGIN
    text = " ".join(sentence.forms)
    title = f"Probabilities of heads: {text}" if text else "Probabilities of heads of an empty sentence"
    said = (f"{names[m]}: {name_of_node(sentence, h)} {p[h, m]:.2f}." for m, h in _likeliest(p))
    return Drawing(width, bottom + 14 + _SCALE[1] + 14 + _MARGIN, (*marks, *legend), title, " ".join(said))


def _marginals(values: ArrayLike, n: int) -> Floats:
    p = np.asarray(values, dtype=np.float64)
    if p.shape != (n + 1, n + 1):
        raise ShapeError(f"the marginals have shape {p.shape}; expected ({n + 1}, {n + 1}) for {n} words")
    wrong = ~((p >= -1e-6) & (p <= 1 + 1e-6))
    wrong[:, 0] = False
    np.fill_diagonal(wrong, False)
    if wrong.any():
        h, m = np.argwhere(wrong)[0].tolist()
        raise ScoresError(f"marginals[{h}, {m}] is {p[h, m]}; expected a number from 0 to 1")
    return p


def _likeliest(p: Floats) -> list[tuple[int, int]]:
    """Each word with its most probable head."""
    others = p.copy()
    np.fill_diagonal(others, -1.0)
    return [(m, int(np.argmax(others[:, m]))) for m in range(1, len(p))]


def _cell(sentence: Sentence, h: int, m: int, p: float, left: float, top: float) -> Group:
    x, y = left + (m - 1) * CELL, top + h * CELL
    if h == m:
        return Group("no word is its own head", (Rectangle(x, y, CELL, CELL, palette.NO_CELL, palette.GRID, 0.75),))
    title = f"{name_of_node(sentence, h)} → {name_of_node(sentence, m)}: {p:.4f}"
    square = Rectangle(x, y, CELL, CELL, shade(p), palette.GRID, 0.75)
    if p <= SHOWN:
        return Group(title, (square,))
    colour = "#ffffff" if p > 0.6 else palette.WORD
    middle = (x + CELL / 2, y + CELL / 2 + 0.35 * _NUMBER_SIZE)
    return Group(title, (square, Text(*middle, f"{p:.2f}", _NUMBER_SIZE, colour)))


def shade(p: float) -> str:
    """The colour of a probability, from white through blue to almost black.

    >>> shade(0), shade(1)
    ('#ffffff', '#08306b')
    """
    steps = len(palette.CELLS) - 1
    place = min(max(p, 0.0), 1.0) * steps
    step = min(int(place), steps - 1)
    return mixed(palette.CELLS[step], palette.CELLS[step + 1], place - step)


def _legend(x: float, y: float, has_tree: bool) -> tuple[list[Mark], float]:
    """The scale of colours and the meaning of the outline; the marks and their width."""
    marks: list[Mark] = []
    width, height = _SCALE
    step = width / _SCALE_STEPS
    for i in range(_SCALE_STEPS):
        marks.append(Rectangle(x + i * step, y, step + 0.3, height, shade((i + 0.5) / _SCALE_STEPS)))
    marks.append(Rectangle(x, y, width, height, None, palette.TAG, 0.5))
    below = y + height + 12
    ends: tuple[tuple[float, Anchor], ...] = ((0.0, "start"), (0.5, "middle"), (1.0, "end"))
    for share, anchor in ends:
        marks.append(Text(x + share * width, below, f"{share:g}", 9.0, palette.CAPTION, anchor=anchor))
    start = x + width + 20
    if has_tree:
        marks.append(Rectangle(start, y - 1, 12, 12, None, palette.OUTLINE, 2.0))
        marks.append(Text(start + 18, y + 9, _OUTLINED, _CAPTION_SIZE, palette.CAPTION, anchor="start"))
    marks.append(Text(start, y + 9 + 16 * has_tree, _COLUMN, _CAPTION_SIZE, palette.CAPTION, anchor="start"))
    return marks, width + 20 + text_width(_COLUMN, _CAPTION_SIZE)
