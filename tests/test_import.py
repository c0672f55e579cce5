"""`import headway` stays light, and the compilation of kernels is announced once, then cached."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"numba", "llvmlite", "scipy", "torch"}


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )


LIGHT = ["headway", "headway.errors", "headway.treebank", "headway.evaluation", "headway.archive", "headway.cli"]


@pytest.mark.parametrize("module", LIGHT)
def test_import_loads_nothing_heavy(module: str) -> None:
    loaded = run(f"import {module}, sys; print(*sys.modules)").stdout.split()
    assert module in loaded
    assert not HEAVY & set(loaded)


def test_first_use_loads_what_it_needs() -> None:
    code = (
        "import headway as hw, sys; heads = hw.TreeDistribution([[0, 1], [0, 0]]).argmax(); "
        "print(heads, 'numba' in sys.modules)"
    )
    assert run(code, HEADWAY_QUIET="1").stdout == "[-1  0] True\n"


def test_public_names_exist() -> None:
    code = (
        "import headway as hw; names = sorted(hw.__all__); "
        "[getattr(hw, name) for name in names]; assert set(names) <= set(dir(hw)); print(*names)"
    )
    names = set(run(code).stdout.split())
    assert names >= {
        "HeadwayError",
        "LabelledTreeDistribution",
        "NoTreeError",
        "Parser",
        "Sentence",
        "SiblingDistribution",
        "TreeDistribution",
        "evaluate",
        "forbid",
        "from_modifier_head",
        "from_root_on_diagonal",
        "read_treebank",
        "require",
        "write_treebank",
    }


def test_an_unknown_name_is_an_attribute_error() -> None:
    code = "import headway\ntry:\n headway.nonsense\nexcept AttributeError as e:\n print(e)"
    assert "nonsense" in run(code).stdout


def test_compilation_is_announced_once_and_cached(tmp_path: Path) -> None:
    soon = "from headway.inference import jit; jit._announcement._left = 0.01;"  # compiling always takes longer
    code = f"{soon} import headway as hw; d = hw.TreeDistribution([[0, 1], [0, 0]]); d.argmax(); d.score(d.argmax())"
    first = run(code, NUMBA_CACHE_DIR=str(tmp_path), HEADWAY_QUIET="")
    assert first.stderr.count("compiling") == 1
    assert first.stdout == ""
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path), HEADWAY_QUIET="").stderr == ""


def test_a_second_process_compiles_nothing() -> None:
    code = """
import numpy as np, headway as hw
scores = np.zeros((4, 4))
for projective in (False, True):
    d = hw.TreeDistribution(scores, projective=projective)
    d.log_partition, d.marginals, d.argmax(), d.mbr(), d.max, d.entropy, d.kbest(2), d.pair_marginals()
    d.sample(2, rng=0), d.sample_without_replacement(2, rng=0), d.covariance_with_arcs(scores)
hw.LabelledTreeDistribution(np.zeros((4, 4, 2))).marginals
second_order = hw.SiblingDistribution(scores, np.zeros((4, 4, 4)))
second_order.marginals, second_order.max
"""
    run(code, HEADWAY_QUIET="1")
    assert run(code, HEADWAY_QUIET="").stderr == ""
