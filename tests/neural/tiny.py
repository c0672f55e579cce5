"""Networks of a few thousand random weights, and sentences made up for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from onnx import TensorProto
from torch import nn

from headway import Sentence
from headway.arrays import TreeClass
from headway.neural import trainer
from headway.neural.encoders.lstm import LstmEncoder
from headway.neural.encoders.transformer import TransformerEncoder
from headway.neural.export import export
from headway.neural.export_transformer import word_vectors
from headway.neural.fitting import Fitting
from headway.neural.graph import GraphBuilder, without_root
from headway.neural.lexicon import LexiconReader
from headway.neural.model import NeuralModel
from headway.neural.network import Network
from headway.neural.reading import Reader
from headway.neural.sentence_ends import MIDDLE, SIGNALS, SentenceEnds
from headway.neural.sentence_ends_training import with_middle
from headway.neural.subwords import SubwordReader
from headway.neural.targets import Tasks
from headway.treebank.annotations import Doubt

NOUNS, VERBS = ("dog", "cat", "bird", "sparrow", "child"), ("sees", "hears", "likes", "finds")
BERT = {
    "model_type": "bert",
    "vocab_size": 100,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "pad_token_id": 0,
}
ROBERTA = {**BERT, "model_type": "roberta", "pad_token_id": 1, "max_position_embeddings": 42, "type_vocab_size": 1}
ELECTRA = {**BERT, "model_type": "electra", "embedding_size": 16}
MPNET = {**ROBERTA, "model_type": "mpnet", "relative_attention_num_buckets": 32}
MODERNBERT = {
    "model_type": "modernbert",
    "vocab_size": 100,
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "global_attn_every_n_layers": 3,
    "local_attention": 6,
    "global_rope_theta": 160000.0,
    "local_rope_theta": 10000.0,
    "norm_eps": 1e-5,
    "norm_bias": False,
    "attention_bias": False,
    "mlp_bias": False,
    "attention_dropout": 0.1,
    "mlp_dropout": 0.1,
    "embedding_dropout": 0.1,
    "pad_token_id": 0,
}
CONFIGS = {"bert": BERT, "roberta": ROBERTA, "electra": ELECTRA, "modernbert": MODERNBERT, "mpnet": MPNET}
NAMES = ("lstm", "tags", *CONFIGS)
ALWAYS = Doubt(-10_000, 10_000)


@contextmanager
def interrupted() -> Iterator[None]:
    """Ctrl-C in the third pass of a training, which has kept a checkpoint after each of the others."""
    run_pass = Fitting.run_pass

    def two_passes(fitting: Fitting) -> tuple[float, float]:
        if fitting.passes == 2:
            raise KeyboardInterrupt
        return run_pass(fitting)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "CHECKPOINT_SECONDS", -1.0)
        patch.setattr(Fitting, "run_pass", two_passes)
        with pytest.raises(KeyboardInterrupt):
            yield


def sentence_of(rng: np.random.Generator, clauses: int) -> Sentence:
    """ "The dog sees a cat and ...": every clause under the verb of the one before."""
    rows: list[tuple[str, str, str, str, str, int, str]] = []
    verb = 0
    for clause in range(clauses):
        at = len(rows) + (clause > 0)
        if clause:
            rows.append(("and", "and", "CCONJ", "CC", "_", at + 3, "cc"))
        subject, found, thing = (str(rng.choice(words)) for words in (NOUNS, VERBS, NOUNS))
        rows += [
            ("the" if clause else "The", "the", "DET", "DT", "Definite=Def", at + 2, "det"),
            (subject, subject, "NOUN", "NN", "Number=Sing", at + 3, "nsubj"),
            (found, found[:-1], "VERB", "VBZ", "Number=Sing|Tense=Pres", verb, "conj" if verb else "root"),
            ("a", "a", "DET", "DT", "Definite=Ind", at + 5, "det"),
            (f"{thing}s", thing, "NOUN", "NNS", "Number=Plur", at + 3, "obj"),
        ]
        verb = at + 3
    forms, lemmas, upos, xpos, feats, heads, labels = zip(*rows, strict=True)
    return Sentence.from_words(
        forms, lemmas=lemmas, upos=upos, xpos=xpos, feats=feats, heads=[-1, *heads], labels=[None, *labels]
    )


def sentences(count: int = 30, seed: int = 0) -> list[Sentence]:
    """Of five to some twenty words."""
    rng = np.random.default_rng(seed)
    return [sentence_of(rng, 1 + i % 4) for i in range(count)]


def subword_reader(config: dict[str, Any]) -> SubwordReader:
    """Most words are in the vocabulary; others are cut into letters."""
    return SubwordReader.from_files(tokenizer_of(config), config, 40)


def tokenizer_of(config: dict[str, Any]) -> str:
    """A tokenizer.json."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    letters = "abcdefghiklnoprstvw"
    known = ("the", "and", *NOUNS[:4], *VERBS[:3])
    special = ["<x>", "[PAD]"] if config["pad_token_id"] else ["[PAD]", "<x>"]
    pieces = [*special, "[UNK]", "[CLS]", "[SEP]", *known, *letters, *(f"##{letter}" for letter in letters)]
    made = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    text: str = made.to_str()
    return text


def folder_of(name: str, path: Path, *, prefix: bool = True) -> Path:
    """A folder in Hugging Face's format, of an encoder with random weights."""
    from safetensors.torch import save_file

    config = CONFIGS[name]
    torch.manual_seed(2)
    encoder = TransformerEncoder(config).model
    before = next(p for p in (f"{name}.", encoder.prefixes[0]) if p in encoder.prefixes) if prefix else ""
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    (path / "tokenizer.json").write_text(tokenizer_of(config))
    save_file({f"{before}{own}": weight for own, weight in encoder.state_dict().items()}, path / "model.safetensors")
    return path


def network_of(name: str, trees: list[Sentence]) -> tuple[Reader, Tasks, Network]:
    """A network with random weights that are not small, and what it reads and finds."""
    torch.manual_seed(1)
    reader: Reader
    if name in ("lstm", "tags"):
        lexicon = LexiconReader.learn(trees, tags=name == "tags")
        reader, encoder = lexicon, LstmEncoder(lexicon.sizes, embedding=12, hidden=16, layers=2)
        tasks = Tasks.learn(trees, tags=name != "tags", labels=True)
        network = Network(encoder, tasks.sizes, arc_size=24, label_size=8)
    else:
        config = CONFIGS[name]
        reader = subword_reader(config)
        tasks = Tasks.learn(trees, tags=True, labels=True)
        transformer = TransformerEncoder(config)
        nn.init.normal_(transformer.shapes.weight)
        network = Network(transformer, tasks.sizes, arc_size=24, label_size=8)
    with torch.no_grad():
        for weights in (network.root, network.arc_bias, network.labels):
            weights.normal_()
    return reader, tasks, network.eval()


def model_of(name: str, trees: list[Sentence], *, quantised: bool = True) -> NeuralModel:
    """An untrained parser."""
    reader, tasks, network = network_of(name, trees)
    return exported(reader, tasks, network, quantised=quantised)


def exported(reader: Reader, tasks: Tasks, network: Network, *, quantised: bool = True) -> NeuralModel:
    graphs = export(network, quantised=quantised)
    about = {"settings": {"seed": 1}}
    trees = TreeClass(projective=False, single_root=True)
    return NeuralModel.of_graphs(reader, tasks, graphs.network, graphs.labels, trees, about, ("root",), 1.5)


def torch_outputs(network: Network, inputs: dict[str, NDArray[np.int64]]) -> dict[str, NDArray[np.float32]]:
    """What the network itself computes, tags one behind the other."""
    with torch.no_grad():
        found = network({name: torch.from_numpy(array) for name, array in inputs.items()})
    made = {name: getattr(found, name).numpy() for name in ("arcs", "label_heads", "label_modifiers")}
    if found.tags:
        made["tags"] = np.concatenate([scores.numpy() for scores in found.tags.values()], axis=2)
    return made


def fit(network: Network, reader: Reader, tasks: Tasks, trees: list[Sentence], steps: int) -> None:
    """Some steps of gradient descent on all trees at once: by words, which is enough for so regular a language."""
    which = np.arange(len(trees))
    inputs = {name: torch.from_numpy(array) for name, array in reader.read(trees).batch(which).items()}
    targets = {name: torch.from_numpy(array) for name, array in tasks.targets(trees).items()}
    heads = torch.full_like(next(iter(targets.values())), -1)
    for row, tree in zip(heads, trees, strict=True):
        assert tree.heads is not None
        row[: len(tree.heads)] = torch.from_numpy(tree.heads)
    optimiser = torch.optim.Adam(network.parameters(), 0.005)
    for _ in range(steps):
        found = network(inputs)
        labels = network.label_scores(heads, found.label_heads, found.label_modifiers)
        scored = {**found.tags, "labels": labels, "arcs": found.arcs.transpose(1, 2)}
        wanted = {**targets, "arcs": heads}
        losses = [
            torch.nn.functional.cross_entropy(scored[name].flatten(0, 1), wanted[name].flatten(), ignore_index=-1)
            for name in wanted
        ]
        loss = torch.stack(losses).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def with_ends(model: NeuralModel, doubt: Doubt = ALWAYS) -> NeuralModel:
    """The model with a second look at sentence ends, which agrees with the splitter where it looks."""
    able, size = with_middle(model)
    graph = GraphBuilder(quantised=False)
    vectors = word_vectors(
        graph,
        graph.input(MIDDLE, TensorProto.FLOAT, ("windows", "subwords", size)),
        without_root(graph, graph.input("words", TensorProto.INT64, ("batch", "nodes", 2))),
        size,
    )
    signals = graph.input("signals", TensorProto.FLOAT, ("batch", "words", SIGNALS))
    first = graph.apply("Slice", signals, *(graph.integers(i) for i in (0, 1, 2)))
    nothing = graph.apply("Mul", vectors, graph.constant(np.array([0.0], np.float32)))
    scores = graph.apply("Add", first, graph.apply("ReduceSum", nothing, graph.integers(2), keepdims=1))
    graph.output(graph.apply("Squeeze", scores, graph.integers(2)), "scores", ("batch", "words"))
    return replace(able, ends=SentenceEnds.of_graph(graph.build(), doubt, 0.0))
