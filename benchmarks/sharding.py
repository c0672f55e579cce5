"""Training on shards: does it find the same, and how much faster? Perceptrons by parameter mixing: what does it cost?

    python benchmarks/sharding.py gradient ../shared/data/conllx --commit $(git rev-parse --short HEAD)
    python benchmarks/sharding.py mixing ../shared/data/conllx --language danish --commit ...

`gradient`: log-linear training on Danish by L-BFGS, in one process with one thread, and on two shards in two processes
(`--ray`: with two workers of a Ray that is started here). The clock includes the start of the processes, and not the
score on held-out sentences, which is computed once, afterwards. Everybody makes one step before the clock runs, so
that kernels are compiled. Where other work keeps the machine busy, the clock says little; so the processors' seconds
are counted as well: those of the leading process, and those of each shard's, which on idle cores pass side by side.

`mixing`: perceptrons on 2 and 4 shards against one process, after each pass. The last tenth of the training sentences
is held out, and what is compared are heads there, without punctuation. No test sentence is read. `--shards 1`, and so
on, does one part of it; what earlier calls with the same settings, data and code found is kept beside it.

Results are kept in one file, under the name of what was measured.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["NUMBA_NUM_THREADS"] = "1"

import argparse
import json
import platform
import resource
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from headway import __version__, read_treebank
from headway.learning import parameter_mixing
from headway.learning.sharded import Shards, cut, deal
from headway.parallel import Here, Workers
from headway.processes import Processes
from headway.training.arc_trainer import ArcPreparation, prepare_arcs
from headway.training.data import TrainingData, checksum
from headway.training.learners import learner_of
from headway.training.preparation import fit
from headway.training.settings import Settings
from headway.training.stages import Run
from headway.treebank import roots

RATIO, OBJECTIVE, POINTS = 0.65, 1e-8, 0.2
STEPS, PASSES = 40, 10


def prepared(folder: Path, settings: Settings) -> ArcPreparation:
    """The training sentences of a language, of which the last tenth is held out."""
    sentences = list(read_treebank(folder / "train.conll.gz", format="conllx"))
    kept = len(sentences) - len(sentences) // 10
    single = all(len(roots(s.heads)) == 1 for s in sentences if s.heads is not None and len(s))
    data = TrainingData(sentences[:kept], sentences[kept:], sha256=checksum(sentences[:kept]))
    return prepare_arcs(data, replace(settings, single_root=single), Run())


def gradient(folder: Path, steps: int, with_ray: bool) -> dict[str, Any]:
    """Both trainings, and whether they are the same."""
    settings = Settings(learner="loglinear", labels="none", tags="gold", epochs=steps, patience=steps).complete()
    made = prepared(folder / "danish", settings)
    one = _timed(made, settings, None)
    cluster = nullcontext(Processes(2))
    if with_ray:
        from headway.ray.executor import Executor

        cluster = Executor(None, 2)  # type: ignore[assignment]
    with cluster as workers:
        two = _timed(made, replace(settings, shards=2), workers)
    pairs = list(zip(one["history"], two["history"], strict=True))
    difference = max(abs(a["objective"] - b["objective"]) / abs(a["objective"]) for a, b in pairs)
    return {
        **_signature(made, settings),
        "steps": len(pairs),
        "seconds": {"one": one["seconds"], "two shards": two["seconds"]},
        "ratio": two["seconds"] / one["seconds"],
        "processor_seconds": {"one": one["processor"], "two shards": two["processor"]},
        "ratio_of_processor_seconds": None if with_ray else two["processor"] / one["processor"],
        "load": {"one": one["load"], "two shards": two["load"]},
        "objective": {"one": pairs[-1][0]["objective"], "two shards": pairs[-1][1]["objective"]},
        "largest_relative_difference": difference,
        "uas": {"one": one["uas"], "two shards": two["uas"]},
    }


def _timed(made: ArcPreparation, settings: Settings, workers: Workers | None) -> dict[str, Any]:
    run = Run(workers=workers)
    trees = replace(made.data, dev=None)
    fit(made, trees, replace(settings, epochs=1), run)
    started, own, others = time.perf_counter(), time.process_time(), _seconds_of_children()
    monitor = fit(made, trees, settings, run)
    seconds = time.perf_counter() - started
    processor = time.process_time() - own + (_seconds_of_children() - others) / settings.shards
    assert monitor.best is not None
    return {
        "seconds": seconds,
        "processor": processor,
        "history": monitor.history,
        "uas": made.uas(monitor.best),
        "load": os.getloadavg()[0],
    }


def _seconds_of_children() -> float:
    """Processor seconds of the processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def mixing(folder: Path, language: str, counts: Sequence[int], **chosen: Any) -> dict[str, Any]:
    """Held-out UAS after each pass, on so many shards. Which process has a shard makes no difference."""
    settings = Settings(labels="none", tags="gold", **chosen).complete()
    made = prepared(folder / language, settings)
    found: dict[str, list[float]] = {}
    for count in counts:
        uas: list[float] = []

        def report(done: Any, uas: list[float] = uas) -> bool:
            uas.append(made.uas(done.weights))
            return True

        learner, numbers = learner_of(settings), deal(len(made.problem.lengths), count)
        if count == 1:
            learner.fit(made.problem, report)
        else:
            held = Here(cut(learner, made.problem, numbers))  # type: ignore[arg-type]
            learner.fit_shards(Shards(held, numbers, made.problem.lengths, made.size), report)  # type: ignore[attr-defined]
        found[f"{count} shards"] = uas
        print(language, settings.learner, count, np.round(uas, 2).tolist(), flush=True)
    return {**_signature(made, settings), "mixes": parameter_mixing.MIXES, "uas": found}


def _with_earlier(found: dict[str, Any], earlier: dict[str, Any]) -> dict[str, Any]:
    """A part of the mixing with the parts that an earlier call found, if nothing else differs."""
    is_same = {**earlier, "uas": None} == {**found, "uas": None}
    uas = {**(earlier["uas"] if is_same else {}), **found["uas"]}
    return {**found, "uas": dict(sorted(uas.items()))}


def _signature(made: ArcPreparation, settings: Settings) -> dict[str, Any]:
    return {
        "settings": {name: getattr(settings, name) for name in ("learner", "c", "epochs", "templates", "seed")},
        "train": made.data.sha256,
        "held_out": checksum(made.data.dev or []),
        "sentences": [len(made.data.train), len(made.data.dev or [])],
    }


def _bars(what: str, found: dict[str, Any]) -> list[tuple[bool, str]]:
    """Whether each bar is met, and what was measured."""
    if what == "gradient":
        same, (one, two) = found["largest_relative_difference"], found["uas"].values()
        return [
            (found["ratio"] <= RATIO, f"{found['ratio']:.2f} of the time, bar {RATIO}"),
            (same <= OBJECTIVE, f"objectives within {same:.1e}, bar {OBJECTIVE}"),
            (one == two, f"UAS {one:.4f} and {two:.4f}"),
        ]
    if "1 shards" not in found["uas"]:
        return []
    single, *others = (uas[-1] for uas in found["uas"].values())
    return [(single - uas <= POINTS, f"UAS {uas:.2f}, in one process {single:.2f}") for uas in others]


def main() -> int:
    """The exit status says whether the bars are met."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("what", choices=("gradient", "mixing"))
    options.add_argument("data", type=Path, help="a folder with one folder per language")
    options.add_argument("--language", default="danish")
    options.add_argument("--learner", default="margin")
    options.add_argument("--steps", type=int, default=STEPS)
    options.add_argument("--passes", type=int, default=PASSES)
    options.add_argument("--seed", type=int, default=0, help="mixing: of the order of the sentences")
    options.add_argument("--shards", type=int, action="append", help="mixing: 1, 2, 4 or several times; default all")
    options.add_argument("--mixes", type=int, default=parameter_mixing.MIXES, help="mixtures in a pass")
    options.add_argument("--ray", action="store_true", help="two workers of Ray instead of two processes")
    options.add_argument("--commit", default="unknown", help="what to call the code that is measured")
    options.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "sharding.json")
    chosen = options.parse_args()
    if chosen.what == "gradient":
        name, found = "gradient, Ray" if chosen.ray else "gradient", gradient(chosen.data, chosen.steps, chosen.ray)
    else:
        usual, parameter_mixing.MIXES = parameter_mixing.MIXES, chosen.mixes
        name = f"mixing, {chosen.language}, {chosen.learner}"
        name += "" if chosen.mixes == usual else f", {chosen.mixes} times a pass"
        name += "" if chosen.seed == 0 else f", seed {chosen.seed}"
        counts, settings = chosen.shards or [1, 2, 4], {"learner": chosen.learner, "seed": chosen.seed}
        found = mixing(chosen.data, chosen.language, counts, epochs=chosen.passes, **settings)
    machine = {"python": platform.python_version(), "cores": os.cpu_count()}
    kept = json.loads(chosen.output.read_text("utf-8")) if chosen.output.exists() else {}
    found = {"headway": __version__, "commit": chosen.commit, **machine, **found}
    kept[name] = found if chosen.what == "gradient" else _with_earlier(found, kept.get(name, {}))
    chosen.output.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    bars = _bars(chosen.what, kept[name])
    for met, what in bars:
        print(f"{'PASS' if met else 'FAIL'} {what}")
    return 0 if all(met for met, _ in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
