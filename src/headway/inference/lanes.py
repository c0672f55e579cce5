# mypy: allow-untyped-calls, allow-untyped-decorators
"""Eight numbers in one vector register, float32 or float64, as a type that kernels compute with.

Compilers turn a loop over eight numbers into one instruction only if they can prove that what is written is not read
again, which they cannot for tables in one workspace; the loops then run number by number, six times slower. So these
kernels say what they mean: `load(cells, i) * load(cells, j)` is eight products. LLVM maps the type to whatever the
machine has: one register of eight numbers, or two or four of fewer.

An array of cells is flat and contiguous; cell i are its numbers 8 i .. 8 i + 7. `load_row` and `store_row` take eight
numbers of a row of a matrix whose rows are contiguous. Indices are not checked, and do not count from the end.
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

_INTEGERS = ir.VectorType(ir.IntType(32), LANES)

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
    """Lanes of one kind of numbers, each of so many bytes."""

    def __init__(self, name: str, number: Any, bytes_each: int) -> None:
        super().__init__(name=name)
        self.vector = ir.VectorType(number, LANES)
        self.bytes_each = bytes_each


_SINGLES = _LanesType("Lanes", ir.FloatType(), 4)
_DOUBLES = _LanesType("DoubleLanes", ir.DoubleType(), 8)
_KINDS = {types.float32: _SINGLES, types.float64: _DOUBLES}


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, type_: Any) -> None:
        super().__init__(manager, type_, type_.vector)


def _cell(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    """The address of a cell."""
    data = context.make_array(array_type)(context, builder, array).data
    first = builder.mul(index, ir.Constant(index.type, LANES))
    return builder.bitcast(builder.gep(data, [first]), _KINDS[array_type.dtype].vector.as_pointer())


def _in_row(context: Any, builder: Any, array_type: Any, array: Any, row: Any, column: Any) -> Any:
    """The address of a number in a matrix."""
    matrix = context.make_array(array_type)(context, builder, array)
    offset = builder.mul(row, builder.extract_value(matrix.strides, 0))
    start = builder.gep(builder.bitcast(matrix.data, ir.IntType(8).as_pointer()), [offset])
    first = builder.gep(builder.bitcast(start, matrix.data.type), [column])
    return builder.bitcast(first, _KINDS[array_type.dtype].vector.as_pointer())


@intrinsic
def _load(_: Any, cells: Any, index: Any) -> Any:
    lanes = _KINDS[cells.dtype]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _cell(context, builder, signature.args[0], *arguments)
        return builder.load(address, align=lanes.bytes_each)

    return lanes(cells, types.int64), generate


@intrinsic
def _store(_: Any, cells: Any, index: Any, value: Any) -> Any:
    lanes = _KINDS[cells.dtype]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _cell(context, builder, signature.args[0], *arguments[:2])
        builder.store(arguments[2], address, align=lanes.bytes_each)
        return context.get_dummy_value()

    return types.void(cells, types.int64, lanes), generate


@intrinsic
def _load_row(_: Any, matrix: Any, row: Any, column: Any) -> Any:
    lanes = _KINDS[matrix.dtype]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _in_row(context, builder, signature.args[0], *arguments)
        return builder.load(address, align=lanes.bytes_each)

    return lanes(matrix, types.int64, types.int64), generate


@intrinsic
def _store_row(_: Any, matrix: Any, row: Any, column: Any, value: Any) -> Any:
    lanes = _KINDS[matrix.dtype]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address = _in_row(context, builder, signature.args[0], *arguments[:3])
        builder.store(arguments[3], address, align=lanes.bytes_each)
        return context.get_dummy_value()

    return types.void(matrix, types.int64, types.int64, lanes), generate


@intrinsic
def _fill(_: Any, number: Any) -> Any:
    lanes = _KINDS[number]

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one = builder.insert_element(ir.Constant(lanes.vector, ir.Undefined), arguments[0], ir.IntType(32)(0))
        return builder.shuffle_vector(one, one, ir.Constant(_INTEGERS, [0] * LANES))

    return lanes(number), generate


@intrinsic
def _first_lanes(_: Any, count: Any, x: Any, y: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        own = builder.trunc(arguments[0], ir.IntType(32))
        counts = builder.insert_element(ir.Constant(_INTEGERS, ir.Undefined), own, ir.IntType(32)(0))
        counts = builder.shuffle_vector(counts, counts, ir.Constant(_INTEGERS, [0] * LANES))
        among = builder.icmp_signed("<", ir.Constant(_INTEGERS, list(range(LANES))), counts)
        return builder.select(among, *arguments[1:])

    return x(types.int64, x, x), generate


@intrinsic
def _total(_: Any, x: Any) -> Any:
    number = types.float32 if x is _SINGLES else types.float64

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, count = arguments[0], LANES
        while count > 1:
            count //= 2
            halves = [
                ir.Constant(ir.VectorType(ir.IntType(32), count), [*range(start, start + count)])
                for start in (0, count)
            ]
            x = builder.fadd(*(builder.shuffle_vector(x, x, half) for half in halves))
        return builder.extract_element(x, ir.IntType(32)(0))

    return number(x), generate


@intrinsic
def _power_of_two(_: Any, exponent: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole = builder.fptosi(arguments[0], _INTEGERS)
        biased = builder.add(whole, ir.Constant(_INTEGERS, [127] * LANES))
        return builder.bitcast(builder.shl(biased, ir.Constant(_INTEGERS, [23] * LANES)), _SINGLES.vector)

    return _SINGLES(_SINGLES), generate


def _arithmetic(symbol: Callable[..., Any], instruction: str) -> None:
    """Teach Numba an operator of two lanes."""

    @infer_global(symbol)
    class OfLanes(ConcreteTemplate):
        cases = [signature(lanes, lanes, lanes) for lanes in _KINDS.values()]  # noqa: RUF012

    for lanes in _KINDS.values():

        @lower_builtin(symbol, lanes, lanes)
        def compute(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return getattr(builder, instruction)(*arguments, flags=("contract",))


_arithmetic(operator.add, "fadd")
_arithmetic(operator.sub, "fsub")
_arithmetic(operator.mul, "fmul")
_arithmetic(operator.truediv, "fdiv")

load: Callable[[Any, int], Lanes] = cast(Any, _load)
store: Callable[[Any, int, Lanes], None] = cast(Any, _store)
load_row: Callable[[Any, int, int], Lanes] = cast(Any, _load_row)
store_row: Callable[[Any, int, int, Lanes], None] = cast(Any, _store_row)
first_lanes: Callable[[int, Lanes, Lanes], Lanes] = cast(Any, _first_lanes)  # so many of x, the others of y
total: Callable[[Lanes], float] = cast(Any, _total)  # the sum of all lanes
fill: Callable[[Any], Lanes] = cast(Any, _fill)
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
