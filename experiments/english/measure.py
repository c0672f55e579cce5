"""Measure `en`, or another model, again, and keep the figures in results/en.json.

python experiments/english/measure.py --data UD_English-EWT scrambled      # or dev, test, gum_dev: what is named
python experiments/english/measure.py --data UD_English-EWT dev test gum_dev scrambled --into en.headway  # and a card

Everything is measured as `headway reproduce english` does it; UD English-GUM is looked for beside the treebank. What is
not named stays as it was.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from headway.pipeline import Parser
from headway.treebank import Sentence, read_treebank
from headway_papers.english import OTHER, measure, probabilities, scrambled, speed
from headway_papers.english_card import card_of_figures

RESULT = Path(__file__).parent / "results" / "en.json"
PARTS = ("dev", "test", "gum_dev", "scrambled", "words_per_second")


def sentences_of(data: Path, part: str) -> list[Sentence]:
    """A part of the treebank, dev of GUM for "gum_dev", dev with its words in random order for "scrambled"."""
    if part == "words_per_second":
        return sentences_of(data, "dev")
    folder, part = (data.parent / OTHER, "dev") if part == "gum_dev" else (data, part)
    if part == "scrambled":
        return scrambled(sentences_of(data, "dev"))
    return list(read_treebank(min(folder.glob(f"*{part}*.conllu*"))))


def measured(parser: Parser, part: str, sentences: list[Sentence]) -> Any:
    """As `headway reproduce english` does it."""
    if part == "words_per_second":
        return speed(parser, sentences)
    return probabilities(parser, sentences, 1) if part == "scrambled" else measure(parser, sentences, True, 1)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("parts", nargs="+", choices=PARTS)
    options.add_argument("--data", type=Path, required=True, help="the folder of UD English-EWT")
    options.add_argument("--model", default="en")
    options.add_argument("--into", type=Path, help="the model to measure, which gets a card with the figures")
    options.add_argument("--output", type=Path, default=RESULT)
    given = options.parse_args()
    parser, known = Parser.load(given.into or given.model), json.loads(RESULT.read_text("utf-8"))
    for part in given.parts:
        some = sentences_of(given.data, part)
        known[part] = measured(parser, part, some)
        print(json.dumps({part: known[part]}, indent=1), flush=True)
    if given.into:
        replace(parser, card=card_of_figures(known["signature"], known)).save(given.into)
        known["bytes"] = given.into.stat().st_size
    given.output.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
