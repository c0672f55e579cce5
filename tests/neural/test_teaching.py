"""Teachers: their loss beside a list of all trees, their answers beside what they say on ONNX Runtime, and pupils."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch", reason="networks are trained with torch")
pytest.importorskip("onnx", reason="graphs are made with onnx")
pytest.importorskip("onnxruntime", reason="graphs run on onnxruntime")
pytest.importorskip("tokenizers", reason="subwords are cut by tokenizers")

from headway import Parser, Sentence
from headway.archive import Archive, save_archive
from headway.arrays import TreeClass
from headway.errors import HeadwayError, TrainingError
from headway.models.protocol import Options, Prediction
from headway.neural import preparation, teaching, trainer
from headway.neural.losses import taught
from headway.neural.model import NeuralModel
from headway.neural.targets import UNTAUGHT
from headway.neural.torch_session import TorchSession
from headway.parallel import SERIAL
from headway.training.data import TrainingData
from headway.training.settings import Settings
from headway.training.stages import fingerprint
from headway.training.tuning import tune
from headway.treebank import write_treebank
from tests.cli.conftest import run
from tests.inference import exact
from tests.neural.test_fitting import SMALL, treebank
from tests.neural.tiny import interrupted, model_of, sentences

CPU = torch.device("cpu")
CLASSES = [TreeClass(p, s) for p in (False, True) for s in (False, True)]
TREES = sentences(12)
EMPTY = Sentence.from_words([])
ASKED = [TREES[2], EMPTY, TREES[0], TREES[1], EMPTY, TREES[4], TREES[3], EMPTY]
LSTM = replace(model_of("lstm", TREES, quantised=False), label_temperature=2.5)
BERT = replace(model_of("bert", TREES), temperature=0.7, label_temperature=0.4)


# --- the loss ------------------------------------------------------------------------------------


@pytest.mark.parametrize("trees", CLASSES, ids=str)
def test_the_loss_is_the_cross_entropy_of_all_trees(trees: TreeClass) -> None:
    """Of two sentences side by side, in whose padding the scores are anything; its gradient, too."""
    own, other = np.random.default_rng(0).normal(0, 2, (2, 2, 5, 5))
    lengths, marginals, differences, entropies = (4, 2), np.zeros((2, 5, 5)), np.zeros((2, 5, 5)), []
    for row, n in enumerate(lengths):
        inside = (row, slice(n + 1), slice(n + 1))
        teacher, pupil = (exact.tree_distribution(scores[inside], **trees._asdict()) for scores in (other, own))
        entropies.append(teacher.cross_entropy(pupil))
        marginals[inside], of_pupil = (exact.arc_marginals(each, n).astype(float) for each in (teacher, pupil))
        differences[inside] = of_pupil - marginals[inside]
    scores = torch.tensor(own, requires_grad=True)
    found = taught(scores, torch.from_numpy(marginals), torch.tensor(lengths), trees)
    np.testing.assert_allclose(found.detach(), entropies, rtol=1e-9)
    found.sum().backward()
    np.testing.assert_allclose(scores.grad, differences, atol=1e-9)


# --- answers -------------------------------------------------------------------------------------


def predicted(model: NeuralModel, given: Sequence[Sentence]) -> list[Prediction]:
    return model.predict(given, Options(mbr=True), SERIAL)


def softmax(scores: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    powers = np.exp(scores.astype(np.float64) - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def labels_of(model: NeuralModel, sentence: Sentence, heads: Sequence[int]) -> NDArray[np.float64]:
    """The probabilities of labels, none of the root's."""
    scores = model.label_scores([sentence.with_tree(heads)]) / model.label_temperature
    return np.concatenate([np.zeros((1, scores.shape[1])), softmax(scores)])


def tags_of(model: NeuralModel, sentence: Sentence) -> dict[str, NDArray[np.float64]]:
    """The probabilities of every word's values (n, V), by task."""
    [scores] = model.network.run(model.reader.read([sentence]).batch(np.arange(1)))["tags"]
    ends = np.cumsum([model.tasks.sizes[name] for name in model.tasks.tags])[:-1]
    parts = np.split(scores[1:], ends, axis=1)
    return {name: softmax(own) for name, own in zip(model.tasks.tags, parts, strict=True)}


@pytest.mark.parametrize("most", [10, 48, 1_000], ids=lambda most: f"batches of {most}")
@pytest.mark.parametrize(("model", "trees"), [(LSTM, CLASSES[1]), (BERT, CLASSES[2])], ids=["lstm", "bert"])
def test_one_teacher_says_what_it_says_itself(
    model: NeuralModel, trees: TreeClass, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sentences without words are alone in a batch, or beside others."""
    monkeypatch.setattr(teaching, "_MOST", most)
    model = model.with_trees(trees)
    found, nodes = teaching.ask([model], ASKED, trees, CPU), max(map(len, ASKED)) + 1
    assert found.heads.shape == (len(ASKED), nodes)
    for i, (sentence, own) in enumerate(zip(ASKED, predicted(model, ASKED), strict=True)):
        n = len(sentence)
        assert found.heads[i].tolist() == [*own.heads.tolist(), *[-1] * (nodes - n - 1)]
        np.testing.assert_allclose(found.marginals[i], own.distribution.marginals, atol=2e-4)
        np.testing.assert_allclose(found.labels[i], labels_of(model, sentence, own.heads), atol=2e-3)
        for chosen in found.values.values():
            assert set(chosen[i, [0, *range(n + 1, nodes)]].tolist()) == {UNTAUGHT}
        values = {name: chosen[i, 1 : n + 1] for name, chosen in found.values.items()}
        assert model.tasks.columns(sentence.forms, values) == own.columns


def test_teachers_are_asked_less_at_once_where_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, run_graph, most = teaching.ask([LSTM], ASKED, LSTM.trees, CPU), TorchSession.run, 0

    def narrow(session: TorchSession, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        if "words" in inputs and inputs["words"][:, 1:].numel() > most:
            raise torch.OutOfMemoryError
        return run_graph(session, inputs)

    monkeypatch.setattr(TorchSession, "run", narrow)
    most = max(map(len, ASKED))
    found = teaching.ask([LSTM], ASKED, LSTM.trees, CPU)
    np.testing.assert_array_equal(found.heads, whole.heads)
    for own, expected in zip(found.marginals, whole.marginals, strict=True):
        np.testing.assert_allclose(own, expected, atol=1e-5)
    most -= 1
    with pytest.raises(TrainingError, match="one sentence does not fit the GPU's memory"):
        teaching.ask([LSTM], ASKED, LSTM.trees, CPU)


def test_answers_are_padded_with_zeros() -> None:
    found, which = teaching.ask([LSTM], ASKED, LSTM.trees, CPU), np.array([3, 1, 5])
    size = max(len(ASKED[i]) for i in which) + 1
    arcs, labels = found.marginals_of(which), found.labels_of(which)
    assert arcs.shape == (3, size, size)
    assert labels.shape == (3, size, len(LSTM.tasks.labels))
    for row, i in enumerate(which.tolist()):
        n = len(ASKED[i])
        np.testing.assert_array_equal(arcs[row, : n + 1, : n + 1], found.marginals[i])
        np.testing.assert_array_equal(labels[row, : n + 1], found.labels[i].astype(np.float32))
        assert arcs[row].sum() == pytest.approx(n, abs=1e-4)
        assert labels[row].sum() == pytest.approx(n, abs=1e-2)


def test_two_teachers_give_the_mean_and_the_tree_with_its_largest_sum() -> None:
    both, trees = (replace(LSTM, temperature=0.5), replace(BERT, temperature=6.0)), LSTM.trees
    short = [tree for tree in sentences(24, 1) if len(tree) == 5]
    found, another = teaching.ask(both, short, trees, CPU), 0
    for i, (sentence, *own) in enumerate(zip(short, *(predicted(each, short) for each in both), strict=True)):
        mean = sum(each.distribution.marginals for each in own) / 2
        np.testing.assert_allclose(found.marginals[i], mean, atol=2e-4)
        sums = {tree: sum(mean[arc] for arc in exact.arcs(tree)) for tree in exact.trees(5, **trees._asdict())}
        heads = max(sums, key=lambda tree: sums[tree])
        assert found.heads[i].tolist() == list(heads)
        another += all(list(heads) != each.heads.tolist() for each in own)
        labels = sum(labels_of(each, sentence, heads) for each in both) / 2
        np.testing.assert_allclose(found.labels[i], labels, atol=2e-3)
        shares = [tags_of(each, sentence) for each in both]
        for name, chosen in found.values.items():
            assert chosen[i, 1:].tolist() == ((shares[0][name] + shares[1][name]) / 2).argmax(axis=1).tolist()
    assert another  # neither teacher's own tree


# --- pupils --------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    of = preparation.network_settings
    monkeypatch.setattr(preparation, "network_settings", lambda settings: replace(of(settings), **SMALL))


# Words that no tree has, and a teacher of random weights that is rather certain: only its answers lead to what it says.
TEXT = [Sentence.from_words([form[::-1] for form in tree.forms]) for tree in treebank(20, 7)]
TEACHER = replace(model_of("lstm", treebank(), quantised=False), temperature=0.05, label_temperature=0.1)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("teacher") / "t.headway"
    Parser(TEACHER).save(path)
    return str(path)


def trained(**more: Any) -> Parser:
    given = {"model": "neural", "epochs": 3, "dropout": 0.1, "rate": 1e-2, "device": "cpu"}
    return Parser.train(treebank(), **{**given, **more})


def distances(parser: Parser) -> tuple[float, float, float]:
    """How far from the teacher a pupil is on the text: in probabilities of arcs and labels, and in tags."""
    assert isinstance(parser.model, NeuralModel)
    arcs = labels = tags = words = 0.0
    for sentence, own, other in zip(TEXT, predicted(parser.model, TEXT), predicted(TEACHER, TEXT), strict=True):
        arcs += np.abs(own.distribution.marginals - other.distribution.marginals).sum()
        shares = [labels_of(model, sentence, other.heads) for model in (parser.model, TEACHER)]
        labels += np.abs(shares[0] - shares[1]).sum()
        assert own.columns is not None
        assert other.columns is not None
        tags += sum(map(str.__ne__, own.columns["upos"], other.columns["upos"]))
        words += len(sentence)
    return arcs / words, labels / words, tags / words


def test_a_pupil_comes_near_to_its_teacher(teacher: str) -> None:
    """Nearer than one that trees alone have taught, and than one that has been taught next to nothing."""
    found, alone, untaught = (
        distances(trained(**more))
        for more in ({"teacher": teacher, "text": TEXT, "epochs": 6}, {"epochs": 6}, {"epochs": 1})
    )
    for own, *others in zip(found, alone, untaught, strict=True):
        assert own < 0.6 * min(others)


def test_without_text_a_teacher_is_asked_about_the_trees() -> None:
    data, settings = TrainingData(treebank(), text=[]), Settings(model="neural").complete()
    prepared = preparation.prepare(data, settings, CPU, teachers=[TEACHER])
    assert prepared.text is not None
    for i, (sentence, own) in enumerate(zip(treebank(), predicted(TEACHER, treebank()), strict=True)):
        assert prepared.text.heads[i, : len(sentence) + 1].tolist() == own.heads.tolist()
    np.testing.assert_array_equal(prepared.text.reading.lengths, prepared.train.reading.lengths)


def test_an_interrupted_pupil_goes_on(teacher: str, tmp_path: Path) -> None:
    given = {"teacher": teacher, "text": TEXT, "learner": "margin"}  # with a teacher, text is for every learner
    whole = trained(**given).model.to_archive()
    with interrupted():
        trained(**given, checkpoint=tmp_path)
    again = trained(**given, checkpoint=tmp_path).model.to_archive()
    assert again.data == whole.data
    for name, array in whole.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], array)
    assert whole.data["about"]["settings"]["teacher"] == "t.headway"  # nobody needs to know where it was


def test_several_teachers_are_joined_by_a_plus(teacher: str, tmp_path: Path) -> None:
    """Each belongs to the checkpoint; a file whose own name has a plus is one teacher."""
    surer, plus = tmp_path / "surer.headway", tmp_path / "with+plus.headway"
    Parser(replace(TEACHER, temperature=0.01)).save(surer)
    plus.write_bytes(Path(teacher).read_bytes())
    both = f"{teacher}+{surer}"
    for models, temperatures in ((both, [0.05, 0.01]), (str(plus), [0.05])):
        assert [one.temperature for one in teaching.teachers_of(models)] == temperatures
        names = trained(teacher=models, epochs=1).model.about["settings"]["teacher"]
        assert names == {both: "t.headway+surer.headway", str(plus): "with+plus.headway"}[models]
    prepared: list[preparation.Prepared] = []
    with pytest.MonkeyPatch.context() as patch:
        of = trainer.prepare
        patch.setattr(trainer, "prepare", lambda *given, **more: prepared.append(of(*given, **more)) or prepared[-1])
        trained(teacher=both, text=TEXT, epochs=1)
    wanted = teaching.ask(teaching.teachers_of(both), TEXT, TEACHER.trees, CPU)
    assert prepared[0].answers is not None
    np.testing.assert_array_equal(prepared[0].answers.marginals_of(np.arange(9)), wanted.marginals_of(np.arange(9)))
    settings = Settings(model="neural", teacher=both).complete()
    before = fingerprint(settings)
    surer.write_bytes(plus.read_bytes())
    assert fingerprint(settings) != before


def test_a_checkpoint_is_that_of_one_teacher(tmp_path: Path) -> None:
    path = tmp_path / "t.headway"
    settings = Settings(model="neural", teacher=str(path)).complete()
    found = set()
    for content in (b"one", b"another"):
        path.write_bytes(content)
        found.add(fingerprint(settings))
    assert len(found) == 2


def test_a_teacher_and_its_pupil_may_read_tags_and_have_no_labels(tmp_path: Path) -> None:
    given = {"tags": "gold", "labels": "none", "epochs": 1}
    trained(**given).save(tmp_path / "t.headway")
    pupil = trained(**given, teacher=str(tmp_path / "t.headway"))
    assert set(pupil.parse(treebank(1)[0]).labels[1:]) == {"_"}


# --- what is refused -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, teacher: str) -> Path:
    folder = tmp_path_factory.mktemp("files")
    save_archive(Archive("arc", {}, {}), folder / "linear.headway")
    save_archive(Archive("neural", {}, {}), folder / "damaged.headway")
    (folder / "text.headway").write_text("no model")
    Parser(model_of("tags", treebank(), quantised=False)).save(folder / "tags.headway")
    Parser(LSTM).save(folder / "other.headway")
    return folder


@pytest.mark.parametrize(
    ("file", "more", "cause"),
    [
        ("missing", {}, "missing"),
        ("text", {}, r"text\.headway: "),
        ("damaged", {}, "a damaged model, or not a model"),
        ("linear", {}, "holds an 'arc' model, and only networks are teachers; train one with --model neural"),
        ("tags", {}, "the teacher reads tags, and the pupil does not; train a teacher with --tags predicted"),
        ("other", {"projective": True}, "the teacher's trees are .*, the pupil's projective.*; train both for the"),
        ("other", {"model": "arc"}, "teacher is for networks, not for the arc model; leave --teacher out"),
        ("other", {"entropy_weight": 1.0, "text": TEXT}, "entropy_weight is about text without a teacher"),
    ],
)
def test_refusals_before_data_are_read(files: Path, file: str, more: dict[str, Any], cause: str) -> None:
    with pytest.raises(HeadwayError, match=cause) as refused:
        Parser.train("nowhere.conllu", **{"model": "neural", "teacher": str(files / f"{file}.headway"), **more})
    assert "\n" not in str(refused.value)
    assert "nowhere" not in str(refused.value)


@pytest.mark.parametrize("more", [{}, {"labels": "none"}, {"tags": "gold"}], ids=str)
def test_a_teacher_of_other_labels_or_tags_is_refused(files: Path, teacher: str, more: dict[str, str]) -> None:
    given = {"teacher": teacher if more else str(files / "other.headway"), **more}
    with pytest.raises(TrainingError, match="other labels or tags than the pupil; train both on the same treebank"):
        trained(**given)


def test_networks_are_tuned_without_a_teacher(teacher: str) -> None:
    with pytest.raises(TrainingError, match="a network is tuned without a teacher"):
        tune("nowhere.conllu", model="neural", teacher=teacher)


def test_from_the_command_line(teacher: str, files: Path, tmp_path: Path) -> None:
    write_treebank(treebank(), tmp_path / "trees.conllu")
    write_treebank(TEXT, tmp_path / "text.conllu")
    words = ("train", tmp_path / "trees.conllu", "--model", "neural", "--device", "cpu", "--epochs", "1")
    words += ("--text", tmp_path / "text.conllu", "-o", tmp_path / "m.headway", "--teacher")
    assert "only networks are teachers" in run(*words, files / "linear.headway", status=2).stderr
    run(*words, teacher)
    assert Parser.load(tmp_path / "m.headway").model.about["settings"]["teacher"] == "t.headway"
