"""Which models can be trained, by name: what `--model` and `Parser.train(model=...)` choose from.

A trainer is a function of data, complete settings and a `Run` that gives a model. A third party adds one through an
entry point of the group `headway.trainers`, whose name is the model's; or, within a process, by `register`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import Protocol

from headway.errors import TrainingError
from headway.models.protocol import TreeModel
from headway.training.data import TrainingData
from headway.training.settings import Settings
from headway.training.stages import Run

_GROUP = "headway.trainers"


class Trainer(Protocol):
    """Trains a model."""

    def __call__(self, data: TrainingData, settings: Settings, run: Run) -> TreeModel: ...


_TRAINERS: dict[str, str | Trainer] = {
    "arc": "headway.training.arc_trainer:train_arc_model",
    "sibling": "headway.training.higher_order_trainer:train_higher_order_model",
    "grandsibling": "headway.training.higher_order_trainer:train_higher_order_model",
}


def register(name: str, trainer: Trainer) -> None:
    """Add a model that can be trained, for this process."""
    _TRAINERS[name] = trainer


def trainer_of(name: str) -> Trainer:
    """The trainer of the model of this name."""
    known = _TRAINERS.get(name)
    if known is None:
        found = entry_points(group=_GROUP, name=name)
        if not found:
            raise TrainingError(f"unknown model {name!r}; the models are: {', '.join(names())}")
        return next(iter(found)).load()  # type: ignore[no-any-return]
    if isinstance(known, str):
        module, _, function = known.partition(":")
        return getattr(import_module(module), function)  # type: ignore[no-any-return]
    return known


def names() -> list[str]:
    """The names of all models that can be trained."""
    return sorted({*_TRAINERS, *(point.name for point in entry_points(group=_GROUP))})
