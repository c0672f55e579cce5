"""`parse-corpus` on a Ray cluster of several nodes, all on this machine: workers, nodes and leaders are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="needs the extra ray")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray
from ray.cluster_utils import Cluster

import headway.ray
from headway.errors import ArgumentError
from headway.pipeline import Parser
from headway.ray.actors import connect
from headway.ray.corpus import parse_corpus
from headway.ray.job import Progress
from headway.ray.worker import Settings
from tests.ray.cluster import actors, add_node, lose_node, one_machine
from tests.ray.folders import contents, errors, manifest, sentence_ids
from tests.ray.poison import FULL, save_poison, treebank

REPOSITORY = Path(__file__).resolve().parent.parent.parent
SETTINGS = Settings(shard_bytes=700)
IDS = [f"s{number}" for number in range(1, 121)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    save_poison(folder)
    (folder / "a.conllu").write_text(treebank(*(f"SLOW word {number}" for number in IDS)))
    return folder


@pytest.fixture(scope="module")
def cluster(corpus: Path) -> Iterator[Cluster]:
    """A head that computes nothing, and two nodes with a core each. They know the kind of model."""
    path = os.pathsep.join(map(str, [REPOSITORY / "src", REPOSITORY, corpus]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path)
        patch.setenv(FULL, str(corpus / "full"))
        with one_machine(nodes=2) as started:
            yield started


@pytest.fixture(scope="module")
def whole(corpus: Path, cluster: Cluster) -> dict[str, bytes]:
    """What a run gives to which nothing happens."""
    run(corpus, "whole")
    return contents(corpus / "whole")


def run(corpus: Path, output: str, name: str = "a.conllu", **options: Any) -> dict[str, int]:
    model, folder = str(corpus / "poison.headway"), str(corpus / output)
    given = {"model": model, "settings": SETTINGS, "address": "auto", **options}
    return parse_corpus([str(corpus / name)], folder, **given)


def once(act: Callable[[], None], shards: int = 2) -> Callable[[Progress], None]:
    """Called with the progress, it acts once, when so many shards are done."""
    acted = []

    def show(progress: Progress) -> None:
        if progress.shards_done >= shards and not acted:
            acted.append(True)
            act()

    return show


def test_the_cluster_does_what_one_machine_does(
    corpus: Path, cluster: Cluster, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sentence_ids(corpus / "whole") == IDS
    found = manifest(corpus / "whole")
    assert found["totals"]["documents"] == 120
    monkeypatch.syspath_prepend(corpus)
    run(corpus, "here", address=None, workers=1)
    assert contents(corpus / "here") == whole


def test_a_killed_worker_is_replaced(corpus: Path, cluster: Cluster, whole: dict[str, bytes]) -> None:
    def kill() -> None:
        for process in actors(cluster):
            os.kill(process, signal.SIGKILL)

    notes: list[str] = []
    run(corpus, "workers", show=once(kill), note=notes.append)
    assert any("is begun again: its actor ended" in note for note in notes)
    manifest(corpus / "workers")
    assert contents(corpus / "workers") == whole


def test_a_lost_node_takes_nothing_with_it(corpus: Path, cluster: Cluster, whole: dict[str, bytes]) -> None:
    def lose() -> None:
        lose_node(cluster, next(iter(cluster.worker_nodes)))

    run(corpus, "nodes", show=once(lose))
    assert len(cluster.worker_nodes) == 1
    manifest(corpus / "nodes")
    assert contents(corpus / "nodes") == whole
    add_node(cluster)


def test_a_killed_leader_is_followed_by_the_same_command(
    corpus: Path, cluster: Cluster, whole: dict[str, bytes]
) -> None:
    command = [sys.executable, "-m", "headway", "parse-corpus", "a.conllu", "-o", "leader"]
    command += ["--model", "poison.headway", "--address", cluster.address, "--shard-megabytes", "0.0007"]
    leader = subprocess.Popen(command, cwd=corpus, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(list((corpus / "leader" / "manifest").glob("*"))) < 2:
        assert leader.poll() is None
        time.sleep(0.02)
    leader.kill()
    leader.wait()
    kept = contents(corpus / "leader")
    assert 0 < len(kept) < len(whole)
    run(corpus, "leader", model=str(corpus / "poison.headway"))
    manifest(corpus / "leader")
    assert contents(corpus / "leader") == whole


def test_a_full_disk_on_one_node_costs_one_worker(corpus: Path, cluster: Cluster) -> None:
    """The first worker to load the model can write no more than 4 kB to a file."""
    (corpus / "long.conllu").write_text(treebank(*(f"SLOW {'x ' * 99} {number}" for number in range(60))))
    (corpus / "full").touch()
    notes: list[str] = []
    totals = run(corpus, "disk", "long.conllu", settings=Settings(shard_bytes=20_000), note=notes.append)
    assert not (corpus / "full").exists()
    assert [note for note in notes if "a worker gets no more work" in note and "File too large" in note]
    assert totals["documents"] == 60
    manifest(corpus / "disk")
    assert sentence_ids(corpus / "disk") == IDS[:60]


def test_corrupt_input_and_poisoned_documents_go_to_the_errors(corpus: Path, cluster: Cluster) -> None:
    good, bad = treebank("a b", "c"), "1\tbroken\n\n" + "\ufffd\t" * 9 + "\n\n"
    (corpus / "bad.conllu").write_text(good + bad + treebank("d", "KILL").replace("= s", "= t"))
    totals = run(corpus, "bad", "bad.conllu")
    assert (totals["documents"], totals["errors"]) == (6, 3)
    reasons = list(errors(corpus / "bad").values())
    assert "columns" in reasons[0]
    assert "its worker was lost 3 times in a row: its actor ended" in reasons[2]
    assert sentence_ids(corpus / "bad") == ["s1", "s2", "t1"]
    manifest(corpus / "bad")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray Data's, about itself
def test_a_dataset_gets_trees(cluster: Cluster, tmp_path: Path) -> None:
    texts = ["Economic news had effect. It barks.", "", "He saw it."]
    parser = Parser.train(REPOSITORY / "examples" / "tiny.conllu", epochs=1, labels="none")
    parser.save(tmp_path / "tiny.headway")
    dataset = ray.data.from_items([{"text": text, "n": number} for number, text in enumerate([*texts, None])])
    with pytest.raises(ArgumentError, match="the dataset has no column 'body'; its columns are text, n"):
        headway.ray.parse(dataset, model=str(tmp_path / "tiny.headway"), column="body")
    rows = headway.ray.parse(dataset, model=str(tmp_path / "tiny.headway"), workers=1).take_all()
    rows.sort(key=lambda row: row["n"])
    for row, text in zip(rows, texts, strict=False):
        assert row["error"] is None
        expected = [parsed.heads[1:].tolist() for parsed in parser.parse_text(text)]
        assert [list(sentence["head"]) for sentence in row["sentences"]] == expected
    assert rows[3]["sentences"] is None
    assert "expected a text" in rows[3]["error"]


def test_where_no_cluster_is_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(ArgumentError, match=r"no Ray cluster answers at '127.0.0.1:1' \(.*Connection refused\); start"):
        connect("127.0.0.1:1")
