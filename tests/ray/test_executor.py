"""Ray's workers on a cluster of two nodes: order, errors, pieces that stay, workers and nodes that are lost."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray", reason="needs the extra ray")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray
from ray.cluster_utils import Cluster

import headway.ray
from headway.errors import ArgumentError, TrainingError, WorkerError
from headway.learning import monitor
from headway.learning.monitor import Progress
from headway.processes import ATTEMPTS
from tests.copying_workers import CopyingWorkers
from tests.models.toy_treebank import sentences
from tests.test_processes import (
    dies,
    dies_once,
    fails_for_one,
    fails_on_two,
    piece_that_dies,
    pieces,
    slow_square,
    total,
    with_piece,
)
from tests.training.test_shards import best
from tests.training.toy_trainings import settings_for, trained

REPOSITORY = Path(__file__).resolve().parent.parent.parent
STORE = 80 * 1024 * 1024  # bytes, the least that Ray takes
TRAIN, DEV = sentences(24, 1), sentences(8, 2)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A head that computes nothing, and two nodes with a core each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(map(str, [REPOSITORY / "src", REPOSITORY])))
        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE}
        started = Cluster(initialize_head=True, head_node_args=head)
        for _ in range(2):
            started.add_node(num_cpus=1, object_store_memory=STORE)
        yield started
        started.shutdown()


@pytest.fixture(scope="module")
def executor(cluster: Cluster) -> Iterator[headway.ray.Executor]:
    with headway.ray.Executor(cluster.address) as found:
        yield found
    assert not ray.is_initialized()


def test_it_has_the_cpus_of_the_cluster(executor: headway.ray.Executor) -> None:
    assert executor.workers == 2
    assert headway.ray.Executor(workers=1).workers == 1  # in the same process: the same Ray
    assert ray.is_initialized()
    with pytest.raises(ValueError, match="0 workers"):
        headway.ray.Executor(workers=0)


def test_results_come_in_order_and_errors_reach_the_caller(executor: headway.ray.Executor) -> None:
    assert executor.map(slow_square, range(7)) == [x * x for x in range(7)]
    assert executor.map(slow_square, []) == []
    assert dict(executor.finished(slow_square, range(5))) == {x: x * x for x in range(5)}
    with pytest.raises(TrainingError, match="two"):
        executor.map(fails_on_two, range(4))


def test_pieces_stay_with_their_worker(executor: headway.ray.Executor) -> None:
    with executor.hold(pieces(5)) as held:
        first, second = held.each(with_piece, "a", 3), held.each(with_piece)
        assert [result[:2] for result in first] == [(1, (k, "a", 3)) for k in range(5)]
        assert [result[:2] for result in second] == [(2, (k,)) for k in range(5)]
        assert len({result[2] for result in first}) == 2
        with pytest.raises(TrainingError, match="no"):
            held.each(fails_for_one)
        assert [result[0] for result in held.each(with_piece)] == [3] * 5
    own, weights = [np.ones((2, 70_000)), np.zeros((0, 70_000))], np.arange(70_000.0)
    with executor.hold(own) as held:
        [(whole, writeable), (nothing, _)] = held.each(total, weights)
    np.testing.assert_array_equal(whole, [weights.sum()] * 2)
    assert writeable  # kernels would be compiled again for arrays that are not
    assert nothing.shape == (0,)


def test_workers_that_die(executor: headway.ray.Executor, tmp_path: Path) -> None:
    with executor.hold(pieces(3)) as held:
        held.each(with_piece)
        assert held.each(piece_that_dies, tmp_path / "mark") == [2, 1, 2]
        assert held.each(piece_that_dies, tmp_path / "mark") == [3, 2, 3]
    assert executor.map(dies_once, range(4), [tmp_path / "other"] * 4) == list(range(4))
    with pytest.raises(WorkerError, match=f"the cluster lost the same work {ATTEMPTS} times"):
        executor.map(dies, [1])


class Watched:
    """Workers whose pieces a test can get at."""

    def __init__(self, executor: headway.ray.Executor) -> None:
        self.executor, self.workers, self.map, self.finished = executor, 2, executor.map, executor.finished
        self.held: Any = None

    @contextmanager
    def hold(self, own: Any) -> Iterator[Any]:
        with self.executor.hold(own) as self.held:
            yield self.held

    def kill_one(self, progress: Progress) -> None:
        if progress.number == 3:
            ray.kill(self.held.holders[0].actor)


@pytest.mark.parametrize("name", ["lbfgs", "eg", "margin"])
def test_trained_as_anywhere(executor: headway.ray.Executor, name: str) -> None:
    """Where shards are makes no difference, and where a gradient's are, neither does how many there are."""
    settings = settings_for(name, shards=2)
    here, there = (
        trained(settings, TRAIN, DEV, workers=CopyingWorkers()),
        trained(settings, TRAIN, DEV, workers=executor),
    )
    np.testing.assert_array_equal(best(there), best(here))
    assert there.history == here.history
    if name == "lbfgs":
        one = trained(settings_for(name), TRAIN, DEV)
        np.testing.assert_allclose(best(there), best(one), atol=1e-7 * float(np.abs(best(one)).max()))


@pytest.mark.parametrize("name", ["lbfgs", "margin"])
def test_a_lost_worker_changes_nothing(executor: headway.ray.Executor, name: str) -> None:
    watched = Watched(executor)
    attacked = trained(settings_for(name, shards=2), TRAIN, DEV, None, watched.kill_one, watched)
    whole = trained(settings_for(name, shards=2), TRAIN, DEV, workers=CopyingWorkers())
    np.testing.assert_array_equal(best(attacked), best(whole))


def test_lost_duals_are_in_the_checkpoint(
    executor: headway.ray.Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "CHECKPOINT_SECONDS", -1.0)
    watched, settings = Watched(executor), settings_for("eg", shards=2)
    with pytest.raises(TrainingError, match="a worker was lost"):
        trained(settings, TRAIN, DEV, tmp_path, watched.kill_one, watched)
    again = trained(settings, TRAIN, DEV, tmp_path, workers=executor)
    np.testing.assert_array_equal(best(again), best(trained(settings, TRAIN, DEV, workers=CopyingWorkers())))


def test_a_lost_node(cluster: Cluster, executor: headway.ray.Executor) -> None:
    """Its pieces go where there is room. The last test: the cluster is smaller afterwards."""
    with executor.hold(pieces(2)) as held:
        before = {pid for _, _, pid in held.each(with_piece)}
        assert len(before) == 2
        cluster.remove_node(cluster.list_all_nodes()[-1])
        time.sleep(0.1)
        after = held.each(with_piece)
    assert sorted(calls for calls, _, _ in after) == [1, 2]
    assert len(before & {pid for _, _, pid in after}) == 1


def test_no_cluster_is_one_sentence(executor: headway.ray.Executor) -> None:
    ray.shutdown()
    with pytest.raises(ArgumentError, match=r"no Ray cluster answers at '127.0.0.1:1' .* ray start --head"):
        headway.ray.Executor("127.0.0.1:1")
