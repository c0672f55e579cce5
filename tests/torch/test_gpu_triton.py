"""The Triton kernels on a real GPU, beside plain operations in float64 on the CPU: `make gpu-test`.

Skipped without a GPU; there, `test_triton.py` runs them in Triton's interpreter.
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not (torch.cuda.is_available() or torch.xpu.is_available()):
    pytest.skip("there is no GPU", allow_module_level=True)
pytest.importorskip("triton")

from headway.arrays import TreeClass
from headway.torch.plain_kernels import PlainKernels
from headway.torch.triton.triton_kernels import TritonKernels, kernels_on

DEVICE = torch.device("cuda:0" if torch.cuda.is_available() else "xpu:0")


def draw(n: int, kind: str) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(n)
    scores = torch.randn(6, n + 1, n + 1, generator=generator, dtype=torch.float64)
    if kind == "wide":
        scores *= 50
    if kind == "masks":
        forbidden = torch.rand(scores.shape, generator=generator) < 0.3
        forbidden[:, 0] = False
        scores = scores.masked_fill(forbidden, -torch.inf)
    return scores, torch.tensor([n, 0, 1, n - 1, n // 2, n])


@pytest.mark.parametrize("kind", ["normal", "wide", "masks"])
@pytest.mark.parametrize(
    ("n", "single_root"), [(4, True), (13, False), (32, True), (33, False), (60, True), (100, False)]
)
@pytest.mark.parametrize("projective", [False, True])
def test_float32(n: int, single_root: bool, projective: bool, kind: str) -> None:
    check(n, TreeClass(projective, single_root), kind, torch.float32, 4e-6)


@pytest.mark.parametrize(("n", "single_root"), [(7, False), (32, True), (50, False)])
@pytest.mark.parametrize("projective", [False, True])
def test_float64(n: int, single_root: bool, projective: bool) -> None:
    for kind in ("normal", "masks"):
        check(n, TreeClass(projective, single_root), kind, torch.float64, 1e-10)


def check(n: int, trees: TreeClass, kind: str, dtype: Any, tolerance: float) -> None:
    scores, lengths = draw(n, kind)
    scores = scores.to(dtype)
    given = scores.to(DEVICE), lengths.to(DEVICE), trees
    log_z, mu = (result.cpu().double() for result in TritonKernels().marginals(*given))
    expected_z, expected = PlainKernels().marginals(scores.double(), lengths, trees)
    torch.testing.assert_close(mu, expected, rtol=0, atol=tolerance)
    for value in (log_z, TritonKernels().log_partition(*given).cpu().double()):
        torch.testing.assert_close(value, expected_z, rtol=tolerance / 4, atol=tolerance)
    heads = TritonKernels().argmax(*given).cpu()
    assert torch.equal(heads, PlainKernels().argmax(scores.double(), lengths, trees))


def test_triton_works_here() -> None:
    assert isinstance(kernels_on(DEVICE), TritonKernels)
