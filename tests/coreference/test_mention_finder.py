"""Mentions learnt from trees: scores weight by weight, the threshold by trying all, and toys that rules get wrong."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.coreference import Document, Mention, tree_mentions
from headway.coreference.mention_finder import (
    TEMPERATURE,
    MentionFinder,
    SentenceSpans,
    SpanFeatures,
    best_threshold,
    mention_templates,
)
from headway.coreference.mention_spans import SPAN_NAMES, SpanRows, candidate_spans
from headway.errors import TemplateError

from .toy_documents import document, random_document, sentence

FEW = (("h.upos", "h.label"), ("x.label",), ("s.lefts", "s.rule", "g.lemma"))
BITS = (5, 3, 6)
NOUNS = ("dog", "cat", "poet", "king", "child")


def row(rows: SpanRows, k: int) -> dict[str, int]:
    values = [int(rows.fields[node, i]) for node in rows.nodes[k] for i in range(rows.fields.shape[1])]
    return dict(zip(SPAN_NAMES, [*values, *rows.atoms[k].tolist()], strict=True))


def places(rows: SpanRows, k: int) -> list[int]:
    """Where the weights of a span are, in Python's integers."""
    values, found, begin = row(rows, k), [], 0
    for template, bits in zip(FEW, BITS, strict=True):
        key = 0
        for atom in template:
            digest = blake2b(f"{' '.join(template)} {atom}".encode(), digest_size=8).digest()
            key += (int.from_bytes(digest, "little") | 1) * (values[atom] + 1)
        found.append(begin + (key % 2**64 >> (64 - bits)))
        begin += 1 << bits
    return found


@given(st.integers(0, 2**32 - 1))
def test_scores_and_their_pullback(seed: int) -> None:
    rows = candidate_spans(random_document(seed).sentences).rows
    features = SpanFeatures.compile(FEW, BITS)
    rng = np.random.default_rng(seed)
    weights, amounts = rng.normal(size=features.size), rng.normal(size=len(rows.nodes))
    scores = features.score(weights, rows)
    changed = np.zeros(features.size)
    for k, score in enumerate(scores.tolist()):
        own = places(rows, k)
        assert score == pytest.approx(sum(weights[own]))
        np.add.at(changed, own, amounts[k])
    into = np.zeros(features.size)
    features.add(into, rows, amounts)
    np.testing.assert_allclose(into, changed, atol=1e-12)


def test_blocks_are_sized_from_the_mentions() -> None:
    rows = candidate_spans(random_document(3).sentences).rows
    features = SpanFeatures.learn(FEW, [rows, rows])
    for t, keys in enumerate(features.keys(rows).T):
        distinct = len(np.unique(keys))
        assert 2 * distinct <= 1 << features.bits[t] < 4 * distinct or features.bits[t] == 1


def test_every_template_can_be_compiled() -> None:
    templates = mention_templates()
    assert len(set(map(frozenset, templates))) == len(templates) > 100
    SpanFeatures.compile(templates, [1] * len(templates))
    with pytest.raises(TemplateError, match="damaged"):
        SpanFeatures.compile([("h.colour",)], [1])


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1), st.integers(0, 3))
def test_no_other_threshold_is_better(scored: list[tuple[int, bool]], missed: int) -> None:
    scores, right = np.array([float(s) for s, _ in scored]), np.array([r for _, r in scored])
    mentions = int(right.sum()) + missed

    def f1(threshold: float) -> float:
        found = scores > threshold
        return float(2 * (found & right).sum() / max(1, found.sum() + mentions))

    chosen = f1(best_threshold(scores, right, mentions))
    assert chosen == pytest.approx(max(f1(x) for x in np.arange(-4.5, 4.0)), abs=1e-12)


def test_certain_answers_change_nothing() -> None:
    rows = candidate_spans([sentence("a DET 2 det", "dog NOUN 0 root")]).rows
    is_mention = np.array([True, False, True])
    spans = SentenceSpans(SpanFeatures.compile(FEW, BITS), rows, is_mention)
    certain = np.where(is_mention, 20.0, -20.0) * TEMPERATURE
    np.testing.assert_array_equal(spans.best(certain), spans.gold())
    np.testing.assert_allclose(spans.best(np.zeros(3)), 0.5)


def toys(seed: int, count: int) -> list[Document]:
    """ "The dog of the king saw a cat": nouns with "the" are marked, without what depends on them; others are not."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        made, mentions = [], []
        for number in range(6):
            one, other, third = rng.choice(NOUNS, 3).tolist()
            articles = rng.choice(["the", "a"], 3).tolist()
            made.append(
                sentence(
                    f"{articles[0]} DET 2 det _ {articles[0]}",
                    f"{one} NOUN 6 nsubj _ {one}",
                    "of ADP 5 case _ of",
                    f"{articles[1]} DET 5 det _ {articles[1]}",
                    f"{other} NOUN 2 nmod _ {other}",
                    "saw VERB 0 root _ see",
                    f"{articles[2]} DET 8 det _ {articles[2]}",
                    f"{third} NOUN 6 obj _ {third}",
                )
            )
            spans = ((1, 2), (4, 5), (7, 8))
            mentions += [(number, s) for s, article in zip(spans, articles, strict=True) if article == "the"]
        found.append(document(made, mentions))
    return found


@cache
def learnt() -> MentionFinder:
    return MentionFinder.learn(toys(0, 10))


def test_what_decides_is_learnt() -> None:
    for text in toys(77, 4):
        assert tuple(learnt().find(text.sentences)) == text.mentions
        assert tuple(tree_mentions(text.sentences)) != text.mentions


def test_the_threshold_decides() -> None:
    (text,) = toys(78, 1)
    assert replace(learnt(), threshold=np.inf).find(text.sentences) == []
    every = replace(learnt(), threshold=-np.inf).find(text.sentences)
    assert len(every) == len(candidate_spans(text.sentences).rows.nodes)
    assert text.with_mentions(every, np.arange(len(every))).mentions == tuple(every)  # sorted as a document's are


def test_learning_repeats() -> None:
    again = MentionFinder.learn(toys(0, 10))
    np.testing.assert_array_equal(again.weights, learnt().weights)
    assert again.threshold == learnt().threshold


def test_few_documents_and_mentions_with_gaps() -> None:
    """Without mentions to hold out, a mention is what is more probable than not."""
    (text,) = toys(5, 1)
    finder = MentionFinder.learn(
        [text.with_mentions([*text.mentions, Mention(0, (1, 3))], range(len(text.mentions) + 1))]
    )
    assert finder.threshold == 0
    assert tuple(finder.find(text.sentences)) == text.mentions
