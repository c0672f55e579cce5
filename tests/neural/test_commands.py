"""Networks on the command line: every learner by file and, heads partly known, by option; rules; what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")

from headway import Parser, Sentence
from headway.evaluation import evaluate
from headway.neural import preparation
from headway.neural.batching import batch_of
from headway.neural.losses import LOSSES
from headway.neural.network import Outputs
from headway.neural.objectives import TreeObjective
from headway.training.data import TrainingData
from headway.treebank import write_treebank
from tests.cli.conftest import one_error, run
from tests.neural.test_fitting import SMALL, settings, treebank
from tests.neural.test_rules import TOY
from tests.neural.tiny import folder_of

NETWORK = ("--model", "neural", "--device", "cpu", "--rate", "0.01", "--dropout", "0.1")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    of = preparation.network_settings
    monkeypatch.setattr(preparation, "network_settings", lambda settings: replace(of(settings), **SMALL))


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trees") / "trees.conllu"
    write_treebank(treebank(24), path)
    return path


@pytest.fixture(scope="module")
def partly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A third of the heads is unknown."""
    path = tmp_path_factory.mktemp("partly") / "partly.conllu"
    rng = np.random.default_rng(0)

    def hidden(sentence: Sentence) -> Sentence:
        assert sentence.heads is not None
        assert sentence.labels is not None
        gone = np.append(False, rng.random(len(sentence)) < 1 / 3)
        labels = [None if m == 0 else "_" if gone[m] else label for m, label in enumerate(sentence.labels)]
        return sentence.with_tree(np.where(gone, -1, sentence.heads), labels, partial=True)

    write_treebank(map(hidden, treebank(36)), path)
    return path


def about(model: Path) -> dict[str, object]:
    found: dict[str, object] = dict(Parser.load(model).model.about)
    return found


@pytest.mark.parametrize("learner", LOSSES)
def test_every_learner_by_file(learner: str, trees: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def train(cls: Any, /, *args: Any, **keywords: Any) -> Parser:
        seen.update(keywords)
        raise KeyboardInterrupt

    monkeypatch.setattr(Parser, "train", classmethod(train))
    config = tmp_path / "settings.toml"
    given = {"model": "neural", "learner": learner, "epochs": 9, "encoder-rate": 1e-4}
    given["encoder"] = folder_of("bert", tmp_path / "encoder").as_posix()
    config.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in given.items()), encoding="utf-8")
    run("train", trees, "--config", config, "--epochs", 1, "-o", tmp_path / "m", status=130)
    found = [seen[name] for name in ("model", "learner", "epochs", "encoder_rate")]
    assert found == ["neural", learner, 1, 1e-4]


@pytest.mark.parametrize("learner", LOSSES)
def test_some_heads_are_enough_for_every_learner(learner: str, partly: Path, tmp_path: Path) -> None:
    dev, parsed = tmp_path / "dev.conllu", tmp_path / "parsed.conllu"
    write_treebank(treebank(8, 1), dev)
    done = run("train", partly, *NETWORK, "--learner", learner, "--epochs", 15, "-o", tmp_path / "m")
    assert done.stdout.startswith(f"{tmp_path / 'm'}: neural model, {learner}, pass 15 of 15\nknown heads: ")
    run("parse", tmp_path / "m", dev, "-o", parsed)
    assert evaluate(dev, parsed).uas > 90


def test_text_beside_trees(trees: Path, tmp_path: Path) -> None:
    words = ("train", trees, *NETWORK, "--epochs", 2, "--text", trees)
    losses = []
    for weight in (0.0, 2.0):
        run(*words, "--entropy-weight", weight, "--entropy-order", 2, "-o", tmp_path / "m")
        losses.append(about(tmp_path / "m")["history"][0]["loss"])  # type: ignore[index]
    assert losses[1] > losses[0] + 0.1


def test_smoothing_spreads_a_share_of_each_target() -> None:
    """Over all values of a task; words that are taught nothing have no part in it."""
    data = TrainingData(treebank(6))
    chosen = settings(smoothing=0.3)
    prepared = preparation.prepare(data, chosen, torch.device("cpu"))
    assert prepared.sizes.smoothing == 0.3
    batch = batch_of(prepared.train, np.arange(6), torch.device("cpu"))
    network = prepared.network.eval()
    with torch.no_grad():
        network.labels.normal_()
        found: Outputs = network(batch.inputs)
        labels = network.label_scores(batch.heads, found.label_heads, found.label_modifiers)
        expected = 0.0
        for name, target in batch.targets.items():
            scores = labels if name == "labels" else found.tags[name]
            logs = scores.log_softmax(dim=2).double().numpy()
            weight = prepared.sizes.label_weight if name == "labels" else prepared.sizes.tag_weight
            for b, m in np.argwhere(target.numpy() >= 0):
                own = logs[b, m]
                expected -= weight * (0.7 * own[target[b, m]] + 0.3 * own.mean())
        arcs = float(LOSSES["loglinear"](found.arcs, batch.heads, batch.lengths, chosen.trees).sum())
        objective = TreeObjective(prepared.train, chosen.trees, LOSSES["loglinear"], prepared.sizes)
        loss = float(objective.loss(network, batch, np.arange(6), 0.0)) - arcs
    assert loss == pytest.approx(expected, rel=1e-5)
    assert {"labels", "upos"} <= batch.targets.keys()


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("--learner eg", "a network is trained with loglinear, cross-entropy, margin, perceptron, expected-loss"),
        ("--learner margin --text TREES", "margin learns from trees alone; text beside them is for loglinear"),
        ("--entropy-weight 1", "entropy_weight is about text beside the trees"),
        ("--templates mcdonald2005", "templates is for linear models, not for the neural model"),
        ("--encoder-rate 1e-3", "encoder_rate is for pretrained encoders, not for lstm; leave --encoder-rate out"),
        ("--c 2", "c is for linear models, not for the neural model; leave --c out"),
        ("--max-heads 3", "max_heads is for linear models, not for the neural model; leave --max-heads out"),
        ("--model arc --smoothing 0.1", "smoothing is for networks, not for the arc model; leave --smoothing out"),
        ("--model sibling --device cpu", "device is for networks, not for the sibling model"),
    ],
)
def test_what_does_not_go_together(words: str, cause: str, trees: Path, tmp_path: Path) -> None:
    given = words.replace("TREES", str(trees)).split()
    model = () if "--model" in given else ("--model", "neural")
    done = run("train", trees, *model, *given, "-o", tmp_path / "m", status=2)
    assert cause in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []


# Rules


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.toml"
    path.write_text(TOY, encoding="utf-8")
    return path


def test_from_rules_to_parsed_sentences(rules: Path, trees: Path, tmp_path: Path) -> None:
    model, new, parsed = tmp_path / "m.headway", tmp_path / "new.conllu", tmp_path / "parsed.conllu"
    write_treebank(treebank(8, 2), new)
    done = run("constrain", rules, trees, *NETWORK, "--epochs", 25, "--explain", "-o", model)
    assert done.stdout.startswith(f"{model}: neural model, constraints, 3 rules, pass ")
    assert ["rule", "target", "expectation", "units"] in [line.split() for line in done.stdout.splitlines()]
    run("parse", model, new, "-o", parsed)
    assert evaluate(new, parsed).uas > 90
    assert ["rules", "3"] in [line.split() for line in run("info", model, "--all").stdout.splitlines()]
    explained = json.loads(run("constrain", rules, trees, "--model", model, "--json").stdout)
    assert [rule["target"][0] for rule in explained["rules"]] == [0.98, 0.95, 0.95]
    for rule in explained["rules"]:
        assert rule["expectation"] == pytest.approx(rule["target"][0], abs=0.05)


@pytest.mark.parametrize(
    ("words", "status", "cause"),
    [
        ("--model neural", 2, "give -o MODEL to train a model (arc or neural), or --model MODEL to explain one"),
        ("--model neural --c 3 -o M", 2, "c is for linear models, not for the neural model; leave --c out"),
        ("--model neural --clusters C -o M", 2, "clusters is for linear models, not for the neural model"),
        ("--model sibling -o M", 2, "give -o MODEL to train a model (arc or neural), or"),
        ("--rate 0.1 -o M", 2, "rate is for networks, not for the arc model; leave --rate out"),
        ("--model neural --encoder missing/ -o M", 1, "missing: has no config.json"),
    ],
)
def test_what_does_not_go_with_rules(
    words: str, status: int, cause: str, rules: Path, trees: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("constrain", rules, trees, *words.split(), status=status)
    said = one_error(done) if status == 1 else " ".join(done.stderr.split())
    assert cause in said
    assert not Path("M").exists()
