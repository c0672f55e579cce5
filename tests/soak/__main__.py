"""`python -m tests.soak`: parse random text for an hour, hurt every run, and print a table of what became of them."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from headway.cli.tables import table
from tests.fuzz.mutations import pick
from tests.fuzz.parse_texts import random_text
from tests.soak.injuries import INJURIES, OLD, Run, verdict


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="a JSON file of the counts")
    options = parser.parse_args()
    outcomes: dict[str, Counter[str]] = {injury: Counter() for injury in INJURIES}
    slowest = dict.fromkeys(INJURIES, 0.0)
    start, seed = time.monotonic(), options.seed
    while time.monotonic() - start < options.seconds:
        rng = np.random.default_rng(seed)
        injury = pick(rng, tuple(INJURIES))
        outcome, seconds = _one(injury, rng)
        outcomes[injury][outcome] += 1
        slowest[injury] = max(slowest[injury], seconds)
        if outcome.startswith("BAD"):
            print(f"seed {seed}, {injury}: {outcome}", flush=True)
        seed += 1
    print(_as_table(outcomes, slowest))
    if options.output:
        found = {
            injury: {"outcomes": dict(sorted(counts.items())), "slowest": round(slowest[injury], 2)}
            for injury, counts in outcomes.items()
        }
        content = {"seconds": round(time.monotonic() - start), "seed": options.seed, "injuries": found}
        options.output.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    return int(any(outcome.startswith("BAD") for counts in outcomes.values() for outcome in counts))


def _one(injury: str, rng: np.random.Generator) -> tuple[str, float]:
    """One run in a folder of its own: its verdict, and the seconds it took to end once it had been hurt."""
    with tempfile.TemporaryDirectory(prefix="headway-soak-") as folder:
        run = Run(Path(folder) / "in.txt", Path(folder) / "out.conllu")
        paragraphs = (random_text(rng) for _ in range(int(rng.integers(1, 60))))
        run.source.write_text("\n\n".join(paragraphs), "utf-8", errors="replace")
        run.target.write_bytes(OLD)
        ending = INJURIES[injury](run, rng)
        return verdict(injury, run, ending), ending.seconds


def _as_table(outcomes: dict[str, Counter[str]], slowest: dict[str, float]) -> str:
    rows = [["injury", "runs", "bad", "slowest end", "outcomes"]]
    for injury, counts in outcomes.items():
        bad = sum(count for outcome, count in counts.items() if outcome.startswith("BAD"))
        words = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
        rows.append([injury, str(counts.total()), str(bad), f"{slowest[injury]:.1f} s", words])
    return table(rows)


if __name__ == "__main__":
    sys.exit(main())
