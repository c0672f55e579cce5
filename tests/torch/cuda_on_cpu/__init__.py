"""Kernels of `headway.torch.cuda` compiled for the CPU by g++, with the emulator `cuda_on_cpu.h` for a GPU."""

from __future__ import annotations

import atexit
import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headway
from headway.inference import TreeDistribution

_EMULATOR = Path(__file__).parent
_SOURCES = Path(headway.__file__).parent / "torch" / "cuda"


@cache
def compiled(source_file: str, wrappers: str) -> ctypes.CDLL:
    """The library of a source file of `headway.torch.cuda` and of `wrappers`: C++ functions, extern "C", that launch.

    Compiled once a session. The test that asks for it is skipped where there is no g++.
    """
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed, so CUDA kernels cannot be run on the CPU")
    folder = Path(tempfile.mkdtemp(prefix="headway-cuda-on-cpu-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program, library = folder / "kernels.cpp", folder / "kernels.so"
    program.write_text(f'#include "cuda_on_cpu.h"\n#include "{source_file}"\n{wrappers}', encoding="utf-8")
    command = ["g++", "-std=c++20", "-O2", "-shared", "-fPIC", f"-I{_EMULATOR}", f"-I{_SOURCES}"]
    done = subprocess.run([*command, str(program), "-o", str(library)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(library))


def pointer(array: Any) -> Any:
    return None if array is None else array.ctypes.data_as(ctypes.c_void_p)


def padded(sentences: list[Any], nodes: int, dtype: Any) -> tuple[Any, Any]:
    """A batch of matrices (n+1, n+1) with nan wherever no arc is, and its lengths."""
    scores = np.full((len(sentences), nodes, nodes), np.nan, dtype)
    for b, own in enumerate(sentences):
        size = len(own)
        scores[b, :size, 1:size] = own[:, 1:]
        scores[b, np.arange(size), np.arange(size)] = np.nan
    return scores, np.array([len(own) - 1 for own in sentences])


def random_scores(rng: Any, n: int, scale: float, dtype: Any = np.float32) -> Any:
    """A matrix (n+1, n+1) in float64 that `dtype` holds."""
    return (scale * rng.normal(size=(n + 1, n + 1))).astype(dtype).astype(np.float64)


def check_sums(scores: Any, multi_root: bool, log_z: Any, mu: Any, tolerance: float) -> None:
    """A non-projective sentence's log Z and padded marginals are those of `headway.inference`."""
    size = len(scores)
    d = TreeDistribution(np.where(np.eye(size), 0.0, scores), single_root=not multi_root)
    np.testing.assert_allclose(log_z, d.log_partition, rtol=tolerance / 4, atol=tolerance / 4)
    np.testing.assert_allclose(mu[:size, :size], d.marginals, rtol=0, atol=tolerance)
    assert not mu[size:].any()
    assert not mu[:, size:].any()
