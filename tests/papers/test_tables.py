"""The committed tables are, byte for byte, those of the committed results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headway_papers import english, fernandes2012, first_order, koo2007, koo2010_tables

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
# the other experiments' own tests compare theirs
TABLES: dict[str, Callable[[Path], str]] = {
    "english": english.table_text,
    "fernandes2012": fernandes2012.table_text,
    "first_order": first_order.table_text,
    "koo2007": koo2007.tables_text,
    "koo2010": lambda results: koo2010_tables.tables_text(results, EXPERIMENTS / "first_order" / "results"),
}


@pytest.mark.parametrize("name", TABLES)
def test_committed_tables_are_those_of_the_results(name: str) -> None:
    folder = EXPERIMENTS / name
    assert (folder / "tables.md").read_text("utf-8") == TABLES[name](folder / "results")
