"""An artificial language whose heads follow from its tags, and whose nouns are mostly new in every sentence.

plain       the big stone0 moves a small stone1 slowly .     determiners and adjectives under the noun to the right,
                                                             nouns, adverbs and the full stop under the verb
crossing    indeed the stone0 moves a stone1 .               "indeed" hangs on the last noun, across the verb
two roots   the stone0 moves ; a stone1 turns .              both verbs are on the root
"""

from __future__ import annotations

import numpy as np

from headway.treebank import Sentence

LABELS = ("adv", "amod", "det", "mark", "obj", "punct", "root", "subj")


def sentences(count: int, seed: int, *, crossing: bool = False, two_roots: bool = False) -> list[Sentence]:
    """Plain sentences, and in turn with them those of the other kinds."""
    rng = np.random.default_rng(seed)
    kinds = ["plain", *["crossing"] * crossing, *["two roots"] * two_roots]
    return [_sentence(rng, kinds[i % len(kinds)]) for i in range(count)]


def _sentence(rng: np.random.Generator, kind: str) -> Sentence:
    words = _Words(rng)
    if kind == "crossing":
        mark = words.add("indeed", "M", "mark")
    verb = words.clause(0)
    if kind == "two roots":
        separator = words.add(";", "S", "punct")
        words.heads[separator] = verb
        verb = words.clause(0)
    else:
        last = words.noun_phrase("obj", verb)
        for _ in range(rng.integers(0, 3)):
            words.heads[words.add(str(rng.choice(["slowly", "often"])), "A", "adv")] = verb
        if kind == "crossing":
            words.heads[mark] = last
    words.heads[words.add(".", "S", "punct")] = verb
    return words.sentence()


class _Words:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.forms: list[str] = []
        self.tags: list[str] = []
        self.labels: list[str] = []
        self.heads: dict[int, int] = {}

    def add(self, form: str, tag: str, label: str) -> int:
        """The new word's number; its head is still to be set."""
        self.forms.append(form)
        self.tags.append(tag)
        self.labels.append(label)
        return len(self.forms)

    def noun_phrase(self, label: str, head: int) -> int:
        modifiers = [self.add(str(self.rng.choice(["the", "a"])), "D", "det")]
        modifiers += [
            self.add(str(self.rng.choice(["big", "small"])), "J", "amod") for _ in range(self.rng.integers(0, 3))
        ]
        noun = self.add(f"stone{self.rng.integers(1000)}", "N", label)
        self.heads.update(dict.fromkeys(modifiers, noun))
        self.heads[noun] = head
        return noun

    def clause(self, head: int) -> int:
        """Subject and verb; the number of the verb."""
        noun = self.noun_phrase("subj", -1)
        verb = self.add(str(self.rng.choice(["moves", "turns", "sees"])), "V", "root")
        self.heads[noun], self.heads[verb] = verb, head
        return verb

    def sentence(self) -> Sentence:
        return Sentence.from_words(
            self.forms,
            lemmas=[form.rstrip("0123456789") for form in self.forms],
            upos=self.tags,
            xpos=self.tags,
            heads=[-1, *(self.heads[m] for m in range(1, len(self.forms) + 1))],
            labels=[None, *self.labels],
        )
