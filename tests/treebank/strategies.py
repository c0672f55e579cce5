"""Random heads, and random sentences as the text of a file with what the reader must find in it.

The text is put together here line by line, without headway's writer.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

# Everything a column may hold: any character but those that separate columns and lines.
values = st.text(st.characters(codec="utf-8", exclude_characters="\t\n\r"), min_size=1, max_size=6)
comments = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=8).map("#".__add__)


@dataclass(frozen=True)
class Written:
    """A sentence's lines, without line ends, and its columns; `heads` is None when every word has "_"."""

    lines: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    comments: tuple[str, ...]
    heads: tuple[int, ...] | None

    def text(self, newline: str = "\n") -> str:
        return "".join(line + newline for line in (*self.lines, ""))


@st.composite
def head_choices(draw: st.DrawFn, max_words: int = 8) -> tuple[int, ...]:
    """Any choice of heads, tree or not; no word is its own head."""
    n = draw(st.integers(0, max_words))
    return (-1, *(draw(st.sampled_from([h for h in range(n + 1) if h != m])) for m in range(1, n + 1)))


@st.composite
def trees(draw: st.DrawFn, max_words: int = 8) -> tuple[int, ...]:
    """Any tree: words join it in a random order, each under one that has joined."""
    n = draw(st.integers(0, max_words))
    order = draw(st.permutations(range(1, n + 1)))
    heads = [-1] * (n + 1)
    joined = [0]
    for word in order:
        heads[word] = draw(st.sampled_from(joined))
        joined.append(word)
    return tuple(heads)


@st.composite
def written_sentences(draw: st.DrawFn, *, conllu: bool = True, partial: bool = False) -> Written:
    """A well-formed sentence; with `conllu` also comments, multiword tokens and empty nodes; with `partial` some words
    without heads."""
    heads = draw(head_choices(max_words=5).filter(lambda heads: len(heads) > 1))
    n = len(heads) - 1
    annotated = draw(st.booleans())
    hidden = [m for m in range(1, n + 1) if not annotated or (partial and draw(st.booleans()))]
    words = [
        [
            str(m),
            *(draw(values) for _ in range(5)),
            "_" if m in hidden else str(heads[m]),
            "_" if m in hidden else draw(values),
            draw(values),
            draw(values),
        ]
        for m in range(1, n + 1)
    ]
    before = tuple(draw(st.lists(comments, max_size=3))) if conllu else ()
    lines = list(before)
    free = 1  # the first word that no multiword token covers
    for position in range(n + 1):
        for node in range(draw(st.integers(0, 2)) if conllu else 0):
            lines.append("\t".join([f"{position}.{node + 1}", *(draw(values) for _ in range(9))]))
        start = position + 1
        if conllu and free <= start <= n and draw(st.booleans()):
            end = draw(st.integers(start, n))
            lines.append("\t".join([f"{start}-{end}", *(draw(values) for _ in range(9))]))
            free = end + 1
        if position < n:
            lines.append("\t".join(words[position]))
    columns = tuple(tuple(word[c] for word in words) for c in range(10))
    seen = tuple(-1 if m in hidden else h for m, h in enumerate(heads))
    return Written(tuple(lines), columns, before, None if len(hidden) == n else seen)
