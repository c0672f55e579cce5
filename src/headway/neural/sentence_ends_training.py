"""Learns where sentences end from what a trained parser's encoder sees: the network of `sentence_ends.py`.

The encoder itself learns nothing. The network learns from the drafts that the splitter makes of the treebank's text, as
it is and laid out in lines. But the splitter has learnt these sentences by heart, and what it says of them is worth
nothing: so the documents are dealt into `FOLDS` parts, and the drafts of each come from a splitter that learnt from the
others (a jack-knife). There is more in them than the doubt of a parser (`LEARNT_FROM`): the network learns from easy
places, too. The loss is the cross-entropy of an end at every joint; the result has the average of the weights
over the last steps, rounded to bytes. About four minutes of a laptop for 200,000 words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from headway.errors import TrainingError
from headway.neural.export_transformer import word_vectors
from headway.neural.graph import GraphBuilder, array_of, without_root
from headway.neural.model import NeuralModel
from headway.neural.reading import groups_by_size
from headway.neural.sentence_ends import MIDDLE, OUTPUTS, SIGNALS, SentenceEnds, joints_of, signals_of
from headway.neural.session import Session
from headway.neural.subwords import SubwordReader
from headway.text.layouts import laid_out
from headway.text.segmenter import Segmenter, sentence_end_weights
from headway.treebank import Sentence
from headway.treebank.annotations import Doubt, offsets_of
from headway.treebank.raw_text import SENTENCE, RawText, raw_text

DOUBT, ABOVE = Doubt(-100, 40), 0.25
LEARNT_FROM = Doubt(-10_000, 80)
FOLDS, SEED_OF_FOLDS, SEEDS_OF_LINES = 5, 7, (101, 102)
CHANNELS, WINDOW, DROPOUT = 128, 5, 0.3
PASSES, RATE, DECAY, CELLS, WARM_UP, AVERAGING = 4, 2e-3, 0.01, 1500, 200, 0.995
_MOST = 512  # subwords read at once
_FLOAT, _INTEGERS = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64

Floats = NDArray[np.float32]


def with_sentence_ends(
    model: NeuralModel, segmenter: Segmenter, train: Sequence[Sentence], seed: int = 0
) -> NeuralModel:
    """The model with a network for the drafts of this splitter, both learnt from these sentences."""
    able, size = with_middle(model)
    examples = [example for source, own in jack_knifed(segmenter, train) for example in read(able, own, source)]
    if not examples:
        raise TrainingError("sentence ends are learnt from several documents (comments newdoc); give more of them")
    ends = SentenceEnds.of_graph(graph_of(trained(examples, size, seed), size), DOUBT, ABOVE)
    return replace(able, ends=ends)


def with_middle(model: NeuralModel) -> tuple[NeuralModel, int]:
    """The model whose network has the vectors of its encoder's lower third as an output, and their size.

    A transformer has a norm after the embeddings, and two in every layer.
    """
    network = onnx.load_model_from_string(model.network.graph)
    norms = [node for node in network.graph.node if node.op_type == "LayerNormalization"]
    layers = (len(norms) - 1) // 2
    if layers < 1 or len(norms) != 2 * layers + 1:
        raise TrainingError("sentence ends are learnt from a transformer's layers, and this has none; leave them out")
    norm = norms[2 * max(1, layers // 3)]
    [size] = next(each.dims for each in network.graph.initializer if each.name == norm.input[1])
    outputs = [output for output in model.network.outputs if output != MIDDLE]
    if len(outputs) == len(model.network.outputs):
        network.graph.node.append(onnx.helper.make_node("Identity", [norm.output[0]], [MIDDLE]))
        shape = ("windows", "subwords", size)
        network.graph.output.append(onnx.helper.make_tensor_value_info(MIDDLE, _FLOAT, shape))
    content: bytes = network.SerializeToString(deterministic=True)
    return replace(model, network=Session(content, model.network.inputs, (*outputs, MIDDLE))), size


def jack_knifed(segmenter: Segmenter, sentences: Sequence[Sentence]) -> Iterator[tuple[RawText, list[Sentence]]]:
    """Texts, and the drafts of a splitter that has not seen them."""
    every = documents(sentences)
    folds = np.random.default_rng(SEED_OF_FOLDS).integers(0, FOLDS, len(every)).tolist()
    for fold in range(FOLDS):
        seen = [one for own, number in zip(every, folds, strict=True) if number != fold for one in own]
        held = [one for own, number in zip(every, folds, strict=True) if number == fold for one in own]
        if not seen or not held:
            continue
        source = raw_text(held)
        splitter = replace(segmenter, sentence_ends=sentence_end_weights(raw_text(seen)))
        for text in (source, *(laid_out(source, seed) for seed in SEEDS_OF_LINES)):
            yield text, splitter.drafts(text.text, LEARNT_FROM)


def documents(sentences: Sequence[Sentence]) -> list[list[Sentence]]:
    """The sentences of each document of a treebank, by the comments `newdoc`."""
    found: list[list[Sentence]] = []
    for sentence in sentences:
        if not found or any(comment.startswith("# newdoc") for comment in sentence.layout.comments):
            found.append([])
        found[-1].append(sentence)
    return found


@dataclass(frozen=True)
class Example:
    """A draft: its words' vectors (n, D), what the splitter knows, where sentences end, and which places count."""

    vectors: NDArray[np.float16]
    signals: Floats
    gold: NDArray[np.bool_]
    counts: NDArray[np.bool_]


def read(model: NeuralModel, drafts: Sequence[Sentence], source: RawText) -> Iterator[Example]:
    """What there is to learn from the drafts of a text: those with a joint."""
    some = [draft for draft in drafts if joints_of([draft], len(draft)).any()]
    assert isinstance(model.reader, SubwordReader)
    reading = model.reader.read(some)
    for which in groups_by_size(reading.sizes, _MOST):
        inputs = reading.batch(which)
        vectors = model.network.run(inputs, [MIDDLE])[MIDDLE]
        flat = vectors.reshape(-1, vectors.shape[-1])
        for draft, places in zip([some[i] for i in which.tolist()], inputs["words"][:, 1:], strict=True):
            n = len(draft)
            ends = [end - 1 for _, end in offsets_of(draft) or ()]
            yield Example(
                flat[places[:n]].mean(axis=1).astype(np.float16),
                signals_of([draft.layout.joints], n)[0],
                source.ends[ends] == SENTENCE,
                joints_of([draft], n)[0],
            )


class Ends(nn.Module):
    """The log-odds of a sentence end after every word (B, N), from vectors (B, N, D) and signals (B, N, SIGNALS)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.dropout, self.project = nn.Dropout(DROPOUT), nn.Linear(size, CHANNELS)
        self.near = nn.Conv1d(CHANNELS + SIGNALS, CHANNELS, WINDOW, padding=WINDOW // 2)
        self.far = nn.Conv1d(CHANNELS, CHANNELS, WINDOW, padding=WINDOW // 2)
        self.score = nn.Linear(CHANNELS + SIGNALS, 1)

    def forward(self, vectors: Tensor, signals: Tensor) -> Tensor:
        there, gelu = signals[..., -1:], nn.functional.gelu
        x = torch.cat([gelu(self.project(self.dropout(vectors))) * there, signals], -1)
        x = gelu(self.near(self.dropout(x).transpose(1, 2))).transpose(1, 2) * there
        x = x + gelu(self.far(self.dropout(x).transpose(1, 2))).transpose(1, 2)
        found: Tensor = self.score(torch.cat([self.dropout(x), signals], -1))[..., 0]
        return found


def graph_of(network: Ends, size: int) -> bytes:
    """The same on the vectors of subwords, with weights of one byte."""
    graph = GraphBuilder(quantised=True)
    middle = graph.input(MIDDLE, _FLOAT, ("windows", "subwords", size))
    words = without_root(graph, graph.input("words", _INTEGERS, ("batch", "nodes", 2)))
    signals = graph.input("signals", _FLOAT, ("batch", "words", SIGNALS))
    last = graph.integers(SIGNALS - 1), graph.integers(SIGNALS), graph.integers(2)
    there = graph.apply("Slice", signals, *last)

    def linear(x: str, layer: nn.Linear) -> str:
        weights = graph.apply("Transpose", graph.table(array_of(layer.weight)), perm=[1, 0])
        return graph.apply("Add", graph.apply("MatMul", x, weights), graph.constant(array_of(layer.bias)))

    def around(x: str, layer: nn.Conv1d) -> str:
        assert layer.bias is not None
        own = graph.table(array_of(layer.weight)), graph.constant(array_of(layer.bias))
        turned = graph.apply("Transpose", x, perm=[0, 2, 1])
        made = graph.apply("Gelu", graph.apply("Conv", turned, *own, pads=[WINDOW // 2] * 2))
        return graph.apply("Transpose", made, perm=[0, 2, 1])

    x = graph.apply("Gelu", linear(word_vectors(graph, middle, words, size), network.project))
    x = graph.apply("Concat", graph.apply("Mul", x, there), signals, axis=2)
    x = graph.apply("Mul", around(x, network.near), there)
    x = graph.apply("Add", x, around(x, network.far))
    found = linear(graph.apply("Concat", x, signals, axis=2), network.score)
    graph.output(graph.apply("Squeeze", found, graph.integers(2)), OUTPUTS[0], ("batch", "words"))
    return graph.build()


def trained(examples: Sequence[Example], size: int, seed: int) -> Ends:
    """The average of the weights over the last steps."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    network = Ends(size)
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=DECAY)
    average = torch.optim.swa_utils.AveragedModel(
        network, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(AVERAGING)
    )
    groups = list(groups_by_size(np.array([len(example.gold) for example in examples], np.int64), CELLS))
    step, steps = 0, PASSES * len(groups)
    network.train()
    for _ in range(PASSES):
        for number in rng.permutation(len(groups)).tolist():
            vectors, signals, gold, counts = batch_of([examples[i] for i in groups[number].tolist()])
            step += 1
            optimiser.param_groups[0]["lr"] = RATE * min(step / WARM_UP, 1 - step / (steps + 1))
            losses = nn.functional.binary_cross_entropy_with_logits(network(vectors, signals), gold, reduction="none")
            optimiser.zero_grad()
            ((losses * counts).sum() / counts.sum().clamp(min=1)).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            average.update_parameters(network)
    found = average.module
    assert isinstance(found, Ends)
    return found.eval()


def batch_of(examples: Sequence[Example]) -> tuple[Tensor, ...]:
    """Vectors, signals, where sentences end and which places count, each padded."""
    width = max(len(example.gold) for example in examples)

    def padded(rows: Sequence[NDArray[np.generic]]) -> Tensor:
        made = np.zeros((len(rows), width, *rows[0].shape[1:]), np.float32)
        for row, own in zip(made, rows, strict=True):
            row[: len(own)] = own
        return torch.from_numpy(made)

    columns = zip(*((one.vectors, one.signals, one.gold, one.counts) for one in examples), strict=True)
    return tuple(padded(rows) for rows in columns)
