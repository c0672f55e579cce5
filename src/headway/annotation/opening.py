"""Which treebank a given file stands for: itself, or one that is made from its text and written beside it.

`NAME.txt` is split into sentences and words by the model, and becomes `NAME.conllu`; its first comment says from which
text it was made, so that the same command goes on with it later. A file of that name that was made otherwise is never
overwritten.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headway.annotation.decoding import Parses
from headway.errors import TreebankError
from headway.treebank import Sentence, write_treebank
from headway.treebank.annotations import with_first_comments
from headway.treebank.files import format_of
from headway.treebank.inputs import open_input

_SOURCE = "# made_from = "


def treebank_for(path: Path, parser: Parses | None) -> Path:
    """The CoNLL-U file to annotate; made from the text if the path is one's."""
    name = str(path)
    if path.suffix.lower() in (".gz", ".xz"):
        raise TreebankError("a compressed file cannot be annotated; unpack it first", name)
    if format_of(path) == "conllx":
        raise TreebankError("CoNLL-X has no place for notes; convert the file to CoNLL-U first (.conllu)", name)
    if path.is_dir():
        raise TreebankError("this is a folder; give the name of a CoNLL-U file or of a text", name)
    with open_input(path) as given:
        if given.format != "text" or not path.stat().st_size:
            return path
    target = path.with_suffix(".conllu")
    source = f"{_SOURCE}{path.name} sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}"
    if target.exists():
        _require_made_from(target, path, source)
        return target
    write_treebank(_sentences(path, parser, source), target, format="conllu")
    return target


def _require_made_from(target: Path, path: Path, source: str) -> None:
    with target.open("rb") as file:
        first = file.readline(1 << 16).decode(errors="replace").rstrip("\r\n")
    if first == source:
        return
    if first.startswith(f"{_SOURCE}{path.name} "):
        raise TreebankError(
            f"the text has changed since {target.name} was made from it; annotate {target.name} to go on with the "
            "text as it was, or move it away to begin again",
            str(path),
        )
    raise TreebankError(
        f"{target.name} is there already, and was not made from this text; annotate {target.name} itself, or move it "
        "away",
        str(path),
    )


def _sentences(path: Path, parser: Any, source: str) -> Iterator[Sentence]:
    if getattr(parser, "segmenter", None) is None:
        cause = "a text has to be split into words first; give a model that can do that, such as en"
        raise TreebankError(cause, str(path))
    with open_input(path, "text") as given:
        first: tuple[str, ...] = (source,)
        for portion in given.portions(parser):
            for sentence in portion:
                yield with_first_comments(sentence, *first)
                first = ()
