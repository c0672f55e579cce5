"""Latent-tree coreference on UD English-GUM, with gold mentions: what the latent tree, the margin and the root's weight
bring, beside clusters that need no learning.

Singletons are mentions that are alone in their clusters. Everything is done twice: with all mentions (`kept`; the
clusters found are also scored without singletons on either side), and with the mentions of clusters of two or more
only, in training, development and test documents (`removed`).

Systems that learn are perceptrons, unless they are called log-linear; those with clusters have features of the cluster
that an antecedent stands for, and choose from left to right. They are trained with three seeds. The margin C,
and then the root's weight, are chosen on the development documents with the first seed; the pass is chosen there for
each training. The test documents are resolved once by each model, after all choices.

A third way (`found`) is from end to end, without gold trees and mentions: `coreference_end_to_end`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from headway import __version__
from headway.arrays import Ints
from headway.coreference import Document, read_documents
from headway.coreference.documents import documents_checksum
from headway.coreference.resolver import Resolver
from headway.coreference.scores import score_documents
from headway.errors import TreebankError
from headway_papers import coreference_end_to_end as end_to_end
from headway_papers.cells import Cell, CellFile
from headway_papers.coreference_baselines import BASELINES
from headway_papers.corpora import Say, require_names
from headway_papers.markdown import markdown_table

SINGLETONS = ("kept", "removed")
FOUND = "found"
SEEDS = (0, 1, 2)
MARGINS = (3.0, 10.0, 30.0, 100.0)
ROOT_WEIGHTS = (0.5, 1.5, 2.0, 3.0)
TEMPERATURE = 30.0  # of the log-linear models; found on the development documents
PASSES, PATIENCE = 15, 5
WAYS = {  # which documents, and which clusters are scored
    ("kept", "kept"): "all mentions, singletons scored",
    ("kept", "removed"): "all mentions, scored without singletons",
    ("removed", "kept"): "mentions of clusters of two or more only",
}
_QUICK = 4  # documents of each file
_METRICS = ("muc", "b_cubed", "ceaf_e", "blanc", "lea")


@dataclass(frozen=True)
class System:
    """A row: how it is trained, and what of it is chosen on the development documents, or for another row (`like`)."""

    name: str
    settings: Mapping[str, Any]
    margin: bool = True
    root_weight: bool = False
    like: System | None = None


_CLOSEST = System("closest antecedents, log-linear", {"tree": "closest", "temperature": TEMPERATURE})
_LATENT = System("latent tree, log-linear", {"temperature": TEMPERATURE})
SYSTEMS = (
    System("closest antecedents, no margin", {"tree": "closest"}, margin=False),
    System("closest antecedents", {"tree": "closest"}),
    System("closest antecedents, root weight", {"tree": "closest"}, root_weight=True),
    _CLOSEST,
    System(f"{_CLOSEST.name}, clusters", {**_CLOSEST.settings, "clusters": True}, like=_CLOSEST),
    System("latent tree, no margin", {}, margin=False),
    System("latent tree", {}),
    System("latent tree, root weight", {}, root_weight=True),
    System("latent tree, whole documents", {"stretch": 0}),
    _LATENT,
    System(f"{_LATENT.name}, clusters", {**_LATENT.settings, "clusters": True}, like=_LATENT),
    System("latent tree, log-linear, entity types given", {"temperature": TEMPERATURE, "types": True}),
)


@dataclass(frozen=True)
class Data:
    """Training, development and test documents."""

    train: list[Document]
    dev: list[Document]
    test: list[Document]

    @classmethod
    def read(cls, folder: Path, singletons: str, most: int | None = None) -> Data:
        """The first `most` documents of each file, or all; `singletons` are kept or removed."""
        parts = []
        for name in ("train", "dev", "test"):
            path = next(iter(sorted(folder.glob(f"*-{name}.conllu*"))), None)
            if path is None:
                raise TreebankError(f"has no *-{name}.conllu[.gz]; give the folder of UD English-GUM", str(folder))
            documents = list(read_documents(path))[:most]
            parts.append([d.without_singletons() for d in documents] if singletons == "removed" else documents)
        return cls(*parts)


def run(data: Path, output: Path, *, languages: Sequence[str] | None, quick: bool, threads: int, say: Say) -> None:
    """Compute what is not there yet, and write `tables.md`; `quick` takes a few documents and two passes.

    `languages` are "kept" and "removed", with gold mentions, and "found", or some of them.
    """
    chosen = require_names(languages, (*SINGLETONS, FOUND), "way with mentions,")
    results = output / ("quick" if quick else "results")
    results.mkdir(parents=True, exist_ok=True)
    most = _QUICK if quick else None
    for singletons in chosen:
        if singletons != FOUND:
            _Experiment(Data.read(data, singletons, most), singletons, results, quick, say).run()
    if FOUND in chosen:
        given = Data.read(data, "kept", most)
        parsed = {name: end_to_end.parsed(getattr(given, name), output / "parsed") for name in end_to_end.PARTS}
        end_to_end.EndToEnd(parsed, results / f"{FOUND}.json", 2 if quick else end_to_end.PASSES, say).run()
    table = table_text(results)
    (output / ("quick.md" if quick else "tables.md")).write_text(table, encoding="utf-8")
    say(table)


class _Experiment:
    """All rows of one way with singletons."""

    def __init__(self, data: Data, singletons: str, results: Path, quick: bool, say: Say) -> None:
        self._data, self._say = data, say
        self._passes = 2 if quick else PASSES
        signature = {
            "headway": __version__,
            "singletons": singletons,
            "passes": self._passes,
            "patience": PATIENCE,
            "margins": list(MARGINS),
            "root_weights": list(ROOT_WEIGHTS),
            **{name: documents_checksum(getattr(data, name)) for name in ("train", "dev", "test")},
        }
        self._cells = CellFile.open(results / f"{singletons}.json", signature)

    def run(self) -> None:
        for name, clusters in BASELINES.items():
            self._cells.cell(name, partial(self._baseline, clusters))
        for system in SYSTEMS:
            settings = self._chosen(system)
            for seed in SEEDS:
                name = f"{system.name}, seed {seed}"
                cell, is_new = self._cells.cell(name, partial(self._trained, {**settings, "seed": seed}, test=True))
                if is_new:
                    self._say(f"{name}: dev {cell['dev']:.2f}, test {cell['test']['kept']['conll']:.2f}")

    def _baseline(self, clusters: Callable[[Document], Ints]) -> dict[str, Any]:
        found = [document.with_clusters(clusters(document)) for document in self._data.test]
        return {"test": _figures(self._data.test, found)}

    def _chosen(self, system: System) -> dict[str, Any]:
        """Settings with the margin, and then the root's weight, that are best on the development documents."""
        if system.like is not None:
            return {**self._chosen(system.like), **system.settings}
        settings = {**system.settings, "margin": 0.0}
        if not system.margin:
            return settings
        settings["margin"] = max(MARGINS, key=lambda c: self._dev({**settings, "margin": c}))
        if not system.root_weight:
            return settings
        weights = (1.0, *ROOT_WEIGHTS)
        return {**settings, "root_weight": max(weights, key=lambda w: self._dev({**settings, "root_weight": w}))}

    def _dev(self, settings: Mapping[str, Any]) -> float:
        given = {"root_weight": 1.0, **settings, "seed": SEEDS[0]}
        name = "dev " + " ".join(f"{key}={value}" for key, value in sorted(given.items()))
        return float(self._cells.cell(name, partial(self._trained, given, test=False))[0]["dev"])

    def _trained(self, settings: Mapping[str, Any], *, test: bool) -> Cell:
        given = {"temperature": 0.0, "epochs": self._passes, "patience": PATIENCE, **settings}
        return trained(self._data, given, test=test)


def trained(data: Data, settings: Mapping[str, Any], *, test: bool) -> Cell:
    """Train; with `test`, resolve the test documents too."""
    started = time.perf_counter()
    resolver = Resolver.train(data.train, data.dev, **settings)
    seconds = time.perf_counter() - started
    about = resolver.model.about
    cell = {
        "settings": about["settings"],
        "best_pass": about["best_pass"],
        "dev": max(entry["dev"] for entry in about["history"]),
        "history": about["history"],
        "seconds": seconds,
    }
    if test:
        found = [each.document for each in resolver.resolve(data.test)]
        cell["test"] = _figures(data.test, found)
    return cell


def _figures(gold: Sequence[Document], found: Sequence[Document]) -> dict[str, Any]:
    """Scores in percent, with singletons as they are, and without them on either side."""
    return {
        "kept": end_to_end.percent(score_documents(gold, found), _METRICS),
        "removed": end_to_end.percent(score_documents(gold, found, singletons=False), _METRICS),
    }


def table_text(results: Path) -> str:
    """Test figures; of systems that learn the mean, and the CoNLL average of each seed."""
    parts = [summary_text(results)]
    header = ["system", "CoNLL", "seeds", "MUC", "B-cubed", "CEAF-e", "BLANC", "LEA", "C", "root", "dev", "s"]
    for (singletons, scored), title in WAYS.items():
        if (path := results / f"{singletons}.json").exists():
            rows = _rows(CellFile.read(path), scored)
            parts.append(markdown_table(f"## GUM test, gold mentions: {title}", header, rows))
    if (path := results / f"{FOUND}.json").exists():
        parts.append(end_to_end.table_text(path))
    return "\n".join(parts)


def summary_text(results: Path) -> str:
    """The CoNLL averages side by side, of systems that learn with the standard deviation over the seeds."""
    columns = {
        title: {row[0]: f"{row[1]}{_spread(row[2])}" for row in _rows(CellFile.read(path), scored)}
        for (singletons, scored), title in WAYS.items()
        if (path := results / f"{singletons}.json").exists()
    }
    names = list(dict.fromkeys(name for column in columns.values() for name in column))
    rows = [[name, *(column.get(name, "") for column in columns.values())] for name in names]
    return markdown_table("## GUM test, gold mentions: CoNLL average", ["system", *columns], rows)


def _spread(seeds: str) -> str:
    """
    >>> _spread("79.10 79.20 79.30"), _spread("")
    (' ± 0.10', '')
    """
    values = [float(each) for each in seeds.split()]
    return f" ± {stdev(values):.2f}" if len(values) > 1 else ""


def _rows(cells: Mapping[str, Any], scored: str) -> list[list[str]]:
    rows = [
        [name, f"{test['conll']:.2f}", "", *(f"{test[metric]:.2f}" for metric in _METRICS), "", "", "", ""]
        for name in BASELINES
        if name in cells
        for test in [cells[name]["test"][scored]]
    ]
    for system in SYSTEMS:
        found = [cells[name] for seed in SEEDS if (name := f"{system.name}, seed {seed}") in cells]
        if not found:
            continue
        tests = [cell["test"][scored] for cell in found]
        conll = [test["conll"] for test in tests]
        chosen = found[0]["settings"]
        figures = (mean(test[metric] for test in tests) for metric in _METRICS)
        rows.append(
            [
                *(system.name, f"{mean(conll):.2f}", " ".join(f"{each:.2f}" for each in conll)),
                *(f"{figure:.2f}" for figure in figures),
                *(f"{chosen['margin']:g}", f"{chosen['root_weight']:g}"),
                *(f"{mean(cell['dev'] for cell in found):.2f}", f"{mean(cell['seconds'] for cell in found):.0f}"),
            ]
        )
    return rows
