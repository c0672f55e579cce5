"""Training an arc-factored parser: from trees, from trees and text, or from trees of which some heads are unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headway.arrays import Floats, Ints
from headway.features.arc_features import ArcFeatures
from headway.features.coding import Coded, Coder
from headway.features.templates import Template, load_templates
from headway.inference.batch import groups_by_length
from headway.learning.monitor import Monitor
from headway.learning.structures import Trees
from headway.models.arc_model import ArcModel
from headway.models.arc_scorer import ArcScorer
from headway.models.root_labels import roots_among
from headway.models.scorer import Trained
from headway.models.tree_decoder import BATCH_CELLS, TreeDecoder
from headway.parallel import Workers
from headway.saved_values import number
from headway.training.arc_problem import ArcProblem, PartialArcProblem
from headway.training.data import CodedTrees, TrainingData, checksum, code_trees, label_names, learn_coder
from headway.training.development import EXPONENTS, ArcDevelopment, arc_development
from headway.training.labels import train_labels
from headway.training.learners import latent_learner_of, learner_of, require_fit
from headway.training.preparation import about, bound, fit
from headway.training.settings import Settings
from headway.training.stages import Fit, Run, calibration_stage
from headway.treebank import Sentence

# Of trees of which some heads are unknown: all trees with the known ones count, in proportion to exp(score / T).
_TEMPERATURE = 30.0


def require_arcs(settings: Settings) -> None:
    """Refuse settings that an arc-factored parser cannot be trained with."""
    require_fit(settings, ArcProblem.offers)


def train_arc_model(data: TrainingData, settings: Settings, run: Run) -> ArcModel:
    """An arc-factored parser."""
    prepared = prepare_arcs(data, settings, run)
    return prepared.finish(fit(prepared, data, settings, run), settings, run)


@dataclass(frozen=True)
class ArcPreparation:
    """Features sized, sentences coded; `text` are those without trees."""

    data: TrainingData
    coder: Coder
    problem: ArcProblem | PartialArcProblem
    trees: CodedTrees
    labels: tuple[str, ...]
    text: ArcProblem | None
    dev: ArcDevelopment | None

    @property
    def size(self) -> int:
        return self.problem.size

    def learner(self, settings: Settings, workers: Workers | None = None) -> Fit:
        """The learner of these settings; a latent one where some heads are unknown."""
        if self.trees.is_partial:
            return bound(latent_learner_of(settings), self.problem, settings.shards, workers)
        return bound(learner_of(settings, self.text), self.problem, settings.shards, workers)

    def uas(self, weights: Floats, projective: bool | None = None) -> float:
        """Development score without punctuation."""
        assert self.dev is not None
        return self.dev.uas(weights, projective)

    def finish(self, fitted: Monitor, settings: Settings, run: Run) -> ArcModel:
        """The model with the best weights, scaled into probabilities where there is development data."""
        best = fitted.best
        assert best is not None
        dev, scale = self.dev, 1.0
        if dev is not None:
            scale = run.stage(
                calibration_stage(settings),
                lambda: dev.scale(best),
                lambda x: ({"scale": x}, {}),
                lambda archive: _saved_scale(archive.data["scale"]),
            )
        after = None
        if settings.labels == "after":
            after = train_labels(self.coder, self.trees, self.labels, settings, run, roots=self.data.roots, tree=False)
        scorer = self.problem.scorer
        said = about(settings, fitted, self.data, scale=scale, collisions=scorer.collisions)
        if self.text is not None:
            said["text"] = {"sentences": len(self.data.text), "sha256": checksum(self.data.text)}
        decoder, roots = TreeDecoder(settings.trees), roots_among(scorer.labels, self.data.roots)
        return ArcModel(self.coder, Trained(scorer, scale * best), decoder, after, said, roots)


def _saved_scale(value: Any) -> float:
    scale = number(value, "the scale")
    low, high = np.exp(EXPONENTS)
    if not low <= scale <= high:
        raise ValueError(f"the scale is {scale:g}, which is never found")
    return scale


def prepare_arcs(data: TrainingData, settings: Settings, run: Run) -> ArcPreparation:
    """Number the words, size the features from the trees, code the sentences.

    With text, the features of arcs have room for its own; those that tell labels apart know the trees' only. Heads that
    are unknown stay so for the perceptrons; for other learners they are filled in. A sentence without any head is left
    out.
    """
    sentences = [sentence for sentence in data.train if sentence.heads is not None]
    coder = learn_coder(data, sentences, settings)
    labels = () if settings.labels == "none" else label_names(sentences)
    trees = code_trees(sentences, coder, labels)
    if trees.is_partial and not is_latent(settings):
        trees = fill_in_heads(coder, trees, sentences, labels, data.roots, settings, run)
    arcs = arc_features(load_templates(settings.templates), coder, trees, sentences, data.text)
    scorer = ArcScorer(arcs)
    if settings.labels == "joint":
        scorer = ArcScorer(arcs, ArcFeatures.learn(load_templates("joint"), coder, *trees), labels)
    structures = Trees(settings.trees, run.executor)
    problem: ArcProblem | PartialArcProblem = ArcProblem(scorer, structures, trees.coded, trees)
    if trees.is_partial:
        problem = PartialArcProblem(scorer, structures, trees.coded, trees.heads, temperature_of(settings))
    text = ArcProblem(scorer, structures, coder.code(data.text)) if data.text and not trees.is_partial else None
    dev = None
    if data.dev is not None:
        dev = arc_development(data.dev, scorer, coder, labels, settings.trees, run.executor, data.roots)
    return ArcPreparation(data, coder, problem, trees, labels, text, dev)


def is_latent(settings: Settings) -> bool:
    """Whether these settings learn from trees with unknown heads as they are."""
    return settings.model == "arc" and settings.method in ("perceptron", "margin") and settings.labels != "joint"


def temperature_of(settings: Settings) -> float:
    """How unknown heads are shared among trees: by the best one (0), or by all."""
    return 0.0 if settings.method == "perceptron" else _TEMPERATURE


def arc_features(
    templates: Sequence[Template],
    coder: Coder,
    trees: CodedTrees,
    sentences: Sequence[Sentence],
    text: Sequence[Sentence],
) -> ArcFeatures:
    """Features sized from the arcs of the trees; a word whose head is unknown, as in text, has a random one."""
    if not text and not trees.is_partial:
        return ArcFeatures.learn(templates, coder, trees.coded, trees.heads)
    coded = coder.code([*sentences, *text])
    heads = random_heads(coded)
    count, width = trees.heads.shape
    heads[:count, :width] = np.where(trees.heads >= 0, trees.heads, heads[:count, :width])
    return ArcFeatures.learn(templates, coder, coded, heads)


def random_heads(coded: Coded) -> Ints:
    """A head drawn for every word, (B, N+1) padded with -1: no trees, but what their features may be like."""
    nodes = np.arange(int(coded.lengths.max(initial=0)) + 1)
    drawn = np.random.default_rng(0).random((len(coded), len(nodes)))
    words = (nodes > 0) & (nodes <= coded.lengths[:, None])
    heads: Ints = np.where(words, (drawn * coded.lengths[:, None]).astype(np.int64), -1)
    return heads + (heads >= nodes) * words  # every node but the word itself


def fill_in_heads(
    coder: Coder,
    trees: CodedTrees,
    sentences: Sequence[Sentence],
    labels: tuple[str, ...],
    roots: tuple[str, ...],
    settings: Settings,
    run: Run,
) -> CodedTrees:
    """Whole trees: the best ones with the known heads, under a latent arc-factored model learnt from them.

    Labels stay unknown, unless they are to be chosen with the tree: then the words without one get a labeller's.
    """
    chosen = settings.of_hidden_heads()
    scorer = ArcScorer(arc_features(load_templates(chosen.templates), coder, trees, sentences, ()))
    structures = Trees(chosen.trees, run.executor)
    problem = PartialArcProblem(scorer, structures, trees.coded, trees.heads, temperature_of(chosen))
    learner = bound(latent_learner_of(chosen), problem)
    fitted = run.fit("hidden-heads", learner, problem.size, chosen, shown="hidden heads")
    assert fitted.best is not None
    heads, numbers = trees.heads.copy(), trees.labels.copy()
    for which in groups_by_length(problem.lengths, BATCH_CELLS):
        these = problem.some(which)
        found = these.best_trees(these.score(fitted.best))
        heads[which, : found.shape[1]] = found
    if settings.labels == "joint":
        labeller = train_labels(coder, trees, labels, chosen, run, roots=roots, tree=False)
        for which in groups_by_length(problem.lengths, BATCH_CELLS / len(labels)):
            b, m = np.nonzero((heads[which] >= 0) & (numbers[which] < 0))
            own = heads[which, : int(problem.lengths[which].max()) + 1]
            numbers[which[b], m] = labeller.choose(trees.coded.some(which), own, None).numbers[b, m]
    return CodedTrees(trees.coded, heads, numbers)
