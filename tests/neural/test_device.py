"""Parsing through torch: on the CPU it must find what ONNX Runtime finds."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="devices are torch's")
pytest.importorskip("onnx", reason="graphs are made with onnx")
pytest.importorskip("onnxruntime", reason="graphs run on onnxruntime")
pytest.importorskip("tokenizers", reason="subwords are cut by tokenizers")

from headway import Parser, Sentence
from headway.arrays import TreeClass
from headway.errors import ArchiveError, ArgumentError, NoTreeError
from headway.inference import TreeDistribution
from headway.models.constraints import Constraints
from headway.models.protocol import Options
from headway.neural import device as on_device
from headway.neural.device import DeviceModel
from headway.neural.torch_session import TorchSession
from headway.parallel import SERIAL
from tests.cli.conftest import run
from tests.neural.tiny import NAMES, exported, model_of, network_of, sentence_of, sentences, torch_outputs

TREES = sentences()
CPU = torch.device("cpu")
EMPTY = Sentence.from_words([])
CLASSES = [TreeClass(projective=p, single_root=s) for p in (False, True) for s in (False, True)]


def given(name):
    return TREES if name == "tags" else [Sentence.from_words(tree.forms) for tree in TREES]


def tensors(inputs):
    return {name: torch.from_numpy(array) for name, array in inputs.items()}


@pytest.fixture(scope="module", params=NAMES)
def name(request):
    return request.param


@pytest.mark.parametrize("quantised", [False, True])
@pytest.mark.parametrize("which", [[0], [3, 0], list(range(12))])
def test_scores_are_those_of_the_runtime(name, quantised, which):
    model = model_of(name, TREES, quantised=quantised)
    reading = model.reader.read(TREES)
    inputs = reading.batch(np.array(which))
    expected, found = model.network.run(inputs), TorchSession(model.network.graph, CPU).run(tensors(inputs))
    assert found.keys() == expected.keys()
    there = np.arange(expected["arcs"].shape[1]) <= reading.lengths[which][:, None]
    for output, array in expected.items():
        inside = there[:, :, None] & there[:, None, :] if output == "arcs" else there
        # A word that is rounded the other way, by the last bit, moves a score of bytes a little.
        np.testing.assert_allclose(found[output].numpy()[inside], array[inside], atol=0.03 if quantised else 1e-4)
    scale = np.abs(expected["arcs"][there[:, :, None] & there[:, None, :]]).max()
    assert scale > 0.2


def test_floats_are_those_of_the_network_itself(name):
    reader, _, network = network_of(name, TREES)
    model = model_of(name, TREES, quantised=False)
    inputs = reader.read(TREES).batch(np.arange(5))
    found = TorchSession(model.network.graph, CPU).run(tensors(inputs))["arcs"].numpy()
    lengths = np.array([len(tree) for tree in TREES[:5]])
    inside = np.arange(found.shape[1]) <= lengths[:, None]
    inside = inside[:, :, None] & inside[:, None, :]
    np.testing.assert_allclose(found[inside], torch_outputs(network, inputs)["arcs"][inside], atol=1e-4)


def same(one, two):
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.heads, b.heads)
        assert a.labels == b.labels
        if a.labels is not None:
            np.testing.assert_allclose(a.label_probabilities, b.label_probabilities, atol=1e-3)
        assert a.columns == b.columns
        assert (a.status, a.gap) == (b.status, b.gap)
        np.testing.assert_allclose(a.distribution.marginals, b.distribution.marginals, atol=1e-3)
        np.testing.assert_allclose(
            a.distribution.log_prob(a.heads), b.distribution.log_prob(b.heads), atol=1e-2, rtol=1e-3
        )


@pytest.mark.parametrize("mbr", [False, True])
@pytest.mark.parametrize("trees", CLASSES)
def test_trees_labels_tags_and_probabilities_are_those_of_the_runtime(name, trees, mbr):
    model = model_of(name, TREES, quantised=False).with_trees(trees)
    some = [EMPTY, *given(name), EMPTY]
    expected = model.predict(some, Options(mbr=mbr), SERIAL)
    same(DeviceModel.of(model, CPU).predict(some, Options(mbr=mbr), SERIAL), expected)


def test_batches_of_any_size(monkeypatch):
    model = model_of("bert", TREES, quantised=False)
    expected = model.predict(given("bert"), Options(), SERIAL)
    for most, rows in ((1, 3), (100, 10_000)):
        monkeypatch.setattr(on_device, "_MOST", most)
        monkeypatch.setattr(on_device, "_ROWS", rows)
        same(DeviceModel.of(model, CPU).predict(given("bert"), Options(), SERIAL), expected)
    assert DeviceModel.of(model, CPU).predict([], Options(), SERIAL) == []
    only_empty = DeviceModel.of(model, CPU).predict([EMPTY, EMPTY], Options(), SERIAL)
    assert [found.heads.tolist() for found in only_empty] == [[-1], [-1]]


def test_too_little_memory_is_answered_by_smaller_batches(monkeypatch):
    model = model_of("lstm", TREES, quantised=False)
    expected = model.predict(given("lstm"), Options(), SERIAL)
    limited = DeviceModel.of(model, CPU)
    whole, most = TorchSession.run, 4

    def narrow(self, inputs):
        if "words" in inputs and len(inputs["words"]) > most:
            raise torch.cuda.OutOfMemoryError("so large a batch")
        return whole(self, inputs)

    monkeypatch.setattr(TorchSession, "run", narrow)
    same(limited.predict(given("lstm"), Options(), SERIAL), expected)
    most = 0
    with pytest.raises(ArgumentError, match="too little memory for a sentence of 5 words"):
        limited.predict(given("lstm"), Options(), SERIAL)


def test_probabilities_are_exact():
    """In double precision, against the distribution of the scores themselves."""
    found = DeviceModel.of(model_of("lstm", TREES), CPU).predict(given("lstm"), Options(), SERIAL)
    for each in found[:8]:
        alone = TreeDistribution(each.distribution._batch.scores[0])
        np.testing.assert_allclose(each.distribution.marginals, alone.marginals, atol=1e-12)
        np.testing.assert_allclose(each.distribution.log_partition, alone.log_partition, atol=1e-10)
        assert each.distribution.entropy == pytest.approx(alone.entropy)
        assert [heads.tolist() for heads, _ in each.distribution.kbest(3)] == [
            heads.tolist() for heads, _ in alone.kbest(3)
        ]
        assert (each.distribution.argmax() == each.heads).all()


def test_scores_of_any_size():
    model = model_of("lstm", TREES, quantised=False)
    cold = replace(model, temperature=1e-6)
    same(
        DeviceModel.of(cold, CPU).predict(given("lstm")[:4], Options(), SERIAL),
        cold.predict(given("lstm")[:4], Options(), SERIAL),
    )


def test_parsers_with_such_a_model(tmp_path):
    model = model_of("bert", TREES)
    there, here = Parser(DeviceModel.of(model, CPU)), Parser(model)
    assert there.describe() == here.describe()
    assert there.gives_tags
    there.save(tmp_path / "there.headway")
    here.save(tmp_path / "here.headway")
    assert (tmp_path / "there.headway").read_bytes() == (tmp_path / "here.headway").read_bytes()
    long = Sentence.from_words(sentence_of(np.random.default_rng(0), 180).forms)
    found = list(there.parse([long, *given("bert")]))
    assert found[0].status == "IN_STRETCHES"
    assert [len(each.sentence) for each in found[1:]] == list(map(len, TREES))
    assert (
        pickle.loads(pickle.dumps(there)).parse(["the", "dog"]).to_conllu() == there.parse(["the", "dog"]).to_conllu()
    )
    assert there.with_projective(True).model.trees.projective


def test_devices_that_are_not_there(tmp_path, monkeypatch):
    Parser(model_of("lstm", TREES)).save(tmp_path / "m.headway")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for device in ("auto", "cpu"):
        assert Parser.load(tmp_path / "m.headway", device=device).parse(["the", "dog"])
    with pytest.raises(ArgumentError, match="no GPU"):
        Parser.load(tmp_path / "m.headway", device="cuda")
    with pytest.raises(ArgumentError, match="expected one of cpu, cuda, auto"):
        Parser.load(tmp_path / "m.headway", device="tpu")
    Parser.train(TREES, epochs=1, learner="perceptron", labels="none", tags="gold").save(tmp_path / "linear.headway")
    with pytest.raises(ArgumentError, match="only neural models"):
        Parser.load(tmp_path / "linear.headway", device="cuda")
    assert Parser.load(tmp_path / "linear.headway", device="auto").model.kind == "arc"
    text = tmp_path / "a.conllu"
    text.write_text(Sentence.from_words(["the", "dog"]).to_conllu())
    assert "dog" in run("parse", tmp_path / "m.headway", text, "--device", "auto").output
    assert "no GPU" in run("parse", tmp_path / "m.headway", text, "--device", "cuda", status=1).output


@pytest.mark.parametrize("what", ["arcs", "labels"])
def test_scores_that_are_not_finite_are_one_sentence(what):
    """On ONNX Runtime and on torch; each weight of the network is finite."""
    reader, tasks, network = network_of("lstm", TREES)
    with torch.no_grad():
        roles = [getattr(network, f"{what[:-1]}_{role}") for role in ("heads", "modifiers")]
        for weights in (getattr(network, what), *(role.linear.weight for role in roles)):
            weights *= 1e15
    model = exported(reader, tasks, network)
    for each in (model, DeviceModel.of(model, CPU)):
        with pytest.raises(ArchiveError, match=f"gives {what} scores that are not finite; save it again"):
            each.predict(given("lstm"), Options(), SERIAL)


def test_damaged_graphs_are_one_sentence():
    model = model_of("bert", TREES)
    beyond = replace(model, reader=replace(model.reader, start=10_000))
    with pytest.raises(ArchiveError, match="cannot be run"):
        DeviceModel.of(beyond, CPU).predict(given("bert"), Options(), SERIAL)
    values = {**model.tasks.values, "upos": model.tasks.values["upos"][:-1]}
    fewer = replace(model, tasks=replace(model.tasks, values=values))
    with pytest.raises(ArchiveError, match="another shape"):
        DeviceModel.of(fewer, CPU).predict(given("bert"), Options(), SERIAL)
    fewer = replace(model, tasks=replace(model.tasks, values={**model.tasks.values, "labels": model.tasks.labels[:-1]}))
    with pytest.raises(ArchiveError, match="another shape"):
        DeviceModel.of(fewer, CPU).predict(given("bert"), Options(), SERIAL)
    with pytest.raises(ArchiveError, match="cannot be run"):
        TorchSession(model.network.graph, CPU).run({})


def test_the_users_precision_stays_as_it_was():
    model = model_of("bert", TREES)
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        DeviceModel.of(model, CPU).predict(given("bert")[:1], Options(), SERIAL)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("quantised", [False, True])
def test_on_a_gpu(name, quantised):
    model = model_of(name, TREES, quantised=quantised)
    expected = DeviceModel.of(model, CPU).predict(given(name), Options(), SERIAL)
    same(DeviceModel.of(model, torch.device("cuda")).predict(given(name), Options(), SERIAL), expected)


@pytest.mark.parametrize("mbr", [False, True])
@pytest.mark.parametrize("trees", CLASSES)
def test_constraints_are_met_as_by_the_runtime(name, trees, mbr):
    model, rng = model_of(name, TREES, quantised=False).with_trees(trees), np.random.default_rng(5)
    some, constraints = [EMPTY, *given(name)], [None]
    for tree in TREES:
        heads = np.where(rng.random(len(tree) + 1) < 0.3, np.arange(len(tree) + 1) - 1, -1)
        forbidden = tuple((h, 2) for h in (3, 4) if h <= len(tree))
        constraints.append(Constraints(heads, None, forbidden) if rng.random() < 0.8 else None)
    expected = model.predict(some, Options(mbr=mbr), SERIAL, constraints)
    found = DeviceModel.of(model, CPU).predict(some, Options(mbr=mbr), SERIAL, constraints)
    same(found, expected)
    free = model.predict(some, Options(mbr=mbr), SERIAL)
    assert any((one.heads != other.heads).any() for one, other in zip(found, free, strict=True))
    for one, known in zip(found, constraints, strict=True):
        if known is not None:
            words = np.flatnonzero(known.heads >= 0)
            np.testing.assert_array_equal(one.heads[words], known.heads[words])
            assert not any(one.distribution.marginals[arc] for arc in known.forbidden)


def test_no_tree_is_an_error():
    model = model_of("lstm", TREES, quantised=False)
    sentence = given("lstm")[0]
    known = Constraints(np.full(len(sentence) + 1, -1), None, tuple((0, m) for m in range(1, len(sentence) + 1)))
    with pytest.raises(NoTreeError, match="cannot be reached from the root"):
        DeviceModel.of(model, CPU).predict([sentence], Options(), SERIAL, [known])
