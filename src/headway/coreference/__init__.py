"""Coreference: which mentions of a document refer to the same thing, found as latent trees (fernandes2012).

- `read_documents`, `write_documents`: CoNLL-U with `Entity=` marks (CorefUD 1.0, UD English-GUM).
- `Document`, `Mention`: sentences, the mentions in them, and the clusters of mentions that refer to the same thing.
- `tree_mentions`: mentions found in dependency trees, for documents without marks.
- `score_documents`, `evaluate_coreference`: MUC, B-cubed, CEAF, BLANC, LEA and the CoNLL average (`CoreferenceScores`).
- `headway.Resolver` (in `resolver`): train on documents, find the clusters of others.

From text to trees: `mention_spans` lists what may be a mention, `mention_finder` learns which are. `attributes`
describes each mention, `coding` turns descriptions into numbers, `antecedents` picks the arcs worth scoring, `pairs`
compares their two mentions, `cluster_atoms` the mention and the antecedent's cluster, `pair_features` scores them by a
table of templates, `latent_trees` is what is learned, `left_to_right` chooses with clusters in view, `model` predicts
and is saved.

Names load when first used, so that the command line can read `settings` without NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headway.coreference.documents import Document, Mention, read_documents, write_documents
    from headway.coreference.mentions import tree_mentions
    from headway.coreference.scores import CoreferenceScores, Ratio, evaluate_coreference, score_documents

_WHERE = {
    "CoreferenceScores": "scores",
    "Document": "documents",
    "Mention": "documents",
    "Ratio": "scores",
    "evaluate_coreference": "scores",
    "read_documents": "documents",
    "score_documents": "scores",
    "tree_mentions": "mentions",
    "write_documents": "documents",
}

__all__ = [
    "CoreferenceScores",
    "Document",
    "Mention",
    "Ratio",
    "evaluate_coreference",
    "read_documents",
    "score_documents",
    "tree_mentions",
    "write_documents",
]


def __getattr__(name: str) -> Any:
    """Load a public name's module on first use (PEP 562)."""
    if name not in _WHERE:
        raise AttributeError(f"module 'headway.coreference' has no attribute {name!r}")
    return getattr(import_module(f"headway.coreference.{_WHERE[name]}"), name)
