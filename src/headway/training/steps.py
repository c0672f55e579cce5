"""The two trainings a parser needs: of the arcs, and of the labels where they are chosen after the tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from headway.errors import ArchiveError
from headway.inference.batch import Floats
from headway.learning.examples import Labels
from headway.learning.perceptron import Perceptron
from headway.models.labeller import LabelExamples, LabelScorer
from headway.training.development import Development
from headway.training.material import Material
from headway.training.monitor import Monitor, Show
from headway.training.settings import Settings

_LABELLER_EPOCHS, _LABELLER_MARGIN = 8, 30.0


def train_arcs(
    material: Material,
    settings: Settings,
    dev: Development | None,
    show: Show | None,
    checkpoint: Path | None,
    signature: str,
) -> Monitor:
    """Run the learner; the monitor has the best weights and the history, of several trainings that of the first."""
    first = _train_once(material, settings, dev, show, checkpoint, signature)
    for done in range(1, settings.trainings):
        other = _train_once(material, replace(settings, seed=settings.seed + done), dev, show, None, "")
        assert first.best is not None
        assert other.best is not None
        first.best += (other.best - first.best) / (done + 1)
    return first


def _train_once(
    material: Material,
    settings: Settings,
    dev: Development | None,
    show: Show | None,
    checkpoint: Path | None,
    signature: str,
) -> Monitor:
    uas = None if dev is None else dev.uas
    monitor = Monitor("tree", settings.epochs or 1, settings.patience, uas, show, checkpoint, signature)
    state = monitor.resume()
    if state is not None:
        _check_sizes({**state, "best": monitor.best}, material.examples.size, checkpoint)
    if not monitor.history or _goes_on(monitor):
        settings.learn(material.structures).fit(material.examples, monitor, state)
    return monitor


def _check_sizes(state: Mapping[str, Any], size: int, checkpoint: Path | None) -> None:
    """Compiled code indexes these arrays without looking at their lengths."""
    for name in ("best", "weights", "total", "first", "second"):
        if name in state and state[name].shape != (size,):
            raise ArchiveError(f"{checkpoint}: a damaged checkpoint ({name} has other weights); delete it")


def _goes_on(monitor: Monitor) -> bool:
    """Whether a resumed training has passes left."""
    return int(monitor.history[-1]["pass"]) < monitor.passes


def train_labeller(material: Material, settings: Settings, show: Show | None) -> tuple[LabelScorer, Floats]:
    """The classifier that labels the arcs of a tree."""
    scorer = LabelScorer.learn(material.coder, material.trees, material.labels, tree=material.pruner is not None)
    examples = LabelExamples(scorer, *material.trees)
    weights = np.zeros(scorer.size)
    for seed in range(settings.seed, settings.seed + settings.trainings):
        monitor = Monitor("labels", _LABELLER_EPOCHS, _LABELLER_EPOCHS, show=show)
        weights += Perceptron(Labels(), _LABELLER_EPOCHS, _LABELLER_MARGIN, seed).fit(examples, monitor)
    return scorer, weights / settings.trainings
