"""What the annotate page asks for: every route does what the workspace does, and errors have their status."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from headway.annotation import Workspace
from headway.pipeline import Parser
from headway.treebank import read_treebank
from headway.web.app import Application, Setup
from tests.cli import toy
from tests.web.conftest import ADDRESS

ROOT = "/api/annotation"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Trees without heads."""
    path = toy.write(tmp_path / "new.conllu", 6, seed=5)
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    for columns in lines:
        if len(columns) == 10:
            columns[6:8] = "_", "_"
    path.write_text("".join("\t".join(columns) + "\n" for columns in lines))
    return path


def opened(file: Path, parser: Parser | None) -> TestClient:
    def open(found: Parser | None, name: str) -> Workspace:
        return Workspace.open(file, found, name=name)

    def failed(error: Exception) -> None:
        raise error

    models = [] if parser is None else ["toy"]
    app = Application(Setup(models, lambda _: parser, open=open), failed)  # type: ignore[arg-type, return-value]
    return TestClient(app, base_url=ADDRESS, headers={"X-Client": "me"})


@pytest.fixture
def client(file: Path, parser: Parser) -> Iterator[TestClient]:
    with opened(file, parser) as asked:
        yield asked


def get(client: TestClient, address: str = "", *, status: int = 200) -> Any:
    answer = client.get(ROOT + address)
    assert answer.status_code == status, answer.text
    return answer.json()


def post(client: TestClient, address: str, *, status: int = 200, **body: Any) -> Any:
    answer = client.post(ROOT + address, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_the_file_as_a_whole(client: TestClient) -> None:
    found = get(client)
    assert (found["file"], found["sentences"], found["write"], found["model"]) == ("new.conllu", 6, "all", "toy")
    assert found["progress"]["done"] == 0
    assert "nsubj" in found["labels"]
    assert found["changed_underneath"] is False
    assert found["retraining"]["state"] == "idle"
    assert client.get("/health").json()["status"] == "ok"


def test_sentences_are_listed_and_shown(client: TestClient) -> None:
    listed = get(client, "/sentences?sort=order&offset=2&limit=3")
    assert (listed["total"], listed["matches"]) == (6, 6)
    assert [row["sentence"] for row in listed["rows"]] == [2, 3, 4]
    view = get(client, "/sentences/2")
    assert (view["sentence"], view["text"]) == (2, listed["rows"][0]["text"])
    assert all(word["head"] is not None and not word["pinned"] for word in view["words"])
    found = get(client, "/sentences?query=upos:VERB&limit=0")
    assert (found["matches"], found["rows"]) == (6, [])


def test_an_edit_pins_and_decodes_again_and_is_on_disk(client: TestClient, file: Path, parser: Parser) -> None:
    before = get(client, "/sentences/0")
    word = next(each for each in before["words"] if each["head"] not in (0, 1) and each["id"] != 1)
    after = post(
        client,
        "/sentences/0/edit",
        version=before["version"],
        edit={"action": "head", "word": word["id"], "head": 1, "label": "dep"},
    )
    changed = after["words"][word["id"] - 1]
    assert (changed["head"], changed["label"], changed["pinned"], changed["probability"]) == (1, "dep", True, 1.0)
    known = [-1] * (len(after["words"]) + 1)
    known[word["id"]] = 1
    [sentence, *_] = read_treebank(file, trees=False)
    expected = parser.parse(sentence, heads=known).heads
    assert [each["head"] for each in after["words"]] == expected[1:].tolist()
    assert after["version"] == before["version"] + 1
    assert after["can_undo"]
    entries = [json.loads(line) for line in file.with_name("new.conllu.journal").read_text().splitlines()]
    assert any(entry.get("by") == "me" for entry in entries)

    undone = post(client, "/sentences/0/undo", version=after["version"])
    assert [each["head"] for each in undone["words"]] == [each["head"] for each in before["words"]]
    redone = post(client, "/sentences/0/redo", version=undone["version"])
    assert redone["words"][word["id"] - 1]["pinned"]


def test_a_stale_version_is_a_conflict_with_the_current_sentence(client: TestClient) -> None:
    version = get(client, "/sentences/1")["version"]
    edit = {"action": "note", "text": "mine"}
    post(client, "/sentences/1/edit", version=version, edit=edit)
    refused = post(client, "/sentences/1/edit", version=version, edit={"action": "note", "text": "other"}, status=409)
    assert refused["current"]["note"] == "mine"
    assert refused["current"] == get(client, "/sentences/1")
    assert "changed meanwhile" in refused["error"]


def test_what_cannot_be_is_refused_in_one_sentence(client: TestClient) -> None:
    version = get(client, "/sentences/0")["version"]
    edit = "/sentences/0/edit"
    nothing = get(client, "/sentences/0")
    for body, part in (
        ({"version": version, "edit": {"action": "shout"}}, "action"),
        ({"version": version, "edit": {"action": "head", "word": 99, "head": 1}}, "no word 99"),
        ({"version": version, "edit": {"action": "head", "word": 1, "head": 1}}, "cannot be 1"),
        ({"version": "1", "edit": {}}, "version"),
        ({"edit": {}}, "version"),
    ):
        assert part in post(client, edit, status=422, **body)["error"]
    post(client, edit, version=version, edit={"action": "head", "word": 1, "head": 2})
    cyclic = post(client, edit, version=version + 1, edit={"action": "head", "word": 2, "head": 1}, status=422)
    assert nothing["words"][0]["form"] in cyclic["error"]
    assert get(client, "/sentences/0")["version"] == version + 1
    assert "nothing to redo" in post(client, "/sentences/0/redo", version=version + 1, status=422)["error"]
    assert "no sentence 6" in get(client, "/sentences/6", status=404)["error"]
    assert "no sentence -1" in post(client, "/sentences/-1/undo", version=0, status=404)["error"]
    assert "integer" in get(client, "/sentences/x", status=422)["error"]
    assert get(client, "/sentences?query=shape:round", status=400)["error"]
    assert "limit" in get(client, "/sentences?limit=5000", status=422)["error"]
    assert "sort" in get(client, "/sentences?sort=length", status=422)["error"]
    assert post(client, "/retrain", status=422)["error"]
    assert post(client, "/model", use="new", status=422)["error"]
    assert "use" in post(client, "/model", use="best", status=422)["error"]


def test_settings_and_the_file_that_another_program_changed(client: TestClient, file: Path) -> None:
    assert post(client, "/settings", write="pinned")["write"] == "pinned"
    assert "write" in post(client, "/settings", write="some", status=422)["error"]
    file.write_text(file.read_text().split("\n\n")[0] + "\n\n")
    assert post(client, "/file", choice="reload")["sentences"] == 1
    assert get(client, "/sentences")["total"] == 1
    assert post(client, "/file", choice="overwrite")["changed_underneath"] is False


def test_the_server_closes_the_file(file: Path, parser: Parser) -> None:
    with opened(file, parser) as client:
        post(client, "/sentences/0/edit", version=get(client, "/sentences/0")["version"], edit={"action": "accept"})
    [sentence, *_] = read_treebank(file, partial=True)
    assert sentence.heads is not None
    assert (sentence.heads[1:] >= 0).all()
    with Workspace.open(file) as again:  # nobody else has it open
        assert len(again.state(0).pins) == len(sentence)


def test_there_need_not_be_a_model(file: Path) -> None:
    with opened(file, None) as client:
        view = get(client, "/sentences/0")
        assert all(word["head"] is None for word in view["words"])
        edited = post(
            client, "/sentences/0/edit", version=view["version"], edit={"action": "head", "word": 1, "head": 0}
        )
        assert edited["words"][0]["head"] == 0
        assert "none" in client.post("/parse", json={"text": "a"}).json()["error"]
        assert client.get("/models").json()["models"] == []


def test_other_texts_are_parsed_with_the_model_of_the_file(file: Path, parser: Parser) -> None:
    found: list[Workspace] = []

    def open(given: Parser | None, name: str) -> Workspace:
        found.append(Workspace.open(file, given, name=name))
        return found[0]

    def names() -> list[tuple[str, bool]]:
        return [(each["name"], each["default"]) for each in client.get("/models").json()["models"]]

    app = Application(Setup(["toy"], lambda _: parser, open=open), lambda _: None)
    with TestClient(app, base_url=ADDRESS) as client:
        assert get(client)["model"] == "toy"
        found[0].use(parser.with_projective(True), "model-1")
        assert names() == [("model-1", True), ("toy", False)]
        assert client.post("/parse", json={"tokens": ["la", "hundo"]}).json()["model"] == "model-1"
        found[0].use(parser, "toy")
        assert names() == [("toy", True), ("model-1", False)]


def test_a_file_that_cannot_be_opened_is_told(tmp_path: Path, parser: Parser) -> None:
    bad = tmp_path / "bad.conllu"
    bad.write_text("1\tone\n\n")
    heard: list[Exception] = []

    def open(found: Parser | None, name: str) -> Workspace:
        return Workspace.open(bad, found, name=name)

    app = Application(Setup([], lambda _: parser, open=open), heard.append)
    with TestClient(app, base_url=ADDRESS) as client:
        assert "bad.conllu" in get(client, status=422)["error"]
        assert client.get("/health").json()["status"] == "loading"
    assert len(heard) == 1


def test_without_a_file_there_is_nothing_to_annotate(parser: Parser) -> None:
    with TestClient(Application(Setup(["toy"], lambda _: parser), lambda _: None), base_url=ADDRESS) as client:
        for address in (ROOT, f"{ROOT}/sentences"):
            assert client.get(address).status_code == 404
        assert client.get("/annotate").status_code == 200  # which says how to open a file
