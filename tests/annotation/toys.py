"""What the tests of annotation share: a parser without training, files to annotate, and a workspace that is closed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from headway.annotation import Workspace
from headway.arrays import TreeClass
from headway.inference import TreeDistribution
from headway.models.constraints import Constraints, require_tree_under
from headway.parsed import Parsed
from headway.treebank import Sentence

TINY = Path(__file__).resolve().parents[2] / "examples" / "tiny.conllu"

FOUR = """\
# sent_id = s1
# text = Dogs bark loudly.
1\tDogs\tdog\tNOUN\t_\tNumber=Plur\t_\t_\t_\t_
2\tbark\tbark\tVERB\t_\t_\t_\t_\t_\t_
3\tloudly\tloudly\tADV\t_\t_\t_\t_\t_\tSpaceAfter=No
4\t.\t.\tPUNCT\t_\t_\t_\t_\t_\tSpaceAfter=No

# sent_id = s2
# text = Cats sleep.
1\tCats\tcat\tNOUN\t_\tNumber=Plur\t2\tnsubj\t_\t_
2\tsleep\tsleep\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No
3\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_


# sent_id = s3
1\tBirds\tbird\tNOUN\t_\t_\t2\tnsubj\t_\tSuggested=Yes
2\tsing\tsing\tVERB\t_\t_\t0\troot\t_\t_

# sent_id = s4
1\tGo\tgo\tVERB\t_\t_\t_\t_\t_\t_
"""


@dataclass(frozen=True)
class FakeParser:
    """Random scores, the same for the same words whenever; the label says which head it is."""

    seed: int = 0
    trees: TreeClass = TreeClass()  # noqa: RUF009

    def parse(
        self,
        text: Sentence | Sequence[Sentence],
        *,
        heads: Any = None,
        labels: Sequence[str | None] | None = None,
        forbid: Iterable[tuple[int, int]] = (),
        keep_heads: bool = False,
    ) -> Parsed | Iterator[Parsed]:
        if isinstance(text, Sentence):
            return self._parsed(text, None if heads is None else np.asarray(heads), labels, tuple(forbid))
        return (self._parsed(each, each.heads if keep_heads else None, each.labels, ()) for each in text)

    def _parsed(
        self, sentence: Sentence, heads: Any, labels: Sequence[str | None] | None, forbid: tuple[tuple[int, int], ...]
    ) -> Parsed:
        n = len(sentence)
        known = np.full(n + 1, -1) if heads is None else heads
        constraints = Constraints(known, None if labels is None else tuple(labels), forbid)
        require_tree_under(sentence, constraints, self.trees)
        rng = np.random.default_rng([self.seed, *map(_number, sentence.forms)])
        scores = rng.normal(size=(n + 1, n + 1))
        for m in np.flatnonzero(known >= 0).tolist():
            scores[np.arange(n + 1) != known[m], m] = -np.inf
        for h, m in forbid:
            scores[h, m] = -np.inf
        distribution = TreeDistribution(scores, *self.trees)
        best = distribution.argmax()
        own = [None, *("root" if h == 0 else f"dep:{h}" for h in best[1:].tolist())]
        if heads is not None and labels is not None:
            own = [label if known[m] < 0 or labels[m] in (None, "_") else labels[m] for m, label in enumerate(own)]
        return Parsed(sentence.with_tree(best, own), distribution)


def _number(form: str) -> int:
    return crc32(form.encode())


def treebank(folder: Path, text: str | bytes = FOUR, name: str = "a.conllu") -> Path:
    """A file to annotate."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def certain(workspace: Workspace) -> None:
    """Wait until the background has asked about all sentences: every view does that for its sentence."""
    for i in range(len(workspace)):
        workspace.view(i)
