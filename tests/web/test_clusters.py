"""Coreference: the clusters of a request are the resolver's, of two mentions or more."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from headway.coreference import read_documents
from headway.coreference.resolver import Resolver
from headway.pipeline import Parser
from headway.web.app import Application, Setup
from headway.web.clusters import clusters_of
from tests.cli import toy_coref
from tests.web.conftest import ADDRESS


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_coref.write(tmp_path_factory.mktemp("coref") / "train.conllu", 12, seed=1)


@pytest.fixture(scope="module")
def resolver(documents: Path) -> Path:
    path = documents.with_suffix(".coref")
    Resolver.train(documents, epochs=3).save(path)
    return path


def test_clusters_are_the_resolvers(documents: Path, resolver: Path) -> None:
    parser = Parser.train(documents, epochs=2)
    setup = Setup(["toy"], lambda _: parser, coreference=str(resolver))
    first = next(iter(read_documents(documents)))
    tokens = [list(sentence.forms) for sentence in first.sentences]
    with TestClient(Application(setup, lambda _: None), base_url=ADDRESS) as client:
        answer = client.post("/parse", json={"tokens": tokens, "coreference": True})
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert client.get("/models").json()["coreference"] == "train"
        refused = client.post("/parse", json={"tokens": tokens, "coreference": True, "format": "svg"})
        assert refused.status_code == 422
    parsed = list(parser.parse(tokens))
    assert found["clusters"] == clusters_of(Resolver.load(resolver), parsed)
    assert len(found["sentences"]) == len(tokens)
    assert found["clusters"]
    for cluster in found["clusters"]:
        assert len(cluster) > 1
        for mention in cluster:
            words = [tokens[mention["sentence"]][m - 1] for m in mention["words"]]
            assert mention["text"] == " ".join(words)
