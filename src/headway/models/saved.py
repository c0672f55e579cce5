"""The pieces of a saved model: how each is written into an archive, and read back."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np

from headway.archive import Archive
from headway.errors import ArchiveError, TemplateError
from headway.features.arc_features import ArcFeatures
from headway.features.blocks import Block, Weights
from headway.features.clusters import Clusters
from headway.features.coding import Coder
from headway.features.part_features import PartFeatures
from headway.features.templates import parse_templates
from headway.models.labeller import ROLES, LabelScorer
from headway.models.packed import is_packed, pack_all, unpack
from headway.text.segmenter import Segmenter
from headway.text.tagger import Tagger

KIND = "parser"
_SEGMENTER = "segmenter_"
_MEMBERS = 20_000  # bytes that the zip file's own tables take, at most

Data = dict[str, Any]


def coder_data(coder: Coder) -> Data:
    """The numbering of words and tags."""
    clusters: dict[str, list[str]] = {}
    for word, path in coder.clusters.paths.items():
        clusters.setdefault(path, []).append(word)
    return {
        "fields": {name: list(values) for name, values in coder.fields.items()},
        "feats": list(coder.feats),
        "clusters": clusters,
    }


def coder_of(data: Data) -> Coder:
    """The coder that was saved."""
    paths = {str(word): path for path, words in data["clusters"].items() for word in words}
    return Coder.from_values(data["fields"], data["feats"], Clusters(paths))


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


def weights_of(archive: Archive, name: str, size: int) -> Weights:
    """A vector of weights, checked: compiled code indexes it without looking."""
    if is_packed(archive.arrays, name):
        weights: Weights = unpack(archive.arrays, name, size)
    else:
        weights = archive.arrays[name].astype(np.float32)
    if weights.shape != (size,):
        raise ValueError("the weights do not fit the templates")
    if not np.isfinite(weights).all():
        raise ValueError("a weight is not a finite number")
    return weights


def _blocks(data: list[Data]) -> Sequence[Block]:
    parsed = []
    for block in data:
        (template,) = parse_templates(block["template"], "model")
        parsed.append(Block(template, *(int(block[name]) for name in ("bits", "keys", "collisions"))))
    return parsed


def with_words(archive: Archive, tagger: Tagger | None, segmenter: Segmenter | None) -> Archive:
    """The archive of a model, and what splits and tags plain text for it."""
    data: Data = {**archive.data, "tagger": None, "segmenter": None}
    arrays = dict(archive.arrays)
    if tagger:
        data["tagger"] = tagger.to_data()
        arrays["tagger_weights"] = tagger.weights.astype(np.float32)
    if segmenter:
        data["segmenter"], tables = segmenter.to_data()
        arrays |= {f"{_SEGMENTER}{name}": table for name, table in tables.items()}
    return Archive(archive.kind, data, arrays)


def tagger_of(archive: Archive, clusters: Clusters) -> Tagger | None:
    """The tagger that was saved, if any."""
    data = archive.data["tagger"]
    if data is None:
        return None
    return Tagger.from_data(data, weights_of(archive, "tagger_weights", Tagger.size_of(data)), clusters)


def segmenter_of(archive: Archive) -> Segmenter | None:
    """The segmenter that was saved, if any."""
    data = archive.data["segmenter"]
    if data is None:
        return None
    tables = {
        name.removeprefix(_SEGMENTER): table for name, table in archive.arrays.items() if name.startswith(_SEGMENTER)
    }
    return Segmenter.from_data(data, tables)


def packed(archive: Archive, megabytes: float) -> Archive:
    """The archive with its weights packed so that the file has no more than so many million bytes."""
    vectors = {name: array for name, array in archive.arrays.items() if name.endswith("weights")}
    others = {name: array for name, array in archive.arrays.items() if name not in vectors}
    text = json.dumps(archive.data, ensure_ascii=False).encode()
    rest = _MEMBERS + sum(
        len(zlib.compress(content, 4)) for content in (text, *map(np.ndarray.tobytes, others.values()))
    )
    return Archive(archive.kind, archive.data, {**others, **pack_all(vectors, megabytes * 1e6 - rest)})


@contextmanager
def damage_reported(source: str) -> Iterator[None]:
    """Whatever reading a damaged model stumbles over, in one sentence."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, TemplateError) as error:
        raise ArchiveError(
            f"{source}: a damaged model, or not a model ({type(error).__name__}: {error}); save it again"
        ) from None
