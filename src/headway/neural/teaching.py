"""What teachers say of sentences: the answers that a smaller network learns to give (Hinton et al. 2015).

Teachers are trained networks of any size; several of them answer with the mean of their calibrated probabilities. Of
every sentence they give the marginals of all arcs; the tree with the largest sum of these; the probabilities of the
labels of its arcs; and the best value of every other task.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headway.arrays import Ints, TreeClass
from headway.errors import TrainingError
from headway.models.registry import open_archive, read_model
from headway.models.root_labels import possible_labels
from headway.named_models import paths_of_models
from headway.neural.batching import as_many_as_fit
from headway.neural.model import NeuralModel
from headway.neural.reading import groups_by_size
from headway.neural.targets import UNTAUGHT, Tasks
from headway.neural.torch_session import TorchSession
from headway.torch import TreeDistribution
from headway.training.settings import Settings
from headway.treebank import Sentence

_MOST = 8_192  # subwords of a batch


@dataclass(frozen=True)
class Answers:
    """Of S sentences: heads (S, N+1), and the number of every word's value for each task but labels.

    Arc marginals (n+1, n+1) and label probabilities (n+1, L) are kept for each sentence by itself, since padding to the
    longest one could be most of them.
    """

    heads: Ints
    values: Mapping[str, NDArray[np.int32]]
    marginals: Sequence[NDArray[np.float32]]
    labels: Sequence[NDArray[np.float16]]

    def marginals_of(self, which: Ints) -> NDArray[np.float32]:
        """Of some sentences, padded with zeros (B, N+1, N+1)."""
        return _padded([self.marginals[i] for i in which.tolist()])

    def labels_of(self, which: Ints) -> NDArray[np.float32]:
        """Of some sentences, padded with zeros (B, N+1, L); the root has none."""
        return _padded([self.labels[i] for i in which.tolist()])


def _padded(matrices: Sequence[NDArray[np.float16 | np.float32]]) -> NDArray[np.float32]:
    rows, columns = np.max([matrix.shape for matrix in matrices], axis=0)
    found = np.zeros((len(matrices), rows, columns), np.float32)
    for into, matrix in zip(found, matrices, strict=True):
        into[: matrix.shape[0], : matrix.shape[1]] = matrix
    return found


def teachers_of(models: str) -> list[NeuralModel]:
    """The networks that are teachers, by name or from files; several are joined by "+"."""
    return [teacher_of(path) for path in paths_of_models(models)]


def teacher_of(path: str | os.PathLike[str]) -> NeuralModel:
    """The network that is a teacher, from its file."""
    archive = open_archive(path, "parsing")
    if archive.kind != NeuralModel.kind:
        raise TrainingError(
            f"{path}: holds an {archive.kind!r} model, and only networks are teachers; train one with --model neural"
        )
    found: NeuralModel = read_model(archive, path)
    return found


def require_teacher(teacher: NeuralModel, settings: Settings) -> None:
    """Refuse, before data are read, a teacher of other trees, and one that reads what its pupil does not."""
    if teacher.trees != settings.trees:
        raise TrainingError(
            f"the teacher's trees are {teacher.trees}, the pupil's {settings.trees}; train both for the same"
        )
    if "tags" in teacher.requires and settings.tags != "gold":
        raise TrainingError("the teacher reads tags, and the pupil does not; train a teacher with --tags predicted")


def require_tasks(teacher: NeuralModel, tasks: Tasks) -> None:
    """Refuse a teacher whose labels and tags are not those of the treebank."""
    if teacher.tasks != tasks:
        raise TrainingError(
            "the teacher has other labels or tags than the pupil; train both on the same treebank, with the same "
            "--labels and --tags"
        )


@torch.inference_mode()
def ask(
    teachers: Sequence[NeuralModel], sentences: Sequence[Sentence], trees: TreeClass, device: torch.device
) -> Answers:
    """What teachers that have the same tasks say of sentences."""
    asked = [_Teacher(teacher, sentences, device) for teacher in teachers]
    return as_many_as_fit(lambda most: _answers(asked, teachers[0].tasks, trees, device, most), _MOST)


def _answers(asked: Sequence[_Teacher], tasks: Tasks, trees: TreeClass, device: torch.device, most: int) -> Answers:
    lengths = asked[0].reading.lengths
    shape = (len(lengths), int(lengths.max(initial=0)) + 1)
    heads = np.full(shape, -1, np.int64)
    values = {name: np.full(shape, UNTAUGHT, np.int32) for name in tasks.tags}
    marginals = [np.zeros((1, 1), np.float32)] * len(lengths)  # as it stays where there are no words
    labels = [np.zeros((1, len(tasks.labels)), np.float16)] * len(lengths)
    for which in groups_by_size(asked[0].reading.sizes, most):
        nodes = int(lengths[which].max()) + 1
        if nodes == 1:
            continue
        words = (np.arange(nodes) > 0) & (np.arange(nodes) <= lengths[which][:, None])
        sizes = torch.from_numpy(lengths[which]).to(device)
        outputs = [teacher.outputs(which) for teacher in asked]
        each = list(zip(asked, outputs, strict=True))
        arcs = _mean([teacher.marginals(own, sizes, trees) for teacher, own in each])
        best = TreeDistribution(arcs, sizes, **trees._asdict(), validate_args=False).argmax()
        shares = _mean([teacher.labels(own, best) for teacher, own in each])
        tags = [teacher.tags(own) for teacher, own in each]
        heads[which, :nodes] = best.cpu().numpy()
        for name, into in values.items():
            chosen = _mean([own[name] for own in tags]).argmax(dim=2).cpu().numpy()
            into[which, :nodes] = np.where(words, chosen, UNTAUGHT)
        of_arcs, of_labels = arcs.cpu().numpy(), np.where(words[..., None], shares.cpu().numpy(), 0.0)
        for row, i in enumerate(which.tolist()):
            size = int(lengths[i]) + 1
            marginals[i] = of_arcs[row, :size, :size].astype(np.float32)
            labels[i] = of_labels[row, :size].astype(np.float16)  # there are more labels than arcs of most words
    return Answers(heads, values, marginals, labels)


def _mean(each: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(each)).mean(dim=0)


class _Teacher:
    """One of them, with the sentences as it reads them."""

    def __init__(self, model: NeuralModel, sentences: Sequence[Sentence], device: torch.device) -> None:
        self.reading = model.reader.read(sentences)
        self._model, self._device = model, device
        self._network = TorchSession(model.network.graph, device)
        self._labels = None if model.labels is None else TorchSession(model.labels.graph, device)

    def outputs(self, which: Ints) -> Mapping[str, Tensor]:
        """What the network makes of some sentences."""
        inputs = self.reading.batch(which)
        return self._network.run({name: torch.from_numpy(array).to(self._device) for name, array in inputs.items()})

    def marginals(self, outputs: Mapping[str, Tensor], lengths: Tensor, trees: TreeClass) -> Tensor:
        """(B, N+1, N+1)."""
        scores = outputs["arcs"] / self._model.temperature
        found: Tensor = TreeDistribution(scores, lengths, **trees._asdict(), validate_args=False).marginals
        return found

    def tags(self, outputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The probabilities of the values of each task but labels (B, N+1, V)."""
        tasks = self._model.tasks
        if not tasks.tags:
            return {}
        scores = outputs["tags"].split([tasks.sizes[name] for name in tasks.tags], dim=2)
        return {name: own.softmax(dim=2) for name, own in zip(tasks.tags, scores, strict=True)}

    def labels(self, outputs: Mapping[str, Tensor], heads: Tensor) -> Tensor:
        """The probabilities of the labels of the arcs from these heads (B, N+1, L)."""
        model = self._model
        if self._labels is None:
            return torch.zeros(*heads.shape, 0, device=self._device)
        own, above = outputs["label_modifiers"], outputs["label_heads"]
        above = above.gather(1, heads.clamp(min=0)[..., None].expand_as(above))
        scores = self._labels.run({"heads": above.flatten(0, 1), "modifiers": own.flatten(0, 1)})["labels"]
        scores = scores.unflatten(0, heads.shape) / model.label_temperature
        possible = possible_labels(model.tasks.labels, model.roots)
        if possible is not None:
            scores = scores.masked_fill(~torch.from_numpy(possible).to(self._device)[(heads == 0).long()], -torch.inf)
        found: Tensor = scores.softmax(dim=2)
        return found
