"""From a treebank to a parser and from sentences to trees, on a toy language."""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import islice, repeat
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.typing import NDArray

from headway.archive import load_archive
from headway.errors import ArchiveError, HeadwayError, TrainingError, TreebankError
from headway.features.rules import Rule, Rules
from headway.inference.brute_force import all_trees
from headway.inference.tree_distribution import TreeDistribution
from headway.learning.monitor import Progress
from headway.parsed import Parsed
from headway.pipeline import Parser
from headway.training.data import checksum
from headway.treebank import Sentence, is_projective, is_tree, read_treebank, roots, write_treebank
from headway.treebank.annotations import offsets_of

from .models.model_parts import label_names_of, label_weights_of, weights_of
from .models.toy_treebank import LABELS, sentences

Floats = NDArray[np.float64]
TINY = Path(__file__).parents[1] / "examples" / "tiny.conllu"
trained = partial(Parser.train, tags="gold")  # what is about trees needs no tagger
LEARNERS: dict[str, dict[str, Any]] = {
    "perceptron": {"epochs": 4},
    "margin": {"epochs": 4},
    "loglinear": {"epochs": 12, "c": 1.0},
    "eg": {"epochs": 12, "c": 0.1},
    "eg-loglinear": {"epochs": 8, "c": 1.0},
    "expected-loss": {"epochs": 20, "c": 10.0},
}


@cache
def toy_parser(labels: str = "after", **settings: Any) -> Parser:
    return trained(sentences(36, 1, crossing=True), learner="perceptron", epochs=4, labels=labels, **settings)


@cache
def calibrated_parser() -> Parser:
    return trained(sentences(10, 2), sentences(20, 3, crossing=True), learner="perceptron", epochs=3)


def shares(gold: list[Sentence], found: list[Parsed]) -> tuple[float, float]:
    """UAS and LAS over all words."""
    heads = labels = total = 0
    for right, parsed in zip(gold, found, strict=True):
        assert right.heads is not None
        assert right.labels is not None
        for m in range(1, len(right) + 1):
            good = parsed.heads[m] == right.heads[m]
            heads += good
            labels += good and parsed.labels[m] == right.labels[m]
            total += 1
    return 100 * heads / total, 100 * labels / total


def bare(sentence: Sentence) -> Sentence:
    """The words alone."""
    return Sentence.from_words(sentence.forms, lemmas=sentence.lemmas, upos=sentence.upos, xpos=sentence.xpos)


# Training


@pytest.mark.parametrize("learner", list(LEARNERS))
@pytest.mark.parametrize("labels", ["after", "joint", "none"])
def test_every_learner_with_every_way_to_label(learner: str, labels: str) -> None:
    parser = trained(sentences(36, 4, crossing=True), learner=learner, labels=labels, **LEARNERS[learner])
    gold = sentences(30, 5, crossing=True)
    found = list(parser.parse(map(bare, gold)))
    uas, las = shares(gold, found)
    assert uas > 97.0
    if labels == "none":
        assert {label for parsed in found for label in parsed.labels[1:]} == {"_"}
        assert label_names_of(parser.model) == ()
    else:
        assert las > 96.0
        assert label_names_of(parser.model) == LABELS


@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("single_root", [False, True])
def test_trees_are_of_the_class(projective: bool, single_root: bool) -> None:
    """Projective training on trees that are not works; whatever the words, the tree is of the class."""
    flags: dict[str, Any] = {"projective": projective, "single_root": single_root}
    parser = trained(sentences(30, 6, crossing=True, two_roots=not single_root), labels="none", epochs=3, **flags)
    gold = sentences(30, 7, crossing=not projective, two_roots=not single_root)
    assert shares(gold, list(parser.parse(gold)))[0] > 97.0
    found = list(parser.parse(sentences(30, 8, crossing=True, two_roots=True)))
    assert all(is_tree(parsed.heads) for parsed in found)
    assert all(is_projective(parsed.heads) for parsed in found) == projective
    assert all(len(roots(parsed.heads)) == 1 for parsed in found) == single_root


def test_training_from_files(tmp_path: Path) -> None:
    train, dev = tmp_path / "train.conllu.gz", tmp_path / "dev.conllu"
    write_treebank(sentences(12, 9), train)
    write_treebank(sentences(6, 10), dev)
    settings: dict[str, Any] = {"learner": "perceptron", "epochs": 3}
    from_files = trained(train, str(dev), **settings)
    in_memory = trained(sentences(12, 9), sentences(6, 10), **settings)
    np.testing.assert_array_equal(weights_of(from_files.model), weights_of(in_memory.model))
    assert from_files.model.about == in_memory.model.about


def test_the_model_says_where_it_comes_from() -> None:
    about = calibrated_parser().model.about
    assert about["settings"]["learner"] == "perceptron"
    assert about["settings"]["epochs"] == 3
    assert about["train"]["sentences"] == 10
    assert len(about["train"]["sha256"]) == 16
    assert [entry["pass"] for entry in about["history"]] == [1, 2, 3]
    assert about["best_pass"] == 1 + int(np.argmax([entry["dev"] for entry in about["history"]]))
    assert about["scale"] > 0
    assert 0 <= about["collisions"] < 1


def test_several_words_on_the_root(tmp_path: Path) -> None:
    path = tmp_path / "train.conllu"
    write_treebank(sentences(8, 11, two_roots=True), path)
    with pytest.raises(
        TrainingError, match=r"train\.conllu: 4 of 8 trees have several words on the root; .*multi-root"
    ):
        trained(path)
    with pytest.raises(TrainingError, match=r"^the training data: 4 of 8 trees"):
        trained(sentences(8, 11, two_roots=True))
    assert trained(path, single_root=False, epochs=1).model.trees.single_root is False
    assert trained(sentences(4, 11), dev=path, epochs=1).model.trees.single_root  # development trees may have several


def test_early_stopping_keeps_the_best_pass() -> None:
    """Training for exactly as many passes as the best one gives the same weights."""
    train, dev = sentences(20, 12), sentences(10, 13, crossing=True)
    stopped = trained(train, dev, learner="perceptron", epochs=40, patience=2)
    best, history = stopped.model.about["best_pass"], stopped.model.about["history"]
    assert len(history) == best + 2 < 40
    exact = trained(train, dev, learner="perceptron", epochs=best)
    np.testing.assert_array_equal(weights_of(stopped.model), weights_of(exact.model))


def test_the_same_seed_gives_the_same_model(tmp_path: Path) -> None:
    train = sentences(20, 14)
    one, same, other, threaded = (
        trained(train, learner="perceptron", epochs=3, seed=seed, threads=threads)
        for seed, threads in ((1, 1), (1, 1), (2, 1), (1, 3))
    )
    for again in (same, threaded):
        np.testing.assert_array_equal(weights_of(one.model), weights_of(again.model))
        np.testing.assert_array_equal(label_weights_of(one.model), label_weights_of(again.model))
    assert not np.array_equal(weights_of(one.model), weights_of(other.model))
    one.save(tmp_path / "one")
    same.save(tmp_path / "same")
    saved, again_saved = (load_archive(tmp_path / name, "arc") for name in ("one", "same"))
    assert saved.data == again_saved.data
    assert all(saved.arrays[name].tobytes() == again_saved.arrays[name].tobytes() for name in saved.arrays)


def test_an_interrupted_training_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.learning.monitor.CHECKPOINT_SECONDS", -1.0)
    train, dev, file = sentences(20, 15), sentences(10, 16, crossing=True), tmp_path / "checkpoint"
    settings: dict[str, Any] = {"learner": "margin", "epochs": 5}
    whole = trained(train, dev, **settings)

    def interrupt(progress: Progress) -> None:
        if progress.number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(train, dev, checkpoint=file, show=interrupt, **settings)
    assert file.exists()
    numbers: list[tuple[str, int]] = []
    resumed = trained(train, dev, checkpoint=file, show=lambda p: numbers.append((p.stage, p.number)), **settings)
    assert [number for stage, number in numbers if stage == "tree"] == [3, 4, 5]
    assert file.exists()  # until the parser is saved, which is for the caller to say
    np.testing.assert_array_equal(weights_of(resumed.model), weights_of(whole.model))
    np.testing.assert_array_equal(label_weights_of(resumed.model), label_weights_of(whole.model))
    assert resumed.model.about == whole.model.about


@pytest.mark.parametrize("learner", list(LEARNERS))
def test_a_treebank_with_nothing_to_learn(learner: str) -> None:
    """Sentences of one word, all with the same label."""
    train = [Sentence.from_words([form], heads=[-1, 0]) for form in "abcab"]
    parser = trained(train, learner=learner, **LEARNERS[learner])
    assert parser.parse(Sentence.from_words(["a"])).heads.tolist() == [-1, 0]


def test_settings_nobody_knows() -> None:
    with pytest.raises(TypeError, match="colour"):
        trained(sentences(2, 17), colour="red")
    with pytest.raises(HeadwayError, match="cannot read templates from no-such-table"):
        trained(sentences(2, 17), templates="no-such-table")


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    table = tmp_path / "mine.txt"
    table.write_text("h.xpos m.xpos | dir dist\n", "utf-8")
    parser = trained(sentences(20, 18), templates=str(table), epochs=3)
    assert [str(block.template) for block in parser.model.scorer.scorer.arcs.blocks] == [
        "h.xpos m.xpos | dir",
        "h.xpos m.xpos | dist",
    ]


# Text beside the trees

with_text = partial(trained, learner="loglinear", labels="none", epochs=6)


def other_trees(text: list[Sentence], seed: int) -> list[Sentence]:
    """The same sentences with other trees: each word on the root, or on a word before it."""
    rng = np.random.default_rng(seed)
    return [s.with_tree([-1, *(int(rng.integers(m)) for m in range(1, len(s) + 1))]) for s in text]


@pytest.mark.parametrize("labels", ["after", "joint", "none"])
@pytest.mark.parametrize("order", [1.0, 2.0, float("inf")])
def test_trees_and_text(labels: str, order: float, tmp_path: Path) -> None:
    """Trained, saved, loaded; the model says what it is from, and parses new sentences."""
    text = sentences(30, 50)
    parser = trained(
        sentences(24, 51), text=map(bare, text), learner="loglinear", labels=labels, epochs=12, entropy_weight=0.2,
        entropy_order=order,
    )  # fmt: skip
    parser.save(tmp_path / "model")
    again = Parser.load(tmp_path / "model")
    assert again.model.about == parser.model.about
    assert again.model.about["text"] == {"sentences": 30, "sha256": checksum([bare(s) for s in text])}
    assert again.model.about["train"]["sentences"] == 24
    assert again.model.about["settings"]["entropy_order"] == order
    gold = sentences(20, 52)
    found = list(again.parse(map(bare, gold)))
    assert shares(gold, found)[0] > 95.0
    assert label_names_of(parser.model) == (() if labels == "none" else LABELS[:3] + LABELS[4:])
    for one, other in zip(found, parser.parse(map(bare, gold)), strict=True):
        np.testing.assert_array_equal(one.heads, other.heads)
    assert "text" not in trained(sentences(6, 51), learner="loglinear", epochs=1).model.about


def test_text_makes_the_parser_surer(tmp_path: Path) -> None:
    """From a file as well as from sentences; the larger the weight, the lower the entropy of its trees."""
    train, text, path = sentences(6, 53), sentences(30, 54), tmp_path / "text.conllu"
    write_treebank(text, path)
    unsure = []
    for weight in (0.0, 0.3, 2.0):
        parser = with_text(train, text=path, entropy_weight=weight, c=0.1, epochs=30)
        same = with_text(train, text=text, entropy_weight=weight, c=0.1, epochs=30)
        np.testing.assert_array_equal(weights_of(same.model), weights_of(parser.model))
        unsure.append(np.mean([parsed.distribution.entropy for parsed in parser.parse(text)]))
    assert (np.diff(unsure) < -0.01).all()


def test_trees_of_the_text_are_not_looked_at() -> None:
    train, text = sentences(8, 55), sentences(12, 56, crossing=True)
    one, other, none, fewer = (
        with_text(train, text=each).model for each in (text, other_trees(text, 57), map(bare, text), text[1:])
    )
    np.testing.assert_array_equal(weights_of(one), weights_of(other))
    np.testing.assert_array_equal(weights_of(one), weights_of(none))
    assert one.coder == other.coder == none.coder
    assert not np.array_equal(weights_of(fewer), weights_of(one))


def test_text_with_predicted_tags_is_tagged() -> None:
    """Tags of the text's own are not used: wrong ones change nothing."""
    train, text = sentences(16, 58), sentences(10, 59)
    wrong = [replace(s, upos=("X",) * len(s), xpos=("Y",) * len(s)) for s in text]
    one, other = (
        Parser.train(train, text=each, learner="loglinear", labels="none", epochs=3) for each in (text, wrong)
    )
    np.testing.assert_array_equal(weights_of(one.model), weights_of(other.model))
    assert "X" not in one.model.coder.fields["upos"]
    assert "X" in with_text(train, text=wrong, epochs=1).model.coder.fields["upos"]


@pytest.mark.parametrize("learner", [name for name in LEARNERS if name != "loglinear"])
def test_text_for_a_learner_of_trees(learner: str) -> None:
    with pytest.raises(TrainingError, match=f"{learner} learns from trees alone; text beside them is for loglinear"):
        with_text(sentences(4, 60), text=sentences(4, 61), learner=learner)


def test_text_for_a_higher_order_model() -> None:
    with pytest.raises(TrainingError, match="text"):
        trained(sentences(4, 60), text=sentences(4, 61), model="sibling", epochs=1)


def test_text_without_words() -> None:
    with pytest.raises(TrainingError, match=r"^the text: has no sentence with words"):
        with_text(sentences(4, 60), text=[])


@pytest.mark.parametrize("optimiser", ["lbfgs", "adagrad"])
def test_interrupted_training_with_text(optimiser: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint belongs to its text, weight and order. Mini-batches end where they would have."""
    monkeypatch.setattr("headway.learning.monitor.CHECKPOINT_SECONDS", -1.0)
    train, text, file = sentences(8, 62), sentences(9, 63), tmp_path / "checkpoint"
    settings: dict[str, Any] = {"text": text, "optimiser": optimiser, "epochs": 5}
    whole = with_text(train, **settings)
    with pytest.raises(KeyboardInterrupt):
        with_text(train, checkpoint=file, show=interrupt_at_three, **settings)
    for change in ({"text": text[1:]}, {"entropy_weight": 2.0}, {"entropy_order": 2.0}, {"text": None}):
        with pytest.raises(ArchiveError, match="a checkpoint of other data or settings"):
            with_text(train, checkpoint=file, **{**settings, **change})
    resumed = with_text(train, checkpoint=file, **settings)
    assert [entry["pass"] for entry in resumed.model.about["history"]] == [1, 2, 3, 4, 5]
    if optimiser == "adagrad":
        np.testing.assert_array_equal(weights_of(resumed.model), weights_of(whole.model))
        assert resumed.model.about == whole.model.about


def interrupt_at_three(progress: Progress) -> None:
    if progress.number == 3:
        raise KeyboardInterrupt


# Rules instead of trees

RULES = Rules(
    (
        Rule(("N",), ("D", "J"), "left", (1, 3), (0.95, 1.0)),
        Rule(("V",), ("N",), None, None, (0.95, 1.0)),
        Rule(("V",), ("A", "S"), "right", None, (0.9, 1.0)),
        Rule(("ROOT",), ("V",), None, None, (0.95, 1.0)),
    )
)
constrained = partial(Parser.constrain, tags="gold", epochs=40, c=1000.0)


@pytest.mark.parametrize("criterion", ["squared", "kl"])
@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("single_root", [False, True])
def test_rules_and_no_trees(criterion: str, projective: bool, single_root: bool, tmp_path: Path) -> None:
    """Trained, saved, loaded: right heads for new sentences, in the class of trees, without labels."""
    flags: dict[str, Any] = {"criterion": criterion, "projective": projective, "single_root": single_root}
    parser = constrained(RULES, map(bare, sentences(30, 64)), **flags)
    parser.save(tmp_path / "model")
    again = Parser.load(tmp_path / "model")
    gold = sentences(20, 65)
    found = list(again.parse(map(bare, gold)))
    assert shares(gold, found)[0] > 90.0
    assert {label for parsed in found for label in parsed.labels[1:]} == {"_"}
    assert again.model.trees == (projective, single_root)
    assert again.tagger is None
    for one, other in zip(found, parser.parse(map(bare, gold)), strict=True):
        np.testing.assert_array_equal(one.heads, other.heads)
    about = again.model.about
    assert about == parser.model.about
    assert about["settings"]["learner"] == "constraints"
    assert about["settings"]["criterion"] == criterion
    assert about["train"]["sentences"] == 30
    assert about["rules"] == RULES.to_toml()


def test_rules_with_predicted_tags(tmp_path: Path) -> None:
    """The tags of the text train a tagger, so that plain tokens parse."""
    Parser.constrain(RULES, sentences(40, 66), tags="predicted", epochs=40, c=1000.0).save(tmp_path / "model")
    parser = Parser.load(tmp_path / "model")
    assert parser.tagger is not None
    assert parser.parse(["the", "big", "stone7", "moves", "a", "stone8", "."]).heads.tolist() == [
        -1,
        3,
        3,
        4,
        0,
        6,
        4,
        4,
    ]
    gold = sentences(20, 67)
    assert shares(gold, list(parser.parse(untagged(s) for s in gold)))[0] > 85.0


def test_rules_from_a_file_by_name_and_at_hand(tmp_path: Path) -> None:
    path, text = tmp_path / "mine.toml", sentences(10, 68)
    path.write_text(RULES.to_toml(), "utf-8")
    write_treebank(text, tmp_path / "text.conllu")
    at_hand, from_path, from_name = (
        constrained(rules, source, epochs=5).model
        for rules, source in ((RULES, text), (path, tmp_path / "text.conllu"), (str(path), text))
    )
    np.testing.assert_array_equal(weights_of(at_hand), weights_of(from_path))
    np.testing.assert_array_equal(weights_of(at_hand), weights_of(from_name))
    assert at_hand.about == from_path.about == from_name.about
    with pytest.raises(HeadwayError, match=r"cannot read rules from no-such-rules: .*universal"):
        constrained("no-such-rules", text)


def test_universal_rules_beat_chains() -> None:
    """On the forty sentences of the examples, better than every word on its neighbour, left or right."""
    gold = list(read_treebank(TINY))
    found = list(Parser.constrain("universal", TINY, tags="gold").parse(map(bare, gold)))
    right = {"left": 0, "right": 0}
    for sentence in gold:
        assert sentence.heads is not None
        n = len(sentence)
        right["left"] += sum(sentence.heads[m] == m - 1 for m in range(1, n + 1))
        right["right"] += sum(sentence.heads[m] == (m + 1) % (n + 1) for m in range(1, n + 1))
    chains = 100 * max(right.values()) / sum(map(len, gold))
    assert shares(gold, found)[0] > chains + 10.0


def test_trees_of_a_text_with_rules_are_not_looked_at() -> None:
    text = sentences(12, 69, crossing=True)
    one, same, other, none = (
        constrained(RULES, each, epochs=5).model for each in (text, text, other_trees(text, 70), map(bare, text))
    )
    for again in (same, other, none):
        np.testing.assert_array_equal(weights_of(one), weights_of(again))
        assert one.coder == again.coder
    assert one.about == same.about


def test_rules_with_development_trees() -> None:
    """The best pass by the development score is kept; its scores are not rescaled."""
    text, dev = sentences(20, 71), sentences(10, 72, crossing=True)
    parser = constrained(RULES, text, dev)
    history = parser.model.about["history"]
    assert parser.model.about["best_pass"] == 1 + int(np.argmax([entry["dev"] for entry in history]))
    assert parser.model.about["scale"] == 1.0
    exact = constrained(RULES, text, epochs=parser.model.about["best_pass"])
    np.testing.assert_array_equal(weights_of(parser.model), weights_of(exact.model))


def test_checkpoints_with_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.learning.monitor.CHECKPOINT_SECONDS", -1.0)
    text, file = sentences(10, 73), tmp_path / "checkpoint"
    settings: dict[str, Any] = {"checkpoint": file, "epochs": 6, "criterion": "squared"}
    with pytest.raises(KeyboardInterrupt):
        constrained(RULES, text, show=interrupt_at_three, **settings)
    stages = {path: path.read_bytes() for path in file.iterdir()}
    others = Rules((*RULES.rules[:3], replace(RULES.rules[3], target=(0.9, 1.0))))
    changes: list[tuple[Rules, list[Sentence], dict[str, Any]]] = [
        (others, text, {}),
        (Rules(RULES.rules[:3]), text, {}),
        (RULES, text[1:], {}),
        (RULES, text, {"criterion": "kl"}),
        (RULES, text, {"c": 1.0}),
    ]
    for rules, data, change in changes:
        with pytest.raises(ArchiveError, match="a checkpoint of other data or settings"):
            constrained(rules, data, **{**settings, **change})
    assert {path: path.read_bytes() for path in file.iterdir()} == stages
    resumed = constrained(RULES, text, **settings)
    objectives = [entry["objective"] for entry in resumed.model.about["history"]]
    assert [entry["pass"] for entry in resumed.model.about["history"]] == [1, 2, 3, 4, 5, 6]
    assert (np.diff(objectives) < 0).all()


def test_what_rules_cannot_be_learnt_with() -> None:
    text = sentences(6, 74)
    with pytest.raises(
        TrainingError, match="adagrad takes some sentences at a time, but what is minimised is about all"
    ):
        constrained(RULES, text, optimiser="adagrad")
    with pytest.raises(TrainingError, match="criterion is 'cosine'"):
        constrained(RULES, text, criterion="cosine")
    with pytest.raises(TrainingError, match="no rule matches anything in the text; are its words tagged"):
        constrained(RULES, [Sentence.from_words(["a", "b"])] * 3)
    with pytest.raises(TrainingError, match=r"^the text: has no sentence with words"):
        constrained(RULES, [])
    with pytest.raises(TrainingError, match=r"constraints need rules, not trees; use Parser\.constrain"):
        trained(text, learner="constraints", epochs=1)


@pytest.mark.parametrize("setting", [{"learner": "margin"}, {"labels": "joint"}, {"runs": 3}])
def test_settings_that_rules_have_no_use_for(setting: dict[str, Any]) -> None:
    with pytest.raises(TrainingError, match=f"learning from rules has no setting '{next(iter(setting))}'; there are"):
        constrained(RULES, sentences(6, 75), **setting)


def test_models_that_rules_do_not_train() -> None:
    with pytest.raises(TrainingError, match="rules train the models arc and neural, not 'sibling'"):
        constrained(RULES, sentences(6, 75), model="sibling")


# Parsing


def test_one_sentence_or_many() -> None:
    parser, text = toy_parser(), sentences(10, 20, crossing=True)
    many = list(parser.parse(text))
    assert all(isinstance(parsed, Parsed) for parsed in many)
    for sentence, parsed in zip(text, many, strict=True):
        assert parsed.sentence.forms == sentence.forms
        alone = parser.parse(sentence)
        np.testing.assert_array_equal(alone.heads, parsed.heads)
        assert alone.labels == parsed.labels
        assert alone.status == parsed.status == "EXACT"
    assert list(parser.parse([])) == []


def test_order_is_kept_over_many_batches() -> None:
    """More sentences than are parsed at once, long and short ones mixed, each with a word of its own."""
    text = [Sentence.from_words([f"w{i}", *["the"] * (i % 7)]) for i in range(1100)]
    found = list(toy_parser("none").parse(text))
    assert [parsed.sentence.forms for parsed in found] == [sentence.forms for sentence in text]
    assert [len(parsed.heads) for parsed in found] == [len(sentence) + 1 for sentence in text]


def test_parsing_is_a_stream() -> None:
    """At most 512 sentences are read ahead; an endless treebank parses."""
    taken = 0

    def endless() -> Iterator[Sentence]:
        nonlocal taken
        for sentence in repeat(Sentence.from_words(["the", "stone"])):
            taken += 1
            yield sentence

    stream = toy_parser("none").parse(endless())
    assert taken == 0
    next(stream)
    assert 1 <= taken <= 512
    assert len(list(islice(stream, 1200))) == 1200
    assert taken <= 1201 + 512


@pytest.mark.parametrize(("arcs", "ahead"), [(1, 1), (50, 2), (10**6, 20)])
def test_few_long_sentences_are_read_ahead(monkeypatch: pytest.MonkeyPatch, arcs: int, ahead: int) -> None:
    """A portion ends with the sentence that fills it: here each one has 36 cells."""
    monkeypatch.setattr("headway.models.portions._ARCS", arcs)
    text = [Sentence.from_words([f"w{i}", "the", "stone", "moves", "."]) for i in range(20)]
    rest = iter(text)
    stream = toy_parser("none").parse(rest)
    first = next(stream)
    assert len(list(rest)) == 20 - ahead
    assert first.sentence.forms == text[0].forms
    assert [parsed.sentence.forms for parsed in stream] == [sentence.forms for sentence in text[1:ahead]]


def test_the_sentence_itself_is_left_alone() -> None:
    sentence = sentences(1, 21)[0]
    assert sentence.heads is not None
    before = sentence.heads.copy()
    parsed = toy_parser().parse(sentence.with_tree([-1, *[0] * len(sentence)]))
    np.testing.assert_array_equal(parsed.heads, before)
    np.testing.assert_array_equal(sentence.heads, before)


@pytest.mark.parametrize("labels", ["after", "joint", "none"])
@pytest.mark.parametrize("mbr", [False, True])
def test_sentences_of_any_length(labels: str, mbr: bool) -> None:
    """No word, one word, three hundred, in one batch."""
    long = Sentence.from_words((["the", "stone", "moves"] * 100), xpos=["D", "N", "V"] * 100)
    text = [Sentence.from_words([]), Sentence.from_words(["stone"]), long, Sentence.from_words([])]
    found = list(toy_parser(labels).parse(text, mbr=mbr))
    assert [len(parsed.heads) for parsed in found] == [1, 2, 301, 1]
    for parsed in found:
        assert is_tree(parsed.heads)
        assert len(parsed.labels) == len(parsed.heads)
        assert parsed.labels[0] is None
        assert parsed.heads[0] == -1
        n = len(parsed.heads) - 1
        assert parsed.marginals.shape == (n + 1, n + 1)
        np.testing.assert_allclose(parsed.marginals[:, 1:].sum(axis=0), 1.0, rtol=1e-9)
    empty, one = found[0], found[1]
    assert empty.confidence.tree == 1.0
    assert empty.confidence.arcs.tolist() == [1.0]
    assert one.heads.tolist() == [-1, 0]
    assert one.confidence.tree == pytest.approx(1.0)


def test_words_and_tags_never_seen() -> None:
    """Known tags carry unknown words; without any, there still is a tree."""
    gold = sentences(20, 22, crossing=True)
    strange = [
        Sentence.from_words(
            [f"{form}x" if tag in "NVJ" else form for form, tag in zip(s.forms, s.xpos, strict=True)],
            upos=s.upos,
            xpos=s.xpos,
            feats=["New=Yes"] * len(s),
        )
        for s in gold
    ]
    assert shares(gold, list(toy_parser().parse(strange)))[0] > 90.0
    nothing = toy_parser().parse(Sentence.from_words(["qu", "xyzzy", "\u200b", "🙂"], upos=["?"] * 4, xpos=["!"] * 4))
    assert is_tree(nothing.heads)
    assert set(nothing.labels[1:]) <= set(LABELS)


def test_what_a_file_held_stays_in_it() -> None:
    text = "# text = the stone moves\n1-2\tthestone\t_\t_\t_\t_\t_\t_\t_\tX=1\n"
    text += "1\tthe\tthe\tD\tD\t_\t_\t_\t_\tA=1\n2\tstone\tstone\tN\tN\t_\t_\t_\t_\t_\n"
    text += "3\tmoves\tmoves\tV\tV\t_\t_\t_\t_\t_\n3.1\te\te\tV\tV\t_\t_\t_\t_\t_\n\n"
    (sentence,) = read_treebank(io.StringIO(text), format="conllu")
    parsed = toy_parser().parse(sentence)
    expected = text.replace("D\tD\t_\t_\t_", "D\tD\t_\t2\tdet").replace(
        "stone\tN\tN\t_\t_\t_", "stone\tN\tN\t_\t3\tsubj"
    )
    expected = expected.replace("moves\tV\tV\t_\t_\t_", "moves\tV\tV\t_\t0\troot")
    assert parsed.to_conllu() == expected


@pytest.mark.parametrize("labels", ["after", "joint"])
@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("single_root", [False, True])
def test_probabilities_by_enumeration(labels: str, projective: bool, single_root: bool) -> None:
    """Marginals, the tree's and the arcs' probabilities, and the tree with most heads expected right."""
    train = sentences(12, 23, crossing=True, two_roots=not single_root)
    parser = trained(
        train, sentences(8, 24, crossing=True), learner="perceptron", epochs=2, labels=labels, projective=projective,
        single_root=single_root,
    )  # fmt: skip
    sentence = Sentence.from_words(["indeed", "moves", "the", "big", "often"], xpos=["M", "V", "D", "J", "A"])
    parsed = parser.parse(sentence)
    trees, words = all_trees(5, projective=projective, single_root=single_root), np.arange(1, 6)
    assert isinstance(parsed.distribution, TreeDistribution)
    totals = np.array([parsed.distribution.score(tree) for tree in trees])
    probabilities = np.exp(totals - np.logaddexp.reduce(totals))
    mu = np.zeros((6, 6))
    for tree, probability in zip(trees, probabilities, strict=True):
        mu[tree[1:], words] += probability
    np.testing.assert_allclose(parsed.marginals, mu, rtol=0, atol=1e-10)
    np.testing.assert_allclose(parsed.marginals[:, 1:].sum(axis=0), 1.0, rtol=1e-12)
    (position,) = np.flatnonzero((trees == parsed.heads).all(axis=1))
    assert parsed.confidence.tree == pytest.approx(probabilities[position], rel=1e-9)
    assert parsed.confidence.tree == pytest.approx(np.exp(parsed.distribution.log_prob(parsed.heads)), rel=1e-12)
    np.testing.assert_allclose(parsed.confidence.arcs[1:], mu[parsed.heads[1:], words], rtol=1e-9)
    assert parsed.confidence.arcs[0] == 1.0
    if labels == "after":
        assert probabilities[position] == probabilities.max()
    right = [mu[tree[1:], words].sum() for tree in trees]
    by_risk = parser.parse(sentence, mbr=True)
    np.testing.assert_array_equal(by_risk.heads, trees[int(np.argmax(right))])
    np.testing.assert_array_equal(by_risk.marginals, parsed.marginals)


def arc_scores(parsed: Parsed) -> Floats:
    """The scores behind the probabilities."""
    assert isinstance(parsed.distribution, TreeDistribution)
    scores: Floats = parsed.distribution._batch.scores[0]
    return scores


def mean_log_likelihood(parser: Parser, gold: list[Sentence], factor: float = 1.0) -> float:
    total = 0.0
    for sentence, parsed in zip(gold, parser.parse(gold), strict=True):
        assert sentence.heads is not None
        scaled = TreeDistribution(factor * arc_scores(parsed), *parser.model.trees)
        total += float(scaled.log_prob(sentence.heads))
    return total / len(gold)


def test_calibration_makes_development_trees_likelier_and_changes_none() -> None:
    parser, dev = calibrated_parser(), sentences(20, 3, crossing=True)
    scale = parser.model.about["scale"]
    calibrated = mean_log_likelihood(parser, dev)
    assert calibrated > mean_log_likelihood(parser, dev, 1 / scale)
    assert calibrated >= max(mean_log_likelihood(parser, dev, factor) for factor in (0.5, 0.8, 1.25, 2.0)) - 1e-3
    new = sentences(20, 25, crossing=True)
    assert mean_log_likelihood(parser, new) > mean_log_likelihood(parser, new, 1 / scale)
    raw = trained(sentences(10, 2), learner="perceptron", epochs=parser.model.about["best_pass"])
    for one, other in zip(parser.parse(new), raw.parse(new), strict=True):
        np.testing.assert_array_equal(one.heads, other.heads)
        np.testing.assert_allclose(arc_scores(one), scale * arc_scores(other), rtol=1e-9, atol=1e-9)


def test_threads_change_nothing() -> None:
    text = sentences(60, 26, crossing=True)
    for mbr in (False, True):
        for one, other in zip(
            toy_parser().parse(text, mbr=mbr), toy_parser().parse(text, mbr=mbr, threads=3), strict=True
        ):
            np.testing.assert_array_equal(one.heads, other.heads)
            assert one.labels == other.labels


# Saving


@pytest.mark.parametrize("labels", ["after", "joint", "none"])
def test_saved_and_loaded_parsers_agree(tmp_path: Path, labels: str) -> None:
    path = tmp_path / "toy.headway"
    toy_parser(labels).save(path)
    text = sentences(30, 27, crossing=True)
    for one, other in zip(Parser.load(path).parse(text), toy_parser(labels).parse(text), strict=True):
        np.testing.assert_array_equal(one.heads, other.heads)
        assert one.labels == other.labels
        np.testing.assert_allclose(arc_scores(one), arc_scores(other), rtol=1e-5, atol=1e-4)


def test_a_full_disk_leaves_the_old_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "toy.headway"
    toy_parser().save(path)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ArchiveError, match="No space left on device"):
        toy_parser("none").save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["toy.headway"]


# Plain words and text


@cache
def text_parser() -> Parser:
    """Trained on the forty sentences of the examples, as anyone would first."""
    return Parser.train(TINY, epochs=8)


def untagged(sentence: Sentence) -> Sentence:
    return Sentence.from_words(sentence.forms)


def test_training_makes_a_tagger_and_a_segmenter() -> None:
    parser = text_parser()
    assert parser.tagger is not None
    assert parser.segmenter is not None
    assert parser.model.about["settings"]["tags"] == "predicted"
    assert toy_parser().tagger is None


def test_tokens_text_and_sentences_alike() -> None:
    """One sentence, however it is given, is one result; anything else is a stream of them."""
    parser, tokens = text_parser(), ["The", "old", "woman", "reads", "a", "book", "."]
    text = "The old woman reads a book."
    ways = [tokens, tuple(tokens), text, Sentence.from_words(tokens), f" {text} ".replace("old ", "old\n")]
    found = [parser.parse(way) for way in ways]
    by_hand = Sentence.from_words(
        tokens, lemmas=found[0].sentence.lemmas, upos=found[0].sentence.upos, xpos=found[0].sentence.xpos
    )
    tree = parser.parse(by_hand)
    for parsed in found:
        assert isinstance(parsed, Parsed)
        assert parsed.sentence.forms == tuple(tokens)
        assert parsed.sentence.upos == ("DET", "ADJ", "NOUN", "VERB", "DET", "NOUN", "PUNCT")
        assert parsed.sentence.lemmas == ("the", "old", "woman", "read", "a", "book", ".")
        assert parsed.heads.tolist() == tree.heads.tolist()
        assert parsed.labels == tree.labels
    for stream in (iter(ways), (way for way in ways), [tokens, *ways[3:]], dict.fromkeys(ways[1:3])):
        many = list(parser.parse(stream))
        assert len(many) in (len(ways), 3, 2)
        assert all(parsed.heads.tolist() == found[0].heads.tolist() for parsed in many)
    assert [parsed.sentence.forms for parsed in parser.parse(iter(["Dogs bark.", "Cats sleep."]))] == [
        ("Dogs", "bark", "."), ("Cats", "sleep", "."),
    ]  # fmt: skip


def test_nothing_to_parse() -> None:
    parser = text_parser()
    assert list(parser.parse([])) == []
    assert list(parser.parse(iter(()))) == []
    assert list(parser.parse_text(" \n ")) == []
    for empty in ("", " \n"):
        assert parser.parse(empty).heads.tolist() == [-1]
    assert [parsed.heads.tolist() for parsed in parser.parse(iter(["", "Go"]))] == [[-1], [-1, 0]]


def test_given_tags_are_kept_unless_asked_otherwise() -> None:
    parser = text_parser()
    odd = Sentence.from_words(["The", "dog", "sleeps", "."], upos=["X", *"___"], lemmas=["THE", *"___"])
    kept, again = parser.parse(odd), parser.parse(odd, retag=True)
    assert (kept.sentence.upos, kept.sentence.lemmas) == (odd.upos, odd.lemmas)
    assert again.sentence.upos == ("DET", "NOUN", "VERB", "PUNCT")
    assert again.sentence.lemmas == ("the", "dog", "sleep", ".")
    assert odd.upos == ("X", "_", "_", "_")
    mixed = [odd, untagged(odd), odd]
    assert [p.sentence.upos[0] for p in parser.parse(iter(mixed))] == ["X", "DET", "X"]
    assert [p.sentence.upos[0] for p in parser.parse(mixed, retag=True)] == ["DET"] * 3
    assert mixed[1].upos == ("_", "_", "_", "_")


def test_retag_without_a_tagger_changes_nothing() -> None:
    (sentence,) = sentences(1, 31)
    assert toy_parser().parse(sentence, retag=True).sentence.upos == sentence.upos


def test_a_whole_text() -> None:
    text = "The dog sleeps. A small bird sings.\n\nThe old woman reads a book."
    found = list(text_parser().parse_text(text))
    assert [parsed.sentence.forms for parsed in found] == [
        ("The", "dog", "sleeps", "."), ("A", "small", "bird", "sings", "."),
        ("The", "old", "woman", "reads", "a", "book", "."),
    ]  # fmt: skip
    for parsed in found:
        assert parsed.offsets is not None
        assert tuple(text[start:end] for start, end in parsed.offsets) == parsed.sentence.forms
    later = text_parser().sentences(text, offset=100)
    assert [offsets_of(s)[0] for s in later] == [  # type: ignore[index]
        (start + 100, end + 100) for start, end in (parsed.offsets[0] for parsed in found)  # type: ignore[index]
    ]  # fmt: skip


def test_offsets_where_there_was_a_text_only() -> None:
    parser = text_parser()
    assert parser.parse("  The dog").offsets == ((2, 5), (6, 9))
    assert parser.parse(["The", "dog"]).offsets is None
    assert parser.parse(Sentence.from_words(["The", "dog"])).offsets is None


def test_what_a_parser_cannot_read() -> None:
    without_tagger, without_segmenter = toy_parser(), replace(text_parser(), segmenter=None)
    for text in ("the stone moves", ["the", "stone"], ("the",)):
        with pytest.raises(TrainingError, match=r"no tagger, as it was trained on gold tags; .*tags='predicted'"):
            without_tagger.parse(text)
    with pytest.raises(TrainingError, match="no tagger"):
        list(without_tagger.parse(iter([["the", "stone"]])))
    with pytest.raises(TrainingError, match=r"cannot split text into words.*give it tokens"):
        without_segmenter.parse("The dog sleeps.")
    with pytest.raises(TrainingError, match="cannot split text"):
        without_segmenter.parse_text("The dog sleeps.")
    assert without_segmenter.parse(["The", "dog"]).sentence.upos == ("DET", "NOUN")


@pytest.mark.parametrize("token", ["The dog sleeps.", "a\tb", "a\n b", "New\u00a0York"])
def test_tokens_with_white_space(token: str) -> None:
    """A list of sentences is easily taken for one of tokens."""
    with pytest.raises(TreebankError, match=r"has white space in it; .*parse_text"):
        text_parser().parse(["Cats", token])


def test_a_model_without_tags_needs_no_tagger() -> None:
    train = [Sentence.from_words(s.forms, heads=s.heads, labels=s.labels) for s in sentences(20, 32)]
    parser = Parser.train(train, epochs=3)
    assert parser.tagger is None
    assert parser.parse(["the", "stone7", "moves", "."]).heads.tolist() == [-1, 2, 3, 0, 3]


def test_as_plain_data() -> None:
    parsed = text_parser().parse("The dog sleeps.")
    data = parsed.to_dict()
    read = json.loads(json.dumps(data))["words"]
    assert [word | {"offsets": tuple(word["offsets"])} for word in read] == data["words"]
    assert [word["id"] for word in data["words"]] == [1, 2, 3, 4]
    columns = {"form": "forms", "lemma": "lemmas", "upos": "upos", "xpos": "xpos"}
    for key, name in columns.items():
        assert tuple(word[key] or "_" for word in data["words"]) == getattr(parsed.sentence, name)
    assert [word["head"] for word in data["words"]] == parsed.heads[1:].tolist()
    assert [word["label"] for word in data["words"]] == list(parsed.labels[1:])
    assert [word["offsets"] for word in data["words"]] == [(0, 3), (4, 7), (8, 14), (14, 15)]
    np.testing.assert_allclose([word["probability"] for word in data["words"]], parsed.confidence.arcs[1:], atol=1e-6)
    assert data["probability"] == parsed.confidence.tree
    assert (data["status"], data["gap"]) == ("EXACT", 0.0)
    assert data["multiword_tokens"] == []
    assert {word["offsets"] for word in text_parser().parse(["The", "dog"]).to_dict()["words"]} == {None}


def test_features_and_multiword_tokens_as_plain_data() -> None:
    text = """\
1\tdo\tdo\tAUX\tV\tMood=Ind|Tense=Pres\t_\t_\t_\tTokenRange=0:2
2-3\tcannot\t_\t_\t_\t_\t_\t_\t_\tTokenRange=3:9
2\tcan\tcan\tAUX\tV\t_\t_\t_\t_\tTokenRange=3:6
3\tnot\tnot\tPART\tA\tF|S|Foreign=Yes\t_\t_\t_\tTokenRange=6:9

"""
    (sentence,) = read_treebank(io.StringIO(text))
    heads = np.array([-1, 0, 1, 1])
    data = Parsed(sentence.with_tree(heads), TreeDistribution(np.zeros((4, 4)))).to_dict()
    found = json.loads(json.dumps(data))
    assert [word["feats"] for word in found["words"]] == [
        {"Mood": "Ind", "Tense": "Pres"},
        {},
        {"F": True, "S": True, "Foreign": "Yes"},
    ]
    assert found["multiword_tokens"] == [{"first": 2, "last": 3, "form": "cannot", "offsets": [3, 9]}]
    bare = replace(sentence.layout, misc=("_",) * 3)
    data = Parsed(replace(sentence, layout=bare).with_tree(heads), TreeDistribution(np.zeros((4, 4)))).to_dict()
    assert data["multiword_tokens"] == [{"first": 2, "last": 3, "form": "cannot", "offsets": None}]


def test_as_a_picture() -> None:
    parsed = text_parser().parse("The dog <sleeps> & runs.")
    svg = parsed.to_svg()
    assert parsed._repr_svg_() == svg
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg")
    assert {"The", "dog"} <= {(element.text or "").strip() for element in root.iter()}
    assert ElementTree.fromstring(text_parser().parse("").to_svg()).tag.endswith("svg")


def test_another_class_of_trees_keeps_the_rest() -> None:
    parser = text_parser()
    other = parser.with_projective(True)
    assert other.model.trees == (True, True)
    assert parser.model.trees == (False, True)
    assert other.with_projective(False).model == parser.model
    assert other.tagger is parser.tagger
    assert other.segmenter is parser.segmenter


def test_the_parser_is_trained_on_the_tags_it_will_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tagger that gives the same tag to all words: there is none else in the model."""
    one = {"upos": ("X",), "xpos": ("Y",), "feats": ("_",)}

    def same(text: list[Sentence], *_: Any, **__: Any) -> list[Sentence]:
        return [replace(s, **{name: tag * len(s) for name, tag in one.items()}) for s in text]

    monkeypatch.setattr("headway.training.text_models.jackknifed", same)
    fields = Parser.train(sentences(8, 33), epochs=1).model.coder.fields
    assert (list(fields["upos"]), list(fields["xpos"])) == (["X"], ["Y"])


def test_clusters_are_part_of_a_saved_parser(tmp_path: Path) -> None:
    paths = tmp_path / "paths"
    paths.write_text("0101\tthe\n0110\ta\n111111111\tstone1\n", "utf-8")
    parser = Parser.train(sentences(12, 34), clusters=str(paths), epochs=2)
    paths.unlink()
    parser.save(tmp_path / "toy")
    again = Parser.load(tmp_path / "toy")
    assert again.model.coder.clusters == parser.model.coder.clusters
    assert again.tagger is not None
    assert again.tagger.coder.clusters.paths == {"the": "0101", "a": "0110", "stone1": "111111111"}
    text = sentences(10, 35)
    for one, other in zip(again.parse(text, retag=True), parser.parse(text, retag=True), strict=True):
        assert one.to_conllu() == other.to_conllu()


def test_a_saved_parser_reads_text_alike(tmp_path: Path) -> None:
    text_parser().save(tmp_path / "tiny.headway")
    again = Parser.load(tmp_path / "tiny.headway")
    text = "My brother found the keys. The Dog Sleeps!\n\nXyzzy's birds sing, and a dog reads."
    expected = [parsed.to_conllu() for parsed in text_parser().parse_text(text)]
    assert [parsed.to_conllu() for parsed in again.parse_text(text)] == expected
    assert [parsed.to_conllu() for parsed in again.parse_text(text, threads=2)] == expected


def test_the_english_model_is_included() -> None:
    found = list(Parser.load("en").parse_text("Economic news had little effect on financial markets. Dogs don't bark."))
    assert [parsed.sentence.forms[:3] for parsed in found] == [("Economic", "news", "had"), ("Dogs", "do", "n't")]
    assert found[0].labels[1:4] == ("amod", "nsubj", "root")
    assert found[0].heads[1:4].tolist() == [2, 3, 0]


def test_a_name_that_is_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the name comes first."""
    with pytest.raises(ArchiveError, match="xx: no such file"):
        Parser.load("xx")
    monkeypatch.chdir(tmp_path)
    toy_parser().save("en")
    assert Parser.load("en").model.about == json.loads(json.dumps(toy_parser().model.about))


def test_several_runs_are_averaged() -> None:
    """Weights of two runs are the mean of those of either seed, of labels and tags too."""
    text, settings = sentences(16, 40), {"learner": "perceptron", "epochs": 2, "labels": "after", "tags": "predicted"}
    first, second = (Parser.train(text, seed=seed, **settings) for seed in (3, 4))
    both = Parser.train(text, seed=3, runs=2, **settings)
    # jack-knifing has the first seed alone, so arcs and labels are compared with gold tags below
    assert both.tagger is not None
    assert first.tagger is not None
    assert second.tagger is not None
    np.testing.assert_allclose(both.tagger.weights, (first.tagger.weights + second.tagger.weights) / 2, atol=1e-12)
    gold = {**settings, "tags": "gold"}
    first, second = (Parser.train(text, seed=seed, **gold) for seed in (3, 4))
    both = Parser.train(text, seed=3, runs=2, **gold)
    for part in (weights_of, label_weights_of):
        mean = (part(first.model) + part(second.model)) / 2
        np.testing.assert_allclose(part(both.model), mean, atol=1e-12)
        assert np.abs(mean - part(first.model)).max() > 0
    with pytest.raises(TrainingError, match="runs is 0"):
        Parser.train(text, runs=0)


def test_an_unknown_model() -> None:
    models = "arc, grandsibling, neural, sibling"
    with pytest.raises(TrainingError, match=f"unknown model 'banana'; the models are: {models}"):
        trained(sentences(4, 41), model="banana")


@pytest.mark.parametrize("setting", [{"entropy_weight": 0.1}, {"entropy_order": 2.0}])
def test_entropy_without_text(setting: dict[str, Any]) -> None:
    with pytest.raises(TrainingError, match=f"{next(iter(setting))} is about text beside the trees; give some"):
        trained(sentences(4, 41), learner="loglinear", **setting)
