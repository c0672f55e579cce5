"""Sentence ends by a parser's encoder: graphs joined, stretches that are read, stages, saving; the training, tiny."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="networks are trained with torch")
onnx = pytest.importorskip("onnx", reason="graphs are made with onnx")
pytest.importorskip("onnxruntime", reason="graphs run on onnxruntime")
pytest.importorskip("tokenizers", reason="subwords are cut by tokenizers")

from onnx import TensorProto

from headway import Parser, Sentence
from headway.archive import load_archive, save_archive
from headway.errors import ArchiveError
from headway.neural.graph import GraphBuilder
from headway.neural.graph_joining import joined
from headway.neural.sentence_ends import MOST_TOKENS, SCALE, SIGNALS, EncoderEnds, Stage, signals_of, stretches
from headway.neural.session import Session
from headway.text.characters import BREAK, SPACE
from headway.text.segmenter import Segmenter
from headway.treebank import write_treebank
from headway.treebank.annotations import with_first_comments
from tests.neural.tiny import BERT, model_of, sentences

MODEL = model_of("bert", sentences(8))
NETWORK = MODEL.network.graph
SIZE = BERT["hidden_size"]
FORMS = ["The", "dog", "sees", "a", "cat", "the", "bird", "hears", "a", "dog", "and", "a", "sparrow"]
GAPS = np.array([SPACE] * 6 + [BREAK] + [SPACE] * 5 + [BREAK])
SCORES = np.array([-90, -50, -10, -200, -30, -70, 5, -60, -20, -400, 40, -15, 0])


def norms():
    nodes = onnx.load_from_string(NETWORK).graph.node
    return [node.output[0] for node in nodes if node.op_type == "LayerNormalization"]


def over(value, *, signals=False):
    """A graph that gives the sum of a value of the network, or of what the splitter knows, for every word."""
    graph = GraphBuilder(quantised=False, prefix="own_")
    x = graph.input(value, TensorProto.FLOAT, ("windows", "subwords", SIZE))
    words = graph.input("words", TensorProto.INT64, ("batch", "nodes", 2))
    flat = graph.apply("Reshape", x, graph.integers(-1, SIZE))
    vectors = graph.apply("ReduceMean", graph.apply("Gather", flat, words, axis=0), graph.integers(2, 3), keepdims=0)
    found = graph.apply("Slice", vectors, graph.integers(1), graph.integers(99), graph.integers(1))
    if signals:
        known = graph.input("signals", TensorProto.FLOAT, ("batch", "words", SIGNALS))
        first = graph.apply("Slice", known, graph.integers(0), graph.integers(1), graph.integers(2))
        opposite = graph.apply("Mul", first, graph.constant(np.float32([-1.0])))
        found = graph.apply(
            "Add", graph.apply("Mul", found, graph.constant(np.float32([1e-9]))), squeezed(graph, opposite)
        )
    graph.output(found, "scores", ("batch", "words"))
    return graph.build()


def squeezed(graph, value):
    return graph.apply("Squeeze", value, graph.integers(2))


@pytest.mark.parametrize("norm", range(5))
def test_a_joined_graph_computes_what_the_whole_one_does(norm):
    value = norms()[norm]
    whole = onnx.load_from_string(NETWORK)
    whole.graph.output.append(onnx.helper.make_tensor_value_info(value, TensorProto.FLOAT, None))
    import onnxruntime

    reading = MODEL.reader.read([Sentence.from_words(FORMS), Sentence.from_words(FORMS[:3])])
    inputs = dict(reading.batch(np.arange(2)))
    session = onnxruntime.InferenceSession(whole.SerializeToString(), providers=["CPUExecutionProvider"])
    [vectors] = session.run([value], inputs)
    wanted = vectors.reshape(-1, SIZE)[inputs["words"][:, 1:]].mean(axis=(2, 3))
    part = joined(NETWORK, over(value))
    found = Session(part, ("subwords", "shapes", "words"), ("scores",)).run(inputs)["scores"]
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert len(part) < len(NETWORK)


def test_what_the_lower_graph_does_not_have_stays_an_input():
    onnx.checker.check_model(onnx.load_from_string(NETWORK))
    graph = onnx.load_from_string(joined(NETWORK, over(norms()[0], signals=True))).graph
    assert sorted(each.name for each in graph.input) == ["shapes", "signals", "subwords", "words"]


@given(st.lists(st.booleans(), min_size=1, max_size=700), st.data())
def test_stretches_hold_what_is_asked_about_and_its_surroundings(asked, data):
    asked = np.array(asked)
    inner = data.draw(st.sets(st.integers(1, len(asked)), max_size=4))
    stops, around = np.array(sorted({*inner, len(asked)})), data.draw(st.integers(0, 30))
    found = stretches(asked, stops, around)
    wanted = np.zeros(len(asked), bool)
    for start, stop in pairwise([0, *stops.tolist()]):
        for t in range(start, stop):
            if asked[t]:
                wanted[max(start, t - around) : min(stop, t + around + 1)] = True
    read = np.zeros(len(asked), int)
    for start, stop in found.tolist():
        assert 0 < stop - start <= MOST_TOKENS
        assert np.searchsorted(stops, start, "right") == np.searchsorted(stops, stop - 1, "right")
        read[start:stop] += 1
    assert np.array_equal(read, wanted)


def ends_of(*stages):
    return EncoderEnds(MODEL.reader, NETWORK, stages)


def test_each_stage_is_asked_where_the_one_before_was_in_doubt():
    opposite = over(norms()[0], signals=True)
    one = ends_of(Stage(opposite, -1e6, 1e6, 0)).rescored(FORMS, GAPS, SCORES)
    turned = np.rint(-SCALE * np.tanh(SCORES / 60))
    assert np.array_equal(one[GAPS != BREAK], turned[GAPS != BREAK])
    assert np.array_equal(one[GAPS == BREAK], SCORES[GAPS == BREAK])
    some = ends_of(Stage(opposite, -80, 0, 2)).rescored(FORMS, GAPS, SCORES)
    doubtful = (SCORES > -80) & (SCORES < 0) & (GAPS != BREAK)
    assert np.array_equal(some, np.where(doubtful, turned, SCORES))
    # A stage is not asked again what one before it was not asked, however its limits are.
    both = ends_of(Stage(opposite, -80, 0, 2), Stage(opposite, -1e6, 1e6, 1))
    assert np.array_equal(both.rescored(FORMS, GAPS, SCORES), some)
    none = ends_of(Stage(opposite, 1e5, 1e6, 2))
    assert np.array_equal(none.rescored(FORMS, GAPS, SCORES), SCORES)


def test_signals():
    found = signals_of(np.array([0, 60]), np.array([0, BREAK])).astype(float)
    assert found.round(2).tolist() == [
        [0, 0, 0, 0, 0, 1],
        [0.76, 0.29, 0, 0, 1, 1],
    ]


def splitter():
    trees = [Sentence.from_words([*tree.forms, "."]) for tree in sentences(40)]
    return Segmenter.learn(trees)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    ends = ends_of(Stage(over(norms()[2], signals=True), -50, 1e6, 3))
    path = tmp_path_factory.mktemp("ends") / "tiny.headway"
    Parser(replace(MODEL, ends=ends), segmenter=splitter()).save(path)
    return path


def test_saved_with_the_model_and_used_by_its_splitter(saved):
    parser = Parser.load(saved)
    text = "The dog sees a cats . The bird hears a dogs ."
    linear = replace(parser.segmenter, second_look=None)
    assert [len(one) for one in linear.sentences(text)] == [6, 6]
    looked = parser.sentences(text)  # the network here says the opposite of the splitter
    assert [len(one) for one in looked] != [6, 6]
    assert sum(map(len, looked)) == 12
    for other in (pickle.loads(pickle.dumps(parser)), replace(parser, card=None)):
        assert [one.forms for one in other.sentences(text)] == [one.forms for one in looked]
    assert parser.sentences("") == []
    assert len(parser.segmenter.sentence(text)) == 12


def without_heads(data, arrays):
    del arrays["ends_0"]


def with_text_for_limits(data, arrays):
    data["ends"][0]["low"] = "much"


def with_no_list(data, arrays):
    data["ends"] = {"low": 0}


def with_damaged_graph(data, arrays):
    arrays["ends_0"] = arrays["ends_0"][:-9]


def with_floats(data, arrays):
    arrays["ends_0"] = arrays["ends_0"].astype(np.float32)


@pytest.mark.parametrize(
    "damage",
    [without_heads, with_text_for_limits, with_no_list, with_damaged_graph, with_floats],
    ids=lambda f: f.__name__,
)
def test_damaged_files_are_refused(saved, tmp_path, damage):
    archive = load_archive(saved)
    data, arrays = {**archive.data, "ends": [dict(one) for one in archive.data["ends"]]}, dict(archive.arrays)
    damage(data, arrays)
    save_archive(replace(archive, data=data, arrays=arrays), tmp_path / "damaged.headway")
    with pytest.raises(ArchiveError):
        Parser.load(tmp_path / "damaged.headway")


def test_a_network_that_does_not_fit_is_refused_when_text_is_split():
    alien = ends_of(Stage(over("no_such_value"), -1e6, 1e6, 0))
    with pytest.raises(ArchiveError, match="sentence ends"):
        alien.rescored(FORMS, GAPS, SCORES)


@pytest.fixture(scope="module")
def experiment():
    folder = str(Path(__file__).parents[2] / "experiments" / "english")
    sys.path.insert(0, folder)
    import encoder_ends

    sys.path.remove(folder)
    return encoder_ends


@pytest.fixture
def tiny(experiment, monkeypatch):
    sizes = {"SIZE": SIZE, "CHANNELS": 8, "LAYER": 1, "FOLDS": 2, "LOW": -1e6, "HIGH": 1e6}
    steps = {"PASSES": 20, "WARM_UP": 5, "CELLS": 150, "AVERAGING": 0.5, "RATE": 1e-2, "DROPOUT": 0.0}
    for name, value in {**sizes, **steps}.items():
        monkeypatch.setattr(experiment, name, value)
    return experiment


def test_the_experiments_network_and_its_graph_agree(tiny):
    torch.manual_seed(0)
    network = tiny.Ends(8).eval()
    graph = network.graph(NETWORK, 1)
    found = ends_of(Stage(graph, -1e6, 1e6, 0)).rescored(FORMS, GAPS, SCORES)
    text = tiny.Text(FORMS, signals_of(SCORES, GAPS), GAPS == BREAK, GAPS != BREAK, [(0, 7), (7, 13)])
    vectors = torch.from_numpy(tiny.vectors_of(text, MODEL, 1).astype(np.float32))
    signals = torch.from_numpy(text.signals)
    with torch.no_grad():
        wanted = torch.cat([network(vectors[None, a:b], signals[None, a:b])[0] for a, b in text.pieces]).numpy()
    counted = GAPS != BREAK
    assert np.abs(found[counted] - SCALE * wanted[counted]).max() < 0.06 * SCALE  # weights of one byte
    assert np.ptp(found[counted]) > 1
    apart = [ends_of(Stage(graph, -1e6, 1e6, 0)).rescored(FORMS[a:b], GAPS[a:b], SCORES[a:b]) for a, b in text.pieces]
    assert np.abs(np.concatenate(apart) - found).max() <= 1  # nothing depends on the paragraphs beside, but rounding


def test_the_experiment_teaches_a_tiny_parser(tiny, tmp_path, monkeypatch):
    for part, seed in (("train", 0), ("dev", 1)):
        forms = [[*sentence.forms, "."] for sentence in sentences(60, seed)]
        trees = [Sentence.from_words(words, heads=[-1, 0, *[1] * (len(words) - 1)]) for words in forms]
        marked = [with_first_comments(tree, "# newdoc") if i % 6 == 0 else tree for i, tree in enumerate(trees)]
        write_treebank(marked, tmp_path / f"{part}.conllu")
    model = tmp_path / "tiny.headway"
    Parser(MODEL, segmenter=splitter()).save(model)
    monkeypatch.setattr(sys, "argv", ["encoder_ends.py", "--data", str(tmp_path), "--into", str(model)])
    tiny.main()
    assert len(Parser.load(model).model.ends.stages) == 1
    found = Parser.load(model).sentences("The dog sees a cats . The bird hears a dogs . The cat likes a birds .")
    assert [len(one) for one in found] == [6, 6, 6]
