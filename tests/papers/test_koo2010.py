"""koo2010 on a toy folder: every cell is what the library says, tables and figures come from what is there."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway import extras
from headway.arrays import TreeClass
from headway.errors import HeadwayError
from headway.evaluation import evaluate
from headway.inference.dual_decomposition import Status, decode
from headway.inference.head_automata import GrandSiblingParts, SiblingParts
from headway.models.higher_order_model import HigherOrderModel
from headway.models.protocol import Options
from headway.parallel import SERIAL
from headway.pipeline import Parser
from headway.training.data import has_coarse_tags
from headway.treebank import is_projective
from headway_papers import koo2010, koo2010_figures, koo2010_solvers, koo2010_tables
from headway_papers.corpora import Corpus
from headway_papers.koo2010_random import WAYS, Order, random_parts
from headway_papers.koo2010_solvers import METHODS, HeldOut
from tests.inference.parts_oracle import Heads, children, trees
from tests.models.toy_treebank import sentences

OPTIONS: dict[str, Any] = {"quick": True, "threads": 1}
ORDERS: tuple[Order, ...] = ("sibling", "grandsibling")
COMMITTED = Path(__file__).resolve().parents[2] / "experiments" / "koo2010" / "results"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The language that solvers are compared on, and one whose trees have several roots."""
    folder = tmp_path_factory.mktemp("conllx")
    for seed, language in enumerate(["danish", "toyish"]):
        kinds = {"crossing": True, "two_roots": language == "toyish"}
        (folder / language).mkdir()
        train = "".join(s.to_conllx() for s in sentences(30, seed, **kinds))
        test = "".join(s.to_conllx() for s in sentences(12, 10 + seed, **kinds))
        (folder / language / "train.conll").write_text(train, encoding="utf-8")
        (folder / language / "test.conll.gz").write_bytes(gzip.compress(test.encode()))
    return folder


@pytest.fixture(scope="module")
def output(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("experiments")
    results = folder / "first_order" / "results"
    results.mkdir(parents=True)
    (results / "danish.json").write_text(json.dumps({"test": {"uas_no_punct": 87.654}}), encoding="utf-8")
    koo2010.run(data, folder / "koo2010", languages=None, say=lambda line: None, **OPTIONS)
    return folder / "koo2010"


def cell(output: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "quick" / f"{name}.json").read_text("utf-8"))
    return found


def model_of(output: Path, name: str) -> HigherOrderModel:
    model = Parser.load(output / "models" / "quick" / f"{name}.headway").model
    assert isinstance(model, HigherOrderModel)
    return model


def held_out_of(output: Path, data: Path, order: Order) -> HeldOut:
    corpus = Corpus.read(data, "danish")
    return HeldOut.of(model_of(output, f"danish-{order}-held-out"), corpus.train[27:])


def test_every_cell_is_there(output: Path) -> None:
    found = {str(path.relative_to(output / "quick")) for path in (output / "quick").rglob("*.json")}
    languages = [f"{language}-{order}.json" for language in ("danish", "toyish") for order in ORDERS]
    methods = [f"{order}-{name}.json" for order in ORDERS for name in METHODS]
    expected = {f"table{number}/{name}" for number in (1, 3) for name in languages}
    expected |= {f"table2/{name}" for name in (*methods, *(f"random-{way}-{name}" for way in WAYS for name in methods))}
    assert found == expected | {f"figures/{order}.json" for order in ORDERS}


def test_tables_have_ours_and_the_paper_s(output: Path) -> None:
    tables = (output / "quick.md").read_text("utf-8")
    sibling, grand = (cell(output, f"table1/danish-{order}")["exact"]["test"] for order in ORDERS)
    row = f"| danish | 87.65 (89.74) | {sibling['uas_no_punct']:.2f} (91.08) | {sibling['las_no_punct']:.2f} |"
    assert f"{row} {grand['uas_no_punct']:.2f} (91.78) | {grand['las_no_punct']:.2f} |\n" in tables
    toy = [cell(output, f"table{number}/toyish-sibling") for number in (1, 3)]
    assert (
        f"| toyish | {toy[0]['exact']['test']['uas_no_punct']:.2f} | {toy[1]['test']['uas_no_punct']:.2f} |" in tables
    )
    ilp = cell(output, "table2/grandsibling-ilp")
    assert f"| G+S | ILP | {ilp['uas']:.2f} (92.70) | {100 * ilp['solved'] / 3:.2f} (100.00) |" in tables
    random = [cell(output, f"table2/random-{way}-sibling-lp-multi")["solved"] for way in WAYS]
    assert f"| Sib | LP(M) | 30.6 | {' | '.join(f'{100 * solved / 4:.1f}' for solved in random)} |" in tables
    assert all(f"- {name}: {way.what}.\n" in tables for name, way in WAYS.items())
    assert tables.count("## Table") == 6


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("language", ["danish", "toyish"])
def test_table_1_is_the_test_set_parsed_with_proofs(output: Path, data: Path, language: str, order: str) -> None:
    found = cell(output, f"table1/{language}-{order}")
    corpus, model = Corpus.read(data, language), model_of(output, f"{language}-{order}")
    assert model.trees.single_root == corpus.single_root == (language == "danish")
    assert model.about["train"]["sentences"] == found["training"]["sentences"] == 30
    parsed = list(Parser(model).parse(corpus.test))
    scores = evaluate(corpus.test, [each.sentence for each in parsed])
    assert found["exact"]["test"] == json.loads(json.dumps(scores.to_dict()))
    assert found["exact"]["statuses"] == Counter(str(each.status) for each in parsed)
    limited = model.predict(corpus.test, Options(exact=False), SERIAL)
    assert found["dual"]["statuses"] == Counter(str(each.status) for each in limited)
    same = [np.array_equal(a.heads, b.heads) for a, b in zip(parsed, limited, strict=True)]
    assert found["dual"]["same_trees"] == sum(same)
    right = sum(
        bool(kept[h, m])
        for sentence in corpus.test
        for kept in model.scorer.pruner.prune(model.coder.code([sentence])).kept
        for m, h in enumerate(_heads(sentence))
        if m > 0
    )
    assert found["pruning"]["recall"] == pytest.approx(100 * right / sum(map(len, corpus.test)))


def _heads(sentence: Any) -> list[int]:
    heads: list[int] = sentence.heads.tolist()
    return heads


def test_table_3_decodes_the_same_weights_projectively(output: Path, data: Path) -> None:
    corpus, model = Corpus.read(data, "danish"), model_of(output, "danish-grandsibling")
    projective = replace(model.decoder, trees=TreeClass(projective=True))
    pruner = replace(model.scorer.pruner, trees=TreeClass(projective=True))
    decoded = replace(model, decoder=projective, scorer=replace(model.scorer, pruner=pruner))
    predicted = decoded.predict(corpus.test, Options(), SERIAL)
    assert all(is_projective(each.heads) for each in predicted)
    trees = [s.with_tree(each.heads, each.labels) for s, each in zip(corpus.test, predicted, strict=True)]
    found = cell(output, "table3/danish-grandsibling")["test"]
    assert found["uas_no_punct"] == evaluate(corpus.test, trees).uas_no_punct
    assert not all(is_projective(each.heads) for each in model.predict(corpus.test, Options(), SERIAL))


@pytest.mark.parametrize("order", ORDERS)
def test_table_2_solves_the_same_parts_by_every_method(output: Path, data: Path, order: Order) -> None:
    held_out = held_out_of(output, data, order)
    assert [len(each.sentences) for each in (held_out, held_out.short(2))] == [3, 2]
    best = [decode(parts, single_root=True) for parts in held_out.parts]
    for name in ("ilp", "exact"):
        found = cell(output, f"table2/{order}-{name}")
        assert (found["sentences"], found["solved"]) == (3, 3)
        assert found["uas"] == held_out.uas([each.heads for each in best])
    predicted = model_of(output, f"danish-{order}-held-out").predict(held_out.sentences, Options(), SERIAL)
    assert [each.heads.tolist() for each in best] == [each.heads.tolist() for each in predicted]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("order", ORDERS)
def test_random_instances(output: Path, order: Order, way: str) -> None:
    parts = [random_parts(order, 4, seed, way) for seed in range(4)]
    for name in ("exact", "ilp"):
        assert cell(output, f"table2/random-{way}-{order}-{name}")["solved"] == 4
    for steps in (250, 5000):
        answers = [decode(each, single_root=False, exact=False, iterations=steps) for each in parts]
        found = cell(output, f"table2/random-{way}-{order}-dd-{steps}")
        assert found["open"] == [i for i, each in enumerate(answers) if each.status is not Status.CERTIFIED]
        assert found["solved"] == 4 - len(found["open"])
        assert found["bounds"] == [round(each.bound, 9) for each in answers]


def paper_score(heads: Heads, automaton: Callable[[int], tuple[np.ndarray, np.ndarray]]) -> float:
    """The sum over all transitions of a tree.

    A head's automaton has scores [s, m], s == h being START and m == h END, and [side] for those from START to END.
    """
    total = 0.0
    for h in range(len(heads)):
        scores, empty = automaton(h)
        for side, modifiers in enumerate(children(heads, h)):
            total += sum(scores[pair] for pair in pairwise([h, *modifiers, h])) if modifiers else empty[side]
    return float(total)


@pytest.mark.parametrize("way", ["normal", "uniform"])
@pytest.mark.parametrize("order", ORDERS)
def test_random_scores_are_those_of_all_transitions(order: Order, way: str) -> None:
    """Up to a constant, the tree's score is the paper's sum, in which sides without children have scores too."""
    rng = np.random.default_rng(7)
    draw = {"normal": rng.normal, "uniform": rng.random}[way]
    siblings, empty, grands, below = (draw(size=shape) for shape in ((5,) * 3, (5, 2), (5,) * 4, (5, 5, 2)))
    parts = random_parts(order, 4, 7, way)
    found, expected = [], []
    for heads in trees(4, False, False):
        found.append(score_of_parts(parts, heads))
        if order == "sibling":
            expected.append(paper_score(heads, lambda h: (siblings[h], empty[h])))
        else:
            above = {h: (grands[heads[h], h], below[heads[h], h]) for h in range(1, 5)}
            expected.append(paper_score(heads, {0: (siblings[0], empty[0]), **above}.__getitem__))
    apart = np.array(found) - np.array(expected)
    np.testing.assert_allclose(apart, apart[0], rtol=0, atol=1e-12)
    assert np.ptp(expected) > 1.0


def score_of_parts(parts: SiblingParts | GrandSiblingParts, heads: Heads) -> float:
    """What dual decomposition's own scorer says of a tree: the only one left when no other arc is allowed."""
    these = parts.candidates
    allowed = np.array(heads)[these.modifiers] == these.heads
    return decode(replace(parts, arcs=np.where(allowed, parts.arcs, -np.inf)), single_root=False).score


def test_random_parts_are_sums_of_arcs_pairs_and_grandparents() -> None:
    sibling, grand = random_parts("sibling", 5, 7, "parts"), random_parts("grandsibling", 5, 7, "parts")
    assert isinstance(sibling, SiblingParts)
    assert isinstance(grand, GrandSiblingParts)
    np.testing.assert_array_equal(sibling.arcs, grand.arcs)
    np.testing.assert_array_equal(sibling.siblings, grand.siblings)
    assert grand.arcs.all()
    assert grand.siblings.all()
    assert grand.grandparents.all()
    assert not len(grand.grand_siblings)


@pytest.mark.parametrize("way", WAYS)
def test_a_seed_is_an_instance(way: str) -> None:
    tables = [random_parts("grandsibling", 5, seed, way).automata().table for seed in (7, 7, 8)]
    assert np.array_equal(tables[0], tables[1])
    assert not np.array_equal(tables[0], tables[2])


# LP(M) is the relaxation of dual decomposition: what the cells say, those of a toy model and the committed ones


def check_bounds(cells: dict[str, dict[str, Any]], prefix: str) -> None:
    single, multi, dual, exact = (cells[f"{prefix}-{name}"] for name in ("lp-single", "lp-multi", "dd-5000", "exact"))
    assert exact["open"] == []
    integer = cells[f"{prefix}-ilp"]
    assert integer["open"] == []
    np.testing.assert_allclose(integer["bounds"], exact["bounds"], rtol=0, atol=1e-5)
    for i, (loose, tight, steps) in enumerate(zip(single["bounds"], multi["bounds"], dual["bounds"], strict=True)):
        assert loose >= tight - 1e-6
        assert steps >= tight - 1e-6
        if i not in dual["open"]:
            assert tight == pytest.approx(steps, rel=0, abs=1e-5)
            assert i not in multi["open"]
        if i not in multi["open"]:
            assert tight == pytest.approx(exact["bounds"][i], rel=0, abs=1e-5)


@pytest.mark.parametrize("prefix", [*ORDERS, *(f"random-{way}-{order}" for way in WAYS for order in ORDERS)])
def test_bounds_of_relaxations(output: Path, prefix: str) -> None:
    for folder in (output / "quick", COMMITTED):
        files = (folder / "table2").glob("*.json")
        check_bounds({path.stem: json.loads(path.read_text("utf-8")) for path in files}, prefix)


def test_committed_cells_are_of_enough_instances() -> None:
    for path in (COMMITTED / "table2").glob("*.json"):
        found = json.loads(path.read_text("utf-8"))
        assert found.get("sentences", found.get("instances")) >= 200


def test_a_program_that_runs_out_of_time_has_not_solved_it(monkeypatch: Any) -> None:
    monkeypatch.setattr(koo2010_solvers, "PROGRAM_SECONDS", 0.0)
    for name in ("lp-single", "ilp"):
        answer = METHODS[name].answer(random_parts("grandsibling", 5, 0, "normal"), False)
        assert len(answer.heads) == 6
        assert not answer.proved


@pytest.mark.parametrize("order", ORDERS)
def test_figures_are_measured_step_by_step(output: Path, data: Path, order: Order) -> None:
    found, held_out = cell(output, f"figures/{order}"), held_out_of(output, data, order)
    whole = [decode(parts, single_root=True, exact=False) for parts in held_out.parts]
    first = found["lazy"][0]
    assert (first["first"], first["last"], first["running"], first["percent"]) == (1, 1, 3, 100.0)
    assert sum(row["last"] - row["first"] + 1 for row in found["lazy"]) == max(each.iterations for each in whole)
    assert [row["k"] for row in found["early"]] == [1, 5, 25, 125]
    for row in found["early"]:
        early = [decode(parts, single_root=True, exact=False, iterations=row["k"]) for parts in held_out.parts]
        assert row["uas"] == held_out.uas([each.heads for each in early])
        assert row["certified"] == 100 * sum(each.status is Status.CERTIFIED for each in early) / 3
        same = sum(np.array_equal(a.heads, b.heads) for a, b in zip(early, whole, strict=True))
        assert row["same"] == 100 * same / 3


def test_figures_are_drawn_and_come_out_the_same_again(output: Path, tmp_path: Path) -> None:
    data = {order: cell(output, f"figures/{order}") for order in ORDERS}
    koo2010_figures.draw(data, tmp_path, "quick-")
    names = [f"quick-figure{number}.{kind}" for number in (3, 4) for kind in ("png", "svg")]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    for name in names:
        assert (tmp_path / name).read_bytes() == (output / name).read_bytes()
    koo2010_figures.draw({}, tmp_path / "nowhere", "")


def test_means_are_over_the_sentences_still_running() -> None:
    shares = [np.full(30, 0.5), np.full(12, 0.25), np.array([1.0])]
    rows = koo2010_figures.recomputed(shares)
    assert (rows[0]["running"], rows[0]["percent"]) == (3, round(100 * 1.75 / 3, 3))
    assert (rows[1]["running"], rows[1]["percent"]) == (2, 37.5)
    last = next(row for row in rows if row["first"] <= 12 <= row["last"])
    assert last["percent"] == round(100 * (0.5 * (last["last"] - last["first"] + 1) + 0.25 * (13 - last["first"]))
                                    / (last["last"] + 14 - 2 * last["first"]), 3)  # fmt: skip
    assert (rows[-1]["last"], rows[-1]["running"], rows[-1]["percent"]) == (30, 1, 50.0)
    steps = [step for row in rows for step in range(int(row["first"]), int(row["last"]) + 1)]
    assert steps == list(range(1, 31))


def test_nothing_is_computed_twice(output: Path, data: Path) -> None:
    files = [*(output / "quick").rglob("*.json"), *(output / "models").rglob("*.headway")]
    before = {path: path.stat().st_mtime_ns for path in files}
    said: list[str] = []
    koo2010.run(data, output, languages=["danish"], say=said.append, **OPTIONS)
    assert len(said) == 1  # the tables, with the other language's cells
    assert "| toyish |" in said[0]
    assert {path: path.stat().st_mtime_ns for path in files} == before


def test_a_trained_model_is_used_again_for_its_own_data_and_settings(
    output: Path, data: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    corpus = Corpus.read(data, "danish")
    path = output / "models" / "quick" / "danish-sibling.headway"
    settings = dict(model_of(output, "danish-sibling").about["settings"])
    mine = tmp_path / "m.headway"
    mine.write_bytes(path.read_bytes())
    with monkeypatch.context() as patch:
        patch.setattr(Parser, "train", None)
        koo2010.trained(corpus.train, settings, mine, 1)
    assert mine.read_bytes() == path.read_bytes()
    other = koo2010.trained(corpus.train, {**settings, "epochs": 1}, mine, 1)
    assert other.about["settings"]["epochs"] == 1
    assert other.about["training_seconds"] > 0
    fewer = koo2010.trained(corpus.train[:20], {**settings, "epochs": 1}, mine, 1)
    assert fewer.about["train"]["sentences"] == 20
    with monkeypatch.context() as patch:  # a table of templates that changed under its name
        patch.setattr(koo2010, "load_templates", lambda name: [name])
        assert (
            koo2010.trained(corpus.train[:20], fewer.about["settings"], mine, 1).about["tables"]
            != other.about["tables"]
        )
    mine.write_bytes(b"PK")
    assert koo2010.trained(corpus.train[:20], {**settings, "epochs": 1}, mine, 1).about["best_pass"] == 1


def test_without_danish_there_is_nothing_to_compare_solvers_on(output: Path, data: Path, tmp_path: Path) -> None:
    models = tmp_path / "koo2010" / "models" / "quick"
    models.mkdir(parents=True)
    for order in ORDERS:
        name = f"toyish-{order}.headway"
        (models / name).write_bytes((output / "models" / "quick" / name).read_bytes())
    said: list[str] = []
    koo2010.run(data, tmp_path / "koo2010", languages=["toyish"], say=said.append, **OPTIONS)
    assert not list((tmp_path / "koo2010" / "quick" / "table2").iterdir())
    assert not list((tmp_path / "koo2010").glob("*.svg"))
    assert "| toyish |  |" in (tmp_path / "koo2010" / "quick.md").read_text("utf-8")


def test_without_matplotlib_it_says_so_first(data: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(HeadwayError, match="headway\\[figures\\]"):
        koo2010.run(data, tmp_path, languages=None, say=print, **OPTIONS)
    assert list(tmp_path.iterdir()) == []


def test_models_have_settings_and_rows_of_the_paper() -> None:
    assert set(koo2010.SETTINGS) == set(koo2010_tables.PAPER) == set(koo2010_solvers.PAPER)


def test_grand_siblings_learn_classes_where_a_treebank_has_no_coarse_tags(output: Path, data: Path) -> None:
    corpus = Corpus.read(data, "danish")
    assert not has_coarse_tags(corpus.train)
    for order, tags, words in (("sibling", 0, 0), ("grandsibling", 14, 300)):
        settings = cell(output, f"table1/danish-{order}")["signature"]["settings"]
        assert (settings["tag_classes"], settings["word_classes"]) == (tags, words)
        coder = model_of(output, f"danish-{order}").coder
        assert (bool(coder.tag_classes.classes), bool(coder.clusters.paths)) == (bool(tags), bool(words))
    coarse = [replace(sentence, upos=tuple("X" for _ in sentence.forms)) for sentence in corpus.train]
    settings = koo2010._settings(replace(corpus, train=coarse), "grandsibling", koo2010.QUICK)
    assert (settings["tag_classes"], settings["word_classes"]) == (0, 0)
    assert (settings["templates"], settings["parts"]) == ("standard", "grandsibling")


def test_of_the_committed_models_the_swedish_one_has_learnt_classes() -> None:
    cells = [path for path in (COMMITTED / "table1").glob("*.json") if "tag_classes" in path.read_text("utf-8")]
    assert [path.stem for path in cells] == ["swedish-grandsibling"]
    settings = json.loads(cells[0].read_text("utf-8"))["signature"]["settings"]
    assert {name: settings[name] for name in koo2010.WITHOUT_COARSE_TAGS} == koo2010.WITHOUT_COARSE_TAGS


def test_only_the_cells_asked_for_are_computed(output: Path, data: Path, tmp_path: Path) -> None:
    mine = tmp_path / "koo2010"
    shutil.copytree(output, mine)
    wanted = mine / "quick" / "table2" / "random-parts-sibling-lp-multi.json"
    before = json.loads(wanted.read_text("utf-8"))
    for path in (mine / "quick").rglob("*.json"):
        path.unlink()
    koo2010.run(
        data, mine, languages=["danish"], say=lambda line: None, cells=["table2/*-parts-sibling-lp-m*"], **OPTIONS
    )
    assert list((mine / "quick").rglob("*.json")) == [wanted]
    assert json.loads(wanted.read_text("utf-8"))["bounds"] == before["bounds"]
    with pytest.raises(HeadwayError, match=r"no cell fits 'table4/\*'"):
        koo2010.run(data, mine, languages=["danish"], say=lambda line: None, cells=["table4/*"], **OPTIONS)
