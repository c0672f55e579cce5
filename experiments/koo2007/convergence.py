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
from headway.training.arc_trainer import prepare_arcs
from headway.training.data import TrainingData, checksum, training_trees
from headway.training.settings import Settings
from headway.training.stages import Run

RUNS = {
    "eg": Settings(learner="eg", c=0.01, epochs=100, tags="gold"),
    "loglinear": Settings(learner="loglinear", c=0.1, epochs=400, tags="gold"),
}


def main(path: str) -> None:
    """Train both, write the histories, print how they end."""
    found: dict[str, Any] = {"headway": __version__}
    for name, settings in RUNS.items():
        given = {**vars(settings), "single_root": False, "templates": "mcdonald2005", "labels": "none"}
        settings = Settings(**given).complete()
        sentences = training_trees(path, settings.trees, path)
        prepared = prepare_arcs(TrainingData(sentences), settings, Run())
        history: list[dict[str, float]] = []

        def report(done: Pass, history: list[dict[str, float]] = history) -> bool:
            history.append({"pass": done.number, **done.figures})
            print(history[-1], flush=True)
            return True

        prepared.learner(settings)(report, None)
        found[name] = {"c": settings.c, "data": checksum(sentences), "history": history}
        (Path(__file__).parent / "convergence.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
