"""Where words and arcs go: x-coordinates of words, and for every arc a level, two ends and a place for its label.

An arc rises vertically from its head, turns into a horizontal line at the height of its level, and falls vertically to
its modifier. With this shape the following holds for any heads, trees or not, projective or not:

- Levels: an arc is above every shorter arc that shares a stretch of words with it, and no higher than necessary. So
  arcs of the same level do not overlap, and the arcs of a projective tree do not cross.
- Fans: each arc at a word has its own end, on the side it comes from, longer ones inside, so that arcs of one word do
  not cross. A root arrow stands between the two groups, higher than all arcs above its word.
- Labels: on the horizontal line, as near to its middle as possible, where no vertical line of another arc passes.
- Words: as close together as these ends and labels allow. Each demand is "word b at least d to the right of word a";
  the smallest solution is a longest path, found from left to right. A label without enough room adds one more demand,
  at most one per arc, so this terminates.

O(n^2) time for each of at most n + 1 rounds (nearly always one or two), for sentences that fit a page.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

WORD_SPACE = 14.0  # between the boxes of two words
END_SPACE = 5.5  # between the ends of two arcs at one word, at least
LABEL_SPACE = 7.0  # between a label and the vertical lines beside it
_WIDEST_END_SPACE = 9.0


@dataclass(frozen=True, slots=True)
class Arc:
    """An arc to place: head 0 is the root; `label_width` is 0 without a label.

    `span` is how many words it spans where that is more than is seen of it here: in one row of several.
    """

    head: int
    modifier: int
    label_width: float
    span: int = 0

    @property
    def left(self) -> int:
        """The first word; for a root arrow, the modifier."""
        return min(self.head, self.modifier) if self.head else self.modifier

    @property
    def right(self) -> int:
        """The last word."""
        return max(self.head, self.modifier)

    @property
    def length(self) -> int:
        """How many words it spans."""
        return self.span or self.right - self.left


@dataclass(frozen=True, slots=True)
class PlacedArc:
    """An arc with its level (1 is next to the words), and the x of its ends and of the middle of its label."""

    arc: Arc
    level: int
    head_x: float
    modifier_x: float
    label_x: float


@dataclass(frozen=True, slots=True)
class Placement:
    """The middle of each word, word 1 first; the width with both margins; the arcs in the order given."""

    words: tuple[float, ...]
    width: float
    above: tuple[PlacedArc, ...]
    below: tuple[PlacedArc, ...]


def place(
    widths: Sequence[float],
    above: Sequence[Arc],
    below: Sequence[Arc] = (),
    *,
    margin: float = 0,
    edges: frozenset[int] = frozenset(),
) -> Placement:
    """Place words of these widths, word 1 first, with arcs above and below them, between two margins.

    The `edges` are no words, but ends of a row that arcs go on beyond: all of these end in one place.
    """
    sides = [_Side(widths, above, edges), _Side(widths, below, edges)]
    boxes = [max(width, *(side.fan_widths[m] for side in sides)) for m, width in enumerate(widths, start=1)]
    demands: dict[tuple[int, int], float] = {}
    for m in range(1, len(widths)):
        _demand(demands, m, m + 1, (boxes[m - 1] + boxes[m]) / 2 + WORD_SPACE)
    for side in sides:
        for a, b, distance in side.demands():
            _demand(demands, a, b, distance)
    while True:
        x = _least(boxes, demands)
        found = [side.placed(x) for side in sides]
        tight = [demand for _, more in found for demand in more]
        if not tight:
            break
        for a, b, distance in tight:
            _demand(demands, a, b, distance)
    # The label of a root arrow may reach further than the first and the last word.
    reach = [(p.label_x, p.arc.label_width / 2) for arcs, _ in found for p in arcs if not p.arc.head]
    start = min([0.0, *(middle - half for middle, half in reach)]) - margin
    end = max([x[-1] + boxes[-1] / 2 if boxes else 0.0, *(middle + half for middle, half in reach)]) + margin
    first, second = (tuple(_shifted(p, -start) for p in arcs) for arcs, _ in found)
    return Placement(tuple(each - start for each in x[1:]), end - start, first, second)


_Demand = tuple[int, int, float]


class _Side:
    """The arcs on one side of the words: everything that does not depend on where the words are."""

    def __init__(self, widths: Sequence[float], arcs: Sequence[Arc], edges: frozenset[int]) -> None:
        self._arcs = arcs
        self._levels = levels(arcs)
        self._ends: dict[tuple[int, int], float] = {}  # by arc and word: offset from the middle of the word
        self._tops: list[dict[float, int]] = [{} for _ in range(len(widths) + 1)]  # the highest level at each end
        self.fan_widths = [0.0] * (len(widths) + 1)
        self._reach = [0.0] * (len(widths) + 1)  # of the outer ends from the middle of each word
        at: list[list[int]] = [[] for _ in range(len(widths) + 1)]
        for number, arc in enumerate(arcs):
            for word in {arc.left, arc.right}:
                at[word].append(number)
        for word, numbers in enumerate(at[1:], start=1):
            numbers.sort(key=lambda number: _order_at(word, arcs[number]))
            step = min(_WIDEST_END_SPACE, max(END_SPACE, widths[word - 1] / max(1, len(numbers))))
            step = 0.0 if word in edges else step
            for position, number in enumerate(numbers):
                end = (position - (len(numbers) - 1) / 2) * step
                self._ends[number, word] = end
                self._tops[word][end] = max(self._tops[word].get(end, 0), self._levels[number])
            self.fan_widths[word] = len(numbers) * step
            self._reach[word] = max(0, len(numbers) - 1) / 2 * step

    def demands(self) -> Iterable[_Demand]:
        """Room for each label between the ends of its arc, and for the labels of root arrows beside everything else."""
        last = len(self._reach) - 1
        roots = sorted((arc.modifier, number) for number, arc in enumerate(self._arcs) if not arc.head)
        for number, arc in enumerate(self._arcs):
            if arc.head:
                need = arc.label_width + 2 * LABEL_SPACE
                yield arc.left, arc.right, need + self._ends[number, arc.left] - self._ends[number, arc.right]
                continue
            word, half = arc.modifier, arc.label_width / 2 + LABEL_SPACE / 2
            own = self._ends[number, word]
            if word > 1:
                yield word - 1, word, half + self._reach[word - 1] - own
            if word < last:
                yield word, word + 1, half + own + self._reach[word + 1]
        for (word, number), (next_word, next_number) in pairwise(roots):
            widths = self._arcs[number].label_width + self._arcs[next_number].label_width
            offsets = self._ends[number, word] - self._ends[next_number, next_word]
            yield word, next_word, widths / 2 + LABEL_SPACE + offsets

    def placed(self, x: Sequence[float]) -> tuple[list[PlacedArc], list[_Demand]]:
        """The arcs over words at these places, and the demands of labels that have too little room."""
        arcs, missing = [], []
        for number, arc in enumerate(self._arcs):
            modifier_x = x[arc.modifier] + self._ends[number, arc.modifier]
            head_x = x[arc.head] + self._ends[number, arc.head] if arc.head else modifier_x
            label_x = (head_x + modifier_x) / 2
            if arc.head and arc.label_width:
                spot = self._label_spot(number, x)
                if isinstance(spot, tuple):
                    missing.append(spot)
                else:
                    label_x = spot
            arcs.append(PlacedArc(arc, self._levels[number], head_x, modifier_x, label_x))
        return arcs, missing

    def _label_spot(self, number: int, x: Sequence[float]) -> float | _Demand:
        """The middle of the label: as near as possible to the middle of the arc, clear of higher arcs."""
        arc, level = self._arcs[number], self._levels[number]
        own = {(word, self._ends[number, word]) for word in (arc.left, arc.right)}
        higher = {
            (word, end)
            for word in range(arc.left, arc.right + 1)
            for end, top in self._tops[word].items()
            if top > level
        }
        lines = sorted((x[word] + end, word, end) for word, end in own | higher)
        places = [line[0] for line in lines]
        start = places.index(x[arc.left] + self._ends[number, arc.left])
        stop = bisect_left(places, x[arc.right] + self._ends[number, arc.right], lo=start)
        middle, need = (places[start] + places[stop]) / 2, arc.label_width + 2 * LABEL_SPACE
        spots = [
            min(max(middle, a + need / 2), b - need / 2)
            for a, b in pairwise(places[start : stop + 1])
            if b - a >= need - 1e-6
        ]
        if spots:
            return min(spots, key=lambda spot: abs(spot - middle))
        gaps = pairwise(lines[start : stop + 1])
        widest = max((pair for pair in gaps if pair[0][1] != pair[1][1]), key=lambda pair: pair[1][0] - pair[0][0])
        (_, a, end_a), (_, b, end_b) = widest
        return a, b, need + end_a - end_b


def levels(arcs: Sequence[Arc]) -> list[int]:
    """The level of each arc: above every shorter arc it shares a stretch with; root arrows on top.

    >>> levels([Arc(2, 1, 0), Arc(0, 2, 0), Arc(5, 3, 0), Arc(5, 4, 0), Arc(2, 5, 0)])
    [1, 4, 2, 1, 3]
    """
    order = sorted(range(len(arcs)), key=lambda i: (not arcs[i].head, arcs[i].length, arcs[i].modifier))
    found = [0] * len(arcs)
    top = [0] * (2 + max((arc.right for arc in arcs), default=0))  # of the arcs so far, between each word and the next
    for number in order:
        arc = arcs[number]
        stretch = slice(arc.left, arc.right) if arc.head else slice(arc.modifier - 1, arc.modifier + 1)
        found[number] = 1 + max(top[stretch], default=0)
        if arc.head:
            top[stretch] = [found[number]] * (arc.right - arc.left)
    return found


def _order_at(word: int, arc: Arc) -> tuple[int, int, int]:
    """From left to right at one word: arcs to the left, shortest first; the root; arcs to the right, longest first.

    Of two arcs between the same words, the one with the smaller modifier is lower, so it is the inner one.
    """
    if not arc.head:
        return 1, 0, 0
    if arc.right == word:
        return 0, arc.length, arc.modifier
    return 2, -arc.length, -arc.modifier


def _demand(demands: dict[tuple[int, int], float], a: int, b: int, distance: float) -> None:
    demands[a, b] = max(distance, demands.get((a, b), 0.0))


def _least(boxes: Sequence[float], demands: Mapping[tuple[int, int], float]) -> list[float]:
    """The leftmost places that meet all demands; [0], for the root, means nothing."""
    before: list[list[tuple[int, float]]] = [[] for _ in range(len(boxes) + 1)]
    for (a, b), distance in demands.items():
        before[b].append((a, distance))
    x = [0.0]
    for m, box in enumerate(boxes, start=1):
        x.append(max([box / 2, *(x[a] + distance for a, distance in before[m])]))
    return x


def _shifted(placed: PlacedArc, by: float) -> PlacedArc:
    return PlacedArc(placed.arc, placed.level, placed.head_x + by, placed.modifier_x + by, placed.label_x + by)
