"""Two source trees beside each other: is anything slower after a change?

    python benchmarks/before_after.py --before ../base/src --after src --data ../shared/data

The trees take turns: each measurement runs in a process of its own with PYTHONPATH set to one tree, then to the other,
`--rounds` times; times are medians over the rounds, and a ratio is the median of the rounds' own ratios, after over
before. Each tree has its own cache of compiled kernels, warmed by a round that is not counted. Ratios above 1.03 are
flagged. What is timed goes through entry points that both trees have; a measurement that fails in one of them is shown
without a ratio.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from inspect import signature
from itertools import product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

SLOWER = 1.03
SIZES = (20, 50)
BATCH = 64
SENTENCES, EPOCHS = 500, 2  # of training
REPEATS = 5  # at least, of a measurement inside a process, where the fastest counts
LONG_ENOUGH = 0.3  # seconds of repeats

Times = dict[str, float]  # seconds, by what was done


# ---------------------------------------------------------------------------------- in a process of one tree


def commands(data: Path) -> Times:
    """Whole commands, starting Python included."""
    with TemporaryDirectory() as folder:
        one, text = Path(folder) / "one.txt", Path(folder) / "dev.txt"
        one.write_text("The quick brown fox jumps over the lazy dog.\n", encoding="utf-8")
        text.write_text(_ewt_text(data), encoding="utf-8")
        calls = {
            "headway --help": ["--help"],
            "headway parse en, one sentence": ["parse", "en", str(one), "-o", os.devnull],
            "headway parse en, EWT dev from raw text": ["parse", "en", str(text), "-o", os.devnull],
        }
        return {name: _seconds(partial(_command, words)) for name, words in calls.items()}


def treebank(data: Path) -> Times:
    """EWT dev read and written as CoNLL-U."""
    from headway import read_treebank, write_treebank

    path = _ewt(data)
    sentences = list(read_treebank(path))
    with TemporaryDirectory() as folder:
        target = Path(folder) / "out.conllu"
        return {
            "CoNLL-U in, EWT dev": _fastest(lambda: list(read_treebank(path))),
            "CoNLL-U out, EWT dev": _fastest(lambda: write_treebank(sentences, target)),
        }


def training(data: Path) -> Times:
    """An arc model of Danish, and what it parses."""
    from headway import Parser, read_treebank

    train, test = (list(read_treebank(path, format="conllx")) for path in _danish(data))
    options: dict[str, Any] = {"single_root": False, "tags": "gold", "epochs": EPOCHS}
    Parser.train(train[:2], **options)  # compiles
    parser = Parser.train(train[:SENTENCES], **options)
    return {
        f"training, arc model, {SENTENCES} Danish sentences, {EPOCHS} passes": _seconds(
            lambda: Parser.train(train[:SENTENCES], **options)
        ),
        "parsing, arc model, Danish test": _fastest(lambda: list(parser.parse(iter(test)))),
    }


def scoring(data: Path) -> Times:
    """Standard arc features of the Danish test sentences, coded and scored."""
    import numpy as np

    from headway import read_treebank
    from headway.features.arc_features import ArcFeatures
    from headway.features.coding import Coder
    from headway.features.templates import load_templates

    sentences = [s for s in read_treebank(_danish(data)[1], format="conllx") if s.heads is not None]
    coder = Coder.learn(sentences)
    coded = coder.code(sentences)
    width = max(map(len, sentences)) + 1
    heads = np.full((len(sentences), width), -1)
    for row, sentence in zip(heads, sentences, strict=True):
        row[: len(sentence) + 1] = sentence.heads
    features = ArcFeatures.learn(load_templates("standard"), coder, coded, heads)
    weights = np.random.default_rng(0).normal(size=features.size).astype(np.float32)
    scores = np.zeros((len(sentences), width, width))
    arguments: list[Any] = [weights, coded, scores]
    if "which" in signature(features.score).parameters:  # trees where a batch is named by its sentences' numbers
        arguments.insert(2, np.arange(len(sentences)))
    return {
        "features, coding Danish test": _fastest(lambda: coder.code(sentences)),
        "features, scoring Danish test": _fastest(lambda: features.score(*arguments)),
    }


def inference(data: Path) -> Times:
    """Argmax, marginals and covariances of batches, in all four classes of trees."""
    import numpy as np

    from headway import TreeDistribution
    from headway.inference import argmax, marginals

    def covariance(scores: Any, f: Any, trees: dict[str, Any]) -> object:
        return TreeDistribution(scores, **trees).covariance_with_arcs(f)

    found = {}
    for n, projective, single_root in product(SIZES, (False, True), (False, True)):
        rng = np.random.default_rng(n)
        scores, f = rng.normal(size=(2, BATCH, n + 1, n + 1))
        trees: dict[str, Any] = {"projective": projective, "single_root": single_root, "threads": 1}
        kind = f"{'' if projective else 'non-'}projective, {'single' if single_root else 'multi'}-root, n = {n}"
        calls: dict[str, Callable[[], object]] = {
            "argmax": partial(argmax, scores, **trees),
            "marginals": partial(marginals, scores, **trees),
            "covariance": partial(covariance, scores, f, trees),
        }
        found.update({f"{name}, {kind}": _fastest(call) for name, call in calls.items()})
    return found


MEASUREMENTS: dict[str, Callable[[Path], Times]] = {
    "commands": commands,
    "treebank": treebank,
    "training": training,
    "scoring": scoring,
    "inference": inference,
}


def _command(words: Sequence[str]) -> None:
    subprocess.run([sys.executable, "-m", "headway", *words], check=True, stdout=subprocess.DEVNULL)


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _fastest(call: Callable[[], object]) -> float:
    """Seconds of the fastest of many calls, after one that compiles.

    Calls are timed one by one: what else the machine does delays some of them, hardly ever all.
    """
    call()
    times = [_seconds(call) for _ in range(REPEATS)]
    while sum(times) < LONG_ENOUGH:
        times.append(_seconds(call))
    return min(times)


def _ewt(data: Path) -> Path:
    return data / "ud" / "UD_English-EWT" / "en_ewt-ud-dev.conllu.gz"


def _danish(data: Path) -> tuple[Path, Path]:
    folder = data / "conllx" / "danish"
    return folder / "train.conll.gz", folder / "test.conll.gz"


def _ewt_text(data: Path) -> str:
    """The sentences of EWT dev as their comments have them, paragraph by paragraph."""
    paragraphs: list[list[str]] = [[]]
    with gzip.open(_ewt(data), "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith(("# newdoc", "# newpar")):
                paragraphs.append([])
            elif line.startswith("# text = "):
                paragraphs[-1].append(line.removeprefix("# text = ").strip())
    return "\n\n".join(" ".join(sentences) for sentences in paragraphs if sentences) + "\n"


# ---------------------------------------------------------------------------------- beside each other


@dataclass(frozen=True)
class Tree:
    """A source tree, and where its compiled kernels are kept."""

    source: Path
    cache: Path

    def measure(self, name: str, data: Path) -> Times | str:
        """Times of one process, or why there are none."""
        alone = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        own = {"PYTHONPATH": str(self.source), "NUMBA_CACHE_DIR": str(self.cache), "HEADWAY_QUIET": "1"}
        call = [sys.executable, __file__, "--data", str(data), "--one", name]
        done = subprocess.run(call, capture_output=True, text=True, env={**os.environ, **alone, **own})
        if done.returncode:
            return done.stderr.strip().splitlines()[-1]
        times: Times = json.loads(done.stdout)
        return times


@dataclass(frozen=True)
class Comparison:
    """Seconds of something before and after, round by round; `failure` says why there are none."""

    what: str
    before: list[float]
    after: list[float]
    failure: str = ""

    @property
    def ratio(self) -> float:
        return median(y / x for x, y in zip(self.before, self.after, strict=True))

    def row(self) -> list[str]:
        if self.failure:
            return [self.what, "", "", "", self.failure]
        times = (f"{1000 * median(each):.3g}" for each in (self.before, self.after))
        return [self.what, *times, f"{self.ratio:.3f}", "SLOWER" if self.ratio > SLOWER else ""]


def compared(name: str, trees: Mapping[str, Tree], data: Path, rounds: int) -> Iterator[Comparison]:
    """One measurement: a round to warm up, then the trees in turn, the first one changing."""
    found: dict[str, list[Times]] = {which: [] for which in trees}
    for number in range(rounds + 1):
        for which in sorted(trees, reverse=number % 2 == 0):
            times = trees[which].measure(name, data)
            if isinstance(times, str):
                yield Comparison(name, [], [], f"{which}: {times}")
                return
            found[which].append(times)
    for what in found["before"][0]:
        before, after = ([times[what] for times in found[which][1:]] for which in ("before", "after"))
        yield Comparison(what, before, after)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--before", type=Path, help="a source folder, src of some checkout")
    options.add_argument("--after", type=Path, help="another one")
    options.add_argument("--data", type=Path, required=True, help="the folder of conllx and ud")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS))
    options.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    options.add_argument("--one", choices=MEASUREMENTS, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        print(json.dumps(MEASUREMENTS[given.one](given.data)))
        return 0
    if given.before is None or given.after is None:
        options.error("--before and --after are needed")
    with TemporaryDirectory() as caches:
        sources = {"before": given.before, "after": given.after}
        trees = {which: Tree(source.resolve(), Path(caches) / which) for which, source in sources.items()}
        found = []
        for name in given.only:
            for each in compared(name, trees, given.data.resolve(), given.rounds):
                print(*each.row(), sep=" | ", file=sys.stderr, flush=True)
                found.append(each)
    _write(found, given.rounds, given.output)
    return int(any(each.failure or each.ratio > SLOWER for each in found))


def _write(found: Sequence[Comparison], rounds: int, folder: Path) -> None:
    from headway_papers.markdown import markdown_table

    title = f"# Before and after\n\nOne run of `benchmarks/before_after.py`, medians of {rounds} rounds, one thread."
    table = markdown_table(title, ["what", "before, ms", "after, ms", "after / before", ""], [c.row() for c in found])
    print(table)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "before_after.md").write_text(table, encoding="utf-8")
    content = {"rounds": rounds, "comparisons": [asdict(each) for each in found]}
    (folder / "before_after.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
