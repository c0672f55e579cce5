"""`headway parse-corpus` from S3 to S3: a server of S3 on this machine, the leader killed while it writes there.

The server and its client are large, so they are not installed for every run of the tests:

    pip install 'moto[server]' s3fs && pytest tests/ray/test_corpus_s3.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ray.folders import contents, manifest, sentence_ids
from tests.ray.poison import save_poison, treebank

moto = pytest.importorskip("moto.server", reason="moto[server] is not installed")
s3fs = pytest.importorskip("s3fs", reason="s3fs is not installed")

REPOSITORY = Path(__file__).resolve().parent.parent.parent
IDS = [f"s{number}" for number in range(1, 121)]


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The file system, with a treebank in the bucket `corpus`."""
    server = moto.ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "anybody")
    system = s3fs.S3FileSystem(use_listings_cache=False, skip_instance_cache=True)
    system.mkdir("corpus")
    system.pipe_file("corpus/in/a.conllu", treebank(*(f"SLOW word {number}" for number in IDS)).encode())
    yield system
    server.stop()


def command(model: Path, output: str) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY), str(model.parent), *filter(None, sys.path)])
    words = ["parse-corpus", "s3://corpus/in/*", "-o", output, "--local", "2", "--model", str(model)]
    return subprocess.Popen(
        [sys.executable, "-m", "headway", *words, "--shard-megabytes", "0.0007"], env={**os.environ, "PYTHONPATH": path}
    )


def test_a_killed_leader_is_followed_by_the_same_command(bucket: Any, tmp_path: Path) -> None:
    model = save_poison(tmp_path / "model")
    assert command(model, "s3://corpus/whole").wait() == 0
    leader = command(model, "s3://corpus/killed")
    while len(bucket.find("corpus/killed/shards")) < 2:
        assert leader.poll() is None
        time.sleep(0.02)
    leader.kill()
    leader.wait()
    assert command(model, "s3://corpus/killed").wait() == 0
    for name in ("whole", "killed"):
        bucket.get(f"corpus/{name}/", str(tmp_path / name), recursive=True)
        manifest(tmp_path / name)
    assert sentence_ids(tmp_path / "whole") == IDS
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
