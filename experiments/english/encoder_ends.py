"""Sentence ends by the encoder of `en`, as it is: what its layers know, and what that adds to the linear classifier.

python experiments/english/encoder_ends.py --data UD_English-EWT --layer 2 [--layer 4 ...] [--cache FOLDER]

Paragraphs of tokens, as the splitter of `en` finds them, go through the encoder; the vectors of the layers named are
the input of a small recurrent network (GRU), which says of each token whether a sentence ends after it. The encoder
learns nothing. After every pass the development part is scored: by the network alone, and by its score plus a weight
times that of the linear classifier, above a threshold; both are chosen on the development part, so the figure flatters.

At the end: how much of the gain is left if the network is asked only where the linear classifier is in doubt, and what
share of the words is then in stretches that the encoder has to read for it (it needs onnx and torch).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from headway.neural.model import NeuralModel
from headway.neural.reading import groups_by_size
from headway.pipeline import Parser
from headway.text.characters import AUTO, BREAK, coded
from headway.text.segmenter import Segmenter, _analyse
from headway.treebank import Sentence, read_treebank
from headway.treebank.raw_text import SENTENCE, RawText, raw_text

LAYERS, SIZE = 6, 384
WEIGHTS, THRESHOLDS = (0.01, 0.02, 0.04, 0.08), (-2.0, -1.5, -1.0, -0.5, 0.0, 0.5)
DOUBTS = ((-80, 80), (-100, 60), (-120, 60), (-150, 60))  # scores of the linear classifier
RATE, DROPOUT, LONGEST, CELLS = 1e-3, 0.3, 150, 1500
Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]
Span = tuple[int, int]


@dataclass(frozen=True)
class Text:
    """The tokens of a text: forms, where they end, which end sentences; its paragraphs are ranges of tokens."""

    forms: list[str]
    ends: NDArray[np.int64]
    gold: Bools
    linear: NDArray[np.int64]
    paragraphs: list[Span]

    @classmethod
    def of(cls, source: RawText, segmenter: Segmenter) -> Text:
        codes, entries = coded(source.text)
        weights = segmenter.boundaries, segmenter.sentence_ends, segmenter.most_words
        starts, ends, gaps, scores, _ = _analyse(codes, entries, AUTO, *weights)
        forms = [source.text[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        stops = sorted({*(np.flatnonzero(gaps == BREAK) + 1).tolist(), len(forms)})
        return cls(forms, ends, source.ends[ends - 1] == SENTENCE, scores, list(pairwise([0, *stops])))

    @property
    def last(self) -> Bools:
        """Which tokens are the last of a paragraph: a sentence ends there, whatever anybody says."""
        found = np.zeros(len(self.forms), np.bool_)
        found[[stop - 1 for _, stop in self.paragraphs]] = True
        return found

    def f1(self, found: Bools) -> float:
        gold, own = (_spans(self.ends[each | self.last]) for each in (self.gold, found))
        return 200 * len(gold & own) / (len(gold) + len(own))


def _spans(ends: NDArray[np.int64]) -> set[Span]:
    return set(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True))


def vectors_of(text: Text, model: NeuralModel, layers: Sequence[int]) -> NDArray[np.float16]:
    """The vectors (tokens, layers, SIZE); a token's is the mean of those of its first and its last subword."""
    graph = onnx.load_from_string(model.network.graph)
    norms = [node.output[0] for node in graph.graph.node if node.op_type == "LayerNormalization"]
    names = [norms[2 * layer] for layer in layers]  # one after the embeddings, two in every layer
    for name in names:
        graph.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    reading = model.reader.read([Sentence.from_words(text.forms[a:b]) for a, b in text.paragraphs])
    found = np.zeros((len(text.forms), len(layers), SIZE), np.float16)
    for which in groups_by_size(reading.sizes, 1024):
        inputs = reading.batch(which)
        for k, layer in enumerate(session.run(names, dict(inputs))):
            words = layer.reshape(-1, SIZE)[inputs["words"][:, 1:]].mean(2)
            for row, number in enumerate(which.tolist()):
                start, stop = text.paragraphs[number]
                found[start:stop, k] = words[row, : stop - start]
    return found


class Ends(nn.Module):
    """The score of a sentence end after every token (B, N)."""

    def __init__(self, layers: int, size: int) -> None:
        super().__init__()
        self.dropout, self.project = nn.Dropout(DROPOUT), nn.Linear(SIZE * layers, size)
        self.around = nn.GRU(size, size // 2, bidirectional=True, batch_first=True)
        self.score = nn.Sequential(nn.Linear(2 * size, size), nn.GELU(), nn.Dropout(DROPOUT), nn.Linear(size, 1))

    def forward(self, vectors: Tensor) -> Tensor:
        states, _ = self.around(nn.functional.gelu(self.project(self.dropout(vectors))))
        states = self.dropout(states)
        following = torch.cat([states[:, 1:], torch.zeros_like(states[:, :1])], 1)
        found: Tensor = self.score(torch.cat([states, following], -1))[..., 0]
        return found


Batch = tuple[list[Span], Tensor, Tensor, Tensor]


def batches(text: Text, vectors: NDArray[np.float16], rng: np.random.Generator | None) -> Iterator[Batch]:
    """Stretches of paragraphs: which tokens, their vectors, where sentences end, and which tokens count."""
    longest, cells = (LONGEST, CELLS) if rng else (400, 4000)
    shift = int(rng.integers(0, longest)) if rng else longest
    pieces = [
        piece
        for start, stop in text.paragraphs
        for piece in pairwise(sorted({start, *range(min(start + shift, stop), stop, longest), stop}))
    ]
    sizes = np.array([stop - start for start, stop in pieces])
    groups = list(groups_by_size(sizes, cells))
    counted = ~text.last
    for number in rng.permutation(len(groups)) if rng else range(len(groups)):
        own = [pieces[k] for k in groups[number].tolist()]
        width = max(stop - start for start, stop in own)
        x = np.zeros((len(own), width, vectors.shape[1] * SIZE), np.float32)
        gold, counts = np.zeros((2, len(own), width), np.float32)
        for row, (start, stop) in enumerate(own):
            x[row, : stop - start] = vectors[start:stop].reshape(stop - start, -1)
            gold[row, : stop - start], counts[row, : stop - start] = text.gold[start:stop], counted[start:stop]
        yield own, torch.from_numpy(x), torch.from_numpy(gold), torch.from_numpy(counts)


def scored(network: Ends, text: Text, vectors: NDArray[np.float16]) -> Floats:
    network.eval()
    found = np.zeros(len(text.forms), np.float32)
    with torch.inference_mode():
        for own, x, _, _ in batches(text, vectors, None):
            scores = network(x).numpy()
            for row, (start, stop) in enumerate(own):
                found[start:stop] = scores[row, : stop - start]
    return found


def together(text: Text, scores: Floats, asked: Bools) -> tuple[float, float, float]:
    """The best F1 of both classifiers, its weight and threshold; where the network is not asked, the linear decides."""

    def f1(weight: float, threshold: float) -> float:
        return text.f1(np.where(asked, scores + weight * text.linear > threshold, text.linear > 0))

    return max((f1(weight, threshold), weight, threshold) for weight in WEIGHTS for threshold in THRESHOLDS)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--layer", type=int, action="append", required=True, choices=range(LAYERS + 1))
    options.add_argument("--size", type=int, default=192)
    options.add_argument("--epochs", type=int, default=4)
    options.add_argument("--cache", type=Path, help="a folder for the vectors: most of the time goes into them")
    given = options.parse_args()
    parser = Parser.load("en")
    assert isinstance(parser.model, NeuralModel)
    assert parser.segmenter is not None
    texts: dict[str, Text] = {}
    vectors: dict[str, NDArray[np.float16]] = {}
    for part in ("train", "dev"):
        source = raw_text(list(read_treebank(min(given.data.glob(f"*{part}*.conllu*")))))
        texts[part] = Text.of(source, parser.segmenter)
        kept = given.cache / f"{part}-{'-'.join(map(str, given.layer))}.npy" if given.cache else None
        if kept is not None and kept.exists():
            vectors[part] = np.load(kept)
        else:
            vectors[part] = vectors_of(texts[part], parser.model, given.layer)
            if kept is not None:
                np.save(kept, vectors[part])
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    network = Ends(len(given.layer), given.size)
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
    dev = texts["dev"]
    print(f"the linear classifier: {dev.f1(dev.linear > 0):.2f}", flush=True)
    for epoch in range(given.epochs):
        network.train()
        optimiser.param_groups[0]["lr"] = RATE * (1 - epoch / given.epochs)
        for _, x, gold, counts in batches(texts["train"], vectors["train"], rng):
            losses = nn.functional.binary_cross_entropy_with_logits(network(x), gold, reduction="none") * counts
            optimiser.zero_grad()
            (losses.sum() / counts.sum().clamp(min=1)).backward()
            optimiser.step()
        scores = scored(network, dev, vectors["dev"])
        f1, weight, threshold = together(dev, scores, ~dev.last)
        both = f"with the linear: {f1:.2f} (weight {weight:g}, threshold {threshold:g})"
        print(f"pass {epoch + 1}: the network: {dev.f1(scores > 0):.2f}; {both}", flush=True)
    for low, high in DOUBTS:
        asked = (dev.linear > low) & (dev.linear < high) & ~dev.last
        stretch = np.cumsum((dev.linear >= high) | dev.last) - ((dev.linear >= high) | dev.last)
        read = np.isin(stretch, stretch[asked]).mean()
        f1 = together(dev, scores, asked)[0]
        print(
            f"asked where the linear score is from {low} to {high}: {f1:.2f}, {100 * read:.0f}% of the words read again"
        )


if __name__ == "__main__":
    main()
