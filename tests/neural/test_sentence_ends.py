"""Sentence ends by a parser's encoder: what the network is told, its graph, drafts that are cut, saving, training."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="networks are trained with torch")
onnx = pytest.importorskip("onnx", reason="graphs are made with onnx")
pytest.importorskip("onnxruntime", reason="graphs run on onnxruntime")
pytest.importorskip("tokenizers", reason="subwords are cut by tokenizers")

from headway import Parser, Sentence
from headway.archive import load_archive, save_archive
from headway.errors import ArchiveError, TrainingError
from headway.inference.dual_decomposition import Status
from headway.models import stretches
from headway.models.protocol import Options
from headway.neural import device as on_device
from headway.neural.device import DeviceModel
from headway.neural.sentence_ends import MIDDLE, SIGNALS, SentenceEnds, joints_of, signals_of
from headway.neural.sentence_ends_training import (
    DOUBT,
    LEARNT_FROM,
    Ends,
    Example,
    batch_of,
    documents,
    graph_of,
    jack_knifed,
    read,
    trained,
    with_middle,
    with_sentence_ends,
)
from headway.neural.torch_session import TorchSession
from headway.parallel import SERIAL
from headway.text.characters import BREAK, LINE, SPACE
from headway.text.segmenter import Segmenter
from headway.treebank.annotations import NO_JOINT, Joints, with_first_comments
from headway.treebank.raw_text import pieces_of, sentence_from_tokens
from tests.neural.tiny import BERT, model_of, sentences, with_ends

SIZE = BERT["hidden_size"]
MODEL = model_of("bert", sentences(8))
DRAFTING = with_ends(MODEL)
WORDS = ["the", "dog", "sees", "a", "cat", "and", "bird"]


def draft(scores, words=None, gaps=None):
    """Words with these scores of an end behind them."""
    forms = words or [WORDS[i % len(WORDS)] for i in range(len(scores))]
    offsets = tuple((2 * i, 2 * i + 1) for i in range(len(forms)))
    made = sentence_from_tokens([(form, (form,), True) for form in forms], offsets)
    joints = Joints(tuple(scores), tuple(gaps or [SPACE] * len(scores)))
    return replace(made, layout=replace(made.layout, joints=joints))


# What the network is told, and where it may cut.


def test_signals_of_every_place():
    given = [Joints((0, 60, NO_JOINT, -200), (SPACE, LINE, -1, 0)), None, Joints((30,), (BREAK,))]
    found = signals_of(given, 5)
    assert found.shape == (3, 5, SIGNALS)
    tanh = np.tanh
    expected = [
        [0, 0, 1, 0, 0, 1],
        [tanh(1), tanh(0.3), 0, 1, 0, 1],
        [-1, tanh(NO_JOINT / 200), 0, 0, 1, 1],
        [tanh(-200 / 60), tanh(-1), 0, 0, 0, 1],
        [0, 0, 0, 0, 0, 0],
    ]
    np.testing.assert_allclose(found[0], expected, atol=1e-6)
    assert not found[1].any()
    assert found[2, 0].tolist()[2:] == [0, 0, 0, 1]


def test_joints_are_between_tokens_within_a_paragraph():
    one = draft([9, 9, NO_JOINT, 9, 9], gaps=[SPACE, 0, -1, BREAK, SPACE])
    assert joints_of([one, Sentence.from_words(["a", "b"])], 6).astype(int).tolist() == [[1, 1, 0, 0, 0, 0], [0] * 6]


def test_ends_are_above_the_limit_at_joints():
    ends = SentenceEnds(DRAFTING.ends.network, DOUBT, 0.25)
    drafts = [draft([0, 0, 0]), draft([0], gaps=[SPACE])]
    scores = np.array([[0.26, 0.25, 9.0, 9.0], [9.0, 9.0, 9.0, 9.0]], np.float32)
    assert ends.chosen(drafts, scores) == [[1], []]
    for wrong in (scores[:1], scores[:, :2], scores[0], np.full_like(scores, np.nan)):
        with pytest.raises(ArchiveError, match="save the model again"):
            ends.chosen(drafts, wrong)


# The network.


def example(rng, length):
    vectors = rng.normal(size=(length, SIZE)).astype(np.float16)
    joints = Joints(tuple(rng.integers(-200, 200, length).tolist()), tuple(rng.integers(-1, 3, length).tolist()))
    gold = rng.random(length) < 0.3
    return Example(vectors, signals_of([joints], length)[0], gold, joints_of([draft([0] * length)], length)[0])


@pytest.mark.parametrize("lengths", [[1], [6, 2, 11]])
def test_the_graph_computes_what_the_network_does_whatever_the_padding(lengths):
    torch.manual_seed(3)
    network, rng = Ends(SIZE).eval(), np.random.default_rng(0)
    vectors, signals, _, _ = batch_of([example(rng, length) for length in lengths])
    with torch.no_grad():
        expected = network(vectors, signals).numpy()
        for row, length in enumerate(lengths):  # padding changes nothing
            own = slice(row, row + 1), slice(None, length)
            np.testing.assert_allclose(network(vectors[own], signals[own])[0], expected[row, :length], atol=1e-5)
    # Each word has two subwords, which have its vector as their mean.
    batch, width = signals.shape[:2]
    rows = vectors.numpy().reshape(-1, SIZE)
    middle = np.stack([rows + 1, rows - 1], axis=1).reshape(1, -1, SIZE)
    places = np.arange(2 * batch * width).reshape(batch, width, 2)
    words = np.concatenate([np.zeros((batch, 1, 2), np.int64), places], axis=1)
    ends = SentenceEnds.of_graph(graph_of(network, SIZE), DOUBT, 0.0)
    found = ends.network.run({MIDDLE: middle, "words": words, "signals": signals.numpy()})["scores"]
    there = signals.numpy()[..., -1] > 0
    assert len(lengths) == 1 or np.ptp(expected[there]) > 0.05
    np.testing.assert_allclose(found[there], expected[there], atol=0.05)  # the graph's weights are bytes
    assert np.abs(found - expected)[there].mean() < 0.01
    given = {name: torch.from_numpy(a) for name, a in ((MIDDLE, middle), ("words", words))} | {"signals": signals}
    on_torch = TorchSession(ends.network.graph, torch.device("cpu")).run(given)["scores"].numpy()
    np.testing.assert_allclose(on_torch[there], found[there], atol=1e-4)


@pytest.mark.parametrize("kind", ["bert", "roberta", "electra", "mpnet"])
def test_the_middle_is_the_output_of_a_lower_layer(kind):
    model = model_of(kind, sentences(8))
    able, size = with_middle(model)
    assert size == SIZE
    inputs = dict(model.reader.read([Sentence.from_words(WORDS)]).batch(np.arange(1)))
    usual, found = model.network.run(inputs), able.network.run(inputs)
    for name, scores in usual.items():
        np.testing.assert_array_equal(scores, found[name])
    assert found[MIDDLE].shape == (*inputs["subwords"].shape, SIZE)
    # The norm of a layer has unit variance, as its weights are new.
    np.testing.assert_allclose(found[MIDDLE].var(axis=-1), 1, atol=1e-3)
    assert able.network.run(inputs, [MIDDLE]).keys() == {MIDDLE}
    again, _ = with_middle(able)
    assert again.network.outputs == able.network.outputs


def test_an_encoder_without_layers_is_refused():
    with pytest.raises(TrainingError, match="a transformer"):
        with_middle(model_of("lstm", sentences(8)))


# Drafts.

CASES = st.lists(st.lists(st.integers(-90, 90), min_size=1, max_size=12), min_size=1, max_size=6)


def heads_of(parsed):
    return [(tree.sentence.forms, tree.heads.tolist(), tree.sentence.labels, tree.sentence.upos) for tree in parsed]


@given(CASES)
@settings(max_examples=40)
def test_drafts_are_cut_and_parsed_as_their_sentences_are(scores):
    drafts = [draft(own) for own in scores]
    cuts = [[i for i, score in enumerate(own[:-1], 1) if score > 0] for own in scores]
    expected = [pieces_of(one, places) for one, places in zip(drafts, cuts, strict=True)]
    for model in (DRAFTING, DeviceModel.of(DRAFTING, torch.device("cpu"))):
        found = model.predict_drafts(drafts, Options(), SERIAL)
        assert [[one.to_conllu() for one, _ in own] for own in found] == [[p.to_conllu() for p in e] for e in expected]
    parsed = list(Parser(DRAFTING).parse_each(drafts))
    alone = [list(Parser(MODEL).parse(own)) for own in expected]
    assert [heads_of(own) for own in parsed] == [heads_of(own) for own in alone]
    for one, other in zip(chain(*parsed), chain(*alone), strict=True):
        np.testing.assert_allclose(one.confidence.arcs[1:], other.confidence.arcs[1:], atol=1e-5)


def test_drafts_and_sentences_together_keep_their_order():
    whole = Sentence.from_words(["a", "cat", "sees"])
    cut = draft([-5, 20, -30, 40])
    parsed = list(Parser(DRAFTING).parse_each([whole, cut, Sentence.from_words([]), cut, whole]))
    assert [len(own) for own in parsed] == [1, 2, 1, 2, 1]
    assert [len(tree) for own in parsed for tree in own] == [3, 2, 2, 0, 2, 2, 3]
    assert len(list(Parser(DRAFTING).parse([cut, cut]))) == 4
    one = Parser(DRAFTING).parse(cut)  # a single sentence stays one
    assert len(one) == 4
    assert one.sentence.layout.joints is None
    empty = draft([])
    assert [len(own) for own in DRAFTING.predict_drafts([empty, empty], Options(), SERIAL)] == [1, 1]
    assert DRAFTING.predict_drafts([], Options(), SERIAL) == []


def test_a_model_without_ends_takes_a_draft_for_a_sentence():
    (parsed,) = Parser(MODEL).parse([draft([90, 90, 90])])
    assert len(parsed) == 3


def test_a_draft_of_too_many_words_is_cut_as_its_splitter_would(monkeypatch):
    monkeypatch.setattr(stretches, "MOST_WORDS", 6)
    words = Sentence.from_words(WORDS)
    cut, whole, fits = draft([-5, 7, -5, -5, 0, 7, -5, 7]), draft([-5] * 7), draft([-5, 7, -5, -5, -5, 7])
    ends = replace(DRAFTING.ends, above=100.0)  # the network finds no end
    parsed = list(Parser(replace(DRAFTING, ends=ends)).parse_each([cut, words, fits, whole]))
    assert [[len(tree) for tree in own] for own in parsed] == [[2, 4, 2], [7], [6], [7]]
    assert [[tree.status == Status.IN_STRETCHES for tree in own] for own in parsed] == [
        [False] * 3,
        [True],
        [False],
        [True],
    ]
    assert all(tree.sentence.layout.joints is None for own in parsed for tree in own)
    expected = Parser(MODEL).parse(pieces_of(cut, [2, 6]))
    assert heads_of(parsed[0]) == heads_of(expected)


def test_known_heads_stay_with_their_sentences():
    known = Sentence.from_words(["a", "cat", "sees"], heads=[-1, 2, -1, 0], partial=True)
    cut = draft([5, 5])
    parser = Parser(DRAFTING)
    found = list(parser.parse([cut, known, cut], keep_heads=True))
    assert [len(tree) for tree in found] == [1, 1, 3, 1, 1]
    assert found[2].heads[1] == 2


def test_a_gpu_with_too_little_memory_reads_the_halves(monkeypatch):
    model = DeviceModel.of(DRAFTING, torch.device("cpu"))
    drafts = [draft([20] * n) for n in (3, 1, 4, 1, 5)]
    usual, sizes = DeviceModel._ends, []

    def scarce(self, some, batch):
        sizes.append(len(some))
        if len(some) > 1:
            raise torch.cuda.OutOfMemoryError
        return usual(self, some, batch)

    expected = [[len(one) for one, _ in own] for own in model.predict_drafts(drafts, Options(), SERIAL)]
    monkeypatch.setattr(DeviceModel, "_ends", scarce)
    assert [[len(one) for one, _ in own] for own in model.predict_drafts(drafts, Options(), SERIAL)] == expected
    assert max(sizes) == 5
    assert on_device._too_little_memory(7).args[0].startswith("the GPU has too little memory for a sentence of 7 words")


# Saving.


def test_saved_pickled_and_damaged(tmp_path):
    drafts = [draft([-5, 20, -30, 40]), draft([7, 7])]
    expected = [heads_of(own) for own in Parser(DRAFTING).parse_each(drafts)]
    path = tmp_path / "drafting.headway"
    Parser(DRAFTING).save(path)
    for again in (Parser.load(path), Parser(pickle.loads(pickle.dumps(DRAFTING)))):
        assert again.model.ends.doubt == DRAFTING.ends.doubt
        assert [heads_of(own) for own in again.parse_each(drafts)] == expected
    archive = load_archive(path)
    ends = archive.data["ends"]
    for damage in (
        {"doubt": "much"},
        {"doubt": [0, 10_001]},
        {"doubt": [0]},
        {"doubt": 3},
        {"above": None},
        {"above": float("nan")},
    ):
        save_archive(replace(archive, data={**archive.data, "ends": {**ends, **damage}}), path)
        with pytest.raises(ArchiveError):
            Parser.load(path)
    for graph in (np.zeros(5, np.uint8), np.frombuffer(MODEL.network.graph, np.uint8), np.zeros(0, np.uint8)):
        save_archive(replace(archive, arrays={**archive.arrays, "ends": graph}), path)
        with pytest.raises(ArchiveError):
            Parser.load(path)
    save_archive(replace(archive, arrays={n: a for n, a in archive.arrays.items() if n != "ends"}), path)
    with pytest.raises(ArchiveError):
        Parser.load(path)
    usual = {**archive.arrays, "network": np.frombuffer(MODEL.network.graph, np.uint8)}  # has no middle
    save_archive(replace(archive, arrays=usual), path)
    with pytest.raises(ArchiveError):
        Parser.load(path)


# Training.


def treebank(count):
    """Documents of five sentences, of which every other one ends without a mark."""
    found = []
    for i, tree in enumerate(sentences(count)):
        made = Sentence.from_words([*tree.forms, "."] if i % 2 else tree.forms)
        found.append(with_first_comments(made, f"# newdoc id = {i}") if i % 5 == 0 else made)
    return found


def test_documents_begin_where_comments_say_so():
    assert [len(own) for own in documents(treebank(12))] == [5, 5, 2]
    assert [len(own) for own in documents(treebank(12)[1:])] == [4, 5, 2]


def ends_to_learn(one):
    return one.layout.joints.scores[:-1] if one.layout.joints else ()


def test_drafts_to_learn_from_come_from_splitters_that_have_not_seen_them(monkeypatch):
    train = treebank(60)
    splitter, seen = Segmenter.learn(train), []
    from headway.neural import sentence_ends_training

    usual = sentence_ends_training.sentence_end_weights
    monkeypatch.setattr(
        sentence_ends_training, "sentence_end_weights", lambda source: (seen.append(source.text), usual(source))[1]
    )
    texts = list(jack_knifed(splitter, train))
    assert len(texts) == 3 * len(seen)
    words = [sum(len(one) for one in own) for _, own in texts[::3]]
    assert sum(words) == sum(map(len, train))
    for (source, _), known in zip(texts[::3], seen, strict=True):
        assert len(source.text) + len(known) < len(" ".join(" ".join(one.forms) for one in train)) + 10
    for source, own in texts:
        assert sum(len(one) for one in own) == sum(len(one.forms) for one in splitter.sentences(source.text))
        assert all(score <= LEARNT_FROM.high for one in own for score in ends_to_learn(one))


def test_examples_say_where_sentences_end():
    train = treebank(30)
    able, _ = with_middle(MODEL)
    splitter = Segmenter.learn(train)
    from headway.treebank.raw_text import raw_text

    source = raw_text(train)
    drafts = splitter.drafts(source.text, LEARNT_FROM._replace(high=10_000))
    examples = list(read(able, drafts, source))
    assert sum(len(one.gold) for one in examples) == sum(len(one) for one in drafts if len(one) > 1)
    ends = sum(int(one.gold.sum()) for one in examples)
    assert ends == 30 - sum(1 for one in drafts if len(one) == 1)
    # Vectors are the words' own: a draft that is read alone has the same.
    longest = max(range(len(drafts)), key=lambda i: len(drafts[i]))
    [alone] = read(able, [drafts[longest]], source)
    assert any(
        np.allclose(one.vectors, alone.vectors, atol=1e-2) for one in examples if len(one.gold) == len(alone.gold)
    )


def test_the_network_learns_what_the_vectors_say():
    rng = np.random.default_rng(0)

    def one(length):
        made = example(rng, length)
        return replace(made, gold=made.vectors[:, 0] > 0.0, counts=np.ones(length, bool))

    network = trained([one(30) for _ in range(2000)], SIZE, seed=1)
    new = [one(30) for _ in range(50)]
    vectors, signals, gold, _ = batch_of(new)
    with torch.no_grad():
        right = ((network(vectors, signals) > 0) == (gold > 0)).float().mean()
    assert right > 0.85


def test_a_model_learns_ends_from_a_treebank():
    train = treebank(60)
    splitter = Segmenter.learn(train)
    made = with_sentence_ends(MODEL, splitter, train, seed=3)
    same = with_sentence_ends(MODEL, splitter, train, seed=3)
    assert made.ends.network.graph == same.ends.network.graph
    assert made.ends.doubt == DOUBT
    parsed = list(Parser(made, None, splitter).parse_text("the dog sees a cat the bird hears a dog ."))
    assert sum(map(len, parsed)) == 11
    with pytest.raises(TrainingError, match="several documents"):
        with_sentence_ends(MODEL, splitter, train[:4])
