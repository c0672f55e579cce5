"""One table of models, and what every kind of them must do: predict, describe itself, be saved, refuse damage."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headway
from headway.archive import Archive, load_archive, save_archive
from headway.arrays import Floats
from headway.coreference.resolver import Resolver
from headway.errors import ArchiveError
from headway.features.arc_features import ArcFeatures
from headway.inference.brute_force import all_trees
from headway.inference.heads import is_in_class
from headway.models.protocol import Options, Prediction
from headway.models.registry import kinds, model_class, open_archive, read_model
from headway.parallel import SERIAL, Executor, Threads
from headway.pipeline import Parser
from headway.text.saved import with_text_members
from headway.treebank import Sentence

from ..coreference.toy_documents import head_match_documents
from .model_parts import assert_same_predictions
from .toy_treebank import sentences

GOLD: dict[str, Any] = {"tags": "gold", "epochs": 2}


def trained(**settings: Any) -> Any:
    return Parser.train(sentences(16, 1, crossing=True), sentences(6, 2), **GOLD, **settings).model


def induced(**settings: Any) -> Any:
    return Parser.induce(sentences(16, 1), states=2, **settings).model


def resolving() -> Any:
    return Resolver.train(head_match_documents(1, 3), epochs=1).model


PARSERS: dict[str, Callable[[], Any]] = {
    "arc, labels after": lambda: trained(labels="after"),
    "arc, labels joint": lambda: trained(labels="joint", learner="perceptron"),
    "arc, no labels": lambda: trained(labels="none", projective=True),
    "sibling": lambda: trained(model="sibling"),
    "grandsibling": lambda: trained(model="grandsibling", labels="none"),
    "grammar": lambda: induced(),
    "grammar of words": lambda: induced(lexical="LEX+F", labels="none"),
}
MODELS = {**PARSERS, "coreference": resolving}
every_model = pytest.mark.parametrize("name", MODELS)
every_parser = pytest.mark.parametrize("name", PARSERS)


@cache
def model(name: str) -> Any:
    return MODELS[name]()


@cache
def inputs(name: str) -> Sequence[Any]:
    """What it predicts for: several lengths, in no order."""
    if name == "coreference":
        return head_match_documents(2, 4)
    long, short, other = sentences(3, 3)
    words = [Sentence.from_words([]), long, Sentence.from_words(["new"], upos=["N"], xpos=["N"]), short, long, other]
    return words if model(name).trees.projective else [*words, *sentences(2, 4, crossing=True)]


def predict(found: Any, given: Sequence[Any], executor: Executor = SERIAL) -> list[Any]:
    predictions: list[Any] = found.predict(given, Options(), executor)
    return predictions


def archive_of(found: Any) -> Archive:
    """What its file holds; beside a parser's model, that there is nothing to split and tag text."""
    archive: Archive = found.to_archive()
    return with_text_members(archive, None, None) if found.task == "parsing" else archive


def load(path: Path, task: str) -> Any:
    return Parser.load(path).model if task == "parsing" else Resolver.load(path).model


@cache
def saved(name: str, folder: Path) -> Path:
    path = folder / f"{name}.headway"
    save_archive(archive_of(model(name)), path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


# Predictions


def assert_same(ours: Sequence[Any], theirs: Sequence[Any], **tolerance: float) -> None:
    if ours and isinstance(ours[0], Prediction):
        assert_same_predictions(ours, theirs, **tolerance)
        return
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


@every_model
def test_it_predicts_in_order_and_in_any_company(name: str) -> None:
    given = inputs(name)
    together = predict(model(name), given)
    assert len(together) == len(given)
    assert_same([predict(model(name), [each])[0] for each in given], together)
    order = np.random.default_rng(0).permutation(len(given)).tolist()
    assert_same(predict(model(name), [given[i] for i in order]), [together[i] for i in order])
    assert predict(model(name), []) == []


@every_model
def test_threads_change_nothing(name: str) -> None:
    assert_same(predict(model(name), inputs(name), Threads(3)), predict(model(name), inputs(name)))


def with_random_labels(name: str, **roots: Any) -> Any:
    """The parser with random weights in place of those that choose labels; `roots` is what its file says of them."""
    archive = archive_of(model(name))
    part = "joint" if archive.data.get("joint") else "labeller"
    said = {**archive.data[part], **roots}
    if said["roots"] is None:
        del said["roots"]
    rng, which = np.random.default_rng(5), "weights" if part == "joint" else "label_weights"
    drawn = rng.normal(size=archive.arrays[which].shape).astype(np.float32)
    return read_model(Archive(archive.kind, {**archive.data, part: said}, {**archive.arrays, which: drawn}), "x")


def misplaced(predictions: Sequence[Prediction]) -> int:
    """How many words have the label of the root without its head, or the other way round."""
    return sum(
        (label == "root") != (head == 0)
        for one in predictions
        for head, label in zip(one.heads[1:].tolist(), (one.labels or ())[1:], strict=True)
    )


@pytest.mark.parametrize("name", ["arc, labels after", "arc, labels joint", "sibling", "grammar"])
def test_the_label_of_the_root_stands_on_its_children_and_nowhere_else(name: str) -> None:
    found = predict(with_random_labels(name), inputs(name))
    assert misplaced(found) == 0
    assert len({label for one in found for label in one.labels[1:]}) > 2
    assert misplaced(predict(with_random_labels(name, roots=[]), inputs(name))) > 0
    assert_same(predict(with_random_labels(name, roots=None), inputs(name)), found)  # a file of an older version


def test_joint_labels_that_do_not_fit_are_impossible() -> None:
    found = with_random_labels("arc, labels joint")
    sentence = Sentence.from_words(["the", "stone", "moves"], upos=["D", "N", "V"], xpos=["D", "N", "V"])
    scorer = found.scorer.scorer
    (scores,) = found.scorer.scores(found.coder.code([sentence]), SERIAL)
    root = scorer.labels.index("root")
    weights: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
    for heads in all_trees(3, projective=False, single_root=True):
        choices = [[root] if h == 0 else [k for k in range(len(scorer.labels)) if k != root] for h in heads[1:]]
        for labels in product(*choices):
            weights[tuple(heads.tolist()), labels] = sum(scores[heads[m], m, labels[m - 1]] for m in (1, 2, 3))
    (one,) = predict(found, [sentence])
    best = max(weights, key=weights.__getitem__)
    assert (tuple(one.heads.tolist()), one.labels[1:]) == (best[0], tuple(scorer.labels[k] for k in best[1]))
    total = np.logaddexp.reduce(list(weights.values()))
    marginals = np.zeros((4, 4))
    for (heads, _), weight in weights.items():
        marginals[list(heads[1:]), [1, 2, 3]] += np.exp(weight - total)
    np.testing.assert_allclose(one.distribution.marginals, marginals, rtol=1e-10, atol=1e-14)


@every_parser
def test_predictions_meet_the_contract_of_distributions(name: str) -> None:
    found = model(name)
    for sentence, one in zip(inputs(name), predict(found, inputs(name)), strict=True):
        n, distribution = len(sentence), one.distribution
        assert one.heads.shape == (n + 1,)
        assert one.heads[0] == -1
        assert one.labels is None or (one.labels[0], len(one.labels)) == (None, n + 1)
        assert is_in_class(one.heads, found.trees)
        mu = distribution.marginals
        assert mu.shape == (n + 1, n + 1)
        assert mu.min() >= 0
        np.testing.assert_allclose(mu[:, 1:].sum(axis=0), 1.0, rtol=1e-9)
        assert not mu[:, 0].any()
        assert not np.diag(mu).any()
        assert is_in_class(distribution.argmax(), found.trees)
        assert distribution.log_prob(one.heads) <= 1e-9
        if n:
            assert distribution.log_prob([-1, *[1] * n]) == -np.inf  # no tree


@every_parser
def test_probabilities_of_all_trees_are_those_of_a_distribution(name: str) -> None:
    """They sum to one; a grammar from few trees is only near to that."""
    found, sentence = model(name), sentences(1, 5)[0]
    short = Sentence.from_words(sentence.forms[:4], upos=sentence.upos[:4], xpos=sentence.xpos[:4])
    [one] = predict(found, [short])
    trees = all_trees(4, **found.trees._asdict())
    probabilities = np.exp([one.distribution.log_prob(heads) for heads in trees])
    assert probabilities.sum() == pytest.approx(1.0, abs=0.05 if found.kind == "grammar" else 1e-9)


# Files


@every_model
def test_saved_and_loaded_it_is_the_same(name: str, folder: Path) -> None:
    """The weights of features are saved in single precision, which moves probabilities a little."""
    found, again = model(name), load(saved(name, folder), model(name).task)
    assert type(again) is type(found) is model_class(found.kind)
    assert_same(predict(again, inputs(name)), predict(found, inputs(name)), rtol=1e-3, atol=1e-4)
    assert again.describe() == found.describe()
    assert again.requires == found.requires
    assert again.about == json.loads(json.dumps(dict(found.about)))
    twice = folder / f"{name}.twice"
    save_archive(archive_of(again), twice)
    assert_same(predict(load(twice, found.task), inputs(name)), predict(again, inputs(name)))
    first, second = load_archive(folder / f"{name}.headway"), load_archive(twice)
    assert (first.kind, first.data) == (second.kind, second.data)
    assert first.arrays.keys() == second.arrays.keys()
    assert all(np.array_equal(array, second.arrays[each]) for each, array in first.arrays.items())


@every_model
def test_it_describes_itself(name: str) -> None:
    found = model(name).describe()
    assert found.rows
    assert found.rows[0][0] == "model"
    assert all(isinstance(key, str) and isinstance(value, str) for key, value in found.rows)
    assert all(isinstance(cell, str) for table in found.tables for row in table.rows for cell in row)
    assert json.loads(json.dumps(found.data))["about"] == json.loads(json.dumps(dict(model(name).about)))
    assert found.data["model"] == found.rows[0][1]
    assert all(isinstance(template, str) for lines in found.templates.values() for template in lines)


@every_model
def test_the_kinds_are_registered(name: str) -> None:
    assert model(name).kind in kinds()
    assert model_class(model(name).kind) is type(model(name))


# Damage


def refused(archive: Archive, path: Path, task: str) -> str:
    save_archive(archive, path)
    with pytest.raises(ArchiveError) as caught:
        load(path, task)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def fields(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all fields that a model needs, into the first entry of every list."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield (*path, key)
            if key not in ("about", "clusters"):  # which may hold anything
                yield from fields(value, (*path, key))
    elif isinstance(data, list) and data:
        yield from fields(data[0], (*path, 0))


def changed(archive: Archive, change: Callable[[Any, Any], None], path: tuple[Any, ...]) -> Archive:
    data = json.loads(json.dumps(archive.data))
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    change(inner, path[-1])
    return Archive(archive.kind, data, archive.arrays)


def value_at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


@every_model
def test_a_field_that_is_missing_or_null(name: str, tmp_path: Path) -> None:
    archive, task = archive_of(model(name)), model(name).task
    places = list(fields(json.loads(json.dumps(archive.data))))
    assert len(places) > 5
    for place in places:
        if place[-1] != "roots":  # older files have none
            refused(changed(archive, lambda inner, key: inner.pop(key), place), tmp_path / "damaged", task)
        if value_at(archive.data, place) is not None:
            refused(changed(archive, lambda inner, key: inner.update({key: None}), place), tmp_path / "damaged", task)


@every_model
def test_a_field_of_another_type(name: str, tmp_path: Path) -> None:
    archive, task = archive_of(model(name)), model(name).task
    for key, value in archive.data.items():
        for other in (True, 7, "text", [3], {"x": 1}):
            if type(other) is type(value) or (isinstance(value, float) and other == 7):
                continue
            changes = Archive(archive.kind, {**archive.data, key: other}, archive.arrays)
            assert refused(changes, tmp_path / "damaged", task), (key, other)


@every_model
def test_an_array_that_is_missing_or_of_another_shape_or_type(name: str, tmp_path: Path) -> None:
    archive, task = archive_of(model(name)), model(name).task
    for key, array in archive.arrays.items():
        others = {each: a for each, a in archive.arrays.items() if each != key}
        refused(Archive(archive.kind, archive.data, others), tmp_path / "damaged", task)
        for bad in (array[None], np.zeros((3, 1, 2)), np.append(array.ravel(), array.ravel()[:1])):
            if bad.shape != array.shape:
                refused(Archive(archive.kind, archive.data, {**others, key: bad}), tmp_path / "damaged", task)
        if array.dtype.kind == "f" and array.size:
            holed = array.copy()
            holed.flat[-1] = np.nan
            refused(Archive(archive.kind, archive.data, {**others, key: holed}), tmp_path / "damaged", task)


@every_model
def test_a_truncated_or_garbled_file(name: str, folder: Path, tmp_path: Path) -> None:
    path, task = tmp_path / "damaged", model(name).task
    content, whole = saved(name, folder).read_bytes(), load(saved(name, folder), task)
    for size in range(0, len(content), len(content) // 25):
        path.write_bytes(content[:size])
        with pytest.raises(ArchiveError):
            load(path, task)
    flipped = 0
    for position in range(1, len(content), len(content) // 25):
        garbled = bytearray(content)
        garbled[position] ^= 0x41
        path.write_bytes(garbled)
        try:
            again = load(path, task)
        except ArchiveError:
            flipped += 1
            continue
        assert again.describe() == whole.describe()
    assert flipped > 10


def test_an_unknown_kind_names_the_known_ones(tmp_path: Path) -> None:
    save_archive(Archive("banana", {}, {}), tmp_path / "a")
    for read in (Parser.load, Resolver.load, open_archive):
        with pytest.raises(ArchiveError) as caught:
            read(tmp_path / "a")
        assert "holds a 'banana', which is no kind of model known here" in str(caught.value)
        for kind in ("arc", "coreference", "grammar", "higher-order"):
            assert kind in str(caught.value)
    assert model_class("banana") is None


@every_model
def test_a_model_for_another_task(name: str, folder: Path) -> None:
    path, task = saved(name, folder), model(name).task
    other = "coreference" if task == "parsing" else "parsing"
    with pytest.raises(ArchiveError, match=f"a model for {task}, not for {other}; give another file"):
        load(path, other)
    assert open_archive(path).kind == model(name).kind
    assert read_model(open_archive(path, task), path).describe() == model(name).describe()


# Work that is shared, and work that is not done twice


def test_a_loaded_arc_model_scores_on_as_many_threads_as_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parser, workers, score = Parser.load(saved("arc, labels after", folder)), [], ArcFeatures.score

    def spy(self: ArcFeatures, weights: Any, coded: Any, scores: Floats, executor: Executor) -> None:
        workers.append(executor.workers)
        score(self, weights, coded, scores, executor)

    monkeypatch.setattr(ArcFeatures, "score", spy)
    for threads in (1, 3, 2):
        workers.clear()
        assert len(list(parser.parse(sentences(6, 6), threads=threads))) == 6
        assert set(workers) == {threads}


@dataclass
class Recording:
    """Runs everything in the calling thread, and counts the pieces."""

    workers: int = 3
    pieces: int = 0

    def map(self, function: Callable[..., Any], *items: Any) -> list[Any]:
        found = list(map(function, *items))
        self.pieces += len(found)
        return found


@every_model
def test_work_is_handed_to_the_executor(name: str) -> None:
    """Any executor will do: none is made inside."""
    executor = Recording()
    assert_same(predict(model(name), inputs(name), executor), predict(model(name), inputs(name)))
    assert executor.pieces > 1


@every_model
def test_reprs_are_short(name: str) -> None:
    found = model(name)
    shown = [found, found.describe(), found.to_archive()]
    if found.task == "parsing":
        shown += [Parser(found), *Parser(found).parse(sentences(2, 7))]
    for each in shown:
        assert len(repr(each)) < 150, type(each)
        assert "\n" not in repr(each)


@pytest.mark.parametrize(("name", "mbr"), [("sibling", False), ("grandsibling", False), ("arc, labels after", True)])
def test_marginals_are_kept(name: str, mbr: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a pruner, and those that MBR decodes by."""
    calls = {"arc_marginals": 0, "tree_sums": 0}

    def counted(function: str, own: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            calls[function] += 1
            return own(*arguments, **options)

        return call

    for module in [each for key, each in sys.modules.items() if key.startswith("headway.")]:
        for function in calls:
            if hasattr(module, function):
                monkeypatch.setattr(module, function, counted(function, getattr(module, function)))
    parsed = list(Parser(model(name)).parse(sentences(8, 7), mbr=mbr))
    assert calls["arc_marginals"] > 0
    before = dict(calls)
    for each in parsed:
        assert each.to_dict()["probability"] == each.confidence.tree
        np.testing.assert_allclose(each.marginals[:, 1:].sum(axis=0), 1.0, rtol=1e-9)
        each.distribution.log_prob(each.heads)
        assert "<svg" in each.to_svg()
    assert calls == before


def classes_told_apart(source: str) -> set[str]:
    """The classes of models among the second arguments of isinstance."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    checks = [call.args[1] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "isinstance"]
    names = {ast.unparse(node) for check in checks for node in ast.walk(check) if isinstance(node, ast.expr)}
    return {name for name in names if name.endswith("Model") and name.replace(".", "").isidentifier()}


def test_models_are_not_told_apart_by_their_class() -> None:
    """No isinstance on a class of models anywhere in the library."""
    assert classes_told_apart("isinstance(f(x), (int, models.ArcModel)) or isinstance(y, GrammarModel | str)") == {
        "models.ArcModel",
        "GrammarModel",
    }
    for path in Path(headway.__file__).parent.rglob("*.py"):
        assert not classes_told_apart(path.read_text("utf-8")), path
