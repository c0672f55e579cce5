"""Sentences for Hypothesis: partial trees, pins, multiword tokens, empty nodes, enhanced dependencies.

Every word and every empty node has a lemma of its own, by which a test recognises it after it has been renumbered.
"""

from __future__ import annotations

from hypothesis import strategies as st

from headway.annotation.state import State, sentence_of
from headway.treebank.raw_text import raw_text

FORMS = st.text("abcdeäß-'", min_size=1, max_size=5)
MISC = st.sampled_from(["_", "SpaceAfter=No", "Gloss=x", "Gloss=x|SpaceAfter=No", "A=1|SpaceAfter=No|B=2"])


@st.composite
def heads_of(draw: st.DrawFn, n: int) -> list[int]:
    """Heads without a cycle, -1 where unknown: words are attached in random order to what is there already."""
    order = draw(st.permutations(range(1, n + 1)))
    heads = [-1] * (n + 1)
    for place, m in enumerate(order):
        heads[m] = draw(st.sampled_from([-1, 0, *order[:place]]))
    return heads


@st.composite
def states(draw: st.DrawFn, min_size: int = 1, max_size: int = 7) -> State:
    """A sentence and what is known of it."""
    n = draw(st.integers(min_size, max_size))
    heads = draw(heads_of(n))
    tokens = draw(multiword_tokens(n))
    empty = [draw(st.integers(0, 2)) if draw(st.booleans()) else 0 for _ in range(n + 1)]
    ids = [str(m) for m in range(n + 1)] + [f"{m}.{k}" for m in range(n + 1) for k in range(1, empty[m] + 1)]
    inside = {m for first, last in tokens for m in range(first, last + 1)}
    lines = []
    for m in range(n + 1):
        if m:
            misc = "_" if m in inside else draw(MISC)
            head, label = ("_", "_") if heads[m] < 0 else (str(heads[m]), f"l{m}")
            form, deps = draw(FORMS), draw(dependencies([each for each in ids if each != str(m)]))
            lines.append("\t".join([str(m), form, f"w{m}", "X", "_", "_", head, label, deps, misc]))
        for k in range(1, empty[m] + 1):
            deps = draw(dependencies(ids, at_least=1))
            lines.append("\t".join([f"{m}.{k}", "_", f"e{m}.{k}", "X", "_", "_", "_", "_", deps, "_"]))
        for first, last in tokens:
            if first == m + 1:
                form, misc = draw(FORMS), draw(st.sampled_from(["_", "SpaceAfter=No"]))
                lines.append("\t".join([f"{first}-{last}", form, *["_"] * 7, misc]))
    sentence = sentence_of("\n".join(lines) + "\n")
    if draw(st.booleans()):
        sentence = sentence_of(f"# text = {raw_text([sentence]).text}\n{sentence.to_conllu()}")
    known = [m for m in range(1, n + 1) if heads[m] >= 0]
    pins = frozenset(draw(st.lists(st.sampled_from(known), unique=True)) if known else [])
    arcs = [(h, m) for h in range(n + 1) for m in range(1, n + 1) if h != m and (m not in pins or heads[m] != h)]
    forbidden = frozenset(draw(st.lists(st.sampled_from(arcs), max_size=3)) if arcs else [])
    return State(sentence, pins, forbidden, done=len(pins) == n and draw(st.booleans()))


@st.composite
def multiword_tokens(draw: st.DrawFn, n: int) -> list[tuple[int, int]]:
    """Ranges of two words or more that do not overlap."""
    found, m = [], 1
    while m < n:
        last = draw(st.integers(m, min(n, m + 2)))
        if last > m and draw(st.booleans()):
            found.append((m, last))
        m = last + 1
    return found


@st.composite
def dependencies(draw: st.DrawFn, ids: list[str], at_least: int = 0) -> str:
    """A DEPS column over these nodes."""
    chosen = draw(st.lists(st.sampled_from(ids), min_size=at_least, max_size=2, unique=True))
    chosen.sort(key=lambda name: tuple(map(int, name.split("."))))
    return "|".join(f"{name}:dep" for name in chosen) or "_"
