"""Trained models: predictions against enumeration, the saved form, and archives that are no models."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headway.archive import Archive, load_archive, save_archive
from headway.arrays import TreeClass
from headway.errors import ArchiveError
from headway.inference.brute_force import all_trees
from headway.inference.tree_distribution import TreeDistribution
from headway.models.arc_model import ArcModel
from headway.models.labeller import CodedArcs
from headway.models.tree_decoder import TreeDecoder
from headway.pipeline import Parser
from headway.text.saved import with_text_members
from headway.treebank import Sentence

from .model_parts import (
    assert_same_predictions,
    label_names_of,
    label_weights_of,
    predict,
    weights_of,
    with_label_weights,
    with_weights,
)
from .toy_treebank import sentences

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LABEL_CHOICES = ("after", "joint", "none")


@cache
def trained(labels: str) -> ArcModel:
    options = {"learner": "perceptron", "epochs": 3, "tags": "gold"}
    model = Parser.train(sentences(30, 1, crossing=True), labels=labels, **options).model
    assert isinstance(model, ArcModel)
    return model


def random_model(labels: str, seed: int, trees: TreeClass | None = None) -> ArcModel:
    """The features of a trained model, under weights that make every tree and label likely."""
    model, rng = trained(labels), np.random.default_rng(seed)
    weights = rng.normal(0.0, 0.3, len(weights_of(model)))
    if labels == "joint":
        weights[: model.scorer.scorer.arcs.size] *= 0.1  # lest the labels have no say in the tree
    model = with_weights(model, weights).with_trees(trees or TreeClass())
    own = rng.normal(size=len(label_weights_of(model)))
    return with_label_weights(model, own) if labels == "after" else model


def short_sentences() -> list[Sentence]:
    """The first words of some sentences, one of them alone."""
    lengths = (4, 1, 3, *[4] * 17)
    pairs = list(zip(sentences(20, 5, crossing=True), lengths, strict=True))
    return [Sentence.from_words(s.forms[:n], upos=s.upos[:n], xpos=s.xpos[:n]) for s, n in pairs]


@pytest.mark.parametrize("labels", LABEL_CHOICES)
@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("single_root", [False, True])
def test_predictions_are_the_best_of_every_tree(labels: str, projective: bool, single_root: bool) -> None:
    """Also of every label, and, for `mbr`, by marginals summed tree by tree."""
    model = random_model(labels, 2, TreeClass(projective, single_root))
    text = short_sentences()
    coded = model.coder.code(text)
    found, found_mbr = predict(model, text), predict(model, text, mbr=True)
    assert len(found) == len(found_mbr) == len(text)
    differ = {"mbr": 0, "sum of labels": 0, "mbr of the best labels": 0, "unsure labels": 0}
    for i, sentence in enumerate(text):
        n, names = len(sentence), label_names_of(model)
        full = model.scorer.scores(coded.some(np.array([i])))[0]
        if labels == "joint":
            root = names.index("root")
            full[0, :, [k for k in range(full.shape[-1]) if k != root]] = -np.inf
            full[1:, :, root] = -np.inf
        parts = full if full.ndim == 3 else full[..., None]
        arcs, best = np.logaddexp.reduce(parts, axis=-1), parts.max(axis=-1)
        trees, words = all_trees(n, projective=projective, single_root=single_root), np.arange(1, n + 1)
        heads, by_risk = highest(best, trees), highest(marginals_of(arcs, trees), trees)
        np.testing.assert_array_equal(found[i].heads, heads)
        np.testing.assert_array_equal(found_mbr[i].heads, by_risk)
        differ["mbr"] += not np.array_equal(heads, by_risk)
        differ["sum of labels"] += not np.array_equal(heads, highest(arcs, trees))
        differ["mbr of the best labels"] += not np.array_equal(by_risk, highest(marginals_of(best, trees), trees))
        distribution = found[i].distribution
        assert isinstance(distribution, TreeDistribution)
        for tree in trees:
            assert distribution.score(tree) == pytest.approx(arcs[tree[1:], words].sum(), rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(distribution.marginals, marginals_of(arcs, trees), atol=1e-12)
        if labels == "none":
            assert found[i].labels is None
        for prediction in (found[i], found_mbr[i]):
            if labels == "joint":
                chosen = [full[prediction.heads[m], m].argmax() for m in words]
                assert prediction.labels == (None, *(names[c] for c in chosen))
                shares = [labelled_share(full, trees, prediction.heads[m], m, c) for m, c in enumerate(chosen, 1)]
                np.testing.assert_allclose(prediction.label_probabilities, [1.0, *shares], rtol=1e-9)
                differ["unsure labels"] += min(shares) < 0.9
            else:
                assert prediction.label_probabilities is None
            if labels == "after":
                assert model.after is not None
                arcs_of_tree = CodedArcs(coded.some(np.array([i])), prediction.heads[None])
                rows = model.after.scorer.scores(model.after.weights, arcs_of_tree)[0]
                expected = [
                    max(
                        (score, name) for score, name in zip(row, names, strict=True) if (name == "root") == (head == 0)
                    )
                    for row, head in zip(rows[1:].tolist(), prediction.heads[1:].tolist(), strict=True)
                ]
                assert prediction.labels == (None, *(name for _, name in expected))
    if labels == "joint":
        assert all(differ.values()), "another way to choose the tree would pass"


def highest(scores: Floats, trees: Ints) -> Ints:
    words = np.arange(1, trees.shape[1])
    best: Ints = trees[int(np.argmax([scores[tree[1:], words].sum() for tree in trees]))]
    return best


def marginals_of(scores: Floats, trees: Ints) -> Floats:
    words = np.arange(1, trees.shape[1])
    totals = np.array([scores[tree[1:], words].sum() for tree in trees])
    mu = np.zeros_like(scores)
    for tree, share in zip(trees, np.exp(totals - np.logaddexp.reduce(totals)), strict=True):
        mu[tree[1:], words] += share
    return mu


def labelled_share(scores: Floats, trees: Ints, h: int, m: int, label: int) -> float:
    """P(label | arc): the weight of all labelled trees with the labelled arc, among that of all with the arc."""
    others = np.logaddexp.reduce(scores, axis=-1)
    n = trees.shape[1] - 1
    rest = [np.exp(sum(others[t[k], k] for k in range(1, n + 1) if k != m)) for t in trees if t[m] == h]
    weights = np.exp(scores[h, m])
    return float(sum(rest) * weights[label] / (sum(rest) * weights.sum()))


def test_order_batches_and_threads() -> None:
    """Sentences come back in their order, alike whatever batches they were put in."""
    model, text = random_model("after", 3), sentences(40, 6, crossing=True)
    alone = [predict(model, [sentence])[0] for sentence in text]
    for cells, threads in ((250_000, 1), (1, 1), (400, 1), (250_000, 3)):
        other = replace(model, decoder=TreeDecoder(model.trees, cells))
        assert_same_predictions(predict(other, text, threads=threads), alone)


@pytest.mark.parametrize("labels", LABEL_CHOICES)
def test_saved_and_loaded(tmp_path: Path, labels: str) -> None:
    """The same trees and labels; weights to single precision, everything else exactly."""
    model, path = trained(labels), tmp_path / "toy.headway"
    Parser(model).save(path)
    again = Parser.load(path).model
    assert again.coder == model.coder
    assert again.scorer.scorer.arcs.blocks == model.scorer.scorer.arcs.blocks
    assert label_names_of(again) == label_names_of(model)
    assert (again.labeller is None) == (model.labeller is None)
    assert again.trees == model.trees
    assert again.about == json.loads(json.dumps(model.about))
    for part in (weights_of, label_weights_of):
        ours, theirs = part(again), part(model)
        assert ours.dtype == np.float32 or not ours.size
        np.testing.assert_array_equal(ours, theirs.astype(np.float32))
    text = sentences(30, 7, crossing=True)
    for one, other in zip(predict(again, text), predict(model, text), strict=True):
        np.testing.assert_array_equal(one.heads, other.heads)
        assert one.labels == other.labels
    Parser(again).save(tmp_path / "twice.headway")
    twice = load_archive(tmp_path / "twice.headway", ArcModel.kind)
    assert twice.data == load_archive(path, ArcModel.kind).data
    for name, array in load_archive(path, ArcModel.kind).arrays.items():
        np.testing.assert_array_equal(twice.arrays[name], array)


@pytest.mark.parametrize("flags", [(True, False), (False, False), (True, True)])
def test_the_tree_class_is_saved(tmp_path: Path, flags: tuple[bool, bool]) -> None:
    Parser(trained("none").with_trees(TreeClass(*flags))).save(tmp_path / "a")
    assert Parser.load(tmp_path / "a").model.trees == flags


def tampered(change: Callable[[dict[str, Any], dict[str, Any]], None], labels: str = "after") -> Archive:
    archive = with_text_members(trained(labels).to_archive(), None, None)
    data, arrays = json.loads(json.dumps(archive.data)), {k: v.copy() for k, v in archive.arrays.items()}
    change(data, arrays)
    return Archive(ArcModel.kind, data, arrays)


def put(data: Any, *path: Any) -> None:
    """put(data, key, .., value): the value at the end of the path."""
    *keys, last, value = path
    for key in keys:
        data = data[key]
    data[last] = value


HOSTILE: dict[str, Callable[[dict[str, Any], dict[str, Any]], None]] = {
    "nan weight": lambda _, arrays: put(arrays, "weights", 5, np.nan),
    "infinite weight": lambda _, arrays: put(arrays, "weights", 5, -np.inf),
    "nan label weight": lambda _, arrays: put(arrays, "label_weights", 0, np.nan),
    "a weight too few": lambda _, arrays: put(arrays, "weights", arrays["weights"][1:]),
    "weights of another shape": lambda _, arrays: put(arrays, "weights", arrays["weights"][None]),
    "a label weight too few": lambda _, arrays: put(arrays, "label_weights", arrays["label_weights"][1:]),
    "no weights": lambda _, arrays: arrays.pop("weights"),
    "no label weights": lambda _, arrays: arrays.pop("label_weights"),
    "bits 0": lambda data, _: put(data, "arcs", 0, "bits", 0),
    "bits -1": lambda data, _: put(data, "arcs", 0, "bits", -1),
    "bits 63": lambda data, _: put(data, "arcs", 0, "bits", 63),
    "bits 1e30": lambda data, _: put(data, "arcs", 0, "bits", 10**30),
    "bits infinite": lambda data, _: put(data, "arcs", 0, "bits", float("inf")),
    "bits nan": lambda data, _: put(data, "arcs", 0, "bits", float("nan")),
    "bits text": lambda data, _: put(data, "arcs", 0, "bits", "many"),
    "bits a list": lambda data, _: put(data, "arcs", 0, "bits", []),
    "other bits": lambda data, _: put(data, "arcs", 0, "bits", data["arcs"][0]["bits"] + 1),
    "no template": lambda data, _: data["arcs"][0].pop("template"),
    "template a number": lambda data, _: put(data, "arcs", 0, "template", 3),
    "template unreadable": lambda data, _: put(data, "arcs", 0, "template", "h.form; rm -rf /"),
    "template looks too far": lambda data, _: put(data, "arcs", 0, "template", "h+9.form | -"),
    "two templates in one": lambda data, _: put(data, "arcs", 0, "template", "h.form | - dir"),
    "no arcs": lambda data, _: put(data, "arcs", None),
    "empty arcs": lambda data, _: put(data, "arcs", []),
    "arcs a number": lambda data, _: put(data, "arcs", 7),
    "blocks numbers": lambda data, _: put(data, "arcs", [1, 2]),
    "no fields": lambda data, _: data["coder"].pop("fields"),
    "no coder": lambda data, _: data.pop("coder"),
    "a field missing": lambda data, _: data["coder"]["fields"].pop("form"),
    "a field too many": lambda data, _: put(data, "coder", "fields", "extra", []),
    "fields a list": lambda data, _: put(data, "coder", "fields", list(data["coder"]["fields"])),
    "values numbers": lambda data, _: put(data, "coder", "fields", "form", [1, 2]),
    "values a number": lambda data, _: put(data, "coder", "fields", "form", 1),
    "feats null": lambda data, _: put(data, "coder", "feats", None),
    "labels null": lambda data, _: put(data, "labeller", "labels", None),
    "labels empty": lambda data, _: put(data, "labeller", "labels", []),
    "about a number": lambda data, _: put(data, "about", 3),
    "about missing": lambda data, _: data.pop("about"),
    "projective missing": lambda data, _: data.pop("projective"),
    "single_root missing": lambda data, _: data.pop("single_root"),
    "joint missing": lambda data, _: data.pop("joint"),
    "clusters missing": lambda data, _: data.pop("clusters"),
    "tagger missing": lambda data, _: data.pop("tagger"),
    "segmenter missing": lambda data, _: data.pop("segmenter"),
    "labeller missing": lambda data, _: data.pop("labeller"),
    "labeller null": lambda data, _: put(data, "labeller", None),
    "labeller a list": lambda data, _: put(data, "labeller", [1]),
    "no templates around": lambda data, _: data["labeller"].pop("tree"),
}


@pytest.mark.parametrize("name", list(HOSTILE))
def test_hostile_models(tmp_path: Path, name: str) -> None:
    path = tmp_path / "hostile.headway"
    save_archive(tampered(HOSTILE[name]), path)
    with pytest.raises(ArchiveError) as caught:
        Parser.load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message


def test_joint_features_need_labels(tmp_path: Path) -> None:
    def change(data: dict[str, Any], arrays: dict[str, Any]) -> None:
        data["joint"]["labels"] = []
        arrays["weights"] = arrays["weights"][: trained("joint").scorer.scorer.arcs.size]

    save_archive(tampered(change, "joint"), tmp_path / "a")
    with pytest.raises(ArchiveError, match="no labels"):
        Parser.load(tmp_path / "a")


def test_files_that_are_no_model(tmp_path: Path) -> None:
    save_archive(Archive("checkpoint", {}, {}), tmp_path / "checkpoint")
    with pytest.raises(ArchiveError, match="holds a 'checkpoint', which is no kind of model known here"):
        Parser.load(tmp_path / "checkpoint")
    (tmp_path / "text").write_text("hello")
    for name in ("text", "absent", "."):
        with pytest.raises(ArchiveError):
            Parser.load(tmp_path / name)


def test_damaged_models_are_refused_or_whole(tmp_path: Path) -> None:
    """Truncated at every 97th byte of a stretch, and with bytes flipped all over."""
    path, whole = tmp_path / "damaged", tmp_path / "whole"
    model = trained("none")
    Parser(model).save(whole)
    content = whole.read_bytes()
    for size in range(0, len(content), max(97, len(content) // 9700 * 97)):
        path.write_bytes(content[:size])
        with pytest.raises(ArchiveError):
            Parser.load(path)
    saved = Parser.load(whole).model
    for position in [*range(0, len(content), len(content) // 100), *range(len(content) - 250, len(content))]:
        damaged = bytearray(content)
        damaged[position] ^= 0x41
        path.write_bytes(damaged)
        try:
            found = Parser.load(path).model
        except ArchiveError:
            continue
        assert found.coder == saved.coder
        np.testing.assert_array_equal(weights_of(found), weights_of(saved))
