"""Base noun phrases of a spaCy doc with UD labels, for `doc.noun_chunks`.

spaCy finds them by its own labels (`dobj`, `pobj`) in English, German, Persian and Japanese, and UD has others; in its
other languages spaCy's own rules are for UD. Here a chunk is a noun, proper noun or pronoun that is not part of another
phrase, from the first of its determiners and modifiers before it to the last part of its name behind it. UD hangs
prepositions, conjunctions and copulas from the noun, and these are left out: "with the old man" gives "the old man",
"is a doctor" gives "a doctor". Chunks do not overlap, and come in the order of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

OTHER_LABELS = ("de", "en", "fa", "ja")  # languages whose chunks spaCy finds by labels of its own

_NOMINALS = ("NOUN", "PRON", "PROPN")
_ARGUMENTS = ("nsubj", "obj", "iobj", "obl", "vocative", "dislocated", "orphan")
_PREDICATES = ("ROOT", "root", "xcomp", "ccomp", "csubj", "advcl", "acl", "parataxis", "list")
_PHRASES = (*_ARGUMENTS, *_PREDICATES, "nmod", "appos")
_BEFORE = ("amod", "clf", "compound", "det", "flat", "nummod")
_BETWEEN = ("advmod", "dep", "punct")  # part of the phrase only where more of it stands before them
_BEHIND = ("compound", "fixed", "flat", "goeswith")


def noun_chunks(doclike: Doc | Span) -> Iterator[tuple[int, int, int]]:
    """First token, the one after the last, and the label NP of every chunk: what spaCy asks of a language."""
    doc = doclike.doc
    label = doc.vocab.strings.add("NP")
    free = 0  # the first token that is in no chunk yet
    for word in doclike:
        if word.i < free or not _is_phrase(word):
            continue
        start, end = max(free, _start(word)), _end(word)
        yield start, end, label
        free = end


def _is_phrase(word: Token) -> bool:
    if word.pos_ not in _NOMINALS:
        return False
    top = word
    while _relation(top) == "conj" and top.head.i != top.i:
        top = top.head
    return _relation(top) in _PHRASES and not _is_modifier(top)


def _is_modifier(word: Token) -> bool:
    """Whether an nmod belongs to the phrase of its head: "John's dog", "a 5 pm meeting"."""
    if _relation(word) != "nmod" or word.i > word.head.i:
        return False
    return word.dep_ == "nmod:poss" or not any(_relation(child) == "case" for child in word.children)


def _start(word: Token) -> int:
    start: int = word.i
    for child in reversed(list(word.lefts)):
        if _relation(child) in _BEFORE or _is_modifier(child):
            start = child.left_edge.i
        elif _relation(child) not in _BETWEEN:
            break
    return start


def _end(word: Token) -> int:
    last: int = word.i
    for child in word.rights:
        if _relation(child) in _BEHIND:
            last = child.right_edge.i
        elif _relation(child) not in _BETWEEN:
            break
    while word.doc[last].is_space:
        last -= 1
    return last + 1


def _relation(word: Token) -> str:
    """The universal part of the label: nsubj of nsubj:pass."""
    relation: str = word.dep_.partition(":")[0]
    return relation
