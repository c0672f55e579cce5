"""`parse_corpus`: what `headway parse-corpus` does, from Python.

```python
from headway.ray.corpus import parse_corpus
totals = parse_corpus(["news/*.txt"], "trees", model="en", workers=8)                 # on this machine
totals = parse_corpus(["s3://bucket/*.jsonl"], "s3://bucket/trees", address="auto")   # on a Ray cluster
```
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from headway.extras import require_extra
from headway.named_models import path_of_model
from headway.ray.job import Job, Progress
from headway.ray.manifest import CorpusFolder, Identity
from headway.ray.plan import Kind, inputs_of, plan, require_documents, shard_bytes
from headway.ray.pool import Pool
from headway.ray.worker import Settings, Work

DEFAULT = Settings()


def parse_corpus(
    inputs: Sequence[str],
    output: str,
    *,
    model: str = "en",
    settings: Settings = DEFAULT,
    kind: Kind | None = None,
    address: str | None = None,
    workers: int | None = None,
    device: str = "cpu",
    document_seconds: float = 300.0,
    show: Callable[[Progress], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
) -> dict[str, int]:
    """Parse all documents that are not parsed yet; returns the folder's totals.

    Without an address, `workers` processes of this machine do it, one by default; with one, a Ray cluster, by default
    on every core (on every GPU, with `device` "cuda"). `show` is called five times a second, `note` with what happened.
    """
    found = inputs_of(inputs, kind)
    require_documents(found, settings.unit)
    size = settings.shard_bytes or shard_bytes(found)
    settings = replace(settings, shard_bytes=size)
    path = Path(path_of_model(model)).absolute()
    folder = CorpusFolder(output, Identity(model, hashlib.sha256(path.read_bytes()).hexdigest(), settings, found))
    with folder.claim():
        folder.open()
        shards = partial(plan, found, settings.unit, size)
        work = Work(str(path), device, settings, folder.drafts)
        pool = _pool(work, address, workers)
        try:
            Job(pool, folder, shards, seconds=document_seconds, show=show, note=note).run()
        finally:
            pool.close()
            folder.remove_drafts()
        return folder.finish()


def _pool(work: Work, address: str | None, workers: int | None) -> Pool:
    if address is None:
        from headway.ray.processes import Processes

        return Processes(work, workers or 1)
    require_extra("ray", "ray", "a cluster")
    from headway.ray.actors import Actors

    return Actors(work, address, workers)
