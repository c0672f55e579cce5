"""`headway package`: a trained model as a wheel, which pip installs and Headway then knows by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headway.cli import places
from headway.errors import ArchiveError, ArgumentError
from headway.named_models import path_of_model

if TYPE_CHECKING:
    from headway.card import Card

EXAMPLES = (
    "headway package model.headway --language pt --licence CC-BY-SA-4.0 -o dist",
    "headway package model.headway --name pt-bosque --card card.json --version 1.1 -o dist",
)


def package(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file, or the name of a model.")],
    *,
    output: Annotated[str, typer.Option("-o", "--output", metavar="DIR", help="The folder for the wheel.")],
    language: Annotated[
        str | None, typer.Option(metavar="CODE", help="The language, such as pt; needed unless the card says it.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="What the model is called once installed; the language, if nothing is said.")
    ] = None,
    licence: Annotated[
        str | None, typer.Option(metavar="SPDX", help="The model's licence, such as CC-BY-SA-4.0.")
    ] = None,
    licence_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The full text of the licence, to come along.")
    ] = None,
    version: Annotated[str, typer.Option(help="The version of the package.")] = "1.0",
    card: Annotated[
        Path | None,
        typer.Option(metavar="JSON", help="Licence, sources and scores; headway info MODEL --json has one."),
    ] = None,
) -> None:
    """Build a wheel of a model, with its card and licence."""
    model = str(path_of_model(model))
    places.require_inputs(model, *(str(file) for file in (card, licence_file) if file is not None))
    from headway.model_package import ModelPackage, write_package

    found = _card(model, card, {"language": language, "licence": licence})
    wanted = ModelPackage(
        name or found.language.lower(), version, found, "" if licence_file is None else _read(licence_file)
    )
    wheel = write_package(model, wanted, output)
    typer.echo(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB; install it with: pip install {wheel}")
    if not found.licence:
        typer.echo("headway: the package names no licence, so nobody may share it; give --licence", err=True)


def _card(model: str, file: Path | None, given: dict[str, str | None]) -> Card:
    """The model's own card, changed by that of the file, and by the options."""
    from headway.archive import load_data
    from headway.card import Card, card_of

    own = load_data(model)
    try:
        card_of(own)
    except ValueError as error:
        raise ArchiveError(f"{model}: its card is damaged ({error}); save it again") from None
    said = {name: value for name, value in given.items() if value is not None}
    data = {**(own.get("card") or {}), **({} if file is None else _read_json(file)), **said}
    if "language" not in data:
        raise ArgumentError("nothing says which language the model is for; give it: --language pt")
    try:
        return Card.from_data(data)
    except ValueError as error:
        raise ArgumentError(f"{error}; correct {'the options' if file is None else file}") from None


def _read_json(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(_read(file))
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"{file}: not valid JSON ({error}); write an object with fields such as licence") from None
    if not isinstance(data, dict):
        raise ArgumentError(f"{file}: not a JSON object; write one with fields such as licence")
    return data


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError:
        raise ArgumentError(f"{file}: the text is not in UTF-8; save it again as such") from None
