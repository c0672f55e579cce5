"""The pages of docs/: their examples run, their links lead somewhere, and the site builds without a warning.

`>>>` blocks are doctests, run page by page in an empty folder with the treebanks of examples/. In `console` blocks,
every line after `$ ` is run there, too, and must succeed; each line of output that the page shows must be printed;
`...` stands for what is left out.
"""

from __future__ import annotations

import doctest
import html
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
DOCS = REPOSITORY / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
NAMES = [page.relative_to(DOCS).as_posix() for page in PAGES]

_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").mkdir()
    for name in ("tiny.conllu", "coreference.conllu"):
        shutil.copy(REPOSITORY / "examples" / name, tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for line, language, block in fences(page):
        if ">>> " in block:
            for package in ("spacy", "torch"):
                if f"import {package}" in block:
                    pytest.importorskip(package)
            run_doctest(block, names, page, line)
        elif language == "console":
            if "--model neural" in block:
                pytest.importorskip("torch")
                pytest.importorskip("onnxruntime")
            run_commands(block, page, line)


def fences(page: Path) -> Iterator[tuple[int, str, str]]:
    """Line, language and text of each fenced block."""
    text = page.read_text("utf-8")
    for fence in _FENCE.finditer(text):
        yield text.count("\n", 0, fence.start(3)), fence[2], fence[3]


def run_doctest(block: str, names: dict[str, Any], page: Path, line: int) -> None:
    test = doctest.DocTestParser().get_doctest(block, names, page.name, str(page), line)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    assert not runner.failures, "".join(said)


def run_commands(block: str, page: Path, line: int) -> None:
    """Run each command and compare what the page shows of its output."""
    # The `headway` of this environment, whether or not it is installed as a command
    headway = f'headway() {{ {shlex.quote(sys.executable)} -m headway "$@"; }}'
    environment = {**os.environ, "HEADWAY_QUIET": "1", "COLUMNS": "100"}
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        line_of_shell = f"{headway}; {command}"
        done = subprocess.run(line_of_shell, shell=True, env=environment, capture_output=True, text=True, check=False)
        where = f"{page.name}, line {line}: {command}"
        assert done.returncode == 0, f"{where}\n{done.stderr}"
        printed = [" ".join(each.split()) for each in done.stdout.splitlines()]
        for expected in (" ".join(each.split()) for each in shown.splitlines()):
            assert expected in ("", "...") or expected in printed, f"{where}\nnot printed: {expected}\n{done.stdout}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_somewhere(page: Path) -> None:
    text = _FENCE.sub("", page.read_text("utf-8"))
    for target in _LINK.findall(text):
        if not target.startswith(("http://", "https://", "#", "mailto:")):
            assert (page.parent / target.partition("#")[0]).exists(), target


def test_every_page_is_in_the_navigation() -> None:
    listed = re.findall(r"[\w/-]+\.md", (REPOSITORY / "mkdocs.yml").read_text("utf-8"))
    assert sorted(listed) == NAMES


def test_the_target_builds_the_site_from_a_fresh_clone(tmp_path: Path) -> None:
    """What `make docs` runs, where there is nothing but the files that git knows."""
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    clone = tmp_path / "clone"
    for name in tracked_files():
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, clone / name)
    environment = {**os.environ, "PYTHONPATH": str(clone / "src")}
    done = subprocess.run(docs_command(), cwd=clone, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    reference = clone / "build" / "site" / "reference"
    commands = (reference / "command-line" / "index.html").read_text("utf-8")
    assert "headway evaluate" in commands
    assert "--prune-threshold" in commands  # generated from the commands' help, not copied
    assert "TreeDistribution" in (reference / "inference" / "index.html").read_text("utf-8")
    for page in reference.rglob("*.html"):
        for paragraph in re.findall(r"<p>(.*?)</p>", page.read_text("utf-8"), re.DOTALL):
            text = html.unescape(re.sub(r"<[^>]*>", "", paragraph))
            assert not re.search(r"^(>>> |    )", text, re.MULTILINE), (
                f"{page.parent.name}: an example as prose: {text}"
            )


def tracked_files() -> list[str]:
    """The files of a clone: those that git knows, and new ones that it does not ignore."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listing, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip("not a clone")
    return [name for name in done.stdout.split("\0") if name and (REPOSITORY / name).is_file()]


def docs_command() -> list[str]:
    """What the target `docs` of the Makefile runs, with the tool of this environment."""
    rule = re.search(r"^docs:.*\n\t\$\(BIN\)/(.+)$", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert rule is not None
    tool, *words = rule[1].split()
    return [sys.executable, "-m", tool, *words]
