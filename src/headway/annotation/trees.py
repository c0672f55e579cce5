"""The trees of an open file: parsed when somebody looks, kept for a while, and for all sentences in the background.

Parsing holds no lock, so that people do not wait for one another. What was parsed meanwhile counts only if the sentence
and the model are still the same.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager

from headway.annotation.certainty import Background
from headway.annotation.contents import Contents
from headway.annotation.decoding import Parses, Shown, decoded, decoded_together

_KEPT_VIEWS = 64
_PORTION = 8  # sentences that the background parses together: an edit waits for no more


class Trees:
    """The lock is the workspace's, and is held by whoever calls `keep`, `use` or `take`; `tell` takes events."""

    def __init__(
        self, lock: threading.RLock, contents: Contents, parser: Parses | None, tell: Callable[..., None]
    ) -> None:
        self._lock, self._tell = lock, tell
        self.contents, self.parser = contents, parser
        self._views: OrderedDict[int, tuple[int, Shown]] = OrderedDict()
        self._background = Background(self._find_certainties)
        self._background.wake()

    def shown(self, i: int) -> tuple[Shown, Parses | None]:
        """A sentence with its tree, and the parser that found it."""
        with self.giving_way():
            while True:
                with self._lock:
                    state, parser = self.contents.state(i), self.parser
                    kept = self._views.get(i)
                    if kept is not None and kept[0] == state.version:
                        self._views.move_to_end(i)
                        return kept[1], parser
                shown = decoded(state, parser)
                with self._lock:
                    if self.contents.version(i) == state.version and self.parser is parser:
                        self.keep(i, shown)
                        self.contents.note(i, shown)
                        return shown, parser

    def keep(self, i: int, shown: Shown) -> None:
        """Remember a tree, instead of the one that was seen longest ago."""
        self._views[i] = shown.state.version, shown
        self._views.move_to_end(i)
        while len(self._views) > _KEPT_VIEWS:
            self._views.popitem(last=False)

    def use(self, parser: Parses | None) -> None:
        """Parse with another model from now on."""
        self.parser = parser
        self._views.clear()

    def take(self, contents: Contents) -> None:
        """Go on with the file as it was read again."""
        self.contents = contents
        self._views.clear()

    def giving_way(self) -> AbstractContextManager[None]:
        """Let nothing be parsed in the background while a person waits."""
        return self._background.giving_way()

    def find_certainties(self) -> None:
        """Ask the model about all sentences that have changed, in the background."""
        self._background.wake()

    def close(self) -> None:
        """End after the portion that is being parsed."""
        self._background.close()

    def _find_certainties(self) -> bool:
        """Ask the model about a few sentences; false if there are none left."""
        with self._lock:
            contents, parser = self.contents, self.parser
            states = [(i, contents.state(i)) for i in contents.pending(_PORTION)]
        if not states or parser is None:
            return False
        found = decoded_together([state for _, state in states], parser)
        with self._lock:
            if contents is not self.contents or parser is not self.parser:
                return True
            for (i, state), shown in zip(states, found, strict=True):
                if contents.version(i) == state.version and contents.is_pending[i]:
                    contents.note(i, shown)
            left = int(contents.is_pending.sum())
        self._tell("certainty", known=len(contents) - left, all=len(contents))
        return left > 0
