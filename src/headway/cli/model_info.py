"""What `headway info` prints of a model: what matters on one screen, or, with --all, everything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import shorten, wrap
from typing import TYPE_CHECKING, Any

import typer

from headway.cli.signature import print_json, signature, signature_line, summed
from headway.cli.tables import table
from headway.errors import printable

if TYPE_CHECKING:
    from headway.card import Card, Measured, Source
    from headway.models.protocol import Description

Rows = list[tuple[str, str]]

_COLUMNS, _LINES = 80, 24  # of a screen
_CUT = " …"
_DETAILS = ("reads", "network", "temperature")  # rows of a description that only --all shows
_MOST_ROWS = 8  # of a description
_MOST = {"made from": 3, "scores": 4, "speed": 1, "calibration": 2}  # entries of the card
_MOST_LINES = {"licence": 2, "about": 2}  # of a row: one, where nothing is said


def describe_model(path: str, *, everything: bool, json: bool) -> None:
    """Print what a model is."""
    found, card = described(path)
    file = summed(path)
    signed = signature(None, {}, [file])
    if json:
        own = None if card is None else card.to_data()
        print_json({"signature": signed, "kind": "model", "card": own, "size": Path(path).stat().st_size, **found.data})
    elif everything:
        rows = [*_card_rows(card), *found.rows, *_about_rows(found.data.get("about", {}))]
        tables = [table([[printable(cell) for cell in row] for row in each.rows]) for each in found.tables]
        typer.echo("\n\n".join([_aligned(rows), *tables, signature_line(signed)]))
    else:
        size = f"{Path(path).stat().st_size / 1e6:.1f} MB, {Path(path).name} sha256 {file.checksum}"
        typer.echo(f"{_on_a_screen(_brief_rows(found, card), size)}\n--all shows settings, labels and templates.")


def described(path: str) -> tuple[Description, Card | None]:
    """The description of a model of any kind, and its card; that of a parser includes its tagger and segmenter."""
    from headway.card import card_of
    from headway.models.registry import damage_reported, model_class, open_archive, read_model
    from headway.pipeline import Parser

    archive = open_archive(path)
    with damage_reported(path):
        card = card_of(archive.data)
    kind = model_class(archive.kind)
    if kind is not None and kind.task == "parsing":
        return Parser.load(Path(path)).describe(), card
    found: Description = read_model(archive, path).describe()
    return found, card


def _brief_rows(found: Description, card: Card | None) -> Rows:
    rows = [row for row in found.rows if row[0] not in _DETAILS][:_MOST_ROWS]
    return [*_card_rows(card, _MOST), *_training_row(found, card), *rows]


def _card_rows(card: Card | None, most: Mapping[str, int] | None = None) -> Rows:
    """The card, field by field; of a field with many entries the first `most`."""
    if card is None:
        return []
    entries: dict[str, Sequence[str]] = {
        "language": [card.language],
        "licence": [card.licence or "none given"],
        "about": [card.description] if card.description else [],
        "made from": list(map(_source, card.sources)),
        "scores": list(map(_measured, card.scores)),
        "speed": list(map(_measured, card.speed)),
        "calibration": [_measured(measured, "%") for measured in card.calibration],
    }
    return [row for name, values in entries.items() for row in _entry_rows(name, values, most)]


def _entry_rows(name: str, values: Sequence[str], most: Mapping[str, int] | None) -> Iterator[tuple[str, str]]:
    limit = len(values) if most is None else most.get(name, 1)
    for k, value in enumerate(values[:limit]):
        hidden = len(values) - limit if k == limit - 1 else 0
        yield "" if k else name, f"{value}; {hidden} more with --all" if hidden else value


def _source(source: Source) -> str:
    licence = f" ({source.licence})" if source.licence else ""
    checksum = f", sha256 {source.sha256[:16]}" if source.sha256 else ""
    return f"{source.name}{licence}{checksum}"


def _measured(measured: Measured, unit: str = "") -> str:
    figures = ", ".join(f"{name} {_figure(value)}{unit}" for name, value in measured.figures.items())
    return f"{measured.on}: {figures}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2f}"


def _training_row(found: Description, card: Card | None) -> Rows:
    """What the training itself noted of its data, where no card says more."""
    train = found.data.get("about", {}).get("train")
    if (card is not None and card.sources) or not isinstance(train, Mapping):
        return []
    return [("trained on", ", ".join(f"{name} {value}" for name, value in train.items()))]


def _about_rows(about: Mapping[str, Any]) -> Rows:
    """How the model was made, one level deep: of rules only their number, and no history, which JSON has."""
    from headway.features.rules import parse_rules

    rows = []
    for key, value in about.items():
        if isinstance(value, Mapping):
            rows += [(f"{key}.{name}", str(inner)) for name, inner in value.items()]
        elif key == "rules":
            rows.append((key, str(len(parse_rules(str(value), "the model's rules")))))
        elif key != "history":
            rows.append((str(key), str(value)))
    return rows


def _on_a_screen(rows: Rows, size: str) -> str:
    """Rows in lines that fit the screen: what is longer is cut, except the size and checksum, which come last.

    Lines that the screen has left go to the first rows that are cut.
    """
    safe = [(printable(name), printable(value)) for name, value in rows]
    width = max(len(name) for name, _ in [*safe, ("size", "")])
    room = _COLUMNS - width - 2
    cells = [_cut(value, _MOST_LINES.get(name, 1), room) for name, value in safe]
    left = _LINES - 2 - sum(map(len, cells))  # without those of the size and of what --all shows
    lines = []
    for (name, value), cell in zip(safe, cells, strict=True):
        if left > 0 and cell[-1].endswith(_CUT):
            cell = _cut(value, len(cell) + 1, room)
            left -= 1
        first, *rest = cell
        lines += [f"{name.ljust(width)}  {first}", *(f"{' ' * width}  {line}" for line in rest)]
    return "\n".join([*lines, f"{'size'.ljust(width)}  {printable(size)}"])


def _cut(value: str, most: int, room: int) -> list[str]:
    """The value in lines, at most so many; words may leave some room at their ends."""
    return wrap(shorten(value, most * room - (most > 1) * 20, placeholder=_CUT), room) or [""]


def _aligned(rows: Rows) -> str:
    safe = [(printable(name), printable(value)) for name, value in rows]
    width = max(len(name) for name, _ in safe)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in safe)
