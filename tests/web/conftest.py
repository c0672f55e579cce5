"""One small parser for all tests of the server, and ways to ask it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headway.pipeline import Parser
from tests.cli import toy

if TYPE_CHECKING:
    from starlette.testclient import TestClient

ADDRESS = "http://127.0.0.1:8421"
collect_ignore_glob = [] if importlib.util.find_spec("fastapi") and importlib.util.find_spec("httpx") else ["test_*.py"]


@pytest.fixture(scope="session")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.write(tmp_path_factory.mktemp("web") / "toy.conllu", 40, seed=1)


@pytest.fixture(scope="session")
def parser(treebank: Path) -> Parser:
    return Parser.train(treebank, epochs=3)


@pytest.fixture(scope="session")
def model(parser: Parser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The parser in a file."""
    path = tmp_path_factory.mktemp("web") / "toy.headway"
    parser.save(path)
    return path


@pytest.fixture(scope="session")
def client(parser: Parser) -> Iterator[TestClient]:
    """Asks a server on the local address, in this process."""
    from starlette.testclient import TestClient

    from headway.web.app import Application, Setup

    def failed(error: Exception) -> None:
        raise error

    app = Application(Setup(["toy"], lambda _: parser, workers=2), failed)
    with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as asked:
        yield asked
