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
from headway_papers import koo2010_figures, koo2010_solvers, koo2010_tables
from headway_papers.corpora import HELD_OUT, Corpus, Say, chosen_languages, is_done, result_signature, write_json
from headway_papers.koo2010_random import Order
from headway_papers.koo2010_solvers import HeldOut
from headway_papers.koo2010_tables import read_cells
from headway_papers.linear_program import require_highspy

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
    tables = koo2010_tables.tables_text(place.results, output.parent / "first_order" / "results")
    (output / ("quick.md" if quick else "tables.md")).write_text(tables, encoding="utf-8")
    koo2010_figures.draw(read_cells(place.figures), output, "quick-" if quick else "")
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
