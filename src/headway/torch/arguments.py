"""What users hand in: tensors checked and brought to one form, with the errors of `headway.inference`.

Shapes and dtypes are always checked. Checks of values make a GPU wait, so they are functions of their own, named
`require_...`, which a distribution leaves out if told to (`validate_args=False`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from headway.arrays import TreeClass
from headway.errors import ArgumentError, DtypeError, HeadsError, LengthsError, ScoresError, ShapeError
from headway.no_tree import no_tree_error
from headway.torch.arcs import cells

_HALVES = (torch.bfloat16, torch.float16)
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
# A sum over a sentence must not overflow, since an overflow would look like a forbidden arc.
_ROOM_FOR_SUMS = 1e8
# Below its negative, the CUDA kernels take an arc for forbidden (LARGEST_LOG in cuda/numbers.cuh).
_LARGEST_ON_CUDA = 5e11


def as_scores(scores: Tensor, name: str = "scores") -> Tensor:
    """float32 or float64; bfloat16 and float16 are raised to float32."""
    if not isinstance(scores, Tensor):
        raise ArgumentError(f"{name} are a {type(scores).__name__}; expected a tensor, such as torch.as_tensor makes")
    if scores.dtype in _HALVES:
        return scores.to(torch.float32)
    if scores.dtype not in (torch.float32, torch.float64):
        raise DtypeError(f"{name} have dtype {scores.dtype}; expected float32, float64, bfloat16 or float16")
    return scores


def as_arc_scores(scores: Tensor) -> Tensor:
    """Scores whose last two dimensions are [head, modifier]."""
    scores = as_scores(scores)
    if scores.ndim < 2 or scores.shape[-1] != scores.shape[-2] or scores.shape[-1] == 0:
        raise ShapeError(
            f"scores have shape {tuple(scores.shape)}; expected (n+1, n+1) for one sentence or "
            "(..., N+1, N+1) for a padded batch, root included"
        )
    return scores


def as_lengths(lengths: Tensor | Sequence[int] | None, batch_shape: torch.Size, nodes: int, like: Tensor) -> Tensor:
    """Lengths of the shape of the batch, int64, on the scores' device."""
    if lengths is None:
        return torch.full(batch_shape, nodes - 1, dtype=torch.int64, device=like.device)
    given = torch.as_tensor(lengths, device=like.device)
    if given.dtype not in _INTEGERS and given.numel() > 0:
        raise LengthsError(f"lengths have dtype {given.dtype}; expected integers")
    if given.shape != batch_shape:
        raise LengthsError(f"lengths have shape {tuple(given.shape)}; expected {tuple(batch_shape)}, one per sentence")
    return given.to(torch.int64)


def as_function(f: Tensor, shape: torch.Size, like: Tensor, name: str) -> Tensor:
    """An arc-factored function, of the scores' shape and dtype."""
    values = as_scores(f, name)
    try:
        expanded = values.expand(shape)
    except RuntimeError:
        raise ShapeError(f"{name} has shape {tuple(values.shape)}; expected that of scores, {tuple(shape)}") from None
    return expanded.to(dtype=like.dtype, device=like.device)


def as_heads(heads: Tensor | Sequence[int], batch_shape: torch.Size, nodes: int, device: torch.device) -> Tensor:
    """Heads (*sample_shape, *batch_shape, N+1), int64, on the scores' device."""
    given = torch.as_tensor(heads, device=device)
    if given.dtype not in _INTEGERS:
        raise HeadsError(f"heads have dtype {given.dtype}; expected integers")
    if given.shape == (*batch_shape, nodes):  # as nearly always; broadcasting takes 30 microseconds
        return given.to(torch.int64)
    try:
        shape = torch.broadcast_shapes(given.shape[:-1], batch_shape)
    except RuntimeError:
        shape = None
    if (
        given.ndim == 0
        or given.shape[-1] != nodes
        or shape is None
        or shape[len(shape) - len(batch_shape) :] != batch_shape
    ):
        raise HeadsError(
            f"heads have shape {tuple(given.shape)}; expected {(*batch_shape, nodes)}, after any dimensions of samples"
        )
    return given.to(torch.int64).expand(*shape, nodes)


def require_batch(scores: Tensor, lengths: Tensor) -> None:
    """Every length is 0 .. N, and every arc's score a number that can be summed, or -inf. A GPU is waited for once, if
    all numbers are usual ones."""
    if lengths.numel() == 0:
        return
    nodes = scores.shape[-1]
    largest = _LARGEST_ON_CUDA if scores.is_cuda else torch.finfo(scores.dtype).max / _ROOM_FOR_SUMS
    shortest, longest = lengths.aminmax()
    low, high = scores.detach().aminmax()
    if bool((shortest >= 0) & (longest < nodes) & (low >= -largest) & (high <= largest)):
        return  # whatever is no arc is fine as well
    _require_lengths(lengths, nodes)
    _require_scores(scores, lengths, largest)


def _require_lengths(lengths: Tensor, nodes: int) -> None:
    flat = lengths.flatten()
    outside = (flat < 0) | (flat >= nodes)
    if bool(outside.any()):
        b = int(outside.to(torch.int64).argmax())
        raise LengthsError(
            f"{_where(lengths, b)}length is {int(flat[b])}; expected 0 to {nodes - 1}, the words the padding holds"
        )


def _require_scores(scores: Tensor, lengths: Tensor, largest: float) -> None:
    nodes = scores.shape[-1]
    values = scores.detach().reshape(-1, nodes, nodes)
    good = (values <= largest) & ((values >= -largest) | (values == -torch.inf))
    bad = cells(lengths.flatten(), nodes) & ~good
    if bool(bad.any()):
        b, h, m = (int(i) for i in bad.nonzero()[0])
        value = float(values[b, h, m])
        remedy = (
            "use -inf to forbid an arc"
            if math.isfinite(value)
            else "scores are finite log-weights, or -inf to forbid an arc"
        )
        raise ScoresError(f"{_where(lengths, b)}scores[{h}, {m}] is {value}; {remedy}")


def require_heads(heads: Tensor, lengths: Tensor, least: int) -> None:
    """heads[0] is -1 and every word's head is `least` .. n; `least` is -1 where heads may be unknown."""
    nodes = heads.shape[-1]
    node = torch.arange(nodes, device=heads.device)
    inside = lengths[..., None]
    fine = torch.where(node == 0, heads == -1, (heads >= least) & (heads <= inside)) | (node > inside)
    if not bool(fine.all()):
        bad = (~fine).nonzero()[0]
        m, value = int(bad[-1]), int(heads[tuple(bad)])
        place = "" if heads.ndim == 1 else f"sentence {', '.join(str(int(i)) for i in bad[:-1])}: "
        n = int(lengths.expand(heads.shape[:-1])[tuple(bad[:-1])])
        unknown = "-1 (unknown), " if least < 0 else ""
        raise HeadsError(
            f"{place}heads[{m}] is {value}; expected {'-1' if m == 0 else f'{unknown}0 (the root) to {n}'}"
        )


def require_trees(found: Tensor, scores: Tensor, lengths: Tensor, trees: TreeClass) -> None:
    """Raise the error of the first sentence of a batch that has no tree."""
    if bool(found.all()):
        return
    nodes, flat = scores.shape[-1], lengths.flatten()
    b = int((~found.flatten()).to(torch.int64).argmax())
    n = int(flat[b])
    matrix = scores.detach().reshape(-1, nodes, nodes)[b, : n + 1, : n + 1].to("cpu", torch.float64).numpy()
    raise no_tree_error(matrix, trees, None if lengths.ndim == 0 else b)


def _where(lengths: Tensor, b: int) -> str:
    """How errors name a sentence: by its place in the flattened batch, not at all when there is only the one matrix."""
    return "" if lengths.ndim == 0 else f"sentence {b}: "
