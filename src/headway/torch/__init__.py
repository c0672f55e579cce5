"""Distributions over dependency trees for torch: batched, differentiable to any order, on the CPU and on GPUs.

The extra `torch`: `pip install 'headway[torch]'`. Conventions are those of `headway.inference`; importing this needs
no Numba.
"""

from headway.extras import require_extra

require_extra("torch", "torch", "headway.torch")

from headway.torch.labels import LabelledTreeDistribution  # noqa: E402
from headway.torch.tree_distribution import TreeDistribution  # noqa: E402

__all__ = ["LabelledTreeDistribution", "TreeDistribution"]
