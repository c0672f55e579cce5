"""`headway evaluate`: how good predicted trees are, and whether one parser is better than another.

The figures are defined in `headway.evaluation`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headway.cli import options, places
from headway.cli.signature import SummedFile, print_json, signature, signature_line, summed_or_none
from headway.cli.tables import counted, table
from headway.errors import printable

if TYPE_CHECKING:
    from headway.evaluation import Conll2018Scores, Interval, PairedBootstrap, Row, Scores, SignTest
    from headway.treebank import Sentence

    Gold = SummedFile | Sequence[Sentence]

EXAMPLES = (
    "headway evaluate gold.conllu parsed.conllu",
    "headway evaluate gold.conllu one-parser.conllu another.conllu",
    "headway evaluate gold.conllu parsed.conllu --json | jq .scores.las",
)

_FIGURES = {
    "UAS": "uas",
    "LAS": "las",
    "UAS without punctuation": "uas_no_punct",
    "LAS without punctuation": "las_no_punct",
    "label accuracy": "label_accuracy",
    "label accuracy without punctuation": "label_accuracy_no_punct",
    "exact trees": "exact",
    "exact trees, labels too": "exact_labelled",
    "exact trees without punctuation": "exact_no_punct",
    "exact trees without punctuation, labels too": "exact_labelled_no_punct",
}


@dataclasses.dataclass(frozen=True)
class _System:
    """One parser's figures."""

    name: str
    scores: Scores
    intervals: dict[str, Interval]


@dataclasses.dataclass(frozen=True)
class _Tests:
    """Two parsers on one score."""

    sign_test: SignTest
    paired_bootstrap: PairedBootstrap


def evaluate(
    gold: Annotated[str, typer.Argument(metavar="GOLD", help="The gold trees; - is standard input.")],
    predicted: Annotated[str, typer.Argument(metavar="PREDICTED", help="A parser's trees for the same sentences.")],
    second: Annotated[
        str | None, typer.Argument(metavar="SECOND", help="Another parser's trees, to compare with PREDICTED.")
    ] = None,
    *,
    conll2018: Annotated[
        bool, typer.Option("--conll2018", help="Scores of CoNLL 2018 instead; the words may differ.")
    ] = False,
    seed: options.SeedOption = 0,
    json: options.JsonOption = False,
) -> None:
    """Compare predicted trees with gold trees.

    Prints UAS and LAS with and without punctuation by the rules of CoNLL-X, bootstrap intervals, and tables by label,
    distance and length. With SECOND, also tests the difference: sign test and paired bootstrap.
    """
    places.require_one_standard_input(gold, predicted, second)
    with SummedFile(gold) as gold_file, SummedFile(predicted) as file, summed_or_none(second) as second_file:
        files = [file] if second_file is None else [file, second_file]
        right = _gold(gold_file, len(files))
        if conll2018:
            found, text = _conll2018(right, files)
        else:
            found, text = _attachment(right, files, seed)
    signed = signature(None if conll2018 else seed, {"conll2018": conll2018}, [gold_file, *files])
    if json:
        print_json({"signature": signed, **found})
    else:
        typer.echo(f"{text}\n\n{signature_line(signed)}")


def _gold(file: SummedFile, readings: int) -> Gold:
    """The gold sentences: streamed if needed once, otherwise kept, since a pipe cannot be read twice."""
    from headway.treebank import read_treebank

    return file if readings == 1 else list(read_treebank(file))


def _conll2018(gold: Gold, files: Sequence[SummedFile]) -> tuple[dict[str, Any], str]:
    from headway.evaluation import evaluate_conll2018

    scores = [evaluate_conll2018(gold, file) for file in files]
    found = dict(zip(("scores", "second"), [each.to_dict() for each in scores], strict=False))
    text = "\n\n".join(_conll2018_table(file.name, each) for file, each in zip(files, scores, strict=True))
    return found, text


def _conll2018_table(name: str, scores: Conll2018Scores) -> str:
    rows = [["", "precision", "recall", "F1", "correct", "gold", "predicted"]]
    titles = {
        "tokens": scores.tokens,
        "sentences": scores.sentences,
        "words": scores.words,
        "UPOS": scores.upos,
        "UAS": scores.uas,
        "LAS": scores.las,
        "CLAS": scores.clas,
    }
    for title, score in titles.items():
        shares = [f"{value:.2f}" for value in (score.precision, score.recall, score.f1)]
        rows.append([title, *shares, *map(str, (score.correct, score.gold, score.predicted))])
    return f"{printable(name)}\n{table(rows)}"


def _attachment(gold: Gold, files: Sequence[SummedFile], seed: int) -> tuple[dict[str, Any], str]:
    from headway.evaluation import bootstrap_intervals
    from headway.evaluation import evaluate as score

    systems = []
    for file in files:
        scores = score(gold, file)
        systems.append(_System(file.name, scores, bootstrap_intervals(scores, rng=seed)))
    comparisons = _compare(*systems, seed=seed) if len(systems) == 2 else {}
    found: dict[str, Any] = dict(zip(("scores", "second"), map(_as_json, systems), strict=False))
    if comparisons:
        found["comparison"] = {name: dataclasses.asdict(tests) for name, tests in comparisons.items()}
    return found, "\n\n".join(_sections(systems, comparisons))


def _compare(first: _System, second: _System, *, seed: int) -> dict[str, _Tests]:
    """Both tests for each score that has words to score."""
    from headway.evaluation import paired_bootstrap, sign_test

    comparisons = {}
    for name in first.intervals:
        kind, right = ("per_sentence_no_punct" if name.endswith("_no_punct") else "per_sentence"), name[:3]
        tally, other = getattr(first.scores, kind), getattr(second.scores, kind)
        a, b = (tally.heads, other.heads) if right == "uas" else (tally.arcs, other.arcs)
        comparisons[name] = _Tests(sign_test(a, b), paired_bootstrap(a, b, tally.words, rng=seed))
    return comparisons


def _as_json(system: _System) -> dict[str, Any]:
    intervals = {name: dataclasses.asdict(interval) for name, interval in system.intervals.items()}
    return {"file": system.name, **system.scores.to_dict(), "intervals": intervals}


def _sections(systems: Sequence[_System], comparisons: Mapping[str, _Tests]) -> Iterable[str]:
    """The report, part by part."""
    scores = systems[0].scores
    sentences = len(scores.per_sentence.words)
    yield f"{counted(sentences, 'sentence')}, {counted(scores.tokens, 'word')}, {scores.scored} without punctuation"
    letters = [""] if len(systems) == 1 else ["A", "B"]
    if len(systems) > 1:
        yield "\n".join(f"{letter}: {printable(each.name)}" for letter, each in zip(letters, systems, strict=True))
    yield table(_figures(systems, letters))
    if comparisons:
        yield (
            "A minus B: paired bootstrap, and sentences with more, fewer or as many correct heads (sign test)\n"
            + table(_differences(comparisons))
        )
    yield "without punctuation, by label\n" + table(_rows("label", [s.scores.by_label for s in systems], letters))
    yield "by distance\n" + table(_rows("distance", [s.scores.by_distance for s in systems], letters))
    yield "by sentence length\n" + table(_lengths(systems, letters))


def _titles(names: Sequence[str], letters: Sequence[str]) -> list[str]:
    """Column titles, once for each system.

    >>> _titles(["UAS", "LAS"], ["A", "B"])
    ['UAS A', 'LAS A', 'UAS B', 'LAS B']
    """
    return [f"{name} {letter}".rstrip() for letter in letters for name in names]


def _figures(systems: Sequence[_System], letters: Sequence[str]) -> list[list[str]]:
    rows = [["", *_titles(["%", "95% interval"], letters)]]
    for title, name in _FIGURES.items():
        row = [title]
        for system in systems:
            interval = system.intervals.get(name)
            row += f"{getattr(system.scores, name):.2f}", "" if interval is None else _interval(interval)
        rows.append(row)
    return rows


def _interval(found: Interval | PairedBootstrap) -> str:
    return f"{found.low:.2f} to {found.high:.2f}"


def _differences(comparisons: Mapping[str, _Tests]) -> list[list[str]]:
    rows = [["", "difference", "95% interval", "p", "more", "fewer", "as many", "p"]]
    titles = {name: title for title, name in _FIGURES.items()}
    for name, tests in comparisons.items():
        sign, paired = tests.sign_test, tests.paired_bootstrap
        counts = [str(count) for count in (sign.wins, sign.losses, sign.ties)]
        difference = [f"{paired.difference:+.2f}", _interval(paired), f"{paired.p_value:.4f}"]
        rows.append([titles[name], *difference, *counts, f"{sign.p_value:.4g}"])
    return rows


def _rows(title: str, tables: Sequence[Sequence[Row]], letters: Sequence[str]) -> list[list[str]]:
    """A row for each label or distance that any system has; gold counts are the same for all."""
    by_name = [{row.name: row for row in rows} for rows in tables]
    names = list(dict.fromkeys(row.name for rows in tables for row in rows))
    lines = [[title, "gold", *_titles(["predicted", "UAS", "LAS", "precision", "recall", "F1"], letters)]]
    for name in names:
        found = [rows.get(name) for rows in by_name]
        count = next(row.count for row in found if row is not None)
        lines.append([printable(name), str(count), *(cell for row in found for cell in _cells(row))])
    return lines


def _cells(row: Row | None) -> list[str]:
    if row is None:
        return [""] * 6
    shares = (row.uas, row.las, row.precision, row.recall, row.f1)
    return [str(row.predicted), *(f"{share:.2f}" for share in shares)]


def _lengths(systems: Sequence[_System], letters: Sequence[str]) -> list[list[str]]:
    rows = [["words", "sentences", "scored words", *_titles(["UAS", "LAS"], letters)]]
    for ranges in zip(*(system.scores.by_length for system in systems), strict=True):
        shares = [f"{share:.2f}" for each in ranges for share in (each.uas, each.las)]
        rows.append([ranges[0].name, str(ranges[0].sentences), str(ranges[0].count), *shares])
    return rows
