"""The tagger against enumeration: every sequence of candidates, scored feature by feature in plain Python."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from headway.archive import Archive, load_archive, save_archive
from headway.errors import ArchiveError, HeadwayError, TrainingError
from headway.features.clusters import NO_CLUSTERS, Clusters
from headway.pipeline import Parser
from headway.text import tagger as module
from headway.text.tag_chain import chain_of
from headway.text.tagger import BITS, HISTORY, LOCAL, Tag, Tagger, has_tags, jackknifed, tags_of
from headway.text.word_features import WordCoder
from headway.treebank import Sentence
from tests.models.toy_treebank import sentences

Floats = NDArray[np.float64]
FORMS = ("Dog", "dog", "barks", "12", "über", "!", "a")
TAGS: tuple[Tag, ...] = (
    ("N", "NN", "Number=Sing"), ("N", "NN", "Number=Plur"), ("N", "NP", "_"), ("V", "VB", "_"), ("D", "_", "_"),
)  # fmt: skip
PATHS = Clusters({"dog": "011010011", "barks": "0111", "!": "1"})


def number(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") | 1


class Naive:
    """The model of the module's text: which weights a tag touches, one feature after the other."""

    def __init__(self, tagger: Tagger) -> None:
        self.tagger = tagger
        self.size = len(tagger.weights)
        self.middle = list(dict.fromkeys(tag[:2] for tag in tagger.tags))
        self.coarse = list(dict.fromkeys(tag[0] for tag in tagger.tags))
        self.words: dict[str, dict[str, int]] = {}

    def _code(self, forms: Sequence[str], i: int, field: str) -> int:
        """1 outside the sentence, 0 for a value that is not known."""
        if not 0 <= i < len(forms):
            return 1
        if forms[i] not in self.words:
            column = self.tagger.coder.code([[forms[i]]]).codes[:, 2].tolist()
            self.words[forms[i]] = dict(zip(self.tagger.coder.fields, column, strict=True))
        return self.words[forms[i]][field]

    def _indices(self, lines: Sequence[str], forms: Sequence[str], i: int, more: int) -> list[int]:
        found = []
        for line in lines:
            key = number(line)
            for a, atom in enumerate([] if line == "." else line.split()):
                field, _, offset = atom.replace("-", "+-").partition("+")
                code = self._code(forms, i + int(offset or 0), field)
                if code == 0:
                    break
                key += number(f"{line} {a}") * code
            else:
                found.append(self._slot(key + more))
        return found

    def _slot(self, key: int) -> int:
        return (key * 0x9E3779B97F4A7C15) % 2**64 * self.size // 2**64

    def local(self, forms: Sequence[str], i: int, t: int) -> list[int]:
        """The tag, its UPOS with XPOS, its UPOS."""
        tag = self.tagger.tags[t]
        numbers = (t, self.middle.index(tag[:2]), self.coarse.index(tag[0]))
        levels = [number(f"level {level}") * (own + 1) for level, own in enumerate(numbers)]
        return [at for more in levels for at in self._indices(self.tagger.templates[0], forms, i, more)]

    def history(self, forms: Sequence[str], i: int, before: int | None, t: int) -> list[int]:
        """UPOS with XPOS of the tag before; the own tag's UPOS with XPOS, and all of it."""
        tags = self.tagger.tags
        previous = 0 if before is None else self.middle.index(tags[before][:2]) + 1
        numbers = (self.middle.index(tags[t][:2]), t)
        levels = [
            number(f"history level {level}") * (own + 1) + number("previous") * previous
            for level, own in enumerate(numbers)
        ]
        return [at for more in levels for at in self._indices(self.tagger.templates[1], forms, i, more)]

    def features(self, forms: Sequence[str], tags: Sequence[int]) -> Counter[int]:
        """How often a tagged sentence touches each weight."""
        found: Counter[int] = Counter()
        for i, (before, t) in enumerate(pairwise([None, *tags])):
            assert t is not None
            found.update(self.local(forms, i, t))
            found.update(self.history(forms, i, before, t))
        return found

    def candidates(self, form: str) -> Sequence[int]:
        return self.tagger.frequent.get(form.lower(), self.tagger.open)

    def best(
        self, forms: Sequence[str], weights: Floats, gold: Sequence[int] | None = None, margin: float = 0.0
    ) -> tuple[int, ...]:
        """Of all sequences of the best candidates, where no other one comes near."""

        def local(i: int, t: int) -> float:
            return float(weights[self.local(forms, i, t)].sum()) + margin * (gold is not None and gold[i] != t)

        choices = []
        for i, form in enumerate(forms):
            ranked = sorted(self.candidates(form), key=lambda t: -local(i, t))[:8]
            choices.append(ranked if gold is None or gold[i] in ranked else [*ranked[:7], gold[i]])
        own = [{t: local(i, t) for t in some} for i, some in enumerate(choices)]
        links = [
            {(p, t): float(weights[self.history(forms, i, p, t)].sum()) for p in befores for t in choices[i]}
            for i, befores in enumerate([[None], *choices[:-1]])
        ]
        totals = {
            tags: sum(own[i][t] + links[i][p, t] for i, (p, t) in enumerate(pairwise([None, *tags])))  # type: ignore[index]
            for tags in product(*choices)
        }
        first, *others = sorted(totals, key=lambda tags: -totals[tags])
        assert not others or totals[first] > totals[others[0]] + 1e-9, "a tie says nothing"
        return first


def random_tagger(seed: int, tags: Sequence[Tag] = TAGS, bits: int = 12, **changes: Any) -> Tagger:
    """Under random weights; "dog" has candidates of its own."""
    rng = np.random.default_rng(seed)
    coder = WordCoder.learn([list(FORMS[:6])] * 2, {"dog": "NN|VB", "!": "D"}, PATHS)
    lines = [
        tuple(line.strip() for line in table.replace("\n", ";").strip(";").split(";")) for table in (LOCAL, HISTORY)
    ]
    weights = rng.normal(size=1 << bits)
    plain = Tagger(coder, tuple(tags), {"dog": [1, 3]}, range(len(tags)), (lines[0], lines[1]), weights, None)
    return replace(plain, **changes)


def random_texts(seed: int, count: int, longest: int) -> list[Sentence]:
    rng = np.random.default_rng(seed)
    return [Sentence.from_words(rng.choice(FORMS, rng.integers(1, longest + 1)).tolist()) for _ in range(count)]


# Decoding


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("single", [False, True])
def test_the_best_of_all_sequences(seed: int, single: bool) -> None:
    """In double and, as a loaded model has them, single precision."""
    tagger = random_tagger(seed)
    if single:
        tagger = replace(tagger, weights=tagger.weights.astype(np.float32))
    naive, text = Naive(tagger), random_texts(seed, 12, 4)
    for sentence, found in zip(text, tagger.tag(text), strict=True):
        expected = naive.best(sentence.forms, tagger.weights.astype(np.float64))
        assert tags_of(found) == [tagger.tags[t] for t in expected]


def test_tags_depend_on_the_tags_before() -> None:
    """Or the test above would pass without Viterbi."""
    tagger = random_tagger(1)
    naive, text = Naive(tagger), random_texts(1, 12, 4)
    alone = [
        [tagger.tags[max(naive.candidates(form), key=lambda t: tagger.weights[naive.local(s.forms, i, t)].sum())]
         for i, form in enumerate(s.forms)]
        for s in text
    ]  # fmt: skip
    assert alone != [tags_of(found) for found in tagger.tag(text)]


def test_the_eight_best_candidates_go_on() -> None:
    tags = [(f"U{i % 3}", f"X{i % 5}", f"F{i}") for i in range(11)]
    tagger = random_tagger(4, tags)
    naive, text = Naive(tagger), random_texts(4, 10, 3)
    for sentence, found in zip(text, tagger.tag(text), strict=True):
        assert tags_of(found) == [tags[t] for t in naive.best(sentence.forms, tagger.weights)]


def test_templates_of_ones_own_and_few_weights() -> None:
    """Weights shared by collision, and templates without any atom."""
    tagger = random_tagger(5, bits=4, templates=((".", "lower-2 form suffix3+2"), (".", "tags+1")))
    naive = Naive(tagger)
    for sentence in random_texts(5, 12, 3):
        (found,) = tagger.tag([sentence])
        assert tags_of(found) == [TAGS[t] for t in naive.best(sentence.forms, tagger.weights)]


def test_a_frequent_word_has_its_own_candidates_only() -> None:
    tagger = random_tagger(6, open=[0, 4])
    for weights in np.random.default_rng(6).normal(size=(8, len(tagger.weights))):
        for found in replace(tagger, weights=weights).tag(random_texts(6, 6, 4)):
            for form, tag in zip(found.forms, tags_of(found), strict=True):
                assert TAGS.index(tag) in ([1, 3] if form.lower() == "dog" else [0, 4])


def test_sentences_do_not_meet() -> None:
    """Alone or among others, empty ones between them."""
    tagger, text = random_tagger(7), [*random_texts(7, 5, 4), Sentence.from_words([]), *random_texts(8, 3, 1)]
    found = tagger.tag([*text, Sentence.from_words([])])
    assert [tags_of(s) for s in found[:-1]] == [tags_of(tagger.tag([s])[0]) for s in text]
    assert tags_of(found[-1]) == []
    assert tagger.tag([]) == []
    assert [len(s) for s in tagger.tag([Sentence.from_words([])] * 2)] == [0, 0]


def test_the_chain_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the tagger is called; another tagger has its own."""
    built: list[int] = []

    def counted(*parts: Any) -> Any:
        built.append(parts[-1])
        return chain_of(*parts)

    monkeypatch.setattr(module, "chain_of", counted)
    tagger, text = random_tagger(9), random_texts(9, 3, 3)
    first = tagger.tag(text)
    assert [tags_of(s) for s in tagger.tag(text)] == [tags_of(s) for s in first]
    assert built == [1 << 12]
    replace(tagger, weights=tagger.weights[: 1 << 11]).tag(text)
    assert built == [1 << 12, 1 << 11]


def test_a_loaded_tagger_has_its_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = learnt_on_toys()
    again = Tagger.from_data(tagger.to_data(), tagger.weights, tagger.coder.clusters)
    monkeypatch.setattr(module, "chain_of", None)
    assert again.tag(sentences(2, 5))


def columns(sentence: Sentence) -> tuple[Any, ...]:
    return sentence.lemmas, sentence.upos, sentence.xpos, sentence.feats


def test_columns_that_are_missing_are_completed() -> None:
    """What was given stays, unless all is to be replaced; a sentence that lacks nothing is not touched."""
    tagger, [gold] = learnt_on_toys(), sentences(1, 9)
    bare = Sentence.from_words(gold.forms)
    half = replace(bare, upos=("Q",) * len(gold))
    done = tagger.complete([gold, bare, half])
    assert done[0] is gold
    [full] = tagger.tag([bare])
    assert columns(done[1]) == columns(full)
    assert columns(done[2]) == (full.lemmas, half.upos, full.xpos, full.feats)
    assert [tagger.is_needed(sentence) for sentence in (gold, bare, half)] == [False, True, True]
    assert [columns(sentence) for sentence in tagger.complete([half], replace_all=True)] == [columns(full)]
    assert tagger.complete([]) == []


def test_what_is_replaced_and_what_stays() -> None:
    (sentence,) = sentences(1, 1)
    (found,) = random_tagger(8).tag([sentence])
    assert (found.forms, found.labels, found.layout, found.place) == (
        sentence.forms, sentence.labels, sentence.layout, sentence.place,
    )  # fmt: skip
    assert found.heads is sentence.heads
    assert found.lemmas == sentence.lemmas  # as this tagger knows none
    assert set(tags_of(found)) <= set(TAGS)
    assert tags_of(sentence) == [(tag, tag, "_") for tag in sentence.upos]


# Training


def tagged(*words: str) -> Sentence:
    """Of words like "dog/N": UPOS and XPOS alike."""
    forms, tags = zip(*(word.rsplit("/", 1) for word in words), strict=True)
    return Sentence.from_words(forms, upos=tags, xpos=tags)


def naive_training(
    text: Sequence[Sentence], blank: Tagger, passes: int, margin: float, seed: int
) -> tuple[Floats, list[float]]:
    """The mean of the weights after each sentence, all kept, and each pass's share of wrong tags."""
    naive = Naive(blank)
    gold = [[blank.tags.index(tag) for tag in tags_of(sentence)] for sentence in text]
    weights, kept, wrong = np.zeros(naive.size), [], []
    for number_of_pass in range(passes):
        mistakes = 0
        for s in np.random.default_rng((seed, number_of_pass)).permutation(len(text)).tolist():
            weights = weights.copy()
            if len(text[s]):
                found = naive.best(text[s].forms, weights, gold[s], margin)
                mistakes += sum(a != b for a, b in zip(found, gold[s], strict=True))
                for tags, amount in ((gold[s], 1.0), (found, -1.0)):
                    for at, count in naive.features(text[s].forms, tags).items():
                        weights[at] += amount * count
            kept.append(weights)
        wrong.append(mistakes / sum(map(len, text)))
    return np.mean(kept, axis=0), wrong


# With two tags there is one sequence that is all wrong, and so nothing to choose at the beginning.
PAIRS: dict[str, list[Tag]] = {
    "two classes": [("N", "N", "_"), ("V", "V", "_")],
    "two fine tags": [("N", "NN", "_"), ("N", "NP", "_")],
    "two features": [("N", "NN", "Number=Sing"), ("N", "NN", "Number=Plur")],
}


@pytest.mark.parametrize("pair", list(PAIRS))
@pytest.mark.parametrize("margin", [0.37, 49.91])
def test_weights_are_the_average_of_all_that_were(pair: str, margin: float) -> None:
    rng = np.random.default_rng(3)
    text = []
    for length in (2, 3, 1, 0, 3):
        forms, tags = rng.choice(FORMS, length).tolist(), [PAIRS[pair][k] for k in rng.integers(0, 2, length)]
        upos, xpos, feats = zip(*tags, strict=True) if tags else ((), (), ())
        text.append(Sentence.from_words(forms, upos=upos, xpos=xpos, feats=feats))
    shown: list[tuple[int, int, float]] = []
    options: dict[str, Any] = {"passes": 3, "margin": margin, "seed": 5}
    learnt = Tagger.learn(text, PATHS, bits=10, report=lambda *figures: shown.append(figures), **options)
    expected, wrong = naive_training(text, learnt, **options)
    assert np.any(expected)
    np.testing.assert_allclose(learnt.weights, expected, rtol=0, atol=1e-12)
    assert shown == [(k + 1, 3, pytest.approx(share)) for k, share in enumerate(wrong)]


def test_words_of_one_candidate_among_others() -> None:
    """Rare words are all A, so that is all a new word may be; "often" is B in training, and may be either."""
    text = [tagged("one/A", "often/B", "two/A"), tagged("often/B", "three/A"), tagged("often/B")]
    learnt = Tagger.learn(text, bits=10, passes=2, margin=0.37, seed=1)
    names = [tag[0] for tag in learnt.tags]
    assert [names[t] for t in learnt.open] == ["A"]
    assert {word: {names[t] for t in some} for word, some in learnt.frequent.items()} == {"often": {"A", "B"}}
    expected, _ = naive_training(text, learnt, 2, 0.37, 1)
    assert np.any(expected)
    np.testing.assert_allclose(learnt.weights, expected, rtol=0, atol=1e-12)
    assert [s.upos for s in learnt.tag([Sentence.from_words(["often", "four"])])] == [("B", "A")]


def test_one_step_by_hand() -> None:
    """One sentence, all of it wrong at first: right features get 1, wrong ones -1, what both have nothing."""
    learnt = Tagger.learn([tagged("a/X", "a/Y")], bits=16, passes=1, margin=1.0)
    naive = Naive(learnt)
    x, y = (learnt.tags.index((tag, tag, "_")) for tag in "XY")
    bare = Naive(replace(learnt, templates=(("lower",), (".",))))
    forms = ["a", "a"]
    for before, tag, amount in ((None, x, 1.0), (None, y, -1.0), (x, y, 1.0), (y, x, -1.0), (x, x, 0.0), (y, y, 0.0)):
        for at in bare.history(forms, 0, before, tag):
            assert learnt.weights[at] == amount
    for i, tag in product((0, 1), (x, y)):  # each word has both tags, one right and one wrong
        assert learnt.weights[bare.local(forms, i, tag)].tolist() == [0.0] * 3
    for i, tag, amount in ((0, x, 1.0), (0, y, -1.0), (1, y, 1.0), (1, x, -1.0)):
        edge = Naive(replace(learnt, templates=((("lower-1 lower", "lower lower+1")[i],), ())))
        assert learnt.weights[edge.local(forms, i, tag)].tolist() == [amount] * 3
    assert np.abs(learnt.weights).sum() <= naive.features(forms, [x, y]).total() * 2


def test_what_is_learnt_is_right_and_the_seed_decides() -> None:
    text = sentences(30, 1, crossing=True)
    one, same, other = (Tagger.learn(text, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.weights, same.weights)
    assert not np.array_equal(one.weights, other.weights)
    new = sentences(20, 2, crossing=True)
    assert any(form not in s.forms for s in text for form in new[0].forms)
    for sentence, found in zip(new, one.tag(new), strict=True):
        assert tags_of(found) == tags_of(sentence)
        assert found.lemmas[0] == sentence.lemmas[0]
    strange = one.tag([Sentence.from_words(["\u200b", "🙂", "xyzzy", "İ"])])[0]
    assert set(tags_of(strange)) <= set(one.tags)


def test_candidates_and_classes() -> None:
    """40 times make a word's tags all it may have, fewer add them to those of rare words.

    10 times make them a feature; a tag of less than a twentieth is not among them.
    """
    text = [tagged("f/A", "f/B")] * 20 + [tagged("g/A")] * 39 + [tagged("h/A")] * 20 + [tagged("h/C")]
    text += [tagged("r/D"), tagged("s/E", "s/E"), tagged("t/B", "t/B", "t/B"), tagged("F/A")]
    learnt = Tagger.learn(text, bits=8, passes=1)
    names = {t: tag[0] for t, tag in enumerate(learnt.tags)}
    assert {word: {names[t] for t in some} for word, some in learnt.frequent.items()} == {
        "f": {"A", "B"}, "g": {"A", "D", "E"}, "h": {"A", "C", "D", "E"}, "t": {"B", "D", "E"},
    }  # fmt: skip
    assert {names[t] for t in learnt.open} == {"D", "E"}
    assert dict(learnt.coder.tags) == {"f": "A|B", "g": "A", "h": "A"}
    assert learnt.tags[0][0] == "A"  # commonest first


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ([tagged("a/A", "a/B", "a/A")], {"A", "B"}),  # no rare word: those of all that are not frequent
        ([tagged("a/A", "a/B")] * 20, {"A", "B"}),  # all are frequent: any
    ],
)
def test_there_is_always_a_candidate(text: list[Sentence], expected: set[str]) -> None:
    learnt = Tagger.learn(text, bits=8, passes=1)
    assert {learnt.tags[t][0] for t in learnt.open} == expected


def test_clusters_reach_words_never_seen() -> None:
    """Two words alike in all but their clusters."""
    text = [tagged("bab/N"), tagged("bob/V")] * 6
    paths = Clusters({"bab": "0000", "bob": "1111", "bub": "0000", "beb": "1111"})
    learnt = Tagger.learn(text, paths, bits=12)
    assert [s.upos for s in learnt.tag([tagged("bub/_"), tagged("beb/_")])] == [("N",), ("V",)]


@pytest.mark.parametrize("text", [[], [Sentence.from_words(["a", "b"])], [tagged("a/X"), tagged("b/X")]])
def test_nothing_to_learn_from(text: list[Sentence]) -> None:
    assert not Tagger.can_learn(text)
    with pytest.raises(TrainingError, match="have no tags to learn from; a tagger needs at least two"):
        Tagger.learn(text)


def test_whether_a_sentence_has_tags() -> None:
    assert has_tags(tagged("a/X"))
    assert has_tags(Sentence.from_words(["a", "b"], xpos=["_", "Y"]))
    assert not has_tags(Sentence.from_words(["a"], feats=["F=1"], lemmas=["a"]))
    assert not has_tags(Sentence.from_words([]))


# Jack-knifing


class Spy:
    """In place of the tagger: remembers what each one learnt from and what it was to tag."""

    calls: list[tuple[list[str], list[str]]]
    options: list[tuple[Clusters, int]]

    can_learn = staticmethod(Tagger.can_learn)

    def __init__(self, learnt: Sequence[Sentence]) -> None:
        self.learnt = [s.forms[0] for s in learnt]

    @classmethod
    def learn(cls, text: Sequence[Sentence], clusters: Clusters = NO_CLUSTERS, *, seed: int = 0) -> Spy:
        cls.options.append((clusters, seed))
        return cls(text)

    def tag(self, text: Sequence[Sentence]) -> list[Sentence]:
        self.calls.append((self.learnt, [s.forms[0] for s in text]))
        return [Sentence.from_words(s.forms, upos=["new"] * len(s)) for s in text]


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> type[Spy]:
    Spy.calls, Spy.options = [], []
    monkeypatch.setattr(module, "Tagger", Spy)
    return Spy


@pytest.mark.parametrize(("count", "folds"), [(11, 5), (10, 5), (3, 5), (2, 5), (5, 2), (40, 5)])
def test_no_tagger_has_seen_what_it_tags(spy: type[Spy], count: int, folds: int) -> None:
    text = [tagged(f"w{i}/A", "x/B") for i in range(count)]
    shown: list[tuple[int, int, float]] = []
    found = jackknifed(text, PATHS, folds=folds, seed=9, report=lambda *figures: shown.append(figures))
    names = [f"w{i}" for i in range(count)]
    assert [s.forms[0] for s in found] == names
    assert {s.upos for s in found} == {("new", "new")}
    assert len(spy.calls) == min(folds, count)
    assert [name for _, held_out in spy.calls for name in held_out] == names
    for learnt, held_out in spy.calls:
        assert sorted(learnt + held_out) == sorted(names)
        assert abs(len(held_out) - count / min(folds, count)) < 1
    assert spy.options == [(PATHS, 9)] * len(spy.calls)
    assert shown == [(k + 1, len(spy.calls), 1.0) for k in range(len(spy.calls))]


def test_jack_knifing_nothing_and_one(spy: type[Spy]) -> None:
    (one,) = text = [tagged("a/A", "b/B")]
    assert jackknifed([]) == []
    assert jackknifed(text) == [one]
    assert spy.calls == []


def test_where_the_others_have_no_tags_to_learn_from(spy: type[Spy]) -> None:
    """The second has one tag only, so that nothing is to be learnt for the first."""
    text = [tagged("a/A", "b/B"), tagged("c/A")]
    found = jackknifed(text)
    assert found[0] is text[0]
    assert found[1].upos == ("new",)
    assert spy.calls == [(["a"], ["c"])]


def test_a_fold_may_come_from_an_earlier_training(spy: type[Spy]) -> None:
    """What the stage gives is taken, and no tagger is trained for it."""
    text = sentences(6, 3)
    kept: dict[int, list[Sentence]] = {}

    def remember(fold: int, held_out: Sequence[Sentence], tag: Callable[[], list[Sentence]]) -> list[Sentence]:
        if fold not in kept:
            kept[fold] = tag()
        assert [s.forms for s in kept[fold]] == [s.forms for s in held_out]
        return kept[fold]

    first = jackknifed(text, folds=3, stage=remember)
    assert sorted(kept) == [1, 2, 3]
    assert len(spy.calls) == 3
    del kept[2]
    again = jackknifed(text, folds=3, stage=remember)
    assert len(spy.calls) == 4
    assert [tags_of(s) for s in again] == [tags_of(s) for s in first] == [tags_of(s) for s in jackknifed(text, folds=3)]


def test_jack_knifed_tags_are_those_of_a_tagger_of_the_others() -> None:
    text = sentences(9, 3)
    found = jackknifed(text, folds=3, seed=2)
    for k in range(0, 9, 3):
        apart = Tagger.learn([*text[:k], *text[k + 3 :]], seed=2).tag(text[k : k + 3])
        assert [tags_of(s) for s in found[k : k + 3]] == [tags_of(s) for s in apart]


# Saving


@cache
def learnt_on_toys() -> Tagger:
    return Tagger.learn(sentences(20, 4), Clusters({"the": "01", "stone": "110"}), passes=2)


def test_saved_and_loaded() -> None:
    tagger = learnt_on_toys()
    data = json.loads(json.dumps(tagger.to_data()))
    assert set(data) == set(KEYS)
    assert Tagger.size_of(data) == len(tagger.weights)
    again = Tagger.from_data(data, tagger.weights, tagger.coder.clusters)
    assert again.coder == tagger.coder
    assert (again.tags, again.templates) == (tagger.tags, tagger.templates)
    assert (dict(again.frequent), list(again.open)) == (dict(tagger.frequent), list(tagger.open))
    assert again.lemmatiser == tagger.lemmatiser
    text = [*sentences(10, 5), Sentence.from_words(["The", "Stone", "xyzzy"])]
    assert [s.to_conllu() for s in again.tag(text)] == [s.to_conllu() for s in tagger.tag(text)]
    assert json.loads(json.dumps(again.to_data())) == data


def test_a_tagger_without_lemmas_is_saved() -> None:
    tagger = replace(learnt_on_toys(), lemmatiser=None)
    again = Tagger.from_data(tagger.to_data(), tagger.weights, NO_CLUSTERS)
    assert again.lemmatiser is None


def put(data: Any, *path: Any) -> None:
    """put(data, key, .., value): the value at the end of the path."""
    *keys, last, value = path
    for key in keys:
        data = data[key]
    data[last] = value


KEYS = ("fields", "classes", "tags", "frequent", "open", "templates", "bits", "lemmas")
DAMAGE: dict[str, Callable[[dict[str, Any]], Any]] = {
    **{f"no {key}": lambda data, key=key: data.pop(key) for key in KEYS},  # type: ignore[misc]
    "a field missing": lambda data: data["fields"].pop("suffix3"),
    "a candidate too large": lambda data: data["open"].append(len(data["tags"])),
    "a negative candidate": lambda data: put(data, "open", 0, -1),
    "no candidate": lambda data: put(data, "open", []),
    "a candidate many times": lambda data: put(data, "open", [0] * 10_000),
    "a frequent word with none": lambda data: put(data, "frequent", "the", []),
    "a frequent word's too large": lambda data: put(data, "frequent", "the", [99]),
    "a frequent word's many times": lambda data: put(data, "frequent", "the", [1, 1]),
    "no tags at all": lambda data: put(data, "tags", []),
    "tags of two parts": lambda data: put(data, "tags", 0, ["N", "N"]),
    "one table of templates": lambda data: data["templates"].pop(),
    "a template of no field": lambda data: put(data, "templates", 0, 0, "colour"),
    "a template that looks too far": lambda data: put(data, "templates", 1, 0, "lower+9"),
    "a template of four atoms": lambda data: put(data, "templates", 1, 0, "form lower shape tags"),
    "no bits": lambda data: put(data, "bits", 0),
    "many bits": lambda data: put(data, "bits", 60),
    "other bits": lambda data: put(data, "bits", 5),
    "bits a word": lambda data: put(data, "bits", "x"),
    "lemmas without rules": lambda data: data["lemmas"].pop("rules"),
    "a rule of two parts": lambda data: put(data, "lemmas", "rules", {"N": {"": [0, ""]}}),
    "not a dictionary": lambda data: put(data, "classes", [1]),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """A parser with a tagger, as a file holds it."""
    path = tmp_path_factory.mktemp("tagger") / "toy.headway"
    parser = Parser.train(sentences(10, 6), tags="gold", epochs=1, labels="none")
    replace(parser, tagger=learnt_on_toys()).save(path)
    return load_archive(path, "arc")


def test_a_whole_parser_is_loaded(whole: Archive, tmp_path: Path) -> None:
    save_archive(whole, tmp_path / "a")
    found = Parser.load(tmp_path / "a").tagger
    assert found is not None
    assert found.tags == learnt_on_toys().tags
    assert found.weights.dtype == np.float32


@pytest.mark.parametrize("name", list(DAMAGE))
def test_damaged_taggers(whole: Archive, tmp_path: Path, name: str) -> None:
    data = json.loads(json.dumps(whole.data))
    DAMAGE[name](data["tagger"])
    if name != "other bits":  # only the number of weights tells
        with pytest.raises((KeyError, ValueError, TypeError, AttributeError, HeadwayError)):
            Tagger.from_data(data["tagger"], np.zeros(Tagger.size_of(data["tagger"])), NO_CLUSTERS)
    save_archive(Archive("arc", data, whole.arrays), tmp_path / "damaged")
    with pytest.raises(ArchiveError) as caught:
        Parser.load(tmp_path / "damaged")
    assert str(caught.value).startswith(f"{tmp_path / 'damaged'}: ")
    assert "\n" not in str(caught.value)


def test_weights_no_tagger_has(whole: Archive, tmp_path: Path) -> None:
    arrays = {name: array for name, array in whole.arrays.items() if name != "tagger_weights"}
    bad = np.full_like(whole.arrays["tagger_weights"], np.nan)
    for changed in (arrays, {**arrays, "tagger_weights": bad}, {**arrays, "tagger_weights": bad[1:]}):
        save_archive(Archive("arc", whole.data, changed), tmp_path / "damaged")
        with pytest.raises(ArchiveError):
            Parser.load(tmp_path / "damaged")
    assert len(bad) <= 1 << BITS
