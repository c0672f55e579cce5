"""koo2010's table 2: dual decomposition compared with flow programs, on the same parts.

Every method solves the same sentences: held out from training, scored by one model, their arcs pruned once. Times are
CPU times of the solver alone, so they compare solvers, not parsers; the parser's own are in table 1. A sentence counts
as solved when its answer is proved optimal: z is integral, or dual decomposition has its certificate. A cell keeps the
bound of every sentence, and which ones stayed open.

Programs (`flow_program`) are solved by HiGHS, where the paper has Gurobi, and stopped after `PROGRAM_SECONDS`; a
sentence without an answer by then hangs every word from the root. The integer program begins with the best tree of
DD-5000, whose time is part of its own.

The random instances are those of `koo2010_random`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headway import __version__
from headway.arrays import Ints
from headway.evaluation import evaluate
from headway.inference.dual_decomposition import ITERATIONS, decode
from headway.models.higher_order_model import HigherOrderModel
from headway.parallel import SERIAL
from headway.treebank import Sentence
from headway_papers.corpora import Say, write_json
from headway_papers.flow_program import Relaxation, solve
from headway_papers.koo2010_random import WAYS, Order, ScoredParts, random_parts

LONGEST = 40
PROGRAM_SECONDS = 600.0

Missing = Callable[[Path, Mapping[str, Any]], bool]  # whether a cell with this signature is still to be computed


@dataclass(frozen=True)
class Answer:
    """A tree, a bound on every tree's score (inf: none), and whether the tree is proved optimal."""

    heads: Ints
    bound: float
    proved: bool


@dataclass(frozen=True)
class Method:
    """A row of the table: a relaxation, or steps of dual decomposition, None of them being exact completion."""

    title: str
    relaxation: Relaxation | None = None
    steps: int | None = None

    def answer(self, parts: ScoredParts, single_root: bool) -> Answer:
        """Solve one sentence."""
        if self.relaxation is not None:
            return _answer_of_program(parts, self.relaxation, single_root)
        if self.steps is None:
            found = decode(parts, single_root=single_root)
        else:
            found = decode(parts, single_root=single_root, exact=False, iterations=self.steps)
        return Answer(found.heads, found.bound, found.status.is_proof)


def _answer_of_program(parts: ScoredParts, relaxation: Relaxation, single_root: bool) -> Answer:
    incumbent = None
    if relaxation == "integer":
        incumbent = decode(parts, single_root=single_root, exact=False, iterations=ITERATIONS).heads
    program = solve(
        parts, relaxation=relaxation, single_root=single_root, time_limit=PROGRAM_SECONDS, incumbent=incumbent
    )
    heads = np.array([-1] + [0] * parts.candidates.n) if program.heads is None else program.heads
    return Answer(heads, program.bound, program.integral)


METHODS = {
    "lp-single": Method("LP(S)", relaxation="single"),
    "lp-multi": Method("LP(M)", relaxation="multi"),
    "ilp": Method("ILP", relaxation="integer"),
    "dd-5000": Method("DD-5000", steps=5000),
    "dd-250": Method("DD-250", steps=250),
    "exact": Method("exact completion"),
}
# Per model and method: UAS, % integral, seconds a sentence, % integral of random instances (Gurobi, PTB section 22)
PAPER: dict[Order, dict[str, tuple[float, float, float, float]]] = {
    "sibling": {
        "lp-single": (92.14, 88.29, 0.14, 11.7),
        "lp-multi": (92.17, 93.18, 0.58, 30.6),
        "ilp": (92.19, 100.0, 1.44, 100.0),
        "dd-5000": (92.19, 98.82, 0.08, 35.6),
        "dd-250": (92.23, 89.29, 0.03, 10.2),
    },
    "grandsibling": {
        "lp-single": (92.60, 91.64, 0.23, 0.0),
        "lp-multi": (92.58, 94.41, 0.75, 0.0),
        "ilp": (92.70, 100.0, 1.79, 100.0),
        "dd-5000": (92.71, 98.76, 0.23, 6.8),
        "dd-250": (92.66, 85.47, 0.12, 0.0),
    },
}


@dataclass(frozen=True)
class HeldOut:
    """Held-out sentences and their parts under a model that has not seen them."""

    sentences: list[Sentence]
    parts: list[ScoredParts]
    single_root: bool

    @classmethod
    def of(cls, model: HigherOrderModel, sentences: Sequence[Sentence]) -> HeldOut:
        """Prune and score."""
        coded = model.coder.code(sentences)
        parts: list[ScoredParts] = []
        for i in range(len(sentences)):
            [scored] = model.scorer.scores(coded.some(np.array([i])), SERIAL).parts
            assert isinstance(scored, ScoredParts)
            parts.append(scored)
        return cls(list(sentences), parts, model.trees.single_root)

    def short(self, most: int) -> HeldOut:
        """The first sentences that are not too long for a linear program."""
        chosen = [i for i, sentence in enumerate(self.sentences) if len(sentence) <= LONGEST][:most]
        return HeldOut([self.sentences[i] for i in chosen], [self.parts[i] for i in chosen], self.single_root)

    def uas(self, heads: Sequence[Ints]) -> float:
        """Percentage of right heads, without punctuation."""
        trees = [sentence.with_tree(tree) for sentence, tree in zip(self.sentences, heads, strict=True)]
        return evaluate(self.sentences, trees).uas_no_punct


def cell_names() -> list[str]:
    """The names of all cells: held-out sentences, then random instances."""
    names = [f"{order}-{name}" for order in PAPER for name in METHODS]
    return [*names, *(f"random-{way}-{name}" for way in WAYS for name in names)]


def compare(
    order: Order,
    held_out: Callable[[], HeldOut],
    most: int,
    signed: Mapping[str, Any],
    folder: Path,
    missing: Missing,
    say: Say,
) -> None:
    """One file a method for the first `most` held-out sentences; `held_out` is asked only where one is missing."""
    for name, method in METHODS.items():
        path, own = folder / f"{order}-{name}.json", {**signed, **_limits(name), "most": most, "longest": LONGEST}
        if not missing(path, own):
            continue
        data = held_out().short(most)
        answers, seconds = _timed(method, data.parts, data.single_root)
        found = {"uas": data.uas([each.heads for each in answers]), "sentences": len(answers)}
        write_json(path, {"signature": own, **found, **_solved(answers), "seconds": seconds})
        say(f"table 2, {order}, {method.title}: {_summary(answers, seconds)}")


def compare_random(order: Order, count: int, words: int, folder: Path, missing: Missing, say: Say) -> None:
    """One file a method and way of drawing for random instances."""
    for way in WAYS:
        for name, method in METHODS.items():
            path = folder / f"random-{way}-{order}-{name}.json"
            drawn = {"model": order, "scores": way, "words": words, "seeds": [0, count - 1]}
            own = {"headway": __version__, **drawn, **_limits(name)}
            if not missing(path, own):
                continue
            parts = [random_parts(order, words, seed, way) for seed in range(count)]
            answers, seconds = _timed(method, parts, single_root=False)
            write_json(path, {"signature": own, "instances": count, **_solved(answers), "seconds": seconds})
            say(f"random instances, {way}, {order}, {method.title}: {_summary(answers, seconds)}")


def _limits(name: str) -> dict[str, Any]:
    is_program = METHODS[name].relaxation is not None
    return {"method": name, **({"program_seconds": PROGRAM_SECONDS} if is_program else {})}


def _timed(method: Method, parts: Sequence[ScoredParts], single_root: bool) -> tuple[list[Answer], float]:
    """The answers, and CPU seconds; what is compiled on first use is compiled before, on an instance that branches."""
    method.answer(random_parts("grandsibling", 6, 0, "normal"), single_root)
    started = time.process_time()  # every method has one thread, and the machine may have other work
    answers = [method.answer(each, single_root) for each in parts]
    return answers, time.process_time() - started


def _solved(answers: Sequence[Answer]) -> dict[str, Any]:
    """How many are proved optimal, the numbers of those that are not, and all bounds (None where there is none)."""
    still_open = [i for i, each in enumerate(answers) if not each.proved]
    bounds = [round(each.bound, 9) if np.isfinite(each.bound) else None for each in answers]
    return {"solved": len(answers) - len(still_open), "open": still_open, "bounds": bounds}


def _summary(answers: Sequence[Answer], seconds: float) -> str:
    return f"{sum(each.proved for each in answers)} of {len(answers)} solved in {seconds:.1f} CPU s"


def relaxations(single: Mapping[str, Any], multi: Mapping[str, Any], dual: Mapping[str, Any]) -> list[str]:
    """The cells of LP(S), LP(M) and DD-5000 on the same instances, compared; a bound that is not there is inf."""
    loose, tight, steps = (
        np.array([np.inf if bound is None else bound for bound in cell["bounds"]]) for cell in (single, multi, dual)
    )
    integral, certified = np.ones((2, len(tight)), np.bool_)
    integral[multi["open"]] = certified[dual["open"]] = False
    there, elsewhere = np.abs(tight - steps)[certified], (steps - tight)[~certified]
    return [
        f"{certified.sum()} of {len(tight)}",
        f"{(integral & certified).sum()}",
        f"{there.max():.1e}" if len(there) else "",
        f"{(integral & ~certified).sum()} of {len(elsewhere)}",
        f"{elsewhere.max():.1e}" if len(elsewhere) else "",
        f"{elsewhere.min():.1e}" if len(elsewhere) else "",
        f"{(loose - tight).min():.1e}",
    ]
