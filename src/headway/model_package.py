"""A model as a package that pip installs: a wheel with the model, its card and its licence, and no code.

    headway_model_pt/model.headway
    headway_model_pt-1.0.dist-info/METADATA             name, version, licence; the card as its description
    headway_model_pt-1.0.dist-info/WHEEL
    headway_model_pt-1.0.dist-info/entry_points.txt     [headway.models] pt = headway_model_pt
    headway_model_pt-1.0.dist-info/licenses/LICENCE.md  the licence, and whom to name
    headway_model_pt-1.0.dist-info/RECORD               checksums of the others

The entry point is how `headway.named_models` finds the file; nothing is imported. The package declares no dependency:
it is data, and the file itself says which version of Headway's format it is in.

The same model and card make the same wheel, byte for byte: members have no dates, come in a fixed order, and are stored
as they are. (The model is compressed already.) Formats: binary distributions 1.0, core metadata 2.4 (PEP 639).
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from headway import __version__
from headway.archive import save_archive
from headway.atomic import replacing, reporting
from headway.card import Card, Measured, Source, with_card
from headway.embedded import embedded_models
from headway.errors import ArchiveError, ArgumentError, printable
from headway.models.registry import model_class, open_archive, read_model
from headway.models.saved import about_of
from headway.named_models import GROUP, MEMBER, NAME
from headway.pipeline import Parser

_VERSION = re.compile(r"(0|[1-9]\d{0,8})(\.(0|[1-9]\d{0,8})){0,5}((a|b|rc)\d{1,4})?(\.post\d{1,4})?(\.dev\d{1,4})?")
_CREATIVE_COMMONS = re.compile(r"CC-(BY(?:-[A-Z]{2})*)-(\d\.\d)")


@dataclass(frozen=True)
class ModelPackage:
    """What a package is called, and what it says; `licence_text` is the full text of the licence, or empty."""

    name: str
    version: str
    card: Card
    licence_text: str = ""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name) or len(self.name) > 40:
            raise ArgumentError(
                f"the name is {self.name!r}; expected small letters, digits and hyphens, such as pt-bosque"
            )
        if self.name in embedded_models():
            raise ArgumentError(f"{self.name} is included in Headway, which would hide the package; give another name")
        if not _VERSION.fullmatch(self.version):
            raise ArgumentError(f"the version is {self.version!r}; expected numbers with dots, such as 1.0 or 2.1.3")

    @property
    def folder(self) -> str:
        """Where the model is: also the package's name, as files spell it."""
        return f"headway_model_{self.name.replace('-', '_')}"

    @property
    def file(self) -> str:
        """What the wheel is called."""
        return f"{self.folder}-{self.version}-py3-none-any.whl"


def write_package(model: str | os.PathLike[str], package: ModelPackage, folder: str | os.PathLike[str]) -> Path:
    """Write the wheel of a saved model into a folder, which is made if need be; a damaged model is refused."""
    content = _model_with_card(model, package.card)
    info = f"{package.folder}-{package.version}.dist-info"
    licences = {"LICENCE.md": notice(package.name, package.card)}
    if package.licence_text:
        licences["LICENCE.txt"] = package.licence_text
    members = {
        f"{package.folder}/{MEMBER}": content,
        f"{info}/METADATA": _metadata(package, tuple(licences)).encode(),
        f"{info}/WHEEL": _wheel().encode(),
        f"{info}/entry_points.txt": f"[{GROUP}]\n{package.name} = {package.folder}\n".encode(),
        **{f"{info}/licenses/{name}": text.encode() for name, text in licences.items()},
    }
    record = f"{info}/RECORD"
    members[record] = _record(members, record).encode()
    path = Path(folder) / package.file
    _write(members, path)
    return path


def notice(name: str, card: Card) -> str:
    """The licence of a model, and whom to name, in Markdown."""
    under = (
        f"is under {_linked(card.licence)}." if card.licence else "comes without a licence: ask before you share it."
    )
    sources = [f"- {_attributed(source)}" for source in card.sources]
    made = ["It was made from:", "", *sources, ""] if sources else []
    return "\n".join([f"# Licence of the model {name}", "", f"The model `{name}` {under}", "", *made])


def _model_with_card(model: str | os.PathLike[str], card: Card) -> bytes:
    """The bytes of the model's file with this card in it, once all of it has been read and found sound."""
    archive = open_archive(model)
    kind = model_class(archive.kind)
    if kind is not None and kind.task == "parsing":
        Parser.load(Path(model))
    else:
        read_model(archive, model)
    if "about" in archive.data:
        archive = replace(archive, data={**archive.data, "about": about_of(archive.data)})  # older files name folders
    with TemporaryDirectory() as folder:
        path = Path(folder) / MEMBER
        save_archive(with_card(archive, card), path)
        return path.read_bytes()


def _metadata(package: ModelPackage, licences: tuple[str, ...]) -> str:
    card = package.card
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {package.folder.replace('_', '-')}",
        f"Version: {package.version}",
        f"Summary: The model {package.name} of Headway, for the language {card.language}",
        *([f"License-Expression: {card.licence}"] if card.licence else []),
        *(f"License-File: {name}" for name in licences),
        "Keywords: headway,dependency parsing",
        "Description-Content-Type: text/markdown; charset=UTF-8",
    ]
    return "\n".join([*lines, "", _description(package)])


def _description(package: ModelPackage) -> str:
    """The card in Markdown."""
    card, name = package.card, package.name
    parts = [
        f"# {name}",
        f"A model of Headway for the language `{card.language}`. Once it is installed, `headway parse {name} text.txt` "
        f'and `headway.Parser.load("{name}")` find it by its name.',
        card.description,
        _list("Made from", [_attributed(source) for source in card.sources]),
        _list("Scores (%)", list(map(_measured, card.scores))),
        _list("Speed (words per second)", list(map(_measured, card.speed))),
        _list("Calibration error (%)", list(map(_measured, card.calibration))),
        "## Licence",
        _linked(card.licence) if card.licence else "None given.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _list(title: str, items: list[str]) -> str:
    return "\n".join([f"## {title}", "", *(f"- {item}" for item in items)]) if items else ""


def _measured(measured: Measured) -> str:
    return _line(f"{measured.on}: {', '.join(f'{name} {value:g}' for name, value in measured.figures.items())}")


def _attributed(source: Source) -> str:
    name = f"[{source.name}]({source.url})" if source.url else source.name
    parts = [
        name,
        source.attribution and f"by {source.attribution}",
        source.licence and _linked(source.licence),
        source.sha256 and f"sha256 {source.sha256}",
    ]
    return _line(", ".join(part for part in parts if part))


def _line(text: str) -> str:
    return printable(" ".join(text.split()))


def _linked(licence: str) -> str:
    """A licence expression, with the address of every licence in it.

    >>> _linked("CC-BY-SA-4.0")
    'CC-BY-SA-4.0 (https://creativecommons.org/licenses/by-sa/4.0/)'
    """
    names = [word for word in re.split(r"[\s()]+", licence) if word and word not in ("AND", "OR", "WITH")]
    return f"{licence} ({', '.join(map(_address, names))})"


def _address(licence: str) -> str:
    found = _CREATIVE_COMMONS.fullmatch(licence)
    if found is None:
        return f"https://spdx.org/licenses/{licence}.html"
    return f"https://creativecommons.org/licenses/{found[1].lower()}/{found[2]}/"


def _wheel() -> str:
    return f"Wheel-Version: 1.0\nGenerator: headway {__version__}\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _record(members: Mapping[str, bytes], own: str) -> str:
    """The checksum and size of every member; its own line has neither."""
    lines = []
    for name, content in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    return "".join([*lines, f"{own},,\n"])


def _write(members: Mapping[str, bytes], path: Path) -> None:
    def failure(error: OSError) -> ArchiveError:
        return ArchiveError(f"{path}: cannot be written ({error.strerror or error}); give another folder")

    with reporting(failure):
        path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, failure) as file, reporting(failure), zipfile.ZipFile(file, "w") as wheel:
        for name, content in members.items():
            wheel.writestr(_member(name), content)


def _member(name: str) -> zipfile.ZipInfo:
    """Without a date, and readable by everyone."""
    member = zipfile.ZipInfo(name)
    member.external_attr = 0o100644 << 16
    member.create_system = 3  # Unix, wherever it is written
    return member
