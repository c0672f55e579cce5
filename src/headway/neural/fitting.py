"""Fitting a network to its objectives: steps, rates, averaged weights, and the passes over the data."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from headway.arrays import Ints
from headway.neural.batching import batch_of, batches, one_too_large
from headway.neural.network import Network
from headway.neural.objectives import Objective
from headway.neural.settings import NetworkSettings


@dataclass
class Average:
    """A moving average of weights, warmed up so that the first ones do not linger."""

    decay: float
    weights: dict[str, Tensor] = field(default_factory=dict)
    steps: int = 0

    @torch.no_grad()
    def add(self, network: nn.Module) -> None:
        self.steps += 1
        if not self.weights:
            self.weights = {name: weight.clone() for name, weight in network.state_dict().items()}
            return
        share = 1 - min(self.decay, self.steps / (self.steps + 10))
        torch._foreach_lerp_(list(self.weights.values()), list(network.parameters()), share)


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


class State(NamedTuple):
    """All that a training goes on from: arrays by name, and the state of what is random, as JSON."""

    arrays: dict[str, NDArray[Any]]
    data: dict[str, Any]


@dataclass
class Fitting:
    """A training: the network, and everything that changes from step to step.

    A pass goes once over the sentences of the first objective; the others go round theirs meanwhile. A batch that does
    not fit the GPU's memory is taken in pieces from then on, which give the same gradient.
    """

    network: Network
    objectives: Sequence[Objective]
    settings: NetworkSettings
    device: torch.device

    def __post_init__(self) -> None:
        self.optimiser = optimiser_of(self.network, self.settings)
        self.rates = [group["lr"] for group in self.optimiser.param_groups]
        self.average = Average(self.settings.averaging)
        self.rng = np.random.default_rng(self.settings.seed)
        self.passes = 0
        self.step = 0
        self.pieces = 1
        one_pass = batches(self.objectives[0].data.reading.sizes, self.settings.batch, np.random.default_rng(0))
        self.steps = self.settings.epochs * sum(1 for _ in one_pass)

    def run_pass(self) -> tuple[float, float]:
        """One pass over the data: its mean loss per word, and words per second."""
        started = time.monotonic()
        self.network.train()
        total = torch.zeros((), device=self.device)
        count = 0
        data = self.objectives[0].data
        others = [self._round(objective) for objective in self.objectives[1:]]
        for which in batches(data.reading.sizes, self.settings.batch, self.rng):
            self.step += 1
            count += 1
            self._set_rates()
            total += self._step([which, *map(next, others)])
        self.passes += 1
        loss = float(total) / count  # waits for the GPU
        return loss, data.words / (time.monotonic() - started)

    def _round(self, objective: Objective) -> Iterator[Ints]:
        while True:
            yield from batches(objective.data.reading.sizes, self.settings.batch, self.rng)

    def _set_rates(self) -> None:
        warm = max(1.0, self.settings.warm_up * self.steps)
        left = (self.steps - self.step) / max(1.0, self.steps - warm)
        for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
            group["lr"] = rate * min(self.step / warm, max(0.0, left))

    def _step(self, which: Sequence[Ints]) -> Tensor:
        self.optimiser.zero_grad(set_to_none=True)
        while True:
            kept = torch.get_rng_state(), _gpu_rng(self.device)
            try:
                loss = self._gradient(which)
                break
            except torch.OutOfMemoryError:
                if self.pieces >= max(map(len, which)):
                    raise one_too_large() from None
            self.pieces *= 2
            self.optimiser.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
            torch.set_rng_state(kept[0])
            _set_gpu_rng(kept[1], self.device)
        nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.largest_gradient)
        self.optimiser.step()
        self.average.add(self.network)
        return loss

    def _gradient(self, which: Sequence[Ints]) -> Tensor:
        """Add up the gradient of one batch of each objective, per word; their losses together."""
        total = torch.zeros((), device=self.device)
        done = self.step / self.steps
        for objective, chosen in zip(self.objectives, which, strict=True):
            words = max(1, int(objective.data.reading.lengths[chosen].sum()))
            for some in np.array_split(chosen, min(self.pieces, len(chosen))):
                batch = batch_of(objective.data, some, self.device)
                loss = objective.loss(self.network, batch, some, done) / words
                loss.backward()
                total += loss.detach()
        return total

    def state(self) -> State:
        """To go on from in another process, on the same device, with the same results."""
        moments = self.optimiser.state_dict()["state"]
        arrays: dict[str, NDArray[Any]] = {
            "weights": flat(self.network.state_dict()),
            "average": flat(self.average.weights),
            **{name: flat({str(i): moments[i][name] for i in sorted(moments)}) for name in _MOMENTS},
            "random_cpu": torch.get_rng_state().numpy(),
            **{name: memory.copy() for name, memory in self._memories().items()},
        }
        gpu = _gpu_rng(self.device)
        if gpu is not None:
            arrays["random_gpu"] = gpu.numpy()
        counts = {"passes": self.passes, "step": self.step, "pieces": self.pieces, "averaged": self.average.steps}
        return State(arrays, {**counts, "learning": sorted(moments), "order": self.rng.bit_generator.state})

    def restore(self, state: State) -> None:
        """Go on from a state; a lookup error or ValueError where it is of another network."""
        own = self.network.state_dict()
        self.network.load_state_dict(unflat(state.arrays["weights"], own))
        self.average.weights = unflat(state.arrays["average"], own)
        kept = self.optimiser.state_dict()
        weights = [weight for group in self.optimiser.param_groups for weight in group["params"]]
        learning = [int(i) for i in state.data["learning"]]  # without labels, say, some weights have no gradient
        like = {str(i): weights[i] for i in learning}
        moments = {name: unflat(state.arrays[name], like) for name in _MOMENTS}
        step = torch.tensor(float(state.data["step"]))
        by_number = {i: {"step": step.clone(), **{name: moments[name][str(i)] for name in _MOMENTS}} for i in learning}
        self.optimiser.load_state_dict({**kept, "state": by_number})
        torch.set_rng_state(torch.from_numpy(state.arrays["random_cpu"].copy()))
        if "random_gpu" in state.arrays:
            _set_gpu_rng(torch.from_numpy(state.arrays["random_gpu"].copy()), self.device)
        for name, memory in self._memories().items():
            if memory.shape != state.arrays[name].shape:
                raise ValueError("what an objective remembers is of other sentences")
            memory[...] = state.arrays[name]
        data = state.data
        self.passes, self.step, self.pieces = (int(data[name]) for name in ("passes", "step", "pieces"))
        self.average.steps = int(data["averaged"])
        self.rng.bit_generator.state = data["order"]

    def _memories(self) -> dict[str, NDArray[Any]]:
        """What the objectives remember."""
        return {
            f"objective_{i}_{name}": memory
            for i, objective in enumerate(self.objectives)
            for name, memory in objective.memory.items()
        }


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


def _gpu_rng(device: torch.device) -> Tensor | None:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else None


def _set_gpu_rng(state: Tensor | None, device: torch.device) -> None:
    if state is not None and device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
