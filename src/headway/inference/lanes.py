# mypy: allow-untyped-calls, allow-untyped-decorators
"""Eight float32 numbers in one vector register, as a type that kernels compute with.

Compilers turn a loop over eight numbers into one instruction only if they can prove that what is written is not read
again, which they cannot for tables in one workspace; the loops then run number by number, six times slower. So these
kernels say what they mean: `load(cells, i) * load(cells, j)` is eight products. LLVM maps the type to whatever the
machine has, two registers of four or one of eight.

An array of cells is flat, contiguous float32; cell i are its numbers 8 i .. 8 i + 7. Indices are not checked.
Products may be fused with sums, but sums keep their order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Protocol, cast

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from headway.inference.jit import part

LANES = 8

_VECTOR = ir.VectorType(ir.FloatType(), LANES)
_INTEGERS = ir.VectorType(ir.IntType(32), LANES)
_FLOAT_BYTES = 4

_LOG2_E = np.float32(1.4426950408889634)
_LOG2_HIGH = np.float32(0.693359375)  # few enough bits that k * _LOG2_HIGH is exact
_LOG2_LOW = np.float32(-2.12194440e-4)
_ROUNDING = np.float32(12582912.0)  # 1.5 * 2^23: adding it to a small number leaves no room for a fraction


class Lanes(Protocol):
    """What kernels see."""

    def __add__(self, other: Lanes) -> Lanes: ...
    def __sub__(self, other: Lanes) -> Lanes: ...
    def __mul__(self, other: Lanes) -> Lanes: ...
    def __truediv__(self, other: Lanes) -> Lanes: ...


class _LanesType(types.Type):
    def __init__(self) -> None:
        super().__init__(name="Lanes")


_LANES = _LanesType()


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, type_: Any) -> None:
        super().__init__(manager, type_, _VECTOR)


def _cell(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """The address of a cell."""
    data = context.make_array(array_type)(context, builder, array).data
    first = builder.mul(index, ir.Constant(index.type, LANES))
    return builder.bitcast(builder.gep(data, [first]), _VECTOR.as_pointer())


@intrinsic
def _load(_: Any, cells: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _cell(context, builder, signature.args[0], *arguments)
        return builder.load(address, align=_FLOAT_BYTES)

    return _LANES(cells, types.int64), generate


@intrinsic
def _store(_: Any, cells: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _cell(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], address, align=_FLOAT_BYTES)
        return context.get_dummy_value()

    return types.void(cells, types.int64, _LANES), generate


@intrinsic
def _fill(_: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), arguments[0], ir.IntType(32)(0))
        return builder.shuffle_vector(one, one, ir.Constant(_INTEGERS, [0] * LANES))

    return _LANES(types.float32), generate


@intrinsic
def _power_of_two(_: Any, exponent: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = builder.fptosi(arguments[0], _INTEGERS)
        biased = builder.add(whole, ir.Constant(_INTEGERS, [127] * LANES))
        return builder.bitcast(builder.shl(biased, ir.Constant(_INTEGERS, [23] * LANES)), _VECTOR)

    return _LANES(_LANES), generate


def _arithmetic(symbol: Callable[..., Any], instruction: str) -> None:
    """Teach Numba an operator of two lanes."""

    @infer_global(symbol)
    class OfLanes(ConcreteTemplate):
        cases = [signature(_LANES, _LANES, _LANES)]  # noqa: RUF012

    @lower_builtin(symbol, _LANES, _LANES)
    def compute(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return getattr(builder, instruction)(*arguments, flags=("contract",))


_arithmetic(operator.add, "fadd")
_arithmetic(operator.sub, "fsub")
_arithmetic(operator.mul, "fmul")
_arithmetic(operator.truediv, "fdiv")

load: Callable[[Any, int], Lanes] = cast(Any, _load)
store: Callable[[Any, int, Lanes], None] = cast(Any, _store)
fill: Callable[[np.float32], Lanes] = cast(Any, _fill)
power_of_two: Callable[[Lanes], Lanes] = cast(Any, _power_of_two)


@part
def exp(x: Lanes, rest: Lanes) -> Lanes:
    """exp(x + rest) for x of at most 80 in size and a rest that is small beside it, as in `fast_exp`."""
    k = (x * fill(_LOG2_E) + fill(_ROUNDING)) - fill(_ROUNDING)
    r = ((x - k * fill(_LOG2_HIGH)) - k * fill(_LOG2_LOW)) + rest
    p = fill(np.float32(1 / 5040))
    p = p * r + fill(np.float32(1 / 720))
    p = p * r + fill(np.float32(1 / 120))
    p = p * r + fill(np.float32(1 / 24))
    p = p * r + fill(np.float32(1 / 6))
    p = p * r + fill(np.float32(1 / 2))
    p = p * r + fill(np.float32(1.0))
    p = p * r + fill(np.float32(1.0))
    return p * power_of_two(k)


@part
def difference(x: Lanes, y: Lanes) -> tuple[Lanes, Lanes]:
    """x - y, and what its rounding has lost."""
    d = x - y
    back = x - d
    return d, (x - (d + back)) + (back - y)
