"""Names of models: which file each stands for, whose name wins, and what is said where nothing does."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway import Parser
from headway.embedded import embedded_models
from headway.errors import ArchiveError, MissingFileError
from headway.named_models import find_model, is_name, models_folder, named_models, path_of_model


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, on the path of modules; and no other models than the included ones."""
    monkeypatch.setenv("HEADWAY_MODELS", str(tmp_path / "models"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


def install(site: Path, package: str, entries: str, *, model: bool = True) -> Path:
    """A package as pip leaves it; importing it fails the test."""
    info = site / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)
    (site / package).mkdir()
    (site / package / "__init__.py").write_text("raise AssertionError('imported')\n")
    path = site / package / "model.headway"
    if model:
        path.write_bytes(b"no model")
    return path


def in_folder(tmp_path: Path, name: str) -> Path:
    path = tmp_path / "models" / f"{name}.headway"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"no model")
    return path


def test_packages_and_folder(site: Path, tmp_path: Path) -> None:
    packaged = install(site, "a_pt", "[headway.models]\npt = a_pt\n")
    own = in_folder(tmp_path, "eo")
    assert (find_model("pt"), find_model("eo"), find_model("xx")) == (packaged, own, None)
    origins = {model.name: model.origin for model in named_models()}
    assert origins == {
        **dict.fromkeys(embedded_models(), "included"),
        "pt": "package a_pt 1.0",
        "eo": f"folder {tmp_path / 'models'}",
    }


def test_the_first_place_wins(site: Path, tmp_path: Path) -> None:
    packaged = install(site, "a_pt", "[headway.models]\npt = a_pt\nen = a_pt\n")
    own = in_folder(tmp_path, "pt")
    in_folder(tmp_path, "en")
    assert find_model("en") == embedded_models()["en"]
    assert find_model("pt") == packaged
    assert [model.path for model in named_models() if model.name == "pt"] == [packaged, own]
    Path("pt").write_bytes(b"a file")
    assert not is_name("pt")
    assert path_of_model("pt") == "pt"


def test_a_folder_of_the_name_hides_nothing(site: Path) -> None:
    Path("en").mkdir()
    assert path_of_model("en") == embedded_models()["en"]


def test_paths_are_left_alone(site: Path, tmp_path: Path) -> None:
    in_folder(tmp_path, "eo")
    for path in ("eo.headway", "./eo", "a/eo", tmp_path / "eo", "", "e o", "eo\0"):
        assert find_model(path) is None
        assert path_of_model(path) == path


def test_unknown_names(site: Path, tmp_path: Path) -> None:
    in_folder(tmp_path, "pt-bosque")
    for name, said in {
        "pt-bosk": r"pt-bosk: no such file, and no model of this name; did you mean pt-bosque\? There are en, ",
        "En": r"En: no such file, and no model of this name; did you mean en\? There are en, ",
        "zzzzzz": "zzzzzz: no such file, and no model of this name; there are en, ",
    }.items():
        with pytest.raises(MissingFileError, match=said):
            Parser.load(name)


def test_two_packages_of_one_name(site: Path) -> None:
    for package in ("a_pt", "b_pt"):
        install(site, package, f"[headway.models]\npt = {package}\n")
    with pytest.raises(ArchiveError, match=r"the packages a_pt 1\.0 and b_pt 1\.0 both have a model 'pt'; uninstall"):
        find_model("pt")
    assert find_model("en") == embedded_models()["en"]


@pytest.mark.parametrize("value", ["../models", "a_pt.sub", "a_pt:model", "/etc", "b_pt", "a_pt [x]"])
def test_packages_without_a_model_where_they_say(site: Path, tmp_path: Path, value: str) -> None:
    in_folder(tmp_path, "model")
    install(site, "a_pt", f"[headway.models]\npt = {value}\n")
    with pytest.raises(
        ArchiveError, match=r"the package a_pt 1\.0 has no model where it says 'pt' is; install it again"
    ):
        find_model("pt")
    assert "pt" not in {model.name for model in named_models()}


def test_a_damaged_model_of_a_package(site: Path) -> None:
    path = install(site, "a_pt", "[headway.models]\npt = a_pt\n")
    with pytest.raises(ArchiveError, match=f"{path}: not a model, or a damaged one"):
        Parser.load("pt")


def test_names_that_are_none(site: Path, tmp_path: Path) -> None:
    install(site, "a_pt", "[headway.models]\nP\x1bT = a_pt\n")
    in_folder(tmp_path, "a b")
    assert {model.name for model in named_models()} == set(embedded_models())


def test_entry_points_that_cannot_be_read(site: Path) -> None:
    install(site, "a_pt", "[headway.models]\npt\n")
    with pytest.raises(ArchiveError, match="the entry points of an installed package cannot be read"):
        find_model("pt")


def test_where_the_folder_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_MODELS", str(tmp_path))
    assert models_folder() == tmp_path
    monkeypatch.delenv("HEADWAY_MODELS")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert models_folder() == tmp_path / "data" / "headway" / "models"

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert models_folder() is None
    assert {model.origin for model in named_models()} <= {"included"}
