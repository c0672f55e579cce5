"""What a treebank notes about a sentence beside words and tree: comments, MISC entries, multiword tokens, offsets.

- A comment is a line `# name = value`, or `# name` alone, before the words.
- MISC is a column of entries `Name=value` with "|" between them, "_" if there are none. Headway knows `SpaceAfter=No`
  (no white space follows), `TokenRange=start:end` (where a word stands in its text, in characters),
  `HeadProbability=0.9312`, `LabelProbability=0.9876` (of the label, given the head) and `Unsure=Yes` (what a parser
  says about a head).
- The line of a multiword token (`2-3`) has its own form and its own MISC.

The offsets of a sentence that was made from text are integers in its layout; they become TokenRange when it is written.
Its joints, where a model is still to say what is a sentence (a draft), are never written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headway.arrays import Floats

if TYPE_CHECKING:
    from headway.treebank.sentence import Layout, Sentence

Offsets = tuple[tuple[int, int], ...]
NO_JOINT = -999  # the score of an end within a token

_NEW_PARAGRAPH = re.compile(r"#\s*new(par|doc)\b")
_TOKEN_RANGE = re.compile(r"(?:.*\|)?TokenRange=([0-9]{1,15}):([0-9]{1,15})(?:\|.*)?")


class Joints(NamedTuple):
    """Where a sentence that was made from text might be cut: what its splitter knows of the places after its words."""

    scores: tuple[int, ...]  # of a sentence end, above zero where the splitter thinks that one is there
    gaps: tuple[int, ...]  # the class of the white space that follows, 0 where none does, -1 within a token


class Doubt(NamedTuple):
    """The scores between which a splitter does not know whether a sentence ends."""

    low: int
    high: int


def comment(sentence: Sentence, name: str) -> str | None:
    """The value of the first comment of that name; None if there is none."""
    return next((value for key, value in map(_name_and_value, sentence.layout.comments) if key == name), None)


def with_comment(sentence: Sentence, name: str, value: str) -> Sentence:
    """The sentence with this as its last comment, in place of any other of that name."""
    kept = [line for line in sentence.layout.comments if _name_and_value(line)[0] != name]
    return _with_comments(sentence, *kept, f"# {name} = {value}")


def with_first_comments(sentence: Sentence, *lines: str) -> Sentence:
    """The sentence with these lines before its comments."""
    return _with_comments(sentence, *lines, *sentence.layout.comments)


def with_sentence_number(sentence: Sentence, number: int) -> Sentence:
    """The sentence with its number in a text, behind the comment that a paragraph begins."""
    lines = sentence.layout.comments
    first = sum(1 for _ in takewhile(_NEW_PARAGRAPH.match, lines))
    return _with_comments(sentence, *lines[:first], f"# sent_id = {number}", *lines[first:])


def starts_paragraph(sentence: Sentence) -> bool:
    """Whether a comment says `newpar` or `newdoc`."""
    return any(map(_NEW_PARAGRAPH.match, sentence.layout.comments))


def misc_entry(misc: str, name: str) -> str | None:
    """The value of the last entry of that name in a MISC column; None if there is none.

    >>> misc_entry("SpaceAfter=No|TokenRange=0:4", "TokenRange")
    '0:4'
    """
    values = [entry.removeprefix(f"{name}=") for entry in misc.split("|") if entry.startswith(f"{name}=")]
    return values[-1] if values else None


def with_misc_entries(misc: str, **values: str | None) -> str:
    """The MISC column with these entries at its end, in place of others of their names; None only removes.

    >>> with_misc_entries("HeadProbability=0.1|SpaceAfter=No", Unsure="Yes", HeadProbability="0.2500")
    'SpaceAfter=No|Unsure=Yes|HeadProbability=0.2500'
    >>> with_misc_entries("Unsure=Yes", Unsure=None)
    '_'
    """
    replaced = tuple(f"{name}=" for name in values)
    entries = [entry for entry in misc.split("|") if entry != "_" and not entry.startswith(replaced)]
    entries += [f"{name}={value}" for name, value in values.items() if value is not None]
    return "|".join(entries) or "_"


def features_of(feats: str) -> dict[str, str | bool]:
    """A FEATS column by name; true for a feature without a value, as CoNLL-X treebanks have them.

    >>> features_of("Case=Nom|Number=Sing"), features_of("_"), features_of("F|S")
    ({'Case': 'Nom', 'Number': 'Sing'}, {}, {'F': True, 'S': True})
    """
    entries = [entry.partition("=") for entry in feats.split("|") if entry not in ("_", "")]
    return {name: value if equals else True for name, equals, value in entries}


class MultiwordToken(NamedTuple):
    """A token of several words, from the `first` to the `last`."""

    first: int
    last: int
    form: str
    misc: str


def multiword_tokens(sentence: Sentence) -> Iterator[MultiwordToken]:
    """The multiword tokens of a sentence in order."""
    for _, line in sentence.layout.extra_lines:
        number, form, *_, misc = line.split("\t")
        first, dash, last = number.partition("-")
        if dash:  # an empty node, 8.1, has none
            yield MultiwordToken(int(first), int(last), form, misc)


def space_after(misc: str) -> bool:
    """Whether white space follows a token with this MISC column."""
    return "SpaceAfter=No" not in misc.split("|")


def spaces_after(sentence: Sentence) -> list[bool]:
    """Whether white space follows each word: within a multiword token none does, after it as its own line says."""
    spaces = list(map(space_after, sentence.layout.misc))
    for token in multiword_tokens(sentence):
        spaces[token.first - 1 : token.last] = [False] * (token.last - token.first) + [space_after(token.misc)]
    return spaces


def offsets_of(sentence: Sentence) -> Offsets | None:
    """Where each word begins and ends in the text, in characters; None unless every word has its TokenRange."""
    layout = sentence.layout
    if layout.offsets is not None:
        return layout.offsets
    matches = [_TOKEN_RANGE.fullmatch(misc) for misc in layout.misc]
    if None in matches:
        return None
    return tuple((int(match[1]), int(match[2])) for match in matches if match)


def misc_as_written(layout: Layout) -> tuple[str, ...]:
    """The MISC column of a CoNLL-U file, offsets included."""
    if layout.offsets is None:
        return layout.misc
    return tuple(map(_with_range, layout.misc, layout.offsets))


def extra_lines_as_written(layout: Layout) -> tuple[tuple[int, str], ...]:
    """The lines of multiword tokens and empty nodes in a CoNLL-U file, the offsets of multiword tokens included."""
    if layout.offsets is None:
        return layout.extra_lines
    written = []
    for words_before, line in layout.extra_lines:
        columns, _, misc = line.rpartition("\t")
        _, dash, last = columns.partition("\t")[0].partition("-")
        if dash:
            place = layout.offsets[words_before][0], layout.offsets[int(last) - 1][1]
            line = f"{columns}\t{_with_range(misc, place)}"
        written.append((words_before, line))
    return tuple(written)


def head_probabilities(sentence: Sentence) -> Floats | None:
    """The probability of each word's head, (n+1,), 1 for the root; None unless every word has its HeadProbability."""
    if sentence.layout.format != "conllu":
        return None
    values = [misc_entry(misc, "HeadProbability") for misc in sentence.layout.misc]
    if None in values:
        return None
    return np.array([1.0, *(_probability(value, sentence) for value in values if value is not None)])


def with_head_probabilities(
    sentence: Sentence,
    probabilities: Floats,
    labels: Floats | None = None,
    *,
    unsure_below: float = 0.0,
    only_unsure: bool = False,
) -> Sentence:
    """The sentence with HeadProbability in MISC, from `probabilities` (n+1,), and Unsure=Yes where it is low;
    LabelProbability from `labels` (n+1,), where these are known.

    With `only_unsure`, the other words get none of them. What an earlier parse noted is replaced.
    """
    layout, absent = sentence.layout, ("_",) * len(sentence)
    # In CoNLL-X these columns are PHEAD and PDEPREL.
    deps, misc = (layout.deps, misc_as_written(layout)) if layout.format == "conllu" else (absent, absent)
    of_labels = [None] * len(sentence) if labels is None else labels[1:].tolist()
    noted = []
    for column, probability, label in zip(misc, probabilities[1:].tolist(), of_labels, strict=True):
        unsure = probability < unsure_below
        shown = unsure or not only_unsure
        entries = {
            "Unsure": "Yes" if unsure else None,
            "HeadProbability": f"{probability:.4f}" if shown else None,
            "LabelProbability": f"{label:.4f}" if shown and label is not None else None,
        }
        noted.append(with_misc_entries(column, **entries))
    extra_lines = extra_lines_as_written(layout)
    changed = replace(layout, format="conllu", deps=deps, misc=tuple(noted), extra_lines=extra_lines, offsets=None)
    return replace(sentence, layout=changed)


def _name_and_value(line: str) -> tuple[str, str] | tuple[None, None]:
    name, equals, value = line.removeprefix("#").partition("=")
    return (name.strip(), value.strip()) if equals else (None, None)


def _with_comments(sentence: Sentence, *lines: str) -> Sentence:
    return replace(sentence, layout=replace(sentence.layout, comments=lines))


def _with_range(misc: str, place: tuple[int, int]) -> str:
    entry = f"TokenRange={place[0]}:{place[1]}"
    return entry if misc == "_" else f"{misc}|{entry}"


def _probability(text: str, sentence: Sentence) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        cause = f"a HeadProbability is {text[:30]!a}; expected a number from 0 to 1"
        raise sentence.place.error(cause)
    return value
