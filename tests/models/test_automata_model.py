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
from headway.models.automata_model import AutomataModel
from headway.models.higher_order import PartExamples
from numpy.typing import NDArray

from headway.archive import Archive, load_archive, save_archive
from headway.errors import ArchiveError, TemplateError, TrainingError
from headway.inference.brute_force import all_trees
from headway.inference.dual_decomposition import Status
from headway.inference.head_automata import arcs_of_tree
from headway.inference.heads import is_in_class
from headway.models import automata_model
from headway.models.arc_model import Prediction
from headway.models.saved import KIND, with_words
from headway.pipeline import Parser
from headway.training import Progress
from headway.treebank import Sentence

from .toy_treebank import LABELS, sentences

Floats = NDArray[np.float64]
MODELS = ("sibling", "grandsibling")
every_model = pytest.mark.parametrize("model", MODELS)
CLASSES: list[dict[str, bool]] = [
    {"projective": projective, "single_root": single} for projective in (False, True) for single in (False, True)
]


@cache
def trained(model: str, decoding: str = "automata", labels: str = "after", learner: str = "margin") -> AutomataModel:
    choices = {"model": model, "decoding": decoding, "labels": labels, "learner": learner, "tags": "gold"}
    parser = Parser.train(sentences(30, 1, crossing=True), epochs=4, **choices)
    assert isinstance(parser.model, AutomataModel)
    return parser.model


def random_model(model: str, seed: int, **changes: Any) -> AutomataModel:
    """The features of a trained model, under weights that make every tree likely, of four heads a word."""
    found, rng = trained(model), np.random.default_rng(seed)
    trees = {name: changes[name] for name in ("projective", "single_root") if name in changes}
    pruner = replace(found.pruner, threshold=1e-9, max_heads=4, weights=0.1 * found.pruner.weights, **trees)
    weights = rng.normal(0.0, 0.3, len(found.weights))
    return replace(found, pruner=pruner, weights=weights, **changes)


def right_heads(model: AutomataModel, gold: list[Sentence]) -> float:
    right = total = 0
    for sentence, found in zip(gold, model.predict(gold), strict=True):
        assert sentence.heads is not None
        right += int((found.heads[1:] == sentence.heads[1:]).sum())
        total += len(sentence)
    return 100 * right / total


def assert_same(ours: list[Prediction], theirs: list[Prediction]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one.heads, other.heads)
        np.testing.assert_array_equal(one.scores, other.scores)
        assert (one.labels, one.status, one.gap) == (other.labels, other.status, other.gap)


# Training


@every_model
@pytest.mark.parametrize("decoding", ["automata", "dual"])
@pytest.mark.parametrize("learner", ["perceptron", "margin"])
def test_it_learns_the_toy_language(model: str, decoding: str, learner: str) -> None:
    """Crossing arcs too: the training sentences by heart, new ones as well."""
    found = trained(model, decoding, "none" if learner == "perceptron" else "after", learner)
    assert right_heads(found, sentences(30, 1, crossing=True)) == 100.0
    assert right_heads(found, sentences(30, 5, crossing=True)) > 97.0
    assert right_heads(replace(found, weights=np.zeros_like(found.weights)), sentences(10, 5)) < 80.0


@pytest.mark.parametrize("trees", CLASSES)
def test_it_learns_every_class(trees: dict[str, bool]) -> None:
    text = sentences(30, 6, crossing=True, two_roots=not trees["single_root"])
    new = sentences(20, 7, crossing=not trees["projective"], two_roots=not trees["single_root"])
    for decoding in ("automata", "dual"):
        parser = Parser.train(text, model="sibling", decoding=decoding, labels="none", tags="gold", epochs=4, **trees)
        assert isinstance(parser.model, AutomataModel)
        assert (parser.model.projective, parser.model.single_root) == tuple(trees.values())
        assert right_heads(parser.model, new) > 95.0
        assert all(is_in_class(parsed.heads, **trees) for parsed in parser.parse(new))


@every_model
def test_labels_come_after_the_tree(model: str) -> None:
    found, gold = trained(model), sentences(20, 8, crossing=True)
    assert found.label_names == LABELS
    for sentence, predicted in zip(gold, found.predict(gold), strict=True):
        assert predicted.labels is not None
        assert predicted.labels[0] is None
        assert len(predicted.labels) == len(sentence) + 1
        assert sum(a == b for a, b in zip(predicted.labels, sentence.labels or (), strict=True)) >= len(sentence)
    unlabelled = trained(model, "automata", "none", "perceptron")
    assert unlabelled.label_names == ()
    assert {predicted.labels for predicted in unlabelled.predict(gold)} == {None}


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
    np.testing.assert_array_equal(resumed.model.weights, whole.model.weights)
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
        ({"threshold": 0.0}, TrainingError, "the pruning threshold is 0.0"),
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
@pytest.mark.parametrize("trees", CLASSES)
def test_predictions_are_the_best_of_every_tree(model: str, trees: dict[str, bool]) -> None:
    """Of those whose arcs the pruner kept; the arc scores are the pruner's."""
    found = random_model(model, 2, **trees)
    text = [Sentence.from_words(s.forms[:4], upos=s.upos[:4], xpos=s.xpos[:4]) for s in sentences(12, 13)]
    text[3] = Sentence.from_words(text[3].forms[:1], upos=text[3].upos[:1])
    coded = found.coder.code(text)
    several = 0
    for i, prediction in enumerate(found.predict(text)):
        which, n = np.array([i]), len(text[i])
        kept, arcs = found.pruner.prune(coded, which)
        np.testing.assert_allclose(prediction.scores, arcs[0], rtol=1e-12, atol=1e-12)
        examples = PartExamples(found.scorer, coded, np.full((len(text), 5), -1), {i: kept[0]})  # type: ignore[arg-type]
        scores, these = examples.score(found.weights, which), examples.listing(i).candidates[0]
        totals = {
            tuple(heads.tolist()): float(scores @ examples.count(these, *arcs_of_tree(these, heads)))
            for heads in all_trees(n, **trees)
            if kept[0][heads[1:], np.arange(1, n + 1)].all()
        }
        several += len(totals) > 5
        assert tuple(prediction.heads.tolist()) == max(totals, key=lambda heads: totals[heads])
        assert prediction.status in (Status.CERTIFIED, Status.EXACT)
        assert prediction.gap == 0.0
    assert several > 5


@every_model
def test_few_steps_prove_less(model: str) -> None:
    found, text = random_model(model, 3), sentences(8, 14, crossing=True)
    exact = found.predict(text)
    assert {p.status for p in exact} <= {Status.CERTIFIED, Status.EXACT}
    early = found.predict(text, exact=False, iterations=2)
    assert Status.ITERATION_LIMIT in {p.status for p in early}
    for sure, quick in zip(exact, early, strict=True):
        assert quick.status in (Status.CERTIFIED, Status.ITERATION_LIMIT)
        assert (quick.gap > 0.0) == (quick.status is Status.ITERATION_LIMIT)
        if quick.status is Status.CERTIFIED:
            np.testing.assert_array_equal(quick.heads, sure.heads)
    parsed = list(Parser(found).parse(text, exact=False))
    for one, predicted in zip(parsed, found.predict(text, exact=False), strict=True):
        assert (one.status, one.gap) == (predicted.status, predicted.gap)
        np.testing.assert_array_equal(one.heads, predicted.heads)
        assert one.marginals[:, 1:].sum(axis=0) == pytest.approx(1.0)


@every_model
def test_order_batches_and_threads(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, text = random_model(model, 4), sentences(10, 15, crossing=True)
    alone = [found.predict([sentence])[0] for sentence in text]
    for cells, threads in ((60_000, 1), (1, 1), (400, 1), (60_000, 2)):
        monkeypatch.setattr(automata_model, "BATCH_CELLS", cells)
        assert_same(found.predict(text, threads=threads), alone)


@every_model
def test_nothing_and_little_to_parse(model: str) -> None:
    found = trained(model)
    assert found.predict([]) == []
    empty, one = found.predict([Sentence.from_words([]), Sentence.from_words(["new"])])
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
    assert isinstance(again, AutomataModel)
    assert again.coder == found.coder
    assert again.scorer.arcs.blocks == found.scorer.arcs.blocks
    assert {name: f.blocks for name, f in again.scorer.others.items()} == {
        name: f.blocks for name, f in found.scorer.others.items()
    }
    assert again.pruner.scorer.arcs.blocks == found.pruner.scorer.arcs.blocks
    assert (again.pruner.threshold, again.pruner.max_heads) == (found.pruner.threshold, found.pruner.max_heads)
    assert again.label_names == found.label_names
    assert again.about == json.loads(json.dumps(found.about))
    for ours, theirs in (
        (again.weights, found.weights),
        (again.pruner.weights, found.pruner.weights),
        (again.label_weights, found.label_weights),
    ):
        assert ours.dtype == np.float32
        np.testing.assert_array_equal(ours, theirs.astype(np.float32))
    text = sentences(30, 17, crossing=True)
    for one, other in zip(again.predict(text), found.predict(text), strict=True):
        np.testing.assert_array_equal(one.heads, other.heads)
        np.testing.assert_allclose(one.scores, other.scores, rtol=1e-5, atol=1e-5)
        assert one.labels == other.labels
    Parser(again).save(tmp_path / "twice.headway")
    first, twice = load_archive(path, KIND), load_archive(tmp_path / "twice.headway", KIND)
    assert twice.data == first.data
    assert twice.arrays.keys() == first.arrays.keys()
    assert all(np.array_equal(twice.arrays[name], array) for name, array in first.arrays.items())
    assert_same(Parser.load(tmp_path / "twice.headway").model.predict(text), again.predict(text))


@pytest.mark.parametrize("trees", CLASSES)
def test_the_tree_class_is_saved(tmp_path: Path, trees: dict[str, bool]) -> None:
    found = trained("sibling")
    Parser(replace(found, pruner=replace(found.pruner, **trees), **trees)).save(tmp_path / "a")
    again = Parser.load(tmp_path / "a").model
    assert isinstance(again, AutomataModel)
    for each in (again, again.pruner):
        assert {"projective": each.projective, "single_root": each.single_root} == trees


def put(data: Any, *path: Any) -> None:
    """put(data, key, .., value): the value at the end of the path."""
    *keys, last, value = path
    for key in keys:
        data = data[key]
    data[last] = value


HOSTILE: dict[str, Callable[[dict[str, Any], dict[str, Any]], None]] = {
    "model missing": lambda data, _: data.pop("model"),
    "model an arc model": lambda data, _: put(data, "model", "arc"),
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
    path, archive = tmp_path / "hostile.headway", with_words(trained("grandsibling").to_archive(), None, None)
    data, arrays = json.loads(json.dumps(archive.data)), {k: v.copy() for k, v in archive.arrays.items()}
    HOSTILE[name](data, arrays)
    save_archive(Archive(KIND, data, arrays), path)
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
