"""The sentences of an open file that a query finds, page by page."""

from __future__ import annotations

import threading
from typing import Any

from headway.annotation.contents import Contents
from headway.annotation.listing import Listing, ordered
from headway.annotation.query import Candidate, Query, parse_query
from headway.annotation.state import State
from headway.annotation.validation import Message, validate
from headway.annotation.view import row_of
from headway.errors import ArgumentError

_LARGEST_PAGE = 1000


class Search:
    """Of these contents, under the workspace's lock, which is held for a sentence at a time."""

    def __init__(self, lock: threading.RLock, contents: Contents) -> None:
        self._lock, self._contents = lock, contents
        self._listing = Listing()

    def page(self, query: str, sort: str, offset: int, limit: int) -> dict[str, Any]:
        """A page of the sentences that a query finds (`headway.annotation.query`), in an order."""
        if offset < 0 or not 0 <= limit <= _LARGEST_PAGE:
            raise ArgumentError(f"expected an offset of at least 0 and a limit from 0 to {_LARGEST_PAGE}")
        asked = parse_query(query)
        with self._lock:
            certainty, stamps = self._contents.certainty.copy(), self._contents.stamps.copy()
        order = ordered(certainty, sort)
        if asked != Query():
            order = order[self._listing.found(query, stamps, lambda i: self._matches(asked, i))[order]]
        rows = [self._row(i) for i in order[offset : offset + limit].tolist()]
        return {"total": len(stamps), "matches": len(order), "rows": rows}

    def messages(self, state: State) -> list[Message]:
        """What is wrong with a sentence."""
        return validate(state.sentence, self._contents.inventory)

    def _matches(self, query: Query, i: int) -> bool:
        with self._lock:
            text = self._contents.searchable(i)
            if text is not None and not query.may_match(text):
                return False
            done, certainty = bool(self._contents.done[i]), self._certainty(i)
        return query.matches(Candidate(lambda: self._latest(i), done, certainty, self._has_errors))

    def _row(self, i: int) -> dict[str, Any]:
        with self._lock:
            state, certainty = self._contents.latest(i), self._certainty(i)
        return row_of(i, state, certainty, self.messages(state))

    def _latest(self, i: int) -> State:
        with self._lock:
            return self._contents.latest(i)

    def _certainty(self, i: int) -> float | None:
        value = float(self._contents.certainty[i])
        return None if value != value else value

    def _has_errors(self, state: State) -> bool:
        return any(message.level == "error" for message in self.messages(state))
