"""Tags of plain words, learnt from a treebank: a linear model of the tag sequence, decoded by Viterbi.

A word's tag is its UPOS, XPOS and FEATS together, one of those the treebank has. The tags t_1 .. t_n of a sentence
maximise

    sum over i of  w·f(words, i, t_i) + w·g(words, i, t_{i-1}, t_i)

f are the templates LOCAL, conjoined with t_i at three levels: UPOS, UPOS with XPOS, all of it. g are the templates
HISTORY, with UPOS and XPOS of the tag before and two levels of t_i. The weights are trained by the structured
perceptron (Collins 2002), averaged and with a margin C for every wrong tag, as the parsers are
(`headway.learning.perceptron`); here decoding is so cheap that a whole pass is one kernel.

Candidates: a word seen often may have the tags it was seen with, every other word those and the ones that rare words
have. Of these, the `_KEPT` best by f alone go into Viterbi. That costs O(n (C T + K^2 H)) for C candidates, K kept, T
templates LOCAL and H templates HISTORY. Keys and tags are hashed into one vector of 2^bits weights.

`jackknifed` tags a treebank by taggers that have not seen what they tag: a parser trained on such tags has met the
mistakes it will be given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.errors import TrainingError
from headway.features.clusters import NO_CLUSTERS, Clusters
from headway.features.word_features import (
    SILENT,
    CodedWords,
    Keys,
    WordCoder,
    WordTemplates,
    compile_templates,
    odd_number,
    template_keys,
    word_columns,
)
from headway.inference.batch import Floats, Ints
from headway.inference.jit import kernel, part
from headway.models.lemmatiser import Lemmatiser
from headway.treebank import Sentence

Tag = tuple[str, str, str]  # UPOS, XPOS, FEATS
Weights = NDArray[np.floating[Any]]
Told = Callable[[int, int, float], None]  # a pass of how many is done, with this share of wrong tags

BITS = 23  # at most
_SLOTS_PER_WORD = 32
FOLDS = 5
_PASSES, _MARGIN = 8, 50.0
_KEPT = 8
_FREQUENT = 40  # times a word is seen before the tags it was seen with are all it may have
_TRUSTED = 10  # times a word is seen before its tags are a feature of it and its neighbours
_RARE = 2
_SHARE = 0.05  # of a word's occurrences that a tag needs to be among its `tags`

LOCAL = """
lower; form; lower-1; lower+1; lower-2; lower+2
lower-1 lower; lower lower+1; lower-1 lower+1; lower-2 lower-1; lower+1 lower+2
prefix1 shape; prefix2; prefix3; prefix4; suffix1; suffix2; suffix3; suffix4; suffix5
shape; shape-1 shape; shape shape+1; shape-1 shape shape+1; suffix3 shape
suffix2 suffix3-1; suffix3 suffix3+1; suffix3 lower-1; suffix3 lower+1
tags; tags-1; tags+1; tags-1 tags; tags tags+1; tags-1 tags+1; tags-2 tags-1; tags+1 tags+2
tags-1 tags tags+1; tags-2 tags-1 tags; tags tags+1 tags+2
tags lower+1; tags lower-1; lower tags+1; lower tags-1
bits; bits-1; bits+1; bits-1 bits; bits bits+1; bits-1 bits bits+1
tags-1 bits; bits tags+1; bits suffix2; bits shape
bits8; bits8-1; bits8+1; bits8-1 bits8; bits8 bits8+1; bits8-1 bits8 bits8+1
tags-1 bits8; bits8 tags+1; bits8 suffix2; bits8 shape
bits4; bits4-1; bits4+1; bits4-1 bits4; bits4 bits4+1; bits4-1 bits4 bits4+1
tags-1 bits4; bits4 tags+1; bits4 suffix2; bits4 shape
"""
HISTORY = """
.; lower; lower+1; lower-1; suffix3; shape; tags; tags+1; tags tags+1; bits; bits+1; bits8; bits8+1
"""

_MIX = np.uint64(0x9E3779B97F4A7C15)  # spreads a sum over the upper bits, which index the weights


class Chain(NamedTuple):
    """What the kernels know of the model beside its weights.

    `levels[t]` numbers tag t at its three levels, finest first; each level has a multiplier, of LOCAL and of HISTORY,
    and so has the tag before. The candidates of set c are `candidates[start[c] : start[c + 1]]`.
    """

    local: WordTemplates
    history: WordTemplates
    levels: Ints
    level_multipliers: Keys
    history_multipliers: Keys
    previous_multiplier: np.uint64
    start: Ints
    candidates: Ints
    drop: np.uint64


@dataclass(frozen=True)
class Tagger:
    """`frequent` has the candidates of words that have their own, `open` those of all others; both number `tags`."""

    coder: WordCoder
    tags: tuple[Tag, ...]
    frequent: Mapping[str, Sequence[int]]
    open: Sequence[int]
    templates: tuple[tuple[str, ...], tuple[str, ...]]
    weights: Weights
    lemmatiser: Lemmatiser | None

    @classmethod
    def learn(
        cls,
        sentences: Sequence[Sentence],
        clusters: Clusters = NO_CLUSTERS,
        *,
        passes: int = _PASSES,
        margin: float = _MARGIN,
        bits: int | None = None,
        seed: int = 0,
        trainings: int = 1,
        told: Told | None = None,
    ) -> Tagger:
        """Train on sentences with tags; their lemmas are learnt too, where they have any.

        Of several `trainings`, which differ in the order of the sentences, the weights are averaged.
        """
        known = [tags_of(sentence) for sentence in sentences]
        counts = Counter(tag for some in known for tag in some)
        if not can_learn(sentences):
            raise TrainingError("the sentences have no tags to learn from; a tagger needs at least two of them")
        tags = tuple(tag for tag, _ in counts.most_common())
        number = {tag: t for t, tag in enumerate(tags)}
        seen = _tags_seen(sentences, known, number)
        frequent, open = _candidates(seen)
        coder = WordCoder.learn([s.forms for s in sentences], _trusted(seen, tags), clusters)
        untrained = cls(
            coder,
            tags,
            frequent,
            open,
            (_split(LOCAL), _split(HISTORY)),
            np.zeros(1 << (bits or _bits(counts.total()))),
            None,
        )
        gold = np.array([number[tag] for some in known for tag in some])
        weights = np.zeros(len(untrained.weights))
        for own_seed in range(seed, seed + trainings):
            weights += untrained._fit([s.forms for s in sentences], gold, passes, margin, own_seed, told) / trainings
        return replace(untrained, weights=weights, lemmatiser=Lemmatiser.learn(sentences))

    def _fit(
        self, forms: Sequence[Sequence[str]], gold: Ints, passes: int, margin: float, seed: int, told: Told | None
    ) -> Floats:
        words, sets = self.coder.code(forms), self._sets(forms)
        chain, weights, total = self._chain(), np.zeros(len(self.weights)), np.zeros(len(self.weights))
        for number in range(passes):
            order = np.random.default_rng((seed, number)).permutation(len(forms))
            wrong = _learn(
                chain, words, _spread(sets, words), _spread(gold, words), order, margin, number, weights, total
            )
            if told:
                told(number + 1, passes, wrong / max(1, len(gold)))
        return weights - total / max(1, passes * len(forms))

    def tag(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """The sentences with tags, and lemmas where the tagger knows them; what they had is replaced."""
        forms = [sentence.forms for sentence in sentences]
        words = self.coder.code(forms)
        found = np.zeros(words.codes.shape[1], np.int64)
        _tag(self._chain(), words, _spread(self._sets(forms), words), self.weights, found)
        chosen = [self.tags[t] for t in found[word_columns(words.start, words.lengths)].tolist()]
        ends = np.cumsum(words.lengths).tolist()
        return [self._with(s, chosen[end - len(s) : end]) for s, end in zip(sentences, ends, strict=True)]

    def is_needed(self, sentence: Sentence) -> bool:
        """Whether the sentence lacks UPOS or XPOS, where this tagger has them to give."""
        known = ((0, sentence.upos), (1, sentence.xpos))
        return any(column.count("_") == len(column) and any(tag[k] != "_" for tag in self.tags) for k, column in known)

    def _with(self, sentence: Sentence, tags: Sequence[Tag]) -> Sentence:
        upos, xpos, feats = tuple(zip(*tags, strict=True)) or ((), (), ())
        lemmas = sentence.lemmas
        if self.lemmatiser:
            lemmas = tuple(map(self.lemmatiser.lemma, sentence.forms, tags))
        return replace(sentence, lemmas=lemmas, upos=upos, xpos=xpos, feats=feats)

    def _sets(self, forms: Sequence[Sequence[str]]) -> Ints:
        """The set of candidates of every word: 0 of the open ones, then one a word that has its own."""
        number = {word: c for c, word in enumerate(self.frequent, start=1)}
        words = (form.lower() for sentence in forms for form in sentence)
        return np.fromiter((number.get(word, 0) for word in words), np.int64, sum(map(len, forms)))

    def _chain(self) -> Chain:
        sets = [self.open, *self.frequent.values()]
        levels: list[tuple[int, int, int]] = []
        middle: dict[tuple[str, str], int] = {}
        coarse: dict[str, int] = {}
        for t, (upos, xpos, _) in enumerate(self.tags):
            levels.append((t, middle.setdefault((upos, xpos), len(middle)), coarse.setdefault(upos, len(coarse))))
        return Chain(
            compile_templates(self.templates[0]),
            compile_templates(self.templates[1]),
            np.array(levels),
            np.array([odd_number(f"level {i}") for i in range(3)], np.uint64),
            np.array([odd_number(f"history level {i}") for i in range(2)], np.uint64),
            np.uint64(odd_number("previous")),
            np.cumsum([0, *map(len, sets)]),
            np.array([t for some in sets for t in some]),
            np.uint64(64 - (len(self.weights).bit_length() - 1)),
        )

    def to_data(self) -> dict[str, Any]:
        """What is saved beside the weights and the clusters, which are the parser's."""
        classes: dict[str, list[str]] = {}
        for word, tags in self.coder.tags.items():
            classes.setdefault(tags, []).append(word)
        return {
            "fields": {field: list(values) for field, values in self.coder.fields.items()},
            "classes": classes,
            "tags": [list(tag) for tag in self.tags],
            "frequent": {word: list(tags) for word, tags in self.frequent.items()},
            "open": list(self.open),
            "templates": [list(lines) for lines in self.templates],
            "bits": len(self.weights).bit_length() - 1,
            "lemmas": self.lemmatiser and self.lemmatiser.to_data(),
        }

    @staticmethod
    def size_of(data: Mapping[str, Any]) -> int:
        """How many weights the tagger of this data has."""
        if not 1 <= int(data["bits"]) <= BITS:
            raise ValueError(f"the tagger's weights are not a power of two up to 2^{BITS}")
        return 1 << int(data["bits"])

    @classmethod
    def from_data(cls, data: Mapping[str, Any], weights: Weights, clusters: Clusters) -> Tagger:
        """The tagger that was saved; an error of lookup or value where the data is damaged."""
        classes = {str(word): tags for tags, words in data["classes"].items() for word in words}
        coder = WordCoder.from_values(data["fields"], classes, clusters)
        tags = tuple((str(upos), str(xpos), str(feats)) for upos, xpos, feats in data["tags"])
        frequent = {word: list(map(int, some)) for word, some in data["frequent"].items()}
        open = list(map(int, data["open"]))
        for some in (open, *frequent.values()):  # compiled code indexes by them, and has room for each tag once
            if not some or min(some) < 0 or max(some) >= len(tags) or len(set(some)) < len(some):
                raise ValueError("its tagger names tags that it does not have, or one of them twice")
        local, history = (tuple(map(str, lines)) for lines in data["templates"])
        compile_templates((*local, *history))
        lemmatiser = None if data["lemmas"] is None else Lemmatiser.from_data(data["lemmas"])
        return cls(coder, tags, frequent, open, (local, history), weights, lemmatiser)


def jackknifed(
    sentences: Sequence[Sentence],
    clusters: Clusters = NO_CLUSTERS,
    *,
    folds: int = FOLDS,
    seed: int = 0,
    told: Told | None = None,
) -> list[Sentence]:
    """The sentences with the tags of taggers trained on the others: each fold is one stretch of the treebank.

    Where the others have nothing to learn from, the sentences stay as they are.
    """
    if len(sentences) < 2:
        return list(sentences)
    edges = np.linspace(0, len(sentences), min(folds, len(sentences)) + 1).astype(int).tolist()
    done: list[Sentence] = []
    for fold, stop in enumerate(edges[1:]):
        held_out, others = sentences[len(done) : stop], [*sentences[: len(done)], *sentences[stop:]]
        done += Tagger.learn(others, clusters, seed=seed).tag(held_out) if can_learn(others) else held_out
        if told:
            right = sum(_right(gold, own) for gold, own in zip(sentences[:stop], done, strict=True))
            told(fold + 1, len(edges) - 1, 1 - right / max(1, sum(map(len, done))))
    return done


def tags_of(sentence: Sentence) -> list[Tag]:
    """UPOS, XPOS and FEATS of every word."""
    return list(zip(sentence.upos, sentence.xpos, sentence.feats, strict=True))


def can_learn(sentences: Sequence[Sentence]) -> bool:
    """Whether there are two tags to choose between."""
    tags = {tag for sentence in sentences for tag in tags_of(sentence)}
    return len(tags) > 1


def has_tags(sentence: Sentence) -> bool:
    """Whether the sentence says anything of its words' classes."""
    return any(tag != "_" for tag in (*sentence.upos, *sentence.xpos))


def _right(gold: Sentence, own: Sentence) -> int:
    return sum(map(tuple.__eq__, tags_of(gold), tags_of(own)))


def _bits(words: int) -> int:
    """Room for what so many words have to say."""
    return min(BITS, (_SLOTS_PER_WORD * words).bit_length())


def _split(templates: str) -> tuple[str, ...]:
    return tuple(template.strip() for line in templates.strip().splitlines() for template in line.split(";"))


def _tags_seen(
    sentences: Sequence[Sentence], known: Sequence[Sequence[Tag]], number: Mapping[Tag, int]
) -> dict[str, Counter[int]]:
    """How often each word, in lower case, has each tag."""
    seen: dict[str, Counter[int]] = {}
    for sentence, tags in zip(sentences, known, strict=True):
        for form, tag in zip(sentence.forms, tags, strict=True):
            seen.setdefault(form.lower(), Counter())[number[tag]] += 1
    return seen


def _candidates(seen: Mapping[str, Counter[int]]) -> tuple[dict[str, list[int]], list[int]]:
    """The tags of the words that have their own, and those of all others."""
    rare = {tag for tags in seen.values() if tags.total() <= _RARE for tag in tags}
    others = {tag for tags in seen.values() if tags.total() < _FREQUENT for tag in tags}
    open = rare or others or {tag for tags in seen.values() for tag in tags}
    own = {}
    for word, tags in seen.items():
        if tags.total() >= _FREQUENT:
            own[word] = sorted(tags)
        elif not open.issuperset(tags):
            own[word] = sorted(open.union(tags))
    return own, sorted(open)


def _trusted(seen: Mapping[str, Counter[int]], tags: Sequence[Tag]) -> dict[str, str]:
    """The tags of words seen often enough, as one value: XPOS, or UPOS where there is none."""
    classes = {}
    for word, counts in seen.items():
        if counts.total() < _TRUSTED:
            continue
        fine: Counter[str] = Counter()
        for t, count in counts.items():
            upos, xpos, _ = tags[t]
            fine[upos if xpos == "_" else xpos] += count
        classes[word] = "|".join(sorted(tag for tag, count in fine.items() if count >= _SHARE * counts.total()))
    return classes


def _spread(values: Ints, words: CodedWords) -> Ints:
    """Values of words, at the words' columns."""
    spread = np.zeros(words.codes.shape[1], np.int64)
    spread[word_columns(words.start, words.lengths)] = values
    return spread


class _Work(NamedTuple):
    """Scratch space of one decoding."""

    keys: Keys  # (T, n) and (H, n)
    history_keys: Keys
    stamp: Ints  # (levels, tags) the word for which `memo` was computed
    memo: Floats
    scores: Floats  # (tags,) of the candidates of one word
    kept: Ints  # (n, K) candidates that go into Viterbi, how many, and their local scores
    counts: Ints
    own: Floats
    best: Floats  # (n, K) and the way back
    back: Ints


@part
def _work_for(chain: Chain, longest: int) -> _Work:
    tags, levels = chain.levels.shape
    return _Work(
        np.zeros((len(chain.local.rows), longest), np.uint64),
        np.zeros((len(chain.history.rows), longest), np.uint64),
        np.full((levels, tags), -1, np.int64),
        np.zeros((levels, tags)),
        np.zeros(tags),
        np.zeros((longest, _KEPT), np.int64),
        np.zeros(longest, np.int64),
        np.zeros((longest, _KEPT)),
        np.zeros((longest, _KEPT)),
        np.zeros((longest, _KEPT), np.int64),
    )


@part
def _local_score(
    tag: int,
    keys: Keys,
    i: int,
    word: int,
    levels: Ints,
    multipliers: Keys,
    drop: np.uint64,
    weights: Weights,
    stamp: Ints,
    memo: Floats,
) -> float:
    """w·f of one tag of word i; levels that tags share are computed once a word."""
    score = 0.0
    for level in range(levels.shape[1]):
        at = levels[tag, level]
        if stamp[level, at] != word:
            stamp[level, at] = word
            more = multipliers[level] * np.uint64(at + 1)
            total = 0.0
            for t in range(keys.shape[0]):
                if keys[t, i] != SILENT:
                    total += weights[(keys[t, i] + more) * _MIX >> drop]
            memo[level, at] = total
        score += memo[level, at]
    return score


@part
def _history_key(chain: Chain, level: int, tag: int, before: int) -> np.uint64:
    """What the tags add to a key of HISTORY; `before` is -1 at the beginning of a sentence."""
    previous = chain.levels[before, 1] + 1 if before >= 0 else 0
    own = chain.levels[tag, 1 - level] + 1
    key: np.uint64 = chain.history_multipliers[level] * np.uint64(own) + chain.previous_multiplier * np.uint64(previous)
    return key


@part
def _keep_candidates(
    chain: Chain, i: int, word: int, which: int, weights: Weights, work: _Work, gold: int, margin: float
) -> None:
    """The best candidates of word i by their local scores, and the right one while training (`gold` >= 0)."""
    first, last = chain.start[which], chain.start[which + 1]
    scores, kept, own = work.scores, work.kept, work.own
    for c in range(first, last):
        tag = chain.candidates[c]
        scores[c - first] = _local_score(
            tag, work.keys, i, word, chain.levels, chain.level_multipliers, chain.drop, weights, work.stamp, work.memo
        )
        if tag != gold:
            scores[c - first] += margin
    count = min(kept.shape[1], last - first)
    there = gold < 0
    for k in range(count):
        best = 0
        for c in range(last - first):
            if scores[c] > scores[best]:
                best = c
        kept[i, k], own[i, k] = chain.candidates[first + best], scores[best]
        scores[best] = -np.inf
        there |= kept[i, k] == gold
    if not there:
        count = min(count + 1, kept.shape[1])
        kept[i, count - 1] = gold
        own[i, count - 1] = _local_score(
            gold, work.keys, i, word, chain.levels, chain.level_multipliers, chain.drop, weights, work.stamp, work.memo
        )
    work.counts[i] = count


@part
def _viterbi(chain: Chain, n: int, weights: Weights, work: _Work, start: int, found: Ints) -> None:
    """The best sequence of the candidates kept, into found[start : start + n]."""
    keys, kept, counts, best, back = work.history_keys, work.kept, work.counts, work.best, work.back
    for i in range(n):
        for k in range(counts[i]):
            best[i, k] = -np.inf
            for p in range(counts[i - 1] if i else 1):
                score = best[i - 1, p] if i else 0.0
                before = kept[i - 1, p] if i else -1
                for level in range(len(chain.history_multipliers)):
                    more = _history_key(chain, level, kept[i, k], before)
                    for t in range(keys.shape[0]):
                        if keys[t, i] != SILENT:
                            score += weights[(keys[t, i] + more) * _MIX >> chain.drop]
                if score > best[i, k]:
                    best[i, k], back[i, k] = score, p
            best[i, k] += work.own[i, k]
    k = 0
    for other in range(counts[n - 1]):
        if best[n - 1, other] > best[n - 1, k]:
            k = other
    for i in range(n - 1, -1, -1):
        found[start + i] = kept[i, k]
        k = back[i, k]


@part
def _decode(
    chain: Chain,
    codes: Any,
    start: int,
    n: int,
    sets: Ints,
    gold: Ints,
    margin: float,
    weights: Weights,
    work: _Work,
    found: Ints,
) -> None:
    """One sentence; `gold` is empty unless it is trained on."""
    template_keys(chain.local, codes, start, n, work.keys)
    template_keys(chain.history, codes, start, n, work.history_keys)
    for i in range(n):
        right = gold[start + i] if len(gold) else -1
        _keep_candidates(chain, i, start + i, sets[start + i], weights, work, right, margin)
    _viterbi(chain, n, weights, work, start, found)


@kernel
def _tag(chain: Chain, words: CodedWords, sets: Ints, weights: Weights, found: Ints) -> None:
    """The best tags of all words, at their columns of `found`."""
    codes, starts, lengths = words
    work = _work_for(chain, max(1, lengths.max()) if len(lengths) else 1)
    nothing = np.empty(0, np.int64)
    for s in range(len(lengths)):
        if lengths[s]:
            _decode(chain, codes, starts[s], lengths[s], sets, nothing, 0.0, weights, work, found)


@part
def _add(
    keys: Keys, i: int, more: np.uint64, drop: np.uint64, amount: float, seen: int, weights: Floats, total: Floats
) -> None:
    for t in range(keys.shape[0]):
        if keys[t, i] != SILENT:
            at = (keys[t, i] + more) * _MIX >> drop
            weights[at] += amount
            total[at] += amount * seen


@part
def _add_tag(
    chain: Chain, i: int, tag: int, before: int, amount: float, seen: int, work: _Work, weights: Floats, total: Floats
) -> None:
    """Add the features of word i with its tag and the tag before."""
    for level in range(len(chain.level_multipliers)):
        more = chain.level_multipliers[level] * np.uint64(chain.levels[tag, level] + 1)
        _add(work.keys, i, more, chain.drop, amount, seen, weights, total)
    for level in range(len(chain.history_multipliers)):
        more = _history_key(chain, level, tag, before)
        _add(work.history_keys, i, more, chain.drop, amount, seen, weights, total)


@kernel
def _learn(
    chain: Chain,
    words: CodedWords,
    sets: Ints,
    gold: Ints,
    order: Ints,
    margin: float,
    number: int,
    weights: Floats,
    total: Floats,
) -> int:
    """One pass of the perceptron; returns how many tags were wrong. See `perceptron` for what `total` is for."""
    codes, starts, lengths = words
    work = _work_for(chain, max(1, lengths.max()))
    work.stamp[:] = -1
    found = np.zeros(codes.shape[1], np.int64)
    wrong = 0
    for seen, s in enumerate(order, number * len(order)):
        start, n = starts[s], lengths[s]
        if n == 0:
            continue
        _decode(chain, codes, start, n, sets, gold, margin, weights, work, found)
        for i in range(n):
            right, own = gold[start + i], found[start + i]
            right_before = gold[start + i - 1] if i else -1
            own_before = found[start + i - 1] if i else -1
            wrong += right != own
            if right != own or right_before != own_before:
                _add_tag(chain, i, right, right_before, 1.0, seen, work, weights, total)
                _add_tag(chain, i, own, own_before, -1.0, seen, work, weights, total)
    return wrong
