"""Would a linear arc model be at least 3 times as fast as `en`? From raw text to CoNLL-U, one thread.

    headway train en_ewt-ud-train.conllu --model arc --max-megabytes 18 -o fast.headway
    python benchmarks/english_fast.py fast.headway en_ewt-ud-dev.conllu --commit $(git rev-parse --short HEAD)

Both split the text by the splitter of `en`, and take turns. The ratio is the median of the turns' ratios; the parts of
a turn (splitting, parsing with tags and labels, writing) are timed on their own, too. Seconds are the processor's, not
the clock's: everything runs on one thread, and the machine may be busy.
"""

from __future__ import annotations

import sys

from neural_parse import TURNS, machine, verdict  # first: it keeps libraries to one thread

# isort: split
import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from headway import Parser, read_treebank
from headway.treebank.raw_text import raw_text

BAR = 3.0


def seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def measured(parsers: dict[str, Parser], text: str) -> dict[str, Any]:
    """Seconds of every turn and of its parts, by parser."""
    turns: dict[str, list[float]] = {name: [] for name in parsers}
    parts: dict[str, list[dict[str, float]]] = {name: [] for name in parsers}
    for turn in range(TURNS + 1):
        for name, parser in parsers.items():
            took = seconds(lambda parser=parser: [found.to_conllu() for found in parser.parse_text(text)])  # type: ignore[misc]
            if turn:  # in the first, kernels are compiled and caches filled
                turns[name].append(took)
                parts[name].append(stages(parser, text))
    return {
        "seconds": turns,
        "parts": {
            name: {part: float(np.median([one[part] for one in own])) for part in own[0]} for name, own in parts.items()
        },
    }


def stages(parser: Parser, text: str) -> dict[str, float]:
    """Seconds for splitting, parsing and writing, one after the other."""
    found: list[Any] = []
    parsed: list[Any] = []
    return {
        "splitting": seconds(lambda: found.extend(parser.sentences(text))),
        "parsing": seconds(lambda: parsed.extend(parser.parse(found))),
        "writing": seconds(lambda: [one.to_conllu() for one in parsed]),
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("fast", type=Path, help="a linear model")
    options.add_argument("data", type=Path, help="a treebank, whose raw text is parsed")
    options.add_argument("--commit", default="unknown", help="what to call the code that is measured")
    options.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "english_fast.json")
    chosen = options.parse_args()
    data = list(read_treebank(chosen.data))
    slow = Parser.load("en")
    fast = replace(Parser.load(chosen.fast), segmenter=slow.segmenter)
    found = measured({"en": slow, "fast": fast}, raw_text(data).text)
    pairs = zip(found["seconds"]["en"], found["seconds"]["fast"], strict=True)
    ratio = float(np.median([one / other for one, other in pairs]))
    met = verdict(ratio >= BAR, f"the {fast.model.kind} model is {ratio:.2f} times as fast as en, bar {BAR:g}")
    about = machine(chosen.commit, chosen.fast, data)
    chosen.output.write_text(json.dumps({**about, **found, "ratio": ratio}, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found["parts"], indent=1))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
