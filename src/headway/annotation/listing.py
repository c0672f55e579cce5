"""The list of sentences: in which order, which of them, and page by page.

The order by certainty and the answers to the latest queries are kept. After a change only what changed is looked at
again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from headway.errors import ArgumentError

Sort = Literal["certainty", "order"]

_KEPT = 8  # queries


class Listing:
    """Orders and answers that are kept until they change."""

    def __init__(self) -> None:
        self._answers: OrderedDict[str, tuple[NDArray[np.int64], NDArray[np.bool_]]] = OrderedDict()

    def found(self, query: str, stamps: NDArray[np.int64], matches: Callable[[int], bool]) -> NDArray[np.bool_]:
        """Which sentences a query finds; `matches` is called for those whose stamps are new."""
        earlier = self._answers.get(query)
        if earlier is None or len(earlier[0]) != len(stamps):
            earlier = np.full(len(stamps), -1, np.int64), np.zeros(len(stamps), np.bool_)
        seen, answer = earlier
        answer = answer.copy()
        for i in np.flatnonzero(seen != stamps).tolist():
            answer[i] = matches(i)
        self._answers[query] = stamps, answer
        self._answers.move_to_end(query)
        while len(self._answers) > _KEPT:
            self._answers.popitem(last=False)
        return answer


def ordered(certainty: NDArray[np.float64], sort: str) -> NDArray[np.int64]:
    """The numbers of all sentences: as they stand, or the least certain first and the unknown ones last."""
    if sort not in get_args(Sort):
        raise ArgumentError(f"sort is {sort!r}; expected one of {', '.join(get_args(Sort))}")
    if sort == "order":
        return np.arange(len(certainty))
    order: NDArray[np.int64] = np.argsort(certainty, kind="stable")  # nan comes last
    return order
