"""A deterministic automaton with counts as a picture: states and the arrows between them (luque2012, figure 3).

`automaton_dot` gives text for Graphviz; `automaton_drawing` uses Headway's own layout, `graph_layout`. In both

- the start is called I, the other states go by their numbers. A state shows how probable STOP is, and how probable a
  symbol is for which it has no transition ("lost"), if that is at least `least`;
- all transitions from one state to another are one arrow. Its label has the symbols with their probabilities in the
  state they leave, most probable first: "DT 0.61, PRP$ 0.12, +4". Symbols rarer than `least` are only counted, except
  the most probable one. Arrows rarer than `least` are left out, unless a state could not be reached without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headway.arrays import Floats
from headway.drawing import palette
from headway.drawing.graph_layout import (
    ARROW,
    ENTRY,
    FINE,
    RADIUS,
    Link,
    Route,
    distances,
    graph_layout,
    part_of,
    points_at,
    within,
)
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
    Text,
    corner,
    disc,
    mixed,
)
from headway.drawing.text_width import counted, text_width
from headway.errors import ShapeError, SizeError

if TYPE_CHECKING:  # drawing does not load numba
    from headway.inference.forward_states import StateAutomaton

MOST_ARROWS = 60
LABEL_SIZE = 10.5
_NAME_SIZE, _STOP_SIZE, _CAPTION_SIZE, _TITLE_SIZE = 15.0, 9.0, 11.0, 14.0
_LINE_HEIGHT = 12.5  # of a label
_LABEL_WIDTH = 105.0  # longer labels are broken into lines
_MARGIN = 16.0
_THIN, _THICK = 0.8, 4.0
_TITLE_ROW, _CAPTION_ROW = 26.0, 16.0


@dataclass(frozen=True, slots=True)
class Arrow:
    """All transitions from one state to another: the symbols to name, most probable first, and how many others."""

    source: int
    target: int
    count: int
    probability: float
    symbols: tuple[tuple[int, float], ...]
    others: int

    def items(self, names: Sequence[str]) -> list[str]:
        """The parts of its label."""
        named = [f"{_quoted(names[symbol])} {p:.2f}" for symbol, p in self.symbols]
        return [*named, f"+{self.others}"] if self.others else named


def automaton_dot(automaton: StateAutomaton, names: Sequence[str], *, title: str = "", least: float = 0.02) -> str:
    r"""The automaton as text for Graphviz; `names` are the names of the symbols, by number.

    >>> from headway.inference.forward_states import determinised, frequent_prefixes
    >>> sequences = [(), (1,), (1, 1)]
    >>> one = determinised(frequent_prefixes(sequences), [0, 0, 0], sequences)
    >>> print(automaton_dot(one, ["", 'a"b']))
    digraph automaton {
      rankdir=LR; fontname="Helvetica";
      node [shape=circle, fontname="Helvetica", fontsize=12];
      edge [fontname="Helvetica", fontsize=10];
      0 [label="I\nSTOP 0.50"];
      0 -> 0 [label="a\"b 0.50", penwidth=2.4];
    }
    <BLANKLINE>
    """
    _require_names(automaton, names)
    arrows, hidden = drawn_arrows(automaton, least)
    lines = ["digraph automaton {"]
    if title or hidden:
        caption = "\\n".join(_dot_text(line) for line in (title, _hidden_text(hidden, least)) if line)
        lines.append(f'  label="{caption}";')
    lines += [
        '  rankdir=LR; fontname="Helvetica";',
        '  node [shape=circle, fontname="Helvetica", fontsize=12];',
        '  edge [fontname="Helvetica", fontsize=10];',
    ]
    for state in range(automaton.states):
        shares = "\\n".join(_shares(automaton, state, least))
        lines.append(f'  {state} [label="{_name(automaton, state)}\\n{shares}"];')
    for arrow in arrows:
        label = "\\n".join(map(_dot_text, _lines(arrow.items(names))))
        lines.append(
            f'  {arrow.source} -> {arrow.target} [label="{label}", penwidth={_stroke(arrow.probability):.1f}];'
        )
    return "\n".join([*lines, "}", ""])


def automaton_drawing(
    automaton: StateAutomaton, names: Sequence[str], *, title: str = "Automaton", least: float = 0.02
) -> Drawing:
    """States are circles, darker where STOP is more probable; arrows are thicker and darker where more probable."""
    _require_names(automaton, names)
    arrows, hidden = drawn_arrows(automaton, least)
    if len(arrows) > MOST_ARROWS:
        raise SizeError(
            f"{len(arrows)} arrows are too many to draw; at most {MOST_ARROWS}: leave out more with a higher `least`, "
            "or use Graphviz with `automaton_dot`"
        )
    labels = [_lines(arrow.items(names)) for arrow in arrows]
    links = [
        Link(arrow.source, arrow.target, arrow.probability, (max(map(_width, label)), len(label) * _LINE_HEIGHT))
        for arrow, label in zip(arrows, labels, strict=True)
    ]
    laid_out = graph_layout(automaton.states, automaton.start, links)
    places, routes, (width, bottom) = _on_sheet(*laid_out, automaton.start)
    marks: list[Mark | Group] = [
        Text(_MARGIN, _MARGIN + _TITLE_SIZE, title, _TITLE_SIZE, palette.WORD, "start", bold=True)
    ]
    arrow_titles = [_arrow_title(automaton, arrow, names) for arrow in arrows]
    for said, arrow, route, label in zip(arrow_titles, arrows, routes, labels, strict=True):
        marks.append(Group(said, _arrow_marks(arrow, route, label)))
    state_titles = [_state_title(automaton, state) for state in range(automaton.states)]
    for state, (said, place) in enumerate(zip(state_titles, places, strict=True)):
        marks.append(Group(said, _state_marks(automaton, state, place, least)))
    marks += _entry(places[automaton.start])
    caption = _caption(automaton, hidden, least)
    for line in caption:
        bottom += _CAPTION_ROW
        marks.append(Text(_MARGIN, bottom, line, _CAPTION_SIZE, palette.CAPTION, "start"))
    texts = [text_width(title, _TITLE_SIZE, bold=True), *(text_width(line, _CAPTION_SIZE) for line in caption)]
    width = max(width, 2 * _MARGIN + max(texts))
    description = " ".join(f"{part}." for part in (*state_titles, *arrow_titles, caption[-1]))
    return Drawing(width, bottom + _MARGIN, tuple(marks), title, description)


def _require_names(automaton: StateAutomaton, names: Sequence[str]) -> None:
    most = max((symbol for _, symbol in automaton.transitions), default=-1)
    if most >= len(names):
        raise ShapeError(f"the automaton has symbol {most}, but there are {len(names)} names; expected one per symbol")


def drawn_arrows(automaton: StateAutomaton, least: float) -> tuple[list[Arrow], int]:
    """The arrows to draw, by source and target, and how many are left out."""
    symbols: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for (state, symbol), transition in automaton.transitions.items():
        symbols.setdefault((state, transition.state), []).append((-transition.count, symbol))
    every = [
        _arrow(automaton, *ends, [symbol for _, symbol in sorted(found)], least) for ends, found in symbols.items()
    ]
    every.sort(key=lambda arrow: (arrow.source, arrow.target))
    drawn = every
    rare = [arrow for arrow in every if arrow.probability < least]
    for rarest in sorted(rare, key=lambda arrow: (arrow.count, arrow.source, arrow.target)):
        fewer = [arrow for arrow in drawn if arrow is not rarest]
        if len(distances(automaton.start, [(arrow.source, arrow.target) for arrow in fewer])) == automaton.states:
            drawn = fewer
    return drawn, len(every) - len(drawn)


def _arrow(automaton: StateAutomaton, source: int, target: int, symbols: Sequence[int], least: float) -> Arrow:
    shares = [(symbol, automaton.probability(source, symbol)) for symbol in symbols]
    shown = tuple((symbol, p) for place, (symbol, p) in enumerate(shares) if p >= least or place == 0)
    count = sum(automaton.transitions[source, symbol].count for symbol in symbols)
    return Arrow(source, target, count, count / max(1, int(automaton.visits[source])), shown, len(shares) - len(shown))


def _name(automaton: StateAutomaton, state: int) -> str:
    return "I" if state == automaton.start else str(state)


def _quoted(name: str) -> str:
    """The name of a symbol, in quotes if the label could be misread, as with the tag for commas.

    >>> _quoted("PRP$"), _quoted(","), _quoted("New York")
    ('PRP$', '“,”', '“New York”')
    """
    plain = any(map(str.isalnum, name)) and not any(character in ", " for character in name)
    return name if plain else f"“{name}”"


def _shares(automaton: StateAutomaton, state: int, least: float) -> list[str]:
    """The lines of text in a state."""
    if not automaton.visits[state]:
        return ["no visits"]
    lost = int(automaton.leaves[state]) / int(automaton.visits[state])
    said = [f"STOP {automaton.stop_probability(state):.2f}"]
    return [*said, f"lost {lost:.2f}"] if lost and lost >= least else said


def _hidden_text(hidden: int, least: float) -> str:
    return f"{counted(hidden, 'arrow')} rarer than {least:g} not drawn" if hidden else ""


def _dot_text(text: str) -> str:
    r"""The text as written between quotes; Graphviz reads escapes and entities in labels.

    >>> print(_dot_text('a "b" \\n &lt;'))
    a \"b\" \\n &amp;lt;
    """
    plain = "".join(character if character.isprintable() else "\ufffd" for character in text)
    return plain.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")


def _stroke(probability: float) -> float:
    return _THIN + (_THICK - _THIN) * probability


def _lines(items: Sequence[str]) -> list[str]:
    """The parts of a label with commas between them, broken into lines.

    >>> _lines(["DT 0.61", "PRP$ 0.12", "JJ 0.08", "+4"])
    ['DT 0.61, PRP$ 0.12,', 'JJ 0.08, +4']
    """
    lines = [items[0]]
    for item in items[1:]:
        longer = f"{lines[-1]}, {item}"
        if text_width(longer, LABEL_SIZE) <= _LABEL_WIDTH:
            lines[-1] = longer
        else:
            lines[-1] += ","
            lines.append(item)
    return lines


def _width(line: str) -> float:
    """The width of a line of a label, with room to spare: not every font is as narrow as Helvetica."""
    return 1.12 * text_width(line, LABEL_SIZE)


def _on_sheet(
    places: Sequence[Point], routes: Sequence[Route], start: int
) -> tuple[list[Point], list[Route], tuple[float, float]]:
    """Places and routes moved to leave room for a title, the width of the sheet, and where the caption begins."""
    states = np.array(places)
    corners = [states - RADIUS - 2, states + RADIUS + 2, states[[start]] - [RADIUS + ENTRY, 0]]
    for route in routes:
        corners += [route.box.reshape(2, 2), route.points]
    every = np.concatenate(corners)
    shift = np.array([_MARGIN, _MARGIN + _TITLE_ROW]) - every.min(axis=0)
    width, bottom = (every.max(axis=0) + shift).tolist()
    moved = [
        Route(route.ends, route.curve + shift, route.points + shift, route.box + np.tile(shift, 2)) for route in routes
    ]
    return [_point(each) for each in states + shift], moved, (width + _MARGIN, bottom + 6)


def _arrow_marks(arrow: Arrow, route: Route, label: Sequence[str]) -> tuple[Mark, ...]:
    """The curve with a gap for its label, the arrow head, and the label."""
    colour = mixed(palette.PALE_ARC, palette.FULL_ARC, 0.25 + 0.75 * min(1.0, 1.5 * arrow.probability))
    width = _stroke(arrow.probability)
    marks: list[Mark] = []
    for a, b in _outside(route):
        start, first, second, end = (_point(each) for each in part_of(route.curve, a, b))
        marks.append(Path((Move(start), Cubic(first, second, end)), colour, width))
    marks.append(_head(route.points[-1], route.curve[3], width, colour))
    left, top, right, _ = route.box.tolist()
    for row, line in enumerate(label):
        y = top + (row + 0.78) * _LINE_HEIGHT
        marks.append(Text((left + right) / 2, y, line, LABEL_SIZE, palette.LABEL, halo=True))
    return tuple(marks)


def _outside(route: Route) -> list[tuple[float, float]]:
    """The parts of the curve outside its label, as parameters."""
    t = np.linspace(0, 1, FINE)
    points = points_at(route.curve, t)
    inside = within(route.box, points)
    ends = np.flatnonzero(np.diff(np.concatenate([[True], inside, [True]]).astype(np.int8)))
    return [(float(t[a]), float(t[b - 1])) for a, b in ends.reshape(-1, 2).tolist() if b - a > 1]


def _head(tip: Floats, back: Floats, width: float, colour: str) -> Polygon:
    way = (tip - back) / np.linalg.norm(tip - back)
    across = np.array([-way[1], way[0]]) * (ARROW[1] / 2 + width / 2)
    notch = back + way * ARROW[0] * 0.2
    return Polygon((_point(tip), _point(back + across), _point(notch), _point(back - across)), colour)


def _point(place: Floats) -> Point:
    return float(place[0]), float(place[1])


def _state_marks(automaton: StateAutomaton, state: int, place: Point, least: float) -> tuple[Mark, ...]:
    x, y = place
    fill = mixed("#ffffff", palette.CELLS[1], automaton.stop_probability(state))
    edge = 2.2 if state == automaton.start else 1.25
    said = _shares(automaton, state, least)
    top = y + 2 - 5 * (len(said) - 1)
    shares = (Text(x, top + 12.5 + 11 * row, line, _STOP_SIZE, palette.WORD) for row, line in enumerate(said))
    return (
        disc(place, RADIUS, fill, corners=48),
        _circle(place, edge),
        Text(x, top, _name(automaton, state), _NAME_SIZE, palette.WORD, bold=True),
        *shares,
    )


def _circle(place: Point, width: float) -> Path:
    x, y = place
    right, below, left, above = (x + RADIUS, y), (x, y + RADIUS), (x - RADIUS, y), (x, y - RADIUS)
    lower = corner(right, below), corner(below, left, level=True)
    upper = corner(left, above), corner(above, right, level=True)
    return Path((Move(right), *lower, *upper), palette.LABEL, width)


def _entry(place: Point) -> list[Mark]:
    """The arrow that enters the start."""
    x, y = place
    tip, back = np.array([x - RADIUS, y]), np.array([x - RADIUS - ARROW[0], y])
    colour = palette.FULL_ARC
    return [Path((Move((x - RADIUS - ENTRY, y)), Line(_point(back))), colour, 2.0), _head(tip, back, 2.0, colour)]


def _state_title(automaton: StateAutomaton, state: int) -> str:
    said = [counted(int(automaton.visits[state]), "visit"), *_shares(automaton, state, 0.0)]
    return f"state {_name(automaton, state)}: {', '.join(said)}"


def _arrow_title(automaton: StateAutomaton, arrow: Arrow, names: Sequence[str]) -> str:
    ends = f"{_name(automaton, arrow.source)} → {_name(automaton, arrow.target)}"
    return f"{ends}: {', '.join(arrow.items(names))}; together {arrow.probability:.2f}"


def _caption(automaton: StateAutomaton, hidden: int, least: float) -> list[str]:
    """How to read the drawing, and what it shows."""
    total = int(automaton.stops.sum()) + automaton.lost
    facts = [
        counted(automaton.states, "state"),
        counted(automaton.merges, "merge"),
        counted(total, "sequence") + (f", {automaton.lost:,} of them lost" if automaton.lost else ""),
        _hidden_text(hidden, least),
    ]
    return [
        "arrow: modifiers, with their probability in the state they leave; +n: rarer ones",
        "state: how probable it is to stop, or to go on with a modifier it has no arrow for (lost)",
        ", ".join(fact for fact in facts if fact),
    ]
