"""The examples of docs/howto/http-api.md, against a server that runs; each shown output is what is printed."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.test_docs import DOCS, fences
from tests.web.live import Live

PAGE = DOCS / "howto" / "http-api.md"
ADDRESS = "http://127.0.0.1:8421"


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    with Live("serve", "en") as started:
        yield started


def examples(language: str) -> list[tuple[str, str]]:
    """Each block of a language, and the output that the page shows below it, if any."""
    blocks = [(kind, text) for _, kind, text in fences(PAGE)]
    return [
        (text, shown if below == "text" else "")
        for (kind, text), (below, shown) in pairwise([*blocks, ("", "")])
        if kind == language
    ]


def compare(printed: str, shown: str) -> None:
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    for expected in (" ".join(line.split()) for line in shown.splitlines()):
        pattern = re.escape(expected).replace(re.escape("..."), ".*")
        assert any(re.fullmatch(pattern, line) for line in lines), f"not printed: {expected}\n{printed}"


def test_the_client_and_its_examples(live: Live) -> None:
    names: dict[str, Any] = {}
    blocks = examples("python")
    assert len(blocks) == 3
    assert len(blocks[0][0].strip().splitlines()) <= 30
    for code, shown in blocks:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(code.replace("Headway()", f"Headway({live.address!r})"), names)
        compare(said.getvalue(), shown)
    assert "cycle" in said.getvalue().splitlines()[-1]


def test_the_curl_examples(live: Live, tmp_path: Path) -> None:
    (tmp_path / "news.txt").write_text("Dogs bark. Cats sleep.\n\nIt rains.\n", encoding="utf-8")
    blocks = [(text, shown) for text, shown in examples("sh") if "curl" in text]
    assert len(blocks) == 3
    outputs = []
    for commands, shown in blocks:
        own = commands.replace(ADDRESS, live.address)
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", own], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert '"error"' not in done.stdout
        compare(done.stdout, shown)
        outputs.append(done.stdout)
    [constrained] = json.loads(outputs[1])["sentences"]
    assert constrained["words"][2]["head"] == 2
    assert len(constrained["kbest"]) == 3
    assert (tmp_path / "tree.svg").read_text("utf-8").startswith("<svg")
    assert [json.loads(line)["text"] for line in outputs[2].splitlines()] == ["Dogs bark.", "Cats sleep.", "It rains."]
