"""The contract of `headway.inference`'s distributions, met by those of `headway.torch` with every implementation."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

from headway.arrays import TreeClass
from headway.torch import LabelledTreeDistribution, TreeDistribution
from tests.inference import exact
from tests.inference import test_contract as contract
from tests.inference.distribution_contract import check_distribution
from tests.inference.strategies import TREE_CLASSES, Floats, score_matrices
from tests.torch.each_kernel import EACH, AsArrays


def _families() -> list[Any]:
    families = []
    for case in contract.FAMILIES:
        (family,) = case.values
        if case.id.startswith("siblings"):
            continue
        kind = LabelledTreeDistribution if family.labelled else TreeDistribution
        for kernels in EACH:
            build = partial(AsArrays, kind=kind, kernels=kernels.values[0], **family.build.keywords)
            families.append(pytest.param(replace(family, build=build), id=f"{case.id}-{kernels.id}"))
    return families


every_family = pytest.mark.parametrize("family", _families())


@every_family
@settings(max_examples=25)
@given(data=st.data())
def test_log_partition_and_marginals(family: contract.Family, data: st.DataObject) -> None:
    contract.test_log_partition_and_marginals.hypothesis.inner_test(family, data)


@every_family
@settings(max_examples=25)
@given(data=st.data())
def test_argmax(family: contract.Family, data: st.DataObject) -> None:
    contract.test_argmax.hypothesis.inner_test(family, data)


@every_family
@settings(max_examples=10)
@given(data=st.data())
def test_log_prob(family: contract.Family, data: st.DataObject) -> None:
    contract.test_log_prob.hypothesis.inner_test(family, data)


@every_family
@settings(max_examples=25)
@given(data=st.data())
def test_entropy(family: contract.Family, data: st.DataObject) -> None:
    contract.test_entropy.hypothesis.inner_test(family, data)


@every_family
@settings(max_examples=10)
@given(data=st.data())
def test_samples_are_possible_trees(family: contract.Family, data: st.DataObject) -> None:
    contract.test_samples_are_possible_trees.hypothesis.inner_test(family, data)


@every_family
@settings(max_examples=25)
@given(data=st.data())
def test_no_tree_error_exactly_when_there_is_no_tree(family: contract.Family, data: st.DataObject) -> None:
    contract.test_no_tree_error_exactly_when_there_is_no_tree.hypothesis.inner_test(family, data)


@every_family
def test_the_empty_sentence_has_one_tree(family: contract.Family) -> None:
    contract.test_the_empty_sentence_has_one_tree(family)


@pytest.mark.parametrize("kernels", EACH)
@pytest.mark.parametrize("flags", TREE_CLASSES)
@settings(max_examples=8)
@given(scores=score_matrices(max_words=4))
def test_what_a_prediction_carries(flags: dict[str, bool], kernels: Any, scores: Floats) -> None:
    if len(exact.tree_distribution(scores, **flags)):
        distribution = AsArrays(scores, TreeDistribution, kernels, **flags)
        rounding = 16 * float(np.finfo(float).eps) * float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0))
        check_distribution(distribution, len(scores) - 1, TreeClass(**flags), rounding=rounding)
