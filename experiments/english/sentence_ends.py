"""A second look at sentence ends, by `en`'s encoder: learnt, measured, put into a model.

python experiments/english/sentence_ends.py --data UD_English-EWT                      # figures on dev, with all seeds
python experiments/english/sentence_ends.py --data UD_English-EWT --into en.headway    # learn it, and put it into en

`headway reproduce english --language en` learns the same as its last step. UD English-GUM is looked for beside the
treebank. Lines are those of `splitter.py`. Each row takes two minutes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from splitter import SEEDS, measure, part_of

from headway import __version__
from headway.evaluation import evaluate_conll2018
from headway.neural.model import NeuralModel
from headway.neural.sentence_ends_training import ABOVE, DOUBT, with_sentence_ends
from headway.pipeline import Parser
from headway.text.layouts import laid_out
from headway.training.data import checksum
from headway.treebank import Sentence
from headway.treebank.annotations import Doubt
from headway.treebank.raw_text import raw_text
from headway_papers.english import OTHER

RESULT = Path(__file__).parent / "results" / "sentence-ends-dev.json"
TRAINED = (0, 1, 2)
DOUBTS = (Doubt(-100, 0), Doubt(-100, 20), DOUBT, Doubt(-100, 60), Doubt(-100, 80), Doubt(-1000, 80))


def learnt(parser: Parser, train: list[Sentence], seed: int = 0) -> Parser:
    """The parser with a second look."""
    assert parser.segmenter is not None
    model = with_sentence_ends(cast(NeuralModel, parser.model), parser.segmenter, train, seed)
    return replace(parser, model=model)


def in_doubt(parser: Parser, doubt: Doubt) -> Parser:
    """The parser with another measure of doubt."""
    model = cast(NeuralModel, parser.model)
    assert model.ends is not None
    return replace(parser, model=replace(model, ends=replace(model.ends, doubt=doubt)))


def figures(parser: Parser, treebanks: dict[str, list[Sentence]]) -> dict[str, Any]:
    """F1 from raw text, of sentences in lines, and the share of words that are read twice, in percent."""
    found: dict[str, Any] = {}
    for name, gold in treebanks.items():
        source = raw_text(gold)
        drafts = parser.drafts(source.text)
        each = list(parser.parse_each(drafts))
        parsed = [tree.sentence for own in each for tree in own]
        scores = evaluate_conll2018(gold, parsed)
        twice = sum(len(draft) for draft, own in zip(drafts, each, strict=True) if len(own) > 1)
        found[name] = {
            "sentences": scores.sentences.f1,
            "las": scores.las.f1,
            "in_lines": measure(parser, [laid_out(source, seed) for seed in SEEDS])["sentences"],
            "read_twice": 100 * twice / sum(map(len, parsed)),
        }
    return found


def rows(parser: Parser, train: list[Sentence], treebanks: dict[str, list[Sentence]]) -> Iterator[dict[str, Any]]:
    """The splitter alone, trainings by several seeds, and the first of them with more or less doubt."""
    alone = replace(parser, model=replace(cast(NeuralModel, parser.model), ends=None))
    yield {"second_look": None, **figures(alone, treebanks)}
    trained = {seed: learnt(alone, train, seed) for seed in TRAINED}
    for seed, own in trained.items():
        yield {"second_look": {"seed": seed, "doubt": DOUBT, "above": ABOVE}, **figures(own, treebanks)}
    for doubt in DOUBTS:
        own = in_doubt(trained[0], doubt)
        yield {"second_look": {"seed": 0, "doubt": doubt, "above": ABOVE}, **figures(own, treebanks)}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="the folder of UD English-EWT")
    options.add_argument("--model", default="en")
    options.add_argument("--into", type=Path, help="the model that gets a second look")
    options.add_argument("--output", type=Path, default=RESULT)
    given = options.parse_args()
    train = part_of(given.data, "train")
    if given.into:
        learnt(Parser.load(given.into), train).save(given.into)
        return
    other = given.data.parent / OTHER
    treebanks = {folder.name: part_of(folder, "dev") for folder in (given.data, other) if folder.is_dir()}
    found: list[dict[str, Any]] = []
    for row in rows(Parser.load(given.model), train, treebanks):
        print(json.dumps(row), flush=True)
        found.append(row)
    data = {"train": checksum(train), **{name: checksum(some) for name, some in treebanks.items()}}
    given.output.write_text(
        json.dumps({"headway": __version__, "data": data, "rows": found}, indent=1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
