"""What a folder of a parsed corpus holds, for tests that count."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any


def contents(folder: Path) -> dict[str, bytes]:
    """All trees and errors, by the name of the file."""
    files = [*(folder / "shards").iterdir(), *(folder / "errors").glob("*")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(files)}


def errors(folder: Path) -> dict[str, str]:
    """The documents that could not be parsed, with the reasons."""
    lines = [line for path in sorted(folder.glob("errors/*")) for line in path.read_text("utf-8").splitlines()]
    found = [json.loads(line) for line in lines]
    assert len({error["id"] for error in found}) == len(found)
    return {error["id"]: error["reason"] for error in found}


def sentence_ids(folder: Path) -> list[str]:
    """The sentences in the order of the shards."""
    pattern = re.compile(r"^# sent_id = (.*)$", re.MULTILINE)
    return [id for path in sorted(folder.glob("shards/*")) for id in pattern.findall(path.read_text("utf-8"))]


def manifest(folder: Path) -> dict[str, Any]:
    """The manifest, after its counts and checksums have been compared with what is there."""
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text("utf-8"))
    for name in ("documents", "errors", "words", "sentences", "bytes"):
        assert found["totals"][name] == sum(shard[name] for shard in found["shards"])
    assert [shard["shard"] for shard in found["shards"]] == list(range(found["totals"]["shards"]))
    for shard in found["shards"]:
        data = (folder / shard["file"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (shard["bytes"], shard["sha256"])
        if shard["errors"]:
            lines = (folder / shard["errors_file"]).read_bytes()
            assert hashlib.sha256(lines).hexdigest() == shard["errors_sha256"]
            assert lines.count(b"\n") == shard["errors"]
    assert not (folder / ".drafts").exists()
    expected = {shard["file"] for shard in found["shards"]} | {s["errors_file"] for s in found["shards"] if s["errors"]}
    assert set(contents(folder)) == expected
    return found


def unpacked(path: Path) -> str:
    """The text of a file packed with gzip."""
    return gzip.decompress(path.read_bytes()).decode()
