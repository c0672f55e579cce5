"""The tiny treebank is sound and learnable, and the demo shows what the parser finds."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from xml.etree import ElementTree

import pytest

from headway import Parser, evaluate
from headway.drawing import tree_text
from headway.parsed import Parsed
from headway.treebank import Sentence, is_projective, read_treebank, require_tree, roots, write_treebank

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
TINY = EXAMPLES / "tiny.conllu"
OPEN = {"ADJ", "ADV", "NOUN", "NUM", "PRON", "PROPN", "VERB"}
FUNCTION = {"ADP", "AUX", "CCONJ", "DET", "PART", "PUNCT", "SCONJ"}
PICTURE = "new/demo.svg"
ONCE_PER_HEAD = {"nsubj", "nsubj:pass", "obj", "iobj", "cop", "expl"}


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


def comment(sentence: Sentence, key: str) -> str:
    (line,) = (line for line in sentence.layout.comments if line.startswith(f"# {key} = "))
    return line.removeprefix(f"# {key} = ")


# The treebank


def test_tiny_is_forty_trees_with_one_root() -> None:
    assert len(treebank()) == 40
    for sentence in treebank():
        heads = require_tree(sentence)
        (root,) = roots(heads)
        assert sentence.labels is not None
        assert [m for m, label in enumerate(sentence.labels) if label == "root"] == [root]
    assert sum(not is_projective(require_tree(sentence)) for sentence in treebank()) >= 2


def test_tiny_states_its_origin() -> None:
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
        assert all(below.count(label) <= 1 for label in ONCE_PER_HEAD)


def test_tiny_can_be_learned(tmp_path: Path) -> None:
    """A saved parser, trained on the file, finds most of the file's trees for the bare words and tags."""
    path = tmp_path / "tiny.headway"
    Parser.train(TINY, learner="margin", epochs=10, tags="gold").save(path)
    bare = [Sentence.from_words(s.forms, lemmas=s.lemmas, upos=s.upos) for s in treebank()]
    scores = evaluate(treebank(), (parsed.sentence for parsed in Parser.load(path).parse(bare)))
    assert scores.uas > 95
    assert scores.las > 95


# The demo


@cache
def shown() -> tuple[str, str]:
    """What the demo prints, and its picture."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, str(EXAMPLES / "demo.py"), "--svg", PICTURE]
        environment = {**os.environ, "HEADWAY_QUIET": "1", "PYTHONIOENCODING": "utf-8"}
        done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", env=environment, check=True)
        return done.stdout, (Path(folder) / PICTURE).read_text("utf-8")


@cache
def parsed_here() -> tuple[Parsed, ...]:
    """What the demo should show."""
    return tuple(Parser.load("en").parse_text(load_demo().TEXT))


def test_the_demo_draws_every_sentence_as_the_parser_parses_it() -> None:
    printed, picture = shown()
    parsed = parsed_here()
    assert len(parsed) == 3
    for found in parsed:
        assert " ".join(found.sentence.forms) in printed
        assert str(found.status) in ("CERTIFIED", "EXACT")  # it says that no other tree scores higher
        drawing = tree_text(found.sentence, found.confidence.arcs, unsure_below=load_demo().UNSURE_BELOW)
        for line in drawing.splitlines():
            assert line.rstrip() in printed
    assert picture == parsed[0].to_svg()
    drawn = "".join(ElementTree.fromstring(picture).itertext())
    assert all(form in drawn for form in parsed[0].sentence.forms)


def test_the_first_ten_lines_have_a_tree_a_confidence_and_a_picture() -> None:
    """On a new machine there is a line before, which says that kernels are compiled."""
    first, (line, *lines) = parsed_here()[0], shown()[0].splitlines()[:9]
    assert PICTURE in line
    assert f"{first.confidence.tree:.0%} probable" in line
    drawing = tree_text(first.sentence, first.confidence.arcs, unsure_below=load_demo().UNSURE_BELOW)
    assert [line.rstrip() for line in lines] == [line.rstrip() for line in drawing.splitlines()]


def test_the_demo_shows_the_least_certain_arc_and_its_alternatives() -> None:
    printed, _ = shown()
    least = min(float(found.confidence.arcs.min()) for found in parsed_here())
    (chosen,) = (line for line in printed.splitlines() if "<- chosen" in line)
    assert chosen.split()[0] == f"{least:.1%}"
    heads = printed.partition("Its most likely heads:\n")[2].partition("\n\n")[0].splitlines()
    shares = [float(line.split("%")[0]) for line in heads]
    assert len(shares) == 4
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) <= 100.1


def test_the_demo_knows_who_is_who() -> None:
    """The story is not among those that it learns from."""
    demo = load_demo()
    told = "\n".join(comment(s, "text") for s in read_treebank(EXAMPLES / "coreference.conllu"))
    for sentence in demo.STORY.split(". "):
        assert sentence.rstrip(".") not in told
    lines = shown()[0].partition(demo.STORY)[2].partition("\n\n")[0].splitlines()[1:]
    assert lines == ["  Mary = She = her", "  Bob = him"]


@pytest.mark.parametrize(
    ("story", "clusters"),
    [
        ("Bob met Mary. He gave her his book.", ["Bob = He = his", "Mary = her"]),
        ("Anna met Tom. She gave him her book.", ["Anna = She = her", "Tom = him"]),
        ("Peter has a dog. It likes him.", ["Peter = him", "a dog = It"]),
    ],
)
def test_who_is_who_in_other_stories(story: str, clusters: list[str]) -> None:
    """It is not the order of the names, nor their parts in the sentence."""
    found = load_demo().who_is_who(list(Parser.load("en").parse_text(story))).splitlines()
    assert [line.strip() for line in found[2:]] == clusters
