"""A tree as text for a terminal: one word per line, arcs as brackets on the left.

      ┌► Dogs    NOUN  nsubj
    ═►┼─ bark    VERB  root
      └► loudly  ADV   advmod

Every arc is a vertical line in a lane; lane 1 is next to the words. Its ends are corners or junctions, joined to the
lines of its words from the left. `►` follows the end of the arc that comes from the word's head; `═` comes from the
root. A vertical line that a horizontal one crosses without joining it stays whole: `─│─`.

An arc's lane is outside those of all shorter arcs it shares a stretch with. Arcs that meet at one word share a lane
only if both leave it, so that an arrow never belongs to two arcs. A tree that is too wide becomes an indented list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from numpy.typing import ArrayLike

from headway.drawing.text_width import columns, cut
from headway.drawing.trees import arc_probabilities, tree_of
from headway.errors import printable
from headway.treebank import Sentence
from headway.treebank.trees import children_of

_LONGEST_WORD, _LONGEST_LABEL = 32, 24
_INDENTS = (2, 1)
# (an arc to a line above, an arc to a line below, a line from the left): the character that joins them
_JOINTS = {
    (False, True, False): "┌",
    (False, True, True): "┬",
    (True, False, False): "└",
    (True, False, True): "┴",
    (True, True, False): "├",
    (True, True, True): "┼",
}
_ASCII = str.maketrans("┌┬└┴├┼│─═►", "..''++|-=>")

_Paint = Literal["arc", "root", "tag", "label", "unsure"]
_ANSI: dict[_Paint, str] = {"arc": "36", "root": "1", "tag": "90", "label": "32", "unsure": "1;31"}


class _Row(NamedTuple):
    """What follows the arcs in a word's line."""

    form: str
    tag: str
    label: str
    remark: str


def tree_text(
    sentence: Sentence,
    probabilities: ArrayLike | None = None,
    unsure_below: float | None = None,
    color: bool = False,
    *,
    ascii: bool = False,
    width: int = 100,
) -> str:
    """The sentence's tree as lines of text, no wider than `width` columns if possible.

    With `probabilities`, (n+1,) by modifier, arcs below `unsure_below` are marked with "?" and the percentage; without
    `unsure_below` every arc has its percentage. `ascii` uses only ASCII characters, `color` adds ANSI colours.

    >>> labels = [None, "nsubj", "root", "punct"]
    >>> print(tree_text(Sentence.from_words(["Dogs", "bark", "."], heads=[-1, 2, 0, 2], labels=labels)))
      ┌► Dogs  nsubj
    ═►┼─ bark  root
      └► .     punct
    """
    heads, labels = tree_of(sentence)
    rows = _rows(sentence, labels, _remarks(probabilities, unsure_below, len(sentence)), "..." if ascii else "…")
    lanes = _lanes(heads)
    if 2 * max(lanes, default=0) + 3 + _room(rows) <= width:
        order: Sequence[int] = range(1, len(heads))
        lefts = ["".join(row) for row in _brackets(heads, lanes)]
    else:
        order, lefts, rows = _indented(heads, rows, width)
    sizes = _sizes(rows)
    lines = []
    for left, row, m in zip(lefts, rows, order, strict=True):
        drawn = left.translate(_ASCII) if ascii else left
        lines.append(f"{_painted(drawn, 'arc', color)} {_cells(row, sizes, heads[m] == 0, color)}".rstrip())
    return "\n".join(lines)


def _remarks(probabilities: ArrayLike | None, unsure_below: float | None, n: int) -> list[str]:
    if probabilities is None:
        return [""] * n
    p = arc_probabilities(probabilities, n)[1:].tolist()
    if unsure_below is None:
        return [f"{each:.0%}" for each in p]
    return [f"? {each:.0%}" if each < unsure_below else "" for each in p]


def _rows(sentence: Sentence, labels: Sequence[str], remarks: Sequence[str], ellipsis: str) -> list[_Row]:
    return [
        _Row(
            cut(printable(form), _LONGEST_WORD, ellipsis),
            "" if tag == "_" else cut(printable(tag), _LONGEST_LABEL, ellipsis),
            cut(printable(label), _LONGEST_LABEL, ellipsis),
            remark,
        )
        for form, tag, label, remark in zip(sentence.forms, sentence.upos, labels[1:], remarks, strict=True)
    ]


def _room(rows: Sequence[_Row]) -> int:
    """The number of columns to the right of the arcs."""
    sizes = [size for size in _sizes(rows) if size]
    return sum(sizes) + 2 * (len(sizes) - 1)


def _sizes(rows: Sequence[_Row]) -> list[int]:
    """How wide forms, tags, labels and remarks are; 0 if there are none."""
    return [max(map(columns, column)) for column in zip(*rows, strict=True)]


def _cells(row: _Row, widths: Sequence[int], is_root: bool, color: bool) -> str:
    paints: list[_Paint | None] = ["root" if is_root else None, "tag", "label", "unsure"]
    cells = []
    for text, size, paint in zip(row, widths, paints, strict=True):
        if size:
            padding = " " * (size - columns(text))
            cells.append((_painted(text, paint, color) if paint else text) + padding)
    return "  ".join(cells)


def _painted(text: str, paint: _Paint, color: bool) -> str:
    return f"\x1b[{_ANSI[paint]}m{text}\x1b[0m" if color and text.strip() else text


def _lanes(heads: Sequence[int]) -> list[int]:
    """The lane of each word's arc, [m]; 0 for words under the root."""
    lanes = [0] * len(heads)
    words = [m for m in range(1, len(heads)) if heads[m]]
    placed: list[int] = []
    for m in sorted(words, key=lambda m: (abs(heads[m] - m), m)):
        left, right = sorted((m, heads[m]))
        inside, taken = 0, set()
        for other in placed:
            first, last = sorted((other, heads[other]))
            if max(left, first) < min(right, last):
                inside = max(inside, lanes[other])
            elif (right == first or left == last) and heads[m] != heads[other]:
                taken.add(lanes[other])
        lane = inside + 1
        while lane in taken:
            lane += 1
        lanes[m] = lane
        placed.append(m)
    return lanes


def _brackets(heads: Sequence[int], lanes: Sequence[int]) -> list[list[str]]:
    """The arcs as characters, one line per word: two columns for arrows from the root, then two for each lane."""
    depth = max(lanes, default=0)
    width = 2 * depth + 2
    column = [width - 2 * lane for lane in lanes]
    lines = [[" "] * width for _ in heads]
    up: list[set[int]] = [set() for _ in heads]  # the columns where an arc goes up
    down: list[set[int]] = [set() for _ in heads]
    for m, head in enumerate(heads):
        if head > 0:
            first, last = sorted((m, head))
            down[first].add(column[m])
            up[last].add(column[m])
            for row in range(first + 1, last):
                lines[row][column[m]] = "│"
    for m in range(1, len(heads)):
        _join(lines[m], up[m], down[m], column[m] if heads[m] else None)
    return lines[1:]


def _join(line: list[str], up: set[int], down: set[int], incoming: int | None) -> None:
    """Join the arcs that end in a line to its word."""
    joints = sorted(up | down)
    start = 0 if incoming is None else joints[0]
    horizontal = "═" if incoming is None else "─"
    for position in range(start, len(line)):
        if position in joints:
            line[position] = _JOINTS[position in up, position in down, position > start]
            horizontal = "─"
        elif line[position] == " ":
            line[position] = horizontal
    tip = next((joint for joint in joints if joint > (-1 if incoming is None else incoming)), len(line))
    line[tip - 1] = "►"


def _indented(heads: Sequence[int], rows: Sequence[_Row], width: int) -> tuple[Sequence[int], list[str], list[_Row]]:
    """The words from the root down, the number of each, and the rows with their forms indented."""
    depths = _depths(heads)
    # A word on a cycle is nobody's child here, so its head is given as a remark.
    rows = [
        row if heads[m] == 0 or depths[m] else row._replace(remark=f"{row.remark} under {heads[m]}".lstrip())
        for m, row in enumerate(rows, start=1)
    ]
    numbers = [f"{m:>{len(str(len(heads) - 1))}}" for m in depths]
    for step in _INDENTS:
        indented = [rows[m - 1]._replace(form=" " * (step * depth) + rows[m - 1].form) for m, depth in depths.items()]
        if len(numbers[0]) + 1 + _room(indented) <= width:
            break
    return list(depths), numbers, indented


def _depths(heads: Sequence[int]) -> dict[int, int]:
    """Words in the order of a walk from the root, with their depths; words that it does not reach come last."""
    children = children_of(heads)
    depths: dict[int, int] = {}
    for top in range(len(heads)):
        stack = [(top, -1 if top == 0 else 0)]
        while stack:
            node, depth = stack.pop()
            if node not in depths:
                depths[node] = depth
                stack += [(child, depth + 1) for child in reversed(children[node])]
    del depths[0]
    return depths
