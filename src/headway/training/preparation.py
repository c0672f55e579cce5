"""A training made ready: features sized and sentences coded once, then fitted with any C and finished into a model.

`headway tune` fits the same preparation many times; a plain training fits it once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Protocol

from headway import __version__
from headway.arrays import Floats
from headway.learning.monitor import Monitor
from headway.models.protocol import TreeModel
from headway.models.saved import without_folders
from headway.training.data import TrainingData
from headway.training.settings import Settings
from headway.training.stages import Fit, Run


class Preparation(Protocol):
    """What a trainer of a built-in model has prepared."""

    @property
    def size(self) -> int:
        """How many weights there are."""
        ...

    def learner(self, settings: Settings) -> Fit:
        """The learner of these settings, bound to the prepared problem."""
        ...

    def uas(self, weights: Floats, projective: bool | None = None) -> float:
        """Development score without punctuation; `projective` decodes in another class than that of the training."""
        ...

    def finish(self, fitted: Monitor, settings: Settings, run: Run) -> TreeModel:
        """The model with the best weights that were found: calibrated where there is development data, and labelled."""
        ...


def fit(prepared: Preparation, data: TrainingData, settings: Settings, run: Run) -> Monitor:
    """Run the learner; the monitor has the best weights and the history, of several runs that of the first."""
    dev: Callable[[Floats], float] | None = None if data.dev is None else prepared.uas
    monitors = []
    for number in range(settings.runs):
        own = replace(settings, seed=settings.seed + number)
        learner = prepared.learner(own)
        monitors.append(run.fit(f"parser-{number + 1}", learner, prepared.size, own, shown="tree", dev=dev))
    first = monitors[0]
    for done, other in enumerate(monitors[1:], start=1):
        assert first.best is not None
        assert other.best is not None
        first.best += (other.best - first.best) / (done + 1)
    return first


def about(settings: Settings, monitor: Monitor, data: TrainingData, **more: Any) -> dict[str, Any]:
    """What a model says of itself."""
    return {
        "headway": __version__,
        "settings": without_folders(asdict(settings)),
        "train": data.about(),
        "best_pass": monitor.best_pass(),
        **more,
        "history": monitor.history,
    }


def bound(learner: Any, problem: Any) -> Fit:
    """A learner's `fit` on a problem."""
    fitted: Fit = partial(learner.fit, problem)
    return fitted
