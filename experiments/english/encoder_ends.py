"""Sentence ends by the encoder of `en`: trains a network that looks again at what a splitter finds.

python experiments/english/encoder_ends.py --data UD_English-EWT --choose               # figures on held-out documents
python experiments/english/encoder_ends.py --data UD_English-EWT [--seed 1]             # figures on dev
python experiments/english/encoder_ends.py --data UD_English-EWT --into model.headway   # and into the model

The network reads the second layer around tokens after which the splitter is in doubt (`headway.neural.sentence_ends`).
The encoder learns nothing. Training text is that of the treebank's training part, as it is and in lines, cut into
pieces at random. The splitter has learnt these sentences by heart, so its score of a token, which the network sees,
comes from a splitter that learnt from four fifths of the documents, the token's not among them.

With `--choose` the network learns from four fifths of the documents, too, and the others show what the limits of doubt
are worth; the development part is not looked at then.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from onnx import TensorProto
from splitter import figures, measure
from torch import Tensor, nn

from headway.neural.export_transformer import word_vectors
from headway.neural.graph import GraphBuilder, array_of, without_root
from headway.neural.graph_joining import joined
from headway.neural.graph_reader import read_graph
from headway.neural.model import NeuralModel
from headway.neural.reading import groups_by_size
from headway.neural.sentence_ends import SIGNALS, EncoderEnds, Stage, signals_of
from headway.neural.session import Session
from headway.neural.subwords import SubwordReader
from headway.pipeline import Parser
from headway.text.characters import AUTO, BREAK, coded
from headway.text.layouts import concatenated, laid_out, run_on
from headway.text.segmenter import Segmenter, _analyse, _known, _quantised
from headway.text.sentence_ends import learn_sentence_ends
from headway.treebank import Sentence, read_treebank
from headway.treebank.raw_text import SENTENCE, RawText, raw_text

SIZE, WINDOW = 384, 5
LAYER, CHANNELS = 2, 128
LOW, HIGH, AROUND = -100.0, 100.0, 12  # the splitter's scores that are looked at again
PASSES, RATE, DROPOUT, CELLS, WARM_UP, AVERAGING = 4, 2e-3, 0.3, 1500, 200, 0.995
SHORTEST, LONGEST, EDGE = 40, 150, 8  # tokens of a piece; those near a cut are not learnt from
LIMITS = ((-80, 80, 12), (-100, 100, 12), (-100, 100, 24), (-120, 100, 12), (-1e6, 1e6, 24))
FOLDS, SEED_OF_FOLDS, SEED_OF_LINES = 5, 7, 101
PREFIX = "ends_"
Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Text:
    """The tokens of a text, cut into `pieces`: what is known of each, which end sentences, which are learnt from."""

    forms: list[str]
    signals: Floats
    gold: Bools
    counted: Bools
    pieces: list[tuple[int, int]]

    @classmethod
    def of(cls, source: RawText, segmenter: Segmenter, rng: np.random.Generator) -> Text:
        codes, entries = coded(source.text)
        starts, ends, gaps, scores, _ = _analyse(
            codes, entries, AUTO, segmenter.boundaries, segmenter.sentence_ends, segmenter.most_words
        )
        forms = [source.text[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        stops = np.flatnonzero(gaps == BREAK) + 1
        counted = gaps != BREAK
        pieces: list[tuple[int, int]] = []
        for start, stop in pairwise([0, *stops.tolist()]):
            cuts = [start]
            while stop - cuts[-1] > LONGEST:
                cuts.append(cuts[-1] + int(rng.integers(SHORTEST, LONGEST)))
            for cut in cuts[1:]:
                counted[cut - EDGE : cut + EDGE] = False
            pieces += pairwise([*cuts, stop])
        return cls(forms, signals_of(scores, gaps), source.ends[ends - 1] == SENTENCE, counted, pieces)


def value_of_layer(network: bytes, layer: int) -> str:
    """The name of a layer's value in the parser's graph: one norm after the embeddings, two in every layer."""
    norms = [node.outputs[0] for node in read_graph(network).nodes if node.operation == "LayerNormalization"]
    return norms[2 * layer]


def given(network: bytes, layer: int) -> tuple[GraphBuilder, str]:
    """A graph on top of a layer, and in it the vectors of words (B, N, SIZE)."""
    graph = GraphBuilder(quantised=True, prefix=PREFIX)
    x = graph.input(value_of_layer(network, layer), TensorProto.FLOAT, ("windows", "subwords", SIZE))
    words = without_root(graph, graph.input("words", TensorProto.INT64, ("batch", "nodes", 2)))
    return graph, word_vectors(graph, x, words, SIZE)


def vectors_of(text: Text, model: NeuralModel, layer: int) -> NDArray[np.float16]:
    """The vectors (tokens, SIZE) of a layer."""
    graph, found = given(model.network.graph, layer)
    graph.output(found, "vectors", ("batch", "words", SIZE))
    session = Session(joined(model.network.graph, graph.build()), ("subwords", "shapes", "words"), ("vectors",))
    reading = model.reader.read([Sentence.from_words(text.forms[a:b]) for a, b in text.pieces])
    result = np.zeros((len(text.forms), SIZE), np.float16)
    for which in groups_by_size(reading.sizes, 512):
        batch = session.run(reading.batch(which))["vectors"]
        for row, number in enumerate(which.tolist()):
            start, stop = text.pieces[number]
            result[start:stop] = batch[row, : stop - start]
    return result


class Ends(nn.Module):
    """The log-odds of a sentence end after every token (B, N); tokens that are padding have no signals."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.dropout, self.project = nn.Dropout(DROPOUT), nn.Linear(SIZE, channels)
        self.near = nn.Conv1d(channels + SIGNALS, channels, WINDOW, padding=WINDOW // 2)
        self.far = nn.Conv1d(channels, channels, WINDOW, padding=WINDOW // 2)
        self.score = nn.Linear(channels + SIGNALS, 1)

    def forward(self, vectors: Tensor, signals: Tensor) -> Tensor:
        there, gelu = signals[..., -1:], nn.functional.gelu
        x = torch.cat([gelu(self.project(self.dropout(vectors))) * there, signals], -1)
        x = gelu(self.near(self.dropout(x).transpose(1, 2))).transpose(1, 2) * there
        x = x + gelu(self.far(self.dropout(x).transpose(1, 2))).transpose(1, 2)
        found: Tensor = self.score(torch.cat([self.dropout(x), signals], -1))[..., 0]
        return found

    def graph(self, network: bytes, layer: int) -> bytes:
        """The same as a graph on top of the parser's, with weights of one byte."""
        graph, x = given(network, layer)
        signals = graph.input("signals", TensorProto.FLOAT, ("batch", "words", SIGNALS))
        last = graph.integers(SIGNALS - 1), graph.integers(SIGNALS), graph.integers(2)
        there = graph.apply("Slice", signals, *last)

        def linear(x: str, layer: nn.Linear) -> str:
            product = graph.apply(
                "MatMul", x, graph.apply("Transpose", graph.table(array_of(layer.weight)), perm=[1, 0])
            )
            return graph.apply("Add", product, graph.constant(array_of(layer.bias)))

        def around(x: str, layer: nn.Conv1d) -> str:
            own = graph.table(array_of(layer.weight)), graph.constant(array_of(layer.bias))
            turned = graph.apply("Transpose", x, perm=[0, 2, 1])
            made = graph.apply("Gelu", graph.apply("Conv", turned, *own, pads=[WINDOW // 2] * 2))
            return graph.apply("Transpose", made, perm=[0, 2, 1])

        x = graph.apply("Mul", graph.apply("Gelu", linear(x, self.project)), there)
        x = graph.apply("Mul", around(graph.apply("Concat", x, signals, axis=2), self.near), there)
        x = graph.apply("Add", x, around(x, self.far))
        found = linear(graph.apply("Concat", x, signals, axis=2), self.score)
        graph.output(graph.apply("Squeeze", found, graph.integers(2)), "scores", ("batch", "words"))
        return graph.build()


Batch = tuple[Tensor, Tensor, Tensor, Tensor]


def batches(text: Text, vectors: NDArray[np.float16], rng: np.random.Generator) -> Iterator[Batch]:
    """Pieces in random order: vectors, signals, where sentences end, and which tokens count."""
    sizes = np.array([stop - start for start, stop in text.pieces])
    groups = list(groups_by_size(sizes, CELLS))
    for number in rng.permutation(len(groups)):
        own = [text.pieces[k] for k in groups[number].tolist()]
        shape = len(own), max(stop - start for start, stop in own)
        x, signals = np.zeros((*shape, SIZE), np.float32), np.zeros((*shape, SIGNALS), np.float32)
        gold, counts = np.zeros((2, *shape), np.float32)
        for row, (start, stop) in enumerate(own):
            width = stop - start
            x[row, :width], signals[row, :width] = vectors[start:stop], text.signals[start:stop]
            gold[row, :width], counts[row, :width] = text.gold[start:stop], text.counted[start:stop]
        yield torch.from_numpy(x), torch.from_numpy(signals), torch.from_numpy(gold), torch.from_numpy(counts)


def trained(texts: Sequence[Text], model: NeuralModel, layer: int, channels: int, seed: int) -> Ends:
    """The average of the weights over the last steps."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    network = Ends(channels)
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
    average = torch.optim.swa_utils.AveragedModel(
        network, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(AVERAGING)
    )
    read = [(text, vectors_of(text, model, layer)) for text in texts]
    steps = PASSES * sum(1 for text, vectors in read for _ in groups_by_size(_sizes(text), CELLS))
    step = 0
    network.train()
    for number in range(PASSES):
        print(f"layer {layer}, pass {number + 1}", flush=True)
        going = [batches(text, vectors, rng) for text, vectors in read]
        while going:
            some = going[int(rng.integers(len(going)))]
            batch = next(some, None)
            if batch is None:
                going.remove(some)
                continue
            x, signals, gold, counts = batch
            step += 1
            optimiser.param_groups[0]["lr"] = RATE * min(step / WARM_UP, 1 - step / (steps + 1))
            losses = nn.functional.binary_cross_entropy_with_logits(network(x, signals), gold, reduction="none")
            optimiser.zero_grad()
            ((losses * counts).sum() / counts.sum().clamp(min=1)).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            average.update_parameters(network)
    found = average.module
    assert isinstance(found, Ends)
    return found.eval()


def _sizes(text: Text) -> NDArray[np.int64]:
    return np.array([stop - start for start, stop in text.pieces])


def documents(sentences: Sequence[Sentence]) -> list[list[Sentence]]:
    found: list[list[Sentence]] = []
    for sentence in sentences:
        if not found or any(comment.startswith("# newdoc") for comment in sentence.layout.comments):
            found.append([])
        found[-1].append(sentence)
    return found


def splits(sentences: Sequence[Sentence]) -> list[tuple[list[Sentence], list[Sentence]]]:
    """FOLDS times: the documents to learn from, and the others."""
    every = documents(sentences)
    folds = np.random.default_rng(SEED_OF_FOLDS).integers(0, FOLDS, len(every)).tolist()

    def those(held: int, *, out: bool) -> list[Sentence]:
        return [one for own, fold in zip(every, folds, strict=True) if (fold == held) == out for one in own]

    return [(those(held, out=False), those(held, out=True)) for held in range(FOLDS)]


def with_ends_of(segmenter: Segmenter, sentences: Sequence[Sentence]) -> Segmenter:
    """The splitter with sentence ends learnt from these sentences, as `Segmenter.learn` does it."""
    source = raw_text(sentences)
    text = concatenated([source, run_on(source), laid_out(source, 0), laid_out(source, 1)])
    return replace(segmenter, sentence_ends=_quantised(learn_sentence_ends(*_known(text), 0, 5)), second_look=None)


def networks(model: NeuralModel, parts: Sequence[tuple[Segmenter, Sequence[Sentence]]], seed: int) -> EncoderEnds:
    """Both stages, learnt from the sentences of each part by the scores of its splitter."""
    rng = np.random.default_rng(seed)
    texts = []
    for segmenter, sentences in parts:
        source = raw_text(sentences)
        texts += [Text.of(each, segmenter, rng) for each in (source, laid_out(source, SEED_OF_LINES))]
    graph = model.network.graph
    head = trained(texts, model, LAYER, CHANNELS, seed).graph(graph, LAYER)
    assert isinstance(model.reader, SubwordReader)
    return EncoderEnds(model.reader, graph, (Stage(head, LOW, HIGH, AROUND),))


def chosen(ends: EncoderEnds, segmenter: Segmenter, sentences: Sequence[Sentence]) -> Iterator[dict[str, Any]]:
    """F1 of sentences of raw text and of text in lines, for some limits of doubt."""
    source = raw_text(sentences)
    texts = {"raw text": source, "in lines": laid_out(source, 1000)}

    def f1(own: Segmenter) -> dict[str, float]:
        return {name: round(measure(own, [text])["sentences"], 2) for name, text in texts.items()}

    yield {"linear": f1(segmenter)}
    for low, high, around in LIMITS:
        stages = (replace(ends.stages[0], low=low, high=high, around=around),)
        own = replace(segmenter, second_look=replace(ends, stages=stages))
        yield {"low": low, "high": high, "around": around} | f1(own)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="the folder of UD English-EWT")
    options.add_argument("--choose", action="store_true", help="figures on documents that are held out, no others")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--model", default="en")
    options.add_argument("--into", type=Path, help="the model that gets the networks")
    options.add_argument("--output", type=Path, help="the file for the figures")
    asked = options.parse_args()
    torch.set_num_threads(1)
    parser = Parser.load(asked.into or asked.model)
    assert isinstance(parser.model, NeuralModel)
    assert parser.segmenter is not None
    train, dev = (list(read_treebank(min(asked.data.glob(f"*{part}*.conllu*")))) for part in ("train", "dev"))
    parts = [(with_ends_of(parser.segmenter, known), held) for known, held in splits(train)]
    if asked.choose:
        *known, (segmenter, held) = parts
        ends = networks(parser.model, known, asked.seed)
        for row in chosen(ends, segmenter, held):
            print(json.dumps(row), flush=True)
        return
    ends = networks(parser.model, parts, asked.seed)
    parser = replace(
        parser, model=replace(parser.model, ends=ends), segmenter=replace(parser.segmenter, second_look=ends)
    )
    if asked.into:
        parser.save(asked.into)
    assert parser.segmenter is not None
    shown = json.dumps({f"{asked.data.name} dev": figures(parser.segmenter, dev)}, indent=2)
    print(shown)
    if asked.output:
        asked.output.write_text(shown + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
