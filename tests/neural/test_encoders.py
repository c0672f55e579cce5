"""Our encoders beside those of transformers, with the same random weights."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="encoders run on torch")
transformers = pytest.importorskip("transformers", reason="the models of transformers are what ours are compared with")

from headway.neural.encoders.bert import BertEncoder
from headway.neural.encoders.modernbert import ModernBertEncoder
from headway.neural.encoders.mpnet import MpnetEncoder, buckets
from tests.neural.tiny import BERT, ELECTRA, MODERNBERT, MPNET, ROBERTA

LISTED = {  # as newer versions of transformers write it
    **{name: value for name, value in MODERNBERT.items() if not name.endswith(("layers", "theta"))},
    "num_hidden_layers": 3,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "rope_parameters": {
        "full_attention": {"rope_type": "default", "rope_theta": 300.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 40.0},
    },
    "norm_bias": True,
    "attention_bias": True,
    "mlp_bias": True,
}

MODELS = {
    "bert": (BERT, transformers.BertConfig, transformers.BertModel, BertEncoder),
    "roberta": (ROBERTA, transformers.RobertaConfig, transformers.RobertaModel, BertEncoder),
    "electra": (ELECTRA, transformers.ElectraConfig, transformers.ElectraModel, BertEncoder),
    "mpnet": (MPNET, transformers.MPNetConfig, transformers.MPNetModel, MpnetEncoder),
    "modernbert": (MODERNBERT, transformers.ModernBertConfig, transformers.ModernBertModel, ModernBertEncoder),
    "listed": (LISTED, transformers.ModernBertConfig, transformers.ModernBertModel, ModernBertEncoder),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_the_same_vectors_from_the_same_weights(name):
    torch.manual_seed(0)
    config, theirs_config, theirs_model, encoder = MODELS[name]
    theirs = theirs_model(theirs_config(**config)).eval()
    with torch.no_grad():
        for weight in theirs.parameters():
            weight.normal_(std=0.3)
    encoder.require(config)
    own = encoder(config).eval()
    weights = theirs.state_dict()
    own.load_state_dict({name: weights[name] for name in own.state_dict()})
    padding = config["pad_token_id"]
    subwords = torch.randint(2, config["vocab_size"], (3, 20))
    subwords[1, 11:] = padding
    subwords[2, 1:] = padding
    there = subwords != padding
    with torch.no_grad():
        found = own(subwords, torch.zeros(()))
        expected = theirs(input_ids=subwords, attention_mask=there.long()).last_hidden_state
    torch.testing.assert_close(found[there], expected[there], atol=1e-4, rtol=1e-4)
    assert float(expected[there].std()) > 0.1


@pytest.mark.filterwarnings("ignore")
def test_the_groups_of_distances_are_those_of_transformers():
    from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

    place = torch.arange(512)
    expected = MPNetEncoder.relative_position_bucket(place - place[:, None])
    assert torch.equal(buckets(512), expected)
