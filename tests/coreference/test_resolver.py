"""Coreference from end to end on toy documents in which the same noun is the same thing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.coreference import Document, Mention, tree_mentions, write_documents
from headway.coreference.documents import documents_checksum
from headway.coreference.latent_trees import clusters_of
from headway.coreference.resolver import Resolver
from headway.coreference.scores import score_documents
from headway.coreference.settings import ResolverSettings
from headway.errors import TrainingError, TreebankError
from headway.learning.monitor import Progress
from headway.treebank import Sentence

from .toy_documents import document, head_match_documents, random_document, sentence

BARE = document([sentence("dog NOUN 0 root")], [])
NO_TREE = document([Sentence.from_words(["dog"], upos=["NOUN"])], [(0, (1,))])


@cache
def toys() -> list[Document]:
    return head_match_documents(0, 8)


@cache
def new() -> list[Document]:
    """With other sequences of nouns than the toys have."""
    return head_match_documents(77, 4)


@cache
def trained() -> Resolver:
    return Resolver.train(toys(), epochs=6)


def conll(resolver: Resolver, documents: list[Document]) -> float:
    return score_documents(documents, (found.document for found in resolver.resolve(documents))).conll


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"stretch": 0},
        {"stretch": 1, "margin": 0.0},
        {"tree": "closest"},
        {"root_weight": 2.0, "mentions": 5, "sentences": 0},
    ],
)
def test_what_decides_is_learnt(settings: dict[str, Any]) -> None:
    resolver = Resolver.train(toys(), **{"epochs": 8, **settings})
    for found, gold in zip(resolver.resolve(new()), new(), strict=True):
        np.testing.assert_array_equal(found.document.clusters, gold.clusters)
        np.testing.assert_array_equal(clusters_of(found.heads), gold.clusters)
        assert found.document.mentions == gold.mentions
        assert found.heads[0] == -1
        assert all(head < m for m, head in enumerate(found.heads.tolist()))
    assert conll(resolver, new()) == 1.0
    assert max(len(text.partition()) for text in new()) < len(new()[0].mentions)


def test_without_training_it_is_not_known() -> None:
    """Or the test above would say little."""
    model = trained().model
    assert conll(Resolver(replace(model, weights=np.zeros_like(model.weights))), new()) < 0.9


def test_the_clusters_given_are_not_looked_at() -> None:
    for text in new():
        apart = text.with_clusters(np.arange(len(text.mentions)))
        (one,), (other,) = trained().resolve([text]), trained().resolve([apart])
        np.testing.assert_array_equal(one.heads, other.heads)


def test_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "toy.headway"
    trained().save(path)
    loaded = Resolver.load(path)
    assert loaded.model.about == trained().model.about
    documents = [*new(), *(random_document(seed) for seed in range(10))]
    for one, other in zip(trained().resolve(documents), loaded.resolve(documents), strict=True):
        np.testing.assert_array_equal(one.heads, other.heads)


def test_what_the_model_says_of_itself() -> None:
    about = trained().model.about
    assert about["settings"] == {**vars(ResolverSettings()), "epochs": 6}
    assert about["train"] == {"documents": 8, "mentions": 128, "sha256": documents_checksum(toys())}
    numbers = [entry["pass"] for entry in about["history"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert about["best_pass"] == numbers[-1]
    assert all(entry["dev"] is None for entry in about["history"])


def test_seeds() -> None:
    one, again, other = (Resolver.train(toys()[:3], epochs=2, seed=seed).model for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.weights, again.weights)
    assert one.about == again.about
    assert not np.array_equal(one.weights, other.weights)


def test_files(tmp_path: Path) -> None:
    """From a path as from the documents that are in it."""
    path = tmp_path / "toys.conllu"
    named = [
        replace(
            text, name=f"d{i}", sentences=(with_comment(text.sentences[0], f"# newdoc id = d{i}"), *text.sentences[1:])
        )
        for i, text in enumerate(toys())
    ]
    write_documents(named, path)
    found = Resolver.train(path, str(path), epochs=2).model
    expected = Resolver.train(iter(named), named, epochs=2).model
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert found.about == expected.about
    assert found.about["history"][0]["dev"] is not None


def with_comment(made: Sentence, comment: str) -> Sentence:
    return replace(made, layout=replace(made.layout, comments=(comment, *made.layout.comments)))


# Development data


def test_the_best_pass_is_kept() -> None:
    """Random documents teach little, so that the score goes up and down."""
    dev = [random_document(seed) for seed in range(50, 56)]
    settings: dict[str, Any] = {"patience": 3, "seed": 2, "temperature": 0.0}
    passes = []
    for first in (24, 36, 60):
        train = [random_document(seed) for seed in range(first, first + 12)]
        shown: list[Progress] = []
        resolver = Resolver.train(train, dev, epochs=12, show=shown.append, **settings)
        scores = [each.dev for each in shown]
        assert [entry["dev"] for entry in resolver.model.about["history"]] == scores
        best = int(np.argmax(scores)) + 1  # the first of equals
        assert resolver.model.about["best_pass"] == best
        assert len(scores) == min(12, best + 3)
        alone = Resolver.train(train, epochs=best, **settings)
        np.testing.assert_array_equal(resolver.model.weights, alone.model.weights)
        assert 100 * conll(resolver, dev) == pytest.approx(max(scores), abs=1e-9)
        assert {each.stage for each in shown} == {"coreference"}
        assert [each.number for each in shown] == list(range(1, len(shown) + 1))
        passes.append((best, len(scores)))
    assert any(best > 1 and done < 12 for best, done in passes)  # neither the first nor for want of passes


# Mentions


def test_mentions_from_trees() -> None:
    for text in new():
        other = text.with_mentions([Mention(0, (3,))], [0])
        (found,) = trained().resolve([other], find_mentions=True)
        assert found.document.mentions == tuple(tree_mentions(text.sentences))
        np.testing.assert_array_equal(found.document.clusters, text.clusters)
        np.testing.assert_array_equal(found.document.clusters, clusters_of(found.heads))
    (found,) = trained().resolve([BARE], find_mentions=True)
    assert [mention.words for mention in found.document.mentions] == [(1,)]


def test_documents_without_mentions() -> None:
    (found,) = trained().resolve([BARE])
    assert found.document.mentions == ()
    assert found.document.clusters.tolist() == []
    assert found.heads.tolist() == [-1]
    assert list(trained().resolve([])) == []
    one, other = (Resolver.train(texts, BARE_DEV, epochs=2).model for texts in (toys(), [BARE, *toys(), BARE]))
    np.testing.assert_array_equal(one.weights, other.weights)


BARE_DEV = [BARE, *head_match_documents(5, 1)]


@pytest.mark.parametrize("documents", [[], [BARE], [BARE, BARE]])
def test_nothing_to_train_on(documents: list[Document]) -> None:
    with pytest.raises(TrainingError, match="the training data: no Entity= marks in MISC"):
        Resolver.train(documents)
    with pytest.raises(TrainingError, match="the development data: no Entity= marks in MISC"):
        Resolver.train(toys(), documents)


def test_nothing_to_train_on_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "bare.conllu"
    write_documents([BARE], path)
    with pytest.raises(TrainingError, match=r"bare\.conllu: no Entity= marks in MISC"):
        Resolver.train(path)


def test_a_sentence_without_a_tree() -> None:
    for find_mentions in (False, True):
        with pytest.raises(TreebankError, match="has no heads"):
            list(trained().resolve([NO_TREE], find_mentions=find_mentions))
    with pytest.raises(TreebankError, match="has no heads"):
        Resolver.train([*toys(), NO_TREE])
    with pytest.raises(TreebankError, match="has no heads"):
        Resolver.train(toys(), [NO_TREE])


# Types


def test_types_are_used_only_if_asked_for() -> None:
    """Documents in which nothing but the type tells who is who."""
    rng, kinds = np.random.default_rng(0), ["person", "place", "thing"]
    texts = []
    for _ in range(20):
        who = rng.integers(0, 3, 14).tolist()
        mentions = [Mention(number, (1,), kinds[k]) for number, k in enumerate(who)]
        texts.append(document([sentence("dog NOUN 0 root")] * len(who), mentions, who))
    blind, seeing = (Resolver.train(texts[:16], epochs=20, types=types) for types in (False, True))
    assert conll(seeing, texts[16:]) > 0.95
    assert conll(blind, texts[16:]) < 0.8
    for text in texts[16:]:
        alike = text.with_mentions([replace(mention, type="person") for mention in text.mentions], text.clusters)
        (one,), (other,) = blind.resolve([text]), blind.resolve([alike])
        np.testing.assert_array_equal(one.heads, other.heads)


# Settings


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({"epochs": 0}, "epochs is 0; expected 1 or more"),
        ({"mentions": 0}, "mentions is 0; expected 1 or more"),
        ({"patience": -1}, "patience is -1; expected 1 or more"),
        ({"stretch": -1}, "stretch is -1; expected 0 or more"),
        ({"margin": -1.0}, "margin is -1.0; expected 0 or more"),
        ({"margin": float("nan")}, "margin is nan; expected 0 or more, and finite"),
        ({"root_weight": float("inf")}, "root_weight is inf; expected 0 or more, and finite"),
        ({"sentences": -1}, "sentences is -1; expected 0 or more"),
        ({"seed": -1}, "seed is -1; expected 0 or more"),
        ({"tree": "star"}, "tree is 'star'; expected any of latent, closest"),
    ],
)
def test_settings_refused(settings: dict[str, Any], cause: str) -> None:
    with pytest.raises(TrainingError) as caught:
        Resolver.train(toys(), **settings)
    assert str(caught.value) == cause


def test_settings_at_their_limits() -> None:
    limits = ResolverSettings(
        epochs=1, margin=0, root_weight=0, stretch=0, mentions=1, sentences=0, patience=1, seed=2**63 - 1
    )
    assert limits.complete() == limits
