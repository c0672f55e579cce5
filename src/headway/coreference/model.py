"""The trained model of latent trees: what scores the arcs of a document, and how it is saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from headway.archive import Archive
from headway.coreference.antecedents import Sieves
from headway.coreference.coding import MentionCoder
from headway.coreference.documents import Document
from headway.coreference.latent_trees import best_heads
from headway.coreference.pair_features import PairFeatures, stretch
from headway.errors import ArchiveError, TemplateError
from headway.inference.batch import Floats, Ints

KIND = "coreference model"
_MOST = 1 << 31  # mentions or sentences of a document


@dataclass(frozen=True)
class CoreferenceModel:
    """Numbering, sieves, features and weights; `about` says where they come from."""

    coder: MentionCoder
    sieves: Sieves
    features: PairFeatures
    weights: Floats
    about: Mapping[str, Any]

    def heads(self, document: Document) -> Ints:
        """The best tree over the document's mentions, (M+1,) with heads[0] == -1."""
        coded = self.coder.code(document)
        antecedents = self.sieves.antecedents(coded)
        return best_heads(self.features.score(self.weights, stretch(coded, antecedents)), antecedents)

    def to_archive(self) -> Archive:
        data = {
            "values": {name: list(values) for name, values in self.coder.values.items()},
            "sieves": asdict(self.sieves),
            "templates": [" ".join(template) for template in self.features.templates],
            "bits": list(self.features.bits),
            "about": dict(self.about),
        }
        return Archive(KIND, data, {"weights": self.weights.astype(np.float32)})

    @classmethod
    def from_archive(cls, archive: Archive, source: str) -> CoreferenceModel:
        """The model that was saved; whatever a file says is checked."""
        data = archive.data
        try:
            templates = [tuple(str(template).split()) for template in data["templates"]]
            features = PairFeatures.compile(templates, [int(bits) for bits in data["bits"]])
            weights = archive.arrays["weights"].astype(np.float64)
            if weights.shape != (features.size,) or not np.isfinite(weights).all():
                raise ValueError("other weights than its templates have")
            sieves = Sieves(int(data["sieves"]["mentions"]), int(data["sieves"]["sentences"]))
            if not (0 <= sieves.mentions <= _MOST and 0 <= sieves.sentences <= _MOST):
                raise ValueError("sieves that no model has")
            return cls(MentionCoder.from_values(data["values"]), sieves, features, weights, dict(data["about"]))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, TemplateError) as error:
            raise ArchiveError(f"{source}: a damaged {KIND} ({error}); save it again") from None
