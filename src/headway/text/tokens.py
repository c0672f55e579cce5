"""Sentences given as lists of tokens."""

from __future__ import annotations

from collections.abc import Iterable

from headway.errors import TreebankError
from headway.treebank.sentence import Sentence


def is_tokens(text: object) -> bool:
    """Whether this is one sentence as a list or tuple of tokens.

    >>> is_tokens(["Dogs", "bark"]), is_tokens(["Dogs", ["bark"]]), is_tokens([])
    (True, False, False)
    """
    return isinstance(text, list | tuple) and bool(text) and all(isinstance(token, str) for token in text)


def sentence_of(tokens: Iterable[str]) -> Sentence:
    """The sentence of these words; none of them may be empty or have white space in it."""
    words = list(tokens)
    for token in words:
        if token.split() != [token]:
            raise TreebankError(
                f"the token {token[:40]!r} is empty or has white space in it; for sentences of raw text give an "
                "iterator of them, or parse_text one text"
            )
    return Sentence.from_words(words)
