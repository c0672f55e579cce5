"""Latent-tree coreference on UD English-GUM from end to end: predicted tags and trees, and mentions found in them.

The included English model, which never saw GUM, tags and parses its words, sentence by sentence. What it finds is kept
in the folder `parsed`. Finder and resolvers learn from these trees and GUM's own mentions and clusters, with the
settings of `headway coref train` and PASSES passes: nothing is chosen on the development documents. Each resolver is
given the mentions of GUM, those that rules find in the trees, and those of the finder.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from headway import __version__
from headway.coreference import Document, read_documents, write_documents
from headway.coreference.attributes import PRONOUN, describe_mentions
from headway.coreference.documents import documents_checksum
from headway.coreference.mention_finder import MentionFinder
from headway.coreference.resolver import Resolver
from headway.coreference.scores import CoreferenceScores, score_documents
from headway.pipeline import Parser
from headway_papers.cells import Cell, CellFile
from headway_papers.corpora import Say
from headway_papers.markdown import markdown_table

PARTS = ("train", "dev", "test")
SEEDS = (0, 1, 2)
PASSES = 6
SYSTEMS: dict[str, Mapping[str, Any]] = {"closest antecedents": {"tree": "closest"}, "latent tree": {}}
MENTIONS = {"given": "GUM's", "rules": "found by rules", "learnt": "found by what was learnt"}
_METRICS = ("mentions", "muc", "b_cubed", "ceaf_e", "blanc", "lea")


def parsed(documents: Sequence[Document], folder: Path) -> list[Document]:
    """The documents with the included model's tags and trees, from a file in this folder if it is there."""
    path = folder / f"{documents_checksum(documents)}.conllu"
    if not path.exists():
        parser = Parser.load("en")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_documents((_parsed(parser, document) for document in documents), path)
    return list(read_documents(path))


def _parsed(parser: Parser, document: Document) -> Document:
    sentences = tuple(found.sentence for found in parser.parse(list(document.sentences), retag=True))
    return replace(document, sentences=sentences)


class EndToEnd:
    """All rows; `documents` are the training, development and test documents, with predicted trees."""

    def __init__(self, documents: Mapping[str, list[Document]], results: Path, passes: int, say: Say) -> None:
        self._documents, self._passes, self._say = documents, passes, say
        checksums = {name: documents_checksum(documents[name]) for name in PARTS}
        self._cells = CellFile.open(results, {"headway": __version__, "passes": passes, **checksums})
        self._finders: dict[int, MentionFinder] = {}

    def run(self) -> None:
        for seed in SEEDS:
            for system in SYSTEMS:
                name = f"{system}, seed {seed}"
                cell, is_new = self._cells.cell(name, partial(self._cell, system, seed))
                if is_new:
                    dev, test = (cell[part]["learnt"]["kept"]["conll"] for part in ("dev", "test"))
                    self._say(f"{name}: dev {dev:.2f}, test {test:.2f}")

    def _cell(self, system: str, seed: int) -> Cell:
        train = self._documents["train"]
        started = time.perf_counter()
        resolver = Resolver.train(train, **SYSTEMS[system], epochs=self._passes, seed=seed)
        seconds = time.perf_counter() - started
        if seed not in self._finders:
            self._finders[seed] = MentionFinder.learn(train, seed)
        finder = self._finders[seed]
        finding = Resolver(replace(resolver.model, finder=finder))
        cell: Cell = {
            "settings": resolver.model.about["settings"],
            "threshold": finder.threshold,
            "seconds": seconds,
        }
        for part in ("dev", "test"):
            gold = self._documents[part]
            cell[part] = {
                "given": _figures(gold, resolver, find_mentions=False),
                "rules": _figures(gold, resolver, find_mentions=True),
                "learnt": _figures(gold, finding, find_mentions=True),
            }
        cell["pronouns"] = pronouns_at_odds(each.document for each in resolver.resolve(self._documents["dev"]))
        return cell


def pronouns_at_odds(documents: Iterable[Document]) -> dict[str, int]:
    """How many pronouns there are, and how many differ in gender or number from most pronouns of their cluster.

    This is what features of clusters could forbid.
    """
    counts = {"all": 0, "gender": 0, "number": 0}
    for document in documents:
        clusters: dict[int, list[dict[str, str]]] = {}
        for (mention, attributes), cluster in zip(describe_mentions(document), document.clusters.tolist(), strict=True):
            if mention.kind == PRONOUN:
                clusters.setdefault(cluster, []).append(attributes)
        counts["all"] += sum(map(len, clusters.values()))
        for name in ("gender", "number"):
            for pronouns in clusters.values():
                values = Counter(pronoun[name] for pronoun in pronouns if pronoun[name] != "_")
                counts[name] += values.total() - max(values.values(), default=0)
    return counts


def _figures(gold: Sequence[Document], resolver: Resolver, *, find_mentions: bool) -> dict[str, Any]:
    """Scores in percent, with singletons as they are, and without them on either side."""
    found = [each.document for each in resolver.resolve(gold, find_mentions=find_mentions)]
    return {
        "kept": percent(score_documents(gold, found), _METRICS),
        "removed": percent(score_documents(gold, found, singletons=False), _METRICS),
    }


def percent(scores: CoreferenceScores, metrics: Sequence[str]) -> dict[str, float]:
    """The CoNLL average and the F1 of some metrics, in percent."""
    return {"conll": 100 * scores.conll, **{name: 100 * getattr(scores, name).f1 for name in metrics}}


def table_text(results: Path) -> str:
    """The CoNLL averages of development and test documents, means over the seeds."""
    cells = CellFile.read(results)
    header = ["mentions", "system", "dev", "dev, singletons removed", "test", "test, singletons removed"]
    header += ["mentions found, dev F1", "test F1"]
    rows = []
    for mentions, title in MENTIONS.items():
        for system in SYSTEMS:
            found = [cells[name] for seed in SEEDS if (name := f"{system}, seed {seed}") in cells]
            if not found:
                continue
            figures = [
                f"{mean(cell[part][mentions][scored]['conll'] for cell in found):.2f}"
                for part in ("dev", "test")
                for scored in ("kept", "removed")
            ]
            marked = [
                f"{mean(cell[part][mentions]['kept']['mentions'] for cell in found):.2f}" for part in ("dev", "test")
            ]
            rows.append([title, system, *figures, *marked])
    table = markdown_table("## GUM from end to end, predicted trees: CoNLL average", header, rows)
    odds = {system: cell["pronouns"] for system in SYSTEMS if (cell := cells.get(f"{system}, seed {SEEDS[0]}"))}
    names = ["system", "pronouns", "at odds in gender", "in number"]
    lines = [[system, str(found["all"]), str(found["gender"]), str(found["number"])] for system, found in odds.items()]
    title = "## GUM dev, GUM's mentions: pronouns that differ from most of their cluster"
    return "\n".join([table, markdown_table(title, names, lines)])
