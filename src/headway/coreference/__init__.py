"""Coreference: documents whose mentions are clustered.

- `read_documents`, `write_documents`: CoNLL-U with `Entity=` marks (CorefUD 1.0, UD English-GUM).
- `Document`, `Mention`: sentences, the mentions in them, and which mentions name the same thing.
- `tree_mentions`: mentions from dependency trees, for documents without marks.

Behind `headway.resolver.Resolver`, from text to trees: `attributes` of a mention, `coding` into numbers, `pairs` of
mentions compared, `candidates` that sieves let through, `pair_features` from a table of templates, `latent_trees` to
learn, `model` to save; `baselines` to compare with.
"""

from headway.coreference.documents import Document, Mention, read_documents, write_documents
from headway.coreference.mentions import tree_mentions

__all__ = ["Document", "Mention", "read_documents", "tree_mentions", "write_documents"]
