"""Part of one ONNX graph with another on top of it, as one graph; without the package onnx.

The upper graph takes values of the lower one as its inputs, by their names. Of the lower graph, only what these need is
kept: its operations and arrays are messages of a protocol buffer, and are copied as they are.

For graphs that `headway.neural.graph_check` has let pass.
"""

from __future__ import annotations

from dataclasses import dataclass

from headway.neural.graph_check import GRAPH, MODEL, NODE, TENSOR, Walk, message, text

_NUMBERS = {name: number for known in (MODEL, GRAPH) for number, name in known.items()}
_VALUE = {1: "name", 2: "type"}


@dataclass(frozen=True)
class _Part:
    """A message, and the names in it: what it makes, and what it takes."""

    content: memoryview
    made: frozenset[str]
    taken: frozenset[str] = frozenset()


def joined(lower: bytes, upper: bytes) -> bytes:
    """The graph of `upper`, whose inputs are computed by `lower` as far as that has values of these names."""
    walk = Walk()
    below, above = _parts(walk, lower), _parts(walk, upper)
    needed = frozenset[str]().union(*(part.made for part in above["input"]))
    nodes: list[_Part] = []
    for node in reversed(below["node"]):
        if node.made & needed:
            nodes.append(node)
            needed |= node.taken
    computed = frozenset[str]().union(*(node.made for node in nodes))
    inputs = {name: part for each in (below, above) for part in each["input"] for name in part.made & needed}
    found = {
        "node": [*reversed(nodes), *above["node"]],
        "name": above["name"],
        "initializer": [*(part for part in below["initializer"] if part.made & needed), *above["initializer"]],
        "input": [part for name, part in inputs.items() if name not in computed],
        "output": above["output"],
    }
    graph = b"".join(_field(name, bytes(part.content)) for name, parts in found.items() for part in parts)
    about = [each for each in walk.fields(memoryview(upper), MODEL, "the graph") if each[0] != "graph"]
    return b"".join([_field("graph", graph), *(_field(*each) for each in about)])


def _parts(walk: Walk, content: bytes) -> dict[str, list[_Part]]:
    """The messages of a graph by kind."""
    found: dict[str, list[_Part]] = {name: [] for name in GRAPH.values()}
    for name, graph in walk.fields(memoryview(content), MODEL, "the graph"):
        if name == "graph":
            for kind, part in walk.fields(message(graph), GRAPH, "the graph"):
                found[kind].append(_part(walk, kind, message(part)))
    return found


def _part(walk: Walk, kind: str, content: memoryview) -> _Part:
    if kind == "node":
        fields = walk.fields(content, NODE, "an operation")
        made, taken = (frozenset(text(part) for name, part in fields if name == of) for of in ("output", "input"))
        return _Part(content, made, taken - {""})
    if kind == "name":
        return _Part(content, frozenset())
    fields = walk.fields(content, TENSOR if kind == "initializer" else _VALUE, "a value of the graph")
    return _Part(content, frozenset(text(part) for name, part in fields if name == "name"))


def _field(name: str, content: int | bytes | memoryview) -> bytes:
    """A field of a message: its number and kind, then a whole number, or how many bytes and these."""
    if isinstance(content, int):
        return _varint(_NUMBERS[name] << 3) + _varint(content)
    return _varint(_NUMBERS[name] << 3 | 2) + _varint(len(content)) + bytes(content)


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first.

    >>> _varint(300).hex()
    'ac02'
    """
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])
