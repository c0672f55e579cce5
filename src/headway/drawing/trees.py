"""The tree of a sentence as a drawing, or two of its trees, gold and predicted, in one drawing.

Words are on a line, with their tags below and arcs above. `tree_drawing` shades arcs by their probabilities, if given;
`comparison_drawing` has the predicted arcs above the words and the gold arcs that were missed below.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headway.arrays import Floats, Ints
from headway.drawing import palette
from headway.drawing.arcs import LABEL_SIZE, Edges, Style, arc_marks, height
from headway.drawing.layout import Arc
from headway.drawing.primitives import Drawing, Group, Line, Mark, Move, Path, Text, mixed
from headway.drawing.rows import Piece, Row, in_rows
from headway.drawing.text_width import text_width
from headway.errors import ArgumentError, ScoresError, ShapeError
from headway.evaluation.pairing import require_same_words
from headway.treebank import Sentence

WORD_SIZE = 15.0
TAG_SIZE = 9.5
CAPTION_SIZE = 11.0
MARGIN = 14.0
ROW_SPACE = 12.0  # between two rows of a long sentence
_EDGE = 3.0  # from the edge of the sheet to an arc that goes on in another row
_WORD_HEIGHT = 19.0  # from the arcs above to the baseline of the words
_WORD_DEPTH = 5.0  # from the baseline to the tags, or to the arcs below
_TAG_HEIGHT = 12.0
_LEGEND_ROW = 18.0
_SAMPLE_LINE, _SAMPLE_SPACE = 30.0, 18.0
_PRINT_LINE = 520.0
_ARC_WIDTH = 1.25
_DASH = (4.0, 3.0)


@dataclass(frozen=True, slots=True)
class DrawnArc:
    """An arc to draw: its words, its label, its style, and a description in words."""

    head: int
    modifier: int
    label: str
    style: Style
    title: str


@dataclass(frozen=True, slots=True)
class Sample:
    """One entry of a legend; without a style, only text."""

    text: str
    style: Style | None = None
    is_statement: bool = False  # about the tree rather than the drawing


def tree_drawing(
    sentence: Sentence,
    *,
    probabilities: ArrayLike | None = None,
    unsure_below: float = 0.7,
    width: float | None = None,
) -> Drawing:
    """The sentence's tree; a sentence wider than `width` pixels is wrapped into rows.

    With `probabilities`, (n+1,) by modifier (the first entry is ignored), less probable arcs are paler; those below
    `unsure_below` are dashed and marked with their probability.

    >>> drawing = tree_drawing(Sentence.from_words(["Dogs", "bark"], heads=[-1, 2, 0], labels=[None, "nsubj", "root"]))
    >>> drawing.description
    'Dogs: nsubj of bark. bark: root.'
    """
    if not 0 <= unsure_below <= 1:
        raise ArgumentError(f"unsure_below is {unsure_below!r}; expected a probability, from 0 to 1")
    heads, labels = tree_of(sentence)
    plain = Style(palette.ARC, _ARC_WIDTH, palette.LABEL)
    if probabilities is None:
        arcs = [_drawn(sentence, heads, labels, m, plain) for m in range(1, len(heads))]
        return _drawing(sentence, arcs, (), [], "Dependency tree", width)
    p = arc_probabilities(probabilities, len(sentence)).tolist()
    arcs = [_shaded(sentence, heads, labels, m, p[m], unsure_below) for m in range(1, len(heads))]
    legend, name = _probability_legend(unsure_below), "Dependency tree with probabilities"
    return _drawing(sentence, arcs, (), legend, name, width)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many of the words have the right head, the right label, and both, as `headway.evaluate` counts them."""

    words: int
    heads: int
    labels: int
    both: int

    def __str__(self) -> str:
        shares = (("heads", self.heads), ("labels", self.labels), ("both", self.both))
        return f"of {self.words} words right: " + ", ".join(f"{name} {count}" for name, count in shares)


def agreement(gold: Sentence, predicted: Sentence) -> Agreement:
    """How many heads and labels of a prediction are right.

    >>> one = Sentence.from_words(["Dogs", "bark"], heads=[-1, 2, 0], labels=[None, "nsubj", "root"])
    >>> print(agreement(one, one.with_tree([-1, 2, 0], [None, "obj", "root"])))
    of 2 words right: heads 2, labels 1, both 1
    """
    require_same_words(gold, predicted, "draw two trees of the same words")
    (heads, labels), (other_heads, other_labels) = tree_of(gold), tree_of(predicted)
    right_heads = [a == b for a, b in zip(heads[1:], other_heads[1:], strict=True)]
    right_labels = [a == b for a, b in zip(labels[1:], other_labels[1:], strict=True)]
    both = [a and b for a, b in zip(right_heads, right_labels, strict=True)]
    return Agreement(len(gold), sum(right_heads), sum(right_labels), sum(both))


def comparison_drawing(gold: Sentence, predicted: Sentence, *, width: float | None = None) -> Drawing:
    """Two trees of the same words: right arcs are grey, wrong ones red, and missed gold arcs blue, below the words.

    If only the label is wrong, the gold label follows it in brackets. The caption has the counts of `agreement`. A
    sentence wider than `width` pixels is wrapped into rows.
    """
    counts = agreement(gold, predicted)
    (gold_heads, gold_labels), (heads, labels) = tree_of(gold), tree_of(predicted)
    right = Style(palette.RIGHT, _ARC_WIDTH, palette.TAG)
    wrong_label = Style(palette.RIGHT, _ARC_WIDTH, palette.WRONG, bold=True)
    wrong = Style(palette.WRONG, 1.5, palette.WRONG, bold=True)
    missed = Style(palette.MISSED, 1.5, palette.MISSED, dash=_DASH)
    above, below = [], []
    for m in range(1, len(heads)):
        if heads[m] != gold_heads[m]:
            above.append(_drawn(predicted, heads, labels, m, wrong, "wrong: "))
            below.append(_drawn(gold, gold_heads, gold_labels, m, missed, "missed: "))
        elif labels[m] != gold_labels[m]:
            both = f"{labels[m]} [{gold_labels[m]}]"
            arc = _drawn(predicted, heads, labels, m, wrong_label, "wrong label: ")
            above.append(DrawnArc(arc.head, m, both, arc.style, f"{arc.title}, not {gold_labels[m]}"))
        else:
            above.append(_drawn(predicted, heads, labels, m, right))
    legend = [
        Sample("right", right),
        Sample("wrong", wrong),
        Sample("missed gold arc", missed),
        *([Sample("wrong label [gold label]", wrong_label)] if counts.both < counts.heads else []),
        Sample(str(counts), is_statement=True),
    ]
    return _drawing(predicted, above, below, legend, "Predicted dependency tree beside the gold tree", width)


def tree_of(sentence: Sentence) -> tuple[list[int], list[str]]:
    """Heads and labels by node, "" if there is no label. Cycles are drawn like anything else."""
    if sentence.heads is None:
        raise sentence.place.error("the sentence has no heads to draw; parse it first")
    require_heads(sentence, sentence.heads)
    labels = sentence.labels or (None,) * (len(sentence) + 1)
    return sentence.heads.tolist(), ["" if label in (None, "_") else str(label) for label in labels]


def require_heads(sentence: Sentence, heads: Ints) -> None:
    """Refuse a sentence with unknown heads."""
    if heads[1:].min(initial=0) < 0:
        raise sentence.place.error("some words have no heads to draw; parse it first")


def arc_probabilities(values: ArrayLike, n: int) -> Floats:
    """The values as an array (n+1,), checked to be probabilities of the heads of n words."""
    p = np.asarray(values, dtype=np.float64)
    if p.shape != (n + 1,):
        raise ShapeError(f"the probabilities have shape {p.shape}; expected ({n + 1},), one for the root and each word")
    wrong = ~((p >= -1e-6) & (p <= 1 + 1e-6))
    wrong[0] = False
    if wrong.any():
        m = int(np.argmax(wrong))
        raise ScoresError(f"probabilities[{m}] is {p[m]}; expected a number from 0 to 1")
    return p


def name_of_node(sentence: Sentence, node: int) -> str:
    """The word, or "the root"."""
    return sentence.forms[node - 1] if node else "the root"


def _drawn(
    sentence: Sentence, heads: Sequence[int], labels: Sequence[str], m: int, style: Style, remark: str = ""
) -> DrawnArc:
    head, label = heads[m], labels[m]
    relation = f"{label} of" if label else "under"
    what = f"{relation} {name_of_node(sentence, head)}" if head else label or "root"
    return DrawnArc(head, m, label, style, f"{remark}{name_of_node(sentence, m)}: {what}")


def _shaded(
    sentence: Sentence, heads: Sequence[int], labels: Sequence[str], m: int, p: float, unsure_below: float
) -> DrawnArc:
    arc = _drawn(sentence, heads, labels, m, _probability_style(p, unsure_below))
    marked = f"{arc.label} {p:.2f}".lstrip() if p < unsure_below else arc.label
    return DrawnArc(arc.head, m, marked, arc.style, f"{arc.title} ({p:.2f})")


def _probability_style(p: float, unsure_below: float) -> Style:
    if p < unsure_below:
        return Style(palette.UNSURE, 1.5, palette.UNSURE, dash=_DASH)
    return Style(mixed(palette.PALE_ARC, palette.FULL_ARC, p), 1.0 + 0.6 * p, palette.LABEL)


def _probability_legend(unsure_below: float) -> list[Sample]:
    shown = [p for p in (1.0, 0.75, 0.5, 0.25) if p >= unsure_below]
    samples = [Sample(f"{p:g}", _probability_style(p, unsure_below)) for p in shown]
    if unsure_below > 0:
        samples.append(Sample(f"below {unsure_below:g}", _probability_style(-1.0, unsure_below)))
    return [Sample("probability of the head:"), *samples]


def _drawing(
    sentence: Sentence,
    above: Sequence[DrawnArc],
    below: Sequence[DrawnArc],
    legend: Sequence[Sample],
    name: str,
    most: float | None,
) -> Drawing:
    """Words, the arcs above and below them, and the legend, on a sheet large enough for all."""
    if most is not None and not most > 0:
        raise ArgumentError(f"width is {most!r}; expected a number of pixels above 0, or None for one row")
    has_tags = any(tag != "_" for tag in sentence.upos)
    widths = [
        max(text_width(form, WORD_SIZE), text_width(tag, TAG_SIZE) * has_tags)
        for form, tag in zip(sentence.forms, sentence.upos, strict=True)
    ]
    rows = in_rows(widths, _arcs(above), _arcs(below), margin=MARGIN, most=most)
    width = max(row.width for row in rows)
    arcs: list[list[Mark]] = [[] for _ in (*above, *below)]  # those above before those below, over all rows
    words: list[Text] = []
    end = MARGIN - ROW_SPACE
    for row in rows:
        top = end + ROW_SPACE + height(max((piece.placed.level for piece in row.above), default=0))
        baseline = top + _WORD_HEIGHT
        bottom = baseline + _WORD_DEPTH + _TAG_HEIGHT * has_tags
        end = bottom + height(max((piece.placed.level for piece in row.below), default=0))
        for side, pieces, base, up in ((above, row.above, top, -1), (below, row.below, bottom, 1)):
            for piece in pieces:
                arc, edges = side[piece.number], _edges(piece, width)
                place = piece.number if side is above else len(above) + piece.number
                arcs[place] += arc_marks(piece.placed, arc.label, arc.style, base, up, edges)
        words += _words(sentence, row, baseline, has_tags)
    groups = [Group(arc.title, tuple(own)) for arc, own in zip((*above, *below), arcs, strict=True)]
    entries, width, end = _legend(legend, width, end)
    text = " ".join(sentence.forms)
    said = [arc.title for arc in (*above, *below)] + [sample.text for sample in legend if sample.is_statement]
    description = " ".join(f"{part}." for part in said)
    title = f"{name}: {text}" if text else f"{name} of an empty sentence"
    return Drawing(width, end + MARGIN, (*groups, *words, *entries), title, description)


def _edges(piece: Piece, width: float) -> Edges:
    """Where an arc goes on in another row, on a sheet of this width."""
    left, right = _EDGE if piece.from_left else None, width - _EDGE if piece.to_right else None
    return Edges(left, right) if piece.placed.head_x < piece.placed.modifier_x else Edges(right, left)


def _arcs(drawn: Iterable[DrawnArc]) -> list[Arc]:
    return [Arc(arc.head, arc.modifier, text_width(arc.label, LABEL_SIZE, bold=arc.style.bold)) for arc in drawn]


def _words(sentence: Sentence, row: Row, baseline: float, has_tags: bool) -> list[Text]:
    marks = []
    own = slice(row.first - 1, row.first - 1 + len(row.words))
    for x, form, tag in zip(row.words, sentence.forms[own], sentence.upos[own], strict=True):
        marks.append(Text(x, baseline, form, WORD_SIZE, palette.WORD))
        if has_tags and tag != "_":
            marks.append(Text(x, baseline + _WORD_DEPTH + TAG_SIZE, tag, TAG_SIZE, palette.TAG))
    return marks


def _legend(samples: Sequence[Sample], width: float, y: float) -> tuple[list[Mark], float, float]:
    """The legend below the rest, in rows no wider than the drawing or a line of print; its marks, and the new size."""
    marks: list[Mark] = []
    if not samples:
        return marks, width, y
    widest, x = max(width, _PRINT_LINE), MARGIN
    y += _LEGEND_ROW + 4
    for sample in samples:
        line = _SAMPLE_LINE if sample.style else 0.0
        size = line + text_width(sample.text, CAPTION_SIZE)
        if x > MARGIN and x + size + MARGIN > widest:
            x, y = MARGIN, y + _LEGEND_ROW
        if sample.style:
            middle, style = y - 0.35 * CAPTION_SIZE, sample.style
            ends = Move((x, middle)), Line((x + line - 6, middle))
            marks.append(Path(ends, style.colour, style.width, style.dash))
        colour = sample.style.label_colour if sample.style else palette.CAPTION
        marks.append(Text(x + line, y, sample.text, CAPTION_SIZE, colour, anchor="start"))
        x += size + _SAMPLE_SPACE
        width = max(width, x - _SAMPLE_SPACE + MARGIN)
    return marks, width, y
