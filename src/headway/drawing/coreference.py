"""A document's coreference as a drawing: the latent tree, one block a cluster (fernandes2012, the latent trees).

Mention i is node i+1 of a tree below node 0, the artificial root; a mention hangs below an earlier one, its antecedent,
or below the root, and then it starts a cluster. So a cluster is what hangs below one child of the root.

- A block is read like a file tree: a row a mention, what hangs below a mention follows it in the order of the text, one
  step further to the right, with a line from the antecedent. From `CAP` steps on, rows go no further to the right:
  there the next row stands right below its antecedent, and other lines run in lanes to the left of the rows. Lanes are
  nested as the rows are, so that no two lines cross or lie on each other.
- Blocks follow each other by their first mentions, down one column and then the next; the number of columns is the one
  that makes the sheet about as wide as high.
- Clusters of two or more mentions are numbered from 1, whether or not mentions that stand alone are drawn too.

O(M log M) for M mentions.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from headway.drawing import palette
from headway.drawing.primitives import (
    Cubic,
    Drawing,
    Group,
    Line,
    Mark,
    Move,
    Path,
    Point,
    Polygon,
    Rectangle,
    Segment,
    Text,
    mixed,
)
from headway.drawing.text_width import text_width
from headway.errors import ArcError, HeadsError, ShapeError

# White can be read on all of them. Any two, and the colour of errors, are more than 20 apart in CIELAB, for those too
# who do not see red or green.
CLUSTER_COLOURS = ("#0079c5", "#74002b", "#40824c", "#660080", "#00808e", "#5f3400", "#1557d9", "#492e59")

TEXT_SIZE = 12.0
STEP = 13.0  # to the right, from an antecedent
CAP = 8  # steps
_NUMBER_SIZE, _CHIP_SIZE, _CAPTION_SIZE = 9.0, 9.5, 11.0
_NUMBER_SPACE = 5.0  # between the number of a sentence and the mention
_MARGIN = 14.0
_ROW = 17.0
_PADDING = 5.0  # of a block
_BLOCK_SPACE, _COLUMN_SPACE = 8.0, 14.0
_ROW_WIDTH = 285.0  # where a mention is cut
_RAIL = 13.0  # from the left of a block to the line below its number
_EDGE, _PALE = 2.5, 0.07  # a block's left side, and how much of its colour the rest has
_CHIP_HEIGHT = 14.0
_DOT = 2.8
_LANE, _LANES = 5.0, 40.0  # from one lane to the next, and all of them together, at most
_LAST_LANE = 7.0  # from the last lane to the dots
_BESIDE = 2.6  # from a right arc's line to a wrong one's
_CORNER = 4.0
_ARC_WIDTH, _WRONG_WIDTH, _WRONG_DASH = 1.2, 1.5, (3.0, 2.2)
_SLACK = {False: 1.14, True: 1.25}  # by bold: so much wider than Helvetica a font may be
_CIRCLE = 0.5523  # control points of a quarter of a circle
_CORNERS = 12  # of the polygon that is a dot
_LEGEND_ROW, _SAMPLE, _SAMPLE_SPACE = 18.0, 26.0, 16.0
_PRINT_LINE = 520.0
_HALVINGS = 20  # of a height that is looked for, until it is right to a tenth of a pixel


@dataclass(frozen=True, slots=True)
class MentionText:
    """A mention: `sentence` from 0, its first and its last word from 1, and what is printed in the tree."""

    sentence: int
    first: int
    last: int
    text: str


@dataclass(frozen=True, slots=True)
class Cluster:
    """The nodes below one child of the root, each followed by what hangs below it; `number` is 0 for one alone."""

    number: int
    nodes: tuple[int, ...]

    @property
    def colour(self) -> str:
        """The number's; every eighth number has the same."""
        return CLUSTER_COLOURS[(self.number - 1) % len(CLUSTER_COLOURS)]


@dataclass(frozen=True, slots=True)
class LatentTree:
    """Heads that are a tree's, the nodes below a wrong one, and the clusters by first mention."""

    heads: tuple[int, ...]
    wrong: frozenset[int]
    clusters: tuple[Cluster, ...]

    def numbered(self) -> list[Cluster]:
        """The clusters of two or more mentions."""
        return [cluster for cluster in self.clusters if cluster.number]

    def alone(self) -> list[int]:
        """The nodes that are clusters of their own."""
        return [cluster.nodes[0] for cluster in self.clusters if not cluster.number]

    def counts(self) -> str:
        """How much of it there is, mentions that stand alone left out."""
        numbered = self.numbered()
        return f"{counted(len(numbered), 'cluster')} of {counted(sum(len(c.nodes) for c in numbered), 'mention')}"


def latent_tree(heads: ArrayLike, mentions: int, wrong: Collection[int] = ()) -> LatentTree:
    """The tree over so many mentions that has these heads, (M+1,), some of them wrong.

    >>> latent_tree([-1, 0, 0, 1, 0, 1, 3], 6).clusters
    (Cluster(number=1, nodes=(1, 3, 6, 5)), Cluster(number=0, nodes=(2,)), Cluster(number=0, nodes=(4,)))
    """
    checked = _checked(heads, mentions)
    for node in wrong:
        if not 1 <= node <= mentions:
            raise ArcError(f"node {node} cannot be wrong; expected a mention's node, from 1 to {mentions}")
        if not checked[node]:
            raise ArcError(f"node {node} cannot be wrong: it hangs below the root, and starts a cluster")
    below: list[list[int]] = [[] for _ in checked]
    for node, head in enumerate(checked[1:], start=1):
        below[head].append(node)
    clusters: list[Cluster] = []
    number = 0
    for first in below[0]:
        nodes, stack = [], [first]
        while stack:
            nodes.append(stack.pop())
            stack += reversed(below[nodes[-1]])
        number += len(nodes) > 1
        clusters.append(Cluster(number if len(nodes) > 1 else 0, tuple(nodes)))
    return LatentTree(checked, frozenset(wrong), tuple(clusters))


def _checked(heads: ArrayLike, mentions: int) -> tuple[int, ...]:
    array = np.asarray(heads)
    if array.shape != (mentions + 1,):
        raise ShapeError(f"heads has shape {array.shape}; expected ({mentions + 1},), the root and {mentions} mentions")
    if not np.issubdtype(array.dtype, np.integer):
        raise HeadsError(f"heads has dtype {array.dtype}; expected integers")
    if array[0] != -1:
        raise HeadsError(f"heads[0] is {array[0]}; expected -1, the root has no head")
    wrong = (array < 0) | (array >= np.arange(mentions + 1))
    wrong[0] = False
    if wrong.any():
        m = int(np.argmax(wrong))
        raise HeadsError(f"heads[{m}] is {array[m]}; expected 0 or the node of an earlier mention, below {m}")
    return tuple(array.tolist())


def coreference_drawing(
    mentions: Sequence[MentionText], heads: ArrayLike, *, wrong: Collection[int] = (), singletons: bool = False
) -> Drawing:
    """The latent tree over a document's mentions.

    heads: (M+1,), mention i is node i+1; `heads[m] < m`, 0 where a mention starts a cluster.
    wrong: nodes whose arc from their head joins two clusters of a reference; these arcs are dashed.
    singletons: draw the mentions that stand alone too; otherwise they are only counted.

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
    grounds, rows, width, bottom = _painted(blocks)
    lines = [] if rows else ["no clusters of two or more mentions"] if mentions else ["no mentions"]
    if alone and not singletons:
        lines.append(alone_text(len(alone)))
    legend, width, bottom = _legend(_samples(tree, len(rows)), lines, width, bottom)
    description = " ".join(f"{part}." for part in (*(row.title for row in rows), *lines))
    marks = (*grounds, *rows, *legend)
    return Drawing(width, bottom + _MARGIN, marks, f"Coreference: {tree.counts()}", description)


def counted(count: int, thing: str) -> str:
    """
    >>> counted(1, "mention"), counted(1200, "mention")
    ('1 mention', '1,200 mentions')
    """
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def alone_text(count: int) -> str:
    """
    >>> alone_text(212)
    '+ 212 mentions that stand alone'
    """
    return f"+ {counted(count, 'mention')} that {'stands' if count == 1 else 'stand'} alone"


def titles(tree: LatentTree, mentions: Sequence[MentionText]) -> list[str]:
    """What is said of each node; of the root, nothing."""
    names = ["", *(f"{_plain(mention)} (sentence {mention.sentence + 1})" for mention in mentions)]
    said = list(names)
    for cluster in tree.clusters:
        first, *others = cluster.nodes
        size = counted(len(cluster.nodes), "mention")
        said[first] += f": starts cluster {cluster.number} of {size}" if others else ": alone"
        for node in others:
            said[node] += f": {'wrong, ' * (node in tree.wrong)}below {names[tree.heads[node]]}"
    return said


def _plain(mention: MentionText) -> str:
    return " ".join(mention.text.split())


_Painted = tuple[list[Mark], list[Group]]


@dataclass(frozen=True, slots=True)
class _Block:
    """Rows that stay together; `space` is left above them, unless they are the first of a column.

    `paint` gives what lies below the rows, and the rows, for an upper left corner and the width of the column.
    """

    width: float
    height: float
    space: float
    paint: Callable[[float, float, float], _Painted]


@dataclass(frozen=True, slots=True)
class _Label:
    """What is written in a row: the number of the sentence, and from `start` to `end` in the block the mention."""

    number: str
    text: str
    start: float
    end: float
    bold: bool

    def marks(self, x: float, y: float, colour: str) -> tuple[Text, Text]:
        """In a block that begins at x, and a row with y as its middle."""
        return (
            Text(x + self.start - _NUMBER_SPACE, y + 3.6, self.number, _NUMBER_SIZE, palette.TAG, "end"),
            Text(x + self.start, y + 4.2, self.text, TEXT_SIZE, colour, "start", bold=self.bold),
        )


class _Sheet:
    """Makes the blocks of a drawing from a tree and its mentions."""

    def __init__(self, tree: LatentTree, mentions: Sequence[MentionText]) -> None:
        self._tree = tree
        self._titles = titles(tree, mentions)
        self._texts = ["", *map(_plain, mentions)]
        self._sentences = ["", *(str(mention.sentence + 1) for mention in mentions)]
        self._number_width = max(map(len, self._sentences)) * text_width("0", _NUMBER_SIZE) * _SLACK[False]

    def block(self, cluster: Cluster) -> _Block:
        """A cluster's rows, its number in the first."""
        first, *others = cluster.nodes
        places = _dot_places(cluster.nodes, self._tree.heads)
        labels = {first: self._label(first, _PADDING + _chip_width(cluster) + 4, bold=True)}
        for node in others:
            labels[node] = self._label(node, places[node].x + _DOT + 4)
        right = max(label.end for label in labels.values())
        height = 2 * _PADDING + _ROW * len(labels)

        def paint(x: float, y: float, width: float) -> _Painted:
            ground = Rectangle(x, y, width, height, mixed("#ffffff", cluster.colour, _PALE))
            edge = Rectangle(x, y, _EDGE, height, cluster.colour)
            return [ground, edge], self._rows(cluster, places, labels, x, y + _PADDING)

        return _Block(right + _PADDING, height, _BLOCK_SPACE, paint)

    def single(self, node: int, *, with_heading: bool) -> _Block:
        """The row of a mention that stands alone."""
        label, heading = self._label(node, _PADDING), _ROW * with_heading

        def paint(x: float, y: float, width: float) -> _Painted:
            row = Group(self._titles[node], label.marks(x, y + heading + _ROW / 2, palette.CAPTION))
            above = Text(x + _PADDING, y + _ROW / 2 + 4, "alone", _CAPTION_SIZE, palette.CAPTION, "start", bold=True)
            line = Rectangle(x, y, width, 0.8, palette.RIGHT)
            return [line, above] if with_heading else [], [row]

        return _Block(label.end + _PADDING, heading + _ROW, _BLOCK_SPACE * with_heading, paint)

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
            dot = _dot(x + places[node].x, middle[node], cluster.colour)
            rows.append(Group(self._titles[node], (arc, dot, *labels[node].marks(x, middle[node], palette.WORD))))
        return rows

    def _label(self, node: int, x: float, *, bold: bool = False) -> _Label:
        start = x + self._number_width + _NUMBER_SPACE
        text = shortened(self._texts[node], (_ROW_WIDTH - start) / _SLACK[bold], bold=bold)
        end = start + text_width(text, TEXT_SIZE, bold=bold) * _SLACK[bold]
        return _Label(self._sentences[node], text, start, end, bold)


def shortened(text: str, room: float, *, bold: bool = False) -> str:
    """The mention, or as much of its beginning as fits with an ellipsis.

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
    """Where a row's dot is in its block, and the line to what hangs below it: in a lane, if the row is `capped`."""

    x: float
    rail: float
    capped: bool


def _dot_places(nodes: Sequence[int], heads: Sequence[int]) -> dict[int, _DotPlace]:
    """The place of each of a cluster's nodes.

    A capped node has a lane if something below it does not stand in the next row. The lane is open until the last node
    below it; those above that one are in lanes further to the right.
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
    """The line from `drop` below the middle of an antecedent's row to a dot, in a block that begins at x."""
    if head.capped and own_y - head_y < 1.5 * _ROW:
        return Move((x + own.x, head_y + drop)), Line((x + own.x, own_y - _DOT))
    rail, end = x + head.rail + _BESIDE * wrong, (x + own.x - _DOT, own_y)
    corner = min(_CORNER, end[0] - rail)
    down = (
        Line((rail, own_y - corner)),
        _corner((rail, own_y - corner), (rail + corner, own_y)),
        Line(end),
    )
    if not head.capped:
        return Move((rail, head_y + drop)), *down
    aside = _DOT * math.sqrt(0.5)  # from the lower left of the dot: its own antecedent's line comes from the left
    start = (x + head.x - aside, head_y + aside)
    return Move(start), _corner(start, (rail, start[1] + corner), level=True), *down


def _corner(start: Point, end: Point, *, level: bool = False) -> Cubic:
    """A quarter of an ellipse that begins upright, or `level`."""
    (x0, y0), (x1, y1) = start, end
    dx, dy = (x1 - x0) * _CIRCLE, (y1 - y0) * _CIRCLE
    if level:
        return Cubic((x0 + dx, y0), (x1, y1 - dy), end)
    return Cubic((x0, y0 + dy), (x1 - dx, y1), end)


_ROUND = tuple(
    (_DOT * math.cos(corner * math.tau / _CORNERS), _DOT * math.sin(corner * math.tau / _CORNERS))
    for corner in range(_CORNERS)
)


def _dot(x: float, y: float, colour: str) -> Polygon:
    return Polygon(tuple((x + dx, y + dy) for dx, dy in _ROUND), colour)


def _chip_width(cluster: Cluster) -> float:
    return max(_CHIP_HEIGHT, text_width(str(cluster.number), _CHIP_SIZE, bold=True) + 6)


def _chip(cluster: Cluster, x: float, y: float) -> tuple[Rectangle, Text]:
    """A cluster's number on its colour; x is the left end, y the middle."""
    width = _chip_width(cluster)
    return (
        Rectangle(x, y - _CHIP_HEIGHT / 2, width, _CHIP_HEIGHT, cluster.colour),
        Text(x + width / 2, y + 3.4, str(cluster.number), _CHIP_SIZE, "#ffffff", bold=True),
    )


def _painted(blocks: Sequence[_Block]) -> tuple[list[Mark], list[Group], float, float]:
    """What lies below the rows, the rows, the width of the sheet, and where it goes on below."""
    grounds: list[Mark] = []
    rows: list[Group] = []
    x = bottom = _MARGIN
    for column in _in_columns(blocks):
        y, widest = _MARGIN - column[0].space, max(block.width for block in column)
        for block in column:
            below, above = block.paint(x, y + block.space, widest)
            grounds += below
            rows += above
            y += block.space + block.height
        x += widest + _COLUMN_SPACE
        bottom = max(bottom, y)
    return grounds, rows, max(x - _COLUMN_SPACE, _MARGIN) + _MARGIN, bottom


def _in_columns(blocks: Sequence[_Block]) -> list[list[_Block]]:
    """The blocks in their order, in so many columns of about the same height that they fill about a square."""
    best: list[list[_Block]] = []
    least, tallest = math.inf, max((block.height for block in blocks), default=0.0)
    for count in range(1, len(blocks) + 1):
        columns = _evenly(blocks, count)
        width = sum(max(block.width for block in column) + _COLUMN_SPACE for column in columns)
        height = max(map(_height, columns))
        if abs(math.log(width / height)) < least:
            best, least = columns, abs(math.log(width / height))
        if width > height or height <= tallest:  # more columns are wider still, or no lower
            break
    return best


def _evenly(blocks: Sequence[_Block], count: int) -> list[list[_Block]]:
    """At most so many columns, the highest as low as can be."""
    low, high = max(block.height for block in blocks), _height(blocks)
    columns = [list(blocks)]
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        found = _filled(blocks, middle)
        if len(found) <= count:
            columns, high = found, middle
        else:
            low = middle
    return columns


def _filled(blocks: Sequence[_Block], height: float) -> list[list[_Block]]:
    """Columns that are each filled before the next is begun."""
    columns: list[list[_Block]] = []
    y = math.inf
    for block in blocks:
        y += block.space + block.height
        if y > height:
            columns.append([])
            y = block.height
        columns[-1].append(block)
    return columns


def _height(column: Sequence[_Block]) -> float:
    return sum(block.height + block.space for block in column) - column[0].space


def _legend(
    samples: Sequence[_Sample], lines: Sequence[str], width: float, y: float
) -> tuple[list[Mark], float, float]:
    """The samples in rows, and lines of text under them: the marks, and the sheet's width and end with them."""
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
    """An entry of the legend: an arc with this style, or a sentence's number."""

    text: str
    style: tuple[str, float, tuple[float, float] | None] | None

    def mark(self, x: float, y: float) -> Mark:
        """The arc or the number; y is its middle."""
        if self.style:
            return Path((Move((x, y)), Line((x + _SAMPLE - 6, y))), *self.style)
        return Text(x + _SAMPLE - 6, y + 3.3, "7", _NUMBER_SIZE, palette.TAG, "end")


def _samples(tree: LatentTree, rows: int) -> list[_Sample]:
    """For what there is in the drawing."""
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
