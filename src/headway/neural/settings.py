"""What a network is trained with: pure data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NetworkSettings:
    """Sizes, rates and passes. `batch` counts words or subwords; `encoder_rate` is for pretrained weights.

    Rates rise over the first `warm_up` of all steps and then fall to zero in a straight line; each layer of a
    pretrained encoder learns `layer_decay` times as fast as the one above it. What is kept is an average of the weights
    over the last `1 / (1 - averaging)` steps or so.
    """

    epochs: int = 20
    batch: int = 2048
    rate: float = 1e-3
    encoder_rate: float = 2e-4
    warm_up: float = 0.1
    layer_decay: float = 0.9
    weight_decay: float = 0.01
    beta: float = 0.98
    averaging: float = 0.995
    largest_gradient: float = 1.0
    dropout: float = 0.33
    arc_size: int = 400
    label_size: int = 128
    smoothing: float = 0.0
    label_weight: float = 1.0
    tag_weight: float = 0.2
    embedding: int = 128
    hidden: int = 400
    layers: int = 3
    seed: int = 0


OF_TRANSFORMER = NetworkSettings()
OF_LSTM = NetworkSettings(
    epochs=60, batch=2500, rate=2e-3, beta=0.9, weight_decay=0.0, largest_gradient=5.0, averaging=0.998
)
