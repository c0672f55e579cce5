"""The CoNLL-X folders experiments read, and the one way they use them.

Any folder `LANGUAGE/train.conll[.gz]`, `LANGUAGE/test.conll[.gz]` takes part. The last tenth of the training sentences
is held out for choices; the test sentences are parsed once, by what was chosen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headway import __version__
from headway.atomic import write_file
from headway.errors import TreebankError
from headway.evaluation import Scores, evaluate
from headway.parallel import R, Workers
from headway.pipeline import Parser
from headway.training.data import checksum
from headway.training.settings import Settings
from headway.training.tuning import GRIDS, Tuning, tune
from headway.treebank import Sentence, read_treebank, roots

HELD_OUT = 0.1

# Committed results keep the names their settings had when they were computed.
RENAMED = {"trainings": "runs", "threshold": "prune_threshold"}
# Settings of text without trees, which results without such text have as they were written out then.
WITHOUT_TEXT = {"entropy_weight": 0.03, "entropy_order": 1.0}
# Results older than this setting were computed with gold tags.
OLDER = {"tags": "gold"}

Say = Callable[[str], None]


@dataclass(frozen=True)
class Corpus:
    """One language's training and test sentences."""

    language: str
    train: list[Sentence]
    test: list[Sentence]

    @classmethod
    def read(cls, data: Path, language: str, most: int | None = None) -> Corpus:
        """The first `most` sentences of each file, or all."""
        parts = (list(read_treebank(path, format="conllx"))[:most] for path in cls.files(data, language))
        return cls(language, *parts)

    @classmethod
    def read_ud(cls, folder: Path, language: str) -> Corpus:
        """A treebank of UD, without its development sentences."""
        return cls(language, *(list(read_treebank(_ud_file(folder, part))) for part in ("train", "test")))

    @staticmethod
    def files(data: Path, language: str) -> tuple[Path, Path]:
        """The training and the test file of a language."""
        train, test = (_file(data / language, name) for name in ("train", "test"))
        if train is None or test is None:
            raise TreebankError("has no train.conll[.gz] and test.conll[.gz]", str(data / language))
        return train, test

    @property
    def single_root(self) -> bool:
        """Whether every training tree has one root: the class the models are trained in."""
        return all(len(roots(s.heads)) == 1 for s in self.train if s.heads is not None and len(s))


def languages_of(data: Path) -> list[str]:
    """The languages there are below a folder."""
    found = sorted(folder.name for folder in data.iterdir() if _file(folder, "train") and _file(folder, "test"))
    if not found:
        cause = "no LANGUAGE/train.conll[.gz] with test.conll[.gz] below it; give the folder of the languages"
        raise TreebankError(cause, str(data))
    return found


def chosen_languages(data: Path, asked: Sequence[str] | None, usual: Sequence[str] | None = None) -> list[str]:
    """The languages to go through: those asked for, the usual ones, or all; each must be there before any is begun."""
    chosen = list(asked or usual or languages_of(data))
    for language in chosen:
        Corpus.files(data, language)
    return chosen


def require_names(asked: Sequence[str] | None, known: Iterable[str], what: str) -> list[str]:
    """The names asked for, or all; an error for an unknown one before any is begun."""
    names = list(known)
    for name in asked or ():
        if name not in names:
            raise TreebankError(f"there is no {what} {name!r}; there are {', '.join(names)}")
    return list(asked or names)


def result_signature(corpus: Corpus, settings: dict[str, Any], grid: Sequence[float]) -> dict[str, Any]:
    """What a result depends on; it is computed again when any of this changes."""
    return {
        "headway": __version__,
        "settings": settings,
        "grid": list(grid),
        "train": checksum(corpus.train),
        "test": checksum(corpus.test),
    }


def is_done(path: Path, signed: dict[str, Any]) -> bool:
    """Whether there is a result with this signature; settings it does not mention had their defaults of then."""
    if not path.exists():
        return False
    found = json.loads(path.read_text("utf-8")).get("signature")
    return found is not None and _complete(found) == _complete(signed)


def _complete(signed: Mapping[str, Any]) -> dict[str, Any]:
    return {**signed, "settings": {**asdict(Settings()), **OLDER, **renamed(signed.get("settings", {}))}}


def renamed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a committed result under their names of today."""
    return {
        RENAMED.get(name, name): renamed(value) if isinstance(value, Mapping) else value
        for name, value in settings.items()
        if WITHOUT_TEXT.get(name) != value
    }


def finished(workers: Workers | None, function: Callable[..., R], *items: Iterable[Any]) -> Iterator[tuple[int, R]]:
    """What a function makes of the items, each with its number: by workers as it comes, or here in its order."""
    if workers is not None:
        return workers.finished(function, *items)
    return ((number, function(*item)) for number, item in enumerate(zip(*items, strict=False)))


def test_once(parser: Parser, corpus: Corpus, threads: int) -> Scores:
    """Parse the test sentences."""
    return evaluate(corpus.test, [found.sentence for found in parser.parse(corpus.test, threads=threads)])


def tune_then_train(corpus: Corpus, settings: dict[str, Any], threads: int) -> tuple[Tuning, Parser]:
    """Choose C and the pass on the held-out tenth, then train on everything with what was chosen."""
    learner = Settings(**settings).method
    tuning = tune(corpus.train, grid=GRIDS[learner], held_out=HELD_OUT, threads=threads, **settings)
    parser = Parser.train(corpus.train, threads=threads, **asdict(tuning.settings))
    return tuning, parser.with_projective(tuning.projective)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Whole or not at all."""
    write_file(path, json.dumps(value, indent=1) + "\n")


def _file(folder: Path, name: str) -> Path | None:
    return next((path for path in sorted(folder.glob(f"{name}.conll*")) if path.is_file()), None)


def _ud_file(folder: Path, part: str) -> Path:
    path = next(iter(sorted(folder.glob(f"*-ud-{part}.conllu*"))), None)
    if path is None:
        raise TreebankError(f"no *-ud-{part}.conllu[.gz] there; give the folder that has conllx and ud", str(folder))
    return path
