"""Our encoders beside those of transformers, with the same random weights."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="encoders run on torch")

from headway.neural.encoders.bert import BertEncoder
from headway.neural.encoders.modernbert import ModernBertEncoder
from headway.neural.encoders.mpnet import MpnetEncoder, buckets
from tests.neural import theirs

ENCODERS = {"mpnet": MpnetEncoder, "modernbert": ModernBertEncoder, "listed": ModernBertEncoder}


@pytest.mark.parametrize("name", theirs.CONFIGS)
def test_the_same_vectors_from_the_same_weights(name):
    config, encoder = theirs.CONFIGS[name], ENCODERS.get(name, BertEncoder)
    encoder.require(config)
    own = encoder(config).eval()
    theirs.fill(own.state_dict())
    subwords = theirs.subwords(config)
    with torch.no_grad():
        found = own(subwords, torch.zeros(()))[subwords != config["pad_token_id"]]
    expected = np.load(theirs.FILE)[name]
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-4, rtol=1e-4)
    assert expected.std() > 0.1


def test_the_groups_of_distances_are_those_of_transformers():
    first, last = np.load(theirs.FILE)["groups_of_distances"]
    of_distance = np.concatenate([last, first[1:]])  # from as far to the left as can be to as far to the right
    place = np.arange(theirs.LONGEST)
    expected = of_distance[place - place[:, None] + theirs.LONGEST - 1]
    np.testing.assert_array_equal(buckets(theirs.LONGEST).numpy(), expected)


@pytest.mark.filterwarnings("ignore")
def test_the_file_has_what_transformers_finds():
    pytest.importorskip("transformers", reason="its models are what ours are compared with")
    kept = np.load(theirs.FILE)
    for name in theirs.CONFIGS:
        np.testing.assert_allclose(kept[name], theirs.vectors(name), atol=1e-4, rtol=1e-4, err_msg=name)
    np.testing.assert_array_equal(kept["groups_of_distances"], theirs.groups_of_distances()[[0, -1]])
