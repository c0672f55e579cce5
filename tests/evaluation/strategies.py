"""Pairs of trees over the same words: random, and often right, as predictions are."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from headway.treebank import Sentence

LABELS = ("nsubj", "obj", "nmod", "nmod:poss", "det", "punct", "root", "_")
FORMS = ("dog", "bark", "a.", "5", "--", "...", "%", "«", "·", "_", "،", "$", "`", "€", "°", "+", "e\u0301", "\u0301")


@dataclass(frozen=True)
class Tree:
    """The plain data of a sentence: what the naive twins look at instead of a `Sentence`."""

    forms: list[str]
    heads: list[int]  # of word 1 first
    labels: list[str]

    def sentence(self) -> Sentence:
        return Sentence.from_words(self.forms, heads=[-1, *self.heads], labels=[None, *self.labels])


@st.composite
def tree_pairs(draw: st.DrawFn, max_words: int = 14) -> tuple[Tree, Tree]:
    """Gold and predicted trees of the same words, with any number of roots."""
    n = draw(st.integers(1, max_words))
    forms = draw(st.lists(st.sampled_from(FORMS), min_size=n, max_size=n))
    labels = st.sampled_from(LABELS)
    gold_heads = _without_cycles([draw(_head(m, n)) for m in range(1, n + 1)])
    gold_labels = draw(st.lists(labels, min_size=n, max_size=n))
    heads = _without_cycles([h if draw(st.booleans()) else draw(_head(m, n)) for m, h in enumerate(gold_heads, 1)])
    predicted_labels = [label if draw(st.booleans()) else draw(labels) for label in gold_labels]
    return Tree(forms, gold_heads, gold_labels), Tree(forms, heads, predicted_labels)


def _without_cycles(heads: list[int]) -> list[int]:
    """The same heads (of word 1 first), a word of every cycle on the root."""
    found = list(heads)
    for word in range(1, len(found) + 1):
        seen = {0}
        while word not in seen:
            seen.add(word)
            word = found[word - 1]
        if word:
            found[word - 1] = 0
    return found


def _head(m: int, n: int) -> st.SearchStrategy[int]:
    return st.integers(0, n).filter(lambda h: h != m)
