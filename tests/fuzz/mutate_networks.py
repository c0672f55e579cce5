"""Neural models with something changed: fields, arrays and bytes as in other models, and parts of their graphs.

What still loads must work, or say in one sentence why it does not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from headway.archive import Archive, load_archive, save_archive
from headway.neural.graph_check import OPERATIONS
from headway.pipeline import Parser
from tests.fuzz.harness import Draw, expecting_success
from tests.fuzz.mutate_archives import NUMBERS, TRAIN, change_field, changed, use_parser
from tests.fuzz.mutations import pick
from tests.neural.tiny import NAMES, model_of

_SMALL = [int(number) for number in NUMBERS if number == number and abs(number) < 2**63]


def networks(folder: Path) -> Draw:
    """Draws that change a saved neural model, load it, and use it if it loads."""
    wholes = []
    for name in NAMES[:3]:
        Parser(model_of(name, TRAIN)).save(folder / name)
        wholes.append(folder / name)
    path = folder / "changed"

    def draw(rng: np.random.Generator) -> str | None:
        whole = pick(rng, wholes)
        archive = load_archive(whole)
        way = rng.random()
        if way < 0.3:
            path.write_bytes(changed(rng, whole.read_bytes()))
        elif way < 0.5 and "tokenizer" in archive.data["reader"]:
            save_archive(_other_tokenizer(rng, archive), path)
        else:
            save_archive(_other_graph(rng, archive), path)
        use_parser(Parser.load(path), folder)
        return None

    for whole in wholes:  # compiles what all draws need
        with expecting_success():
            use_parser(Parser.load(whole), folder)
    return draw


def _other_tokenizer(rng: np.random.Generator, archive: Archive) -> Archive:
    """The model with a tokenizer that was changed."""
    reader = archive.data["reader"]
    tokenizer = json.loads(reader["tokenizer"])
    for _ in range(int(rng.choice([1, 1, 2, 5]))):
        change_field(rng, tokenizer)
    text = json.dumps(tokenizer)
    return Archive(archive.kind, {**_data(archive), "reader": {**reader, "tokenizer": text}}, archive.arrays)


def _data(archive: Archive) -> dict[str, Any]:
    """What is to be saved again."""
    return {key: value for key, value in archive.data.items() if key not in ("headway", "kind")}


def _other_graph(rng: np.random.Generator, archive: Archive) -> Archive:
    """The model with a graph that was changed: mostly in one place, which gets further than many."""
    name = pick(rng, ["network", "labels"])
    model = onnx.load_from_string(archive.arrays[name].tobytes())
    for _ in range(int(rng.choice([1, 1, 1, 2, 5]))):
        pick(rng, (_change_node, _change_node, _change_constant, _change_edge))(rng, model.graph)
    content = np.frombuffer(model.SerializeToString(), np.uint8)
    return Archive(archive.kind, _data(archive), {**archive.arrays, name: content})


def _change_node(rng: np.random.Generator, graph: Any) -> None:
    node = pick(rng, list(graph.node))
    way = int(rng.integers(6))
    if way == 0:
        node.domain, node.op_type = pick(rng, sorted(OPERATIONS))
    elif way == 1 and node.input:
        node.input[int(rng.integers(len(node.input)))] = _some_value(rng, graph)
    elif way == 2:
        node.input.append(_some_value(rng, graph))
    elif way == 3 and node.input:
        del node.input[int(rng.integers(len(node.input)))]
    elif way == 4:
        graph.node.remove(node)
    elif node.attribute:
        attribute = pick(rng, list(node.attribute))
        attribute.i = pick(rng, _SMALL)
        for k in range(len(attribute.ints)):
            attribute.ints[k] = pick(rng, _SMALL)


def _change_constant(rng: np.random.Generator, graph: Any) -> None:
    tensor = pick(rng, list(graph.initializer))
    way = int(rng.integers(4))
    content = np.frombuffer(tensor.raw_data, np.uint8).copy()
    if way == 0:
        rng.shuffle(content)
    elif way == 1 and len(content):
        content[int(rng.integers(len(content)))] = rng.integers(256)
    elif way == 2:
        tensor.dims[:] = rng.permutation(tensor.dims).tolist()
    else:
        tensor.dims.append(1)
    tensor.raw_data = content.tobytes()


def _change_edge(rng: np.random.Generator, graph: Any) -> None:
    values = pick(rng, (graph.input, graph.output))
    value = pick(rng, list(values))
    if rng.random() < 0.5:
        value.type.tensor_type.elem_type = int(rng.integers(20))
    else:
        dims = value.type.tensor_type.shape.dim
        dims[int(rng.integers(len(dims)))].dim_value = pick(rng, _SMALL)


def _some_value(rng: np.random.Generator, graph: Any) -> str:
    names = [*(tensor.name for tensor in graph.initializer), *(name for node in graph.node for name in node.output), ""]
    chosen: str = pick(rng, names)
    return chosen
