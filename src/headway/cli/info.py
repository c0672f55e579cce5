"""`headway info`: what a treebank is like, or what a model is made of.

A model is a zip file and says so in its first bytes; anything else is read as a treebank.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headway.cli import options
from headway.cli.failures import Skipped
from headway.cli.signature import SummedFile, print_json, signature, signature_line
from headway.cli.tables import printable, table
from headway.embedded import embedded_model
from headway.errors import ArchiveError, TemplateError

if TYPE_CHECKING:
    from headway.coreference.model import CoreferenceModel
    from headway.features.arc_features import ArcFeatures
    from headway.features.blocks import Block
    from headway.features.part_features import PartFeatures
    from headway.pipeline import Model, Parser
    from headway.treebank import Statistics

    Features = ArcFeatures | PartFeatures

EXAMPLES = (
    "headway info train.conllu.gz",
    "headway info model.headway",
    "headway info standard --templates > mine.txt",
    "headway info sibling --parts > siblings.txt",
)

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # the second begins a zip file without members
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
        typer.Argument(metavar="FILE", help="A treebank (- is stdin), a model or its name, or a table of templates."),
    ],
    *,
    templates: Annotated[
        bool,
        typer.Option(
            "--templates",
            help="Print the templates only, as headway train --templates reads them: a model's, or a table's.",
        ),
    ] = False,
    parts: Annotated[
        bool,
        typer.Option(
            "--parts", help="Print a model's templates of siblings and grandparents, for headway train --parts."
        ),
    ] = False,
    skip_bad: options.SkipBadOption = False,
    json: options.JsonOption = False,
) -> None:
    """Describe a treebank or a model."""
    if templates and parts:
        raise typer.BadParameter("--templates and --parts exclude each other; each prints one table")
    model = str(embedded_model(file) or file)
    if _is_zip(model):
        if templates or parts:
            _print_templates(model, parts=parts)
        else:
            _describe_model(model, json=json)
    elif templates or parts:
        _print_table(file)
    else:
        _describe_treebank(file, skip_bad=skip_bad, json=json)


def _print_table(name: str) -> None:
    from headway.features.templates import parse_templates, table_text

    text = table_text(name)
    parse_templates(text, name)  # a treebank is no table
    typer.echo(text, nl=False)


def _is_zip(name: str) -> bool:
    """Do the first bytes say zip? Only regular files are looked at: what comes through a pipe is read once."""
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
        ["words a sentence", f"{found.mean_length:.1f}", f"longest {found.longest}"],
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
        counted = [[printable(name), str(count)] for name, count in counts.most_common()]
        parts.append(table([[f"{len(counts)} {title}s", "words"], *counted]))
    return "\n\n".join(parts)


def _describe_model(name: str, *, json: bool) -> None:
    from headway.coreference.resolver import Resolver
    from headway.pipeline import Parser

    model = Resolver.load(name).model if _is_coreference(name) else Parser.load(name)
    with SummedFile(name) as file:
        while file.read1(1 << 20):
            pass
    signed = signature(None, {}, [file])
    if json:
        found = _model_json(model) if isinstance(model, Parser) else _coreference_json(model)
        print_json({"signature": signed, "kind": "model", **found})
    else:
        text = _model_text(model) if isinstance(model, Parser) else _coreference_text(model)
        typer.echo(f"{text}\n\n{signature_line(signed)}")


def _is_coreference(name: str) -> bool:
    """Does the file hold a coreference model? What is wrong with one that holds nothing is for `Parser.load` to say."""
    from headway.archive import load_archive
    from headway.coreference.model import KIND

    try:
        load_archive(name, KIND)
    except ArchiveError:
        return False
    return True


def _print_templates(name: str, *, parts: bool) -> None:
    """The templates of a model's arcs, or of its other parts: one way to fire a line, ready to be edited."""
    from headway.models.automata_model import AutomataModel
    from headway.models.grammar_model import GrammarModel
    from headway.pipeline import Parser

    if _is_coreference(name):
        _print_pair_templates(name, parts=parts)
        return
    model = Parser.load(name).model
    if isinstance(model, GrammarModel):
        raise TemplateError(f"{name}: a grammar over tags has no templates; headway train makes models that have")
    blocks: tuple[Block, ...] = model.scorer.arcs.blocks
    if parts:
        if not isinstance(model, AutomataModel):
            raise TemplateError(
                f"{name}: an arc model has no parts beside arcs; its templates are those of --templates"
            )
        blocks = tuple(block for features in model.scorer.others.values() for block in features.blocks)
    head = f"# Templates of {printable(name)}: atoms | - (alone), dir (with direction), dist (with distance)"
    typer.echo("\n".join([head, *(str(block.template) for block in blocks)]))


def _print_pair_templates(name: str, *, parts: bool) -> None:
    from headway.coreference.resolver import Resolver

    if parts:
        raise TemplateError(f"{name}: a coreference model has arcs only; its templates are those of --templates")
    head = f"# Templates of {printable(name)}: atoms of an antecedent (a), a mention (m) and the two (p)"
    templates = Resolver.load(name).model.features.templates
    typer.echo("\n".join([head, *(f"{' '.join(template)} | -" for template in templates)]))


def _kind_of(model: Model) -> str:
    from headway.models.automata_model import AutomataModel
    from headway.models.grammar_model import GrammarModel

    if isinstance(model, GrammarModel):
        return "grammar"
    if not isinstance(model, AutomataModel):
        return "arc"
    return "grandsibling" if model.scorer.grand else "sibling"


def _tables_of(model: Model) -> dict[str, Features]:
    """The features of the pruner, of arcs and other parts, of labels chosen with the tree, and after it, if any."""
    from headway.models.automata_model import AutomataModel
    from headway.models.grammar_model import GrammarModel

    given: dict[str, Features | None]
    if isinstance(model, AutomataModel):
        given = {"pruner": model.pruner.scorer.arcs, "arcs": model.scorer.arcs, **model.scorer.others}
    elif isinstance(model, GrammarModel):
        given = {}
    else:
        given = {"arcs": model.scorer.arcs, "joint": model.scorer.joint}
    if model.labeller is not None:
        given |= {"labeller": model.labeller.features, "labeller_tree": model.labeller.around}
    return {name: features for name, features in given.items() if features is not None}


def _model_json(parser: Parser) -> dict[str, Any]:
    model = parser.model
    tables = _tables_of(model)
    return {
        "model": _kind_of(model),
        "about": dict(model.about),
        "projective": model.projective,
        "single_root": model.single_root,
        "labels": list(model.label_names),
        "tags": len(parser.tagger.tags) if parser.tagger else 0,
        "segmenter": parser.segmenter is not None,
        "values": {field: len(values) for field, values in model.coder.fields.items()},
        "weights": sum(features.size for features in tables.values()),
        "templates": {
            name: [
                {"template": str(b.template), "weights": 1 << b.bits, "keys": b.keys, "collisions": b.collisions}
                for b in features.blocks
            ]
            for name, features in tables.items()
        },
    }


def _model_text(parser: Parser) -> str:
    model = parser.model
    kind = "projective" if model.projective else "non-projective"
    roots = "one word" if model.single_root else "any number of words"
    tables = _tables_of(model)
    rows = [
        ["model", _kind_of(model)],
        ["trees", f"{kind}, {roots} on the root"],
        *_grammar_rows(model),
        ["weights", str(sum(features.size for features in tables.values()))],
        ["tagger", f"{len(parser.tagger.tags)} tags" if parser.tagger else "none: trained on gold tags"],
        ["raw text", "yes" if parser.segmenter else "no: nothing to learn to split it from"],
    ]
    parts = [_aligned(rows + _about(model.about))]
    names = ", ".join(map(printable, model.label_names)) or "none: trained without"
    parts.append(f"{len(model.label_names)} labels: {names}")
    parts += [_blocks_text(name, features) for name, features in tables.items()]
    return "\n\n".join(parts)


def _coreference_json(model: CoreferenceModel) -> dict[str, Any]:
    features = model.features
    return {
        "model": "coreference",
        "about": dict(model.about),
        "sieves": dataclasses.asdict(model.sieves),
        "values": {attribute: len(values) for attribute, values in model.coder.values.items()},
        "weights": features.size,
        "templates": {
            "pairs": [
                {"template": " ".join(template), "weights": 1 << bits}
                for template, bits in zip(features.templates, features.bits, strict=True)
            ]
        },
    }


def _coreference_text(model: CoreferenceModel) -> str:
    found = _coreference_json(model)
    near = f"{model.sieves.mentions} mentions back, of pronouns {model.sieves.sentences} sentences; any that match"
    rows = [["model", found["model"]], ["antecedents", near], ["weights", str(found["weights"])]]
    pairs = [[each["template"], str(each["weights"])] for each in found["templates"]["pairs"]]
    blocks = [[f"pairs: {len(pairs)} templates", "weights"], *pairs, ["all", str(found["weights"])]]
    return f"{_aligned(rows + _about(model.about))}\n\n{table(blocks)}"


def _grammar_rows(model: Model) -> list[list[str]]:
    """What a grammar is over, where the model is one."""
    from headway.models.grammar_model import GrammarModel

    if not isinstance(model, GrammarModel):
        return []
    grammar = model.grammar
    tags = f"{len(grammar.symbols.names)} tags ({grammar.symbols.column})"
    states = f"{grammar.operators.states} state{'s' * (grammar.operators.states != 1)}"
    return [["grammar", f"{states}, {tags}" + (f", {grammar.lexical.configuration}" if grammar.lexical else "")]]


def _about(about: Mapping[str, Any]) -> list[list[str]]:
    """What the model says of itself, one level deep; its history is left to JSON, and so are the rules but for their
    number."""
    from headway.features.rules import parse_rules

    rows = []
    for key, value in about.items():
        if isinstance(value, Mapping):
            rows += [[printable(f"{key}.{name}"), printable(str(inner))] for name, inner in value.items()]
        elif key == "rules":
            rows.append([key, str(len(parse_rules(str(value), "the model's rules")))])
        elif key != "history":
            rows.append([printable(str(key)), printable(str(value))])
    return rows


def _aligned(rows: list[list[str]]) -> str:
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in rows)


def _blocks_text(name: str, features: Features) -> str:
    rows = [[f"{name}: {len(features.blocks)} templates", "weights", "keys", "collisions"]]
    rows += [[str(b.template), str(1 << b.bits), str(b.keys), str(b.collisions)] for b in features.blocks]
    totals = (features.size, sum(b.keys for b in features.blocks), sum(b.collisions for b in features.blocks))
    return table([*rows, ["all", *map(str, totals)]])
