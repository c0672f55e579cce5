"""koo2010's table 2: dual decomposition beside the programs of Martins et al. 2009, on the same parts.

Every method solves the same sentences: held out from training, scored by one model, their arcs pruned once. Times are
the solver's alone, so they compare solvers, not parsers; the parser's own are in table 1. A sentence counts as solved
when its answer is proved optimal: z is integral, or dual decomposition has its certificate. Programs are solved by
HiGHS, where the paper has Gurobi, and stopped after `PROGRAM_SECONDS`; a sentence without an answer by then hangs
every word from the root.

The random instances have standard normal scores on every transition of every automaton, and nothing else: no pruning,
no scores of arcs, any number of words on the root. The root's own automaton has no grandparent, so that in the
grand-sibling instances its transitions are sibling parts. Instance i comes from the seed i.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from headway import __version__
from headway.arrays import Ints
from headway.evaluation import evaluate
from headway.inference.dual_decomposition import decode
from headway.inference.head_automata import GrandSiblingParts, SiblingParts
from headway.models.higher_order_model import HigherOrderModel
from headway.parallel import SERIAL
from headway.treebank import Sentence
from headway_papers.corpora import Say, is_done, write_json
from headway_papers.flow_program import Relaxation, solve

LONGEST = 40
PROGRAM_SECONDS = 10.0

ScoredParts = SiblingParts | GrandSiblingParts


@dataclass(frozen=True)
class Method:
    """A row of the table: a relaxation, or steps of dual decomposition, None of them being exact completion."""

    title: str
    relaxation: Relaxation | None = None
    steps: int | None = None

    def answer(self, parts: ScoredParts, single_root: bool) -> tuple[Ints, bool]:
        """The tree, and whether it is proved optimal."""
        if self.relaxation is not None:
            program = solve(parts, relaxation=self.relaxation, single_root=single_root, time_limit=PROGRAM_SECONDS)
            heads = np.array([-1] + [0] * parts.candidates.n) if program.heads is None else program.heads
            return heads, program.integral
        if self.steps is None:
            found = decode(parts, single_root=single_root)
        else:
            found = decode(parts, single_root=single_root, exact=False, iterations=self.steps)
        return found.heads, found.status.is_proof


METHODS = {
    "lp-single": Method("LP(S)", relaxation="single"),
    "lp-multi": Method("LP(M)", relaxation="multi"),
    "ilp": Method("ILP", relaxation="integer"),
    "dd-5000": Method("DD-5000", steps=5000),
    "dd-250": Method("DD-250", steps=250),
    "exact": Method("exact completion"),
}
# Per model and method: UAS, % integral, seconds a sentence, % integral of random instances (Gurobi, PTB section 22)
Order = Literal["sibling", "grandsibling"]

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


def compare(
    order: Order, held_out: Callable[[], HeldOut], most: int, signed: Mapping[str, Any], folder: Path, say: Say
) -> None:
    """One file a method for the first `most` held-out sentences; `held_out` is asked only where one is missing."""
    for name, method in METHODS.items():
        path, own = folder / f"{order}-{name}.json", {**signed, "method": name, "most": most, "longest": LONGEST}
        if is_done(path, own):
            continue
        data = held_out().short(most)
        heads, solved, seconds = _timed(method, data.parts, data.single_root)
        count = len(data.sentences)
        found = {"uas": data.uas(heads), "sentences": count, "solved": solved, "seconds": seconds}
        write_json(path, {"signature": own, **found})
        say(f"table 2, {order}, {method.title}: {solved} of {count} solved in {seconds:.1f} s")


def compare_random(order: Order, counts: Mapping[str, int], words: int, folder: Path, say: Say) -> None:
    """One file a method for random instances, `counts` of them."""
    for name, method in METHODS.items():
        count, path = counts[name], folder / f"random-{order}-{name}.json"
        signed = {"headway": __version__, "model": order, "method": name, "words": words, "seeds": [0, count - 1]}
        if is_done(path, signed):
            continue
        parts = [random_parts(order, words, seed) for seed in range(count)]
        _, solved, seconds = _timed(method, parts, single_root=False)
        write_json(path, {"signature": signed, "instances": count, "solved": solved, "seconds": seconds})
        say(f"random instances, {order}, {method.title}: {solved} of {count} solved in {seconds:.1f} s")


def _timed(method: Method, parts: Sequence[ScoredParts], single_root: bool) -> tuple[list[Ints], int, float]:
    """Trees, how many are proved optimal, and seconds; what is compiled on first use is compiled before."""
    method.answer(min(parts, key=lambda each: len(each.arcs)), single_root)
    started = time.perf_counter()
    answers = [method.answer(each, single_root) for each in parts]
    seconds = time.perf_counter() - started
    return [heads for heads, _ in answers], sum(proved for _, proved in answers), seconds


def random_parts(order: Order, words: int, seed: int) -> ScoredParts:
    """Standard normal scores on the automata's transitions, 0 on everything else."""
    rng = np.random.default_rng(seed)
    nodes = words + 1
    arcs = np.zeros((nodes, nodes))
    if order == "sibling":
        return SiblingParts.dense(arcs, rng.normal(size=(nodes,) * 3))
    siblings = np.zeros((nodes,) * 3)
    siblings[0] = rng.normal(size=(nodes, nodes))
    return GrandSiblingParts.dense(arcs, siblings, np.zeros((nodes,) * 3), rng.normal(size=(nodes,) * 4))
