"""The latent tree over a document's mentions as a drawing, one block per cluster.

- A block reads like a file tree: one row per mention. What hangs below a mention follows it in the order of the text,
  one step further to the right, with a line from the antecedent. From `CAP` steps on, rows go no further to the right:
  there the next row stands right below its antecedent, and other lines run in lanes to the left of the rows. Lanes are
  nested as the rows are, so that no two lines cross or overlap.
- Blocks are in the order of their first mentions, in `columns`.
- Mentions that stand alone have no number; they are counted, or drawn after the clusters.

O(M log M) for M mentions.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from numpy.typing import ArrayLike

from headway.drawing import palette
from headway.drawing.columns import Block, Painted, painted
from headway.drawing.latent_tree import Cluster, LatentTree, MentionText, alone_text, latent_tree, plain_text, titles
from headway.drawing.primitives import (
    Drawing,
    Group,
    Line,
    Mark,
    Move,
    Path,
    Rectangle,
    Segment,
    Text,
    corner,
    disc,
    mixed,
)
from headway.drawing.text_width import text_width

TEXT_SIZE = 12.0
STEP = 13.0  # to the right of an antecedent
CAP = 8  # steps
_NUMBER_SIZE, _CHIP_SIZE, _CAPTION_SIZE = 9.0, 9.5, 11.0
_NUMBER_SPACE = 5.0  # between the number of a sentence and the mention
_MARGIN = 14.0
_ROW = 17.0
_PADDING = 5.0  # of a block
_BLOCK_SPACE = 8.0
_ROW_WIDTH = 285.0  # longer mentions are cut
_RAIL = 13.0  # from the left of a block to the line below its number
_EDGE, _PALE = 2.5, 0.07  # the width of a block's left edge, and how much of its colour the rest has
_CHIP_HEIGHT = 14.0
_DOT = 2.8
_LANE, _LANES = 5.0, 40.0  # from one lane to the next, and the most that all of them may take
_LAST_LANE = 7.0  # from the last lane to the dots
_BESIDE = 2.6  # from the line of a right arc to that of a wrong one
_CORNER = 4.0
_ARC_WIDTH, _WRONG_WIDTH, _WRONG_DASH = 1.2, 1.5, (3.0, 2.2)
_SLACK = {False: 1.14, True: 1.25}  # by bold: how much wider than Helvetica a font may be
_LEGEND_ROW, _SAMPLE, _SAMPLE_SPACE = 18.0, 26.0, 16.0
_PRINT_LINE = 520.0


def coreference_drawing(
    mentions: Sequence[MentionText], heads: ArrayLike, *, wrong: Collection[int] = (), singletons: bool = False
) -> Drawing:
    """The latent tree over a document's mentions.

    heads: (M+1,), mention i is node i+1; `heads[m] < m`, 0 if a mention starts a cluster.
    wrong: nodes whose arc from their head joins two clusters of the reference; these arcs are dashed.
    singletons: also draw the mentions that stand alone; otherwise they are only counted.

    >>> texts = [MentionText(0, 1, 2, "a dog"), MentionText(0, 5, 5, "rain"), MentionText(1, 1, 1, "it")]
    >>> drawing = coreference_drawing(texts, [-1, 0, 0, 1])
    >>> drawing.title
    'Coreference: 1 cluster of 2 mentions'
    >>> print(drawing.description)
    a dog (sentence 1): starts cluster 1 of 2 mentions. it (sentence 2): below a dog (sentence 1).
    + 1 mention that stands alone.
    """
    tree = latent_tree(heads, len(mentions), wrong)
    sheet, alone = _Sheet(tree, mentions), tree.alone()
    blocks = [sheet.block(cluster) for cluster in tree.numbered()]
    if singletons:
        blocks += [sheet.single(node, with_heading=node == alone[0]) for node in alone]
    grounds, rows, width, bottom = painted(blocks, _MARGIN)
    lines = [] if rows else ["no clusters of two or more mentions"] if mentions else ["no mentions"]
    if alone and not singletons:
        lines.append(alone_text(len(alone)))
    legend, width, bottom = _legend(_samples(tree, len(rows)), lines, width, bottom)
    description = " ".join(f"{part}." for part in (*(row.title for row in rows), *lines))
    marks = (*grounds, *rows, *legend)
    return Drawing(width, bottom + _MARGIN, marks, f"Coreference: {tree.counts()}", description)


@dataclass(frozen=True, slots=True)
class _Label:
    """The text in a row: the number of the sentence, and the mention, from `start` to `end` in the block."""

    number: str
    text: str
    start: float
    end: float
    bold: bool

    def marks(self, x: float, y: float, colour: str) -> tuple[Text, Text]:
        """In a block that begins at x, and a row whose middle is y."""
        return (
            Text(x + self.start - _NUMBER_SPACE, y + 3.6, self.number, _NUMBER_SIZE, palette.TAG, "end"),
            Text(x + self.start, y + 4.2, self.text, TEXT_SIZE, colour, "start", bold=self.bold),
        )


class _Sheet:
    """Makes the blocks of a drawing from a tree and its mentions."""

    def __init__(self, tree: LatentTree, mentions: Sequence[MentionText]) -> None:
        self._tree = tree
        self._titles = titles(tree, mentions)
        self._texts = ["", *map(plain_text, mentions)]
        self._sentences = ["", *(str(mention.sentence + 1) for mention in mentions)]
        self._number_width = max(map(len, self._sentences)) * text_width("0", _NUMBER_SIZE) * _SLACK[False]

    def block(self, cluster: Cluster) -> Block:
        """The rows of a cluster, with its number in the first."""
        first, *others = cluster.nodes
        places = _dot_places(cluster.nodes, self._tree.heads)
        labels = {first: self._label(first, _PADDING + _chip_width(cluster) + 4, bold=True)}
        for node in others:
            labels[node] = self._label(node, places[node].x + _DOT + 4)
        right = max(label.end for label in labels.values())
        height = 2 * _PADDING + _ROW * len(labels)

        def paint(x: float, y: float, width: float) -> Painted:
            ground = Rectangle(x, y, width, height, mixed("#ffffff", cluster.colour, _PALE))
            edge = Rectangle(x, y, _EDGE, height, cluster.colour)
            return [ground, edge], self._rows(cluster, places, labels, x, y + _PADDING)

        return Block(right + _PADDING, height, _BLOCK_SPACE, paint)

    def single(self, node: int, *, with_heading: bool) -> Block:
        """The row of a mention that stands alone."""
        label, heading = self._label(node, _PADDING), _ROW * with_heading

        def paint(x: float, y: float, width: float) -> Painted:
            row = Group(self._titles[node], label.marks(x, y + heading + _ROW / 2, palette.CAPTION))
            above = Text(x + _PADDING, y + _ROW / 2 + 4, "alone", _CAPTION_SIZE, palette.CAPTION, "start", bold=True)
            line = Rectangle(x, y, width, 0.8, palette.RIGHT)
            return [line, above] if with_heading else [], [row]

        return Block(label.end + _PADDING, heading + _ROW, _BLOCK_SPACE * with_heading, paint)

    def _rows(
        self, cluster: Cluster, places: Mapping[int, _DotPlace], labels: Mapping[int, _Label], x: float, y: float
    ) -> list[Group]:
        heads, first = self._tree.heads, cluster.nodes[0]
        middle = {node: y + _ROW * (row + 0.5) for row, node in enumerate(cluster.nodes)}
        chip = _chip(cluster, x + _PADDING, middle[first])
        rows = [Group(self._titles[first], (*chip, *labels[first].marks(x, middle[first], palette.WORD)))]
        for node in cluster.nodes[1:]:
            head, wrong = heads[node], node in self._tree.wrong
            ends = places[head], middle[head], places[node], middle[node]
            segments = _connection(*ends, x, drop=_CHIP_HEIGHT / 2 if head == first else _DOT, wrong=wrong)
            arc = Path(segments, cluster.colour, _ARC_WIDTH)
            if wrong:
                arc = Path(segments, palette.WRONG, _WRONG_WIDTH, _WRONG_DASH)
            dot = disc((x + places[node].x, middle[node]), _DOT, cluster.colour, corners=12)
            rows.append(Group(self._titles[node], (arc, dot, *labels[node].marks(x, middle[node], palette.WORD))))
        return rows

    def _label(self, node: int, x: float, *, bold: bool = False) -> _Label:
        start = x + self._number_width + _NUMBER_SPACE
        text = shortened(self._texts[node], (_ROW_WIDTH - start) / _SLACK[bold], bold=bold)
        end = start + text_width(text, TEXT_SIZE, bold=bold) * _SLACK[bold]
        return _Label(self._sentences[node], text, start, end, bold)


def shortened(text: str, room: float, *, bold: bool = False) -> str:
    """The mention, or as much of it as fits with an ellipsis.

    >>> shortened("the hippopotamus", 75), shortened("the hippo", 75)
    ('the hippopo…', 'the hippo')
    """
    if text_width(text, TEXT_SIZE, bold=bold) <= room:
        return text
    room -= text_width("…", TEXT_SIZE, bold=bold)
    fits = bisect_right(range(1, len(text) + 1), room, key=lambda n: text_width(text[:n], TEXT_SIZE, bold=bold))
    return text[:fits].rstrip() + "…"


@dataclass(frozen=True, slots=True)
class _DotPlace:
    """The x of a row's dot in its block, and of the line to what hangs below it, which is a lane if `capped`."""

    x: float
    rail: float
    capped: bool


def _dot_places(nodes: Sequence[int], heads: Sequence[int]) -> dict[int, _DotPlace]:
    """The place of each of a cluster's nodes.

    A capped node has a lane unless everything below it is in the next row. The lane extends to the last node below it;
    the nodes before that one have lanes further to the right.
    """
    depth, last, needs_lane = {nodes[0]: 0}, {}, set()
    for above, node in pairwise(nodes):
        head = heads[node]
        depth[node], last[head] = depth[head] + 1, node
        if depth[head] >= CAP and head != above:
            needs_lane.add(head)
    lane = {nodes[0]: 0}
    for node in nodes[1:]:
        head = heads[node]
        lane[node] = lane[head] + (head in needs_lane and node != last[head])
    lanes = max((lane[node] + 1 for node in needs_lane), default=0)
    space = min(_LANE, _LANES / max(1, lanes))
    places = {}
    for node in nodes:
        x = _RAIL + min(depth[node], CAP) * STEP
        if depth[node] < CAP:
            places[node] = _DotPlace(x, x, capped=False)
        else:
            dots = x + (lanes - 1) * space + _LAST_LANE if lanes else x
            places[node] = _DotPlace(dots, x + lane[node] * space, capped=True)
    return places


def _connection(
    head: _DotPlace, head_y: float, own: _DotPlace, own_y: float, x: float, *, drop: float, wrong: bool
) -> tuple[Segment, ...]:
    """The line from `drop` below the middle of the antecedent's row to a dot, in a block that begins at x."""
    if head.capped and own_y - head_y < 1.5 * _ROW:
        return Move((x + own.x, head_y + drop)), Line((x + own.x, own_y - _DOT))
    rail, end = x + head.rail + _BESIDE * wrong, (x + own.x - _DOT, own_y)
    radius = min(_CORNER, end[0] - rail)
    down = (
        Line((rail, own_y - radius)),
        corner((rail, own_y - radius), (rail + radius, own_y)),
        Line(end),
    )
    if not head.capped:
        return Move((rail, head_y + drop)), *down
    aside = _DOT * math.sqrt(0.5)  # the lower left of the dot: the line from its own antecedent comes from the left
    start = (x + head.x - aside, head_y + aside)
    return Move(start), corner(start, (rail, start[1] + radius), level=True), *down


def _chip_width(cluster: Cluster) -> float:
    return max(_CHIP_HEIGHT, text_width(str(cluster.number), _CHIP_SIZE, bold=True) + 6)


def _chip(cluster: Cluster, x: float, y: float) -> tuple[Rectangle, Text]:
    """The number of a cluster on its colour; x is the left end, y the middle."""
    width = _chip_width(cluster)
    return (
        Rectangle(x, y - _CHIP_HEIGHT / 2, width, _CHIP_HEIGHT, cluster.colour),
        Text(x + width / 2, y + 3.4, str(cluster.number), _CHIP_SIZE, "#ffffff", bold=True),
    )


def _legend(
    samples: Sequence[_Sample], lines: Sequence[str], width: float, y: float
) -> tuple[list[Mark], float, float]:
    """The samples in rows, with lines of text below them: the marks, and the new width and end of the sheet."""
    marks: list[Mark] = []
    widest, x = max(width, _PRINT_LINE), math.inf
    for sample in samples:
        size = _SAMPLE + text_width(sample.text, _CAPTION_SIZE) * _SLACK[False]
        if x + size + _MARGIN > widest:
            x, y = _MARGIN, y + _LEGEND_ROW
        marks.append(sample.mark(x, y - 0.35 * _CAPTION_SIZE))
        marks.append(Text(x + _SAMPLE, y, sample.text, _CAPTION_SIZE, palette.CAPTION, "start"))
        x += size + _SAMPLE_SPACE
        width = max(width, x - _SAMPLE_SPACE + _MARGIN)
    for line in lines:
        y += _LEGEND_ROW
        marks.append(Text(_MARGIN, y, line, _CAPTION_SIZE, palette.CAPTION, "start"))
        width = max(width, text_width(line, _CAPTION_SIZE) * _SLACK[False] + 2 * _MARGIN)
    return marks, width, y


@dataclass(frozen=True, slots=True)
class _Sample:
    """An entry of the legend: an arc in this style, or the number of a sentence."""

    text: str
    style: tuple[str, float, tuple[float, float] | None] | None

    def mark(self, x: float, y: float) -> Mark:
        """The arc or the number, with its middle at y."""
        if self.style:
            return Path((Move((x, y)), Line((x + _SAMPLE - 6, y))), *self.style)
        return Text(x + _SAMPLE - 6, y + 3.3, "7", _NUMBER_SIZE, palette.TAG, "end")


def _samples(tree: LatentTree, rows: int) -> list[_Sample]:
    """Samples of what the drawing shows."""
    samples = []
    if tree.numbered():
        samples.append(_Sample("from a mention's antecedent", (palette.ARC, _ARC_WIDTH, None)))
    if tree.wrong:
        samples.append(
            _Sample("wrong: joins two clusters of the reference", (palette.WRONG, _WRONG_WIDTH, _WRONG_DASH))
        )
    if rows:
        samples.append(_Sample("number of the sentence", None))
    return samples
