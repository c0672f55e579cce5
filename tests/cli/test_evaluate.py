"""`headway evaluate`: the figures of headway.evaluation, with their signature."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import headway
from headway.evaluation import (
    bootstrap_intervals,
    evaluate,
    evaluate_conll2018,
    paired_bootstrap,
    sign_test,
)
from tests.cli.conftest import Invoke, one_error


@pytest.fixture(scope="module")
def predicted(invoke: Invoke, random_model: Path, test_file: Path) -> Path:
    path = test_file.with_name("predicted.conllu")
    invoke("parse", random_model, test_file, "-o", path)
    return path


@pytest.fixture(scope="module")
def second(invoke: Invoke, random_model: Path, test_file: Path) -> Path:
    path = test_file.with_name("second.conllu")
    invoke("parse", random_model, test_file, "--projective", "-o", path)
    return path


def checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def report(invoke: Invoke, *words: Any, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(invoke("evaluate", *words, "--json", **options).stdout)
    return found


def test_json_has_every_figure_and_the_signature(invoke: Invoke, test_file: Path, predicted: Path) -> None:
    found = report(invoke, test_file, predicted, "--seed", 3)
    scores = evaluate(test_file, predicted)
    assert 5 < scores.uas < 80
    intervals = {name: dataclasses.asdict(each) for name, each in bootstrap_intervals(scores, rng=3).items()}
    assert found == {
        "signature": {
            "headway": headway.__version__,
            "seed": 3,
            "options": {"conll2018": False},
            "data": {str(test_file): checksum(test_file), str(predicted): checksum(predicted)},
        },
        "scores": {"file": str(predicted), **scores.to_dict(), "intervals": intervals},
    }


def test_text_has_the_figures_and_the_signature(invoke: Invoke, test_file: Path, predicted: Path) -> None:
    text = invoke("evaluate", test_file, predicted).stdout
    scores = evaluate(test_file, predicted)
    intervals = bootstrap_intervals(scores, rng=0)
    lines = {line[:44].strip(): line[44:].split() for line in text.splitlines()[2:14]}
    for title, name in {"UAS": "uas", "LAS": "las", "LAS without punctuation": "las_no_punct"}.items():
        low, high = f"{intervals[name].low:.2f}", f"{intervals[name].high:.2f}"
        assert lines[title] == [f"{getattr(scores, name):.2f}", low, "to", high]
    assert lines["exact trees"] == [f"{scores.exact:.2f}"]
    assert lines["label accuracy"] == [f"{scores.label_accuracy:.2f}"]
    rows = [line.split() for line in text.splitlines()]
    for row in (*scores.by_label, *scores.by_distance):
        shares = (row.uas, row.las, row.precision, row.recall, row.f1)
        assert [row.name, str(row.count), str(row.predicted), *(f"{share:.2f}" for share in shares)] in rows
    for length in scores.by_length:
        assert [length.name, str(length.sentences), str(length.count), f"{length.uas:.2f}", f"{length.las:.2f}"] in rows
    assert text.endswith(
        f"headway {headway.__version__}, seed 0, {test_file} sha256 {checksum(test_file)}, "
        f"{predicted} sha256 {checksum(predicted)}\n"
    )


def test_two_parsers_beside_each_other(invoke: Invoke, test_file: Path, predicted: Path, second: Path) -> None:
    found = report(invoke, test_file, predicted, second, "--seed", 2)
    a, b = evaluate(test_file, predicted), evaluate(test_file, second)
    assert a.uas != b.uas
    assert (found["scores"]["uas"], found["second"]["uas"]) == (a.uas, b.uas)
    assert set(found["comparison"]) == {"uas", "las", "uas_no_punct", "las_no_punct"}
    one, other = a.per_sentence_no_punct, b.per_sentence_no_punct
    for name, right, wrong in (("uas_no_punct", one.heads, other.heads), ("las_no_punct", one.arcs, other.arcs)):
        assert found["comparison"][name] == {
            "sign_test": dataclasses.asdict(sign_test(right, wrong)),
            "paired_bootstrap": dataclasses.asdict(paired_bootstrap(right, wrong, one.words, rng=2)),
        }
    every, others = a.per_sentence, b.per_sentence
    assert found["comparison"]["uas"]["sign_test"] == dataclasses.asdict(sign_test(every.heads, others.heads))
    assert found["comparison"]["las"]["sign_test"] == dataclasses.asdict(sign_test(every.arcs, others.arcs))
    assert set(found["signature"]["data"]) == {str(test_file), str(predicted), str(second)}


def test_text_of_two_parsers(invoke: Invoke, test_file: Path, predicted: Path, second: Path) -> None:
    text = invoke("evaluate", test_file, predicted, second).stdout
    a, b = evaluate(test_file, predicted), evaluate(test_file, second)
    assert f"A: {predicted}\nB: {second}\n" in text
    rows = [line.split() for line in text.splitlines()]
    uas = next(row for row in rows if row[:1] == ["UAS"])
    assert (uas[1], uas[5]) == (f"{a.uas:.2f}", f"{b.uas:.2f}")
    sign = sign_test(a.per_sentence_no_punct.heads, b.per_sentence_no_punct.heads)
    difference = next(row for row in rows if row[:3] == ["UAS", "without", "punctuation"] and row[3][0] in "+-")
    assert difference[3] == f"{a.uas_no_punct - b.uas_no_punct:+.2f}"
    assert difference[-4:] == [str(sign.wins), str(sign.losses), str(sign.ties), f"{sign.p_value:.4g}"]
    labels = [line.split() for line in text.partition("by label")[2].partition("by distance")[0].splitlines()]
    for row in a.by_label:
        twin = next(each for each in b.by_label if each.name == row.name)
        (line,) = (each for each in labels if each[:1] == [row.name])
        assert (line[3], line[9]) == (f"{row.uas:.2f}", f"{twin.uas:.2f}")


def test_a_label_only_one_parser_uses(invoke: Invoke, test_file: Path, predicted: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.conllu"
    other.write_text(predicted.read_text("utf-8").replace("\tdet\t", "\tx\x1b[2J\t"), encoding="utf-8")
    text = invoke("evaluate", test_file, predicted, other).stdout
    assert "\x1b" not in text
    (line,) = (line for line in text.splitlines() if line.startswith("x\\x1b[2J"))
    assert len(line.split()) == 2 + 6


def test_the_seed_decides_the_resamples(invoke: Invoke, test_file: Path, predicted: Path) -> None:
    first, again, other = (report(invoke, test_file, predicted, "--seed", seed) for seed in (1, 1, 2))
    assert first == again
    assert first["scores"]["intervals"] != other["scores"]["intervals"]
    assert first["scores"]["uas"] == other["scores"]["uas"]


def test_a_treebank_of_punctuation(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "stops.conllu"
    path.write_text("1\t.\t_\t_\t_\t_\t0\troot\t_\t_\n\n", encoding="utf-8")
    found = report(invoke, path, path, path)
    assert set(found["comparison"]) == {"uas", "las"}
    assert "0 without punctuation" in invoke("evaluate", path, path, path).stdout


@pytest.mark.parametrize("place", [0, 1, 2])
def test_standard_input_and_compression(
    invoke: Invoke, test_file: Path, predicted: Path, second: Path, tmp_path: Path, place: int
) -> None:
    files = [test_file, predicted, second]
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(files[place].read_bytes()))
    expected = report(invoke, *files)
    standard = report(invoke, *files[:place], "-", *files[place + 1 :], stdin=packed.read_bytes())
    unpacked = report(invoke, *files[:place], packed, *files[place + 1 :])
    for found in (standard, unpacked):
        assert found["comparison"] == expected["comparison"]
        assert checksum(packed) in found["signature"]["data"].values()
    assert standard["signature"]["data"]["standard input"] == checksum(packed)


def test_conll2018(invoke: Invoke, test_file: Path, predicted: Path, second: Path, tmp_path: Path) -> None:
    joined = tmp_path / "joined.conllu"
    joined.write_text("1\tcannot\t_\t_\t_\t_\t2\taux\t_\t_\n2\tgo\t_\t_\t_\t_\t0\troot\t_\t_\n\n", encoding="utf-8")
    split = tmp_path / "split.conllu"
    split.write_text(
        "1\tcan\t_\t_\t_\t_\t3\taux\t_\t_\n2\tnot\t_\t_\t_\t_\t3\tadvmod\t_\t_\n3\tgo\t_\t_\t_\t_\t0\troot\t_\t_\n\n",
        encoding="utf-8",
    )
    found = report(invoke, split, joined, "--conll2018")
    assert found["scores"] == evaluate_conll2018(split, joined).to_dict()
    assert found["signature"]["seed"] is None
    assert "second" not in found
    both = report(invoke, test_file, predicted, second, "--conll2018")
    assert both["scores"] == evaluate_conll2018(test_file, predicted).to_dict()
    assert both["second"] == evaluate_conll2018(test_file, second).to_dict()
    lines = invoke("evaluate", split, joined, "--conll2018").stdout.splitlines()
    assert ["LAS", "50.00", "33.33", "40.00", "1", "3", "2"] in [line.split() for line in lines]


def test_files_that_cannot_be_compared(invoke: Invoke, test_file: Path, train_file: Path, tmp_path: Path) -> None:
    assert str(test_file) in one_error(invoke("evaluate", test_file, train_file, status=1))
    missing = tmp_path / "missing.conllu"
    sentence = one_error(invoke("evaluate", missing, test_file, status=1))
    assert sentence == f"{missing}: the file cannot be opened (No such file or directory); check its name"
    damaged = tmp_path / "damaged.conllu.gz"
    damaged.write_bytes(gzip.compress(test_file.read_bytes())[:-20])
    assert one_error(invoke("evaluate", test_file, damaged, status=1)).startswith(f"{damaged}, line ")
    differs = one_error(invoke("evaluate", test_file, train_file, status=1))
    assert differs.endswith(
        "; give two files of the same words, or score words that differ with --conll2018 (evaluate_conll2018)"
    )


@pytest.mark.parametrize("options", [[], ["--json"], ["--conll2018"]])
def test_heads_that_are_no_tree_have_no_score(invoke: Invoke, tmp_path: Path, options: list[str]) -> None:
    def write(name: str, *heads: int) -> Path:
        rows = [f"{m}\tw{m}\t_\t_\t_\t_\t{head}\tx\t_\t_" for m, head in enumerate(heads, 1)]
        path = tmp_path / name
        path.write_text("\n".join(["1\tfine\t_\t_\t_\t_\t0\tx\t_\t_", "", *rows, "", ""]), encoding="utf-8")
        return path

    tree, cyclic = write("tree.conllu", 0, 1, 1), write("cyclic.conllu", 0, 3, 2)
    rootless = write("rootless.conllu", 2, 3, 1)
    invoke("evaluate", tree, tree, *options)
    for files, wrong in (((tree, cyclic), cyclic), ((cyclic, tree), cyclic), ((rootless, rootless), rootless)):
        said = one_error(invoke("evaluate", *files, *options, status=1))
        assert said.startswith(f"{wrong}, line 3: the heads form a cycle, ")
        assert said.endswith("; let every word reach the root")
