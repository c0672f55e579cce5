"""Partial annotation: which heads are kept or chosen, what each row learns from, and that nothing is computed twice."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from headway.arrays import Floats
from headway.inference import TreeDistribution
from headway.inference.brute_force import all_trees
from headway.models.arc_model import ArcModel
from headway.pipeline import Parser
from headway.training.arc_problem import ArcProblem
from headway.training.arc_trainer import prepare_arcs
from headway.training.data import TrainingData, known_heads
from headway.training.settings import Settings
from headway.training.stages import Run
from headway.treebank import Sentence
from headway_papers import corpora, head_choice
from headway_papers import fernandes2012_partial as experiment
from tests.models.toy_treebank import sentences

ROWS = ("latent", "observed", "sentences", "all")
NAMES = ("danish", "hungarian")
CHOSEN = [
    f"{choice}-{share}-{row}-{seed}"
    for seed in range(3)
    for share in ("0.1", "0.2", "0.3")
    for choice in ("random", "least certain")
    for row in ROWS[:2]
    if (choice, share) != ("random", "0.3")
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    danish, hungarian = (folder / experiment.TREEBANKS[name] for name in NAMES)
    danish.mkdir(parents=True)
    hungarian.mkdir(parents=True)
    for part, count in (("train", 40), ("test", 12)):
        text = "".join(s.to_conllx() for s in sentences(count, count, crossing=True, two_roots=True))
        (danish / f"{part}.conll").write_text(text, encoding="utf-8")
        text = "".join(s.to_conllu() for s in sentences(count, count + 1))
        (hungarian / f"hu-ud-{part}.conllu").write_text(text, encoding="utf-8")
    return folder


def run(data: Path, output: Path) -> list[str]:
    said: list[str] = []
    experiment.run(data, output, languages=NAMES, quick=True, threads=1, say=said.append)
    return said


@pytest.fixture(scope="module")
def output(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("partial")
    run(data, folder)
    return folder


def cells_of(output: Path, name: str = "danish") -> dict[str, dict[str, float]]:
    cells: dict[str, dict[str, float]] = json.loads((output / "quick" / f"{name}.json").read_text("utf-8"))["cells"]
    return cells


def test_every_choice_comes_before_any_test(output: Path) -> None:
    names = list(cells_of(output))
    assert names[:3] == [f"held-out-{row}" for row in ROWS[:3]]
    tests = [f"test-{row}-{seed}" for seed in range(3) for row in ROWS if row != "all" or seed == 0]
    assert names[3:] == tests
    assert list(cells_of(output, "hungarian")) == tests  # with what was chosen for Danish
    for name in NAMES:
        assert list(cells_of(output, f"{name}-choices")) == CHOSEN


def test_the_tables_have_the_mean_and_every_draw(output: Path) -> None:
    text = (output / "quick.md").read_text("utf-8")
    for name in NAMES:
        cells = cells_of(output, name)
        both = {**{f"random-0.3-{key[5:]}": cell for key, cell in cells.items()}, **cells_of(output, f"{name}-choices")}
        first = [f"test-{row}-" for row in ROWS]
        second = [
            f"{choice}-{share}-{row}-"
            for share in ("0.1", "0.2", "0.3")
            for row in ROWS[:2]
            for choice in ("random", "least certain")
        ]
        for title, found, rows in (("three tenths", cells, first), ("which heads", both, second)):
            table = text[text.index(f"## {name}: {title}") :].split("\n\n")[1].splitlines()
            for line, row in zip(table[2:], rows, strict=True):
                draws = [cell["uas_no_punct"] for key, cell in found.items() if key.startswith(row)]
                shown = ", ".join(f"{draw:.2f}" for draw in draws)
                assert line.endswith(f"| {np.mean(draws):.2f} | {shown} |")
        means = [
            f"{np.mean([both[f'{choice}-{share}-latent-{seed}']['uas_no_punct'] for seed in range(3)]):.2f}"
            for share in ("0.1", "0.2", "0.3")
            for choice in ("random", "least certain")
        ]
        assert f"| {name} | {' | '.join(means)} |" in text.split("\n\n")[-1]


def test_nothing_is_computed_twice(data: Path, output: Path) -> None:
    before = {path: path.read_bytes() for path in (output / "quick").iterdir()}
    said = run(data, output)
    assert len(said) == 1  # the tables
    assert {path: path.read_bytes() for path in (output / "quick").iterdir()} == before


def test_the_least_certain_words_are_chosen_in_rounds(data: Path, output: Path) -> None:
    """The second round again: the parser that `headway train` gives of the first share has its say."""
    corpus = experiment.read_corpus(data, "hungarian")
    words = sum(map(len, corpus.train))
    settings = {row: cells_of(output)[f"held-out-{row}"] for row in ROWS[:2]}
    place = experiment.Experiment(corpus, output / "models" / "quick", 1, quick=True)
    before, after = (place.words("least certain", share, 1, settings["latent"]) for share in (0.1, 0.2))
    assert (before.sum(), after.sum()) == (round(0.1 * words), round(0.2 * words))
    assert not (before & ~after).any()
    assert not (head_choice.random_words(words, 0.05, 1) & ~before).any()

    cell = settings["latent"]
    own = {"c": cell["c"], "epochs": int(cell["passes"]), "seed": 1, "labels": "none", "tags": "gold"}
    known = head_choice.with_heads_of(corpus.train, before)
    model = Parser.train(known, single_root=True, **own).model
    assert isinstance(model, ArcModel)
    certainty = np.concatenate([most_probable(model, sentence) for sentence in known])
    more, others = after & ~before, ~after
    assert certainty[more].max() <= certainty[others].min() + 1e-9


def most_probable(model: ArcModel, sentence: Sentence) -> Floats:
    """The probability of each word's most probable head given the known ones, at the temperature of the training."""
    scores = model.scorer.scores(model.coder.code([sentence]))[0] / 30.0
    for m, head in enumerate([] if sentence.heads is None else sentence.heads.tolist()):
        if head >= 0:
            scores[np.arange(len(scores)) != head, m] = -np.inf
    found: Floats = TreeDistribution(scores, single_root=True).marginals[:, 1:].max(axis=0)
    return found


def test_certainty_is_that_of_all_trees_with_the_known_heads() -> None:
    """Trees counted one by one, for sentences with and without a known head."""
    train = [
        Sentence.from_words(words.split()).with_tree(heads)
        for words, heads in (("dogs often bark", [-1, 3, 3, 0]), ("they see dogs bark", [-1, 2, 0, 4, 2]))
    ]
    chosen = np.array([False, True, False, False, False, False, False])
    settings = Settings(labels="none", single_root=True).complete()
    prepared = prepare_arcs(TrainingData(head_choice.with_heads_of(train, chosen)), settings, Run())
    weights = np.random.default_rng(0).normal(scale=30, size=prepared.size)
    found = head_choice.certainties(prepared, weights, settings, train, chosen)
    start = 0
    for sentence in train:
        n = len(sentence)
        scores = prepared.problem.scorer.scores(weights, prepared.coder.code([sentence]))[0]
        shares = np.zeros_like(scores)
        for heads in all_trees(n, projective=False, single_root=True):
            if n != 3 or heads[2] == 3:
                arcs = heads[1:], np.arange(1, n + 1)
                shares[arcs] += np.exp(scores[arcs].sum() / 30.0)
        expected = shares[:, 1:].max(axis=0) / shares[:, 1].sum()
        np.testing.assert_allclose(found[start : start + n], expected, rtol=1e-9)
        start += n


def test_the_latent_row_is_what_headway_train_gives(data: Path, output: Path) -> None:
    corpus, cells = experiment.read_corpus(data, "danish"), cells_of(output)
    for seed in (0, 2):
        cell = cells[f"test-latent-{seed}"]
        settings = {"c": cell["c"], "epochs": int(cell["passes"]), "seed": seed, "labels": "none", "tags": "gold"}
        parser = Parser.train(experiment.hidden(corpus.train, 0.3, seed), single_root=False, **settings)
        assert corpora.test_once(parser, corpus, 1).uas_no_punct == cell["uas_no_punct"]
        assert parser.model.about["train"]["heads"]["known"] == cell["heads"]


def test_choices_are_the_best_held_out_ones(output: Path) -> None:
    for row in ROWS[:3]:
        cell = cells_of(output)[f"held-out-{row}"]
        trials: list[dict[str, float]] = cell["trials"]  # type: ignore[assignment]
        assert [trial["c"] for trial in trials] == [100.0, 200.0]
        scores = {(trial["c"], k): score for trial in trials for k, score in enumerate(trial["scores"], start=1)}  # type: ignore[arg-type, var-annotated]
        best = max(scores, key=lambda at: scores[at])
        assert (cell["c"], cell["passes"], cell["held_out"]) == (*best, scores[best])
        for name, test in cells_of(output).items():
            if name.startswith(f"test-{row}-"):
                assert (test["c"], test["passes"]) == best


def test_hidden_heads() -> None:
    text = sentences(30, 1)
    words = sum(map(len, text))
    some = experiment.hidden(text, 0.3, 0)
    assert known_heads(some) == (round(0.3 * words), words)
    for one, whole in zip(some, text, strict=True):
        assert one.forms == whole.forms
        if one.heads is not None and whole.heads is not None:
            known = one.heads >= 0
            np.testing.assert_array_equal(one.heads[known], whole.heads[known])
    again, other = experiment.hidden(text, 0.3, 0), experiment.hidden(text, 0.3, 1)
    assert [s.to_conllu() for s in again] == [s.to_conllu() for s in some] != [s.to_conllu() for s in other]
    assert known_heads(experiment.hidden(text, 1.0, 0)) == (words, words)


def test_whole_sentences_fit_into_the_heads() -> None:
    text = sentences(50, 1)
    found = experiment.drawn(text, 100, 0)
    spent = sum(map(len, found))
    assert 100 - max(map(len, text)) < spent <= 100
    assert all(any(one is whole for whole in text) for one in found)
    assert len({id(one) for one in found}) == len(found)
    assert experiment.drawn(text, 100, 1) != found


def test_observed_updates_touch_known_words_only() -> None:
    some = experiment.hidden(sentences(12, 1), 0.4, 0)
    prepared = prepare_arcs(TrainingData(some), Settings(labels="none").complete(), Run())
    problem = ArcProblem(prepared.problem.scorer, prepared.problem.structures, prepared.trees.coded, prepared.trees)
    every, heads = np.arange(len(problem.lengths)), prepared.trees.heads
    scores = np.random.default_rng(0).normal(size=(len(every), heads.shape[1], heads.shape[1]))
    these = problem.some(every)
    whole, found = these.best(scores), experiment.Observed(problem).some(every).best(scores)
    for b, m in np.ndindex(*heads.shape):
        if heads[b, m] >= 0:
            np.testing.assert_array_equal(found[b, :, m], whole[b, :, m])
        else:
            assert not (these.gold() - found)[b, :, m].any()


def test_committed_tables_are_those_of_the_results_and_on_the_results_page() -> None:
    folder = Path(__file__).resolve().parents[2] / "experiments" / "fernandes2012" / "partial"
    tables = experiment.tables_text(folder / "results")
    assert (folder / "tables.md").read_text("utf-8") == tables
    page = (folder.parents[2] / "docs" / "results.md").read_text("utf-8").splitlines()
    danish = tables.split("\n\n")[1].splitlines()
    overview = tables.split("\n\n")[-1].splitlines()
    assert (len(danish), len(overview)) == (6, 5)
    assert all(line in page for line in [*danish, *overview])
