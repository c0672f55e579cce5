"""Training a neural parser: what `headway train --model neural` and `headway constrain --model neural` do.

A network is fitted to trees by one of the learners (`headway.neural.losses`), and to the answers of a teacher if there
is one; or to rules about a text. It is scored on development trees after each pass with its averaged weights, and the
best of these are kept. One temperature then makes its arc scores calibrated log-potentials, unless they are to meet
rules. The checkpoint has everything that changes: an interrupted training goes on as if nothing had happened.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from math import isfinite, nan
from typing import Any

import numpy as np
import torch

from headway import __version__
from headway.archive import Archive
from headway.arrays import TreeClass
from headway.errors import ScoresError, TrainingError
from headway.evaluation import evaluate
from headway.features.rules import Rules
from headway.learning.checkpoint import StageFile
from headway.learning.monitor import CHECKPOINT_SECONDS, Progress
from headway.models.protocol import Options
from headway.models.root_labels import roots_among
from headway.models.saved import without_folders
from headway.neural.batching import as_many_as_fit, batch_of
from headway.neural.encoders.transformer import Folder
from headway.neural.fitting import Fitting, State, flat, unflat
from headway.neural.label_temperature import with_label_temperature
from headway.neural.lemma_rules import with_lemma_rules
from headway.neural.losses import LOSSES, partial_log_likelihood
from headway.neural.model import NeuralModel
from headway.neural.objectives import EntropyObjective, Objective, TeacherObjective, TreeObjective
from headway.neural.preparation import Prepared, annotated, prepare
from headway.neural.reading import groups_by_size
from headway.neural.rules_objective import RulesObjective
from headway.neural.scoring import Found, Scores, find, scores_of
from headway.neural.teaching import require_teacher, teachers_of
from headway.training.data import TrainingData
from headway.training.settings import ENTROPY_ORDER, ENTROPY_WEIGHT, LSTM, Settings
from headway.training.stages import Run
from headway.treebank import Sentence

_STAGE = "network"
_LARGER = 4  # times the words of a training batch are scored at once


def require_network(settings: Settings) -> None:
    """Refuse, before data are read, what no network can be trained with."""
    if settings.method not in (*LOSSES, "constraints"):
        raise TrainingError(f"a network is trained with {', '.join(LOSSES)}; {settings.method} is for linear models")
    if settings.labels == "joint":
        raise TrainingError("a network chooses labels after the tree; leave --labels out, or give none")
    if settings.encoder != LSTM:
        Folder.open(settings.encoder)
    if settings.teacher is not None:
        for teacher in teachers_of(settings.teacher):
            require_teacher(teacher, settings)
    device_of(settings)


@dataclass
class Fitted:
    """The best averaged weights, and how they were found."""

    weights: dict[str, torch.Tensor]
    history: list[dict[str, Any]]
    best_pass: int


def train_neural_model(data: TrainingData, settings: Settings, run: Run) -> NeuralModel:
    """A parser whose scorer is a network, with weights of one byte each."""
    return _trained(data, None, settings, run)


def train_neural_from_rules(data: TrainingData, rules: Rules, settings: Settings, run: Run) -> NeuralModel:
    """The same from rules about the trees of a text, without any tree."""
    return _trained(data, rules, settings, run)


def _trained(data: TrainingData, rules: Rules | None, settings: Settings, run: Run) -> NeuralModel:
    device = device_of(settings)
    with deterministic(), _memory_reported():
        teachers = [] if settings.teacher is None else teachers_of(settings.teacher)
        prepared = prepare(data, settings, device, rules=rules, teachers=teachers)
        fitted = fit(prepared, settings, run, device)
        prepared.network.load_state_dict(fitted.weights)
        prepared.network.eval()
        as_is = prepared.dev is None or rules is not None
        temperature = 1.0 if as_is else temperature_of(prepared, settings.trees, device)
    prepared.network.cpu()
    said = about(settings, fitted, data, temperature=temperature)
    if rules is not None:
        said["rules"] = rules.to_toml()
    float32 = model_of(prepared, settings, data, said, temperature, quantised=False)
    int8 = model_of(prepared, settings, data, said, temperature, quantised=True)
    int8 = with_lemma_rules(int8, data.train, data.dev, run.executor)
    if data.dev is None:
        return int8
    int8 = with_label_temperature(int8, data.dev) if rules is None else int8
    figures = {name: attachment(model, data.dev, run) for name, model in (("float32", float32), ("int8", int8))}
    return replace(int8, about={**said, "rounding": figures})


def model_of(
    prepared: Prepared,
    settings: Settings,
    data: TrainingData,
    said: dict[str, Any],
    temperature: float,
    *,
    quantised: bool,
) -> NeuralModel:
    """The model of a network; `quantised` weights take one byte each."""
    from headway.neural.export import export  # ONNX, which training does without

    graphs = export(prepared.network, quantised=quantised)
    roots = roots_among(prepared.tasks.labels, data.roots)
    return NeuralModel.of_graphs(
        prepared.reader, prepared.tasks, graphs.network, graphs.labels, settings.trees, said, roots, temperature
    )


def attachment(model: NeuralModel, dev: Sequence[Sentence], run: Run) -> dict[str, float]:
    """UAS of a model on development trees, without punctuation, and LAS if it finds labels."""
    found = zip(dev, model.predict(dev, Options(), run.executor), strict=True)
    scores = evaluate(dev, [own.with_tree(tree.heads, tree.labels or own.labels) for own, tree in found])
    las = {"las": scores.las_no_punct} if model.tasks.labels else {}
    return {"uas": scores.uas_no_punct, **las}


def found_by(
    prepared: Prepared, sentences: Sequence[Sentence], trees: TreeClass, device: torch.device, temperature: float
) -> Found:
    """What the network finds for sentences, with the probabilities that a temperature gives."""
    data = annotated(sentences, prepared.reader, prepared.tasks)
    return as_many_as_fit(
        lambda most: find(prepared.network, data, trees, device, most, temperature), _LARGER * prepared.sizes.batch
    )


@torch.no_grad()
def temperature_of(prepared: Prepared, trees: TreeClass, device: torch.device) -> float:
    """The number that arc scores are divided by for the development trees to be most likely."""
    from scipy.optimize import minimize_scalar

    dev = prepared.dev
    assert dev is not None

    def arc_scores(most: int) -> list[tuple[torch.Tensor, ...]]:
        parts = (batch_of(dev, which, device) for which in groups_by_size(dev.reading.sizes, most))
        return [(prepared.network(batch.inputs).arcs, batch.heads, batch.lengths) for batch in parts]

    scored = as_many_as_fit(arc_scores, _LARGER * prepared.sizes.batch)

    def loss(exponent: float) -> float:
        total = 0.0
        for arcs, heads, lengths in scored:
            losses = partial_log_likelihood(arcs / float(np.exp(exponent)), heads, lengths, trees)
            total += float(losses[losses.isfinite()].sum())  # trees of another class are impossible
        return total

    return float(np.exp(minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded", options={"xatol": 0.01}).x))


def objectives_of(prepared: Prepared, settings: Settings, device: torch.device) -> list[Objective]:
    """What the network is fitted to."""
    train, trees = prepared.train, settings.trees
    if prepared.rules is not None:
        ruled = RulesObjective(train, trees, prepared.rules, settings.criterion, prepared.sizes)
        ruled.look(prepared.network, device)
        return [ruled]
    partial = settings.method == "loglinear" and int((train.heads >= 0).sum()) < train.words
    loss = partial_log_likelihood if partial else LOSSES[settings.method]
    found: list[Objective] = [TreeObjective(train, trees, loss, prepared.sizes)]
    if prepared.text is None:
        return found
    if prepared.answers is not None:
        found.append(TeacherObjective(prepared.text, trees, prepared.answers, prepared.sizes))
    else:
        weight = ENTROPY_WEIGHT if settings.entropy_weight is None else settings.entropy_weight
        order = settings.entropy_order or ENTROPY_ORDER
        found.append(EntropyObjective(prepared.text, trees, weight, order))
    return found


def fit(prepared: Prepared, settings: Settings, run: Run, device: torch.device) -> Fitted:
    """All passes, from the checkpoint on where there is one."""
    fitting = Fitting(prepared.network, objectives_of(prepared, settings, device), prepared.sizes, device)
    file = None if run.checkpoint is None else run.checkpoint.file(_STAGE)
    fitted = Fitted({}, [], 0)
    if file is not None:
        file.read(lambda archive: _resume(archive, fitting, fitted))
    started = saved = time.monotonic()
    while fitting.passes < prepared.sizes.epochs and fitting.passes - fitted.best_pass < settings.patience:
        try:
            loss, speed = fitting.run_pass()
        except ScoresError:
            loss, speed = nan, 0.0
        if not isfinite(loss):
            raise TrainingError("the loss is not a number any more; lower the learning rate (--rate, --encoder-rate)")
        scores = _dev_scores(fitting, prepared, settings.trees, device)
        _remember(fitting, fitted, loss, scores)
        if run.show:
            figures = {"loss": loss, "words/s": round(speed)}
            if scores is not None and scores.las is not None:
                figures["LAS"] = scores.las
            uas = None if scores is None else scores.uas
            seconds = time.monotonic() - started
            run.show(Progress("network", fitting.passes, prepared.sizes.epochs, figures, uas, seconds))
        if file is not None and time.monotonic() - saved > CHECKPOINT_SECONDS:
            _save(file, fitting, fitted)
            saved = time.monotonic()
    if file is not None:
        _save(file, fitting, fitted)
    return fitted


def _dev_scores(fitting: Fitting, prepared: Prepared, trees: TreeClass, device: torch.device) -> Scores | None:
    dev, counted = prepared.dev, prepared.counted
    if dev is None or counted is None:
        return None
    with averaged(fitting):
        return as_many_as_fit(
            lambda most: scores_of(fitting.network, dev, counted, trees, device, most), _LARGER * prepared.sizes.batch
        )


@contextmanager
def averaged(fitting: Fitting) -> Iterator[None]:
    """The network with its averaged weights."""
    own = {name: weight.clone() for name, weight in fitting.network.state_dict().items()}
    fitting.network.load_state_dict(fitting.average.weights)
    try:
        yield
    finally:
        fitting.network.load_state_dict(own)


def _remember(fitting: Fitting, fitted: Fitted, loss: float, scores: Scores | None) -> None:
    """Keep the weights of the best pass; without development trees the last."""
    best = max(map(_merit, fitted.history), default=(-1.0, -1.0))
    entry: dict[str, Any] = {"pass": fitting.passes, "loss": loss, "dev": None}
    if scores is not None:
        entry |= {"dev": scores.uas, "las": scores.las, "tags": scores.tags}
    fitted.history.append(entry)
    if _merit(entry) > best:
        fitted.best_pass = fitting.passes
        fitted.weights = {name: weight.clone() for name, weight in fitting.average.weights.items()}


def _merit(entry: dict[str, Any]) -> tuple[float, float]:
    """What makes one pass better than another: LAS; UAS where there are no labels, or as long as none is right."""
    if entry["dev"] is None:
        return float(entry["pass"]), 0.0
    return (entry["las"], 0.0) if entry["las"] else (0.0, entry["dev"])


def _save(file: StageFile, fitting: Fitting, fitted: Fitted) -> None:
    state = fitting.state()
    data = {"state": state.data, "history": fitted.history, "best_pass": fitted.best_pass}
    file.write(data, {**state.arrays, "best": flat(fitted.weights)})


def _resume(archive: Archive, fitting: Fitting, fitted: Fitted) -> None:
    fitting.restore(State(dict(archive.arrays), archive.data["state"]))
    fitted.weights = unflat(archive.arrays["best"], fitting.network.state_dict())
    fitted.history, fitted.best_pass = list(archive.data["history"]), int(archive.data["best_pass"])


def about(settings: Settings, fitted: Fitted, data: TrainingData, **more: Any) -> dict[str, Any]:
    """What a model says of itself."""
    return {
        "headway": __version__,
        "settings": without_folders(asdict(settings)),
        "train": data.about(),
        "best_pass": fitted.best_pass,
        **more,
        "history": fitted.history,
    }


@contextmanager
def deterministic() -> Iterator[None]:
    """The same results from the same seed, on the same device; torch is left as it was, its random numbers, too."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision()
    memory: Any = torch.utils.deterministic
    filled = memory.fill_uninitialized_memory
    gpus = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    torch.use_deterministic_algorithms(True)
    memory.fill_uninitialized_memory = False  # a kernel for each array, and nothing reads them
    torch.set_float32_matmul_precision("high")
    try:
        with torch.random.fork_rng(gpus):
            yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        memory.fill_uninitialized_memory = filled
        torch.set_float32_matmul_precision(before[1])


@contextmanager
def _memory_reported() -> Iterator[None]:
    """One sentence where smaller batches do not help: the weights alone are too many."""
    try:
        yield
    except torch.OutOfMemoryError:
        raise TrainingError(
            "the network does not fit the GPU's memory; take a smaller encoder, or train with --device cpu"
        ) from None


def device_of(settings: Settings) -> torch.device:
    """The GPU if there is one and it may be used, otherwise the CPU."""
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise TrainingError("there is no GPU that torch can use; train with --device cpu")
    on_gpu = settings.device == "cuda" or (settings.device == "auto" and torch.cuda.is_available())
    return torch.device("cuda" if on_gpu else "cpu")
