"""A drawing as SVG text: self-contained, without scripts, style sheets or identifiers, so that several fit on one page.

The same drawing gives the same bytes: two decimals everywhere, attributes in a fixed order, one element per line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from xml.sax.saxutils import escape, quoteattr

from headway.drawing.primitives import Cubic, Drawing, Group, Line, Mark, Move, Path, Point, Polygon, Rectangle, Text
from headway.drawing.text_width import text_width

FONTS = "Helvetica, Arial, 'Liberation Sans', 'Noto Sans', 'DejaVu Sans', sans-serif"
_END = "</svg>\n"
_HALO = 1.5  # beyond the letters
_ASCENT, _DESCENT = 0.75, 0.25  # of letters, as a share of their size
_LETTERS = {Move: "M", Line: "L", Cubic: "C"}
_FORBIDDEN = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")  # what XML 1.0 cannot hold


def to_svg(drawing: Drawing, *, background: str | None = "white") -> str:
    """The drawing as the text of an SVG file; `background=None` makes it transparent, for light pages only.

    >>> print(to_svg(Drawing(20, 10, (Text(10, 8, "a < b", 7, "#000000"),), "An example", ""), background=None))
    <svg xmlns="http://www.w3.org/2000/svg" width="20" height="10" viewBox="0 0 20 10" role="img"
      aria-label="An example" font-family="Helvetica, Arial, 'Liberation Sans', 'Noto Sans', 'DejaVu Sans', sans-serif">
    <title>An example</title>
    <text x="10" y="8" font-size="7" fill="#000000" text-anchor="middle">a &lt; b</text>
    </svg>
    """
    width, height = _number(drawing.width), _number(drawing.height)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label={quoteattr(_clean(drawing.title))} font-family={quoteattr(FONTS)}>',
        f"<title>{_escaped(drawing.title)}</title>",
    ]
    if drawing.description:
        lines.append(f"<desc>{_escaped(drawing.description)}</desc>")
    if background is not None:
        lines.append(_element("rect", width=width, height=height, fill=background))
    for mark in drawing.marks:
        if isinstance(mark, Group):
            lines += ["<g>", f"<title>{_escaped(mark.title)}</title>"]
            lines += [line for each in mark.marks for line in _mark(each, background)]
            lines.append("</g>")
        else:
            lines += _mark(mark, background)
    return "\n".join([*lines, _END])


def stacked_svg(drawings: Sequence[Drawing], title: str) -> str:
    """Some drawings one below the other, as the text of one SVG file.

    >>> re.findall(' y="[0-9]+"', stacked_svg([Drawing(20, 10, (), "One", "")] * 2, "Two"))
    [' y="0"', ' y="10"']
    """
    tops = accumulate((drawing.height for drawing in drawings), initial=0.0)
    pieces = [
        to_svg(drawing).replace("<svg ", f'<svg y="{_number(top)}" ', 1)
        for drawing, top in zip(drawings, tops, strict=False)
    ]
    width, height = max((each.width for each in drawings), default=0.0), sum(each.height for each in drawings)
    sheet = to_svg(Drawing(width, height, (), title, ""), background=None)
    return f"{sheet.removesuffix(_END)}{''.join(pieces)}{_END}"


def _mark(mark: Mark, background: str | None) -> list[str]:
    """The elements of a mark; a halo is a box behind its text, which every renderer can draw."""
    if isinstance(mark, Text) and mark.halo and background is not None:
        return [_halo(mark, background), _shape(mark)]
    return [_shape(mark)]


def _halo(mark: Text, background: str) -> str:
    width = text_width(mark.text, mark.size, bold=mark.bold) + 2 * _HALO
    start = {"start": 0.0, "middle": -width / 2 + _HALO, "end": -width + 2 * _HALO}[mark.anchor]
    x, y = mark.x + start - _HALO, mark.y - _ASCENT * mark.size - _HALO
    height = (_ASCENT + _DESCENT) * mark.size + 2 * _HALO
    return _element(
        "rect",
        x=_number(x),
        y=_number(y),
        width=_number(width),
        height=_number(height),
        fill=background,
        transform=_rotation(mark),
    )


def _shape(mark: Mark) -> str:
    match mark:
        case Text():
            return _text(mark)
        case Path():
            dash = None if mark.dash is None else " ".join(map(_number, mark.dash))
            return _element(
                "path",
                d=" ".join(map(_segment, mark.segments)),
                fill="none",
                stroke=mark.colour,
                stroke_width=_number(mark.width),
                stroke_dasharray=dash,
            )
        case Polygon():
            return _element("polygon", points=" ".join(map(_point, mark.points)), fill=mark.colour)
        case Rectangle():
            return _element(
                "rect",
                x=_number(mark.x),
                y=_number(mark.y),
                width=_number(mark.width),
                height=_number(mark.height),
                fill=mark.fill or "none",
                stroke=mark.stroke,
                stroke_width=None if mark.stroke is None else _number(mark.stroke_width),
            )


def _text(mark: Text) -> str:
    return _element(
        "text",
        mark.text,
        x=_number(mark.x),
        y=_number(mark.y),
        font_size=_number(mark.size),
        font_weight="bold" if mark.bold else None,
        fill=mark.colour,
        text_anchor=None if mark.anchor == "start" else mark.anchor,
        transform=_rotation(mark),
    )


def _rotation(mark: Text) -> str | None:
    return f"rotate({_number(mark.rotation)} {_number(mark.x)} {_number(mark.y)})" if mark.rotation else None


def _element(name: str, content: str | None = None, **attributes: str | None) -> str:
    given = "".join(f" {key.replace('_', '-')}={quoteattr(value)}" for key, value in attributes.items() if value)
    return f"<{name}{given}/>" if content is None else f"<{name}{given}>{_escaped(content)}</{name}>"


def _segment(segment: Move | Line | Cubic) -> str:
    return _LETTERS[type(segment)] + " ".join(map(_point, segment))


def _point(point: Point) -> str:
    return f"{_number(point[0])},{_number(point[1])}"


def _number(value: float) -> str:
    """Two decimals, without trailing zeros.

    >>> _number(12.3), _number(-0.001), _number(7)
    ('12.3', '0', '7')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _escaped(text: str) -> str:
    return escape(_clean(text))


def _clean(text: str) -> str:
    """The text, with characters that XML cannot hold replaced."""
    return _FORBIDDEN.sub("\ufffd", text)
