"""A training made ready: features sized and sentences coded once, then fitted with any C and finished into a model.

`headway tune` fits the same preparation many times; a plain training fits it once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple, Protocol

from headway import __version__
from headway.arrays import Floats
from headway.learning.monitor import Monitor
from headway.learning.progress import Report, State
from headway.learning.sharded import Shards, cut, deal
from headway.models.protocol import TreeModel
from headway.models.saved import without_folders
from headway.parallel import Workers
from headway.processes import Processes
from headway.training.data import TrainingData
from headway.training.settings import Settings
from headway.training.stages import Fit, Run


class Preparation(Protocol):
    """What a trainer of a built-in model has prepared."""

    @property
    def size(self) -> int:
        """How many weights there are."""
        ...

    def learner(self, settings: Settings, workers: Workers | None = None) -> Fit:
        """The learner of these settings, bound to the prepared problem; its shards, if any, are with the workers."""
        ...

    def uas(self, weights: Floats, projective: bool | None = None) -> float:
        """Development score without punctuation; `projective` decodes in another class than that of the training."""
        ...

    def finish(self, fitted: Monitor, settings: Settings, run: Run) -> TreeModel:
        """The model with the best weights that were found: calibrated where there is development data, and labelled."""
        ...


def fit(prepared: Preparation, data: TrainingData, settings: Settings, run: Run) -> Monitor:
    """Run the learner; the monitor has the best weights and the history, of several runs that of the first."""
    runs = [replace(settings, seed=settings.seed + number) for number in range(settings.runs)]
    names = [f"parser-{number + 1}" for number in range(settings.runs)]
    fitted = sorted(fit_all(prepared, data, list(zip(names, runs, strict=True)), run), key=lambda one: one.number)
    first, *others = (one.monitor for one in fitted)
    for done, other in enumerate(others, start=1):
        assert first.best is not None
        assert other.best is not None
        first.best += (other.best - first.best) / (done + 1)
    return first


class Fitted(NamedTuple):
    """One of several fits: its number, the weights with their history, and how long it took."""

    number: int
    monitor: Monitor
    seconds: float


def fit_all(
    prepared: Preparation, data: TrainingData, wanted: Sequence[tuple[str, Settings]], run: Run
) -> Iterator[Fitted]:
    """Fit the same preparation with different settings, each a stage of its own name; as they are done.

    Workers fit several at the same time, unless each is to be cut into shards, which then have the workers.
    """
    dev: Callable[[Floats], float] | None = None if data.dev is None else prepared.uas
    apart = run.workers is not None and len(wanted) > 1 and wanted[0][1].shards == 1
    if run.workers is None or not apart:
        for number, (name, settings) in enumerate(wanted):
            started = time.monotonic()
            learner = prepared.learner(settings, run.workers)
            monitor = run.fit(name, learner, prepared.size, settings, shown="tree", dev=dev)
            yield Fitted(number, monitor, time.monotonic() - started)
        return
    left = []
    for number, (name, settings) in enumerate(wanted):
        monitor = run.monitor(name, settings, shown="tree", dev=dev)
        if monitor.is_finished(prepared.size):
            yield Fitted(number, monitor, 0.0)
        else:
            left.append((number, monitor, settings))
    items = [settings for _, _, settings in left]
    for place, found in run.workers.finished(_fit_apart, repeat(prepared), repeat(dev is not None), items):
        number, monitor, settings = left[place]
        history, best, seconds = found
        monitor.keep(history, best)
        yield Fitted(number, monitor, seconds)


def _fit_apart(prepared: Preparation, with_dev: bool, settings: Settings) -> tuple[list[dict[str, Any]], Floats, float]:
    """What a worker does: one fit, of which it keeps nothing."""
    started = time.monotonic()
    dev = prepared.uas if with_dev else None
    monitor = Run().fit("parser", prepared.learner(settings), prepared.size, settings, dev=dev)
    assert monitor.best is not None
    return monitor.history, monitor.best, time.monotonic() - started


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


def bound(learner: Any, problem: Any, shards: int = 1, workers: Workers | None = None) -> Fit:
    """A learner's `fit` on a problem; or on shards of it, with these workers or with processes of this machine."""
    if shards == 1:
        fitted: Fit = partial(learner.fit, problem)
        return fitted

    def fit(report: Report, resume: State | None) -> Floats:
        numbers = deal(len(problem.lengths), shards)
        with workers_for(shards, workers).hold(cut(learner, problem, numbers)) as held:
            found: Floats = learner.fit_shards(Shards(held, numbers, problem.lengths, problem.size), report, resume)
            return found

    return fit


def workers_for(shards: int, given: Workers | None) -> Workers:
    """The workers given, or as many processes of this machine as can be of use."""
    return given or Processes(min(shards, os.cpu_count() or 1))
