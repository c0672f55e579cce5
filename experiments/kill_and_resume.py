"""Does a training that is killed and started again end in the same file? Kill -9 at random moments, and compare.

    python experiments/kill_and_resume.py [--kills 200] [--seed 0] [-o benchmarks/results/kill_and_resume.json]

Every learner and every model is trained on small data, once undisturbed. Then the same training is run again and again,
each time in a process of its own that is killed (SIGKILL) at a random moment, until one gets through; its file must be
the undisturbed one's, byte for byte. Checkpoints are written after every pass, so that kills fall into all of their
writing, too. What a kill leaves in the folder must be gone in the end. The exit status is 1 if any file differs.

The trainings are forked from this process, whose kernels are compiled: a kill costs what was trained, not a start.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from headway.coreference.resolver import Resolver
from headway.learning import monitor
from headway.pipeline import Parser
from headway.training.stages import remove_stages
from headway.treebank import Sentence, read_treebank

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
TREES = list(read_treebank(EXAMPLES / "tiny.conllu"))
TRAIN, DEV, TEXT = TREES[:24], TREES[24:32], TREES[32:]

Training = Callable[[Path], None]
"""Trains with a checkpoint beside the output, saves the model there, and removes the checkpoint."""


def _without_heads(sentences: list[Sentence]) -> list[Sentence]:
    """Every third head is unknown."""
    partly = []
    for sentence in sentences:
        assert sentence.heads is not None
        heads = sentence.heads.copy()
        heads[3::3] = -1
        partly.append(replace(sentence, heads=heads))
    return partly


def _train(output: Path, *, train: list[Sentence] = TRAIN, dev: Any = DEV, text: Any = None, **settings: Any) -> None:
    folder = output.with_name("checkpoint")
    Parser.train(train, dev, text=text, checkpoint=folder, **settings).save(output)
    remove_stages(folder)


def _constrain(output: Path, **settings: Any) -> None:
    folder = output.with_name("checkpoint")
    Parser.constrain("universal", TRAIN, DEV, checkpoint=folder, **settings).save(output)
    remove_stages(folder)


def _induce(output: Path, **settings: Any) -> None:
    Parser.induce(TRAIN, DEV, **settings).save(output)


def _coreference(output: Path) -> None:
    Resolver.train(EXAMPLES / "coreference.conllu", epochs=5).save(output)


_SMALL: dict[str, Any] = {"epochs": 6}
_GOLD: dict[str, Any] = {"epochs": 10, "tags": "gold"}
TRAININGS: dict[str, Training] = {
    "arc, perceptron": partial(_train, learner="perceptron", **_SMALL),
    "arc, margin, two runs": partial(_train, runs=2, **_SMALL),
    "arc, margin, no development data": partial(_train, dev=None, **_GOLD),
    "arc, margin, unknown heads": partial(_train, train=_without_heads(TRAIN), **_GOLD),
    "arc, log-linear, L-BFGS": partial(_train, learner="loglinear", labels="none", **_GOLD),
    "arc, log-linear, L-BFGS, labels with the tree": partial(_train, learner="loglinear", **_GOLD),
    "arc, log-linear, L-BFGS, unknown heads": partial(
        _train, train=_without_heads(TRAIN), learner="loglinear", labels="none", **_GOLD
    ),
    "arc, log-linear, conjugate gradient": partial(_train, learner="loglinear", optimiser="cg", labels="none", **_GOLD),
    "arc, log-linear, AdaGrad": partial(_train, learner="loglinear", optimiser="adagrad", labels="none", **_GOLD),
    "arc, log-linear, Adam": partial(_train, learner="loglinear", optimiser="adam", labels="none", **_GOLD),
    "arc, log-linear, text": partial(_train, learner="loglinear", labels="none", text=TEXT, **_GOLD),
    "arc, expected loss": partial(_train, learner="expected-loss", labels="none", **_GOLD),
    "arc, exponentiated gradient": partial(_train, learner="eg", labels="none", **_GOLD),
    "arc, exponentiated gradient, log-linear": partial(_train, learner="eg-loglinear", labels="none", **_GOLD),
    "arc, rules, squared": partial(_constrain, epochs=8),
    "arc, rules, KL, projective": partial(_constrain, epochs=8, criterion="kl", projective=True),
    "sibling, perceptron": partial(_train, model="sibling", learner="perceptron", epochs=3, tags="gold"),
    "grand-sibling, margin": partial(_train, model="grandsibling", epochs=3, tags="gold"),
    "grand-sibling, margin, tagger": partial(_train, model="grandsibling", epochs=2),
    "grammar, spectral": partial(_induce),
    "grammar, EM": partial(_induce, method="em"),
    "coreference": _coreference,
}


@dataclass
class Outcome:
    """What became of one kind of training: its kills, how many of them fell into the run, and what was found."""

    kills: int = 0
    finished: int = 0
    resumed: int = 0
    identical: int = 0
    left: int = 0


def run(training: Training, output: Path, kill_after: float | None = None) -> bool:
    """The training in a process of its own, killed after so many seconds; did it get through?"""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            training(output)
            status = 0
        finally:
            os._exit(status)
    if kill_after is not None:
        end = time.monotonic() + kill_after
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return _succeeded(status)
            time.sleep(0.001)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return _succeeded(status)


def _succeeded(status: int) -> bool:
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False
    if status:
        raise SystemExit("a training failed; see above")
    return True


def attack(training: Training, folder: Path, expected: str, seconds: float, kills: int, rng: random.Random) -> Outcome:
    """Kill the training so many times, and compare each file that comes out in the end."""
    found = Outcome()
    while found.kills < kills:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        output = folder / "model"
        burst = 0
        while True:
            # More than half of the time, what was killed is killed again
            is_kill = found.kills < kills and (burst == 0 or rng.random() < 0.6)
            if run(training, output, rng.random() * seconds if is_kill else None):
                break
            found.kills, burst = found.kills + 1, burst + 1
        if not burst:
            continue  # it was through before it was killed
        found.finished += 1
        found.resumed += burst
        same = hashlib.sha256(output.read_bytes()).hexdigest() == expected
        found.identical += burst * same
        found.left += sum(path.name != "model" for path in folder.iterdir())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="trainings whose name contains this")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    monitor.CHECKPOINT_SECONDS = -1.0
    rng = random.Random(options.seed)
    chosen = {name: each for name, each in TRAININGS.items() if not options.only or options.only in name}
    shares = [options.kills * (k + 1) // len(chosen) - options.kills * k // len(chosen) for k in range(len(chosen))]
    rows = []
    with TemporaryDirectory() as temporary:
        output = Path(temporary) / "whole" / "model"
        for (name, training), kills in zip(chosen.items(), shares, strict=True):
            shutil.rmtree(output.parent, ignore_errors=True)
            output.parent.mkdir()
            training(output)  # here: compiles what it needs
            expected = hashlib.sha256(output.read_bytes()).hexdigest()
            output.unlink()
            started = time.monotonic()
            run(training, output)
            seconds = time.monotonic() - started
            if hashlib.sha256(output.read_bytes()).hexdigest() != expected:
                raise SystemExit(f"{name}: two undisturbed trainings differ")
            found = attack(training, Path(temporary) / "killed", expected, seconds, kills, rng)
            rows.append({"training": name, "seconds": round(seconds, 2), "sha256": expected, **vars(found)})
            print(
                f"{name:48} {seconds:6.2f} s  {found.kills:3} kills, {found.finished:3} trainings, "
                f"{found.identical:3} of {found.resumed:3} identical, {found.left} files left",
                flush=True,
            )
    kills, identical = (sum(row[key] for row in rows) for key in ("kills", "identical"))
    left = sum(row["left"] for row in rows)
    print(f"{identical} of {kills} identical, {left} files left")
    if options.output:
        summary = {"kills": kills, "identical": identical, "left": left, "seed": options.seed, "trainings": rows}
        options.output.write_text(json.dumps(summary, indent=1) + "\n", "utf-8")
    sys.exit(0 if identical == kills and not left else 1)


if __name__ == "__main__":
    main()
