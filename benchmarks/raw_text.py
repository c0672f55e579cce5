"""The English model from raw text: seconds to load and to answer first, tokens a second; beside UDPipe 1.

    python benchmarks/raw_text.py --data ../shared/data/ud/UD_English-EWT

The text is that of the development sentences. Each measurement runs in a process of its own, one thread: split into
sentences and words, tagged, parsed with a proof, labelled, written as CoNLL-U; the best of several turns. Two threads
take turns with one, in one process. The first answer is `headway parse en -` on one sentence, Python's start and
loading included, kernels and bytecode cached by a run before. The peer does the same with a model trained here on a
few sentences: how long it trained hardly changes its speed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from parsing import apart, peak_mb, seconds, udpipe_sentences, verdict

from headway import __version__
from headway.embedded import embedded_models
from headway.pipeline import Parser
from headway.training.data import checksum
from headway.treebank import read_treebank
from headway.treebank.raw_text import raw_text

SPEED_BAR, THREADS_BAR, ANSWER_BAR, LOAD_BAR, MEGABYTES_BAR = 3_000.0, 1.7, 2.0, 1.0, 28.0
TURNS = 5
SENTENCE = "The quick answer came from a cold process."


def text_of(path: Path) -> str:
    return raw_text(read_treebank(path)).text


def parse(path: Path) -> dict[str, Any]:
    """Seconds to load, and tokens a second after it."""
    loading = min(seconds(lambda: Parser.load("en")) for _ in range(TURNS))
    parser, text = Parser.load("en"), text_of(path)
    tokens = _tokens(parser, text)
    took = min(seconds(lambda: _tokens(parser, text)) for _ in range(TURNS))
    return {"loading": loading, "tokens": tokens, "tokens_per_second": tokens / took, "peak_mb": peak_mb()}


def two_threads(path: Path) -> dict[str, Any]:
    """Seconds of one thread and of two."""
    parser, text = Parser.load("en"), text_of(path)
    _tokens(parser, text, 2)
    turns = [[seconds(partial(_tokens, parser, text, threads)) for threads in (1, 2)] for _ in range(TURNS)]
    one, two = map(min, zip(*turns, strict=True))
    return {"one": one, "two": two}


def _tokens(parser: Parser, text: str, threads: int = 1) -> int:
    found = parser.parse_text(text, threads=threads)
    return sum(len(each.to_conllu()) > 0 and len(each.sentence) for each in found)


def answer() -> dict[str, Any]:
    """Seconds from a cold process to the first tree."""
    as_usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def ask() -> None:
        call = [sys.executable, "-m", "headway", "parse", "en", "-"]
        subprocess.run(call, input=SENTENCE.encode(), stdout=subprocess.DEVNULL, env=as_usual, check=True)

    ask()
    return {"seconds": min(seconds(ask) for _ in range(TURNS))}


def udpipe(train: Path, path: Path) -> dict[str, Any]:
    """UDPipe 1, trained on 300 sentences for one iteration."""
    try:
        from ufal import udpipe as peer
    except ImportError:
        return {"missing": "pip install ufal.udpipe"}
    some, error = list(read_treebank(train))[:300], peer.ProcessingError()
    data = peer.Trainer.train(
        "morphodita_parsito",
        udpipe_sentences(peer, some),
        peer.Sentences(),
        "epochs=1;early_stopping=0",
        "models=1;iterations=1",
        "iterations=1;structured_interval=0;transition_system=projective;transition_oracle=dynamic",
        error,
    )
    if error.occurred():
        return {"missing": error.message}
    with tempfile.NamedTemporaryFile(suffix=".udpipe") as file:
        file.write(data)
        file.flush()
        model = peer.Model.load(file.name)
    pipeline = peer.Pipeline(model, "tokenize", peer.Pipeline.DEFAULT, peer.Pipeline.DEFAULT, "conllu")
    text = text_of(path)
    tokens = sum(line[:1].isdigit() for line in pipeline.process(text, error).splitlines())
    return {"tokens_per_second": tokens / min(seconds(lambda: pipeline.process(text, error)) for _ in range(TURNS))}


MEASUREMENTS: dict[str, Callable[..., dict[str, Any]]] = {
    each.__name__: each for each in (parse, two_threads, answer, udpipe)
}


def report(results: dict[str, Any]) -> str:
    """The figures, and each bar with PASS or FAIL."""
    ours, peer, first = results["parse"], results["udpipe"], results["answer"]["seconds"]
    speed, size = ours["tokens_per_second"], results["megabytes"]
    gain = results["two_threads"]["one"] / results["two_threads"]["two"]
    beside = peer.get("missing") or f"{speed / peer['tokens_per_second']:.2f} times UDPipe 1's"
    bars = [
        (speed >= SPEED_BAR, f"{speed:,.0f} tokens/s from raw text with proofs, bar {SPEED_BAR:,.0f}; {beside}"),
        (gain >= THREADS_BAR, f"two threads are {gain:.2f} times as fast as one, bar {THREADS_BAR}"),
        (first < ANSWER_BAR, f"first answer of a cold process after {first:.2f} s, bar {ANSWER_BAR:.0f} s"),
        (ours["loading"] < LOAD_BAR, f"loading takes {ours['loading']:.2f} s, bar {LOAD_BAR:.0f} s"),
        (size <= MEGABYTES_BAR, f"the model has {size:.1f} MB, bar {MEGABYTES_BAR:.0f} MB"),
    ]
    lines = [
        "# The English model, from raw text",
        "",
        f"headway {results['headway']}, {results['when']}, one thread, {ours['tokens']:,} tokens of UD English-EWT dev "
        f"(sha256 {results['data']}); peak memory {ours['peak_mb']:.0f} MB.",
        "",
        *(f"- {verdict(met)} {what}" for met, what in bars),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and report, or do one measurement for the process that does."""
    if sys.argv[1:2] == ["--one"]:
        kind, *rest = sys.argv[2:]
        print(json.dumps(MEASUREMENTS[kind](*map(Path, rest))))
        return
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", type=Path, required=True, help="the folder of UD English-EWT")
    options.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    chosen = options.parse_args()
    train, dev = (str(next(chosen.data.glob(f"*{part}*.conllu*"))) for part in ("train", "dev"))
    model = embedded_models().get("en")
    assert model is not None
    results = {
        "headway": __version__,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "numpy": np.__version__,
        "data": checksum(list(read_treebank(dev))),
        "megabytes": model.stat().st_size / 1e6,
        "parse": apart(__file__, "parse", dev),
        "two_threads": apart(__file__, "two_threads", dev),
        "answer": apart(__file__, "answer"),
        "udpipe": apart(__file__, "udpipe", train, dev),
    }
    text = report(results)
    print(text)
    (chosen.output / "raw_text.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (chosen.output / "raw_text.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
