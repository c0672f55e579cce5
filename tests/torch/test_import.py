"""`headway.torch` needs torch, and says so; it does without Numba."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("torch")


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_without_numba() -> None:
    code = """
import sys
sys.modules["numba"] = None
import torch, headway.torch as ht
from headway.torch.kernels import kernels_for
scores = torch.zeros(4, 4, requires_grad=True)
for projective in (False, True):
    d = ht.TreeDistribution(scores, projective=projective)
    d.nll(torch.tensor([-1, 0, 1, 2])).backward()
    print(type(kernels_for(scores)).__name__, round(d.log_partition.exp().item()), d.argmax().shape, d.sample(3).shape)
try:
    ht.TreeDistribution(torch.full((3, 3), -torch.inf)).log_partition
except Exception as error:
    print(error)
print(any(name.startswith(("numba", "headway.inference")) and sys.modules[name] for name in sys.modules))
"""
    assert run(code).splitlines() == [
        "PlainKernels 9 torch.Size([4]) torch.Size([3, 4])",
        "PlainKernels 7 torch.Size([4]) torch.Size([3, 4])",
        "no tree exists: every head of words 1 and 2 is forbidden",
        "False",
    ]


def test_importing_loads_no_numba() -> None:
    assert run("import sys, headway.torch; print('numba' in sys.modules)") == "False\n"


def test_without_torch() -> None:
    code = """
import sys
sys.modules["torch"] = None
from headway.errors import MissingExtraError
try:
    import headway.torch
except MissingExtraError as error:
    print(error)
"""
    assert run(code) == "headway.torch needs torch; install it with: pip install 'headway[torch]'\n"
