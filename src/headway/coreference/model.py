"""The trained model of latent trees: it scores the arcs of a document, may find its mentions, and can be saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from headway.archive import Archive
from headway.arrays import Floats, Ints
from headway.coreference.antecedents import Antecedents, Sieves
from headway.coreference.coding import CodedDocument, MentionCoder
from headway.coreference.documents import Document
from headway.coreference.keyed_rows import Template
from headway.coreference.latent_trees import best_heads
from headway.coreference.left_to_right import heads_left_to_right
from headway.coreference.mention_finder import MentionFinder, SpanFeatures
from headway.coreference.pair_features import PairFeatures, stretch
from headway.models.protocol import Description, Options, Table, Task
from headway.packing import read_weights
from headway.parallel import Executor
from headway.saved_values import mapping, number, texts, whole_number

_MOST = 1 << 31  # mentions or sentences of a document


@dataclass(frozen=True, repr=False)
class CoreferenceModel:
    """Coder, sieves, features and weights; `about` says where they come from. It may have learnt to find mentions."""

    coder: MentionCoder
    sieves: Sieves
    features: PairFeatures
    weights: Floats
    about: Mapping[str, Any]
    finder: MentionFinder | None = None

    kind: ClassVar[str] = "coreference"
    task: ClassVar[Task] = "coreference"
    requires = frozenset({"trees"})

    def __repr__(self) -> str:
        return f"<CoreferenceModel: {len(self.features.templates)} templates>"

    def predict(self, documents: Sequence[Document], options: Options, executor: Executor) -> list[Ints]:
        """The best tree over the mentions of each document, (M+1,) with heads[0] == -1.

        Without features of clusters, it is the best of all trees whatever the `options`; with them, a greedy one.
        """
        return executor.map(self._heads, documents)

    def _heads(self, document: Document) -> Ints:
        coded = self.coder.code(document)
        return predicted_heads(self.features, self.weights, coded, self.sieves.antecedents(coded))

    def describe(self) -> Description:
        """Its sieves, its templates and the size of their blocks, and what it says of itself."""
        features: dict[str, PairFeatures | SpanFeatures] = {"pairs": self.features}
        if self.finder is not None:
            features["spans"] = self.finder.features
        blocks = {name: _blocks(each) for name, each in features.items()}
        size = sum(each.size for each in features.values())
        near = f"distance in mentions {self.sieves.mentions}, of pronouns in sentences {self.sieves.sentences}"
        return Description(
            rows=(
                ("model", self.kind),
                ("antecedents", f"{near}; further if they match"),
                ("mentions", "given, or found by " + ("rules" if self.finder is None else "a learnt model")),
                ("weights", str(size)),
            ),
            tables=tuple(_table(name, some) for name, some in blocks.items()),
            data={
                "model": self.kind,
                "about": dict(self.about),
                "sieves": asdict(self.sieves),
                "values": {attribute: len(values) for attribute, values in self.coder.values.items()},
                "weights": size,
                "templates": {
                    name: [{"template": template, "weights": weights} for template, weights in some]
                    for name, some in blocks.items()
                },
            },
            templates={"pairs": tuple(f"{template} | -" for template, _ in blocks["pairs"])},
        )

    def to_archive(self) -> Archive:
        """What is saved: the coder's values, the sieves, the templates, and weights in single precision."""
        data = {
            "values": {name: list(values) for name, values in self.coder.values.items()},
            "sieves": asdict(self.sieves),
            "templates": [" ".join(template) for template in self.features.templates],
            "bits": list(self.features.bits),
            "about": dict(self.about),
        }
        arrays = {"weights": self.weights.astype(np.float32)}
        if self.finder is not None:
            features = self.finder.features
            data["finder"] = {
                "templates": [" ".join(template) for template in features.templates],
                "bits": list(features.bits),
                "threshold": self.finder.threshold,
            }
            arrays["finder_weights"] = self.finder.weights.astype(np.float32)
        return Archive(self.kind, data, arrays)

    @classmethod
    def from_archive(cls, archive: Archive) -> CoreferenceModel:
        """The model that was saved; a KeyError, TypeError or ValueError if the archive is damaged."""
        data = archive.data
        features = PairFeatures.compile(_templates(data), data["bits"])
        weights = read_weights(archive.arrays, "weights", features.size).astype(np.float64)
        sieves = Sieves(*(whole_number(data["sieves"][name], name, 0, _MOST) for name in ("mentions", "sentences")))
        about = dict(mapping(data["about"], "about"))
        return cls(MentionCoder.from_values(data["values"]), sieves, features, weights, about, _finder(archive))


def predicted_heads(features: PairFeatures, weights: Floats, coded: CodedDocument, antecedents: Antecedents) -> Ints:
    """The tree of a document: the best one, or, with features of clusters, the one found from left to right."""
    if features.of_clusters:
        return heads_left_to_right(features, weights, coded, antecedents)
    return best_heads(features.score(weights, stretch(coded, antecedents)), antecedents)


def _blocks(features: PairFeatures | SpanFeatures) -> list[tuple[str, int]]:
    """The templates, and how many weights each has."""
    names = (" ".join(template) for template in features.templates)
    return [(name, 1 << bits) for name, bits in zip(names, features.bits, strict=True)]


def _table(name: str, blocks: Sequence[tuple[str, int]]) -> Table:
    heading = (f"{name}: {len(blocks)} templates", "weights")
    total = ("all", str(sum(size for _, size in blocks)))
    return Table((heading, *((template, str(size)) for template, size in blocks), total))


def _templates(data: Mapping[str, Any]) -> list[Template]:
    texts(data["templates"], "the templates")
    return [tuple(template.split()) for template in data["templates"]]


def _finder(archive: Archive) -> MentionFinder | None:
    if "finder" not in archive.data:
        return None
    data = mapping(archive.data["finder"], "finder")
    features = SpanFeatures.compile(_templates(data), data["bits"])
    weights = read_weights(archive.arrays, "finder_weights", features.size).astype(np.float64)
    return MentionFinder(features, weights, number(data["threshold"], "threshold"))
