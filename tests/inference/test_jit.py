"""Kernels and their parts."""

from __future__ import annotations

from headway.inference.jit import kernel, part


@part
def tripled(x: int) -> int:
    return 3 * x


@kernel
def nine_times(x: int) -> int:
    return tripled(tripled(x))


def test_a_part_can_be_called_from_python_before_and_after_a_kernel_has_it() -> None:
    """It has no entry for Python of its own: a call of what Numba leaves there ends the process."""
    assert [tripled(7), nine_times(7), tripled(7), tripled(5)] == [21, 63, 21, 15]
