"""Coreference scores: the reference scorer's published cases, the papers' example, a naive twin, properties."""

from __future__ import annotations

import json
import random
from dataclasses import astuple
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from headway.coreference import CoreferenceScores, evaluate_coreference, score_documents
from headway.errors import EvaluationError

from .naive_scores import NAMES, Partition, score
from .score_cases import BLANC_DECIMALS, CASES, CEAF_DECIMALS, REPEATED
from .toy_documents import head_match_documents

EXAMPLE = ("abc defg", "ab cd fghi")  # Pradhan et al. 2014


def _scores(*documents: tuple[str, str], singletons: bool = True) -> CoreferenceScores:
    return evaluate_coreference([(key.split(), response.split()) for key, response in documents], singletons=singletons)


def _figures(scores: CoreferenceScores) -> dict[str, tuple[float, float, float]]:
    return {name: astuple(getattr(scores, name)) for name in NAMES}


def _with_f1(recall: Fraction, precision: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    return recall, precision, 2 * recall * precision / (recall + precision) if recall + precision else Fraction(0)


def _read(figures: str) -> tuple[Fraction, Fraction, Fraction]:
    recall, precision = map(Fraction, figures.split())
    return _with_f1(recall, precision)


# --- published figures ---


@pytest.mark.parametrize(
    ("case", "metric"), [(case, metric) for case, content in CASES.items() for metric in content.figures]
)
def test_published_case(case: str, metric: str) -> None:
    key, response, figures, _ = CASES[case]
    assert _figures(_scores((key, response)))[metric] == pytest.approx(_read(figures[metric]), rel=0, abs=1e-12)


@pytest.mark.parametrize("case", [case for case, content in CASES.items() if content.blanc])
def test_published_blanc(case: str) -> None:
    kinds = [_read(kind) for kind in CASES[case].blanc or () if kind is not None]
    mean = [sum(figures) / len(kinds) for figures in zip(*kinds, strict=True)]
    assert astuple(_scores((CASES[case].key, CASES[case].response)).blanc) == pytest.approx(mean, rel=0, abs=1e-12)


@pytest.mark.parametrize("case", BLANC_DECIMALS)
def test_published_decimals_of_blanc(case: str) -> None:
    found = astuple(_scores((CASES[case].key, CASES[case].response)).blanc)
    assert tuple(round(figure, 5) for figure in found) == BLANC_DECIMALS[case]


@pytest.mark.parametrize("case", CEAF_DECIMALS)
def test_published_decimals_of_ceaf(case: str) -> None:
    scores = _scores((CASES[case].key, CASES[case].response))
    found = [tuple(round(figure, 5) for figure in astuple(ratio)) for ratio in (scores.ceaf_m, scores.ceaf_e)]
    assert tuple(found) == CEAF_DECIMALS[case]


@pytest.mark.parametrize(
    ("metric", "recall", "precision"),
    [
        ("mentions", Fraction(6, 7), Fraction(6, 8)),
        ("muc", Fraction(2, 5), Fraction(2, 5)),
        ("b_cubed", Fraction(35, 12) / 7, Fraction(4, 8)),
        ("ceaf_m", Fraction(4, 7), Fraction(4, 8)),
        ("ceaf_e", Fraction(13, 10) / 2, Fraction(13, 10) / 3),
        # by hand, from the definition of LEA: (3/3 + 4/6) / 7 and (2 + 0 + 4/6) / 8
        ("lea", Fraction(5, 21), Fraction(1, 3)),
    ],
)
def test_the_papers_example(metric: str, recall: Fraction, precision: Fraction) -> None:
    found = _figures(_scores(EXAMPLE))[metric]
    assert found == pytest.approx(_with_f1(recall, precision), rel=0, abs=1e-12)


def test_the_papers_example_by_blanc() -> None:
    coreferent = _with_f1(Fraction(2, 9), Fraction(2, 8))
    other = _with_f1(Fraction(8, 12), Fraction(8, 20))
    mean = [(c + n) / 2 for c, n in zip(coreferent, other, strict=True)]
    assert astuple(_scores(EXAMPLE).blanc) == pytest.approx(mean, rel=0, abs=1e-12)


def test_the_papers_example_to_the_printed_digits() -> None:
    """Two errata: the paper has F1 0.46 for B-cubed and 0.36 for BLANC, from figures rounded before they were combined.

    From the exact ones they are 0.4545 and 0.3676; LoicGrobol/scorch's tests say the same.
    """
    scores = _scores(EXAMPLE)
    f1 = {name: round(getattr(scores, name).f1, 2) for name in NAMES}
    assert f1 == {
        "mentions": 0.8,
        "muc": 0.40,
        "b_cubed": 0.45,
        "ceaf_m": 0.53,
        "ceaf_e": 0.52,
        "blanc": 0.37,
        "lea": 0.28,
    }
    assert round(scores.b_cubed.recall, 2) == 0.42
    assert scores.conll == pytest.approx((Fraction(2, 5) + Fraction(5, 11) + Fraction(13, 25)) / 3)


# --- the naive twin ---

MENTIONS = "abcdefgh"


@st.composite
def partitions(draw: st.DrawFn, mentions: str = MENTIONS) -> list[frozenset[str]]:
    """Some of the mentions, in at most five clusters."""
    numbers = draw(st.lists(st.integers(-1, 4), min_size=len(mentions), max_size=len(mentions)))
    clusters = [frozenset(m for m, n in zip(mentions, numbers, strict=True) if n == number) for number in range(5)]
    return [cluster for cluster in clusters if cluster]


DOCUMENTS = st.lists(st.tuples(partitions(), partitions()), min_size=1, max_size=3)


@given(DOCUMENTS)
def test_the_naive_twin_agrees(documents: list[tuple[Partition, Partition]]) -> None:
    found = _figures(evaluate_coreference(documents))
    for name, figures in score(documents).items():
        assert found[name] == pytest.approx(figures, rel=0, abs=1e-12), name


@given(DOCUMENTS)
def test_without_singletons_the_naive_twin_agrees_on_what_is_left(
    documents: list[tuple[Partition, Partition]],
) -> None:
    left = [tuple([cluster for cluster in side if len(cluster) > 1] for side in pair) for pair in documents]
    found = _figures(evaluate_coreference(documents, singletons=False))
    for name, figures in score(left).items():  # type: ignore[arg-type]
        assert found[name] == pytest.approx(figures, rel=0, abs=1e-12), name


@pytest.mark.parametrize("seed", range(4))
def test_large_alignments_are_best(seed: int) -> None:
    """A matrix of all pairs of clusters, compared as sets, has the same optimum as the reduced one."""
    rng = random.Random(seed)
    key = _random_partition(rng, mentions=400, clusters=150)
    response = [set(cluster) for cluster in key]
    for _ in range(120):  # move a mention, so that many clusters stay right and the others make chains
        source, target = rng.sample(response, 2)
        if source:
            target.add(source.pop())
    response = [cluster for cluster in response if cluster]
    common = np.array([[len(k & r) for r in response] for k in key])
    sizes = np.array([[len(k) + len(r) for r in response] for k in key])
    scores = evaluate_coreference([(key, response)])
    for ratio, similarity, wholes in (
        (scores.ceaf_m, common, (400, 400)),
        (scores.ceaf_e, 2 * common / sizes, (len(key), len(response))),
    ):
        best = similarity[linear_sum_assignment(similarity, maximize=True)].sum()
        assert (ratio.recall, ratio.precision) == pytest.approx((best / wholes[0], best / wholes[1]), rel=1e-12)


def _random_partition(rng: random.Random, mentions: int, clusters: int) -> list[set[int]]:
    parts: list[set[int]] = [set() for _ in range(clusters)]
    for mention in range(mentions):
        rng.choice(parts).add(mention)
    return [part for part in parts if part]


# --- properties ---


@given(partitions())
def test_a_perfect_response_has_ones(partition: Partition) -> None:
    found = _figures(evaluate_coreference([(partition, partition)]))
    mentions = sum(map(len, partition))
    for name in NAMES:
        defined = {"muc": mentions > len(partition), "blanc": mentions > 1}.get(name, mentions > 0)
        assert found[name] == ((1.0, 1.0, 1.0) if defined else (0.0, 0.0, 0.0)), name


@given(partitions(), partitions())
def test_exchanging_the_sides_exchanges_recall_and_precision(key: Partition, response: Partition) -> None:
    forth, back = (_figures(evaluate_coreference([pair])) for pair in ((key, response), (response, key)))
    for name in NAMES:
        if name == "blanc" and _kinds(key) != _kinds(response):
            continue  # the key alone says which links count
        recall, precision, f1 = back[name]
        assert forth[name] == pytest.approx((precision, recall, f1), rel=1e-12), name


def _kinds(partition: Partition) -> tuple[bool, bool]:
    """Are there pairs of mentions in one cluster, and in two?"""
    return any(len(cluster) > 1 for cluster in partition), len(partition) > 1


@given(partitions(), partitions(), st.randoms(use_true_random=False))
def test_order_and_names_do_not_matter(key: Partition, response: Partition, rng: random.Random) -> None:
    names = dict(zip(MENTIONS, rng.sample(range(100), len(MENTIONS)), strict=True))

    def disguised(side: Partition) -> list[list[tuple[int, str]]]:
        clusters = [
            [(names[mention], "x") for mention in rng.sample(sorted(cluster), len(cluster))] for cluster in side
        ]
        return rng.sample(clusters, len(clusters))

    plain = _figures(evaluate_coreference([(key, response)]))
    other = _figures(evaluate_coreference([(disguised(key), disguised(response))]))
    for name in NAMES:
        # two best alignments of CEAF-e have equal sums, but not of equal terms
        assert other[name] == (pytest.approx(plain[name], rel=1e-12) if name == "ceaf_e" else plain[name]), name


@given(DOCUMENTS)
def test_documents_are_scored_as_one_of_separate_mentions(documents: list[tuple[Partition, Partition]]) -> None:
    """But for BLANC, which would see more pairs of mentions that are not coreferent."""
    union = [
        [{(number, m) for m in cluster} for number, pair in enumerate(documents) for cluster in pair[side]]
        for side in (0, 1)
    ]
    apart = evaluate_coreference(documents)
    together = _figures(evaluate_coreference([(union[0], union[1])]))
    assert apart.documents == len(documents)
    for name in set(NAMES) - {"blanc"}:
        assert _figures(apart)[name] == pytest.approx(together[name], rel=1e-12), name


def test_blanc_sums_the_links_of_documents_before_it_asks_what_the_key_has() -> None:
    scores = _scores(("abc", "ab c"), ("d e", "d e"))  # the keys have 3 coreferent pairs, and 1 other
    coreferent, other = _with_f1(Fraction(1, 3), Fraction(1)), _with_f1(Fraction(1), Fraction(1, 3))
    mean = [(c + n) / 2 for c, n in zip(coreferent, other, strict=True)]
    assert astuple(scores.blanc) == pytest.approx(mean, rel=0, abs=1e-12)


@given(DOCUMENTS)
def test_figures_are_fractions_and_conll_is_the_mean_of_three(documents: list[tuple[Partition, Partition]]) -> None:
    scores = evaluate_coreference(documents)
    figures = _figures(scores)
    assert all(0 <= figure <= 1 for ratio in figures.values() for figure in ratio)
    assert scores.conll == pytest.approx(sum(figures[name][2] for name in ("muc", "b_cubed", "ceaf_e")) / 3)


# --- degenerate inputs ---


@pytest.mark.parametrize("documents", [[], [("", "")], [("", ""), ("", "")], [("ab c", "")], [("", "ab c")]])
def test_nothing_on_a_side_is_zero(documents: list[tuple[str, str]]) -> None:
    scores = _scores(*documents)
    assert scores.documents == len(documents)
    assert set(_figures(scores).values()) == {(0.0, 0.0, 0.0)}
    assert scores.conll == 0


def test_an_empty_document_changes_nothing_but_their_number() -> None:
    with_empty = _scores(EXAMPLE, ("", ""))
    assert _figures(with_empty) == _figures(_scores(EXAMPLE))
    assert with_empty.documents == 2


def test_a_document_without_response_lowers_recall_alone() -> None:
    scores = _scores(("ab cd", "ab cd"), ("ef gh", ""))
    assert {figures[:2] for figures in _figures(scores).values()} == {(0.5, 1.0)}


def test_one_mention_that_is_found() -> None:
    figures = _figures(_scores(("a", "a")))
    assert figures.pop("muc") == figures.pop("blanc") == (0.0, 0.0, 0.0)
    assert set(figures.values()) == {(1.0, 1.0, 1.0)}


def test_one_mention_that_is_missed() -> None:
    assert set(_figures(_scores(("a", "b"))).values()) == {(0.0, 0.0, 0.0)}


def test_clusters_of_one_on_both_sides() -> None:
    scores = _scores(("a b c", "a b c"))
    figures = _figures(scores)
    assert figures.pop("muc") == (0.0, 0.0, 0.0)
    assert set(figures.values()) == {(1.0, 1.0, 1.0)}
    assert scores.conll == pytest.approx(2 / 3)


def test_clusters_of_one_are_left_out_on_both_sides() -> None:
    assert _scores(("ab c d", "ab d x"), singletons=False) == _scores(("ab", "ab"))
    assert set(_figures(_scores(("a b", "a b"), singletons=False)).values()) == {(0.0, 0.0, 0.0)}


def test_empty_clusters_count_for_nothing() -> None:
    assert evaluate_coreference([(["ab", "", "c"], ["", "abc"])]) == _scores(("ab c", "abc"))


def test_pairs_and_clusters_may_be_iterators() -> None:
    pairs = ((iter(key.split()), (set(cluster) for cluster in response.split())) for key, response in [EXAMPLE])
    assert evaluate_coreference(pairs) == _scores(EXAMPLE)


# --- refusals ---


@pytest.mark.parametrize("case", REPEATED)
def test_a_repeated_mention_is_refused(case: str) -> None:
    where = "twice in a cluster" if case == "A-7" else "in two clusters"
    with pytest.raises(EvaluationError, match=rf"^document 2, response: the mention 'b' is {where}"):
        _scores(EXAMPLE, (CASES[case].key, REPEATED[case]))


def test_a_repeated_mention_of_the_key_is_refused_by_its_name() -> None:
    mention = (3, (1, 2))
    with pytest.raises(EvaluationError, match=r"^document 1, key: the mention \(3, \(1, 2\)\) is in two clusters"):
        evaluate_coreference([([{mention, (0, (1,))}, {mention}], [])])


def test_a_repeated_mention_is_refused_in_a_cluster_of_one_that_would_be_left_out() -> None:
    with pytest.raises(EvaluationError, match=r"^document 1, key: the mention 'a' is in two clusters"):
        _scores(("ab a", "ab"), singletons=False)


# --- what is given back ---


@given(partitions(), partitions())
def test_the_dictionary_is_plain(key: Partition, response: Partition) -> None:
    scores = evaluate_coreference([(key, response)])
    content = json.loads(json.dumps(scores.to_dict(), allow_nan=False))
    assert list(content) == ["documents", "conll", *NAMES]
    assert content.pop("documents") == 1
    assert content.pop("conll") == scores.conll
    assert {name: tuple(ratio.values()) for name, ratio in content.items()} == _figures(scores)
    assert {tuple(ratio) for ratio in content.values()} == {("recall", "precision", "f1")}


def test_scores_of_documents() -> None:
    gold = head_match_documents(77, 4)
    assert score_documents(gold, gold).conll == 1.0
    apart = [text.with_clusters(np.arange(len(text.mentions))) for text in gold]
    assert score_documents(gold, apart).muc.recall == 0.0
    kept = score_documents(apart, apart, singletons=False)
    assert kept.conll == 0.0
    with pytest.raises(EvaluationError, match="document 2 is only in the gold file"):
        score_documents(gold, gold[:1])
    with pytest.raises(EvaluationError, match="document 2 is only in the predicted file"):
        score_documents(gold[:1], gold)
    with pytest.raises(EvaluationError, match=r"document 1 \(toy\) has other words in the predicted file"):
        score_documents(gold, reversed(gold))
