"""druck2009 on a toy treebank: cells are what the library says, choices look at development data, work is kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.errors import TreebankError
from headway.pipeline import Parser
from headway.treebank import Sentence, is_punctuation, read_treebank
from headway_papers import druck2009, druck2009_tables
from headway_papers.cells import CellFile
from tests.models.toy_treebank import sentences

REPOSITORY = Path(__file__).parents[2]
EXPERIMENTS = REPOSITORY / "experiments" / "druck2009"
OPTIONS: dict[str, Any] = {"languages": ["english"], "quick": True, "threads": 1}


UNIVERSAL = {"D": "DET", "J": "ADJ", "N": "NOUN", "V": "VERB", "A": "ADV", "S": "PUNCT"}


def universal(count: int, seed: int) -> list[Sentence]:
    """With the tags that rules are about."""
    return [replace(s, upos=tuple(UNIVERSAL[tag] for tag in s.upos)) for s in sentences(count, seed)]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ud")
    treebank = folder / "UD_English-EWT"
    treebank.mkdir()
    for seed, part in enumerate(["train", "dev", "test"]):
        text = "".join(s.to_conllu() for s in universal(40 if part == "train" else 15, seed))
        (treebank / f"en_toy-ud-{part}.conllu").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def output(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("druck2009")
    druck2009.run(data, folder, say=lambda line: None, **OPTIONS)
    return folder


def cells_of(output: Path, length: str = "20") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "quick" / f"english-{length}.json").read_text("utf-8"))
    return dict(found["cells"])


def gold(data: Path, part: str) -> list[Sentence]:
    return list(read_treebank(data / "UD_English-EWT" / f"en_toy-ud-{part}.conllu"))


def test_branching_is_counted_right(data: Path, output: Path) -> None:
    for side, offset in (("right", -1), ("left", 1)):
        right = total = 0
        for sentence in gold(data, "test"):
            assert sentence.heads is not None
            n = len(sentence)
            for m in range(1, n + 1):
                if not is_punctuation(sentence.forms[m - 1]):
                    total += 1
                    right += int(sentence.heads[m]) == (m + offset if m + offset <= n else 0)
        cell = cells_of(output)[f"{side}-branching"]
        assert cell["test"]["uas"] == pytest.approx(100 * right / total)


def test_a_cell_is_what_the_library_says(data: Path, output: Path) -> None:
    cell = cells_of(output)["trees-10-1"]
    train = gold(data, "train")
    chosen = np.random.default_rng((10, 1)).permutation(len(train))[:10].tolist()
    parser = Parser.train([train[i] for i in chosen], **cell["settings"])
    right = total = 0
    for sentence, parsed in zip(gold(data, "dev"), parser.parse(gold(data, "dev")), strict=True):
        assert sentence.heads is not None
        counted = [not is_punctuation(form) for form in sentence.forms]
        total += sum(counted)
        right += int((parsed.heads[1:] == sentence.heads[1:])[counted].sum())
    assert cell["dev"]["uas"] == pytest.approx(100 * right / total)
    assert cell["settings"]["tags"] == "gold"
    assert cell["settings"]["labels"] == "none"


def test_every_part_has_its_cells(output: Path) -> None:
    names = {name.split("-")[0] for name in cells_of(output)}
    assert names == {"right", "left", "rules", "trees", "estimated", "entropy", "all"}
    assert {name.split("-")[0] for name in cells_of(output, "all")} == names - {"estimated"}
    assert {"entropy-1-0-0", "entropy-1-0.1-1", "entropy-2-0.1-0", "all-expected-loss"} <= set(cells_of(output))


def test_draws_leave_the_rest_as_text(data: Path, output: Path) -> None:
    experiment = druck2009.Experiment.of(data, "english", "20", druck2009.QUICK, output / "quick", 1, lambda line: None)
    trees, text = experiment._draw(10, 0)
    assert len(trees) == 10
    key = [sentence.to_conllu() for sentence in experiment.parts["train"]]
    assert sorted(s.to_conllu() for s in [*trees, *text]) == sorted(key)
    again, other = experiment._draw(10, 0)[0], experiment._draw(10, 1)[0]
    assert [s.to_conllu() for s in again] == [s.to_conllu() for s in trees]
    assert [s.to_conllu() for s in other] != [s.to_conllu() for s in trees]


def test_the_weight_is_chosen_on_development_data(tmp_path: Path) -> None:
    """By the mean over the draws, whatever the test scores are."""
    dev = {0.1: [50.0, 60.0], 1.0: [70.0, 41.0]}
    size = replace(druck2009.QUICK, few=5, weights=(0.1, 1.0))
    file = CellFile(tmp_path / "english-20.json", {}, {})
    experiment = druck2009.Experiment("english-20", {"train": sentences(10, 0)}, size, file, 1, lambda line: None)
    for weight in (0.0, 0.1, 1.0):
        for seed in range(2):
            scores = {"uas": dev.get(weight, [0.0, 0.0])[seed]}
            cell = {"dev": scores, "test": {"uas": 100 - scores["uas"]}}
            experiment.cells[f"entropy-1-{weight:g}-{seed}"] = cell
    experiment.entropy(1.0, (0.1, 1.0))
    assert experiment.cells["entropy-1-chosen"] == {"weight": 1.0, "trees": 5}


def test_what_is_done_is_not_done_again(data: Path, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*arguments: Any, **keywords: Any) -> Parser:
        raise AssertionError

    monkeypatch.setattr(Parser, "train", never)
    monkeypatch.setattr(Parser, "constrain", never)
    druck2009.run(data, output, say=lambda line: None, **OPTIONS)
    path = output / "quick" / "english-20.json"
    before = path.read_text("utf-8")
    path.write_text(before.replace('"longest": 20', '"longest": 21'), encoding="utf-8")
    with pytest.raises(AssertionError):
        druck2009.run(data, output, say=lambda line: None, **OPTIONS)
    path.write_text(before, encoding="utf-8")


def test_tables_and_figure(output: Path) -> None:
    text, cells = (output / "quick.md").read_text("utf-8"), cells_of(output)
    assert f"| English, at most 20 words | {cells['right-branching']['test']['uas']:.2f} |" in text
    runs = [cells[f"trees-10-{seed}"]["test"]["uas"] for seed in range(2)]
    half = 12.7062 * np.std(runs, ddof=1) / np.sqrt(2)  # Student's t with one degree of freedom
    assert f"{np.mean(runs):.2f} ± {half:.2f}" in text
    assert (output / "quick-learning-curves.png").stat().st_size > 10_000
    assert "<svg" in (output / "quick-learning-curves.svg").read_text("utf-8")


def test_a_difference_is_paired() -> None:
    """Each draw with and without the text: the spread between draws does not count."""
    cells = {f"trees-100-{seed}": {"test": {"uas": 50.0 + seed}} for seed in range(3)}
    cells |= {f"entropy-1-0-{seed}": {"test": {"uas": 60.0 + 10 * seed}} for seed in range(3)}
    cells |= {f"entropy-1-0.1-{seed}": {"test": {"uas": 61.5 + 10 * seed}} for seed in range(3)}
    cells["entropy-1-chosen"] = {"weight": 0.1, "trees": 100}  # type: ignore[dict-item]
    text = druck2009_tables.tables_text({"english-all": cells})
    assert "| +1.50 ± 0.00 |" in text
    assert "| English | 100 | 51.00 ± 2.48 | 70.00 ± 24.84 | Shannon | 0.1 | 71.50 ± 24.84 |" in text


def test_data_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(TreebankError, match="UD_English-EWT"):
        druck2009.run(tmp_path, tmp_path / "out", say=lambda line: None, **OPTIONS)
    with pytest.raises(TreebankError, match="'latin'"):
        druck2009.run(tmp_path, tmp_path / "out", say=lambda line: None, **{**OPTIONS, "languages": ["latin"]})


@pytest.mark.skipif(not (EXPERIMENTS / "tables.md").is_file(), reason="the experiments are not part of this copy")
def test_the_readme_and_the_tables_say_what_was_measured() -> None:
    results = EXPERIMENTS / "results"
    found = {path.stem: json.loads(path.read_text("utf-8"))["cells"] for path in sorted(results.glob("*.json"))}
    tables = druck2009_tables.tables_text(found)
    assert (EXPERIMENTS / "tables.md").read_text("utf-8") == tables
    readme = (REPOSITORY / "docs" / "results.md").read_text("utf-8")
    first = tables.partition("## (b)")[0].splitlines()
    rows = [line for line in first if line.startswith("| ")]
    assert len(rows) == 2 + 2 * len(druck2009.TREEBANKS)
    assert all(row in readme.splitlines() for row in rows)
    differences = [line.split(" | ")[-1].removesuffix(" |") for line in tables.splitlines() if " | Shannon | " in line]
    assert "adds nothing to 100 trees beyond chance (every interval contains 0)" in " ".join(readme.split())
    for difference in differences:
        mean, half = difference.split(" ± ")
        assert abs(float(mean)) <= float(half)
