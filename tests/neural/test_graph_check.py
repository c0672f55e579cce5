"""Graphs that no network of Headway has are refused before the runtime sees them."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

pytest.importorskip("torch", reason="networks are trained with torch")
onnx = pytest.importorskip("onnx", reason="graphs are made with onnx")
pytest.importorskip("onnxruntime", reason="graphs run on onnxruntime")

from onnx import TensorProto, helper, numpy_helper

from headway.neural.export import export
from headway.neural.graph_check import check_graph
from headway.neural.session import Session
from tests.neural.tiny import network_of, sentences

READER, _, NETWORK = network_of("lstm", sentences(8))
GRAPH = export(NETWORK, quantised=True).network
OUTPUTS = ("arcs", "label_heads", "label_modifiers", "tags")


def changed(change):
    model = onnx.load_from_string(GRAPH)
    change(model)
    return model.SerializeToString()


def node(name, domain=""):
    return lambda model: model.graph.node.append(helper.make_node(name, ["words"], ["z"], domain=domain))


def with_function(model):
    made = helper.make_function("own", "F", ["x"], ["y"], [helper.make_node("Identity", ["x"], ["y"])], [])
    model.functions.append(made)


def with_subgraph(model):
    model.graph.node[0].attribute.append(helper.make_attribute("body", helper.make_graph([], "g", [], [])))


def with_tensor_in_a_node(model):
    model.graph.node[0].attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.zeros(2))))


def with_external_data(model):
    tensor = model.graph.initializer[0]
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")


def with_external_data_only(model):
    model.graph.initializer[0].external_data.add(key="location", value="/etc/passwd")


def with_wrong_size(model):
    model.graph.initializer[0].dims[0] += 1


def with_negative_size(model):
    model.graph.initializer[0].dims[0] *= -1


def with_nan(model):
    floats = next(t for t in model.graph.initializer if t.data_type == TensorProto.FLOAT)
    values = numpy_helper.to_array(floats).copy()
    values.flat[0] = np.nan
    floats.raw_data = values.tobytes()


def with_strings(model):
    model.graph.initializer.append(helper.make_tensor("s", TensorProto.STRING, [1], [b"x"]))


def with_sparse(model):
    model.graph.sparse_initializer.add()


def with_training(model):
    model.training_info.add()


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (node("Loop"), "operation 'Loop'"),
        (node("If"), "operation 'If'"),
        (node("PyOp", "ai.onnx.contrib"), "operation 'ai.onnx.contrib.PyOp'"),
        (node("MatMul", "com.microsoft"), "operation 'com.microsoft.MatMul'"),
        (node("MatMulIntegerToFloat"), "operation 'MatMulIntegerToFloat'"),
        (with_function, "field 25"),
        (with_subgraph, "field 6"),
        (with_tensor_in_a_node, "field 5"),
        (with_external_data, "field 13"),
        (with_external_data_only, "field 13"),
        (with_wrong_size, "size"),
        (with_negative_size, "size"),
        (with_nan, "not finite"),
        (with_strings, "field 6"),
        (with_sparse, "field 15"),
        (with_training, "field 20"),
    ],
)
def test_what_is_foreign_is_refused(change, cause):
    with pytest.raises(ValueError, match=cause):
        check_graph(changed(change))


def test_what_a_network_has_is_accepted():
    check_graph(GRAPH)
    assert Session(GRAPH, READER.inputs, OUTPUTS).graph == GRAPH


@pytest.mark.parametrize("content", [b"", b"\x00", b"PK\x03\x04" + bytes(100), b"\xff" * 100, bytes(1000)])
def test_what_is_no_graph_is_refused(content):
    with pytest.raises(ValueError, match="graph"):
        check_graph(content)


def test_two_graphs_in_one_are_refused():
    """Protocol buffers would merge them."""
    with pytest.raises(ValueError, match="several"):
        check_graph(GRAPH + onnx.ModelProto(graph=onnx.GraphProto(name="x")).SerializeToString())


def test_too_many_parts_are_refused():
    with pytest.raises(ValueError, match="more parts"):
        check_graph(GRAPH + b"\x08\x00" * 200_000)


def test_a_graph_that_is_cut_short_is_refused():
    for end in np.linspace(0, len(GRAPH) - 1, 200).astype(int).tolist():
        with pytest.raises(ValueError, match="graph"):
            check_graph(GRAPH[:end])


def test_names_must_fit():
    with pytest.raises(ValueError, match="inputs"):
        Session(GRAPH, ["words"], OUTPUTS)
    with pytest.raises(ValueError, match="outputs"):
        Session(GRAPH, READER.inputs, ["arcs"])


def test_shapes_that_do_not_fit_are_refused_by_the_runtime():
    def transpose(model):
        of_lstm = next(t for t in model.graph.initializer if len(t.dims) == 3 and t.data_type == TensorProto.INT8)
        of_lstm.dims[:] = of_lstm.dims[::-1]

    with pytest.raises(ValueError, match="runtime refuses the graph"):
        Session(changed(transpose), READER.inputs, OUTPUTS)


def test_damaged_bytes_are_a_value_error_or_another_network():
    """One byte after the other of the part that is no weights: nothing but a ValueError comes of it."""
    rng = np.random.default_rng(0)
    refused = 0
    names = [at for at in range(len(GRAPH)) if GRAPH[at : at + 2] == b"v1"]
    places = [*range(60), *names[:40], *rng.integers(0, 4000, 100).tolist()]
    for at in places:
        damaged = bytearray(GRAPH)
        damaged[at] ^= int(rng.integers(1, 256))
        with suppress(ValueError):
            Session(bytes(damaged), READER.inputs, OUTPUTS)
            continue
        refused += 1
    assert refused > len(places) // 2
