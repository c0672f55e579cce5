"""The simulated annotator: against a naive one, sentence by sentence; nothing computed twice; the committed tables."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from headway.parallel import SERIAL
from headway.parsed import Parsed
from headway.pipeline import Parser
from headway.treebank import Sentence, require_tree
from headway_papers import annotation as experiment
from headway_papers.cells import CellFile
from tests.models.toy_treebank import sentences

COMMITTED = Path(__file__).parents[2] / "experiments" / "annotation"


@pytest.fixture(scope="module")
def parser() -> Parser:
    return Parser.train(sentences(20, 1), tags="gold", epochs=2)


def annotated_at_random(count: int, seed: int) -> list[Sentence]:
    """Sentences whose gold trees no parser expects: each word hangs on any earlier one, and labels are shuffled."""
    rng = np.random.default_rng(seed)
    made = []
    for one in sentences(count, seed):
        heads = [-1, 0, *(int(rng.integers(1, m)) for m in range(2, len(one) + 1))]
        assert one.labels is not None
        made.append(one.with_tree(heads, [None, *map(str, rng.permutation(np.array(one.labels[1:])))]))
    return made


def corrected_one_by_one(parser: Parser, sentence: Sentence, order: str) -> tuple[int, int, int, int]:
    """Heads wrong at first and heads given, labels wrong at first and given, by `Parser.parse` with known heads."""
    gold, known, given = require_tree(sentence).tolist(), [-1] * (len(sentence) + 1), 0
    first = parsed = parser.parse(sentence)
    while wrong := [m for m in range(1, len(gold)) if parsed.heads[m] != gold[m]]:
        sure = {m: round(float(np.log(parsed.confidence.arcs[m])), experiment.TIE) for m in wrong}
        word = min(wrong, key=sure.__getitem__) if order == "least" else max(wrong, key=sure.__getitem__)
        known[word] = gold[word]
        given += 1
        parsed = parser.parse(sentence, heads=known)
    heads = sum(first.heads[m] != gold[m] for m in range(1, len(gold)))
    return heads, given, wrong_labels(first, sentence), wrong_labels(parsed, sentence)


def wrong_labels(parsed: Parsed, sentence: Sentence) -> int:
    assert sentence.labels is not None
    return sum(parsed.labels[m] != sentence.labels[m] for m in range(1, len(sentence) + 1))


@pytest.mark.parametrize("order", ["least", "most"])
def test_corrections_are_those_of_an_annotator_who_takes_one_sentence_after_the_other(
    parser: Parser, order: experiment.Order
) -> None:
    some = annotated_at_random(12, 7)
    found = experiment.simulated(parser.model, some, order, 0, SERIAL)
    expected = np.sum([corrected_one_by_one(parser, sentence, order) for sentence in some], axis=0).tolist()
    assert [found.heads_by_hand, found.heads, found.labels_by_hand, found.labels] == expected
    assert min(expected) > 0
    assert found.heads_by_hand - found.heads == found.mended - found.broken


def test_a_random_order_is_that_of_its_seed(parser: Parser) -> None:
    some = annotated_at_random(40, 8)
    one, again, other = (experiment.simulated(parser.model, some, "random", seed, SERIAL) for seed in (1, 1, 2))
    assert one == again != other


def test_equally_probable_words_are_taken_from_the_left() -> None:
    marginals = np.array([[0, 0.3, 0.3 + 1e-15, 0.4], [0, 0, 0.7, 0.6], [0, 0.7, 0, 0], [0, 0, 0, 0]])
    for order, word in (("least", 1), ("most", 3)):
        chosen = experiment.choose(
            order,  # type: ignore[arg-type]
            np.array([1, 2, 3]),
            np.zeros(4, np.int64),
            SimpleNamespace(marginals=marginals),  # type: ignore[arg-type]
            np.random.default_rng(0),
        )
        assert chosen == word


def test_an_experiment_is_kept_and_not_repeated(tmp_path: Path) -> None:
    folder = tmp_path / "conllx" / "danish"
    folder.mkdir(parents=True)
    long = [sentence for sentence in sentences(400, 3) if len(sentence) >= experiment.SHORTEST]
    (folder / "train.conll").write_text("".join(sentence.to_conllx() for sentence in long), encoding="utf-8")
    said: list[str] = []

    def run() -> None:
        experiment.run(tmp_path, tmp_path, languages=["danish"], quick=True, threads=1, say=said.append)

    run()
    cells = CellFile.read(tmp_path / "quick" / "danish.json")
    assert [name for name in cells if name.startswith("grown")] == ["grown-kept", "grown-retrained"]
    assert {name.split("-")[1] for name in cells if name.startswith("arc-")} == set(experiment.ORDERS)
    assert (tmp_path / "quick.md").read_text("utf-8") == said[-1]
    lines = len(said)
    run()
    assert len(said) == lines + 1  # the tables alone


def test_a_model_is_trained_again_if_its_file_is_of_other_sentences(tmp_path: Path) -> None:
    path = tmp_path / "arc.headway"
    written = []
    for count in (5, 5, 6):
        treebank = experiment.Treebank(sentences(count, 1), [])
        assert experiment._kept(path, "arc", treebank).kind == "arc"
        written.append(path.stat().st_mtime_ns)
    assert written[0] == written[1] < written[2]


def test_the_committed_tables_are_those_of_the_committed_cells() -> None:
    files = {path.stem: path for path in sorted((COMMITTED / "results").glob("*.json"))}
    text = experiment.tables_text({name: CellFile.read(files[name]) for name in experiment.TREEBANKS if name in files})
    assert (COMMITTED / "tables.md").read_text("utf-8") == text
    for path in files.values():
        signature = json.loads(path.read_text("utf-8"))["signature"]
        assert signature["sentences"] <= experiment.SENTENCES
        assert np.isfinite(signature["words"])
