"""ONNX graphs, put together operation by operation: what a trained network becomes so that parsing needs no torch.

Weights are float32, or one byte each (`quantised`), with a scale for every output of a layer and every row of a table.
What goes into a layer is rounded to bytes too, with a scale for every word. For x and the weights w of an output, with
s = largest |x_k| / 127 and t = largest |w_k| / 127,

    x·w  =  s t sum over k of round(x_k / s) round(w_k / t),  nearly

so that what is computed for a sentence does not depend on the sentences that share its batch, as it would if the whole
batch had one scale. Tables become floats before they are used.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

OPSET, IR, RUNTIME = 20, 10, "com.microsoft"
_LEVELS, _TINY = 127, 1e-12
_FLOAT = TensorProto.FLOAT

Weights = NDArray[np.float32]


class GraphBuilder:
    """A graph that grows; values are known by their names."""

    def __init__(self, *, quantised: bool) -> None:
        self._quantised = quantised
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, dtype: int, shape: tuple[str | int, ...]) -> str:
        """Something that is given; axes of any length have a name."""
        self._inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, value: str, name: str, shape: tuple[str | int, ...]) -> None:
        """A result in float32, under this name."""
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, _FLOAT, shape))

    def apply(self, operation: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """The result of one operation."""
        return self.split(operation, *inputs, parts=1, domain=domain, **attributes)[0]

    def split(self, operation: str, *inputs: str, parts: int, domain: str = "", **attributes: Any) -> list[str]:
        """The results of an operation that has several."""
        names = [f"v{len(self._nodes)}_{part}" for part in range(parts)]
        self._nodes.append(helper.make_node(operation, inputs, names, domain=domain, **attributes))
        return names

    def constant(self, array: NDArray[Any]) -> str:
        """Numbers that are part of the graph."""
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def integers(self, *values: int) -> str:
        """A list of whole numbers: axes, or a shape."""
        return self.constant(np.array(values, np.int64))

    def linear(self, x: str, weights: Weights, bias: Weights | None = None) -> str:
        """x W' + b, for weights (outputs, inputs) as torch has them."""
        given = () if bias is None else (self.constant(bias),)
        if not self._quantised:
            product = self.apply("MatMul", x, self.constant(weights.T))
            return self.apply("Add", product, *given) if given else product
        whole, scales = rounded(weights)
        operands = (self.constant(whole.T), self._one, self.constant(scales[:, 0]), self._middle)
        own, scale = self._rounded(x, weights.shape[1])
        product = self.apply("Mul", self.apply("MatMulIntegerToFloat", own, *operands, domain=RUNTIME), scale)
        return self.apply("Add", product, *given) if given else product

    def _rounded(self, x: str, size: int) -> tuple[str, str]:
        """x (.., K) as bytes around 128, and the scale (.., 1) of each row; K is the `size`."""
        last = self.integers(-1)
        largest = self.apply("ReduceMax", self.apply("Abs", x), last, keepdims=1)
        some = self.apply("Add", largest, self.constant(np.array([_TINY], np.float32)))  # a row may be zero
        scale = self.apply("Mul", some, self.constant(np.array([1 / _LEVELS], np.float32)))
        scales = self.apply("Reshape", scale, last)
        middles = self.apply("Expand", self._middle, self.apply("Shape", scales))
        own = self.apply("QuantizeLinear", self.apply("Reshape", x, self.integers(-1, size)), scales, middles, axis=0)
        return self.apply("Reshape", own, self.apply("Shape", x)), scale

    @cached_property
    def _one(self) -> str:
        return self.constant(np.array(1, np.float32))

    @cached_property
    def _middle(self) -> str:
        return self.constant(np.array(128, np.uint8))

    def rows(self, table: Weights, numbers: str) -> str:
        """The rows of a table that `numbers` (..) ask for, (.., D)."""
        return self._taken(table, lambda part: self.apply("Gather", part, numbers, axis=0))

    def first_rows(self, table: Weights, count: str) -> str:
        """The first rows of a table; `count` is an array of one number."""
        start = self.integers(0)
        return self._taken(table, lambda part: self.apply("Slice", part, start, count, start))

    def table(self, table: Weights) -> str:
        """A whole table, in float32 when it is used."""
        return self._taken(table, lambda part: part)

    def _taken(self, table: Weights, take: Any) -> str:
        if not self._quantised:
            taken: str = take(self.constant(table))
            return taken
        whole, scales = rounded(table)
        floats = self.apply("Cast", take(self.constant(whole)), to=_FLOAT)
        return self.apply("Mul", floats, take(self.constant(scales)))

    def build(self) -> bytes:
        """The graph as the content of an ONNX file; the same weights give the same bytes."""
        graph = helper.make_graph(self._nodes, "headway", self._inputs, self._outputs, self._constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(RUNTIME, 1)]
        made: ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=IR)
        content: bytes = made.SerializeToString(deterministic=True)
        return content


def rounded(weights: Weights) -> tuple[NDArray[np.int8], Weights]:
    """Weights (.., K) as whole numbers from -127 to 127, and the scale (.., 1) of each row.

    >>> rounded(np.array([[0.5, -1.0]], np.float32))[0].tolist()
    [[64, -127]]
    """
    largest = np.abs(weights).max(axis=-1, keepdims=True)
    scales = np.where(largest > 0, largest / _LEVELS, 1).astype(np.float32)
    return np.rint(weights / scales).astype(np.int8), scales


def without_root(graph: GraphBuilder, numbers: str) -> str:
    """The words of a batch (B, N+1, ..), without the row of the root."""
    return graph.apply("Slice", numbers, graph.integers(1), graph.integers(2**62), graph.integers(1))


def array_of(tensor: Any) -> Weights:
    """A tensor's numbers as float32."""
    array: Weights = tensor.detach().float().cpu().numpy()
    return array
