"""A drawing as PNG, PDF or any other format that matplotlib writes (the extra `figures`).

Text stays text in a PDF: TrueType fonts are embedded (font type 42), so that it can be searched and copied. Fonts are
those of the machine; a character that none of them has becomes a box, and matplotlib warns.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from headway.drawing.primitives import Cubic, Drawing, Line, Mark, Move, Polygon, Rectangle, Text
from headway.drawing.primitives import Path as Stroke
from headway.extras import require_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCH = 96.0  # pixels, in CSS
_POINT = 72.0
_HALO = 2.0
# The first of these that is installed, then all installed others for the characters it lacks.
_LATIN = ("Helvetica", "Arial", "Liberation Sans", "Nimbus Sans", "Roboto")
_OTHERS = ("DejaVu Sans", "Noto Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans Arabic", "Arial Unicode MS")
_DEJAVU = {False: 0.88, True: 0.8}  # by bold: scaled down, as DejaVu Sans is wider than Helvetica
_SAME = {False: 1.0, True: 1.0}
# No dates or versions: the same drawing gives the same file.
_METADATA = {"pdf": {"CreationDate": None}, "png": {"Software": None}, "svg": {"Date": None}}


def require_matplotlib() -> None:
    """Call this before anything is read or parsed."""
    require_extra("matplotlib", "figures", "drawing PNG and PDF", otherwise="draw SVG")


def save_drawing(
    drawing: Drawing,
    target: str | os.PathLike[str] | IO[bytes],
    *,
    format: str | None = None,
    dpi: float = 192.0,
    background: str | None = "white",
) -> None:
    """Write the drawing to a file or a stream of bytes; the format is that of the file name unless given.

    `dpi` is for pixel formats; 96 is the size shown in a browser, the default is twice as fine.
    """
    require_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    fonts, scale = _fonts()
    settings: dict[Any, Any] = {
        "pdf.fonttype": 42,
        "ps.fonttype": 42,
        "svg.fonttype": "none",
        "svg.hashsalt": "headway",
    }
    with matplotlib.rc_context({**settings, "font.family": fonts, "text.usetex": False, "text.parse_math": False}):
        figure = Figure(figsize=(drawing.width / _INCH, drawing.height / _INCH), facecolor=background or "none")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, drawing.width)
        axes.set_ylim(drawing.height, 0)
        axes.axis("off")
        for order, mark in enumerate(drawing.flat()):
            _paint(axes, mark, order, background, scale)
        name = Path(target).suffix[1:].lower() if isinstance(target, str | os.PathLike) else ""
        kind = format or name or "png"
        figure.savefig(target, format=kind, dpi=dpi, facecolor=figure.get_facecolor(), metadata=_METADATA.get(kind))


def _fonts() -> tuple[list[str], dict[bool, float]]:
    """Font families to try in turn, and the factors that give the first of them Helvetica's widths."""
    from matplotlib import font_manager

    there = set(font_manager.get_font_names())
    latin = [name for name in _LATIN if name in there][:1]
    return latin + [name for name in _OTHERS if name in there], _SAME if latin else _DEJAVU


def _paint(axes: Axes, mark: Mark, order: int, background: str | None, scale: dict[bool, float]) -> None:
    from matplotlib import patches
    from matplotlib.path import Path as Curve

    points = _POINT / _INCH
    match mark:
        case Text():
            _write(axes, mark, order, background, scale)
        case Stroke():
            vertices, codes = _vertices(mark)
            style: Any = "solid" if mark.dash is None else (0, tuple(each / mark.width for each in mark.dash))
            axes.add_patch(
                patches.PathPatch(
                    Curve(vertices, codes),
                    facecolor="none",
                    edgecolor=mark.colour,
                    linewidth=mark.width * points,
                    linestyle=style,
                    capstyle="butt",
                    zorder=order,
                )
            )
        case Polygon():
            axes.add_patch(patches.Polygon(mark.points, facecolor=mark.colour, edgecolor="none", zorder=order))
        case Rectangle():
            axes.add_patch(
                patches.Rectangle(
                    (mark.x, mark.y),
                    mark.width,
                    mark.height,
                    facecolor=mark.fill or "none",
                    edgecolor=mark.stroke or "none",
                    linewidth=mark.stroke_width * points if mark.stroke else 0.0,
                    zorder=order,
                )
            )


def _write(axes: Axes, mark: Text, order: int, background: str | None, scale: dict[bool, float]) -> None:
    # A box, because a path effect would turn the text into outlines.
    halo: Any = None
    if mark.halo and background is not None:
        halo = {"facecolor": background, "edgecolor": "none", "pad": _HALO / 2 * _POINT / _INCH}
    axes.text(
        mark.x,
        mark.y,
        mark.text,
        fontsize=mark.size * scale[mark.bold] * _POINT / _INCH,
        color=mark.colour,
        fontweight="bold" if mark.bold else "normal",
        ha={"start": "left", "middle": "center", "end": "right"}[mark.anchor],
        va="baseline",
        rotation=-mark.rotation,
        rotation_mode="anchor",
        zorder=order,
        bbox=halo,
    )


def _vertices(path: Stroke) -> tuple[list[tuple[float, float]], list[int]]:
    from matplotlib.path import Path as Curve

    codes = {Move: int(Curve.MOVETO), Line: int(Curve.LINETO), Cubic: int(Curve.CURVE4)}
    vertices = [point for segment in path.segments for point in segment]
    return vertices, [codes[type(segment)] for segment in path.segments for _ in segment]
