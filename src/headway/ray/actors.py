"""Workers that are actors of a Ray cluster, a core (or a GPU) each.

The model's file travels through Ray's object store, once to every node, and lies there in the temporary folder under
its checksum. Actors belong to this process: if it is killed, Ray ends them. Ray restarts none; the job starts others,
so that it knows what happened.
"""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError

from headway.atomic import write_file
from headway.errors import HeadwayError
from headway.ray.connection import connect
from headway.ray.pool import Answer, Lost
from headway.ray.worker import Failed, Ready, ShardWorker, Step, Task, Work

_BETWEEN_LOOKS = 2.0  # seconds, at what the cluster has


class Actors:
    """A pool of actors: `size` of them, or one for every core or GPU of the cluster."""

    def __init__(self, work: Work, address: str, size: int | None = None) -> None:
        self._given_size = size
        self._resource = "GPU" if work.device == "cuda" else "CPU"
        self._own = connect(address)
        self._work = work
        self._model = ray.put(Path(work.model).read_bytes())
        gpus = 1 if self._resource == "GPU" else 0
        self._class = ray.remote(num_cpus=1, num_gpus=gpus, max_restarts=0, max_task_retries=0)(Actor)
        self._actors: dict[int, Any] = {}
        self._calls: dict[Any, int] = {}
        self._started = self._found = 0
        self._looked = -math.inf

    @property
    def size(self) -> int:
        """As many as were asked for, or as there are cores or GPUs now; one at least, to wait for a node."""
        if self._given_size is not None:
            return self._given_size
        if time.monotonic() - self._looked > _BETWEEN_LOOKS:
            self._looked, self._found = time.monotonic(), int(ray.cluster_resources().get(self._resource, 0))
        return max(1, self._found)

    def start(self) -> int:
        """Ask for an actor; it starts when a node has room."""
        self._started += 1
        self._actors[self._started] = actor = self._class.remote(self._work, self._model)
        self._calls[actor.ready.remote()] = self._started
        return self._started

    def call(self, worker: int, method: str, *arguments: Any) -> None:
        """Send the call."""
        self._calls[getattr(self._actors[worker], method).remote(*arguments)] = worker

    def wait(self, seconds: float) -> list[Answer]:
        """The answers that have come."""
        if not self._calls:
            return []
        done, _ = ray.wait(list(self._calls), num_returns=len(self._calls), timeout=0)
        if not done:
            done, _ = ray.wait(list(self._calls), num_returns=1, timeout=seconds)
        return [self._answer(call) for call in done]

    def stop(self, worker: int) -> None:
        """Kill the actor."""
        ray.kill(self._actors.pop(worker), no_restart=True)
        self._calls = {call: own for call, own in self._calls.items() if own != worker}

    def close(self) -> None:
        """Kill all actors, and leave the cluster."""
        for worker in list(self._actors):
            self.stop(worker)
        if self._own:
            ray.shutdown()

    def _answer(self, call: Any) -> Answer:
        worker = self._calls.pop(call)
        try:
            return Answer(worker, ray.get(call))
        except RayError as error:
            self.stop(worker)
            return Answer(worker, Lost(_cause(error)))


class Actor:
    """A worker in an actor. A model that cannot be loaded is an answer; an actor that fails to start would be lost."""

    def __init__(self, work: Work, model: bytes) -> None:
        self._worker: ShardWorker | None = None
        self._problem = ""
        try:
            self._worker = ShardWorker(replace(work, model=_on_this_node(model)))
        except (HeadwayError, OSError, MemoryError) as error:
            self._problem = str(error) or "out of memory"

    def ready(self) -> Ready | Failed:
        return Failed("start", self._problem) if self._worker is None else self._worker.ready()

    def begin(self, task: Task) -> Step | Failed:
        assert self._worker is not None
        return self._worker.begin(task)

    def step(self) -> Step | Failed:
        assert self._worker is not None
        return self._worker.step()


def _on_this_node(model: bytes) -> str:
    """The model as a file of this node, written by whoever comes first."""
    name = hashlib.sha256(model).hexdigest()
    folder = Path(tempfile.gettempdir()) / f"headway-{os.getuid() if hasattr(os, 'getuid') else 'models'}"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{name[:32]}.headway"
    if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != name:
        write_file(path, model)
    return str(path)


def _cause(error: RayError) -> str:
    """Why an actor ended, in one line."""
    reason = getattr(error, "error_msg", "") or str(error)
    lines = [line.strip() for line in str(reason).splitlines() if line.strip()]
    kind = "its actor ended" if isinstance(error, RayActorError) else type(error).__name__
    return f"{kind} ({lines[0] if lines else 'no reason given'})"
