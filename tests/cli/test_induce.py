"""`headway induce`: trees make a grammar, which parses like any other model; automata are drawn; failures are said."""

from __future__ import annotations

import dataclasses
import gzip
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headway
from headway.evaluation import evaluate
from headway.inference.operator_automata import OperatorGrammar
from headway.models.grammar_model import GrammarModel
from headway.pipeline import Parser
from headway.training.grammar_settings import GrammarSettings
from headway.treebank import is_projective, is_tree, read_treebank
from tests.cli import toy
from tests.cli.conftest import Invoke, one_error
from tests.inference.operator_oracle import totals
from tests.models.model_parts import label_names_of, label_weights_of

TINY = Path(__file__).parents[2] / "examples" / "tiny.conllu"


def grammar_of(path: Path) -> GrammarModel:
    model = Parser.load(path).model
    assert isinstance(model, GrammarModel)
    return model


@pytest.fixture(scope="module")
def grammar(tmp_path_factory: pytest.TempPathFactory, invoke: Invoke, train_file: Path) -> Path:
    path = tmp_path_factory.mktemp("grammar") / "g.headway"
    invoke("induce", train_file, "--states", 3, "-o", path)
    return path


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory, grammar: Path) -> Path:
    """The same with random operators of both signs: negative marginals abound."""
    model, rng = grammar_of(grammar), np.random.default_rng(3)
    learnt = model.grammar.operators
    shapes = (learnt.initial.shape, learnt.final.shape, learnt.operators.shape)
    operators = OperatorGrammar(*(rng.normal(size=shape) for shape in shapes))
    changed = dataclasses.replace(model.grammar, operators=operators, deterministic=None, backed_off=0.0)
    path = tmp_path_factory.mktemp("broken") / "broken.headway"
    Parser(dataclasses.replace(model, grammar=changed)).save(path)
    return path


# From trees to a model, and from the model to trees


@pytest.mark.parametrize(
    ("words", "described"),
    [
        ("", "spectral, 9 states"),
        ("--states 1", "spectral, 1 state"),
        ("--states 3 --context 1 --ridge 0", "spectral, 3 states"),
        ("--states 3 --lexical LEX+FCP", "spectral, 3 states, LEX+FCP"),
        ("--method em --states 2 --iterations 3 --restarts 2 --lexical LEX", "em, 2 states, LEX, step 3 of start "),
        ("--method det", "det, 2 states"),
        ("--method det --states 1 --lexical LEX+F", "det, 1 state, LEX+F"),
    ],
)
def test_from_trees_to_parsed_sentences(
    invoke: Invoke, train_file: Path, test_file: Path, tmp_path: Path, words: str, described: str
) -> None:
    model, parsed = tmp_path / "m.headway", tmp_path / "parsed.conllu"
    done = invoke("induce", train_file, *words.split(), "-o", model)
    first, second = done.stdout.splitlines()
    assert first.startswith(f"{model}: head-automata grammar, {described}")
    assert first == f"{model}: head-automata grammar, {described}" or described.endswith("start ")
    checksum = grammar_of(model).about["train"]["sha256"]
    assert second == f"headway {headway.__version__}, seed 0, 40 sentences sha256 {checksum}"
    assert done.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == ["m.headway"]
    assert invoke("parse", model, test_file, "-o", parsed).output == ""
    scores = json.loads(invoke("evaluate", test_file, parsed, "--json").stdout)["scores"]
    assert scores["uas"] == evaluate(test_file, parsed).uas > 90
    assert scores["las"] > 85
    for gold, found in zip(read_treebank(test_file), read_treebank(parsed), strict=True):
        assert found.heads is not None
        assert is_tree(found.heads)
        assert is_projective(found.heads)
        assert (found.forms, found.lemmas, found.layout.misc) == (gold.forms, gold.lemmas, gold.layout.misc)


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("", {}),
        ("--method det --states 1 --lexical LEX", {"method": "det", "states": 1, "lexical": "LEX"}),
        (
            "--method em --iterations 7 --restarts 3 --seed 9 --backed-off 0.3",
            {"method": "em", "iterations": 7, "restarts": 3, "seed": 9, "backed_off": 0.3},
        ),
        ("--context 3 --ridge 0 --column upos", {"context": 3, "ridge": 0.0, "column": "upos"}),
        (
            "--lexical LEX+FCP --multi-root --backed-off 0",
            {"lexical": "LEX+FCP", "single_root": False, "backed_off": 0.0},
        ),
    ],
)
@pytest.mark.parametrize(
    ("others", "reached"),
    [
        ("", {"tags": "gold", "labels": "after", "threads": 1}),
        ("--tags predicted --labels none --threads 2", {"tags": "predicted", "labels": "none", "threads": 2}),
    ],
)
def test_settings_reach_the_learner(
    invoke: Invoke,
    monkeypatch: Any,
    train_file: Path,
    test_file: Path,
    tmp_path: Path,
    words: str,
    changed: dict[str, Any],
    others: str,
    reached: dict[str, Any],
) -> None:
    given: dict[str, Any] = {}

    def induce(cls: Any, /, *args: Any, **keywords: Any) -> Parser:
        given.update(keywords, args=args)
        raise KeyboardInterrupt

    monkeypatch.setattr(Parser, "induce", classmethod(induce))
    invoke("induce", train_file, "--dev", test_file, *words.split(), *others.split(), "-o", tmp_path / "m", status=130)
    assert given.pop("args") == (str(train_file), str(test_file))
    assert given.pop("show") is given.pop("workers") is None
    assert {name: given.pop(name) for name in reached} == reached
    assert GrammarSettings(**given) == GrammarSettings(**changed)


def test_interrupted(invoke: Invoke, monkeypatch: Any, train_file: Path, tmp_path: Path) -> None:
    def interrupt(*args: Any, **keywords: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("headway.training.grammar_trainer.induce", interrupt)
    result = invoke("induce", train_file, "-o", tmp_path / "m", status=130)
    said = "headway: interrupted; nothing was written, so the same command starts over"
    assert (result.stdout, result.stderr.strip()) == ("", said)
    assert list(tmp_path.iterdir()) == []


def test_development_data_choose(invoke: Invoke, train_file: Path, test_file: Path, tmp_path: Path) -> None:
    em = ("--method", "em", "--states", 2, "--iterations", 4, "--restarts", 2)
    for words in ((), em):
        done = invoke("induce", train_file, "--dev", test_file, *words, "-o", tmp_path / "m")
        about = grammar_of(tmp_path / "m").about
        scores = [entry["dev"] for entry in about["history"]]
        chosen = about["chosen"]
        assert chosen["dev"] == max(scores)
        assert about["history"].index(chosen) == scores.index(max(scores))
        assert f", dev UAS {max(scores):.2f} without punctuation\n" in done.stdout
        states = chosen["states"]
        assert f", {states} state{'s' * (states != 1)}, " in done.stdout
        assert grammar_of(tmp_path / "m").grammar.operators.states == states
        if words:
            assert f", step {chosen['iteration']} of start {chosen['restart'] + 1}, " in done.stdout
        invoke("parse", tmp_path / "m", test_file, "-o", tmp_path / "out.conllu")
        assert evaluate(test_file, tmp_path / "out.conllu").uas_no_punct == pytest.approx(max(scores))


def test_the_same_command_makes_the_same_model(invoke: Invoke, train_file: Path, tmp_path: Path) -> None:
    for words in (("--states", 3), ("--method", "em", "--states", 2, "--iterations", 3)):
        for name in ("a", "b"):
            invoke("induce", train_file, *words, "-o", tmp_path / name)
        one, two = (grammar_of(tmp_path / name) for name in ("a", "b"))
        assert np.array_equal(one.grammar.operators.operators, two.grammar.operators.operators)
        assert np.array_equal(label_weights_of(one), label_weights_of(two))
        assert one.about == two.about


@pytest.mark.parametrize("name", ["a.conll", "a.conllu.gz", "-"])
def test_treebanks_from_anywhere(invoke: Invoke, grammar: Path, tmp_path: Path, name: str) -> None:
    text = toy.treebank(40, seed=1, comments=False).encode()
    data = gzip.compress(text) if name.endswith(".gz") else text
    source: Any = name
    if name != "-":
        source = tmp_path / name
        source.write_bytes(data)
    invoke("induce", source, "--states", 3, "-o", tmp_path / "m", stdin=data)
    found = grammar_of(tmp_path / "m")
    assert np.array_equal(found.grammar.operators.operators, grammar_of(grammar).grammar.operators.operators)
    if name != "a.conll":  # whose last columns mean something else
        assert found.about["train"] == grammar_of(grammar).about["train"]


def test_conllx_in_conllx_out(invoke: Invoke, grammar: Path, tmp_path: Path) -> None:
    source = toy.write(tmp_path / "in.conll", 5, seed=3, comments=False)
    invoke("parse", grammar, source, "-o", tmp_path / "out.conll")
    assert evaluate(source, tmp_path / "out.conll").uas > 90


def test_words_without_a_tree_and_no_words(invoke: Invoke, grammar: Path) -> None:
    bare = "\t_\tNOUN\tN\t_\t_\t_\t_\t_\n"
    text = f"# nothing but a comment\n\n1\thundo{bare}\n1\thundo{bare}2\tkato{bare}\n"
    out = invoke("parse", grammar, "-", "--marginals", stdin=text.encode()).stdout
    assert out.startswith("# nothing but a comment\n# tree_probability = 1\n\n# tree_probability = 1\n1\thundo")
    heads = [line.split("\t")[6] for line in out.split("\n") if "\t" in line]
    assert (heads[0], sorted(heads[1:])[0]) == ("0", "0")
    assert out.count("HeadProbability=1.0000\n") == 1


def test_tags_never_seen(invoke: Invoke, grammar: Path, test_file: Path, tmp_path: Path) -> None:
    odd = test_file.read_text("utf-8").replace("\tADJ\tA\t", "\tODD\tODD\t").encode()
    out = tmp_path / "out.conllu"
    out.write_bytes(invoke("parse", grammar, "-", stdin=odd).stdout_bytes)
    assert evaluate(test_file, out).uas > 60
    every = odd.replace(b"\tN\t", b"\tX\t").replace(b"\tV\t", b"\tY\t")
    assert invoke("parse", grammar, "-", "--marginals", stdin=every).stdout.count("# tree_probability") == 20


def test_without_back_off_tags_never_seen_are_an_error(invoke: Invoke, train_file: Path, tmp_path: Path) -> None:
    invoke("induce", train_file, "--states", 2, "--backed-off", 0, "-o", tmp_path / "m")
    text = b"1\ta\t_\t_\tODD\t_\t_\t_\t_\t_\n\n"
    assert "no tree exists" in one_error(invoke("parse", tmp_path / "m", "-", stdin=text, status=1))


# Labels, roots, columns, tags


def test_labels(invoke: Invoke, train_file: Path, test_file: Path, tmp_path: Path) -> None:
    invoke("induce", train_file, "--states", 2, "--labels", "none", "-o", tmp_path / "bare")
    without = tmp_path / "without.conllu"
    rows = [line.split("\t") for line in train_file.read_text("utf-8").split("\n")]
    text = "\n".join("\t".join([*row[:7], "_", *row[8:]]) if len(row) == 10 else row[0] for row in rows)
    without.write_text(text, encoding="utf-8")
    invoke("induce", without, "--states", 2, "-o", tmp_path / "none")
    for name in ("bare", "none"):
        assert label_names_of(grammar_of(tmp_path / name)) == ()
        out = invoke("parse", tmp_path / name, test_file).stdout
        assert {row.split("\t")[7] for row in out.split("\n") if "\t" in row} == {"_"}
    invoke("induce", train_file, "--states", 2, "-o", tmp_path / "labelled")
    assert label_names_of(grammar_of(tmp_path / "labelled")) == ("amod", "det", "nsubj", "obj", "punct", "root")


def test_several_roots(invoke: Invoke, tmp_path: Path) -> None:
    row = "{}\t{}\t_\tV\tV\t_\t{}\t_\t_\t_\n"
    two = row.format(1, "a", 0) + row.format(2, "b", 0) + "\n"
    source = tmp_path / "two.conllu"
    source.write_text(two * 6, encoding="utf-8")
    words = ("induce", source, "--states", 2, "--labels", "none", "-o", tmp_path / "m")
    said = one_error(invoke(*words, status=1))
    assert said.startswith(f"{source}: 6 of 6 trees have several words on the root")
    assert "--multi-root" in said
    invoke(*words, "--multi-root")
    out = invoke("parse", tmp_path / "m", source).stdout
    assert [line.split("\t")[6] for line in out.split("\n") if "\t" in line] == ["0"] * 12


def test_columns(invoke: Invoke, train_file: Path, grammar: Path, tmp_path: Path) -> None:
    assert grammar_of(grammar).grammar.symbols.names == ("A", "D", "N", "P", "V")
    invoke("induce", train_file, "--states", 2, "--column", "upos", "-o", tmp_path / "m")
    assert grammar_of(tmp_path / "m").grammar.symbols.names == ("ADJ", "DET", "NOUN", "PUNCT", "VERB")


def test_too_many_tags(invoke: Invoke, tmp_path: Path) -> None:
    source = tmp_path / "many.conllu"
    rows = "".join(f"{i}\tw\t_\tX\tT{i}\t_\t{i - 1}\t_\t_\t_\n" for i in range(1, 122))
    source.write_text(f"{rows}\n", encoding="utf-8")
    words = ("induce", source, "--method", "det", "--labels", "none", "-o", tmp_path / "m")
    said = one_error(invoke(*words, "--column", "xpos", status=1))
    assert said.startswith("the xpos column has 121 different tags, too many")
    assert said.endswith("(--column upos)")
    assert not (tmp_path / "m").exists()
    invoke(*words)
    assert grammar_of(tmp_path / "m").grammar.symbols.names == ("X",)


def test_predicted_tags_let_plain_text_be_parsed(invoke: Invoke, tmp_path: Path) -> None:
    model = tmp_path / "tiny.headway"
    invoke("induce", TINY, "--states", 2, "--tags", "predicted", "-o", model)
    out = invoke("parse", model, "-", "--unsure-below", 0, stdin=b"The dog sleeps. A small bird sings.")
    (tmp_path / "out.conllu").write_text(out.stdout, encoding="utf-8")
    gold = tmp_path / "gold.conllu"
    gold.write_text("\n\n".join(TINY.read_text("utf-8").split("\n\n")[:2]) + "\n\n", encoding="utf-8")
    assert evaluate(gold, tmp_path / "out.conllu").uas > 80
    assert out.stderr == "headway: 0 of 9 arcs are less probable than 0\n"
    retagged = invoke("parse", model, TINY, "--retag").stdout
    assert retagged.count("\tVERB\t") > 20
    invoke("induce", TINY, "--states", 2, "-o", tmp_path / "gold.headway")
    said = one_error(
        invoke("parse", tmp_path / "gold.headway", "-", "--input-format", "tokens", stdin=b"A dog", status=1)
    )
    assert said.startswith("the model has no tagger, as it was trained on gold tags")


# Probabilities


def test_probabilities_of_heads_and_trees(invoke: Invoke, grammar: Path, broken: Path, test_file: Path) -> None:
    for model in (grammar, broken):
        right = list(Parser.load(model).parse(list(read_treebank(test_file))))
        out = invoke("parse", model, test_file, "--marginals").stdout
        shown = [line.rpartition("HeadProbability=")[2] for line in out.split("\n") if "HeadProbability=" in line]
        assert shown == [f"{p:.4f}" for each in right for p in each.confidence.arcs[1:]]
        assert all(0 <= float(p) <= 1 for p in shown)
        trees = [line.rpartition(" = ")[2] for line in out.split("\n") if line.startswith("# tree_probability")]
        assert trees == [f"{each.confidence.tree:.6g}" for each in right]
        data = [json.loads(line) for line in invoke("parse", model, test_file, "--format", "json").stdout.splitlines()]
        for sentence, each in zip(data, right, strict=True):
            assert 0 <= sentence["probability"] == each.confidence.tree <= 1
            assert [word["head"] for word in sentence["words"]] == each.heads[1:].tolist()
            assert [word["probability"] for word in sentence["words"]] == np.round(each.confidence.arcs[1:], 6).tolist()
            np.testing.assert_allclose(each.marginals[:, 1:].sum(axis=0), 1.0)
            assert each.marginals.min() >= 0


def test_unsure_heads_are_counted(invoke: Invoke, broken: Path, test_file: Path) -> None:
    arcs = [p for each in Parser.load(broken).parse(read_treebank(test_file)) for p in each.confidence.arcs[1:]]
    unsure = sum(p < 0.5 for p in arcs)
    assert 0 < unsure < len(arcs)
    result = invoke("parse", broken, test_file, "--unsure-below", 0.5)
    assert result.stdout.count("Unsure=Yes") == unsure
    assert f"headway: {unsure} of {len(arcs)} arcs are less probable than 0.5\n" in result.stderr


def test_negative_marginals_are_reported(invoke: Invoke, grammar: Path, broken: Path, tmp_path: Path) -> None:
    """By enumeration of all trees of short sentences."""
    tags = ["DNVN", "NVDN", "NV", "N", "VVN", "ANVP"]
    rows = "\t".join(["{}", "w", "_", "_", "{}", "_", "_", "_", "_", "_"])
    text = "".join("".join(rows.format(i, t) + "\n" for i, t in enumerate(each, start=1)) + "\n" for each in tags)
    model = grammar_of(broken).grammar
    negative = tiny = sentences = 0
    for each in tags:
        symbols = np.array([0, *(model.symbols.names.index(tag) + 2 for tag in each)])
        all_trees = totals(model.operators, symbols, single_root=True)
        below = int((all_trees.arcs / all_trees.weight < 0).sum())
        negative += below
        arcs = all_trees.arcs[:, 1:][~np.eye(len(symbols), dtype=bool)[:, 1:]] / all_trees.weight
        tiny += int(((arcs >= 0) & (arcs < 1e-12)).sum())
        sentences += below > 0
    assert sentences > 2
    for words in ((), ("--format", "json"), ("-o", tmp_path / "out.conllu")):
        result = invoke("parse", broken, "-", *words, stdin=text.encode())
        assert result.stderr == (
            f"headway: {negative} of {sum(len(each) ** 2 for each in tags)} possible arcs, in {sentences} sentences, "
            f"had a negative marginal under the spectral grammar, and {tiny} a tiny one; they are taken as nearly "
            "impossible\n"
        )
    assert invoke("parse", grammar, "-", stdin=text.encode()).stderr == ""


def test_decoding_is_mbr(invoke: Invoke, broken: Path, test_file: Path) -> None:
    plain = invoke("parse", broken, test_file).stdout
    for words in (["--mbr"], ["--projective"], ["--no-exact"], ["--threads", "2"]):
        assert invoke("parse", broken, test_file, *words).stdout == plain
    said = one_error(invoke("parse", broken, test_file, "--non-projective", status=1))
    assert said == "a head-automata grammar derives projective trees only; leave --non-projective out"
    assert "headway_status = EXACT" in invoke("parse", broken, test_file, "--status").stdout


def test_heads_can_be_drawn(invoke: Invoke, broken: Path, test_file: Path, tmp_path: Path) -> None:
    for words in (["--heatmap"], ["--probabilities"]):
        invoke("draw", test_file, "--model", broken, *words, "-o", tmp_path / "a.svg")
        ET.parse(tmp_path / "a.svg")


def test_rules_can_be_held_against_it(invoke: Invoke, broken: Path, test_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text('[[rule]]\nhead = "VERB"\nmodifier = "NOUN"\ntarget = 0.95\n', encoding="utf-8")
    (found,) = json.loads(invoke("constrain", path, test_file, "--model", broken, "--json").stdout)["rules"]
    shares = []
    for parsed in Parser.load(broken).parse(read_treebank(test_file)):
        tags = (None, *parsed.sentence.upos)
        verbs = [h for h, tag in enumerate(tags) if tag == "VERB"]
        shares += [sum(parsed.marginals[h, m] for h in verbs) for m, tag in enumerate(tags) if tag == "NOUN"]
    assert (found["units"], found["state"]) == (len(shares), "below")
    assert found["expectation"] == pytest.approx(sum(shares) / len(shares))
    assert found["examples"][0]["share"] == pytest.approx(min(shares), abs=1e-8)


# Pictures


def assert_drawn(path: Path, title: str) -> None:
    svg, dot = (Path(f"{path}.{suffix}") for suffix in ("svg", "dot"))
    assert title in "".join(ET.parse(svg).getroot().itertext())
    text = dot.read_text("utf-8")
    assert text.startswith("digraph automaton {\n")
    assert title in text
    assert text.endswith("}\n")


def test_automata_are_drawn_beside_the_model(invoke: Invoke, train_file: Path, tmp_path: Path) -> None:
    wanted = ("--draw-automaton", "N:left", "--draw-automaton", "ROOT:right", "--draw-automaton", "P:left")
    for name, stem in (("g.headway", "g"), ("other.model", "other.model")):
        words = ("induce", train_file, "--states", 2, *wanted)
        done = invoke(*words, "--drawn-clusters", 1, "-o", tmp_path / name)
        lines = done.stdout.splitlines()
        ends = [f"{stem}.{tag}" for tag in ("N-left", "ROOT-right", "P-left")]
        for line, end in zip(lines[2:], ends, strict=True):
            assert line == f"{tmp_path / end}.svg, .dot: 1 state after 0 merges"
            tag, direction = end.removeprefix(f"{stem}.").split("-")
            assert_drawn(tmp_path / end, f"{tag}, {direction} modifiers")
        assert len(lines) == 5
    assert len(list(tmp_path.iterdir())) == 2 * (1 + 2 * 3)


def test_a_model_is_drawn_without_learning(invoke: Invoke, grammar: Path, test_file: Path, tmp_path: Path) -> None:
    model = tmp_path / "copy.headway"
    model.write_bytes(grammar.read_bytes())
    done = invoke("induce", test_file, "--model", model, "--draw-automaton", "N:left")
    assert done.stdout.startswith(f"{tmp_path / 'copy'}.N-left.svg, .dot: ")
    assert done.stdout.count("\n") == 1
    assert_drawn(tmp_path / "copy.N-left", "N, left modifiers")
    text = (tmp_path / "copy.N-left.dot").read_text("utf-8")
    assert 'label="D ' in text or "A " in text
    assert model.read_bytes() == grammar.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"copy.headway", "copy.N-left.svg", "copy.N-left.dot"}


def test_states_are_drawn_as_development_data_use_them(
    invoke: Invoke, train_file: Path, test_file: Path, tmp_path: Path
) -> None:
    model, drawn, wanted = tmp_path / "g.headway", tmp_path / "g.N-left.dot", ("--draw-automaton", "N:left")
    pictures = []
    for words in (
        (train_file, "--dev", test_file, "--states", 2, "-o", model),
        (test_file, "--model", model),
        (train_file, "--model", model),
    ):
        invoke("induce", *words, *wanted)
        pictures.append(drawn.read_text("utf-8"))
    assert pictures[0] == pictures[1] != pictures[2]


@pytest.mark.parametrize(
    ("tag", "file"),
    [
        (",", "%2C"),
        ("/", "%2F"),
        ("``", "%60%60"),
        ("..", ".."),
        ("a b", "a%20b"),
        (":", "%3A"),
        ('<&">', "%3C%26%22%3E"),
        ("名", "%E5%90%8D"),
    ],
)
def test_any_tag_can_be_drawn(invoke: Invoke, tmp_path: Path, tag: str, file: str) -> None:
    row = "{}\tw{}\t_\tX\t{}\t_\t{}\t_\t_\t_\n"
    source, folder = tmp_path / "a.conllu", tmp_path / "out"
    folder.mkdir()
    source.write_text((row.format(1, 1, tag, 0) + row.format(2, 2, tag, 1) + "\n") * 6, encoding="utf-8")
    words = ("induce", source, "--states", 2, "--labels", "none", "-o", folder / "g.headway")
    invoke(*words, "--draw-automaton", f"{tag}:right")
    assert {path.name for path in folder.iterdir()} == {"g.headway", f"g.{file}-right.svg", f"g.{file}-right.dot"}
    assert f"{tag}, right modifiers" in "".join(ET.parse(folder / f"g.{file}-right.svg").getroot().itertext())


def test_automata_that_are_not_there(
    invoke: Invoke, model: Path, grammar: Path, test_file: Path, tmp_path: Path
) -> None:
    words = ("induce", test_file, "--model", grammar, "--draw-automaton")
    assert one_error(invoke(*words, "Q:left", status=1)) == "the grammar has no tag 'Q'; its tags are A, D, N, P, V"
    said = one_error(invoke("induce", test_file, "--model", model, "--draw-automaton", "N:left", status=1))
    assert said == f"{model}: the model has no automata with hidden states; models from headway induce have"
    missing = one_error(invoke("induce", test_file, "--model", tmp_path / "no", "--draw-automaton", "N:left", status=1))
    assert missing.startswith(f"{tmp_path / 'no'}: no such file")
    empty = invoke("induce", "-", "--model", grammar, "--draw-automaton", "N:left", stdin=b"", status=1)
    assert one_error(empty).startswith("there are no trees to see the automaton at work in")
    bare = b"1\ta\t_\t_\tN\t_\t_\t_\t_\t_\n\n"
    invoke("induce", "-", "--model", grammar, "--draw-automaton", "N:left", stdin=bare, status=1)
    assert sorted(path.suffix for path in grammar.parent.iterdir()) == [".headway"]


def test_a_tag_that_is_not_there_is_refused_before_anything_is_learnt(
    invoke: Invoke, train_file: Path, tmp_path: Path
) -> None:
    words = ("induce", train_file, "--states", 2, "--draw-automaton", "Q:left", "-o", tmp_path / "m")
    result = invoke(*words, status=1)
    cause = "no word has the tag 'Q', so its automaton cannot be drawn"
    assert result.stderr == f"headway: error: {train_file}: {cause}\n"
    assert not (tmp_path / "m").exists()


def test_standard_input_is_learnt_from_and_drawn(invoke: Invoke, train_file: Path, tmp_path: Path) -> None:
    words = ("--states", 2, "--labels", "none", "--draw-automaton", "N:left", "-o")
    invoke("induce", "-", *words, tmp_path / "a.headway", stdin=train_file.read_bytes())
    invoke("induce", train_file, *words, tmp_path / "b.headway")
    for suffix in (".svg", ".dot"):
        read, piped = ((tmp_path / f"{name}.N-left{suffix}").read_bytes() for name in "ab")
        assert read == piped


def test_pictures_that_cannot_be_written(invoke: Invoke, grammar: Path, test_file: Path, tmp_path: Path) -> None:
    model, taken = tmp_path / "g.headway", tmp_path / "g.N-left.svg"
    model.write_bytes(grammar.read_bytes())
    taken.mkdir()
    said = one_error(invoke("induce", test_file, "--model", model, "--draw-automaton", "N:left", status=1))
    assert said == f"{taken}: Is a directory"


# What is wrong


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give -o MODEL to learn a grammar, or --model MODEL to draw the automata of one"),
        (["-o", "m", "--model", "g"], "give -o MODEL to learn a grammar, or --model MODEL to draw the automata of one"),
        (["--model", "g"], "--model is for drawing; choose what to draw with --draw-automaton TAG:left"),
        (["-o", "m", "--method", "em", "--ridge", "1"], "ridge is for the method spectral; leave it out with em"),
        (["-o", "m", "--method", "det", "--context", "1"], "context is for the method spectral; leave it out with det"),
        (["-o", "m", "--iterations", "9"], "iterations is for the method em; leave it out with spectral"),
        (["-o", "m", "--method", "det", "--restarts", "2"], "restarts is for the method em; leave it out with det"),
        (
            ["-o", "m", "--method", "det", "--backed-off", "0.1"],
            "backed_off is for the method spectral or em; leave it out with det",
        ),
        (["-o", "m", "--draw-automaton", "N"], "--draw-automaton is 'N'; expected TAG:left or TAG:right"),
        (["-o", "m", "--draw-automaton", "N:up"], "--draw-automaton is 'N:up'; expected TAG:left or TAG:right"),
        (["-o", "m", "--draw-automaton", ":left"], "--draw-automaton is ':left'; expected TAG:left or TAG:right"),
        (["-o", "no/such/folder/m"], "the folder of no/such/folder/m does not exist; create it first"),
        (["-o", "-"], "a model cannot be written to -"),
        (["-o", "m", "--lexical", "LEX+X"], "Invalid value for '--lexical'"),
        (["-o", "m", "--method", "det", "--states", "3"], "3 states; det has 1 (DET) or 2 (DET+F)"),
        (["-o", "m", "--states", "65"], "65 states; spectral has 1 to 64"),
        (["-o", "m", "--backed-off", "1"], "backed_off is 1.0; expected 0 or more, and less than 1"),
        (["-o", "m", "--ridge", "inf"], "ridge is inf; expected 0 or more, and finite"),
    ],
)
def test_wrong_usage_is_said(
    invoke: Invoke, train_file: Path, tmp_path: Path, monkeypatch: Any, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in " ".join(invoke("induce", train_file, *words, status=2).stderr.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--context", "40"], "strings of 40 among 7 symbols are too many to number; take shorter ones"),
    ],
)
def test_settings_that_make_no_sense_are_said(
    invoke: Invoke, train_file: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    assert one_error(invoke("induce", train_file, *words, "-o", tmp_path / "m", status=1)) == said
    assert list(tmp_path.iterdir()) == []


def test_treebanks_that_cannot_be_learnt_from(invoke: Invoke, train_file: Path, tmp_path: Path) -> None:
    target = ("-o", tmp_path / "m")
    said = one_error(invoke("induce", "-", *target, stdin=b"", status=1))
    assert said == "-: has no sentence with words; there is nothing to learn from"
    said = one_error(invoke("induce", train_file, "--dev", "-", *target, stdin=b"", status=1))
    assert said == "-: has no sentence with words; there is nothing to learn from"
    assert "missing" in one_error(invoke("induce", tmp_path / "missing", *target, status=1))
    bare = b"1\ta\t_\t_\tN\t_\t_\t_\t_\t_\n\n"
    assert one_error(invoke("induce", "-", *target, stdin=bare, status=1)).startswith("standard input, line 1: ")
    assert list(tmp_path.iterdir()) == []
