"""The simulated annotator: against a naive one, sentence by sentence; nothing computed twice; the committed tables."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from headway.parallel import SERIAL
from headway.pipeline import Parser
from headway.treebank import Sentence, require_tree
from headway_papers import annotation as experiment
from headway_papers.cells import CellFile
from tests.models.toy_treebank import sentences

COMMITTED = Path(__file__).parents[2] / "experiments" / "annotation"


@pytest.fixture(scope="module")
def parser() -> Parser:
    return Parser.train(sentences(20, 1), tags="gold", labels="none", epochs=2)


def annotated_at_random(count: int, seed: int) -> list[Sentence]:
    """Sentences whose gold trees no parser expects: each word hangs on any earlier one."""
    rng = np.random.default_rng(seed)
    some = sentences(count, seed)
    return [one.with_tree([-1, 0, *(int(rng.integers(1, m)) for m in range(2, len(one) + 1))]) for one in some]


def clicks_one_by_one(parser: Parser, sentence: Sentence, order: str) -> tuple[int, int]:
    """Wrong heads at first, and clicks, by `Parser.parse` with the heads known so far."""
    gold, known = require_tree(sentence).tolist(), [-1] * (len(sentence) + 1)
    by_hand, clicks = -1, 0
    while True:
        parsed = parser.parse(sentence, heads=known) if clicks else parser.parse(sentence)
        wrong = [m for m in range(1, len(gold)) if parsed.heads[m] != gold[m]]
        by_hand = len(wrong) if by_hand < 0 else by_hand
        if not wrong:
            return by_hand, clicks
        sure = {m: parsed.confidence.arcs[m] for m in wrong}
        word = {"least": min(wrong, key=sure.__getitem__), "most": max(wrong, key=sure.__getitem__)}.get(
            order, wrong[0]
        )
        first = 1 if order == "reading" else word
        known[first : word + 1] = gold[first : word + 1]
        clicks += 1


@pytest.mark.parametrize("order", ["least", "most", "left", "reading"])
def test_clicks_are_those_of_an_annotator_who_takes_one_sentence_after_the_other(parser: Parser, order: str) -> None:
    some = annotated_at_random(12, 7)
    found = experiment.simulated(parser.model, some, order, 0, SERIAL)  # type: ignore[arg-type]
    expected = [clicks_one_by_one(parser, sentence, order) for sentence in some]
    assert list(zip(found.by_hand, found.clicks, strict=True)) == expected
    assert sum(found.clicks) > 0
    assert sum(found.by_hand) - sum(found.clicks) == found.mended - found.broken


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


def test_the_committed_tables_are_those_of_the_committed_cells() -> None:
    files = {path.stem: path for path in sorted((COMMITTED / "results").glob("*.json"))}
    text = experiment.tables_text({name: CellFile.read(files[name]) for name in experiment.TREEBANKS if name in files})
    assert (COMMITTED / "tables.md").read_text("utf-8") == text
    for path in files.values():
        signature = json.loads(path.read_text("utf-8"))["signature"]
        assert signature["sentences"] <= experiment.SENTENCES
        assert np.isfinite(signature["words"])
