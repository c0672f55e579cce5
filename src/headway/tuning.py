"""Choosing C, the passes, the decoding and the weight of text on held-out data: the protocol of koo2007 (section 6.2).

Some of the training sentences are held out. For every C of a grid a model is trained on the rest, and the pass with
the best held-out score is kept; a model trained for non-projective trees is also decoded projectively there. The best
combination wins. With text beside the trees, every weight of its entropy is tried with every C. Nothing here ever sees
test data.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from headway.errors import TrainingError
from headway.inference.batch import Floats
from headway.pipeline import Parser, Source, finish
from headway.training import (
    Development,
    LearnerName,
    Material,
    Monitor,
    Settings,
    Show,
    Watch,
    Words,
    checksum,
    development,
    train_arcs,
    training_text,
    training_trees,
)
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


@dataclass(frozen=True)
class Trial:
    """One C, one weight of the text and one decoding: the best pass and its held-out score, without punctuation."""

    c: float
    entropy_weight: float
    projective: bool
    epochs: int
    uas: float
    seconds: float


@dataclass(frozen=True)
class Tuning:
    """The chosen settings and decoding, every trial, and the winner itself, trained on the sentences not held out."""

    settings: Settings
    projective: bool
    trials: tuple[Trial, ...]
    parser: Parser


def tune(
    train: Source,
    dev: Source | None = None,
    *,
    text: Source | None = None,
    grid: Sequence[float] | None = None,
    entropy_weights: Sequence[float] = ENTROPY_WEIGHTS,
    held_out: float = 0.1,
    threads: int = 1,
    show: Show | None = None,
    **settings: Any,
) -> Tuning:
    """Try every C of the grid; without `dev`, the last tenth of the training sentences is held out."""
    base = Settings(**settings).complete()
    base.require_trees(text=text is not None)
    sentences, validation = _split(train, dev, base, held_out)
    words = Words.of(sentences, validation, base, show, [] if text is None else training_text(text, "the text"))
    material = Material.of(words.train, base, threads, show, words.clusters, words.text)
    held_out_data = development(words.dev or validation, material, base, threads)
    trials: list[Trial] = []
    best: tuple[Trial, Settings, Monitor] | None = None
    weights = (base.entropy_weight,) if text is None else entropy_weights
    for c, weight in product(grid or GRIDS[base.learner], weights):
        chosen = replace(base, c=c, entropy_weight=weight).complete()
        started = time.monotonic()
        monitor = train_arcs(material, chosen, Watch(held_out_data, show))
        for trial in _decodings(chosen, monitor, held_out_data, time.monotonic() - started):
            trials.append(trial)
            if best is None or trial.uas > best[0].uas:
                best = trial, chosen, monitor
    assert best is not None
    trial, chosen, monitor = best
    decoded = replace(chosen, projective=trial.projective)
    parser = finish(words, material, decoded, monitor, held_out_data, checksum(sentences), show)
    return Tuning(replace(chosen, epochs=trial.epochs), trial.projective, tuple(trials), parser)


def _decodings(settings: Settings, monitor: Monitor, development: Development, seconds: float) -> Iterator[Trial]:
    """The best pass, decoded as it was trained, and projectively where that is another thing."""
    assert monitor.best is not None
    assert settings.c is not None
    weights: Floats = monitor.best
    for projective in (True,) if settings.projective else (False, True):
        uas = development.uas(weights, projective=projective)
        yield Trial(settings.c, settings.entropy_weight, projective, monitor.best_pass(), uas, seconds)


def _split(
    train: Source, dev: Source | None, settings: Settings, held_out: float
) -> tuple[list[Sentence], list[Sentence]]:
    """Training sentences of the model's class, and validation sentences as they are."""
    if not 0 < held_out < 1:
        raise TrainingError(f"the share to hold out is {held_out}; expected a number between 0 and 1")
    as_is = replace(settings, projective=False, single_root=False)
    sentences = training_trees(train, as_is, "the training data")
    if dev is not None:
        validation = training_trees(dev, as_is, "the development data")
    else:
        kept = len(sentences) - int(len(sentences) * held_out)
        sentences, validation = sentences[:kept], sentences[kept:]
        if not validation:
            raise TrainingError(f"{kept} sentences are too few to hold some out; give development data")
    return training_trees(sentences, settings, "the training data"), validation
