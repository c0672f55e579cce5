"""Bootstrap and sign test: against enumeration of every resample, exact fractions, and koo2007's own footnote."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import EvaluationError
from headway.evaluation import (
    bootstrap_interval,
    bootstrap_intervals,
    evaluate,
    paired_bootstrap,
    sign_test,
    significance,
)

from .strategies import Tree, tree_pairs

# --- sign test ---


def _coins(wins: int, losses: int) -> tuple[list[int], list[int]]:
    """Sentences won and lost by one head, and two ties."""
    return [5] * wins + [3] * losses + [4, 0], [4] * wins + [4] * losses + [4, 0]


def _exact(wins: int, losses: int) -> Fraction:
    n = wins + losses
    tail, term = 0, 1
    for k in range(min(wins, losses) + 1):
        tail += term
        term = term * (n - k) // (k + 1)  # n choose k + 1
    return min(Fraction(1), Fraction(2 * tail, 2**n))


@given(wins=st.integers(0, 400), losses=st.integers(0, 400))
def test_sign_test_is_exact(wins: int, losses: int) -> None:
    result = sign_test(*_coins(wins, losses))
    assert (result.wins, result.losses, result.ties) == (wins, losses, 2)
    assert result.p_value == pytest.approx(float(_exact(wins, losses)), rel=1e-13)
    assert sign_test(*reversed(_coins(wins, losses))).p_value == result.p_value


def test_sign_test_of_koo2007() -> None:
    """Footnote 7: 448 sentences improved and 343 worse, 500 and 383; "both results are significant with p <= 0.001"."""
    assert sign_test(*_coins(448, 343)).p_value == pytest.approx(float(_exact(448, 343)), rel=1e-13)
    assert 1e-4 < sign_test(*_coins(448, 343)).p_value < 0.001
    assert 1e-5 < sign_test(*_coins(500, 383)).p_value < 0.001


@pytest.mark.parametrize(("wins", "losses"), [(5_000, 4_800), (6_000, 6_000), (0, 3_000), (4_000, 200)])
def test_sign_test_of_thousands_of_sentences(wins: int, losses: int) -> None:
    """Neither overflow nor underflow before the p-value itself is below the smallest float."""
    expected = _exact(wins, losses)
    assert sign_test(*_coins(wins, losses)).p_value == pytest.approx(float(expected), rel=1e-12)


def test_sign_test_counts_sentences_not_heads() -> None:
    assert sign_test([100, 3], [0, 4]).p_value == 1
    assert sign_test([], []).p_value == 1


# --- bootstrap ---

RIGHT, WORDS = np.array([9, 4, 10, 0, 6]), np.array([10, 5, 12, 3, 6])
OTHER = np.array([7, 4, 8, 1, 6])


def _every_resample(*columns: np.ndarray) -> list[list[int]]:  # type: ignore[type-arg]
    """The sums of the columns over each of the S^S equally likely resamples."""
    table = np.stack(columns, axis=1)
    return [table[list(chosen)].sum(axis=0).tolist() for chosen in product(range(len(table)), repeat=len(table))]


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_interval_agrees_with_enumeration(level: float) -> None:
    """3125 resamples enumerated; the drawn quantiles must lie between the exact ones of a little less and more mass.

    With 200,000 draws a quantile's mass is off by 0.005 with a probability far below 1e-4.
    """
    exact = np.sort([100 * right / words for right, words in _every_resample(RIGHT, WORDS)])
    found = bootstrap_interval(RIGHT, WORDS, level=level, samples=200_000, rng=0)
    assert found.score == pytest.approx(100 * 29 / 36)
    assert found.level == level
    for value, mass in ((found.low, (1 - level) / 2), (found.high, (1 + level) / 2)):
        below, above = np.quantile(exact, [mass - 0.005, mass + 0.005])
        assert below <= value <= above
        assert above - below < 1.5  # or the check would say nothing


def test_paired_p_value_agrees_with_enumeration() -> None:
    """The share of resamples at least as far from the observed difference as that is from 0, in exact fractions."""
    observed = Fraction(int((RIGHT - OTHER).sum()), int(WORDS.sum()))
    resamples = [Fraction(a - b, words) for a, b, words in _every_resample(RIGHT, OTHER, WORDS)]
    exact = sum(abs(value - observed) >= abs(observed) for value in resamples) / len(resamples)
    assert 0.05 < exact < 0.5
    samples = 200_000
    found = paired_bootstrap(RIGHT, OTHER, WORDS, samples=samples, rng=0)
    assert found.p_value == pytest.approx(exact, abs=5 * math.sqrt(exact * (1 - exact) / samples))
    assert found.difference == pytest.approx(float(100 * observed))
    low, high = np.quantile([100 * float(value) for value in resamples], [0.025, 0.975])
    assert (found.low, found.high) == (pytest.approx(low, abs=0.5), pytest.approx(high, abs=0.5))
    other_way = paired_bootstrap(OTHER, RIGHT, WORDS, samples=samples, rng=1)
    assert other_way.difference == -found.difference
    assert other_way.p_value == pytest.approx(exact, abs=5 * math.sqrt(exact * (1 - exact) / samples))


def test_ties_of_the_paired_bootstrap_count_as_extreme() -> None:
    """Two sentences, one won by a head: differences of 0, 1, 1, 2 halves; 0 and 2 are as far from 1 as 1 from 0."""
    found = paired_bootstrap([1, 0], [0, 0], [1, 1], samples=100_000, rng=3)
    assert found.p_value == pytest.approx(0.5, abs=0.01)


def test_equal_parsers_and_certain_scores() -> None:
    assert paired_bootstrap(RIGHT, RIGHT, WORDS, samples=99).p_value == 1
    assert paired_bootstrap(WORDS, 0 * WORDS, WORDS, samples=99).p_value == 1 / 100
    certain = bootstrap_interval(WORDS, WORDS, samples=99)
    assert (certain.score, certain.low, certain.high) == (100, 100, 100)


def test_the_spread_is_that_of_the_ratio() -> None:
    """2,000 sentences of 10 words, right with 0.8: the interval is 1.96 standard errors of the mean either way."""
    rng = np.random.default_rng(7)
    right = rng.binomial(10, 0.8, 2000)
    found = bootstrap_interval(right, np.full(2000, 10), samples=20_000, rng=1)
    error = 100 * right.std() / 10 / math.sqrt(2000)
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.03)
    assert (found.low + found.high) / 2 == pytest.approx(found.score, abs=0.05 * error)


def test_seeds_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seed gives the same interval, and so does drawing a few resamples at a time."""
    once = bootstrap_interval(RIGHT, WORDS, samples=1000, rng=4)
    assert bootstrap_interval(RIGHT, WORDS, samples=1000, rng=np.random.default_rng(4)) == once
    assert bootstrap_interval(RIGHT, WORDS, samples=1001, rng=5) != once
    monkeypatch.setattr(significance, "_BLOCK", 17)
    assert bootstrap_interval(RIGHT, WORDS, samples=1000, rng=4) == once
    # sentences without scored words change nothing
    assert bootstrap_interval([*RIGHT, 0, 0], [*WORDS, 0, 0], samples=1000, rng=4) == once


@given(pairs=st.lists(tree_pairs(), min_size=1, max_size=5))
def test_intervals_of_scores_hold_the_scores_range(pairs: list[tuple[Tree, Tree]]) -> None:
    scores = evaluate([gold.sentence() for gold, _ in pairs], [predicted.sentence() for _, predicted in pairs])
    intervals = bootstrap_intervals(scores, samples=200, rng=1)
    names = ["uas", "las"] + ["uas_no_punct", "las_no_punct"] * (scores.scored > 0)
    assert list(intervals) == names
    for name, interval in intervals.items():
        tally = scores.per_sentence_no_punct if name.endswith("no_punct") else scores.per_sentence
        right = tally.heads if name.startswith("uas") else tally.arcs
        shares = 100 * right[tally.words > 0] / tally.words[tally.words > 0]
        assert interval.score == pytest.approx(getattr(scores, name), abs=1e-12)
        assert shares.min() - 1e-9 <= interval.low <= interval.high <= shares.max() + 1e-9


def test_no_interval_where_nothing_is_scored() -> None:
    sentence = Tree(["!"], [0], ["root"]).sentence()
    assert list(bootstrap_intervals(evaluate([sentence], [sentence]), samples=9)) == ["uas", "las"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootstrap_interval([1, 2], [3]), "one count per sentence"),
        (lambda: bootstrap_interval([[1]], [[2]]), "one count per sentence"),
        (lambda: bootstrap_interval([0.5], [2]), "right has other values than counts"),
        (lambda: bootstrap_interval([-1], [2]), "right has other values than counts"),
        (lambda: bootstrap_interval([1, 4], [2, 3]), r"right\[1\] is larger than words\[1\]"),
        (lambda: bootstrap_interval([0], [0]), "nothing to resample"),
        (lambda: bootstrap_interval([], []), "nothing to resample"),
        (lambda: bootstrap_interval([1], [2], samples=0), "samples is 0"),
        (lambda: bootstrap_interval([1], [2], level=95), "level is 95"),
        (lambda: paired_bootstrap([1], [3], [2]), r"right_b\[0\] is larger"),
        (lambda: sign_test([1, 2], [1]), "one count per sentence"),
    ],
)
def test_errors(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(EvaluationError, match=message):
        call()
