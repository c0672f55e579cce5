"""Arguments that no function can work with: a typed error that says what was expected, before anything is computed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import headway as hw
from headway.errors import ArgumentError, HeadwayError
from headway.inference import argmax, log_partition

S = np.zeros((4, 4))
PARTS = (S, np.zeros((4, 4, 4)))
TREE = hw.Sentence.from_words(["a", "b"], heads=[-1, 0, 1])
RAGGED = [[0.0, 1.0], [1.0]]


def tree(**options: Any) -> Any:
    return hw.TreeDistribution(S, **options)


def parser() -> Any:
    """What it is given is checked before its model is asked."""
    return hw.Parser(cast(Any, None))


def masked(values: Any) -> Any:
    return np.ma.masked_array(values, mask=True)


def labelled() -> Any:
    return hw.LabelledTreeDistribution(np.zeros((3, 3, 2)))


CALLS: dict[str, Callable[[], Any]] = {
    "no trees": lambda: tree().kbest(0),
    "half a tree": lambda: tree().kbest(2.5),
    "fewer than no samples": lambda: tree().sample(-1, 0),
    "labelled samples": lambda: labelled().sample("x", 0),
    "no sample without replacement": lambda: tree().sample_without_replacement(0, 0),
    "a name for a seed": lambda: tree().sample(2, "x"),
    "a negative seed": lambda: tree().sample(2, -4),
    "no threads": lambda: tree(threads=0),
    "threads as text": lambda: tree(threads="4"),
    "no threads to parse": lambda: parser().parse([["a"]], threads=0),
    "ragged scores": lambda: hw.TreeDistribution(RAGGED),
    "ragged labelled scores": lambda: hw.LabelledTreeDistribution([[[1]], [[1], [2]]]),
    "ragged siblings": lambda: hw.SiblingDistribution(S, cast(Any, RAGGED)),
    "ragged lengths": lambda: hw.TreeDistribution(np.zeros((2, 3, 3)), lengths=[[1], [1, 2]]),
    "ragged heads": lambda: tree().log_prob([1, [2]]),
    "ragged functions": lambda: tree().expectation(RAGGED),
    "ragged labelled functions": lambda: labelled().covariance_with_arcs(RAGGED),
    "ragged trees": lambda: hw.Sentence.from_words(["a"], heads=[[1], [2, 3]]),
    "no scores": lambda: hw.TreeDistribution(cast(Any, None)),
    "scores of objects": lambda: log_partition(np.zeros((3, 3), object)),
    "complex scores": lambda: argmax(np.zeros((3, 3), complex)),
    "masked lengths": lambda: hw.TreeDistribution(np.zeros((2, 3, 3)), lengths=masked([1, 2])),
    "masked heads": lambda: tree().log_prob(masked([-1, 0, 1, 1])),
    "masked functions": lambda: tree().expectation(masked(S)),
    "masked rows": lambda: hw.TreeDistribution(cast(Any, [masked([0.0, 1.0]), [0.0, 0.0]])),
    "a flag that says no": lambda: tree(projective="no"),
    "a flag for every sentence": lambda: tree(single_root=np.array([True, False])),
    "a flag of decode": lambda: hw.decode(hw.SiblingParts.dense(*PARTS), projective=cast(Any, "no")),
    "Renyi's of a name": lambda: tree().renyi("a"),
    "divergence from scores": lambda: tree().kl(S),
    "arcs that are no pairs": lambda: hw.require(S, cast(Any, [5])),
    "arcs between words": lambda: tree().arc_set_probability([(1.5, 2)]),
    "no parts": lambda: hw.decode(cast(Any, None)),
    "steps as text": lambda: hw.decode(hw.SiblingParts.dense(*PARTS), iterations=cast(Any, "a")),
    "an alpha that is no number": lambda: hw.decode(hw.SiblingParts.dense(*PARTS), alpha=float("nan")),
    "nothing to parse": lambda: parser().parse(None),
    "bytes to parse": lambda: parser().parse(b"abc"),
    "a path to parse": lambda: parser().parse(Path("x.conllu")),
    "nothing among sentences": lambda: parser().parse(["a", None]),
    "numbers among tokens": lambda: next(parser().parse(iter([["a", 3]]))),
    "heads of many sentences": lambda: parser().parse([["a"]], heads=[-1, 0]),
    "heads of another sentence": lambda: parser().parse(TREE, heads=[-1, 0]),
    "labels without heads": lambda: parser().parse(TREE, labels=[None, "x", "x"]),
    "a number for known labels": lambda: parser().parse(TREE, heads=[-1, 0, 1], labels=5),
    "heads given and kept": lambda: parser().parse(TREE, heads=[-1, 0, 1], keep_heads=True),
    "a number to forbid": lambda: parser().parse(TREE, forbid=5),
    "arcs to forbid that are no pairs": lambda: parser().parse(TREE, forbid=[5]),
    "no text": lambda: parser().parse_text(None),
    "no model": lambda: hw.Parser.load(cast(Any, None)),
    "no coreference model": lambda: hw.Resolver.load(cast(Any, 5)),
    "no treebank to train on": lambda: hw.Parser.train(cast(Any, None)),
    "no sentences to train on": lambda: hw.Parser.train(cast(Any, [None])),
    "no development data": lambda: hw.Parser.train([TREE], dev=cast(Any, 5)),
    "an unknown setting": lambda: hw.Parser.train([TREE], colour=1),
    "passes as text": lambda: hw.Parser.train([TREE], epochs="a"),
    "half a pass": lambda: hw.Parser.train([TREE], epochs=1.5),
    "a number for templates": lambda: hw.Parser.train([TREE], templates=5),
    "a flag of settings": lambda: hw.Parser.train([TREE], projective="no"),
    "no rules": lambda: hw.Parser.constrain(cast(Any, None), [TREE]),
    "no grammar": lambda: hw.Parser.induce(cast(Any, None)),
    "states as text": lambda: hw.Parser.induce([TREE], states="a"),
    "no documents": lambda: hw.Resolver.train(cast(Any, None)),
    "nothing to read": lambda: hw.read_treebank(cast(Any, None)),
    "nothing to write": lambda: hw.write_treebank(cast(Any, None), "nowhere.conllu"),
    "nowhere to write": lambda: hw.write_treebank([TREE], cast(Any, None)),
    "nothing to evaluate": lambda: hw.evaluate(cast(Any, 5), [TREE]),
    "nothing among what is evaluated": lambda: hw.evaluate(cast(Any, [None]), cast(Any, [None])),
    "a string for words": lambda: hw.Sentence.from_words("Dogs bark"),
    "a number for tags": lambda: hw.Sentence.from_words(["a"], upos=cast(Any, 5)),
    "a number for labels": lambda: hw.Sentence.from_words(["a"], heads=[-1, 0], labels=cast(Any, 5)),
}


@pytest.mark.parametrize("name", CALLS)
def test_it_is_a_typed_error_with_advice(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HeadwayError, match=r"expected|pad them|fill them|there is no setting") as caught:
        CALLS[name]()
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_scores_that_are_masked_are_forbidden() -> None:
    rng = np.random.default_rng(1)
    scores, mask = rng.normal(size=(5, 5)), rng.random((5, 5)) < 0.3
    given, plain = np.ma.masked_array(scores, mask), np.where(mask, -np.inf, scores)
    plain[np.arange(5), np.arange(5)] = 0.0
    found, expected = hw.TreeDistribution(given), hw.TreeDistribution(plain)
    np.testing.assert_array_equal(found.marginals, expected.marginals)
    assert found.log_partition == expected.log_partition != hw.TreeDistribution(scores).log_partition
    np.testing.assert_array_equal(found.allowed, expected.allowed)
    np.testing.assert_array_equal(argmax(given), argmax(plain))
    whole = np.ma.masked_array(np.ones((3, 3), np.int64))
    np.testing.assert_array_equal(hw.from_modifier_head(whole), np.ones((3, 3)))
    labels = np.ma.masked_array(np.zeros((3, 3, 2)), np.arange(18).reshape(3, 3, 2) % 2)
    assert np.exp(hw.LabelledTreeDistribution(labels).log_partition) == pytest.approx(2.0, rel=1e-12)
    assert given.mask is not None
    assert not np.isneginf(given.data).any()


def test_errors_are_safe_for_a_terminal() -> None:
    evil = "\x1b]0;x\x07\u202edog\nheadway: error: fake\u200dZoë"
    cyclic = hw.Sentence.from_words([evil.replace("\n", "\u2028"), "b"], heads=[-1, 2, 1])
    with pytest.raises(HeadwayError, match="cycle") as caught:
        hw.evaluate([cyclic], [cyclic])
    for said in (str(caught.value), str(ArgumentError(evil))):
        assert all(c.isprintable() or c == "\u200d" for c in said)
        assert r"\x1b]0;x\x07\u202edog" in said
        assert "\u200dZoë" in said
