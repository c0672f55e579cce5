"""Torch operators `headway::...`: opaque to torch.compile, with shapes for any length, and differentiable.

    log Z  -- marginals -->  mu  -- covariance -->  Cov(f, mu)  -- the third order -->

`marginals` returns log Z too, so that log Z and its gradient cost one pass: its backward multiplies by what is already
there. A covariance is computed only if a gradient of the marginals arrives. Cov(f, 1[arc]) is the second derivative of
log Z times f, and symmetric, so that its derivative by f is a covariance again; its derivative by the scores takes
autograd through the plain algorithms (`plain_kernels`), which is slow, and goes on to any order.

Each formula is given to torch twice: to the operator, which torch.compile keeps as one node of its graph, and to an
`autograd.Function` around it, since the transforms of `torch.func` (grad, vjp, jvp, vmap) look inside those only.

Scores are (B, N+1, N+1) here, lengths (B,). Batch dimensions of `torch.vmap` become part of B.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import Parameter

from headway.arrays import TreeClass
from headway.torch.heads import are_in_class
from headway.torch.kernels import Begun, Resumable, kernels_for
from headway.torch.plain_kernels import PlainKernels

_LIBRARY = torch.library.Library("headway", "DEF")


def log_partition(scores: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
    """log Z (B,)."""
    result: Tensor = _call(_LogPartition, torch.ops.headway.log_partition, scores, lengths, *trees)
    return result


def marginals(scores: Tensor, lengths: Tensor, trees: TreeClass) -> tuple[Tensor, Tensor]:
    """log Z (B,) and marginals shaped like the scores."""
    log_z, mu = _call(_Marginals, torch.ops.headway.marginals, scores, lengths, *trees)
    return log_z, mu


def begin(scores: Tensor, lengths: Tensor, trees: TreeClass) -> Begun | None:
    """log Z, and what its marginals can go on from; None where there are no kernels for that, or where torch would have
    to see an operator. No gradient is recorded."""
    if torch.compiler.is_compiling() or scores.is_cuda or not _is_plain(scores):
        return None
    kernels = kernels_for(scores)
    return kernels.begin(scores.contiguous(), lengths.contiguous(), trees) if isinstance(kernels, Resumable) else None


def _is_plain(scores: Tensor) -> bool:
    """Neither transformed nor traced: nothing but its numbers matters."""
    return (
        type(scores) in (Tensor, Parameter)
        and not torch._C._are_functorch_transforms_active()
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._get_tracing_state() is None
    )


def covariance(scores: Tensor, lengths: Tensor, f: Tensor, trees: TreeClass) -> Tensor:
    """Cov(f, 1[arc]) shaped like the scores."""
    result: Tensor = _call(_Covariance, torch.ops.headway.covariance, scores, lengths, f, *trees)
    return result


def argmax(scores: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
    """Heads (B, N+1) of the best trees."""
    result: Tensor = torch.ops.headway.argmax(scores, lengths, *trees)
    return result


def in_class(heads: Tensor, lengths: Tensor, trees: TreeClass) -> Tensor:
    """Which heads (B, N+1), each word's within its sentence, are trees of the class: (B,)."""
    result: Tensor = torch.ops.headway.in_class(heads, lengths, *trees)
    return result


def _call(function: type[Function], operator: Callable[..., Any], *arguments: Any) -> Any:
    # Not always the function: it takes 40 microseconds more than the operator.
    if not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active():
        return function.apply(*arguments)
    return operator(*arguments)


# ------------------------------------------------------------------------------------------- what they compute


def _log_partition(scores: Tensor, lengths: Tensor, projective: bool, single_root: bool) -> Tensor:
    scores = scores.contiguous()
    return kernels_for(scores).log_partition(scores, lengths.contiguous(), TreeClass(projective, single_root))


def _marginals(scores: Tensor, lengths: Tensor, projective: bool, single_root: bool) -> tuple[Tensor, Tensor]:
    scores = scores.contiguous()
    return kernels_for(scores).marginals(scores, lengths.contiguous(), TreeClass(projective, single_root))


def _covariance(scores: Tensor, lengths: Tensor, f: Tensor, projective: bool, single_root: bool) -> Tensor:
    scores, trees = scores.contiguous(), TreeClass(projective, single_root)
    return kernels_for(scores).covariance(scores, lengths.contiguous(), f.contiguous(), trees)


def _argmax(scores: Tensor, lengths: Tensor, projective: bool, single_root: bool) -> Tensor:
    scores = scores.contiguous()
    return kernels_for(scores).argmax(scores, lengths.contiguous(), TreeClass(projective, single_root))


def _in_class(heads: Tensor, lengths: Tensor, projective: bool, single_root: bool) -> Tensor:
    return are_in_class(heads, lengths, TreeClass(projective, single_root))


# ------------------------------------------------------------------------------------- batch dimensions of vmap


def _over_batches(operator: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    """The operator with one batch dimension more: moved to the front, joined with B, and taken apart again."""

    def over_batches(info: Any, in_dims: Sequence[int | None], *arguments: Any) -> tuple[Any, Any]:
        size = info.batch_size
        pairs = zip(arguments, in_dims, strict=True)
        result = operator(*(_join(x, dim, size) if isinstance(x, Tensor) else x for x, dim in pairs))
        if isinstance(result, Tensor):
            return result.unflatten(0, (size, -1)), 0
        return tuple(part.unflatten(0, (size, -1)) for part in result), tuple(0 for _ in result)

    return over_batches


def _join(value: Tensor, dim: int | None, size: int) -> Tensor:
    value = value.unsqueeze(0).expand(size, *value.shape) if dim is None else value.movedim(dim, 0)
    return value.flatten(0, 1)


# ------------------------------------------------------------------------------------------------ derivatives


class _LogPartition(Function):
    @staticmethod
    def forward(*inputs: Any) -> Any:
        return torch.ops.headway.log_partition(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        scores, lengths, *flags = inputs
        ctx.save_for_backward(scores, lengths)
        ctx.save_for_forward(scores, lengths)
        ctx.trees = TreeClass(*flags)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        scores, lengths = ctx.saved_tensors
        _, mu = marginals(scores, lengths, ctx.trees)
        return grad[:, None, None] * mu, None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        scores, lengths = ctx.saved_tensors
        mu = marginals(scores, lengths, ctx.trees)[1]
        return _expected(mu, tangent)

    @staticmethod
    def vmap(info: Any, in_dims: Sequence[int | None], *inputs: Any) -> tuple[Any, Any]:
        return _over_batches(_LogPartition.apply)(info, in_dims, *inputs)


class _Marginals(Function):
    @staticmethod
    def forward(*inputs: Any) -> Any:
        return torch.ops.headway.marginals(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        scores, lengths, *flags = inputs
        ctx.save_for_backward(scores, lengths, output[1])
        ctx.save_for_forward(scores, lengths, output[1])
        ctx.trees = TreeClass(*flags)
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, grad_log_z: Tensor | None, grad_mu: Tensor | None) -> tuple[Tensor | None, ...]:
        scores, lengths, mu = ctx.saved_tensors
        grad = None if grad_log_z is None else grad_log_z[:, None, None] * mu
        if grad_mu is not None:
            slope = covariance(scores, lengths, grad_mu, ctx.trees)
            grad = slope if grad is None else grad + slope
        return grad, None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> tuple[Tensor, Tensor]:
        scores, lengths, mu = ctx.saved_tensors
        return _expected(mu, tangent), covariance(scores, lengths, tangent, ctx.trees)

    @staticmethod
    def vmap(info: Any, in_dims: Sequence[int | None], *inputs: Any) -> tuple[Any, Any]:
        return _over_batches(_Marginals.apply)(info, in_dims, *inputs)


class _Covariance(Function):
    @staticmethod
    def forward(*inputs: Any) -> Any:
        return torch.ops.headway.covariance(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        scores, lengths, f, *flags = inputs
        ctx.save_for_backward(scores, lengths, f)
        ctx.save_for_forward(scores, lengths, f)
        ctx.trees = TreeClass(*flags)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        scores, lengths, f = ctx.saved_tensors
        by_scores = _third_order(scores, lengths, f, grad, ctx.trees) if ctx.needs_input_grad[0] else None
        by_f = covariance(scores, lengths, grad, ctx.trees) if ctx.needs_input_grad[2] else None
        return by_scores, None, by_f, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor | None, _: None, tangent_f: Tensor | None, *__: None) -> Tensor:
        scores, lengths, f = ctx.saved_tensors
        result = torch.zeros_like(scores)
        if tangent is not None:
            result = result + _third_order(scores, lengths, f, tangent, ctx.trees)
        if tangent_f is not None:
            result = result + covariance(scores, lengths, tangent_f, ctx.trees)
        return result

    @staticmethod
    def vmap(info: Any, in_dims: Sequence[int | None], *inputs: Any) -> tuple[Any, Any]:
        return _over_batches(_Covariance.apply)(info, in_dims, *inputs)


def _expected(mu: Tensor, f: Tensor) -> Tensor:
    """E[f]; f may hold anything where there is no arc."""
    return torch.where(mu > 0, mu * f, 0.0).sum((1, 2))


def _third_order(scores: Tensor, lengths: Tensor, f: Tensor, g: Tensor, trees: TreeClass) -> Tensor:
    """The third derivative of log Z in the directions f and g: the gradient by the scores of Cov(f, g)."""
    pullback = torch.func.vjp(lambda s: PlainKernels().covariance(s, lengths, f, trees), scores)[1]
    result: Tensor = pullback(g)[0]
    return result


# ------------------------------------------------------------------------------------------------ registration


def _register(
    name: str, schema: str, compute: Callable[..., Any], shapes: Callable[..., Any], function: type[Any] | None = None
) -> None:
    """Define an operator: what it computes, the shapes of its results, and its derivatives."""
    _LIBRARY.define(name + schema, tags=(torch.Tag.pt2_compliant_tag,))
    _LIBRARY.impl(name, compute, "CompositeExplicitAutograd")
    name = f"headway::{name}"
    torch.library.register_fake(name, shapes, lib=_LIBRARY)
    if function is not None:
        torch.library.register_autograd(name, function.backward, setup_context=function.setup_context, lib=_LIBRARY)
    operator = getattr(torch.ops.headway, name.removeprefix("headway::"))
    torch.library.register_vmap(name, _over_batches(operator), lib=_LIBRARY)


_OF_SCORES = "(Tensor scores, Tensor lengths, bool projective, bool single_root)"
_register(
    "log_partition",
    f"{_OF_SCORES} -> Tensor",
    _log_partition,
    lambda scores, lengths, projective, single_root: scores.new_empty(scores.shape[0]),
    _LogPartition,
)
_register(
    "marginals",
    f"{_OF_SCORES} -> (Tensor, Tensor)",
    _marginals,
    lambda scores, lengths, projective, single_root: (
        scores.new_empty(scores.shape[0]),
        scores.new_empty(scores.shape),
    ),
    _Marginals,
)
_register(
    "covariance",
    "(Tensor scores, Tensor lengths, Tensor f, bool projective, bool single_root) -> Tensor",
    _covariance,
    lambda scores, lengths, f, projective, single_root: scores.new_empty(scores.shape),
    _Covariance,
)
_register(
    "argmax",
    f"{_OF_SCORES} -> Tensor",
    _argmax,
    lambda scores, lengths, projective, single_root: scores.new_empty(scores.shape[:2], dtype=torch.int64),
)
_register(
    "in_class",
    "(Tensor heads, Tensor lengths, bool projective, bool single_root) -> Tensor",
    _in_class,
    lambda heads, lengths, projective, single_root: heads.new_empty(heads.shape[0], dtype=torch.bool),
)
