"""What is wrong, or odd, in an annotated sentence: the rules of Universal Dependencies that a sentence can be checked
for alone. The names of rules are those of UD's own validator where it has them.

- the tree: `no-head`, `cycle`, `multiple-roots`;
- labels: `unknown-label`, `root-label` (the label `root` if and only if the head is the root), `no-label`;
- columns: `unknown-upos`, `invalid-feature`, `feature-order`, `empty-form`, `text` (`# text` follows forms and
  SpaceAfter);
- `leaf-…`: function words and punctuation have no dependents but a few (negation, coordination, fixed expressions);
- `right-to-left-…`: relations that always go from left to right.

In a treebank that is not one of UD (`Inventory`), only the tree, the columns and unknown labels are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from headway.annotation.inventory import UPOS, Inventory, base
from headway.annotation.state import shown_heads, shown_labels
from headway.models.constraints import named
from headway.treebank import Sentence
from headway.treebank.annotations import comment
from headway.treebank.raw_text import raw_text
from headway.treebank.trees import cycle

Level = Literal["error", "warning"]

_FEATURE = re.compile(r"[A-Z][A-Za-z0-9]*(?:\[[a-z0-9]+\])?=[A-Z0-9][A-Za-z0-9]*(?:,[A-Z0-9][A-Za-z0-9]*)*")
_LEFT_TO_RIGHT = frozenset({"appos", "conj", "fixed", "flat", "goeswith"})


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BESIDE_ADVERBS = ("leaf-mark-case", _names("advmod obl goeswith fixed reparandum conj cc punct"))
_AUXILIARY = ("leaf-aux-cop", _names("goeswith fixed reparandum conj cc punct"))
# The dependents that a word of a relation may have, whatever else it is; negation is always allowed.
_LEAVES = {
    "mark": _BESIDE_ADVERBS,
    "case": _BESIDE_ADVERBS,
    "aux": _AUXILIARY,
    "cop": _AUXILIARY,
    "det": (
        "leaf-det",
        _names("det case advmod obl clf goeswith fixed flat compound reparandum discourse parataxis conj cc punct"),
    ),
    "cc": ("leaf-cc", _names("goeswith fixed reparandum conj punct")),
    "punct": ("leaf-punct", _names("punct")),
}


@dataclass(frozen=True)
class Message:
    """What a rule says about a word, or about the sentence (None)."""

    word: int | None
    level: Level
    rule: str
    text: str

    def to_dict(self) -> dict[str, Any]:
        """The message as JSON has it."""
        return asdict(self)


_UNIVERSAL = Inventory()


def validate(sentence: Sentence, inventory: Inventory = _UNIVERSAL) -> list[Message]:
    """Everything that the rules say of a sentence, by its words; what concerns the whole comes first.

    >>> [message.rule for message in validate(Sentence.from_words(["Dogs", "bark"], heads=[-1, 0, 0]))]
    ['no-label', 'no-label', 'multiple-roots']
    """
    found = [*_tree(sentence), *_labels(sentence, inventory), *_columns(sentence, inventory)]
    if inventory.has_ud_labels:
        found += [*_roots(sentence), *_leaves(sentence), *_directions(sentence)]
    return sorted(found, key=lambda message: message.word or 0)


def _tree(sentence: Sentence) -> Iterator[Message]:
    heads = shown_heads(sentence)
    for m in range(1, len(heads)):
        if heads[m] < 0:
            yield Message(m, "warning", "no-head", "the word has no head yet")
    if words := cycle([-1, *(max(head, 0) for head in heads[1:])]):
        path = " -> ".join(named(sentence, m) for m in (*words, words[0]))
        yield Message(words[0], "error", "cycle", f"the heads form a cycle, {path}")


def _roots(sentence: Sentence) -> Iterator[Message]:
    heads, labels = shown_heads(sentence), shown_labels(sentence)
    roots = [m for m in range(1, len(heads)) if heads[m] == 0]
    for m in roots[1:]:
        cause = f"the root has a child already, {named(sentence, roots[0])}; it may have one"
        yield Message(m, "error", "multiple-roots", cause)
    for m in range(1, len(heads)):
        label = labels[m]
        if heads[m] < 0 or label in (None, "_"):
            continue
        if heads[m] == 0 and base(str(label)) != "root":
            yield Message(m, "error", "root-label", f"the word is on the root, and its label {label}; expected root")
        elif heads[m] > 0 and base(str(label)) == "root":
            yield Message(m, "error", "root-label", "the label is root, but the head is a word")


def _labels(sentence: Sentence, inventory: Inventory) -> Iterator[Message]:
    heads, labels = shown_heads(sentence), shown_labels(sentence)
    for m in range(1, len(heads)):
        if heads[m] < 0:
            continue
        label = str(labels[m])
        if label == "_":
            yield Message(m, "warning", "no-label", "the word has a head but no label")
        elif not inventory.knows(label):
            if inventory.has_ud_labels:
                cause = f"the label {label} is not a relation of Universal Dependencies; is it misspelt?"
                yield Message(m, "error", "unknown-label", cause)
            else:
                yield Message(m, "warning", "unknown-label", f"the label {label} is new in this treebank")


def _columns(sentence: Sentence, inventory: Inventory) -> Iterator[Message]:
    for m, (form, upos, feats) in enumerate(zip(sentence.forms, sentence.upos, sentence.feats, strict=True), start=1):
        if form == "_":
            yield Message(m, "error", "empty-form", 'the form is "_"; write what stands in the text')
        if upos != "_" and upos not in UPOS and inventory.has_ud_tags:
            yield Message(m, "error", "unknown-upos", f"{upos} is not one of the 17 universal tags")
        if feats != "_" and inventory.has_ud_tags:
            yield from _features(m, feats)
    text = comment(sentence, "text")
    if text is not None and len(sentence) and text != raw_text([sentence]).text:
        words = raw_text([sentence]).text
        yield Message(None, "error", "text", f'the words are "{_short(words)}", which is not what "# text" says')


def _features(word: int, feats: str) -> Iterator[Message]:
    entries = feats.split("|")
    for entry in entries:
        if not _FEATURE.fullmatch(entry):
            yield Message(word, "error", "invalid-feature", f"{entry} is not written as Name=Value")
            return
    names = [entry.partition("=")[0].lower() for entry in entries]
    values = [entry.partition("=")[2].split(",") for entry in entries]
    if len(set(names)) < len(names):
        yield Message(word, "error", "invalid-feature", "a feature is given twice; separate its values by a comma")
    elif names != sorted(names) or any(own != sorted(own, key=str.lower) for own in values):
        yield Message(word, "error", "feature-order", "features and their values are written in alphabetical order")


def _leaves(sentence: Sentence) -> Iterator[Message]:
    heads, labels = shown_heads(sentence), shown_labels(sentence)
    for m in range(1, len(heads)):
        head = heads[m]
        if head <= 0:
            continue
        rule, allowed = _LEAVES.get(base(str(labels[head])), ("", frozenset()))
        label = base(str(labels[m]))
        if rule and label != "_" and label not in allowed and not _is_negation(sentence, m, label):
            cause = f"{named(sentence, head)} is {labels[head]}, which has no dependent {labels[m]}"
            yield Message(m, "error", rule, cause)


def _is_negation(sentence: Sentence, word: int, label: str) -> bool:
    return label == "advmod" and "Polarity=Neg" in sentence.feats[word - 1].split("|")


def _directions(sentence: Sentence) -> Iterator[Message]:
    heads, labels = shown_heads(sentence), shown_labels(sentence)
    for m in range(1, len(heads)):
        label = base(str(labels[m]))
        if label in _LEFT_TO_RIGHT and heads[m] > m:
            cause = (
                f"{labels[m]} goes from left to right, but the head {named(sentence, heads[m])} stands after the word"
            )
            yield Message(m, "error", f"right-to-left-{label}", cause)


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"
