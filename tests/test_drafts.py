"""Whoever takes text gives what a model with a second look at sentence ends says of it.

The model's second look agrees with the splitter, so that all must come out as it does without one; but every paragraph
is one draft, so that nothing does unless drafts are cut.
"""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="networks are trained with torch")
pytest.importorskip("onnx", reason="graphs are made with onnx")
pytest.importorskip("onnxruntime", reason="graphs run on onnxruntime")
pytest.importorskip("tokenizers", reason="subwords are cut by tokenizers")

from headway import Parser
from headway.neural.model import NeuralModel
from headway.parsed import Parsed
from headway.text.segmenter import Segmenter
from headway.text.sentence_ends import SENTENCE_SLOTS
from headway.treebank import Sentence, read_treebank
from headway.treebank.annotations import Doubt
from tests.cli.conftest import run
from tests.neural.tiny import ALWAYS, model_of, sentences, with_ends

TEXT = """The dog sees a cat . the bird hears a dog . The child likes cats .
Dogs like children . a bird !

One cat sees a dog . The cat finds a sparrow . Birds .

Child
"""
PARAGRAPHS = (5, 3, 1)


@pytest.fixture(scope="module")
def usual() -> Parser:
    trees = [Sentence.from_words([*tree.forms, "."]) for tree in sentences(40)]
    ends = np.random.default_rng(1).integers(-127, 128, SENTENCE_SLOTS).astype(np.int8)  # anywhere
    return Parser(model_of("bert", sentences(8)), None, replace(Segmenter.learn(trees), sentence_ends=ends))


@pytest.fixture(scope="module", params=[ALWAYS, Doubt(-50, 90)], ids=["always", "sometimes"])
def drafting(request: pytest.FixtureRequest, usual: Parser) -> Parser:
    return replace(usual, model=with_ends(usual.model, request.param))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def models(usual: Parser, drafting: Parser, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("drafts")
    usual.save(folder / "usual.headway")
    drafting.save(folder / "drafting.headway")
    return folder / "usual.headway", folder / "drafting.headway"


def as_text(parsed: Any) -> list[str]:
    return [tree.to_conllu() for tree in parsed]


def test_the_parser(usual: Parser, drafting: Parser) -> None:
    expected = as_text(usual.parse_text(TEXT))
    assert len(expected) > 2 * len(PARAGRAPHS)
    drafts = drafting.drafts(TEXT)
    in_doubt = sum(draft.layout.joints is not None for draft in drafts)
    assert 0 < in_doubt <= len(PARAGRAPHS) == len(drafts) or 0 < in_doubt < len(drafts) < len(expected)
    assert as_text(drafting.parse_text(TEXT)) == expected
    assert as_text(drafting.parse_text(TEXT, mbr=True)) == as_text(usual.parse_text(TEXT, mbr=True))
    assert as_text(drafting.parse_text(TEXT, threads=2)) == expected
    each = list(drafting.parse_each(drafting.drafts(TEXT)))
    assert len(each) == len(drafts)
    assert as_text(tree for own in each for tree in own) == expected
    for newlines in ("keep", "ignore"):
        found = drafting.sentences(TEXT, 5, newlines=newlines)
        assert as_text(found) == as_text(usual.sentences(TEXT, 5, newlines=newlines))
        assert all(sentence.layout.joints is None for sentence in found)
    assert as_text(drafting.parse(drafting.sentences(TEXT))) == expected
    assert as_text(drafting.parse(drafting.drafts(TEXT))) == expected
    assert drafting.drafts("") == drafting.sentences(" \n") == list(drafting.parse_text("")) == []
    assert drafting.parse(TEXT).to_conllu() == usual.parse(TEXT).to_conllu()  # one string is one sentence


def test_sentences_of_a_long_text_hold_few_trees_at_once(
    usual: Parser, drafting: Parser, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = []
    predict = NeuralModel.predict_drafts

    def counted(self: Any, drafts: Any, *rest: Any) -> Any:
        held.append(len(drafts))
        return predict(self, drafts, *rest)

    monkeypatch.setattr(NeuralModel, "predict_drafts", counted)
    monkeypatch.setattr(NeuralModel, "sentences_at_once", 2, raising=False)
    text = TEXT * 4
    assert as_text(drafting.sentences(text)) == as_text(usual.sentences(text))
    assert len(held) > 2
    assert max(held) == 2


@pytest.mark.parametrize("format", ["conllu", "json", "conllx"])
@pytest.mark.parametrize("given", ["file", "pipe"])
def test_the_command_line(models: tuple[Path, Path], tmp_path: Path, format: str, given: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    outputs = []
    for model in models:
        typed = given == "pipe"
        stdin = TEXT.encode() if typed else None
        result = run("parse", model, "-" if typed else path, "--format", format, stdin=stdin)
        outputs.append(result.stdout)
    assert outputs[0] == outputs[1]
    if format == "conllu":
        comments = [line for line in outputs[1].splitlines() if line.startswith(("# newpar", "# sent_id"))]
        read = list(read_treebank(io.StringIO(outputs[1])))
        assert [line for line in comments if "sent_id" in line] == [f"# sent_id = {i + 1}" for i in range(len(read))]
        assert comments.count("# newpar") == len(PARAGRAPHS)
        assert all(comments[i + 1].startswith("# sent_id") for i, line in enumerate(comments) if line == "# newpar")


def test_a_corpus(models: tuple[Path, Path], tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="the output may be a table")
    from headway.ray.dataset import TextParser

    found = [TextParser(str(model), "text").trees([TEXT, "", TEXT[:30]]) for model in models]
    assert found[0] == found[1]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text(TEXT)
    (tmp_path / "in" / "b.txt").write_text(TEXT[:90])
    outputs = []
    for model in models:
        output = tmp_path / model.stem
        run("parse-corpus", tmp_path / "in", "--model", model, "-o", output, "--local", 1)
        outputs.append({p.name: p.read_bytes() for p in output.rglob("*.conllu")})
    assert outputs[0]
    assert outputs[0] == outputs[1]


def test_the_server(usual: Parser, drafting: Parser) -> None:
    pytest.importorskip("fastapi", reason="the server is an extra")
    from headway.web.batching import Dispatcher
    from headway.web.requests import job_of
    from headway.web.schemas import ParseRequest

    def heads(parsed: Parsed) -> str:
        return parsed.to_conllu()

    async def answered(parser: Parser, most: int) -> list[str]:
        dispatcher = Dispatcher(1, 100)
        dispatcher.start()
        try:
            job = job_of(ParseRequest(text=TEXT), parser, heads, most)
            found: list[str] = []
            while not job.done:
                found += await dispatcher.portion(job)
            return found
        finally:
            dispatcher.close()

    expected = as_text(usual.parse_text(TEXT))
    # A draft that is too long for the server is cut as the splitter would.
    for most in (1000, max(len(sentence) for sentence in usual.sentences(TEXT))):
        assert asyncio.run(answered(drafting, most)) == expected


def test_spacy(models: tuple[Path, Path]) -> None:
    spacy = pytest.importorskip("spacy")
    texts = [TEXT, "", "  ", TEXT.replace("\n", " "), "The dog sees cats"]
    found = []
    for model in models:
        nlp = spacy.blank("en")
        nlp.add_pipe("headway", config={"model": str(model)})
        docs = list(nlp.pipe(texts))
        found.append([[(t.text, t.head.i, t.dep_, t.is_sent_start, t.pos_, t.lemma_) for t in doc] for doc in docs])
    assert found[0] == found[1]
    assert sum(start is True for *_, start, _, _ in found[1][0]) > 2 * len(PARAGRAPHS)


def test_annotation_opens_text(models: tuple[Path, Path], tmp_path: Path) -> None:
    from headway.annotation.opening import treebank_for

    outputs = []
    for model in models:
        path = tmp_path / f"{model.stem}.txt"
        path.write_text(TEXT)
        made = treebank_for(path, Parser.load(model))
        outputs.append([tree.forms for tree in read_treebank(made)])
    assert outputs[0] == outputs[1]
    assert len(outputs[1]) > 2 * len(PARAGRAPHS)
