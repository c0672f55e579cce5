"""Models that somebody made to do harm: refused in one sentence, or as harmless as any other."""

from __future__ import annotations

import json
import zipfile
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.archive import VERSION, Archive, save_archive
from headway.errors import ArchiveError, TrainingError
from headway.learning.progress import Pass
from headway.models.protocol import Options
from headway.models.registry import open_archive, read_model
from headway.parallel import SERIAL
from headway.pipeline import Parser
from headway.saved_values import LARGEST_WEIGHT
from headway.text.saved import with_text_members
from headway.training.settings import Settings
from headway.training.stages import Run

from .test_every_model import model
from .toy_treebank import sentences

SEEN = sentences(8, 5)


def archive_of(name: str) -> Archive:
    return deepcopy(with_text_members(model(name).to_archive(), None, None))


def loaded(archive: Archive, path: Path) -> Any:
    save_archive(archive, path)
    return read_model(open_archive(path), path)


def refused(archive: Archive, path: Path) -> str:
    with pytest.raises(ArchiveError) as caught:
        loaded(archive, path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert message.isprintable()
    return message


def set_at(data: Any, path: str, value: Any) -> None:
    *above, last = path.split(".")
    for key in above:
        data = data[int(key)] if isinstance(data, list) else data[key]
    data[int(last) if isinstance(data, list) else last] = value


@pytest.mark.parametrize("name", ["arc, labels after", "arc, labels joint", "grandsibling"])
@pytest.mark.parametrize("size", [1e10, 1e20, LARGEST_WEIGHT])
def test_huge_weights_give_probabilities(name: str, size: float, tmp_path: Path) -> None:
    archive = archive_of(name)
    rng = np.random.default_rng(6)
    arrays = {
        key: (rng.uniform(-size, size, array.shape) * 0.999).astype(np.float32) for key, array in archive.arrays.items()
    }
    for found in loaded(Archive(archive.kind, archive.data, arrays), tmp_path / "m").predict(SEEN, Options(), SERIAL):
        mu = found.distribution.marginals
        assert ((mu >= 0) & (mu <= 1 + 1e-9)).all()
        np.testing.assert_allclose(mu[:, 1:].sum(axis=0), 1.0, atol=1e-6)


@pytest.mark.parametrize("name", ["arc, labels after", "grandsibling", "coreference"])
@pytest.mark.parametrize("size", [1.01 * LARGEST_WEIGHT, 3e38, np.inf, np.nan])
def test_weights_out_of_range_are_refused(name: str, size: float, tmp_path: Path) -> None:
    archive = archive_of(name)
    weights = archive.arrays["weights"].copy()
    weights[-1] = -size
    changed = Archive(archive.kind, archive.data, {**archive.arrays, "weights": weights})
    assert "weights has numbers out of range" in refused(changed, tmp_path / "m")


def test_training_does_not_end_in_weights_that_cannot_be_loaded() -> None:
    def fit(report: Any, resume: Any) -> Any:
        weights = np.full(3, 1e31)
        report(Pass(1, weights, {}, {"weights": weights}))
        return weights

    with pytest.raises(TrainingError, match=r"has numbers out of range: not finite, or beyond 1.26765e\+30; lower C"):
        Run().fit("parser-1", fit, 3, Settings().complete())


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        *(("grandsibling", "pruner.max_heads", value) for value in (10**30, 0, -1, 2.5, "3", True, None)),
        *(("grandsibling", "pruner.threshold", value) for value in (float("nan"), "0.1", -1, 2, True)),
        *(("grandsibling", "calibration.1", value) for value in (float("inf"), "0", -1.5, None)),
        *(("arc, labels after", "labeller.labels.0", value) for value in ("a\tb", "a\nb", "a\rb", "", 3, None)),
        *(("arc, labels joint", "joint.labels.0", value) for value in ("a\nb", "")),
        *(("arc, labels after", "arcs.0.keys", value) for value in (10**30, -1, "3", 1e300)),
        *(("arc, labels after", "arcs.0.bits", value) for value in (40, 10**30, 0, True)),
        *(("grammar", "tags.0", value) for value in ("a\tb", "", 7)),
        ("arc, labels after", "clusters", {"01\n": ["a"]}),
        ("arc, labels after", "clusters", {"01": "words"}),
        ("arc, labels after", "about", [1]),
        ("coreference", "sieves.mentions", 2.5),
    ],
)
def test_a_field_that_cannot_be_is_refused(name: str, field: str, value: Any, tmp_path: Path) -> None:
    archive = archive_of(name)
    set_at(archive.data, field, value)
    refused(archive, tmp_path / "m")


def test_a_grammar_that_would_fill_the_memory_is_refused_before_it_is_built(tmp_path: Path) -> None:
    """120 tags with 64 states, twice: 30 kB that took 7.6 GB."""
    archive = archive_of("grammar")
    tags, states = [f"T{i}" for i in range(120)], 64
    arrays = dict(archive.arrays)
    for prefix in ("", "deterministic_"):
        arrays |= {f"{prefix}{end}": np.zeros((122, 2, states)) for end in ("initial", "final")}
        arrays |= {f"{prefix}operators": np.zeros((0, states, states)), f"{prefix}places": np.zeros(0, np.int64)}
    data = {**archive.data, "tags": tags, "backed_off": 0.5}
    assert "it has 120 tags and 128 states" in refused(Archive(archive.kind, data, arrays), tmp_path / "m")


@pytest.mark.parametrize("text", [b"[" + b"[]," * 4_000_001 + b"0]", b'{"a": [' + b"0," * 4_000_001 + b"0]}"])
def test_json_of_millions_of_values_is_refused_before_it_is_built(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("headway.json", text)
    with pytest.raises(ArchiveError, match="more values than any archive of Headway"):
        open_archive(path)


@pytest.mark.parametrize("half", ["\\ud800", "\\uDFFF", "\\ud83d\\ud83d"])
def test_half_a_character_is_refused_and_two_halves_are_one(half: str, tmp_path: Path) -> None:
    path, start = tmp_path / "m", f'{{"headway": {VERSION}, "kind": "arc", "about": '
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("headway.json", f'{start}"{half}"}}')
    with pytest.raises(ArchiveError, match="is damaged"):
        open_archive(path)
    for whole in ("\\ud83d\\ude00", "\\\\ud800"):
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("headway.json", f'{start}"{whole}"}}')
        assert open_archive(path).data["about"] == json.loads(f'"{whole}"')


def test_bytes_that_are_compressed_are_refused(tmp_path: Path) -> None:
    """A bit of them stands for a weight: 250 kB would become gigabytes."""
    path = tmp_path / "m"
    save_archive(Archive("arc", {}, {"weights.there": np.zeros(10, np.uint8)}), path)
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    with pytest.raises(ArchiveError, match=r"weights\.there\.npy is compressed, which bytes never are"):
        open_archive(path)


def test_folders_of_files_are_not_saved(tmp_path: Path) -> None:
    paths = tmp_path / "paths.txt"
    paths.write_text("01\tthe\n", "utf-8")
    parser = Parser.train(SEEN, epochs=1, labels="none", tags="gold", clusters=str(paths))
    parser.save(tmp_path / "m")
    assert parser.model.about["settings"]["clusters"] == "paths.txt"
    with zipfile.ZipFile(tmp_path / "m") as file:
        assert str(tmp_path) not in file.read("headway.json").decode()


def test_the_included_model_names_no_folder() -> None:
    about = Parser.load("en").describe().data["about"]
    assert about["settings"]["encoder"]  # it was read from a folder
    assert "/" not in json.dumps(about)
