"""What `/parse`, `/parse/stream`, `/models` and `/health` answer is what the parser says."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from headway import __version__
from headway.pipeline import Parser
from headway.web.app import Application, Setup
from headway.web.batching import PORTION
from headway.web.limits import Limits
from tests.web.conftest import ADDRESS

TEXT = "la hundo vidas la kato . un floro amas domo !"
TOKENS = ["la", "bela", "hundo", "vidas", "un", "kato", "."]


def asked(client: TestClient, **body: Any) -> Any:
    answer = client.post("/parse", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def error(client: TestClient, address: str = "/parse", *, status: int = 422, **body: Any) -> str:
    answer = client.post(address, json=body)
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    sentence: str = answer.json()["error"]
    assert "\n" not in sentence
    return sentence


def expected(parser: Parser, text: str) -> list[dict[str, Any]]:
    return json.loads(json.dumps([{"text": each.text, **each.to_dict()} for each in parser.parse_text(text)]))


def test_text_gets_the_parsers_own_trees(client: TestClient, parser: Parser) -> None:
    found = asked(client, text=TEXT)
    assert found == {"model": "toy", "sentences": expected(parser, TEXT)}
    assert sum(len(each["words"]) for each in found["sentences"]) == 11


def test_tokens_are_one_sentence_or_several(client: TestClient, parser: Parser) -> None:
    [one] = asked(client, tokens=TOKENS)["sentences"]
    assert [word["form"] for word in one["words"]] == TOKENS
    assert [word["head"] for word in one["words"]] == parser.parse(TOKENS).heads[1:].tolist()
    assert asked(client, tokens=[TOKENS, ["la", "hundo"]])["sentences"][0] == one
    assert asked(client, tokens=[])["sentences"] == []


def test_conllu_keeps_words_and_tags(client: TestClient) -> None:
    conllu = "1\thundo\tX\tNOUN\tN\tA=B\t_\t_\t_\t_\n2\tvidas\tY\tVERB\tV\t_\t_\t_\t_\t_\n\n"
    [one] = asked(client, conllu=conllu)["sentences"]
    assert [(word["form"], word["lemma"], word["feats"]) for word in one["words"]] == [
        ("hundo", "X", {"A": "B"}),
        ("vidas", "Y", {}),
    ]
    assert "line 1" in error(client, conllu="hundo")


def test_alternatives_are_the_marginals_best_first(client: TestClient, parser: Parser) -> None:
    [one] = asked(client, tokens=TOKENS, alternatives=True)["sentences"]
    marginals = parser.parse(TOKENS).marginals
    assert len(one["alternatives"]) == len(TOKENS)
    for m, listed in enumerate(one["alternatives"], start=1):
        best = sorted((float(p) for p in marginals[:, m]), reverse=True)[:5]
        assert [each["probability"] for each in listed] == pytest.approx(best, abs=1e-6)
        assert all(each["probability"] == round(float(marginals[each["head"], m]), 6) for each in listed)


def test_k_best_trees_are_the_distributions(client: TestClient, parser: Parser) -> None:
    [one] = asked(client, tokens=TOKENS, kbest=4)["sentences"]
    distribution = parser.parse(TOKENS).distribution
    assert [each["heads"] for each in one["kbest"]] == [heads[1:].tolist() for heads, _ in distribution.kbest(4)]
    assert [each["probability"] for each in one["kbest"]] == [
        float(np.exp(distribution.log_prob([-1, *each["heads"]]))) for each in one["kbest"]
    ]
    assert one["kbest"][0]["probability"] == one["probability"]
    [few] = asked(client, tokens=["hundo"], kbest=4)["sentences"]
    assert [each["heads"] for each in few["kbest"]] == [[0]]


def test_known_heads_labels_and_forbidden_arcs_are_kept(client: TestClient, parser: Parser) -> None:
    free = parser.parse(TOKENS)
    pinned = 1 if free.heads[1] != 4 else 2
    heads = [4 if m == pinned else None for m in range(1, 8)]
    labels = ["dep" if m == pinned else None for m in range(1, 8)]
    arc = [int(free.heads[7]), 7]
    [one] = asked(client, tokens=TOKENS, heads=heads, labels=labels, forbid=[arc])["sentences"]
    known = [-1, *(-1 if head is None else head for head in heads)]
    own = parser.parse(TOKENS, heads=known, labels=[None, *labels], forbid=[(arc[0], 7)])
    assert [word["head"] for word in one["words"]] == own.heads[1:].tolist()
    word = one["words"][pinned - 1]
    assert (word["head"], word["label"], word["probability"], word["label_probability"]) in [
        (4, "dep", 1.0, 1.0),
        (4, "dep", 1.0, None),
    ]
    assert one["words"][6]["head"] != arc[0]
    assert one["probability"] == own.confidence.tree != free.confidence.tree


def test_the_heads_of_conllu_are_kept_where_asked(client: TestClient) -> None:
    conllu = "1\thundo\t_\t_\t_\t_\t0\troot\t_\t_\n2\tvidas\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
    [one] = asked(client, conllu=2 * conllu, keep_heads=True)["sentences"][:1]
    assert [(word["head"], word["probability"]) for word in one["words"]] == [(0, 1.0), (1, 1.0)]


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({}, "one of text, tokens and conllu"),
        ({"text": "a", "tokens": ["a"]}, "text and tokens"),
        ({"text": "a", "heads": [0]}, "tokens or conllu"),
        ({"tokens": ["a", "b"], "heads": [0]}, "1 entries for 2 words"),
        ({"tokens": [["a"], ["b"]], "heads": [0]}, "one sentence, and there are 2"),
        ({"tokens": ["hundo", "vidas"], "heads": [2, 1]}, "hundo"),
        ({"tokens": ["a"], "heads": [-1]}, "greater than or equal to 0"),
        ({"tokens": ["a"], "heads": [10**30]}, "heads"),
        ({"tokens": ["a"], "forbid": [[0, 9]]}, "9"),
        ({"tokens": ["a"], "labels": ["root"]}, "head"),
        ({"tokens": ["a"], "keep_heads": True}, "keep_heads"),
        ({"tokens": ["a b"]}, "white space"),
        ({"tokens": [""]}, "empty"),
        ({"text": 3}, "text: input should be a valid string"),
        ({"text": "a", "kbest": 21}, "20"),
        ({"text": "a", "kbest": "3"}, "kbest"),
        ({"text": "a", "model": "../../etc/passwd"}, "there are: toy"),
        ({"text": "a", "format": "exe"}, "format"),
        ({"text": "a", "shout": True}, "shout"),
        ({"text": "a", "coreference": True}, "--coref"),
        ({"text": "a", "model": "a\nb\x1b[2J"}, "a\\nb\\x1b[2J"),
        ({"text": "a", "model": "a" * 201}, "200"),
        ({"tokens": ["a"] * 5001}, "5001 words, and at most 5000"),
        ({"tokens": ["a"], "heads": [0], "labels": ["a\tb"]}, "label"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(client: TestClient, body: dict[str, Any], part: str) -> None:
    assert part in error(client, **body)


def test_a_body_that_is_no_json_is_refused(client: TestClient) -> None:
    for body in (b"{", b"[]", b"\xff", b"[" * 100_000, b'{"text": "\\ud800"}'):
        answer = client.post("/parse", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422, (body[:20], answer.text)
        assert list(answer.json()) == ["error"]


def test_other_formats(client: TestClient, parser: Parser) -> None:
    document = parser(TEXT)
    conllu = client.post("/parse", json={"text": TEXT, "format": "conllu"})
    assert conllu.text == document.to_conllu(probabilities=True)
    assert conllu.headers["content-type"] == "text/plain; charset=utf-8"
    svg = client.post("/parse", json={"text": TEXT, "format": "svg"})
    assert svg.text == document.to_svg()
    assert svg.headers["content-type"] == "image/svg+xml"


def test_long_texts_come_whole_and_as_a_stream(client: TestClient, parser: Parser) -> None:
    text = "\n\n".join(["la hundo vidas kato ."] * (2 * PORTION + 5))
    whole = asked(client, text=text)["sentences"]
    assert whole == expected(parser, text)
    assert [word["offsets"] for word in whole[-1]["words"]][-1] == [len(text) - 1, len(text)]
    streamed = client.post("/parse/stream", json={"text": text})
    assert streamed.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in streamed.text.splitlines()] == whole


def test_a_stream_says_what_went_wrong(client: TestClient) -> None:
    assert "coreference" in error(client, "/parse/stream", text="a", coreference=True)
    assert "white space" in error(client, "/parse/stream", tokens=[["a b"]])
    late = client.post("/parse/stream", json={"tokens": [["hundo"]] * PORTION + [["a b"]]})
    lines = [json.loads(line) for line in late.text.splitlines()]
    assert len(lines) == PORTION + 1
    assert "white space" in lines[-1]["error"]


def test_hostile_text_comes_back_as_text(client: TestClient) -> None:
    word = '</script><script>alert("1")</script>'
    answer = client.post("/parse", json={"tokens": [word, "\u202e", "\U0001f600", "{}", "\\"]})
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["sentences"][0]["words"][0]["form"] == word
    svg = client.post("/parse", json={"tokens": [word], "format": "svg"}).text
    assert "<script" not in svg


def test_empty_text_has_no_sentences(client: TestClient) -> None:
    assert asked(client, text=" \n")["sentences"] == []
    assert asked(client, conllu="")["sentences"] == []
    assert client.post("/parse/stream", json={"text": ""}).text == ""
    assert client.post("/parse", json={"text": "", "format": "conllu"}).text == ""


def test_models_and_health(client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "ok", "version": __version__}
    assert client.get("/models").json() == {
        "models": [{"name": "toy", "kind": "arc", "language": None, "text": True, "status": "ready", "default": True}],
        "coreference": None,
    }


def test_openapi_describes_what_there_is(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    assert {"/parse", "/parse/stream", "/models", "/health"} <= set(described["paths"])
    answers = described["paths"]["/parse"]["post"]["responses"]
    assert {"200", "401", "403", "413", "415", "422", "503"} == set(answers)
    assert answers["422"]["content"]["application/json"]["schema"]["$ref"].endswith("/Failure")
    for page in ("/docs", "/redoc"):  # these would load scripts from elsewhere
        assert client.get(page).status_code == 404


def test_a_bug_is_answered_without_its_traceback(parser: Parser) -> None:
    class Broken:
        def sentences(self, *_: Any, **__: Any) -> Any:
            raise ZeroDivisionError("secret")

    app = Application(Setup(["toy"], lambda _: Broken()), lambda error: None)  # type: ignore[arg-type, return-value]
    with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as client:
        answer = client.post("/parse", json={"text": "a"})
        assert answer.status_code == 500
        assert "bug of Headway" in answer.json()["error"]
        assert "secret" not in answer.text


def test_requests_wait_for_their_model(parser: Parser) -> None:
    from threading import Event

    loaded = Event()

    def load(_: str) -> Parser:
        assert loaded.wait(60)
        return parser

    with TestClient(Application(Setup(["toy"], load), lambda error: None), base_url=ADDRESS) as client:
        assert client.get("/health").json()["status"] == "loading"
        assert client.get("/models").json()["models"][0]["status"] == "loading"
        loaded.set()
        assert asked(client, tokens=TOKENS)["model"] == "toy"
        assert client.get("/health").json()["status"] == "ok"


def test_a_request_that_takes_too_long_may_be_sent_again(parser: Parser) -> None:
    from threading import Event

    released = Event()

    class Slow:
        segmenter = parser.segmenter

        def parse_each(self, sentences: Any) -> Any:
            assert released.wait(60)
            return parser.parse_each(sentences)

    limits = Limits(seconds=0.01)
    app = Application(Setup(["toy"], lambda _: Slow(), limits=limits), lambda error: None)  # type: ignore[arg-type, return-value]
    with TestClient(app, base_url=ADDRESS) as client:
        for address in ("/parse", "/parse/stream"):
            answer = client.post(address, json={"tokens": TOKENS})
            assert answer.status_code == 503
            assert answer.headers["retry-after"] == "1"
            assert "within 0.01 seconds" in answer.json()["error"]
        released.set()


def test_a_model_that_cannot_be_loaded_is_told(parser: Parser) -> None:
    from headway.errors import ArchiveError

    def load(source: str) -> Parser:
        if source == "bad":
            raise ArchiveError("bad.headway: no model; save it again")
        return parser

    heard: list[Exception] = []
    with TestClient(Application(Setup(["toy", "bad"], load), heard.append), base_url=ADDRESS) as client:
        assert "save it again" in error(client, tokens=TOKENS, model="bad")
        assert asked(client, tokens=TOKENS)["model"] == "toy"
    assert [str(each) for each in heard] == ["bad.headway: no model; save it again"]
