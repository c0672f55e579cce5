"""Features of clusters: each atom in plain Python, and trees whose every arc is the best given the clusters before."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.coreference import Document
from headway.coreference.antecedents import Sieves
from headway.coreference.attributes import ATTRIBUTES, NAME, PRONOUN, describe_mentions
from headway.coreference.cluster_atoms import CLUSTER_ATOMS, with_cluster_atoms
from headway.coreference.coding import MentionCoder
from headway.coreference.latent_trees import best_heads, clusters_of
from headway.coreference.left_to_right import heads_left_to_right
from headway.coreference.pair_features import PairFeatures, pair_templates, parse_pair_templates, stretch
from headway.coreference.pairs import PAIR_ATOMS
from headway.coreference.resolver import Resolver
from headway.coreference.scores import score_documents

from .toy_documents import document, head_match_documents, random_document, sentence

SEEDS = st.integers(0, 2**32 - 1)
SIEVES = Sieves(3, 1)
FEW = parse_pair_templates("c.gender c.size | - m\nc.head c.sentences | m\np.head c.kinds | -\nm.first c.genders | -")
BINS = (0, 1, 2, 3, 4, 5, 5, 6, 6, 6)


@cache
def coder() -> MentionCoder:
    return MentionCoder.learn([random_document(seed) for seed in range(30)])


def known(x: str, y: str) -> int:
    return 0 if "_" in (x, y) else 1 if x == y else 2


def naive(text: Document, clusters: list[int], a: int, m: int) -> dict[str, int]:
    """What the clusters say about an arc, mention by mention; the rest is checked with the pairs' own atoms."""
    described = describe_mentions(text)
    mention, own = described[m - 1]
    members = [b for b in range(1, m) if clusters[b - 1] == clusters[a - 1]]
    rows = [described[b - 1] for b in members]
    sets = {}
    for name in ("number", "gender", "person"):
        sets[name] = sum({known(row[name], own[name]) for _, row in rows})
        values = coder().values[name]
        sets[f"{name}s"] = sum({1 << values.get(row[name], 1) for _, row in rows})
    heads = [
        (3 if each.kind == NAME else 2) if row["lemma"] == own["lemma"] else 1
        for each, row in rows
        if PRONOUN not in (each.kind, mention.kind)
    ]
    strings = [
        3
        if each.text(each.mention.words) == mention.text(mention.mention.words)
        else 2
        if each.text(each.core) == mention.text(mention.core)
        else 1
        for each, _ in rows
        if (each.kind == PRONOUN) == (mention.kind == PRONOUN)
    ]
    others = sum(each.kind == mention.kind != PRONOUN and row["lemma"] != own["lemma"] for each, row in rows)
    last = text.mentions[members[-1] - 1]
    inside = any(
        each.mention.sentence == mention.mention.sentence
        and each.mention.words[0] <= mention.mention.words[0]
        and mention.mention.words[-1] <= each.mention.words[-1]
        for each, _ in rows
    )
    return {
        "kinds": 1 + sum({1 if each.kind == PRONOUN else 2 if each.kind == NAME else 4 for each, _ in rows}),
        **{name: 1 + value for name, value in sets.items()},
        "size": 1 + BINS[len(members)] if len(members) < 10 else -1,
        "head": 1 + max(heads, default=0),
        "string": 1 + max(strings, default=0),
        "others": 1 + min(others, 2),
        "sentences": 1 + BINS[mention.mention.sentence - last.sentence],
        "mentions": 1 + BINS[m - members[-1] - 1] if m - members[-1] < 10 else -1,
        "last": 2 if members[-1] == a else 1,
        "nested": 2 if inside else 1,
    }


@given(SEEDS)
def test_the_atoms_of_clusters(seed: int) -> None:
    text = random_document(seed)
    coded = coder().code(text)
    plain = SIEVES.antecedents(coded)
    arcs = with_cluster_atoms(coded, plain, text.clusters)
    np.testing.assert_array_equal(arcs.atoms[:, : len(PAIR_ATOMS)], plain.atoms)
    for k, (a, m) in enumerate(zip(arcs.antecedent.tolist(), arcs.mention.tolist(), strict=True)):
        found = dict(zip(CLUSTER_ATOMS, arcs.atoms[k, len(PAIR_ATOMS) :].tolist(), strict=True))
        if a == 0:
            assert set(found.values()) == {0}
            continue
        for name, value in naive(text, text.clusters.tolist(), a, m).items():
            assert value in (found[name], -1), name


@given(SEEDS)
def test_a_cluster_of_one_is_like_a_pair(seed: int) -> None:
    """What matches with the only mention of a cluster is what matches in the pair."""
    text = random_document(seed)
    text = text.with_clusters(np.arange(len(text.mentions)))
    coded = coder().code(text)
    arcs = with_cluster_atoms(coded, SIEVES.antecedents(coded), text.clusters)
    atoms = {f"p.{name}": arcs.atoms[:, i] for i, name in enumerate(PAIR_ATOMS)}
    atoms |= {f"c.{name}": arcs.atoms[:, len(PAIR_ATOMS) + i] for i, name in enumerate(CLUSTER_ATOMS)}
    from_mention = arcs.antecedent > 0
    for name in ("sentences", "mentions", "nested"):
        np.testing.assert_array_equal(atoms[f"c.{name}"], atoms[f"p.{name}"])
    for name in ("number", "gender", "person"):  # unknown, same, different
        np.testing.assert_array_equal(atoms[f"c.{name}"], atoms[f"p.{name}"])
    governors = np.array([0, 1, 2, 3])[atoms["p.governors"]]
    np.testing.assert_array_equal(atoms["c.governors"], governors)
    nominal = from_mention & (coded.kind[arcs.antecedent] != PRONOUN) & (coded.kind[arcs.mention] != PRONOUN)
    ranks = np.array([0, 1, 5, 4, 3, 2])[atoms["p.words"]]
    np.testing.assert_array_equal(atoms["c.words"][nominal], 1 + ranks[nominal])
    spoken = from_mention & (coded.kind[arcs.antecedent] == PRONOUN) & (coded.person[arcs.antecedent] > 0)
    spoken &= atoms["p.talk"] > 1
    np.testing.assert_array_equal(atoms["c.talk"], np.where(spoken, 1 + atoms["p.talk"], from_mention))


@given(SEEDS)
def test_every_arc_is_the_best_given_the_clusters_before(seed: int) -> None:
    text = random_document(seed)
    coded = coder().code(text)
    arcs = SIEVES.antecedents(coded)
    features = PairFeatures.compile(FEW, [6] * len(FEW))
    weights = np.random.default_rng(seed).normal(size=features.size)
    heads = heads_left_to_right(features, weights, coded, arcs)
    given_clusters = with_cluster_atoms(coded, arcs, clusters_of(heads))
    scores = features.score(weights, stretch(coded, given_clusters))
    np.testing.assert_array_equal(heads, best_heads(scores, arcs))


@given(SEEDS)
def test_with_features_of_pairs_it_is_the_best_tree(seed: int) -> None:
    text = random_document(seed)
    coded = coder().code(text)
    arcs = SIEVES.antecedents(coded)
    features = PairFeatures.compile(parse_pair_templates("p.head m.first | - m"), [6, 7])
    weights = np.random.default_rng(seed).normal(size=features.size)
    expected = best_heads(features.score(weights, stretch(coded, arcs)), arcs)
    np.testing.assert_array_equal(heads_left_to_right(features, weights, coded, arcs), expected)


def test_templates_of_clusters_are_left_out_unless_wanted() -> None:
    plain, every = pair_templates(types=False), pair_templates(types=False, clusters=True)
    assert not any(atom.startswith("c.") for template in plain for atom in template)
    assert every[: len(plain)] == plain
    assert {atom[2:] for template in every for atom in template if atom.startswith("c.")} == set(CLUSTER_ATOMS)
    assert PairFeatures.compile(every, [1] * len(every)).of_clusters
    assert not PairFeatures.compile(plain, [1] * len(plain)).of_clusters
    assert {"number", "gender", "person"} <= set(ATTRIBUTES)


def test_no_mentions() -> None:
    coded = coder().code(document([sentence("a X 0 x")], []))
    features = PairFeatures.compile(FEW, [6] * len(FEW))
    assert heads_left_to_right(features, np.zeros(features.size), coded, SIEVES.antecedents(coded)).tolist() == [-1]


def gendered(seed: int, count: int) -> list[Document]:
    """ "Sam saw Kim. He slept. She left." Who slept is Sam, who is pleased is Kim, and who left is the other one."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        (form, gender), (other, other_gender) = rng.permutation([("he", "Masc"), ("she", "Fem")]).tolist()
        who = int(rng.integers(2))
        rows = (
            [f"{form} PRON 2 nsubj Gender={gender}|Number=Sing", "slept VERB 0 root"],
            ["this DET 2 nsubj", "pleased VERB 0 root", f"{form} PRON 2 obj Gender={gender}|Number=Sing"],
        )[who]
        made = [
            sentence("Sam PROPN 2 nsubj Number=Sing", "saw VERB 0 root", "Kim PROPN 2 obj Number=Sing"),
            sentence(*rows),
            sentence(f"{other} PRON 2 nsubj Gender={other_gender}|Number=Sing", "left VERB 0 root"),
        ]
        mentions = [(0, (1,)), (0, (3,)), (1, (1 + 2 * who,)), (2, (1,))]
        found.append(document(made, mentions, [0, 1, who, 1 - who]))
    return found


@pytest.mark.parametrize("clusters", [False, True])
def test_what_only_clusters_tell_is_learnt_with_them_alone(clusters: bool) -> None:
    """The last pronoun has the gender that the other one's cluster does not have; no pair says who is meant."""
    resolver = Resolver.train(gendered(1, 60), epochs=10, clusters=clusters)
    new = gendered(2, 40)
    right = score_documents(new, (found.document for found in resolver.resolve(new))).conll
    assert right == 1 if clusters else right < 0.9


def test_saved_and_loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("clusters") / "model.coref"
    resolver = Resolver.train(head_match_documents(0, 8), epochs=4, clusters=True, learn_mentions=True)
    resolver.save(path)
    loaded = Resolver.load(path)
    assert loaded.model.features.of_clusters
    for text in head_match_documents(77, 4):
        (one,), (other,) = (each.resolve([text], find_mentions=True) for each in (resolver, loaded))
        assert one.document.mentions == other.document.mentions == text.mentions
        np.testing.assert_array_equal(one.heads, other.heads)
        np.testing.assert_array_equal(other.document.clusters, text.clusters)
