"""`headway induce`: a head-automata grammar over the tags of a treebank, and pictures of its hidden states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast
from urllib.parse import quote

import typer

from headway.atomic import write_file
from headway.cli import options, places
from headway.cli.progress import training_progress
from headway.cli.reading import load_parser, require_model
from headway.cli.signals import if_interrupted
from headway.cli.tables import counted
from headway.errors import TrainingError, printable
from headway.training.grammar_settings import GrammarSettings

if TYPE_CHECKING:
    from headway.models.grammar_model import GrammarModel
    from headway.pipeline import Parser
    from headway.training.grammar_trainer import Direction
    from headway.treebank import Sentence

EXAMPLES = (
    "headway induce train.conllu --dev dev.conllu -o grammar.headway",
    "headway induce train.conllu --method em --states 15 --dev dev.conllu -o grammar.headway",
    "headway induce train.conllu --states 9 --lexical LEX+FCP -o grammar.headway",
    "headway induce dev.conllu --model grammar.headway --draw-automaton NN:left",
)


@options.with_settings(GrammarSettings)
def induce(
    treebank: Annotated[
        str, typer.Argument(metavar="TREEBANK", help="The treebank: CoNLL-U or CoNLL-X, also .gz or .xz; - is stdin.")
    ],
    *,
    output: options.NewModelOption = None,
    dev: Annotated[
        str | None,
        typer.Option(metavar="DEV", help="Development treebank: choose the number of states, or EM's best step."),
    ] = None,
    threads: options.ThreadsOption = 1,
    address: options.AddressOption = None,
    draw_automaton: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TAG:left|right",
            help="Draw the states that an automaton learnt, as .svg and .dot next to MODEL.",
        ),
    ] = None,
    drawn_clusters: Annotated[
        int, typer.Option(min=1, metavar="N", help="States in the drawing, before merging.")
    ] = 10,
    model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="Only draw automata of this model, from TREEBANK's trees."),
    ] = None,
    settings: dict[str, Any],
) -> None:
    """Learn a head-automata grammar over tags.

    Hidden states stand for what a head has generated so far. Use the model with headway parse, like any other.
    """
    wanted = [_automaton(name) for name in draw_automaton or ()]
    if (output is None) == (model is None):
        raise typer.BadParameter("give -o MODEL to learn a grammar, or --model MODEL to draw the automata of one")
    if model is not None and not wanted:
        raise typer.BadParameter("--model is for drawing; choose what to draw with --draw-automaton TAG:left")
    places.require_one_standard_input(treebank, dev)
    target = Path(model or "") if output is None else output
    if output is not None:
        places.require_place_for(output, treebank, dev)
    require_model(model)
    places.require_inputs(treebank, dev)
    from headway.treebank import read_treebank

    shown_over = dev or treebank
    trees = list(read_treebank(shown_over)) if wanted else []
    if model is not None:
        _draw(load_parser(model), wanted, trees, target, drawn_clusters)
        return
    _require_tags(wanted, trees, shown_over)
    from headway.pipeline import Parser

    # Standard input can only be read once.
    train: str | list[Sentence] = trees if wanted and treebank == shown_over == "-" else treebank
    held_out: str | list[Sentence] | None = trees if wanted and dev == "-" else dev
    remedy = "; nothing was written, so the same command starts over"
    with (
        if_interrupted(lambda: remedy),
        training_progress() as show,
        options.workers_at(address, None) as workers,
    ):
        parser = Parser.induce(train, held_out, threads=threads, show=show, workers=workers, **settings)
    parser.save(target)
    typer.echo(summary(target, parser.model.about))
    _draw(parser, wanted, trees, target, drawn_clusters)


def _automaton(name: str) -> tuple[str, Direction]:
    """A tag and a direction.

    >>> _automaton("NN:left"), _automaton("::right")
    (('NN', 'left'), (':', 'right'))
    """
    tag, colon, direction = name.rpartition(":")
    if not (tag and colon and direction in ("left", "right")):
        raise typer.BadParameter(f"--draw-automaton is {name!r}; expected TAG:left or TAG:right, as in NN:left")
    return tag, cast("Direction", direction)


def _require_tags(wanted: Sequence[tuple[str, Direction]], trees: Sequence[Sentence], name: str) -> None:
    """Refuse a picture that cannot be drawn before anything is learnt."""
    known = {"ROOT", *(tag for tree in trees for tag in (*tree.xpos, *tree.upos))}
    for tag, _ in wanted:
        if tag not in known:
            raise TrainingError(f"{name}: no word has the tag {tag!r}, so its automaton cannot be drawn")


def _draw(
    parser: Parser, wanted: Sequence[tuple[str, Direction]], trees: Sequence[Sentence], model: Path, clusters: int
) -> None:
    """An SVG and a Graphviz file for every automaton, next to the model."""
    from headway.drawing import automaton_dot, automaton_drawing, to_svg
    from headway.training.grammar_trainer import state_picture

    if parser.model.kind != "grammar":
        raise TrainingError(f"{model}: the model has no automata with hidden states; models from headway induce have")
    grammar = cast("GrammarModel", parser.model).grammar
    names = [grammar.symbols.name(i) for i in range(grammar.symbols.size)]
    for tag, direction in wanted:
        automaton = state_picture(grammar, tag, direction, trees, clusters=clusters)
        title = f"{tag}, {direction} modifiers"
        stem = f"{model.with_suffix('') if model.suffix == '.headway' else model}.{quote(tag, safe='')}-{direction}"
        drawn = to_svg(automaton_drawing(automaton, names, title=title))
        for path, text in ((f"{stem}.svg", drawn), (f"{stem}.dot", automaton_dot(automaton, names, title=title))):
            write_file(path, text)
        found_states, merges = counted(automaton.states, "state"), counted(automaton.merges, "merge")
        typer.echo(f"{printable(stem)}.svg, .dot: {found_states} after {merges}")


def summary(output: Path, about: Mapping[str, Any]) -> str:
    """What was learnt, and the signature of the figures."""
    settings, data, chosen = about["settings"], about["train"], about["chosen"]
    return (
        f"{printable(str(output))}: {', '.join(_described(settings, chosen))}\n"
        f"headway {about['headway']}, seed {settings['seed']}, "
        f"{counted(data['sentences'], 'sentence')} sha256 {data['sha256']}"
    )


def _described(settings: Mapping[str, Any], chosen: Mapping[str, Any]) -> Iterator[str]:
    yield f"head-automata grammar, {settings['method']}"
    yield counted(chosen["states"], "state")
    if settings["lexical"] is not None:
        yield settings["lexical"]
    if "iteration" in chosen:
        yield f"step {chosen['iteration']} of start {chosen['restart'] + 1}"
    if chosen["dev"] is not None:
        yield f"dev UAS {chosen['dev']:.2f} without punctuation"
