"""What a parser is trained with: pure data, checked without loading anything numerical.

Every setting is written once, with its default and its help text; `headway train` and `headway tune` make their options
from these fields. `headway.training.learners` makes a learner of them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from headway.declared import require_choices, require_minimums, setting
from headway.errors import TrainingError
from headway.learning.choices import Criterion, Optimiser

if TYPE_CHECKING:
    from headway.arrays import TreeClass

TreeLearner = Literal["perceptron", "margin", "loglinear", "eg", "eg-loglinear", "expected-loss", "cross-entropy"]
LearnerName = Literal[TreeLearner, "constraints"]
LabelChoice = Literal["after", "joint", "none"]
TagChoice = Literal["predicted", "gold"]
Decoding = Literal["automata", "dual"]
Device = Literal["auto", "cpu", "cuda"]

NEURAL = "neural"  # the model whose scorer is a network
LSTM = "lstm"  # the encoder that needs no folder


class Defaults(NamedTuple):
    """What a learner takes where the user gives nothing."""

    epochs: int
    c: float
    labels: LabelChoice


# From first trials on held-out Danish sentences. `headway tune` finds better values for a treebank.
DEFAULTS: dict[LearnerName, Defaults] = {
    "perceptron": Defaults(10, 0.0, "after"),
    "margin": Defaults(10, 200.0, "after"),
    "loglinear": Defaults(100, 0.1, "joint"),
    "eg": Defaults(50, 0.01, "joint"),
    "eg-loglinear": Defaults(50, 0.1, "joint"),
    "expected-loss": Defaults(100, 3.0, "joint"),
    "cross-entropy": Defaults(20, 1.0, "after"),
    "constraints": Defaults(100, 100.0, "none"),
}
_PASSES = {True: 60, False: 20}  # of a network: with an encoder from scratch, and with a pretrained one
# These keep 99.9% of the right heads of held-out Danish sentences and 99.5% of Swedish ones, 7 and 9 heads per word.
PRUNE_THRESHOLD, MAX_HEADS = 1e-3, 20
# Of the log-linear model that prunes for the higher-order ones.
_PRUNER_EPOCHS, _PRUNER_C = 4, 0.3
ENTROPY_WEIGHT, ENTROPY_ORDER = 0.03, 1.0


# The settings that learning from rules has, and its own defaults; the others are fixed.
RULES_SETTINGS = (
    *("model", "projective", "single_root", "tags", "templates", "clusters", "epochs", "c", "optimiser", "patience"),
    *("seed", "shards", "encoder", "batch", "rate", "encoder_rate", "dropout", "device", "criterion"),
)
RULES_DEFAULTS: dict[str, Any] = {"learner": "constraints", "labels": "none", "templates": "rules", "tags": "gold"}
RULED = ("arc", NEURAL)  # the models that rules can train

# What only linear models have, and what only networks have.
_OF_LINEAR = (
    *("clusters", "word_classes", "tag_classes", "templates", "parts", "decoding", "prune_threshold", "max_heads"),
    *("c", "optimiser", "runs", "shards"),
)
_OF_NETWORKS = ("encoder", "batch", "rate", "encoder_rate", "dropout", "smoothing", "teacher", "device")


@dataclass(frozen=True)
class Settings:
    """What a parser is trained with.

    `c` is the papers' C: the margin, or the weight of the data against w·w/2. `labels` are chosen `after` the tree (the
    default of the perceptrons), jointly with it (`joint`, the default of the learners by marginals), or not at all.
    Where the coarse tags are the fine ones, `tag_classes` are learnt instead (`headway.features.tag_classes`); where
    there are no `clusters` of words, `word_classes` are (`headway.features.word_classes`).
    With several `runs`, which differ in the order of the sentences, the weights are averaged. On several `shards`, the
    perceptrons mix their weights (`headway.learning.parameter_mixing`), and `eg` takes another way to the optimum; the
    other learners find what they find on one.

    The higher-order models have `parts`, a table of templates beside those of the arcs; `decoding` during training, by
    the head `automata` alone or by `dual` decomposition; and a pruner that keeps, of a word's heads, those of at least
    `prune_threshold` times the likeliest one's probability, and no more than `max_heads`.

    With text beside the trees, `loglinear` adds its entropy of order `entropy_order` (1: Shannon's), times
    `entropy_weight`. A network with a `teacher` learns what that one says of the text instead, or, where there is none,
    of the trees. The learner `constraints` is for `Parser.constrain`, and `criterion` its distance from a target.
    """

    model: str = setting(
        "arc",
        "What is scored: arc: each arc; sibling: also neighbouring children of a head; grandsibling: also their "
        "grandparents; neural: each arc, by a network; or a model that a package adds.",
        metavar="NAME",
    )
    learner: LearnerName | None = setting(
        None,
        "How the weights are found; cross-entropy is for networks.",
        choices=get_args(TreeLearner),
        default="margin, of networks loglinear",
    )
    projective: bool = setting(False, "Projective trees only.")
    single_root: bool = setting(True, "Trees may have several words on the root.", off="multi-root")
    labels: LabelChoice | None = setting(
        None,
        "Choose labels after the tree, jointly with it, or not at all.",
        default="after for the perceptrons, joint for the others",
    )
    tags: TagChoice = setting(
        "predicted", "Train a tagger too, and the parser on tags like the tagger's; or on the treebank's own tags."
    )
    clusters: str | None = setting(
        None, "Word clusters for the features: each line has bits, a tab and a word.", metavar="FILE"
    )
    word_classes: int = setting(
        0,
        "Learn N word classes from the trees for the features, in the place of clusters; 0: none.",
        metavar="N",
        minimum=0,
    )
    tag_classes: int = setting(
        0,
        "Learn N coarse tags for the features, where the treebank's own are its fine ones; 0: none.",
        metavar="N",
        minimum=0,
    )
    templates: str = setting(
        "standard",
        "Feature templates: standard, coarse, mcdonald2005, mcdonald2006, rules, a file, or several joined by +.",
        metavar="NAME|FILE",
    )
    parts: str | None = setting(
        None,
        "Templates of siblings and grandparents: sibling, grandsibling, a file, or several joined by +.",
        metavar="NAME|FILE",
        default="by model",
    )
    decoding: Decoding = setting(
        "automata", "While a higher-order model is trained: each head automaton alone, or dual decomposition."
    )
    prune_threshold: float = setting(
        PRUNE_THRESHOLD, "Higher-order models: leave out heads below X times a word's likeliest.", metavar="X"
    )
    max_heads: int = setting(MAX_HEADS, "Higher-order models: leave a word at most N heads.", metavar="N", minimum=1)
    epochs: int | None = setting(None, "Passes over the data, at most.", metavar="N", minimum=1, default="by learner")
    c: float | None = setting(None, "The margin, or the weight of the data.", metavar="X", default="by learner")
    optimiser: Optimiser = setting("lbfgs", "For the learners loglinear and expected-loss.")
    entropy_weight: float | None = setting(
        None, "Weight of the text's entropy, relative to C.", metavar="W", default=str(ENTROPY_WEIGHT), minimum=0
    )
    entropy_order: float | None = setting(
        None, "Order of that entropy: 1 is Shannon's, inf the best tree's.", metavar="A", default="1"
    )
    patience: int = setting(
        10, "Passes without a better development score before training stops.", metavar="N", minimum=1
    )
    seed: int = setting(0, "Seed of everything random.", metavar="S", minimum=0)
    runs: int = setting(1, "Average N trainings that differ in the order of the sentences.", metavar="N", minimum=1)
    shards: int = setting(
        1, "Cut the sentences into N shards that are trained on at the same time.", metavar="N", minimum=1
    )
    encoder: str = setting(
        LSTM,
        "Of a network: lstm, trained from scratch, or a folder with a pretrained encoder (config.json, tokenizer.json, "
        "model.safetensors).",
        metavar="NAME|DIR",
    )
    batch: int | None = setting(
        None, "Words or subwords of a network's batch.", metavar="N", minimum=1, default="2500, 2048"
    )
    rate: float | None = setting(None, "Learning rate of a network.", metavar="X", minimum=0, default="2e-3, 1e-3")
    encoder_rate: float = setting(2e-4, "Learning rate of a pretrained encoder.", metavar="X", minimum=0)
    dropout: float = setting(0.33, "Share of a network's cells that a step leaves out.", metavar="X", minimum=0)
    smoothing: float = setting(0.0, "Label smoothing of a network: of labels and tags.", metavar="X", minimum=0)
    teacher: str | None = setting(
        None,
        "A network, by name or from a file, or several joined by +, whose answers about the text of --text, or else "
        "about the treebank, another one learns to give.",
        metavar="MODEL",
    )
    device: Device = setting("auto", "Where a network is trained; auto takes a GPU if there is one.")
    criterion: Criterion = setting("kl", "Distance of an expectation from its target.")

    @property
    def trees(self) -> TreeClass:
        """The class of trees to train for."""
        from headway.arrays import TreeClass  # NumPy, which help does without

        return TreeClass(self.projective, self.single_root)

    @property
    def method(self) -> LearnerName:
        """The learner; the model's own where none is given."""
        return self.learner or ("loglinear" if self.model == NEURAL else "margin")

    def complete(self) -> Settings:
        """The same with every default written out; an error names a setting that cannot be."""
        require_choices(self)
        if self.clusters is not None and self.word_classes:
            raise TrainingError("word classes are learnt where there are no clusters; leave one of the two out")
        if self.model == "arc" and self.parts is not None:
            raise TrainingError("the arc model has no parts beside arcs; train the model sibling or grandsibling")
        self._require_own()
        epochs, c, labels = DEFAULTS[self.method]
        is_network = self.model == NEURAL
        if is_network:
            epochs = _PASSES[self.encoder == LSTM]
        done = replace(
            self,
            learner=self.method,
            labels=self.labels or ("after" if is_network else labels),
            parts=self.parts or (self.model if self.model in ("sibling", "grandsibling") else None),
            epochs=epochs if self.epochs is None else self.epochs,
            c=c if self.c is None and not is_network else self.c,
        )
        require_minimums(done)
        done._require_numbers()
        return done

    def _require_own(self) -> None:
        """Refuse settings of networks for linear models, the other way round, and those of an encoder for another."""
        if self.model not in (NEURAL, "arc", "sibling", "grandsibling"):
            return
        defaults = RULES_DEFAULTS if self.method == "constraints" else {}
        others = _OF_LINEAR if self.model == NEURAL else _OF_NETWORKS
        for each in fields(self):
            if each.name in others and getattr(self, each.name) != defaults.get(each.name, each.default):
                of = "networks" if each.name in _OF_NETWORKS else "linear models"
                option = each.name.replace("_", "-")
                raise TrainingError(f"{each.name} is for {of}, not for the {self.model} model; leave --{option} out")
        if self.model == NEURAL and self.encoder == LSTM and self.encoder_rate != Settings.encoder_rate:
            raise TrainingError("encoder_rate is for pretrained encoders, not for lstm; leave --encoder-rate out")

    def _require_numbers(self) -> None:
        c, order = self.c or 0.0, self.entropy_order
        if not (c > 0 or (c == 0 and (self.method == "perceptron" or self.model == NEURAL))) or not isfinite(c):
            raise TrainingError(f"C is {c}; expected a number above 0")
        if order is not None and not order > 0:
            raise TrainingError(f"entropy_order is {order}; expected a number above 0, or inf")
        if not self.dropout < 1 or not self.smoothing < 1:
            raise TrainingError(f"dropout is {self.dropout}, smoothing {self.smoothing}; expected less than 1")
        if self.shards > 1 and self.method in ("loglinear", "expected-loss") and self.optimiser in ("adagrad", "adam"):
            raise TrainingError(
                f"{self.optimiser} takes a few sentences at a time, which is no work for {self.shards} shards; "
                "choose the optimiser lbfgs or cg"
            )
        if not 0 < self.prune_threshold <= 1:
            raise TrainingError(f"prune_threshold is {self.prune_threshold}; expected a number above 0, at most 1")

    def require_trees(self, *, text: bool) -> None:
        """Refuse settings that do not learn from trees, or not from trees and `text`."""
        if self.method == "constraints":
            raise TrainingError("constraints need rules, not trees; use Parser.constrain, or headway constrain")
        if text and self.teacher is None and self.method != "loglinear":
            raise TrainingError(f"{self.method} learns from trees alone; text beside them is for loglinear")
        given = [name for name in ("entropy_weight", "entropy_order") if getattr(self, name) is not None]
        if given and self.teacher is not None:
            raise TrainingError(f"{given[0]} is about text without a teacher; leave one of them out")
        if given and not text:
            raise TrainingError(f"{given[0]} is about text beside the trees; give some (text=, --text FILE)")

    def of_pruner(self) -> Settings:
        """How the arc-factored model that prunes for these settings is trained."""
        return Settings(
            learner="loglinear",
            optimiser="adagrad",
            projective=self.projective,
            single_root=self.single_root,
            labels="none",
            templates="pruner",
            epochs=_PRUNER_EPOCHS,
            c=_PRUNER_C,
            seed=self.seed,
        ).complete()

    def of_hidden_heads(self) -> Settings:
        """How the arc-factored model that fills in unknown heads is trained."""
        return Settings(
            projective=self.projective,
            single_root=self.single_root,
            labels="none",
            templates=self.templates,
            seed=self.seed,
        ).complete()
