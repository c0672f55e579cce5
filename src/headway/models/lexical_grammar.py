"""Lexicalised deterministic grammars: LEX, LEX+F and LEX+FCP of luque2012, section 5.2, with Collins' back-off.

A head h generates its modifiers on each side d from the inside out, the last outcome being STOP. What comes next
depends on a state that the modifier before decides:

    LEX       one state
    LEX+F     0 before the first modifier, 1 after
    LEX+FCP   0 before the first modifier, 1 after a coordination, 2 after punctuation, 3 after any other word

A modifier a is a tag and a word: P(a | h, d, state) = P_A(its tag | h, d, state) P_B(its word | its tag, h, d, state),
each estimated at several levels, the finest first. STOP is an outcome of P_A and has no word.

    P_A   {word and tag of h, d, state}, {tag of h, d, state}, {}
    P_B   {tag of a, word and tag of h, d, state}, {tag of a, tag of h, d, state}, {tag of a}

As in Collins (1999), e = lambda_1 e_1 + (1 - lambda_1) (lambda_2 e_2 + (1 - lambda_2) e_3), where e_i is a relative
frequency and lambda_i = f_i / (f_i + 5 u_i) of a context seen f_i times with u_i distinct outcomes; 0 if it was never
seen. That is, with `count` the times an outcome was seen,

    lambda e + (1 - lambda) coarser = (count + 5 u coarser) / (f + 5 u).

What the paper leaves open: its finest level has the word of h alone; here, as in Collins, a word comes with its tag.
Nothing may be impossible, so that the last level of P_A, which the paper does not have, adds one to the count of every
tag and of STOP, and that of P_B adds one to the count of its tag, shared by all words. Words seen in training less
often than `RARE` times, and new ones, are one word UNKNOWN: for every tag its own, since a word always comes with one.
Collins has 6 for it; on the development sentences of the WSJ sample, a tenth of his treebank, 2 is better for all three
configurations (by 0.3 to 0.8 points of UAS), his 5 of the back-off is best for LEX+FCP and within 0.4 of the best for
the others, and lower case changes less than 0.2; so words keep their case.

Tags are numbered 0 (the root), 1 (any tag not seen in training), 2 and up; words 0 (the root's), 1 (UNKNOWN), 2 and
up. The counts of a level are a tree of sorted arrays, context - tag - word, searched by bisection. Learning sorts, in
O(N log N); a sentence of n words costs O(D n^2 log W), W being the number of words an outcome is seen with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Floats, Ints
from headway.errors import TrainingError, TreebankError
from headway.inference.jit import kernel, part
from headway.inference.operator_automata import LEFT, RIGHT, ModifierFactor
from headway.treebank.sentence import Sentence, is_punctuation, require_tree

Configuration = Literal["LEX", "LEX+F", "LEX+FCP"]

RARE = 2  # words seen less often are UNKNOWN
BACK_OFF = 5.0  # the 5 of lambda

_STATES: dict[Configuration, int] = {"LEX": 1, "LEX+F": 2, "LEX+FCP": 4}
_AFTER_COORDINATION, _AFTER_PUNCTUATION, _AFTER_OTHER = 1, 2, 3
_COORDINATION = frozenset({"CC", "CCONJ"})
_PUNCTUATION = frozenset({",", ".", ":", "``", "''", "-LRB-", "-RRB-", "HYPH", "NFP", "PUNCT"})

_ROOT, _UNKNOWN, _FIRST = 0, 1, 2  # numbers of tags and words; the first one seen in training
_STOP = _ROOT  # as an outcome: the root modifies nothing

_LARGEST = np.iinfo(np.int64).max
_MOST = 1 << 50  # times that anything is counted
_ENTRIES = ("contexts", "tags", "words", "counts")


class Level(NamedTuple):
    """How often each outcome followed each context of one kind. C contexts, E pairs of context and tag, W with word."""

    contexts: Ints  # (C,) rising
    context_counts: Ints  # (C,)
    tag_starts: Ints  # (C+1,) the tags of context c are those from tag_starts[c] to tag_starts[c + 1]
    tags: Ints  # (E,) rising inside a context; 0 is STOP
    tag_counts: Ints  # (E,)
    word_starts: Ints  # (E+1,) the words of pair e are those from word_starts[e] to word_starts[e + 1]
    words: Ints  # (W,) rising inside a pair; the one word of STOP is 0
    word_counts: Ints  # (W,)


class Levels(NamedTuple):
    """The three levels: contexts with the head's word, with its tag alone, and the one context 0."""

    fine: Level
    coarse: Level
    bare: Level


@dataclass(frozen=True, eq=False, repr=False)
class LexicalGrammar:
    """P(a | h, d, state) for every modifier a; `tags` and `words` number what was seen in training, from 2."""

    configuration: Configuration
    tags: Mapping[str, int]
    words: Mapping[str, int]
    levels: Levels
    back_off: float

    @classmethod
    def learn(
        cls,
        configuration: Configuration,
        sentences: Sequence[Sentence],
        tags: Sequence[Sequence[str]],
        *,
        rare: int = RARE,
        back_off: float = BACK_OFF,
    ) -> LexicalGrammar:
        """Count the modifiers of every head of a treebank; `tags` are each sentence's, one per word.

        >>> dogs = Sentence.from_words(["Dogs", "bark"], heads=[-1, 2, 0])
        >>> grammar = LexicalGrammar.learn("LEX+F", [dogs], [["N", "V"]], rare=1)
        >>> [factor] = grammar.factors([dogs], [["N", "V"]])
        >>> factor.follows.tolist(), bool(factor.log_weights[2, 1, 0] > factor.log_weights[1, 2, 0])
        ([0, 1, 1], True)
        """
        if configuration not in _STATES:
            raise TrainingError(f"{configuration!r} is no lexical grammar; choose {', '.join(_STATES)}")
        if rare < 1 or not 0 < back_off < np.inf:
            raise TrainingError(f"rare is {rare} and back_off {back_off}; expected at least 1, and a positive number")
        if not any(map(len, sentences)):
            raise TrainingError("there are no words to learn a lexical grammar from; give sentences with trees")
        heads = np.concatenate([require_tree(sentence) for sentence in sentences])
        forms = Counter(chain.from_iterable(sentence.forms for sentence in sentences))
        tag_codes = _numbered(dict.fromkeys(chain.from_iterable(tags)))
        word_codes = _numbered(form for form, count in forms.items() if count >= rare)
        sizes = _Sizes.of(configuration, tag_codes, word_codes)
        if sizes.fine > _LARGEST:
            raise TrainingError(f"{sizes.words} words with {sizes.tags} tags are more contexts than 64 bits can number")
        nodes = _Nodes.of(sentences, tags, configuration, tag_codes, word_codes)
        contexts, modifiers = _outcomes(nodes, heads, sizes.states, sizes.coarse)
        once = np.ones(len(contexts), np.int64)
        levels = _levels(contexts, nodes.tags[modifiers], nodes.words[modifiers], once, sizes.coarse)
        return cls(configuration, tag_codes, word_codes, levels, float(back_off))

    def factors(self, sentences: Sequence[Sentence], tags: Sequence[Sequence[str]]) -> list[ModifierFactor]:
        """Each sentence's log-probabilities of modifiers and of stopping; -inf where there is no arc."""
        nodes = _Nodes.of(sentences, tags, self.configuration, self.tags, self.words)
        sizes = _Sizes.of(self.configuration, self.tags, self.words)
        factors = []
        for first, end in pairwise(nodes.starts.tolist()):
            size = end - first
            log_weights = np.full((size, size, sizes.states), -np.inf)
            log_stops = np.zeros((size, 2, sizes.states))
            symbols = nodes.tags[first:end], nodes.words[first:end]
            _weigh(self.levels, *symbols, sizes.tags, sizes.words, self.back_off, log_weights, log_stops)
            factors.append(ModifierFactor(log_weights, log_stops, nodes.follows[first:end]))
        return factors

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """JSON and arrays for an archive: the counts of the fine level, an entry an outcome; the others follow."""
        data = {
            "configuration": self.configuration,
            "tags": list(self.tags),
            "words": list(self.words),
            "back_off": self.back_off,
        }
        return data, dict(zip(_ENTRIES, _entries(self.levels.fine), strict=True))

    @classmethod
    def from_arrays(cls, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> LexicalGrammar:
        """What `to_arrays` gave; ValueError or KeyError if it is damaged. The order of the entries does not matter."""
        configuration, back_off = data["configuration"], data["back_off"]
        if not isinstance(configuration, str) or configuration not in _STATES:
            raise ValueError(f"its lexical grammar is {str(configuration)[:40]!r}, which is none")
        if type(back_off) is not float or not 0 < back_off < np.inf:
            raise ValueError("the back-off of its lexical grammar is not a positive number")
        tags, words = _numbered(_names(data["tags"])), _numbered(_names(data["words"]))
        sizes = _Sizes.of(configuration, tags, words)
        entries = _checked([arrays[name] for name in _ENTRIES], sizes)
        return cls(configuration, tags, words, _levels(*entries, sizes.coarse), back_off)


class _Sizes(NamedTuple):
    """How many there are of what. A context is one number: (tag, d, state), or (word, tag, d, state) if fine."""

    states: int
    tags: int  # of modifiers, the unknown one among them
    words: int  # of modifiers, UNKNOWN among them

    @classmethod
    def of(cls, configuration: Configuration, tags: Mapping[str, int], words: Mapping[str, int]) -> _Sizes:
        return cls(_STATES[configuration], len(tags) + 1, len(words) + 1)

    @property
    def coarse(self) -> int:
        """Contexts of the coarse level, the root's among them."""
        return (self.tags + 1) * 2 * self.states

    @property
    def fine(self) -> int:
        """Contexts of the fine level."""
        return (self.words + 1) * self.coarse


class _Nodes(NamedTuple):
    """Sentences in a row, each with its root first: those of sentence b are from starts[b] to starts[b + 1]."""

    starts: Ints  # (B+1,)
    tags: Ints
    words: Ints
    follows: Ints  # the state after each

    @classmethod
    def of(
        cls,
        sentences: Sequence[Sentence],
        tags: Sequence[Sequence[str]],
        configuration: Configuration,
        tag_codes: Mapping[str, int],
        word_codes: Mapping[str, int],
    ) -> _Nodes:
        if len(tags) != len(sentences):
            raise TreebankError(f"there are tags for {len(tags)} sentences, but {len(sentences)} sentences; give both")
        last = _STATES[configuration] - 1
        starts = [0]
        tag_row, word_row, state_row = list[int](), list[int](), list[int]()
        for sentence, its_tags in zip(sentences, tags, strict=True):
            if len(its_tags) != len(sentence):
                cause = f"there are {len(its_tags)} tags for {len(sentence)} words; give one per word"
                raise TreebankError(cause, sentence.place.source, sentence.place.line or None)
            words = zip(its_tags, sentence.upos, sentence.forms, strict=True)
            tag_row.extend((_ROOT, *(tag_codes.get(tag, _UNKNOWN) for tag in its_tags)))
            word_row.extend((_ROOT, *(word_codes.get(form, _UNKNOWN) for form in sentence.forms)))
            state_row.extend((0, *(min(_state_after(*word), last) for word in words)))
            starts.append(len(tag_row))
        return cls(*(np.array(row, np.int64) for row in (starts, tag_row, word_row, state_row)))


def _state_after(tag: str, upos: str, form: str) -> int:
    """The state of LEX+FCP after this word. A word of punctuation characters is punctuation, except a coordination.

    >>> [_state_after(*word) for word in (("CC", "_", "&"), (",", "_", ","), ("x", "_", "--"), ("NN", "_", "dog"))]
    [1, 2, 2, 3]
    """
    if tag in _COORDINATION or upos in _COORDINATION:
        return _AFTER_COORDINATION
    if tag in _PUNCTUATION or upos in _PUNCTUATION or is_punctuation(form):
        return _AFTER_PUNCTUATION
    return _AFTER_OTHER


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names, start=_FIRST)}


def _names(names: Any) -> list[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError("the words or tags of its lexical grammar are not a list of different names")
    return names


@kernel
def _outcomes(nodes: _Nodes, heads: Ints, states: int, coarse: int) -> tuple[Ints, Ints]:
    """The fine context of every outcome, and the node that was it; the sentence's root stands for STOP.

    Modifiers to the right come outwards as the words stand, those to the left as they stand backwards: O(n).
    """
    starts, tags, words, follows = nodes
    sentences = len(starts) - 1
    most = 3 * (len(tags) - sentences) + sentences  # each word, and STOP on both sides of it; once for the root
    contexts, outcomes = np.empty(most, np.int64), np.empty(most, np.int64)
    size = 0
    for b in range(sentences):
        root, end = starts[b], starts[b + 1]
        state = np.zeros((end - root, 2), np.int64)
        for d in (LEFT, RIGHT):
            for step in range(root + 1, end):
                m = step if d == RIGHT else root + end - step
                h = root + heads[m]
                if (h < m) == (d == RIGHT):
                    contexts[size] = words[h] * coarse + (tags[h] * 2 + d) * states + state[h - root, d]
                    outcomes[size] = m
                    state[h - root, d] = follows[m]
                    size += 1
            for h in range(root if d == RIGHT else root + 1, end):
                contexts[size] = words[h] * coarse + (tags[h] * 2 + d) * states + state[h - root, d]
                outcomes[size] = root
                size += 1
    return contexts, outcomes


def _levels(contexts: Ints, tags: Ints, words: Ints, counts: Ints, coarse: int) -> Levels:
    """The levels from their outcomes; coarser ones from the entries of the finer, which are fewer."""
    fine = _level(contexts, tags, words, counts)
    contexts, tags, words, counts = _entries(fine)
    middle = _level(contexts % coarse, tags, words, counts)
    contexts, tags, words, counts = _entries(middle)
    return Levels(fine, middle, _level(np.zeros_like(contexts), tags, words, counts))


def _level(contexts: Ints, tags: Ints, words: Ints, counts: Ints) -> Level:
    """The counts of equal outcomes added up, sorted by context, tag and word."""
    order = np.lexsort((words, tags, contexts))
    contexts, tags, words = contexts[order], tags[order], words[order]
    new_context = np.append(True, contexts[1:] != contexts[:-1])
    new_tag = new_context | np.append(True, tags[1:] != tags[:-1])
    new_word = new_tag | np.append(True, words[1:] != words[:-1])
    context_starts, tag_starts, word_starts = map(np.flatnonzero, (new_context, new_tag, new_word))
    word_counts = np.add.reduceat(counts[order], word_starts)
    words_of_tags = np.searchsorted(word_starts, tag_starts)
    tags_of_contexts = np.searchsorted(tag_starts, context_starts)
    tag_counts = np.add.reduceat(word_counts, words_of_tags)
    return Level(
        contexts[context_starts],
        np.add.reduceat(tag_counts, tags_of_contexts),
        np.append(tags_of_contexts, len(tag_starts)),
        tags[tag_starts],
        tag_counts,
        np.append(words_of_tags, len(word_starts)),
        words[word_starts],
        word_counts,
    )


def _entries(level: Level) -> tuple[Ints, Ints, Ints, Ints]:
    """Context, tag, word and count of every outcome of a level."""
    of_tag = np.diff(level.word_starts)
    contexts = np.repeat(np.repeat(level.contexts, np.diff(level.tag_starts)), of_tag)
    return contexts, np.repeat(level.tags, of_tag), level.words, level.word_counts


def _checked(columns: Sequence[NDArray[Any]], sizes: _Sizes) -> tuple[Ints, Ints, Ints, Ints]:
    """Entries from a file, if a level can be made of them."""
    contexts, tags, words, counts = columns
    if any(column.ndim != 1 or column.dtype.kind != "i" or len(column) != len(counts) for column in columns):
        raise ValueError("the counts of its lexical grammar are not columns of as many whole numbers each")
    if not len(counts):
        raise ValueError("its lexical grammar has no counts")
    for column, size in ((contexts, sizes.fine), (tags, sizes.tags + 1), (words, sizes.words + 1)):
        if column.min() < 0 or column.max() >= size:
            raise ValueError("its lexical grammar counts words or tags that it has no name for")
    if ((tags == _STOP) != (words == _ROOT)).any():
        raise ValueError("its lexical grammar counts a word without a tag, or a tag without a word")
    if counts.min() < 1 or counts.max() > _MOST // len(counts):
        raise ValueError("a count of its lexical grammar is not positive, or larger than any")
    return contexts.astype(np.int64), tags.astype(np.int64), words.astype(np.int64), counts.astype(np.int64)


@kernel
def _weigh(
    levels: Levels,
    tags: Ints,
    words: Ints,
    all_tags: int,
    all_words: int,
    back_off: float,
    log_weights: Floats,
    log_stops: Floats,
) -> None:
    """Fill log_weights (n+1, n+1, D) and log_stops (n+1, 2, D) of a sentence, root first. Contexts are found once."""
    fine, coarse, bare = levels
    n = len(tags) - 1
    states = log_stops.shape[2]
    coarse_contexts = (all_tags + 1) * 2 * states
    tag_floors, word_floors = _floors(bare, tags, words, all_tags, all_words)
    p_a, p_b = np.empty(n + 1), np.empty(n + 1)
    for h in range(n + 1):
        for d in (LEFT, RIGHT):
            if h == 0 and d == LEFT:
                continue
            first, end = (1, h) if d == LEFT else (h + 1, n + 1)
            for state in range(states):
                key = (tags[h] * 2 + d) * states + state
                p_a[:] = tag_floors
                p_b[:] = word_floors
                _mix(coarse, key, tags, words, first, end, back_off, p_a, p_b)
                _mix(fine, words[h] * coarse_contexts + key, tags, words, first, end, back_off, p_a, p_b)
                log_stops[h, d, state] = np.log(p_a[0])
                for m in range(first, end):
                    log_weights[h, m, state] = np.log(p_a[m] * p_b[m])


@part
def _floors(bare: Level, tags: Ints, words: Ints, all_tags: int, all_words: int) -> tuple[Floats, Floats]:
    """The last level of P_A, one added for every tag and STOP, and of P_B, one added and shared by all words."""
    p_a, p_b = np.empty(len(tags)), np.empty(len(tags))
    outcomes = bare.context_counts[0] + all_tags + 1
    for m in range(len(tags)):
        place = _find(bare.tags, 0, len(bare.tags), tags[m])
        if place < 0:
            p_a[m], p_b[m] = 1.0 / outcomes, 1.0 / all_words
            continue
        at = _find(bare.words, bare.word_starts[place], bare.word_starts[place + 1], words[m])
        count = bare.word_counts[at] if at >= 0 else 0
        p_a[m] = (bare.tag_counts[place] + 1.0) / outcomes
        p_b[m] = (count + 1.0 / all_words) / (bare.tag_counts[place] + 1.0)
    return p_a, p_b


@part
def _mix(
    level: Level,
    context: int,
    tags: Ints,
    words: Ints,
    first: int,
    end: int,
    back_off: float,
    p_a: Floats,
    p_b: Floats,
) -> None:
    """Mix a level into the coarser P_A and P_B of the words from `first` to `end`, and into P_A of STOP, p_a[0]."""
    contexts, context_counts, tag_starts, known_tags, tag_counts, word_starts, known_words, word_counts = level
    c = _find(contexts, 0, len(contexts), context)
    if c < 0:
        return
    start, stop = tag_starts[c], tag_starts[c + 1]
    distinct = back_off * (stop - start)
    total = context_counts[c] + distinct
    p_a[0] = ((tag_counts[start] if known_tags[start] == _STOP else 0) + distinct * p_a[0]) / total
    for m in range(first, end):
        pair = _find(known_tags, start, stop, tags[m])
        p_a[m] = ((tag_counts[pair] if pair >= 0 else 0) + distinct * p_a[m]) / total
        if pair < 0:
            continue
        row, row_end = word_starts[pair], word_starts[pair + 1]
        place = _find(known_words, row, row_end, words[m])
        distinct_words = back_off * (row_end - row)
        count = word_counts[place] if place >= 0 else 0
        p_b[m] = (count + distinct_words * p_b[m]) / (tag_counts[pair] + distinct_words)


@part
def _find(values: Ints, first: int, end: int, value: int) -> int:
    """Where the rising values[first:end] have this one; -1 if they have not. No branch depends on the values."""
    size = end - first
    if size <= 0:
        return -1
    while size > 1:
        half = size >> 1
        first += half if values[first + half] <= value else 0
        size -= half
    return first if values[first] == value else -1
