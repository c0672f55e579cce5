"""Ways to write the same kernels: log Z and marginals, one word on the root, 4096 sentences of 32 words, float32.

    commit=$(git rev-parse --short HEAD)
    python benchmarks/gpu_candidates.py --commit $commit --output benchmarks/results/gpu_candidates.json

    CUDA C++     what `headway.torch` uses on NVIDIA GPUs: compiled at run time, tables in registers
    Triton       what it uses on other GPUs; "alone" is the kernel without a look, by the host, at what it has left over
    numba.cuda   log Z alone, the obvious way: one warp a sentence, each lane its word's row in a local array, the
                 pivot's row by shuffles
    plain        torch operations, what GPUs with neither CUDA C++ nor Triton use
    a copy       of the scores, which is what moving them through memory takes

Each is compared with float64 on the CPU, and then timed as in `gpu.py`. What cannot be imported or compiled is shown as
missing, with the reason.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from gpu import REPEATS, Row, draw, machine, microseconds
from torch import Tensor

from headway.arrays import TreeClass
from headway.torch.numba_kernels import NumbaKernels
from headway.torch.plain_kernels import PlainKernels

BATCH, WORDS = 4096, 32
CHECKED = 256  # sentences
TREES = TreeClass(projective=False, single_root=True)
PROJECTIVE_TREES = TreeClass(projective=True, single_root=True)
LOG_Z, BOTH, PROJECTIVE, BEST = QUANTITIES = (
    "log Z", "log Z + marginals", "log Z + marginals, projective", "best tree, projective",
)  # fmt: skip
Results = tuple[Tensor, ...]
Run = Callable[[], Results]
Candidate = Callable[[Tensor, Tensor], dict[str, Run]]


def quantities(kernels: Any, scores: Tensor, lengths: Tensor) -> dict[str, Run]:
    """What our own kernels compute."""
    return {
        LOG_Z: lambda: (kernels.log_partition(scores, lengths, TREES),),
        BOTH: lambda: kernels.marginals(scores, lengths, TREES),
        PROJECTIVE: lambda: kernels.marginals(scores, lengths, PROJECTIVE_TREES),
        BEST: lambda: (kernels.argmax(scores, lengths, PROJECTIVE_TREES),),
    }


def cuda_cpp(scores: Tensor, lengths: Tensor) -> dict[str, Run]:
    """Our kernels on NVIDIA GPUs."""
    return quantities(importlib.import_module("headway.torch.cuda.cuda_kernels").kernels_on(0), scores, lengths)


def in_triton(scores: Tensor, lengths: Tensor) -> dict[str, Run]:
    """Our kernels on other GPUs."""
    return quantities(importlib.import_module("headway.torch.triton.triton_kernels").TritonKernels(), scores, lengths)


def plain(scores: Tensor, lengths: Tensor) -> dict[str, Run]:
    """What serves where there is neither; it reads the best trees off on the CPU, which is not measured."""
    runs = quantities(PlainKernels(), scores, lengths)
    return {what: runs[what] for what in (BOTH, PROJECTIVE)}


def in_triton_alone(scores: Tensor, lengths: Tensor, warps: int) -> dict[str, Run]:
    """The first of the kernels that they launch, with so many warps a sentence."""
    walks = importlib.import_module("headway.torch.triton.escape_walks")

    def run(function: Callable[..., Results], count: int) -> Results:
        with mock.patch.dict(walks.WARPS, {WORDS: warps}):
            return function(scores, lengths, TREES.single_root)[:count]

    return {LOG_Z: partial(run, walks.log_partition, 1), BOTH: partial(run, walks.marginals, 2)}


def numba_cuda(scores: Tensor, lengths: Tensor) -> dict[str, Run]:
    """One warp a sentence, in Python; all sentences have WORDS words."""
    numba: Any = importlib.import_module("numba")
    cuda: Any = importlib.import_module("numba.cuda")
    one, four = numba.float32(1.0), 4  # sentences of a block

    @cuda.jit(fastmath=True)  # type: ignore[untyped-decorator]
    def eliminate(scores: Any, log_z: Any) -> None:
        b, lane = cuda.blockIdx.x * four + cuda.threadIdx.y, cuda.threadIdx.x
        row = cuda.local.array(WORDS, numba.float32)
        every = 0xFFFFFFFF
        top = -numba.float32(math.inf)
        for h in range(WORDS):
            row[h] = scores[b, h + 1, lane + 1] if h != lane else -numba.float32(math.inf)
            top = max(top, row[h])
        for h in range(WORDS):
            row[h] = math.exp(row[h] - top)
        root = math.exp(scores[b, 0, lane + 1] - top)
        total = top
        for step in (16, 8, 4, 2, 1):
            total += cuda.shfl_xor_sync(every, total, step)
        logs = numba.float64(total)
        product = one
        for turn in range(WORDS - 1):
            k = WORDS - 1 - turn
            own = numba.float32(0.0)
            for j in range(WORDS):
                own += row[j] if j < k else numba.float32(0.0)
            d = cuda.shfl_sync(every, own, k)
            share = row[k] / d
            for j in range(WORDS):
                row[j] += share * cuda.shfl_sync(every, row[j], k)
            root += share * cuda.shfl_sync(every, root, k)
            product = product * d
            if turn % 2:  # d is at least exp(-37)
                logs += math.log(numba.float64(product))
                product = one
        if lane == 0:
            log_z[b] = logs + math.log(numba.float64(product)) + math.log(numba.float64(root))

    log_z = scores.new_empty(len(scores))
    given, found = cuda.as_cuda_array(scores), cuda.as_cuda_array(log_z)
    launch = eliminate[len(scores) // four, (WORDS, four)]

    def run() -> Results:
        launch(given, found)
        return (log_z,)

    return {LOG_Z: run}


def a_copy(scores: Tensor, lengths: Tensor) -> dict[str, Run]:
    """The scores from one place to another; computes nothing."""
    place = torch.empty_like(scores)

    def run() -> Results:
        place.copy_(scores)
        return ()

    return {LOG_Z: run, BOTH: run}


CANDIDATES: dict[str, Candidate] = {
    "CUDA C++": cuda_cpp, "Triton": in_triton,
    **{f"Triton alone, warps: {warps}": partial(in_triton_alone, warps=warps) for warps in (1, 2, 4)},
    "numba.cuda": numba_cuda, "plain operations": plain, "a copy": a_copy,
}  # fmt: skip
FEW = {"plain operations": 5}  # repeats


def rows() -> Iterator[Row]:
    """Time and error of each candidate for each quantity."""
    scores, lengths = draw(BATCH, WORDS)
    exact = quantities(NumbaKernels(), scores[:CHECKED].cpu().double(), lengths[:CHECKED].cpu())
    for name, candidate in CANDIDATES.items():
        try:
            runs = candidate(scores, lengths)
        except Exception as error:  # whatever a compiler or a driver raises, the others are still measured
            yield {"candidate": name, "missing": f"{type(error).__name__}: {error}"}
            continue
        for what, run in runs.items():
            row = {"what": what, "candidate": name}
            try:
                time = microseconds(run, FEW.get(name, REPEATS))
                yield row | {"errors": errors(run(), exact[what]()), "us": time}
            except Exception as error:
                yield row | {"missing": f"{type(error).__name__}: {error}"}


def errors(found: Results, exact: Results) -> list[float]:
    """The largest error of log Z or heads, relative, and of marginals; an error in itself where these are wrong."""
    off = [(mine[:CHECKED].cpu().double() - true).abs() for mine, true in zip(found, exact, strict=False)]
    if off:
        off[0] = off[0] / exact[0].abs().clamp(min=1)
    result = [float(difference.max()) for difference in off]
    if not all(error <= 1e-5 for error in result):
        raise ArithmeticError(f"wrong by {result}")
    return result


def table(found: list[Row]) -> str:
    """Candidates by quantities, in microseconds."""
    lines = [" " * 24 + "".join(f"{what:>32}" for what in QUANTITIES)]
    for name in CANDIDATES:
        times = {row["what"]: row["us"] for row in found if row["candidate"] == name and "us" in row}
        cells = [f"{times[what]:32.1f}" if what in times else f"{'-':>32}" for what in QUANTITIES]
        lines.append(f"{name:<24}" + "".join(cells))
    return "\n".join(lines)


def package(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="a JSON file of the results")
    parser.add_argument("--commit", default="unknown", help="what to call the code that is measured")
    options = parser.parse_args()
    found = []
    for row in rows():
        print(json.dumps(row), flush=True)
        found.append(row)
    print(table(found))
    packages = {name: package(name) for name in ("triton", "numba", "numba-cuda", "cuda-bindings")}
    result = {"machine": machine(options.commit) | packages, "B": BATCH, "n": WORDS, "rows": found}
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
