"""The scores of a network beside their formulas, cell by cell."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="networks run on torch")

from headway.neural.network import Network

WIDTH, ARC, LABEL, LABELS, BATCH, WORDS = 5, 4, 3, 2, 2, 3


class Vectors(torch.nn.Module):
    """An encoder that gives the vectors it is given."""

    size, mixed = WIDTH, False

    def forward(self, inputs):
        return inputs["vectors"]


@pytest.fixture
def network():
    torch.manual_seed(4)
    made = Network(Vectors(), {"labels": LABELS}, arc_size=ARC, label_size=LABEL).eval()
    with torch.no_grad():
        for weights in made.parameters():
            weights.normal_()
    return made


@pytest.fixture
def vectors():
    return torch.from_numpy(np.random.default_rng(0).normal(size=(BATCH, WORDS + 1, WIDTH)).astype(np.float32))


def roles(network, vectors, b, layer):
    """Each node of a sentence in a role, the root by its own vector, whatever the encoder says of it."""
    made = getattr(network, layer).linear
    weights, bias = made.weight.detach().numpy(), made.bias.detach().numpy()
    nodes = [network.root.detach().numpy(), *vectors[b, 1:].numpy()]
    sums = [weights @ node + bias for node in nodes]
    return [np.where(x > 0, x, 0.1 * x) for x in sums]


def test_arc_scores(network, vectors):
    """(r_m' U r_h) / sqrt(d) + u'r_h."""
    found = network({"vectors": vectors}).arcs.detach().numpy()
    u, bias = network.arcs.detach().numpy(), network.arc_bias.detach().numpy()
    assert found.shape == (BATCH, WORDS + 1, WORDS + 1)
    for b, h, m in np.ndindex(*found.shape):
        heads, modifiers = (roles(network, vectors, b, layer) for layer in ("arc_heads", "arc_modifiers"))
        expected = modifiers[m] @ u @ heads[h] / ARC**0.5 + bias @ heads[h]
        assert found[b, h, m] == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_label_scores(network, vectors):
    """(q_m, 1)' V_l (q_h, 1) / sqrt(d + 1)."""
    heads = torch.tensor([[-1, 2, 0, 1], [-1, 0, 3, 1]])
    outputs = network({"vectors": vectors})
    found = network.label_scores(heads, outputs.label_heads, outputs.label_modifiers).detach().numpy()
    v = network.labels.detach().numpy()
    assert found.shape == (BATCH, WORDS + 1, LABELS)
    for b, m, label in np.ndindex(*found.shape):
        if m == 0:
            continue
        above, own = (roles(network, vectors, b, layer) for layer in ("label_heads", "label_modifiers"))
        expected = [*own[m], 1] @ v[label] @ [*above[int(heads[b, m])], 1] / (LABEL + 1) ** 0.5
        assert found[b, m, label] == pytest.approx(expected, rel=1e-4, abs=1e-4)
