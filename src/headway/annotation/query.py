r"""The language of the search field.

    form:ran lemma:run upos:VERB xpos:VBD label:nsubj feats:Number=Plur head.upos:VERB misc:SpaceAfter=No
    text:"had little" note:check id:wsj-12 is:done is:todo is:unsure is:invalid is:noted

A space is *and*, `-` before a term is *not*, `*` stands for any characters, `\*` for itself, and quotes keep spaces.

- Terms about words (`form`, `lemma`, `upos`, `xpos`, `feats`, `label`, `misc`, each also with `head.` before it) are
  about one and the same word: `label:nsubj -head.upos:VERB` finds subjects of words that are not verbs. If all of them
  are negative, no word may be like any of them. The root has no form: `head.form:*` finds words that depend on a word.
- A word alone, and `text`, `note`, `id` and `is`, are about the sentence. A word alone is a form or a lemma; `text`,
  `note` and `id` find what contains the value.
- Case counts in tags, labels, features and MISC only. A label without a subtype finds its subtypes, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from headway.annotation.inventory import base
from headway.annotation.state import State, shown_heads, shown_labels
from headway.annotation.view import text_of
from headway.errors import QueryError
from headway.treebank.annotations import comment

OF_WORDS = ("form", "lemma", "upos", "xpos", "feats", "label", "misc")
OF_SENTENCES = ("text", "note", "id")
STATES = ("done", "todo", "unsure", "invalid", "noted")
UNSURE_BELOW = 0.7

_TERM = re.compile(r'(-?)(?:([A-Za-z.]+):)?("(?:[^"\\]|\\.)*"|[^\s"]+)(?=\s|$)|(\S+)')
_TEXT = re.compile(r"^#[ \t]*text[ \t]*=[ \t]*\S", re.MULTILINE)
_NAMES = ("is", *OF_WORDS, *OF_SENTENCES)


@dataclass(eq=False)
class Candidate:
    """A sentence that is searched. Its state is loaded, and checked for errors, only if a term asks for that."""

    load: Callable[[], State]
    is_done: bool
    certainty: float | None
    has_errors: Callable[[State], bool]

    @cached_property
    def state(self) -> State:
        """The sentence as it is shown."""
        return self.load()

    @cached_property
    def columns(self) -> dict[str, list[str]]:
        """Every column (n+1), that of the root first."""
        sentence = self.state.sentence
        named = {"form": sentence.forms, "lemma": sentence.lemmas, "upos": sentence.upos, "xpos": sentence.xpos}
        more = {"feats": sentence.feats, "misc": sentence.layout.misc, "label": map(str, shown_labels(sentence)[1:])}
        return {name: ["", *column] for name, column in {**named, **more}.items()}

    @cached_property
    def heads(self) -> list[int]:
        return shown_heads(self.state.sentence)


@dataclass(frozen=True)
class Pattern:
    """A value with wildcards. `needle` is the longest piece between them, casefolded."""

    compiled: re.Pattern[str]
    any_case: bool
    needle: str

    @classmethod
    def of(cls, value: str, *, any_case: bool) -> Pattern:
        """The pattern of a value as it is typed, in quotes or not."""
        pieces = [piece.casefold() if any_case else piece for piece in _pieces(value)]
        compiled = re.compile(".*".join(map(re.escape, pieces)), re.DOTALL)
        return cls(compiled, any_case, max((piece.casefold() for piece in pieces), key=len))

    def is_all_of(self, text: str) -> bool:
        return self.compiled.fullmatch(text.casefold() if self.any_case else text) is not None

    def is_in(self, text: str) -> bool:
        return self.compiled.search(text.casefold() if self.any_case else text) is not None


@dataclass(frozen=True)
class Term:
    """`name:value`, of the word's head if `of_head`; a word alone has the name "", and a state the name "is"."""

    name: str
    value: str
    pattern: Pattern
    is_negated: bool
    of_head: bool = False

    def may_hold(self, text: str) -> bool:
        """Whether it could hold for a sentence of this CoNLL-U text, casefolded; false only if it certainly does not.

        A sentence's text may be there in pieces only, if no comment has it.
        """
        if self.is_negated or self.name == "is" or self.pattern.needle in text:
            return True
        return self.name == "text" and _TEXT.search(text) is None

    def holds_for(self, candidate: Candidate, word: int) -> bool:
        """Whether a word is like that, negated or not."""
        if self.of_head:
            word = candidate.heads[word]
            if word <= 0:
                return False
        value = candidate.columns[self.name][word]
        if self.name in ("feats", "misc"):
            return any(map(self.pattern.is_all_of, value.split("|")))
        return self.pattern.is_all_of(value) or (self.name == "label" and self.pattern.is_all_of(base(value)))

    def holds(self, candidate: Candidate) -> bool:
        """Whether the sentence is like that, negated or not."""
        if self.name == "is":
            return _is_in_state(self.value, candidate)
        state = candidate.state
        match self.name:
            case "text":
                return self.pattern.is_in(text_of(state.sentence))
            case "note":
                return bool(state.note) and self.pattern.is_in(state.note)
            case "id":
                return self.pattern.is_in(comment(state.sentence, "sent_id") or "")
        columns = candidate.columns
        return any(map(self.pattern.is_all_of, columns["form"][1:] + columns["lemma"][1:]))


@dataclass(frozen=True)
class Query:
    """What all of a search's terms say."""

    of_words: tuple[Term, ...] = ()
    of_sentence: tuple[Term, ...] = ()

    def may_match(self, text: str) -> bool:
        """Whether a sentence of this CoNLL-U text, casefolded, could match: faster than to look closely."""
        return all(term.may_hold(text) for term in (*self.of_words, *self.of_sentence))

    def matches(self, candidate: Candidate) -> bool:
        """Whether a sentence is what is searched for."""
        if not all(term.holds(candidate) != term.is_negated for term in self.of_sentence):
            return False
        if not self.of_words:
            return True
        words = range(1, len(candidate.state.sentence) + 1)
        if all(term.is_negated for term in self.of_words):
            return not any(term.holds_for(candidate, word) for term in self.of_words for word in words)
        return any(all(term.holds_for(candidate, word) != term.is_negated for term in self.of_words) for word in words)


def parse_query(text: str) -> Query:
    """The query that a text stands for; a QueryError says what is allowed.

    >>> query = parse_query('label:nsubj -head.upos:VERB is:todo')
    >>> [term.name for term in query.of_words], [term.name for term in query.of_sentence]
    (['label', 'upos'], ['is'])
    """
    terms = [_term(match) for match in _TERM.finditer(text)]
    of_words = tuple(term for term in terms if term.name in OF_WORDS)
    return Query(of_words, tuple(term for term in terms if term.name not in OF_WORDS))


def _term(match: re.Match[str]) -> Term:
    minus, name, value, unreadable = match.groups(default="")
    if unreadable:
        raise QueryError(f"{unreadable[:30]!r} cannot be read; put quotes around a value with spaces, and close them")
    of_head = name.startswith("head.")
    own = name.removeprefix("head.")
    if of_head and own not in OF_WORDS:
        raise QueryError(f"there is no {name}; there are {_listed(f'head.{each}' for each in OF_WORDS)}")
    if own not in ("", *_NAMES):
        raise QueryError(
            f"there is no {own}; there are {_listed((*OF_WORDS, *OF_SENTENCES, 'is'))}, and head. before those of "
            'words; a word with a colon is written form:"..."'
        )
    if own == "is" and value not in STATES:
        raise QueryError(f"is:{value[:30]} is unknown; a sentence can be {_listed(STATES)}")
    if value == '""' or (not name and value.endswith(":") and value[:-1].removeprefix("head.") in _NAMES):
        raise QueryError(f"nothing stands after {name or value[:-1]}:; write * for anything")
    pattern = Pattern.of(value, any_case=own in ("", *OF_SENTENCES, "form", "lemma"))
    return Term(own, value, pattern, bool(minus), of_head)


def _pieces(value: str) -> list[str]:
    """What stands between the asterisks, without quotes and backslashes."""
    pieces, is_escaped = [""], False
    for character in value[1:-1] if value.startswith('"') else value:
        if is_escaped or character not in "*\\":
            pieces[-1] += character
            is_escaped = False
        elif character == "*":
            pieces.append("")
        else:
            is_escaped = True
    return pieces


def _is_in_state(name: str, candidate: Candidate) -> bool:
    match name:
        case "done":
            return candidate.is_done
        case "todo":
            return not candidate.is_done
        case "unsure":
            return candidate.certainty is not None and candidate.certainty < UNSURE_BELOW
        case "noted":
            return bool(candidate.state.note)
    return candidate.has_errors(candidate.state)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
