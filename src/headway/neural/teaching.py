"""What teachers say of sentences: the answers that a smaller network learns to give (Hinton et al. 2015).

Teachers are trained parsers of any size; several of them answer with the mean of their probabilities. Of every sentence
they give the marginals of all arcs; the tree with the largest sum of these; the probabilities of the labels of its
arcs; and the best value of every other task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headway.arrays import Ints, TreeClass
from headway.errors import TrainingError
from headway.neural.model import NeuralModel
from headway.neural.reading import Reader, groups_by_size
from headway.neural.targets import UNTAUGHT, Tasks
from headway.neural.torch_session import TorchSession
from headway.torch import TreeDistribution
from headway.treebank import Sentence

_MOST = 8_192  # subwords of a batch


@dataclass(frozen=True)
class Answers:
    """Of S sentences: heads (S, N+1); arc marginals, one matrix (n+1, n+1) after the other, that of sentence i from
    `starts[i]` on; label probabilities (S, N+1, L); and the numbers of the values of the other tasks, each (S, N+1)."""

    heads: Ints
    marginals: NDArray[np.float32]
    starts: Ints
    labels: NDArray[np.float16]
    values: Mapping[str, Ints]

    def marginals_of(self, which: Ints, nodes: int) -> NDArray[np.float32]:
        """Of some sentences (B, nodes, nodes), padded with zeros."""
        found = np.zeros((len(which), nodes, nodes), np.float32)
        sizes = np.sqrt(self.starts[which + 1] - self.starts[which]).astype(int)
        for row, i, size in zip(found, which.tolist(), sizes.tolist(), strict=True):
            row[:size, :size] = self.marginals[self.starts[i] : self.starts[i + 1]].reshape(size, size)
        return found


def require_teacher(teacher: NeuralModel, tasks: Tasks, trees: TreeClass, reader: Reader) -> None:
    """Refuse a teacher whose answers are about something else."""
    if teacher.tasks != tasks:
        raise TrainingError("the teacher has other labels or tags than the treebank; train it on the same treebank")
    if teacher.trees != trees:
        raise TrainingError(f"the teacher's trees are {teacher.trees}, the pupil's {trees}; train both for the same")
    if not teacher.requires <= reader.requires:
        raise TrainingError("the teacher reads tags, which the pupil does not; train a teacher with --tags predicted")


def ask(
    teachers: Sequence[NeuralModel], sentences: Sequence[Sentence], trees: TreeClass, device: torch.device
) -> Answers:
    """What teachers that have the same tasks say of sentences."""
    classes = [_Teacher(teacher, sentences, device) for teacher in teachers]
    tasks = teachers[0].tasks
    lengths = classes[0].reading.lengths
    shape = (len(sentences), int(lengths.max(initial=0)) + 1)
    starts = np.concatenate([[0], np.cumsum((lengths + 1) ** 2)])
    marginals = np.zeros(int(starts[-1]), np.float32)
    heads = np.full(shape, -1, np.int64)
    labels = np.zeros((*shape, max(1, len(tasks.labels))), np.float16)
    values = {name: np.full(shape, UNTAUGHT, np.int64) for name in tasks.tags}
    for which in groups_by_size(classes[0].reading.sizes, _MOST):
        nodes = int(lengths[which].max(initial=0)) + 1
        if nodes == 1:
            continue
        found = _mean([teacher.answer(which, trees) for teacher in classes])
        sizes = torch.from_numpy(lengths[which]).to(device)
        best = TreeDistribution(found.marginals, sizes, **trees._asdict(), validate_args=False).argmax()
        heads[which, :nodes] = best.cpu().numpy()
        inside = (np.arange(nodes) > 0) & (np.arange(nodes) <= lengths[which][:, None])
        if tasks.labels:
            chosen = sum(teacher.labels(best) for teacher in classes) / len(classes)
            labels[which, :nodes] = np.where(inside[..., None], chosen.cpu().numpy(), 0)
        for name, own in zip(tasks.tags, found.tags, strict=True):
            values[name][which, :nodes] = np.where(inside, own.argmax(dim=2).cpu().numpy(), UNTAUGHT)
        for i, matrix in zip(which.tolist(), found.marginals.cpu().numpy(), strict=True):
            size = int(lengths[i]) + 1
            marginals[starts[i] : starts[i + 1]] = matrix[:size, :size].ravel()
    return Answers(heads, marginals, starts, labels, values)


@dataclass(frozen=True)
class _Answer:
    """Of a batch: the marginals of arcs, and the probabilities of the values of each task."""

    marginals: Tensor
    tags: tuple[Tensor, ...]


def _mean(answers: Sequence[_Answer]) -> _Answer:
    tags = zip(*(answer.tags for answer in answers), strict=True)
    return _Answer(
        torch.stack([answer.marginals for answer in answers]).mean(dim=0),
        tuple(torch.stack(own).mean(dim=0) for own in tags),
    )


class _Teacher:
    """One of them, with the sentences as it reads them; `labels` is about the batch of the last `answer`."""

    def __init__(self, model: NeuralModel, sentences: Sequence[Sentence], device: torch.device) -> None:
        self.model, self.device = model, device
        self.reading = model.reader.read(sentences)
        self._network = TorchSession(model.network.graph, device)
        self._labels = None if model.labels is None else TorchSession(model.labels.graph, device)
        self._outputs: dict[str, Tensor] = {}

    def answer(self, which: Ints, trees: TreeClass) -> _Answer:
        inputs = {name: torch.from_numpy(array).to(self.device) for name, array in self.reading.batch(which).items()}
        self._outputs = self._network.run(inputs)
        lengths = torch.from_numpy(self.reading.lengths[which]).to(self.device)
        arcs = self._outputs["arcs"] / self.model.temperature
        marginals = TreeDistribution(arcs, lengths, **trees._asdict(), validate_args=False).marginals
        sizes = [self.model.tasks.sizes[name] for name in self.model.tasks.tags]
        tags = self._outputs["tags"].split(sizes, dim=2) if sizes else ()
        return _Answer(marginals.float(), tuple(own.softmax(dim=2) for own in tags))

    def labels(self, heads: Tensor) -> Tensor:
        """The probabilities of the labels of these arcs (B, N+1, L)."""
        assert self._labels is not None
        own, above = self._outputs["label_modifiers"], self._outputs["label_heads"]
        above = above.gather(1, heads.clamp(min=0)[..., None].expand_as(above))
        scores = self._labels.run({"heads": above.flatten(0, 1), "modifiers": own.flatten(0, 1)})["labels"]
        return scores.softmax(dim=1).unflatten(0, heads.shape)
