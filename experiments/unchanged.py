"""Do the committed figures still come out, to the last digit? Recompute the cheap ones and compare.

    python experiments/unchanged.py --data ../shared/data [--only NAME ...]

Each cell runs in a process of its own. Committed figures are those of `experiments/*/results`; those of the embedded
model, checksums of what `headway parse en` writes for the development sentences of UD English-EWT, are in
`unchanged.json` (from an AMD EPYC with VNNI: the model's arithmetic is ONNX Runtime's, and has not been compared with
that of other processors). Where a committed figure did not come out at the commit that file names either, it has the
figure that did (`before`), and this is the one to compare with. The exit status is 1 if any figure differs.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from headway.evaluation import evaluate
from headway.pipeline import Parser
from headway.treebank import read_treebank
from headway.treebank.raw_text import raw_text
from headway_papers import druck2009, fernandes2012_coreference, koo2007, koo2010, luque2012
from headway_papers.corpora import Corpus, renamed, test_once
from headway_papers.markdown import markdown_table

HERE = Path(__file__).resolve().parent
SCORES = ("uas_no_punct", "las_no_punct", "uas", "las", "exact_labelled")

Figure = tuple[str, Any, Any]  # name, committed, now


def danish_arc(data: Path) -> Iterator[Figure]:
    """The arc model of `first_order`: trained with what was chosen, tested."""
    committed = _read("first_order/results/danish.json")
    corpus = Corpus.read(data / "conllx", "danish")
    parser = Parser.train(corpus.train, **_settings(committed))
    scores = test_once(parser.with_projective(committed["decoding"] == "projective"), corpus, 1).to_dict()
    yield from _same(SCORES, committed["test"], scores)


def danish_grandsibling(data: Path) -> Iterator[Figure]:
    """The grand-sibling model of koo2010's table 1, as it is saved, with exact completion."""
    committed = _read("koo2010/results/table1/danish-grandsibling.json")
    corpus = Corpus.read(data / "conllx", "danish")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "danish-grandsibling.headway"
        koo2010.trained(corpus.train, _settings(committed), path, 1)
        parsed = list(Parser.load(path).parse(iter(corpus.test)))
    scores = evaluate(corpus.test, [found.sentence for found in parsed]).to_dict()
    yield from _same(SCORES, committed["exact"]["test"], scores)
    statuses = [str(found.status) for found in parsed]
    for status, count in committed["exact"]["statuses"].items():
        yield status, count, statuses.count(status)


def dutch_perceptron(data: Path) -> Iterator[Figure]:
    """koo2007's cheapest Dutch cell: the perceptron, projective."""
    committed = _read("koo2007/results/dutch-perceptron-p.json")
    corpus = Corpus.read(data / "conllx", "dutch")
    with TemporaryDirectory() as folder:
        cell = koo2007.Cell(corpus, "perceptron", True, Path(folder), False, 1)
        while cell.advance(_quiet):
            pass
        now = _read(f"{folder}/results/{cell.name}.json")
    yield from _same(("uas", "validation", "passes", "right", "history"), committed, now)


def english_rules(data: Path) -> Iterator[Figure]:
    """druck2009's parsers from rules, English sentences of at most 20 words."""
    committed = _read("druck2009/results/english-20.json")["cells"]
    with TemporaryDirectory() as folder:
        experiment = druck2009.Experiment.of(data / "ud", "english", "20", druck2009.FULL, Path(folder), 1, _quiet)
        experiment.rules()
    for name, cell in experiment.cells.items():
        for part in ("dev", "test"):
            yield f"{name}, {part}", committed[name][part], cell[part]


def wsj_grammars(data: Path) -> Iterator[Figure]:
    """luque2012's grammars over tags on the WSJ sample: DET, DET+F, points of the spectral curves, one start of EM."""
    committed = _read("luque2012/results/wsj.json")["cells"]
    size = replace(luque2012.FULL, spectral=(1, 2, 5, 9, 25), em=(2,), restarts=1, iterations=(1, 2, 5, 10))
    with TemporaryDirectory() as folder:
        experiment = luque2012.Experiment.of(data, "wsj", size, Path(folder), 1, _quiet)
        experiment.tag_grammars()
    for name, cell in experiment.cells.items():
        before = committed[name]
        if name.startswith("det"):
            yield from ((f"{name}, {part}", before[part], cell[part]) for part in ("dev", "test"))
            continue
        points = "iterations" if name.startswith("em") else "states"
        for point, scores in zip(cell[points], cell["dev"], strict=True):
            yield f"{name}, dev, {point} {points}", before["dev"][before[points].index(point)], scores
        if points == "iterations":
            likelihoods = cell["log_likelihoods"]
            yield f"{name}, log likelihoods", before["log_likelihoods"][: len(likelihoods)], likelihoods


def gum_coreference(data: Path) -> Iterator[Figure]:
    """fernandes2012's latent tree, log-linear, without singletons, the first seed."""
    committed = _read("fernandes2012/coreference/results/removed.json")["cells"]["latent tree, log-linear, seed 0"]
    documents = fernandes2012_coreference.Data.read(data / "ud" / "UD_English-GUM", "removed")
    now = fernandes2012_coreference.trained(documents, committed["settings"], test=True)
    yield from _same(("best_pass", "dev", "history", "test"), committed, now)


def embedded_gold_tokens(data: Path) -> Iterator[Figure]:
    """`headway parse en --retag --marginals` on gold tokens."""
    yield _embedded("gold tokens", gzip.decompress(_ewt(data).read_bytes()), "dev.conllu", "--retag")


def embedded_raw_text(data: Path) -> Iterator[Figure]:
    """`headway parse en --marginals` on raw text."""
    yield _embedded("raw text", raw_text(list(read_treebank(_ewt(data)))).text.encode(), "dev.txt")


CELLS: dict[str, Callable[[Path], Iterator[Figure]]] = {
    "embedded-gold-tokens": embedded_gold_tokens,
    "embedded-raw-text": embedded_raw_text,
    "danish-arc": danish_arc,
    "danish-grandsibling": danish_grandsibling,
    "dutch-perceptron": dutch_perceptron,
    "english-rules": english_rules,
    "wsj-grammars": wsj_grammars,
    "gum-coreference": gum_coreference,
}


def _embedded(name: str, content: bytes, file: str, *options: str) -> Figure:
    with TemporaryDirectory() as folder:
        source, target = Path(folder) / file, Path(folder) / "out.conllu"
        source.write_bytes(content)
        words = ["parse", "en", str(source), "--marginals", *options, "-o", str(target)]
        subprocess.run([sys.executable, "-m", "headway", *words], check=True, stderr=subprocess.DEVNULL)
        now = hashlib.sha256(target.read_bytes()).hexdigest()
    return f"CoNLL-U, {name}", _read("unchanged.json")["embedded"][name], now


def _ewt(data: Path) -> Path:
    return data / "ud" / "UD_English-EWT" / "en_ewt-ud-dev.conllu.gz"


def _read(name: str) -> Any:
    return json.loads((HERE / name).read_text("utf-8"))


def _settings(committed: dict[str, Any]) -> dict[str, Any]:
    """Under today's names; results older than the setting `tags` were computed with gold tags."""
    return {"tags": "gold", **renamed(committed["signature"]["settings"])}


def _same(names: Sequence[str], committed: dict[str, Any], now: dict[str, Any]) -> Iterator[Figure]:
    yield from ((name, committed[name], now[name]) for name in names)


def _quiet(line: str) -> None:
    """Cells are reported by the table."""


def _shown(value: Any) -> str:
    """A number to its last digit; longer values by a checksum."""
    text = json.dumps(value)
    return text if len(text) <= 20 else f"{hashlib.sha256(text.encode()).hexdigest()[:12]} (checksum)"


def _compared(name: str, data: Path) -> tuple[list[list[str]], bool, float]:
    """The rows of a cell, whether all its figures are equal, and how long it took."""
    started = time.perf_counter()
    command = [sys.executable, __file__, "--data", str(data), "--one", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - started
    if done.returncode:
        return [[name, "failed", "", "", "", "NO"]], False, seconds
    before = _read("unchanged.json")["before"].get(name, {})
    rows, equal = [], True
    for what, committed, now in json.loads(done.stdout):
        same = now == before.get(what, committed)
        recomputed = _shown(before[what]) if what in before else ""
        rows.append([name, what, _shown(committed), recomputed, _shown(now), "yes" if same else "NO"])
        equal = equal and same
    return rows, equal, seconds


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="the folder of conllx, ud and wsj-sample")
    options.add_argument("--only", nargs="+", choices=CELLS, default=list(CELLS), metavar="NAME", help=", ".join(CELLS))
    options.add_argument("--one", choices=CELLS, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one:
        print(json.dumps(list(CELLS[given.one](given.data))))
        return 0
    rows, equal = [], True
    for name in given.only:
        found, same, seconds = _compared(name, given.data)
        print(f"{name}: {'equal' if same else 'DIFFERS'}, {seconds:.0f} s", file=sys.stderr, flush=True)
        rows += found
        equal = equal and same
    print(markdown_table("## Unchanged?", ["cell", "figure", "committed", "before", "now", "equal"], rows))
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
