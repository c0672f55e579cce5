"""One cell of the experiments with networks: train, choose the pass on development sentences, test once.

The test file is not read before the training has ended, and never by trials (`Job.dev_only`).
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headway import __version__
from headway.arrays import Bools
from headway.errors import TreebankError
from headway.evaluation import evaluate, evaluate_conll2018, reliability
from headway.learning.monitor import Progress, Show
from headway.parsed import Parsed
from headway.pipeline import Parser
from headway.text.columns import COLUMNS, is_absent
from headway.training.data import TrainingData, checksum, known_heads, root_labels
from headway.training.development import scored_words
from headway.training.settings import LSTM, NEURAL, Settings
from headway.training.stages import Run
from headway.treebank import Sentence, read_treebank, require_tree
from headway_papers.corpora import HELD_OUT, Corpus, Say, write_json
from headway_papers.fernandes2012_partial import hidden
from headway_papers.neural_plan import LINEAR, QUICK_SENTENCES, TREEBANKS, Cell, attachment_of, of_network
from headway_papers.neural_teachers import keep_teacher

if TYPE_CHECKING:
    from headway.neural.settings import NetworkSettings

_DRAW = 0  # the seed of the sentences of a learning curve
_SHOWN = 8  # passes of a training that are told of

Figures = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """Where cells come from and go to; `quick` ones have tiny networks, and those of `dev_only` never see the test."""

    data: Path
    results: Path
    encoder: Path | None
    quick: bool = False
    dev_only: bool = False
    threads: int = 1  # of linear models

    def path(self, cell: Cell) -> Path:
        return self.results / f"{cell.name}.json"

    def model(self, cell: Cell) -> Path:
        """Where the network of a teacher is kept; with other settings it is another one."""
        signature = hashlib.sha256(json.dumps(self.signature(cell), sort_keys=True).encode()).hexdigest()[:8]
        return self.results.parent / "models" / f"{self.results.name}-{cell.name}-{signature}.headway"

    def untrained(self, cells: Iterable[Cell]) -> list[Cell]:
        """The teachers of cells that are not there yet, each once."""
        needed = dict.fromkeys(teacher for cell in cells for teacher in cell.teachers)
        return [teacher for teacher in needed if not self.model(teacher).exists()]

    def signature(self, cell: Cell) -> Figures:
        """What a kept cell must agree in."""
        return {**cell.to_data(), "settings": cell.own_settings(quick=self.quick), "tested": not self.dev_only}

    def is_done(self, cell: Cell) -> bool:
        path = self.path(cell)
        return path.exists() and json.loads(path.read_text("utf-8"))["signature"] == self.signature(cell)


def compute(cell: Cell, job: Job, say: Say) -> Figures:
    """Train and score one cell, and keep it."""
    started = time.monotonic()
    parts = Parts.of(cell, job)
    settings = _settings(cell, job, parts)
    train = _linear if cell.model in LINEAR else _together if cell.together else _network
    found = {
        "signature": job.signature(cell),
        "headway": __version__,
        "commit": _commit(),
        "settings": {**asdict(settings), "encoder": cell.model},
        "data": {"train": checksum(parts.train), "dev": None if parts.dev is None else checksum(parts.dev)},
        "sentences": len(parts.train),
        "words": sum(map(len, parts.train)),
        "known_heads": known_heads(parts.train)[0],
        **train(cell, job, parts, settings, _shown(cell, say)),
        "seconds": time.monotonic() - started,
    }
    write_json(job.path(cell), found)
    part = "dev" if job.dev_only else "test"
    uas, las = (found[part][name] for name in attachment_of(cell.treebank))
    say(f"{cell.name}: {part} UAS {uas:.2f}, LAS {las:.2f}, in {found['seconds']:.0f} s")
    return found


@dataclass(frozen=True)
class Parts:
    """The sentences of a cell; those of the test are read when they are asked for.

    CoNLL-X has no development sentences. The last tenth of the training sentences are them while settings are chosen;
    what is tested learns from all.
    """

    treebank: str
    train: list[Sentence]
    dev: list[Sentence] | None
    roots: tuple[str, ...]
    single_root: bool
    data: Path
    most: int | None

    @classmethod
    def of(cls, cell: Cell, job: Job) -> Parts:
        most = QUICK_SENTENCES if job.quick else None
        given = _read(job.data, cell.treebank, "train", most)
        train: list[Sentence] = given
        dev: list[Sentence] | None = None
        if TREEBANKS[cell.treebank].is_ud:
            dev = _read(job.data, cell.treebank, "dev", most)
        elif job.dev_only:
            kept = len(given) - int(len(given) * HELD_OUT)
            train, dev = given[:kept], given[kept:]
        single_root, roots = Corpus(cell.treebank, given, []).single_root, root_labels(given)
        if cell.share < 1:  # the heads that the linear models know: drawn from all sentences
            train = hidden(given, cell.share, cell.seed - 1)[: len(train)]
        if cell.sentences is not None:
            drawn = np.random.default_rng(_DRAW).permutation(len(train))[: cell.sentences]
            train = [train[i] for i in sorted(drawn.tolist())]
        return cls(cell.treebank, train, dev, roots, single_root, job.data, most)

    @property
    def test(self) -> list[Sentence]:
        return _read(self.data, self.treebank, "test", self.most)


@lru_cache(4)
def _read(data: Path, treebank: str, part: str, most: int | None) -> list[Sentence]:
    own = TREEBANKS[treebank]
    folder = data / own.folder
    pattern, form = (f"*-ud-{part}.conllu*", "conllu") if own.is_ud else (f"{part}.conll*", "conllx")
    path = next((path for path in sorted(folder.glob(pattern)) if path.is_file()), None)
    if path is None:
        raise TreebankError(f"has no {pattern}", str(folder))
    return list(read_treebank(path, format=form))[:most]  # type: ignore[arg-type]


def _settings(cell: Cell, job: Job, parts: Parts) -> Settings:
    """Rates fall to zero over all passes, so a training is not stopped before the last unless the table says so."""
    own = {name: value for name, value in cell.own_settings(quick=job.quick).items() if not of_network(name)}
    labels = {} if cell.share == 1 else {"labels": "none"}  # as the linear models of such trees
    given = {"learner": cell.learner, "seed": cell.network_seed, "single_root": parts.single_root, **labels, **own}
    if cell.model in LINEAR:
        return Settings(model=cell.model, tags=TREEBANKS[cell.treebank].tags, **given).complete()
    encoder = LSTM if cell.model == LSTM else str(job.encoder)
    given = {"encoder": encoder, "patience": 10_000, **given}
    return Settings(model=NEURAL, tags=TREEBANKS[cell.treebank].tags, **given).complete()


def _network(cell: Cell, job: Job, parts: Parts, settings: Settings, show: Show) -> Figures:
    import torch

    from headway.neural import trainer
    from headway.neural.preparation import prepare
    from headway.neural.teaching import teacher_of

    device, sizes = trainer.device_of(settings), _sizes(cell, job, settings)
    data = TrainingData(parts.train, parts.dev, roots=parts.roots)
    with trainer.deterministic():
        teachers = [teacher_of(job.model(teacher)) for teacher in cell.teachers]
        prepared = prepare(data, settings, device, sizes, teachers=teachers)
        started = time.monotonic()
        fitted = trainer.fit(prepared, settings, Run(show=show), device)
        seconds = time.monotonic() - started
        prepared.network.load_state_dict(fitted.weights)
        temperature = 1.0 if parts.dev is None else trainer.temperature_of(prepared, settings.trees, device)

        def scored(sentences: list[Sentence]) -> tuple[Figures, list[Sentence]]:
            found = trainer.found_by(prepared, sentences, settings.trees, device, temperature)
            as_given = trainer.found_by(prepared, sentences, settings.trees, device, 1.0)
            parsed = found.sentences(sentences, prepared.tasks, parts.roots)
            calibration = {
                "expected_error": _error(sentences, parsed, found.probabilities),
                "expected_error_without_temperature": _error(sentences, parsed, as_given.probabilities),
            }
            return {**measured(sentences, parsed, settings.tags), "calibration": calibration}, parsed

        dev = None if parts.dev is None else scored(parts.dev)[0]
        tested = None if job.dev_only else scored(parts.test)
    figures: Figures = {
        "device": torch.cuda.get_device_name() if device.type == "cuda" else platform.machine(),
        "torch": torch.__version__,
        "network": asdict(sizes),
        "encoder": None if settings.encoder == LSTM else _encoder_checksum(settings.encoder),
        "parameters": sum(weight.numel() for weight in prepared.network.parameters()),
        "training_seconds": seconds,
        "passes": len(fitted.history),
        "best_pass": fitted.best_pass,
        "history": [[entry.get(name) for name in ("loss", "dev", "las")] for entry in fitted.history],
        "temperature": temperature,
        "dev": dev,
    }
    if tested is None:
        return figures
    int8 = None
    if cell.treebank == "ewt" and find_spec("onnx") and find_spec("onnxruntime"):
        prepared.network.cpu()
        model = trainer.model_of(prepared, settings, data, {}, temperature, quantised=True)
        int8 = measured(parts.test, _trees(Parser(model).parse(parts.test, retag=True)), settings.tags)
    return {**figures, **_of_test(job, parts, *tested), "int8": int8}


def _together(cell: Cell, job: Job, parts: Parts, settings: Settings, show: Show) -> Figures:
    """Several networks at once: the tree with the largest sum of mean marginals, labels by their mean probabilities."""
    import torch

    from headway.neural import trainer
    from headway.neural.teaching import ask, teacher_of

    device = trainer.device_of(settings)
    networks = [teacher_of(job.model(each)) for each in cell.teachers]

    def parsed(sentences: list[Sentence]) -> list[Sentence]:
        answers, names = ask(networks, sentences, settings.trees, device), networks[0].tasks.labels
        labels = [[None, *(names[i] for i in shares[1:].argmax(axis=1))] for shares in answers.labels]
        heads = [row[: len(own)].tolist() for row, own in zip(answers.heads, labels, strict=True)]
        return [one.with_tree(*tree) for one, *tree in zip(sentences, heads, labels, strict=True)]

    dev = None if parts.dev is None else measured(parts.dev, parsed(parts.dev), settings.tags)
    figures: Figures = {
        "device": torch.cuda.get_device_name() if device.type == "cuda" else platform.machine(),
        "torch": torch.__version__,
        "networks": [each.name for each in cell.teachers],
        "training_seconds": 0.0,
        "dev": dev,
    }
    if job.dev_only:
        return figures
    found = parsed(parts.test)
    return {**figures, **_of_test(job, parts, measured(parts.test, found, settings.tags), found)}


def _sizes(cell: Cell, job: Job, settings: Settings) -> NetworkSettings:
    """The usual ones of a network, with what the table of settings says."""
    from headway.neural.preparation import network_settings

    more = {name: value for name, value in cell.own_settings(quick=job.quick).items() if of_network(name)}
    return replace(network_settings(settings), **more)


def train_teacher(cell: Cell, job: Job, say: Say) -> float:
    """Train the network of a cell, and keep it to teach others; the seconds it took. No test file is read."""
    parts = Parts.of(cell, job)
    settings = _settings(cell, job, parts)
    data = TrainingData(parts.train, parts.dev, roots=parts.roots)
    started = time.monotonic()
    keep_teacher(job.model(cell), data, settings, _sizes(cell, job, settings), _shown(cell, say))
    return time.monotonic() - started


def _linear(cell: Cell, job: Job, parts: Parts, settings: Settings, show: Show) -> Figures:
    started = time.monotonic()
    parser = Parser.train(parts.train, parts.dev, threads=job.threads, show=show, **asdict(settings))
    seconds = time.monotonic() - started
    retag = settings.tags == "predicted"

    def scored(sentences: list[Sentence]) -> tuple[Figures, list[Sentence]]:
        found = list(parser.parse(iter(sentences), retag=retag, threads=job.threads))
        parsed = _trees(found)
        return measured(sentences, parsed, settings.tags), parsed

    figures: Figures = {
        "device": platform.machine(),
        "training_seconds": seconds,
        "passes": settings.epochs,
        "best_pass": parser.model.about["best_pass"],
        "dev": None if parts.dev is None else scored(parts.dev)[0],
    }
    return figures if job.dev_only else {**figures, **_of_test(job, parts, *scored(parts.test))}


def measured(gold: Sequence[Sentence], parsed: Sequence[Sentence], tags: str) -> Figures:
    """Percentages on gold tokens; where tags are predicted, also of the columns that the treebank has, and CoNLL 2018's
    scores, which ignore subtypes."""
    scores = evaluate(gold, parsed)
    figures = {name: getattr(scores, name) for name in ("tokens", "uas", "las", "uas_no_punct", "las_no_punct")}
    if tags == "gold":
        return figures
    official = evaluate_conll2018(gold, parsed)
    figures |= {"uas_2018": official.uas.f1, "las_2018": official.las.f1, "clas_2018": official.clas.f1}
    for column in COLUMNS:
        if all(is_absent(getattr(sentence, column)) for sentence in gold):
            continue
        pairs = ((getattr(a, column), getattr(b, column)) for a, b in zip(gold, parsed, strict=True))
        figures[column] = 100 * sum(x == y for a, b in pairs for x, y in zip(a, b, strict=True)) / scores.tokens
    return figures


def packed(bits: Bools) -> str:
    """
    >>> unpacked(packed(np.array([True, False, True])), 3).tolist()
    [True, False, True]
    """
    return b64encode(np.packbits(bits).tobytes()).decode()


def unpacked(text: str, count: int) -> Bools:
    """The bits that were packed."""
    found: Bools = np.unpackbits(np.frombuffer(b64decode(text), np.uint8), count=count).astype(np.bool_)
    return found


def _of_test(job: Job, parts: Parts, figures: Figures, parsed: Sequence[Sentence]) -> Figures:
    """Figures of the test, and which words have the right head, and the right head and label."""
    gold = parts.test
    right = [a.heads == b.heads for a, b in zip(gold, parsed, strict=True)]
    heads = np.concatenate([each[1:] for each in right])  # type: ignore[index]
    labels = np.array([x == y for a, b in zip(gold, parsed, strict=True) for x, y in _label_pairs(a, b)], np.bool_)
    lengths = np.array([len(sentence) for sentence in gold])
    counted = scored_words(gold)
    words = counted[(np.arange(counted.shape[1]) > 0) & (np.arange(counted.shape[1]) <= lengths[:, None])]
    about = {"test": checksum(gold), "lengths": " ".join(map(str, lengths)), "not_punctuation": packed(words)}
    folder = job.results / "treebanks"
    folder.mkdir(exist_ok=True)
    write_json(folder / f"{parts.treebank}.json", about)
    return {
        "test": figures,
        "test_data": about["test"],
        "right_heads": packed(heads),
        "right_arcs": packed(heads & labels),
    }


def _label_pairs(a: Sentence, b: Sentence) -> Sequence[tuple[str | None, str | None]]:
    assert a.labels is not None
    assert b.labels is not None
    return list(zip(a.labels[1:], b.labels[1:], strict=True))


def _error(gold: Sequence[Sentence], parsed: Sequence[Sentence], probabilities: Any) -> float:
    """The expected calibration error of the parser's arcs, of all words."""
    sure = np.concatenate([row[1 : len(g) + 1] for row, g in zip(probabilities, gold, strict=True)])
    right = np.concatenate([require_tree(p)[1:] == require_tree(g)[1:] for g, p in zip(gold, parsed, strict=True)])
    return reliability(sure, right).expected_error


def _trees(found: Iterable[Parsed]) -> list[Sentence]:
    return [each.sentence for each in found]


def _shown(cell: Cell, say: Say) -> Show:
    def show(progress: Progress) -> None:
        if progress.number % max(1, progress.passes // _SHOWN) == 0:
            figures = {name: round(value, 3) for name, value in progress.figures.items()}
            dev = "" if progress.dev is None else f" dev UAS {progress.dev:.2f},"
            say(f"  {cell.name}: {progress.number} of {progress.passes},{dev} {figures}")

    return show


@lru_cache(2)
def _encoder_checksum(folder: str) -> str:
    return hashlib.sha256((Path(folder) / "model.safetensors").read_bytes()).hexdigest()[:16]


def _commit() -> str | None:
    """Of the code; a copy of it without a repository may say so in HEADWAY_COMMIT."""
    if "HEADWAY_COMMIT" in os.environ:
        return os.environ["HEADWAY_COMMIT"]
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def known_words(about: Mapping[str, Any]) -> tuple[list[int], Bools]:
    """Of a treebank's test: the words of each sentence, and which are no punctuation."""
    lengths = [int(length) for length in about["lengths"].split()]
    return lengths, unpacked(about["not_punctuation"], sum(lengths))
