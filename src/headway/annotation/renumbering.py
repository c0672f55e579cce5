"""Words split, joined, inserted and deleted, and everything that goes by a word's number brought along.

A `Plan` says where the new words come from. From it follow the new numbers of heads, pins and forbidden arcs, of the
ranges of multiword tokens, of empty nodes (`3.1`), and of the enhanced dependencies in DEPS, which name both.

- A word that is split leaves its columns, head and dependents to its first part. The others begin empty.
- Of two words that are joined, the one nearer to the root gives columns and head, so that a tree stays one. If neither
  is above the other, it is the first, unless only the second is pinned.
- What depended on a deleted word has no head any more, and is pinned no longer.
- A multiword token that is left with one word becomes that word, under the token's form.
- A word that is split into forms that are not its pieces ("do" into "de", "o") becomes a multiword token.
- White space goes by the text: only the last part of a split word has what followed the word. `# text` follows the
  words if it did so before. TokenRange is split and joined where it says as many characters as the form has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from headway.annotation.state import State, shown_heads, shown_labels, with_arcs, with_comments
from headway.errors import EditError
from headway.models.constraints import named
from headway.treebank import Sentence
from headway.treebank.annotations import MultiwordToken, comment, misc_entry, multiword_tokens
from headway.treebank.raw_text import raw_text

_COLUMNS = ("forms", "lemmas", "upos", "xpos", "feats")
_SPACES = ("SpaceAfter", "SpacesAfter")
_DEPENDENCY = re.compile(r"([0-9]+(?:\.[0-9]+)?):(.*)")
_RANGE = re.compile(r"([0-9]{1,15}):([0-9]{1,15})")


def split_word(state: State, word: int, forms: Sequence[str]) -> State:
    """The word in parts of these forms."""
    sentence = state.sentence
    n, more = len(sentence), len(forms) - 1
    whole = sentence.forms[word - 1]
    token = _token_of(sentence, word)
    origins = [(m,) for m in range(1, word + 1)] + [(word,)] * more + [(m,) for m in range(word + 1, n + 1)]
    sources = [*range(1, word + 1), *[0] * more, *range(word + 1, n + 1)]
    done = _renumbered(state, Plan(tuple(origins), tuple(sources)))
    misc = list(done.sentence.layout.misc)
    extra_lines = done.sentence.layout.extra_lines
    own = sentence.layout.misc[word - 1]
    if token is not None or "".join(forms) == whole:
        parts = [own, *["_"] * more] if token is not None else _split_spaces(own, more)
        misc[word - 1 : word + more] = _split_range(parts, whole, forms)
    else:
        kept = [entry for entry in _entries(own) if not _is_about_place(entry)]
        about_place = [entry for entry in _entries(own) if _is_about_place(entry)]
        misc[word - 1] = "|".join(kept) or "_"
        line = f"{word}-{word + more}\t{whole}" + "\t_" * 7 + f"\t{'|'.join(about_place) or '_'}"
        extra_lines = _in_order([*extra_lines, (word - 1, line)])
    new_forms = list(done.sentence.forms)
    new_forms[word - 1 : word + more] = forms
    return _finished(state, done, new_forms, misc, extra_lines)


def join_words(state: State, word: int) -> State:
    """The word and the next as one."""
    sentence = state.sentence
    n, following = len(sentence), word + 1
    tokens = _token_of(sentence, word), _token_of(sentence, following)
    if tokens[0] != tokens[1]:
        token = tokens[0] or tokens[1]
        assert token is not None
        raise EditError(
            f"words {named(sentence, word)} and {named(sentence, following)} cannot be joined, as only one of them is "
            f"in the multiword token {token.first}-{token.last} ({token.form}); join the words of the token first"
        )
    winner = _upper(state, word, following)
    loser = word + following - winner
    origins = [(m,) for m in range(1, word)] + [(word, following)] + [(m,) for m in range(following + 1, n + 1)]
    sources = [*range(1, word), winner, *range(following + 1, n + 1)]
    done = _renumbered(state, Plan(tuple(origins), tuple(sources)))
    columns = {name: list(getattr(done.sentence, name)) for name in _COLUMNS}
    for name in _COLUMNS:
        if columns[name][word - 1] == "_":
            columns[name][word - 1] = getattr(sentence, name)[loser - 1]
    columns["forms"][word - 1] = sentence.forms[word - 1] + sentence.forms[following - 1]
    misc = list(done.sentence.layout.misc)
    misc[word - 1] = _joined_misc(sentence.layout.misc[word - 1], sentence.layout.misc[following - 1])
    deps = list(done.sentence.layout.deps)
    deps[word - 1] = _united(deps[word - 1], _Numbers(state.sentence, done.plan).deps(sentence.layout.deps[loser - 1]))
    deps[word - 1] = "|".join(each for each in deps[word - 1].split("|") if not each.startswith(f"{word}:")) or "_"
    others: dict[str, Any] = {name: tuple(column) for name, column in columns.items() if name != "forms"}
    layout = replace(done.sentence.layout, deps=tuple(deps))
    joined = replace(done, sentence=replace(done.sentence, layout=layout, **others))
    return _finished(state, joined, columns["forms"], misc, layout.extra_lines)


def insert_word(state: State, after: int, form: str) -> State:
    """A new word of this form after that one, or before all with 0."""
    n = len(state.sentence)
    origins = [(m,) for m in range(1, after + 1)] + [()] + [(m,) for m in range(after + 1, n + 1)]
    sources = [*range(1, after + 1), 0, *range(after + 1, n + 1)]
    done = _renumbered(state, Plan(tuple(origins), tuple(sources)))
    forms = list(done.sentence.forms)
    forms[after] = form
    return _finished(state, done, forms, done.sentence.layout.misc, done.sentence.layout.extra_lines)


def delete_word(state: State, word: int) -> State:
    """The sentence without that word."""
    n = len(state.sentence)
    if n == 1:
        raise EditError(f"word {named(state.sentence, word)} is the only one of the sentence; change its form instead")
    kept = [m for m in range(1, n + 1) if m != word]
    done = _renumbered(state, Plan(tuple((m,) for m in kept), tuple(kept)))
    layout = done.sentence.layout
    return _finished(state, done, done.sentence.forms, layout.misc, layout.extra_lines)


@dataclass(frozen=True)
class Plan:
    """Where each new word comes from: the old words that it covers, and the one whose columns it has, 0 for none."""

    origins: tuple[tuple[int, ...], ...]
    sources: tuple[int, ...]


@dataclass(frozen=True)
class _Renumbered:
    sentence: Sentence
    pins: frozenset[int]
    forbidden: frozenset[tuple[int, int]]
    plan: Plan


class _Numbers:
    """The new number of every old word, None for one that is gone, and the new name of every empty node."""

    def __init__(self, sentence: Sentence, plan: Plan) -> None:
        n = len(sentence)
        self.words: list[int | None] = [0, *[None] * n]
        self._last: list[int] = [0] * (n + 1)  # the last new word that comes from an old one or from those before it
        for new, old_words in reversed(list(enumerate(plan.origins, start=1))):
            for old in old_words:
                self.words[old] = new
                self._last[old] = max(self._last[old], new)
        for old in range(1, n + 1):
            self._last[old] = self._last[old] or self._last[old - 1]
        self._plan = plan
        self._empty: dict[str, str] = {}
        counts: dict[int, int] = {}
        for before, line in sentence.layout.extra_lines:
            name = line.partition("\t")[0]
            if "." in name:
                place = self._last[before]
                counts[place] = counts.get(place, 0) + 1
                self._empty[name] = f"{place}.{counts[place]}"

    def deps(self, column: str) -> str:
        """A DEPS column with the new numbers, without what is gone."""
        return "|".join(filter(None, map(self._dependency, column.split("|")))) or "_"

    def _dependency(self, entry: str) -> str:
        match = _DEPENDENCY.fullmatch(entry)
        if match is None:
            return "" if entry == "_" else entry
        if "." in match[1]:
            return f"{self._empty.get(match[1], match[1])}:{match[2]}"
        new = self.words[int(match[1])] if int(match[1]) < len(self.words) else None
        return "" if new is None else f"{new}:{match[2]}"

    def extra_lines(self, lines: Sequence[tuple[int, str]]) -> tuple[tuple[int, str], ...]:
        """The lines of multiword tokens and empty nodes under their new names; tokens without words go."""
        found: list[tuple[int, str]] = []
        for before, line in lines:
            name, _, rest = line.partition("\t")
            if "." in name:
                columns = rest.split("\t")
                columns[7] = self.deps(columns[7])
                found.append((self._last[before], "\t".join([self._empty[name], *columns])))
                continue
            first, last = map(int, name.split("-"))
            covered = [
                new for new, own in enumerate(self._plan.origins, start=1) if any(first <= m <= last for m in own)
            ]
            if covered:
                found.append((covered[0] - 1, f"{covered[0]}-{covered[-1]}\t{rest}"))
        return _in_order(found)


def _renumbered(state: State, plan: Plan) -> _Renumbered:
    sentence = state.sentence
    numbers = _Numbers(sentence, plan)
    heads, labels = [-1], [None, *["_"] * len(plan.sources)]
    old_heads, old_labels = shown_heads(sentence), shown_labels(sentence)
    for new, source in enumerate(plan.sources, start=1):
        head = numbers.words[old_heads[source]] if source and old_heads[source] >= 0 else None
        known = head is not None and head != new  # two words on a cycle may have been joined
        heads.append(head if known and head is not None else -1)
        labels[new] = old_labels[source] if known else "_"
    pins = frozenset(new for new, old in enumerate(plan.sources, start=1) if old in state.pins and heads[new] >= 0)
    arcs = {(numbers.words[h], numbers.words[m]) for h, m in state.forbidden}
    forbidden = frozenset((h, m) for h, m in arcs if h is not None and m is not None and h != m)
    take = partial(_taken, sources=plan.sources)
    layout = sentence.layout
    moved = replace(
        layout,
        deps=tuple(map(numbers.deps, take(layout.deps))),
        misc=take(layout.misc),
        extra_lines=numbers.extra_lines(layout.extra_lines),
    )
    columns = {name: take(getattr(sentence, name)) for name in _COLUMNS}
    words = Sentence(**columns, heads=None, labels=None, layout=moved, place=sentence.place)
    return _Renumbered(with_arcs(words, heads, labels), pins, forbidden, plan)


def _taken(column: tuple[str, ...], sources: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(column[source - 1] if source else "_" for source in sources)


def _finished(
    before: State,
    after: _Renumbered,
    forms: Sequence[str],
    misc: Sequence[str],
    extra_lines: tuple[tuple[int, str], ...],
) -> State:
    """The new state, tokens of one word dissolved and the text brought along."""
    kept: list[tuple[int, str]] = []
    new_forms, new_misc = list(forms), list(misc)
    for words_before, line in extra_lines:
        name, form, *_, token_misc = line.split("\t")
        first, _, last = name.partition("-")
        if last and first == last:
            own = [entry for entry in _entries(new_misc[words_before]) if not _is_about_place(entry)]
            new_forms[words_before] = form
            new_misc[words_before] = "|".join([*own, *_entries(token_misc)]) or "_"
        else:
            kept.append((words_before, line))
    layout = replace(after.sentence.layout, misc=tuple(new_misc), extra_lines=tuple(kept))
    sentence = with_text_like(before.sentence, replace(after.sentence, forms=tuple(new_forms), layout=layout))
    done = before.done and len(after.pins) == len(sentence)
    return replace(before, sentence=sentence, pins=after.pins, forbidden=after.forbidden, done=done, original=None)


def with_text_like(before: Sentence, after: Sentence) -> Sentence:
    """The sentence with a `# text` that follows its words, if that of the earlier one did so."""
    if comment(before, "text") != raw_text([before]).text:
        return after
    text = f"# text = {raw_text([after]).text}"
    return with_comments(after, [text if _names_text(line) else line for line in after.layout.comments])


def _names_text(line: str) -> bool:
    name, equals, _ = line.removeprefix("#").partition("=")
    return bool(equals) and name.strip() == "text"


def _upper(state: State, first: int, second: int) -> int:
    """Which of two words gives the joined word its head; see the module."""
    heads = shown_heads(state.sentence)
    if heads[first] < 0 <= heads[second]:
        return first if _is_above(heads, second, first) else second
    if _is_above(heads, first, second):
        return second
    if _is_above(heads, second, first) or heads[second] < 0:
        return first
    return second if second in state.pins and first not in state.pins else first


def _is_above(heads: Sequence[int], word: int, other: int) -> bool:
    """Whether the other word is above the word."""
    seen = set()
    while word > 0 and word not in seen:
        seen.add(word)
        word = heads[word]
        if word == other:
            return True
    return False


def _token_of(sentence: Sentence, word: int) -> MultiwordToken | None:
    return next((token for token in multiword_tokens(sentence) if token.first <= word <= token.last), None)


def _in_order(lines: Sequence[tuple[int, str]]) -> tuple[tuple[int, str], ...]:
    """Extra lines by their place; an empty node stands before a multiword token."""
    return tuple(sorted(lines, key=lambda each: (each[0], "." not in each[1].partition("\t")[0])))


# ---------------------------------------------------------------------------------- MISC and DEPS


def _entries(column: str) -> list[str]:
    return [] if column == "_" else column.split("|")


def _is_about_place(entry: str) -> bool:
    return entry.partition("=")[0] in (*_SPACES, "TokenRange")


def _with_entry(column: str, name: str, value: str | None) -> str:
    """The MISC column with this entry in its place, or at the end; without it if the value is None."""
    entries = _entries(column)
    places = [i for i, entry in enumerate(entries) if entry.startswith(f"{name}=")]
    if value is None:
        entries = [entry for i, entry in enumerate(entries) if i not in places]
    elif places:
        entries[places[-1]] = f"{name}={value}"
    else:
        entries.append(f"{name}={value}")
    return "|".join(entries) or "_"


def _split_spaces(column: str, more: int) -> list[str]:
    """The MISC columns of a word's parts: nothing stands between them."""
    after = [entry for entry in _entries(column) if entry.partition("=")[0] in _SPACES]
    first = _with_entry(_with_entry(column, "SpacesAfter", None), "SpaceAfter", "No")
    return [first, *["SpaceAfter=No"] * (more - 1), "|".join(after) or "_"]


def _split_range(parts: Sequence[str], whole: str, forms: Sequence[str]) -> list[str]:
    """The same columns, of which the first has the TokenRange of the whole, each with its own."""
    match = _RANGE.fullmatch(misc_entry(parts[0], "TokenRange") or "")
    if match is None:
        return list(parts)
    start, end = int(match[1]), int(match[2])
    if end - start != len(whole) or "".join(forms) != whole:
        return [_with_entry(part, "TokenRange", None) for part in parts]
    placed = []
    for form, part in zip(forms, parts, strict=True):
        placed.append(_with_entry(part, "TokenRange", f"{start}:{start + len(form)}"))
        start += len(form)
    return placed


def _joined_misc(first: str, second: str) -> str:
    """The MISC column of two joined words: what follows the second follows both."""
    joined = first
    for name in _SPACES:
        joined = _with_entry(joined, name, misc_entry(second, name))
    starts, ends = (_RANGE.fullmatch(misc_entry(column, "TokenRange") or "") for column in (first, second))
    joined = _with_entry(joined, "TokenRange", f"{starts[1]}:{ends[2]}" if starts and ends else None)
    known = {entry.partition("=")[0] for entry in _entries(joined)}
    more = [entry for entry in _entries(second) if not _is_about_place(entry) and entry.partition("=")[0] not in known]
    return "|".join([*_entries(joined), *more]) or "_"


def _united(first: str, second: str) -> str:
    """The enhanced dependencies of two words, by the numbers of their heads."""
    if "_" in (first, second):
        return second if first == "_" else first
    entries = list(dict.fromkeys([*first.split("|"), *second.split("|")]))
    return "|".join(sorted(entries, key=_place_of_head))


def _place_of_head(entry: str) -> tuple[int, int]:
    match = _DEPENDENCY.fullmatch(entry)
    word, _, node = (match[1] if match else "0").partition(".")
    return int(word), int(node or 0)
