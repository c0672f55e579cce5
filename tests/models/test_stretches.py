"""Long sentences in stretches: no search is over more words than allowed, and the joined tree is one of the class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from headway.arrays import TreeClass
from headway.errors import NoTreeError, SizeError
from headway.inference import Status, TreeDistribution
from headway.inference.heads import is_in_class
from headway.models import stretches
from headway.models.constraints import Constraints, mask_arcs
from headway.models.protocol import Options, Prediction
from headway.models.stretches import StretchedDistribution, predict_any_length
from headway.parallel import SERIAL, Executor, Threads
from headway.parsed import Parsed
from headway.treebank import Sentence

CLASSES = [TreeClass(projective, single) for projective in (False, True) for single in (False, True)]
every_class = pytest.mark.parametrize("trees", CLASSES, ids=str)


@dataclass
class RandomModel:
    """Random scores for every sentence, the same for the same words; it notes what it was given."""

    trees: TreeClass
    labels: bool = True
    seen: list[Sentence] = field(default_factory=list)
    options: list[Options] = field(default_factory=list)

    def predict(
        self,
        given: Sequence[Sentence],
        options: Options,
        executor: Executor,
        constraints: Sequence[Constraints | None] | None = None,
    ) -> list[Prediction]:
        self.seen += given
        self.options.append(options)
        return [self._tree(*each) for each in zip(given, constraints or [None] * len(given), strict=True)]

    def _tree(self, sentence: Sentence, known: Constraints | None = None) -> Prediction:
        n = len(sentence)
        rng = np.random.default_rng(crc32(" ".join(sentence.forms).encode()))
        scores = 2 * rng.normal(size=(n + 1, n + 1))
        distribution = TreeDistribution(scores if known is None else mask_arcs(scores, known.allowed), *self.trees)
        heads = distribution.argmax()
        labels = (None, *("root" if h == 0 else "dep" for h in heads[1:].tolist())) if self.labels else None
        shares = np.append(1.0, rng.random(n)) if self.labels else None
        return Prediction(heads, labels, distribution, floored=(1, 2), label_probabilities=shares)


def words(n: int, *, marks: Sequence[int] = (), name: str = "w") -> Sentence:
    return Sentence.from_words(["." if m in marks else f"{name}{m}" for m in range(1, n + 1)])


def predict(model: RandomModel, given: Sequence[Sentence], executor: Executor = SERIAL, **options: Any) -> Any:
    constraints = options.pop("constraints", None)
    found: Any = predict_any_length(model, given, Options(**options), executor, constraints)  # type: ignore[arg-type]
    return found


@pytest.fixture(autouse=True)
def _ten_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "MOST_WORDS", 10)


@every_class
@pytest.mark.parametrize("n", [11, 19, 20, 21, 57, 130])
def test_the_tree_is_of_the_class_and_no_search_is_longer(trees: TreeClass, n: int) -> None:
    model = RandomModel(trees)
    [found] = predict(model, [words(n)])
    assert is_in_class(found.heads, trees)
    assert max(map(len, model.seen)) == 10
    assert found.status is Status.IN_STRETCHES
    assert not found.status.is_proof
    assert found.gap == np.inf
    assert [label == "root" for label in found.labels[1:]] == (found.heads[1:] == 0).tolist()
    assert found.floored == (len(model.seen), 2 * len(model.seen))


def test_arcs_and_probabilities_are_those_of_stretches_and_roots() -> None:
    model = RandomModel(TreeClass(False, True))
    sentence = words(25)
    [found] = predict(model, [sentence])
    pieces = [(0, 10), (10, 20), (20, 25)]
    parts = [model._tree(Sentence.from_words(sentence.forms[a:b])) for a, b in pieces]
    roots = [a + int(np.flatnonzero(part.heads == 0)[0]) for (a, _), part in zip(pieces, parts, strict=True)]
    above = model._tree(Sentence.from_words([sentence.forms[root - 1] for root in roots]))
    log_probability = above.distribution.log_prob(above.heads)
    for (a, _), part in zip(pieces, parts, strict=True):
        log_probability += part.distribution.log_prob(part.heads)
        for m, h in enumerate(part.heads[1:].tolist(), start=1):
            probability, share = part.distribution.marginals[h, m], part.label_probabilities[m]
            if h == 0:
                k = roots.index(a + m) + 1
                share = above.label_probabilities[k]
                h, probability = int(above.heads[k]), probability * above.distribution.marginals[above.heads[k], k]
                expected = 0 if h == 0 else roots[h - 1]
            else:
                expected = a + h
            assert found.heads[a + m] == expected
            assert found.label_probabilities[a + m] == share
            assert found.distribution.arcs[a + m] == pytest.approx(probability, rel=1e-12)
    assert found.distribution.log_prob(found.heads) == pytest.approx(log_probability, rel=1e-12)
    parsed = Parsed(sentence.with_tree(found.heads, found.labels), found.distribution, found.status, found.gap)
    assert parsed.confidence.tree == pytest.approx(np.exp(log_probability), rel=1e-9)
    np.testing.assert_array_equal(parsed.confidence.arcs, found.distribution.arcs)


def test_a_stretch_ends_with_a_mark_where_there_is_one() -> None:
    model = RandomModel(TreeClass(False, True), labels=False)
    [found] = predict(model, [words(26, marks=(2, 7, 18, 19))])
    assert [len(each) for each in model.seen] == [7, 10, 9, 3]  # 7 is within the second half, and 18 just too far
    assert model.seen[0].forms[-1] == "."
    assert found.labels is None
    assert found.distribution.argmax() is found.heads


def test_short_sentences_are_as_they_were_and_stay_in_their_places() -> None:
    model = RandomModel(TreeClass(True, True))
    given = [words(3), words(11, name="x"), words(10, name="y"), words(0), words(40, name="z")]
    found = predict(model, given)
    assert [len(each.heads) - 1 for each in found] == [3, 11, 10, 0, 40]
    for i in (0, 2):
        np.testing.assert_array_equal(found[i].heads, model._tree(given[i]).heads)
        assert found[i].status is Status.EXACT
    several = predict(RandomModel(TreeClass(True, True)), given, Threads(3))
    assert all((one.heads == other.heads).all() for one, other in zip(found, several, strict=True))


def test_stretches_share_the_seconds() -> None:
    model = RandomModel(TreeClass(False, True))
    predict(model, [words(30)], seconds=8.0)
    assert {each.seconds for each in model.options[1:]} == {2.0}


def test_a_model_may_ask_for_shorter_stretches() -> None:
    model = RandomModel(TreeClass(False, True))
    model.most_words = 4  # type: ignore[attr-defined]
    first, second = predict(model, [words(4), words(9)])
    assert max(map(len, model.seen)) == 4
    assert (first.status, second.status) == (Status.EXACT, Status.IN_STRETCHES)
    model.most_words = 10**6  # type: ignore[attr-defined]
    assert predict(model, [words(11)])[0].status is Status.IN_STRETCHES


def test_other_probabilities_are_refused_in_one_sentence() -> None:
    own = StretchedDistribution(np.array([-1, 0, 1]), np.array([1, 0.5, 0.25]), -2.0)
    remedy = "a sentence of 2 words is parsed in stretches, and has probabilities for its own arcs only"
    with pytest.raises(SizeError, match=remedy):
        _ = own.marginals
    with pytest.raises(SizeError, match=remedy):
        own.log_prob([-1, 2, 0])
    assert own.log_prob([-1, 0, 1]) == -2.0


# Constraints


def heads(n: int, **known: int) -> Any:
    """Unknown but for the words `m<number>`."""
    made = np.full(n + 1, -1)
    for name, head in known.items():
        made[int(name[1:])] = head
    return made


@every_class
def test_known_heads_inside_stretches_are_kept(trees: TreeClass) -> None:
    """Of the tree that is found without constraints, and of another one; the arcs are certain then."""
    model, n = RandomModel(trees), 37
    sentence = words(n)
    [free] = predict(model, [sentence])
    own = Constraints(np.where(np.arange(n + 1) % 2, free.heads, -1))
    other = Constraints(heads(n, m3=1, m13=16, m22=0, m35=36), None, ((2, 1), (5, 14), (20, 11), (0, 36)))
    short = Constraints(heads(9, m9=1), (None, *["_"] * 8, "x"))
    labelled = Constraints(other.heads, tuple("x" if m == 35 else "_" for m in range(n + 1)), other.forbidden)
    one, two, three = predict(
        model,
        [sentence, sentence, words(9, name="v")],
        constraints=[own, labelled, short],
    )
    np.testing.assert_array_equal(one.heads, free.heads)
    for known, found in ((own, one), (other, two), (short, three)):
        assert is_in_class(found.heads, trees)
        pinned = np.flatnonzero(known.heads >= 0)
        np.testing.assert_array_equal(found.heads[pinned], known.heads[pinned])
        assert not any(found.heads[m] == h for h, m in known.forbidden)
    np.testing.assert_allclose(one.distribution.arcs[1::2], 1.0, rtol=1e-12)
    np.testing.assert_allclose(two.distribution.arcs[[3, 13, 22, 35]], 1.0, rtol=1e-12)
    assert (two.labels[35], two.label_probabilities[35], three.labels[9]) == ("x", 1.0, "x")
    assert two.labels.count("x") == 1
    assert (two.status, three.status) == (Status.IN_STRETCHES, Status.EXACT)
    assert not np.array_equal(two.heads, free.heads)


@pytest.mark.parametrize("trees", [TreeClass(False, True), TreeClass(True, True)], ids=str)
def test_a_head_in_another_stretch_makes_both_words_roots_of_theirs(trees: TreeClass) -> None:
    model, n = RandomModel(trees), 45
    known = Constraints(heads(n, m4=17, m17=33, m33=0), None, ((33, 25),))
    [found] = predict(model, [words(n)], constraints=[known])
    assert found.heads[[4, 17, 33]].tolist() == [17, 33, 0]
    assert found.heads[25] != 33
    assert is_in_class(found.heads, trees)
    np.testing.assert_allclose(found.distribution.arcs[[4, 17, 33]], 1.0, rtol=1e-12)


def test_a_forbidden_root_may_be_that_of_a_stretch() -> None:
    """Here of every stretch but one, whose root is on the sentence's then."""
    model, n = RandomModel(TreeClass(False, True)), 30
    sentence = words(n)
    [free] = predict(model, [sentence])
    roots = [m for piece in (range(1, 11), range(11, 21), range(21, 31)) for m in piece]
    forbidden = tuple((0, m) for m in roots if m > 10)
    [found] = predict(model, [sentence], constraints=[Constraints(heads(n), None, forbidden)])
    assert np.flatnonzero(found.heads == 0)[0] <= 10
    inside = (found.heads == free.heads) | (np.arange(n + 1) == 0)
    assert inside.sum() >= n - 2  # but for the words that join the stretches


LIMITS: dict[str, tuple[TreeClass, Constraints, str]] = {
    "two heads elsewhere": (
        TreeClass(False, True),
        Constraints(heads(30, m3=14, m5=25)),
        "14 (w14) cannot be kept as the head of 3 (w3), which is in another stretch; leave that head open",
    ),
    "a head elsewhere and the root": (
        TreeClass(False, True),
        Constraints(heads(30, m3=14, m11=0)),
        "14 (w14) cannot be kept as the head of 3 (w3), which is in another stretch; leave that head open",
    ),
    "a head whose own is in its stretch": (
        TreeClass(True, True),
        Constraints(heads(30, m3=14, m14=17)),
        "14 (w14) cannot be kept as the head of 3 (w3), which is in another stretch; leave that head open",
    ),
    "stretches that stay apart": (
        TreeClass(False, False),
        Constraints(heads(30, m29=1)),
        "1 (w1) cannot be kept as the head of 29 (w29), which is in another stretch; leave that head open",
    ),
    "arcs that join them": (
        TreeClass(False, True),
        Constraints(heads(30, m3=0), None, tuple((h, m) for m in range(11, 31) for h in range(11))),
        "the forbidden arcs leave no tree; allow some",
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_what_stretches_cannot_do_is_refused_in_one_sentence(name: str) -> None:
    trees, known, said = LIMITS[name]
    with pytest.raises(SizeError) as caught:
        predict(RandomModel(trees), [words(30)], constraints=[known])
    assert str(caught.value) == (
        f"a sentence of 30 words is parsed in stretches of at most 10, and {said}, or split the sentence"
    )


def test_contradictions_in_long_sentences_name_the_words() -> None:
    known = Constraints(heads(30, m3=0, m25=0))
    with pytest.raises(NoTreeError, match=r"words 3 \(w3\) and 25 \(w25\) are both under the root"):
        predict(RandomModel(TreeClass()), [words(30)], constraints=[known])
