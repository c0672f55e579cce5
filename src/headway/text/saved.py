"""Segmenter and tagger as members of an archive: beside a model of trees, or as the stages of a training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from headway.archive import Archive
from headway.features.clusters import NO_CLUSTERS, Clusters
from headway.packing import read_weights
from headway.text.segmenter import Segmenter
from headway.text.tagger import Tagger

_SEGMENTER = "segmenter_"

Members = tuple[dict[str, Any], dict[str, Any]]  # JSON, and arrays by name


def segmenter_members(segmenter: Segmenter | None) -> Members:
    """What is saved of a segmenter; None where there is none."""
    if segmenter is None:
        return {"segmenter": None}, {}
    data, tables = segmenter.to_data()
    return {"segmenter": data}, {f"{_SEGMENTER}{name}": table for name, table in tables.items()}


def segmenter_of(archive: Archive) -> Segmenter | None:
    """The segmenter that was saved, if any."""
    data = archive.data["segmenter"]
    if data is None:
        return None
    tables = {
        name.removeprefix(_SEGMENTER): table for name, table in archive.arrays.items() if name.startswith(_SEGMENTER)
    }
    return Segmenter.from_data(data, tables)


def tagger_members(tagger: Tagger) -> Members:
    """What is saved of a tagger, its weights in full; its clusters are the parser's."""
    return {"tagger": tagger.to_data()}, {"tagger_weights": tagger.weights}


def tagger_of(archive: Archive, clusters: Clusters) -> Tagger | None:
    """The tagger that was saved, if any; weights of single precision, or packed, stay so."""
    data = archive.data["tagger"]
    if data is None:
        return None
    return Tagger.from_data(data, read_weights(archive.arrays, "tagger_weights", Tagger.size_of(data)), clusters)


def text_models_of(archive: Archive) -> tuple[Archive, Tagger | None, Segmenter | None]:
    """The tagger and segmenter beside a model, and the archive for the model to read: they share its clusters."""
    clusters = NO_CLUSTERS
    if "clusters" in archive.data:
        clusters = Clusters.from_data(archive.data["clusters"])
        archive = replace(archive, data={**archive.data, "clusters": clusters})
    return archive, tagger_of(archive, clusters), segmenter_of(archive)


def with_text_members(archive: Archive, tagger: Tagger | None, segmenter: Segmenter | None) -> Archive:
    """The archive of a model, and what splits and tags plain text for it."""
    data, arrays = segmenter_members(segmenter)
    if tagger:
        own, weights = tagger_members(tagger)
        clusters = tagger.coder.clusters.to_data()
        data |= {**own, "clusters": clusters}
        arrays["tagger_weights"] = weights["tagger_weights"].astype(np.float32)
    return Archive(archive.kind, {"tagger": None, **archive.data, **data}, {**archive.arrays, **arrays})
