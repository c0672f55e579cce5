"""Long sentences in stretches: no search is over more words than allowed, and the joined tree is one of the class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from headway.arrays import TreeClass
from headway.errors import SizeError
from headway.inference import Status, TreeDistribution
from headway.inference.heads import is_in_class
from headway.models import stretches
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

    def predict(self, given: Sequence[Sentence], options: Options, executor: Executor) -> list[Prediction]:
        self.seen += given
        self.options.append(options)
        return [self._tree(sentence) for sentence in given]

    def _tree(self, sentence: Sentence) -> Prediction:
        n = len(sentence)
        rng = np.random.default_rng(crc32(" ".join(sentence.forms).encode()))
        distribution = TreeDistribution(2 * rng.normal(size=(n + 1, n + 1)), *self.trees)
        heads = distribution.argmax()
        labels = (None, *("root" if h == 0 else "dep" for h in heads[1:].tolist())) if self.labels else None
        shares = np.append(1.0, rng.random(n)) if self.labels else None
        return Prediction(heads, labels, distribution, floored=(1, 2), label_probabilities=shares)


def words(n: int, *, marks: Sequence[int] = (), name: str = "w") -> Sentence:
    return Sentence.from_words(["." if m in marks else f"{name}{m}" for m in range(1, n + 1)])


def predict(model: RandomModel, given: Sequence[Sentence], executor: Executor = SERIAL, **options: Any) -> Any:
    found: Any = predict_any_length(model, given, Options(**options), executor)  # type: ignore[arg-type]
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
