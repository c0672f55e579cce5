"""Training a higher-order parser: a pruner, the parts, labels that look around in the tree, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headway.arrays import Floats
from headway.errors import TemplateError, TrainingError
from headway.features.arc_features import ArcFeatures
from headway.features.coding import Coder
from headway.features.templates import load_templates
from headway.learning.monitor import Monitor
from headway.learning.structures import Trees
from headway.models.arc_scorer import ArcScorer
from headway.models.calibration import Calibration, fit_calibration
from headway.models.dual_decoder import DualDecoder, PrunedPartScorer
from headway.models.higher_order_model import HigherOrderModel, saved_calibration
from headway.models.part_scorer import PartScorer, kind_of
from headway.models.portions import portions
from headway.models.protocol import Options
from headway.models.pruning import Pruner, coverage, kept_arcs
from headway.models.scorer import Trained
from headway.parallel import Workers
from headway.training.arc_problem import ArcProblem
from headway.training.arc_trainer import fill_in_heads
from headway.training.data import CodedTrees, TrainingData, code_trees, label_names, learn_coder
from headway.training.development import PartDevelopment
from headway.training.labels import train_labels
from headway.training.learners import learner_of, require_fit
from headway.training.part_problem import PartProblem
from headway.training.preparation import about, bound, fit
from headway.training.settings import Settings
from headway.training.stages import Fit, Run, calibration_stage
from headway.treebank import Sentence, require_tree


def require_parts(settings: Settings) -> None:
    """Refuse settings that a higher-order parser cannot be trained with."""
    require_fit(settings, PartProblem.offers)
    if settings.labels == "joint":
        raise TrainingError(f"the {settings.model} model chooses labels after the tree; leave --labels joint out")
    parts = settings.parts or settings.model
    kinds = [kind_of(template) for template in load_templates(parts)]
    has_grandparents = any(kind.below_grandparent for kind in kinds)
    if has_grandparents != (settings.model == "grandsibling"):
        raise TemplateError(f"{parts}: not a table of templates for the {settings.model} model")


def train_higher_order_model(data: TrainingData, settings: Settings, run: Run) -> HigherOrderModel:
    """A sibling or grand-sibling parser."""
    prepared = prepare_parts(data, settings, run)
    return prepared.finish(fit(prepared, data, settings, run), settings, run)


@dataclass(frozen=True)
class PartPreparation:
    """A trained pruner, features sized, sentences coded and pruned."""

    data: TrainingData
    coder: Coder
    pruner: Pruner
    problem: PartProblem
    trees: CodedTrees
    labels: tuple[str, ...]
    dev: PartDevelopment | None

    @property
    def size(self) -> int:
        return self.problem.size

    def learner(self, settings: Settings, workers: Workers | None = None) -> Fit:
        """The learner of these settings."""
        return bound(learner_of(settings), self.problem, settings.shards, workers)

    def uas(self, weights: Floats, projective: bool | None = None) -> float:
        """Development score without punctuation."""
        assert self.dev is not None
        return self.dev.uas(weights, projective)

    def finish(self, fitted: Monitor, settings: Settings, run: Run) -> HigherOrderModel:
        """The model with the best weights, labelled, and calibrated where there is development data."""
        assert fitted.best is not None
        labeller = None
        if settings.labels == "after":
            labeller = train_labels(
                self.coder, self.trees, self.labels, settings, run, roots=self.data.roots, tree=True
            )
        left = (
            self.dev.coverage if self.dev else coverage(self.pruner, self.trees.coded, self.trees.heads, run.executor)
        )
        pruning = {
            "measured_on": "development" if self.dev else "training",
            "recall": left.recall,
            "heads_per_word": left.heads_per_word,
        }
        scorer, pruner = self.problem.scorer, replace(self.pruner, trees=settings.trees)
        said = about(settings, fitted, self.data, scale=1.0, collisions=scorer.collisions)
        model = HigherOrderModel(
            self.coder,
            PrunedPartScorer(pruner, Trained(scorer, fitted.best)),
            DualDecoder(settings.trees),
            labeller,
            {**said, "pruning": pruning},
        )
        dev = self.data.dev
        if dev is None:
            return model
        calibration = run.stage(
            calibration_stage(settings),
            lambda: calibrate(model, dev, run),
            lambda x: ({"calibration": [x.alpha, x.beta, x.gamma]}, {}),
            lambda archive: saved_calibration(archive.data),
        )
        return replace(model, decoder=replace(model.decoder, calibration=calibration))


def prepare_parts(data: TrainingData, settings: Settings, run: Run) -> PartPreparation:
    """Number the words, train the pruner, size the features from the trees, code the sentences."""
    sentences = [sentence for sentence in data.train if sentence.heads is not None]
    coder = learn_coder(data, sentences, settings)
    labels = () if settings.labels == "none" else label_names(sentences)
    trees = code_trees(sentences, coder, labels)
    if trees.is_partial:
        trees = fill_in_heads(coder, trees, sentences, labels, data.roots, settings, run)
    tables = load_templates(settings.templates), load_templates(settings.parts or settings.model)
    pruner = train_pruner(coder, trees, settings, run)
    kept = kept_arcs(pruner, trees.coded, trees.heads, run.executor)
    scorer = PartScorer.learn(*tables, coder, trees.coded, trees.heads)
    problem = PartProblem(scorer, trees.coded, trees.heads, kept, settings.decoding, settings.trees)
    dev = None
    if data.dev is not None:
        held_out = code_trees(data.dev, coder, labels)
        dev = PartDevelopment(scorer, pruner, held_out, data.dev, settings.trees, run.executor)
    return PartPreparation(data, coder, pruner, problem, trees, labels, dev)


def train_pruner(coder: Coder, trees: CodedTrees, settings: Settings, run: Run) -> Pruner:
    """The log-linear arc-factored model whose marginals prune."""
    chosen = settings.of_pruner()
    scorer = ArcScorer(ArcFeatures.learn(load_templates(chosen.templates), coder, trees.coded, trees.heads))
    problem = ArcProblem(scorer, Trees(chosen.trees, run.executor), trees.coded, trees)
    fitted = run.fit("pruner", bound(learner_of(chosen), problem), problem.size, chosen)
    assert fitted.best is not None
    return Pruner(Trained(scorer, fitted.best), settings.trees, settings.prune_threshold, settings.max_heads)


def calibrate(model: HigherOrderModel, dev: Sequence[Sentence], run: Run) -> Calibration:
    """Fitted to the model's own arcs of the development sentences, without proofs that they are the best."""
    own, right = [], []
    for some in portions(dev):
        for gold, found in zip(some, model.predict(some, Options(exact=False), run.executor), strict=True):
            words = np.arange(1, len(found.heads))
            own.append(found.distribution.marginals[found.heads[1:], words])
            right.append(found.heads[1:] == require_tree(gold)[1:])
    return fit_calibration(np.concatenate(own), np.concatenate(right))
