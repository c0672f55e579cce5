"""Latent-tree coreference: what is chosen on which documents, what is scored, and that nothing is computed twice."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from headway import Parser
from headway.coreference import read_documents
from headway.coreference.resolver import Resolver
from headway.coreference.scores import CoreferenceScores, evaluate_coreference
from headway.errors import TreebankError
from headway_papers import coreference_end_to_end as end_to_end
from headway_papers import fernandes2012_coreference as experiment
from tests.cli import toy_coref

MARGINS, ROOT_WEIGHTS = (3.0, 10.0, 30.0, 100.0), (1.0, 0.5, 1.5, 2.0, 3.0)
REPOSITORY = Path(__file__).resolve().parents[2]
LEARNT: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {  # settings of each row, and what is chosen for it
    "closest antecedents, no margin": ({"tree": "closest", "margin": 0.0}, ()),
    "closest antecedents": ({"tree": "closest"}, ("margin",)),
    "closest antecedents, root weight": ({"tree": "closest"}, ("margin", "root_weight")),
    "closest antecedents, log-linear": ({"tree": "closest", "temperature": 30.0}, ("margin",)),
    "closest antecedents, log-linear, clusters": (
        {"tree": "closest", "temperature": 30.0, "clusters": True},
        ("margin",),
    ),
    "latent tree, no margin": ({"margin": 0.0}, ()),
    "latent tree": ({}, ("margin",)),
    "latent tree, root weight": ({}, ("margin", "root_weight")),
    "latent tree, whole documents": ({"stretch": 0}, ("margin",)),
    "latent tree, log-linear": ({"temperature": 30.0}, ("margin",)),
    "latent tree, log-linear, clusters": ({"temperature": 30.0, "clusters": True}, ("margin",)),
    "latent tree, log-linear, entity types given": ({"temperature": 30.0, "types": True}, ("margin",)),
}
BASELINES = ("all singletons", "one cluster", "head match")
METRICS = ("muc", "b_cubed", "ceaf_e", "blanc", "lea")
USED = 4  # documents of each file
SEED = {"train": 1, "dev": 2, "test": 3}

Clusters = list[frozenset[Any]]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five documents in each file; a quick run takes four of them."""
    folder = tmp_path_factory.mktemp("gum")
    for name, seed in SEED.items():
        toy_coref.write(folder / f"en_toy-ud-{name}.conllu", USED + 1, seed, unsure=True)
    return folder


def run(data: Path, output: Path, ways: list[str] | None = None) -> list[str]:
    said: list[str] = []
    experiment.run(data, output, languages=ways, quick=True, threads=1, say=said.append)
    return said


@pytest.fixture(scope="module")
def output(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("coreference")
    run(data, folder)
    return folder


def cells_of(output: Path, way: str) -> dict[str, dict[str, Any]]:
    cells: dict[str, dict[str, Any]] = json.loads((output / "quick" / f"{way}.json").read_text("utf-8"))["cells"]
    return cells


def gold(way: str) -> list[Clusters]:
    """The clusters of the test documents, as they were made."""
    toys = toy_coref.documents(USED + 1, SEED["test"], unsure=True)[:USED]
    least = 1 if way == "kept" else 2
    return [[cluster for cluster in toy.partition() if len(cluster) >= least] for toy in toys]


def percent(scores: CoreferenceScores) -> dict[str, float]:
    return {"conll": 100 * scores.conll, **{name: 100 * getattr(scores, name).f1 for name in METRICS}}


def figures(way: str, found: list[Clusters]) -> dict[str, dict[str, float]]:
    pairs = list(zip(gold(way), found, strict=True))
    return {
        "kept": percent(evaluate_coreference(pairs)),
        "removed": percent(evaluate_coreference(pairs, singletons=False)),
    }


@pytest.mark.parametrize("way", ["kept", "removed"])
def test_the_cells(output: Path, way: str) -> None:
    """Every row with three seeds; what was tried out never saw the test documents."""
    cells = cells_of(output, way)
    tested = [f"{name}, seed {seed}" for name in LEARNT for seed in range(3)]
    assert [name for name in cells if "test" in cells[name]] == [*BASELINES, *tested]
    tried = [name for name in cells if "test" not in cells[name]]
    assert all(name.startswith("dev ") for name in tried)
    assert {cells[name]["settings"]["seed"] for name in tried} == {0}
    for name in (*tried, *tested):
        cell = cells[name]
        assert cell["dev"] == max(entry["dev"] for entry in cell["history"])
        assert cell["history"][cell["best_pass"] - 1]["dev"] == cell["dev"]


@pytest.mark.parametrize("way", ["kept", "removed"])
def test_choices_are_the_best_on_the_development_documents(output: Path, way: str) -> None:
    cells = cells_of(output, way)
    dev = {
        tuple(sorted(cell["settings"].items(), key=str)): cell["dev"]
        for name, cell in cells.items()
        if name.startswith("dev ")
    }

    def tried(settings: dict[str, Any]) -> float:
        """Nothing is tried out with features of clusters: what is best without them is taken."""
        return float(dev[tuple(sorted({**settings, "clusters": False}.items(), key=str))])

    for row, (given, chosen) in LEARNT.items():
        found = [cells[f"{row}, seed {seed}"]["settings"] for seed in range(3)]
        assert [settings["seed"] for settings in found] == [0, 1, 2]
        assert all({**settings, "seed": 0} == found[0] for settings in found)
        assert given.items() <= found[0].items()
        expected = {"margin": 0.0, "root_weight": 1.0}
        if "margin" in chosen:
            expected["margin"] = max(MARGINS, key=lambda c: tried({**found[0], **expected, "margin": c}))
        if "root_weight" in chosen:
            best = max(ROOT_WEIGHTS, key=lambda w: tried({**found[0], **expected, "root_weight": w}))
            expected["root_weight"] = best
        assert expected.items() <= found[0].items()


@pytest.mark.parametrize("way", ["kept", "removed"])
def test_baselines(output: Path, way: str) -> None:
    """Of the toy, the noun is the head of a mention, and the only pronoun is "it"."""
    toys = toy_coref.documents(USED + 1, SEED["test"], unsure=True)[:USED]

    def noun(toy: toy_coref.Toy, sentence: int, words: tuple[int, ...]) -> str:
        place = 2 if len(words) == 5 else words[-1]
        return toy.sentences[sentence][place - 1].split()[0]

    ways: dict[str, Callable[[toy_coref.Toy, int, tuple[int, ...]], Any]] = {
        "all singletons": lambda toy, sentence, words: (sentence, words),
        "one cluster": lambda toy, sentence, words: 0,
        "head match": noun,
    }
    cells = cells_of(output, way)
    for name, key in ways.items():
        found = []
        for toy, right in zip(toys, gold(way), strict=True):
            sets: dict[Any, set[Any]] = {}
            for sentence, words in sorted(mention for cluster in right for mention in cluster):
                sets.setdefault(key(toy, sentence, words), set()).add((sentence, words))
            found.append(list(map(frozenset, sets.values())))
        for scored, expected in figures(way, found).items():
            assert cells[name]["test"][scored] == pytest.approx(expected)


@pytest.mark.parametrize("way", ["kept", "removed"])
@pytest.mark.parametrize("name", ["latent tree, root weight, seed 2", "closest antecedents, seed 1"])
def test_a_cell_is_what_such_a_training_gives(data: Path, output: Path, way: str, name: str) -> None:
    documents = {}
    for part in SEED:
        read = list(read_documents(data / f"en_toy-ud-{part}.conllu"))[:USED]
        documents[part] = [d.without_singletons() for d in read] if way == "removed" else read
    cell = cells_of(output, way)[name]
    assert (cell["settings"]["epochs"], cell["settings"]["patience"]) == (2, 5)
    resolver = Resolver.train(documents["train"], documents["dev"], **cell["settings"])
    assert resolver.model.about["history"] == cell["history"]
    found = [each.document.partition() for each in resolver.resolve(documents["test"])]
    for scored, expected in figures(way, found).items():
        assert cell["test"][scored] == pytest.approx(expected)
    assert 0 < cell["test"]["kept"]["conll"] <= 100


def test_the_tables_have_the_mean_and_every_seed(output: Path) -> None:
    text = (output / "quick.md").read_text("utf-8")
    summary, *tables, _, _ = text.split("## ")[1:]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in summary.splitlines() if "|" in line]
    averages = {name: figures for name, *figures in lines}
    for column, shown, (way, scored) in zip(
        range(3), tables, [("kept", "kept"), ("kept", "removed"), ("removed", "kept")], strict=True
    ):
        cells = cells_of(output, way)
        header, _, *rows = [[x.strip() for x in line.split("|")[1:-1]] for line in shown.splitlines() if "|" in line]
        found = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
        assert list(found) == [*BASELINES, *LEARNT]
        for name in BASELINES:
            assert found[name]["CoNLL"] == f"{cells[name]['test'][scored]['conll']:.2f}" == averages[name][column]
        for name in LEARNT:
            three = [cells[f"{name}, seed {seed}"] for seed in range(3)]
            tests = [cell["test"][scored] for cell in three]
            row = found[name]
            spread = stdev(round(test["conll"], 2) for test in tests)
            assert averages[name][column] == f"{mean(test['conll'] for test in tests):.2f} ± {spread:.2f}"
            assert row["seeds"] == " ".join(f"{test['conll']:.2f}" for test in tests)
            for title, metric in zip(
                ("CoNLL", "MUC", "B-cubed", "CEAF-e", "BLANC", "LEA"), ("conll", *METRICS), strict=True
            ):
                assert row[title] == f"{mean(test[metric] for test in tests):.2f}"
            assert row["dev"] == f"{mean(cell['dev'] for cell in three):.2f}"
            assert float(row["C"]) == three[0]["settings"]["margin"]
            assert float(row["root"]) == three[0]["settings"]["root_weight"]


def test_from_end_to_end(data: Path, output: Path) -> None:
    """What is scored are the mentions found in the trees of the included model."""
    cells = cells_of(output, "found")
    systems = ("closest antecedents", "latent tree")
    assert list(cells) == [f"{system}, seed {seed}" for seed in range(3) for system in systems]
    gold = [toy.partition() for toy in toy_coref.documents(USED + 1, SEED["dev"], unsure=True)[:USED]]
    parser = Parser.load("en")
    documents = {}
    for part in SEED:
        read = list(read_documents(data / f"en_toy-ud-{part}.conllu"))[:USED]
        sentences = [[parser.parse(s, retag=True).sentence for s in document.sentences] for document in read]
        documents[part] = [replace(d, sentences=tuple(s)) for d, s in zip(read, sentences, strict=True)]
    cell = cells["closest antecedents, seed 1"]
    resolver = Resolver.train(documents["train"], **{**cell["settings"], "learn_mentions": True})
    assert resolver.model.finder is not None
    assert cell["threshold"] == resolver.model.finder.threshold
    for mentions, given, find in (("given", resolver, False), ("learnt", resolver, True)):
        found = [each.document.partition() for each in given.resolve(documents["dev"], find_mentions=find)]
        scores = evaluate_coreference(list(zip(gold, found, strict=True)))
        assert cell["dev"][mentions]["kept"]["conll"] == pytest.approx(100 * scores.conll)
        assert cell["dev"][mentions]["kept"]["mentions"] == pytest.approx(100 * scores.mentions.f1)
    assert cell["dev"]["given"]["kept"]["mentions"] == 100
    text = (output / "quick.md").read_text("utf-8").partition("from end to end")[2]
    for mentions, title in (("given", "GUM's"), ("rules", "found by rules"), ("learnt", "found by what was learnt")):
        for system in systems:
            three = [cells[f"{system}, seed {seed}"]["test"][mentions]["removed"]["conll"] for seed in range(3)]
            (row,) = (line for line in text.splitlines() if line.startswith(f"| {title} | {system} |"))
            assert row.split("|")[6].strip() == f"{mean(three):.2f}"


def test_pronouns_at_odds_with_their_clusters() -> None:
    text = """\
1\the\t_\tPRON\t_\tGender=Masc|Number=Sing\t0\troot\t_\tEntity=(1)
2\tshe\t_\tPRON\t_\tGender=Fem|Number=Sing\t1\tdep\t_\tEntity=(1)
3\thim\t_\tPRON\t_\tGender=Masc|Number=Sing\t1\tdep\t_\tEntity=(1)
4\tthey\t_\tPRON\t_\tNumber=Plur\t1\tdep\t_\tEntity=(1)
5\tit\t_\tPRON\t_\tGender=Neut|Number=Sing\t1\tdep\t_\tEntity=(2)
6\tAnn\t_\tPROPN\t_\tGender=Fem|Number=Plur\t1\tdep\t_\tEntity=(2)
"""
    documents = read_documents(io.StringIO(text))
    assert end_to_end.pronouns_at_odds(documents) == {"all": 5, "gender": 1, "number": 1}


def test_nothing_is_computed_twice(data: Path, output: Path) -> None:
    before = {path.name: path.read_bytes() for path in (output / "quick").iterdir()}
    table = (output / "quick.md").read_text("utf-8")
    assert run(data, output) == [table]
    assert {path.name: path.read_bytes() for path in (output / "quick").iterdir()} == before
    assert not (output / "tables.md").exists()


def test_one_way_with_singletons(data: Path, tmp_path: Path, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "SYSTEMS", experiment.SYSTEMS[:1])
    *said, table = run(data, tmp_path, ["removed"])
    assert [path.name for path in (tmp_path / "quick").iterdir()] == ["removed.json"]
    assert table.count("## ") == 2
    for seed, line in enumerate(said):
        cell = cells_of(output, "removed")[f"closest antecedents, no margin, seed {seed}"]
        figures = f"dev {cell['dev']:.2f}, test {cell['test']['kept']['conll']:.2f}"
        assert line == f"closest antecedents, no margin, seed {seed}: {figures}"
    assert len(said) == 3


def test_other_documents_other_cells(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "SYSTEMS", ())
    other, output = tmp_path / "other", tmp_path / "output"
    other.mkdir()
    for path in data.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
    run(other, output, ["kept"])
    before = cells_of(output, "kept")["one cluster"]
    toy_coref.write(other / "en_toy-ud-test.conllu", USED, seed=9)
    run(other, output, ["kept"])
    assert cells_of(output, "kept")["one cluster"] != before


def test_what_is_not_there_is_said(data: Path, tmp_path: Path) -> None:
    with pytest.raises(TreebankError, match="no way with mentions, 'danish'; there are kept, removed, found"):
        run(data, tmp_path, ["danish"])
    with pytest.raises(TreebankError, match=r"has no \*-train.conllu\[.gz\]; give the folder of UD English-GUM"):
        run(tmp_path, tmp_path)


def test_committed_tables_are_those_of_the_results() -> None:
    folder = REPOSITORY / "experiments" / "fernandes2012" / "coreference"
    assert (folder / "tables.md").read_text("utf-8") == experiment.table_text(folder / "results")


def test_the_readme_has_the_summary() -> None:
    results = REPOSITORY / "experiments" / "fernandes2012" / "coreference" / "results"
    summary = experiment.summary_text(results) + end_to_end.table_text(results / "found.json").partition("\n## ")[0]
    readme = (REPOSITORY / "docs" / "results.md").read_text("utf-8").splitlines()
    lines = [line for line in summary.splitlines() if line.startswith("|")]
    assert len(lines) > 10
    assert all(line in readme for line in lines)
