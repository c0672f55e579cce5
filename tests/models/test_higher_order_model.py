"""Higher-order parsers: trained on a toy language, predicting against enumeration, saved, and damaged."""

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
from headway.errors import ArchiveError, TemplateError, TrainingError
from headway.inference.brute_force import all_trees
from headway.inference.dual_decomposition import Decoded, Status
from headway.inference.heads import is_in_class
from headway.inference.tree_distribution import TreeDistribution
from headway.learning.monitor import Progress
from headway.models.dual_decoder import decode_all
from headway.models.higher_order_model import HigherOrderModel
from headway.parallel import SERIAL
from headway.pipeline import Parser
from headway.text.saved import with_text_members
from headway.training.part_problem import PartInstance
from headway.treebank import Sentence

from .model_parts import (
    assert_same_predictions,
    label_names_of,
    label_weights_of,
    predict,
    weights_of,
    with_weights,
)
from .toy_treebank import LABELS, sentences

Floats = NDArray[np.float64]
MODELS = ("sibling", "grandsibling")
every_model = pytest.mark.parametrize("model", MODELS)
CLASSES = [TreeClass(projective, single) for projective in (False, True) for single in (False, True)]
every_class = pytest.mark.parametrize("trees", CLASSES, ids=str)


@cache
def trained(model: str, decoding: str = "automata", labels: str = "after", learner: str = "margin") -> HigherOrderModel:
    choices = {"model": model, "decoding": decoding, "labels": labels, "learner": learner, "tags": "gold"}
    parser = Parser.train(sentences(30, 1, crossing=True), epochs=4, **choices)
    assert isinstance(parser.model, HigherOrderModel)
    return parser.model


def random_model(model: str, seed: int, trees: TreeClass | None = None) -> HigherOrderModel:
    """The features of a trained model, under weights that make every tree likely, with four heads per word."""
    found, rng = trained(model), np.random.default_rng(seed)
    pruner = found.scorer.pruner
    arcs = replace(pruner.scorer, weights=0.1 * pruner.scorer.weights)
    flat = replace(found.scorer, pruner=replace(pruner, scorer=arcs, threshold=1e-9, max_heads=4))
    weights = rng.normal(0.0, 0.3, len(weights_of(found)))
    result: HigherOrderModel = with_weights(replace(found, scorer=flat), weights)
    return result.with_trees(trees or TreeClass())


def right_heads(model: HigherOrderModel, gold: list[Sentence]) -> float:
    right = total = 0
    for sentence, found in zip(gold, predict(model, gold), strict=True):
        assert sentence.heads is not None
        right += int((found.heads[1:] == sentence.heads[1:]).sum())
        total += len(sentence)
    return 100 * right / total


# Training


@every_model
@pytest.mark.parametrize("decoding", ["automata", "dual"])
@pytest.mark.parametrize("learner", ["perceptron", "margin"])
def test_it_learns_the_toy_language(model: str, decoding: str, learner: str) -> None:
    """Crossing arcs too: the training sentences by heart, new ones as well."""
    found = trained(model, decoding, "none" if learner == "perceptron" else "after", learner)
    assert right_heads(found, sentences(30, 1, crossing=True)) == 100.0
    assert right_heads(found, sentences(30, 5, crossing=True)) > 97.0
    assert right_heads(with_weights(found, np.zeros_like(weights_of(found))), sentences(10, 5)) < 80.0


@every_class
def test_it_learns_every_class(trees: TreeClass) -> None:
    text = sentences(30, 6, crossing=True, two_roots=not trees.single_root)
    new = sentences(20, 7, crossing=not trees.projective, two_roots=not trees.single_root)
    for decoding in ("automata", "dual"):
        options = {"model": "sibling", "decoding": decoding, "labels": "none", "tags": "gold", "epochs": 4}
        parser = Parser.train(text, **options, **trees._asdict())
        assert isinstance(parser.model, HigherOrderModel)
        assert parser.model.trees == parser.model.scorer.pruner.trees == trees
        assert right_heads(parser.model, new) > 95.0
        assert all(is_in_class(parsed.heads, trees) for parsed in parser.parse(new))


@every_model
def test_labels_come_after_the_tree(model: str) -> None:
    found, gold = trained(model), sentences(20, 8, crossing=True)
    assert label_names_of(found) == LABELS
    for sentence, predicted in zip(gold, predict(found, gold), strict=True):
        assert predicted.labels is not None
        assert predicted.labels[0] is None
        assert len(predicted.labels) == len(sentence) + 1
        assert sum(a == b for a, b in zip(predicted.labels, sentence.labels or (), strict=True)) >= len(sentence)
    unlabelled = trained(model, "automata", "none", "perceptron")
    assert unlabelled.labeller is None
    assert {predicted.labels for predicted in predict(unlabelled, gold)} == {None}


@every_model
def test_development_data_choose_the_pass_and_measure_the_pruning(model: str) -> None:
    shown: list[Progress] = []
    train, dev = sentences(16, 9), sentences(12, 10, crossing=True)
    settings: dict[str, Any] = {"model": model, "labels": "none", "tags": "gold", "epochs": 3}
    with_dev = Parser.train(train, dev, show=shown.append, **settings).model.about
    assert {progress.stage for progress in shown} == {"pruner", "tree"}
    assert all(0.0 <= entry["dev"] <= 100.0 for entry in with_dev["history"])
    assert with_dev["scale"] == 1.0
    assert with_dev["settings"]["model"] == with_dev["settings"]["parts"] == model
    without = Parser.train(train, **settings).model.about
    for about, measured_on in ((with_dev, "development"), (without, "training")):
        assert about["pruning"]["measured_on"] == measured_on
        assert 50.0 < about["pruning"]["recall"] <= 100.0
        assert 1.0 <= about["pruning"]["heads_per_word"] <= 10.0


@every_model
def test_an_interrupted_training_goes_on(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.learning.monitor.CHECKPOINT_SECONDS", -1.0)
    settings: dict[str, Any] = {"model": model, "labels": "none", "tags": "gold", "epochs": 3}
    text, file = sentences(12, 11, crossing=True), tmp_path / "checkpoint"

    def interrupt(progress: Progress) -> None:
        if progress.stage == "tree" and progress.number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Parser.train(text, checkpoint=file, show=interrupt, **settings)
    resumed, whole = Parser.train(text, checkpoint=file, **settings), Parser.train(text, **settings)
    np.testing.assert_array_equal(weights_of(resumed.model), weights_of(whole.model))
    assert resumed.model.about == whole.model.about
    with pytest.raises(ArchiveError, match="other data or settings"):
        Parser.train(text, checkpoint=file, **{**settings, "decoding": "dual"})


@pytest.mark.parametrize(
    ("settings", "error", "cause"),
    [
        ({"learner": "loglinear"}, TrainingError, "the sibling model has no marginals for loglinear"),
        ({"learner": "eg"}, TrainingError, "the sibling model has no marginals for eg"),
        ({"labels": "joint"}, TrainingError, "the sibling model chooses labels after the tree"),
        ({"decoding": "greedy"}, TrainingError, "decoding is 'greedy'; expected any of automata, dual"),
        ({"prune_threshold": 0.0}, TrainingError, "prune_threshold is 0.0"),
        ({"max_heads": 0}, TrainingError, "max_heads is 0"),
        ({"parts": "grandsibling"}, TemplateError, "grandsibling: not a table of templates for the sibling model"),
        ({"parts": "standard"}, TemplateError, "not a template of parts"),
        ({"parts": "no-such-table"}, TemplateError, "no-such-table"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], error: type[Exception], cause: str) -> None:
    with pytest.raises(error, match=cause):
        Parser.train(sentences(4, 12), **{"model": "sibling", "tags": "gold", "epochs": 1, **settings})


# Predictions


@every_model
@every_class
def test_predictions_are_the_best_of_every_tree(model: str, trees: TreeClass) -> None:
    """Of those whose arcs the pruner kept; probabilities are the pruner's."""
    found = random_model(model, 2, trees)
    text = [Sentence.from_words(s.forms[:4], upos=s.upos[:4], xpos=s.xpos[:4]) for s in sentences(12, 13)]
    text[3] = Sentence.from_words(text[3].forms[:1], upos=text[3].upos[:1])
    coded = found.coder.code(text)
    several = 0
    for i, prediction in enumerate(predict(found, text)):
        batch, n = coded.some(np.array([i])), len(text[i])
        kept, arcs, *_ = found.scorer.pruner.prune(batch)
        alone = TreeDistribution(arcs[0], *trees)
        np.testing.assert_allclose(prediction.distribution.marginals, alone.marginals, rtol=1e-12, atol=1e-12)
        log_prob = prediction.distribution.log_prob(prediction.heads)
        assert log_prob == pytest.approx(alone.log_prob(prediction.heads), abs=1e-9)
        scorer = found.scorer.parts.scorer
        listed = scorer.batch(batch, list(kept))
        scores = scorer.scores(weights_of(found), listed)
        totals = {
            tuple(heads.tolist()): float(scores @ PartInstance(scorer, listed, heads, "dual", trees).gold())
            for heads in all_trees(n, **trees._asdict())
            if kept[0][heads[1:], np.arange(1, n + 1)].all()
        }
        several += len(totals) > 5
        assert tuple(prediction.heads.tolist()) == max(totals, key=lambda heads: totals[heads])
        assert prediction.status in (Status.CERTIFIED, Status.EXACT)
        assert prediction.gap == 0.0
    assert several > 5


def few_steps(model: HigherOrderModel, text: list[Sentence]) -> list[Decoded]:
    """Stopped after two iterations."""
    scores = model.scorer.scores(model.coder.code(text), SERIAL)
    return decode_all(scores.parts, SERIAL, **model.trees._asdict(), exact=False, iterations=2)


@every_model
def test_few_steps_prove_less(model: str) -> None:
    found, text = random_model(model, 3), sentences(8, 14, crossing=True)
    exact = predict(found, text)
    assert {p.status for p in exact} <= {Status.CERTIFIED, Status.EXACT}
    early = few_steps(found, text)
    assert Status.ITERATION_LIMIT in {p.status for p in early}
    for sure, quick in zip(exact, early, strict=True):
        assert quick.status in (Status.CERTIFIED, Status.ITERATION_LIMIT)
        assert (quick.gap > 0.0) == (quick.status is Status.ITERATION_LIMIT)
        if quick.status is Status.CERTIFIED:
            np.testing.assert_array_equal(quick.heads, sure.heads)
    parsed = list(Parser(found).parse(text, exact=False))
    for one, predicted in zip(parsed, predict(found, text, exact=False), strict=True):
        assert (one.status, one.gap) == (predicted.status, predicted.gap)
        np.testing.assert_array_equal(one.heads, predicted.heads)
        assert one.marginals[:, 1:].sum(axis=0) == pytest.approx(1.0)


@every_model
def test_order_batches_and_threads(model: str) -> None:
    found, text = random_model(model, 4), sentences(10, 15, crossing=True)
    alone = [predict(found, [sentence])[0] for sentence in text]
    for cells, threads in ((60_000, 1), (1, 1), (400, 1), (60_000, 2)):
        other = replace(found, decoder=replace(found.decoder, cells=cells))
        assert_same_predictions(predict(other, text, threads=threads), alone)


@every_model
def test_nothing_and_little_to_parse(model: str) -> None:
    found = trained(model)
    assert predict(found, []) == []
    empty, one = predict(found, [Sentence.from_words([]), Sentence.from_words(["new"])])
    assert (empty.heads.tolist(), empty.labels) == ([-1], (None,))
    assert one.heads.tolist() == [-1, 0]


@every_model
def test_there_are_no_marginals_for_mbr(model: str) -> None:
    with pytest.raises(TrainingError, match="MBR needs arc marginals"):
        list(Parser(trained(model)).parse(sentences(2, 16), mbr=True))


# The saved form


@every_model
@pytest.mark.parametrize("labels", ["after", "none"])
def test_saved_and_loaded(tmp_path: Path, model: str, labels: str) -> None:
    """The same trees and labels; weights to single precision, everything else exactly."""
    found = trained(model, "automata", labels, "margin" if labels == "after" else "perceptron")
    path = tmp_path / "toy.headway"
    Parser(found).save(path)
    again = Parser.load(path).model
    assert isinstance(again, HigherOrderModel)
    assert again.coder == found.coder
    parts, others = again.scorer.parts.scorer, found.scorer.parts.scorer
    assert parts.arcs.blocks == others.arcs.blocks
    assert {name: f.blocks for name, f in parts.others.items()} == {name: f.blocks for name, f in others.others.items()}
    pruner, other_pruner = again.scorer.pruner, found.scorer.pruner
    assert pruner.scorer.scorer.arcs.blocks == other_pruner.scorer.scorer.arcs.blocks
    assert (pruner.threshold, pruner.max_heads) == (other_pruner.threshold, other_pruner.max_heads)
    assert label_names_of(again) == label_names_of(found)
    assert again.about == json.loads(json.dumps(found.about))
    for ours, theirs in (
        (weights_of(again), weights_of(found)),
        (pruner.scorer.weights, other_pruner.scorer.weights),
        (label_weights_of(again), label_weights_of(found)),
    ):
        assert ours.dtype == np.float32 or not ours.size
        np.testing.assert_array_equal(ours, theirs.astype(np.float32))
    text = sentences(30, 17, crossing=True)
    for one, other in zip(predict(again, text), predict(found, text), strict=True):
        np.testing.assert_array_equal(one.heads, other.heads)
        np.testing.assert_allclose(one.distribution.marginals, other.distribution.marginals, rtol=1e-4, atol=1e-4)
        assert one.labels == other.labels
    Parser(again).save(tmp_path / "twice.headway")
    first, twice = (load_archive(file, HigherOrderModel.kind) for file in (path, tmp_path / "twice.headway"))
    assert twice.data == first.data
    assert twice.arrays.keys() == first.arrays.keys()
    assert all(np.array_equal(twice.arrays[name], array) for name, array in first.arrays.items())
    assert_same_predictions(predict(Parser.load(tmp_path / "twice.headway").model, text), predict(again, text))


@every_class
def test_the_tree_class_is_saved(tmp_path: Path, trees: TreeClass) -> None:
    Parser(trained("sibling").with_trees(trees)).save(tmp_path / "a")
    again = Parser.load(tmp_path / "a").model
    assert isinstance(again, HigherOrderModel)
    assert again.trees == again.decoder.trees == again.scorer.pruner.trees == trees


def put(data: Any, *path: Any) -> None:
    """put(data, key, .., value): the value at the end of the path."""
    *keys, last, value = path
    for key in keys:
        data = data[key]
    data[last] = value


HOSTILE: dict[str, Callable[[dict[str, Any], dict[str, Any]], None]] = {
    "calibration missing": lambda data, _: data.pop("calibration"),
    "calibration of one number": lambda data, _: put(data, "calibration", [0.5]),
    "calibration of four numbers": lambda data, _: put(data, "calibration", [0.5, 1.0, 1.0, 1.0]),
    "calibration that falls": lambda data, _: put(data, "calibration", [0.5, -1.0, 1.0]),
    "calibration nan": lambda data, _: put(data, "calibration", [float("nan"), 1.0, 1.0]),
    "older calibration beyond one": lambda data, _: put(data, "calibration", [1.5, 1.0]),
    "older calibration nan": lambda data, _: put(data, "calibration", [0.5, float("nan")]),
    "clusters missing": lambda data, _: data.pop("clusters"),
    "no coder": lambda data, _: data.pop("coder"),
    "a coder without fields": lambda data, _: data["coder"].pop("fields"),
    "no pruner": lambda data, _: data.pop("pruner"),
    "pruner null": lambda data, _: put(data, "pruner", None),
    "pruner without arcs": lambda data, _: data["pruner"].pop("arcs"),
    "threshold 0": lambda data, _: put(data, "pruner", "threshold", 0.0),
    "threshold nan": lambda data, _: put(data, "pruner", "threshold", float("nan")),
    "threshold 2": lambda data, _: put(data, "pruner", "threshold", 2.0),
    "threshold text": lambda data, _: put(data, "pruner", "threshold", "low"),
    "no heads": lambda data, _: put(data, "pruner", "max_heads", 0),
    "heads infinite": lambda data, _: put(data, "pruner", "max_heads", float("inf")),
    "no parts": lambda data, _: data.pop("parts"),
    "parts null": lambda data, _: put(data, "parts", None),
    "parts empty": lambda data, _: put(data, "parts", {}),
    "parts without siblings": lambda data, _: data["parts"].pop("siblings"),
    "parts without grandparents": lambda data, _: data["parts"].pop("grandparents"),
    "no siblings' templates": lambda data, _: put(data, "parts", "siblings", []),
    "sibling bits 0": lambda data, _: put(data, "parts", "siblings", 0, "bits", 0),
    "sibling bits 63": lambda data, _: put(data, "parts", "siblings", 0, "bits", 63),
    "other sibling bits": lambda data, _: put(
        data, "parts", "siblings", 0, "bits", data["parts"]["siblings"][0]["bits"] + 1
    ),
    "a grandparent among siblings": lambda data, _: put(
        data, "parts", "siblings", 0, "template", "g.xpos h.xpos s.xpos m.xpos | dir"
    ),
    "a sibling that is unreadable": lambda data, _: put(data, "parts", "siblings", 0, "template", "; rm -rf /"),
    "a template of too far": lambda data, _: put(data, "parts", "siblings", 0, "template", "s+9.form | -"),
    "arcs of parts": lambda data, _: put(data, "arcs", data["parts"]["siblings"]),
    "no arcs": lambda data, _: put(data, "arcs", []),
    "labeller missing": lambda data, _: data.pop("labeller"),
    "labeller null": lambda data, _: put(data, "labeller", None),
    "labels empty": lambda data, _: put(data, "labeller", "labels", []),
    "labeller of arcs alone": lambda data, _: put(data, "labeller", "tree", None),
    "other bits around": lambda data, _: put(data, "labeller", "tree", 0, "bits", 1),
    "around nothing": lambda data, _: put(data, "labeller", "tree", 0, "template", "q.form | -"),
    "projective missing": lambda data, _: data.pop("projective"),
    "single_root missing": lambda data, _: data.pop("single_root"),
    "about a number": lambda data, _: put(data, "about", 3),
    "nan weight": lambda _, arrays: put(arrays, "weights", 5, np.nan),
    "infinite pruner weight": lambda _, arrays: put(arrays, "pruner_weights", 5, np.inf),
    "nan label weight": lambda _, arrays: put(arrays, "label_weights", 0, np.nan),
    "a weight too few": lambda _, arrays: put(arrays, "weights", arrays["weights"][1:]),
    "a pruner weight too many": lambda _, arrays: put(arrays, "pruner_weights", np.append(arrays["pruner_weights"], 0)),
    "weights of another shape": lambda _, arrays: put(arrays, "weights", arrays["weights"][None]),
    "no weights": lambda _, arrays: arrays.pop("weights"),
    "no pruner weights": lambda _, arrays: arrays.pop("pruner_weights"),
    "no label weights": lambda _, arrays: arrays.pop("label_weights"),
}


@pytest.mark.parametrize("name", list(HOSTILE))
def test_hostile_models(tmp_path: Path, name: str) -> None:
    path, archive = tmp_path / "hostile.headway", with_text_members(trained("grandsibling").to_archive(), None, None)
    data, arrays = json.loads(json.dumps(archive.data)), {k: v.copy() for k, v in archive.arrays.items()}
    HOSTILE[name](data, arrays)
    save_archive(Archive(HigherOrderModel.kind, data, arrays), path)
    with pytest.raises(ArchiveError) as caught:
        Parser.load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message


def test_truncated_models(tmp_path: Path) -> None:
    path, whole = tmp_path / "damaged", tmp_path / "whole"
    Parser(trained("sibling")).save(whole)
    content = whole.read_bytes()
    for size in range(0, len(content), len(content) // 40):
        path.write_bytes(content[:size])
        with pytest.raises(ArchiveError):
            Parser.load(path)
