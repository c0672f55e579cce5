"""From treebank to weights.

`settings` say what is trained and how; `words` learns to split and tag plain text; `material` reads, checks and codes
the trees; `steps` runs the learner under a `monitor`, which scores the `development` data after each pass, keeps the
best weights, stops early, saves checkpoints.
"""

from headway.training.development import Development, PartDevelopment, development
from headway.training.material import Material, checksum, training_trees
from headway.training.monitor import Monitor, Progress, Show, signature
from headway.training.settings import LabelChoice, LearnerName, ModelName, Settings, TagChoice
from headway.training.steps import train_arcs, train_labeller
from headway.training.words import Words

__all__ = [
    "Development",
    "LabelChoice",
    "LearnerName",
    "Material",
    "ModelName",
    "Monitor",
    "PartDevelopment",
    "Progress",
    "Settings",
    "Show",
    "TagChoice",
    "Words",
    "checksum",
    "development",
    "signature",
    "train_arcs",
    "train_labeller",
    "training_trees",
]
