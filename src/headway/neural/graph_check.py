"""Looks at an ONNX graph before the runtime does: a file may be damaged, or hostile.

Such a file is a protocol buffer: fields, each a number, a kind and a content, among which are messages of fields again.
We walk all of them and refuse what no graph of Headway has: operations other than ours, other domains, functions,
graphs within nodes, weights in other files, numbers that are not finite. What remains is arithmetic on arrays. Nothing
is executed, and the package onnx is not needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from headway.saved_values import numbers_in_range

RUNTIME = "com.microsoft"
_OURS = {
    "": "Abs Add Cast Concat Conv Div Equal Expand Gather Gelu Greater Identity LSTM LayerNormalization LeakyRelu "
    "MatMul Mul Not QuantizeLinear ReduceMax ReduceMean ReduceSum Reshape Shape Slice Split Squeeze Sub "
    "Transpose Unsqueeze",
    RUNTIME: "MatMulIntegerToFloat MultiHeadAttention RotaryEmbedding",
}
OPERATIONS = frozenset((domain, name) for domain, names in _OURS.items() for name in names.split())
_MOST_NODES = 5_000
_MOST_FIELDS = 200_000

# The fields of each message that we know, by their numbers in onnx.proto. All others are refused.
MODEL = {1: "ir_version", 7: "graph", 8: "opset_import"}
_OPSET = {1: "domain", 2: "version"}
GRAPH = {1: "node", 2: "name", 5: "initializer", 11: "input", 12: "output"}
NODE = {1: "input", 2: "output", 3: "name", 4: "op_type", 5: "attribute", 7: "domain"}
ATTRIBUTE = {1: "name", 2: "f", 3: "i", 4: "s", 7: "floats", 8: "ints", 20: "type"}
TENSOR = {1: "dims", 2: "data_type", 8: "name", 9: "raw_data"}
TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 7: np.int64}

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5

Fields = list[tuple[str, int | memoryview]]


def check_graph(content: bytes | memoryview) -> None:
    """Raise a ValueError that says what is wrong."""
    walk = Walk()
    model = walk.fields(memoryview(content), MODEL, "the graph")
    graphs = [part for name, part in model if name == "graph"]
    if len(graphs) != 1:
        raise ValueError("the network is no graph, or several")
    for name, part in model:
        if name == "opset_import":
            walk.fields(message(part), _OPSET, "an operation set")
    nodes = 0
    for name, part in walk.fields(message(graphs[0]), GRAPH, "the graph"):
        if name == "node":
            nodes += 1
            _check_node(walk, message(part))
        elif name == "initializer":
            _check_tensor(walk, message(part))
    if nodes > _MOST_NODES:
        raise ValueError(f"the graph has {nodes} operations, more than any network of Headway")


def _check_node(walk: Walk, content: memoryview) -> None:
    fields = walk.fields(content, NODE, "an operation")
    names = [text(part) for name, part in fields if name == "op_type"]
    domains = [text(part) for name, part in fields if name == "domain"] or [""]
    if len(names) != 1 or len(domains) != 1 or (domains[0], names[0]) not in OPERATIONS:
        shown = f"{domains[0]}.{names[0] if names else ''}".strip(".")
        raise ValueError(f"the graph has the operation {shown[:60]!r}, which no network of Headway has")
    for name, part in fields:
        if name == "attribute":
            walk.fields(message(part), ATTRIBUTE, "an operation's option")


def _check_tensor(walk: Walk, content: memoryview) -> None:
    dims: list[int] = []
    found: dict[str, int | memoryview] = {}
    for name, part in walk.fields(content, TENSOR, "an array of the graph"):
        if name == "dims":
            dims += [part] if isinstance(part, int) else walk.varints(part)
        elif name in found:
            raise ValueError(f"an array of the graph has two {name}")
        else:
            found[name] = part
    dtype = TYPES.get(whole(found.get("data_type", 0)))
    if dtype is None:
        raise ValueError("an array of the graph is of a type that no network of Headway has")
    raw = message(found.get("raw_data", memoryview(b"")))
    if np.dtype(dtype).itemsize * math.prod(dims) != len(raw):
        raise ValueError("an array of the graph has not the size it claims")
    if dtype is np.float32:
        numbers_in_range(np.frombuffer(raw, dtype), "the network")


class Walk:
    """Reads messages, and counts their fields: each takes much more memory than it has bytes."""

    def __init__(self) -> None:
        self._seen = 0

    def fields(self, content: memoryview, known: dict[int, str], what: str) -> Fields:
        """The fields of a message by name."""
        found: Fields = []
        for number, part in self._parts(content):
            if number not in known:
                raise ValueError(f"{what} has a part (field {number}) that no network of Headway has")
            found.append((known[number], part))
        return found

    def varints(self, content: memoryview) -> list[int]:
        """Whole numbers, one after the other."""
        found, at = [], 0
        while at < len(content):
            value, at = self._varint(content, at)
            found.append(value)
        return found

    def _parts(self, content: memoryview) -> Iterator[tuple[int, int | memoryview]]:
        at = 0
        while at < len(content):
            key, at = self._varint(content, at)
            number, kind = key >> 3, key & 7
            if kind == _VARINT:
                value, at = self._varint(content, at)
                yield number, value
                continue
            size = {_EIGHT: 8, _FOUR: 4}.get(kind)
            if kind == _BYTES:
                size, at = self._varint(content, at)
            if size is None or at + size > len(content):
                raise ValueError("the graph is cut short, or no graph")
            yield number, content[at : at + size]
            at += size

    def _varint(self, content: memoryview, at: int) -> tuple[int, int]:
        self._seen += 1
        if self._seen > _MOST_FIELDS:
            raise ValueError("the graph has more parts than any network of Headway")
        value = 0
        for shift in range(0, 70, 7):
            if at >= len(content):
                break
            byte = content[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
        raise ValueError("the graph is cut short, or no graph")


def message(part: int | memoryview) -> memoryview:
    if isinstance(part, int):
        raise ValueError("the graph has a number where a part of it belongs")
    return part


def text(part: int | memoryview) -> str:
    return bytes(message(part)).decode()


def whole(part: int | memoryview) -> int:
    if not isinstance(part, int):
        raise ValueError("the graph has a part where a number belongs")
    return part
