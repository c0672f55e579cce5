"""Sentences in groups of like length."""

from __future__ import annotations

import numpy as np
import pytest

from headway.inference.batch import groups_by_length


@pytest.mark.parametrize("cells", [1, 100, 10_000])
def test_groups_are_small_and_of_like_length(cells: int) -> None:
    lengths = np.array([5, 1, 30, 5, 0, 2, 5])
    found = list(groups_by_length(lengths, cells))
    assert sorted(np.concatenate(found).tolist()) == list(range(7))
    assert np.all(np.diff(lengths[np.concatenate(found)]) >= 0)
    assert all(len(g) == 1 or len(g) * (lengths[g].max() + 1) ** 2 <= cells for g in found)
    assert len(found) == {1: 7, 10_000: 1}.get(cells, len(found))
    assert list(groups_by_length(np.zeros(0, np.int64), cells)) == []
