"""`python -m tests.fuzz [TARGET ...]`: draw for as long as one likes, and print what became of the draws."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import numba

import headway
from tests.fuzz.harness import Tally, fuzz, replay
from tests.fuzz.targets import TARGETS


def main() -> int:
    options = _options()
    if options.replay is not None:
        replay(TARGETS[options.targets[0]], options.replay)
        return 0
    tallies = {}
    for target in options.targets or list(TARGETS):
        tallies[target] = fuzz(TARGETS[target], options.seed, options.draws, options.seconds)
        print(_as_text(target, tallies[target]), flush=True)
        if options.output:
            _record(options.output, tallies, options.seed)
    return int(any(tally.findings for tally in tallies.values()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all if none is named")
    parser.add_argument("--draws", type=int, default=sys.maxsize // 2, help="draws for every target")
    parser.add_argument("--seconds", type=float, default=60, help="seconds for every target, if draws are left by then")
    parser.add_argument("--seed", type=int, default=0, help="number of the first draw")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run one draw of one target and show its traceback")
    parser.add_argument(
        "--output", type=Path, help="a JSON file of the counts; targets that it has already are replaced"
    )
    options = parser.parse_args()
    unknown = set(options.targets) - set(TARGETS)
    if unknown:
        parser.error(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    if options.replay is not None and len(options.targets) != 1:
        parser.error("--replay needs the name of one target")
    return options


def _as_text(target: str, tally: Tally) -> str:
    lines = [f"{target}: {tally.draws} draws in {tally.seconds:.0f} s, {len(tally.findings)} findings"]
    for title, counts in (("accepted", tally.accepted), ("refused", tally.refused)):
        if counts:
            lines.append(f"  {title}: " + ", ".join(f"{count} {word}" for word, count in counts.most_common()))
    examples = {finding.place: finding for finding in reversed(tally.findings)}
    for place, count in Counter(finding.place for finding in tally.findings).most_common():
        lines.append(f"  FINDING ({count} times; --replay {examples[place].seed}) {examples[place].cause}")
    return "\n".join(lines)


def _record(path: Path, tallies: dict[str, Tally], seed: int) -> None:
    """Add these counts to the file: a target has one entry per state of NUMBA_BOUNDSCHECK."""
    bounds = os.environ.get("NUMBA_BOUNDSCHECK") == "1"
    results = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for target, tally in tallies.items():
        results[f"{target}, bounds checked" if bounds else target] = {
            "version": headway.__version__,
            "commit": _commit(),
            "date": datetime.now(UTC).date().isoformat(),
            "python": platform.python_version(),
            "numba": numba.__version__,
            "seed": seed,
            "draws": tally.draws,
            "seconds": round(tally.seconds),
            "accepted": dict(sorted(tally.accepted.items())),
            "refused": dict(sorted(tally.refused.items())),
            "findings": [{"seed": finding.seed, "cause": finding.cause} for finding in tally.findings],
        }
    path.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", "utf-8")


def _commit() -> str:
    """What the repository was at, "unknown" outside of one."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
