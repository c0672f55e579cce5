"""The English parser that comes with Headway, from UD English-EWT: trained, packed, measured.

`DIR` holds the treebank's three files, `*train*.conllu[.gz]`, `*dev*` and `*test*`. `en`, which comes along, is a
network (`headway_papers.english_network`). `en-large` is a network as large as its teachers, trained as these are,
with weights of one byte. Four linear parsers are trained beside them, all grand-sibling, labelled, single-root, and all
choose their pass on the development sentences:

- `linear`: tags by its own tagger, word clusters in its features, two trainings averaged;
- `without-clusters`: the same from the treebank alone, by one training;
- `gold-tags` and `gold-tags-4000`, with the treebank's tags and lemmas, on all training sentences and on the first
  4,000, as other parsers were measured on these files (`PEERS`).

The test sentences are parsed once by each. Clusters are the Brown clusters of the package spacy-lookups-data.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np

from headway import __version__
from headway.errors import TrainingError, TreebankError
from headway.evaluation import evaluate, evaluate_conll2018, reliability
from headway.models.higher_order_model import HigherOrderModel
from headway.parsed import Parsed
from headway.pipeline import Parser
from headway.text.segmenter import Segmenter
from headway.training.data import checksum
from headway.training.settings import NEURAL
from headway.training.text_models import TextModels
from headway.treebank import Sentence, read_treebank, require_tree
from headway.treebank.raw_text import raw_text
from headway_papers.corpora import Say, is_done, require_names, write_json
from headway_papers.english_card import card_of_figures
from headway_papers.english_network import (
    OF_PUPILS,
    OF_TEACHERS,
    PUPILS,
    QUICK,
    TEACHERS,
    Sources,
    trained,
    training_data,
)
from headway_papers.markdown import markdown_table

MEGABYTES = 24.0
SETTINGS: dict[str, Any] = {"model": "grandsibling", "learner": "margin", "epochs": 10, "seed": 0}
PARSERS: dict[str, dict[str, Any]] = {
    "linear": {"tags": "predicted", "c": 200.0, "runs": 2},
    "without-clusters": {"tags": "predicted", "c": 400.0, "runs": 1},
    "gold-tags": {"tags": "gold", "c": 400.0, "runs": 1},
    "gold-tags-4000": {"tags": "gold", "c": 400.0, "runs": 1},
}
NETWORK, LARGE = "en", "en-large"
OTHER = "UD_English-GUM"  # of other kinds of text; never trained on
WITH_CLUSTERS = ("linear",)
# For speed, `linear` prunes harder when it parses than it did in training; chosen on the development sentences.
PARSING: dict[str, dict[str, Any]] = {"linear": {"threshold": 0.007, "max_heads": 10}}
FIRST_SENTENCES = {"gold-tags-4000": 4000}
# UAS and LAS on the same test file, gold tokens: measured elsewhere, or as published for an earlier version of it.
PEERS: dict[str, dict[str, tuple[float, float | None]]] = {
    "en": {
        "spaCy, XLM-RoBERTa base, published, from raw text (UD 2.5)": (91.90, 89.42),
        "UDify, published": (91.12, 88.53),
    },
    "linear": {"UDPipe 1.2, published (UD 2.6)": (84.40, 81.08)},
    "gold-tags": {"TurboParser basic": (85.24, None)},
    "gold-tags-4000": {
        "UDPipe 1": (84.08, 81.37),
        "MSTParser, 2nd order": (83.58, 79.17),
        "MSTParser, 1st order": (82.62, 78.44),
        "TurboParser basic": (82.64, None),
    },
}


def run(
    data: Path,
    output: Path,
    *,
    languages: Sequence[str] | None,
    quick: bool,
    threads: int,
    say: Say,
    encoder: Path | None = None,
    teacher: Path | None = None,
    text: Path | None = None,
    processes: int = 1,
) -> None:
    """Train and measure what is not there yet, and write `tables.md`; `quick` takes 300 sentences and two passes.

    `encoder`, `teacher` and `text` are what `en` is made from, by trainings in so many `processes`.
    """
    chosen = require_names(languages, (NETWORK, LARGE, *PARSERS), "parser")
    sources = Sources.of(encoder, teacher, text) if NETWORK in chosen else None
    if LARGE in chosen and teacher is None:
        raise TrainingError(f"{LARGE} needs --teacher (MPNet)")
    results, models = output / ("quick" if quick else "results"), output / "models"
    for folder in (results, models):
        folder.mkdir(parents=True, exist_ok=True)
    most = 300 if quick else None
    parts = {part: list(read_treebank(_file(data, part)))[:most] for part in ("train", "dev", "test")}
    other = data.parent / OTHER
    beside = {"gum_dev": list(read_treebank(_file(other, "dev")))[:most]} if other.is_dir() else {}
    for name in chosen:
        if name in PARSERS:
            _parser(name, parts, results, models, quick, threads, say)
        elif name == LARGE and teacher is not None:
            _large({**parts, **beside}, teacher, results, models, quick, threads, say)
        elif sources is not None:
            _network({**parts, **beside}, sources, results, models, quick, threads, say, processes)
    table = table_text(results)
    (output / ("quick.md" if quick else "tables.md")).write_text(table, encoding="utf-8")
    say(table)


def _parser(
    name: str, parts: dict[str, list[Sentence]], results: Path, models: Path, quick: bool, threads: int, say: Say
) -> None:
    """Train, pack and measure one of the parsers."""
    train = parts["train"][: FIRST_SENTENCES.get(name)]
    settings = {**SETTINGS, **PARSERS[name], **({"epochs": 2} if quick else {})}
    path = results / f"{name}.json"
    signed = {
        "headway": __version__,
        "settings": {
            **settings,
            "clusters": name in WITH_CLUSTERS,
            "megabytes": MEGABYTES,
            "parsing": PARSING.get(name),
        },
        "data": {part: checksum(some) for part, some in {**parts, "train": train}.items()},
    }
    if is_done(path, signed):
        return
    started = time.monotonic()
    with _clusters(name in WITH_CLUSTERS) as clusters:
        trained = Parser.train(train, parts["dev"], threads=threads, clusters=clusters, show=None, **settings)
    seconds = time.monotonic() - started
    retag = settings["tags"] == "predicted"
    whole = measure(trained, parts["dev"], retag, threads)
    whole_model = cast(HigherOrderModel, trained.model)
    pruner = replace(whole_model.scorer.pruner, **PARSING.get(name, {}))
    pruned = replace(whole_model, scorer=replace(whole_model.scorer, pruner=pruner))
    model = models / f"{'quick-' if quick else ''}{name}.headway"
    replace(trained, model=pruned).save(model, max_megabytes=MEGABYTES)
    parser = Parser.load(model)
    say(f"{name}: trained in {seconds:.0f} s, {model.stat().st_size / 1e6:.1f} MB")
    measured = {part: measure(parser, parts[part], retag, threads) for part in ("dev", "test")}
    about = dict(parser.model.about)
    found = {
        "signature": signed,
        "bytes": model.stat().st_size,
        "training_seconds": seconds,
        "best_pass": about["best_pass"],
        "pruning": about["pruning"],
        "dev_as_trained": whole,
        **measured,
    }
    write_json(path, found)
    say(f"{name}: test UAS {measured['test']['uas']:.2f}, LAS {measured['test']['las']:.2f}")


def _network(
    parts: dict[str, list[Sentence]],
    sources: Sources,
    results: Path,
    models: Path,
    quick: bool,
    threads: int,
    say: Say,
    processes: int,
) -> None:
    """Train and measure `en`."""
    signed = {
        "headway": __version__,
        "settings": {
            "teachers": [{**OF_TEACHERS, **own} for own in TEACHERS],
            "pupils": [{**OF_PUPILS, **own} for own in PUPILS],
        },
        "data": {part: checksum(some) for part, some in parts.items()},
        "files": {name: sha256(path.read_bytes()).hexdigest() for name, path in sources.files.items()},
    }
    path = results / f"{NETWORK}.json"
    if is_done(path, signed):
        return
    started = time.monotonic()
    segmenter = Segmenter.learn(parts["train"])
    data = training_data(parts, sources.text.read_text("utf-8"), segmenter)
    network = trained(data, segmenter, sources, models, quick, say, processes)
    seconds = time.monotonic() - started
    about = {
        "training_seconds": seconds,
        "text": {"sentences": len(data.text), "words": sum(map(len, data.text))},
        "averaged": network.about["averaged"],
    }
    parser = Parser.of(network, TextModels(None, segmenter))
    _keep(parser, models / f"{'quick-' if quick else ''}{NETWORK}.headway", path, signed, about, parts, threads, say)


def _large(
    parts: dict[str, list[Sentence]], teacher: Path, results: Path, models: Path, quick: bool, threads: int, say: Say
) -> None:
    """Train and measure `en-large`, with the settings of the first teacher."""
    settings = {**OF_TEACHERS, **TEACHERS[0], **(QUICK if quick else {})}
    signed = {
        "headway": __version__,
        "settings": settings,
        "data": {part: checksum(some) for part, some in parts.items()},
        "files": {"teacher": sha256((teacher / "model.safetensors").read_bytes()).hexdigest()},
    }
    path = results / f"{LARGE}.json"
    if is_done(path, signed):
        return
    started = time.monotonic()
    parser = Parser.train(parts["train"], parts["dev"], model=NEURAL, encoder=str(teacher), threads=threads, **settings)
    about = {"training_seconds": time.monotonic() - started}
    _keep(parser, models / f"{'quick-' if quick else ''}{LARGE}.headway", path, signed, about, parts, threads, say)


def _keep(
    parser: Parser,
    model: Path,
    path: Path,
    signed: dict[str, Any],
    about: dict[str, Any],
    parts: dict[str, list[Sentence]],
    threads: int,
    say: Say,
) -> None:
    """Measure a network, and keep it with a card, and the figures."""
    figures = figures_of(parser, parts, threads)
    replace(parser, card=card_of_figures(signed, figures)).save(model)
    write_json(path, {"signature": signed, "bytes": model.stat().st_size, **about, **figures})
    say(f"{path.stem}: test UAS {figures['test']['uas']:.2f}, LAS {figures['test']['las']:.2f}")


def figures_of(parser: Parser, parts: dict[str, list[Sentence]], threads: int) -> dict[str, Any]:
    """What is measured of a network: development and test sentences, scrambled ones, and its speed on one thread."""
    return {
        "words_per_second": speed(parser, parts["dev"]),
        **{part: measure(parser, some, True, threads) for part, some in parts.items() if part != "train"},
        "scrambled": probabilities(parser, scrambled(parts["dev"]), threads),
    }


def speed(parser: Parser, sentences: Sequence[Sentence]) -> float:
    """Words a second on one thread, from the raw text of the sentences to CoNLL-U, when all is loaded."""
    raw = raw_text(sentences).text
    words = sum(len(parsed.sentence) for parsed in parser.parse_text(raw))
    started = time.perf_counter()
    for parsed in parser.parse_text(raw):
        parsed.to_conllu()
    return words / (time.perf_counter() - started)


def scrambled(sentences: Sequence[Sentence], seed: int = 0) -> list[Sentence]:
    """The words of sentences in any order."""
    rng = np.random.default_rng(seed)
    return [Sentence.from_words([one.forms[i] for i in rng.permutation(len(one))]) for one in sentences]


def probabilities(parser: Parser, sentences: Sequence[Sentence], threads: int) -> dict[str, Any]:
    """Of the arcs that the parser chooses: their mean, and how many there are in each tenth from 0 to 1."""
    parsed = parser.parse(iter(sentences), threads=threads)
    arcs = np.concatenate([found.confidence.arcs[1:] for found in parsed])
    counts, _ = np.histogram(arcs, bins=10, range=(0.0, 1.0 + 1e-9))  # rounding may lead above 1
    return {"mean_probability": float(arcs.mean()), "counts": counts.tolist()}


def measure(parser: Parser, gold: Sequence[Sentence], retag: bool, threads: int) -> dict[str, Any]:
    """Scores on gold tokens, in percent; with predicted tags also those of the tags, and from raw text."""
    parsed = list(parser.parse(iter(gold), retag=retag, threads=threads))
    scores = evaluate(gold, [found.sentence for found in parsed])
    measured: dict[str, Any] = {
        "words": scores.tokens,
        "uas": scores.uas,
        "las": scores.las,
        "las_without_subtypes": evaluate_conll2018(gold, [found.sentence for found in parsed]).las.f1,
        "uas_no_punct": scores.uas_no_punct,
        "las_no_punct": scores.las_no_punct,
        "proved": 100 * sum(found.is_proved for found in parsed) / len(parsed),
        "calibration": asdict(arc_calibration(gold, parsed)),
    }
    if not retag:
        return measured
    for column in ("upos", "xpos", "feats", "lemmas"):
        right = sum(
            a == b
            for one, other in zip(gold, parsed, strict=True)
            for a, b in zip(getattr(one, column), getattr(other.sentence, column), strict=True)
        )
        measured[column] = 100 * right / scores.tokens
    from_text = evaluate_conll2018(gold, [p.sentence for p in parser.parse_text(raw_text(gold).text, threads=threads)])
    measured["from_raw_text"] = {name: figure["f1"] for name, figure in from_text.to_dict().items()}
    return measured


def arc_calibration(gold: Sequence[Sentence], parsed: Sequence[Parsed]) -> Any:
    """Probabilities of the parser's arcs beside how often such arcs are right."""
    sure = np.concatenate([found.confidence.arcs[1:] for found in parsed])
    right = np.concatenate([p.heads[1:] == require_tree(g)[1:] for g, p in zip(gold, parsed, strict=True)])
    return reliability(sure, right)


@contextmanager
def _clusters(wanted: bool) -> Iterator[str | None]:
    """Brown clusters as `wcluster` writes them, from the package spacy-lookups-data."""
    if not wanted:
        yield None
        return
    found = find_spec("spacy_lookups_data")
    if found is None or found.origin is None:
        raise TrainingError("the clusters are those of spacy-lookups-data; pip install spacy-lookups-data==1.0.5")
    source = Path(found.origin).parent / "data" / "en_lexeme_cluster.json.gz"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "clusters.txt"
        with gzip.open(source, "rt", encoding="utf-8") as file, path.open("w", encoding="utf-8") as target:
            for word, number in json.load(file).items():
                if number and word.strip() and not set(word) & set("\t\n\r"):
                    target.write(f"{bin(number)[:1:-1]}\t{word}\n")  # the path is written from its end
        yield str(path)


def _file(data: Path, part: str) -> Path:
    found = next((path for path in sorted(data.glob(f"*{part}*.conllu*")) if path.is_file()), None)
    if found is None:
        raise TreebankError(f"no *{part}*.conllu[.gz] there; give the folder of UD English-EWT", str(data))
    return found


def table_text(results: Path) -> str:
    """A row a parser, its peers below it, from the files there are."""
    header = ["parser", "MB", "dev UAS", "dev LAS", "test UAS", "test LAS", "test LAS without subtypes"]
    rows = []
    for name in (NETWORK, LARGE, *PARSERS):
        path = results / f"{name}.json"
        if not path.exists():
            continue
        cell = json.loads(path.read_text("utf-8"))
        dev, test = cell["dev"], cell["test"]
        figures = [dev["uas"], dev["las"], test["uas"], test["las"], test["las_without_subtypes"]]
        rows.append([f"**{name}**", f"{cell['bytes'] / 1e6:.1f}", *(f"{figure:.2f}" for figure in figures)])
        for peer, (uas, las) in PEERS.get(name, {}).items():
            # columns without a figure are "| |": the committed table stays as it is, byte for byte
            rows.append([peer, f"| | | {uas:.2f}", f"{'' if las is None else f'{las:.2f}'} |"])
    return markdown_table("## UD English-EWT, gold tokens, all words", header, rows)
