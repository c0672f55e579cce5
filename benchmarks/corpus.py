"""`headway parse-corpus`: how fast beside `headway parse`, how large its leader gets, and what a hundred kills change.

    export PYTHONPATH=.  # the cluster of the tests
    options="--data ../shared/data/ud/UD_English-EWT --work /tmp/corpus --commit $(git rev-parse --short HEAD)"
    python benchmarks/corpus.py model $options                   # the fast linear model, once
    for way in parse local ray; do
        python benchmarks/corpus.py throughput $options --way $way                                # 50 MB
        python benchmarks/corpus.py throughput $options --way $way --model en --megabytes 2
    done
    python benchmarks/corpus.py documents $options
    python benchmarks/corpus.py kills $options --megabytes 8

Each writes its part of results/corpus.json. The text is that of the training sentences, over and over, a paragraph
each. `throughput` takes whole commands, their start included: `headway parse --threads 2`, `parse-corpus --local 2`,
and the same on a Ray cluster of two nodes with a core each, on this machine. `documents` has a million lines of ten
words. `kills` runs on three nodes; each time another hundredth of the shards is done, a worker or a node, drawn at
random, is killed; nodes come back. Memory is the largest resident set, as the system has it. Where others use the
machine, too, `share_by_cpu` compares processor time, the leader's and all workers', in place of the clock's.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from headway import __version__
from headway.pipeline import Parser
from headway.treebank import read_treebank

SHARE_BAR, MEMORY_BAR, LEADER_BAR = 0.9, 300.0, 1000.0  # of `parse`; MB more than it; MB
KILLS, NODES, SEED = 100, 3, 0
RESULTS = Path(__file__).parent / "results" / "corpus.json"
REPOSITORY = Path(__file__).resolve().parent.parent


# ---------------------------------------------------------------------------------- what is parsed


def train(data: Path, target: Path) -> None:
    """A linear arc model with three templates and no labels, on a part of the data: fast, so that overhead shows."""
    some = [sentence for sentence in read_treebank(treebank_of(data)) if len(sentence) < 40][:2000]
    templates = target.with_name("templates.txt")
    templates.write_text("h.form m.form | dir\nh.upos m.upos | dir dist\nm.form | dir dist\n")
    Parser.train(some, epochs=1, labels="none", projective=True, templates=str(templates)).save(target)


def treebank_of(data: Path) -> Path:
    return next(data.glob("*train*.conllu*"))


def texts(data: Path) -> list[str]:
    """The sentences as they were written."""
    lines = (comment for s in read_treebank(treebank_of(data)) for comment in s.layout.comments)
    return [line.removeprefix("# text = ") for line in lines if line.startswith("# text = ")]


def write_text(data: Path, target: Path, size: int) -> None:
    """Paragraphs of `size` bytes in all, or a little more."""
    paragraphs = "".join(f"{text}\n\n" for text in texts(data))
    times = -(-size // len(paragraphs.encode()))
    whole = (paragraphs * times).encode()
    target.write_bytes(whole[: whole.index(b"\n\n", size - 2) + 2])


def write_documents(data: Path, target: Path, count: int) -> None:
    """Lines of ten words."""
    words = " ".join(texts(data)).split()
    with target.open("w", encoding="utf-8") as file:
        for number in range(count):
            start = 10 * number % (len(words) - 10)
            file.write(json.dumps({"id": number, "text": " ".join(words[start : start + 10])}) + "\n")


# ---------------------------------------------------------------------------------- what is measured


def peak_mb(process: int) -> float:
    """The largest resident set that a process ever had."""
    status = Path(f"/proc/{process}/status").read_text("utf-8")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024


def cpu_seconds(process: int) -> float:
    """The processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def below(process: int) -> list[int]:
    """The processes that a process started, and so on."""
    found = []
    for task in Path(f"/proc/{process}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found += [child, *below(child)]
    return found


def watched(command: list[str], is_worker: Callable[[str], bool], roots: list[int]) -> dict[str, Any]:
    """Run a command; seconds, its own memory, and that of its largest worker below it or below `roots`."""
    own, workers, used = 0.0, 0.0, dict[int, float]()
    start = time.monotonic()
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "HEADWAY_QUIET": "1"})
    while running.poll() is None:
        with suppress(OSError, StopIteration):
            own, used[running.pid] = max(own, peak_mb(running.pid)), cpu_seconds(running.pid)
        for process in {child for root in (running.pid, *roots) for child in _below(root)}:
            with suppress(OSError, StopIteration):
                name = Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                if is_worker(name):
                    workers, used[process] = max(workers, peak_mb(process)), cpu_seconds(process)
        time.sleep(0.25)
    seconds = time.monotonic() - start
    if running.returncode:
        raise SystemExit(f"{' '.join(command)} failed with status {running.returncode}")
    memory = {"leader_mb": round(own), "worker_mb": round(workers)}
    cpu = {"leader_cpu_seconds": round(used[running.pid], 1), "all_cpu_seconds": round(sum(used.values()), 1)}
    return {"seconds": round(seconds, 1), **cpu, **memory}


def _below(process: int) -> list[int]:
    try:
        return below(process)
    except OSError:
        return []


def headway(*words: object) -> list[str]:
    return [sys.executable, "-m", "headway", *map(str, words)]


def throughput(chosen: argparse.Namespace) -> dict[str, Any]:
    """The same text, one way: by a process with two threads, by two processes, or by a cluster of two nodes."""
    from tests.ray.cluster import one_machine

    work, text, model, way = chosen.work, chosen.work / "text.txt", model_of(chosen), chosen.way
    write_text(chosen.data, text, int(chosen.megabytes * 1e6))
    compile_kernels(work, model)
    if way == "parse":
        target = work / "parse.conllu"
        found = watched(headway("parse", model, text, "--threads", 2, "-o", target), lambda _: False, [])
        with target.open("rb") as lines:
            words = sum(line[:1].isdigit() and b"-" not in line.split(b"\t")[0] for line in lines)
    else:
        new_folder(work / way)
        call = headway("parse-corpus", text, "--documents", "paragraph", "--model", model, "-o", work / way)
        if way == "local":
            found = watched([*call, "--local", "2"], lambda name: "spawn_main" in name, [])
        else:
            with one_machine(nodes=2) as cluster:
                raylets = [p.process.pid for node in cluster.worker_nodes for p in node.all_processes["raylet"]]
                call += ["--address", cluster.address]
                found = watched(call, lambda name: name.startswith("ray::Actor"), raylets)
        totals = json.loads((work / way / "manifest.json").read_text("utf-8"))["totals"]
        if totals["errors"]:
            raise SystemExit(f"{way}: {totals}")
        words = totals["words"]
    return {"megabytes": chosen.megabytes, "words": words, **found, "words_per_second": round(words / found["seconds"])}


def compared(results: dict[str, Any]) -> None:
    """Put what was measured on the same text beside `headway parse`."""
    for name, found in results.items():
        parse = results.get(name.rpartition(", ")[0] + ", parse", found)
        if name.startswith("throughput") and parse is not found:
            if parse["words"] != found["words"]:
                raise SystemExit(f"{name}: {found['words']} words, but headway parse finds {parse['words']}")
            share = parse["seconds"] / found["seconds"]
            more = found["worker_mb"] - parse["leader_mb"]
            cpu = parse["all_cpu_seconds"] / found["all_cpu_seconds"]
            found |= {"share_of_parse": round(share, 3), "share_by_cpu": round(cpu, 3), "more_mb_than_parse": more}
            found["met"] = share >= SHARE_BAR and more <= MEMORY_BAR


def compile_kernels(work: Path, model: str) -> None:
    """What is compiled at the first use is not what is measured."""
    (work / "warm.txt").write_text("Dogs bark. Cats sleep.\n\nThey ran.\n")
    subprocess.run(headway("parse", model, work / "warm.txt", "-o", work / "warm.conllu"), check=True)


def documents(chosen: argparse.Namespace) -> dict[str, Any]:
    """Many small documents on a cluster: the memory of the process that leads."""
    from tests.ray.cluster import one_machine

    source, output = chosen.work / "documents.jsonl", chosen.work / "documents"
    write_documents(chosen.data, source, chosen.count)
    new_folder(output)
    with one_machine(nodes=2) as cluster:
        call = headway("parse-corpus", source, "--id-field", "id", "--model", model_of(chosen), "-o", output)
        found = watched([*call, "--address", cluster.address], lambda _: False, [])
    totals = json.loads((output / "manifest.json").read_text("utf-8"))["totals"]
    ids = [line for path in sorted((output / "shards").iterdir()) for line in _ids(path)]
    once = ids == [str(number) for number in range(chosen.count)]
    met = once and found["leader_mb"] < LEADER_BAR
    rate = round(totals["documents"] / found["seconds"])
    return {**found, **totals, "documents_per_second": rate, "each_once_and_in_order": once, "met": met}


def _ids(path: Path) -> list[str]:
    mark = b"# newdoc id = "
    return [line.removeprefix(mark).strip().decode() for line in path.open("rb") if line.startswith(mark)]


# ---------------------------------------------------------------------------------- kills


def kills(chosen: argparse.Namespace) -> dict[str, Any]:
    """One job undisturbed, and one in which workers and nodes are killed a hundred times."""
    from tests.ray.cluster import one_machine

    from headway.ray.corpus import parse_corpus
    from headway.ray.worker import Settings

    text, model = chosen.work / "kills.txt", model_of(chosen)
    write_text(chosen.data, text, int(chosen.megabytes * 1e6))
    settings = Settings(unit="paragraph", shard_bytes=text.stat().st_size // (4 * KILLS))
    given: dict[str, Any] = {"model": model, "settings": settings, "address": "auto"}
    found: dict[str, Any] = {}
    with one_machine(nodes=NODES) as cluster:
        for name in ("undisturbed", "killed"):
            new_folder(chosen.work / name)
            reaper, notes = Reaper(cluster), list[str]()
            given |= {"show": reaper.see, "note": notes.append} if name == "killed" else {}
            start = time.monotonic()
            totals = parse_corpus([str(text)], str(chosen.work / name), **given)
            found[name] = {"seconds": round(time.monotonic() - start, 1), **totals, "begun_again": len(notes)}
    found["killed"]["kills"] = reaper.killed
    checksums = [checksum(chosen.work / name) for name in ("undisturbed", "killed")]
    same = checksums[0] == checksums[1]
    enough = sum(found["killed"]["kills"].values()) >= KILLS
    return {"nodes": NODES, "seed": SEED, **found, "sha256": checksums[0], "identical": same, "met": same and enough}


class Reaper:
    """Kills something each time another hundredth is done; a node comes back before the leader goes on."""

    def __init__(self, cluster: Any) -> None:
        self._cluster, self._rng = cluster, random.Random(SEED)
        self.killed = {"workers": 0, "nodes": 0}

    def see(self, progress: Any) -> None:
        """The job's progress. Only the main thread can start a node."""
        from tests.ray.cluster import actors, add_node, lose_node

        owed = (KILLS + 1) * progress.shards_done / progress.shards - sum(self.killed.values())
        running = actors(self._cluster) if owed > 0 and sum(self.killed.values()) < KILLS else []
        if not running:
            return
        if self._rng.random() < 0.2:
            lose_node(self._cluster, self._rng.choice(sorted(self._cluster.worker_nodes, key=id)))
            self.killed["nodes"] += 1
            add_node(self._cluster)
        else:
            os.kill(self._rng.choice(running), signal.SIGKILL)
            self.killed["workers"] += 1


def checksum(folder: Path) -> str:
    """Of all shards and errors, in the order of their names."""
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("shards/*"), *folder.glob("errors/*")]):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


# ---------------------------------------------------------------------------------- the command


def model_of(chosen: argparse.Namespace) -> str:
    return str(chosen.work / "fast.headway") if chosen.model == "fast" else chosen.model


def new_folder(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path)


def main() -> None:
    """Measure one thing, and put it beside the others."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("model", "throughput", "documents", "kills"))
    parser.add_argument("--data", type=Path, required=True, help="the folder of UD English-EWT")
    parser.add_argument("--work", type=Path, required=True, help="a folder for what is written")
    parser.add_argument("--model", default="fast", help="the linear one of this benchmark, or another")
    parser.add_argument("--megabytes", type=float, default=50.0)
    parser.add_argument("--way", choices=("parse", "local", "ray"), default="parse")
    parser.add_argument("--count", type=int, default=1_000_000, help="documents")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY)])
    if chosen.what == "model":
        train(chosen.data, chosen.work / "fast.headway")
        return
    found = {
        "headway": __version__,
        "commit": chosen.commit,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "ray_version": version("ray"),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "model": chosen.model,
        "data": hashlib.sha256(treebank_of(chosen.data).read_bytes()).hexdigest(),
        **{"throughput": throughput, "documents": documents, "kills": kills}[chosen.what](chosen),
    }
    results = json.loads(chosen.output.read_text("utf-8")) if chosen.output.exists() else {}
    size = f", {chosen.megabytes:g} MB, {chosen.way}" if chosen.what == "throughput" else ""
    results[f"{chosen.what}, {chosen.model}{size}"] = found
    compared(results)
    chosen.output.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
