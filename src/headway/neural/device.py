"""A neural parser on a GPU, or wherever torch computes: network, trees, labels and tags of large batches.

Only what was chosen comes back, and the arc scores, one transfer for each batch. While the device computes a batch, the
host writes the columns of the one before. Probabilities are computed on the device when first asked for, those of a
whole batch at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headway.archive import Archive
from headway.arrays import Floats, Ints, TreeClass
from headway.errors import ArgumentError, ScoresError
from headway.inference import TreeDistribution
from headway.inference.batch import one_sentence
from headway.models.constraints import Constraints, allowed_arcs
from headway.models.labelling import ChosenLabels, NamedLabels
from headway.models.protocol import Description, Options, Prediction, Task
from headway.models.root_labels import possible_labels
from headway.neural.model import NeuralModel, cells, misshapen, not_finite
from headway.neural.reading import Inputs, Reading, groups_by_size
from headway.neural.sentence_ends import MIDDLE, SentenceEnds, signals_of
from headway.neural.sentence_temperature import HIGHEST, LOWEST, SentenceTemperature
from headway.neural.torch_session import TorchSession
from headway.parallel import Executor
from headway.torch import TreeDistribution as DeviceTrees
from headway.treebank import Sentence
from headway.treebank.raw_text import pieces_of

_Constraints = Sequence[Constraints | None] | None

_MOST = 16_384  # subwords of a batch, padding included
_ROWS = 4_096  # words whose labels are scored at once


def device_of(name: str) -> torch.device | None:
    """The device of that name, None where there is no GPU for "auto"."""
    if name in ("auto", "cuda") and not torch.cuda.is_available():
        if name == "auto":
            return None
        raise ArgumentError("there is no GPU that torch can use; parse with the device cpu")
    return torch.device("cuda" if name == "auto" else name)


@dataclass(frozen=True, repr=False)
class DeviceModel:
    """The same model, on a device."""

    model: NeuralModel
    device: torch.device
    network: TorchSession
    labels: TorchSession | None
    sentence_ends: TorchSession | None

    kind: ClassVar[str] = NeuralModel.kind
    task: ClassVar[Task] = NeuralModel.task
    sentences_at_once: ClassVar[int] = 4_096

    def __repr__(self) -> str:
        return f"<DeviceModel: {self.trees}, on {self.device}>"

    @classmethod
    def of(cls, model: NeuralModel, device: torch.device) -> DeviceModel:
        """Sends the weights there."""
        labels = None if model.labels is None else TorchSession(model.labels.graph, device)
        ends = None if model.ends is None else TorchSession(model.ends.network.graph, device)
        return cls(model, device, TorchSession(model.network.graph, device), labels, ends)

    @property
    def about(self) -> Mapping[str, Any]:
        return self.model.about

    @property
    def requires(self) -> frozenset[str]:
        return self.model.requires

    @property
    def gives(self) -> frozenset[str]:
        return self.model.gives

    @property
    def ends(self) -> SentenceEnds | None:
        return self.model.ends

    @property
    def trees(self) -> TreeClass:
        return self.model.trees

    def with_trees(self, trees: TreeClass) -> DeviceModel:
        return replace(self, model=self.model.with_trees(trees))

    def describe(self) -> Description:
        return self.model.describe()

    def to_archive(self) -> Archive:
        return self.model.to_archive()

    @classmethod
    def from_archive(cls, archive: Archive) -> NeuralModel:
        return NeuralModel.from_archive(archive)

    def __reduce__(self) -> tuple[Any, ...]:
        return DeviceModel.of, (self.model, self.device)

    def predict(
        self,
        given: Sequence[Sentence],
        options: Options,
        executor: Executor,
        constraints: Sequence[Constraints | None] | None = None,
    ) -> list[Prediction]:
        """The trees of some sentences, in their order."""
        reading = self.model.reader.read(given)
        found: dict[int, Prediction] = {}
        for batch in _one_ahead(self._computed(reading, options, constraints)):
            forms = [form for i in batch.which.tolist() for form in given[i].forms]
            found |= zip(batch.which.tolist(), self._predictions(forms, batch.arrived()), strict=True)
        return [found[i] for i in range(len(given))]

    def predict_drafts(
        self, drafts: Sequence[Sentence], options: Options, executor: Executor
    ) -> list[list[tuple[Sentence, Prediction]]]:
        """The sentences that each draft is, with their trees: drafts are read twice, which a GPU does in no time."""
        doubtful = [draft for draft in drafts if draft.layout.joints is not None]
        reading = self.model.reader.read(doubtful)
        cuts: dict[int, list[int]] = {}
        for which in groups_by_size(reading.sizes, _MOST):
            cuts |= self._cuts(reading, doubtful, which)
        places = (cuts[i] for i in range(len(doubtful)))
        pieces = [pieces_of(draft, () if draft.layout.joints is None else next(places)) for draft in drafts]
        trees = iter(self.predict([one for own in pieces for one in own], options, executor))
        return [[(one, next(trees)) for one in own] for own in pieces]

    def _cuts(self, reading: Reading, drafts: Sequence[Sentence], which: Ints) -> dict[int, list[int]]:
        """The words after which each draft of a batch is to be cut; of its halves where there is too little memory."""
        some = [drafts[i] for i in which.tolist()]
        try:
            return dict(zip(which.tolist(), self._ends(some, reading.batch(which)), strict=True))
        except torch.cuda.OutOfMemoryError:
            if len(which) == 1:
                raise _too_little_memory(len(some[0])) from None
        torch.cuda.empty_cache()
        one, two = np.array_split(which, 2)
        return self._cuts(reading, drafts, one) | self._cuts(reading, drafts, two)

    @torch.inference_mode()
    def _ends(self, drafts: Sequence[Sentence], batch: Inputs) -> list[list[int]]:
        assert self.ends is not None
        assert self.sentence_ends is not None
        if not any(map(len, drafts)):
            return [[] for _ in drafts]
        inputs = {name: self._sent(array) for name, array in batch.items()}
        signals = self._sent(signals_of([draft.layout.joints for draft in drafts], batch["words"].shape[1] - 1))
        given = {MIDDLE: self.network.run(inputs)[MIDDLE], "words": inputs["words"], "signals": signals}
        return self.ends.chosen(drafts, self.sentence_ends.run(given)["scores"].cpu().numpy())

    def _computed(self, reading: Reading, options: Options, constraints: _Constraints) -> Iterator[_Pending]:
        for which in groups_by_size(reading.sizes, _MOST):
            yield from self._batches(reading, which, options, constraints)

    def _batches(
        self, reading: Reading, which: Ints, options: Options, constraints: _Constraints
    ) -> Iterator[_Pending]:
        """A batch, or its halves where the device has too little memory."""
        try:
            yield self._batch(reading, which, options, constraints)
        except torch.cuda.OutOfMemoryError:
            if len(which) == 1:
                raise _too_little_memory(int(reading.lengths[which[0]])) from None
        else:
            return
        torch.cuda.empty_cache()
        for half in np.array_split(which, 2):
            yield from self._batches(reading, half, options, constraints)

    @torch.inference_mode()
    def _batch(self, reading: Reading, which: Ints, options: Options, constraints: _Constraints) -> _Pending:
        """Everything of one batch is asked of the device; nothing is waited for."""
        lengths = reading.lengths[which]
        nodes = int(lengths.max(initial=0)) + 1
        rows, words = (self._sent(np.concatenate(parts)) for parts in cells(lengths))
        if nodes == 1:
            arcs, chosen = torch.zeros(len(which), 1, 1), torch.zeros(2 + len(self.model.tasks.tags), 0)
            shares = torch.zeros(0)
        else:
            inputs = {name: self._sent(array) for name, array in reading.batch(which).items()}
            found = self.network.run(inputs)
            self._require_shapes(found, len(which), nodes)
            arcs = found["arcs"] / self.model.temperature
            if self.model.sentence_temperature is not None and self.labels is not None:
                own = sentence_temperatures(
                    self.model.sentence_temperature, arcs, found["label_modifiers"], self._sent(lengths)
                )
                arcs = arcs / own[:, None, None]
            allowed = allowed_arcs(constraints, which, nodes)
            if allowed is not None:
                arcs = arcs.masked_fill(~self._sent(allowed), -torch.inf)
            trees = DeviceTrees(arcs, self._sent(lengths), **self.trees._asdict(), validate_args=False)
            try:
                heads = (trees.mbr() if options.mbr else trees.argmax())[rows, words]
            except ScoresError:  # of the host's kernels; what a GPU gives is looked at when it has arrived
                raise not_finite("arcs") from None
            labels, shares = self._labels(found, heads, rows, words)
            chosen = torch.stack([heads, labels, *self._values(found, rows, words)])
        coming = _coming(arcs), _coming(chosen.int()), _coming(shares)
        return _Pending(which, lengths, self.trees, self.device, *coming, _signal(arcs))

    def _sent(self, array: NDArray[Any]) -> Tensor:
        made = torch.from_numpy(np.ascontiguousarray(array))
        return made.pin_memory().to(self.device, non_blocking=True) if self.device.type == "cuda" else made

    def _require_shapes(self, found: Mapping[str, Tensor], batch: int, nodes: int) -> None:
        fits = found["arcs"].shape == (batch, nodes, nodes) and all(
            scores.shape[:2] == (batch, nodes) for name, scores in found.items() if name != MIDDLE
        )
        if not fits or (self.model.tasks.tags and found["tags"].shape[2] != self.model.tasks.width):
            raise misshapen()

    def _labels(self, found: Mapping[str, Tensor], heads: Tensor, rows: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """The number of each word's label, and P(label | arc)."""
        names = self.model.tasks.labels
        if self.labels is None:
            return torch.zeros_like(heads), torch.zeros(0, device=heads.device)
        own, above = found["label_modifiers"][rows, words], found["label_heads"][rows, heads.clamp(min=0)]
        pairs = zip(above.split(_ROWS), own.split(_ROWS), strict=True)
        scores = torch.cat([self.labels.run({"heads": h, "modifiers": m})["labels"] for h, m in pairs])
        if scores.shape[1] != len(names):
            raise misshapen()
        possible = possible_labels(names, self.model.roots)
        if possible is not None:
            scores = scores.masked_fill(~self._sent(possible)[(heads == 0).long()], -torch.inf)
        return scores.argmax(dim=1), (scores.double() / self.model.label_temperature).softmax(dim=1).amax(dim=1)

    def _values(self, found: Mapping[str, Tensor], rows: Tensor, words: Tensor) -> list[Tensor]:
        """The number of each word's best value, task by task."""
        tasks = self.model.tasks
        if not tasks.tags:
            return []
        scores = found["tags"][rows, words].split([tasks.sizes[name] for name in tasks.tags], dim=1)
        return [own.argmax(dim=1) for own in scores]

    def _predictions(self, forms: Sequence[str], batch: _Batch) -> Iterator[Prediction]:
        tasks = self.model.tasks
        heads, numbers, *values = batch.chosen
        if not batch.arcs.max(initial=0.0) < np.inf:  # nor is nan; arcs that are ruled out have -inf
            raise not_finite("arcs")
        if self.labels is not None and not np.isfinite(batch.shares).all():
            raise not_finite("labels")
        chosen = ChosenLabels(numbers, batch.shares)
        columns = self.model.columns(forms, dict(zip(tasks.tags, values, strict=True))) if tasks.tags else {}
        for b, (start, end) in enumerate(pairwise(accumulate(batch.lengths.tolist(), initial=0))):
            if (heads[start:end] < 0).any():
                batch.distribution(b).argmax()  # its error says why there is no tree
            labels = NamedLabels() if self.labels is None else chosen.named(tasks.labels, slice(start, end))
            yield Prediction(
                np.concatenate([[-1], heads[start:end]]),
                labels.names,
                batch.distribution(b),
                columns={name: column[start:end] for name, column in columns.items()} or None,
                label_probabilities=labels.probabilities,
            )


def sentence_temperatures(given: SentenceTemperature, arcs: Tensor, vectors: Tensor, lengths: Tensor) -> Tensor:
    """`SentenceTemperature.temperatures` on tensors."""
    places = torch.arange(arcs.shape[1], device=arcs.device)
    words = (places[1:] <= lengths[:, None])[..., None]
    possible = (places <= lengths[:, None])[:, :, None] & (places[:, None] != places[1:])
    own = arcs[:, :, 1:].masked_fill(~possible, -torch.inf)
    unsure = 1 - 1 / (own - own.amax(dim=1, keepdim=True)).exp().sum(dim=1)
    pairs = torch.cat([unsure[..., None], vectors[:, 1:]], dim=2).masked_fill(~words, 0.0)
    means = pairs.sum(dim=1) / lengths.clamp(min=1)[:, None]
    if means.shape[1] != 1 + len(given.direction):
        raise misshapen()
    odds = means[:, 1:] @ means.new_tensor(given.direction) + given.bias
    exponents = given.constant + given.doubt * means[:, 0] + given.disorder * odds.sigmoid()
    return exponents.clamp(LOWEST, HIGHEST).exp()


@dataclass(frozen=True)
class _Pending:
    """A batch on its way back."""

    which: Ints
    lengths: Ints
    trees: TreeClass
    device: torch.device
    arcs: Tensor
    chosen: Tensor
    shares: Tensor
    signal: Any

    def arrived(self) -> _Batch:
        if self.signal is not None:
            self.signal.synchronize()
        arcs = self.arcs.numpy().astype(np.float64)
        chosen = self.chosen.numpy().astype(np.int64)
        return _Batch(arcs, self.lengths, chosen, self.shares.numpy(), self.trees, self.device)


@dataclass(frozen=True)
class _Batch:
    """Arc scores (B, N+1, N+1), and for all words one after the other: head, label, one number for every task; and the
    probability of the label."""

    arcs: Floats
    lengths: Ints
    chosen: Ints
    shares: Floats
    trees: TreeClass
    device: torch.device

    def distribution(self, b: int) -> TreeDistribution:
        made = _OfBatch.of_batch(one_sentence(self.arcs, b, int(self.lengths[b])), self.trees)
        assert isinstance(made, _OfBatch)
        made.batch, made.row = self, b
        return made

    @cached_property
    def probabilities(self) -> tuple[Floats, Floats]:
        """log Z (B,) and marginals of all sentences, in double precision."""
        arcs, lengths = (torch.from_numpy(array).to(self.device) for array in (self.arcs, self.lengths))
        trees = DeviceTrees(arcs, lengths, **self.trees._asdict(), validate_args=False)
        with torch.inference_mode():
            return trees.log_partition.cpu().numpy(), trees.marginals.cpu().numpy()


class _OfBatch(TreeDistribution):
    """The distribution of one sentence, whose marginals are computed with those of its batch."""

    batch: _Batch
    row: int

    @cached_property
    def _log_z(self) -> Floats:
        return self._inference[0]

    @cached_property
    def _inference(self) -> tuple[Floats, Floats]:
        if self._batch.wide is not None:  # of any size, which the host is for
            return super()._inference
        b, inside = self.row, slice(0, int(self.batch.lengths[self.row]) + 1)
        log_z, marginals = self.batch.probabilities
        return log_z[b : b + 1], marginals[b : b + 1, inside, inside]


def _one_ahead(batches: Iterator[_Pending]) -> Iterator[_Pending]:
    """The same batches, each of them when the next one has been asked for."""
    before = next(batches, None)
    while before is not None:
        after = next(batches, None)
        yield before
        before = after


def _coming(tensor: Tensor) -> Tensor:
    return tensor.to("cpu", non_blocking=True)


def _signal(tensor: Tensor) -> Any:
    """What tells that everything asked for so far is done; None where nothing is waited for."""
    if tensor.device.type != "cuda":
        return None
    event = torch.cuda.Event()
    event.record()
    return event


def _too_little_memory(words: int) -> ArgumentError:
    return ArgumentError(f"the GPU has too little memory for a sentence of {words} words; parse it with the device cpu")
