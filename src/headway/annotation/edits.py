"""The changes that an annotator makes to a sentence, each a small object: `apply` gives the new state.

A change is refused with an `EditError` in one sentence. Whether the pinned heads leave a tree is not decided here but
by whoever decodes the new state. A later choice overrides an earlier one: to set a head allows its arc again, and to
forbid the arc of a pinned head unpins the word. A sentence is no longer done when one of its words is not pinned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, ClassVar, Literal, Protocol, get_args

from headway.annotation.renumbering import delete_word, insert_word, join_words, split_word, with_text_like
from headway.annotation.state import (
    NOTE,
    SUGGESTED,
    State,
    shown_heads,
    shown_labels,
    with_arcs,
    with_comments,
    with_misc,
)
from headway.errors import EditError
from headway.models.constraints import named
from headway.treebank.annotations import misc_entry, with_comment
from headway.treebank.trees import cycle

Column = Literal["form", "lemma", "upos", "xpos", "feats", "misc"]

_LONGEST = 10_000  # characters of a column or a note
_FIELDS = {"form": "forms", "lemma": "lemmas", "upos": "upos", "xpos": "xpos", "feats": "feats"}


class Edit(Protocol):
    """A change; `action` is its name in JSON."""

    action: ClassVar[str]

    def apply(self, state: State) -> State: ...


@dataclass(frozen=True)
class SetHead:
    """Fix the head of a word, and its label where one is given; otherwise the label is open if the head is new."""

    action: ClassVar[str] = "head"
    word: int
    head: int
    label: str | None = None

    def apply(self, state: State) -> State:
        _require_word(state, self.word)
        n = len(state.sentence)
        if not 0 <= self.head <= n or self.head == self.word:
            raise EditError(
                f"the head of word {named(state.sentence, self.word)} cannot be {self.head}; expected 0 (the root) to "
                f"{n}, other than the word itself"
            )
        heads, labels = shown_heads(state.sentence), shown_labels(state.sentence)
        if self.label is not None:
            labels[self.word] = _text("label", self.label)
        elif heads[self.word] != self.head:
            labels[self.word] = "_"
        heads[self.word] = self.head
        return _changed(
            replace(
                state,
                sentence=with_arcs(state.sentence, heads, labels),
                pins=state.pins | {self.word},
                forbidden=state.forbidden - {(self.head, self.word)},
            )
        )


@dataclass(frozen=True)
class SetLabel:
    """Fix the label of a word, and with it the head that is shown."""

    action: ClassVar[str] = "label"
    word: int
    label: str

    def apply(self, state: State) -> State:
        _require_word(state, self.word)
        head = shown_heads(state.sentence)[self.word]
        if head < 0:
            raise EditError(f"word {named(state.sentence, self.word)} has no head yet; give it one before its label")
        return SetHead(self.word, head, self.label).apply(state)


@dataclass(frozen=True)
class Unpin:
    """Leave a word's head to the model again."""

    action: ClassVar[str] = "unpin"
    word: int

    def apply(self, state: State) -> State:
        _require_word(state, self.word)
        return _changed(replace(state, pins=state.pins - {self.word}))


@dataclass(frozen=True)
class Forbid:
    """Say that a word does not have this head."""

    action: ClassVar[str] = "forbid"
    word: int
    head: int

    def apply(self, state: State) -> State:
        _require_word(state, self.word)
        if not 0 <= self.head <= len(state.sentence) or self.head == self.word:
            raise EditError(f"{self.head} cannot be the head of word {named(state.sentence, self.word)} anyway")
        pins, heads, labels = state.pins, shown_heads(state.sentence), shown_labels(state.sentence)
        if heads[self.word] == self.head:
            pins -= {self.word}
            heads[self.word] = -1
        sentence = with_arcs(state.sentence, heads, labels)
        return _changed(
            replace(state, sentence=sentence, pins=pins, forbidden=state.forbidden | {(self.head, self.word)})
        )


@dataclass(frozen=True)
class Allow:
    """Take back what `Forbid` said."""

    action: ClassVar[str] = "allow"
    word: int
    head: int

    def apply(self, state: State) -> State:
        _require_word(state, self.word)
        return _changed(replace(state, forbidden=state.forbidden - {(self.head, self.word)}))


@dataclass(frozen=True)
class SetColumn:
    """Another form, lemma, tag, features or MISC; an empty value is "_"."""

    action: ClassVar[str] = "column"
    word: int
    column: Column
    value: str

    def apply(self, state: State) -> State:
        _require_word(state, self.word)
        if self.column not in get_args(Column):
            raise EditError(f"there is no column {self.column!r}; there are {', '.join(get_args(Column))}")
        value = _text(self.column, self.value or "_")
        sentence = state.sentence
        if self.column == "misc":
            if misc_entry(value, SUGGESTED) is not None:
                raise EditError(
                    f"{SUGGESTED} in MISC is Headway's own mark of heads that nobody has confirmed; omit it"
                )
            after = with_misc(sentence, _with_value(sentence.layout.misc, self.word, value))
        else:
            name = _FIELDS[self.column]
            column: dict[str, Any] = {name: _with_value(getattr(sentence, name), self.word, value)}
            after = replace(sentence, **column)
        return _changed(replace(state, sentence=with_text_like(sentence, after)))


@dataclass(frozen=True)
class Split:
    """Split a word: after `at` characters, or into given forms."""

    action: ClassVar[str] = "split"
    word: int
    at: int | None = None
    forms: tuple[str, ...] | None = None

    def apply(self, state: State) -> State:
        _require_word(state, self.word)
        return _changed(split_word(state, self.word, self._parts(state)))

    def _parts(self, state: State) -> tuple[str, ...]:
        form = state.sentence.forms[self.word - 1]
        if (self.at is None) == (self.forms is None):
            raise EditError("say either after which character to split the word (at), or into which forms")
        if self.forms is not None:
            if len(self.forms) < 2:
                raise EditError(f"there are {len(self.forms)} forms; a word is split into two or more")
            return tuple(_text("form", each) for each in self.forms)
        at = self.at or 0
        if not 0 < at < len(form):
            raise EditError(
                f"word {named(state.sentence, self.word)} cannot be split after {at} characters, as it has "
                f"{len(form)}; give a number from 1 to {len(form) - 1}"
                if len(form) > 1
                else f"word {named(state.sentence, self.word)} has one character only; give the forms to split it into"
            )
        parts = form[:at], form[at:]
        return tuple(_text("form", each) for each in parts)


@dataclass(frozen=True)
class Join:
    """Join a word with the next one."""

    action: ClassVar[str] = "join"
    word: int

    def apply(self, state: State) -> State:
        _require_word(state, self.word)
        if self.word == len(state.sentence):
            raise EditError(f"word {named(state.sentence, self.word)} is the last; there is none to join it with")
        return _changed(join_words(state, self.word))


@dataclass(frozen=True)
class Insert:
    """Insert a word after another, or before all with 0."""

    action: ClassVar[str] = "insert"
    after: int
    form: str

    def apply(self, state: State) -> State:
        if not 0 <= self.after <= len(state.sentence):
            raise EditError(f"there is no word {self.after}; the sentence has {len(state.sentence)}")
        return _changed(insert_word(state, self.after, _text("form", self.form)))


@dataclass(frozen=True)
class Delete:
    """Delete a word."""

    action: ClassVar[str] = "delete"
    word: int

    def apply(self, state: State) -> State:
        _require_word(state, self.word)
        return _changed(delete_word(state, self.word))


@dataclass(frozen=True)
class SetNote:
    """Note something about the sentence, in one line of its comments: line ends become spaces. "" removes the note."""

    action: ClassVar[str] = "note"
    text: str

    def apply(self, state: State) -> State:
        note = " ".join(self.text.split())
        if note == state.note:
            return state
        if note:
            return _changed(replace(state, sentence=with_comment(state.sentence, NOTE, _text("note", note))))
        marked = with_comment(state.sentence, NOTE, "")  # the last line now
        return _changed(replace(state, sentence=with_comments(marked, marked.layout.comments[:-1])))


@dataclass(frozen=True)
class Accept:
    """Pin every head that is shown."""

    action: ClassVar[str] = "accept"

    def apply(self, state: State) -> State:
        heads = shown_heads(state.sentence)
        pins = frozenset(m for m in range(1, len(heads)) if heads[m] >= 0)
        if not pins and len(state.sentence):
            raise EditError("no head is shown that could be accepted; set heads, or open the file with a model")
        return _changed(replace(state, pins=pins))


@dataclass(frozen=True)
class SetDone:
    """Call the sentence done, which pins every word; or not done, which changes nothing else."""

    action: ClassVar[str] = "done"
    done: bool = True

    def apply(self, state: State) -> State:
        if not self.done:
            return replace(state, done=False)
        heads = shown_heads(state.sentence)
        missing = [m for m in range(1, len(heads)) if heads[m] < 0]
        if missing:
            raise EditError(f"word {named(state.sentence, missing[0])} has no head; give it one first")
        if words := cycle(heads):
            path = " -> ".join(named(state.sentence, m) for m in (*words, words[0]))
            raise EditError(f"the heads form a cycle, {path}; let every word reach the root first")
        pins = frozenset(range(1, len(heads)))
        return replace(state, pins=pins, done=True, original=state.original if pins == state.pins else None)


_EDITS: dict[str, type[Any]] = {
    kind.action: kind
    for kind in (
        *(SetHead, SetLabel, Unpin, Forbid, Allow, SetColumn, Split, Join, Insert, Delete, SetNote, Accept, SetDone),
    )
}
_TYPES: dict[str, tuple[type, str]] = {
    **dict.fromkeys(("word", "head", "at", "after"), (int, "a whole number")),
    **dict.fromkeys(("label", "column", "value", "form", "text"), (str, "text")),
    "done": (bool, "true or false"),
    "forms": (list, "a list of texts"),
}


def edit_of(data: object) -> Edit:
    """The change that JSON describes: its action, and what belongs to that.

    >>> edit_of({"action": "head", "word": 2, "head": 0, "label": "root"})
    SetHead(word=2, head=0, label='root')
    """
    if not isinstance(data, Mapping) or str(data.get("action")) not in _EDITS:
        raise EditError(f"an edit has an action, one of {', '.join(_EDITS)}")
    kind = _EDITS[str(data["action"])]
    known = {each.name: each for each in fields(kind)}
    given = {name: value for name, value in data.items() if name != "action" and value is not None}
    for name in given:
        if name not in known:
            raise EditError(f"the action {kind.action} has no {name!r}; it has {', '.join(known) or 'nothing'}")
    for name, each in known.items():
        if name not in given and each.default is MISSING:
            raise EditError(f"the action {kind.action} needs {name!r}")
    edit: Edit = kind(**{name: _checked(name, value) for name, value in given.items()})
    return edit


def _checked(name: str, value: object) -> Any:
    expected, described = _TYPES[name]
    if type(value) is not expected:
        raise EditError(f"{name!r} is {str(value)[:30]!r}; expected {described}")
    if isinstance(value, list):
        if not all(isinstance(each, str) for each in value):
            raise EditError(f"{name!r} is not a list of texts")
        return tuple(value)
    return value


def _changed(state: State) -> State:
    """A state that differs from the file's; it is done only while all words are pinned."""
    return replace(state, done=state.done and len(state.pins) == len(state.sentence), original=None)


def _require_word(state: State, word: int) -> None:
    n = len(state.sentence)
    if not 1 <= word <= n:
        raise EditError(f"there is no word {word}; the sentence has {n}")


def _text(name: str, value: str) -> str:
    """Text that a column can hold."""
    if not value or value != value.strip() or any(character in value for character in "\t\r\n"):
        raise EditError(f"the {name} is {value[:30]!r}; expected text without tabs, line ends and spaces around it")
    if len(value) > _LONGEST:
        raise EditError(f"the {name} has {len(value):,} characters; at most {_LONGEST:,} are accepted")
    if name == "label" and (" " in value or value == "_" or not value.isprintable()):
        raise EditError(f"the label is {value[:30]!r}; expected a name without spaces, such as nsubj")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise EditError(f"the {name} has half a character (a lone surrogate); type it again") from None
    return value


def _with_value(column: Sequence[str], word: int, value: str) -> tuple[str, ...]:
    return (*column[: word - 1], value, *column[word:])
