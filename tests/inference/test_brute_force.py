"""The executable specification: `all_trees` lists every tree of a class, once, in order."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headway.errors import HeadwayError
from headway.inference import brute_force

from .exact import in_class, trees
from .strategies import TREE_CLASSES


@pytest.mark.parametrize("flags", TREE_CLASSES)
@pytest.mark.parametrize("n", range(6))
def test_equals_the_naive_enumeration(n: int, flags: dict[str, bool]) -> None:
    listed = brute_force.all_trees(n, **flags)
    assert listed.dtype == np.int64
    assert listed.shape == (len(listed), n + 1)
    assert [tuple(heads) for heads in listed.tolist()] == sorted(trees(n, **flags))


@pytest.mark.parametrize("n", range(1, 7))
def test_closed_form_counts(n: int) -> None:
    def count(projective: bool, single_root: bool) -> int:
        return len(brute_force.all_trees(n, projective=projective, single_root=single_root))

    assert count(False, False) == (n + 1) ** (n - 1)
    assert count(False, True) == n ** (n - 1)
    assert count(True, False) == math.comb(3 * n, n) // (2 * n + 1)
    assert count(True, True) == math.comb(3 * n - 2, n - 1) // n


def test_seven_words() -> None:
    flags = {"projective": True, "single_root": True}
    listed = brute_force.all_trees(7, **flags)
    assert len(np.unique(listed, axis=0)) == len(listed) == math.comb(19, 6) // 7
    assert all(in_class(heads, **flags) for heads in listed.tolist())


def test_eight_words_are_too_many() -> None:
    with pytest.raises(HeadwayError, match="7"):
        brute_force.all_trees(8, projective=False, single_root=False)
