"""From treebank to model: settings, the data made ready, the learner watched on development data, checkpoints.

The steps, each a function below: read and check the trees (`training_trees`), number words and size the features
(`build_scorer`), let the learner run under a `Monitor`, which scores the development data after each pass, keeps the
best weights, stops early and saves checkpoints; train the labeller; scale the scores so that probabilities mean what
they say (`calibrate`).
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from headway.archive import Archive, load_archive, save_archive
from headway.errors import ArchiveError, TrainingError
from headway.evaluation import is_punctuation
from headway.features.arc_features import ArcFeatures
from headway.features.coding import Coder
from headway.features.templates import load_templates
from headway.inference.batch import Floats
from headway.inference.first_order import argmax, log_partition
from headway.learning.examples import Labels, Trees
from headway.learning.exponentiated_gradient import ExponentiatedGradient
from headway.learning.log_linear import LogLinear, Optimiser
from headway.learning.perceptron import Perceptron
from headway.learning.progress import Learner, Pass, State
from headway.models.arc_factored import ArcExamples, ArcScorer, code_trees
from headway.models.arc_model import batches
from headway.models.labeller import LabelExamples, LabelScorer
from headway.treebank import Sentence, projectivise, read_treebank, require_tree, roots

LearnerName = Literal["perceptron", "margin", "loglinear", "eg", "eg-loglinear"]
LabelChoice = Literal["after", "joint", "none"]

# Passes over the data, and C, where the user gives none: chosen on held-out Danish training data.
_EPOCHS: dict[LearnerName, int] = {"perceptron": 10, "margin": 10, "loglinear": 100, "eg": 50, "eg-loglinear": 50}
_C: dict[LearnerName, float] = {"perceptron": 0.0, "margin": 200.0, "loglinear": 0.1, "eg": 0.01, "eg-loglinear": 0.1}
_LABELLER_EPOCHS, _LABELLER_MARGIN = 8, 30.0
_CHECKPOINT_SECONDS = 20.0


@dataclass(frozen=True)
class Settings:
    """What a model is trained with. `c` is the papers' C: the margin, or the weight of the data against w·w/2.

    `labels` are chosen `after` the tree (default of the perceptrons), jointly with it (`joint`, default of the
    marginal-based learners), or not at all. `patience` passes without a better development score end the training.
    """

    model: Literal["arc"] = "arc"
    learner: LearnerName = "margin"
    projective: bool = False
    single_root: bool = True
    labels: LabelChoice | None = None
    templates: str = "standard"
    epochs: int | None = None
    c: float | None = None
    optimiser: Optimiser = "lbfgs"
    patience: int = 10
    seed: int = 0

    def complete(self) -> Settings:
        """The same, every default written out; an error names a setting that cannot be."""
        if self.model != "arc":
            raise TrainingError(f"unknown model {self.model!r}; the models are: arc")
        if self.learner not in _EPOCHS:
            raise TrainingError(f"unknown learner {self.learner!r}; the learners are: {', '.join(_EPOCHS)}")
        if self.labels not in (None, *get_args(LabelChoice)):
            raise TrainingError(f"labels is {self.labels!r}; expected any of {', '.join(get_args(LabelChoice))}")
        if self.optimiser not in get_args(Optimiser):
            raise TrainingError(f"unknown optimiser {self.optimiser!r}; there are {', '.join(get_args(Optimiser))}")
        joint = self.learner in ("loglinear", "eg", "eg-loglinear")
        done = replace(
            self,
            labels=self.labels or ("joint" if joint else "after"),
            epochs=_EPOCHS[self.learner] if self.epochs is None else self.epochs,
            c=_C[self.learner] if self.c is None else self.c,
        )
        epochs, c = done.epochs or 0, done.c or 0.0
        if epochs < 1:
            raise TrainingError(f"epochs is {epochs}; at least one is needed")
        if not (c > 0 or (c == 0 and self.learner == "perceptron")) or not np.isfinite(c):
            raise TrainingError(f"C is {c}; expected a number above 0")
        return done

    def learn(self, threads: int = 1) -> Learner:
        """The learner of these settings."""
        done = self.complete()
        epochs, c = done.epochs or 1, done.c or 0.0
        trees = Trees(self.projective, self.single_root, threads)
        if self.learner in ("perceptron", "margin"):
            return Perceptron(trees, epochs, c, self.seed)
        if self.learner == "loglinear":
            return LogLinear(trees, c, epochs, self.optimiser, seed=self.seed)
        return ExponentiatedGradient(trees, c, epochs, "hinge" if self.learner == "eg" else "log")


@dataclass(frozen=True)
class Progress:
    """One pass, as it is shown: what is being trained, the pass of how many, its figures, the development score."""

    stage: str
    number: int
    passes: int
    figures: Mapping[str, float]
    dev: float | None
    seconds: float


Show = Callable[[Progress], None]


def training_trees(source: Any, settings: Settings, name: str) -> list[Sentence]:
    """The sentences of a treebank, every one a tree of the class; projectivised where the class is projective."""
    sentences = list(read_treebank(source)) if isinstance(source, (str, os.PathLike)) else list(source)
    sentences = [sentence for sentence in sentences if len(sentence)]
    if not sentences:
        raise TrainingError(f"{name}: has no sentence with words; training needs trees")
    for sentence in sentences:
        require_tree(sentence)
    if settings.projective:
        return [projectivise(sentence, single_root=settings.single_root) for sentence in sentences]
    many = sum(len(roots(sentence.heads)) != 1 for sentence in sentences if sentence.heads is not None)
    if settings.single_root and many:
        raise TrainingError(
            f"{name}: {many} of {len(sentences)} trees have several words on the root; train with multi-root trees "
            "(--multi-root, single_root=False)"
        )
    return sentences


def checksum(sentences: Sequence[Sentence]) -> str:
    """Names the data a model comes from: words and trees, whatever the file's compression or line ends."""
    digest = hashlib.sha256()
    for sentence in sentences:
        digest.update(sentence.to_conllx().replace("\r\n", "\n").encode())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Material:
    """Training data made ready: the coder, the scorer and the examples it makes."""

    coder: Coder
    scorer: ArcScorer
    examples: ArcExamples
    labels: tuple[str, ...]

    @classmethod
    def of(cls, sentences: Sequence[Sentence], settings: Settings, threads: int) -> Material:
        """Number the words, size the features from the trees, code the sentences."""
        coder = Coder.learn(sentences)
        kinds = {label for sentence in sentences for label in (sentence.labels or ())[1:] if label}
        labels = () if settings.labels == "none" else tuple(sorted(kinds))
        coded, heads, chosen = code_trees(sentences, coder, labels)
        arcs = ArcFeatures.learn(load_templates(settings.templates), coder, coded, heads)
        if settings.labels == "joint":
            joint = ArcFeatures.learn(load_templates("joint"), coder, coded, heads)
            scorer = ArcScorer(arcs, joint, labels, threads)
        else:
            scorer = ArcScorer(arcs, threads=threads)
        return cls(coder, scorer, ArcExamples(scorer, coded, heads, chosen), labels)


class Development:
    """Development sentences, scored without punctuation."""

    def __init__(self, sentences: Sequence[Sentence], material: Material, settings: Settings, threads: int) -> None:
        coded, heads, labels = code_trees(sentences, material.coder, material.labels)
        self._examples = ArcExamples(material.scorer, coded, heads, labels)
        self._trees = {"projective": settings.projective, "single_root": settings.single_root}
        self._threads = threads
        self._scored = np.zeros(heads.shape, np.bool_)
        for row, sentence in zip(self._scored, sentences, strict=True):
            row[1 : len(sentence) + 1] = [not is_punctuation(form) for form in sentence.forms]

    def uas(self, weights: Floats, *, projective: bool | None = None) -> float:
        """Percentage of right heads; `projective` decodes in another class than the model was trained for."""
        right = 0
        trees = self._trees if projective is None else {**self._trees, "projective": projective}
        lengths, gold = self._examples.lengths, self._examples.heads
        for which in batches(lengths):
            scores = self._examples.score(weights, which)
            arcs = scores if scores.ndim == 3 else scores.max(axis=-1)
            heads = argmax(arcs, lengths=lengths[which], threads=self._threads, **trees)
            width = heads.shape[1]
            right += int(((heads == gold[which, :width]) & self._scored[which, :width]).sum())
        return 100 * right / max(1, int(self._scored.sum()))

    def scale(self, weights: Floats) -> float:
        """The factor on the scores under which the development trees are most likely.

        Perceptron scores are far too large to be log-probabilities. One factor, found by golden section on its
        logarithm, mends that and changes no tree.
        """
        from scipy.optimize import minimize_scalar

        lengths = self._examples.lengths
        scored = [(which, self._examples.score(weights, which)) for which in batches(lengths)]
        gold = sum(float(np.vdot(self._examples.gold(which), scores)) for which, scores in scored)

        def loss(exponent: float) -> float:
            factor = float(np.exp(exponent))
            total = -factor * gold
            for which, scores in scored:
                arcs = factor * scores
                arcs = arcs if arcs.ndim == 3 else np.logaddexp.reduce(arcs, axis=-1)
                total += float(
                    np.sum(log_partition(arcs, lengths=lengths[which], threads=self._threads, **self._trees))
                )
            return total

        return float(np.exp(minimize_scalar(loss, bounds=(-12.0, 3.0), method="bounded", options={"xatol": 0.02}).x))


@dataclass
class Monitor:
    """Watches a learner: development scores, the best weights, early stopping, checkpoints, progress."""

    stage: str
    passes: int
    patience: int
    dev: Callable[[Floats], float] | None = None
    show: Show | None = None
    checkpoint: Path | None = None
    signature: str = ""
    history: list[dict[str, Any]] = field(default_factory=list)
    best: Floats | None = None
    _started: float = field(default_factory=time.monotonic)
    _saved: float = field(default_factory=time.monotonic)

    def __call__(self, done: Pass) -> bool:
        """After a pass: score, remember, save, show; False when it is time to stop."""
        score = self.dev(done.weights) if self.dev else None
        earlier = [entry["dev"] for entry in self.history]
        self.history.append({"pass": done.number, "dev": score, **done.figures})
        if score is None or not earlier or score > max(earlier):
            self.best = np.array(done.weights)
        if self.show:
            seconds = time.monotonic() - self._started
            self.show(Progress(self.stage, done.number, self.passes, done.figures, score, seconds))
        if self.checkpoint and time.monotonic() - self._saved > _CHECKPOINT_SECONDS:
            self.save(done.state)
            self._saved = time.monotonic()
        return score is None or self._passes_since_best() < self.patience

    def best_pass(self) -> int:
        """The number of the pass whose weights are kept."""
        if self.dev is None:
            return int(self.history[-1]["pass"])
        return int(max(self.history, key=lambda entry: entry["dev"])["pass"])

    def _passes_since_best(self) -> int:
        return int(self.history[-1]["pass"]) - self.best_pass()

    def save(self, state: State) -> None:
        """Write the checkpoint."""
        assert self.checkpoint is not None
        assert self.best is not None
        arrays = {**{f"state_{name}": array for name, array in state.items()}, "best": self.best}
        data = {"signature": self.signature, "history": self.history, "arrays": sorted(arrays)}
        save_archive(Archive("checkpoint", data, arrays), self.checkpoint, compress=False)

    def resume(self) -> State | None:
        """The state to go on from, when there is a checkpoint of the same data and settings."""
        if self.checkpoint is None or not self.checkpoint.exists():
            return None
        archive = load_archive(self.checkpoint, "checkpoint")
        if archive.data.get("signature") != self.signature:
            raise ArchiveError(
                f"{self.checkpoint}: a checkpoint of other data or settings; delete it, or train with what it came from"
            )
        if "history" not in archive.data or archive.data.get("arrays") != sorted(archive.arrays):
            raise ArchiveError(f"{self.checkpoint}: a damaged checkpoint; delete it and train again")
        self.history[:] = archive.data["history"]
        self.best = archive.arrays["best"]
        return {
            name.removeprefix("state_"): array for name, array in archive.arrays.items() if name.startswith("state_")
        }


def train_arcs(
    material: Material,
    settings: Settings,
    dev: Development | None,
    show: Show | None,
    checkpoint: Path | None,
    signature: str,
    threads: int,
) -> Monitor:
    """Run the learner; the monitor has the best weights and the history."""
    uas = None if dev is None else dev.uas
    monitor = Monitor("tree", settings.epochs or 1, settings.patience, uas, show, checkpoint, signature)
    state = monitor.resume()
    if state is not None:
        _check_sizes({**state, "best": monitor.best}, material.scorer.size, checkpoint)
    if not (monitor.history and not _goes_on(monitor)):
        settings.learn(threads).fit(material.examples, monitor, state)
    return monitor


def _check_sizes(state: Mapping[str, Any], size: int, checkpoint: Path | None) -> None:
    """Compiled code indexes these arrays without looking at their lengths."""
    for name in ("best", "weights", "total", "first", "second"):
        if name in state and state[name].shape != (size,):
            raise ArchiveError(f"{checkpoint}: a damaged checkpoint ({name} has other weights); delete it")


def _goes_on(monitor: Monitor) -> bool:
    """Whether a resumed training has passes left."""
    return int(monitor.history[-1]["pass"]) < monitor.passes


def train_labeller(material: Material, seed: int, show: Show | None) -> tuple[LabelScorer, Floats]:
    """The classifier that labels the arcs of a tree."""
    arcs = material.examples
    features = ArcFeatures.learn(load_templates("label"), material.coder, arcs.coded, arcs.heads)
    scorer = LabelScorer(features, material.labels)
    examples = LabelExamples(scorer, arcs.coded, arcs.heads, arcs.labels)
    monitor = Monitor("labels", _LABELLER_EPOCHS, _LABELLER_EPOCHS, show=show)
    weights = Perceptron(Labels(), _LABELLER_EPOCHS, _LABELLER_MARGIN, seed).fit(examples, monitor)
    return scorer, weights


def signature(settings: Settings, train: str, dev: str) -> str:
    """What a checkpoint must agree in before training goes on from it; more passes may be asked for."""
    options = {name: value for name, value in asdict(settings).items() if name not in ("epochs", "patience")}
    table = "\n".join(map(str, load_templates(settings.templates)))
    return f"{train} {dev} {hashlib.sha256(table.encode()).hexdigest()[:16]} {sorted(options.items())}"
