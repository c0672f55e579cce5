"""How long a corpus takes on a cluster: a simulation of the scheduler, beside the formula of docs/sizing.md.

    python experiments/cluster/simulate.py          # prints the table; writes simulation.json beside this file

The scheduler is that of `headway.ray.job`: a shard goes to whoever is free; a worker that is lost has its shard begun
again by another, from its beginning. Three things make a cluster slower than its cores:

* stragglers: workers have speeds of their own (lognormal, sigma 0.2), and so have shards (lognormal, sigma 0.1);
* losses: a worker is lost at random, once in `hours` on average, and comes back after two minutes;
* the end: workers without a shard wait for those that still have one.

The formula has the first only as a mean, and takes half a shard for a loss and one shard for the end:

    seconds = words / (workers * speed * a) + shard,    a = 1 / (1 + (shard / 2 + 120) / (3600 * hours))

where `shard` is the seconds that a shard takes a worker. Nothing is measured here but the two against each other.
"""

from __future__ import annotations

import argparse
import heapq
import json
from pathlib import Path
from typing import Any

import numpy as np

SPEED = 6000.0  # words per second and core
AWAY = 120.0  # seconds until a lost worker is replaced
WORKER_SPREAD, SHARD_SPREAD = 0.2, 0.1
BYTES_PER_WORD = 5.0


def simulate(words: float, workers: int, shard_words: float, hours: float, rng: np.random.Generator) -> dict[str, Any]:
    """Seconds until the last shard is done, and how many workers were lost on the way."""
    shards = int(np.ceil(words / shard_words))
    pace = SPEED * np.exp(rng.normal(0, WORKER_SPREAD, workers) - WORKER_SPREAD**2 / 2)
    sizes = shard_words * np.exp(rng.normal(0, SHARD_SPREAD, shards) - SHARD_SPREAD**2 / 2)
    dies = rng.exponential(3600 * hours, workers)
    free = [(0.0, worker) for worker in range(workers)]
    again: list[tuple[float, float]] = []  # when a shard came back, and its size
    end, lost, given = 0.0, 0, 0
    while given < shards or again:
        now, worker = heapq.heappop(free)
        if given < shards:
            size, given = float(sizes[given]), given + 1
        else:
            came, size = heapq.heappop(again)
            now = max(now, came)
        done = now + size / pace[worker]
        if dies[worker] < done:
            failed = max(now, float(dies[worker]))
            lost += 1
            heapq.heappush(again, (failed, size))
            dies[worker] = failed + AWAY + rng.exponential(3600 * hours)
            heapq.heappush(free, (failed + AWAY, worker))
            continue
        end = max(end, done)
        heapq.heappush(free, (done, worker))
    return {"seconds": end, "lost": lost, "shards": shards}


def formula(words: float, workers: int, shard_words: float, hours: float) -> float:
    """What docs/sizing.md says."""
    shard = shard_words / SPEED
    available = 1 / (1 + (shard / 2 + AWAY) / (3600 * hours))
    return words / (workers * SPEED * available) + shard


CASES = (  # words, workers, MB of a shard, hours between losses of one worker
    (1e9, 2, 4, 1000.0),
    (1e9, 64, 4, 1000.0),
    (1e9, 64, 4, 4.0),
    (1e10, 256, 4, 1000.0),
    (1e10, 256, 4, 4.0),
    (1e10, 256, 100, 4.0),
    (1e12, 4096, 25, 1000.0),
    (1e12, 4096, 25, 4.0),
)


def main() -> None:
    """Compare the two."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "simulation.json")
    chosen = parser.parse_args()
    rows = []
    print("| words | workers | shard | a worker is lost | lost | simulated | formula | error |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for words, workers, megabytes, hours in CASES:
        shard_words = megabytes * 1e6 / BYTES_PER_WORD
        found = simulate(words, workers, shard_words, hours, np.random.default_rng(chosen.seed))
        expected = formula(words, workers, shard_words, hours)
        error = expected / found["seconds"] - 1
        rows.append({"words": words, "workers": workers, "megabytes": megabytes, "hours": hours, **found})
        rows[-1] |= {"formula": expected, "error": error}
        print(
            f"| {words:.0e} | {workers:,} | {megabytes} MB | every {hours:g} h | {found['lost']:,} "
            f"| {found['seconds'] / 3600:.2f} h | {expected / 3600:.2f} h | {100 * error:+.1f}% |"
        )
    settings = {"seed": chosen.seed, "speed": SPEED, "away": AWAY, "bytes_per_word": BYTES_PER_WORD}
    settings |= {"worker_spread": WORKER_SPREAD, "shard_spread": SHARD_SPREAD}
    chosen.output.write_text(json.dumps({**settings, "cases": rows}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
