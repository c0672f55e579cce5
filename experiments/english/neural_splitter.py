"""Sentence ends by a pretrained encoder, to be compared with the linear classifier on the same tokens.

python experiments/english/neural_splitter.py --data UD_English-EWT --encoder MiniLM-folder --device cuda

A paragraph's tokens are read as one sentence; the network says of each token whether a sentence ends after it. Some
training paragraphs are joined to the one before: headings and signatures end sentences, too. The development part is
split into tokens by the linear splitter, and scored after every pass as `splitter.py` scores it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from headway.neural.encoders.transformer import Folder, TransformerEncoder
from headway.neural.reading import Inputs, Reading, groups_by_size
from headway.text.segmenter import Segmenter
from headway.treebank import Sentence, read_treebank
from headway.treebank.annotations import starts_paragraph
from headway.treebank.raw_text import SENTENCE, raw_text, tokens_of

sys.path.insert(0, str(Path(__file__).parent))
from splitter import _between, gold_spans

Paragraph = tuple[list[str], list[bool]]  # tokens, and whether a sentence ends after each


class SentenceEnds(nn.Module):
    """The score of a sentence end after every token (B, N+1)."""

    def __init__(self, encoder: TransformerEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.dropout, self.head = nn.Dropout(0.2), nn.Linear(encoder.size, 1)

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        with torch.autocast("cuda", torch.bfloat16, enabled=self.head.weight.is_cuda):
            words = self.encoder(inputs)
        found: Tensor = self.head(self.dropout(words.float()))[..., 0]
        return found


def paragraphs_of(sentences: Sequence[Sentence], join: float, rng: np.random.Generator) -> list[Paragraph]:
    """Paragraphs, each joined to the one before with probability `join`."""
    found: list[Paragraph] = []
    for sentence in sentences:
        forms = [form for token in tokens_of(sentence) for form in token.form.split()]
        if not found or (starts_paragraph(sentence) and (rng.random() >= join or len(found[-1][0]) > 400)):
            found.append(([], []))
        found[-1][0].extend(forms)
        found[-1][1].extend([False] * (len(forms) - 1) + [True])
    return found


def batches(
    reading: Reading, ends: Sequence[list[bool]], most: int, device: str, order: np.ndarray | None = None
) -> Iterator[tuple[np.ndarray, dict[str, Tensor], Tensor, Tensor]]:
    """Which paragraphs, the inputs, where a sentence ends, and which tokens count: not the last of a paragraph."""
    for which in groups_by_size(reading.sizes, most, order):
        inputs: Inputs = reading.batch(which)
        gold = torch.zeros(len(which), int(reading.lengths[which].max()) + 1)
        counts = torch.zeros_like(gold)
        for row, k in enumerate(which.tolist()):
            gold[row, 1 : len(ends[k]) + 1] = torch.tensor(ends[k], dtype=torch.float)
            counts[row, 1 : len(ends[k])] = 1.0
        moved = {name: torch.from_numpy(array).to(device) for name, array in inputs.items()}
        yield which, moved, gold.to(device), counts.to(device)


def scored(network: SentenceEnds, reading: Reading, ends: Sequence[list[bool]], device: str) -> list[np.ndarray]:
    """The scores of every paragraph's tokens."""
    network.eval()
    found: dict[int, np.ndarray] = {}
    with torch.inference_mode():
        for which, inputs, _, _ in batches(reading, ends, 8192, device):
            scores = network(inputs).float().cpu().numpy()
            found |= {k: scores[row, 1 : len(ends[k]) + 1] for row, k in enumerate(which.tolist())}
    return [found[k] for k in range(len(ends))]


def f1(scores: Sequence[np.ndarray], tokens: Sequence[list[str]], gold: set[tuple[int, int]], bias: float) -> float:
    """Sentence F1 if sentences end where the score is above `bias`, and with every paragraph."""
    lengths = np.array([len(form) for own in tokens for form in own])
    ends = np.concatenate([np.append(own[:-1] > bias, True) for own in scores])
    found = _between(np.cumsum(lengths)[ends])
    return 200 * len(gold & found) / (len(gold) + len(found))


def main(arguments: Sequence[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--encoder", type=Path, required=True, help="a folder with a pretrained encoder")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--batch", type=int, default=2048, help="subwords")
    parser.add_argument("--join", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    torch.manual_seed(given.seed)
    rng = np.random.default_rng(given.seed)
    train, dev = (list(read_treebank(min(given.data.glob(f"*{part}*.conllu*")))) for part in ("train", "dev"))
    folder = Folder.open(given.encoder)
    reader, encoder = folder.reader(), TransformerEncoder(folder.config)
    folder.load(encoder.model)
    network = SentenceEnds(encoder).to(given.device)

    source = raw_text(dev)
    linear = Segmenter.learn(train)
    tokens = [
        [token.form for sentence in linear.sentences(paragraph) for token in tokens_of(sentence)]
        for paragraph in source.text.split("\n\n")
    ]
    nowhere = [[False] * len(own) for own in tokens]
    held_out, gold = reader.read([Sentence.from_words(own) for own in tokens]), gold_spans(source)[1]
    assert (source.ends == SENTENCE).sum() == len(gold)

    rates = [{"params": encoder.parameters(), "lr": given.rate}, {"params": network.head.parameters(), "lr": 1e-3}]
    optimiser = torch.optim.AdamW(rates, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda epoch: 1 - epoch / given.epochs)
    best = 0.0
    for epoch in range(given.epochs):
        some = paragraphs_of(train, given.join, rng)
        reading = reader.read([Sentence.from_words(forms) for forms, _ in some])
        network.train()
        groups = list(groups_by_size(reading.sizes, given.batch))
        order = np.concatenate([groups[k] for k in rng.permutation(len(groups))])
        for _, inputs, ends, counts in batches(reading, [own for _, own in some], given.batch, given.device, order):
            losses = nn.functional.binary_cross_entropy_with_logits(network(inputs), ends, reduction="none")
            optimiser.zero_grad()
            ((losses * counts).sum() / counts.sum().clamp(min=1)).backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
        schedule.step()
        scores = scored(network, held_out, nowhere, given.device)
        shown = {bias: f1(scores, tokens, gold, bias) for bias in (-1.0, 0.0, 1.0)}
        best = max(best, shown[0.0])
        print(epoch + 1, " ".join(f"bias {bias:g}: {value:.2f}" for bias, value in shown.items()), flush=True)
    return best


if __name__ == "__main__":
    main()
