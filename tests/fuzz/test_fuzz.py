"""A few seconds of every target, always the same draws; and the harness itself, which must see what goes wrong."""

from __future__ import annotations

import os
import signal
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from headway.errors import TreebankError
from tests.fuzz.harness import Draw, Limits, fuzz
from tests.fuzz.targets import TARGETS

# About a minute in all; the rest of the time is for starting workers.
DRAWS = {"treebanks": 3000, "texts": 150, "coreference": 1500, "settings": 3000, "commands": 60, "certificates": 200}

NEURAL = ("torch", "onnx", "onnxruntime", "tokenizers", "safetensors")


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_but_answers_and_named_errors(target):
    for package in NEURAL if target in ("networks", "encoders") else ():
        pytest.importorskip(package, reason="neural models need it")
    tally = fuzz(TARGETS[target], seed=0, draws=DRAWS.get(target, 100))
    assert tally.findings == []
    assert tally.accepted
    assert tally.draws == DRAWS.get(target, 100)


def misbehaving(folder: Path) -> Draw:
    """Draws that each do something else that they should not, and two something that they may."""

    def hang(rng: np.random.Generator) -> None:
        while True:
            pass

    def warn(rng: np.random.Generator) -> None:
        warnings.warn("careful", RuntimeWarning, stacklevel=1)

    def fill(rng: np.random.Generator) -> None:
        np.ones(1 << 28)  # of eight bytes each

    def crash(rng: np.random.Generator) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)

    def refuse(rng: np.random.Generator) -> None:
        raise TreebankError("no")

    draws = [lambda rng: "fine", refuse, warn, hang, fill, crash, lambda rng: [][1], lambda rng: time.sleep(99)]
    # The generator of draw `seed` is all that a draw knows; its first number tells which it is.
    kinds = {int(np.random.default_rng(seed).integers(1 << 60)): kind for seed, kind in enumerate(draws)}
    return lambda rng: kinds[int(rng.integers(1 << 60))](rng)


def test_harness_names_what_goes_wrong_and_goes_on():
    tally = fuzz("test_fuzz:misbehaving", seed=0, draws=8, limits=Limits(seconds=1, stalled=4, memory=1 << 30))
    assert tally.draws == 8
    assert tally.accepted == {"fine": 1}
    assert tally.refused == {"TreebankError": 1}
    causes = {finding.seed: finding.cause for finding in tally.findings}
    assert causes[2].startswith("RuntimeWarning in test_fuzz.py")
    assert causes[3] == "ran over 1 s"
    assert "MemoryError" in causes[4]
    assert causes[5] == "died of SIGSEGV"
    assert causes[6].startswith("IndexError in test_fuzz.py")
    assert causes[7] == "no answer in 4 s"


def test_a_draw_depends_on_its_seed_alone():
    whole = fuzz(TARGETS["treebanks"], seed=0, draws=40)
    parts = [fuzz(TARGETS["treebanks"], seed=seed, draws=20) for seed in (0, 20)]
    assert whole.accepted == parts[0].accepted + parts[1].accepted
    assert whole.refused == parts[0].refused + parts[1].refused
