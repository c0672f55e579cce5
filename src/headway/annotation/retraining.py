"""Learning while annotating: a new model from what is pinned so far, in use only if it is better.

- With `ENOUGH` sentences done, a parser is trained on all pinned heads; sentences of which only some are pinned count.
  Before that, and without a model, tagged sentences give one by the universal rules (`Parser.constrain`).
- One in ten of the done sentences is held out: no model is ever trained on it. Another tenth, chosen anew each time, is
  the development data that the new model's probabilities are calibrated on.
- Old and new model are compared on the held-out sentences, or on development data that the user has: the new one must
  find more of the known heads, or as many with more of the labels. Without an old model, the new one is in use.
- Models are in the folder `FILE.conllu.models`: `model-1.headway`, and so on. The old model stays, and can be put back.
  `in-use` has the name of the one in use, if it is from that folder (`model_in_use`).

Training is a process of its own (`training_process`). A thread waits for it, compares, and swaps.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, Protocol

from headway.annotation.comparison import Accuracy, accuracy
from headway.annotation.decoding import Parses
from headway.atomic import write_file
from headway.errors import EditError, HeadwayError, TreebankError, printable
from headway.pipeline import Parser
from headway.treebank import Sentence, read_treebank, require_partial_tree, write_treebank

ENOUGH = 20  # done sentences
ONE_IN = 10  # done sentences is held out

Which = Literal["old", "new"]


@dataclass(frozen=True)
class Snapshot:
    """What there is to learn from: sentences with their pinned heads alone.

    `done` and `partial` may be trained on, `held_out` never.
    """

    done: Sequence[Sentence]
    partial: Sequence[Sentence]
    held_out: Sequence[Sentence]


class Trainable(Protocol):
    """What retraining needs of a workspace."""

    path: Path
    name: str

    @property
    def parser(self) -> Parses | None: ...
    def snapshot(self) -> Snapshot: ...
    def sentences(self) -> Iterator[Sentence]: ...
    def count_done(self) -> int: ...
    def has_tags(self) -> bool: ...
    def use(self, parser: Parses | None, name: str = "") -> None: ...
    def tell(self, kind: str, **details: Any) -> None: ...


@dataclass
class _Status:
    """What is told of the latest training."""

    state: Literal["idle", "running", "finished", "failed"] = "idle"
    text: str = ""
    stage: str | None = None
    passed: int | None = None
    passes: int | None = None
    old: Accuracy | None = None
    new: Accuracy | None = None
    in_use: Which | None = None


@dataclass
class _Models:
    """The model before the latest training and the one from it, with their names."""

    old: tuple[Parses | None, str] | None = None
    new: tuple[Parses | None, str] | None = None


class Retraining:
    """The training of new models for one workspace, one at a time."""

    def __init__(self, workspace: Trainable, dev: Path | None = None) -> None:
        self._workspace = workspace
        self._dev = None if dev is None else list(read_treebank(dev, partial=True))
        self._lock = threading.Lock()
        self._status, self._models = _Status(), _Models()
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._is_cancelled = False

    def start(self) -> None:
        """Train a new model in the background; an EditError says why not."""
        kind = self._kind()
        with self._lock:
            if self._status.state == "running":
                raise EditError("a model is being trained already; wait for it, or cancel it")
            self._status = _Status("running", "preparing the training data")
            self._is_cancelled = False
        self._tell()
        self._thread = threading.Thread(target=self._run, args=(kind,), name="headway-retraining", daemon=True)
        self._thread.start()

    def status(self) -> dict[str, Any]:
        """What there is to know: how far the training is, or how it ended."""
        with self._lock:
            status, models = self._status, self._models
            return {
                "state": status.state,
                "text": status.text,
                "stage": status.stage,
                "pass": status.passed,
                "passes": status.passes,
                "old": None if status.old is None else status.old.to_dict(),
                "new": None if status.new is None else status.new.to_dict(),
                "in_use": status.in_use,
                "can_choose": models.new is not None,
            }

    def choose(self, which: str) -> None:
        """Use the model before the latest training, or the one from it."""
        with self._lock:
            if which not in ("old", "new"):
                raise EditError(f"there is no model {which!r}; choose old or new")
            chosen = self._models.old if which == "old" else self._models.new
            if chosen is None:
                raise EditError("no model has been trained here yet; there is nothing to choose from")
            if self._status.in_use == which:
                return
            self._status.in_use = "old" if which == "old" else "new"
        self._use(*chosen)
        self._tell()

    def cancel(self) -> None:
        """End a training that is running, and wait until it has ended."""
        with self._lock:
            self._is_cancelled = True
            if self._process is not None:
                self._process.terminate()
        if self._thread is not None:
            self._thread.join()

    # ------------------------------------------------------------------------------ within

    def _kind(self) -> str:
        done = self._workspace.count_done()
        if done >= ENOUGH:
            return "train"
        if self._workspace.parser is None and self._workspace.has_tags():
            return "universal"
        raise EditError(
            f"{done} of the sentences are done, and a model needs {ENOUGH}; annotate {ENOUGH - done} more"
            + ("" if self._workspace.parser else ", or tag the words first (UPOS), to begin with the universal rules")
        )

    def _run(self, kind: str) -> None:
        try:
            text = self._trained(kind)
        except (HeadwayError, OSError) as error:
            self._set(state="failed", text=f"the training failed: {printable(str(error))}")
        else:
            self._set(state="finished", text=text)
        finally:
            self._process = None
        self._tell()

    def _trained(self, kind: str) -> str:
        """Train, compare, and swap if the new model is better; what to say about it."""
        folder = models_folder(self._workspace.path)
        folder.mkdir(exist_ok=True)
        snapshot = self._workspace.snapshot()
        output = folder / f"model-{_next_number(folder)}.headway"
        self._train(kind, snapshot, folder, output)
        new, name = Parser.load(output), output.stem
        old = self._workspace.parser, self._workspace.name
        held_out = snapshot.held_out if self._dev is None else self._dev
        before = None if old[0] is None or not held_out else accuracy(old[0], held_out)
        after = accuracy(new, held_out) if held_out else None
        with self._lock:
            self._models = _Models(old, (new, name))
            self._status.old, self._status.new = before, after
        is_better = before is None or (after is not None and after > before)
        if is_better:
            self._use(new, name)
        self._set(in_use="new" if is_better else "old")
        _remove_others(folder, {output.name, f"{old[1]}.headway"})
        return _verdict(before, after, len(held_out), self._dev is not None)

    def _train(self, kind: str, snapshot: Snapshot, folder: Path, output: Path) -> None:
        source, dev = folder / "train.conllu", folder / "dev.conllu"
        words = [sys.executable, "-m", "headway.annotation.training_process", kind, str(source), str(output)]
        try:
            if kind == "train":
                sample = snapshot.done[:: ONE_IN + 1]
                others = [sentence for i, sentence in enumerate(snapshot.done) if i % (ONE_IN + 1)]
                write_treebank(_usable([*others, *snapshot.partial]), source)
                write_treebank(_usable(sample), dev)
                words.append(str(dev))
            else:
                write_treebank(self._workspace.sentences(), source)
            self._wait_for(words)
        finally:
            for path in (source, dev):
                path.unlink(missing_ok=True)

    def _wait_for(self, words: list[str]) -> None:
        """Run the process and follow what it says."""
        with self._lock:
            if self._is_cancelled:
                raise EditError("cancelled")
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        with self._process as process:
            assert process.stdout is not None
            assert process.stderr is not None
            complaints: list[str] = []
            listening = threading.Thread(target=_keep_last, args=(process.stderr, complaints), daemon=True)
            listening.start()
            cause = self._follow(process.stdout)
            code = process.wait()
            listening.join()
        if self._is_cancelled:
            raise EditError("cancelled")
        if code:
            raise EditError(cause or (complaints[-1] if complaints else f"the process ended with status {code}"))

    def _follow(self, lines: Iterable[str]) -> str | None:
        """Tell how far the training is; what it complains of in the end, if anything."""
        for line in lines:
            with suppress(ValueError, KeyError, TypeError):
                said = json.loads(line)
                if "error" in said:
                    return str(said["error"])
                stage, passed, passes = str(said["stage"]), int(said["pass"]), int(said["passes"])
                text = f"training ({stage}), pass {passed} of {passes}"
                self._set(stage=stage, passed=passed, passes=passes, text=text)
                self._tell()
        return None

    def _use(self, parser: Parses | None, name: str) -> None:
        folder = models_folder(self._workspace.path)
        own = folder / f"{name}.headway"
        if own.exists():
            write_file(folder / "in-use", own.name)
        else:
            (folder / "in-use").unlink(missing_ok=True)
        self._workspace.use(parser, name)

    def _set(self, **values: Any) -> None:
        with self._lock:
            for name, value in values.items():
                setattr(self._status, name, value)

    def _tell(self) -> None:
        self._workspace.tell("retraining", **self.status())


def models_folder(path: Path) -> Path:
    """Where the models that are trained on a file are."""
    return path.with_name(f"{path.name}.models")


def model_in_use(path: Path) -> Path | None:
    """The model trained on a file that was last in use, if one was."""
    folder = models_folder(path)
    try:
        found = folder / Path((folder / "in-use").read_text()).name
    except (OSError, ValueError):
        return None
    return found if found.is_file() else None


def held_out_of(done: Sequence[int], held_out: set[int], trained: set[int]) -> list[int]:
    """Which of the done sentences to hold out from now on, so that it is one in `ONE_IN`; none that was trained on.

    >>> held_out_of(range(30), {3}, set(range(12)))
    [16, 25]
    """
    new = [i for i in done if i not in held_out and i not in trained]
    wanted = min(len(new), len(done) // ONE_IN - len(held_out.intersection(done)))
    return [new[(2 * k + 1) * len(new) // (2 * wanted)] for k in range(wanted)]


def _usable(sentences: Iterable[Sentence]) -> list[Sentence]:
    """The sentences whose known heads some tree with one root has; others would end the training."""
    found = []
    for sentence in sentences:
        with suppress(TreebankError):
            require_partial_tree(sentence, single_root=True)
            found.append(sentence)
    return found


def _next_number(folder: Path) -> int:
    numbers = [path.stem.removeprefix("model-") for path in folder.glob("model-*.headway")]
    return 1 + max((int(number) for number in numbers if number.isdecimal()), default=0)


def _remove_others(folder: Path, kept: set[str]) -> None:
    for path in folder.glob("model-*.headway"):
        if path.name not in kept:
            path.unlink(missing_ok=True)


def _verdict(old: Accuracy | None, new: Accuracy | None, sentences: int, is_dev: bool) -> str:
    if new is None:
        return "the first model is ready, and in use"
    place = f"{sentences} {'development' if is_dev else 'held-out'} sentences"
    figures = f"UAS {new.uas:.2f}, LAS {new.las:.2f} on {place}"
    if old is None:
        return f"the first model is ready, and in use: {figures}"
    before = f"UAS {old.uas:.2f}, LAS {old.las:.2f}"
    if new > old:
        return f"the new model is better, and in use: {figures}; before {before}"
    return f"the new model is not better, so the old one stays in use: {figures}; the old one has {before}"


def _keep_last(lines: IO[str], kept: list[str]) -> None:
    for line in lines:
        if line.strip():
            kept[:] = [line.strip()]
