"""The pieces of a saved model: how features, coder and labeller are written into an archive, and read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from headway.archive import Archive
from headway.features.arc_features import ArcFeatures
from headway.features.blocks import Block
from headway.features.coding import Coder
from headway.features.part_features import PartFeatures
from headway.features.templates import parse_templates
from headway.inference.batch import Floats
from headway.models.labeller import ROLES, LabelScorer

KIND = "parser"

Data = dict[str, Any]


def coder_data(coder: Coder) -> Data:
    """The numbering of words and tags."""
    return {
        "fields": {name: list(values) for name, values in coder.fields.items()},
        "feats": list(coder.feats),
    }


def coder_of(data: Data) -> Coder:
    """The coder that was saved."""
    return Coder.from_values(data["fields"], data["feats"])


def blocks_data(features: ArcFeatures | PartFeatures) -> list[Data]:
    """The templates, each with the size of its block of weights."""
    return [{**asdict(block), "template": str(block.template)} for block in features.blocks]


def arc_features_of(blocks: list[Data], coder: Coder) -> ArcFeatures:
    """The features of arcs that were saved."""
    return ArcFeatures.compile(_blocks(blocks), coder)


def part_features_of(roles: str, blocks: list[Data], coder: Coder) -> PartFeatures:
    """The features of parts that were saved."""
    return PartFeatures.compile(roles, _blocks(blocks), coder)


def labeller_data(labeller: LabelScorer | None) -> Data | None:
    """The labeller's templates and labels; None where there is no labeller."""
    if labeller is None:
        return None
    return {
        "arc": blocks_data(labeller.features),
        "tree": None if labeller.around is None else blocks_data(labeller.around),
        "labels": list(labeller.labels),
    }


def labeller_of(data: Data | None, coder: Coder) -> LabelScorer | None:
    """The labeller that was saved, if any."""
    if data is None:
        return None
    labels = tuple(map(str, data["labels"]))
    if not labels:
        raise ValueError("its labeller has no labels")
    around = None if data["tree"] is None else part_features_of(ROLES, data["tree"], coder)
    return LabelScorer(arc_features_of(data["arc"], coder), around, labels)


def weights_of(archive: Archive, name: str, size: int) -> Floats:
    """A vector of weights, checked: compiled code indexes it without looking."""
    weights = archive.arrays[name]
    if weights.shape != (size,):
        raise ValueError("the weights do not fit the templates")
    if not np.isfinite(weights).all():
        raise ValueError("a weight is not a finite number")
    return weights.astype(np.float64)


def _blocks(data: list[Data]) -> Sequence[Block]:
    parsed = []
    for block in data:
        (template,) = parse_templates(block["template"], "model")
        parsed.append(Block(template, *(int(block[name]) for name in ("bits", "keys", "collisions"))))
    return parsed
