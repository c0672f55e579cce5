"""`python -m tests.fuzz.page`: the table of docs/limits.md, from the committed counts of long runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "limits.md"
RESULTS = REPOSITORY / "benchmarks" / "results" / "fuzz.json"

_HEADER = "| target | draws | accepted | refused | findings | commit | date |"


def rows(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The table of the page, line by line."""
    lines = [_HEADER, "| --- | --- | --- | --- | --- | --- | --- |"]
    for target, found in sorted(results.items()):
        accepted, refused = (sum(found[kind].values()) for kind in ("accepted", "refused"))
        counts = (found["draws"], accepted, refused, len(found["findings"]))
        cells = [target, *(f"{count:,}" for count in counts), found["commit"], found["date"]]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def shown(page: str) -> list[str]:
    """The table that a page has."""
    lines = page.splitlines()
    start = lines.index(_HEADER)
    return lines[start : lines.index("", start)]


def main() -> None:
    page = PAGE.read_text("utf-8")
    table = rows(json.loads(RESULTS.read_text("utf-8")))
    PAGE.write_text(page.replace("\n".join(shown(page)), "\n".join(table)), "utf-8")


if __name__ == "__main__":
    main()
