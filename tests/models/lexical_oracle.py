"""Lexical grammars by their formulas: dictionaries of counts, one line a level. The naive twin of `lexical_grammar`."""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from headway.treebank import Sentence

LEFT, RIGHT = 0, 1
STOP = "<stop>"
UNKNOWN = "<unknown>"  # no test has a word or tag of this name
ROOT = ("<root>", "<root>")

Modifier = tuple[str, str]  # tag and word; (STOP, STOP) at the end


def state_after(configuration: str, tag: str, upos: str, form: str) -> int:
    if configuration == "LEX":
        return 0
    if configuration == "LEX+F":
        return 1
    if "CC" in (tag, upos) or "CCONJ" in (tag, upos):
        return 1
    marks = [",", ".", ":", "``", "''", "-LRB-", "-RRB-", "HYPH", "NFP", "PUNCT"]
    if tag in marks or upos in marks or {unicodedata.category(c)[0] for c in form} == {"P"}:
        return 2
    return 3


class NaiveGrammar:
    """Counts of every level, and the probabilities they give."""

    def __init__(
        self,
        configuration: str,
        sentences: Sequence[Sentence],
        tags: Sequence[Sequence[str]],
        rare: int,
        back_off: float,
    ) -> None:
        self.configuration = configuration
        self.back_off = back_off
        forms = Counter(form for sentence in sentences for form in sentence.forms)
        self.words = {form for form, count in forms.items() if count >= rare} | {UNKNOWN}
        self.tags = {tag for its_tags in tags for tag in its_tags} | {UNKNOWN}
        self.seen: dict[Hashable, Counter[str]] = defaultdict(Counter)
        for sentence, its_tags in zip(sentences, tags, strict=True):
            for (word, tag), direction, state, (outcome, its_word) in self.outcomes(sentence, its_tags):
                self.seen["A1", word, tag, direction, state][outcome] += 1
                self.seen["A2", tag, direction, state][outcome] += 1
                self.seen["A3"][outcome] += 1
                if outcome != STOP:
                    self.seen["B1", outcome, word, tag, direction, state][its_word] += 1
                    self.seen["B2", outcome, tag, direction, state][its_word] += 1
                    self.seen["B3", outcome][its_word] += 1

    def node(self, form: str, tag: str) -> tuple[str, str]:
        """Word and tag as the grammar knows them."""
        return form if form in self.words else UNKNOWN, tag if tag in self.tags else UNKNOWN

    def outcomes(self, sentence: Sentence, tags: Sequence[str]) -> Iterator[tuple[Any, int, int, Modifier]]:
        """Head, direction, state and modifier, one after the other, as a tree generates them."""
        assert sentence.heads is not None
        heads = sentence.heads.tolist()
        n = len(sentence)
        for h in range(n + 1):
            head = self.node(sentence.forms[h - 1], tags[h - 1]) if h else ROOT
            left = [m for m in range(h - 1, 0, -1) if heads[m] == h]
            right = [m for m in range(h + 1, n + 1) if heads[m] == h]
            for direction, modifiers in ((LEFT, left), (RIGHT, right)):
                if (h, direction) == (0, LEFT):
                    continue
                state = 0
                for m in modifiers:
                    form, tag = sentence.forms[m - 1], tags[m - 1]
                    word, known_tag = self.node(form, tag)
                    yield head, direction, state, (known_tag, word)
                    state = state_after(self.configuration, tag, sentence.upos[m - 1], form)
                yield head, direction, state, (STOP, STOP)

    def backed_off(self, outcome: str, finest: Hashable, middle: Hashable, last: float) -> float:
        first, e_1 = self.level(outcome, finest)
        second, e_2 = self.level(outcome, middle)
        return first * e_1 + (1 - first) * (second * e_2 + (1 - second) * last)

    def level(self, outcome: str, context: Hashable) -> tuple[float, float]:
        """Lambda, and the relative frequency it is the weight of."""
        if context not in self.seen:
            return 0.0, 0.0
        counts = self.seen[context]
        f, u = sum(counts.values()), len(counts)
        return f / (f + self.back_off * u), counts[outcome] / f

    def p_tag(self, outcome: str, head: tuple[str, str], direction: int, state: int) -> float:
        """P_A."""
        every = self.seen["A3"]
        last = (every[outcome] + 1) / (sum(every.values()) + len(self.tags) + 1)
        return self.backed_off(outcome, ("A1", *head, direction, state), ("A2", head[1], direction, state), last)

    def p_word(self, word: str, tag: str, head: tuple[str, str], direction: int, state: int) -> float:
        """P_B."""
        with_tag = self.seen["B3", tag] if ("B3", tag) in self.seen else Counter[str]()
        last = (with_tag[word] + 1 / len(self.words)) / (sum(with_tag.values()) + 1)
        return self.backed_off(word, ("B1", tag, *head, direction, state), ("B2", tag, head[1], direction, state), last)
