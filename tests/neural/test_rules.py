"""Networks from rules: value and gradient beside a list of all trees and the linear learner's, and what they learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")

from headway import Parser, Sentence
from headway.arrays import Floats, Ints, TreeClass
from headway.errors import TrainingError
from headway.features.arc_features import ArcFeatures
from headway.features.coding import Coder
from headway.features.rule_features import RuleFeatures
from headway.features.rules import parse_rules
from headway.features.templates import load_templates
from headway.inference.brute_force import all_trees
from headway.learning.choices import Criterion
from headway.learning.generalized_expectation import GeneralizedExpectation
from headway.learning.structures import Trees
from headway.models.arc_scorer import ArcScorer
from headway.neural import preparation
from headway.neural.batching import Annotated, batch_of
from headway.neural.network import Outputs
from headway.neural.rules_objective import RulesObjective
from headway.neural.settings import NetworkSettings
from headway.neural.tagging import Tagger
from headway.training.arc_problem import ArcProblem
from headway.training.arc_trainer import random_heads
from tests.neural.test_fitting import SMALL, treebank
from tests.neural.tiny import interrupted

CPU = torch.device("cpu")
CLASSES = [TreeClass(p, s) for p in (False, True) for s in (False, True)]
TAGS = ("DET NOUN VERB", "VERB", "NOUN VERB DET NOUN", "DET NOUN", "NOUN DET VERB NOUN")
TEXT = [Sentence.from_words(tags.lower().split(), upos=tags.split()) for tags in TAGS]
RULES = parse_rules(
    """
    [[rule]]
    head = "NOUN"
    modifier = "DET"
    direction = "right"
    distance = 1
    target = 0.9

    [[rule]]
    head = "ROOT"
    modifier = "VERB"
    target = [0.7, 1.0]

    [[rule]]
    head = "VERB"
    modifier = ["NOUN", "DET"]
    target = [0.05, 0.2]
    weight = 2.0

    [[rule]]
    head = "NOUN"
    modifier = "VERB"
    target = [0.0, 1.0]
    """,
    "rules",
)
# The same again: does an arc match, target, weight.
Says = Callable[[list[str], int, int], bool]
SAID: list[tuple[Says, float, float, float]] = [
    (lambda tags, h, m: tags[h] == "NOUN" and tags[m] == "DET" and m == h + 1, 0.9, 0.9, 1.0),
    (lambda tags, h, m: h == 0 and tags[m] == "VERB", 0.7, 1.0, 1.0),
    (lambda tags, h, m: tags[h] == "VERB" and tags[m] in ("NOUN", "DET"), 0.05, 0.2, 2.0),
    (lambda tags, h, m: tags[h] == "NOUN" and tags[m] == "VERB", 0.0, 1.0, 1.0),
]
ABOUT_ROOT = 1


class Enumerated:
    """The objective, from a list of every sentence's trees."""

    def __init__(self, trees: TreeClass, criterion: str) -> None:
        self.criterion = criterion
        self.trees = [np.array(all_trees(len(sentence), **trees._asdict())) for sentence in TEXT]
        self.matches, self.units = [], [0] * len(SAID)
        for sentence, listed in zip(TEXT, self.trees, strict=True):
            tags, words = ["ROOT", *sentence.upos], range(1, len(sentence) + 1)
            self.matches.append([[sum(says(tags, t[m], m) for m in words) for t in listed] for says, *_ in SAID])
            for k, (says, *_) in enumerate(SAID):
                possible = [any(says(tags, h, m) for h in (0, *words) if h != m) for m in words]
                self.units[k] += any(possible) if k == ABOUT_ROOT else sum(possible)

    def __call__(self, scores: NDArray[Any]) -> float:
        expected = np.zeros(len(SAID))
        for own, listed, matches in zip(scores, self.trees, self.matches, strict=True):
            words = np.arange(1, listed.shape[1])
            logs = own[listed[:, 1:], words].sum(axis=1)
            expected += matches @ np.exp(logs - np.logaddexp.reduce(logs))
        pairs = zip(SAID, expected / self.units, strict=True)
        return sum(weight * self.distance(low, high, share) for (_, low, high, weight), share in pairs)

    def distance(self, low: float, high: float, share: float) -> float:
        target = min(max(share, low), high)
        if self.criterion == "squared" or share == target:
            return (target - share) ** 2
        return sum(p * log(p / q) for p, q in ((target, share), (1 - target, 1 - share)) if p > 0)


@dataclass(frozen=True)
class Rows:
    """A reading of sentences that are no more than their numbers."""

    lengths: Ints

    @property
    def sizes(self) -> Ints:
        return self.lengths

    def batch(self, which: Ints) -> dict[str, Ints]:
        return {"rows": which}


class Given(torch.nn.Module):
    """A network whose arc scores are its weights."""

    def __init__(self, scores: Floats, lengths: Ints) -> None:
        super().__init__()
        self.scores = torch.nn.Parameter(torch.from_numpy(scores))
        self.lengths = lengths
        self.tags = Tagger(1, {})

    def forward(self, inputs: dict[str, torch.Tensor]) -> Outputs:
        nodes = int(self.lengths[inputs["rows"].numpy()].max()) + 1
        nothing = torch.zeros(0)
        return Outputs(self.scores[inputs["rows"], :nodes, :nodes], nothing, nothing, {}, nothing)


def posed(trees: TreeClass, criterion: Criterion, seed: int = 0) -> tuple[RulesObjective, Given]:
    """The objective over the text, and scores at random."""
    lengths = np.array([len(sentence) for sentence in TEXT])
    scores = np.random.default_rng(seed).normal(size=(len(TEXT), 5, 5))
    coder = Coder.learn(TEXT)
    rules = RuleFeatures.of(RULES, coder, coder.code(TEXT))
    data = Annotated(Rows(lengths), np.full((len(TEXT), 5), -1), {})
    return RulesObjective(data, trees, rules, criterion, NetworkSettings()), Given(scores, lengths)


def loss_and_gradient(objective: RulesObjective, network: Given, which: list[int]) -> tuple[float, NDArray[Any]]:
    chosen = np.array(which)
    network.zero_grad()
    loss = objective.loss(network, batch_of(objective.data, chosen, CPU), chosen, 0.0)  # type: ignore[arg-type]
    loss.backward()
    assert network.scores.grad is not None
    return float(loss.detach()), network.scores.grad.numpy().copy()


@pytest.mark.parametrize("trees", CLASSES, ids=str)
@pytest.mark.parametrize("criterion", ["squared", "kl"])
def test_a_batch_of_all_has_the_gradient_of_the_whole(trees: TreeClass, criterion: Criterion) -> None:
    objective, network = posed(trees, criterion)
    loss, gradient = loss_and_gradient(objective, network, [3, 1, 0, 4, 2])
    enumerated = Enumerated(trees, criterion)
    scores, words = network.scores.detach().numpy(), objective.data.words
    assert loss / words == pytest.approx(enumerated(scores), rel=1e-9)
    expected = np.zeros_like(scores)
    for place in np.ndindex(*scores.shape):
        step = np.zeros_like(scores)
        step[place] = 1e-5
        expected[place] = (enumerated(scores + step) - enumerated(scores - step)) / 2e-5
    assert np.abs(expected).max() > 0.01
    np.testing.assert_allclose(gradient / words, expected, atol=1e-8)


@pytest.mark.parametrize("criterion", ["squared", "kl"])
def test_the_linear_learner_has_the_same_objective(criterion: Criterion) -> None:
    trees, which = TreeClass(False, True), np.arange(len(TEXT))
    objective, network = posed(trees, criterion)
    coder = Coder.learn(TEXT)
    coded = coder.code(TEXT)
    scorer = ArcScorer(ArcFeatures.learn(load_templates("rules"), coder, coded, random_heads(coded)))
    problem = ArcProblem(scorer, Trees(trees), coded)
    weights = np.random.default_rng(1).normal(size=problem.size)
    value, expected = GeneralizedExpectation(objective.rules, criterion, c=3.0).objective(problem, weights)
    these = problem.some(which)
    with torch.no_grad():
        network.scores[...] = torch.from_numpy(np.array(these.score(weights)[:, :5, :5]))
    loss, gradient = loss_and_gradient(objective, network, which.tolist())
    words = objective.data.words
    assert value == pytest.approx(3.0 * loss / words + 0.5 * float(weights @ weights), rel=1e-6)
    found = weights.copy()
    these.add(found, 3.0 * gradient / words)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_batches_have_parts_of_the_gradient() -> None:
    """Once the network has been looked at, they add up to it while nothing changes; then the others are remembered."""
    objective, network = posed(CLASSES[1], "kl")
    _, whole = loss_and_gradient(objective, network, [0, 1, 2, 3, 4])
    objective.memory["matches"][:] = 0.0
    objective.look(network, CPU)  # type: ignore[arg-type]
    parts = [loss_and_gradient(objective, network, which) for which in ([2, 0], [4], [3, 1])]
    np.testing.assert_allclose(sum(gradient for _, gradient in parts), whole, atol=1e-12)
    remembered = objective.memory["matches"].copy()
    with torch.no_grad():
        network.scores *= 2
    loss_and_gradient(objective, network, [2, 0])
    changed = (objective.memory["matches"] != remembered).any(axis=1)
    assert changed.tolist() == [True, False, True, False, False]


def test_the_first_look_takes_fewer_sentences_where_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    objective, network = posed(CLASSES[1], "kl")
    objective.look(network, CPU)  # type: ignore[arg-type]
    whole, forward = objective.memory["matches"].copy(), Given.forward
    objective.memory["matches"][:] = 0.0

    def narrow(self: Given, inputs: dict[str, torch.Tensor]) -> Outputs:
        if len(inputs["rows"]) > 1:
            raise torch.OutOfMemoryError
        return forward(self, inputs)

    monkeypatch.setattr(Given, "forward", narrow)
    with pytest.raises(torch.OutOfMemoryError):
        network(batch_of(objective.data, np.arange(2), CPU).inputs)
    objective.look(network, CPU)  # type: ignore[arg-type]
    np.testing.assert_allclose(objective.memory["matches"], whole, rtol=1e-12)


TOY = """
[[rule]]
head = "NOUN"
modifier = "DET"
direction = "left"
distance = 1
target = 0.98

[[rule]]
head = "ROOT"
modifier = "VERB"
target = [0.95, 1.0]

[[rule]]
head = "VERB"
modifier = "NOUN"
target = [0.95, 1.0]
"""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    of = preparation.network_settings
    monkeypatch.setattr(preparation, "network_settings", lambda settings: replace(of(settings), **SMALL))


def constrained(text: list[Sentence], rules: str = TOY, **more: Any) -> Parser:
    given = {"epochs": 15, "dropout": 0.1, "rate": 1e-2, "device": "cpu"}
    return Parser.constrain(parse_rules(rules, "rules.toml"), text, model="neural", **{**given, **more})


def right(parser: Parser, trees: list[Sentence]) -> float:
    pairs = [(parser.parse(Sentence.from_words(t.forms, upos=t.upos)).heads, t.heads) for t in trees]
    return sum(int((found == gold)[1:].sum()) for found, gold in pairs) / sum(map(len, trees))


@pytest.mark.usefixtures("small")
def test_a_network_learns_from_rules(tmp_path: Path) -> None:
    """It gets new sentences right, and the trees in the text do not matter."""
    text = treebank()
    bare = [Sentence.from_words(tree.forms, upos=tree.upos) for tree in text]
    parser = constrained(bare)
    assert right(parser, treebank(8, 2)) > 0.95
    assert parser.needs_tags
    assert parser.model.about["rules"] == parse_rules(TOY, "rules.toml").to_toml()
    assert parser.model.about["temperature"] == 1.0
    losses = [entry["loss"] for entry in parser.model.about["history"]]
    assert losses[-1] < 0.1 * losses[0]
    assert constrained(text).model.about["history"] == parser.model.about["history"]
    parser.save(tmp_path / "m.headway")
    assert right(Parser.load(tmp_path / "m.headway"), treebank(8, 2)) > 0.95


@pytest.mark.usefixtures("small")
def test_tags_are_learnt_with_the_rules() -> None:
    parser = constrained(treebank(), tags="predicted", epochs=20)
    assert not parser.needs_tags
    found = parser.parse(["the", "dog", "sees", "the", "cat"])
    assert found.sentence.upos == ("DET", "NOUN", "VERB", "DET", "NOUN")
    assert found.heads.tolist() == [-1, 2, 3, 0, 5, 3]


@pytest.mark.usefixtures("small")
def test_an_interrupted_training_goes_on(tmp_path: Path) -> None:
    """With what it remembered: looking at the network afresh would give other shares."""
    text, dev = treebank(), treebank(8, 1)
    whole = constrained(text, dev=dev, epochs=4)
    with interrupted():
        constrained(text, dev=dev, epochs=4, checkpoint=tmp_path)
    again = constrained(text, dev=dev, epochs=4, checkpoint=tmp_path)
    assert again.model.about == whole.model.about
    assert again.model.to_archive().arrays.keys() == whole.model.to_archive().arrays.keys()
    for name, array in again.model.to_archive().arrays.items():
        np.testing.assert_array_equal(array, whole.model.to_archive().arrays[name])


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({"templates": "standard"}, "templates is for linear models, not for the neural model; leave --templates out"),
        ({"c": 3.0}, "c is for linear models"),
        ({"optimiser": "cg"}, "optimiser is for linear models"),
        ({"learner": "margin"}, "learning from rules has no setting 'learner'"),
        ({"rules": TOY.replace("VERB", "X").replace("NOUN", "Y").replace("DET", "Z")}, "no rule matches anything"),
    ],
)
def test_what_cannot_go_with_rules(settings: dict[str, Any], cause: str) -> None:
    with pytest.raises(TrainingError, match=cause):
        constrained(treebank(4), **settings)


def test_models_that_rules_do_not_train() -> None:
    with pytest.raises(TrainingError, match="rules train the models arc and neural, not 'sibling'"):
        Parser.constrain("universal", treebank(4), model="sibling")
    with pytest.raises(TrainingError, match="encoder is for networks, not for the arc model; leave --encoder out"):
        Parser.constrain("universal", treebank(4), encoder="minilm/")
