"""Training networks: the same twice, the same after an interruption, the same in pieces; and they do learn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from headway import Sentence
from headway.arrays import TreeClass
from headway.errors import TrainingError
from headway.neural import fitting, preparation, trainer
from headway.neural.batching import batch_of, batches
from headway.neural.losses import LOSSES
from headway.neural.losses import entropy as entropies
from headway.neural.network import Network, Outputs
from headway.neural.objectives import TreeObjective
from headway.neural.reading import groups_by_size
from headway.neural.scoring import Scores
from headway.training.data import TrainingData
from headway.training.settings import Settings
from headway.training.stages import Run
from tests.neural.tiny import interrupted

SMALL = {
    **{"embedding": 8, "hidden": 12, "layers": 2, "arc_size": 12, "label_size": 8},
    **{"batch": 16, "averaging": 0.8, "tag_weight": 1.0},
}
CPU = torch.device("cpu")


def treebank(count: int = 24, seed: int = 0) -> list[Sentence]:
    """Subject, verb and object, with an article now and then: heads and labels follow from the words."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        words, tags, heads, labels = [], [], [], []
        verb = None
        for role in ("nsubj", "verb", "obj"):
            if role == "verb":
                verb = len(words) + 1
                words.append(str(rng.choice(["sees", "likes", "hears"])))
                tags.append("VERB"), heads.append(0), labels.append("root")
                continue
            if rng.random() < 0.5:
                words.append("the")
                tags.append("DET"), heads.append(len(words) + 1), labels.append("det")
            words.append(str(rng.choice(["dog", "cat", "bird"])))
            tags.append("NOUN"), heads.append(-2), labels.append(role)
        heads = [verb if head == -2 else head for head in heads]
        made.append(Sentence.from_words(words, upos=tags, heads=[-1, *heads], labels=[None, *labels]))
    return made


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    of = preparation.network_settings
    monkeypatch.setattr(preparation, "network_settings", lambda settings: replace(of(settings), **SMALL))


def settings(**more: object) -> Settings:
    return Settings(model="neural", **{"epochs": 3, "dropout": 0.1, "rate": 1e-2, **more}).complete()  # type: ignore[arg-type]


def fitted(chosen: Settings, checkpoint: Path | None = None, data: TrainingData | None = None) -> trainer.Fitted:
    data = data or TrainingData(treebank(), treebank(8, 1))
    with trainer.deterministic():
        prepared = preparation.prepare(data, chosen, CPU)
        return trainer.fit(prepared, chosen, Run.of(1, None, checkpoint), CPU)


def same(a: trainer.Fitted, b: trainer.Fitted) -> bool:
    return a.history == b.history and all(torch.equal(a.weights[name], b.weights[name]) for name in a.weights)


def test_the_same_twice() -> None:
    assert same(fitted(settings()), fitted(settings()))
    assert not same(fitted(settings()), fitted(settings(seed=1)))


def test_torch_is_left_as_it_was() -> None:
    """What a program draws and how it multiplies does not depend on a parser that was trained in between."""
    torch.manual_seed(5)
    expected, before = torch.rand(3), torch.get_float32_matmul_precision()
    torch.manual_seed(5)
    fitted(settings(epochs=1))
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_float32_matmul_precision() == before
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize("labels", ["after", "none"])
def test_an_interrupted_training_goes_on(tmp_path: Path, labels: str) -> None:
    """Also where some weights learn nothing."""
    chosen = settings(epochs=4, labels=labels)
    whole = fitted(chosen)
    with interrupted():
        fitted(chosen, tmp_path)
    torch.rand(3)  # what was random in between does not matter
    assert same(fitted(chosen, tmp_path), whole)


def test_pieces_give_the_gradient_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that is out of memory once, as a batch in pieces sees it."""
    chosen = settings(dropout=0.0)
    prepared = preparation.prepare(TrainingData(treebank()), chosen, CPU)
    objective = TreeObjective(prepared.train, chosen.trees, LOSSES["loglinear"], prepared.sizes)
    own = fitting.Fitting(prepared.network.eval(), [objective], prepared.sizes, CPU)
    which = [np.arange(10)]
    whole = own._gradient(which)
    expected = [weight.grad.clone() for weight in prepared.network.parameters() if weight.grad is not None]
    own.optimiser.zero_grad()
    own.pieces = 4
    torch.testing.assert_close(own._gradient(which), whole)
    found = [weight.grad for weight in prepared.network.parameters() if weight.grad is not None]
    torch.testing.assert_close(found, expected)

    gradient, failures = own._gradient, iter([True, True])

    def sometimes(*given: object) -> torch.Tensor:
        if next(failures, False):
            raise torch.OutOfMemoryError
        return gradient(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(own, "_gradient", sometimes)
    own.pieces = 1
    own._step(which)
    assert own.pieces == 4


@contextmanager
def little_memory(cells: int) -> Iterator[None]:
    """A GPU on which a network reads no more than so many words at once, padding included, when it does not learn."""
    forward = Network.forward

    def narrow(network: Network, inputs: Mapping[str, torch.Tensor]) -> Outputs:
        if not network.training and inputs["words"][:, 1:].numel() > cells:
            raise torch.OutOfMemoryError
        return forward(network, inputs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Network, "forward", narrow)
        yield


def test_development_trees_are_scored_in_smaller_batches_where_memory_is_short() -> None:
    data, chosen = TrainingData(treebank(), treebank(8, 1)), settings()
    with trainer.deterministic():
        prepared = preparation.prepare(data, chosen, CPU)
        whole = trainer.fit(prepared, chosen, Run(), CPU)
        temperature = trainer.temperature_of(prepared, chosen.trees, CPU)
        found = trainer.found_by(prepared, data.dev or (), chosen.trees, CPU, temperature)
        prepared = preparation.prepare(data, chosen, CPU)
        with little_memory(7):  # the longest sentence has five words
            assert trainer.fit(prepared, chosen, Run(), CPU).history == whole.history
            assert trainer.temperature_of(prepared, chosen.trees, CPU) == pytest.approx(temperature, rel=1e-4)
            narrow = trainer.found_by(prepared, data.dev or (), chosen.trees, CPU, temperature)
            np.testing.assert_array_equal(narrow.heads, found.heads)
            np.testing.assert_allclose(narrow.probabilities, found.probabilities, atol=1e-5)
        with little_memory(4), pytest.raises(TrainingError, match="one sentence does not fit the GPU's memory"):
            trainer.fit(preparation.prepare(data, chosen, CPU), chosen, Run(), CPU)


def test_a_network_that_does_not_fit_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(torch.optim.AdamW, "step", never)
    with pytest.raises(TrainingError, match="does not fit the GPU's memory; take a smaller encoder"):
        trainer.train_neural_model(TrainingData(treebank()), settings(), Run())


def passes(monkeypatch: pytest.MonkeyPatch, scores: list[Scores], **more: object) -> tuple[trainer.Fitted, list[float]]:
    """A training whose passes are scored so, and the first averaged weight after each of them."""
    given, seen = iter(scores), []

    def next_scores(network: torch.nn.Module, *_: object) -> Scores:
        seen.append(float(next(network.parameters()).detach()[0]))
        return next(given)

    monkeypatch.setattr(trainer, "scores_of", next_scores)
    return fitted(settings(epochs=len(scores), **more)), seen


@pytest.mark.parametrize(
    ("las", "uas", "best"),
    [
        (
            [0.0, 1.0, 3.0, 2.0],
            [30.0, 20.0, 10.0, 40.0],
            3,
        ),  # no label is right at first, and a pass is no better for it
        ([0.0, 0.0, 0.0, 0.0], [30.0, 20.0, 40.0, 10.0], 3),
        ([None, None, None, None], [30.0, 20.0, 40.0, 10.0], 3),
        ([5.0, 5.0, 5.0, 4.0], [1.0, 2.0, 3.0, 4.0], 1),
    ],
)
def test_the_pass_with_the_best_score_is_kept(
    las: list[float | None], uas: list[float], best: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, seen = passes(monkeypatch, [Scores(u, each, {}) for u, each in zip(uas, las, strict=True)])
    assert found.best_pass == best
    assert float(next(iter(found.weights.values()))[0]) == seen[best - 1]
    assert len(set(seen)) == 4


def test_training_stops_when_no_pass_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = [Scores(50.0, each, {}) for each in (1.0, 3.0, 2.0, 3.0, 2.0, 9.0)]
    found, _ = passes(monkeypatch, scores, patience=3)
    assert [entry["las"] for entry in found.history] == [1.0, 3.0, 2.0, 3.0, 2.0]
    assert found.best_pass == 2


@pytest.mark.parametrize("unlabelled", ["pupil", "dev"])
def test_without_labels_there_is_no_labelled_score(unlabelled: str) -> None:
    """Whether the network finds none or the development trees have none."""
    dev = treebank(8, 1)
    if unlabelled == "dev":
        dev = [each.with_tree(each.heads, [None, *["_"] * len(each)]) for each in dev]
    chosen = settings(epochs=12, labels="none" if unlabelled == "pupil" else "after")
    found = fitted(chosen, data=TrainingData(treebank(), dev))
    assert {entry["las"] for entry in found.history} == {None}
    scores = [entry["dev"] for entry in found.history]
    assert found.best_pass == 1 + scores.index(max(scores)) > 1


@pytest.mark.parametrize("learner", LOSSES)
def test_every_learner_learns(learner: str) -> None:
    found = fitted(settings(learner=learner, epochs=25))
    best = max(entry["dev"] for entry in found.history)
    assert best > 95
    assert found.history[-1]["las"] > 90


def test_some_heads_are_enough() -> None:
    rng = np.random.default_rng(0)
    partly = []
    for sentence in treebank(48):
        assert sentence.heads is not None
        assert sentence.labels is not None
        hidden = np.append(False, rng.random(len(sentence)) < 0.5)
        heads = np.where(hidden, -1, sentence.heads)
        labels = [None if m == 0 else "_" if hidden[m] else label for m, label in enumerate(sentence.labels)]
        partly.append(sentence.with_tree(heads, labels, partial=True))
    found = fitted(settings(epochs=25), data=TrainingData(partly, treebank(8, 1)))
    assert max(entry["dev"] for entry in found.history) > 95


def test_text_is_made_certain() -> None:
    """Entropy of unannotated text falls where it is part of the loss."""
    text, trees = treebank(30, 5), TreeClass(False, True)

    def entropy(weight: float) -> float:
        chosen = settings(epochs=20, entropy_weight=weight)
        data = TrainingData(treebank(4), text=text)
        with trainer.deterministic():
            prepared = preparation.prepare(data, chosen, CPU)
            found = trainer.fit(prepared, chosen, Run(), CPU)
        prepared.network.load_state_dict(found.weights)
        prepared.network.eval()
        assert prepared.text is not None
        batch = batch_of(prepared.text, np.arange(30), CPU)
        return float(entropies(prepared.network(batch.inputs).arcs, batch.lengths, trees).sum().detach())

    assert entropy(5.0) < 0.7 * entropy(0.0)


def test_batches_have_every_sentence_once() -> None:
    sizes = np.random.default_rng(0).integers(1, 40, 200)
    for found in (list(batches(sizes, 100, np.random.default_rng(1))), list(groups_by_size(sizes, 100))):
        assert sorted(np.concatenate(found).tolist()) == list(range(200))
        assert all(len(each) == 1 or len(each) * sizes[each].max() <= 100 for each in found)


def test_trees_of_another_class_do_not_move_the_temperature() -> None:
    """Their score has no bound by those of the class, so that a lower temperature would always do better."""
    trees, dev = treebank(), treebank(8, 1)
    dev[:3] = [each.with_tree(np.arange(-1, len(each)), each.labels) for each in dev[:3]]  # not to be wholly certain of
    two_roots = dev[0].with_tree(np.where(np.arange(len(dev[0]) + 1) == 0, -1, 0), dev[0].labels)
    chosen = settings(epochs=3)
    with trainer.deterministic():
        prepared = preparation.prepare(TrainingData(trees, dev), chosen, CPU)
        prepared.network.load_state_dict(trainer.fit(prepared, chosen, Run(), CPU).weights)
        prepared.network.eval()
        more = replace(prepared, dev=preparation.annotated([*dev, two_roots], prepared.reader, prepared.tasks))
        one, two = (trainer.temperature_of(each, chosen.trees, CPU) for each in (prepared, more))
    assert 0.06 < one < 10
    assert two == pytest.approx(one, rel=1e-3)
