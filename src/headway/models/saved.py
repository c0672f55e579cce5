"""The pieces of a saved model: how each is written into an archive, and read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from headway.archive import Archive
from headway.arrays import TreeClass
from headway.features.arc_features import ArcFeatures
from headway.features.blocks import Block, Weights
from headway.features.clusters import Clusters
from headway.features.coding import Coder
from headway.features.part_features import PartFeatures
from headway.features.tag_classes import TagClasses
from headway.features.templates import parse_templates
from headway.models.labeller import ROLES, AfterLabels, LabelScorer
from headway.models.root_labels import roots_of
from headway.packing import read_weights
from headway.saved_values import column_values, flag, mapping, whole_number

Data = dict[str, Any]

_FILES = ("clusters", "templates", "parts", "encoder", "teacher")  # settings that may be a file, or a folder


def trees_of(data: Mapping[str, Any]) -> TreeClass:
    """The class of a model's trees."""
    return TreeClass(*(flag(data[name], name) for name in ("projective", "single_root")))


def about_of(data: Mapping[str, Any]) -> Data:
    """What a model says of itself."""
    about = dict(mapping(data["about"], "about"))
    settings = about.get("settings")
    return {**about, "settings": without_folders(settings)} if isinstance(settings, Mapping) else about


def without_folders(settings: Mapping[str, Any]) -> Data:
    """The settings of a training with the names of files alone: where they were is nobody's business.

    >>> without_folders({"clusters": "/tmp/x/paths.txt", "templates": "standard+/tmp/own.toml", "seed": 3})
    {'clusters': 'paths.txt', 'templates': 'standard+own.toml', 'seed': 3}
    """
    return {
        name: _without_folder(value) if name in _FILES and isinstance(value, str) else value
        for name, value in settings.items()
    }


def _without_folder(value: str) -> str:
    """Of one file, or of each of several joined by "+"."""
    parts = [value] if Path(value).exists() else value.split("+")
    return "+".join(PurePath(part).name for part in parts)


def coder_data(coder: Coder) -> Data:
    """The numbering of words and tags, and the clusters and classes behind it."""
    fields = {name: list(values) for name, values in coder.fields.items()}
    learnt = coder.tag_classes.classes
    classes = {"tag_classes": dict(learnt)} if learnt else {}
    return {"coder": {"fields": fields, "feats": list(coder.feats), **classes}, "clusters": coder.clusters.to_data()}


def coder_of(data: Mapping[str, Any]) -> Coder:
    """The coder that was saved."""
    coder = data["coder"]
    classes = TagClasses.from_data(coder.get("tag_classes", {}))
    return Coder.from_values(coder["fields"], coder["feats"], Clusters.from_data(data["clusters"]), classes)


def required_columns(coder: Coder) -> frozenset[str]:
    """What sentences need besides words: tags, where training saw more than one."""
    has_tags = any(len(coder.fields[field]) > 1 for field in ("upos", "xpos"))
    return frozenset({"words", "tags"} if has_tags else {"words"})


def blocks_data(features: ArcFeatures | PartFeatures) -> list[Data]:
    """The templates, each with the size of its block of weights."""
    return [{**asdict(block), "template": str(block.template)} for block in features.blocks]


def arc_features_of(blocks: list[Data], coder: Coder) -> ArcFeatures:
    """The features of arcs that were saved."""
    return ArcFeatures.compile(_blocks(blocks), coder)


def part_features_of(roles: str, blocks: list[Data], coder: Coder) -> PartFeatures:
    """The features of parts that were saved."""
    return PartFeatures.compile(roles, _blocks(blocks), coder)


def labeller_members(labeller: AfterLabels | None) -> tuple[Data | None, dict[str, Any]]:
    """A labeller's templates and labels, None where there is no labeller, and its weights."""
    if labeller is None:
        return None, {"label_weights": np.zeros(0, np.float32)}
    scorer = labeller.scorer
    data = {
        "arc": blocks_data(scorer.features),
        "tree": None if scorer.around is None else blocks_data(scorer.around),
        "labels": list(scorer.labels),
        "roots": list(labeller.roots),
    }
    return data, {"label_weights": labeller.weights.astype(np.float32)}


def labeller_of(archive: Archive, coder: Coder) -> AfterLabels | None:
    """The labeller that was saved, if any."""
    data = archive.data["labeller"]
    if data is None:
        weights_of(archive, "label_weights", 0)
        return None
    labels = labels_of(data)
    around = None if data["tree"] is None else part_features_of(ROLES, data["tree"], coder)
    scorer = LabelScorer(arc_features_of(data["arc"], coder), around, labels)
    return AfterLabels(scorer, weights_of(archive, "label_weights", scorer.size), roots_of(data, labels))


def labels_of(data: Mapping[str, Any]) -> tuple[str, ...]:
    """The labels that were saved; there is at least one."""
    labels = column_values(data["labels"], "a label")
    if not labels:
        raise ValueError("it has no labels")
    return labels


def weights_of(archive: Archive, name: str, size: int) -> Weights:
    """A vector of weights, checked: compiled code indexes it without looking."""
    return read_weights(archive.arrays, name, size)


def _blocks(data: list[Data]) -> Sequence[Block]:
    parsed = []
    for block in data:
        if not isinstance(block["template"], str):
            raise ValueError("a template is no text")
        (template,) = parse_templates(block["template"], "model")
        parsed.append(Block(template, *(whole_number(block[name], name) for name in ("bits", "keys", "collisions"))))
    return parsed
