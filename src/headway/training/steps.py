"""The training of the arcs: from trees, from trees of which some heads are known, or from rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from headway.errors import ArchiveError
from headway.inference.batch import Floats
from headway.learning.monitor import Monitor, Show
from headway.learning.progress import Report, State
from headway.models.arc_factored import PartialExamples
from headway.training.development import Development
from headway.training.material import Material
from headway.training.ruled_text import RuledText
from headway.training.settings import Settings

Fit = Callable[[Report, State | None], Floats]


@dataclass(frozen=True)
class Watch:
    """What a training is watched with: development data, progress, and a checkpoint of signed data and settings."""

    dev: Development | None = None
    show: Show | None = None
    checkpoint: Path | None = None
    signature: str = ""


def train_arcs(material: Material, settings: Settings, watch: Watch) -> Monitor:
    """Run the learner; the monitor has the best weights and the history, of several trainings that of the first."""
    first = _train_once(material, settings, watch)
    for done in range(1, settings.trainings):
        again = replace(settings, seed=settings.seed + done)
        other = _train_once(material, again, replace(watch, checkpoint=None))
        assert first.best is not None
        assert other.best is not None
        first.best += (other.best - first.best) / (done + 1)
    return first


def _train_once(material: Material, settings: Settings, watch: Watch) -> Monitor:
    examples = material.examples
    if isinstance(examples, PartialExamples):
        latent = settings.learn_latent(examples)
        return _watched(partial(latent.fit, examples), examples.size, settings, watch)
    learner = settings.learn(material.structures, material.text)
    return _watched(partial(learner.fit, examples), examples.size, settings, watch)


def train_from_rules(ruled: RuledText, settings: Settings, watch: Watch) -> Monitor:
    """The same without trees."""
    learner = settings.learn_constraints(ruled.structures, ruled.rules)
    return _watched(partial(learner.fit, ruled.text), ruled.text.size, settings, watch)


def _watched(fit: Fit, size: int, settings: Settings, watch: Watch) -> Monitor:
    """Run a learner of `size` weights, from its checkpoint on where there is one."""
    uas = None if watch.dev is None else watch.dev.uas
    monitor = Monitor(
        "tree", settings.epochs or 1, settings.patience, uas, watch.show, watch.checkpoint, watch.signature
    )
    state = monitor.resume()
    if state is not None:
        _check_sizes({**state, "best": monitor.best}, size, watch.checkpoint)
    if not monitor.history or _goes_on(monitor):
        fit(monitor, state)
    return monitor


def _check_sizes(state: Mapping[str, Any], size: int, checkpoint: Path | None) -> None:
    """Compiled code indexes these arrays without looking at their lengths."""
    for name in ("best", "weights", "total", "first", "second"):
        if name in state and state[name].shape != (size,):
            raise ArchiveError(f"{checkpoint}: a damaged checkpoint ({name} has other weights); delete it")


def _goes_on(monitor: Monitor) -> bool:
    """Whether a resumed training has passes left."""
    return int(monitor.history[-1]["pass"]) < monitor.passes
