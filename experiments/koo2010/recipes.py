"""Recipes for the grand-sibling parser of koo2010's table 1, compared on held-out sentences.

    python experiments/koo2010/recipes.py --data ../shared/data/conllx --language swedish --recipe fine --recipe coarse

The last tenth of the training sentences is held out, and every second of the others trained on, six passes: two minutes
a recipe. With --whole all the others are trained on, ten passes; with --tenth 3, the third tenth is held out. Test
sentences are never read. Adds to recipes.json: held-out UAS without punctuation after each pass, by language and
recipe, and last that of averaged trainings. What was there of the same data and settings is not computed again.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from headway import __version__
from headway.evaluation import evaluate
from headway.pipeline import Parser
from headway.training.data import checksum
from headway.treebank import read_treebank, roots
from headway_papers.corpora import HELD_OUT, write_json

SETTINGS = {"model": "grandsibling", "learner": "margin", "c": 300.0, "epochs": 6, "labels": "none", "tags": "gold"}
COARSE = {"templates": "standard+coarse", "parts": "grandsibling+grandsibling_coarse"}
WHOLE_EPOCHS = 10
RECIPES: dict[str, dict[str, Any]] = {
    "fine": {},
    "c-100": {"c": 100.0},
    "c-600": {"c": 600.0},
    "large-c": {"c": 1000.0},
    "passes-20": {"epochs": 20},
    "runs-4": {"runs": 4},
    "classes-10": {"tag_classes": 10},
    "classes-14": {"tag_classes": 14},
    "word-classes": {"word_classes": 300},
    "word-classes-runs-4": {"word_classes": 300, "runs": 4},
    "coarse-word-classes": {**COARSE, "tag_classes": 14, "word_classes": 300},
    "coarse": {**COARSE, "tag_classes": 14},
    "coarse-20": {**COARSE, "tag_classes": 20},
    "coarse-100": {**COARSE, "tag_classes": 14, "c": 100.0},
    "coarse-600": {**COARSE, "tag_classes": 14, "c": 600.0},
}
FOUND = Path(__file__).with_name("recipes.json")


def main() -> None:
    """Train with the recipes asked for, and write what came out."""
    parser = argparse.ArgumentParser(description="Compare recipes on held-out sentences.")
    parser.add_argument("--data", type=Path, required=True, help="the folder of the CoNLL-X languages")
    parser.add_argument("--language", required=True)
    parser.add_argument("--recipe", action="append", choices=RECIPES, help="all of them, if none is given")
    parser.add_argument("--whole", action="store_true", help="train on all that is not held out, ten passes")
    parser.add_argument("--tenth", type=int, choices=range(1, 11), default=10, help="which tenth is held out")
    asked = parser.parse_args()
    sentences = [s for s in read_treebank(asked.data / asked.language / "train.conll.gz", format="conllx") if len(s)]
    size = int(len(sentences) * HELD_OUT)
    stop = len(sentences) - (10 - asked.tenth) * size
    held_out = sentences[stop - size : stop]
    train = [*sentences[: stop - size], *sentences[stop:]][:: 1 if asked.whole else 2]
    single_root = all(len(roots(s.heads)) == 1 for s in sentences if s.heads is not None)
    for recipe in asked.recipe or RECIPES:
        name = f"{asked.language}/{recipe}" + ("/whole" if asked.whole else "")
        name += f"/tenth-{asked.tenth}" if asked.tenth < 10 else ""
        passes = {"epochs": WHOLE_EPOCHS} if asked.whole else {}
        settings = {**SETTINGS, **passes, **RECIPES[recipe], "single_root": single_root, "seed": 0}
        signature = {"headway": __version__, "settings": settings, "train": checksum(train), "dev": checksum(held_out)}
        if _read().get(name, {}).get("signature") == signature:
            continue
        started = time.perf_counter()
        trained = Parser.train(train, held_out, **settings)
        uas = [round(entry["dev"], 3) for entry in trained.model.about["history"]]
        if settings.get("runs", 1) > 1:  # those are of the first training, this is of all together
            uas.append(round(evaluate(held_out, [one.sentence for one in trained.parse(held_out)]).uas_no_punct, 3))
        row = {"signature": signature, "uas": uas, "seconds": round(time.perf_counter() - started, 1)}
        print(name, uas, row["seconds"], flush=True)
        write_json(FOUND, dict(sorted({**_read(), name: row}.items())))


def _read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FOUND.read_text("utf-8")) if FOUND.exists() else {}
    return found


if __name__ == "__main__":
    main()
