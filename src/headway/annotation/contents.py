"""The sentences of a file under annotation, as they are and as they will be written; nothing here is on disk.

An untouched sentence is a text. A touched one has a `State`, and a text made from it. What a model suggests for a
sentence is kept as CoNLL-U too, with its marks (`Suggested=Yes`), so that searches find it without parsing again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from headway.annotation.decoding import Shown
from headway.annotation.inventory import Inventory
from headway.annotation.pieces import Pieces, with_tail
from headway.annotation.replay import History, Replay
from headway.annotation.state import State, WriteChoice, original_state


class Contents:
    """All sentences, numbered from 0; `epoch` is what the versions of all have in common.

    By sentence: how many `words` it has, and how many `pins`; `done`; `certainty`, nan where unknown; `stamps`, which
    rise when anything about the sentence changes; `is_pending` where the model has not been asked yet.
    """

    def __init__(self, pieces: Pieces, source: str, write: WriteChoice, epoch: int = 0) -> None:
        self.write = write
        self.epoch = epoch
        self.inventory, self.added = Inventory(), Inventory()
        self._pieces = pieces
        self._states: dict[int, State] = {}
        self._suggested: dict[int, bytes] = {}
        self._histories: dict[int, History] = {}
        counts: list[tuple[int, int]] = []
        for state in pieces.states(source):
            counts.append((len(state.sentence), len(state.pins)))
            self.inventory.add(state.sentence)
        n = len(counts)
        self.words, self.pins = np.array(counts, np.int64).reshape(n, 2).T
        self.done: NDArray[np.bool_] = self.words == self.pins
        self.certainty: NDArray[np.float64] = np.full(n, np.nan)
        self.stamps: NDArray[np.int64] = np.zeros(n, np.int64)
        self.is_pending: NDArray[np.bool_] = np.ones(n, np.bool_)

    def __len__(self) -> int:
        return len(self._pieces)

    def replayed(self, journal: Replay) -> bool:
        """Put everything where a journal says it is; whether the file's text changes by that."""
        before = list(self._pieces.texts)
        self.epoch, self._histories = journal.epoch, journal.histories
        for i, state in journal.states.items():
            self._put(i, state)
        return before != self._pieces.texts

    def parts(self) -> list[bytes]:
        """The file as it is to be written."""
        return [self._pieces.head, *self._pieces.texts]

    def touched(self) -> Iterable[int]:
        """The sentences that have been changed, in the order of their first changes."""
        return list(self._histories)

    def version(self, i: int) -> int:
        """The version of a sentence."""
        return self.epoch + (self._histories[i].changes if i in self._histories else 0)

    def history(self, i: int) -> History:
        """What can be undone and redone."""
        return self._histories.get(i) or History()

    def state(self, i: int) -> State:
        """A sentence as it was left."""
        state = self._states.get(i) or original_state(self._pieces.texts[i].decode())
        return replace(state, done=bool(self.done[i]), version=self.version(i))

    def latest(self, i: int) -> State:
        """A sentence with what the model last suggested."""
        if i not in self._suggested:
            return self.state(i)
        suggested = original_state(self._suggested[i].decode())
        if i in self._states:
            return replace(self.state(i), sentence=suggested.sentence)
        return replace(suggested, done=bool(self.done[i]), original=None, version=self.version(i))

    def searchable(self, i: int) -> str | None:
        """The CoNLL-U of a sentence with what the model suggests, casefolded; None if that would have to be made."""
        if i in self._states:
            return None
        return self._suggested.get(i, self._pieces.texts[i]).decode().casefold()

    def change(self, i: int, kind: str, place: int, shown: Shown) -> None:
        """Take over a change that is in the journal, at that place."""
        assert kind in ("edit", "undo", "redo")
        self._histories.setdefault(i, History()).add(kind, place)  # type: ignore[arg-type]
        self._put(i, shown.state)
        self._suggested.pop(i, None)
        self.added.add(shown.state.sentence)
        self.note_certainty(i, shown)

    def note(self, i: int, shown: Shown) -> None:
        """Keep what the model says about a sentence that has not changed."""
        if len(shown.state.pins) < len(shown.state.sentence):
            self._suggested[i] = replace(shown.state, original=None).file_text("all").encode()
        self.note_certainty(i, shown)

    def note_certainty(self, i: int, shown: Shown) -> None:
        """Keep how sure the model is of a sentence."""
        self.certainty[i] = np.nan if shown.certainty is None else shown.certainty
        self.is_pending[i] = False
        self.stamps[i] += 1

    def pending(self, limit: int) -> list[int]:
        """Some sentences that the model has not been asked about."""
        found: list[int] = np.flatnonzero(self.is_pending)[:limit].tolist()
        return found

    def forget_suggestions(self, model_labels: tuple[str, ...], *, has_model: bool) -> None:
        """Another model: it has other labels, and makes other suggestions. It need not be asked where all is pinned."""
        self.inventory = replace(self.inventory, model_labels=model_labels)
        self._suggested.clear()
        is_open = self.words > self.pins
        self.certainty[:] = np.where(is_open | (not has_model), np.nan, 1.0)
        self.is_pending[:] = is_open & has_model
        self.stamps += 1

    def use_write(self, write: WriteChoice) -> None:
        """Write the touched sentences in another way."""
        self.write = write
        for i, state in self._states.items():
            self._put(i, state)

    def _put(self, i: int, state: State) -> None:
        self._states[i] = state
        self.done[i], self.words[i], self.pins[i] = state.done, len(state.sentence), len(state.pins)
        piece = self._pieces.texts[i]
        if state.original is not None:
            self._pieces.texts[i] = state.original.encode()
        else:
            self._pieces.texts[i] = with_tail(state.file_text(self.write), piece)
