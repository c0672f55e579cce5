"""The folder of a parsed corpus: what it is of, what is done, and how a shard becomes done.

    job.json             model, settings and inputs: the same command must mean the same
    inputs.jsonl         a line for each input: path, bytes, and what changes with its content
    shards/000017.conllu the trees
    errors/000017.jsonl  the documents of that shard that could not be parsed, with the reasons
    manifest/000017.json counts and checksums; a shard is done when this is there
    manifest.json        all of that, once every shard is done

Workers write drafts, under names of their own. One process, the leader, gives a finished draft its name, then writes
the entry of the shard, each whole or not at all. A worker that was taken for lost and is not can therefore harm
nothing; a leader that is killed in between leaves a shard without an entry, which is done again and replaced.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headway import __version__
from headway.atomic import claimed, remedy
from headway.errors import CorpusError
from headway.ray.places import LOCAL, place_of
from headway.ray.plan import Input
from headway.ray.worker import Settings

_COUNTS = ("documents", "errors", "empty", "sentences", "words", "bytes")


@dataclass(frozen=True)
class Identity:
    """What a corpus is parsed from, and how."""

    model: str
    model_sha256: str
    settings: Settings
    inputs: Sequence[Input]

    def to_dict(self) -> dict[str, Any]:
        """As job.json has it; the inputs are in their own file."""
        lines = self.input_lines().encode()
        return {
            "headway": __version__,
            "model": self.model,
            "model_sha256": self.model_sha256,
            "settings": asdict(self.settings),
            "files": len(self.inputs),
            "bytes": sum(each.size for each in self.inputs),
            "inputs_sha256": hashlib.sha256(lines).hexdigest(),
        }

    def input_lines(self) -> str:
        """The inputs, a line of JSON each."""
        return "".join(json.dumps(each._asdict(), ensure_ascii=False) + "\n" for each in self.inputs)


class CorpusFolder:
    """The folder of a parsed corpus, as its leader sees it."""

    def __init__(self, path: str, identity: Identity) -> None:
        self.path = path.rstrip("/") if "://" in path else Path(path).absolute().as_posix()  # workers are elsewhere
        self._identity = identity
        self._place = place_of(path)
        self._entries: dict[int, str] = {}  # as JSON: a corpus may have many

    @property
    def drafts(self) -> str:
        """Where workers write."""
        return f"{self.path}/.drafts"

    @property
    def done(self) -> int:
        """How many shards are done."""
        return len(self._entries)

    def is_done(self, shard: int) -> bool:
        """Whether there is nothing left to do for a shard."""
        return shard in self._entries

    def claim(self) -> AbstractContextManager[None]:
        """Keep the folder to this process. Only files of this machine can be locked."""
        if self._place is not LOCAL:
            return nullcontext()
        refusal = CorpusError(f"{self.path}: in use by another parse-corpus; wait for it, or give another -o")
        return claimed(Path(self.path), refusal)

    def open(self) -> None:
        """Begin, or go on: refuse the folder of another corpus, find out what is done, remove what is half written."""
        job, names = f"{self.path}/job.json", {found.path for found in self._place.expand(self.path)}
        if not any(name.endswith("/job.json") for name in names):
            if self.path in names:
                raise CorpusError(f"{self.path}: a file, not a folder; give another -o")
            if names:
                raise CorpusError(f"{self.path}: the folder has other files in it; give a new one")
            self._write("inputs.jsonl", self._identity.input_lines())
            self._write("job.json", json.dumps(self._identity.to_dict(), indent=1) + "\n")
        else:
            self._require_same(json.loads(self._read(job)))
        self.remove_drafts()
        self._entries = dict(self._kept())

    def commit(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Give the drafts of a shard their names, and write down that it is done."""
        number, suffix = entry["shard"], self._identity.settings.suffix
        draft, errors_draft = entry.pop("draft"), entry.pop("errors_draft")
        entry["file"] = f"shards/{number:06d}{suffix}"
        entry["errors_file"] = f"errors/{number:06d}.jsonl" if errors_draft else None
        try:
            self._place.move(draft, f"{self.path}/{entry['file']}")
        except FileNotFoundError:
            raise CorpusError(
                f"{draft}: written on {entry['host']}, and not to be seen here; give a folder that all nodes share"
            ) from None
        except OSError as error:
            raise self._unwritable(entry["file"], error) from None
        if errors_draft:
            self._place.move(errors_draft, f"{self.path}/{entry['errors_file']}")
        else:  # of an attempt that a kill kept from being written down
            self._place.remove(f"{self.path}/errors/{number:06d}.jsonl")
        line = json.dumps(entry)
        self._write(f"manifest/{number:06d}.json", f"{line}\n")
        self._entries[number] = line
        return entry

    def finish(self) -> dict[str, Any]:
        """Write the manifest of all shards; returns the totals."""
        totals = self.totals()
        head = json.dumps({**self._identity.to_dict(), "totals": totals}, indent=1).removesuffix("\n}")
        shards = ",\n  ".join(self._entries[number] for number in sorted(self._entries))
        self._write("manifest.json", f'{head},\n "shards": [\n  {shards}\n ]\n}}\n')
        return totals

    def totals(self) -> dict[str, Any]:
        """The sums over all shards that are done."""
        totals = dict.fromkeys(("shards", *_COUNTS), 0)
        for line in self._entries.values():
            entry = json.loads(line)
            totals["shards"] += 1
            for name in _COUNTS:
                totals[name] += entry[name]
        return totals

    def remove_drafts(self) -> None:
        """Remove what workers left half written."""
        self._place.remove(self.drafts)

    def _kept(self) -> Sequence[tuple[int, str]]:
        """The entries of shards that are done, and whose files are still there."""
        sizes = {found.path.rpartition("/")[2]: found.size for found in self._place.expand(f"{self.path}/shards")}
        kept = []
        for found in self._place.expand(f"{self.path}/manifest"):
            line = self._read(found.path).strip()
            entry = json.loads(line)
            if sizes.get(entry["file"].rpartition("/")[2]) == entry["bytes"]:
                kept.append((int(entry["shard"]), line))
        return kept

    def _require_same(self, begun: dict[str, Any]) -> None:
        """Refuse to go on with something else than was begun."""
        now = json.loads(json.dumps(self._identity.to_dict()))
        if begun == now:
            return
        remedy = "or give another -o"
        if begun["inputs_sha256"] != now["inputs_sha256"]:
            raise CorpusError(f"{self.path}: begun with other inputs ({self._changed()}); restore them, {remedy}")
        if begun["model_sha256"] != now["model_sha256"]:
            raise CorpusError(f"{self.path}: begun with another model ({begun['model']}); give that one, {remedy}")
        for name, value in now["settings"].items():
            old = begun["settings"].get(name)
            if old != value:
                raise CorpusError(f"{self.path}: begun with {name} {old!r}, not {value!r}; say the same, {remedy}")
        if begun["headway"] != now["headway"]:
            raise CorpusError(f"{self.path}: begun with Headway {begun['headway']}; use that version, {remedy}")

    def _changed(self) -> str:
        """The first input that is not what it was."""
        before = dict.fromkeys(self._read(f"{self.path}/inputs.jsonl").splitlines(keepends=True))
        now = dict.fromkeys(self._identity.input_lines().splitlines(keepends=True))
        old = {json.loads(line)["path"] for line in before if line not in now}
        new = {json.loads(line)["path"] for line in now if line not in before}
        for paths, what in ((old & new, "has changed"), (old - new, "is missing now"), (new - old, "is new")):
            if paths:
                return f"{min(paths)} {what}"
        return "they come in another order"

    def _read(self, path: str) -> str:
        with self._place.read(path) as file:
            return file.read().decode()

    def _write(self, name: str, content: str) -> None:
        try:
            self._place.write(f"{self.path}/{name}", content)
        except OSError as error:
            raise self._unwritable(name, error) from None

    def _unwritable(self, name: str, error: OSError) -> CorpusError:
        cause = f"writing failed ({error.strerror or error}); {remedy(error)}"
        return CorpusError(f"{self.path}/{name}: {cause}")
