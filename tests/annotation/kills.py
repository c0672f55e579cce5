"""An annotator whose process is killed again and again: is any change lost that was acknowledged?

`python -m tests.annotation.kills 200` kills 200 processes at random moments and prints what was lost, which must be
nothing. A process makes random changes and undoes some of them; a change counts as acknowledged when the process has
said so, after `Workspace.edit` returned. Every next process goes on with the same file.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headway.annotation import EditError, Workspace
from headway.annotation.edits import Delete, Edit, Insert, Join, SetDone, SetHead, SetNote, Split, Unpin
from headway.annotation.journal import Change, read_journal
from headway.annotation.state import State
from tests.annotation.toys import FOUR

REPOSITORY = Path(__file__).resolve().parents[2]
_LONGEST_LIFE = 0.6  # seconds after the first change


@dataclass
class Report:
    """What was acknowledged, by sentence and version, and what of that was lost."""

    acknowledged: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)
    lost: list[tuple[int, int]] = field(default_factory=list)
    kills: int = 0


def annotate(path: str, seed: int) -> None:
    """Make random changes for ever, and say so after each."""
    rng = random.Random(seed)
    with Workspace.open(path) as workspace:
        while True:
            i = rng.randrange(len(workspace))
            state = workspace.state(i)
            try:
                done = rng.random()
                if done < 0.2:
                    after = workspace.undo(i, state.version)
                elif done < 0.3:
                    after = workspace.redo(i, state.version)
                else:
                    after = workspace.edit(i, state.version, _random_edit(state, rng))
            except EditError:
                continue
            if after.version > state.version:
                print(json.dumps([i, after.version, after.to_record()]), flush=True)


def _random_edit(state: State, rng: random.Random) -> Edit:
    n = len(state.sentence)
    word = rng.randint(1, n)
    choices: list[Edit] = [
        SetHead(word, rng.randint(0, n), "dep"),
        Unpin(word),
        SetNote(str(rng.random())),
        Split(word, at=1),
        Insert(word, "new") if n < 12 else Delete(word),
        Join(word),
        SetDone(),
    ]
    return rng.choice(choices)


def kill_annotators(path: Path, kills: int, seed: int = 0) -> Report:
    """Kill so many processes, each at a random moment, and look for every acknowledged change after each."""
    rng, report = random.Random(seed), Report()
    for number in range(kills):
        for i, version, record in _acknowledged(path, seed + number, rng.uniform(0, _LONGEST_LIFE)):
            report.acknowledged[i, version] = record
        report.kills += 1
        report.lost += _missing(path, report.acknowledged)
    return report


def _acknowledged(path: Path, seed: int, life: float) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """What a process says before it is killed, so many seconds after its first change."""
    command = [sys.executable, "-m", "tests.annotation.kills", "annotate", str(path), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(life)
        process.send_signal(signal.SIGKILL)
        for line in (first + process.stdout.read()).splitlines(keepends=True):
            if line.endswith(b"\n"):
                i, version, record = json.loads(line)
                yield i, version, record


def _missing(path: Path, acknowledged: dict[tuple[int, int], dict[str, Any]]) -> list[tuple[int, int]]:
    """The changes that the journal lacks, or has otherwise; and the sentences that are not as the last change left."""
    recorded = {
        (record.sentence, record.version): dict(record.after)
        for _, _, record in read_journal(path.with_name(f"{path.name}.journal"))
        if isinstance(record, Change)
    }
    missing = [key for key, record in acknowledged.items() if recorded.get(key) != record]
    with Workspace.open(path) as workspace:
        for i in range(len(workspace)):
            state = workspace.state(i)
            last = max((version for sentence, version in acknowledged if sentence == i), default=0)
            if state.version < last or (state.version == last and last and state.to_record() != acknowledged[i, last]):
                missing.append((i, last))
    return missing


def main(*words: str) -> None:
    if words[0] == "annotate":
        annotate(words[1], int(words[2]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.conllu"
        path.write_text(FOUR)
        report = kill_annotators(path, int(words[0]))
    print(f"{report.kills} kills, {len(report.acknowledged)} acknowledged changes, {len(report.lost)} lost")


if __name__ == "__main__":
    main(*sys.argv[1:])
