"""Packed weights: how wrong each may be, what may be missing, how large the file is."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from headway.archive import Archive, load_archive, save_archive
from headway.errors import ArchiveError, TrainingError
from headway.packing import is_packed, pack, pack_all, unpack
from headway.pipeline import Parser
from headway.text.tagger import tags_of

from .models.model_parts import label_weights_of, weights_of, with_label_weights, with_weights
from .models.toy_treebank import sentences

Floats = NDArray[np.floating[Any]]
SHARES = 0.6  # of the sum of absolute weights: the most that may be dropped


def random_weights(seed: int, size: int = 5000) -> Floats:
    """Of all sizes, a third of them zero."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=size) * np.exp(rng.normal(scale=2.0, size=size))
    weights[rng.random(size) < 1 / 3] = 0.0
    return weights.astype(np.float32)


def unpacked(weights: Floats, least: float) -> Floats:
    arrays = {f"w.{part}": array for part, array in pack(weights, least).items()}
    assert is_packed(arrays, "w")
    return unpack(arrays, "w", len(weights))


def nbytes(arrays: dict[str, NDArray[Any]]) -> int:
    return sum(array.nbytes for array in arrays.values())


@pytest.mark.parametrize("seed", range(4))
def test_every_weight_is_right_to_half_a_step(seed: int) -> None:
    weights = random_weights(seed)
    found = unpacked(weights, 0.0)
    there = weights != 0
    assert found.dtype == np.float32
    assert (found[~there] == 0).all()
    sizes = np.abs(weights[there]).astype(np.float64)
    step = (sizes.max() / sizes.min()) ** (1 / 126)
    ratios = found[there] / weights[there].astype(np.float64)  # positive: signs are kept
    assert ratios.min() > step**-0.5 * (1 - 1e-6)
    assert ratios.max() < step**0.5 * (1 + 1e-6)


def test_the_bound_is_not_larger_than_it_need_be() -> None:
    """Sizes a thousandfold apart are within 3 in a hundred; the smallest and the largest are exact."""
    weights = np.geomspace(0.001, 1.0, 999) * np.resize([1, -1], 999)
    found = unpacked(weights, 0.0)
    assert np.abs(found / weights - 1).max() < 0.03
    np.testing.assert_allclose(found[[0, -1]], weights[[0, -1]], rtol=1e-6)


@given(st.lists(st.sampled_from([0.0, 1.0, -1.0, 0.25, 3e-30, -7e30]), min_size=1, max_size=40), st.floats(0, 2))
def test_what_is_smaller_than_asked_for_is_zero(values: list[float], least: float) -> None:
    weights = np.array(values)
    found = unpacked(weights, least)
    assert ((found != 0) == ((np.abs(weights) >= least) & (weights != 0))).all()
    assert (np.sign(found[found != 0]) == np.sign(weights[found != 0])).all()


@pytest.mark.parametrize("weights", [np.zeros(9), np.zeros(0), np.full(11, -2.5), np.array([1e-40, 0.0])])
def test_nothing_to_round(weights: Floats) -> None:
    np.testing.assert_allclose(unpacked(weights, 0.0), weights, rtol=1e-6, atol=1e-45)


def test_parts_are_small() -> None:
    parts = pack(random_weights(5, 1001), 0.5)
    assert parts["there"].nbytes == 126
    assert parts["bytes"].nbytes == int((np.abs(random_weights(5, 1001)) >= 0.5).sum())
    assert {array.dtype for name, array in parts.items() if name != "range"} == {np.dtype(np.uint8)}


# Several vectors


@pytest.mark.parametrize("most", [40_000, 10_000, 6_500])
def test_no_more_bytes_than_asked_for_and_the_same_share_of_each(most: int) -> None:
    vectors = {"a": random_weights(1, 9000), "b": 1000 * random_weights(2, 3000), "zero": np.zeros(500, np.float32)}
    arrays = pack_all(vectors, most)
    assert nbytes(arrays) <= most
    lost = {}
    for name, weights in vectors.items():
        found = unpack(arrays, name, len(weights))
        total = np.abs(weights, dtype=np.float64).sum()
        lost[name] = np.abs(weights[found == 0], dtype=np.float64).sum() / max(total, 1e-300)
        assert np.abs(weights[found == 0]).max() <= np.abs(weights[found != 0]).min(initial=np.inf)
    assert max(lost.values()) <= SHARES
    assert lost["a"] == pytest.approx(lost["b"], abs=0.01)
    if most == 40_000:
        assert lost["a"] == 0.0
    else:
        assert nbytes(arrays) > 0.9 * (most - 900)  # not more is dropped than that takes
        assert lost["a"] > 0


def test_too_few_bytes() -> None:
    with pytest.raises(TrainingError, match=r"too many weights in so small a file.*ask for more megabytes"):
        pack_all({"a": random_weights(3)}, 700)
    with pytest.raises(TrainingError, match="more megabytes"):
        pack_all({"a": random_weights(3)}, -5)


def test_weights_of_the_same_size_are_kept_or_dropped_together() -> None:
    """Or more would be kept than were counted."""
    alike = {"a": np.resize([1.0, -1.0], 4000)}
    with pytest.raises(TrainingError, match="more megabytes"):
        pack_all(alike, 3000)
    assert nbytes(pack_all(alike, 5000)) <= 5000
    steps = {"a": np.repeat([1.0, 2.0, 40.0], 1000)}
    arrays = pack_all(steps, 2800)
    assert nbytes(arrays) <= 2800
    assert np.unique(unpack(arrays, "a", 3000)).size == 3  # zero, 2 and 40


def test_no_vector_at_all() -> None:
    assert pack_all({}, 10) == {}


# Damage


def whole() -> dict[str, NDArray[Any]]:
    return {f"w.{part}": array for part, array in pack(random_weights(6, 100), 0.1).items()}


@pytest.mark.parametrize("part", ["there", "bytes", "range"])
def test_a_part_missing(part: str) -> None:
    arrays = whole()
    del arrays[f"w.{part}"]
    with pytest.raises(KeyError):
        unpack(arrays, "w", 100)


@pytest.mark.parametrize(
    "change",
    [
        {"there": np.zeros(12, np.uint8)},
        {"there": np.zeros(14, np.uint8)},
        {"there": np.zeros(13, np.uint8)},
        {"there": np.full(13, 255, np.uint8)},
        {"there": np.zeros(13, np.int8)},
        {"there": np.zeros(13)},
        {"bytes": np.zeros(3, np.uint8)},
        {"bytes": np.zeros(0, np.uint8)},
        {"bytes": np.zeros(1000, np.uint8)},
        {"bytes": whole()["w.bytes"].astype(np.int64)},
        {"bytes": whole()["w.bytes"].astype(np.float32)},
        {"range": np.zeros(1)},
        {"range": np.zeros(3)},
        {"range": np.zeros((2, 3))},
    ],
    ids=str,
)
def test_parts_that_do_not_fit(change: dict[str, NDArray[Any]]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        unpack({**whole(), **{f"w.{part}": array for part, array in change.items()}}, "w", 100)


@pytest.mark.parametrize("size", [0, 1, 96, 105, 10**6])
def test_of_another_length(size: int) -> None:
    with pytest.raises(ValueError, match="packed weights"):
        unpack(whole(), "w", size)


# Parsers


@cache
def parser() -> Parser:
    return Parser.train(sentences(36, 1, crossing=True), learner="perceptron", epochs=3)


def saved(path: Path, **options: Any) -> int:
    parser().save(path, **options)
    return path.stat().st_size


def noisy(weights: Floats) -> Floats:
    """No weight is zero any more, and none says anything else."""
    return weights + 1e-3 * np.random.default_rng(4).normal(size=len(weights))


def test_a_file_no_larger_than_asked_for_that_parses_as_well(tmp_path: Path) -> None:
    plain, path = replace(parser(), segmenter=None), tmp_path / "packed"  # whose tables are larger than all else
    assert plain.tagger is not None
    model = with_weights(plain.model, noisy(weights_of(plain.model)))
    model = with_label_weights(model, noisy(label_weights_of(plain.model)))
    tagger = replace(plain.tagger, weights=noisy(plain.tagger.weights))
    full = replace(plain, model=model, tagger=tagger)
    text = sentences(30, 2, crossing=True)
    expected = list(full.parse(text, retag=True))
    sizes = []
    for megabytes in (0.1, 0.055, 0.045, 0.036):
        full.save(path, max_megabytes=megabytes)
        sizes.append(path.stat().st_size)
        assert sizes[-1] <= 1e6 * megabytes
        same = total = 0
        for ours, theirs in zip(Parser.load(path).parse(text, retag=True), expected, strict=True):
            same += int((ours.heads == theirs.heads).sum()) - 1
            same += sum(a == b for a, b in zip(tags_of(ours.sentence), tags_of(theirs.sentence), strict=True))
            total += 2 * len(ours.sentence)
        assert same > 0.97 * total
    assert sizes == sorted(set(sizes), reverse=True)


def test_what_is_packed_is_the_weights_alone(tmp_path: Path) -> None:
    """Everything else as in the whole file; each weight near its own, or dropped."""
    saved(tmp_path / "full")
    saved(tmp_path / "packed", max_megabytes=100)
    full, small = (load_archive(tmp_path / name, "arc") for name in ("full", "packed"))
    assert small.data == full.data
    assert {name for name in full.arrays if name.endswith("weights")} == {"weights", "label_weights", "tagger_weights"}
    for name, array in full.arrays.items():
        if not name.endswith("weights"):
            np.testing.assert_array_equal(small.arrays[name], array)
            continue
        assert name not in small.arrays
        found = unpack(small.arrays, name, len(array))
        np.testing.assert_allclose(found, array, rtol=0.1)  # 100 MB: nothing is dropped
        assert ((found != 0) == (array != 0)).all()


def test_a_packed_parser_is_saved_again(tmp_path: Path) -> None:
    """Over its own file."""
    path = tmp_path / "packed"
    saved(path, max_megabytes=100)
    found = Parser.load(path)
    text = sentences(10, 3, crossing=True)
    before = [parsed.heads.tolist() for parsed in found.parse(text)]
    found.save(path)
    assert [parsed.heads.tolist() for parsed in Parser.load(path).parse(text)] == before
    assert [parsed.heads.tolist() for parsed in found.parse(text)] == before


@pytest.mark.parametrize("megabytes", [0.0, 0.001, -1.0])
def test_a_file_too_small_for_the_model(tmp_path: Path, megabytes: float) -> None:
    with pytest.raises(TrainingError, match="ask for more megabytes"):
        parser().save(tmp_path / "small", max_megabytes=megabytes)
    assert list(tmp_path.iterdir()) == []


DAMAGE: dict[str, dict[str, Any]] = {
    "there": {"weights.there": np.zeros(3, np.uint8)},
    "bytes": {"weights.bytes": np.zeros(3, np.uint8)},
    "a tagger's bytes": {"tagger_weights.bytes": np.zeros(3, np.uint8)},
    "infinite": {"weights.range": np.array([1.0, np.inf])},
    "huge": {"weights.range": np.array([1e300, 10.0])},
    "nan": {"label_weights.range": np.array([np.nan, 1.0])},
    "one number": {"weights.range": np.array([1.0])},
    "none": {"weights.range": None},
}


@pytest.mark.parametrize("name", list(DAMAGE))
def test_damaged_files(tmp_path: Path, name: str) -> None:
    saved(tmp_path / "packed", max_megabytes=100)
    archive = load_archive(tmp_path / "packed", "arc")
    arrays = {name: array for name, array in {**archive.arrays, **DAMAGE[name]}.items() if array is not None}
    save_archive(Archive("arc", archive.data, arrays), tmp_path / "damaged")
    with pytest.raises(ArchiveError) as caught:
        Parser.load(tmp_path / "damaged")
    assert str(caught.value).startswith(f"{tmp_path / 'damaged'}: ")


def test_a_model_of_zeros(tmp_path: Path) -> None:
    whole = parser()
    model = with_weights(whole.model, np.zeros_like(weights_of(whole.model)))
    Parser(model).save(tmp_path / "zeros", max_megabytes=100)
    assert not weights_of(Parser.load(tmp_path / "zeros").model).any()
