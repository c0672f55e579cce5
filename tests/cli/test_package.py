"""`headway package`, `headway models` and the card in `headway info`: from a trained model to its name."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import subprocess
import sys
import zipfile
from dataclasses import asdict, replace
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

import pytest

from headway import Parser
from headway.archive import load_archive, load_data, save_archive
from headway.card import Card, Measured, Source, card_of, with_card
from headway.errors import ArchiveError
from tests.cli.conftest import Invoke, one_error

SOURCE = Source("UD Esperanto-Toy", "CC-BY-SA-4.0", "0123456789abcdef", "https://example.org/eo", "Ludoviko\nZ.")
CARD = Card("eo", "CC-BY-SA-4.0", "", (SOURCE,), (Measured("dev", {"UAS": 91.25, "LAS": 90.0}),))


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADWAY_MODELS", str(tmp_path / "models"))


def card_file(folder: Path, card: Card = CARD) -> Path:
    path = folder / "card.json"
    path.write_text(json.dumps(card.to_data()), encoding="utf-8")
    return path


def test_a_wheel_is_what_pip_expects(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    text = tmp_path / "full.txt"
    text.write_text("All rights shared.", encoding="utf-8")
    words = ("--card", card_file(tmp_path), "--name", "eo-toy", "--version", "1.2rc1", "--licence-file", text)
    said = invoke("package", model, *words, "-o", tmp_path / "dist").stdout
    (wheel,) = (tmp_path / "dist").iterdir()
    assert wheel.name == "headway_model_eo_toy-1.2rc1-py3-none-any.whl"
    assert said.startswith(f"{wheel}: ")
    members = zipfile.ZipFile(wheel)
    content = {name: members.read(name) for name in members.namelist()}
    info = "headway_model_eo_toy-1.2rc1.dist-info"
    assert set(content) == {
        "headway_model_eo_toy/model.headway",
        *(f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")),
        *(f"{info}/licenses/{name}" for name in ("LICENCE.md", "LICENCE.txt")),
    }
    for name, checksum, size in csv.reader(io.StringIO(content[f"{info}/RECORD"].decode())):
        if name == f"{info}/RECORD":
            assert (checksum, size) == ("", "")
            continue
        digest = base64.urlsafe_b64decode(checksum.removeprefix("sha256=") + "=")
        assert (digest, int(size)) == (hashlib.sha256(content[name]).digest(), len(content.pop(name)))
    assert set(content) == {f"{info}/RECORD"}
    metadata = HeaderParser().parsestr(members.read(f"{info}/METADATA").decode())
    assert (metadata["Name"], metadata["Version"]) == ("headway-model-eo-toy", "1.2rc1")
    assert metadata["License-Expression"] == "CC-BY-SA-4.0"
    assert metadata.get_all("License-File") == ["LICENCE.md", "LICENCE.txt"]
    assert "dev: UAS 91.25, LAS 90" in metadata.get_payload()
    notice = members.read(f"{info}/licenses/LICENCE.md").decode()
    assert "- [UD Esperanto-Toy](https://example.org/eo), by Ludoviko Z., CC-BY-SA-4.0 (https://creative" in notice
    assert members.read(f"{info}/licenses/LICENCE.txt") == b"All rights shared."


def test_the_same_model_makes_the_same_wheel(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    wheels = []
    for folder in ("a", "b"):
        invoke("package", model, "--language", "eo", "--licence", "MIT", "-o", tmp_path / folder)
        (wheel,) = (tmp_path / folder).iterdir()
        wheels.append(wheel.read_bytes())
    assert wheels[0] == wheels[1]


def test_installed_and_used_by_name(
    invoke: Invoke, model: Path, test_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By pip itself, into a folder; then on the command line, from Python and in spaCy."""
    invoke("package", model, "--card", card_file(tmp_path), "-o", "dist")
    wheel = tmp_path / "dist" / "headway_model_eo-1.0-py3-none-any.whl"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--target", "site", wheel], check=True)
    assert not list(Path("site").rglob("*.py"))
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert invoke("parse", "eo", test_file).stdout == invoke("parse", model, test_file).stdout
    assert Parser.load("eo").card == CARD
    found = {row["name"]: row for row in json.loads(invoke("models", "--json").stdout)["models"]}
    assert (found["eo"]["language"], found["eo"]["licence"]) == ("eo", "CC-BY-SA-4.0")
    assert found["eo"]["origin"] == "package headway-model-eo 1.0"
    rows = invoke("info", "eo").stdout.splitlines()
    assert "scores     dev: UAS 91.25, LAS 90.00" in rows
    assert "made from  UD Esperanto-Toy (CC-BY-SA-4.0), sha256 0123456789abcdef" in rows
    assert json.loads(invoke("info", "eo", "--json").stdout)["card"] == CARD.to_data()
    spacy = pytest.importorskip("spacy")
    import headway.spacy  # noqa: F401

    nlp = spacy.blank("xx")
    nlp.add_pipe("headway", config={"model": "eo"})
    assert nlp.get_pipe("headway").parser.card == CARD


def test_the_card_of_the_model_itself(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.headway"
    replace(Parser.load(model), card=CARD).save(own)
    invoke("package", own, "--licence", "MIT", "-o", "dist")
    wheel = zipfile.ZipFile("dist/headway_model_eo-1.0-py3-none-any.whl")
    Path("again.headway").write_bytes(wheel.read("headway_model_eo/model.headway"))
    assert Parser.load("again.headway").card == replace(CARD, licence="MIT")


def test_a_model_is_packaged_by_name(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    replace(Parser.load(model), card=CARD).save(tmp_path / "models" / "eo.headway")
    invoke("package", "eo", "-o", "by-name")
    invoke("package", tmp_path / "models" / "eo.headway", "-o", "by-path")
    (one,), (other,) = Path("by-name").iterdir(), Path("by-path").iterdir()
    assert (one.name, one.read_bytes()) == (other.name, other.read_bytes())
    said = one_error(invoke("package", "oe", "--language", "eo", "-o", "none", status=1))
    assert said == "oe: no such file, and no model of this name; there are en, eo"


def test_a_card_stays_with_its_model(model: Path, tmp_path: Path) -> None:
    replace(Parser.load(model), card=CARD).save(tmp_path / "a.headway")
    loaded = Parser.load(tmp_path / "a.headway")
    assert loaded.card == CARD
    loaded.save(tmp_path / "b.headway")
    assert (tmp_path / "a.headway").read_bytes() == (tmp_path / "b.headway").read_bytes()
    assert load_data(tmp_path / "b.headway")["card"] == CARD.to_data()
    Parser.load(model).save(tmp_path / "c.headway")
    assert Parser.load(tmp_path / "c.headway").card is None
    assert "card" not in load_data(tmp_path / "c.headway")


def test_a_card_can_be_replaced_in_an_archive(model: Path, tmp_path: Path) -> None:
    archive = load_archive(model)
    carded = with_card(with_card(archive, CARD), Card("de"))
    assert card_of(carded.data) == Card("de")
    assert with_card(carded, None) == archive


def test_a_damaged_card_is_a_damaged_model(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.headway"
    archive = load_archive(model)
    save_archive(replace(archive, data={**archive.data, "card": {"language": "\x1b[2J"}}), path)
    with pytest.raises(ArchiveError, match="a damaged model, or not a model") as caught:
        Parser.load(path)
    assert "\x1b" not in str(caught.value)


def test_folders_of_the_building_machine_stay_there(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    archive = load_archive(model)
    about = {**archive.data["about"], "settings": {**archive.data["about"]["settings"], "clusters": "/home/me/c.txt"}}
    save_archive(replace(archive, data={**archive.data, "about": about}), tmp_path / "old.headway")
    invoke("package", "old.headway", "--language", "eo", "-o", "dist")
    wheel = zipfile.ZipFile("dist/headway_model_eo-1.0-py3-none-any.whl")
    Path("new.headway").write_bytes(wheel.read("headway_model_eo/model.headway"))
    assert load_data("new.headway")["about"]["settings"]["clusters"] == "c.txt"


def test_what_cannot_be_packaged(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    def error(*words: Any) -> str:
        said = one_error(invoke("package", *words, "-o", "dist", status=1))
        assert not Path("dist").exists()
        return said

    damaged = tmp_path / "damaged.headway"
    damaged.write_bytes(model.read_bytes()[:-1000])
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "no.json").write_text("{")
    (tmp_path / "latin").write_bytes(b"\xe9")
    language = ("--language", "eo")
    assert error(model) == "nothing says which language the model is for; give it: --language pt"
    assert error(damaged, *language).startswith(f"{damaged}: not a model, or a damaged one")
    assert error("none", *language).startswith("none: no such file, and no model of this name")
    assert error("no/ne", *language).startswith("no/ne: the file cannot be opened")
    assert error(model, "--language", "Esperanto").startswith("the language is 'Esperanto'; expected its code")
    assert error(model, *language, "--licence", "CC BY").startswith("the licence 'CC BY' is no SPDX expression")
    assert error(model, *language, "--version", "v1").startswith("the version is 'v1'; expected numbers")
    assert error(model, *language, "--name", "../x").startswith("the name is '../x'; expected small letters")
    assert error(model, "--language", "en").startswith("en is included in Headway, which would hide the package")
    assert error(model, "--card", "list.json").startswith("list.json: not a JSON object")
    assert error(model, "--card", "no.json").startswith("no.json: not valid JSON (")
    assert (
        error(model, *language, "--licence-file", "latin") == "latin: the text is not in UTF-8; save it again as such"
    )
    (tmp_path / "file").write_text("")
    said = one_error(invoke("package", model, *language, "-o", "file", status=1))
    assert said.startswith("file/headway_model_eo-1.0-py3-none-any.whl: cannot be written")


def test_a_package_without_a_licence_is_remarked_on(invoke: Invoke, model: Path) -> None:
    assert "names no licence" in invoke("package", model, "--language", "eo", "-o", "dist").stderr


def test_models_that_are_hidden_or_damaged(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("en", "eo"):
        (folder / f"{name}.headway").write_bytes(model.read_bytes()[: None if name == "en" else 100])
    rows = [line.split() for line in invoke("models").stdout.splitlines()]
    own = [row for row in rows if str(folder) in row]
    assert [(row[0], row[6:]) for row in own] == [("en", ["hidden", "by", "the", "one", "above"]), ("eo", ["damaged"])]


def test_a_model_fits_on_a_screen(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    """However much a card says; all of it is there with --all."""
    many = tuple(Measured(f"data {k} " + "long " * 30, {"UAS": 90.0 + k}) for k in range(9))
    sources = tuple(replace(SOURCE, name=f"treebank \x1b[2J {k} " + "x" * 90) for k in range(9))
    licence = " AND ".join(["CC-BY-SA-4.0"] * 9)
    card = Card("eo", licence, "A long story. " * 200, sources, many, many, many)
    replace(Parser.load(model), card=card).save("full.headway")
    lines = invoke("info", "full.headway").stdout.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in "".join(lines)
    for name in ("language", "licence", "made from", "scores", "speed", "calibration", "size"):
        assert sum(line.startswith(name) for line in lines) == 1
    everything = invoke("info", "full.headway", "--all").stdout
    assert "data 8" in everything
    assert "treebank \\x1b[2J 8" in everything
    assert "settings.learner" in everything
    assert "templates " in everything


def test_nothing_of_the_english_model_is_cut_on_a_screen(invoke: Invoke) -> None:
    text = invoke("info", "en").stdout
    assert len(text.splitlines()) <= 24
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    card = Parser.load("en").card
    assert card is not None
    for source in card.sources[:3]:
        assert f"{source.name} ({source.licence}), sha256 {source.sha256[:16]}" in " ".join(text.split())


def test_calibration_errors_are_in_percent(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    card = replace(CARD, calibration=(Measured("test", {"error of arcs": 0.794}),))
    replace(Parser.load(model), card=card).save("eo.headway")
    for option in ([], ["--all"]):
        rows = [line.split(maxsplit=1) for line in invoke("info", "eo.headway", *option).stdout.splitlines()]
        assert ["calibration", "test: error of arcs 0.79%"] in rows


def test_a_model_without_a_card_says_what_it_knows(invoke: Invoke, model: Path) -> None:
    lines = invoke("info", model).stdout.splitlines()
    train = Parser.load(model).model.about["train"]
    assert f"trained on  sentences 40, sha256 {train['sha256']}" in lines
    assert not any(line.startswith(("licence", "settings")) for line in lines)
    assert asdict(CARD)["language"] not in lines
