"""`headway draw`: trees as SVG, PNG, PDF, or text for the terminal; coreference also as an HTML page.

Trees come from a treebank, or from a parser (`--model`), which also knows how probable each head is. Probabilities
written by `headway parse --marginals` are used if every word has one.
"""

from __future__ import annotations

import io
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from headway.atomic import write_file
from headway.cli import places
from headway.cli.failures import note
from headway.cli.reading import load_parser, require_model, sentences
from headway.cli.tables import counted
from headway.cli.trees_as_text import text_target, tree_as_text
from headway.errors import TreebankError
from headway.named_models import path_of_model

if TYPE_CHECKING:
    from headway.arrays import Floats
    from headway.drawing import Drawing
    from headway.treebank import Sentence

EXAMPLES = (
    "headway draw parsed.conllu",
    "headway draw parsed.conllu --sentence 3 --width 800 -o tree.pdf",
    "headway draw parsed.conllu --sentence all -o 'trees/{n}.png'",
    "headway draw parsed.conllu --gold gold.conllu -o errors.svg",
    "headway draw new.conllu --model model.headway --heatmap -o heads.svg",
    'echo "Dogs bark." | headway draw - --model en --format text',
    "headway draw parsed.conllu --format text",
    "headway draw resolved.conllu --coref --sentence 2 -o clusters.html",
    "headway draw gold.conllu --coref --model model.coref -o errors.svg",
)

_UNSURE_BELOW = 0.7
_WIDTH = 1600


class Picture(StrEnum):
    """What is drawn."""

    SVG = "svg"
    PNG = "png"
    PDF = "pdf"
    TEXT = "text"
    HTML = "html"


_ENDINGS = {".svg": Picture.SVG, ".png": Picture.PNG, ".pdf": Picture.PDF, ".txt": Picture.TEXT, ".html": Picture.HTML}


@dataclass(frozen=True)
class _Found:
    """A sentence to draw, with the probabilities of its parser, if any."""

    number: int
    sentence: Sentence
    probabilities: Floats | None
    marginals: Callable[[], Floats] | None  # very long sentences have none, which matters to heat maps only


def draw(
    input: Annotated[
        str, typer.Argument(metavar="INPUT", help="A treebank or, with --model, also a text; - is standard input.")
    ],
    *,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="OUT",
            help="The file to write; {n} becomes the sentence's number; - is standard output.",
            show_default="INPUT's name, in this folder",
        ),
    ] = None,
    format: Annotated[
        Picture | None, typer.Option(help="The kind of picture.", show_default="by OUT's name, or svg")
    ] = None,
    sentence: Annotated[
        str | None,
        typer.Option(metavar="N|all", help="Which sentence, or document; the first is 1.", show_default="1"),
    ] = None,
    gold: Annotated[str | None, typer.Option(metavar="FILE", help="The gold trees: show where INPUT differs.")] = None,
    model: Annotated[str | None, typer.Option(metavar="MODEL", help="Parse INPUT first, with this model.")] = None,
    probabilities: Annotated[
        bool | None,
        typer.Option(
            "--probabilities/--no-probabilities",
            help="Shade arcs by their probability.",
            show_default="if INPUT has them",
        ),
    ] = None,
    width: Annotated[
        int, typer.Option(min=0, metavar="PX", help="Wrap trees that are wider into rows; 0: never.")
    ] = _WIDTH,
    heatmap: Annotated[
        bool, typer.Option("--heatmap", help="Draw the probability of every head of every word; needs --model.")
    ] = False,
    coref: Annotated[
        bool,
        typer.Option(
            "--coref",
            help="Draw the clusters and latent trees of documents; MODEL is a coreference model.",
        ),
    ] = False,
) -> None:
    """Draw trees.

    Each sentence is one picture; with --sentence all, files are numbered. With --coref, each document is one picture.
    """
    wanted = _wanted(sentence)
    picture = _picture(output, format)
    if coref:
        _require_coref_sense(output or input, picture, wanted, [gold, heatmap, probabilities])
        places.require_inputs(input, None if model is None else str(path_of_model(model)))
        _require_folder(input, output, picture, sentence, model)
        _draw_coreference(input, output, picture, sentence, wanted, model)
        return
    if picture is Picture.HTML:
        raise typer.BadParameter("html is for coreference; give --coref, or another --format")
    _require_sense(input, output, picture, wanted, gold, model, heatmap, probabilities)
    if picture in (Picture.PNG, Picture.PDF):
        from headway.drawing.matplotlib_export import require_matplotlib

        require_matplotlib()
    require_model(model)
    places.require_inputs(input, gold)
    _require_folder(input, output, picture, sentence, gold, model)
    found = _sentences(input, model, wanted)
    if picture is Picture.TEXT:
        _write_texts(found, probabilities, output)
        return
    for each, right in _with_gold(found, gold, wanted, input):
        target = _target(input, output, picture, sentence, each.number)
        if output is not None and "{n}" in output:
            _make_folder(target)
        _save(_painted(_drawing(each, right, heatmap, probabilities, width), picture), target)


def _require_coref_sense(target: str, picture: Picture, wanted: int | None, others: list[object]) -> None:
    if any(each not in (None, False) for each in others):
        raise typer.BadParameter("--coref draws clusters; leave out --gold, --heatmap and --probabilities")
    if picture is Picture.TEXT:
        raise typer.BadParameter("clusters are drawn as svg, html, png or pdf; give another --format")
    _require_place(target, picture, wanted)


def _draw_coreference(
    input: str, output: str | None, picture: Picture, sentence: str | None, wanted: int | None, model: str | None
) -> None:
    from headway.cli.coreference_pictures import coreference_pictures
    from headway.coreference import read_documents

    chosen = _chosen(read_documents(input), wanted, input, "document")
    pictures = coreference_pictures((document for _, document in chosen), model)
    for number, each in enumerate(pictures, start=wanted or 1):
        target = _target(input, output, picture, sentence, number)
        if output is not None and "{n}" in output:
            _make_folder(target)
        _save(each.page() if picture is Picture.HTML else _painted(each.drawing(), picture), target)


def _wanted(sentence: str | None) -> int | None:
    """The number of the sentence; None for all of them.

    >>> _wanted(None), _wanted("7"), _wanted("all")
    (1, 7, None)
    """
    if sentence == "all":
        return None
    text = sentence or "1"
    if re.fullmatch("[1-9][0-9]{0,8}", text) is None:
        raise typer.BadParameter(f"--sentence is {sentence!r}; expected a number, 1 or more, or all")
    return int(text)


def _picture(output: str | None, format: Picture | None) -> Picture:
    ending = Path(output).suffix.lower() if output not in (None, "-") else ""
    if format is not None:
        return format
    if ending and ending not in _ENDINGS:
        known = ", ".join(_ENDINGS)
        raise typer.BadParameter(f"{output} does not say what to draw; end it in any of {known}, or give --format")
    return _ENDINGS.get(ending, Picture.SVG)


def _require_sense(
    input: str,
    output: str | None,
    picture: Picture,
    wanted: int | None,
    gold: str | None,
    model: str | None,
    heatmap: bool,
    probabilities: bool | None,
) -> None:
    """Refuse wrong usage before anything is read."""
    places.require_one_standard_input(input, gold)
    if model is None and _is_text(input):
        raise typer.BadParameter("a text has no trees yet; give --model MODEL to parse it first")
    if heatmap and model is None:
        raise typer.BadParameter("a heat map needs a parser; give --model MODEL")
    if gold is not None and (heatmap or probabilities):
        raise typer.BadParameter("--gold compares trees without probabilities; leave out --heatmap and --probabilities")
    if picture is Picture.TEXT:
        if heatmap or gold is not None:
            raise typer.BadParameter("text shows trees only; give another --format for --gold and --heatmap")
        return
    _require_place(output or input, picture, wanted)


def _require_place(target: str, picture: Picture, wanted: int | None) -> None:
    """Standard output takes one picture, and a terminal no binary one."""
    if target != "-":
        return
    if wanted is None:
        raise typer.BadParameter("standard output takes only one picture; give -o OUT")
    if picture in (Picture.PNG, Picture.PDF) and sys.stdout.isatty():
        raise typer.BadParameter(f"a terminal cannot show {picture.upper()}; give -o OUT, or --format text")


def _require_folder(input: str, output: str | None, picture: Picture, sentence: str | None, *read: str | None) -> None:
    """Refuse a place that cannot be written to before anything is read. Folders of numbered pictures are made."""
    target = output or "-" if picture is Picture.TEXT else _target(input, output, picture, sentence, 1)
    if output is not None and "{n}" in output:
        return
    places.require_output(target, input, *read)


def _sentences(input: str, model: str | None, wanted: int | None) -> Iterator[_Found]:
    """The sentences to draw, with the trees of the file or of the parser."""
    if model is None:
        from headway.treebank import read_treebank
        from headway.treebank.annotations import head_probabilities

        for number, sentence in _chosen(read_treebank(input), wanted, input):
            yield _Found(number, sentence, head_probabilities(sentence), None)
        return
    parser = load_parser(model)
    found = parser.parse(sentence for _, sentence in _chosen(sentences(parser, input), wanted, input))
    for number, parsed in enumerate(found, start=wanted or 1):
        yield _Found(number, parsed.sentence, parsed.confidence.arcs, partial(getattr, parsed, "marginals"))


def _is_text(input: str) -> bool:
    """Whether the name says that this is raw text rather than a treebank.

    >>> _is_text("news.txt"), _is_text("news.txt.gz"), _is_text("news.conllu"), _is_text("-")
    (True, True, False, False)
    """
    return _plain_name(input).suffix.lower() == ".txt"


def _plain_name(input: str) -> Path:
    """The name of a file without its folder and without .gz or .xz."""
    return Path(Path(input).name.removesuffix(".gz").removesuffix(".xz"))


_Item = TypeVar("_Item")


def _chosen(
    items: Iterable[_Item], wanted: int | None, name: str, what: str = "sentence"
) -> Iterator[tuple[int, _Item]]:
    """The sentence (or document) with that number, or all of them; an error if there is none."""
    shown, number = "standard input" if name == "-" else name, 0
    for number, item in enumerate(islice(items, wanted), start=1):
        if wanted in (None, number):
            yield number, item
    if number == 0:
        raise TreebankError(f"there are no {what}s; give a file that has some", shown)
    if wanted is not None and number < wanted:
        count = f"there is 1 {what}" if number == 1 else f"there are {number} {what}s"
        raise TreebankError(f"{what} {wanted} does not exist; {count}", shown)


def _with_gold(
    found: Iterator[_Found], gold: str | None, wanted: int | None, input: str
) -> Iterator[tuple[_Found, Sentence | None]]:
    """Each sentence with its gold tree, where there are gold trees."""
    if gold is None:
        yield from ((each, None) for each in found)
        return
    from headway.treebank import read_treebank

    rights = _chosen(read_treebank(gold), wanted, gold)
    for each in found:
        right = next(rights, None)
        if right is None:
            raise TreebankError(f"sentence {each.number} of {input} is missing; give two files of the same text", gold)
        yield each, right[1]
    if next(rights, None) is not None:
        raise TreebankError(f"there are more sentences than in {input}; give two files of the same text", gold)


def _shading(found: _Found, asked: bool | None) -> Floats | None:
    """The probabilities to show: if asked for, or else if the file has them."""
    if asked and found.probabilities is None:
        place = found.sentence.place
        cause = "not every word has a HeadProbability; give --model, or write them with headway parse --marginals"
        raise TreebankError(cause, place.source, place.line or None)
    shown = found.marginals is None if asked is None else asked
    return found.probabilities if shown else None


def _drawing(found: _Found, right: Sentence | None, heatmap: bool, asked: bool | None, width: int) -> Drawing:
    from headway.drawing import comparison_drawing, heatmap_drawing, tree_drawing

    if right is not None:
        return comparison_drawing(right, found.sentence, width=width or None)
    if heatmap:
        assert found.marginals is not None
        return heatmap_drawing(found.sentence, found.marginals())
    shown = _shading(found, asked)
    return tree_drawing(found.sentence, probabilities=shown, unsure_below=_UNSURE_BELOW, width=width or None)


def _target(input: str, output: str | None, picture: Picture, sentence: str | None, number: int) -> str:
    """Where a picture goes.

    >>> _target("data/dev.conllu.gz", None, Picture.SVG, None, 1), _target("dev.conllu", None, Picture.SVG, "all", 7)
    ('dev.svg', 'dev-7.svg')
    >>> _target("-", "a.pdf", Picture.PDF, "3", 3), _target("-", "{n}/a.pdf", Picture.PDF, "3", 3)
    ('a.pdf', '3/a.pdf')
    """
    if (output or input) == "-":
        return "-"
    if output is None:
        name = _plain_name(input)
        stem = name.stem if name.suffix.lower() in (".conllu", ".conll", ".conllx", ".txt") else name
        return f"{stem}{'' if sentence is None else f'-{number}'}.{picture}"
    if "{n}" in output:
        return _numbered(output, number)
    if sentence != "all":
        return output
    path = Path(output)
    return str(path.with_name(f"{path.stem}-{number}{path.suffix}"))


def _numbered(output: str, number: int) -> str:
    return output.replace("{n}", str(number))


def _make_folder(target: str) -> None:
    """The folder of a numbered picture, as `-o 'trees/{n}.png'` asks for it."""
    try:
        Path(target).absolute().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TreebankError(f"its folder cannot be made ({error.strerror}); choose another name", target) from None


def _painted(drawing: Drawing, picture: Picture) -> str | bytes:
    """The picture as the content of a file; characters that no font has are reported once."""
    from headway.drawing import save_drawing, to_svg

    if picture is Picture.SVG:
        return to_svg(drawing)
    buffer = io.BytesIO()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        save_drawing(drawing, buffer, format=picture.value)
    missing = {str(each.message) for each in caught if "missing from font" in str(each.message)}
    if missing:
        characters = counted(len(missing), "character")
        typer.echo(f"headway: no font here has {characters}, drawn as boxes; SVG needs no fonts", err=True)
    return buffer.getvalue()


def _save(content: str | bytes, target: str) -> None:
    from headway.treebank.streams import open_target

    if isinstance(content, str):
        with open_target(target) as write:
            write(content)
    elif target == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    else:
        write_file(target, content)
    if target != "-":
        note(f"wrote {target}")


def _write_texts(found: Iterable[_Found], asked: bool | None, output: str | None) -> None:
    """Trees as text with blank lines between them, on the terminal or in one file; one file each if OUT has {n}."""
    if output is not None and "{n}" in output:
        for each in found:
            name = _numbered(output, each.number)
            _make_folder(name)
            with text_target(name) as write:
                write(tree_as_text(each.sentence, _shading(each, asked), _UNSURE_BELOW, name) + "\n")
        return
    name = output or "-"
    with text_target(name) as write:
        for position, each in enumerate(found):
            tree = tree_as_text(each.sentence, _shading(each, asked), _UNSURE_BELOW, name)
            write("\n" * (position > 0) + tree + "\n")
