"""The commands as processes: they say where they are, answer, and end when they are told to."""

from __future__ import annotations

import signal
import socket
import urllib.request
from pathlib import Path

import pytest

import headway.extras
from headway.annotation import Workspace
from headway.errors import ServerError
from headway.treebank import read_treebank
from headway.web.running import address_of, listen
from tests.cli.conftest import one_error, run
from tests.web.live import Live

SENTENCE = {"tokens": ["la", "hundo", "vidas", "kato", "."]}


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_server_answers_until_it_is_told_to_end(model: Path, number: int, status: int) -> None:
    with Live("serve", model) as live:
        assert live.page == "/"
        answered, found = live.ask("/parse", SENTENCE)
        assert (answered, found["model"]) == (200, "toy")
        code, errors = live.ended(number)
    assert code == status
    assert errors == ("\nheadway: interrupted\n" if number == signal.SIGINT else "")
    with socket.create_server(("127.0.0.1", int(live.address.rpartition(":")[2]))):
        pass  # the port is free again


def test_several_models_can_be_chosen_from(model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.headway"
    other.write_bytes(model.read_bytes())
    with Live("serve", model, "--model", other, "--threads", 1) as live:
        assert live.ask("/parse", {**SENTENCE, "model": "other"})[1]["model"] == "other"
        assert [each["name"] for each in live.ask("/models")[1]["models"]] == ["toy", "other"]


def test_an_open_page_does_not_keep_the_server(model: Path, treebank: Path, tmp_path: Path) -> None:
    file = tmp_path / "new.conllu"
    file.write_bytes(treebank.read_bytes())
    with Live("annotate", file, "--model", model) as live:
        assert live.page == "/annotate"
        with urllib.request.urlopen(f"{live.address}/api/annotation/events", timeout=60) as page:
            version = live.ask("/api/annotation/sentences/1")[1]["version"]
            edit = {"version": version, "edit": {"action": "note", "text": "seen"}}
            status, view = live.ask("/api/annotation/sentences/1/edit", edit, **{"X-Client": "me"})
            assert (status, view["note"]) == (200, "seen")
            heard = next(line for line in page if b'"sentence"' in line)
            assert b'"by":"me"' in heard
            code, errors = live.ended(signal.SIGINT)
            assert code == 130
            assert errors == "\nheadway: interrupted; all changes are saved\n"
    [_, second, *_] = read_treebank(file)
    assert "# note = seen" in second.layout.comments
    with Workspace.open(file) as again:  # nobody holds it
        assert again.state(1).note == "seen"


def test_another_address_needs_a_token(model: Path) -> None:
    with Live("serve", model, "--host", "0.0.0.0") as live:
        token = live.page.removeprefix("/?token=")
        assert len(token) > 20
        status, refused = live.ask("/parse", SENTENCE)
        assert (status, list(refused)) == (401, ["error"])
        assert live.ask("/parse", SENTENCE, Authorization=f"Bearer {token}")[0] == 200


def test_a_damaged_model_ends_the_server_in_one_sentence(tmp_path: Path, model: Path) -> None:
    bad = tmp_path / "bad.headway"
    bad.write_bytes(model.read_bytes()[:1000])
    with Live("serve", bad) as live:
        _, errors = live.process.communicate(timeout=60)
        assert live.process.returncode == 1
    [line] = errors.splitlines()
    assert line.startswith("headway: error: ")
    assert "bad.headway" in line


def test_what_cannot_be_served_is_told_at_once(model: Path, tmp_path: Path) -> None:
    assert "no model of this name" in one_error(run("serve", "klingon", status=1))
    assert "nowhere.headway" in one_error(run("serve", model, "--model", tmp_path / "nowhere.headway", status=1))
    assert "nowhere.conllu" in one_error(run("annotate", tmp_path / "nowhere.conllu", status=1))
    assert "no address of this machine" in one_error(run("serve", model, "--host", "192.0.2.1", status=1))
    assert "--token is empty" in run("serve", model, "--token", " ", status=2).stderr
    assert "65535" in run("serve", model, "--port", 70000, status=2).stderr


def test_a_port_that_is_taken_is_told_in_one_sentence(model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port} is taken" in one_error(run("serve", model, "--port", port, status=1))


def test_without_the_extra_the_command_says_what_to_install(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headway.extras, "find_spec", lambda name: None)
    for words in (["serve", model], ["annotate", model]):
        assert one_error(run(*words, status=1)) == (
            "a server needs fastapi; install it with: pip install 'headway[serve]'"
        )


def test_addresses() -> None:
    with listen("127.0.0.1", 0) as one, listen("0.0.0.0", 0) as every:
        port = one.getsockname()[1]
        assert address_of(one, "127.0.0.1") == f"http://127.0.0.1:{port}"
        assert address_of(every, "0.0.0.0") == f"http://127.0.0.1:{every.getsockname()[1]}"
        assert address_of(one, "::1") == f"http://[::1]:{port}"
        with pytest.raises(ServerError, match="--port"):
            listen("127.0.0.1", port)
    with pytest.raises(ServerError, match=r"nowhere\.invalid is no address of this machine"):
        listen("nowhere.invalid", 0)


@pytest.mark.parametrize("opens", [True, False])
def test_the_browser_is_asked_to_open_the_page(
    opens: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import webbrowser

    from headway.cli.serve import _browse

    asked: list[str] = []

    def open(address: str) -> bool:
        asked.append(address)
        return opens

    monkeypatch.setattr(webbrowser, "open", open)
    _browse("http://127.0.0.1:8421/")
    assert asked == ["http://127.0.0.1:8421/"]
    assert ("open the address yourself" in capsys.readouterr().err) is not opens
