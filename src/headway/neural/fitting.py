"""Fitting a network to trees: batches, losses, steps, and the passes over them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from headway.arrays import Ints, TreeClass
from headway.errors import TrainingError
from headway.neural.losses import Loss, entropy, expected_loss, partial_log_likelihood
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


def loss_of(
    network: Network, batch: Batch, loss: Loss, trees: TreeClass, settings: NetworkSettings, words: int
) -> Tensor:
    """The trees' loss, and the cross-entropy of labels and tags, divided by a number of words."""
    found: Outputs = network(batch.inputs)
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
        found: Outputs = network(batch.inputs)
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


_LIKELY = 0.25


class State(NamedTuple):
    """All that a training goes on from: arrays by name, and the state of what is random, as JSON."""

    arrays: dict[str, NDArray[Any]]
    data: dict[str, Any]


@dataclass
class Fitting:
    """A training: the network, and everything that changes from step to step.

    `text` are sentences without trees, whose entropy, per word and times `entropy[0]`, of order `entropy[1]`, is added
    to the loss. The first `_LIKELY` of all steps are by likelihood where the loss, as the expected one, has many local
    optima. A batch that does not fit the GPU's memory is taken in pieces from then on, which give the same gradient.
    """

    network: Network
    data: Annotated
    loss: Loss
    trees: TreeClass
    settings: NetworkSettings
    device: torch.device
    text: Annotated | None = None
    entropy: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        self.optimiser = optimiser_of(self.network, self.settings)
        self.rates = [group["lr"] for group in self.optimiser.param_groups]
        self.average = Average(self.settings.averaging)
        self.rng = np.random.default_rng(self.settings.seed)
        self.passes = 0
        self.step = 0
        self.pieces = 1
        self.steps = self.settings.epochs * sum(1 for _ in self._batches(np.random.default_rng(0)))

    def run_pass(self) -> tuple[float, float]:
        """One pass over the data: its mean loss, and words per second."""
        started = time.monotonic()
        self.network.train()
        total = torch.zeros((), device=self.device)
        count = 0
        text = self._texts()
        for which in self._batches(self.rng):
            self.step += 1
            count += 1
            self._set_rates()
            total += self._step(which, next(text, None))
        self.passes += 1
        loss = float(total) / count  # waits for the GPU
        return loss, self.data.words / (time.monotonic() - started)

    def _batches(self, rng: np.random.Generator) -> Iterator[Ints]:
        return batches(self.data.reading.sizes, self.settings.batch, rng)

    def _texts(self) -> Iterator[Ints]:
        while self.text is not None:
            yield from batches(self.text.reading.sizes, self.settings.batch, self.rng)

    def _set_rates(self) -> None:
        warm = max(1.0, self.settings.warm_up * self.steps)
        left = (self.steps - self.step) / max(1.0, self.steps - warm)
        for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
            group["lr"] = rate * min(self.step / warm, max(0.0, left))

    def _step(self, which: Ints, text: Ints | None) -> Tensor:
        self.optimiser.zero_grad(set_to_none=True)
        while True:
            kept = torch.get_rng_state(), _gpu_rng(self.device)
            try:
                loss = self._gradient(which, text)
                break
            except torch.OutOfMemoryError:
                if self.pieces >= len(which):
                    raise TrainingError(_TOO_LARGE) from None
            self.pieces *= 2
            self.optimiser.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
            torch.set_rng_state(kept[0])
            _set_gpu_rng(kept[1], self.device)
        nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.largest_gradient)
        self.optimiser.step()
        self.average.add(self.network)
        return loss

    def _gradient(self, which: Ints, text: Ints | None) -> Tensor:
        words = int(self.data.reading.lengths[which].sum())
        total = torch.zeros((), device=self.device)
        for some in np.array_split(which, min(self.pieces, len(which))):
            batch = batch_of(self.data, some, self.device)
            loss = loss_of(self.network, batch, self._loss(), self.trees, self.settings, words)
            loss.backward()
            total += loss.detach()
        if text is not None and self.text is not None:
            words = int(self.text.reading.lengths[text].sum())
            for some in np.array_split(text, min(self.pieces, len(text))):
                batch = batch_of(self.text, some, self.device)
                weight, order = self.entropy
                found = entropy(self.network(batch.inputs).arcs, batch.lengths, self.trees, order)
                loss = weight * found.sum() / words
                loss.backward()
                total += loss.detach()
        return total

    def _loss(self) -> Loss:
        return partial_log_likelihood if self.loss is expected_loss and self.step <= _LIKELY * self.steps else self.loss

    def state(self) -> State:
        """To go on from in another process, on the same device, with the same results."""
        moments = self.optimiser.state_dict()["state"]
        arrays: dict[str, NDArray[Any]] = {
            "weights": flat(self.network.state_dict()),
            "average": flat(self.average.weights),
            **{name: flat({str(i): own[name] for i, own in moments.items()}) for name in _MOMENTS},
            "random_cpu": torch.get_rng_state().numpy(),
        }
        gpu = _gpu_rng(self.device)
        if gpu is not None:
            arrays["random_gpu"] = gpu.numpy()
        counts = {"passes": self.passes, "step": self.step, "pieces": self.pieces, "averaged": self.average.steps}
        return State(arrays, {**counts, "order": self.rng.bit_generator.state})

    def restore(self, state: State) -> None:
        """Go on from a state; a lookup error or ValueError where it is of another network."""
        own = self.network.state_dict()
        self.network.load_state_dict(unflat(state.arrays["weights"], own))
        self.average.weights = unflat(state.arrays["average"], own)
        kept = self.optimiser.state_dict()
        weights = [weight for group in self.optimiser.param_groups for weight in group["params"]]
        like = {str(i): weight for i, weight in enumerate(weights)}
        moments = {name: unflat(state.arrays[name], like) for name in _MOMENTS}
        step = torch.tensor(float(state.data["step"]))
        by_number = {
            i: {"step": step.clone(), **{name: moments[name][str(i)] for name in _MOMENTS}} for i in range(len(weights))
        }
        self.optimiser.load_state_dict({**kept, "state": by_number})
        torch.set_rng_state(torch.from_numpy(state.arrays["random_cpu"].copy()))
        if "random_gpu" in state.arrays:
            _set_gpu_rng(torch.from_numpy(state.arrays["random_gpu"].copy()), self.device)
        data = state.data
        self.passes, self.step, self.pieces = (int(data[name]) for name in ("passes", "step", "pieces"))
        self.average.steps = int(data["averaged"])
        self.rng.bit_generator.state = data["order"]


_MOMENTS = ("exp_avg", "exp_avg_sq")  # what AdamW calls them


def flat(weights: Mapping[str, Tensor]) -> NDArray[np.float32]:
    """All weights one after the other, as an array."""
    return torch.cat([weight.detach().float().flatten() for weight in weights.values()]).cpu().numpy()


def unflat(array: NDArray[Any], like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """An array as weights of these names, shapes, types and devices."""
    sizes = [weight.numel() for weight in like.values()]
    if array.shape != (sum(sizes),):
        raise ValueError("weights of another network")
    parts = torch.from_numpy(array.copy()).split(sizes)
    return {name: part.reshape(own.shape).to(own) for part, (name, own) in zip(parts, like.items(), strict=True)}


_TOO_LARGE = "one sentence does not fit the GPU's memory; train with --device cpu, or leave very long sentences out"


def _gpu_rng(device: torch.device) -> Tensor | None:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else None


def _set_gpu_rng(state: Tensor | None, device: torch.device) -> None:
    if state is not None and device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
