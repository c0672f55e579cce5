"""A kind of model for whose sake no kernel is compiled, and some words that it cannot bear.

A word's head is the one before it. KILL ends the process, HANG never returns, BROKEN raises, SLOW takes a moment. A
worker that finds the file `$HEADWAY_TEST_FULL` takes it away, and can from then on write no file of more than 4 kB.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from headway.archive import Archive
from headway.arrays import TreeClass
from headway.models.constraints import Constraints
from headway.models.protocol import Description, Options, Prediction, Task
from headway.models.stretches import StretchedDistribution
from headway.parallel import Executor
from headway.pipeline import Parser
from headway.treebank import Sentence

ENTRY_POINTS = "[headway.model_kinds]\npoison = tests.ray.poison:PoisonModel\n"
FULL = "HEADWAY_TEST_FULL"
_SMALL = 4096  # bytes


@dataclass(frozen=True)
class PoisonModel:
    about: Mapping[str, Any] = field(default_factory=dict)
    trees: TreeClass = TreeClass()  # noqa: RUF009
    kind: ClassVar[str] = "poison"
    task: ClassVar[Task] = "parsing"
    requires = frozenset({"words"})

    def predict(
        self,
        given: Sequence[Sentence],
        options: Options,
        executor: Executor,
        constraints: Sequence[Constraints | None] | None = None,
    ) -> list[Prediction]:
        return [self._tree(sentence) for sentence in given]

    def _tree(self, sentence: Sentence) -> Prediction:
        if "KILL" in sentence.forms:
            os.kill(os.getpid(), signal.SIGKILL)
        if "HANG" in sentence.forms:
            time.sleep(3600)
        if "BROKEN" in sentence.forms:
            raise ValueError("this cannot be parsed")
        if "SLOW" in sentence.forms:
            time.sleep(0.02)
        heads = np.arange(-1, len(sentence))
        return Prediction(heads, None, StretchedDistribution(heads, np.ones(len(sentence) + 1), 0.0))

    def with_trees(self, trees: TreeClass) -> PoisonModel:
        return self

    def describe(self) -> Description:
        return Description((("model", "poison"),))

    def to_archive(self) -> Archive:
        return Archive(self.kind, {"about": {}}, {})

    @classmethod
    def from_archive(cls, archive: Archive) -> PoisonModel:
        with suppress(KeyError, FileNotFoundError):
            Path(os.environ[FULL]).unlink()
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (_SMALL, _SMALL))
        return cls()


def save_poison(folder: Path) -> Path:
    """A model in a folder that, on the path of Python, makes the kind known."""
    known = folder / "poison-1.0.dist-info"
    known.mkdir(parents=True)
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: poison\nVersion: 1.0\n")
    (known / "entry_points.txt").write_text(ENTRY_POINTS)
    Parser(PoisonModel()).save(folder / "poison.headway")
    return folder / "poison.headway"


def treebank(*sentences: str) -> str:
    """Sentences of words between spaces as CoNLL-U, numbered."""
    lines = []
    for number, words in enumerate(sentences, start=1):
        lines += [
            f"# sent_id = s{number}",
            *(f"{m}\t{word}" + 8 * "\t_" for m, word in enumerate(words.split(), 1)),
            "",
        ]
    return "".join(f"{line}\n" for line in lines)
