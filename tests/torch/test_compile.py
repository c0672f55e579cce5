"""A model around `TreeDistribution` compiles in one piece, and once more for all lengths."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend

from headway.torch import LabelledTreeDistribution, TreeDistribution
from tests.inference.strategies import TREE_CLASSES

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, while it compiles


class Parser(torch.nn.Module):
    """A bilinear scorer with a tree CRF on it."""

    def __init__(self, **flags: bool) -> None:
        super().__init__()
        self.head, self.modifier = torch.nn.Linear(6, 6), torch.nn.Linear(6, 6)
        self.flags = flags

    def forward(self, words: Tensor, lengths: Tensor, heads: Tensor) -> Tensor:
        scores = self.head(words) @ self.modifier(words).transpose(-1, -2)
        d = TreeDistribution(scores, lengths, **self.flags)
        return (d.nll(heads) + 0.5 * d.entropy + d.expectation(scores.detach().square())).sum()


class LabellingParser(Parser):
    def forward(self, words: Tensor, lengths: Tensor, heads: Tensor) -> Tensor:
        scores = self.head(words)[:, :, None] * self.modifier(words)[:, None]
        d = LabelledTreeDistribution(scores, lengths, **self.flags)
        return d.nll(heads, torch.where(heads < 0, -1, 2)).sum()


def batch(n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Three sentences of up to n words, all of them chains."""
    lengths = torch.tensor([n, n - 1, 1])
    node = torch.arange(n + 1)
    heads = torch.where((node > 0) & (node <= lengths[:, None]), node - 1, -1)
    return torch.randn(3, n + 1, 6, generator=torch.Generator().manual_seed(n)), lengths, heads


@pytest.mark.parametrize("flags", TREE_CLASSES)
@pytest.mark.parametrize("model", [Parser, LabellingParser])
def test_one_graph_for_all_lengths(model: type[Parser], flags: dict[str, bool]) -> None:
    torch.manual_seed(0)
    parser = model(**flags)
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(parser, backend=counter, fullgraph=True)
    for n in (4, 6, 9, 3, 12):
        compiled(*batch(n)).backward()
        got = [weight.grad.clone() for weight in parser.parameters()]
        parser.zero_grad()
        loss = parser(*batch(n))
        loss.backward()
        torch.testing.assert_close(compiled(*batch(n)), loss)
        for weight, grad in zip(parser.parameters(), got, strict=True):
            torch.testing.assert_close(grad, weight.grad)
        parser.zero_grad()
    assert counter.frame_count <= 2
    torch._dynamo.reset()


def test_decoding_compiles() -> None:
    @torch.compile(backend="aot_eager", fullgraph=True)
    def decode(scores: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        d = TreeDistribution(scores, lengths)
        return d.argmax(), d.mbr(), d.max

    scores, lengths = torch.randn(3, 6, 6), torch.tensor([5, 2, 4])
    d = TreeDistribution(scores, lengths)
    for got, expected in zip(decode(scores, lengths), (d.argmax(), d.mbr(), d.max), strict=True):
        torch.testing.assert_close(got, expected)
    torch._dynamo.reset()
