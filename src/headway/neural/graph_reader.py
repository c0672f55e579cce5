"""An ONNX graph as plain data: operations one after the other, and the arrays they need; without the package onnx.

For graphs that `headway.neural.graph_check` has let pass.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.neural.graph_check import ATTRIBUTE, GRAPH, MODEL, NODE, TENSOR, TYPES, Walk, message, text, whole

_VALUE = {1: "name", 2: "type"}


@dataclass(frozen=True)
class Node:
    """One operation; values are known by their names, "" is one left out."""

    operation: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class Graph:
    """Operations in an order in which they can be computed."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    constants: Mapping[str, NDArray[Any]]


def read_graph(content: bytes) -> Graph:
    """The graph of an ONNX file."""
    walk = Walk()
    fields: dict[str, list[memoryview]] = {name: [] for name in GRAPH.values()}
    for name, part in walk.fields(memoryview(content), MODEL, "the graph"):
        if name == "graph":
            for inner, own in walk.fields(message(part), GRAPH, "the graph"):
                fields[inner].append(message(own))
    return Graph(
        tuple(_name_of(walk, part) for part in fields["input"]),
        tuple(_name_of(walk, part) for part in fields["output"]),
        tuple(_node(walk, part) for part in fields["node"]),
        dict(_constant(walk, part) for part in fields["initializer"]),
    )


def _name_of(walk: Walk, content: memoryview) -> str:
    return next(text(part) for name, part in walk.fields(content, _VALUE, "an input") if name == "name")


def _node(walk: Walk, content: memoryview) -> Node:
    fields = walk.fields(content, NODE, "an operation")
    [operation] = [text(part) for name, part in fields if name == "op_type"]
    inputs, outputs = (tuple(text(part) for name, part in fields if name == wanted) for wanted in ("input", "output"))
    attributes = [_attribute(walk, message(part)) for name, part in fields if name == "attribute"]
    return Node(operation, inputs, outputs, dict(attributes))


def _attribute(walk: Walk, content: memoryview) -> tuple[str, Any]:
    found: dict[str, Any] = {"ints": []}
    for name, part in walk.fields(content, ATTRIBUTE, "an operation's option"):
        if name == "ints":
            found["ints"] += [part] if isinstance(part, int) else walk.varints(part)
        else:
            found[name] = part
    name = text(found["name"])
    match whole(found["type"]):
        case 1:
            return name, struct.unpack("<f", message(found["f"]))[0]
        case 2:
            return name, _signed(found["i"])
        case 3:
            return name, text(found["s"])
    return name, [_signed(number) for number in found["ints"]]


def _constant(walk: Walk, content: memoryview) -> tuple[str, NDArray[Any]]:
    dims: list[int] = []
    found: dict[str, Any] = {"raw_data": memoryview(b"")}
    for name, part in walk.fields(content, TENSOR, "an array of the graph"):
        if name == "dims":
            dims += [part] if isinstance(part, int) else walk.varints(part)
        else:
            found[name] = part
    array = np.frombuffer(found["raw_data"], TYPES[whole(found["data_type"])]).reshape(dims)
    return text(found["name"]), array


def _signed(number: int) -> int:
    """Whole numbers below zero are written as very large ones.

    >>> _signed(2**64 - 1), _signed(3)
    (-1, 3)
    """
    return number - (1 << 64) if number >= 1 << 63 else number
