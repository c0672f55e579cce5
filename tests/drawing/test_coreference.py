"""Coreference: every mention once, below its antecedent; lines that can be told apart; a page that is well-formed."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.drawing import MentionText, coreference_drawing, coreference_page, palette, save_drawing, to_svg
from headway.drawing.coreference import CAP, STEP, shortened
from headway.drawing.latent_tree import CLUSTER_COLOURS, latent_tree
from headway.drawing.primitives import Drawing, Group, Path, Point, Polygon, Rectangle, Text
from headway.drawing.text_width import text_width
from headway.errors import ArcError, HeadsError, ShapeError, TreebankError
from tests.drawing.geometry import Box, box, cross, meets, pieces, polylines

NAMESPACE = "{http://www.w3.org/2000/svg}"


def mentions_named(names: Sequence[str]) -> list[MentionText]:
    return [MentionText(place // 3, place % 3 + 1, place % 3 + 1, name) for place, name in enumerate(names)]


def numbered_mentions(count: int) -> list[MentionText]:
    """Texts that say which node they are."""
    return mentions_named([f"m{node}" for node in range(1, count + 1)])


@st.composite
def head_arrays(draw: st.DrawFn, most: int = 40, *, trunk: int = 0) -> list[int]:
    """Shallow and deep trees, with and without mentions alone; they begin with a chain of `trunk` mentions."""
    back = draw(st.sampled_from([1, 2, 3, most]))
    shares = st.floats(0, 1, exclude_max=True)
    heads = [-1, *range(trunk)]
    for share, choice in draw(st.lists(st.tuples(shares, shares), max_size=most)):
        node = len(heads)
        starts = node == 1 or share < 0.1
        first = max(1, trunk - 1, node - back)
        heads.append(0 if starts else first + int(choice * (node - first)) if first < node else node - 1)
    return heads


def top_of(heads: Sequence[int], node: int) -> int:
    while heads[node]:
        node = heads[node]
    return node


def depth_of(heads: Sequence[int], node: int) -> int:
    return 0 if not heads[node] else 1 + depth_of(heads, heads[node])


def members(heads: Sequence[int]) -> dict[int, set[int]]:
    """By first mention: the nodes of a cluster of two or more."""
    found: dict[int, set[int]] = {}
    for node in range(1, len(heads)):
        found.setdefault(top_of(heads, node), set()).add(node)
    return {first: nodes for first, nodes in found.items() if len(nodes) > 1}


def texts(drawing: Drawing) -> list[str]:
    return [mark.text for mark in drawing.flat() if isinstance(mark, Text)]


@dataclass
class Row:
    """What is drawn for a mention."""

    title: str
    text: Text
    sentence: str
    arc: Path | None
    dot: Point | None
    chip: Rectangle | None


def rows_of(drawing: Drawing) -> dict[int, Row]:
    """By node, for mentions that are named by their nodes."""
    found = {}
    for group in drawing.marks:
        if not isinstance(group, Group):
            continue
        number, text = [mark for mark in group.marks if isinstance(mark, Text)][-2:]
        arcs = [mark for mark in group.marks if isinstance(mark, Path)]
        chips = [mark for mark in group.marks if isinstance(mark, Rectangle)]
        dots = [tuple(np.mean(mark.points, axis=0)) for mark in group.marks if isinstance(mark, Polygon)]
        arc, dot, chip = ((marks or [None])[0] for marks in (arcs, dots, chips))
        node = int(text.text[1:])
        assert node not in found
        found[node] = Row(group.title, text, number.text, arc, dot, chip)
    return found


@given(head_arrays())
def test_clusters_hold_what_hangs_below_a_first_mention(heads: list[int]) -> None:
    tree = latent_tree(heads, len(heads) - 1)
    expected = members(heads)
    assert {cluster.nodes[0]: set(cluster.nodes) for cluster in tree.numbered()} == expected
    assert [cluster.number for cluster in tree.numbered()] == list(range(1, len(expected) + 1))
    assert [cluster.nodes[0] for cluster in tree.numbered()] == sorted(expected)
    assert sorted([*tree.alone(), *(node for nodes in expected.values() for node in nodes)]) == [*range(1, len(heads))]
    for cluster in tree.numbered():
        assert len(cluster.nodes) == len(set(cluster.nodes))


@given(head_arrays(), st.booleans())
def test_every_mention_of_a_cluster_is_drawn_once_and_others_are_counted(heads: list[int], singletons: bool) -> None:
    count = len(heads) - 1
    drawing = coreference_drawing(numbered_mentions(count), heads, singletons=singletons)
    clustered = {node for nodes in members(heads).values() for node in nodes}
    alone = count - len(clustered)
    assert set(rows_of(drawing)) == (set(range(1, count + 1)) if singletons else clustered)
    line = f"+ {alone} mention{'s' * (alone != 1)} that stand{'s' * (alone == 1)} alone"
    assert (line in texts(drawing)) == (alone > 0 and not singletons)
    assert ("no mentions" in texts(drawing)) == (count == 0)
    for node, row in rows_of(drawing).items():
        assert row.sentence == str((node - 1) // 3 + 1)
        assert row.title.startswith(f"m{node} (sentence {row.sentence}): ")


@given(head_arrays() | head_arrays(trunk=CAP + 2))
def test_a_row_is_below_its_antecedent_and_one_step_to_the_right_up_to_the_cap(heads: list[int]) -> None:
    rows = rows_of(coreference_drawing(numbered_mentions(len(heads) - 1), heads))
    for nodes in members(heads).values():
        down = sorted(nodes, key=lambda node: rows[node].text.y)
        assert len({rows[node].text.y for node in nodes}) == len(nodes)
        for place, node in enumerate(down):
            row, head = rows[node], heads[node]
            assert row.text.bold == (not head)
            if not head:
                assert place == 0
                continue
            # A preorder: the row above is the antecedent, or hangs below it.
            above = down[place - 1]
            while above != head:
                above = heads[above]
                assert above
            depth = depth_of(heads, node)
            step = row.text.x - rows[head].text.x
            assert row.title.endswith(f": below m{head} (sentence {rows[head].sentence})")
            if depth == 1:
                assert step > 0
            elif depth < CAP:
                assert step == pytest.approx(STEP)
            elif depth == CAP:
                assert step >= STEP - 1e-9
            else:
                assert step == pytest.approx(0)
        siblings = [[node for node in down if heads[node] == head] for head in nodes]
        assert all(found == sorted(found) for found in siblings)


@given(head_arrays() | head_arrays(trunk=CAP + 2), st.integers(1, 5))
def test_an_arc_leads_from_the_antecedents_dot_to_the_own_one(heads: list[int], every: int) -> None:
    wrong = wrong_ones(heads, every)
    drawing = coreference_drawing(numbered_mentions(len(heads) - 1), heads, wrong=wrong)
    rows = rows_of(drawing)
    for node, row in rows.items():
        if not heads[node]:
            assert (row.arc, row.dot) == (None, None)
            assert row.chip is not None
            continue
        assert row.arc is not None
        assert row.dot is not None
        (stroke,) = polylines(row.arc)
        assert np.hypot(*np.subtract(stroke[-1], row.dot)) == pytest.approx(2.8, abs=0.01)
        antecedent = rows[heads[node]]
        if antecedent.chip is not None:
            around = box(antecedent.chip)
            assert stroke[0][1] == pytest.approx(around.bottom)
            assert around.left < stroke[0][0] < around.right
        else:
            assert antecedent.dot is not None
            assert np.hypot(*np.subtract(stroke[0], antecedent.dot)) < 4
        assert (row.arc.dash is not None) == (node in wrong)
        assert (row.arc.colour == palette.WRONG) == (node in wrong)
        assert (": wrong, below " in row.title) == (node in wrong)
    assert any("wrong" in text for text in texts(drawing)) == bool(wrong)


def _lie_on_each_other(a: tuple[Point, Point], b: tuple[Point, Point]) -> bool:
    """Two straight pieces, both upright or both level, that share more than a point."""
    for axis in (0, 1):
        if all(abs(end[axis] - a[0][axis]) < 0.05 for end in (*a, *b)):
            (low, high), (other_low, other_high) = (sorted(end[1 - axis] for end in piece) for piece in (a, b))
            return min(high, other_high) - max(low, other_low) > 0.05
    return False


def wrong_ones(heads: Sequence[int], every: int) -> set[int]:
    return {node for node in range(1, len(heads)) if heads[node] and node % every == 0}


@pytest.mark.parametrize("trunk", [0, CAP, CAP + 2])
@given(st.data())
def test_lines_from_two_antecedents_neither_cross_nor_coincide(trunk: int, data: st.DataObject) -> None:
    heads = data.draw(head_arrays(16, trunk=trunk))
    wrong = wrong_ones(heads, data.draw(st.sampled_from([2, 3, 99])))
    rows = rows_of(coreference_drawing(numbered_mentions(len(heads) - 1), heads, wrong=wrong))
    lines = {node: pieces(row.arc) for node, row in rows.items() if row.arc is not None}
    for a, b in combinations(lines, 2):
        pairs = [(piece, other) for piece in lines[a] for other in lines[b]]
        if heads[a] != heads[b]:
            assert not any(cross(*pair) for pair in pairs)
        if heads[a] != heads[b] or (a in wrong) != (b in wrong):
            assert not any(_lie_on_each_other(*pair) for pair in pairs)
    for node in lines:
        for row in rows.values():
            assert not any(meets(piece, box(row.text)) for piece in lines[node])
            if row.dot is not None:  # a line ends at dots, and runs over none
                x, y = row.dot
                assert not any(meets(piece, Box(x - 1.5, y - 1.5, x + 1.5, y + 1.5)) for piece in lines[node])


@given(head_arrays(), st.booleans())
def test_nothing_overlaps_or_leaves_the_sheet(heads: list[int], singletons: bool) -> None:
    drawing = coreference_drawing(numbered_mentions(len(heads) - 1), heads, singletons=singletons)
    sheet = Box(0, 0, drawing.width, drawing.height)
    assert all(sheet.holds(box(mark)) for mark in drawing.flat())
    written = [box(mark) for mark in drawing.flat() if isinstance(mark, Text)]
    assert not any(a.overlaps(b) for a, b in combinations(written, 2))
    grounds = [box(mark) for mark in drawing.marks if isinstance(mark, Rectangle) and mark.width > 10 < mark.height]
    assert len(grounds) == len(members(heads))
    assert not any(a.overlaps(b, room=5) for a, b in combinations(grounds, 2))
    first = sorted(members(heads))
    for top, ground in zip(first, grounds, strict=True):
        rows = rows_of(drawing)
        assert all(ground.holds(box(rows[node].text)) for node in members(heads)[top])


def many_clusters(sizes: Sequence[int]) -> list[int]:
    """Stars, one after the other."""
    heads = [-1]
    for size in sizes:
        first = len(heads)
        heads += [0] + [first] * (size - 1)
    return heads


@pytest.mark.parametrize(
    "sizes", [[2] * 200, [5] * 40, [30] * 4, [*range(2, 30)], [100, *[2] * 150], [40, 2, 2, 2, 60, 3]]
)
def test_a_document_fills_about_a_square_column_by_column(sizes: list[int]) -> None:
    heads = many_clusters(sizes)
    drawing = coreference_drawing(mentions_named(["a mention of middle size"] * (len(heads) - 1)), heads)
    chips = [group.marks[:2] for group in drawing.marks if isinstance(group, Group) and len(group.marks) == 4]
    places = [(mark.x, mark.y, int(text.text)) for mark, text in chips if isinstance(mark, Rectangle)]  # type: ignore[union-attr]
    assert [number for _, _, number in sorted(places)] == [*range(1, len(sizes) + 1)]
    tallest = 17 * max(sizes) + 10
    assert 0.6 < drawing.width / drawing.height < 1.7 or drawing.height < tallest + 100
    columns = Counter(x for x, _, _ in places)
    assert len(columns) > 1


def test_deep_chains_stay_narrow() -> None:
    chain = [*range(-1, 300)]
    comb = [-1, 0, *(node - 1 - node % 2 for node in range(2, 301))]  # two below each of a chain, the later one in it
    nested = [-1, 0, *range(1, 100), *range(100, 0, -1)]  # a second one below each of a chain, after its end
    right = []
    for heads in (chain, comb, nested):
        drawing = coreference_drawing(numbered_mentions(len(heads) - 1), heads)
        right.append(max(row.dot[0] for row in rows_of(drawing).values() if row.dot is not None))
    assert right[0] < right[1] < right[0] + STEP  # one lane after the other can be in the same place
    assert right[1] < right[2] < right[0] + 60


def test_the_small_example() -> None:
    names = ["a dog", "rain", "it", "the man", "he", "its"]
    drawing = coreference_drawing(mentions_named(names), np.array([-1, 0, 0, 1, 0, 4, 3]), wrong=[5])
    assert [mark.title for mark in drawing.marks if isinstance(mark, Group)] == [
        "a dog (sentence 1): starts cluster 1 of 3 mentions",
        "it (sentence 1): below a dog (sentence 1)",
        "its (sentence 2): below it (sentence 1)",
        "the man (sentence 2): starts cluster 2 of 2 mentions",
        "he (sentence 2): wrong, below the man (sentence 2)",
    ]
    assert drawing.title == "Coreference: 2 clusters of 5 mentions"
    assert drawing.description.endswith(
        "he (sentence 2): wrong, below the man (sentence 2). + 1 mention that stands alone."
    )
    assert texts(drawing) == [
        *("1", "1", "a dog"),  # the number of the cluster, that of the sentence, the mention
        *("1", "it"),
        *("2", "its"),
        *("2", "2", "the man"),
        *("2", "he"),
        "from a mention's antecedent",
        "wrong: joins two clusters of the reference",
        *("7", "number of the sentence"),
        "+ 1 mention that stands alone",
    ]


@pytest.mark.parametrize("singletons", [False, True])
def test_numbers_and_colours_do_not_depend_on_mentions_that_stand_alone(singletons: bool) -> None:
    heads = [-1, 0, 0, 2, 0, 0, 5]
    drawing = coreference_drawing(numbered_mentions(6), heads, singletons=singletons)
    chips = {row.title: row.chip for row in rows_of(drawing).values() if row.chip is not None}
    assert {title: chip.fill for title, chip in chips.items()} == {
        "m2 (sentence 1): starts cluster 1 of 2 mentions": CLUSTER_COLOURS[0],
        "m5 (sentence 2): starts cluster 2 of 2 mentions": CLUSTER_COLOURS[1],
    }
    alone = [row.title for row in rows_of(drawing).values() if row.title.endswith(": alone")]
    assert alone == (["m1 (sentence 1): alone", "m4 (sentence 2): alone"] if singletons else [])
    assert ("alone" in texts(drawing)) == singletons


def test_without_clusters_it_says_so() -> None:
    empty = coreference_drawing([], [-1])
    assert texts(empty) == ["no mentions"]
    assert (empty.title, empty.description) == ("Coreference: 0 clusters of 0 mentions", "no mentions.")
    alone = coreference_drawing(numbered_mentions(2), [-1, 0, 0])
    assert texts(alone) == ["no clusters of two or more mentions", "+ 2 mentions that stand alone"]


@given(st.text(min_size=1, max_size=80), st.floats(20, 120), st.booleans())
def test_a_mention_is_cut_where_it_does_not_fit_any_more(text: str, room: float, bold: bool) -> None:
    found = shortened(text, room, bold=bold)
    if text_width(text, 12, bold=bold) <= room:
        assert found == text
        return
    kept = found.removesuffix("…")
    assert found == kept + "…"
    assert text.startswith(kept)
    assert text_width(found, 12, bold=bold) <= room + 1e-9
    longer = text[: len(kept) + len(text[len(kept) :]) - len(text[len(kept) :].lstrip()) + 1]
    assert text_width(longer + "…", 12, bold=bold) > room


def test_long_mentions_are_cut_and_whole_in_the_title() -> None:
    long = "the  man\nwho " + "walked " * 30
    drawing = coreference_drawing(mentions_named([long, "he"]), [-1, 0, 1])
    (shown,) = [text for text in texts(drawing) if text.startswith("the man who walked")]
    assert shown.endswith("…")
    assert len(shown) < 50
    assert drawing.width < 600
    assert " ".join(long.split()) + " (sentence 1): starts" in drawing.description


def test_the_svg_is_well_formed_and_the_same_every_time() -> None:
    names = ['<&>"', "</text>", "\x00\ud800", "犬", "x"]
    drawing = coreference_drawing(mentions_named(names), [-1, 0, 1, 2, 3, 1], wrong={3, 5})
    text = to_svg(drawing)
    root = ElementTree.fromstring(text)
    written = [element.text for element in root.iter(f"{NAMESPACE}text")]
    assert {'<&>"', "</text>", "\ufffd\ufffd", "犬"} <= set(written)
    assert sum(element.get("stroke-dasharray") is not None for element in root.iter(f"{NAMESPACE}path")) == 3
    assert len(root.findall(f"{NAMESPACE}g")) == 5
    again = coreference_drawing(tuple(mentions_named(names)), np.array([-1, 0, 1, 2, 3, 1]), wrong=[5, 3])
    assert to_svg(again) == text


def test_matplotlib_draws_it_too() -> None:
    pytest.importorskip("matplotlib")
    target = io.BytesIO()
    save_drawing(coreference_drawing(numbered_mentions(12), [-1, 0, *range(1, 12)], wrong={4}), target, format="pdf")
    assert target.getvalue().startswith(b"%PDF")


TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
EYES = {  # Machado, Oliveira and Fernandes 2009, severity 1
    "all": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


def linear(colour: str) -> np.ndarray:
    c = np.array([*bytes.fromhex(colour[1:])]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(light: np.ndarray) -> np.ndarray:
    share = TO_XYZ @ np.clip(light, 0, 1) / [0.9505, 1.0, 1.089]
    x, y, z = np.where(share > (6 / 29) ** 3, np.cbrt(share), share * (29 / 6) ** 2 / 3 + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eyes", EYES)
def test_colours_can_be_told_apart(eyes: str) -> None:
    seen = [lab(np.asarray(EYES[eyes]) @ linear(colour)) for colour in (*CLUSTER_COLOURS, palette.WRONG)]
    assert all(np.linalg.norm(a - b) > 20 for a, b in combinations(seen, 2))


def test_colours_can_be_read_and_follow_each_other() -> None:
    for colour in CLUSTER_COLOURS:
        assert 1.05 / (TO_XYZ[1] @ linear(colour) + 0.05) >= 4.5  # WCAG 2: white on it
    tree = latent_tree(many_clusters([2] * 20), 40)
    assert [cluster.colour for cluster in tree.numbered()] == [CLUSTER_COLOURS[place % 8] for place in range(20)]


@pytest.mark.parametrize(
    ("heads", "wrong", "error", "message"),
    [
        ([-1, 0], (), ShapeError, r"shape \(2,\); expected \(4,\), the root and 3 mentions"),
        ([[-1, 0, 0, 0]], (), ShapeError, r"shape \(1, 4\)"),
        ([0, 0, 0, 0], (), HeadsError, r"heads\[0\] is 0; expected -1"),
        ([-1, 0, 2, 0], (), HeadsError, r"heads\[2\] is 2; expected 0 or the node of an earlier mention, below 2"),
        ([-1, 0, 3, 0], (), HeadsError, r"heads\[2\] is 3"),
        ([-1, 0, -1, 0], (), HeadsError, r"heads\[2\] is -1"),
        ([-1.0, 0, 0, 0], (), HeadsError, "dtype float64; expected integers"),
        ([-1, 0, 0, 1], (4,), ArcError, "node 4 cannot be wrong; expected a mention's node, from 1 to 3"),
        ([-1, 0, 0, 1], (0,), ArcError, "node 0 cannot be wrong"),
        ([-1, 0, 0, 1], (2,), ArcError, "node 2 cannot be wrong: it hangs below the root"),
    ],
)
def test_heads_that_are_no_latent_tree_are_refused(
    heads: list[int], wrong: tuple[int, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        coreference_drawing(numbered_mentions(3), heads, wrong=wrong)


# The page


VOID = {"meta", "br", "hr", "img", "input", "link"}


@dataclass
class PageBox:
    """A mention's box on the page, as it was read back."""

    attributes: dict[str, str | None]
    text: str = ""
    number: str = ""

    @property
    def node(self) -> int:
        return int(self.attributes["data-node"] or 0)

    @property
    def classes(self) -> list[str]:
        return (self.attributes["class"] or "").split()


@dataclass
class PageSentence:
    text: str = ""
    words: list[tuple[str, frozenset[int]]] = field(default_factory=list)  # each with the nodes whose boxes hold it


class Page(HTMLParser):
    """Reads a page; fails where elements are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.tags: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.boxes: list[PageBox] = []
        self.sentences: list[PageSentence] = []
        self.contents: dict[str, list[str]] = {}
        self._held: list[PageBox] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes |= {name for name, _ in attrs}
        given = dict(attrs)
        assert len(given) == len(attrs)
        if tag == "p" and given.get("class") == "sentence":
            self.sentences.append(PageSentence())
        if "data-node" in given:
            self.boxes.append(PageBox(given))
            self._held.append(self.boxes[-1])
        if tag not in VOID:
            self.open.append((tag, given))
            self.contents.setdefault(tag, []).append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        opened, given = self.open.pop()
        assert opened == tag
        if "data-node" in given:
            self._held.pop()

    def handle_data(self, data: str) -> None:
        if not self.open:
            return
        tag, given = self.open[-1]
        self.contents[tag][-1] += data
        if given.get("class") == "number" or not any(each.get("class") == "sentence" for _, each in self.open):
            return
        if tag == "sub":
            self._held[-1].number += data
            return
        for held in self._held:
            held.text += data
        self.sentences[-1].text += data
        self.sentences[-1].words += [(word, frozenset(held.node for held in self._held)) for word in data.split()]


@st.composite
def documents(draw: st.DrawFn) -> tuple[list[list[tuple[str, bool]]], list[MentionText], list[int]]:
    """Words that are all different, mentions that nest and cross, and heads."""
    lengths = draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    sentences = [[(f"w{s}.{w}", True) for w in range(1, length + 1)] for s, length in enumerate(lengths)]
    mentions = []
    for _ in range(draw(st.integers(0, 12))):
        s = draw(st.integers(0, len(lengths) - 1))
        first = draw(st.integers(1, lengths[s]))
        mentions.append(MentionText(s, first, draw(st.integers(first, lengths[s])), "m"))
    mentions.sort(key=lambda m: (m.sentence, m.first, -m.last))
    heads = [-1] + [draw(st.integers(0, node)) for node in range(len(mentions))]
    return sentences, mentions, heads


@given(documents())
def test_each_word_stands_in_the_boxes_of_the_mentions_that_hold_it(
    document: tuple[list[list[tuple[str, bool]]], list[MentionText], list[int]],
) -> None:
    sentences, mentions, heads = document
    page = Page(coreference_page("a title", sentences, mentions, heads))
    clustered = {node: first for first, nodes in members(heads).items() for node in nodes}
    assert len(page.sentences) == len(sentences)
    for s, (found, words) in enumerate(zip(page.sentences, sentences, strict=True)):
        expected = [
            (form, frozenset(n for n in clustered if covers(mentions[n - 1], s, position)))
            for position, (form, _) in enumerate(words, start=1)
        ]
        assert found.words == expected
        assert found.text == " ".join(form for form, _ in words)
    numbers = {first: str(place) for place, first in enumerate(sorted(members(heads)), start=1)}
    for each in page.boxes:
        assert each.text == each.text.strip()
        assert each.number == each.attributes["data-cluster"] == numbers[clustered[each.node]]
        assert each.attributes["data-antecedent"] == str(heads[each.node])
    for node in clustered:
        own = [each for each in page.boxes if each.node == node]
        crossed = any(cross_each_other(mentions[node - 1], mentions[other - 1]) for other in clustered)
        assert crossed or len(own) == 1
        assert [each.attributes.get("tabindex") for each in own] == ["0"] + [None] * (len(own) - 1)
        assert ["cut-before" in each.classes for each in own] == [False] + [True] * (len(own) - 1)
        assert ["cut-after" in each.classes for each in own] == [True] * (len(own) - 1) + [False]


def covers(mention: MentionText, sentence: int, position: int) -> bool:
    return mention.sentence == sentence and mention.first <= position <= mention.last


def cross_each_other(a: MentionText, b: MentionText) -> bool:
    first, second = sorted([a, b], key=lambda m: m.first)
    return a.sentence == b.sentence and first.first < second.first <= first.last < second.last


def test_the_later_of_two_that_cross_is_cut_at_the_others_end() -> None:
    words = [(form, True) for form in ["a", "b", "c", "d", "e", "f"]]
    mentions = [MentionText(0, 1, 4, "a b c d"), MentionText(0, 3, 6, "c d e f"), MentionText(0, 5, 5, "e")]
    text = coreference_page("", [words], mentions, [-1, 0, 1, 2])
    found = [(each.node, each.text) for each in Page(text).boxes]
    assert found == [(1, "a b c d"), (2, "c d"), (2, "e f"), (3, "e")]
    assert "cut at the end of another" in text
    assert "cut at the end of another" not in coreference_page("", [words], mentions[:2], [-1, 0, 0])


def test_spaces_follow_the_words_that_have_one() -> None:
    words = [("dog", False), ("'s", True), ("tail", False), (".", True)]
    page = Page(coreference_page("", [words], [MentionText(0, 1, 2, "dog's"), MentionText(0, 1, 3, "x")], [-1, 0, 1]))
    assert page.sentences[0].text == "dog's tail."
    assert [each.text for each in page.boxes] == ["dog's tail", "dog's"]


NASTY = ['<&">', "'$title ${text}", "</script><script>alert(1)</script>", "<!--", "&amp;", "%s{0}", "\x00\x85\ud800"]


def test_everything_is_escaped() -> None:
    sentences = [[(word, True)] for word in NASTY]
    mentions = [MentionText(s, 1, 1, word) for s, word in enumerate(NASTY)]
    heads = [-1, 0, *[1] * (len(NASTY) - 1)]
    title, notes = " ".join(NASTY), list(reversed(NASTY))
    page = Page(coreference_page(title, sentences, mentions, heads, notes=notes, wrong={3}))
    legal = [re.sub("[\x00\x85\ud800]", "\ufffd", word) for word in NASTY]
    assert [found.text for found in page.sentences] == legal
    assert page.contents["h1"] == [" ".join(legal)]
    assert page.contents["title"][0] == " ".join(legal)
    assert [text for text in page.contents["p"] if text in legal] == [*reversed(legal)]
    assert [each.attributes["title"] for each in page.boxes][1:3] == [
        f"cluster 1: {legal[1]} (sentence 2): below {legal[0]} (sentence 1)",
        f"cluster 1: {legal[2]} (sentence 3): wrong, below {legal[0]} (sentence 1)",
    ]
    assert page.tags["script"] == page.tags["style"] == page.tags["svg"] == 1
    assert not [name for name in page.attributes if name.startswith("on") or name in ("src", "href", "style", "action")]


def test_the_page_stands_alone_and_can_be_read_in_every_light() -> None:
    text = coreference_page("Dogs", [[("Dogs", True), ("bark", False)]], numbered_mentions(2), [-1, 0, 1], wrong=[2])
    assert re.findall(r"https?:[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"url\(|@import|fetch|XMLHttp|innerHTML|eval", text)
    page = Page(text)
    (styles,), (script,) = page.contents["style"], page.contents["script"]
    assert styles.count("{") == styles.count("}")
    assert "@media screen and (prefers-color-scheme: dark)" in styles
    assert "@media print" in styles
    assert "default-src 'none'" in text
    for each in page.boxes:
        assert all(f".{name} " in styles for name in each.classes if name != "wrong")
        assert each.attributes["role"] == "group"
    assert ["wrong" in each.classes for each in page.boxes] == [False, True]
    assert ".mention.wrong {" in styles
    assert set(re.findall(r'classList.toggle\("(\w+)"', script)) == set(
        re.findall(r"\.mention\.(on|self|antecedent) {", styles)
    )
    assert text.startswith("<!doctype html>\n")
    assert text == coreference_page(
        "Dogs", [[("Dogs", True), ("bark", False)]], numbered_mentions(2), np.array([-1, 0, 1]), wrong={2}
    )


def test_the_drawing_on_the_page_is_the_drawing() -> None:
    mentions = numbered_mentions(3)
    sentences = [[("a", True), ("b", True), ("c", True)]]
    text = coreference_page("Dogs", sentences, mentions, [-1, 0, 1, 1], wrong=[3])
    assert to_svg(coreference_drawing(mentions, [-1, 0, 1, 1], wrong=[3]), background=None).rstrip() in text


def test_a_page_without_mentions_is_the_text() -> None:
    page = Page(coreference_page("Dogs", [[("Dogs", True), ("bark", False), (".", False)], []], [], [-1]))
    assert page.boxes == []
    assert [found.text for found in page.sentences] == ["Dogs bark.", ""]
    assert "no mentions" in page.contents["text"]


@pytest.mark.parametrize(
    ("mention", "message"),
    [
        (MentionText(1, 1, 1, "x"), "mention 2 is in sentence 2 of 1"),
        (MentionText(-1, 1, 1, "x"), "mention 2 is in sentence 0 of 1"),
        (MentionText(0, 2, 3, "x"), "mention 2 has words 2 to 3 of sentence 1, which has words 1 to 2"),
        (MentionText(0, 0, 1, "x"), "words 0 to 1"),
        (MentionText(0, 2, 1, "x"), "words 2 to 1"),
    ],
)
def test_mentions_outside_the_text_are_refused(mention: MentionText, message: str) -> None:
    with pytest.raises(TreebankError, match=message):
        coreference_page("", [[("a", True), ("b", True)]], [MentionText(0, 1, 1, "a"), mention], [-1, 0, 0])
