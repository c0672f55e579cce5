"""Neural parsers in use: on a GPU from file to file; on one core from raw text, beside a linear model.

    commit=$(git rev-parse --short HEAD)
    python benchmarks/neural_parse.py gpu m.headway test.conllu --commit $commit     # on a machine with a GPU
    python benchmarks/neural_parse.py cpu m.headway dev.conllu --commit $commit      # anywhere, otherwise idle

`gpu` reads CoNLL-U without annotation (the sentences given, again and again), parses with exact trees, and writes
CoNLL-U with tags, lemmas, features, heads and labels. `cpu` takes the raw text of the sentences: one thread, split,
tagged, parsed and written as CoNLL-U; the two models take turns. The linear one is made by `headway reproduce english
--language linear`, unless --linear names another. A model that cannot split text borrows its splitter. Each part writes
its rows into the result, and leaves the other's as they are.
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
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

from headway import Parser, Sentence, __version__, read_treebank, write_treebank
from headway.training.data import checksum
from headway.treebank.raw_text import raw_text

GPU_BAR = 50_000.0
LINEAR = "experiments/english/models/linear.headway"
TURNS, WORDS, COMPARED = 5, 500_000, 500


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def machine(commit: str, model: Path, data: Sequence[Sentence]) -> dict[str, Any]:
    """What was measured, and where."""
    return {
        "headway": __version__,
        "commit": commit,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        **{name: installed(name) for name in ("numpy", "numba", "torch", "onnxruntime", "tokenizers")},
        "cores": os.cpu_count(),
        "processor": processor(),
        "model": {"megabytes": model.stat().st_size / 1e6, "sha256": sha256(model.read_bytes()).hexdigest()},
        "data": {"sentences": len(data), "words": sum(map(len, data)), "sha256": checksum(list(data))},
    }


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())


def on_gpu(model: Path, data: Sequence[Sentence], device: str) -> dict[str, Any]:
    """Words a second from file to file, those of its stages on their own, and how often the CPU finds the same."""
    import torch

    plain = [Sentence.from_words(sentence.forms) for sentence in data]
    count = sum(map(len, plain))
    many = list(islice(cycle(plain), len(plain) * -(-WORDS // max(1, count))))
    words = sum(map(len, many))
    loading = time.perf_counter()
    parser = Parser.load(model, device=device)
    loading = time.perf_counter() - loading
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.conllu", Path(folder) / "out.conllu"
        write_treebank(many, source)

        def whole() -> None:
            write_treebank((found.sentence for found in parser.parse(read_treebank(source))), target)

        def with_probabilities() -> None:
            for found in parser.parse(read_treebank(source)):
                found.confidence  # noqa: B018

        first = seconds(lambda: list(parser.parse(plain)))
        turns = [seconds(whole) for _ in range(TURNS)]
        found = [parsed.sentence for parsed in parser.parse(many)]
        stages = {
            "reading": min(seconds(lambda: list(read_treebank(source))) for _ in range(3)),
            "parsing": min(seconds(lambda: list(parser.parse(many))) for _ in range(3)),
            "writing": min(seconds(lambda: write_treebank(found, target)) for _ in range(3)),
            "reading and confidence": seconds(with_probabilities),
        }
        call = [sys.executable, "-m", "headway", "parse", str(model), str(source), "-o", str(target)]
        command = seconds(lambda: subprocess.run([*call, "--device", device], check=True))
    return {
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "words": words,
        "words_per_second": words / min(turns),
        "turns": [words / turn for turn in turns],
        "words_per_second_by_stage": {name: words / took for name, took in stages.items()},
        "loading_seconds": loading,
        "first_answer_seconds": first,
        "command": {"seconds": command, "words_per_second": words / command},
        "same_as_onnxruntime": agreement(Parser.load(model), parser, plain[:COMPARED]),
    }


def agreement(one: Parser, two: Parser, sentences: Sequence[Sentence]) -> dict[str, float]:
    """The share of words that get the same from both."""
    pairs = list(zip(one.parse(sentences), two.parse(sentences), strict=True))
    words = sum(map(len, sentences))
    heads = sum(int((a.heads[1:] == b.heads[1:]).sum()) for a, b in pairs)
    same = {"heads": heads / words}
    for name in ("labels", "upos", "xpos", "feats", "lemmas"):
        columns = [
            (
                (a.labels[1:], b.labels[1:])
                if name == "labels"
                else (getattr(a.sentence, name), getattr(b.sentence, name))
            )
            for a, b in pairs
        ]
        same[name] = sum(x == y for a, b in columns for x, y in zip(a, b, strict=True)) / words
    worst = max(float(np.abs(a.marginals - b.marginals).max()) for a, b in pairs if len(a.sentence))
    return {**same, "largest_difference_of_marginals": worst}


def on_cpu(model: Path, data: Sequence[Sentence], linear: str) -> dict[str, Any]:
    """Words a second from raw text, one thread, of a neural model and a linear one; they take turns."""
    parsers = {"linear": Parser.load(linear), "neural": Parser.load(model)}
    borrowed = parsers["neural"].segmenter is None
    if borrowed:
        parsers["neural"] = replace(parsers["neural"], segmenter=parsers["linear"].segmenter)
    text = raw_text(data).text

    def whole(parser: Parser) -> int:
        return sum(len(found.to_conllu()) > 0 and len(found.sentence) for found in parser.parse_text(text))

    words = {name: whole(parser) for name, parser in parsers.items()}
    turns: dict[str, list[float]] = {name: [] for name in parsers}
    for _ in range(TURNS):
        for name, parser in parsers.items():
            turns[name].append(words[name] / seconds(lambda parser=parser: whole(parser)))  # type: ignore[misc]
    ratios = [neural / own for neural, own in zip(turns["neural"], turns["linear"], strict=True)]
    return {
        "linear_model": {"name": Path(linear).name, "kind": parsers["linear"].model.kind},
        "splitter": "of the linear model" if borrowed else "its own",
        "words": words,
        "words_per_second": {name: max(own) for name, own in turns.items()},
        "turns": turns,
        "ratio": float(np.median(ratios)),
    }


def verdict(met: bool, what: str) -> bool:
    print(f"{'PASS' if met else 'FAIL'} {what}")
    return met


def main() -> int:
    """One of the two measurements; the exit status says whether its bar is met."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("part", choices=["gpu", "cpu"])
    options.add_argument("model", type=Path, help="a neural model")
    options.add_argument("data", type=Path, help="a treebank")
    options.add_argument("--device", default="cuda", help="for gpu: auto tries the script where there is none")
    options.add_argument("--linear", default=LINEAR, help="for cpu: the model beside it")
    options.add_argument("--commit", default="unknown", help="what to call the code that is measured")
    options.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "neural_parse.json")
    chosen = options.parse_args()
    data = list(read_treebank(chosen.data))
    known = json.loads(chosen.output.read_text("utf-8")) if chosen.output.exists() else {}
    if chosen.part == "gpu":
        found = on_gpu(chosen.model, data, chosen.device)
        speed = found["words_per_second"]
        met = verdict(speed >= GPU_BAR, f"{speed:,.0f} tokens/s from file to file, bar {GPU_BAR:,.0f}")
    else:
        found = on_cpu(chosen.model, data, chosen.linear)
        speeds, ratio = found["words_per_second"], found["ratio"]
        what = f"{speeds['neural']:,.0f} tokens/s from raw text, {ratio:.2f} times {chosen.linear}'s, bar 1"
        met = verdict(ratio >= 1, what)
    known[chosen.part] = {**machine(chosen.commit, chosen.model, data), **found}
    chosen.output.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
