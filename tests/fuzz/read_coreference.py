"""Documents with `Entity=` marks: damaged, or marked at random; read, scored, written and read again."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from headway.coreference import Document, evaluate_coreference, read_documents, tree_mentions, write_documents
from headway.errors import HeadwayError, TreebankError
from tests.fuzz.harness import Draw, check_message, expecting_success
from tests.fuzz.mutations import ODD, damaged, pick

EXAMPLE = Path(__file__).parents[2] / "examples" / "coreference.conllu"
HEADERS = ("eid-etype-head-other", "GRP-etype", "eid", "eid-eid", "etype", "", "eid-etype-head-minspan-infstat-link")
MARKS: tuple[str, ...] = (
    "(e1",
    "e1)",
    "(e1-person)",
    "(e2-place-1",
    "e2)",
    "(e1[1/2]",
    "e1[1/2])",
    "(e1[2/2])",
    "(e1[2/1])",
    "(",
    ")",
    "()",
)
MARKS += (
    "(e1)(e1)",
    "(e1(e2",
    "e2)e1)",
    "(e1-person-1-x-y-z)",
    "(e1[1/99999999999])",
    "(e3-person)(e4",
    "e4)(e3)",
    "(e1)|",
)
LINKS = ("Bridge=e1<e2", "SplitAnte=e1<e3,e2<e3", "Bridge=<", "SplitAnte=e9", "Entity=", "Entity")


def documents(folder: Path) -> Draw:
    """Draws that read documents and use them; every question is asked of what was read."""
    text = EXAMPLE.read_bytes()

    def draw(rng: np.random.Generator) -> str | None:
        if rng.random() < 0.5:
            data = damaged(rng, text[: int(rng.integers(len(text)))])
        else:
            data = _made(rng).encode("utf-8", "replace")
            data = damaged(rng, data) if rng.random() < 0.3 else data
        return _use(data)

    return draw


def _use(data: bytes) -> str:
    skipped: list[TreebankError] = []
    found = list(read_documents(io.BytesIO(data), skip_bad=skipped.append))
    for error in skipped:
        check_message(error)
    for document in found:
        _ask(document)
    evaluate_coreference([(document.partition(), document.partition()) for document in found])
    written = io.BytesIO()
    write_documents(found, written)
    written.seek(0)
    with expecting_success():
        again = list(read_documents(written))
    assert [each.partition() for each in again] == [each.partition() for each in found]
    return "some documents skipped" if skipped else "all documents read"


def _ask(document: Document) -> None:
    assert len(document.mentions) == len(document.clusters)
    document.without_singletons()
    try:
        mentions = tree_mentions(document.sentences)
        document.with_mentions(mentions, np.arange(len(mentions)))
    except HeadwayError as error:
        check_message(error)


def _made(rng: np.random.Generator) -> str:
    """Documents of a few short sentences with marks at random."""
    blocks = []
    for number in range(rng.integers(1, 4)):
        lines = [f"# newdoc id = {pick(rng, ('a', 'b', str(number), ''))}"] if rng.random() < 0.5 else []
        lines += [f"# global.Entity = {pick(rng, HEADERS)}"] if rng.random() < 0.5 else []
        n = int(rng.integers(1, 6))
        lines += ["1-2\tdu\t_\t_\t_\t_\t_\t_\t_\tEntity=(e1)"] if n > 1 and rng.random() < 0.05 else []
        for i in range(1, n + 1):
            lines.append(f"{i}\tword\tword\tNOUN\tNN\t_\t{i - 1}\tnmod\t_\t{_misc(rng)}")
        blocks.append("\n".join(lines) + "\n\n")
    return "".join(blocks)


def _misc(rng: np.random.Generator) -> str:
    entries = [f"Entity={''.join(pick(rng, MARKS) for _ in range(rng.integers(1, 3)))}"] if rng.random() < 0.4 else []
    entries += [pick(rng, LINKS)] if rng.random() < 0.1 else []
    entries += [pick(rng, ODD)] if rng.random() < 0.02 else []
    return "|".join(entries) or "_"
