"""The tables of README and docs/results.md show what the committed experiments measured."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from headway_papers.neural_tables import tables_text

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = ROOT / "experiments"
LANGUAGES = ("danish", "dutch", "portuguese", "swedish")
RESULTS = (ROOT / "docs" / "results.md").read_text("utf-8").splitlines()


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((EXPERIMENTS / name).read_text("utf-8"))
    return found


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


def table1(language: str, order: str) -> dict[str, Any]:
    cell: dict[str, Any] = read(f"koo2010/results/table1/{language}-{order}.json")
    return cell


def of_networks(name: str, score: str) -> float:
    """The mean of three seeds."""
    return mean(read(f"neural/results/{name}-loglinear-{seed}.json")["test"][score] for seed in (1, 2, 3))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_readme_shows_the_conll_x_figures(language: str) -> None:
    readme = (ROOT / "README.md").read_text("utf-8").splitlines()
    [row] = [cells(line) for line in readme if line.startswith(f"| {language.title()} (")]
    first = read(f"first_order/results/{language}.json")["test"]["uas_no_punct"]
    sibling, grand = (table1(language, order)["exact"]["test"] for order in ("sibling", "grandsibling"))
    expected = [first, sibling["uas_no_punct"], grand["uas_no_punct"], grand["las_no_punct"]]
    network = [of_networks(f"{language}-lstm", score) for score in ("uas_no_punct", "las_no_punct")]
    assert row[1:] == [f"{figure:.2f}" for figure in (*expected, *network)]


def test_the_readme_shows_the_english_figures() -> None:
    readme = (ROOT / "README.md").read_text("utf-8").splitlines()
    [row] = [cells(line) for line in readme if line.startswith("| UD English-EWT; `en`")]
    parsers = [read(f"english/results/{name}.json")["test"] for name in ("linear", "en")]
    figures = [parser[score] for parser in parsers for score in ("uas", "las")]
    assert row[1:] == ["", "", *(f"{figure:.2f}" for figure in figures)]


def without_resampling(tables: str) -> list[str]:
    """Their lines but those with intervals of a bootstrap, whose last digits depend on NumPy's version."""
    return [line for line in tables.splitlines() if " to +" not in line]


def test_rows_of_networks_are_those_of_the_experiment() -> None:
    tables = (EXPERIMENTS / "neural" / "tables.md").read_text("utf-8")
    assert without_resampling(tables) == without_resampling(tables_text(EXPERIMENTS / "neural" / "results"))
    start = RESULTS.index("## Networks")
    shown = [line for line in RESULTS[start : RESULTS.index("## Learners")] if line.startswith("|")]
    assert len(shown) > 20
    assert set(shown) <= set(tables.splitlines())


def test_the_readme_fits_on_a_few_screens() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120


def test_first_order_rows_are_those_of_the_experiment() -> None:
    tables = (EXPERIMENTS / "first_order" / "tables.md").read_text("utf-8").splitlines()
    rows = [line for line in tables if line.startswith(tuple(f"| {language} |" for language in LANGUAGES))]
    assert len(rows) == len(LANGUAGES)
    assert all(row in RESULTS for row in rows)


def test_koo2007_rows_are_those_of_the_experiment() -> None:
    tables = (EXPERIMENTS / "koo2007" / "tables.md").read_text("utf-8")
    table2 = tables[tables.index("## Table 2") : tables.index("## Table 3")].splitlines()
    rows = [line for line in table2 if line.startswith(tuple(f"| {language} |" for language in LANGUAGES))]
    assert len(rows) == len(LANGUAGES)
    assert all(row in RESULTS for row in rows)


@pytest.mark.parametrize("language", LANGUAGES)
def test_higher_order_rows_are_those_of_the_experiment(language: str) -> None:
    sibling, grand = table1(language, "sibling"), table1(language, "grandsibling")
    [row] = [cells(line) for line in RESULTS if line.startswith(f"| {language} |") and "," in line.split("|")[-2]]
    plain = [cell.partition(" (")[0] for cell in row[1:]]
    expected = [
        f"{sibling['exact']['test']['uas_no_punct']:.2f}",
        f"{grand['exact']['test']['uas_no_punct']:.2f}",
        f"{grand['exact']['test']['las_no_punct']:.2f}",
        f"{certified(sibling):.2f}",
        f"{certified(grand):.2f}",
        "100",
        *(f"{cell['exact']['test']['tokens'] / cell['exact']['seconds']:,.0f}" for cell in (sibling, grand)),
    ]
    assert plain == expected
    assert "ITERATION_LIMIT" not in {**sibling["exact"]["statuses"], **grand["exact"]["statuses"]}


def certified(cell: dict[str, Any]) -> float:
    """Percentage of sentences that dual decomposition alone proves."""
    statuses = cell["dual"]["statuses"]
    return 100 * statuses["CERTIFIED"] / sum(statuses.values())
