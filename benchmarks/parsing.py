"""Whole parsers: seconds to train, tokens a second parsed, peak memory, stage by stage; beside UDPipe 1.

    python benchmarks/parsing.py --data ../shared/data/conllx            # Danish and Portuguese; writes results/
    python benchmarks/parsing.py --data ../shared/data/conllx --quick    # one epoch, prints only

Every measurement runs in a process of its own, one thread, so that peak memory is its own. Training is the
large-margin perceptron without labels; parsing reads the test file, parses and writes a file, in the process (the
model is loaded before), best of several turns, and once more as a user types it, `headway parse`, where starting
Python and loading counts. The peer parses the same file with a parser trained here on a few sentences: how long it
trained does not change its speed. TurboParser and MSTParser do not install from PyPI; the bars are ratios to their
figures measured on a machine like this one (shared/ANCHORS.md).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from headway import __version__
from headway.arrays import TreeClass
from headway.features.arc_features import ArcFeatures
from headway.features.coding import Coder
from headway.features.templates import load_templates
from headway.inference.batch import as_batch, groups_by_length
from headway.inference.first_order import best_heads
from headway.learning.perceptron import Perceptron
from headway.learning.structures import Trees
from headway.models.arc_model import ArcModel
from headway.models.arc_scorer import ArcScorer
from headway.models.tree_decoder import BATCH_CELLS
from headway.parallel import SERIAL
from headway.pipeline import Parser
from headway.training.arc_problem import ArcProblem
from headway.training.data import code_trees
from headway.treebank import Sentence, read_treebank, roots, write_treebank
from headway_papers.markdown import markdown_table

TRAIN_BARS = {"danish": 40.0, "portuguese": 135.0}  # seconds, 10 epochs: half of TurboParser basic's
PARSE_BAR = 25_000.0  # tokens a second, first order
TURNS = 7


@dataclass
class Stages:
    """Seconds by stage."""

    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            start = time.perf_counter()
            result = function(*args)
            self.seconds[stage] += time.perf_counter() - start
            return result

        return call


class WatchedProblem:
    """A problem whose instances' methods are timed, each as a stage."""

    def __init__(self, problem: ArcProblem, stages: Stages) -> None:
        self._problem, self._stages = problem, stages

    def some(self, which: Any) -> Any:
        names = {"score": "scoring", "add": "updating", "best": "decoding"}
        return Watched(self._problem.some(which), self._stages, names)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._problem, name)


class Watched:
    """Something whose methods are timed, each as a stage."""

    def __init__(self, inner: Any, stages: Stages, names: dict[str, str]) -> None:
        self._inner = inner
        for method, stage in names.items():
            setattr(self, method, stages.timed(stage, getattr(inner, method)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def train(path: Path, epochs: int) -> dict[str, Any]:
    """Seconds of each stage of training without labels, all of it, and peak memory."""
    _warm(path)
    stages = Stages()
    start = time.perf_counter()
    sentences = stages.timed("reading", lambda: list(read_treebank(path)))()
    single_root = all(len(roots(s.heads)) == 1 for s in sentences if s.heads is not None)

    def features() -> ArcProblem:
        coder = Coder.learn(sentences)
        trees = code_trees(sentences, coder, ())
        scorer = ArcScorer(ArcFeatures.learn(load_templates("standard"), coder, trees.coded, trees.heads))
        return ArcProblem(scorer, Trees(TreeClass(single_root=single_root)), trees.coded, trees)

    problem = stages.timed("features", features)()
    watched: Any = WatchedProblem(problem, stages)
    Perceptron(epochs, 200.0).fit(watched, lambda done: True)
    total = time.perf_counter() - start
    return {
        "seconds": total,
        "epochs": epochs,
        "tokens": sum(map(len, sentences)),
        "stages": {**stages.seconds, "the rest": total - sum(stages.seconds.values())},
        "peak_mb": peak_mb(),
    }


def parse(model: Path, path: Path) -> dict[str, Any]:
    """Tokens a second of reading, parsing and writing; the stages; peak memory."""
    parser = Parser.load(model)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "out.conll"

        def whole() -> None:
            write_treebank((found.sentence for found in parser.parse(read_treebank(path))), output)

        whole()
        took = min(seconds(whole) for _ in range(TURNS))
        sentences = list(read_treebank(path))
        stages = _parse_stages(parser, path, output)
    tokens = sum(map(len, sentences))
    return {"tokens": tokens, "tokens_per_second": tokens / took, "stages": stages, "peak_mb": peak_mb()}


def _parse_stages(parser: Parser, path: Path, output: Path) -> dict[str, float]:
    """Each stage on its own, best of a few turns."""
    model = parser.model
    assert isinstance(model, ArcModel)
    sentences = list(read_treebank(path))
    coded = model.coder.code(sentences)
    groups = list(groups_by_length(coded.lengths, BATCH_CELLS))
    batches = [coded.some(which) for which in groups]
    scores = [model.scorer.scores(batch) for batch in batches]

    def decode() -> list[Any]:
        pairs = zip(batches, scores, strict=True)
        return [best_heads(as_batch(each, batch.lengths), model.trees, SERIAL) for batch, each in pairs]

    heads = decode()
    parsed = [found.sentence for found in parser.parse(sentences)]
    stages: dict[str, Callable[[], object]] = {
        "reading": lambda: list(read_treebank(path)),
        "features": lambda: model.coder.code(sentences),
        "scoring": lambda: [model.scorer.scores(batch) for batch in batches],
        "decoding": decode,
        "writing": lambda: write_treebank(parsed, output),
    }
    if model.labeller is not None:
        labeller = model.labeller
        stages["labelling"] = lambda: [
            labeller.choose(batch, own, None) for batch, own in zip(batches, heads, strict=True)
        ]
    return {name: min(seconds(stage) for _ in range(TURNS)) for name, stage in stages.items()}


def command(model: Path, path: Path) -> dict[str, Any]:
    """The same as a user types it: starting Python and loading the model count."""
    call = [sys.executable, "-m", "headway", "parse", str(model), str(path), "-o", os.devnull]
    subprocess.run(call, check=True)
    return {"seconds": min(seconds(lambda: subprocess.run(call, check=True)) for _ in range(3))}


def udpipe(train_path: Path, path: Path) -> dict[str, Any]:
    """UDPipe 1's parser, trained on 300 sentences for one iteration, parsing the same test sentences."""
    try:
        from ufal import udpipe as peer
    except ImportError:
        return {"missing": "pip install ufal.udpipe"}
    some = [
        _with_root_label(s)
        for s in list(read_treebank(train_path))[:300]
        if s.heads is not None and len(roots(s.heads)) == 1
    ]
    error = peer.ProcessingError()
    options = "iterations=1;structured_interval=0;transition_system=swap;transition_oracle=static_lazy;"
    model_data = peer.Trainer.train(
        "morphodita_parsito", udpipe_sentences(peer, some), peer.Sentences(), "none", "none", options, error
    )
    if error.occurred():
        return {"missing": error.message}
    with tempfile.NamedTemporaryFile(suffix=".udpipe") as file:
        file.write(model_data)
        file.flush()
        model = peer.Model.load(file.name)
    text = "".join(sentence.to_conllu() for sentence in read_treebank(path))
    pipeline = peer.Pipeline(model, "conllu", peer.Pipeline.NONE, peer.Pipeline.DEFAULT, "conllu")
    tokens = sum(map(len, read_treebank(path)))
    return {"tokens_per_second": tokens / min(seconds(lambda: pipeline.process(text, error)) for _ in range(3))}


def _with_root_label(sentence: Sentence) -> Sentence:
    """UDPipe wants the root's label to be `root`, as in UD."""
    assert sentence.heads is not None
    assert sentence.labels is not None
    labels = ["root" if head == 0 else label for head, label in zip(sentence.heads, sentence.labels, strict=True)]
    return sentence.with_tree(sentence.heads, labels)


def udpipe_sentences(peer: Any, sentences: list[Any]) -> Any:
    reader = peer.InputFormat.newConlluInputFormat()
    reader.setText("".join(sentence.to_conllu() for sentence in sentences))
    error, result = peer.ProcessingError(), peer.Sentences()
    while True:
        sentence = peer.Sentence()
        if not reader.nextSentence(sentence, error):
            return result
        result.append(sentence)


def _warm(path: Path) -> None:
    """Compile every kernel before the clock starts."""
    few = [next(iter(read_treebank(path)))] * 2
    Parser.train(few, single_root=False, labels="none", tags="gold", epochs=1)


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def peak_mb() -> float:
    """Of this process alone; getrusage would begin with what the parent had when it forked."""
    status = Path("/proc/self/status").read_text("utf-8")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024


def apart(script: str, *arguments: str) -> dict[str, Any]:
    """Run one measurement in its own process."""
    call = [sys.executable, script, "--one", *arguments]
    alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(call, check=True, capture_output=True, text=True, env={**os.environ, **alone})
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(data: Path, language: str, epochs: int) -> dict[str, Any]:
    """Everything about one language."""
    train_path, test_path = data / language / "train.conll.gz", data / language / "test.conll.gz"
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.headway"
        sentences = list(read_treebank(train_path))
        one_root = all(len(roots(s.heads)) == 1 for s in sentences if s.heads is not None)
        Parser.train(sentences, single_root=one_root, tags="gold", epochs=1).save(model)
        return {
            "training": apart(__file__, "train", str(train_path), str(epochs)),
            "parsing": apart(__file__, "parse", str(model), str(test_path)),
            "command": apart(__file__, "command", str(model), str(test_path)),
            "udpipe": apart(__file__, "udpipe", str(train_path), str(test_path)),
        }


def report(results: dict[str, Any]) -> str:
    """The tables, and each bar with PASS or FAIL."""
    title = (
        "# Whole parsers\n\n"
        f"headway {results['headway']}, {results['when']}, one thread, standard templates, large-margin perceptron.\n"
        "Parsing chooses labels too; training is without."
    )
    header = ["language", "training, s", "epochs", "peak MB", "parsing, tokens/s", "peak MB", "to UDPipe"]
    rows = []
    for language, row in results["languages"].items():
        speed, peer = row["parsing"]["tokens_per_second"], row["udpipe"]
        ratio = peer.get("missing") or f"{speed / peer['tokens_per_second']:.1f}x"
        training, parsing = row["training"], row["parsing"]
        cells = [language, f"{training['seconds']:.1f}", str(training["epochs"]), f"{training['peak_mb']:.0f}"]
        cells += [f"{speed:,.0f}", f"{parsing['peak_mb']:.0f}", ratio, f"{row['command']['seconds']:.2f}"]
        rows.append(cells)
    tables = [markdown_table(title, [*header, "`headway parse`, s"], rows)]
    for kind in ("training", "parsing"):
        names = list(next(iter(results["languages"].values()))[kind]["stages"])
        rows = [
            [language, *(f"{row[kind]['stages'].get(name, 0):.3f}" for name in names)]
            for language, row in results["languages"].items()
        ]
        tables.append(markdown_table(f"## Seconds by stage, {kind}", ["language", *names], rows))
    lines = ["## Bars", ""]
    for language, row in results["languages"].items():
        speed = row["parsing"]["tokens_per_second"]
        lines.append(f"- {verdict(speed >= PARSE_BAR)} {language}: parsing {speed:,.0f} tokens/s, bar {PARSE_BAR:,.0f}")
        if language in TRAIN_BARS and row["training"]["epochs"] == 10:
            took, bar = row["training"]["seconds"], TRAIN_BARS[language]
            lines.append(f"- {verdict(took < bar)} {language}: training {took:.1f} s, bar {bar:.0f} s")
    return "\n".join([*tables, *lines]) + "\n"


def verdict(met: bool) -> str:
    return "PASS" if met else "FAIL"


def main() -> None:
    """Measure and report, or do one measurement for the process that does."""
    if sys.argv[1:2] == ["--one"]:
        kind, *rest = sys.argv[2:]
        if kind == "train":
            found = train(Path(rest[0]), int(rest[1]))
        else:
            found = {"parse": parse, "command": command, "udpipe": udpipe}[kind](Path(rest[0]), Path(rest[1]))
        print(json.dumps(found))
        return
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", type=Path, required=True, help="the folder of CoNLL-X languages")
    options.add_argument("--language", nargs="+", default=["danish", "portuguese"])
    options.add_argument("--quick", action="store_true", help="one epoch, nothing written")
    options.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    chosen = options.parse_args()
    results = {
        "headway": __version__,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "numpy": np.__version__,
        "languages": {name: measure(chosen.data, name, 1 if chosen.quick else 10) for name in chosen.language},
    }
    text = report(results)
    print(text)
    if not chosen.quick:
        (chosen.output / "parsing.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        (chosen.output / "parsing.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
