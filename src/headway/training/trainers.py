"""Which models can be trained, by name: what `--model` and `Parser.train(model=...)` choose from.

A trainer is a function of data, complete settings and a `Run` that gives a model. A third party adds one through an
entry point of the group `headway.trainers`, whose name is the model's; or, within a process, by `register`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Protocol

from headway.errors import TrainingError
from headway.extras import require_working_extra
from headway.features.rules import Rules
from headway.models.protocol import TreeModel
from headway.training.data import TrainingData
from headway.training.settings import LSTM, NEURAL, RULED, Settings
from headway.training.stages import Run

_GROUP = "headway.trainers"


class Trainer(Protocol):
    """Trains a model."""

    def __call__(self, data: TrainingData, settings: Settings, run: Run) -> TreeModel: ...


class RulesTrainer(Protocol):
    """Trains a model from rules about the trees of a text."""

    def __call__(self, data: TrainingData, rules: Rules, settings: Settings, run: Run) -> TreeModel: ...


_TRAINERS: dict[str, str | Trainer] = {
    "arc": "headway.training.arc_trainer:train_arc_model",
    "sibling": "headway.training.higher_order_trainer:train_higher_order_model",
    "grandsibling": "headway.training.higher_order_trainer:train_higher_order_model",
    NEURAL: "headway.neural.trainer:train_neural_model",
}

_RULES_TRAINERS = {
    "arc": "headway.training.rules_trainer:train_from_rules",
    NEURAL: "headway.neural.trainer:train_neural_from_rules",
}

# What a model that is included refuses before data are read.
_REQUIREMENTS = {
    "arc": "headway.training.arc_trainer:require_arcs",
    "sibling": "headway.training.higher_order_trainer:require_parts",
    "grandsibling": "headway.training.higher_order_trainer:require_parts",
    NEURAL: "headway.neural.trainer:require_network",
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
    trainer: Trainer = _named(known) if isinstance(known, str) else known
    return trainer


def rules_trainer_of(name: str) -> RulesTrainer:
    """What trains the model of this name from rules."""
    trainer: RulesTrainer = _named(_RULES_TRAINERS[name])
    return trainer


def require_trainable_from_rules(settings: Settings) -> None:
    """Refuse, before data are read, a model that rules do not train, and settings that it cannot be trained with."""
    if settings.model not in RULED:
        raise TrainingError(f"rules train the models {' and '.join(RULED)}, not {settings.model!r}")
    require_trainable(settings)


def require_trainable(settings: Settings) -> None:
    """Refuse, before data are read, an unknown model, and settings that it cannot be trained with."""
    if settings.model == NEURAL:
        for package in ("torch", "onnx", *(("safetensors",) if settings.encoder != LSTM else ())):
            require_working_extra(package, "neural", "training a network")
    trainer_of(settings.model)
    if settings.model in _REQUIREMENTS:
        _require_files(settings)
        _named(_REQUIREMENTS[settings.model])(settings)


def _require_files(settings: Settings) -> None:
    """Refuse templates and clusters that cannot be used, before data are read."""
    from headway.features.arc_features import require_arc_templates
    from headway.features.clusters import read_clusters
    from headway.features.templates import load_templates

    require_arc_templates(load_templates(settings.templates))
    if settings.clusters is not None:
        read_clusters(settings.clusters)


def names() -> list[str]:
    """The names of all models that can be trained."""
    return sorted({*_TRAINERS, *(point.name for point in entry_points(group=_GROUP))})


def _named(place: str) -> Any:
    """The function at "module:name"."""
    module, _, function = place.partition(":")
    return getattr(import_module(module), function)
