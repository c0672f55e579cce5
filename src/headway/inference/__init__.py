"""Exact inference over dependency trees, on arrays: no words, no features, no files.

The conventions, the same in every function:

- A sentence has n words, numbered 1..n; node 0 is the artificial root.
- Scores are `scores[head, modifier]`, (n+1, n+1) natural-log weights. Column 0 and the diagonal are ignored, whatever
  they hold. -inf, or a masked cell of a `numpy.ma` array, forbids an arc; nan and +inf are errors that name the cell.
- A tree is `heads`, an int array (n+1,): `heads[m]` is the head of word m, `heads[0] == -1`.
- A batch is padded, (B, N+1, N+1), with `lengths` in words; results are padded with -1 (heads) or 0 (marginals).
- The tree class is two flags: `projective` and `single_root`.
- If no tree exists, every function raises `NoTreeError` naming the words. Nothing returns nan.
- Randomness comes from an explicit `numpy.random.Generator` or a seed.

`TreeDistribution` answers every question about one distribution; the functions of `first_order` answer the three
most frequent ones without it. `decode` finds the best tree under scores of siblings and grandparents, with a proof.
"""

from headway.inference.dual_decomposition import Decoded, Status, decode
from headway.inference.first_order import argmax, log_partition, marginals
from headway.inference.head_automata import GrandSiblingParts, SiblingParts, StateParts
from headway.inference.labels import LabelledTreeDistribution
from headway.inference.scores import forbid, from_modifier_head, from_root_on_diagonal, require
from headway.inference.second_order import SiblingDistribution
from headway.inference.tree_distribution import TreeDistribution

__all__ = [
    "Decoded",
    "GrandSiblingParts",
    "LabelledTreeDistribution",
    "SiblingDistribution",
    "SiblingParts",
    "StateParts",
    "Status",
    "TreeDistribution",
    "argmax",
    "decode",
    "forbid",
    "from_modifier_head",
    "from_root_on_diagonal",
    "log_partition",
    "marginals",
    "require",
]
