"""How EG and L-BFGS converge on Danish (issue 3's bar): primal, dual and gap by pass; objective and gradient by step.

    python experiments/koo2007/convergence.py ../shared/data/conllx/danish/train.conll.gz

EG runs 100 passes of max-margin training with C = 0.01; L-BFGS minimises the log-linear objective, C = 0.1, until the
gradient's norm is below a thousandth of its start. All training sentences, `mcdonald2005` templates, non-projective,
multi-root, no labels, no early stopping. Writes convergence.json beside this file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from headway import __version__
from headway.learning.progress import Pass
from headway.training import Material, Settings, checksum, training_trees

RUNS = {
    "eg": Settings(learner="eg", c=0.01, epochs=100, tags="gold"),
    "loglinear": Settings(learner="loglinear", c=0.1, epochs=400, tags="gold"),
}


def main(path: str) -> None:
    """Train both, write the histories, print how they end."""
    found: dict[str, Any] = {"headway": __version__}
    for name, settings in RUNS.items():
        settings = Settings(**{**vars(settings), "single_root": False, "templates": "mcdonald2005", "labels": "none"})
        sentences = training_trees(path, settings, path)
        material = Material.of(sentences, settings, threads=1)
        history: list[dict[str, float]] = []

        def report(done: Pass, history: list[dict[str, float]] = history) -> bool:
            history.append({"pass": done.number, **done.figures})
            print(history[-1], flush=True)
            return True

        settings.learn(material.structures).fit(material.examples, report)
        found[name] = {"c": settings.c, "data": checksum(sentences), "history": history}
        (Path(__file__).parent / "convergence.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
