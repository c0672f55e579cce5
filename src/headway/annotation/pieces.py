"""A CoNLL-U file as a list of texts, one for each sentence, that together are the file byte for byte.

A piece is a sentence's lines and the blank lines after it; what stands before the first sentence (a byte order mark,
blank lines) is the `head`. Texts take the room that the file takes. A sentence is parsed when it is looked at, and all
of them once at the beginning, so that a damaged file is refused as it is by every other command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from headway.annotation.state import State, body_of, original_state
from headway.errors import TreebankError
from headway.treebank.conll_reader import LARGEST_SENTENCE, LONGEST_SENTENCE, Block, parse_block

_START = re.compile(rb"(?:\xef\xbb\xbf)?(?:\r?\n)*")
_END = re.compile(rb"\n(?:\r?\n)+")


@dataclass(frozen=True)
class Pieces:
    """The pieces of a file; see the module."""

    head: bytes
    texts: list[bytes]

    @classmethod
    def of(cls, data: bytes) -> Pieces:
        """Cut a file after the blank lines behind each sentence."""
        match = _START.match(data)
        assert match is not None
        start, texts = match.end(), []
        for found in _END.finditer(data, start):
            texts.append(data[start : found.end()])
            start = found.end()
        if start < len(data):
            texts.append(data[start:])
        return cls(match[0], texts)

    def __len__(self) -> int:
        return len(self.texts)

    def states(self, source: str) -> Iterator[State]:
        """Every sentence as the file has it; a TreebankError names the line of one that cannot be read."""
        for i, text in enumerate(self.texts):
            try:
                state = None if _is_too_large(text) else original_state(text.decode())
            except (TreebankError, UnicodeDecodeError):
                state = None
            if state is None:
                self._refuse(i, source)
            else:
                yield state

    def _refuse(self, i: int, source: str) -> None:
        """Say what is wrong with a sentence, and its place in the file."""
        body = body_of(self.texts[i])
        line = 1 + sum(text.count(b"\n") for text in (self.head, *self.texts[:i]))
        parse_block(Block(body, line, too_large=_is_too_large(self.texts[i])), source, "conllu", partial=True)


def _is_too_large(piece: bytes) -> bool:
    if len(piece) <= LONGEST_SENTENCE:
        return False
    body = body_of(piece)
    return len(body) > LARGEST_SENTENCE or body.count(b"\n") > LONGEST_SENTENCE


def with_tail(text: str, piece: bytes) -> bytes:
    """A sentence's new text in place of an old piece, whose further blank lines stay.

    >>> with_tail("1\\tStop\\n\\n", b"1\\tGo\\n\\n\\n")
    b'1\\tStop\\n\\n\\n'
    """
    blank = piece[len(body_of(piece)) :]
    return text.encode() + blank[blank.find(b"\n") + 1 :]
