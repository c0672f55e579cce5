"""Our BERT, RoBERTa and ELECTRA beside those of transformers, with the same random weights."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="encoders run on torch")
transformers = pytest.importorskip("transformers", reason="the models of transformers are what ours are compared with")

from headway.neural.encoders.bert import BertEncoder
from tests.neural.tiny import BERT, ELECTRA, ROBERTA

MODELS = {
    "bert": (BERT, transformers.BertConfig, transformers.BertModel),
    "roberta": (ROBERTA, transformers.RobertaConfig, transformers.RobertaModel),
    "electra": (ELECTRA, transformers.ElectraConfig, transformers.ElectraModel),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_the_same_vectors_from_the_same_weights(name):
    torch.manual_seed(0)
    config, theirs_config, theirs_model = MODELS[name]
    theirs = theirs_model(theirs_config(**config)).eval()
    with torch.no_grad():
        for weight in theirs.parameters():
            weight.normal_(std=0.3)
    own = BertEncoder(config).eval()
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
