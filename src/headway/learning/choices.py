"""Names of the choices that learners offer: pure data, so that settings and options can name them without Numba."""

from typing import Literal

Optimiser = Literal["lbfgs", "cg", "adagrad", "adam"]
Criterion = Literal["squared", "kl"]
