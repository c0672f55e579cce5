"""What models with hashed features say of themselves: the class of trees, weights, labels, templates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from headway.arrays import TreeClass
from headway.features.arc_features import ArcFeatures
from headway.features.coding import Coder
from headway.features.part_features import PartFeatures
from headway.models.composed import Labeller
from headway.models.labeller import LabelScorer
from headway.models.protocol import Description, Table

Features = ArcFeatures | PartFeatures


class _Described(Protocol):
    @property
    def about(self) -> Mapping[str, Any]: ...

    @property
    def trees(self) -> TreeClass: ...


def describe_features(
    model: _Described,
    name: str,
    features: Mapping[str, Features | None],
    labeller: Labeller | None,
    coder: Coder,
    rows: Iterable[tuple[str, str]] = (),
) -> Description:
    """A model of this name, with the features of its parts; `rows` are what else there is to say of it."""
    scorer: LabelScorer | None = getattr(labeller, "scorer", None)
    of_labels = {} if scorer is None else {"labeller": scorer.features, "labeller_tree": scorer.around}
    tables = {table: each for table, each in {**features, **of_labels}.items() if each is not None}
    labels = labeller.names if labeller else ()
    weights = sum(each.size for each in tables.values())
    return Description(
        rows=(("model", name), ("trees", str(model.trees)), *rows, ("weights", str(weights))),
        tables=(labels_table(labels), *(_blocks_table(table, each) for table, each in tables.items())),
        data={
            "model": name,
            "about": dict(model.about),
            **model.trees._asdict(),
            "labels": list(labels),
            "values": {field: len(values) for field, values in coder.fields.items()},
            "weights": weights,
            "templates": {
                table: [
                    {"template": str(b.template), "weights": 1 << b.bits, "keys": b.keys, "collisions": b.collisions}
                    for b in each.blocks
                ]
                for table, each in tables.items()
            },
        },
        templates={
            table: tuple(str(block.template) for block in each.blocks)
            for table, each in features.items()
            if each is not None
        },
    )


def labels_table(labels: tuple[str, ...]) -> Table:
    """The labels in one line."""
    return Table(((f"{len(labels)} labels: {', '.join(labels) or 'none: trained without'}",),))


def _blocks_table(name: str, features: Features) -> Table:
    rows = [(f"{name}: {len(features.blocks)} templates", "weights", "keys", "collisions")]
    rows += [(str(b.template), str(1 << b.bits), str(b.keys), str(b.collisions)) for b in features.blocks]
    totals = (features.size, sum(b.keys for b in features.blocks), sum(b.collisions for b in features.blocks))
    return Table((*rows, ("all", *map(str, totals))))
