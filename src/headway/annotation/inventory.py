"""The labels, tags and features that a treebank uses, for completion and for checks.

A treebank counts as one of Universal Dependencies (UD) if nine in ten of its labels, or UPOS tags, are UD's: the rest
are then mistakes. In another treebank, a label is known if the file had it at the beginning, or the model has it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

from headway.treebank import Sentence

RELATIONS = frozenset(
    (
        *("acl", "advcl", "advmod", "amod", "appos", "aux", "case", "cc", "ccomp", "clf", "compound", "conj", "cop"),
        *("csubj", "dep", "det", "discourse", "dislocated", "expl", "fixed", "flat", "goeswith", "iobj", "list"),
        *("mark", "nmod", "nsubj", "nummod", "obj", "obl", "orphan", "parataxis", "punct", "reparandum", "root"),
        *("vocative", "xcomp"),
    )
)
UPOS = frozenset(
    (
        *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT"),
        *("SCONJ", "SYM", "VERB", "X"),
    )
)

_SHARE = 0.9  # of UD's labels or tags in a treebank of UD


def base(label: str) -> str:
    """A relation without its subtype.

    >>> base("nmod:poss")
    'nmod'
    """
    return label.partition(":")[0]


@dataclass
class Inventory:
    """How often a file has each label, tag and feature; `model_labels` are those of the model.

    All sentences are added before anything is asked.
    """

    labels: Counter[str] = field(default_factory=Counter)
    upos: Counter[str] = field(default_factory=Counter)
    xpos: Counter[str] = field(default_factory=Counter)
    feats: Counter[str] = field(default_factory=Counter)
    model_labels: tuple[str, ...] = ()

    def add(self, sentence: Sentence) -> None:
        """Count a sentence."""
        if sentence.labels is not None:
            self.labels.update(label for label in sentence.labels if label not in (None, "_"))
        self.upos.update(sentence.upos)
        self.xpos.update(sentence.xpos)
        for column in sentence.feats:
            if column != "_":
                self.feats.update(column.split("|"))
        for counts in (self.upos, self.xpos):
            counts.pop("_", None)

    @cached_property
    def has_ud_labels(self) -> bool:
        """Whether the labels are UD's."""
        return _mostly(self.labels or Counter(self.model_labels), RELATIONS)

    @cached_property
    def has_ud_tags(self) -> bool:
        """Whether the UPOS tags are UD's."""
        return _mostly(self.upos, UPOS)

    def knows(self, label: str) -> bool:
        """Whether the treebank may use that label."""
        if self.has_ud_labels:
            return base(label) in RELATIONS
        return label in self.labels or label in self.model_labels

    def to_dict(self, since: Inventory) -> dict[str, list[str]]:
        """For completion, frequent ones first: of the file, added `since`, of the model, of UD."""
        labels = [*_by_count(self.labels), *_by_count(since.labels), *self.model_labels]
        upos = [*_by_count(self.upos), *_by_count(since.upos)]
        return {
            "labels": list(dict.fromkeys([*labels, *(sorted(RELATIONS) if self.has_ud_labels else ())])),
            "upos": list(dict.fromkeys([*upos, *(sorted(UPOS) if self.has_ud_tags else ())])),
            "xpos": list(dict.fromkeys([*_by_count(self.xpos), *_by_count(since.xpos)])),
            "feats": list(dict.fromkeys([*_by_count(self.feats), *_by_count(since.feats)])),
        }


def _mostly(counts: Counter[str], known: frozenset[str]) -> bool:
    return sum(count for name, count in counts.items() if base(name) in known) >= _SHARE * counts.total()


def _by_count(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda name: (-counts[name], name))
