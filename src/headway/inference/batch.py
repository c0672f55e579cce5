"""Scores as every kernel takes them: validated, padded, C-contiguous float64; and work spread over the sentences.

The conventions of `headway.inference` are enforced here and nowhere else. One matrix is a batch of one, with
`single` remembering to take the batch axis off the results again. Sentences with scores beyond `WIDE` are marked: their
sums would round away what tells trees apart, so `first_order` hands them to `any_scale`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headway.arrays import Bools, Floats, Ints
from headway.errors import ArgumentError, DtypeError, HeadwayError, LengthsError, ScoresError, ShapeError
from headway.inference.jit import kernel
from headway.parallel import Executor, run_slices

# Beyond this a sum over a long sentence could overflow, and an overflow would look like a forbidden arc.
LARGEST_SCORE = 1e300
# Beyond this, sums over trees keep sums of scores exactly. Below, rounding costs a probability some 1e-12 of its value.
WIDE = 2.0**12

# A worker must have this much arithmetic to be worth starting (about 0.2 ms of work).
_WORK_PER_WORKER = 500_000


@dataclass(frozen=True)
class Batch:
    """`scores` (B, N+1, N+1) and `lengths` (B,), checked; `single` when the user gave one matrix.

    `wide` (B,) marks the sentences with a finite score beyond `WIDE`, None if there are none. `residual`, shaped like
    the scores, is added to them where their sum would not fit a float64.
    """

    scores: Floats
    lengths: Ints
    single: bool
    wide: Bools | None = None
    residual: Floats | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    def sentences(self) -> Iterator[Batch]:
        """Each sentence on its own, without its padding."""
        for b, n in enumerate(self.lengths):
            own = np.s_[b : b + 1, : n + 1, : n + 1]
            wide = self.wide[b : b + 1] if self.wide is not None and self.wide[b] else None
            residual = None if self.residual is None else self.residual[own]
            yield Batch(np.ascontiguousarray(self.scores[own]), self.lengths[b : b + 1], True, wide, residual)

    def variants(self, scores: Floats) -> Batch:
        """One sentence with other scores (V, n+1, n+1), from which arcs have been taken."""
        wide = None if self.wide is None else np.ones(len(scores), np.bool_)
        residual = None if self.residual is None else np.repeat(self.residual, len(scores), axis=0)
        return Batch(scores, np.repeat(self.lengths, len(scores)), False, wide, residual)

    def ordinary(self) -> Batch:
        """The same batch with the wide sentences emptied, so that kernels pass over them."""
        if self.wide is None:
            return self
        return Batch(self.scores, np.where(self.wide, 0, self.lengths), self.single)

    def beyond(self, size: float) -> Batch:
        """The same batch, of whose wide sentences only those with a finite score beyond `size` are marked."""
        if self.wide is None:
            return self
        large = np.where(allowed(self), np.abs(self.scores), 0.0).max(axis=(1, 2)) > size
        return replace(self, wide=large if large.any() else None)

    def only_wide(self) -> Batch:
        """The wide sentences; there must be some."""
        assert self.wide is not None
        residual = None if self.residual is None else self.residual[self.wide]
        return Batch(self.scores[self.wide], self.lengths[self.wide], False, self.wide[self.wide], residual)

    def same_scores(self, other: Batch) -> bool:
        """Are both batches' scores equal, cell by cell?"""
        return np.array_equal(self.scores, other.scores) and np.array_equal(self.residuals(), other.residuals())

    def residuals(self) -> Floats:
        """`residual`, zeros if there is none."""
        return np.zeros(self.scores.shape) if self.residual is None else self.residual

    def place(self, sentence: int) -> int | None:
        """How errors name a sentence: not at all when there is only the one matrix."""
        return None if self.single else sentence

    def with_scores(self, scores: Floats) -> Batch:
        """The same sentences with other, already valid scores, none of them wide."""
        return Batch(scores, self.lengths, self.single)

    def unbatch(self, result: NDArray[Any]) -> Any:
        """Take the batch axis off a result when there was none in the input."""
        if not self.single:
            return result
        return result[0].item() if result.ndim == 1 else result[0]


def as_batch(scores: ArrayLike, lengths: ArrayLike | None = None) -> Batch:
    """Check scores (n+1, n+1) or (B, N+1, N+1) and lengths; raise an error that names the cell or sentence."""
    array = as_scores(scores)
    single = array.ndim == 2
    if single and lengths is not None:
        raise LengthsError("lengths belong to a padded batch; one matrix is its own length")
    if single:
        array = array[None]
    if array.ndim != 3 or array.shape[1] != array.shape[2] or array.shape[1] == 0:
        raise ShapeError(
            f"scores have shape {np.shape(scores)}; expected (n+1, n+1) for one sentence or "
            "(B, N+1, N+1) for a padded batch, root included"
        )
    batch = Batch(array, _as_lengths(lengths, array), single)
    wide = np.zeros(len(batch), np.bool_)
    b, h, m = _first_bad_cell(batch.scores, batch.lengths, WIDE, LARGEST_SCORE, wide)
    if b >= 0:
        raise _bad_score(batch, b, h, m)
    return replace(batch, wide=wide) if wide.any() else batch


def one_sentence(scores: Floats, b: int, n: int) -> Batch:
    """Sentence b, of n words, of a batch's scores, on its own and without padding."""
    return as_batch(scores[b, : n + 1, : n + 1].copy())


def as_scores(values: ArrayLike, name: str = "scores") -> Floats:
    """Scores as floats; a masked cell of a `numpy.ma` array is forbidden, -inf."""
    if isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "fiu":
        return np.asarray(np.ma.filled(values.astype(np.float64), -np.inf), order="C")
    return as_floats(values, name)


def as_floats(values: ArrayLike, name: str) -> Floats:
    """A C-contiguous float64 array, from any array of real numbers."""
    array = as_array(values, name, ShapeError)
    if array.dtype.kind not in "fiu":
        raise DtypeError(f"{name} have dtype {array.dtype}; expected real numbers (float64)")
    return np.asarray(array, dtype=np.float64, order="C")


def as_array(values: ArrayLike, name: str, error: type[HeadwayError]) -> NDArray[Any]:
    """An array as it is, or made of lists; ragged lists and masked values are an error of that type."""
    rows = values if isinstance(values, list | tuple) else [values]
    if any(isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row) for row in rows):
        raise error(f"{name} have masked values, which stand for no number; fill them in (numpy.ma.filled)")
    try:
        return np.asarray(values)
    except ValueError:
        raise error(f"{name} have rows of different lengths; pad them to one length") from None


def as_count(value: int, name: str, least: int = 1) -> int:
    """A whole number of at least so many."""
    if not hasattr(value, "__index__") or operator.index(value) < least:
        raise ArgumentError(f"{name} is {value!r}; expected a whole number, {least} or more")
    return operator.index(value)


def as_function(values: ArrayLike, batch: Batch, name: str) -> Floats:
    """An arc-factored function shaped like the scores; set to zero where the arc is forbidden, padding or no arc."""
    array = as_floats(values, name)
    array = array[None] if batch.single and array.ndim == 2 else array
    if array.shape != batch.scores.shape:
        expected = batch.scores.shape[1:] if batch.single else batch.scores.shape
        raise ShapeError(f"{name} has shape {np.shape(values)}; expected that of scores, {expected}")
    function = np.zeros(array.shape)
    b, h, m = _copy_function(array, batch.scores, batch.lengths, LARGEST_SCORE, function)
    if b >= 0:
        where = "" if batch.single else f"sentence {b}: "
        raise ScoresError(f"{where}{name}[{h}, {m}] is {array[b, h, m]}; expected at most {LARGEST_SCORE:g} in size")
    return function


def allowed(batch: Batch) -> NDArray[np.bool_]:
    """Which cells are arcs a tree may have: no padding, no diagonal, no column 0, not forbidden."""
    nodes = np.arange(batch.scores.shape[1])
    inside = nodes <= batch.lengths[:, None]
    arcs = inside[:, :, None] & inside[:, None, :] & (nodes[:, None] != nodes) & (nodes > 0)
    result: NDArray[np.bool_] = arcs & (batch.scores > -np.inf)
    return result


def decoded(
    batch: Batch, decode: Callable[..., None], *, single_root: bool, work: float, executor: Executor
) -> tuple[Ints, Ints]:
    """Best heads (B, N+1) and, per sentence, whether a tree exists (1) or not (0).

    `decode(scores, lengths, single_root, start, stop, heads, found)` fills in those of sentences start..stop.
    """
    heads = np.full(batch.scores.shape[:2], -1, dtype=np.int64)
    found = np.ones(len(batch), dtype=np.int64)

    def run(start: int, stop: int) -> None:
        decode(batch.scores, batch.lengths, single_root, start, stop, heads, found)

    over_sentences(run, batch, work=work, executor=executor)
    return heads, found


def over_sentences(
    run: Callable[[int, int], None], batch: Sized, work: float, executor: Executor, grain: int = 1
) -> None:
    """Call `run(start, stop)` on slices that cover the batch, on as many workers as `work` operations are worth."""
    run_slices(run, len(batch), executor, grain=grain, most=int(work / _WORK_PER_WORKER) + 1)


def groups_by_length(lengths: Ints, cells: float) -> Iterator[Ints]:
    """Every sentence's position once, shortest first, in groups whose padded matrices have about `cells` cells at most.

    >>> [group.tolist() for group in groups_by_length(np.array([3, 1, 1, 9]), 40)]
    [[1, 2], [0], [3]]
    """
    order = np.argsort(lengths, kind="stable")
    start = 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and (stop + 1 - start) * (int(lengths[order[stop]]) + 1) ** 2 <= cells:
            stop += 1
        yield order[start:stop]
        start = stop


def _as_lengths(lengths: ArrayLike | None, scores: Floats) -> Ints:
    size, longest = scores.shape[0], scores.shape[1] - 1
    if lengths is None:
        return np.full(size, longest, dtype=np.int64)
    array = as_array(lengths, "lengths", LengthsError)
    if array.dtype.kind not in "iu" and array.size > 0:
        raise LengthsError(f"lengths have dtype {array.dtype}; expected integers")
    if array.shape != (size,):
        raise LengthsError(f"lengths have shape {array.shape}; expected ({size},), one per sentence")
    outside = np.flatnonzero((array < 0) | (array > longest))
    if outside.size:
        b = int(outside[0])
        raise LengthsError(f"sentence {b} has length {array[b]}; expected 0 to {longest}, the words the padding holds")
    return array.astype(np.int64)


def _bad_score(batch: Batch, b: int, h: int, m: int) -> ScoresError:
    where = "" if batch.single else f"sentence {b}: "
    value = batch.scores[b, h, m]
    remedy = (
        "use -inf to forbid an arc" if np.isfinite(value) else "scores are finite log-weights, or -inf to forbid an arc"
    )
    return ScoresError(f"{where}scores[{h}, {m}] is {value}; {remedy}")


@kernel
def _first_bad_cell(
    scores: Floats, lengths: Ints, ordinary: float, largest: float, wide: Bools
) -> tuple[int, int, int]:
    """The first nan, +inf or absurdly large score among the arcs of the batch, (-1, -1, -1) if there is none; marks the
    sentences that have scores beyond the ordinary."""
    for b in range(scores.shape[0]):
        n = lengths[b]
        for h in range(n + 1):
            unusual = 0
            for m in range(1, n + 1):
                x = scores[b, h, m]
                usual = (x <= ordinary) & ((x >= -ordinary) | (x == -np.inf))
                unusual += (not usual) & (h != m)
            if unusual:
                wide[b] = True
                for m in range(1, n + 1):
                    x = scores[b, h, m]
                    fine = (x <= largest) & ((x >= -largest) | (x == -np.inf))
                    if h != m and not fine:
                        return b, h, m
    return -1, -1, -1


@kernel
def _copy_function(
    values: Floats, scores: Floats, lengths: Ints, largest: float, function: Floats
) -> tuple[int, int, int]:
    """function = values on arcs a tree may have; the first of them too large or nan, (-1, -1, -1) if there is none."""
    for b in range(scores.shape[0]):
        n = lengths[b]
        for h in range(n + 1):
            bad = 0
            for m in range(1, n + 1):
                arc = (h != m) & (scores[b, h, m] > -np.inf)
                function[b, h, m] = values[b, h, m] if arc else 0.0
                bad += not (np.abs(function[b, h, m]) <= largest)
            if bad:
                for m in range(1, n + 1):
                    if not (np.abs(function[b, h, m]) <= largest):
                        return b, h, m
    return -1, -1, -1
