"""Choosing C, the passes, the decoding and the weight of text on held-out data: the protocol of koo2007 (section 6.2).

Some of the training sentences are held out. For every C of a grid a model is trained on the rest, and the pass with
the best held-out score is kept; a model trained for non-projective trees is also decoded projectively there. The best
combination wins. With text beside the trees, every weight of its entropy is tried with every C. Test data are never
looked at.

A network has no C. Its learning rates and dropouts are tried instead, each with every other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from headway.declared import settings_of
from headway.errors import TrainingError
from headway.learning.monitor import Monitor, Show
from headway.models.protocol import TreeModel
from headway.parallel import Workers, executor_for
from headway.training.arc_trainer import prepare_arcs
from headway.training.data import (
    Source,
    TrainingData,
    annotated_trees,
    of_class,
    root_labels,
    training_text,
    training_trees,
)
from headway.training.higher_order_trainer import prepare_parts
from headway.training.preparation import Fitted, Preparation, fit, fit_all
from headway.training.settings import LSTM, NEURAL, LearnerName, Settings
from headway.training.stages import Run
from headway.training.text_models import TextModels, train_text_models
from headway.training.trainers import require_trainable, trainer_of
from headway.treebank import Sentence

# Two values around where first trials on held-out Danish sentences were best. The larger margin, and the larger C of
# EG, won in most of the committed experiments, so the optimum may lie beyond: give a wider grid where time allows.
GRIDS: dict[LearnerName, tuple[float, ...]] = {
    "perceptron": (0.0,),
    "margin": (100.0, 300.0),
    "loglinear": (0.1, 1.0),
    "eg": (0.01, 0.03),
    "eg-loglinear": (0.1, 1.0),
    "expected-loss": (3.0, 10.0),
}
# Around what was best beside 100 trees of English development sentences; 0 is training on the trees alone.
ENTROPY_WEIGHTS = (0.0, 0.01, 0.03, 0.1)
# Of networks: the rate of what is trained from scratch, or that of a pretrained encoder; and the share left out.
NETWORK_GRIDS: dict[str, tuple[float, ...]] = {
    "rate": (1e-3, 2e-3),
    "encoder_rate": (1e-4, 2e-4),
    "dropout": (0.33, 0.45),
}

_PREPARATIONS: dict[str, Callable[[TrainingData, Settings, Run], Preparation]] = {
    "arc": prepare_arcs,
    "sibling": prepare_parts,
    "grandsibling": prepare_parts,
}


@dataclass(frozen=True)
class Trial:
    """One C, one weight of the text and one decoding: the best pass and its held-out score, without punctuation.

    `network` has the settings of a network that are tried, by name.
    """

    c: float
    entropy_weight: float
    projective: bool
    epochs: int
    uas: float
    seconds: float
    network: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Tuning:
    """The chosen settings and decoding, every trial, and the winner itself, trained on the sentences not held out."""

    settings: Settings
    projective: bool
    trials: tuple[Trial, ...]
    model: TreeModel
    text_models: TextModels


def tune(
    train: Source,
    dev: Source | None = None,
    *,
    text: Source | None = None,
    grid: Sequence[float] | None = None,
    network_grid: Mapping[str, Sequence[float]] | None = None,
    entropy_weights: Sequence[float] = ENTROPY_WEIGHTS,
    held_out: float = 0.1,
    threads: int = 1,
    show: Show | None = None,
    workers: Workers | None = None,
    **settings: Any,
) -> Tuning:
    """Try every C of the grid; without `dev`, the last tenth of the training sentences is held out.

    `workers` try several at the same time.

    For a network, `network_grid` has the values to try by the name of the setting: those of `NETWORK_GRIDS`.
    """
    given, run = settings_of(Settings, settings), Run(executor_for(threads), show, workers=workers)
    given.require_trees(text=text is not None)
    base = given.complete()
    _require_grid(base, grid, network_grid)
    if base.teacher is not None:
        raise TrainingError(
            "a network is tuned without a teacher; train it with one afterwards, and the chosen settings"
        )
    require_trainable(base)
    if not 0 < held_out < 1:
        raise TrainingError(f"the share to hold out is {held_out}; expected a number between 0 and 1")
    weights: Sequence[float | None] = (None,) if text is None else entropy_weights
    if base.model == NEURAL:
        sentences, validation = _split(train, dev, base, held_out)
        more = [] if text is None else training_text(text, "the text")
        return _tune_network(_networks(base, network_grid, weights), sentences, validation, more, run)
    tried = [
        replace(base, c=c, entropy_weight=weight).complete()
        for c, weight in product(grid or GRIDS[base.method], weights)
    ]
    sentences, validation = _split(train, dev, base, held_out)
    more = [] if text is None else training_text(text, "the text")
    text_models, data = train_text_models(of_class(sentences, base.trees), validation, more, base, run)
    data = replace(data, roots=root_labels(sentences))
    prepared = _PREPARATIONS[base.model](data, base, run)
    trials: list[Trial] = []
    best: tuple[Trial, Settings, Monitor] | None = None
    for chosen, (_, monitor, seconds) in zip(tried, _fitted(prepared, data, tried, run), strict=True):
        for trial in _decodings(chosen, monitor, prepared, seconds):
            trials.append(trial)
            if best is None or trial.uas > best[0].uas:
                best = trial, chosen, monitor
    assert best is not None
    trial, chosen, monitor = best
    model = prepared.finish(monitor, replace(chosen, projective=trial.projective), run)
    return Tuning(replace(chosen, epochs=trial.epochs), trial.projective, tuple(trials), model, text_models)


def _fitted(prepared: Preparation, data: TrainingData, tried: Sequence[Settings], run: Run) -> Iterator[Fitted]:
    """What was tried, in its order: by workers all at the same time, unless there are several runs of each."""
    if tried[0].runs == 1:
        yield from sorted(fit_all(prepared, data, [("parser", each) for each in tried], run), key=_number)
        return
    for number, chosen in enumerate(tried):
        started = time.monotonic()
        monitor = fit(prepared, data, chosen, run)
        yield Fitted(number, monitor, time.monotonic() - started)


def _number(fitted: Fitted) -> int:
    return fitted.number


def _require_grid(
    base: Settings, grid: Sequence[float] | None, network_grid: Mapping[str, Sequence[float]] | None
) -> None:
    """Refuse values of settings that the model has not."""
    if base.model == NEURAL:
        if grid:
            raise TrainingError(f"a network has no C to tune; it has {', '.join(NETWORK_GRIDS)}")
        if unknown := set(network_grid or {}) - set(NETWORK_GRIDS):
            raise TrainingError(f"{min(unknown)} of a network is not tuned; {', '.join(NETWORK_GRIDS)} are")
        return
    if base.model not in _PREPARATIONS:
        raise TrainingError(f"the {base.model} model has no C to tune; those that have are {', '.join(_PREPARATIONS)}")
    if network_grid:
        raise TrainingError(f"{min(network_grid)} is a setting of networks; tune C, or the model neural")


def _networks(
    base: Settings, given: Mapping[str, Sequence[float]] | None, weights: Sequence[float | None]
) -> list[tuple[dict[str, float], Settings]]:
    """All combinations of what is to be tried; where nothing is said, of the settings that matter most."""
    usual = ("rate" if base.encoder == LSTM else "encoder_rate", "dropout")
    grid = dict(given) if given else {name: NETWORK_GRIDS[name] for name in usual}
    tried = []
    for values in product(*grid.values()):
        own: dict[str, Any] = dict(zip(grid, values, strict=True))
        tried += [(own, replace(base, **own, entropy_weight=weight).complete()) for weight in weights]
    return tried


def _tune_network(
    tried: Sequence[tuple[dict[str, float], Settings]],
    sentences: list[Sentence],
    validation: list[Sentence],
    text: list[Sentence],
    run: Run,
) -> Tuning:
    """Train each of them; the one with the best held-out score wins.

    Rates fall over all passes, so the chosen settings keep their number, whichever pass was the best.
    """
    base = tried[0][1]
    text_models, data = train_text_models(of_class(sentences, base.trees), validation, text, base, run)
    data = replace(data, roots=root_labels(sentences))
    trials: list[Trial] = []
    best: tuple[Trial, Settings, TreeModel] | None = None
    for values, chosen in tried:
        started = time.monotonic()
        model: TreeModel = trainer_of(NEURAL)(data, chosen, run)
        passes = int(model.about["best_pass"])
        uas, seconds = float(model.about["history"][passes - 1]["dev"]), time.monotonic() - started
        trial = Trial(0.0, chosen.entropy_weight or 0.0, chosen.projective, passes, uas, seconds, values)
        trials.append(trial)
        if best is None or uas > best[0].uas:
            best = trial, chosen, model
    assert best is not None
    trial, chosen, model = best
    return Tuning(chosen, chosen.projective, tuple(trials), model, text_models)


def _decodings(settings: Settings, monitor: Monitor, prepared: Preparation, seconds: float) -> Iterator[Trial]:
    """The best pass, decoded as it was trained, and projectively where that is another thing."""
    assert monitor.best is not None
    for projective in (True,) if settings.projective else (False, True):
        uas = prepared.uas(monitor.best, projective)
        entropy_weight = settings.entropy_weight or 0.0
        yield Trial(settings.c or 0.0, entropy_weight, projective, monitor.best_pass(), uas, seconds)


def _split(
    train: Source, dev: Source | None, settings: Settings, held_out: float
) -> tuple[list[Sentence], list[Sentence]]:
    """Training sentences that the model's class allows for, projective or not, and validation sentences as they are."""
    any_trees = settings.trees._replace(projective=False, single_root=False)
    sentences = training_trees(train, any_trees, "the training data")
    if dev is not None:
        validation = training_trees(dev, any_trees, "the development data")
    else:
        kept = len(sentences) - int(len(sentences) * held_out)
        sentences, validation = sentences[:kept], sentences[kept:]
        if not validation:
            raise TrainingError(f"{kept} sentences are too few to hold some out; give development data")
    return annotated_trees(sentences, settings.trees, "the training data"), validation
