"""Choosing C, passes and decoding on held-out sentences."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from headway.errors import TrainingError
from headway.evaluation import evaluate
from headway.pipeline import Parser
from headway.text.tagger import Tagger
from headway.training.arc_trainer import prepare_arcs
from headway.training.data import TrainingData, training_trees
from headway.training.preparation import fit
from headway.training.settings import Settings
from headway.training.stages import Run
from headway.training.tuning import ENTROPY_WEIGHTS, Tuning, tune
from headway.treebank import Sentence

from ..models.model_parts import weights_of
from ..models.toy_treebank import sentences

tuned = partial(tune, tags="gold")


def parser_of(tuning: Tuning) -> Parser:
    return Parser.of(tuning.model, tuning.text_models)


def test_every_c_is_tried_in_both_decodings_and_the_best_wins() -> None:
    tuning = tuned(sentences(30, 1, crossing=True), grid=(0.5, 50.0), learner="margin", epochs=3, labels="none")
    assert [(trial.c, trial.projective) for trial in tuning.trials] == [
        (0.5, False), (0.5, True), (50.0, False), (50.0, True),
    ]  # fmt: skip
    best = max(tuning.trials, key=lambda trial: trial.uas)
    assert (tuning.settings.c, tuning.settings.epochs, tuning.projective) == (best.c, best.epochs, best.projective)
    assert all(1 <= trial.epochs <= 3 for trial in tuning.trials)


def test_a_projective_model_is_decoded_projectively_only() -> None:
    tuning = tuned(sentences(20, 2, crossing=True), grid=(5.0,), projective=True, epochs=2, labels="none")
    assert [trial.projective for trial in tuning.trials] == [True]
    assert tuning.model.trees.projective


def test_the_last_tenth_is_held_out_and_the_winner_is_trained_on_the_rest() -> None:
    data = sentences(40, 3, crossing=True)
    tuning = tuned(data, grid=(10.0,), epochs=2, labels="none")
    settings = Settings(c=10.0, epochs=tuning.settings.epochs, labels="none", tags="gold").complete()
    rest, run = TrainingData(training_trees(data[:36], settings.trees, "train")), Run()
    alone = fit(prepare_arcs(rest, settings, run), rest, settings, run)
    assert alone.best is not None
    scale = tuning.model.about["scale"]
    np.testing.assert_array_equal(weights_of(tuning.model), scale * alone.best)
    held_out = evaluate(data[36:], [found.sentence for found in parser_of(tuning).parse(data[36:])])
    assert max(trial.uas for trial in tuning.trials) == pytest.approx(held_out.uas_no_punct)


def test_development_data_may_be_given_and_may_be_of_another_class() -> None:
    dev = sentences(9, 5, two_roots=True)
    tuning = tuned(sentences(20, 4), dev, grid=(10.0,), epochs=2, labels="none")
    assert tuning.model.about["train"]["sentences"] == 20


def test_the_grid_of_the_learner_is_the_default() -> None:
    tuning = tuned(sentences(12, 6), learner="perceptron", epochs=1, labels="none")
    assert {trial.c for trial in tuning.trials} == {0.0}


def test_every_weight_of_the_text_is_tried_with_every_c() -> None:
    data = sentences(20, 10)
    options: dict[str, Any] = {"learner": "loglinear", "epochs": 3, "labels": "none", "projective": True}
    tuning = tuned(data, text=sentences(9, 11), grid=(0.01, 1.0), entropy_weights=(0.0, 0.5), **options)
    assert [(trial.c, trial.entropy_weight) for trial in tuning.trials] == [
        (0.01, 0.0), (0.01, 0.5), (1.0, 0.0), (1.0, 0.5),
    ]  # fmt: skip
    best = max(tuning.trials, key=lambda trial: trial.uas)
    assert (tuning.settings.c, tuning.settings.entropy_weight) == (best.c, best.entropy_weight)
    assert tuning.model.about["text"]["sentences"] == 9
    assert tuning.model.about["settings"]["entropy_weight"] == best.entropy_weight

    default = tuned(data, text=sentences(9, 11), grid=(1.0,), **options)
    assert tuple(trial.entropy_weight for trial in default.trials) == ENTROPY_WEIGHTS
    alone = tuned(data, grid=(1.0,), **options)
    assert len(alone.trials) == 1
    assert "text" not in alone.model.about


def test_text_is_for_the_log_linear_learner() -> None:
    with pytest.raises(TrainingError, match="loglinear"):
        tuned(sentences(20, 12), text=sentences(9, 13), grid=(1.0,), learner="expected-loss", epochs=1, labels="none")


def test_trials_are_scored_on_the_tags_of_a_tagger(monkeypatch: pytest.MonkeyPatch) -> None:
    """It learns from the sentences that are not held out; the parser comes with it."""
    data, learn = sentences(20, 9), Tagger.learn
    learnt: list[list[Sentence]] = []

    def spy(text: list[Sentence], *rest: Any, **more: Any) -> Tagger:
        learnt.append(list(text))
        return learn(text, *rest, **more)

    monkeypatch.setattr(Tagger, "learn", spy)
    tuning = tune(data, grid=(10.0,), epochs=1, labels="none")
    assert learnt[0] == data[:18]
    assert all(sentence not in text for text in learnt for sentence in data[18:])
    assert tuning.settings.tags == "predicted"
    found = [parsed.sentence for parsed in parser_of(tuning).parse(data[18:], retag=True)]
    assert max(trial.uas for trial in tuning.trials) == pytest.approx(evaluate(data[18:], found).uas_no_punct)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5])
def test_a_share_that_is_none(share: float) -> None:
    with pytest.raises(TrainingError, match=f"{share}"):
        tuned(sentences(12, 7), held_out=share)


def test_too_few_sentences_to_hold_some_out() -> None:
    with pytest.raises(TrainingError, match="too few"):
        tuned(sentences(5, 8))


def test_a_model_that_has_nothing_to_tune() -> None:
    with pytest.raises(TrainingError, match="the toy model has no C to tune; those that have are arc, sibling"):
        tuned(sentences(12, 14), model="toy")
