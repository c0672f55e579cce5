"""Networks as ONNX graphs: they compute what torch computes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks are trained with torch")
onnx = pytest.importorskip("onnx", reason="graphs are made with onnx")
pytest.importorskip("onnxruntime", reason="graphs run on onnxruntime")
pytest.importorskip("tokenizers", reason="subwords are cut by tokenizers")

from headway.neural.export import export
from headway.neural.graph import GraphBuilder
from headway.neural.graph_check import OPERATIONS
from headway.neural.session import Session
from headway.neural.torch_session import TorchSession
from tests.neural.tiny import BERT, NAMES, model_of, network_of, sentence_of, sentences, torch_outputs

TREES = sentences()


def session_of(name, *, quantised):
    reader, _, network = network_of(name, TREES)
    model = model_of(name, TREES, quantised=quantised)
    return reader, network, model.network, model.labels


def inside(lengths, nodes):
    return np.arange(nodes) <= np.asarray(lengths)[:, None]


def cells(name, array, lengths):
    """The cells of a batch that are no padding."""
    there = inside(lengths, array.shape[1])
    return array[there[:, :, None] & there[:, None, :]] if name == "arcs" else array[there]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("which", [[0], [0, 1, 2, 3], [3, 0], list(range(12))])
def test_a_graph_computes_what_the_network_computes(name, which):
    reader, network, session, _ = session_of(name, quantised=False)
    reading = reader.read(TREES)
    inputs = reading.batch(np.array(which))
    expected, found = torch_outputs(network, inputs), session.run(inputs)
    assert found.keys() <= expected.keys()
    for output, array in found.items():
        own = cells(output, array, reading.lengths[which])
        assert np.abs(own).max() > 0.1
        np.testing.assert_allclose(own, cells(output, expected[output], reading.lengths[which]), atol=1e-4)


@pytest.mark.parametrize("name", ["lstm", "bert"])
def test_labels_of_chosen_heads(name):
    reader, network, session, labels = session_of(name, quantised=False)
    reading = reader.read(TREES)
    which = np.array([0, 1, 2])
    found = session.run(reading.batch(which))
    heads = np.stack([np.pad(TREES[i].heads, (0, found["arcs"].shape[1] - len(TREES[i].heads))) for i in which])
    with torch.no_grad():
        roles = (torch.from_numpy(found[role]) for role in ("label_heads", "label_modifiers"))
        expected = network.label_scores(torch.from_numpy(heads), *roles).numpy()
    rows, words = np.nonzero(inside(reading.lengths[which], heads.shape[1]) & (heads >= 0))
    own, above = found["label_modifiers"][rows, words], found["label_heads"][rows, heads[rows, words]]
    scores = labels.run({"heads": above, "modifiers": own})["labels"]
    np.testing.assert_allclose(scores, expected[rows, words], atol=1e-4)


@pytest.mark.parametrize("quantised", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_scores_do_not_depend_on_what_shares_the_batch(name, quantised):
    reader, _, session, _ = session_of(name, quantised=quantised)
    reading = reader.read(TREES)
    short, many = np.array([0]), np.array([3, 0, 2, 7])
    alone, among = session.run(reading.batch(short)), session.run(reading.batch(many))
    for output in alone:
        own = cells(output, alone[output], reading.lengths[short])
        shared = cells(output, among[output][1:2], reading.lengths[short])
        np.testing.assert_allclose(shared, own, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_weights_of_one_byte_are_close_and_small(name):
    reader, network, session, _ = session_of(name, quantised=True)
    reading = reader.read(TREES)
    which = np.arange(12)
    inputs = reading.batch(which)
    expected, found = torch_outputs(network, inputs), session.run(inputs)
    for output in ("arcs", "tags") if "tags" in found else ("arcs",):
        own, right = (cells(output, each[output], reading.lengths[which]) for each in (found, expected))
        assert 0 < np.abs(own - right).max() < 0.1 * np.abs(right).max()
        assert np.corrcoef(own.ravel(), right.ravel())[0, 1] > 0.999


def test_a_graph_of_bytes_is_a_quarter_of_one_of_floats():
    torch.manual_seed(0)
    from headway.neural.encoders.transformer import TransformerEncoder
    from headway.neural.network import Network

    config = {**BERT, "hidden_size": 256, "intermediate_size": 1024, "vocab_size": 5000, "num_hidden_layers": 1}
    network = Network(TransformerEncoder(config), {"labels": 20, "upos": 10}).eval()
    small, large = (export(network, quantised=quantised) for quantised in (True, False))
    assert len(small.network) < 0.27 * len(large.network)
    assert len(small.labels) < 0.27 * len(large.labels)


def test_long_sentences_are_read_in_windows():
    reader, network, session, _ = session_of("bert", quantised=False)
    reading = reader.read([sentence_of(np.random.default_rng(0), 9), *TREES])
    longest = np.array([0, 1])
    assert len(reading.batch(longest)["subwords"]) > 2
    expected, found = torch_outputs(network, reading.batch(longest)), session.run(reading.batch(longest))
    lengths = reading.lengths[longest]
    np.testing.assert_allclose(
        cells("arcs", found["arcs"], lengths), cells("arcs", expected["arcs"], lengths), atol=1e-4
    )


@pytest.mark.parametrize("name", ["lstm", "bert"])
def test_the_same_network_makes_the_same_bytes_in_silence(name, capfd):
    _, _, network = network_of(name, TREES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = (export(network, quantised=True) for _ in range(2))
    assert first == second
    assert capfd.readouterr() == ("", "")


def test_all_operations_are_known_to_the_check_and_used():
    used = set()
    for name in NAMES:
        for quantised in (True, False):
            graphs = export(network_of(name, TREES)[2], quantised=quantised)
            for content in (graphs.network, graphs.labels):
                used |= {(node.domain, node.op_type) for node in onnx.load_from_string(content).graph.node}
    assert used | {("", "Div")} == OPERATIONS  # which older models divide with before they round


def older(graph, x, size):
    """Bytes and scales as models had them that were saved before rows were rounded by one operation."""
    largest = graph.apply("ReduceMax", graph.apply("Abs", x), graph.integers(-1), keepdims=1)
    some = graph.apply("Add", largest, graph.constant(np.array([1e-12], np.float32)))
    scale = graph.apply("Mul", some, graph.constant(np.array([1 / 127], np.float32)))
    return graph.apply("QuantizeLinear", graph.apply("Div", x, scale), graph._one, graph._middle), scale


@pytest.mark.parametrize("name", ["lstm", "bert"])
def test_older_models_say_the_same(name, monkeypatch):
    reader, _, network = network_of(name, TREES)
    own = export(network, quantised=True).network
    monkeypatch.setattr(GraphBuilder, "_rounded", older)
    theirs = export(network, quantised=True).network
    assert own != theirs
    inputs = reader.read(TREES).batch(np.arange(4))
    outputs = ["arcs", "label_heads", "label_modifiers", "tags"]
    found = [Session(each, reader.inputs, outputs).run(inputs) for each in (own, theirs)]
    tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
    on_torch = [TorchSession(each, torch.device("cpu")).run(tensors) for each in (own, theirs)]
    for output in outputs:
        np.testing.assert_array_equal(found[0][output], found[1][output])
        np.testing.assert_array_equal(on_torch[0][output].numpy(), on_torch[1][output].numpy())


def test_a_network_without_tags_or_labels():
    from headway.neural.encoders.lstm import LstmEncoder
    from headway.neural.lexicon import LexiconReader
    from headway.neural.network import Network

    reader = LexiconReader.learn(TREES, tags=False)
    network = Network(LstmEncoder(reader.sizes, embedding=8, hidden=8, layers=1), {}, arc_size=8).eval()
    graphs = export(network, quantised=False)
    assert graphs.labels is None
    session = Session(graphs.network, reader.inputs, ["arcs"])
    reading = reader.read(TREES)
    inputs = reading.batch(np.array([0, 1]))
    expected = torch_outputs(network, inputs)["arcs"]
    lengths = reading.lengths[:2]
    np.testing.assert_allclose(
        cells("arcs", session.run(inputs)["arcs"], lengths), cells("arcs", expected, lengths), atol=1e-4
    )
