"""Workers without processes: all is done here, one after the other, on copies, as others would get them."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from headway.parallel import Here, Piece, R


def copied(message: Any) -> Any:
    return pickle.loads(pickle.dumps(message, protocol=5))


@dataclass(frozen=True)
class CopiesHere(Here[Piece]):
    """Pieces of which nobody else has the arrays; nor has anybody those that calls are about."""

    def each(self, function: Callable[..., R], *arguments: Any) -> list[R]:
        return [copied(function(piece, *copied(arguments))) for piece in self.pieces]


@dataclass(frozen=True)
class CopyingWorkers:
    """What is finished last comes first."""

    workers = 2

    def map(self, function: Callable[..., R], *items: Iterable[Any]) -> list[R]:
        return [result for _, result in sorted(self.finished(function, *items), key=lambda pair: pair[0])]

    def finished(self, function: Callable[..., R], *items: Iterable[Any]) -> Iterator[tuple[int, R]]:
        for number, item in reversed(list(enumerate(zip(*items, strict=False)))):
            yield number, copied(function(*copied(item)))

    @contextmanager
    def hold(self, pieces: Sequence[Piece]) -> Iterator[CopiesHere[Piece]]:
        yield CopiesHere([copied(piece) for piece in pieces])
