"""How certain a score is: bootstrap intervals over sentences, and two paired tests for the difference of two parsers.

- **Bootstrap interval** (Efron 1979, percentile): draw as many sentences as there are, with replacement, and compute
  the score again, `samples` times; the interval contains the middle `level` of the results.
- **Sign test** of koo2007 (footnote 7): compare the number of right heads in each sentence. Under the null hypothesis,
  a sentence won by either parser is a coin toss; ties are dropped. The p-value is two-sided and exact,
  `2 * P(X <= min(wins, losses))` for X binomial(wins + losses, 1/2), at most 1.
- **Paired bootstrap** (Efron and Tibshirani 1993; Berg-Kirkpatrick et al. 2012): the share of resamples whose
  difference is at least as far from the observed difference as that is from 0, two-sided. One is added to numerator and
  denominator, so that the p-value is never 0. Integers are compared, so that no rounding decides a tie.

Sentences with the same counts are exchangeable, so a resample of S sentences is one multinomial draw over the K
distinct rows of counts (K is a few hundred for a test set of thousands): O(samples * K) time, in blocks of bounded
memory. Sentences without a scored word are left out: they carry no evidence, and without them no resample is empty.

Arrays are (S,) integers, one entry per sentence, as in `Scores.per_sentence`; scores are percentages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from headway.arrays import Floats, Ints
from headway.errors import EvaluationError
from headway.evaluation.attachment import Scores

_BLOCK = 1 << 20  # cells in one block of resamples: 8 MB


@dataclass(frozen=True, slots=True)
class Interval:
    """A score with its confidence interval, in percent; `level` is the share of resamples inside."""

    score: float
    low: float
    high: float
    level: float


@dataclass(frozen=True, slots=True)
class SignTest:
    """In how many sentences A has more right heads than B (`wins`), fewer (`losses`), or as many (`ties`)."""

    wins: int
    losses: int
    ties: int
    p_value: float


@dataclass(frozen=True, slots=True)
class PairedBootstrap:
    """A's score minus B's in percentage points, with its confidence interval and two-sided p-value."""

    difference: float
    low: float
    high: float
    level: float
    p_value: float


def bootstrap_interval(
    right: ArrayLike,
    words: ArrayLike,
    *,
    level: float = 0.95,
    samples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> Interval:
    """The percentile interval of 100 * sum(right) / sum(words), resampling sentences.

    >>> bootstrap_interval([9, 4, 10], [10, 5, 12], rng=1, samples=1000)
    Interval(score=85.18518518518519, low=80.0, high=90.0, level=0.95)
    """
    counts, copies = _distinct_sentences(_checked(right=right, words=words))
    resampled = np.concatenate([block[:, 0] / block[:, 1] for block in _resamples(counts, copies, samples, rng)])
    low, high = _middle(100 * resampled, level)
    total = copies @ counts
    return Interval(100 * int(total[0]) / int(total[1]), low, high, level)


def bootstrap_intervals(
    scores: Scores, *, level: float = 0.95, samples: int = 10_000, rng: np.random.Generator | int = 0
) -> dict[str, Interval]:
    """An interval for each attachment score that has words to score: uas, las, uas_no_punct, las_no_punct."""
    rng = np.random.default_rng(rng)
    intervals = {}
    for suffix, tally in (("", scores.per_sentence), ("_no_punct", scores.per_sentence_no_punct)):
        if not tally.words.any():
            continue
        for name, right in (("uas", tally.heads), ("las", tally.arcs)):
            intervals[name + suffix] = bootstrap_interval(right, tally.words, level=level, samples=samples, rng=rng)
    return intervals


def sign_test(right_a: ArrayLike, right_b: ArrayLike) -> SignTest:
    """The sign test of koo2007 on the numbers of right heads per sentence of parsers A and B.

    >>> sign_test([5, 7, 3, 9, 4, 4], [4, 6, 3, 8, 3, 3])
    SignTest(wins=5, losses=0, ties=1, p_value=0.0625)
    """
    a, b = _checked(right_a=right_a, right_b=right_b).T
    wins, losses, ties = int((a > b).sum()), int((a < b).sum()), int((a == b).sum())
    return SignTest(wins, losses, ties, _two_sided_coin(wins, losses))


def paired_bootstrap(
    right_a: ArrayLike,
    right_b: ArrayLike,
    words: ArrayLike,
    *,
    level: float = 0.95,
    samples: int = 10_000,
    rng: np.random.Generator | int = 0,
) -> PairedBootstrap:
    """Is the difference of two scores on the same sentences more than the choice of sentences can explain?

    >>> a, b, words = [9, 9, 8, 10], [7, 8, 8, 7], [10, 10, 10, 10]
    >>> result = paired_bootstrap(a, b, words, rng=1, samples=999)
    >>> result.difference, result.low > 0, result.p_value < 0.05
    (15.0, True, True)
    """
    table = _checked(right_a=right_a, right_b=right_b, words=words)
    counts, copies = _distinct_sentences(np.stack([table[:, 0] - table[:, 1], table[:, 2]], axis=1))
    gain, total = (int(value) for value in copies @ counts)
    differences, extreme = [], 0
    for block in _resamples(counts, copies, samples, rng):
        differences.append(block[:, 0] / block[:, 1])
        # |gain*/total* - gain/total| >= |gain/total|, both sides multiplied by total* total
        extreme += int((abs(block[:, 0] * total - gain * block[:, 1]) >= abs(gain) * block[:, 1]).sum())
    low, high = _middle(100 * np.concatenate(differences), level)
    return PairedBootstrap(100 * gain / total, low, high, level, (1 + extreme) / (1 + samples))


def _checked(**columns: ArrayLike) -> Ints:
    """The columns side by side, (S, columns): non-negative integers per sentence, no more right than words."""
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    shapes = {name: array.shape for name, array in arrays.items()}
    if len(set(shapes.values())) != 1 or any(len(shape) != 1 for shape in shapes.values()):
        raise EvaluationError(f"expected one count per sentence, in arrays of the same length; the shapes are {shapes}")
    for name, array in arrays.items():
        if array.size and (array.dtype.kind not in "iu" or array.min() < 0):
            raise EvaluationError(f"{name} has other values than counts; expected integers of at least 0")
        if "words" in arrays and (array > arrays["words"]).any():
            sentence = int(np.flatnonzero(array > arrays["words"])[0])
            raise EvaluationError(
                f"{name}[{sentence}] is larger than words[{sentence}]; expected how many of the words are right"
            )
    return np.stack([array.astype(np.int64) for array in arrays.values()], axis=1)


def _distinct_sentences(counts: Ints) -> tuple[Ints, Ints]:
    """The distinct rows of counts, (K, columns), and how often each occurs, (K,); the last column has the words."""
    counts = counts[counts[:, -1] > 0]
    if not len(counts):
        raise EvaluationError("no sentence has a scored word; there is nothing to resample")
    rows, copies = np.unique(counts, axis=0, return_counts=True)
    return rows, copies.astype(np.int64)


def _resamples(counts: Ints, copies: Ints, samples: int, rng: np.random.Generator | int) -> Iterator[Ints]:
    """Sums of the columns over resampled sentences, (at most a block of samples, columns) at a time."""
    if samples < 1:
        raise EvaluationError(f"samples is {samples}; expected at least 1")
    rng = np.random.default_rng(rng)
    sentences = int(copies.sum())
    step = max(1, _BLOCK // len(copies))
    for start in range(0, samples, step):
        size = min(step, samples - start)
        yield rng.multinomial(sentences, copies / sentences, size=size) @ counts


def _middle(values: Floats, level: float) -> tuple[float, float]:
    if not 0 < level < 1:
        raise EvaluationError(f"level is {level}; expected a share between 0 and 1, such as 0.95")
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _two_sided_coin(wins: int, losses: int) -> float:
    """min(1, 2 P(X <= min(wins, losses))) for X binomial(wins + losses, 1/2), to full float accuracy.

    The largest term is an exact integer ratio, rounded once. The others follow from it by their ratios, which decrease,
    so the sum ends when a term no longer changes it: O(sqrt(n)) terms.
    """
    tosses, fewer = wins + losses, min(wins, losses)
    largest: float = math.comb(tosses, fewer) / 2**tosses
    total = term = 1.0
    for k in range(fewer, 0, -1):
        term *= k / (tosses - k + 1)
        if total + term == total:
            break
        total += term
    return min(1.0, 2 * largest * total)
