"""`headway.torch` on a GPU: speed beside torch-struct, SuPar and torch.linalg, accuracy, hard cases, memory.

    python benchmarks/gpu.py --commit $(git rev-parse --short HEAD) --output benchmarks/results/gpu.json

Times are medians of 50 by CUDA events, all on one stream, with the launches queued behind a pause so that the host's
time is not part of them. Peers run in the same process, where they are installed; `supar.structs` is loaded without the
rest of SuPar, which needs much more. Scores are drawn from a normal distribution unless a row says otherwise.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

import headway
from headway.torch import TreeDistribution

SHAPES = ((4096, 32), (1024, 64), (256, 128))
LONG, HOST = (64, 256), (8, 8)
REPEATS, WARM = 50, 5
PAUSE, LONG_PAUSE = 1_000_000, 10_000_000  # cycles: longer than the host takes to queue a call
SUPAR_MASK = -1e4
HARD, HARD_BATCH, HARD_WORDS = 1_000_000, 4096, 32
Row = dict[str, Any]


def microseconds(run: Callable[[], Any], repeats: int = REPEATS, pause: int = PAUSE) -> float:
    """Median time of a call on the GPU."""
    for _ in range(min(WARM, repeats)):
        run()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(pause)
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return float(median(times))


def microseconds_in_a_row(run: Callable[[], Any], repeats: int = 200) -> float:
    """Mean time of calls in a row, in which the host is the slower of the two if this exceeds the GPU's time."""
    run()
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(repeats):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - started) / repeats * 1e6


def draw(batch: int, n: int, scale: float = 1.0, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Scores and lengths."""
    generator = torch.Generator("cuda").manual_seed(seed)
    scores = scale * torch.randn(batch, n + 1, n + 1, device="cuda", generator=generator)
    return scores, torch.full((batch,), n, device="cuda")


def headway_sums(scores: Tensor, lengths: Tensor, **trees: bool) -> tuple[Tensor, Tensor]:
    d = TreeDistribution(scores, lengths, validate_args=False, **trees)
    return d.marginals, d.log_partition


# ------------------------------------------------------------------------------------------------------ the others


def torch_struct() -> ModuleType | None:
    """Its projective class needs scores that require gradients."""
    return importlib.import_module("torch_struct") if find_spec("torch_struct") else None


@cache
def supar_structs() -> ModuleType | None:
    spec = find_spec("supar")
    if spec is None or not spec.submodule_search_locations:
        return None
    for name in ("supar", "supar.utils"):
        stub = ModuleType(name)
        stub.__path__ = [str(Path(spec.submodule_search_locations[0], *name.split(".")[1:]))]
        sys.modules[name] = stub
    return importlib.import_module("supar.structs")


def root_on_diagonal(scores: Tensor) -> Tensor:
    words = scores[:, 1:, 1:].clone()
    words.diagonal(dim1=1, dim2=2).copy_(scores[:, 0, 1:])
    return words


def torch_struct_sums(library: ModuleType, scores: Tensor, projective: bool) -> Callable[[], tuple[Tensor, Tensor]]:
    kind = library.DependencyCRF if projective else library.NonProjectiveDependencyCRF
    given = root_on_diagonal(scores).requires_grad_(projective)

    def run() -> tuple[Tensor, Tensor]:
        trees = kind(given, multiroot=False)
        return trees.marginals, trees.partition

    return run


def supar_sums(library: ModuleType, scores: Tensor, projective: bool) -> Callable[[], tuple[Tensor, Tensor]]:
    kind = library.DependencyCRF if projective else library.MatrixTree
    given = scores.transpose(1, 2).contiguous()
    given.diagonal(dim1=1, dim2=2).fill_(SUPAR_MASK)

    def run() -> tuple[Tensor, Tensor]:
        trees = kind(given, multiroot=False)
        return trees.marginals, trees.log_partition

    return run


def linalg_sums(scores: Tensor) -> Callable[[], Any]:
    """slogdet and inverse of koo2007's matrix, which is made beforehand."""
    weights = scores[:, 1:, 1:].exp()
    weights.diagonal(dim1=1, dim2=2).zero_()
    matrix = torch.diag_embed(weights.sum(1)) - weights
    matrix[:, 0] = scores[:, 0, 1:].exp()
    return lambda: (torch.linalg.slogdet(matrix), torch.linalg.inv(matrix))


# ----------------------------------------------------------------------------------------------------------- rows


def speed() -> Iterator[Row]:
    """Sums, the best tree, and a training step, beside the others."""
    struct, supar = torch_struct(), supar_structs()
    for batch, n in (*SHAPES, LONG):
        scores, lengths = draw(batch, n)
        row: Row = {"what": "log Z + marginals, non-projective", "B": batch, "n": n}
        row["headway"] = microseconds(partial(headway_sums, scores, lengths))
        row["copy of the scores"] = microseconds(partial(torch.empty_like(scores).copy_, scores))
        row["torch.linalg"] = microseconds(linalg_sums(scores))
        if struct:
            row["torch-struct"] = microseconds(torch_struct_sums(struct, scores, False), 20)
        if supar:
            row["supar"] = microseconds(supar_sums(supar, scores, False), 20)
        yield row
    batch, n = SHAPES[0]
    scores, lengths = draw(batch, n)
    row = {"what": "log Z + marginals, projective", "B": batch, "n": n}
    row["headway"] = microseconds(lambda: headway_sums(scores, lengths, projective=True))
    if struct:
        row["torch-struct"] = microseconds(torch_struct_sums(struct, scores, True), 2)
    if supar:
        row["supar"] = microseconds(supar_sums(supar, scores, True), 5)
    yield row
    for what, changed in others(scores):
        yield {
            "what": f"log Z + marginals, {what}", "B": batch, "n": n,
            "headway": microseconds(partial(headway_sums, changed, lengths), 20),
            "projective": microseconds(partial(headway_sums, changed, lengths, projective=True), 20),
        }  # fmt: skip
    for projective in (False, True):
        yield best_tree(scores, lengths, projective)
        yield training_step(scores, lengths, projective)


def others(scores: Tensor) -> Iterator[tuple[str, Tensor]]:
    """What the first tier cannot hold."""
    masked = scores.masked_fill(torch.rand_like(scores) < 0.1, -torch.inf)
    masked[:, 0] = scores[:, 0]
    yield "a tenth of the arcs forbidden", masked
    yield "standard deviation 30", 30 * scores
    yield "standard deviation 100", 100 * scores


def best_tree(scores: Tensor, lengths: Tensor, projective: bool) -> Row:
    """The best trees on the GPU, beside the scores copied to the host and decoded there on all its cores."""
    from headway.inference import argmax

    kind = "projective" if projective else "non-projective"
    row: Row = {"what": f"argmax, {kind}", "B": len(scores), "n": scores.shape[1] - 1}
    d = TreeDistribution(scores, lengths, projective=projective, validate_args=False)
    row["headway"] = microseconds(lambda: torch.ops.headway.argmax(scores, lengths, projective, True))

    def on_host() -> Any:
        return argmax(scores.cpu().numpy(), projective=projective)

    row["copied to the host and decoded there"] = microseconds(on_host, 5)
    same = torch.from_numpy(on_host()).to("cuda") == d.argmax()
    row["same heads"] = float(same[:, 1:].double().mean())
    return row


def training_step(scores: Tensor, lengths: Tensor, projective: bool) -> Row:
    """Forward and backward of log Z inside torch.compile, over forward alone."""

    @torch.compile(fullgraph=True)
    def loss(scores: Tensor) -> Tensor:
        d = TreeDistribution(scores, lengths, projective=projective, validate_args=False)
        return d.log_partition.sum()

    given = scores.clone().requires_grad_()

    def step() -> None:
        given.grad = None
        loss(given).backward()

    forward, both = microseconds(lambda: loss(given), pause=LONG_PAUSE), microseconds(step, pause=LONG_PAUSE)
    kind = "projective" if projective else "non-projective"
    return {
        "what": f"training step of log Z in torch.compile, {kind}", "B": len(scores), "n": scores.shape[1] - 1,
        "forward": forward, "forward + backward": both, "ratio": both / forward,
        "forward + backward, calls in a row": microseconds_in_a_row(step),
    }  # fmt: skip


def host() -> Iterator[Row]:
    """Mean time of calls in a row on so few words that the GPU waits for the host. Plain sums are torch's own share."""
    batch, n = HOST
    scores, lengths = draw(batch, n)
    given, heads = scores.clone().requires_grad_(), torch.arange(n + 1, device="cuda").expand(batch, -1) - 1

    def distribution(scores: Tensor) -> TreeDistribution:
        return TreeDistribution(scores, lengths, validate_args=False)

    def step(loss: Callable[[Tensor], Tensor]) -> None:
        given.grad = None
        loss(given).backward()

    losses: dict[str, Callable[[Tensor], Tensor]] = {
        "a plain sum": lambda scores: scores.exp().sum(),
        "log Z": lambda scores: distribution(scores).log_partition.sum(),
        "nll": lambda scores: distribution(scores).nll(heads).sum(),
    }
    row: Row = {"what": "host", "B": batch, "n": n}
    row["log Z + marginals"] = microseconds_in_a_row(lambda: distribution(scores).marginals)
    row["argmax"] = microseconds_in_a_row(lambda: distribution(scores).argmax())
    for name, loss in losses.items():
        row[f"step of {name}"] = microseconds_in_a_row(partial(step, loss))
        row[f"step of {name} in torch.compile"] = microseconds_in_a_row(partial(step, torch.compile(loss)))
    yield row


def accuracy() -> Iterator[Row]:
    """float32 on the GPU beside float64 on the CPU, all four classes."""
    from headway.inference import TreeDistribution as Reference

    for n, batch in ((32, 64), (100, 8)):
        for what, scores in hard_scores(batch, n, "cpu"):
            for projective in (False, True):
                for single_root in (True, False):
                    flags = {"projective": projective, "single_root": single_root}
                    exact = Reference(scores.double().numpy(), **flags)
                    lengths = torch.full((batch,), n, device="cuda")
                    mu, log_z = headway_sums(scores.cuda(), lengths, **flags)
                    off = (log_z.cpu().double().numpy() - exact.log_partition) / np.abs(exact.log_partition)
                    yield {
                        "what": what, "n": n, **flags,
                        "marginals": float(np.abs(mu.cpu().numpy() - exact.marginals).max()),
                        "log Z, relative": float(np.abs(off).max()),
                    }  # fmt: skip


def hard_scores(batch: int, n: int, device: str, seed: int = 1) -> Iterator[tuple[str, Tensor]]:
    """Scores that others break on; float32."""
    generator = torch.Generator(device).manual_seed(seed)

    def normal(scale: float) -> Tensor:
        return scale * torch.randn(batch, n + 1, n + 1, generator=generator, device=device)

    for scale in (1, 3, 10, 30, 100):
        yield f"standard deviation {scale}", normal(scale)
    for boost in (10, 30, 100, 300):
        scores = normal(3)
        words = torch.rand(batch, n, generator=generator, device=device).argsort(1)[:, :5] + 1
        rows = torch.arange(batch, device=device)
        for h, m in ((0, 1), (1, 0), (2, 3), (3, 4), (4, 2)):
            scores[rows, words[:, h], words[:, m]] += boost
        yield f"2- and 3-cycles boosted by {boost}", scores
    forbidden = torch.rand(batch, n + 1, n + 1, generator=generator, device=device) < 0.3
    forbidden[:, 0] = False
    yield "three arcs in ten forbidden", normal(3).masked_fill(forbidden, -torch.inf)
    yield "three arcs in ten masked by -1e9", normal(3).masked_fill(forbidden, -1e9)
    yield "ties", torch.zeros(batch, n + 1, n + 1, device=device)


def hard() -> Iterator[Row]:
    """How many of a million hard sentences come out not finite, negative, or with columns that do not sum to one."""
    struct, supar = torch_struct(), supar_structs()
    lengths = torch.full((HARD_BATCH,), HARD_WORDS, device="cuda")
    kinds = len(list(hard_scores(1, HARD_WORDS, "cuda")))
    counts: dict[str, Row] = {}
    for seed in range(-(-HARD // (HARD_BATCH * kinds))):
        for what, scores in hard_scores(HARD_BATCH, HARD_WORDS, "cuda", seed):
            row = counts.setdefault(what, {"what": f"bad of {what}", "sentences": 0})
            row["sentences"] += HARD_BATCH
            for projective in (False, True):
                kind = ", projective" if projective else ""
                add(row, f"headway{kind}", bad(*headway_sums(scores, lengths, projective=projective)))
            masked = scores.clamp(min=-1e9)  # they have no forbidden arcs
            if struct:
                add(row, "torch-struct", bad_of_peer(torch_struct_sums(struct, masked, False)))
            if supar:
                add(row, "supar", bad_of_peer(supar_sums(supar, masked, False)))
    yield from counts.values()


def add(row: Row, name: str, count: int) -> None:
    row[name] = row.get(name, 0) + count


def bad(mu: Tensor, log_z: Tensor) -> int:
    """Sentences with something not finite or negative, or a word whose heads' probabilities are off 1 by 1e-5."""
    wrong = ~log_z.isfinite() | ~mu.isfinite().all((1, 2)) | (mu < 0).any((1, 2))
    wrong |= ((mu.sum(1)[:, 1:] - 1).abs() > 1e-5).any(1)
    return int(wrong.sum())


def bad_of_peer(run: Callable[[], tuple[Tensor, Tensor]]) -> int:
    """The same; a peer that raises has all sentences wrong. Its columns hold the root's arcs, too."""
    try:
        mu, log_z = run()
    except (RuntimeError, ValueError):
        return HARD_BATCH
    mu = mu.detach()
    dimension = 2 if mu.shape[1] == HARD_WORDS + 1 else 1  # SuPar's are [modifier, head]
    sums = mu.sum(dimension)[:, -HARD_WORDS:]
    wrong = ~log_z.detach().isfinite() | ~mu.isfinite().all(2).all(1) | (mu < 0).any(2).any(1)
    return int((wrong | ((sums - 1).abs() > 1e-5).any(1)).sum())


def memory() -> Iterator[Row]:
    """The largest amount of memory at a time, over that of scores and marginals."""
    for batch, n in SHAPES:
        for projective in (False, True):
            scores, lengths = draw(batch, n)
            size = 2 * scores.numel() * 4
            torch.cuda.synchronize()
            before = torch.cuda.memory_allocated() - size // 2
            torch.cuda.reset_peak_memory_stats()
            result = headway_sums(scores, lengths, projective=projective)
            torch.cuda.synchronize()
            peak = torch.cuda.max_memory_allocated() - before
            kind = "projective" if projective else "non-projective"
            yield {"what": f"peak memory, {kind}", "B": batch, "n": n, "over scores + marginals": peak / size}
            del result


SECTIONS = {"speed": speed, "host": host, "accuracy": accuracy, "hard": hard, "memory": memory}


def machine(commit: str) -> Row:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return {
        "device": torch.cuda.get_device_name(), "driver": driver, "cuda": torch.version.cuda,
        "torch": torch.__version__, "headway": headway.__version__, "commit": commit,
        "python": platform.python_version(), "date": datetime.now(UTC).date().isoformat(), "dtype": "float32",
        "repeats": REPEATS,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="a JSON file of the results; sections not run stay as they are")
    parser.add_argument("--commit", default="unknown", help="what to call the code that is measured")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    options = parser.parse_args()
    known = json.loads(options.output.read_text("utf-8")) if options.output and options.output.exists() else {}
    for name in options.only:
        rows = []
        for row in SECTIONS[name]():
            print(name, json.dumps({k: round(v, 8) if isinstance(v, float) else v for k, v in row.items()}), flush=True)
            rows.append(row)
        known[name] = {"machine": machine(options.commit), "rows": rows}
        if options.output:
            options.output.write_text(json.dumps(known, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
