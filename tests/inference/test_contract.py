"""One contract for every distribution: what each of them must meet against its own enumeration.

First-order trees of the four classes, labelled trees of the four classes, second-order projective
trees single- and multi-root: the same tests, on scores with forbidden arcs, ties, dominant cycles
and huge spreads.

What a prediction carries (`protocol.Distribution`) has a contract of its own, `distribution_contract`, which every
implementation meets: those of `headway.inference` here, those of the models in their own tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.arrays import TreeClass
from headway.errors import NoTreeError
from headway.inference import LabelledTreeDistribution, SiblingDistribution, TreeDistribution
from headway.inference.batch import as_batch
from headway.inference.first_order import arc_marginals
from headway.inference.protocol import Distribution
from headway.parallel import SERIAL

from . import exact
from .distribution_contract import check_distribution
from .exact import Exact, Part
from .strategies import TREE_CLASSES, Floats, score_matrices, sibling_scores

TOLERANCE = 1e-10


@dataclass(frozen=True)
class Family:
    """A kind of distribution: how to draw its scores, build it, and enumerate it."""

    inputs: Callable[[bool], st.SearchStrategy[tuple[Floats, ...]]]
    build: Callable[..., Any]
    enumerate: Callable[..., Exact[Any]]
    parts: Callable[[Any], Iterable[Part]]
    in_class: Callable[..., bool]
    labelled: bool = False

    def arguments(self, outcome: Any) -> tuple[np.ndarray, ...]:
        """An outcome of the enumeration as the library's methods take it."""
        return tuple(np.array(part) for part in (outcome if self.labelled else (outcome,)))

    def outcome(self, structure: Any) -> Any:
        """What the library returned as an outcome of the enumeration."""
        if self.labelled:
            heads, labels = structure
            return tuple(heads.tolist()), tuple(labels.tolist())
        return tuple(structure.tolist())

    def heads(self, outcome: Any) -> tuple[int, ...]:
        return outcome[0] if self.labelled else outcome


def _families() -> list[Any]:
    families = []
    for case in TREE_CLASSES:
        (flags,) = case.values
        first_order = Family(
            inputs=lambda solvable: st.tuples(score_matrices(max_words=4, solvable=solvable)),
            build=partial(TreeDistribution, **flags),
            enumerate=partial(exact.tree_distribution, **flags),
            parts=exact.arcs,
            in_class=partial(exact.in_class, **flags),
        )
        labelled = Family(
            inputs=lambda solvable: st.tuples(score_matrices(max_words=3, labels=2, solvable=solvable)),
            build=partial(LabelledTreeDistribution, **flags),
            enumerate=partial(exact.labelled_distribution, **flags),
            parts=exact.labelled_arcs,
            in_class=partial(exact.in_class, **flags),
            labelled=True,
        )
        families += [
            pytest.param(first_order, id=f"arcs-{case.id}"),
            pytest.param(labelled, id=f"labelled-{case.id}"),
        ]
    for single_root in (False, True):
        second_order = Family(
            inputs=lambda solvable: sibling_scores(solvable=solvable),
            build=partial(SiblingDistribution, single_root=single_root),
            enumerate=partial(exact.sibling_distribution, single_root=single_root),
            parts=exact.arcs,
            in_class=partial(exact.in_class, projective=True, single_root=single_root),
        )
        families.append(pytest.param(second_order, id=f"siblings-{'single' if single_root else 'multi'}-root"))
    return families


def _largest(inputs: tuple[Floats, ...]) -> float:
    """The largest score among the inputs."""
    return max(float(np.abs(array[np.isfinite(array)]).max(initial=0.0)) for array in inputs)


def _rounding(inputs: tuple[Floats, ...]) -> float:
    """What a probability loses when it is a difference of logarithms of sums of so large scores."""
    return 16 * float(np.finfo(float).eps) * _largest(inputs)


FAMILIES = _families()
every_family = pytest.mark.parametrize("family", FAMILIES)
sampling_families = pytest.mark.parametrize("family", [case for case in FAMILIES if not case.id.startswith("siblings")])


@every_family
@given(data=st.data())
def test_log_partition_and_marginals(family: Family, data: st.DataObject) -> None:
    inputs = data.draw(family.inputs(True))
    distribution, reference = family.build(*inputs), family.enumerate(*inputs)
    marginals = distribution.marginals
    expected = reference.marginals(inputs[0].shape, family.parts).astype(float)
    assert distribution.log_partition == pytest.approx(reference.log_partition, rel=1e-12, abs=TOLERANCE)
    assert marginals.shape == inputs[0].shape
    np.testing.assert_allclose(marginals, expected, rtol=0, atol=TOLERANCE)
    columns = marginals.sum(axis=tuple(axis for axis in range(marginals.ndim) if axis != 1))
    np.testing.assert_allclose(columns[1:], 1.0, rtol=0, atol=1e-12 + _rounding(inputs))
    assert (marginals >= 0).all()
    assert columns[0] == 0


@every_family
@given(data=st.data())
def test_argmax(family: Family, data: st.DataObject) -> None:
    inputs = data.draw(family.inputs(True))
    distribution, reference = family.build(*inputs), family.enumerate(*inputs)
    best = family.outcome(distribution.argmax())
    assert family.in_class(family.heads(best))
    scale = max(np.abs(scores[np.isfinite(scores)]).max(initial=1.0) for scores in inputs)
    assert reference.max - reference.score_of[best] <= Fraction(1e-14 * scale)
    assert distribution.max == pytest.approx(float(reference.max), rel=1e-13, abs=1e-12)


@every_family
@settings(max_examples=15)
@given(data=st.data())
def test_log_prob(family: Family, data: st.DataObject) -> None:
    inputs = data.draw(family.inputs(True))
    distribution, reference = family.build(*inputs), family.enumerate(*inputs)
    got = {o: float(distribution.log_prob(*family.arguments(o))) for o in reference}
    for outcome, log_p in got.items():
        expected = reference.log_probability(outcome)
        assert log_p == pytest.approx(expected, rel=1e-12, abs=TOLERANCE)
    assert math.fsum(map(math.exp, got.values())) == pytest.approx(1.0, rel=0, abs=TOLERANCE)


@every_family
@given(data=st.data())
def test_entropy(family: Family, data: st.DataObject) -> None:
    inputs = data.draw(family.inputs(True))
    distribution, reference = family.build(*inputs), family.enumerate(*inputs)
    lost = _rounding(inputs) * max(1.0, _largest(inputs))  # a score times the probability it is weighted with
    assert distribution.entropy == pytest.approx(reference.entropy, rel=0, abs=TOLERANCE + lost)


@sampling_families
@settings(max_examples=10)
@given(data=st.data())
def test_samples_are_possible_trees(family: Family, data: st.DataObject) -> None:
    inputs = data.draw(family.inputs(True))
    drawn = family.build(*inputs).sample(7, rng=0)
    reference = family.enumerate(*inputs)
    rows = list(zip(*drawn, strict=True)) if family.labelled else list(drawn)
    assert len(rows) == 7
    assert all(family.outcome(row) in reference.score_of for row in rows)


@every_family
@settings(max_examples=40)
@given(data=st.data())
def test_no_tree_error_exactly_when_there_is_no_tree(family: Family, data: st.DataObject) -> None:
    inputs = data.draw(family.inputs(False))
    n = len(inputs[0]) - 1
    quantities: list[Callable[[Any], Any]] = [
        lambda d: d.log_partition,
        lambda d: d.marginals,
        lambda d: d.argmax(),
        lambda d: d.max,
        lambda d: d.entropy,
    ]
    if hasattr(family.build.func, "sample"):
        quantities.append(lambda d: d.sample(1, rng=0))
    possible = len(family.enumerate(*inputs)) > 0
    for quantity in quantities:
        if possible:
            quantity(family.build(*inputs))
        else:
            with pytest.raises(NoTreeError) as caught:
                quantity(family.build(*inputs))
            # forbidden pairs of siblings are no single word's fault
            assert caught.value.words or family.build.func is SiblingDistribution
            assert set(caught.value.words) <= set(range(1, n + 1))


@every_family
@settings(max_examples=15)
@given(data=st.data(), constant=st.sampled_from([-250.0, -1.5, 0.75, 1000.0]))
def test_a_constant_on_a_column_changes_the_log_partition_only(
    family: Family, data: st.DataObject, constant: float
) -> None:
    inputs = data.draw(family.inputs(True))
    column = data.draw(st.integers(1, len(inputs[0]) - 1))
    shifted = inputs[0].copy()
    shifted[:, column] += constant
    before, after = family.build(*inputs), family.build(shifted, *inputs[1:])
    assert after.log_partition == pytest.approx(before.log_partition + constant, rel=1e-12, abs=TOLERANCE)
    np.testing.assert_allclose(after.marginals, before.marginals, rtol=0, atol=TOLERANCE)


@every_family
def test_the_empty_sentence_has_one_tree(family: Family) -> None:
    shapes = {True: [(1, 1, 3)], False: [(1, 1)]}[family.labelled]
    if family.build.func is SiblingDistribution:
        shapes.append((1, 1, 1))
    distribution = family.build(*(np.full(shape, np.nan) for shape in shapes))
    assert distribution.log_partition == 0.0
    assert distribution.max == 0.0
    assert distribution.entropy == 0.0
    assert not distribution.marginals.any()
    empty = family.outcome(distribution.argmax())
    assert family.heads(empty) == (-1,)
    assert distribution.log_prob(*family.arguments(empty)) == 0.0


# ------------------------------------------------------------------------------------ what a prediction carries


def _of_batch(scores: Floats, trees: TreeClass) -> Distribution:
    return TreeDistribution.of_batch(as_batch(scores), trees)


def _with_known_marginals(scores: Floats, trees: TreeClass) -> Distribution:
    batch = as_batch(scores)
    return TreeDistribution.of_batch(batch, trees, arc_marginals(batch, trees, SERIAL))


@pytest.mark.parametrize("flags", TREE_CLASSES)
@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda scores, trees: TreeDistribution(scores, **trees._asdict()), id="scores"),
        pytest.param(_of_batch, id="batch"),
        pytest.param(_with_known_marginals, id="known-marginals"),
    ],
)
@given(scores=score_matrices(max_words=4))
def test_a_distribution_of_arc_scores(
    build: Callable[[Floats, TreeClass], Distribution], flags: dict[str, bool], scores: Floats
) -> None:
    trees = TreeClass(**flags)
    if len(exact.tree_distribution(scores, **flags)):
        check_distribution(build(scores, trees), len(scores) - 1, trees, rounding=_rounding((scores,)))


@pytest.mark.parametrize("flags", TREE_CLASSES)
def test_known_marginals_are_not_computed_again(flags: dict[str, bool]) -> None:
    """They are returned as they are, with the log Z they came with."""
    scores = np.random.default_rng(3).normal(size=(6, 6))
    known = np.array([1.25]), np.random.default_rng(4).random((1, 6, 6))
    distribution = TreeDistribution.of_batch(as_batch(scores), TreeClass(**flags), known)
    np.testing.assert_array_equal(distribution.marginals, known[1][0])
    assert distribution.log_partition == 1.25
    np.testing.assert_array_equal(distribution.argmax(), TreeDistribution(scores, **flags).argmax())
    assert distribution.trees == TreeClass(**flags)
