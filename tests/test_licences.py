"""What the included models are made from is licensed in the wheel: in its metadata, and in files of their own."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from headway.archive import load_data
from headway.card import card_of, require_licence
from headway.embedded import embedded_models
from headway.model_package import notice
from headway_papers.english_card import ENCODER, TREEBANK, english_card

REPOSITORY = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]


def test_licence_files_exist() -> None:
    require_licence(PROJECT["license"])
    for name in PROJECT["license-files"]:
        assert (REPOSITORY / name).is_file()
    texts = "".join((REPOSITORY / name).read_text("utf-8") for name in PROJECT["license-files"])
    assert "Apache License" in texts
    assert "Attribution-ShareAlike 4.0 International" in texts


@pytest.mark.parametrize("name", embedded_models())
def test_included_models_name_whom_they_come_from(name: str) -> None:
    card = card_of(load_data(embedded_models()[name]))
    if card is None:
        pytest.skip(f"{name} has no card")
    notice = (REPOSITORY / "src" / "headway" / "embedded" / "LICENCE.md").read_text("utf-8")
    assert f"`{name}`" in notice
    assert set(card.licence.split()) <= set(PROJECT["license"].split())
    for source in card.sources:
        assert source.name in notice
        assert source.licence in notice


def test_the_notice_of_the_english_card() -> None:
    text = notice("en", english_card(sources=(TREEBANK, ENCODER), scores=(), speed=(), calibration=()))
    assert (
        "`en` is under CC-BY-SA-4.0 AND Apache-2.0 (https://creativecommons.org/licenses/by-sa/4.0/, https://" in text
    )
    for source in (TREEBANK, ENCODER):
        assert f"- [{source.name}]({source.url}), by {source.attribution}, {source.licence} (https://" in text
        assert source.licence in PROJECT["license"].split()
