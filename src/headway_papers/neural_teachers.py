"""Networks that teach others: trained, and kept as models with weights of four bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from headway.learning.monitor import Show
from headway.pipeline import Parser
from headway.training.data import TrainingData
from headway.training.settings import Settings
from headway.training.stages import Run
from headway.training.text_models import TextModels

if TYPE_CHECKING:
    from headway.neural.settings import NetworkSettings
    from headway.neural.trainer import Fitted


def keep_teacher(
    path: Path, data: TrainingData, settings: Settings, sizes: NetworkSettings | None = None, show: Show | None = None
) -> Fitted:
    """Train a network on the trees of `data` alone, and write it whole or not at all.

    Where there are development trees, they choose the pass and the temperature.
    """
    from headway.neural import trainer
    from headway.neural.preparation import prepare

    alone, device = replace(data, text=()), trainer.device_of(settings)
    with trainer.deterministic():
        prepared = prepare(alone, settings, device, sizes)
        fitted = trainer.fit(prepared, settings, Run(show=show), device)
        prepared.network.load_state_dict(fitted.weights)
        prepared.network.eval()
        temperature = 1.0 if data.dev is None else trainer.temperature_of(prepared, settings.trees, device)
    prepared.network.cpu()
    said = trainer.about(settings, fitted, alone, temperature=temperature)
    model = trainer.model_of(prepared, settings, alone, said, temperature, quantised=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    Parser.of(model, TextModels()).save(path)
    return fitted
