"""A graph that runs on torch, on any device: the same operations on the same weights as on ONNX Runtime.

Weights of one byte stay the whole numbers they are, and so do the inputs of layers that are rounded to bytes. As
floats of ten bits or more they are exact, so that a GPU may multiply them as TF32, which is fast, and adds up what the
CPU adds up: both give the same scores but for the last bits. All other numbers are float32.

Shapes and axes are known to the host, as arrays; everything else are tensors on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import conv1d, gelu, layer_norm, leaky_relu, scaled_dot_product_attention

from headway.errors import ArchiveError
from headway.neural.graph_reader import Graph, Node, read_graph

Value = Any  # a tensor on the device, an array that the host knows, or a module made of weights


class TorchSession:
    """What `headway.neural.session.Session` is for ONNX Runtime; its outputs stay on the device."""

    def __init__(self, graph: bytes, device: torch.device) -> None:
        read = read_graph(graph)
        self._outputs = read.outputs
        with _failures():
            constants = {name: _constant(array, device) for name, array in read.constants.items()}
            self._constants, self._nodes = _computed_once(read, constants)

    @torch.inference_mode()
    def run(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The outputs by name."""
        values: dict[str, Value] = {**self._constants, **inputs}
        with _failures(), _exact():
            for node in self._nodes:
                _compute(node, values)
            return {name: values[name] for name in self._outputs}


@contextmanager
def _failures() -> Iterator[None]:
    """One sentence for what a damaged graph runs into; a GPU without memory is another matter."""
    try:
        yield
    except torch.cuda.OutOfMemoryError:
        raise
    except (RuntimeError, LookupError, TypeError, ValueError, AttributeError) as error:
        cause = " ".join(str(error).split())[:120]
        raise ArchiveError(f"the network of the model cannot be run ({cause}); save the model again") from None


def _constant(array: NDArray[Any], device: torch.device) -> Value:
    return array if array.dtype == np.int64 else torch.from_numpy(array.astype(np.float32)).to(device)


def _computed_once(graph: Graph, constants: dict[str, Value]) -> tuple[dict[str, Value], list[Node]]:
    """What depends on weights alone, and the operations that remain."""
    known, remaining = {**constants, "": None}, []
    for node in graph.nodes:
        if all(name in known for name in node.inputs):
            _compute(node, known)
        elif node.operation == "LSTM":
            remaining.append(_with_module(node, known))
        else:
            remaining.append(node)
    return known, remaining


def _with_module(node: Node, known: dict[str, Value]) -> Node:
    """The same operation, for which the weights are put together now."""
    given, weights, recurrent, bias, lengths = node.inputs
    name = f"{node.outputs[0]} module"
    known[name] = _lstm_module(known[weights], known[recurrent], known[bias])
    return Node(node.operation, (given, name, lengths), node.outputs, node.attributes)


def _compute(node: Node, values: dict[str, Value]) -> None:
    found = _OPERATIONS[node.operation]([values[name] for name in node.inputs], node.attributes)
    values.update(zip(node.outputs, found if isinstance(found, tuple) else (found,), strict=True))


@contextmanager
def _exact() -> Iterator[None]:
    """Full precision, whatever the user has chosen for other networks."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def _whole_product(x: Tensor, weights: Tensor) -> Tensor:
    """The product of whole numbers, exact in TF32."""
    torch.set_float32_matmul_precision("high")
    product = x @ weights
    torch.set_float32_matmul_precision("highest")
    return product


def _integer_layer(given: Sequence[Value], _: Mapping[str, Any]) -> Tensor:
    x, weights, _one, scales, middle = given
    product: Tensor = _whole_product(x - middle, weights) * scales
    return product


def _quantized(given: Sequence[Value], _: Mapping[str, Any]) -> Tensor:
    x, scale, middle = given  # of each row; older models have one of each
    rounded: Tensor = ((x / scale.reshape(-1, 1)).round() + middle.reshape(-1, 1)).clamp(0, 255)
    return rounded


def _concatenated(given: Sequence[Value], options: Mapping[str, Any]) -> Value:
    if all(isinstance(each, np.ndarray) for each in given):
        return np.concatenate(given, axis=options["axis"])
    return torch.cat(list(given), dim=options["axis"])


def _shape(given: Sequence[Value], options: Mapping[str, Any]) -> NDArray[np.int64]:
    return np.array(given[0].shape[options.get("start", 0) : options.get("end")], np.int64)


def _slice(given: Sequence[Value], _: Mapping[str, Any]) -> Value:
    x, starts, ends, axes = given
    where = [slice(None)] * x.ndim
    for start, end, axis in zip(starts.tolist(), ends.tolist(), axes.tolist(), strict=True):
        where[axis] = slice(start, end)
    return x[tuple(where)]


def _reshaped(given: Sequence[Value], _: Mapping[str, Any]) -> Tensor:
    x, wanted = given
    found: Tensor = x.reshape([size or x.shape[axis] for axis, size in enumerate(wanted.tolist())])
    return found


def _without_axes(given: Sequence[Value], _: Mapping[str, Any]) -> Tensor:
    found: Tensor = given[0].squeeze(tuple(given[1].tolist()))
    return found


def _with_axis(given: Sequence[Value], _: Mapping[str, Any]) -> Tensor:
    [axis] = given[1].tolist()
    found: Tensor = given[0].unsqueeze(axis)
    return found


def _split(given: Sequence[Value], options: Mapping[str, Any]) -> tuple[Tensor, ...]:
    parts: tuple[Tensor, ...] = given[0].split(given[1].tolist(), dim=options["axis"])
    return parts


def _gathered(given: Sequence[Value], options: Mapping[str, Any]) -> Tensor:
    table, numbers = given
    if options["axis"] != 0:
        raise ValueError("rows are taken along another axis than the first")
    where = torch.tensor(numbers, device=table.device) if isinstance(numbers, np.ndarray) else numbers
    found: Tensor = table[where]
    return found


def _reduced(function: Callable[..., Tensor]) -> Callable[[Sequence[Value], Mapping[str, Any]], Tensor]:
    def reduce(given: Sequence[Value], options: Mapping[str, Any]) -> Tensor:
        return function(given[0], dim=tuple(given[1].tolist()), keepdim=bool(options["keepdims"]))

    return reduce


def _normalised(given: Sequence[Value], options: Mapping[str, Any]) -> Tensor:
    x, weights, *bias = given
    return layer_norm(x, x.shape[-1:], weights, bias[0] if bias else None, options["epsilon"])


def _attention(given: Sequence[Value], options: Mapping[str, Any]) -> Tensor:
    q, k, v, _, mask, *more = given
    heads = options["num_heads"]
    q, k, v = (part.unflatten(2, (heads, -1)).transpose(1, 2) for part in (q, k, v))
    allowed = (mask > 0)[:, None, None, :]
    if more:  # what is added to the scores
        allowed = torch.where(allowed, more[0], -torch.inf)
    return scaled_dot_product_attention(q, k, v, attn_mask=allowed).transpose(1, 2).flatten(2)


def _rotated(given: Sequence[Value], _: Mapping[str, Any]) -> Tensor:
    """Each head's first half of dimensions turned with its second, by the angle of the position; from 0 on."""
    x, start, cosines, sines = given
    if start.tolist() != [0]:
        raise ValueError("positions that do not begin at 0")
    cosines, sines = (table[: x.shape[1], None] for table in (cosines, sines))
    one, two = x.unflatten(2, (-1, 2 * cosines.shape[2])).chunk(2, dim=3)
    return torch.cat([one * cosines - two * sines, two * cosines + one * sines], dim=3).flatten(2)


def _convolved(given: Sequence[Value], options: Mapping[str, Any]) -> Tensor:
    before, after = options["pads"]
    return conv1d(nn.functional.pad(given[0], (before, after)), given[1], given[2])


def _lstm_module(weights: Tensor, recurrent: Tensor, bias: Tensor) -> nn.LSTM:
    """Of ONNX's weights (2, 4H, I), (2, 4H, H), (2, 8H)."""
    module = nn.LSTM(weights.shape[2], recurrent.shape[2], batch_first=False, bidirectional=True)
    state: dict[str, Tensor] = {}
    for direction, end in enumerate(("", "_reverse")):
        given, own = bias[direction].chunk(2)
        parts = {"weight_ih": weights[direction], "weight_hh": recurrent[direction], "bias_ih": given, "bias_hh": own}
        state |= {f"{name}_l0{end}": _gates(part) for name, part in parts.items()}
    module.load_state_dict(state)
    return module.to(weights.device)


def _gates(weights: Tensor) -> Tensor:
    """ONNX's gates are input, output, forget, cell; torch has input, forget, cell, output."""
    given, output, forget, cell = weights.chunk(4)
    return torch.cat([given, forget, cell, output])


def _lstm(given: Sequence[Value], _: Mapping[str, Any]) -> Tensor:
    """(T, 2, B, H)."""
    x, module, lengths = given
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths.long().clamp(min=1).cpu(), enforce_sorted=False)
    found, _lengths = nn.utils.rnn.pad_packed_sequence(module(packed)[0], total_length=len(x))
    both: Tensor = found.unflatten(2, (2, -1)).transpose(1, 2)
    return both


def _number(value: Value) -> Value:
    """What a tensor is compared with."""
    return value.item() if isinstance(value, np.ndarray) else value


_OPERATIONS: dict[str, Callable[[Sequence[Value], Mapping[str, Any]], Value]] = {
    "Abs": lambda given, _: given[0].abs(),
    "Add": lambda given, _: given[0] + given[1],
    "Cast": lambda given, _: given[0].float(),
    "Concat": _concatenated,
    "Conv": _convolved,
    "Div": lambda given, _: given[0] / given[1],
    "Equal": lambda given, _: given[0] == _number(given[1]),
    "Expand": lambda given, _: given[0].expand(given[1].tolist()),
    "Gather": _gathered,
    "Gelu": lambda given, _: gelu(given[0]),
    "Greater": lambda given, _: given[0] > _number(given[1]),
    "Identity": lambda given, _: given[0],
    "LSTM": _lstm,
    "LayerNormalization": _normalised,
    "LeakyRelu": lambda given, options: leaky_relu(given[0], options["alpha"]),
    "MatMul": lambda given, _: given[0] @ given[1],
    "MatMulIntegerToFloat": _integer_layer,
    "Mul": lambda given, _: given[0] * given[1],
    "MultiHeadAttention": _attention,
    "Not": lambda given, _: ~given[0],
    "QuantizeLinear": _quantized,
    "ReduceMax": _reduced(torch.amax),
    "ReduceMean": _reduced(torch.mean),
    "ReduceSum": _reduced(torch.sum),
    "Reshape": _reshaped,
    "RotaryEmbedding": _rotated,
    "Shape": _shape,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _without_axes,
    "Sub": lambda given, _: given[0] - given[1],
    "Transpose": lambda given, options: given[0].permute(options["perm"]),
    "Unsqueeze": _with_axis,
}
