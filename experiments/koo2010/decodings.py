"""Training by head automata alone (koo2010 section 6) or through dual decomposition: which is better?

    python experiments/koo2010/decodings.py ../shared/data/conllx/danish/train.conll.gz

The last tenth of the sentences is held out; both models are trained on the rest, in both ways. Writes decodings.json:
held-out UAS without punctuation after each pass, training seconds, and, parsing the held-out sentences with K = 5000,
the share of certificates.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from headway import __version__
from headway.models.protocol import Options
from headway.parallel import SERIAL
from headway.pipeline import Parser
from headway.training.data import checksum
from headway.treebank import read_treebank, roots

SETTINGS = {"learner": "margin", "c": 300.0, "epochs": 6, "labels": "none", "tags": "gold", "seed": 0}


def main() -> None:
    """Train the four, and write what came out."""
    sentences = list(read_treebank(sys.argv[1]))
    kept = len(sentences) - len(sentences) // 10
    train, held_out = sentences[:kept], sentences[kept:]
    single_root = all(len(roots(s.heads)) == 1 for s in sentences if s.heads is not None)
    rows = []
    for model in ("sibling", "grandsibling"):
        for decoding in ("automata", "dual"):
            choice = {"model": model, "decoding": decoding, "single_root": single_root}
            started = time.perf_counter()
            trained = Parser.train(train, held_out, **choice, **SETTINGS).model
            seconds = time.perf_counter() - started
            found = trained.predict(held_out, Options(exact=False), SERIAL)
            certified = sum(str(each.status) == "CERTIFIED" for each in found)
            history = [round(entry["dev"], 2) for entry in trained.about["history"]]
            rows.append(
                {**choice, "uas": history, "seconds": round(seconds, 1), "certified": 100 * certified / len(found)}
            )
            print(rows[-1], flush=True)
    data = {"headway": __version__, "settings": SETTINGS, "train": checksum(sentences), "rows": rows}
    Path(__file__).with_name("decodings.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
