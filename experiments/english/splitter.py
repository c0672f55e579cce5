"""The splitter of the English model: trained alone, measured on raw text and on text in lines, put into a model.

python experiments/english/splitter.py --data UD_English-EWT                       # figures on dev, in splitter.json
python experiments/english/splitter.py --data UD_English-EWT --more UD_English-GUM   # and on another treebank's dev
python experiments/english/splitter.py --data UD_English-EWT --into en.headway     # train, and replace en's splitter
python experiments/english/splitter.py --data UD_English-EWT --model en            # what a whole model says of them

`headway train` learns the same splitter. Lines are those of `headway.text.layouts`, by seeds that no training uses.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from headway.evaluation import F1
from headway.pipeline import Parser
from headway.text.layouts import laid_out
from headway.text.segmenter import NEWLINES, Segmenter
from headway.treebank import Sentence, read_treebank
from headway.treebank.raw_text import SENTENCE, TOKEN, RawText, raw_text, tokens_of

SEEDS = (1001, 1002)
Spans = set[tuple[int, int]]


def gold_spans(source: RawText) -> tuple[Spans, Spans]:
    """Tokens and sentences, in characters that are not white space."""
    ends = source.ends[[not character.isspace() for character in source.text]]
    return _between(np.flatnonzero(ends >= TOKEN) + 1), _between(np.flatnonzero(ends == SENTENCE) + 1)


def spans_of(sentences: list[Sentence]) -> tuple[Spans, Spans]:
    """The same of sentences that were split."""
    lengths = [[len("".join(token.form.split())) for token in tokens_of(sentence)] for sentence in sentences]
    tokens = np.cumsum([length for own in lengths for length in own])
    return _between(tokens), _between(np.cumsum([sum(own) for own in lengths]))


def _between(ends: Any) -> Spans:
    return set(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True))


def measure(splitter: Segmenter | Parser, sources: list[RawText], **options: Any) -> dict[str, float]:
    """F1 of tokens and sentences over some texts."""
    counts = np.zeros((2, 3), np.int64)
    for source in sources:
        pairs = zip(gold_spans(source), spans_of(splitter.sentences(source.text, **options)), strict=True)
        counts += [[len(gold & found), len(gold), len(found)] for gold, found in pairs]
    return {name: F1(*row).f1 for name, row in zip(("tokens", "sentences"), counts.tolist(), strict=True)}


def figures(splitter: Segmenter | Parser, gold: list[Sentence]) -> dict[str, dict[str, float]]:
    """Raw text as CoNLL 2018 scores it, without single line ends; then text in lines, by what they are taken for."""
    source = raw_text(gold)
    lines = [laid_out(source, seed) for seed in SEEDS]
    return {
        "raw text": measure(splitter, [source]),
        **{f"in lines, {mode}": measure(splitter, lines, newlines=mode) for mode in NEWLINES},
    }


def part_of(folder: Path, part: str) -> list[Sentence]:
    return list(read_treebank(next(iter(sorted(folder.glob(f"*{part}*.conllu*"))))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the treebank")
    parser.add_argument("--more", type=Path, help="the folder of another, whose dev part is measured")
    parser.add_argument("--part", default="dev", help="the part to measure")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--model", help="a model to measure, instead of a splitter that is trained")
    which.add_argument("--into", type=Path, help="the model whose splitter is replaced")
    parser.add_argument("--output", type=Path, help="the file for the figures")
    given = parser.parse_args()
    splitter = Parser.load(given.model) if given.model else Segmenter.learn(part_of(given.data, "train"))
    if given.into and isinstance(splitter, Segmenter):
        replace(Parser.load(given.into), segmenter=splitter).save(given.into)
    treebanks = {given.data.name: given.part} | ({given.more.name: "dev"} if given.more else {})
    folders = {given.data.name: given.data} | ({given.more.name: given.more} if given.more else {})
    found = {f"{name} {part}": figures(splitter, part_of(folders[name], part)) for name, part in treebanks.items()}
    shown = json.dumps(found, indent=2)
    print(shown)
    if given.output:
        given.output.write_text(shown + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
