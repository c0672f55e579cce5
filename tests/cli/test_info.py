"""`headway info`: statistics of treebanks, contents of models."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headway
from headway.coreference.pair_features import parse_pair_templates
from headway.coreference.resolver import Resolver
from headway.features.templates import load_templates, parse_templates
from headway.models.arc_model import ArcModel
from headway.models.higher_order_model import HigherOrderModel
from headway.pipeline import Parser
from headway.treebank import Statistics, read_treebank
from tests.cli import toy, toy_coref
from tests.cli.conftest import Invoke, one_error
from tests.models.model_parts import label_weights_of, weights_of

CROSSING = (
    "1\ta\t_\tX\t_\t_\t3\tl\t_\t_\n2\tb\tb\tX\t_\tF=1\t0\troot\t_\t_\n3\tc\t_\tY\t_\t_\t2\tl\t_\t_\n\n"  # 1-3 over 2
    "1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n2\tb\t_\tX\t_\t_\t0\troot\t_\t_\n\n"  # two roots
    "1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n\n"  # no heads
    "1\ta\t_\tX\t_\t_\t2\tl\t_\t_\n2\tb\t_\tX\t_\t_\t1\tl\t_\t_\n\n"  # a cycle
)


def checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def test_treebank_counts(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(CROSSING, encoding="utf-8")
    found = json.loads(invoke("info", path, "--json").stdout)
    assert found.pop("signature") == {
        "headway": headway.__version__,
        "seed": None,
        "options": {"skip_bad": False},
        "data": {str(path): checksum(CROSSING.encode())},
    }
    assert found == {
        "kind": "treebank",
        "sentences": 4,
        "tokens": 8,
        "longest": 3,
        "arcs": 5,
        "non_projective_arcs": 1,
        "crossing_arcs": 2,
        "trees": 2,
        "non_projective_trees": 1,
        "multi_root_trees": 1,
        "sentences_without_heads": 1,
        "sentences_with_cycle": 1,
        "tokens_with_lemma": 1,
        "tokens_with_feats": 1,
        "labels": {"l": 4, "root": 3},
        "upos": {"X": 7, "Y": 1},
        "mean_length": 2.0,
        "non_projective_arc_share": 0.2,
        "crossing_arc_share": 0.4,
        "non_projective_tree_share": 0.5,
        "multi_root_share": 0.5,
        "lemma_share": 0.125,
        "feats_share": 0.125,
        "skipped": 0,
    }
    rows = [line.split() for line in invoke("info", path).stdout.splitlines()]
    for row in (["crossing", "2", "40.00%"], ["several", "words", "on", "the", "root", "1", "50.00%"], ["root", "3"]):
        assert row in rows


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["a.conllu", "a.conll", "a.conllu.gz", "-"])
def test_treebanks_from_anywhere(invoke: Invoke, tmp_path: Path, name: str, newline: str) -> None:
    text = toy.treebank(9, seed=4, newline=newline, comments=False).encode()
    data = gzip.compress(text) if name.endswith(".gz") else text
    path: Any = name
    if name != "-":
        path = tmp_path / name
        path.write_bytes(data)
    found = json.loads(invoke("info", path, "--json", stdin=data).stdout)
    assert list(found["signature"]["data"].values()) == [checksum(data)]
    assert (found["sentences"], found["labels"]["punct"], found["arcs"]) == (9, 9, found["tokens"])


def test_malformed_sentences_are_counted(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(toy.treebank(2, seed=1) + "1\tx\n\n2\tx\n\n", encoding="utf-8")
    line = toy.treebank(2, seed=1).count("\n") + 1
    sentence = one_error(invoke("info", path, status=1))
    assert sentence.startswith(f"{path}, line {line}: the line has 2 columns")
    result = invoke("info", path, "--json", "--skip-bad")
    found = json.loads(result.stdout)
    assert (found["sentences"], found["skipped"]) == (2, 2)
    assert result.stderr == f"headway: 2 malformed sentences skipped; the first: {sentence}\n"


def test_an_empty_treebank(invoke: Invoke) -> None:
    found = json.loads(invoke("info", "-", "--json", stdin=b"").stdout)
    assert (found["sentences"], found["labels"], found["mean_length"]) == (0, {}, 0.0)
    assert invoke("info", "-", stdin=b"").stdout.startswith("sentences")


def test_files_that_cannot_be_read(invoke: Invoke, tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        assert one_error(invoke("info", path, status=1)).startswith(f"{path}: the file cannot be opened")
    noise = tmp_path / "noise"
    noise.write_bytes(b"\xff\xfe" + np.random.default_rng(0).bytes(1000))
    assert one_error(invoke("info", noise, status=1)).startswith(f"{noise}, line 1: ")


def test_control_characters_stay_out_of_the_terminal(invoke: Invoke) -> None:
    text = b"1\ta\t_\tT\x1b[31m\t_\t_\t0\tL\x1b]0;x\x07\t_\t_\n\n"
    assert "\x1b" not in invoke("info", "-", stdin=text).stdout
    found = json.loads(invoke("info", "-", "--json", stdin=text).stdout)
    assert found["labels"] == {"L\x1b]0;x\x07": 1}


def test_model_json(invoke: Invoke, model: Path, train_file: Path) -> None:
    found = json.loads(invoke("info", model, "--json").stdout)
    loaded = Parser.load(model).model
    assert found["signature"]["data"] == {str(model): checksum(model.read_bytes())}
    assert (found["kind"], found["model"]) == ("model", "arc")
    assert found["about"]["settings"]["learner"] == "margin"
    assert found["about"]["train"]["sentences"] == 40
    assert found["labels"] == ["amod", "det", "nsubj", "obj", "punct", "root"]
    assert sorted(found["labels"]) == sorted(Statistics.of(read_treebank(train_file)).labels)
    arcs, labeller = found["templates"]["arcs"], found["templates"]["labeller"]
    assert sum(block["weights"] for block in arcs) == weights_of(loaded).size
    assert sum(block["weights"] for block in labeller) == label_weights_of(loaded).size
    assert "labeller_tree" not in found["templates"]
    assert found["weights"] == weights_of(loaded).size + label_weights_of(loaded).size
    assert "joint" not in found["templates"]
    assert all(0 <= block["collisions"] < block["keys"] <= block["weights"] for block in arcs)


def test_model_text(invoke: Invoke, model: Path) -> None:
    text = invoke("info", model, "--all").stdout
    loaded = Parser.load(model).model
    rows = [line.split() for line in text.splitlines()]
    assert ["settings.learner", "margin"] in rows
    assert ["train.sha256", loaded.about["train"]["sha256"]] in rows
    assert "6 labels: amod, det, nsubj, obj, punct, root\n" in text
    assert isinstance(loaded, ArcModel)
    for block in loaded.scorer.scorer.arcs.blocks:
        figures = (1 << block.bits, block.keys, block.collisions)
        assert [*str(block.template).split(), *map(str, figures)] in rows
    assert text.endswith(f"headway {headway.__version__}, {model} sha256 {checksum(model.read_bytes())}\n")


def test_higher_order_model(invoke: Invoke, higher_order: Path) -> None:
    found = json.loads(invoke("info", higher_order, "--json").stdout)
    loaded = Parser.load(higher_order).model
    assert isinstance(loaded, HigherOrderModel)
    kind = higher_order.stem
    assert (found["kind"], found["model"]) == ("model", kind)
    kinds = ["siblings", *(["grandparents", "grand_siblings"] if kind == "grandsibling" else [])]
    assert list(found["templates"]) == ["pruner", "arcs", *kinds, "labeller", "labeller_tree"]
    sizes = {name: sum(block["weights"] for block in blocks) for name, blocks in found["templates"].items()}
    assert sizes["pruner"] == loaded.scorer.pruner.scorer.weights.size
    assert sum(sizes[name] for name in ("arcs", *kinds)) == weights_of(loaded).size
    assert sizes["labeller"] + sizes["labeller_tree"] == label_weights_of(loaded).size
    assert found["weights"] == sum(sizes.values())
    pruning = found["about"]["pruning"]
    assert pruning["measured_on"] == "training"
    assert 90 < pruning["recall"] <= 100

    text = invoke("info", higher_order, "--all").stdout
    rows = [line.split() for line in text.splitlines()]
    assert ["model", kind] in rows
    assert ["pruning.recall", str(pruning["recall"])] in rows
    assert ["pruning.heads_per_word", str(pruning["heads_per_word"])] in rows
    for name in kinds:
        assert f"\n{name}: {len(loaded.scorer.parts.scorer.others[name].blocks)} templates " in text


def test_grammar(invoke: Invoke, train_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "g.headway"
    words = ("--states", 2, "--lexical", "LEX+F", "--multi-root")
    for labels, names in (([], ["amod", "det", "nsubj", "obj", "punct", "root"]), (["--labels", "none"], [])):
        invoke("induce", train_file, *words, *labels, "-o", path)
        found = json.loads(invoke("info", path, "--json").stdout)
        assert found["signature"]["data"] == {str(path): checksum(path.read_bytes())}
        assert (found["kind"], found["model"], found["labels"]) == ("model", "grammar", names)
        assert (found["projective"], found["single_root"]) == (True, False)
        assert (found["tags"], found["segmenter"]) == (0, False)
        assert list(found["templates"]) == ["labeller"] * bool(names)
        assert found["weights"] == label_weights_of(Parser.load(path).model).size
        assert found["about"]["settings"]["lexical"] == "LEX+F"
        assert found["about"]["chosen"] == {"states": 2, "dev": None, "negative": None}
        assert found["about"]["train"]["sentences"] == 40
        text = invoke("info", path, "--all").stdout
        rows = [line.split() for line in text.splitlines()]
        tags = {tag for sentence in read_treebank(train_file) for tag in sentence.xpos}
        grammar = ["grammar", "2", "states,", str(len(tags)), "tags", "(xpos),", "LEX+F"]
        for row in (["model", "grammar"], grammar, ["settings.method", "spectral"], ["chosen.states", "2"]):
            assert row in rows
        assert "projective, any number of words on the root" in text
        assert f"\n{len(names)} labels: {', '.join(names) or 'none: trained without'}\n" in text
        assert text.endswith(f"headway {headway.__version__}, {path} sha256 {checksum(path.read_bytes())}\n")
    for option in ("--templates", "--parts"):
        said = one_error(invoke("info", path, option, status=1))
        assert said == f"{path}: the model has no templates; models from headway train have some"


def test_parts_can_be_read_back(invoke: Invoke, higher_order: Path, train_file: Path, tmp_path: Path) -> None:
    loaded = Parser.load(higher_order).model
    assert isinstance(loaded, HigherOrderModel)
    tables = {}
    for option in ("--templates", "--parts"):
        tables[option] = tmp_path / option
        tables[option].write_text(invoke("info", higher_order, option).stdout, encoding="utf-8")
    arcs = [block.template for block in loaded.scorer.parts.scorer.arcs.blocks]
    assert list(parse_templates(tables["--templates"].read_text("utf-8"))) == arcs
    words = [word for pair in tables.items() for word in pair]
    invoke("train", train_file, "--model", higher_order.stem, "--epochs", 2, *words, "-o", tmp_path / "again")
    assert np.array_equal(weights_of(Parser.load(tmp_path / "again").model), weights_of(loaded))


def test_an_arc_model_has_no_parts(invoke: Invoke, model: Path) -> None:
    assert "--templates" in one_error(invoke("info", model, "--parts", status=1))
    assert invoke("info", "sibling", "--parts").stdout == invoke("info", "sibling", "--templates").stdout


def test_templates_can_be_read_back(invoke: Invoke, model: Path, train_file: Path, tmp_path: Path) -> None:
    """What is printed trains the same model again; a template taken out is gone."""
    text = invoke("info", model, "--templates").stdout
    loaded = Parser.load(model).model
    assert isinstance(loaded, ArcModel)
    templates = [block.template for block in loaded.scorer.scorer.arcs.blocks]
    assert list(parse_templates(text)) == templates
    table = tmp_path / "table.txt"
    table.write_text(text, encoding="utf-8")
    invoke("train", train_file, "--epochs", 3, "--templates", table, "-o", tmp_path / "again")
    assert np.array_equal(weights_of(Parser.load(tmp_path / "again").model), weights_of(loaded))
    table.write_text("\n".join(text.splitlines()[:-1]), encoding="utf-8")
    invoke("train", train_file, "--epochs", 1, "--templates", table, "-o", tmp_path / "less")
    less = Parser.load(tmp_path / "less").model
    assert isinstance(less, ArcModel)
    assert [b.template for b in less.scorer.scorer.arcs.blocks] == templates[:-1]


def test_a_table_is_printed_as_it_is_written(invoke: Invoke, train_file: Path, tmp_path: Path) -> None:
    text = invoke("info", "mcdonald2005", "--templates").stdout
    assert text.startswith("#")
    assert parse_templates(text) == load_templates("mcdonald2005")
    mine = tmp_path / "mine.txt"
    mine.write_text(text + "h.shape m.shape | dir\n", encoding="utf-8")
    assert invoke("info", mine, "--templates").stdout.endswith("h.shape m.shape | dir\n")


def test_a_treebank_has_no_templates(invoke: Invoke, test_file: Path) -> None:
    assert "is not an atom" in invoke("info", test_file, "--templates", status=1).stderr


@pytest.fixture(scope="module")
def resolver(tmp_path_factory: pytest.TempPathFactory, invoke: Invoke) -> Path:
    folder = tmp_path_factory.mktemp("info")
    path = folder / "m.coref"
    train = toy_coref.write(folder / "train.conllu", 5, seed=1)
    invoke("coref", "train", train, "--dev", train, "--stretch", 7, "--epochs", 2, "--types", "-o", path)
    return path


def test_coreference_model_json(invoke: Invoke, resolver: Path) -> None:
    found = json.loads(invoke("info", resolver, "--json").stdout)
    loaded = Resolver.load(resolver).model
    assert found["signature"]["data"] == {str(resolver): checksum(resolver.read_bytes())}
    assert (found["kind"], found["model"]) == ("model", "coreference")
    assert found["about"] == loaded.about
    assert (found["about"]["settings"]["stretch"], found["about"]["settings"]["types"]) == (7, True)
    assert found["about"]["train"]["mentions"] == sum(len(each.mentions) for each in toy_coref.documents(5, 1))
    assert len(found["about"]["history"]) == 2
    assert found["sieves"] == {"mentions": 20, "sentences": 5}
    assert found["values"]["type"] == 3  # animal, person, thing
    pairs = found["templates"].pop("pairs")
    assert found["templates"] == {}
    assert sum(block["weights"] for block in pairs) == found["weights"] == loaded.weights.size
    assert [tuple(block["template"].split()) for block in pairs] == list(loaded.features.templates)


def test_coreference_model_text(invoke: Invoke, resolver: Path) -> None:
    text = invoke("info", resolver, "--all").stdout
    loaded = Resolver.load(resolver).model
    rows = [line.split() for line in text.splitlines()]
    for row in (["model", "coreference"], ["settings.stretch", "7"], ["settings.tree", "latent"]):
        assert row in rows
    assert ["train.sha256", loaded.about["train"]["sha256"]] in rows
    assert ["best_pass", str(loaded.about["best_pass"])] in rows
    assert ["weights", str(loaded.weights.size)] in rows
    assert f"\npairs: {len(loaded.features.templates)} templates " in text
    for template, bits in zip(loaded.features.templates, loaded.features.bits, strict=True):
        assert [*template, str(1 << bits)] in rows
    assert ["all", str(loaded.weights.size)] in rows
    assert text.endswith(f"headway {headway.__version__}, {resolver} sha256 {checksum(resolver.read_bytes())}\n")


def test_templates_of_pairs_can_be_read_back(invoke: Invoke, resolver: Path) -> None:
    text = invoke("info", resolver, "--templates").stdout
    assert text.startswith(f"# Templates of {resolver}: ")
    assert parse_pair_templates(text) == Resolver.load(resolver).model.features.templates
    said = one_error(invoke("info", resolver, "--parts", status=1))
    assert said == f"{resolver}: the model scores only arcs; print their templates with --templates"


def test_a_damaged_coreference_model_is_one_sentence(invoke: Invoke, resolver: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "m.coref"
    data = resolver.read_bytes()
    damaged.write_bytes(data[: len(data) // 2])
    for words in ([], ["--json"], ["--templates"]):
        assert one_error(invoke("info", damaged, *words, status=1)).startswith(f"{damaged}: ")
