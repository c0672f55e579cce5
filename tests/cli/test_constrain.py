"""`headway constrain`: rules and tagged text make a model, what is wrong with them is said, explanations are right."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headway
from headway.evaluation import evaluate
from headway.features.rules import Rules, parse_rules, read_rules, rules_from_trees
from headway.learning.monitor import Progress, Show
from headway.parsed import Parsed
from headway.pipeline import Parser
from headway.training.settings import Settings
from headway.treebank import read_treebank, write_treebank
from tests.cli import toy
from tests.cli.conftest import Invoke, one_error
from tests.models.model_parts import weights_of

RULES = """\
[[rule]]
head = "NOUN"
modifier = ["DET", "ADJ"]
direction = "left"
distance = [1, 3]
target = 0.95

[[rule]]
name = "verbs are the root"
head = "ROOT"
modifier = "VERB"
target = [0.9, 1.0]

[[rule]]
name = "on verbs"
head = "VERB"
modifier = ["NOUN", "PUNCT"]
target = 0.95
"""
NAMES = ["DET/ADJ left of NOUN, 1 to 3 words away", "verbs are the root", "on verbs"]
GOLD = ("--tags", "gold")


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rules") / "rules.toml"
    path.write_text(RULES, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def text_file(tmp_path_factory: pytest.TempPathFactory, train_file: Path) -> Path:
    """The training sentences without their trees."""
    path = tmp_path_factory.mktemp("text") / "text.conllu"
    lines = train_file.read_text("utf-8").splitlines()
    path.write_text("".join(f"{_without_tree(line)}\n" for line in lines), encoding="utf-8")
    return path


def _without_tree(line: str) -> str:
    cells = line.split("\t")
    return "\t".join([*cells[:6], "_", "_", *cells[8:]]) if len(cells) == 10 else line


@pytest.fixture(scope="module")
def ruled(tmp_path_factory: pytest.TempPathFactory, invoke: Invoke, rules: Path, text_file: Path) -> Path:
    """A model learnt from the rules."""
    path = tmp_path_factory.mktemp("models") / "ruled.headway"
    invoke("constrain", rules, text_file, *GOLD, "-o", path)
    return path


def test_from_rules_to_parsed_sentences(
    invoke: Invoke, rules: Path, text_file: Path, test_file: Path, tmp_path: Path
) -> None:
    model, parsed = tmp_path / "m.headway", tmp_path / "parsed.conllu"
    done = invoke("constrain", rules, text_file, *GOLD, "-o", model)
    first, second = done.stdout.splitlines()
    assert first.startswith(
        f"{model}: arc model, constraints, 3 rules, C {Settings(learner='constraints').complete().c:g}, pass "
    )
    assert second.startswith(f"headway {headway.__version__}, seed 0, 40 sentences sha256 ")
    assert done.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == ["m.headway"]
    invoke("parse", model, test_file, "-o", parsed)
    chain = tmp_path / "chain.conllu"  # every word on the next one, what a parser without rules must beat
    trees = read_treebank(test_file)
    write_treebank((s.with_tree([-1, *range(2, len(s) + 1), 0]) for s in trees), chain)
    assert evaluate(test_file, parsed).uas > evaluate(test_file, chain).uas + 20
    assert evaluate(test_file, parsed).uas > 85


def test_heads_in_the_text_are_ignored(
    invoke: Invoke, rules: Path, train_file: Path, ruled: Path, tmp_path: Path
) -> None:
    invoke("constrain", rules, train_file, *GOLD, "-o", tmp_path / "m")
    assert np.array_equal(weights_of(Parser.load(tmp_path / "m").model), weights_of(Parser.load(ruled).model))


def test_text_from_standard_input(invoke: Invoke, rules: Path, text_file: Path, ruled: Path, tmp_path: Path) -> None:
    data = gzip.compress(text_file.read_bytes())
    invoke("constrain", rules, "-", *GOLD, "-o", tmp_path / "m", stdin=data)
    assert np.array_equal(weights_of(Parser.load(tmp_path / "m").model), weights_of(Parser.load(ruled).model))


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("", {}),
        ("--criterion squared --c 7 --epochs 5", {"criterion": "squared", "c": 7.0, "epochs": 5}),
        ("--projective --multi-root --tags predicted", {"projective": True, "single_root": False, "tags": "predicted"}),
        (
            "--templates mcdonald2005 --clusters paths.txt --patience 3 --seed 9",
            {"templates": "mcdonald2005", "clusters": "paths.txt", "patience": 3, "seed": 9},
        ),
    ],
)
def test_settings_reach_the_trainer(
    invoke: Invoke,
    monkeypatch: Any,
    rules: Path,
    text_file: Path,
    test_file: Path,
    tmp_path: Path,
    words: str,
    changed: dict[str, Any],
) -> None:
    given: dict[str, Any] = {}

    def constrain(cls: Any, /, *args: Any, **keywords: Any) -> Parser:
        given.update(keywords, args=args)
        raise KeyboardInterrupt

    monkeypatch.setattr(Parser, "constrain", classmethod(constrain))
    monkeypatch.chdir(tmp_path)
    Path("paths.txt").write_text("01\tdog\n", encoding="utf-8")
    options = ("--dev", test_file, "--threads", 2, "-o", tmp_path / "m")
    invoke("constrain", rules, text_file, *options, *words.split(), status=130)
    told, text, dev = given.pop("args")
    assert told == read_rules(rules)
    for found, file in ((text, text_file), (dev, test_file)):
        assert [sentence.to_conllu() for sentence in found] == [s.to_conllu() for s in read_treebank(file)]
    others = ("threads", "checkpoint", "show", "workers")
    assert [given.pop(name) for name in others] == [2, tmp_path / "m.checkpoint", None, None]
    base = {"learner": "constraints", "labels": "none"}  # as Parser.constrain adds them
    chosen = Settings(**{**base, **given}).complete()
    expected = Settings(**{**base, "templates": "rules", "tags": "gold", **changed}).complete()
    assert chosen == expected


def test_the_best_pass_on_development_data(
    invoke: Invoke, rules: Path, text_file: Path, test_file: Path, tmp_path: Path
) -> None:
    done = invoke("constrain", rules, text_file, *GOLD, "--dev", test_file, "--epochs", 8, "-o", tmp_path / "m")
    about = Parser.load(tmp_path / "m").model.about
    scores = {entry["pass"]: entry["dev"] for entry in about["history"]}
    assert scores[about["best_pass"]] == max(scores.values())
    assert f"pass {about['best_pass']} of 8, dev UAS {max(scores.values()):.2f} without punctuation" in done.stdout


# Rules


def test_rules_that_come_with_headway(invoke: Invoke, text_file: Path, tmp_path: Path) -> None:
    written = tmp_path / "rules.toml"
    done = invoke(
        "constrain", "universal", text_file, *GOLD, "--epochs", 3, "--rules-out", written, "-o", tmp_path / "m"
    )
    universal = read_rules("universal")
    assert f", {len(universal)} rules, " in done.stdout
    assert parse_rules(written.read_text("utf-8")) == universal
    assert parse_rules(Parser.load(tmp_path / "m").model.about["rules"]) == universal


@pytest.mark.parametrize("suffix", ["conllu", "conllu.gz", "conll"])
def test_rules_from_a_few_trees(invoke: Invoke, text_file: Path, tmp_path: Path, suffix: str) -> None:
    """What is written can be used, and edited, as it is."""
    few, written = tmp_path / f"few.{suffix}", tmp_path / "rules.toml"
    data = toy.treebank(10, seed=7, comments=False).encode()
    few.write_bytes(gzip.compress(data) if suffix.endswith("gz") else data)
    invoke("constrain", few, text_file, *GOLD, "--epochs", 4, "--rules-out", written, "-o", tmp_path / "by trees")
    right = rules_from_trees(read_treebank(few))
    assert parse_rules(written.read_text("utf-8")) == right
    assert all(0 < rule.target[0] < 1 for rule in right.rules)
    invoke("constrain", written, text_file, *GOLD, "--epochs", 4, "-o", tmp_path / "by rules")
    models = [weights_of(Parser.load(tmp_path / name).model) for name in ("by trees", "by rules")]
    assert np.array_equal(models[0], models[1])


def test_rules_that_cannot_be_read(invoke: Invoke, text_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    words = ("constrain", path, text_file, "-o", tmp_path / "m")
    for text, said in (
        (RULES.replace("0.95", "1.5", 1), f"{path}, line 6: rule 1"),
        (RULES.replace("modifier =", "modifer =", 1), f"{path}, line 3: rule 1"),
        ("[[rule]\n", f"{path}, line 1: "),
        ("", f"{path}: there is no rule"),
    ):
        path.write_text(text, encoding="utf-8")
        assert one_error(invoke(*words, status=1)).startswith(said)
    missing = tmp_path / "missing.toml"
    assert str(missing) in one_error(invoke("constrain", missing, text_file, "-o", tmp_path / "m", status=1))
    missing = tmp_path / "missing.conllu"
    assert str(missing) in one_error(invoke("constrain", missing, text_file, "-o", tmp_path / "m", status=1))
    said = one_error(invoke("constrain", text_file, text_file, "-o", tmp_path / "m", status=1))
    assert said.startswith(f"{text_file}, line 1: ")  # it has no trees
    assert [path.name for path in tmp_path.iterdir()] == ["bad.toml"]


def test_rules_that_do_not_fit_the_text_are_warned_of(invoke: Invoke, text_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    odd = '\n[[rule]]\nname = "odd"\nhead = "NUON"\nmodifier = "DET"\ntarget = 0.9\n'
    far = '\n[[rule]]\nhead = "VERB"\nmodifier = "PUNCT"\ndirection = "left"\ntarget = 0.9\n'
    path.write_text(RULES + odd + far, encoding="utf-8")
    done = invoke("constrain", path, text_file, *GOLD, "--epochs", 2, "-o", tmp_path / "m")
    first, second = done.stderr.splitlines()
    line = RULES.count("\n") + 2
    assert first.startswith(f'headway: warning: {path}, line {line}: rule "odd" matches nothing')
    assert "NUON (did you mean NOUN?)" in first
    assert second.startswith(f'headway: warning: {path}, line {line + 6}: rule "PUNCT left of VERB" matches nothing')
    assert ", 5 rules, " in done.stdout
    explained = invoke("constrain", path, text_file, "--model", tmp_path / "m")
    assert explained.stderr == done.stderr
    assert ["odd", "0.9", "-", "0", "unmatched"] in [row.split() for row in explained.stdout.splitlines()]


def test_rules_none_of_which_matches(invoke: Invoke, text_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text('[[rule]]\nhead = "X"\nmodifier = "Y"\ntarget = 0.5\n', encoding="utf-8")
    warning, error = invoke("constrain", path, text_file, *GOLD, "-o", tmp_path / "m", status=1).stderr.splitlines()
    assert warning.startswith(f'headway: warning: {path}, line 1: rule "Y on X" matches nothing')
    assert error.startswith(f"headway: error: {path}: no rule matches anything")
    assert not (tmp_path / "m").exists()


# The text


def test_words_without_tags(invoke: Invoke, rules: Path, ruled: Path, tmp_path: Path) -> None:
    text = tmp_path / "words.conllu"
    text.write_text("1\tDogs\t_\t_\t_\t_\t_\t_\t_\t_\n2\tbark\t_\t_\t_\t_\t_\t_\t_\t_\n\n", encoding="utf-8")
    for options in (("-o", tmp_path / "m"), ("--model", ruled)):
        said = one_error(invoke("constrain", rules, text, *options, status=1))
        assert said.startswith(f"{text}: the words have no upos tags")
        assert f"headway parse en {text}" in said
    assert one_error(
        invoke("constrain", rules, "-", "-o", tmp_path / "m", stdin=text.read_bytes(), status=1)
    ).startswith("standard input: the words have no upos tags")


def test_language_specific_tags(invoke: Invoke, tmp_path: Path) -> None:
    """Rules about xpos need no upos; where words have upos only, that stands for xpos."""
    path, text = tmp_path / "rules.toml", tmp_path / "text.conllu"
    path.write_text('tags = "xpos"\n[[rule]]\nhead = "V"\nmodifier = "N"\ntarget = 0.9\n', encoding="utf-8")
    for upos, xpos in (("_", "N V"), ("N V", "_")):
        first, second = (tags.split() * 2 for tags in (upos, xpos))
        rows = [f"{i + 1}\tw{i}\t_\t{first[i]}\t{second[i]}\t_\t_\t_\t_\t_\n" for i in range(2)]
        text.write_text("".join(rows) + "\n", encoding="utf-8")
        words = (*GOLD, "--templates", "mcdonald2005", "--epochs", 2)
        done = invoke("constrain", path, text, *words, "-o", tmp_path / "m")
        assert done.stderr == ""
    text.write_text("".join(rows).replace("\tN\t", "\t_\t").replace("\tV\t", "\t_\t") + "\n", encoding="utf-8")
    said = one_error(invoke("constrain", path, text, "-o", tmp_path / "m2", status=1))
    assert said.startswith(f"{text}: the words have no xpos tags")


def test_no_text(invoke: Invoke, rules: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.conllu"
    empty.write_bytes(b"")
    assert one_error(invoke("constrain", rules, empty, "-o", tmp_path / "m", status=1)).startswith(f"{empty}: ")
    missing = tmp_path / "missing.conllu"
    assert str(missing) in one_error(invoke("constrain", rules, missing, "-o", tmp_path / "m", status=1))


# Explanations


def naive(parsed: list[Parsed]) -> dict[str, list[float]]:
    """The share of every unit of the three rules, by loops over the marginals and tags."""
    shares: dict[str, list[float]] = {name: [] for name in NAMES}
    for one in parsed:
        tags, mu = ("ROOT", *one.sentence.upos), one.marginals
        nodes = range(len(tags))
        if "VERB" in tags:
            shares[NAMES[1]].append(sum(float(mu[0, m]) for m in nodes if tags[m] == "VERB"))
        for m in nodes:
            nouns = [h for h in nodes if tags[h] == "NOUN" and 1 <= h - m <= 3]
            verbs = [h for h in nodes if tags[h] == "VERB" and h != m]
            if tags[m] in ("DET", "ADJ") and nouns:
                shares[NAMES[0]].append(sum(float(mu[h, m]) for h in nouns))
            if tags[m] in ("NOUN", "PUNCT") and verbs:
                shares[NAMES[2]].append(sum(float(mu[h, m]) for h in verbs))
    return shares


@pytest.mark.parametrize("kind", ["ruled", "random"])
def test_expectations_are_those_of_loops_over_the_marginals(
    invoke: Invoke, rules: Path, test_file: Path, ruled: Path, random_model: Path, kind: str
) -> None:
    model = ruled if kind == "ruled" else random_model
    right = naive(list(Parser.load(model).parse(read_treebank(test_file))))
    found = json.loads(invoke("constrain", rules, test_file, "--model", model, "--json", "--examples", 2).stdout)
    assert found["model"] == str(model)
    assert [each["name"] for each in found["rules"]] == NAMES
    assert [each["line"] for each in found["rules"]] == [1, 8, 14]
    assert [each["target"] for each in found["rules"]] == [[0.95, 0.95], [0.9, 1.0], [0.95, 0.95]]
    rows = invoke("constrain", rules, test_file, "--model", model).stdout.splitlines()
    assert rows[0].split() == ["rule", "target", "expectation", "units"]
    for each, row, target in zip(found["rules"], rows[1:4], ("0.95", "0.9..1", "0.95"), strict=True):
        shares = right[each["name"]]
        mean = sum(shares) / len(shares)
        assert each["units"] == len(shares)
        assert each["expectation"] == pytest.approx(mean, rel=1e-9)
        low, high = each["target"]
        assert each["state"] == ("below" if mean < low - 0.01 else "above" if mean > high + 0.01 else "met")
        assert row.split()[-4:] == [target, f"{mean:.3f}", str(len(shares)), each["state"]]
        assert [example["share"] for example in each["examples"]] == sorted(
            example["share"] for example in each["examples"]
        )
        if kind == "random":
            assert each["examples"][0]["share"] == pytest.approx(min(shares), abs=1e-8)
            assert len(each["examples"]) == 2
    if kind == "random":
        assert {each["state"] for each in found["rules"]} == {"below"}
    files = {str(path): hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in (model, rules, test_file)}
    assert found["signature"] == {"headway": headway.__version__, "seed": None, "options": {}, "data": files}
    assert rows[-1] == ", ".join(
        [f"headway {headway.__version__}", *(f"{name} sha256 {checksum}" for name, checksum in files.items())]
    )


def test_examples_name_word_and_head(invoke: Invoke, rules: Path, test_file: Path, random_model: Path) -> None:
    words = ("constrain", rules, test_file, "--model", random_model, "--examples", 4)
    found = json.loads(invoke(*words, "--json").stdout)["rules"]
    text = invoke(*words).stdout
    trees = {
        s.place.line: one for one in Parser.load(random_model).parse(read_treebank(test_file)) for s in [one.sentence]
    }
    blocks = {block.splitlines()[0]: block.splitlines()[1:] for block in text.split("\n\n")}
    for each in found:
        lines = blocks[f"{each['name']}: {each['state']}"]
        assert len(lines) == len({example["line"] for example in each["examples"]}) == 4
        for example, line in zip(each["examples"], lines, strict=True):
            one = trees[example["line"]]
            assert example["source"] == str(test_file)
            assert tuple(example["forms"]) == one.sentence.forms
            assert example["head"] == one.heads[example["word"]]
            word = example["forms"][example["word"] - 1]
            head = example["forms"][example["head"] - 1] if example["head"] else "ROOT"
            start, _, rest = line.partition(": ")
            assert start == f"  {example['share']:.3f}  {word} <- {head}"
            shown = rest.split()
            middle = shown.index(f"[{word}]")
            before, after = example["forms"][: example["word"] - 1], example["forms"][example["word"] :]
            assert shown[:middle] == (before if len(before) <= 6 else ["...", *before[-6:]])
            assert shown[middle + 1 :] == (after if len(after) <= 6 else [*after[:6], "..."])


def test_training_and_explaining_at_once(
    invoke: Invoke, rules: Path, text_file: Path, ruled: Path, tmp_path: Path
) -> None:
    words = ("constrain", rules, text_file, *GOLD, "--explain", "-o", tmp_path / "m")
    text = invoke(*words).stdout
    alone = invoke("constrain", rules, text_file, "--model", tmp_path / "m").stdout
    first, second, _, *rest = text.splitlines()
    assert first.startswith(f"{tmp_path / 'm'}: arc model, constraints, 3 rules, ")
    assert second.startswith("headway ")
    assert rest == alone.splitlines()[:-2]
    found = json.loads(invoke(*words, "--json").stdout)
    assert found["model"] == str(tmp_path / "m")
    assert (found["signature"]["seed"], found["signature"]["options"]["tags"]) == (0, "gold")
    for each, row in zip(found["rules"], rest[1:4], strict=True):
        assert f"{each['expectation']:.3f}" in row.split()
        assert abs(each["expectation"] - each["target"][0]) < 0.1  # it learnt from them


def test_only_rules_that_are_not_met_have_examples_if_there_are_many(
    invoke: Invoke, test_file: Path, random_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "rules.toml"
    words = ("constrain", path, test_file, "--model", random_model)
    one = '[[rule]]\nname = "one"\nhead = "NOUN"\nmodifier = "DET"\ndirection = "left"\ntarget = '
    path.write_text(f"{one}[0, 1]\n", encoding="utf-8")
    (rule,) = json.loads(invoke(*words, "--json").stdout)["rules"]
    path.write_text(f"{one}[{rule['expectation']}, 1]\n", encoding="utf-8")
    assert "\n\none: met\n  0." in invoke(*words).stdout  # the only one

    path.write_text(f"{path.read_text('utf-8')}\n{_without_tags_line(read_rules('universal'))}", encoding="utf-8")
    found = json.loads(invoke(*words, "--json").stdout)["rules"]
    text = invoke(*words).stdout
    assert {each["state"] for each in found} == {"met", "below", "above", "unmatched"}
    assert found[0]["examples"]
    for each in found:
        assert (f"\n\n{each['name']}: " in text) == (each["state"] in ("below", "above"))
    assert "<-" not in invoke(*words, "--examples", 0).stdout


def _without_tags_line(rules: Rules) -> str:
    return rules.to_toml().partition("\n")[2]


def test_a_higher_order_model_is_explained_by_its_probabilities(
    invoke: Invoke, rules: Path, test_file: Path, higher_order: Path
) -> None:
    found = json.loads(invoke("constrain", rules, test_file, "--model", higher_order, "--json").stdout)["rules"]
    on_verbs = next(rule for rule in found if rule["name"] == "on verbs")
    shares = []
    for parsed in Parser.load(higher_order).parse(read_treebank(test_file)):
        verbs = [m for m, tag in enumerate(parsed.sentence.upos, start=1) if tag == "VERB"]
        units = [m for m, tag in enumerate(parsed.sentence.upos, start=1) if tag in ("NOUN", "PUNCT")]
        shares += [parsed.marginals[verbs, m].sum() for m in units]
    assert (on_verbs["units"], on_verbs["expectation"]) == (len(shares), pytest.approx(np.mean(shares)))
    missing = one_error(invoke("constrain", rules, test_file, "--model", "missing.headway", status=1))
    assert missing.startswith("missing.headway: no such file")


def test_control_characters_stay_out_of_the_terminal(invoke: Invoke, ruled: Path, tmp_path: Path) -> None:
    text = "1\tDogs\x1b[2J\t_\tNOUN\t_\t_\t_\t_\t_\t_\n2\tbark\t_\tVERB\t_\t_\t_\t_\t_\t_\n\n"
    path = tmp_path / "rules.toml"
    path.write_text('[[rule]]\nhead = "VERB"\nmodifier = "NOUN"\ntarget = 0\n', encoding="utf-8")
    shown = invoke("constrain", path, "-", "--model", ruled, stdin=text.encode()).stdout
    assert "Dogs\\x1b[2J <- bark" in shown
    assert "\x1b" not in shown


# The model


def test_info_counts_the_rules(invoke: Invoke, ruled: Path) -> None:
    rows = [line.split() for line in invoke("info", ruled, "--all").stdout.splitlines()]
    assert ["rules", "3"] in rows
    assert ["settings.learner", "constraints"] in rows
    assert parse_rules(json.loads(invoke("info", ruled, "--json").stdout)["about"]["rules"]) == parse_rules(RULES)


def test_a_tagger_is_learnt_from_the_text(invoke: Invoke, rules: Path, text_file: Path, tmp_path: Path) -> None:
    """Where that is asked for, so that the parser can be given words alone."""
    invoke("constrain", rules, text_file, "--tags", "predicted", "--epochs", 30, "-o", tmp_path / "m")
    parsed = Parser.load(tmp_path / "m").parse(["la", "hundo", "vidas", "un", "kato", "."])
    assert parsed.sentence.upos == ("DET", "NOUN", "VERB", "DET", "NOUN", "PUNCT")
    assert parsed.heads.tolist() == [-1, 2, 3, 0, 5, 3, 3]


# Ctrl-C


@contextmanager
def _interrupting(passes: int) -> Iterator[Show]:
    def show(progress: Progress) -> None:
        if progress.stage == "tree" and progress.number == passes + 1:
            raise KeyboardInterrupt

    yield show


@contextmanager
def _watching(passes: list[int]) -> Iterator[Show]:
    yield lambda progress: passes.append(progress.number)


def test_ctrl_c_and_the_same_command_again(
    invoke: Invoke, monkeypatch: Any, rules: Path, text_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "m"
    words = ["constrain", rules, text_file, *GOLD, "--epochs", 6, "-o", path]
    with monkeypatch.context() as patch:
        patch.setattr("headway.learning.monitor.CHECKPOINT_SECONDS", -1.0)
        patch.setattr("headway.cli.train.training_progress", lambda: _interrupting(3))
        result = invoke(*words, status=130)
    checkpoint = tmp_path / "m.checkpoint"
    assert result.stdout == ""
    assert result.stderr.strip() == (f"headway: interrupted; the same command resumes from the checkpoint {checkpoint}")
    assert [path.name for path in tmp_path.iterdir()] == ["m.checkpoint"]
    passes: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr("headway.cli.train.training_progress", lambda: _watching(passes))
        invoke(*words)
    assert passes == [4, 5, 6]
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_ctrl_c_before_the_first_checkpoint(
    invoke: Invoke, monkeypatch: Any, rules: Path, text_file: Path, tmp_path: Path
) -> None:
    def interrupt(*args: Any, **keywords: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("headway.learning.generalized_expectation.GeneralizedExpectation.fit", interrupt)
    monkeypatch.setattr("headway.text.segmenter.Segmenter.learn", interrupt)
    result = invoke("constrain", rules, text_file, *GOLD, "-o", tmp_path / "m", status=130)
    assert result.stderr.strip() == "headway: interrupted; there is no checkpoint yet, so the same command starts over"
    assert list(tmp_path.iterdir()) == []
