"""A trained network as ONNX graphs, so that parsing needs no torch.

There are two: from what the reader makes of a batch to the scores of arcs, the words in their roles for labels, and the
scores of tags; and, for words with their chosen heads, to the scores of labels. They compute what
`headway.neural.network.Network` computes, with the matrices that multiply the same thing joined to one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto
from torch import Tensor, nn

from headway.neural.encoders.lstm import LstmEncoder
from headway.neural.encoders.transformer import TransformerEncoder
from headway.neural.export_transformer import transformer
from headway.neural.graph import GraphBuilder, Weights, array_of, without_root
from headway.neural.lexicon import WIDTHS
from headway.neural.network import Network

_INTEGERS, _FLOAT, _INT32 = TensorProto.INT64, TensorProto.FLOAT, TensorProto.INT32


@dataclass(frozen=True)
class Graphs:
    """Two ONNX files; `labels` is None where there is nothing to choose from."""

    network: bytes
    labels: bytes | None


def export(network: Network, *, quantised: bool) -> Graphs:
    """The graphs of a network, whose weights take one byte each where they are `quantised`."""
    labels = _labels(network, quantised=quantised) if network.labels.shape[0] else None
    return Graphs(_network(network, quantised=quantised), labels)


def _network(network: Network, *, quantised: bool) -> bytes:
    graph = GraphBuilder(quantised=quantised)
    words = _with_root(graph, _encoder(graph, network.encoder), network.root)
    roles = [network.arc_heads, network.arc_modifiers]
    if network.labels.shape[0]:
        roles += [network.label_heads, network.label_modifiers]
    layers = [*(role.linear for role in roles), *network.tags.values()]
    weights, bias = (
        np.concatenate([array_of(getattr(layer, name)) for layer in layers]) for name in ("weight", "bias")
    )
    sizes = [role.linear.out_features for role in roles]
    tags = len(bias) - sum(sizes)
    found = graph.linear(words, weights, bias)
    if tags:
        found, scores = graph.split("Split", found, graph.integers(sum(sizes), tags), parts=2, axis=2)
        graph.output(scores, "tags", ("batch", "nodes", tags))
    active = graph.apply("LeakyRelu", found, alpha=0.1)
    heads, modifiers, *others = graph.split("Split", active, graph.integers(*sizes), parts=len(sizes), axis=2)
    scaled = graph.linear(
        modifiers, array_of(network.arcs).T / np.float32(len(network.arcs) ** 0.5), array_of(network.arc_bias)
    )
    arcs = graph.apply("MatMul", heads, graph.apply("Transpose", scaled, perm=[0, 2, 1]))
    graph.output(arcs, "arcs", ("batch", "nodes", "nodes"))
    for name, role in zip(("label_heads", "label_modifiers"), others, strict=False):
        graph.output(role, name, ("batch", "nodes", sizes[-1]))
    return graph.build()


def _labels(network: Network, *, quantised: bool) -> bytes:
    """Scores (M, L) of labels for M words as modifiers and their heads, each (M, D).

    m' V_l h, for V (L, D+1, D+1), is a product with m for each l and h_j, then one with h; the last column is apart.
    """
    weights = array_of(network.labels) * np.float32(network.labels.shape[1] ** -0.5)
    count, size = weights.shape[0], weights.shape[1] - 1
    graph = GraphBuilder(quantised=quantised)
    heads, modifiers = (graph.input(name, _FLOAT, ("words", size)) for name in ("heads", "modifiers"))
    joined = np.concatenate([weights[:, :, :size].transpose(0, 2, 1).reshape(-1, size + 1), weights[:, :, size]])
    products = graph.linear(modifiers, joined[:, :size], joined[:, size])
    by_head, alone = graph.split("Split", products, graph.integers(count * size, count), parts=2, axis=1)
    by_label = graph.apply("Reshape", by_head, graph.integers(0, count, size))
    column = graph.apply("Unsqueeze", heads, graph.integers(2))
    scores = graph.apply("Squeeze", graph.apply("MatMul", by_label, column), graph.integers(2))
    graph.output(graph.apply("Add", scores, alone), "labels", ("words", count))
    return graph.build()


def _encoder(graph: GraphBuilder, encoder: nn.Module) -> str:
    """Vectors (B, N, D) of words, without the root."""
    if isinstance(encoder, LstmEncoder):
        return _lstm(graph, encoder)
    assert isinstance(encoder, TransformerEncoder)
    return transformer(graph, encoder)


def _with_root(graph: GraphBuilder, words: str, root: Tensor) -> str:
    size = root.shape[0]
    count = graph.apply("Shape", words, start=0, end=1)
    shape = graph.apply("Concat", count, graph.integers(1, size), axis=0)
    return graph.apply("Concat", graph.apply("Expand", graph.constant(array_of(root)), shape), words, axis=1)


def _lstm(graph: GraphBuilder, encoder: LstmEncoder) -> str:
    columns = {
        name: graph.input(name, _INTEGERS, ("batch", "nodes", *((WIDTHS[name],) if name in WIDTHS else ())))
        for name in encoder.columns
    }
    words = without_root(graph, columns["words"])
    known = graph.apply("Cast", graph.apply("Greater", words, graph.integers(0)), to=_INT32)
    lengths = graph.apply("ReduceSum", known, graph.integers(1), keepdims=0)
    x = graph.apply("Concat", *(_column(graph, encoder, *column) for column in columns.items()), axis=2)
    x = graph.apply("Transpose", x, perm=[1, 0, 2])
    there: Any
    back: Any
    for there, back in zip(encoder.forwards, encoder.backwards, strict=True):
        given, recurrent = (
            graph.table(np.stack([_gates(getattr(each, name)) for each in (there, back)]))
            for name in ("weight_ih_l0", "weight_hh_l0")
        )
        bias = np.stack([np.concatenate([_gates(each.bias_ih_l0), _gates(each.bias_hh_l0)]) for each in (there, back)])
        size = there.hidden_size
        operands = (x, given, recurrent, graph.constant(bias), lengths)
        found = graph.apply("LSTM", *operands, hidden_size=size, direction="bidirectional")
        x = graph.apply("Transpose", found, perm=[0, 2, 1, 3])
        x = graph.apply("Reshape", x, graph.integers(0, 0, 2 * size))
    return graph.apply("Transpose", x, perm=[1, 0, 2])


def _column(graph: GraphBuilder, encoder: LstmEncoder, name: str, numbers: str) -> str:
    """The vectors (B, N, D) of one column."""
    own = without_root(graph, numbers)
    table = encoder.embeddings[name]
    assert isinstance(table, nn.Embedding)
    found = graph.rows(array_of(table.weight), own)
    if name == "feats":
        return graph.apply("ReduceSum", found, graph.integers(2), keepdims=0)
    if name != "characters":
        return found
    convolution: Any = encoder.convolution
    letters = graph.apply("Reshape", found, graph.integers(-1, WIDTHS[name], table.embedding_dim))
    letters = graph.apply("Transpose", letters, perm=[0, 2, 1])
    weights, bias = (graph.constant(array_of(each)) for each in (convolution.weight, convolution.bias))
    made = graph.apply("Conv", letters, weights, bias, pads=[convolution.padding[0]] * 2)
    most = graph.apply("ReduceMax", made, graph.integers(2), keepdims=0)
    shape = graph.apply(
        "Concat", graph.apply("Shape", own, start=0, end=2), graph.integers(convolution.out_channels), axis=0
    )
    return graph.apply("Reshape", most, shape)


def _gates(weights: Any) -> Weights:
    """torch's gates are input, forget, cell, output; ONNX has input, output, forget, cell."""
    given, forget, cell, output = np.split(array_of(weights), 4)
    return np.concatenate([given, output, forget, cell])
