"""`headway models`: the models that have a name, and where they come from."""

from __future__ import annotations

from typing import Any

import typer

from headway.cli import options
from headway.cli.signature import print_json
from headway.errors import ArchiveError, printable
from headway.named_models import NamedModel, models_folder, named_models

EXAMPLES = ("headway models", "headway models --json")


def models(*, json: options.JsonOption = False) -> None:
    """List the models that can be used by name.

    Names are those of models included in Headway, of installed packages (headway package makes them), and of the files
    NAME.headway in the folder $HEADWAY_MODELS, or in the user's data folder. Of one name, the first is used.
    """
    found = named_models()
    rows = [_row(model, [each.name for each in found[:k]]) for k, model in enumerate(found)]
    folder = models_folder()
    if json:
        print_json({"models": rows, "folder": None if folder is None else str(folder)})
        return
    keys = ("name", "language", "licence", "megabytes", "origin", "note")
    cells = [[printable(str(row[key])) for key in keys] for row in rows]
    table = [["name", "language", "licence", "MB", "from", ""], *cells]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _row(model: NamedModel, before: list[str]) -> dict[str, Any]:
    """What is known of a model without loading it; `before` are the names that win over it."""
    from headway.archive import load_data
    from headway.card import card_of

    row: dict[str, Any] = {"name": model.name, "language": "-", "licence": "-", "origin": model.origin, "note": ""}
    row |= {"path": str(model.path), "megabytes": round(model.path.stat().st_size / 1e6, 1)}
    try:
        card = card_of(load_data(model.path))
    except (ArchiveError, ValueError):
        row["note"] = "damaged"
    else:
        if card is not None:
            row |= {"language": card.language, "licence": card.licence or "-"}
    if model.name in before:
        row["note"] = "hidden by the one above"
    return row
