"""What is shown of a state: alone and among others, with and without a tree, also of very long sentences."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest

from headway.annotation import rewriting
from headway.annotation.decoding import decoded, decoded_together
from headway.annotation.rewriting import Rewriter
from headway.annotation.state import State, original_state
from headway.models.stretches import StretchedDistribution
from headway.parsed import Parsed
from tests.annotation.toys import FakeParser

BLANK = "\t_" * 6
OPEN = original_state("".join(f"{m}\t{form}{BLANK}\t_\t_\n" for m, form in enumerate("abc", start=1)))
CYCLE = original_state(
    f"1\ta\t_\t_\t_\t_\t2\tx\t_\t_\n2\tb\t_\t_\t_\t_\t1\tx\t_\t_\n3\tc{BLANK}\t_\t_\n",
)
EMPTY = original_state("# only a comment\n")


def test_together_as_alone():
    """Also where one of them has no tree, no words, or forbidden arcs."""
    states = [OPEN, replace(OPEN, forbidden=frozenset({(0, 1)})), EMPTY, CYCLE]
    for some in (states, states[:3], states[2:]):
        for state, shown in zip(some, decoded_together(some, FakeParser()), strict=True):
            alone = decoded(state, FakeParser())
            assert shown.state.same_as(alone.state)
            assert shown.problem == alone.problem
            assert shown.certainty == pytest.approx(alone.certainty)
    assert decoded(CYCLE, FakeParser()).problem is not None
    assert decoded(EMPTY, FakeParser()).problem is None


class Stretches(FakeParser):
    """Knows the probabilities of its own heads alone, as of sentences that are too long."""

    def _parsed(self, *given):
        found = super()._parsed(*given)
        arcs = np.array([1.0, 0.9, 0.4, 0.8])
        return Parsed(found.sentence, StretchedDistribution(found.heads, arcs, -2.0))


def test_very_long_sentences_have_one_alternative_each():
    shown = decoded(OPEN, Stretches())
    heads = shown.state.sentence.heads.tolist()
    assert shown.alternatives == (((heads[1], 0.9),), ((heads[2], 0.4),), ((heads[3], 0.8),))
    assert shown.certainty == 0.4


def test_pinned_words_are_certain():
    shown = decoded(State(OPEN.sentence.with_tree([-1, 2, -1, -1], partial=True), frozenset({1})), Stretches())
    assert shown.certainty == 0.4
    assert decoded(replace(shown.state, pins=frozenset({1, 2})), Stretches()).certainty == 0.8
    assert decoded(replace(shown.state, pins=frozenset({1, 2, 3})), Stretches()).certainty == 1


def test_writing_is_tried_again(monkeypatch):
    monkeypatch.setattr(rewriting, "_SOON", 0.01)
    monkeypatch.setattr(rewriting, "_LOOK", 0.02)
    attempts, written, looked = [], threading.Event(), threading.Event()

    def write() -> bool:
        attempts.append(1)
        if len(attempts) == 3:
            written.set()
        return len(attempts) == 3

    rewriter = Rewriter(write, looked.set)
    assert looked.wait(30)
    assert not attempts
    rewriter.wake()
    assert written.wait(30)
    rewriter.close()
    assert len(attempts) == 3
