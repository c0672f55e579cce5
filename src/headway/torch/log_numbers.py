"""Non-negative numbers of any size as logarithms, each with its logarithmic derivative in some direction beside it.

The derivative of log x is x'/x. That of a product is a sum, that of a sum is the mean of the terms' own, weighted by
the terms: nothing grows, whatever the sizes of the numbers. Zero is -inf, with derivative 0. Autograd may go through
all of it, and meets no nan at zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class LogNumbers:
    """`log` and, if derivatives are wanted, `slope` of the same shape."""

    log: Tensor
    slope: Tensor | None = None

    def __getitem__(self, index: Any) -> LogNumbers:
        return self._each(lambda x: x[index])

    def __mul__(self, other: LogNumbers) -> LogNumbers:
        """The product, with broadcasting."""
        slope = None if self.slope is None or other.slope is None else self.slope + other.slope
        return LogNumbers(self.log + other.log, slope)

    def __truediv__(self, other: LogNumbers) -> LogNumbers:
        """The quotient; zero where the divisor is."""
        exists = other.log > -torch.inf
        quotient = self.log - torch.where(exists, other.log, 0.0)
        slope = None if self.slope is None or other.slope is None else self.slope - other.slope
        return LogNumbers(quotient, slope).where(exists)

    def __add__(self, other: LogNumbers) -> LogNumbers:
        """The sum of two of one shape."""
        return stack([self, other], dim=0).sum(0)

    def sum(self, dim: int) -> LogNumbers:
        """The sum over one dimension."""
        total = log_sum(self.log, dim)
        if self.slope is None:
            return LogNumbers(total)
        exists = total > -torch.inf
        shares = torch.exp(self.log - torch.where(exists, total, 0.0).unsqueeze(dim))
        return LogNumbers(total, (shares * self.slope).sum(dim))

    def where(self, condition: Tensor, other: LogNumbers | float = -torch.inf) -> LogNumbers:
        """These numbers where the condition holds; elsewhere others, or a constant given by its logarithm (zero's)."""
        if not isinstance(other, LogNumbers):
            other = LogNumbers(
                torch.full_like(self.log, other), None if self.slope is None else self.slope.new_zeros(())
            )
        slope = None
        if self.slope is not None and other.slope is not None:
            slope = torch.where(condition, self.slope, other.slope)
        return LogNumbers(torch.where(condition, self.log, other.log), slope)

    def exp(self) -> tuple[Tensor, Tensor | None]:
        """The numbers themselves and their derivatives."""
        value = torch.exp(self.log)
        return value, None if self.slope is None else value * self.slope

    def gather(self, dim: int, index: Tensor) -> LogNumbers:
        return self._each(lambda x: x.gather(dim, index))

    def unsqueeze(self, dim: int) -> LogNumbers:
        return self._each(lambda x: x.unsqueeze(dim))

    def roll(self, shift: int, dim: int) -> LogNumbers:
        return self._each(lambda x: x.roll(shift, dim))

    def _each(self, function: Callable[[Tensor], Tensor]) -> LogNumbers:
        return LogNumbers(function(self.log), None if self.slope is None else function(self.slope))


def stack(parts: Sequence[LogNumbers], dim: int) -> LogNumbers:
    """As `torch.stack`."""
    return _join(torch.stack, parts, dim)


def cat(parts: Sequence[LogNumbers], dim: int) -> LogNumbers:
    """As `torch.cat`."""
    return _join(torch.cat, parts, dim)


def constant(value: float, like: LogNumbers) -> LogNumbers:
    """Numbers shaped like others, all with the logarithm `value`."""
    slope = None if like.slope is None else torch.zeros_like(like.slope)
    return LogNumbers(torch.full_like(like.log, value), slope)


def log_sum(x: Tensor, dim: int) -> Tensor:
    """log of the sum of exp(x) along a dimension; -inf, with gradients of zero, where all terms are; nan and inf stay.

    >>> log_sum(torch.tensor([[0.0, 0.0], [-torch.inf, -torch.inf]]), dim=1)
    tensor([0.6931,   -inf])
    """
    top = x.detach().amax(dim, keepdim=True)
    top = torch.where(top.isfinite(), top, 0.0)
    total = torch.exp(x - top).sum(dim)
    exists = total != 0
    return torch.where(exists, torch.log(torch.where(exists, total, 1.0)) + top.squeeze(dim), -torch.inf)


def _join(function: Callable[[list[Tensor], int], Tensor], parts: Sequence[LogNumbers], dim: int) -> LogNumbers:
    slopes = [part.slope for part in parts if part.slope is not None]
    return LogNumbers(function([part.log for part in parts], dim), function(slopes, dim) if slopes else None)
