"""A worker: it loads the model once, and parses one shard after the other, step by step.

    begin(task) -> Step        opens the shard and reads its first documents
    step() -> Step             parses these, and reads the next ones; the last step has the shard's entry

A step is a group of documents, large enough to fill the kernels' batches. Before it begins, whoever leads the job knows
which documents are in it. If the worker is lost, one of these may be the cause: when the shard is done again, they are
parsed one by one (`Task.alone`), and a document that costs one worker after the other is left out (`Task.left_out`).

What is written is a function of the task: the same documents, in the same order, whichever worker does it. It goes to
drafts; the leader gives them their names (`headway.ray.manifest`). A document that cannot be read or parsed goes to the
shard's errors, with the reason.

A method returns a `Failed` instead of raising: errors need not survive the way from another machine.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, NamedTuple

from headway import __version__
from headway.errors import HeadwayError, TrainingError
from headway.ray.documents import Fields, Raw, documents
from headway.ray.outputs import Format, Hashed, output_to
from headway.ray.places import place_of
from headway.ray.plan import Shard, Unit
from headway.treebank import Sentence
from headway.treebank.annotations import with_first_comments
from headway.treebank.raw_text import Newlines, split_paragraphs

CHARACTERS = 1 << 17  # of a step: two thousand sentences, or three
DOCUMENTS = 1 << 11


@dataclass(frozen=True)
class Settings:
    """How a corpus is parsed: all that the output depends on, beside the files and the model.

    Without `shard_bytes`, `plan.shard_bytes` chooses.
    """

    format: Format = "conllu"
    gzip: bool = False
    probabilities: bool = False
    unit: Unit = "file"
    field: str = "text"
    id_field: str | None = None
    newlines: Newlines = "auto"
    shard_bytes: int | None = None

    @property
    def suffix(self) -> str:
        """Of a shard's file."""
        return f".{self.format}" + (".gz" if self.gzip and self.format != "parquet" else "")


@dataclass(frozen=True)
class Work:
    """What a worker is told once: the model's file, where it computes, how to parse, and where drafts go."""

    model: str
    device: str
    settings: Settings
    drafts: str


@dataclass(frozen=True)
class Task:
    """A shard to do. `attempt` counts how often it was begun, in the names of its drafts."""

    shard: Shard
    attempt: str
    alone: tuple[range, ...] = ()
    left_out: Mapping[int, str] = field(default_factory=dict)


class Ready(NamedTuple):
    """A worker that has loaded the model."""

    version: str
    host: str
    process: int


class Step(NamedTuple):
    """Where a worker stands in its shard: documents done, those of the next step, and, after the last, the entry."""

    done: int
    next: int
    words: int
    entry: dict[str, Any] | None = None


class Failed(NamedTuple):
    """What went wrong: at the `start`, with a `model` that cannot parse such files, with what it had to `read` or to
    `write`, or by a `defect` of Headway's."""

    what: Literal["start", "model", "read", "write", "defect"]
    reason: str


class ShardWorker:
    """Parses shards, one at a time."""

    def __init__(self, work: Work) -> None:
        from headway.pipeline import Parser  # whoever leads the workers does without

        self._work = work
        self._parser = Parser.load(work.model, device=work.device)
        self._shard: _OpenShard | None = None

    def ready(self) -> Ready:
        """Who it is."""
        return Ready(__version__, platform.node(), os.getpid())

    def begin(self, task: Task) -> Step | Failed:
        """Open a shard, in place of one that was not finished."""
        self.close()
        return _answer(lambda: self._open(task))

    def step(self) -> Step | Failed:
        """Parse the documents that were read, and read the next ones."""
        return _answer(self._step)

    def close(self) -> None:
        """Drop a shard that was not finished."""
        if self._shard is not None:
            self._shard.close()
            self._shard = None

    def _open(self, task: Task) -> Step:
        if any(piece.kind not in ("conllu", "conllx") for piece in task.shard.pieces):
            self._parser.require_text()
        self._shard = _OpenShard(task, self._work)
        return self._shard.read()

    def _step(self) -> Step:
        assert self._shard is not None
        self._shard.write(self._parse(self._shard.group))
        return self._shard.read()

    def _parse(self, group: Sequence[Raw]) -> list[_Outcome]:
        """What becomes of each document; where something fails, one by one, to find out where."""
        try:
            return self._parse_together(group)
        except Exception as error:
            if len(group) == 1:
                reason = str(error) if isinstance(error, HeadwayError) else f"{type(error).__name__}: {error}"
                return [_Outcome(reason=reason)]
            return [self._parse([raw])[0] for raw in group]

    def _parse_together(self, group: Sequence[Raw]) -> list[_Outcome]:
        assert self._shard is not None
        outcomes = [_Outcome(reason=raw.problem) for raw in group]
        waiting: deque[int] = deque()  # the documents of the drafts that the parser has taken

        def drafts() -> Iterator[Sentence]:
            for number, raw in enumerate(group):
                for draft in self._drafts(raw.content):
                    waiting.append(number)
                    yield draft

        for sentences in self._parser.parse_each(drafts()):
            number = waiting.popleft()
            own = outcomes[number]
            for found in sentences:
                own.sentences.append(self._shard.output.sentence(group[number].id, len(own.sentences) + 1, found))
                own.words += len(found)
        return outcomes

    def _drafts(self, content: str | Sentence | None) -> Iterator[Sentence]:
        """A document's sentences, or drafts of them; the first of each paragraph of a text says that it is."""
        if isinstance(content, Sentence):
            yield content
        elif content is not None:
            for offset, paragraph in split_paragraphs([content]):
                first, *others = self._parser.drafts(paragraph, offset, newlines=self._work.settings.newlines)
                yield with_first_comments(first, "# newpar")
                yield from others


@dataclass
class _Outcome:
    """What becomes of a document: what is written of its sentences, or the reason why nothing is."""

    sentences: list[Any] = field(default_factory=list)
    words: int = 0
    reason: str = ""


class _OpenShard:
    """A shard that is being parsed: the documents of the next step, the drafts, and what has been counted."""

    def __init__(self, task: Task, work: Work) -> None:
        settings, self._place = work.settings, place_of(work.drafts)
        draft = f"{work.drafts}/{task.shard.number:06d}-{task.attempt}"
        self._draft, self._errors_draft = draft + settings.suffix, f"{draft}.errors"
        self._number, self._begun = task.shard.number, time.monotonic()
        self._groups = _groups(task, settings)
        self.group: list[Raw] = []
        self._counts = dict.fromkeys(("documents", "errors", "empty", "sentences", "words"), 0)
        with _writing(self._draft):
            self._file = Hashed(self._place.create(self._draft))
            self.output = output_to(
                self._file, settings.format, packed=settings.gzip, probabilities=settings.probabilities
            )
        self._errors: Hashed | None = None

    def read(self) -> Step:
        """Read the documents of the next step; if there are none, close the drafts."""
        self.group = next(self._groups, [])
        entry = None if self.group else self._entry()
        return Step(self._counts["documents"], len(self.group), self._counts["words"], entry)

    def write(self, outcomes: Sequence[_Outcome]) -> None:
        """Write what became of the documents."""
        pairs = list(zip(self.group, outcomes, strict=True))
        parsed = [(raw.id, own) for raw, own in pairs if not own.reason]
        errors = [{"id": raw.id, "reason": own.reason, "source": raw.source} for raw, own in pairs if own.reason]
        with _writing(self._draft):
            self.output.write([(id, own.sentences) for id, own in parsed])
        if errors:
            self._write_errors("".join(f"{json.dumps(error)}\n" for error in errors))
        self._counts["documents"] += len(pairs)
        self._counts["errors"] += len(errors)
        self._counts["empty"] += sum(not own.sentences for _, own in parsed)
        self._counts["sentences"] += sum(len(own.sentences) for _, own in parsed)
        self._counts["words"] += sum(own.words for _, own in parsed)

    def _write_errors(self, lines: str) -> None:
        with _writing(self._errors_draft):
            if self._errors is None:
                self._errors = Hashed(self._place.create(self._errors_draft))
            self._errors.write(lines.encode())

    def close(self) -> None:
        """Close the drafts, as they are."""
        self._groups.close()
        for close in (self.output.close, self._file.file.close, *([self._errors.file.close] if self._errors else [])):
            with suppress(OSError, ValueError):  # on a full disk, or closed already
                close()

    def _entry(self) -> dict[str, Any]:
        """What the manifest says of the shard, once its drafts are on disk."""
        with _writing(self._draft):
            self.output.close()
            self._place.finish(self._file.file)
        if self._errors is not None:
            with _writing(self._errors_draft):
                self._place.finish(self._errors.file)
        return {
            "shard": self._number,
            **self._counts,
            "bytes": self._file.size,
            "sha256": self._file.sha256,
            "errors_sha256": None if self._errors is None else self._errors.sha256,
            "seconds": round(time.monotonic() - self._begun, 3),
            "host": platform.node(),
            "draft": self._draft,
            "errors_draft": None if self._errors is None else self._errors_draft,
        }


def _groups(task: Task, settings: Settings) -> Generator[list[Raw], None, None]:
    """The documents of each step."""
    fields = Fields(settings.field, settings.id_field)
    read = chain.from_iterable(documents(piece, settings.unit, fields) for piece in task.shard.pieces)
    group: list[Raw] = []
    size = 0
    for number, raw in enumerate(read):
        alone = any(number in some for some in task.alone)
        if group and (alone or size >= CHARACTERS or len(group) >= DOCUMENTS):
            yield group
            group, size = [], 0
        reason = task.left_out.get(number)
        group.append(raw if reason is None else raw._replace(content=None, problem=reason))
        size += CHARACTERS if alone else len(raw.source)
    if group:
        yield group


def _answer(call: Callable[[], Step]) -> Step | Failed:
    try:
        return call()
    except _WriteError as error:
        return Failed("write", str(error))
    except OSError as error:
        return Failed("read", f"{error.filename or 'the input'}: cannot be read ({error.strerror or error})")
    except TrainingError as error:
        return Failed("model", str(error))
    except HeadwayError as error:
        return Failed("read", str(error))
    except Exception as error:
        return Failed("defect", f"{type(error).__name__}: {error}")


class _WriteError(Exception):
    """A draft that cannot be written."""


@contextmanager
def _writing(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _WriteError(f"{path}: writing failed ({error.strerror or error})") from None
