"""`headway info`: statistics of a treebank, or what a model consists of.

A file that starts like a zip file is a model; anything else is read as a treebank.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli import options
from headway.cli.failures import Skipped
from headway.cli.model_info import describe_model, described
from headway.cli.signature import SummedFile, print_json, signature, signature_line
from headway.cli.tables import counted, table
from headway.errors import TemplateError, printable
from headway.named_models import find_model, path_of_model

if TYPE_CHECKING:
    from headway.treebank import Statistics

EXAMPLES = (
    "headway info train.conllu.gz",
    "headway info en",
    "headway info model.headway --all",
    "headway info standard --templates > mine.txt",
    "headway info sibling --parts > siblings.txt",
)

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # the second is that of an empty zip file
_SHARES = (
    "mean_length",
    "non_projective_arc_share",
    "crossing_arc_share",
    "non_projective_tree_share",
    "multi_root_share",
    "lemma_share",
    "feats_share",
)


def info(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A treebank (- is stdin), the name or file of a model, or a table of templates."
        ),
    ],
    *,
    templates: Annotated[
        bool,
        typer.Option(
            "--templates",
            help="Print only the templates of a model or table, as headway train --templates reads them.",
        ),
    ] = False,
    parts: Annotated[
        bool,
        typer.Option(
            "--parts", help="Print only a model's templates of siblings and grandparents, for headway train --parts."
        ),
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Of a model: also settings, labels, and templates with their weights.")
    ] = False,
    skip_bad: options.SkipBadOption = False,
    json: options.JsonOption = False,
) -> None:
    """Describe a treebank or a model."""
    if templates and parts:
        raise typer.BadParameter("give either --templates or --parts; each prints one table")
    model = str(find_model(file) or file)
    if _is_zip(model):
        if templates or parts:
            _print_templates(model, parts=parts)
        else:
            describe_model(model, everything=everything, json=json)
    elif templates or parts:
        _print_table(file)
    else:
        _describe_treebank(str(path_of_model(file)), skip_bad=skip_bad, json=json)


def _print_table(name: str) -> None:
    from headway.features.templates import parse_templates, table_text

    text = table_text(name)
    parse_templates(text, name)  # refuses what is not a table
    typer.echo(text, nl=False)


def _is_zip(name: str) -> bool:
    """Whether the first bytes are those of a zip file. Only regular files are opened, since a pipe is read once."""
    path = Path(name)
    if name == "-" or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) in _ZIP


def _describe_treebank(name: str, *, skip_bad: bool, json: bool) -> None:
    from headway.treebank import Statistics, read_treebank

    skipped = Skipped()
    with SummedFile(name) as file:
        statistics = Statistics.of(read_treebank(file, skip_bad=skipped if skip_bad else None))
    signed = signature(None, {"skip_bad": skip_bad}, [file])
    if json:
        numbers = {field.name: getattr(statistics, field.name) for field in dataclasses.fields(statistics)}
        shares = {share: getattr(statistics, share) for share in _SHARES}
        print_json({"signature": signed, "kind": "treebank", **numbers, **shares, "skipped": skipped.count})
    else:
        typer.echo(f"{_treebank_text(statistics)}\n\n{signature_line(signed)}")
    skipped.report()


def _treebank_text(found: Statistics) -> str:
    def percent(share: float) -> str:
        return f"{share:.2%}"

    rows = [
        ["sentences", str(found.sentences), ""],
        ["words", str(found.tokens), ""],
        ["words per sentence", f"{found.mean_length:.1f}", f"longest {found.longest}"],
        ["trees", str(found.trees), ""],
        ["  not projective", str(found.non_projective_trees), percent(found.non_projective_tree_share)],
        ["  several words on the root", str(found.multi_root_trees), percent(found.multi_root_share)],
        ["arcs of these trees", str(found.arcs), ""],
        ["  not projective", str(found.non_projective_arcs), percent(found.non_projective_arc_share)],
        ["  crossing", str(found.crossing_arcs), percent(found.crossing_arc_share)],
        ["sentences without heads", str(found.sentences_without_heads), ""],
        ["sentences with a cycle", str(found.sentences_with_cycle), ""],
        ["words with a lemma", str(found.tokens_with_lemma), percent(found.lemma_share)],
        ["words with morphology", str(found.tokens_with_feats), percent(found.feats_share)],
    ]
    parts = [table(rows)]
    for title, counts in (("label", found.labels), ("tag", found.upos)):
        rows = [[printable(name), str(count)] for name, count in counts.most_common()]
        parts.append(table([[counted(len(counts), title), "words"], *rows]))
    return "\n\n".join(parts)


def _print_templates(name: str, *, parts: bool) -> None:
    """The templates of a model's arcs, or of its other parts, one per line, ready to edit."""
    templates = described(name)[0].templates
    if not templates:
        raise TemplateError(f"{name}: the model has no templates; models from headway train have some")
    arcs = next(iter(templates)) if "arcs" not in templates else "arcs"
    others = [name for name in templates if name not in (arcs, "pruner", "joint")]
    if parts and not others:
        raise TemplateError(f"{name}: the model scores only arcs; print their templates with --templates")
    shown = others if parts else [arcs]
    head = f"# Templates of {printable(name)}: atoms | - (alone), dir (with direction), dist (with distance)"
    typer.echo("\n".join([head, *(template for table in shown for template in templates[table])]))
