"""Coreference: which mentions of a document refer to the same thing, found as latent trees (fernandes2012).

- `read_documents`, `write_documents`: CoNLL-U with `Entity=` marks (CorefUD 1.0, UD English-GUM).
- `Document`, `Mention`: sentences, the mentions in them, and the clusters of mentions that refer to the same thing.
- `tree_mentions`: mentions found in dependency trees, for documents without marks.
- `score_documents`, `evaluate_coreference`: MUC, B-cubed, CEAF, BLANC, LEA and the CoNLL average (`CoreferenceScores`).
- `headway.Resolver` (in `resolver`): train on documents, find the clusters of others.

From text to trees: `attributes` describes each mention, `coding` turns descriptions into numbers, `antecedents` picks
the arcs worth scoring, `pairs` compares their two mentions, `pair_features` scores them by a table of templates,
`latent_trees` is what is learned, `model` predicts and is saved. `baselines` are there for comparison.
"""

from headway.coreference.documents import Document, Mention, read_documents, write_documents
from headway.coreference.mentions import tree_mentions
from headway.coreference.scores import CoreferenceScores, Ratio, evaluate_coreference, score_documents

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
