"""The tables of all trees and their parts agree with the library's specification and with loops over words."""

from __future__ import annotations

import numpy as np
import pytest

from headway.inference.brute_force import all_trees
from tests.fuzz import certificates
from tests.fuzz.enumeration import best_score, parts_of, trees
from tests.fuzz.harness import run_one
from tests.inference import parts_oracle


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("single_root", [False, True])
def test_trees_and_their_best(n, projective, single_root):
    mine = trees(n, projective, single_root)
    np.testing.assert_array_equal(mine[:, 1:], all_trees(n, projective=projective, single_root=single_root)[:, 1:])
    rng = np.random.default_rng(n)
    dense = {kind: rng.normal(size=(n + 1,) * order) for kind, order in certificates.ORDERS.items()}
    score, heads = best_score(dense, projective, single_root)
    expected, tree = parts_oracle.best(dense, projective=projective, single_root=single_root)
    assert score == pytest.approx(expected, abs=1e-12)
    assert (-1, *heads[1:].tolist()) == tree
    for kind, cells in parts_oracle.parts_of(tree).items():
        shape = (n + 1,) * certificates.ORDERS[kind]
        assert sorted(parts_of(heads, kind)) == sorted(int(np.ravel_multi_index(cell, shape)) for cell in cells)


def test_a_false_certificate_is_found(tmp_path, monkeypatch):
    """A decoder that stops early and calls its tree certified does not pass."""
    honest = certificates.decode

    def boastful(parts, **options):
        found = honest(parts, **{**options, "exact": False}, iterations=1)
        return type(found)(found.heads, found.score, found.score, certificates.Status.CERTIFIED, 1, found.trace)

    monkeypatch.setattr(certificates, "SIZES", (3, 4))
    monkeypatch.setattr(certificates, "SHARES", (0.5, 0.5))
    draw = certificates.certificates(tmp_path)
    monkeypatch.setattr(certificates, "decode", boastful)
    kinds = [run_one(draw, seed) for seed in range(50)]
    assert any(kind == "finding" and "below the optimum" in cause for kind, cause in kinds)
