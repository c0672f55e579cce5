"""`headway coref train | resolve | evaluate`: which mentions of a document refer to the same thing.

Documents are CoNLL-U with dependency trees and `Entity=` marks in MISC (`headway.coreference` describes the format).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headway.cli import options, places
from headway.cli.failures import Skipped
from headway.cli.progress import training_progress
from headway.cli.signals import if_interrupted
from headway.cli.signature import SummedFile, print_json, signature, signature_line
from headway.cli.tables import counted, table
from headway.coreference.settings import ResolverSettings
from headway.errors import TreebankError, printable

if TYPE_CHECKING:
    from headway.coreference import CoreferenceScores, Document

TRAIN_EXAMPLES = (
    "headway coref train train.conllu --dev dev.conllu -o model.coref",
    "headway coref train train.conllu --margin 30 --root-weight 1.5 -o model.coref",
)
RESOLVE_EXAMPLES = (
    "headway coref resolve model.coref new.conllu -o resolved.conllu",
    "headway parse en news.txt | headway coref resolve model.coref - --mentions trees --drop-singletons",
)
EVALUATE_EXAMPLES = (
    "headway coref evaluate gold.conllu resolved.conllu",
    "headway coref evaluate gold.conllu resolved.conllu --json | jq .kept.conll",
)

_METRICS = {
    "mentions": "mentions",
    "MUC": "muc",
    "B-cubed": "b_cubed",
    "CEAF-m": "ceaf_m",
    "CEAF-e": "ceaf_e",
    "BLANC": "blanc",
    "LEA": "lea",
}


class Mentions(StrEnum):
    """Where the mentions come from."""

    GIVEN = "given"
    TREES = "trees"


@options.with_settings(ResolverSettings, without=("mentions", "sentences", "tree"))
def train(
    train: Annotated[
        str,
        typer.Argument(metavar="TRAIN", help="Documents with trees and Entity= marks, CoNLL-U; - is stdin."),
    ],
    *,
    output: options.ModelFileOption,
    dev: Annotated[
        str | None, typer.Option(metavar="DEV", help="Development documents: choose the best pass, stop early.")
    ] = None,
    drop_singletons: Annotated[
        bool, typer.Option("--drop-singletons", help="Ignore mentions that are alone in their clusters.")
    ] = False,
    settings: dict[str, Any],
) -> None:
    """Train a coreference model.

    The clusters of a document are learnt through trees over its mentions. The trees are latent: nobody annotated them.
    """
    places.require_one_standard_input(train, dev)
    places.require_place_for(output, train, dev)
    places.require_inputs(train, dev)
    from headway.coreference.resolver import Resolver

    with if_interrupted(lambda: "; nothing was written"), training_progress() as show:
        held_out = None if dev is None else _read(dev, drop_singletons)
        resolver = Resolver.train(_read(train, drop_singletons), held_out, show=show, **settings)
    resolver.save(output)
    typer.echo(summary(output, resolver.model.about))


def resolve(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model that headway coref train wrote.")],
    input: Annotated[str, typer.Argument(metavar="INPUT", help="Documents with trees, CoNLL-U; - is standard input.")],
    *,
    output: Annotated[str, typer.Option("-o", "--output", metavar="OUT", help="The file to write; - is stdout.")] = "-",
    mentions: Annotated[
        Mentions, typer.Option(help="Cluster the mentions marked in INPUT, or those found in its trees.")
    ] = Mentions.GIVEN,
    drop_singletons: Annotated[
        bool, typer.Option("--drop-singletons", help="Leave out mentions that are alone in their clusters.")
    ] = False,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip documents with malformed marks, and count them.")
    ] = False,
) -> None:
    """Find the clusters of documents.

    Clusters are written as Entity= marks. Those already in INPUT are ignored and replaced; everything else is kept.
    """
    places.require_inputs(input)
    places.require_output(output, model)
    from headway.coreference import read_documents, write_documents
    from headway.coreference.resolver import Resolver

    resolver = Resolver.load(model)
    skipped = Skipped("document")
    documents = read_documents(input, skip_bad=skipped if skip_bad else None)
    if mentions is Mentions.GIVEN:
        documents = _require_mentions(documents, input)

    def resolved() -> Iterator[Document]:
        for each in resolver.resolve(documents, find_mentions=mentions is Mentions.TREES):
            yield each.document.without_singletons() if drop_singletons else each.document
            sys.stdout.flush()  # before the next one is waited for

    write_documents(resolved(), output)
    skipped.report()


def evaluate(
    gold: Annotated[str, typer.Argument(metavar="GOLD", help="Documents with gold clusters; - is standard input.")],
    predicted: Annotated[str, typer.Argument(metavar="PREDICTED", help="The same documents with predicted clusters.")],
    *,
    json: options.JsonOption = False,
) -> None:
    """Score predicted clusters against gold ones.

    Prints MUC, B-cubed, CEAF, BLANC, LEA and the CoNLL average twice: once over all mentions, and once without those
    that are alone in their clusters.
    """
    places.require_one_standard_input(gold, predicted)
    from headway.coreference import evaluate_coreference, read_documents
    from headway.coreference.scores import paired_documents

    with SummedFile(gold) as gold_file, SummedFile(predicted) as file:
        sides = (_require_marks(read_documents(each), each.name) for each in (gold_file, file))
        pairs = paired_documents(*sides)
        partitions = [(key.partition(), response.partition()) for key, response in pairs]
    scores = {
        "kept": evaluate_coreference(partitions),
        "removed": evaluate_coreference(partitions, singletons=False),
    }
    signed = signature(None, {}, [gold_file, file])
    if json:
        print_json({"signature": signed, **{name: each.to_dict() for name, each in scores.items()}})
        return
    typer.echo(f"{counted(len(partitions), 'document')}\n")
    for name, each in scores.items():
        typer.echo(f"singletons {name}\n{_table(each)}\n")
    typer.echo(signature_line(signed))


def summary(output: Path, about: Mapping[str, Any]) -> str:
    """What was trained, with its signature."""
    settings, data, best = about["settings"], about["train"], about["best_pass"]
    dev = next(entry["dev"] for entry in about["history"] if entry["pass"] == best)
    score = "" if dev is None else f", dev CoNLL {dev:.2f}"
    trained = (
        f"temperature {settings['temperature']:g}, margin {settings['margin']:g}, "
        f"root weight {settings['root_weight']:g}"
    )
    return (
        f"{printable(str(output))}: {settings['tree']} trees, {trained}, pass {best} of {settings['epochs']}{score}\n"
        f"headway {about['headway']}, seed {settings['seed']}, {counted(data['documents'], 'document')} with "
        f"{counted(data['mentions'], 'mention')} sha256 {data['sha256']}"
    )


def _read(name: str, drop_singletons: bool) -> Iterator[Document]:
    from headway.coreference import read_documents

    documents = _require_mentions(read_documents(name), name)
    return (document.without_singletons() for document in documents) if drop_singletons else documents


def _require_mentions(documents: Iterable[Document], name: str) -> Iterator[Document]:
    """The same documents; an error if none of them has mentions, which must be a mistake."""
    seen = []
    stream = iter(documents)
    for document in stream:
        seen.append(document)
        if document.mentions:
            break
    if seen and not seen[-1].mentions:
        shown = "standard input" if name == "-" else name
        remedy = "annotate mentions, or find them in the trees (headway coref resolve --mentions trees)"
        raise TreebankError(f"no document has Entity= marks; {remedy}", shown)
    return chain(seen, stream)


def _require_marks(documents: Iterable[Document], name: str) -> Iterator[Document]:
    """The same documents; afterwards an error if none of them had mentions: there is nothing to score."""
    marked = False
    for document in documents:
        marked = marked or bool(document.mentions)
        yield document
    if not marked:
        raise TreebankError("no document has Entity= marks; mark the mentions, or run headway coref resolve", name)


def _table(scores: CoreferenceScores) -> str:
    rows = [["", "recall", "precision", "F1"]]
    for title, name in _METRICS.items():
        ratio = getattr(scores, name)
        rows.append([title, *(f"{100 * value:.2f}" for value in (ratio.recall, ratio.precision, ratio.f1))])
    rows.append(["CoNLL", "", "", f"{100 * scores.conll:.2f}"])
    return table(rows)
