"""One CoNLL-U file under annotation: what its sentences are, every change of them, and what is on disk.

A change is made in this order: the edit gives a new state; the parser finds the tree that this leaves; the change is in
the journal, on disk; then it is acknowledged. The file itself is rewritten a moment later, as a whole (`saving`). A
change that was based on an older version is refused with a `ConflictError`, which has the current state. Looking is for
others: `trees` parses, `search` lists.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from headway.annotation.contents import Contents
from headway.annotation.decoding import Parses, Shown, decoded, require_tree
from headway.annotation.edits import Edit
from headway.annotation.events import Event, Events, Listener
from headway.annotation.journal import Assignment, Change, Epoch, Kind, Start
from headway.annotation.model_identity import labels_of, model_identity
from headway.annotation.opening import treebank_for
from headway.annotation.pieces import Pieces
from headway.annotation.progress import Speeds
from headway.annotation.replay import History
from headway.annotation.retraining import Retraining, Snapshot, held_out_of
from headway.annotation.saving import Saving
from headway.annotation.search import Search
from headway.annotation.state import State, WriteChoice, body_of, pinned_only, require_write_choice
from headway.annotation.trees import Trees
from headway.annotation.view import text_of, view_of
from headway.errors import ArgumentError, ConflictError, EditError, JournalError
from headway.treebank import Sentence
from headway.treebank.annotations import comment


@dataclass(frozen=True)
class Settings:
    """What is written for words that nobody has pinned: the model's heads ("all"), or "_" ("pinned")."""

    write: WriteChoice = "all"


class Workspace:
    """An open file; see the module. Sentences are numbered from 0. All methods may be called from any thread."""

    def __init__(
        self,
        path: Path,
        parser: Parses | None,
        write: WriteChoice,
        name: str,
        dev: Path | None,
        clock: Callable[[], float],
    ) -> None:
        self.path, self.name = path, name
        self.reloaded: list[dict[str, Any]] = []
        self._clock = clock
        self._lock = threading.RLock()
        self._events = Events()
        self._held_out: set[int] = set()
        self._trained: set[int] = set()
        self._speeds = Speeds()
        self._is_closed = False
        self._saving = Saving(path, self._lock, lambda: self._contents.parts(), self._events.tell)
        try:
            self.retraining = Retraining(self, dev)
            contents = self._read(parser, write)
        except BaseException:
            self._saving.close()
            raise
        self._search = Search(self._lock, contents)
        self._trees = Trees(self._lock, contents, parser, self._events.tell)
        self._saving.begin_rewriting()

    @classmethod
    def open(
        cls,
        path: str | Path,
        parser: Parses | None = None,
        *,
        write: WriteChoice = "all",
        name: str = "",
        dev: str | Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Workspace:
        """Open a CoNLL-U file, or a text, which becomes one.

        `name` is what the model is called. `dev` is a treebank that new models are compared on (`retraining`).
        """
        choice = require_write_choice(write)
        treebank = treebank_for(Path(path), parser).resolve()
        return cls(treebank, parser, choice, name, None if dev is None else Path(dev), clock)

    def __enter__(self) -> Workspace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        """The number of sentences."""
        return len(self._contents)

    # ------------------------------------------------------------------------------ looking

    @property
    def parser(self) -> Parses | None:
        """What parses the sentences; `use` changes it."""
        return self._trees.parser

    @property
    def settings(self) -> Settings:
        """How the file is written."""
        return Settings(self._contents.write)

    @property
    def changed_underneath(self) -> bool:
        """Whether another program has changed the file; it is not written until the user chooses a version."""
        return self._saving.changed_underneath

    @property
    def problem(self) -> str | None:
        """Why the file could not be written, if it could not; all changes are in the journal."""
        return self._saving.problem

    def state(self, i: int) -> State:
        """A sentence as it was left by its last change."""
        self._require_sentence(i)
        with self._lock:
            return self._contents.state(i)

    def view(self, i: int) -> dict[str, Any]:
        """A sentence with its tree, probabilities, alternatives and messages, as plain data."""
        self._require_sentence(i)
        shown, _ = self._trees.shown(i)
        with self._lock:
            return view_of(i, shown, self._search.messages(shown.state), self._contents.history(i))

    def listing(self, query: str = "", sort: str = "certainty", offset: int = 0, limit: int = 50) -> dict[str, Any]:
        """A page of the sentences that a query finds (`headway.annotation.query`), in an order."""
        return self._search.page(query, sort, offset, limit)

    def progress(self, by: str = "") -> dict[str, Any]:
        """How many sentences are done, and the time left at an annotator's speed."""
        with self._lock:
            return self._speeds.progress(by, int(self._contents.done.sum()), len(self._contents))

    def summary(self, by: str = "") -> dict[str, Any]:
        """What a page needs to know of the file as a whole."""
        with self._lock:
            inventory = self._contents.inventory.to_dict(self._contents.added)
            return {
                "file": self.path.name,
                "sentences": len(self),
                "write": self.settings.write,
                "model": self.name or None,
                "progress": self.progress(by),
                **inventory,
                "changed_underneath": self.changed_underneath,
                "retraining": self.retraining.status(),
                "reloaded": self.reloaded,
                "problem": self.problem,
            }

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call a function with every event from now on; returns how to end that. See `headway.annotation.events`."""
        return self._events.subscribe(listener)

    def changes(self, since: int = 0) -> list[Event]:
        """The events after the one of that number."""
        return self._events.since(since)

    # ------------------------------------------------------------------------------ changing

    def edit(self, i: int, version: int, edit: Edit, by: str = "") -> State:
        """Make a change to the version of a sentence that somebody has seen; it is on disk when this returns."""

        def apply(state: State) -> State:
            return edit.apply(state)

        return self._change(i, version, "edit", by, apply)

    def undo(self, i: int, version: int, by: str = "") -> State:
        """Take back the last change of a sentence, and then the one before."""
        return self._change(i, version, "undo", by, lambda state: self._earlier(i, state))

    def redo(self, i: int, version: int, by: str = "") -> State:
        """Make the change again that was taken back last."""
        return self._change(i, version, "redo", by, lambda state: self._later(i, state))

    def configure(self, *, write: WriteChoice) -> None:
        """Choose what is written for words that nobody has pinned."""
        with self._lock:
            self._contents.use_write(require_write_choice(write))
            self._saving.make_dirty()
        self._events.tell("settings", write=write)

    def use(self, parser: Parses | None, name: str = "") -> None:
        """Parse with another model from now on. All versions rise, as the sentences look different."""
        with self._lock:
            self._saving.append_if_begun(Epoch(self._contents.epoch + 1, model_identity(parser)))
            self.name = name
            self._contents.epoch += 1
            self._contents.forget_suggestions(labels_of(parser), has_model=parser is not None)
            self._trees.use(parser)
        self._trees.find_certainties()
        self._events.tell("model", name=name)

    # ------------------------------------------------------------------------------ learning

    def count_done(self) -> int:
        """How many sentences with words are done."""
        with self._lock:
            return int((self._contents.done & (self._contents.words > 0)).sum())

    def has_tags(self) -> bool:
        """Whether words have universal tags."""
        return bool(self._contents.inventory.upos)

    def snapshot(self) -> Snapshot:
        """What a model can be trained on now; which sentences it is not trained on is in the journal from here on."""
        with self._lock:
            contents = self._contents
            done = np.flatnonzero(contents.done & (contents.words > 0)).tolist()
            partial = np.flatnonzero(~contents.done & (contents.pins > 0)).tolist()
            held_out = held_out_of(done, self._held_out, self._trained)
            trained = [i for i in (*done, *partial) if i not in self._held_out and i not in held_out]
            new = tuple(i for i in trained if i not in self._trained)
            if held_out or new:
                self._saving.append(Assignment(tuple(held_out), new), self._begin)
            self._held_out.update(held_out)
            self._trained.update(new)
            held_out = [i for i in sorted(self._held_out) if contents.pins[i]]
        own = set(trained)
        return Snapshot(
            [self._pinned(i) for i in done if i in own],
            [self._pinned(i) for i in partial if i in own],
            [self._pinned(i) for i in held_out],
        )

    def sentences(self) -> Iterator[Sentence]:
        """All sentences, with what the model suggests."""
        return (self._latest(i).sentence for i in range(len(self)))

    def tell(self, kind: str, **details: Any) -> None:
        """Add an event."""
        self._events.tell(kind, **details)

    # ------------------------------------------------------------------------------ the file

    def flush(self) -> None:
        """Write the file now, unless another program has changed it. A failure is raised."""
        if not self._saving.rewrite():
            raise JournalError(str(self.problem))

    def reload(self) -> list[dict[str, Any]]:
        """Take the file as another program left it. Sentences with changes of ours that it lacks are returned.

        Our journal stays, under another name.
        """
        self._saving.start_over(self._take)
        self._trees.find_certainties()
        self._events.tell("reload")
        return self.reloaded

    def overwrite(self) -> None:
        """Put our version in place of what another program wrote."""
        self._saving.overwrite()

    def close(self) -> None:
        """Write what is still to be written, and let others annotate the file."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        self.retraining.cancel()
        self._trees.close()
        self._saving.close()

    # ------------------------------------------------------------------------------ within

    @property
    def _contents(self) -> Contents:
        return self._trees.contents

    def _read(self, parser: Parses | None, write: WriteChoice) -> Contents:
        """The file, and what its journal adds."""
        pieces = Pieces.of(self._saving.read())
        contents = Contents(pieces, str(self.path), write)
        known, fits = self._saving.open_journal(len(contents))
        if known is not None and fits:
            differs = contents.replayed(known)
            self._speeds, self._held_out, self._trained = known.speeds, known.held_out, known.trained
            if known.model != model_identity(parser):
                contents.epoch += 1
                self._saving.append_if_begun(Epoch(contents.epoch, model_identity(parser)))
            if differs:
                self._saving.make_dirty()
        elif known is not None:
            contents.epoch = _epoch_after(known.epoch, known.histories)
            self.reloaded = _lost(known.states, pieces)
        contents.forget_suggestions(labels_of(parser), has_model=parser is not None)
        return contents

    def _take(self, data: bytes) -> None:
        """Begin again with what another program wrote; versions go on rising."""
        ours = {i: self._contents.state(i) for i in self._contents.touched()}
        epoch = _epoch_after(self._contents.epoch, {i: self._contents.history(i) for i in ours})
        pieces = Pieces.of(data)
        contents = Contents(pieces, str(self.path), self.settings.write, epoch)
        contents.forget_suggestions(labels_of(self.parser), has_model=self.parser is not None)
        self._trees.take(contents)
        self._search = Search(self._lock, contents)
        self._held_out, self._trained = set(), set()
        self.reloaded = _lost(ours, pieces)

    def _change(self, i: int, version: int, kind: Kind, by: str, make: Callable[[State], State]) -> State:
        self._require_sentence(i)
        with self._trees.giving_way():
            before, parser = self._trees.shown(i)
            self._require_version(before.state, version)
            state = make(before.state)
            if kind == "edit" and _is_same(before.state, state):
                return before.state
            after = decoded(replace(state, version=version + 1), parser)
            if kind == "edit":
                require_tree(before, after)
            with self._lock:
                self._require_version(self._contents.state(i), version)
                self._record(i, kind, by, before.state, after)
        self._events.tell("sentence", sentence=i, version=version + 1, by=by)
        return after.state

    def _record(self, i: int, kind: Kind, by: str, before: State, after: Shown) -> None:
        """Put a change into the journal, and then take it over."""
        if self._is_closed:
            raise EditError(f"{self.path.name} is closed; open it again")
        now = self._clock()
        change = Change(i, after.state.version, kind, now, by, before.to_record(), after.state.to_record())
        place = self._saving.append(change, self._begin)
        self._speeds.changed(by, i, now, finished=after.state.done and not before.done)
        self._contents.change(i, kind, place, after)
        self._trees.keep(i, after)
        self._saving.make_dirty()

    def _begin(self, sha256: str) -> Start:
        """What a new journal begins with."""
        return Start(sha256, len(self), self._contents.epoch, model_identity(self.parser))

    def _earlier(self, i: int, current: State) -> State:
        with self._lock:
            places = self._contents.history(i).undo
            if not places:
                raise EditError("there is nothing to undo in this sentence")
            return State.from_record(self._saving.change_at(places[-1]).before, current.version)

    def _later(self, i: int, current: State) -> State:
        with self._lock:
            places = self._contents.history(i).redo
            if not places:
                raise EditError("there is nothing to redo in this sentence")
            return State.from_record(self._saving.change_at(places[-1]).after, current.version)

    def _require_sentence(self, i: int) -> None:
        if not 0 <= i < len(self):
            raise ArgumentError(f"there is no sentence {i}; the file has {len(self)}, counted from 0")

    def _require_version(self, current: State, version: int) -> None:
        if current.version != version:
            cause = "the sentence has changed meanwhile, so your change was not made; look at it and try again"
            raise ConflictError(cause, current)

    def _latest(self, i: int) -> State:
        with self._lock:
            return self._contents.latest(i)

    def _pinned(self, i: int) -> Sentence:
        return pinned_only(self._latest(i))


def _epoch_after(epoch: int, histories: Mapping[int, History]) -> int:
    """One that makes all versions higher than they were."""
    return epoch + 1 + max((history.changes for history in histories.values()), default=0)


def _lost(ours: Mapping[int, State], theirs: Pieces) -> list[dict[str, Any]]:
    """The sentences of ours that are not in their file, however they are written."""
    bodies = set(map(body_of, theirs.texts))
    choices: tuple[WriteChoice, ...] = "all", "pinned"
    lost = []
    for i, state in sorted(ours.items()):
        if bodies.isdisjoint(body_of(state.file_text(write).encode()) for write in choices):
            lost.append({"sentence": i, "id": comment(state.sentence, "sent_id"), "text": text_of(state.sentence)})
    return lost


def _is_same(before: State, after: State) -> bool:
    """Whether an edit changes nothing."""
    return replace(before, original=None).same_as(replace(after, original=None))
