"""The Triton kernels in Triton's interpreter: `in_triton.py`, in a process of its own.

Whether kernels are compiled or interpreted is settled when Triton is imported, and other tests import it too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from headway.torch import kernels as choice
from headway.torch.plain_kernels import PlainKernels


def test_in_the_interpreter() -> None:
    pytest.importorskip("triton", reason="Triton is not installed here")
    tests = Path(__file__).with_name("in_triton.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", tests]
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTEST_ADDOPTS": ""}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-10_000:] + ran.stderr[-2_000:]


def test_who_serves_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA kernels, or else Triton's, or else plain operations."""
    cuda, triton = object(), object()
    served: dict[str, Any] = {"cuda": cuda, "triton": triton}
    monkeypatch.setattr(choice, "_cuda_kernels", lambda device: served["cuda"] if device.type == "cuda" else None)
    monkeypatch.setattr(choice, "_triton_kernels", lambda device: served["triton"])
    nvidia, intel, none = (SimpleNamespace(device=torch.device(name)) for name in ("cuda:0", "xpu:0", "meta"))
    assert choice.kernels_for(nvidia) is cuda
    assert choice.kernels_for(intel) is triton
    served["cuda"] = None
    assert choice.kernels_for(nvidia) is triton
    served["triton"] = None
    for scores in (nvidia, intel, none):
        assert isinstance(choice.kernels_for(scores), PlainKernels)


@pytest.mark.skipif(torch.cuda.is_available(), reason="Triton works here")
def test_where_triton_cannot_compile() -> None:
    module = pytest.importorskip("headway.torch.triton.triton_kernels", exc_type=ImportError)
    assert module.kernels_on(torch.device("cpu")) is None
