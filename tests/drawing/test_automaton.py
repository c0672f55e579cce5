"""Pictures of automata: nothing lost, nothing covered, the same bytes every time; DOT read by a parser of its own."""

from __future__ import annotations

import html
import math
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.drawing import automaton as drawing_module
from headway.drawing import graph_layout
from headway.drawing.automaton import (
    LABEL_SIZE,
    RADIUS,
    automaton_dot,
    automaton_drawing,
    drawn_arrows,
)
from headway.drawing.primitives import Cubic, Drawing, Group, Line, Move, Path, Point, Polygon, Text
from headway.drawing.svg import to_svg
from headway.errors import ShapeError, SizeError
from headway.inference.forward_states import StateAutomaton, determinised, frequent_prefixes
from tests.drawing.geometry import Box, box, cross

NAMESPACE = "{http://www.w3.org/2000/svg}"
NAMES = ["", "DT", "PRP$", "JJ", ",", "NNP"]
SYMBOLS = len(NAMES)


def walked(seed: int, states: int, size: int) -> StateAutomaton:
    """Random sequences through a random table of transitions: most states are reached, with arrows of all kinds."""
    rng = np.random.default_rng(seed)
    table = rng.integers(0, states, size=(states, SYMBOLS))
    sequences = [tuple(rng.integers(1, SYMBOLS, size=rng.integers(0, 6)).tolist()) for _ in range(size)]
    prefixes = frequent_prefixes(sequences, minimum=2)
    clusters = []
    for x in prefixes.sequences:
        state = 0
        for symbol in x:
            state = int(table[state, symbol])
        clusters.append(state)
    return determinised(prefixes, clusters, sequences)


automata = st.builds(walked, st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(0, 80))


def paper() -> StateAutomaton:
    """A small noun phrase: determiners and possessives end it, adjectives go on, commas start anew."""
    sequences = [(), (1,), (2,), (3, 1), (3, 3, 1), (3, 2), (4, 3, 1), (3,), (5, 1), (3, 5)]
    counts = [30, 50, 12, 40, 6, 8, 4, 20, 1, 1]
    prefixes = frequent_prefixes(sequences, counts, minimum=4)
    kinds = {(): 0, 1: 2, 2: 2, 3: 1, 4: 3}
    return determinised(prefixes, [kinds[x[-1] if x else ()] for x in prefixes.sequences], sequences, counts)


# What Graphviz reads: the lexer's rules for quoted strings, and then what labels mean.


@dataclass(frozen=True)
class Dot:
    label: str
    nodes: dict[int, str]
    edges: dict[tuple[int, int], str]


TOKEN = re.compile(r'\s*(?:(?P<string>"(?:\\.|[^"\\])*")|(?P<word>[\w.]+)|(?P<sign>->|[{}\[\];,=]))', re.DOTALL)


def tokens(text: str) -> Iterator[str]:
    place = 0
    while text[place:].strip():
        found = TOKEN.match(text, place)
        assert found, f"not DOT: {text[place : place + 30]!r}"
        yield found[0].strip()
        place = found.end()


def shown(token: str) -> str:
    """The text a quoted label shows."""
    assert token[0] == token[-1] == '"'
    return html.unescape(re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], token[1:-1]))


def read_dot(text: str) -> Dot:
    """A subset of the grammar: digraph ID { (a=b | id [a=b, ...] | id -> id [a=b, ...]) ; ... }."""
    words = list(tokens(text))
    assert words[:3] == ["digraph", "automaton", "{"]
    assert words[-1] == "}"
    label, nodes, edges = "", {}, {}
    statement: list[str] = []
    for word in words[3:-1]:
        if word != ";":
            statement.append(word)
            continue
        if statement[1] == "=":
            assert len(statement) == 3
            label = shown(statement[2]) if statement[0] == "label" else label
        else:
            opening = statement.index("[")
            assert statement[-1] == "]"
            given = statement[opening + 1 : -1]
            assert given[1::4] == ["="] * len(given[1::4])
            assert given[3::4] == [","] * len(given[3::4])
            attributes = dict(zip(given[::4], given[2::4], strict=True))
            subject = statement[:opening]
            if len(subject) == 3:
                assert subject[1] == "->"
                assert 0.5 <= float(attributes["penwidth"]) <= 5
                edges[int(subject[0]), int(subject[2])] = shown(attributes["label"])
            elif subject[0] not in ("node", "edge"):
                nodes[int(subject[0])] = shown(attributes["label"])
        statement = []
    assert not statement
    return Dot(label, nodes, edges)


def expected_labels(automaton: StateAutomaton, names: list[str], least: float) -> dict[tuple[int, int], str]:
    """All arrows with their labels, whether they are drawn or not, straight from the counts."""
    symbols = defaultdict(list)
    for (state, symbol), arrow in automaton.transitions.items():
        symbols[state, arrow.state].append((-arrow.count, symbol))
    labels = {}
    for (state, target), found in symbols.items():
        shares = [(names[symbol], -count / automaton.visits[state]) for count, symbol in sorted(found)]
        kept = [share for share in shares if share[1] >= least] or shares[:1]
        items = [f"{name} {share:.2f}" for name, share in kept]
        more = len(shares) - len(kept)
        labels[state, target] = ", ".join([*items, f"+{more}"] if more else items)
    return labels


@given(automata, st.sampled_from([0.0, 0.05, 0.3]))
def test_dot_says_every_state_and_every_arrow(automaton: StateAutomaton, least: float) -> None:
    names = [f"t{i}" for i in range(SYMBOLS)]
    found = read_dot(automaton_dot(automaton, names, least=least))
    assert set(found.nodes) == set(range(automaton.states))
    for state, text in found.nodes.items():
        visits = int(automaton.visits[state])
        name, *shares = text.split("\n")
        assert name == ("I" if state == 0 else str(state))
        lost = automaton.leaves[state] / visits if visits else 0
        stop = f"STOP {automaton.stops[state] / visits:.2f}" if visits else "no visits"
        assert shares == [stop, f"lost {lost:.2f}"] if lost and lost >= least else [stop]
    every = expected_labels(automaton, names, least)
    for ends, text in found.edges.items():
        assert text.replace("\n", " ") == every[ends]
    hidden = len(every) - len(found.edges)
    assert found.label == (f"{hidden} arrow{'s' * (hidden > 1)} rarer than {least:g} not drawn" if hidden else "")


@given(automata, st.sampled_from([0.0, 0.05, 0.3, 2.0]))
def test_frequent_arrows_are_drawn_and_no_state_is_cut_off(automaton: StateAutomaton, least: float) -> None:
    arrows, hidden = drawn_arrows(automaton, least)
    drawn = {(arrow.source, arrow.target): arrow for arrow in arrows}
    counts: dict[tuple[int, int], int] = defaultdict(int)
    for (state, _), arrow in automaton.transitions.items():
        counts[state, arrow.state] += arrow.count
    assert list(drawn) == sorted(drawn)
    assert len(arrows) + hidden == len(counts)
    rare = set()
    for ends, count in counts.items():
        if count >= least * int(automaton.visits[ends[0]]):
            assert drawn[ends].count == count
        elif ends in drawn:
            rare.add(ends)
    reached = {0}
    for _ in range(automaton.states):
        reached |= {target for source, target in drawn if source in reached}
    assert reached == set(range(automaton.states))
    for ends in rare:  # each of them is needed
        reached = {0}
        for _ in range(automaton.states):
            reached |= {target for source, target in drawn if source in reached and (source, target) != ends}
        assert ends[1] not in reached


def test_an_arrow_as_probable_as_the_least_is_drawn() -> None:
    sequences = [(1,), (2,), (2, 1), ()]
    automaton = determinised(frequent_prefixes(sequences), [0, 1, 1, 1], sequences)
    assert automaton.probability(1, 1) == 0.25
    assert (1, 1) in read_dot(automaton_dot(automaton, NAMES, least=0.25)).edges
    assert (1, 1) not in read_dot(automaton_dot(automaton, NAMES, least=0.26)).edges


def test_of_two_rare_ways_to_a_state_the_more_frequent_is_drawn() -> None:
    sequences = [(), (1,), (2,), (1, 3), (2, 3)]
    counts = [100, 100, 100, 2, 1]
    prefixes = frequent_prefixes(sequences, counts)
    place = {x: i for i, x in enumerate([(), (1,), (2,), (1, 3)])} | {(2, 3): 3}
    automaton = determinised(prefixes, [place[x] for x in prefixes.sequences], sequences, counts)
    names = [f"t{i}" for i in range(SYMBOLS)]
    through = automaton.state_of((1,))
    assert [ends for ends, text in read_dot(automaton_dot(automaton, names)).edges.items() if "t3" in text] == [
        (through, 3)
    ]


def test_a_label_has_the_likeliest_first_and_counts_the_rest() -> None:
    text = automaton_dot(paper(), NAMES, least=0.2)
    dot = read_dot(text)
    assert dot.nodes == {0: "I\nSTOP 0.17", 1: "1\nSTOP 0.24", 2: "2\nSTOP 1.00", 3: "3\nSTOP 0.00"}
    assert dot.edges == {
        (0, 1): "JJ 0.44",
        (0, 2): "DT 0.29, +1",
        (0, 3): "“,” 0.02",
        (1, 2): "DT 0.59, +1",
        (3, 1): "JJ 1.00",
    }
    assert dot.label == "1 arrow rarer than 0.2 not drawn"


letters = st.characters(exclude_categories=["C", "Z"])
wild = st.lists(
    st.sampled_from(['"', "\\", "\\n", "\\N", "&", "&lt;", "&#65;", "]", "}", ";", ",", " ", "犬"]) | letters,
    min_size=1,
)
wild_names = st.lists(wild.map("".join), min_size=SYMBOLS, max_size=SYMBOLS)


@settings(max_examples=100)
@given(wild_names, wild.map("".join))
def test_any_names_come_back_from_dot(names: list[str], title: str) -> None:
    dot = read_dot(automaton_dot(paper(), names, title=title, least=0.0))
    assert dot.label == title
    label = dot.edges[1, 2].replace("\n", " ")
    assert re.fullmatch(rf"“?{re.escape(names[1])}”? 0\.59, “?{re.escape(names[2])}”? 0\.09", label)


def test_control_characters_are_replaced_in_dot() -> None:
    names = ["", "a\nb", "c\x07", "d", "e", "f"]
    assert read_dot(automaton_dot(paper(), names)).edges[0, 2].startswith("a\ufffdb 0.29, c\ufffd 0.07")


def groups(drawing: Drawing, *, arrows: bool) -> dict[str, Group]:
    found = [mark for mark in drawing.marks if isinstance(mark, Group)]
    return {group.title.split(":")[0]: group for group in found if ("→" in group.title.split(":")[0]) == arrows}


def circles(drawing: Drawing) -> dict[str, Point]:
    """The middles of the states, by name."""
    middles = {}
    for name, group in groups(drawing, arrows=False).items():
        (outline,) = [mark for mark in group.marks if isinstance(mark, Path)]
        first = outline.segments[0]
        assert isinstance(first, Move)
        middles[name.removeprefix("state ")] = (first.to[0] - RADIUS, first.to[1])
    return middles


def curve(path: Path) -> list[Point]:
    start, bend = path.segments
    assert isinstance(start, Move)
    assert isinstance(bend, Cubic)
    points = (start.to, bend.first, bend.second, bend.to)
    result = []
    for step in range(101):
        t = step / 100
        weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
        x, y = (sum(w * point[axis] for w, point in zip(weights, points, strict=True)) for axis in (0, 1))
        result.append((x, y))
    return result


def label_box(group: Group) -> Box:
    boxes = [box(mark) for mark in group.marks if isinstance(mark, Text)]
    lefts, tops, rights, bottoms = zip(*((b.left, b.top, b.right, b.bottom) for b in boxes), strict=True)
    return Box(min(lefts), min(tops), max(rights), max(bottoms))


def distance(point: Point, area: Box) -> float:
    x, y = min(max(point[0], area.left), area.right), min(max(point[1], area.top), area.bottom)
    return math.dist(point, (x, y))


def assert_nothing_is_covered(automaton: StateAutomaton) -> None:
    drawing = automaton_drawing(automaton, NAMES)
    middles, arrows = circles(drawing), groups(drawing, arrows=True)
    assert len(middles) == automaton.states
    assert len(arrows) == len(drawn_arrows(automaton, 0.02)[0])
    sheet = Box(0, 0, drawing.width, drawing.height)
    assert all(sheet.holds(box(mark)) for mark in drawing.flat())
    for a, b in combinations(middles.values(), 2):
        assert math.dist(a, b) > 2 * RADIUS + 10
    labels = [label_box(group) for group in arrows.values()]
    assert not any(one.overlaps(other, 3) for one, other in combinations(labels, 2))
    for label in labels:
        assert all(distance(middle, label) > RADIUS + 2 for middle in middles.values())
    for name, group in arrows.items():
        source, target = name.split(" → ")
        lines = [curve(mark) for mark in group.marks if isinstance(mark, Path)]
        for state, middle in middles.items():
            room = 0.0 if state in (source, target) else 3.0
            assert all(math.dist(point, middle) > RADIUS + room for line in lines for point in line)
        (head,) = [mark for mark in group.marks if isinstance(mark, Polygon)]
        assert math.dist(head.points[0], middles[target]) == pytest.approx(RADIUS)
        assert math.dist(lines[0][0], middles[source]) < RADIUS + 6
        for label in labels:
            assert not any(distance(point, label) == 0 for line in lines for point in line)


@settings(max_examples=15)
@given(automata)
def test_no_label_no_line_and_no_state_covers_another(automaton: StateAutomaton) -> None:
    assert_nothing_is_covered(automaton)


@pytest.mark.parametrize(("seed", "states"), [(2, 8), (4, 12)])
def test_neither_do_they_in_a_crowd(seed: int, states: int) -> None:
    automaton = walked(seed, states, 400)
    assert len(drawn_arrows(automaton, 0.02)[0]) >= 20
    assert_nothing_is_covered(automaton)


@settings(max_examples=20)
@given(automata)
def test_layers_go_from_left_to_right(automaton: StateAutomaton) -> None:
    arrows, _ = drawn_arrows(automaton, 0.02)
    layer = {0: 0}
    for step in range(1, automaton.states + 1):
        for state in {arrow.target for arrow in arrows if layer.get(arrow.source) == step - 1}:
            layer.setdefault(state, step)
    across = {
        0 if name == "I" else int(name): x for name, (x, _) in circles(automaton_drawing(automaton, NAMES)).items()
    }
    for a, b in combinations(range(automaton.states), 2):
        if layer[a] != layer[b]:
            assert (across[a] < across[b]) == (layer[a] < layer[b])


def test_crossings_are_counted() -> None:
    lines = np.random.default_rng(3).normal(size=(2, 4, 7, 2))
    first, second = ([list(pairwise(map(tuple, line))) for line in half] for half in lines.tolist())
    counts = [[sum(cross(a, b) for a in one for b in other) for other in second] for one in first]
    assert graph_layout._crossings(*lines).tolist() == counts
    assert max(map(max, counts)) > 5


def test_everything_drawn_is_also_said() -> None:
    drawing = automaton_drawing(paper(), NAMES, title="NN, left")
    assert drawing.title == "NN, left"
    assert drawing.description == (
        "state I: 172 visits, STOP 0.17, lost 0.01. state 1: 85 visits, STOP 0.24, lost 0.01. "
        "state 2: 120 visits, STOP 1.00. state 3: 4 visits, STOP 0.00. "
        "I → 1: JJ 0.44; together 0.44. I → 2: DT 0.29, PRP$ 0.07; together 0.36. I → 3: “,” 0.02; together 0.02. "
        "1 → 1: JJ 0.07; together 0.07. 1 → 2: DT 0.59, PRP$ 0.09; together 0.68. 3 → 1: JJ 1.00; together 1.00. "
        "4 states, 0 merges, 172 sequences, 2 of them lost."
    )


def test_likelier_arrows_are_thicker_and_likelier_stops_darker() -> None:
    drawing = automaton_drawing(paper(), NAMES)
    arrows, states = groups(drawing, arrows=True), groups(drawing, arrows=False)
    widths = {name: next(m.width for m in group.marks if isinstance(m, Path)) for name, group in arrows.items()}
    assert sorted(widths, key=widths.__getitem__) == ["I → 3", "1 → 1", "I → 2", "I → 1", "1 → 2", "3 → 1"]
    fills = {name: next(m.colour for m in group.marks if isinstance(m, Polygon)) for name, group in states.items()}
    assert fills["state 3"] == "#ffffff"
    assert fills["state 2"] < fills["state 1"] < fills["state I"] < fills["state 3"]


def test_the_start_is_entered_from_the_left() -> None:
    drawing = automaton_drawing(paper(), NAMES)
    x, y = circles(drawing)["I"]
    lines = [mark for mark in drawing.marks if isinstance(mark, Path)]
    assert len(lines) == 1
    start, end = lines[0].segments
    assert isinstance(start, Move)
    assert isinstance(end, Line)
    assert start.to[0] < end.to[0] < x - RADIUS
    assert start.to[1] == end.to[1] == y


def test_a_picture_that_finds_no_room_at_first_is_made_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    """States so close that labels cannot stand between them."""
    small = automaton_drawing(paper(), NAMES)
    monkeypatch.setattr(graph_layout, "_ROOMS", (0.45, 2.0))
    large = automaton_drawing(paper(), NAMES)
    assert large.width > small.width
    monkeypatch.setattr(graph_layout, "_ROOMS", (0.45,))
    tight = automaton_drawing(paper(), NAMES)  # nothing better is allowed
    assert tight.height < small.height


@settings(max_examples=10)
@given(wild_names, wild.map("".join))
def test_any_names_come_back_from_the_svg(names: list[str], title: str) -> None:
    root = ElementTree.fromstring(to_svg(automaton_drawing(paper(), names, title=title)))
    assert root.findtext(f"{NAMESPACE}title") == title
    assert root.get("role") == "img"
    assert root.get("aria-label") == title
    written = [
        element.text or "" for element in root.iter(f"{NAMESPACE}text") if element.get("font-size") == f"{LABEL_SIZE:g}"
    ]
    for name in (names[1], names[3]):
        assert any(name in text for text in written)
    elements = {element.tag.removeprefix(NAMESPACE) for element in root.iter()}
    assert elements == {"svg", "title", "desc", "g", "text", "path", "polygon", "rect"}


def test_the_same_automaton_gives_the_same_bytes() -> None:
    first, again = to_svg(automaton_drawing(paper(), NAMES)), to_svg(automaton_drawing(paper(), NAMES))
    assert first == again
    assert first == to_svg(automaton_drawing(paper(), NAMES, title="Automaton", least=0.02))
    assert automaton_dot(paper(), NAMES) == automaton_dot(paper(), NAMES)


def test_an_automaton_without_sequences() -> None:
    empty = determinised(frequent_prefixes([]), [0], [])
    assert read_dot(automaton_dot(empty, [])) == Dot("", {0: "I\nno visits"}, {})
    drawing = automaton_drawing(empty, [])
    assert drawing.description == "state I: 0 visits, no visits. 1 state, 0 merges, 0 sequences."
    assert "nan" not in to_svg(drawing)


def test_what_cannot_be_drawn_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for draw in (automaton_dot, automaton_drawing):
        with pytest.raises(ShapeError, match="symbol 4, but there are 3 names"):
            draw(paper(), NAMES[:3])
    monkeypatch.setattr(drawing_module, "MOST_ARROWS", 5)
    with pytest.raises(SizeError, match="6 arrows are too many to draw; at most 5"):
        automaton_drawing(paper(), NAMES)
    assert automaton_dot(paper(), NAMES)
