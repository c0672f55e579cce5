"""Sentences and treebank files.

    for sentence in read_treebank("train.conllu.gz"):
        sentence.forms, sentence.heads, sentence.labels

- `read_treebank`, `write_treebank`: CoNLL-U and CoNLL-X, plain, gzip or xz, from and to paths and streams.
- `Sentence`: words and tree. `require_tree` insists on a tree, `require_partial_tree` on heads that some tree has.
  `is_punctuation` asks about a form.
- `is_tree`, `is_projective`, `crossing_arcs`, `non_projective_arcs`, `roots`: questions about heads.
- `projectivise`: the nearest projective tree (koo2007). `Statistics`: what a treebank is like.
- `treebank.inputs` recognises and reads texts as well as treebanks, `treebank.raw_text` reads and restores text, and
  `treebank.annotations` has comments, MISC entries, multiword tokens and offsets.
"""

from headway.errors import TreebankError
from headway.treebank.files import read_treebank, write_treebank
from headway.treebank.projectivise import projectivise
from headway.treebank.sentence import (
    Format,
    Layout,
    Place,
    Sentence,
    is_punctuation,
    require_partial_tree,
    require_tree,
)
from headway.treebank.statistics import Statistics
from headway.treebank.trees import crossing_arcs, is_projective, is_tree, non_projective_arcs, roots

__all__ = [
    "Format",
    "Layout",
    "Place",
    "Sentence",
    "Statistics",
    "TreebankError",
    "crossing_arcs",
    "is_projective",
    "is_punctuation",
    "is_tree",
    "non_projective_arcs",
    "projectivise",
    "read_treebank",
    "require_partial_tree",
    "require_tree",
    "roots",
    "write_treebank",
]
