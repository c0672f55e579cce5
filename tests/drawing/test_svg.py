"""SVG: well-formed whatever the words are, nothing lost, the same bytes every time, nothing that runs."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.drawing import comparison_drawing, heatmap_drawing, to_svg, tree_drawing
from headway.drawing.primitives import Text
from headway.drawing.text_width import text_width
from headway.treebank import Sentence
from tests.drawing.strategies import sentences

NAMESPACE = "{http://www.w3.org/2000/svg}"
ELEMENTS = {"svg", "title", "desc", "g", "text", "path", "polygon", "rect"}


def legal(text: str) -> str:
    """The text as XML 1.0 can hold it: other characters replaced."""
    return "".join(
        c if c in "\t\n\r" or " " <= c <= "\ud7ff" or ("\ue000" <= c != "\ufffe" and c != "\uffff") else "\ufffd"
        for c in text
    )


@given(sentences(max_words=5, wild=True))
def test_any_words_come_back_from_the_xml(sentence: Sentence) -> None:
    drawing = tree_drawing(sentence)
    root = ElementTree.fromstring(to_svg(drawing))
    written = [element.text for element in root.iter(f"{NAMESPACE}text")]
    assert written == [legal(mark.text) for mark in drawing.flat() if isinstance(mark, Text)]
    assert root.findtext(f"{NAMESPACE}title") == legal(drawing.title)
    assert root.get("role") == "img"
    assert len(root.findall(f"{NAMESPACE}g")) == len(sentence)


@given(sentences(max_words=5))
def test_it_is_plain_small_and_self_contained(sentence: Sentence) -> None:
    n = len(sentence)
    for drawing in (
        tree_drawing(sentence, probabilities=[0.3] * (n + 1)),
        comparison_drawing(sentence, sentence),
        heatmap_drawing(sentence, [[0.2] * (n + 1)] * (n + 1)),
    ):
        text = to_svg(drawing)
        root = ElementTree.fromstring(text)
        assert {element.tag.removeprefix(NAMESPACE) for element in root.iter()} <= ELEMENTS
        assert not any(name in ("id", "href", "style", "class") for element in root.iter() for name in element.attrib)
        assert not re.search(r"\d\.\d{3}", "".join(f"{e.attrib}" for e in root.iter()))
        assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
        assert abs(float(root.get("width") or 0) - drawing.width) < 0.01
        assert text.endswith("</svg>\n")


@given(st.data())
def test_the_same_tree_gives_the_same_bytes(data: st.DataObject) -> None:
    sentence = data.draw(sentences())
    again = Sentence.from_words(
        list(sentence.forms), upos=list(sentence.upos), heads=sentence.heads, labels=sentence.labels
    )
    assert to_svg(tree_drawing(sentence)) == to_svg(tree_drawing(again))


@pytest.mark.parametrize("background", ["white", "#fffff0", None])
def test_the_background_is_a_rectangle_and_the_halo_has_its_colour(background: str | None) -> None:
    sentence = Sentence.from_words(["Dogs", "bark"], heads=[-1, 2, 0], labels=[None, "nsubj", "root"])
    root = ElementTree.fromstring(to_svg(tree_drawing(sentence), background=background))
    rectangles = root.findall(f"{NAMESPACE}rect")
    halos = [(group[-2], group[-1]) for group in root.findall(f"{NAMESPACE}g") if group[-2].tag == f"{NAMESPACE}rect"]
    assert not any(name in element.attrib for element in root.iter() for name in ("paint-order", "filter"))
    if background is None:
        assert (rectangles, halos) == ([], [])
        return
    assert [rectangle.get("fill") for rectangle in rectangles] == [background]
    assert [(halo.get("fill"), text.text) for halo, text in halos] == [(background, "nsubj"), (background, "root")]
    for halo, text in halos:  # around the letters: a box that every renderer paints before them
        x, y, width, height = (float(halo.attrib[name]) for name in ("x", "y", "width", "height"))
        letters = text_width(text.text or "", 11)
        assert x < float(text.attrib["x"]) - letters / 2 < float(text.attrib["x"]) + letters / 2 < x + width
        assert y + height > float(text.attrib["y"]) > y + 8
        assert width < letters + 8
        assert text.get("stroke") is None


def test_a_small_tree_is_written_like_this() -> None:
    sentence = Sentence.from_words(["Go"], heads=[-1, 0], labels=[None, "root"])
    assert to_svg(tree_drawing(sentence)).splitlines()[1:] == [
        "<title>Dependency tree: Go</title>",
        "<desc>Go: root.</desc>",
        '<rect width="48.01" height="90.25" fill="white"/>',
        "<g>",
        "<title>Go: root</title>",
        '<path d="M24.01,31.85 L24.01,45.25" fill="none" stroke="#475569" stroke-width="1.25"/>',
        '<polygon points="24.01,52.25 21.01,45.25 24.01,47 27.01,45.25" fill="#475569"/>',
        '<rect x="13.03" y="16.35" width="21.95" height="14" fill="white"/>',
        '<text x="24.01" y="26.1" font-size="11" fill="#1e293b" text-anchor="middle">root</text>',
        "</g>",
        '<text x="24.01" y="71.25" font-size="15" fill="#111827" text-anchor="middle">Go</text>',
        "</svg>",
    ]
