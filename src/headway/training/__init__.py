"""From treebank to weights.

`settings` say what is trained and how; `words` learns to split and tag plain text; `material` reads, checks and codes
the trees, `ruled_text` text and rules where there are none; `steps` runs the learner under a `monitor`, which scores
the `development` data after each pass, keeps the best weights, stops early, saves checkpoints. `labels` learns those
that are chosen after the tree, `induction` head-automata grammars, which need no weights.
"""

from headway.learning.monitor import Monitor, Progress, Show
from headway.training.development import Development, PartDevelopment, arc_development, development
from headway.training.explanation import explain
from headway.training.induction import Direction, Induction, Method, induce, state_picture
from headway.training.labels import train_labeller
from headway.training.material import Material, checksum, known_heads, training_text, training_trees
from headway.training.monitor import signature
from headway.training.ruled_text import RuledText
from headway.training.settings import LabelChoice, LearnerName, ModelName, Settings, TagChoice
from headway.training.steps import Watch, train_arcs, train_from_rules
from headway.training.words import Words

__all__ = [
    "Development",
    "Direction",
    "Induction",
    "LabelChoice",
    "LearnerName",
    "Material",
    "Method",
    "ModelName",
    "Monitor",
    "PartDevelopment",
    "Progress",
    "RuledText",
    "Settings",
    "Show",
    "TagChoice",
    "Watch",
    "Words",
    "arc_development",
    "checksum",
    "development",
    "explain",
    "induce",
    "known_heads",
    "signature",
    "state_picture",
    "train_arcs",
    "train_from_rules",
    "train_labeller",
    "training_text",
    "training_trees",
]
