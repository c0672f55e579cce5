"""How parsed documents are written: CoNLL-U, JSON lines or Parquet.

A document is data of one shape, a line of JSON or a row of Parquet:

```json
{"id": "news.jsonl:0", "sentences": [{"text": "Dogs bark.", "form": ["Dogs", "bark", "."], "head": [2, 0, 2], ...}]}
```

Every sentence has a list for each column of CoNLL-U, an entry for each word: `form`, `lemma`, `upos`, `xpos`, `feats`,
`head` (0 for the root), `deprel`; for words of a text `start` and `end`, in characters of the document; with
probabilities, `head_probability`. What is unknown is "_", as in CoNLL-U, or an empty list. A document without words has
no sentences; CoNLL-U has nothing to write for it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol

from headway.errors import printable
from headway.extras import require_extra
from headway.treebank.annotations import with_first_comments

if TYPE_CHECKING:
    from headway.parsed import Parsed

Format = Literal["conllu", "jsonl", "parquet"]
FORMATS: tuple[Format, ...] = ("conllu", "jsonl", "parquet")

_DIGITS = 6  # of a probability


class Output(Protocol):
    """A file of parsed documents. A sentence becomes what will be written of it as soon as it is parsed: its scores are
    large."""

    def sentence(self, id: str, number: int, found: Parsed) -> Any:
        """What is written of sentence `number` (from 1) of a document."""
        ...

    def write(self, documents: Sequence[tuple[str, list[Any]]]) -> None:
        """Write documents, each with its sentences."""
        ...

    def close(self) -> None:
        """Write what is left; the file itself stays open."""
        ...


class Hashed:
    """A file that counts and hashes what is written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.size = 0
        self._hash = hashlib.sha256()
        self.closed = False  # Arrow asks

    def write(self, data: bytes) -> int:
        self._hash.update(data)
        self.size += len(data)
        self.file.write(data)
        return len(data)

    def flush(self) -> None:
        self.file.flush()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


def output_to(file: Hashed, format: Format, *, packed: bool, probabilities: bool) -> Output:
    """What writes to a file, packed with gzip or not."""
    if format == "parquet":
        return ParquetOutput(file, probabilities)
    stream = gzip.GzipFile("", "wb", 6, file, mtime=0) if packed else file  # no name and time: same trees, same bytes
    return ConlluOutput(stream, probabilities) if format == "conllu" else JsonOutput(stream, probabilities)


@dataclass(frozen=True)
class ConlluOutput:
    """Sentences as CoNLL-U. Those of a treebank keep their comments; those of a text get `newdoc id` and `sent_id`."""

    stream: Any
    probabilities: bool

    def sentence(self, id: str, number: int, found: Parsed) -> str:
        noted = found.noted(probabilities=self.probabilities)
        if noted.place.line:  # read from a treebank
            return noted.to_conllu()
        new = [f"# newdoc id = {printable(id)}"] if number == 1 else []
        return with_first_comments(noted, *new, f"# sent_id = {printable(id)}-{number}").to_conllu()

    def write(self, documents: Sequence[tuple[str, list[Any]]]) -> None:
        self.stream.write("".join(text for _, sentences in documents for text in sentences).encode())

    def close(self) -> None:
        _close(self.stream)


@dataclass(frozen=True)
class JsonOutput:
    """A line of JSON for each document."""

    stream: Any
    probabilities: bool

    def sentence(self, id: str, number: int, found: Parsed) -> dict[str, Any]:
        return plain_sentence(found, probabilities=self.probabilities)

    def write(self, documents: Sequence[tuple[str, list[Any]]]) -> None:
        lines = (json.dumps({"id": id, "sentences": data}, ensure_ascii=False) for id, data in documents)
        self.stream.write("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        _close(self.stream)


class ParquetOutput:
    """A row for each document."""

    def __init__(self, file: Any, probabilities: bool) -> None:
        require_extra("pyarrow", "ray", "Parquet")
        from pyarrow import parquet

        self._probabilities = probabilities
        self._writer = parquet.ParquetWriter(file, arrow_schema(), compression="zstd")

    def sentence(self, id: str, number: int, found: Parsed) -> dict[str, Any]:
        return plain_sentence(found, probabilities=self._probabilities)

    def write(self, documents: Sequence[tuple[str, list[Any]]]) -> None:
        import pyarrow

        rows = [{"id": id, "sentences": data} for id, data in documents]
        self._writer.write_table(pyarrow.Table.from_pylist(rows, self._writer.schema))

    def close(self) -> None:
        self._writer.close()


def plain_sentence(found: Parsed, *, probabilities: bool) -> dict[str, Any]:
    """A sentence as plain data, column by column."""
    sentence, offsets = found.sentence, found.offsets or ()
    return {
        "text": found.text,
        "form": sentence.forms,
        "lemma": sentence.lemmas,
        "upos": sentence.upos,
        "xpos": sentence.xpos,
        "feats": sentence.feats,
        "head": found.heads[1:].tolist(),
        "deprel": found.labels[1:],
        "start": [start for start, _ in offsets],
        "end": [end for _, end in offsets],
        "head_probability": found.confidence.arcs[1:].round(_DIGITS).tolist() if probabilities else [],
    }


def arrow_schema() -> Any:
    """The columns of a Parquet file."""
    import pyarrow

    return pyarrow.schema([("id", pyarrow.string()), ("sentences", arrow_sentences())])


def arrow_sentences() -> Any:
    """The type of a document's sentences."""
    import pyarrow

    words, numbers = pyarrow.list_(pyarrow.string()), pyarrow.list_(pyarrow.int32())
    columns = dict.fromkeys(("form", "lemma", "upos", "xpos", "feats"), words)
    columns |= {"head": numbers, "deprel": words, "start": numbers, "end": numbers}
    columns |= {"head_probability": pyarrow.list_(pyarrow.float32())}
    return pyarrow.list_(pyarrow.struct([("text", pyarrow.string()), *columns.items()]))


def _close(stream: Any) -> None:
    if isinstance(stream, gzip.GzipFile):
        stream.close()
