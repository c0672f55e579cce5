"""Fitting a network to trees: batches, losses, steps, and the passes over them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from headway.arrays import Ints, TreeClass
from headway.neural.losses import Loss
from headway.neural.network import Network, Outputs
from headway.neural.reading import Reading
from headway.neural.settings import NetworkSettings
from headway.neural.targets import UNTAUGHT
from headway.torch import TreeDistribution


@dataclass(frozen=True)
class Annotated:
    """Sentences as the network reads them, their heads (S, N+1), and the number of every word's value for each task."""

    reading: Reading
    heads: NDArray[np.int64]
    targets: Mapping[str, NDArray[np.int64]]

    @property
    def words(self) -> int:
        return int(self.reading.lengths.sum())


@dataclass(frozen=True)
class Batch:
    """Some of them, on a device."""

    inputs: dict[str, Tensor]
    lengths: Tensor
    heads: Tensor
    targets: dict[str, Tensor]


def batch_of(data: Annotated, which: Ints, device: torch.device) -> Batch:
    """Some sentences as tensors."""
    nodes = int(data.reading.lengths[which].max(initial=0)) + 1

    def sent(array: NDArray[Any]) -> Tensor:
        made = torch.from_numpy(np.ascontiguousarray(array))
        return made.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else made

    inputs = {name: sent(array) for name, array in data.reading.batch(which).items()}
    targets = {name: sent(array[which, :nodes]) for name, array in data.targets.items()}
    return Batch(inputs, sent(data.reading.lengths[which]), sent(data.heads[which, :nodes]), targets)


def batches(sizes: Ints, most: int, rng: np.random.Generator | None) -> Iterator[Ints]:
    """Every sentence's position once, in batches of like sizes that have about `most` cells with padding.

    With `rng`, sentences of nearly the same size are mixed, and batches come in any order.
    """
    noise = 0.0 if rng is None else rng.uniform(-0.1, 0.1, len(sizes)) * sizes + rng.uniform(0, 1, len(sizes))
    order = np.argsort(sizes + noise, kind="stable")
    found: list[Ints] = []
    start = 0
    while start < len(order):
        stop, widest = start + 1, int(sizes[order[start]])
        while stop < len(order):
            widest = max(widest, int(sizes[order[stop]]))
            if (stop + 1 - start) * widest > most:
                break
            stop += 1
        found.append(order[start:stop])
        start = stop
    places = range(len(found)) if rng is None else rng.permutation(len(found))
    yield from (found[place] for place in places)


@dataclass
class Average:
    """A moving average of weights, warmed up so that the first ones do not linger."""

    decay: float
    weights: dict[str, Tensor] = field(default_factory=dict)
    steps: int = 0

    @torch.no_grad()
    def add(self, network: nn.Module) -> None:
        own = {name: weight.detach() for name, weight in network.state_dict().items()}
        self.steps += 1
        if not self.weights:
            self.weights = {name: weight.clone() for name, weight in own.items()}
            return
        share = 1 - min(self.decay, self.steps / (self.steps + 10))
        torch._foreach_lerp_(list(self.weights.values()), list(own.values()), share)


def optimiser_of(network: Network, settings: NetworkSettings) -> torch.optim.AdamW:
    """AdamW, with a slower rate for each layer of a pretrained encoder the lower it lies."""
    groups: dict[tuple[float, float], list[Tensor]] = {}
    pretrained = getattr(network.encoder, "model", None)
    for name, weight in network.named_parameters():
        rate = settings.rate
        if pretrained is not None and name.startswith("encoder.model."):
            depth = pretrained.depth_of(name.removeprefix("encoder.model."))
            rate = settings.encoder_rate * settings.layer_decay**depth
        decay = settings.weight_decay if weight.dim() > 1 else 0.0
        groups.setdefault((rate, decay), []).append(weight)
    made = [{"params": weights, "lr": rate, "weight_decay": decay} for (rate, decay), weights in groups.items()]
    on_gpu = next(network.parameters()).is_cuda
    return torch.optim.AdamW(made, betas=(0.9, settings.beta), eps=1e-8, fused=on_gpu)


def loss_of(network: Network, batch: Batch, loss: Loss, trees: TreeClass, settings: NetworkSettings) -> Tensor:
    """Per word of the batch: the trees' loss, and the cross-entropy of labels and tags."""
    found = scored(network, batch)
    words = batch.lengths.sum()
    total = loss(found.arcs, batch.heads, batch.lengths, trees).sum() / words
    for name, target in batch.targets.items():
        if name == "labels":
            scores = network.label_scores(batch.heads, found.label_heads, found.label_modifiers)
        else:
            scores = found.tags[name]
        each = nn.functional.cross_entropy(
            scores.flatten(0, 1),
            target.flatten(),
            ignore_index=UNTAUGHT,
            reduction="sum",
            label_smoothing=settings.smoothing,
        )
        total = total + (settings.label_weight if name == "labels" else settings.tag_weight) * each / words
    return total


def scored(network: Network, batch: Batch) -> Outputs:
    """The network's outputs; its encoder runs in bfloat16 on a GPU, its scores are float32."""
    return network(batch.inputs)


@dataclass(frozen=True)
class Scores:
    """Percentages of a treebank: right heads, right heads with right labels (`counted` words only), and right tags."""

    uas: float
    las: float
    tags: dict[str, float]


@torch.no_grad()
def evaluate(
    network: Network, data: Annotated, counted: NDArray[np.bool_], trees: TreeClass, device: torch.device, most: int
) -> Scores:
    """Parse and compare."""
    network.eval()
    right = torch.zeros(2, dtype=torch.int64, device=device)
    tags: dict[str, Tensor] = {}
    for which in batches(data.reading.sizes, most, None):
        batch = batch_of(data, which, device)
        found = scored(network, batch)
        heads = TreeDistribution(found.arcs, batch.lengths, **trees._asdict(), validate_args=False).argmax()
        words = torch.from_numpy(counted[which, : heads.shape[1]]).to(device)
        good = (heads == batch.heads) & words
        right[0] += good.sum()
        if "labels" in batch.targets:
            labels = network.label_scores(heads, found.label_heads, found.label_modifiers).argmax(dim=2)
            right[1] += (good & (labels == batch.targets["labels"])).sum()
        for name, scores in found.tags.items():
            target = batch.targets[name]
            same = ((scores.argmax(dim=2) == target) & (target != UNTAUGHT)).sum()
            tags[name] = tags.get(name, 0) + same
    total = max(1, int(counted.sum()))
    uas, las = (100 * right / total).tolist()
    return Scores(uas, las, {name: 100 * int(same) / max(1, data.words) for name, same in tags.items()})


Report = Callable[[int, float, Scores | None, float], bool]


@dataclass
class Fitting:
    """A training: the network, and everything that changes from step to step."""

    network: Network
    data: Annotated
    loss: Loss
    trees: TreeClass
    settings: NetworkSettings
    device: torch.device

    def __post_init__(self) -> None:
        self.optimiser = optimiser_of(self.network, self.settings)
        self.rates = [group["lr"] for group in self.optimiser.param_groups]
        self.average = Average(self.settings.averaging)
        self.rng = np.random.default_rng(self.settings.seed)

    def run(self, report: Report, score: Callable[[], Scores] | None = None) -> None:
        """All passes. `report` is told each pass, its loss, the scores of the averaged weights, and words per second;
        it says whether to go on."""
        settings = self.settings
        per_pass = sum(1 for _ in batches(self.data.reading.sizes, settings.batch, np.random.default_rng(0)))
        step, steps = 0, per_pass * settings.epochs
        for number in range(1, settings.epochs + 1):
            started = time.monotonic()
            self.network.train()
            total = torch.zeros((), device=self.device)
            seen = 0
            for which in batches(self.data.reading.sizes, settings.batch, self.rng):
                step += 1
                self._set_rates(step, steps)
                total += self._step(which)
                seen += 1
            loss = float(total) / seen
            speed = self.data.words / (time.monotonic() - started)
            if not report(number, loss, score() if score else None, speed):
                return

    def _set_rates(self, step: int, steps: int) -> None:
        warm = max(1.0, self.settings.warm_up * steps)
        factor = min(step / warm, max(0.0, (steps - step) / max(1.0, steps - warm)))
        for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
            group["lr"] = rate * factor

    def _step(self, which: Ints) -> Tensor:
        batch = batch_of(self.data, which, self.device)
        loss = loss_of(self.network, batch, self.loss, self.trees, self.settings)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.largest_gradient)
        self.optimiser.step()
        self.average.add(self.network)
        return loss.detach()
