"""Tags for plain words, learnt from a treebank: a linear model of the tag sequence, decoded by Viterbi.

The tag of a word is its UPOS, XPOS and FEATS together, one of those in the treebank. The tags t_1 .. t_n of a sentence
maximise

    sum over i of  w·f(words, i, t_i) + w·g(words, i, t_{i-1}, t_i)

f are the templates LOCAL, conjoined with t_i at three levels: UPOS, UPOS with XPOS, all of it. g are the templates
HISTORY, with UPOS and XPOS of the tag before and two levels of t_i. The weights are trained by the structured
perceptron (Collins 2002), averaged and with a margin C for every wrong tag, as the parsers' are
(`headway.learning.perceptron`); here decoding is so cheap that a whole pass is one kernel (`tag_chain`).

Candidates: a word that is frequent in training can have only the tags it was seen with; any other word can also have
those of rare words.

`jackknifed` tags a treebank by taggers that have not seen the sentences they tag: a parser trained on such tags has
met the mistakes it will be given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from headway.arrays import Floats, Ints
from headway.errors import TrainingError
from headway.features.blocks import Weights
from headway.features.clusters import NO_CLUSTERS, Clusters
from headway.features.numbering import numbered, word_columns
from headway.learning.averaging import averaged_weights
from headway.saved_values import column_values, whole_number
from headway.text.columns import COLUMNS, filled, is_absent
from headway.text.lemmatiser import Lemmatiser, Tag
from headway.text.tag_chain import Chain, best_tags, chain_of, train_pass
from headway.text.word_features import CodedWords, WordCoder
from headway.treebank import Sentence

TaggerReport = Callable[[int, int, float], None]
"""Called after each pass or fold, with its number, how many there are, and the share of wrong tags."""

BITS = 23  # at most
_SLOTS_PER_WORD = 32
FOLDS = 5
_PASSES, _MARGIN = 8, 50.0
_FREQUENT = 40  # times a word is seen before the tags it was seen with are all it can have
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


@dataclass(frozen=True, repr=False)
class Tagger:
    """`frequent` has the candidates of words with their own, `open` those of all others; both number `tags`."""

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
        runs: int = 1,
        report: TaggerReport | None = None,
    ) -> Tagger:
        """Train on sentences with tags; their lemmas are learnt too, if they have any.

        With several `runs`, which differ in the order of the sentences, the weights are the average of theirs.
        """
        if not cls.can_learn(sentences):
            raise TrainingError("the sentences have no tags to learn from; a tagger needs at least two of them")
        known = [tags_of(sentence) for sentence in sentences]
        counts = Counter(tag for some in known for tag in some)
        tags = tuple(tag for tag, _ in counts.most_common())
        number = {tag: t for t, tag in enumerate(tags)}
        seen = _tags_seen(sentences, known, number)
        frequent, open = _candidates(seen)
        forms = [sentence.forms for sentence in sentences]
        coder = WordCoder.learn(forms, _trusted(seen, tags), clusters)
        blank = np.zeros(1 << (bits or _bits(counts.total())))
        untrained = cls(coder, tags, frequent, open, (_split(LOCAL), _split(HISTORY)), blank, None)
        gold = np.array([number[tag] for some in known for tag in some])
        weights = np.zeros(len(blank))
        for own_seed in range(seed, seed + runs):
            weights += untrained._fit(forms, gold, passes, margin, own_seed, report) / runs
        return replace(untrained, weights=weights, lemmatiser=Lemmatiser.learn(sentences))

    @staticmethod
    def can_learn(sentences: Sequence[Sentence]) -> bool:
        """Whether the sentences have two tags to choose between."""
        tags = {tag for sentence in sentences for tag in tags_of(sentence)}
        return len(tags) > 1

    def _fit(
        self,
        forms: Sequence[Sequence[str]],
        gold: Ints,
        passes: int,
        margin: float,
        seed: int,
        report: TaggerReport | None,
    ) -> Floats:
        words = self.coder.code(forms)
        sets, right = self._sets(forms, words), _spread(gold, words)

        def run(order: Ints, weights: Floats, total: Floats, seen: int) -> float:
            wrong = train_pass(self._chain, words, sets, right, order, margin, weights, total, seen)
            return wrong / max(1, len(gold))

        def after_pass(number: int, wrong: float) -> None:
            if report:
                report(number, passes, wrong)

        return averaged_weights(run, np.arange(len(forms)), len(self.weights), passes, seed, after_pass)

    def tag(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """The sentences with tags, and lemmas if the tagger knows them; any they had are replaced."""
        forms = [sentence.forms for sentence in sentences]
        words = self.coder.code(forms)
        found = np.zeros(words.codes.shape[1], np.int64)
        best_tags(self._chain, words, self._sets(forms, words), self.weights, found)
        chosen = [self.tags[t] for t in found[word_columns(words.start, words.lengths)].tolist()]
        ends = np.cumsum(words.lengths).tolist()
        return [self._with(s, chosen[end - len(s) : end]) for s, end in zip(sentences, ends, strict=True)]

    def is_needed(self, sentence: Sentence) -> bool:
        """Whether the sentence lacks UPOS or XPOS and this tagger has them to give."""
        known = ((0, sentence.upos), (1, sentence.xpos))
        return any(is_absent(column) and any(tag[k] != "_" for tag in self.tags) for k, column in known)

    def complete(self, sentences: Sequence[Sentence], *, replace_all: bool = False) -> list[Sentence]:
        """The sentences, the columns that they lack filled in; with `replace_all`, every column."""
        done = list(sentences)
        which = [i for i, sentence in enumerate(done) if replace_all or self.is_needed(sentence)]
        for i, tagged in zip(which, self.tag([done[i] for i in which]), strict=True):
            done[i] = tagged if replace_all else _completed(done[i], tagged)
        return done

    def _with(self, sentence: Sentence, tags: Sequence[Tag]) -> Sentence:
        upos, xpos, feats = tuple(zip(*tags, strict=True)) or ((), (), ())
        lemmas = sentence.lemmas
        if self.lemmatiser:
            lemmas = self.lemmatiser.lemmas(sentence.forms, tags)
        return replace(sentence, lemmas=lemmas, upos=upos, xpos=xpos, feats=feats)

    @cached_property
    def _chain(self) -> Chain:
        return chain_of(self.templates, self.tags, [self.open, *self.frequent.values()], len(self.weights))

    @cached_property
    def _set_of(self) -> Mapping[str, int]:
        """The set of candidates of each word that has its own; set 0 is the open one."""
        return numbered(self.frequent, first=1)

    def _sets(self, forms: Sequence[Sequence[str]], words: CodedWords) -> Ints:
        """The set of candidates of every word, at its column."""
        sets = [self._set_of.get(form.lower(), 0) for sentence in forms for form in sentence]
        return _spread(np.array(sets, np.int64), words)

    def to_data(self) -> dict[str, Any]:
        """Everything as JSON but the weights, an array, and the clusters, which are saved with the parser."""
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
        return 1 << whole_number(data["bits"], "the tagger's bits", 1, BITS)

    @classmethod
    def from_data(cls, data: Mapping[str, Any], weights: Weights, clusters: Clusters) -> Tagger:
        """The tagger that was saved; a lookup error or ValueError if the data is damaged."""
        classes = {str(word): tags for tags, words in data["classes"].items() for word in words}
        coder = WordCoder.from_values(data["fields"], classes, clusters)
        tags = tuple((upos, xpos, feats) for upos, xpos, feats in (column_values(tag, "a tag") for tag in data["tags"]))
        frequent = {word: list(map(int, some)) for word, some in data["frequent"].items()}
        open = list(map(int, data["open"]))
        for some in (open, *frequent.values()):  # compiled code indexes by them, and has room for each tag once
            if not some or min(some) < 0 or max(some) >= len(tags) or len(set(some)) < len(some):
                raise ValueError("its tagger names tags that it does not have, or one of them twice")
        local, history = (tuple(map(str, lines)) for lines in data["templates"])
        lemmatiser = None if data["lemmas"] is None else Lemmatiser.from_data(data["lemmas"])
        tagger = cls(coder, tags, frequent, open, (local, history), weights, lemmatiser)
        _ = tagger._chain  # reads the templates, which may be damaged too
        return tagger


def jackknifed(
    sentences: Sequence[Sentence],
    clusters: Clusters = NO_CLUSTERS,
    *,
    folds: int = FOLDS,
    seed: int = 0,
    report: TaggerReport | None = None,
    stage: Callable[[int, Sequence[Sentence], Callable[[], list[Sentence]]], list[Sentence]] | None = None,
) -> list[Sentence]:
    """The sentences with tags by taggers trained on the others: each fold is one stretch of the treebank.

    A fold stays as it is if the others have nothing to learn from. `stage(fold, sentences, tag)` may take the fold's
    tagged sentences from an earlier training instead of calling `tag`.
    """
    cut = jackknife_folds(sentences, folds)
    if len(cut) < 2:
        return list(sentences)
    done: list[Sentence] = []
    for fold, (held_out, others) in enumerate(cut, start=1):
        tag = partial(tag_fold, held_out, others, clusters, seed)
        done += tag() if stage is None else stage(fold, held_out, tag)
        if report:
            right = sum(_right(gold, own) for gold, own in zip(sentences[: len(done)], done, strict=True))
            report(fold, len(cut), 1 - right / max(1, sum(map(len, done))))
    return done


Fold = tuple[Sequence[Sentence], Sequence[Sentence]]


def jackknife_folds(sentences: Sequence[Sentence], folds: int = FOLDS) -> list[Fold]:
    """Stretches of a treebank, each with all the other sentences."""
    edges = np.linspace(0, len(sentences), min(folds, len(sentences)) + 1).astype(int).tolist()
    return [(sentences[a:b], [*sentences[:a], *sentences[b:]]) for a, b in pairwise(edges)]


def tag_fold(held_out: Sequence[Sentence], others: Sequence[Sentence], clusters: Clusters, seed: int) -> list[Sentence]:
    """Some sentences with the tags of a tagger trained on the others."""
    return Tagger.learn(others, clusters, seed=seed).tag(held_out) if Tagger.can_learn(others) else list(held_out)


def tags_of(sentence: Sentence) -> list[Tag]:
    """UPOS, XPOS and FEATS of every word."""
    return list(zip(sentence.upos, sentence.xpos, sentence.feats, strict=True))


def has_tags(sentence: Sentence) -> bool:
    """Whether any word of the sentence has a tag."""
    return any(tag != "_" for tag in (*sentence.upos, *sentence.xpos))


def _completed(given: Sentence, tagged: Sentence) -> Sentence:
    """The tagged sentence, except for the columns that were given."""
    return filled(given, {name: getattr(tagged, name) for name in COLUMNS})


def _right(gold: Sentence, own: Sentence) -> int:
    return sum(map(tuple.__eq__, tags_of(gold), tags_of(own)))


def _bits(words: int) -> int:
    """The size of the weight vector for so many training words, as a power of two."""
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
    """The candidates of the words that have their own, and those of all others."""
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
    """The tags of words seen often enough, as one value: XPOS, or UPOS if there is none."""
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
    """Values of words, each at its word's column."""
    spread = np.zeros(words.codes.shape[1], np.int64)
    spread[word_columns(words.start, words.lengths)] = values
    return spread
