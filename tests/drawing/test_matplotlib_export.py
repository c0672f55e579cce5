"""PNG and PDF through matplotlib: the size is right, text is text, the same drawing gives the same bytes."""

from __future__ import annotations

import io
import re
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from headway import extras
from headway.drawing import comparison_drawing, heatmap_drawing, save_drawing, tree_drawing
from headway.drawing.primitives import Drawing, Rectangle
from headway.errors import HeadwayError
from headway.treebank import Sentence

DOGS = Sentence.from_words(
    ["Dogs", "bark", "at", "$5$"],
    upos=["NOUN", "VERB", "ADP", "NUM"],
    heads=[-1, 2, 0, 4, 2],
    labels=[None, "nsubj", "root", "case", "obl"],
)


def saved(drawing: Drawing, format: str, **options: object) -> bytes:
    stream = io.BytesIO()
    save_drawing(drawing, stream, format=format, **options)  # type: ignore[arg-type]
    return stream.getvalue()


def pdf_texts(data: bytes) -> str:
    """All strings that are shown, put together; what is between the letters moves them apart."""
    streams = [zlib.decompress(raw) for raw in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL)]
    shown = [run for text in streams for run in re.findall(rb"BT\n.*?ET", text, re.DOTALL)]
    letters = [b"".join(re.findall(rb"\(((?:[^()\\]|\\.)*)\)", run)) for run in shown]
    return "\n".join(each.replace(b"\0", b"").decode("latin-1") for each in letters)


@pytest.mark.parametrize("dpi", [96, 192])
def test_a_png_has_the_size_of_the_drawing(tmp_path: Path, dpi: int) -> None:
    drawing = tree_drawing(DOGS)
    path = tmp_path / "tree.png"
    save_drawing(drawing, path, dpi=dpi)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    assert abs(width - drawing.width * dpi / 96) <= 1
    assert abs(height - drawing.height * dpi / 96) <= 1


def test_text_in_a_pdf_is_text() -> None:
    data = saved(tree_drawing(DOGS, probabilities=[1, 0.3, 1, 1, 1]), "pdf")
    assert b"/CIDFontType2" in data or b"/TrueType" in data
    assert b"/Type3" not in data
    texts = pdf_texts(data).split("\n")
    assert {"Dogs", "bark", "$5$", "NOUN", "nsubj 0.30", "root", "case", "below 0.7"} <= set(texts)


@pytest.mark.parametrize("format", ["png", "pdf", "svg"])
def test_the_same_drawing_gives_the_same_bytes(format: str) -> None:
    marginals = np.full((5, 5), 0.25)
    for drawing in (tree_drawing(DOGS), heatmap_drawing(DOGS, marginals), comparison_drawing(DOGS, DOGS)):
        assert saved(drawing, format) == saved(drawing, format)


def test_pixels_are_where_the_marks_are() -> None:
    from matplotlib.image import imread

    marks = (Rectangle(10, 20, 5, 5, "#ff0000"),)
    image = imread(io.BytesIO(saved(Drawing(40, 30, marks, "", ""), "png", dpi=96)))
    assert image.shape[:2] == (30, 40)
    assert image[22, 12, :3].tolist() == [1, 0, 0]
    assert image[5, 5, :3].tolist() == [1, 1, 1]
    assert np.argwhere(image[:, :, 1] < 0.5).tolist() == [[y, x] for y in range(20, 25) for x in range(10, 15)]
    clear = imread(io.BytesIO(saved(Drawing(40, 30, marks, "", ""), "png", dpi=96, background=None)))
    assert clear[5, 5, 3] == 0


def test_an_empty_sentence_can_be_saved() -> None:
    assert saved(tree_drawing(Sentence.from_words([], heads=[-1])), "png")


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(HeadwayError, match=r"needs matplotlib; install it with: pip install 'headway\[figures\]'"):
        save_drawing(tree_drawing(DOGS), tmp_path / "tree.png")
    assert list(tmp_path.iterdir()) == []
