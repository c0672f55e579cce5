"""Sentences to draw: any choice of heads, words of any script, labels of any length."""

from __future__ import annotations

from hypothesis import strategies as st

from headway.treebank import Sentence, is_projective
from tests.treebank.strategies import head_choices, trees, values

FORMS = ("a", "is", "dogs", "Donaudampfschiff", "犬", "走っ", "كلب", "e\u0301te\u0301", "<&>", "$x$", ".")
LABELS = ("_", "x", "det", "nsubj:pass", "compound:prt", "acl:relcl:with:a:long:name")
TAGS = ("_", "NOUN", "X")


@st.composite
def sentences(draw: st.DrawFn, max_words: int = 9, *, kind: str = "any", wild: bool = False) -> Sentence:
    """`kind`: any choice of heads, a "tree", or a "projective" tree. `wild` words hold any character a file can."""
    strategy = head_choices(max_words) if kind == "any" else trees(max_words)
    heads = draw(strategy.filter(is_projective) if kind == "projective" else strategy)
    n = len(heads) - 1
    texts = [st.sampled_from(each) if not wild else values for each in (FORMS, LABELS, TAGS)]
    forms, labels, tags = (draw(st.lists(text, min_size=n, max_size=n)) for text in texts)
    return Sentence.from_words(forms, upos=tags, heads=heads, labels=[None, *labels])


def probabilities(n: int) -> st.SearchStrategy[list[float]]:
    return st.lists(st.floats(0, 1), min_size=n + 1, max_size=n + 1)
