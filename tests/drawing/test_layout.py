"""Geometry: what the layout promises, measured on the marks of the finished drawings."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.drawing import comparison_drawing, heatmap_drawing, tree_drawing
from headway.drawing.layout import END_SPACE, WORD_SPACE, Arc, levels, place
from headway.drawing.primitives import Drawing, Group, Path, Polygon, Text
from headway.drawing.text_width import text_width
from headway.drawing.trees import MARGIN, WORD_SIZE
from headway.treebank import Sentence, crossing_arcs
from tests.drawing.geometry import Box, box, cross, meets, pieces
from tests.drawing.strategies import sentences
from tests.treebank.strategies import head_choices


def groups(drawing: Drawing) -> list[Group]:
    return [mark for mark in drawing.marks if isinstance(mark, Group)]


def path_of(group: Group) -> Path:
    (path,) = (mark for mark in group.marks if isinstance(mark, Path))
    return path


def label_of(group: Group) -> Text | None:
    return next((mark for mark in group.marks if isinstance(mark, Text)), None)


@st.composite
def arc_lists(draw: st.DrawFn) -> tuple[list[float], list[Arc]]:
    heads = draw(head_choices(10))
    n = len(heads) - 1
    widths = draw(st.lists(st.floats(1, 80), min_size=n, max_size=n))
    labels = draw(st.lists(st.sampled_from([0.0, 10.0, 45.0, 120.0]), min_size=n, max_size=n))
    return widths, [Arc(heads[m], m, labels[m - 1]) for m in range(1, n + 1)]


def share(a: Arc, b: Arc) -> bool:
    """Do two arcs have a stretch between two words in common?"""
    return bool(set(range(a.left, a.right)) & set(range(b.left, b.right)))


@given(arc_lists())
def test_levels_are_ordered_and_as_low_as_possible(given: tuple[list[float], list[Arc]]) -> None:
    _, arcs = given
    found = dict(zip(arcs, levels(arcs), strict=True))
    for a, b in itertools.combinations([arc for arc in arcs if arc.head], 2):
        if share(a, b):
            assert found[a] != found[b]
            if a.right - a.left != b.right - b.left:
                assert (found[a] < found[b]) == (a.right - a.left < b.right - b.left)
    for arc, level in found.items():
        if arc.head:
            shorter = [b for b in arcs if b.head and b is not arc and share(arc, b) and found[b] < level]
        else:
            shorter = [b for b in arcs if b.head and b.left <= arc.modifier <= b.right]
        assert level == 1 + max((found[b] for b in shorter), default=0)


@given(arc_lists())
def test_arcs_are_placed_once_in_order_and_those_of_a_level_apart(given: tuple[list[float], list[Arc]]) -> None:
    widths, arcs = given
    placed = place(widths, arcs).above
    assert [each.arc for each in placed] == arcs
    for a, b in itertools.combinations([each for each in placed if each.arc.head], 2):
        if a.level == b.level:
            (start, stop), (first, last) = sorted((a.head_x, a.modifier_x)), sorted((b.head_x, b.modifier_x))
            assert stop + END_SPACE <= first + 1e-6 or last + END_SPACE <= start + 1e-6


@given(arc_lists(), st.booleans())
def test_words_stand_apart_in_order_and_arcs_end_at_their_words(
    given: tuple[list[float], list[Arc]], above: bool
) -> None:
    widths, arcs = given
    placement = place(widths, arcs if above else [], [] if above else arcs, margin=5)
    boxes = list(zip(placement.words, widths, strict=True))
    for (x, width), (next_x, next_width) in itertools.pairwise(boxes):
        assert next_x - next_width / 2 - (x + width / 2) >= WORD_SPACE - 1e-6
    assert all(x - w / 2 >= 5 - 1e-6 and x + w / 2 <= placement.width - 5 + 1e-6 for x, w in boxes)
    placed = placement.above if above else placement.below
    ends: dict[int, list[float]] = {m: [] for m in range(len(widths) + 1)}
    for each in placed:
        ends[each.arc.modifier].append(each.modifier_x)
        if each.arc.head:
            ends[each.arc.head].append(each.head_x)
    for m, found in ends.items():
        assert all(b - a >= END_SPACE - 1e-6 for a, b in itertools.pairwise(sorted(found)))
        reach = max([widths[m - 1], len(found) * END_SPACE]) if m else 0.0
        assert all(abs(x - placement.words[m - 1]) <= reach / 2 for x in found)


@given(sentences())
def test_no_line_runs_through_a_label_and_no_labels_overlap(sentence: Sentence) -> None:
    drawn = groups(tree_drawing(sentence))
    assert len(drawn) == len(sentence)
    labels = [(group, box(label)) for group in drawn if (label := label_of(group))]
    for (_, a), (_, b) in itertools.combinations(labels, 2):
        assert not a.overlaps(b, room=2)
    for (group, area), other in itertools.product(labels, drawn):
        assert not any(meets(piece, area) for piece in pieces(path_of(other))), (group.title, other.title)


LONG = "a:very:very:long:label"


@pytest.mark.parametrize(
    ("heads", "labels"),
    [
        ((-1, 0, 1, 1, 1, 0), ["x", "x", "x", "x", LONG]),  # beside the highest arc at its left
        ((-1, 0, 5, 5, 5, 0), [LONG, "x", "x", "x", "x"]),  # and at its right
        ((-1, 0, 0, 0), [LONG, LONG, "x"]),  # beside another root
        ((-1, 0, 3, 0), [LONG, "x", LONG]),
        ((-1, 0), [LONG]),  # wider than the word
        ((-1, 2, 1, 0), ["x", LONG, "x"]),  # two arcs between the same words
    ],
)
def test_corner_cases_keep_the_promises_too(heads: tuple[int, ...], labels: list[str]) -> None:
    sentence = Sentence.from_words(["w"] * len(labels), heads=heads, labels=[None, *labels])
    drawing = tree_drawing(sentence)
    drawn, sheet = groups(drawing), Box(0, 0, drawing.width, drawing.height)
    areas = [box(label) for group in drawn if (label := label_of(group))]
    assert not any(a.overlaps(b, room=2) for a, b in itertools.combinations(areas, 2))
    strokes = [pieces(path_of(group)) for group in drawn]
    assert not any(meets(piece, area) for stroke in strokes for piece in stroke for area in areas)
    for one, two in itertools.combinations(strokes, 2):
        assert not any(cross(a, b) for a, b in itertools.product(one, two))
    assert all(sheet.holds(box(mark)) for mark in drawing.flat())


@given(sentences(kind="projective"))
def test_arcs_of_a_projective_tree_do_not_cross(sentence: Sentence) -> None:
    for a, b in itertools.combinations(groups(tree_drawing(sentence)), 2):
        for one, two in itertools.product(pieces(path_of(a)), pieces(path_of(b))):
            assert not cross(one, two)


@given(sentences(kind="tree"))
def test_arcs_that_cross_are_seen_to_cross(sentence: Sentence) -> None:
    drawn = [whole(group) for group in groups(tree_drawing(sentence))]
    met = {
        m
        for m, one in enumerate(drawn, start=1)
        for k, two in enumerate(drawn, start=1)
        if m != k and any(cross(a, b) for a, b in itertools.product(one, two))
    }
    assert sentence.heads is not None
    assert met == {m for m, crosses in enumerate(crossing_arcs(sentence.heads).tolist()) if crosses}


def whole(group: Group) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """The arc's line with the gap at its label closed, and a root arrow as long as it can be."""
    strokes = pieces(path_of(group))
    closed = [(a[1], b[0]) for a, b in itertools.pairwise(strokes) if a[1] != b[0]]
    if len(strokes) == 1:
        ((x, _), end) = strokes[0]
        return [((x, -1000.0), end)]
    return strokes + closed


@given(sentences())
def test_every_arc_has_its_arrow_at_the_modifier(sentence: Sentence) -> None:
    drawing = tree_drawing(sentence)
    words = [mark for mark in drawing.marks if isinstance(mark, Text) and mark.size == WORD_SIZE]
    assert [word.text for word in words] == list(sentence.forms)
    assert sentence.heads is not None
    fans = [END_SPACE * (1 + sum(head == m for head in sentence.heads.tolist())) for m in range(1, len(words) + 1)]
    for word, fan, group in zip(words, fans, groups(drawing), strict=True):
        (arrow,) = (mark for mark in group.marks if isinstance(mark, Polygon))
        tip = max(arrow.points, key=lambda point: point[1])
        assert abs(tip[0] - word.x) <= max(text_width(word.text, WORD_SIZE), text_width("NOUN", 9.5), fan) / 2
        assert 0 < word.y - tip[1] < 1.5 * WORD_SIZE


@given(sentences(), st.integers(0, 3), st.data())
def test_everything_is_on_the_sheet(sentence: Sentence, kind: int, data: st.DataObject) -> None:
    n = len(sentence)
    match kind:
        case 0:
            drawing = tree_drawing(sentence)
        case 1:
            p = data.draw(st.lists(st.floats(0, 1), min_size=n + 1, max_size=n + 1))
            drawing = tree_drawing(sentence, probabilities=p, unsure_below=data.draw(st.sampled_from([0.0, 0.5, 1.0])))
        case 2:
            heads = data.draw(_heads(n))
            drawing = comparison_drawing(sentence, sentence.with_tree(heads, (None, *("obj",) * n)))
        case _:
            drawing = heatmap_drawing(sentence, [[1 / max(1, n)] * (n + 1)] * (n + 1))
    sheet = Box(0, 0, drawing.width, drawing.height)
    for mark in drawing.flat():
        assert sheet.holds(box(mark)), mark


def _heads(n: int) -> st.SearchStrategy[tuple[int, ...]]:
    words = [st.sampled_from([h for h in range(n + 1) if h != m]) for m in range(1, n + 1)]
    return st.tuples(st.just(-1), *words)


@pytest.mark.parametrize("seed", range(3))
def test_sixty_words_keep_every_promise(seed: int) -> None:
    rng = random.Random(seed)
    heads, joined = [-1] * 61, [0]
    for word in rng.sample(range(1, 61), 60):
        heads[word] = rng.choice(joined)
        joined.append(word)
    labels = [None, *rng.choices(["det", "nsubj:pass", "compound:prt"], k=60)]
    drawn = groups(tree_drawing(Sentence.from_words(["word"] * 60, heads=heads, labels=labels)))
    areas = [box(label) for group in drawn if (label := label_of(group))]
    assert len(areas) == 60
    assert not any(a.overlaps(b) for a, b in itertools.combinations(areas, 2))
    strokes = [piece for group in drawn for piece in pieces(path_of(group))]
    assert not any(meets(piece, area) for piece, area in itertools.product(strokes, areas))


def test_an_empty_sentence_is_a_small_sheet() -> None:
    drawing = tree_drawing(Sentence.from_words([], heads=[-1]))
    assert drawing.marks == ()
    assert drawing.width == 2 * MARGIN
    assert drawing.height > 0
    assert drawing.title == "Dependency tree of an empty sentence"
