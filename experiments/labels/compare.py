"""Labels after the tree, or jointly with it: held-out UAS and LAS of both, for the margin learner on one treebank.

    python experiments/labels/compare.py ../shared/data/conllx/danish/train.conll.gz

The last tenth of the training sentences is held out; 10 epochs, `standard` templates, multi-root where the treebank
is. Writes NAME.json beside this file, NAME being the treebank's folder.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from headway import __version__
from headway.evaluation import bootstrap_intervals, evaluate
from headway.pipeline import Parser
from headway.training.data import checksum
from headway.training.settings import Settings
from headway.treebank import read_treebank, roots


def main(path: str) -> None:
    """Train both and score them on the held-out sentences."""
    sentences = list(read_treebank(path))
    kept = len(sentences) - len(sentences) // 10
    train, dev = sentences[:kept], sentences[kept:]
    single_root = all(len(roots(sentence.heads)) == 1 for sentence in train)
    rows = {}
    for labels in ("after", "joint"):
        start = time.perf_counter()
        parser = Parser.train(train, single_root=single_root, labels=labels, tags="gold")
        seconds = time.perf_counter() - start
        scores = evaluate(dev, [found.sentence for found in parser.parse(dev)])
        intervals = bootstrap_intervals(scores)
        rows[labels] = {
            "uas_no_punct": asdict(intervals["uas_no_punct"]),
            "las_no_punct": asdict(intervals["las_no_punct"]),
            "training_seconds": seconds,
        }
        print(labels, rows[labels], flush=True)
    settings = asdict(Settings(tags="gold").complete())
    signature = {"headway": __version__, "settings": settings, "data": checksum(sentences)}
    target = Path(__file__).parent / f"{Path(path).parent.name}.json"
    target.write_text(json.dumps({"signature": signature, **rows}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
