"""koo2010's tables 1 to 3 and figures 3 and 4: sibling and grand-sibling parsers, decoded with proofs.

* Table 1: for each language both models are trained on all training sentences, with the settings below, chosen before
  on held-out sentences, and parse the test sentences twice: with exact completion, which gives the scores, and by dual
  decomposition alone, K = 5000, which gives the certificates. Times are the whole parser's: words to labelled tree.
* Table 2 and the figures: Danish models trained on the first nine tenths of the training sentences, on the last tenth
  (`koo2010_solvers`, `koo2010_figures`).
* Table 3: the models of table 1, decoded projectively, on the test sentences; the paper uses validation data.

Where we differ from the paper: training maximises a margin; what is pruned, and how, is ours; the same models choose
labels after the tree; where a treebank has no coarse tags, these are learnt, and classes of words
(`headway.features.tag_classes`, `headway.features.word_classes`).

A cell is a file below `results/`, not computed again while its settings and data stay the same. Trained models are
kept in `models/`, which is no result: without them they are trained again. Languages are independent of each other, so
that several processes may run one each; the tables are made from the files there are.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from headway import __version__
from headway.errors import ArchiveError, TrainingError
from headway.evaluation import evaluate
from headway.features.templates import load_templates
from headway.inference.dual_decomposition import ITERATIONS
from headway.models.higher_order_model import HigherOrderModel
from headway.models.protocol import Options, Prediction
from headway.models.pruning import coverage
from headway.parallel import executor_for
from headway.pipeline import Parser
from headway.training.data import checksum, code_trees, has_coarse_tags
from headway.training.settings import Settings
from headway.treebank import Sentence
from headway_papers import koo2010_figures, koo2010_solvers
from headway_papers.corpora import HELD_OUT, Corpus, Say, chosen_languages, is_done, result_signature, write_json
from headway_papers.koo2010_figures import TITLES
from headway_papers.koo2010_random import WAYS, Order
from headway_papers.koo2010_solvers import METHODS, HeldOut
from headway_papers.linear_program import require_highspy
from headway_papers.markdown import markdown_table

SETTINGS: dict[Order, dict[str, Any]] = {
    "sibling": {"learner": "margin", "c": 300.0, "epochs": 10, "tags": "gold"},
    "grandsibling": {"learner": "margin", "c": 300.0, "epochs": 10, "tags": "gold"},
}
# For grand-siblings where the treebank's coarse tags are its fine ones, as in Swedish: chosen on held-out sentences by
# experiments/koo2010/recipes.py.
WITHOUT_COARSE_TAGS: dict[str, Any] = {
    "tag_classes": 14,
    "word_classes": 300,
    "templates": "standard+coarse",
    "parts": "grandsibling+grandsibling_coarse",
}
COMPARED_ON = "danish"


@dataclass(frozen=True)
class Size:
    """How much is done: everything, or, for `--quick`, enough to see that everything runs."""

    sentences: int | None
    epochs: int | None
    compared: int  # held-out sentences of table 2
    limits: tuple[int, ...]  # values of K in figure 4
    words: int  # of a random instance
    instances: int


FULL = Size(
    sentences=None,
    epochs=None,
    compared=200,
    limits=(1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200, 250, 300, 400, 500, 600, 800, 1000),
    words=10,
    instances=200,
)
QUICK = Size(300, 2, 10, (1, 5, 25, 125), 4, 4)


@dataclass(frozen=True)
class PaperRow:
    """A language of the paper's table 1: UAS, % certificates, seconds a sentence to parse and to train."""

    uas: float | None = None
    certified: float | None = None
    parsing: float | None = None
    training: float | None = None


PAPER_MST = {
    "danish": 89.74, "dutch": 82.33, "portuguese": 90.68, "slovene": 82.39, "swedish": 88.79, "turkish": 75.66
}  # fmt: skip
PAPER: dict[Order, dict[str, PaperRow]] = {
    "sibling": {
        "danish": PaperRow(91.08, 99.07, 0.053, 0.051),
        "dutch": PaperRow(84.81, 98.19, 0.035, 0.046),
        "portuguese": PaperRow(92.57, 99.65, 0.047, 0.077),
        "slovene": PaperRow(84.89, 90.55, 0.158, 0.054),
        "swedish": PaperRow(90.10, 98.71, 0.035, 0.036),
        "turkish": PaperRow(77.14, 98.72, 0.021, 0.016),
    },
    "grandsibling": {
        "danish": PaperRow(91.78, 98.45, 0.169, 0.109),
        "dutch": PaperRow(85.81, 97.93, 0.120, 0.048),
        "portuguese": PaperRow(93.03, 99.31, 0.257, 0.103),
        "slovene": PaperRow(86.21, 95.27, 0.295, 0.130),
        "swedish": PaperRow(91.36, 98.97, 0.141, 0.055),
        "turkish": PaperRow(77.55, 99.04, 0.047, 0.036),
    },
}
# The paper's table 3, its validation sets: Sib, P-Sib, G+S, P-G+S
PAPER_PROJECTIVE = {"PTB": (92.19, 92.34, 92.71, 92.70), "PDT": (86.41, 85.67, 87.40, 86.43)}


@dataclass(frozen=True)
class Place:
    """Where everything goes: results by table, trained models, tables and figures; and the `cells` asked for."""

    output: Path
    quick: bool
    cells: Sequence[str] = ()

    @property
    def results(self) -> Path:
        return self.output / ("quick" if self.quick else "results")

    @property
    def models(self) -> Path:
        return self.output / "models" / ("quick" if self.quick else "")

    def table(self, number: int) -> Path:
        """The folder of a table's cells."""
        return self.results / f"table{number}"

    @property
    def figures(self) -> Path:
        return self.results / "figures"

    def misses(self, path: Path, signed: Mapping[str, Any]) -> bool:
        """Whether a cell is to be computed: asked for, and not there with this signature."""
        name = path.relative_to(self.results).with_suffix("").as_posix()
        asked = not self.cells or any(fnmatchcase(name, pattern) for pattern in self.cells)
        return asked and not is_done(path, dict(signed))

    def prepare(self) -> None:
        """Make the folders."""
        for folder in (*(self.table(number) for number in (1, 2, 3)), self.figures, self.models):
            folder.mkdir(parents=True, exist_ok=True)


def run(
    data: Path,
    output: Path,
    *,
    languages: Sequence[str] | None,
    quick: bool,
    threads: int,
    say: Say,
    cells: Sequence[str] = (),
) -> None:
    """Train and test what is not there yet, and write tables and figures; `quick` takes 300 sentences, two passes.

    `cells` are patterns such as `table2/*`: only cells that fit one are computed.
    """
    koo2010_figures.require_matplotlib()
    require_highspy()
    size, place = QUICK if quick else FULL, Place(output, quick, cells)
    chosen = chosen_languages(data, languages)
    _require_cells(cells, chosen)
    place.prepare()
    for language in chosen:
        corpus = Corpus.read(data, language, size.sentences)
        for order in SETTINGS:
            _test(corpus, order, size, place, threads, say)
        if language == COMPARED_ON:
            for order in SETTINGS:
                _compare(corpus, order, size, place, threads, say)
    tables = tables_text(place.results, output.parent / "first_order" / "results")
    (output / ("quick.md" if quick else "tables.md")).write_text(tables, encoding="utf-8")
    koo2010_figures.draw(_cells(place.figures), output, "quick-" if quick else "")
    say(tables)


def _require_cells(patterns: Sequence[str], languages: Sequence[str]) -> None:
    """An error for a pattern that no cell of these languages fits."""
    names = [f"table{number}/{language}-{order}" for number in (1, 3) for language in languages for order in SETTINGS]
    if COMPARED_ON in languages:
        names += [f"table2/{name}" for name in koo2010_solvers.cell_names()]
        names += [f"figures/{order}" for order in SETTINGS]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise TrainingError(f"no cell fits {pattern!r}; cells are called table1/LANGUAGE-MODEL, such as {names[0]}")


def _settings(corpus: Corpus, order: Order, size: Size) -> dict[str, Any]:
    """Every setting, defaults written out: a cell depends on them too."""
    given = {"model": order, "single_root": corpus.single_root, **SETTINGS[order]}
    if order == "grandsibling" and not has_coarse_tags(corpus.train):
        given |= WITHOUT_COARSE_TAGS
    return asdict(Settings(**{**given, **({"epochs": size.epochs} if size.epochs else {})}).complete())


def _tables(settings: Mapping[str, Any]) -> str:
    """A checksum of all templates a model is made of: a table may change while its name stays."""
    names = (settings["templates"], settings["parts"], "pruner", "label", "tree_label")
    text = "\n".join(str(template) for name in names for template in load_templates(name))
    return sha256(text.encode()).hexdigest()[:16]


def _signature(corpus: Corpus, settings: dict[str, Any]) -> dict[str, Any]:
    return {**result_signature(corpus, settings, []), "tables": _tables(settings)}


def trained(sentences: Sequence[Sentence], settings: Mapping[str, Any], path: Path, threads: int) -> HigherOrderModel:
    """The model of these sentences and settings, from its file if it is there; `about` says how long it took.

    What is saved has single precision: it is always the saved model that is used, trained just now or not.
    """
    if not _is_trained(path, sentences, settings):
        started = time.perf_counter()
        parser = Parser.train(sentences, threads=threads, **settings)
        seconds = time.perf_counter() - started
        timed = {"training_seconds": seconds, "training_threads": threads}
        about = {**parser.model.about, "tables": _tables(settings), **timed}
        Parser(replace(cast(HigherOrderModel, parser.model), about=about)).save(path)
    return cast(HigherOrderModel, Parser.load(path).model)


def _is_trained(path: Path, sentences: Sequence[Sentence], settings: Mapping[str, Any]) -> bool:
    if not path.exists():
        return False
    try:
        about = Parser.load(path).model.about
    except ArchiveError:
        return False
    data = checksum([sentence for sentence in sentences if len(sentence)])
    found = (about["headway"], about["settings"], about.get("tables"), about["train"]["sha256"])
    return found == (__version__, dict(settings), _tables(settings), data)


def _test(corpus: Corpus, order: Order, size: Size, place: Place, threads: int, say: Say) -> None:
    """The cells of tables 1 and 3."""
    settings = _settings(corpus, order, size)
    name = f"{corpus.language}-{order}"
    model = cache(partial(trained, corpus.train, settings, place.models / f"{name}.headway", threads))
    signed = _signature(corpus, settings)
    path = place.table(1) / f"{name}.json"
    if place.misses(path, signed):
        found = _table1_cell(model(), corpus, threads)
        write_json(path, {"signature": signed, **found})
        say(f"table 1, {name}: UAS {found['exact']['test']['uas_no_punct']:.2f}")
    path = place.table(3) / f"{name}.json"
    if place.misses(path, signed):
        projective = model().with_trees(model().trees._replace(projective=True))
        _, found = _parsed(projective, Options(), corpus, threads)
        write_json(path, {"signature": signed, **found})
        say(f"table 3, {name}: projective UAS {found['test']['uas_no_punct']:.2f}")


def _table1_cell(model: HigherOrderModel, corpus: Corpus, threads: int) -> dict[str, Any]:
    about = model.about
    trees = code_trees(corpus.test, model.coder, ())
    left = coverage(model.scorer.pruner, trees.coded, trees.heads, executor_for(threads))
    exact, found = _parsed(model, Options(), corpus, threads)
    dual, limited = _parsed(model, Options(exact=False), corpus, threads)
    same = sum(bool((a.heads == b.heads).all()) for a, b in zip(exact, dual, strict=True))
    return {
        "training": {
            "seconds": about["training_seconds"],
            "threads": about["training_threads"],
            "sentences": about["train"]["sentences"],
            "epochs": about["settings"]["epochs"],
        },
        "pruning": {"measured_on": "test", "recall": left.recall, "heads_per_word": left.heads_per_word},
        "exact": found,
        "dual": {"iterations": ITERATIONS, "same_trees": same, **limited},
    }


def _parsed(
    model: HigherOrderModel, options: Options, corpus: Corpus, threads: int
) -> tuple[list[Prediction], dict[str, Any]]:
    """The test sentences' trees; the time they took, what is proved of them, and how good they are."""
    executor = executor_for(threads)
    model.predict(corpus.test[:1], options, executor)  # what is compiled on first use
    started = time.perf_counter()
    found = model.predict(corpus.test, options, executor)
    seconds = time.perf_counter() - started
    trees = [sentence.with_tree(each.heads, each.labels) for sentence, each in zip(corpus.test, found, strict=True)]
    scores = evaluate(corpus.test, trees).to_dict()
    statuses = Counter(str(each.status) for each in found)
    return found, {"seconds": seconds, "threads": threads, "statuses": dict(sorted(statuses.items())), "test": scores}


def _compare(corpus: Corpus, order: Order, size: Size, place: Place, threads: int, say: Say) -> None:
    """The cells of table 2, and the numbers of the figures."""
    settings = _settings(corpus, order, size)
    kept = len(corpus.train) - int(len(corpus.train) * HELD_OUT)
    model_file = place.models / f"{corpus.language}-{order}-held-out.headway"

    @cache
    def held_out() -> HeldOut:
        return HeldOut.of(trained(corpus.train[:kept], settings, model_file, threads), corpus.train[kept:])

    signed = {**_signature(corpus, settings), "held_out": len(corpus.train) - kept}
    koo2010_solvers.compare(order, held_out, size.compared, signed, place.table(2), place.misses, say)
    koo2010_figures.measure(order, held_out, size.limits, signed, place.figures, place.misses, say)
    koo2010_solvers.compare_random(order, size.instances, size.words, place.table(2), place.misses, say)


def _cells(folder: Path) -> dict[Any, dict[str, Any]]:
    """The cells of a folder by name, those of the sibling model first."""
    found = sorted(folder.glob("*.json"), key=lambda path: ("grandsibling" in path.stem, path.stem))
    return {path.stem: json.loads(path.read_text("utf-8")) for path in found}


def tables_text(results: Path, first_order: Path) -> str:
    """Tables 1 to 3 from the files there are; the paper's figures in brackets."""
    tested, solved, projective = (_cells(results / f"table{number}") for number in (1, 2, 3))
    languages = sorted({name.rsplit("-", 1)[0] for name in tested})
    return "\n".join(
        [
            _accuracy(languages, tested, _first_order(first_order)),
            _proofs(languages, tested),
            _solvers(solved),
            _random(solved),
            _relaxations(solved),
            _projective(languages, tested, projective),
        ]
    )


def _first_order(results: Path) -> dict[str, float]:
    """UAS of our best arc-factored parser a language, from the experiment `first_order`."""
    files = [path for path in sorted(results.glob("*.json")) if "-" not in path.stem]
    return {path.stem: json.loads(path.read_text("utf-8"))["test"]["uas_no_punct"] for path in files}


def _accuracy(languages: Sequence[str], cells: Mapping[str, Any], mst: Mapping[str, float]) -> str:
    header = ["language", "MST", "Sib UAS", "Sib LAS", "G+S UAS", "G+S LAS"]
    rows = []
    for language in languages:
        row = [language, _beside(mst.get(language), PAPER_MST.get(language))]
        for order in SETTINGS:
            cell, theirs = cells.get(f"{language}-{order}"), PAPER[order].get(language, PaperRow())
            test = None if cell is None else cell["exact"]["test"]
            row.append(_beside(test and test["uas_no_punct"], theirs.uas))
            row.append(_beside(test and test["las_no_punct"], None))
        rows.append(row)
    title = "## Table 1, accuracy: test, without punctuation (in brackets the paper's)"
    return markdown_table(title, header, rows)


def _proofs(languages: Sequence[str], cells: Mapping[str, Any]) -> str:
    header = ["language", "model", "% certificates, K = 5000", "% proved with exact completion"]
    header += ["seconds a sentence, K = 5000", "exact", "words a second, exact", "exact / K = 5000, total time"]
    header += ["training seconds", "a sentence and pass", "% right heads left by pruning", "heads a word"]
    rows = []
    for language in languages:
        for order in SETTINGS:
            cell = cells.get(f"{language}-{order}")
            if cell is not None:
                rows.append([language, TITLES[order], *_proof_row(cell, PAPER[order].get(language, PaperRow()))])
    title = "## Table 1, proofs and speed: test, times of the whole parser (in brackets the paper's, of 2010 machines)"
    return markdown_table(title, header, rows)


def _proof_row(cell: Mapping[str, Any], theirs: PaperRow) -> list[str]:
    exact, dual, training, pruning = (cell[name] for name in ("exact", "dual", "training", "pruning"))
    sentences, words = exact["test"]["sentences"], exact["test"]["tokens"]
    steps = training["sentences"] * training["epochs"]
    return [
        _beside(_proved(dual), theirs.certified),
        _beside(_proved(exact), None),
        _beside(dual["seconds"] / sentences, theirs.parsing, 4),
        _beside(exact["seconds"] / sentences, None, 4),
        f"{words / exact['seconds']:,.0f}",
        f"{exact['seconds'] / dual['seconds']:.2f}",
        f"{training['seconds']:.0f}",
        _beside(training["seconds"] / steps, theirs.training, 4),
        f"{pruning['recall']:.2f}",
        f"{pruning['heads_per_word']:.1f}",
    ]


def _proved(cell: Mapping[str, Any]) -> float:
    """% of the sentences whose tree is proved the best."""
    statuses: dict[str, int] = cell["statuses"]
    proved = sum(count for status, count in statuses.items() if status != "ITERATION_LIMIT")
    return 100 * proved / max(1, sum(statuses.values()))


def _solvers(cells: Mapping[str, Any]) -> str:
    header = ["model", "method", "UAS", "% solved", "CPU seconds a sentence"]
    rows, compared = [], 0
    for order in SETTINGS:
        for name, method in METHODS.items():
            cell = cells.get(f"{order}-{name}")
            if cell is None:
                continue
            uas, solved, seconds, _ = koo2010_solvers.PAPER[order].get(name, (None,) * 4)
            count = compared = cell["sentences"]
            shares = [_beside(cell["uas"], uas), _beside(100 * cell["solved"] / count, solved)]
            rows.append([TITLES[order], method.title, *shares, _beside(cell["seconds"] / count, seconds, 4)])
    limit = f"programs stopped after {koo2010_solvers.PROGRAM_SECONDS:.0f} s"
    which = f"{compared} held-out Danish sentences up to {koo2010_solvers.LONGEST} words"
    title = f"## Table 2: {which}, solver alone, {limit} (in brackets the paper's: English, Gurobi, looser LPs)"
    return markdown_table(title, header, rows)


def _random(cells: Mapping[str, Any]) -> str:
    """% solved, way by way."""
    header = ["model", "method", "the paper", *WAYS, *(f"{way}, CPU seconds an instance" for way in WAYS)]
    rows, words, instances = [], 0, 0
    for order in SETTINGS:
        for name, method in METHODS.items():
            found = [cells.get(f"random-{way}-{order}-{name}") for way in WAYS]
            drawn = [cell for cell in found if cell is not None]
            if not drawn:
                continue
            words, instances = drawn[0]["signature"]["words"], drawn[0]["instances"]
            *_, paper = koo2010_solvers.PAPER[order].get(name, (None,) * 4)
            solved = ["" if cell is None else f"{100 * cell['solved'] / cell['instances']:.1f}" for cell in found]
            seconds = ["" if cell is None else f"{cell['seconds'] / cell['instances']:.4f}" for cell in found]
            rows.append([TITLES[order], method.title, "" if paper is None else f"{paper:.1f}", *solved, *seconds])
    title = f"## Table 2, random instances: % solved of {instances} with {words} words, scores drawn in three ways"
    legend = [f"- {name}: {way.what}." for name, way in WAYS.items()]
    says = "The paper does not say how its scores are drawn. All scores are independent of each other:"
    return "\n".join([markdown_table(title, header, rows), says, "", *legend, ""])


def _relaxations(cells: Mapping[str, Any]) -> str:
    """LP(M) is the relaxation of dual decomposition: what the bounds of the cells say of it."""
    header = ["instances", "model", "DD-5000 certified", "LP(M) integral there", "LP(M) and best tree there, apart"]
    header += ["LP(M) integral elsewhere", "DD-5000 - LP(M) elsewhere, largest", "least", "LP(S) - LP(M), least"]
    rows = []
    for prefix in ("", *(f"random-{way}-" for way in WAYS)):
        for order in SETTINGS:
            names = [f"{prefix}{order}-{name}" for name in ("lp-single", "lp-multi", "dd-5000")]
            if all(name in cells for name in names):
                what = prefix.removeprefix("random-").removesuffix("-") or "Danish"
                rows.append([what, TITLES[order], *koo2010_solvers.relaxations(*(cells[name] for name in names))])
    return markdown_table("## Table 2, bounds: LP(M) and dual decomposition, on the same instances", header, rows)


def _projective(languages: Sequence[str], tested: Mapping[str, Any], cells: Mapping[str, Any]) -> str:
    rows = []
    for language in languages:
        row = [language]
        for order in SETTINGS:
            cell, other = tested.get(f"{language}-{order}"), cells.get(f"{language}-{order}")
            row.append(_beside(cell and cell["exact"]["test"]["uas_no_punct"], None))
            row.append(_beside(other and other["test"]["uas_no_punct"], None))
        rows.append(row)
    rows += [[f"{name}, the paper", *map("{:.2f}".format, uas)] for name, uas in PAPER_PROJECTIVE.items()]
    title = "## Table 3: the same weights decoded projectively (P-), UAS without punctuation"
    header = ["language", "Sib", "P-Sib", "G+S", "P-G+S"]
    return markdown_table(f"{title}; ours on test, the paper's on validation data", header, rows)


def _beside(ours: float | None, theirs: float | None, digits: int = 2) -> str:
    """Ours, and the paper's in brackets, where there are such.

    >>> _beside(91.234, 91.08), _beside(None, 91.08), _beside(0.00312, None, 4)
    ('91.23 (91.08)', '(91.08)', '0.0031')
    """
    mine = "" if ours is None else f"{ours:.{digits}f}"
    paper = "" if theirs is None else f"({theirs:g})" if digits > 2 else f"({theirs:.{digits}f})"
    return f"{mine} {paper}".strip()
