"""The tiny treebank is sound and learnable, and the demo shows what the parser says."""

from __future__ import annotations

import importlib.util
import io
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from rich.console import Console

from headway import Parser, evaluate
from headway.treebank import Sentence, is_projective, read_treebank, require_tree, roots, write_treebank

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
TINY = EXAMPLES / "tiny.conllu"
OPEN = {"ADJ", "ADV", "NOUN", "NUM", "PRON", "PROPN", "VERB"}
FUNCTION = {"ADP", "AUX", "CCONJ", "DET", "PART", "PUNCT", "SCONJ"}
ONE_A_HEAD = {"nsubj", "nsubj:pass", "obj", "iobj", "cop", "expl"}

# The trees of the demo's new sentences, by hand: label and head of each word.
TREES = (
    "det woman, amod woman, nsubj found, root ROOT, det keys, obj found, case garden, det garden, obl found, "
    "punct found",
    "obl talk, aux talk, det boy, nsubj talk, root ROOT, case What, punct talk",
)


@cache
def treebank() -> tuple[Sentence, ...]:
    return tuple(read_treebank(TINY))


def load_demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", EXAMPLES / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def shown() -> str:
    console = Console(file=io.StringIO(), width=94, highlight=False)
    load_demo().show(console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def comment(sentence: Sentence, key: str) -> str:
    (line,) = (line for line in sentence.layout.comments if line.startswith(f"# {key} = "))
    return line.removeprefix(f"# {key} = ")


def rows_shown(sentence: str) -> list[list[str]]:
    """The columns of each row under a sentence's heading."""
    lines = shown().splitlines()
    (start,) = (i for i, line in enumerate(lines) if line.startswith(sentence))
    return [line.split() for line in lines[start + 2 : start + 2 + len(sentence.split())]]


# The treebank


def test_tiny_is_forty_trees_with_one_root() -> None:
    assert len(treebank()) == 40
    for sentence in treebank():
        heads = require_tree(sentence)
        (root,) = roots(heads)
        assert sentence.labels is not None
        assert [m for m, label in enumerate(sentence.labels) if label == "root"] == [root]
    assert sum(not is_projective(require_tree(sentence)) for sentence in treebank()) >= 2


def test_tiny_says_where_it_comes_from() -> None:
    first, *_ = treebank()[0].layout.comments
    assert "written for Headway" in first
    assert "Apache-2.0" in first
    assert [comment(sentence, "sent_id") for sentence in treebank()] == [f"tiny-{i}" for i in range(1, 41)]


def test_tiny_comes_back_byte_for_byte(tmp_path: Path) -> None:
    copy = tmp_path / "copy.conllu"
    write_treebank(treebank(), copy)
    assert copy.read_bytes() == TINY.read_bytes()


@pytest.mark.parametrize("number", range(40))
def test_tiny_keeps_the_rules_of_universal_dependencies(number: int) -> None:
    sentence = treebank()[number]
    heads, labels = require_tree(sentence), sentence.labels
    assert labels is not None
    ends = ("" if misc == "SpaceAfter=No" else " " for misc in sentence.layout.misc)
    text = "".join(form + end for form, end in zip(sentence.forms, ends, strict=True)).rstrip()
    assert text == comment(sentence, "text")
    assert set(sentence.upos) <= OPEN | FUNCTION
    assert "_" not in sentence.lemmas
    for m, (tag, label) in enumerate(zip(sentence.upos, labels[1:], strict=True), start=1):
        head = "ROOT" if heads[m] == 0 else sentence.upos[heads[m] - 1]
        assert (tag == "PUNCT") == (label == "punct")
        assert (tag == "DET") == (label == "det")
        assert (tag == "AUX") == (label in ("aux", "aux:pass", "cop"))
        assert head not in FUNCTION  # they have no dependents
        if label == "conj":
            assert heads[m] < m
    for h in range(1, len(heads)):
        below = [labels[m] for m in range(1, len(heads)) if heads[m] == h]
        assert all(below.count(label) <= 1 for label in ONE_A_HEAD)


def test_tiny_can_be_learned(tmp_path: Path) -> None:
    """A saved parser, trained on the file, gives most of the file's trees back to the words alone."""
    path = tmp_path / "tiny.headway"
    Parser.train(TINY, learner="margin", epochs=10).save(path)
    bare = [Sentence.from_words(s.forms, lemmas=s.lemmas, upos=s.upos) for s in treebank()]
    scores = evaluate(treebank(), (parsed.sentence for parsed in Parser.load(path).parse(bare)))
    assert scores.uas > 95
    assert scores.las > 95


# The demo


def test_new_sentences_are_new() -> None:
    words = {form for sentence in treebank() for form in sentence.forms}
    for sentence, tags in load_demo().NEW:
        assert len(sentence.split()) == len(tags.split())
        assert tuple(sentence.split()) not in {known.forms for known in treebank()}
        assert set(sentence.split()) <= words  # as the demo says


@pytest.mark.parametrize("number", [0, 1])
def test_the_demo_parses_them_right(number: int) -> None:
    words, _ = load_demo().NEW[number]
    rows = rows_shown(words)
    assert [row[1] for row in rows] == words.split()
    assert ", ".join(f"{row[3]} {row[-2]}" for row in rows) == TREES[number]


def test_the_demo_shows_its_own_scores_and_says_what_they_are() -> None:
    words = [len(sentence) for sentence in treebank()]
    rows = {
        line.split()[0]: line.split()[2:] for line in shown().splitlines() if line.startswith((" trained", " held"))
    }
    assert rows["trained"][:2] == ["35", str(sum(words) - sum(words[7::8]))]
    assert rows["held"][:2] == ["5", str(sum(words[7::8]))]
    assert float(rows["trained"][2]) > 90
    assert "own training sentences" in shown()


def test_the_confidence_of_every_arc_is_the_parsers() -> None:
    seen = [sentence for i, sentence in enumerate(treebank()) if i % 8 != 7]
    parser = Parser.train(seen, treebank()[7::8], learner="margin", epochs=10)
    for words, tags in load_demo().NEW:
        parsed = parser.parse(Sentence.from_words(words.split(), upos=tags.split()))
        assert f"{words}   P(tree) {parsed.confidence.tree:.3f}" in shown()
        arcs = [f"{parsed.marginals[parsed.heads[m], m]:.3f}" for m in range(1, len(parsed.heads))]
        assert [row[-1] for row in rows_shown(words)] == arcs


def test_make_demo_and_its_picture(tmp_path: Path) -> None:
    picture = tmp_path / "demo.svg"
    command = [sys.executable, str(EXAMPLES / "demo.py"), "--svg", str(picture)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    text = "".join(ElementTree.parse(picture).getroot().itertext()).replace("\xa0", " ")
    for piece in ("P(tree)", "garden", "trained on", "Inference alone", "Three best trees"):
        assert piece in done.stdout
        assert piece in text
