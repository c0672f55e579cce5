"""`headway constrain`: a parser from rules about arcs and tagged text without trees, and how far it meets the rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headway.atomic import write_file
from headway.cli import options, places
from headway.cli.reading import load_parser, require_model
from headway.cli.signature import SummedFile, print_json, signature, signature_line, summed, summed_or_none
from headway.cli.tables import table
from headway.cli.train import checkpoint_for, resumable, summary
from headway.errors import TrainingError, printable
from headway.named_models import path_of_model
from headway.training.settings import RULED, RULES_DEFAULTS, RULES_SETTINGS, Settings

if TYPE_CHECKING:
    from headway.features.rules import Rules
    from headway.training.explanation import Example, Explanation
    from headway.treebank import Sentence

EXAMPLES = (
    "headway constrain universal text.conllu -o model.headway",
    "headway constrain rules.toml text.conllu --dev dev.conllu --explain -o model.headway",
    "headway constrain rules.toml text.conllu --model neural --dev dev.conllu -o model.headway",
    "headway constrain ten-trees.conllu text.conllu --rules-out rules.toml -o model.headway",
    "headway constrain rules.toml text.conllu --model model.headway --json",
)

DESCRIBED = {
    "model": {
        "help": "What to train: arc, or neural, a network. Without -o, a model file to explain on TEXT.",
        "metavar": "NAME|MODEL",
    },
    "epochs": {"default": "100, of networks 60 or 20"},
    "c": {"default": "100"},
    "batch": {"default": "500"},
}

_FEW = 5  # up to this many rules, examples are shown for all of them
_BESIDE = 6  # words shown on either side of an example
_LEGEND = "Counterexamples: probability that the rule holds, word <- head, sentence."


@options.with_settings(Settings, only=RULES_SETTINGS, described=DESCRIBED, **RULES_DEFAULTS)
def constrain(
    rules: Annotated[
        str,
        typer.Argument(
            metavar="RULES",
            help="A TOML file, universal (included), or a small treebank to take rules from.",
        ),
    ],
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="A tagged treebank, whose heads are ignored; - is stdin.")
    ],
    *,
    output: options.NewModelOption = None,
    dev: Annotated[
        str | None, typer.Option(metavar="DEV", help="Development treebank: choose the best pass, stop early.")
    ] = None,
    threads: options.ThreadsOption = 1,
    rules_out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the rules in use, to read and edit.")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show each rule's target, the model's expectation, and counterexamples.")
    ] = False,
    examples: Annotated[int, typer.Option(min=0, metavar="N", help="Counterexamples to show per rule.")] = 3,
    json: Annotated[bool, typer.Option("--json", help="Print the explanation as one JSON object.")] = False,
    checkpoint: options.CheckpointOption = None,
    address: options.AddressOption = None,
    settings: dict[str, Any],
) -> None:
    """Learn a parser from rules and tagged text, without trees.

    A rule says how often certain arcs should occur. Training brings the model's expectations close to that.
    Ctrl-C is safe: the same command resumes from the checkpoint.
    """
    explained = None if settings["model"] in RULED else settings["model"]
    if (output is None) == (explained is None):
        raise typer.BadParameter("give -o MODEL to train a model (arc or neural), or --model MODEL to explain one")
    if json and not (explain or explained):
        raise typer.BadParameter("--json prints the explanation; give --explain too")
    places.require_one_standard_input(text, dev)
    for path, what in ((output, "a model"), (rules_out, "rules")):
        if path is not None:
            places.require_place_for(path, rules, text, dev, explained, *places.files_in(settings), what=what)
    require_model(explained)
    places.require_inputs(text, dev)
    from headway.parallel import executor_for
    from headway.pipeline import Parser
    from headway.training.data import training_text
    from headway.training.explanation import explain as explanations
    from headway.training.trainers import require_trainable_from_rules
    from headway.treebank import read_treebank

    read, rules_file = _read_rules(rules)
    if output is not None:
        with options.refusing_settings():
            require_trainable_from_rules(Settings(**{**RULES_DEFAULTS, **settings}).complete())
    with SummedFile(text) as text_file, summed_or_none(dev) as dev_file:
        sentences = training_text(read_treebank(text_file, partial=True), text_file.name)
        development = None if dev_file is None else list(read_treebank(dev_file))
    _require_tags(sentences, read.tags, text_file.name)
    if rules_out is not None:
        write_file(rules_out, read.to_toml())
    _warn(read, sentences)
    files = (rules_file, text_file, dev_file)
    executor = executor_for(threads)
    if explained is not None:
        parser = load_parser(explained)
        signed = signature(None, {}, (summed(str(path_of_model(explained))), *files))
        found = explanations(parser.model, read, sentences, examples=examples, executor=executor)
        _print(found, signed, explained, None, json=json)
        return
    assert output is not None
    folder = checkpoint_for(output, checkpoint)
    with resumable(folder) as show, options.workers_at(address, None) as workers:
        run: dict[str, Any] = {"threads": threads, "checkpoint": folder, "show": show, "workers": workers}
        parser = Parser.constrain(read, sentences, development, **run, **settings)
        parser.save(output)
    short = summary(output, parser.model.about, len(read))
    if not explain:
        typer.echo(short)
        return
    found = explanations(parser.model, read, sentences, examples=examples, executor=executor)
    _print(found, signature(settings["seed"], settings, files), str(output), short, json=json)


def _print(
    found: Sequence[Explanation], signed: dict[str, Any], model: str, summary: str | None, *, json: bool
) -> None:
    """The explanation, after the summary of a training, if any, which has its own signature; or one JSON object."""
    if json:
        print_json({"signature": signed, "model": model, "rules": [_as_json(each) for each in found]})
    elif summary is not None:
        typer.echo(f"{summary}\n\n{_report(found)}")
    else:
        typer.echo(f"{_report(found)}\n\n{signature_line(signed)}")


def _read_rules(name: str) -> tuple[Rules, SummedFile | None]:
    """The rules, and the file they come from, if any."""
    from headway.features.rules import read_rules, rules_from_trees, rules_names
    from headway.treebank import read_treebank
    from headway.treebank.files import format_of

    if format_of(name) is not None:
        with SummedFile(name) as file:
            trees = list(read_treebank(file))
        _require_tags(trees, "upos", name)
        return rules_from_trees(trees), file
    read = read_rules(name)
    return read, None if name in rules_names() else summed(name)


def _require_tags(sentences: Sequence[Sentence], column: str, name: str) -> None:
    """Rules are about tags; a word without a language-specific tag is matched by its universal one."""
    columns = ("upos",) if column == "upos" else ("xpos", "upos")
    if all(tag == "_" for sentence in sentences for each in columns for tag in getattr(sentence, each)):
        raise TrainingError(
            f"{name}: the words have no {column} tags, and rules are about tags; tag them first, English with "
            f"headway parse en {name} -o tagged.conllu, other languages with another tagger"
        )


def _warn(rules: Rules, text: Sequence[Sentence]) -> None:
    """Warn of rules that name unknown tags or match nothing, even in a pipe."""
    from headway.features.coding import Coder
    from headway.features.rule_features import RuleFeatures

    coder = Coder.learn(text)
    for problem in RuleFeatures.of(rules, coder, coder.code(text)).problems():
        typer.echo(f"headway: warning: {printable(problem)}", err=True)


def _report(found: Sequence[Explanation]) -> str:
    """A table of the rules, then counterexamples to those that are not met, or to all if there are few."""
    rows = [["rule", "target", "expectation", "units", ""], *map(_row, found)]
    shown = [each for each in found if each.examples and (each.verdict != "met" or len(found) <= _FEW)]
    legend = [_LEGEND] * bool(shown)
    return "\n\n".join([table(rows), *legend, *("\n".join(_example_lines(each)) for each in shown)])


def _row(found: Explanation) -> list[str]:
    expectation = "-" if found.expectation is None else f"{found.expectation:.3f}"
    return [printable(found.rule.name), target_text(found.rule.target), expectation, str(found.units), found.verdict]


def target_text(target: tuple[float, float]) -> str:
    """A share, or a range of them.

    >>> target_text((0.9, 0.9)), target_text((0.7, 1.0))
    ('0.9', '0.7..1')
    """
    low, high = (f"{round(end, 3):g}" for end in target)
    return low if low == high else f"{low}..{high}"


def _example_lines(found: Explanation) -> Iterator[str]:
    yield f"{printable(found.rule.name)}: {found.verdict}"
    yield from (f"  {example.share:.3f}  {_example_text(example)}" for example in found.examples)


def _example_text(example: Example) -> str:
    """A word, its head, and the words around it: "dog <- barked: The [dog] barked ..."."""
    forms = example.sentence.forms
    start, stop = max(example.word - 1 - _BESIDE, 0), example.word + _BESIDE
    around = list(forms[start:stop])
    around[example.word - 1 - start] = f"[{forms[example.word - 1]}]"
    words = ["..."] * (start > 0) + around + ["..."] * (stop < len(forms))
    head = forms[example.head - 1] if example.head else "ROOT"
    return printable(f"{forms[example.word - 1]} <- {head}: {' '.join(words)}")


def _as_json(found: Explanation) -> dict[str, Any]:
    return {
        "name": found.rule.name,
        "line": found.rule.line,
        "target": list(found.rule.target),
        "units": found.units,
        "expectation": found.expectation,
        "state": found.verdict,
        "examples": [
            {
                "source": example.sentence.place.source,
                "line": example.sentence.place.line,
                "forms": list(example.sentence.forms),
                "word": example.word,
                "head": example.head,
                "share": example.share,
            }
            for example in found.examples
        ],
    }
