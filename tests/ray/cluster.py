"""A Ray cluster whose nodes are all on this machine, and what can be done to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray
from ray.cluster_utils import Cluster

_STORE = 80 * 1024 * 1024  # bytes, the least that Ray takes


@contextmanager
def one_machine(nodes: int) -> Iterator[Any]:
    """A head that computes nothing, and nodes with a core each; this process is connected to it."""
    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": _STORE}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(nodes):
            add_node(cluster)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def add_node(cluster: Any) -> None:
    """One more node."""
    cluster.add_node(num_cpus=1, object_store_memory=_STORE)


def lose_node(cluster: Any, node: Any) -> None:
    """A node ends as if its plug were pulled."""
    cluster.remove_node(node, allow_graceful=False)


def actors(cluster: Any) -> list[int]:
    """The processes of this cluster's workers on corpora; those of other clusters are nobody's to touch."""
    raylets = {running.process.pid for node in cluster.worker_nodes for running in node.all_processes["raylet"]}
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if parent in raylets and (process / "cmdline").read_bytes().startswith(b"ray::Actor"):
                found.append(int(process.name))
    return found
