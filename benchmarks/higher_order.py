"""Higher-order parsers: tokens a second with and without exact completion, what is proved; beside UDPipe 1.

    python benchmarks/higher_order.py --data ../shared/data/conllx --models experiments/koo2010/models

The models are those `headway reproduce koo2010` trained and kept. Each measurement runs in a process of its own, one
thread: the test file is read, pruned, parsed with a proof, labelled and written, best of several turns. Without exact
completion dual decomposition has the paper's 5,000 steps. TurboParser does not install from PyPI; its 1,610 tokens a
second (second order, not exact) and koo2010's own times are in shared/ANCHORS.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from parsing import apart, peak_mb, seconds, udpipe, verdict

from headway import __version__
from headway.pipeline import Parser
from headway.treebank import read_treebank, write_treebank
from headway_papers.markdown import markdown_table

BARS = {"sibling": 5_000.0, "grandsibling": 2_500.0}  # tokens a second, on Danish
MOST_FOR_EXACT = 1.5  # times as long as without
TURNS = 5


def parse(model: Path, path: Path) -> dict[str, Any]:
    """Tokens a second, exact and not, with the statuses of each."""
    parser = Parser.load(model)
    tokens = sum(map(len, read_treebank(path)))
    found: dict[str, Any] = {"tokens": tokens}
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "out.conll"
        for name, exact in (("exact", True), ("dual decomposition", False)):

            def whole(exact: bool = exact) -> None:
                trees = (one.sentence for one in parser.parse(read_treebank(path), exact=exact))
                write_treebank(trees, output)

            whole()
            took = min(seconds(whole) for _ in range(TURNS))
            statuses = Counter(str(one.status) for one in parser.parse(read_treebank(path), exact=exact))
            found[name] = {"seconds": took, "tokens_per_second": tokens / took, "statuses": dict(statuses)}
    return {**found, "peak_mb": peak_mb()}


def report(results: dict[str, Any]) -> str:
    """The table, and each bar with PASS or FAIL."""
    about = f"headway {results['headway']}, {results['when']}, one thread; files, labels and proofs included."
    header = ["language", "model", "exact, tokens/s", "proven, %", "K = 5000, tokens/s", "certified, %"]
    header += ["exact / not, time", "to UDPipe", "peak MB"]
    rows, bars = [], []
    for language, row in results["languages"].items():
        peer = row["udpipe"]
        for name in BARS:
            exact, plain = row[name]["exact"], row[name]["dual decomposition"]
            speed, ratio = exact["tokens_per_second"], exact["seconds"] / plain["seconds"]
            proven, certified = (_proven(one["statuses"]) for one in (exact, plain))
            beside = peer.get("missing") or f"{speed / peer['tokens_per_second']:.2f}x"
            cells = [language, name, f"{speed:,.0f}", f"{proven:.2f}", f"{plain['tokens_per_second']:,.0f}"]
            cells += [f"{certified:.2f}", f"{ratio:.2f}", beside, f"{row[name]['peak_mb']:.0f}"]
            rows.append(cells)
            if language == "danish":
                met = verdict(speed >= BARS[name])
                bars.append(f"- {met} danish {name}: {speed:,.0f} tokens/s, bar {BARS[name]:,.0f}")
            bars.append(f"- {verdict(proven == 100)} {language} {name}: {proven:.2f}% proven with exact completion")
            bars.append(
                f"- {verdict(ratio <= MOST_FOR_EXACT)} {language} {name}: exact takes {ratio:.2f}x, "
                f"bar {MOST_FOR_EXACT}x"
            )
    table = markdown_table(f"# Higher-order parsers\n\n{about}", header, rows)
    return "\n".join([table, "## Bars", "", *bars]) + "\n"


def _proven(statuses: dict[str, int]) -> float:
    total = sum(statuses.values())
    return 100 * (total - statuses.get("ITERATION_LIMIT", 0)) / max(1, total)


def main() -> None:
    """Measure and report, or do one measurement for the process that does."""
    if sys.argv[1:2] == ["--one"]:
        kind, *rest = sys.argv[2:]
        print(json.dumps({"parse": parse, "udpipe": udpipe}[kind](*map(Path, rest))))
        return
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", type=Path, required=True, help="the folder of CoNLL-X languages")
    options.add_argument("--models", type=Path, required=True, help="the folder of LANGUAGE-MODEL.headway files")
    options.add_argument("--language", nargs="+", default=["danish", "dutch", "portuguese", "swedish"])
    options.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    chosen = options.parse_args()
    languages = {}
    for language in chosen.language:
        train, test = (str(chosen.data / language / f"{name}.conll.gz") for name in ("train", "test"))
        languages[language] = {
            **{n: apart(__file__, "parse", str(chosen.models / f"{language}-{n}.headway"), test) for n in BARS},
            "udpipe": apart(__file__, "udpipe", train, test),
        }
    when = datetime.now(UTC).isoformat(timespec="seconds")
    results = {"headway": __version__, "when": when, "numpy": np.__version__, "languages": languages}
    text = report(results)
    print(text)
    (chosen.output / "higher_order.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (chosen.output / "higher_order.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
