"""`headway reproduce`: the right module is run with what was asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from headway.cli.reproduce import Paper
from tests.cli.conftest import Invoke, one_error


@pytest.fixture
def asked(monkeypatch: Any) -> dict[str, Any]:
    """What the stand-in for koo2007 was called with."""
    given: dict[str, Any] = {}

    def run(
        data: Path,
        output: Path,
        *,
        languages: Sequence[str] | None,
        quick: bool,
        threads: int,
        say: Callable[[str], None],
    ) -> None:
        given.update(data=data, output=output, languages=languages, quick=quick, threads=threads)
        say("dutch: 80.00")

    module = ModuleType("headway_papers.koo2007")
    module.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "headway_papers.koo2007", module)
    return given


def test_defaults(invoke: Invoke, asked: dict[str, Any], tmp_path: Path) -> None:
    assert invoke("reproduce", "koo2007", "--data", tmp_path).stdout == "dutch: 80.00\n"
    output = Path("experiments/koo2007")
    assert asked == {"data": tmp_path, "output": output, "languages": None, "quick": False, "threads": 1}


def test_options(invoke: Invoke, asked: dict[str, Any], tmp_path: Path) -> None:
    words = ["--language", "dutch", "--language", "danish", "--quick", "--threads", 2, "-o", tmp_path / "o"]
    invoke("reproduce", "koo2007", "--data", tmp_path, *words)
    languages = ["dutch", "danish"]
    expected = {"data": tmp_path, "output": tmp_path / "o", "languages": languages, "quick": True, "threads": 2}
    assert asked == expected


@pytest.mark.parametrize("paper", Paper)
def test_every_paper_has_a_module(paper: Paper) -> None:
    from importlib import import_module

    assert callable(import_module(f"headway_papers.{paper.value.replace('/', '_')}").run)


def test_without_the_papers_package_it_says_how_to_get_it(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "headway_papers", None)
    error = one_error(invoke("reproduce", "koo2007", "--data", tmp_path, status=1))
    assert "clone Headway's repository and run there: pip install -e ." in error
