"""Pretrained encoders as part of an ONNX graph: from subwords to the vectors of words."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from headway.neural.encoders.bert import BertEncoder
from headway.neural.encoders.modernbert import ModernBertEncoder
from headway.neural.encoders.mpnet import MpnetEncoder, buckets
from headway.neural.encoders.transformer import TransformerEncoder
from headway.neural.graph import RUNTIME, GraphBuilder, array_of, without_root

_INTEGERS, _FLOAT, _INT32 = TensorProto.INT64, TensorProto.FLOAT, TensorProto.INT32
_NEVER = -1e9  # added to the score of what is not to be looked at


def transformer(graph: GraphBuilder, encoder: TransformerEncoder) -> str:
    """Vectors (B, N, D) of words, without the root: the mean of each word's first and last subword."""
    model = encoder.model
    subwords = graph.input("subwords", _INTEGERS, ("windows", "subwords"))
    words = without_root(graph, graph.input("words", _INTEGERS, ("batch", "nodes", 2)))
    there = graph.apply("Not", graph.apply("Equal", subwords, graph.integers(model.padding)))
    mask = graph.apply("Cast", there, to=_INT32)
    shapes = graph.input("shapes", _INTEGERS, ("windows", "subwords"))
    added = graph.rows(array_of(encoder.shapes.weight), shapes)
    if isinstance(model, ModernBertEncoder):
        x = _modernbert(graph, model, subwords, added, mask)
    elif isinstance(model, MpnetEncoder):
        x = _mpnet(graph, model, subwords, added, mask)
    else:
        x = _bert(graph, model, subwords, added, mask)
    return word_vectors(graph, x, words, model.size)


def word_vectors(graph: GraphBuilder, x: str, words: str, size: int) -> str:
    """Of subwords (windows, T, D) the two that stand for each word (B, N, 2), and their mean (B, N, D)."""
    flat = graph.apply("Reshape", x, graph.integers(-1, size))
    return graph.apply("ReduceMean", graph.apply("Gather", flat, words, axis=0), graph.integers(2), keepdims=0)


def _bert(graph: GraphBuilder, model: BertEncoder, subwords: str, added: str, mask: str) -> str:
    tables = model.embeddings
    types = array_of(tables.token_type_embeddings.weight)[0]
    places = array_of(tables.position_embeddings.weight)[tables.first :] + types
    x = _embeddings(graph, tables, subwords, added, places)
    if hasattr(model, "embeddings_project"):
        x = _linear(graph, model.embeddings_project, x)
    layers: Any = model.encoder.layer
    for layer in layers:
        own = layer.attention["self"]
        seen = _attention(graph, x, (own.query, own.key, own.value), own.heads, mask)
        closing = layer.attention["output"]
        x = _normalised(graph, closing.LayerNorm, graph.apply("Add", _linear(graph, closing.dense, seen), x))
        x = _two_layers(graph, layer, x)
    return x


def _mpnet(graph: GraphBuilder, model: MpnetEncoder, subwords: str, added: str, mask: str) -> str:
    tables = model.embeddings
    places = array_of(tables.position_embeddings.weight)[tables.first :]
    x = _embeddings(graph, tables, subwords, added, places)
    length = graph.apply("Shape", subwords, start=1, end=2)
    size = graph.apply("Concat", length, length, axis=0)
    numbers = graph.constant(buckets(len(places)).numpy())
    numbers = graph.apply("Slice", numbers, graph.integers(0, 0), size, graph.integers(0, 1))
    rows = graph.rows(array_of(model.encoder.relative_attention_bias.weight), numbers)
    bias = graph.apply("Unsqueeze", graph.apply("Transpose", rows, perm=[2, 0, 1]), graph.integers(0))
    layers: Any = model.encoder.layer
    for layer in layers:
        own = layer.attention.attn
        seen = _attention(graph, x, (own.q, own.k, own.v), own.heads, mask, bias)
        x = _normalised(graph, layer.attention.LayerNorm, graph.apply("Add", _linear(graph, own.o, seen), x))
        x = _two_layers(graph, layer, x)
    return x


def _modernbert(graph: GraphBuilder, model: ModernBertEncoder, subwords: str, added: str, mask: str) -> str:
    tables = model.embeddings
    x = graph.apply("Add", graph.rows(array_of(tables.tok_embeddings.weight), subwords), added)
    x = _normalised(graph, tables.norm, x)
    around = {layer.attn.around for layer in _layers(model)} - {None}
    near = {each: _near(graph, subwords, each, len(_layers(model)[0].attn.rotation.cosines)) for each in around}
    turns: dict[bytes, list[str]] = {}
    for number, layer in enumerate(_layers(model)):
        own = layer.attn
        given = _linear(graph, own.Wqkv, _normalised(graph, layer.attn_norm, x) if number else x)
        q, k, v = graph.split("Split", given, graph.integers(*[model.size] * 3), parts=3, axis=2)
        angles = [array_of(each) for each in (own.rotation.cosines, own.rotation.sines)]
        key = angles[0].tobytes()
        if key not in turns:
            turns[key] = [graph.integers(0), *map(graph.constant, angles)]
        q, k = (graph.apply("RotaryEmbedding", part, *turns[key], domain=RUNTIME) for part in (q, k))
        more = () if own.around is None else (near[own.around],)
        seen = graph.apply("MultiHeadAttention", q, k, v, "", mask, *more, domain=RUNTIME, num_heads=own.heads)
        x = graph.apply("Add", x, _linear(graph, own.Wo, seen))
        wide = _linear(graph, layer.mlp.Wi, _normalised(graph, layer.mlp_norm, x))
        half = layer.mlp.Wo.in_features
        inner, gate = graph.split("Split", wide, graph.integers(half, half), parts=2, axis=2)
        gated = graph.apply("Mul", graph.apply("Gelu", inner), gate)
        x = graph.apply("Add", x, _linear(graph, layer.mlp.Wo, gated))
    return _normalised(graph, model.final_norm, x)


def _layers(model: ModernBertEncoder) -> list[Any]:
    return list(model.layers)


def _near(graph: GraphBuilder, subwords: str, around: int, longest: int) -> str:
    """What is added to the scores of attention (1, 1, T, T): much below zero for subwords too far apart."""
    place = np.arange(longest, dtype=np.float32)
    length = graph.apply("Shape", subwords, start=1, end=2)
    row, column = (
        graph.apply("Slice", graph.constant(place.reshape(shape)), graph.integers(0), length, graph.integers(axis))
        for shape, axis in (((1, 1, 1, -1), 3), ((1, 1, -1, 1), 2))
    )
    distance = graph.apply("Abs", graph.apply("Sub", row, column))
    far = graph.apply("Greater", distance, graph.constant(np.array([around], np.float32)))
    return graph.apply("Mul", graph.apply("Cast", far, to=_FLOAT), graph.constant(np.array([_NEVER], np.float32)))


def _embeddings(graph: GraphBuilder, tables: Any, subwords: str, added: str, places: Any) -> str:
    length = graph.apply("Shape", subwords, start=1, end=2)
    x = graph.apply("Add", graph.rows(array_of(tables.word_embeddings.weight), subwords), added)
    x = graph.apply("Add", x, graph.first_rows(places, length))
    return _normalised(graph, tables.LayerNorm, x)


def _attention(graph: GraphBuilder, x: str, parts: tuple[Any, ...], heads: int, mask: str, *bias: str) -> str:
    """Queries, keys and values are one product."""
    weights, own = (np.concatenate([array_of(getattr(part, name)) for part in parts]) for name in ("weight", "bias"))
    three = graph.integers(*[len(weights) // 3] * 3)
    q, k, v = graph.split("Split", graph.linear(x, weights, own), three, parts=3, axis=2)
    return graph.apply("MultiHeadAttention", q, k, v, "", mask, *bias, domain=RUNTIME, num_heads=heads)


def _two_layers(graph: GraphBuilder, layer: Any, x: str) -> str:
    """BERT's network behind attention, what came before added, normalised."""
    active = graph.apply("Gelu", _linear(graph, layer.intermediate["dense"], x))
    found = _linear(graph, layer.output.dense, active)
    return _normalised(graph, layer.output.LayerNorm, graph.apply("Add", found, x))


def _linear(graph: GraphBuilder, layer: Any, x: str) -> str:
    return graph.linear(x, array_of(layer.weight), None if layer.bias is None else array_of(layer.bias))


def _normalised(graph: GraphBuilder, norm: Any, x: str) -> str:
    weights = [graph.constant(array_of(each)) for each in (norm.weight, norm.bias) if each is not None]
    return graph.apply("LayerNormalization", x, *weights, axis=-1, epsilon=norm.eps)
