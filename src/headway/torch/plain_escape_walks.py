"""Non-projective trees in plain torch operations: log Z, marginals and their derivatives, without a subtraction.

The theory is that of `headway.inference.matrix_tree` and `escape_walks`. A walk steps from word i to its head j in
proportion to the arc's weight. `table[i, 1 + j]` is the weight of that step, `table[i, 0]` of the step to the root.
Words are eliminated one after the other; with d the sum of word k's row (the root counted for several roots only) and
p = row / d,

    table[i] += table[i, 1 + k] p           Z = product of the d, times the last word's root weight
    E[k, m] = p[0] + sum_j p[j] E[j, m]     the chance to reach the root before m (one root: its weight collected)
    P(h -> m) is proportional to weight(h -> m) E[h, m],    P(root -> m) to weight(root -> m).

Divide and conquer: the columns E[:, m] of one half of the words need the other half eliminated.

Here all numbers are logarithms (`log_numbers`), so that scores of any size will do, and all sentences of a batch take
the same steps, whatever their masks and lengths. Words that a step must not see are given one head of weight 1, which
leaves Z as it is. With one root, the words from which all others descend, the *core*, are solved first; the others are
a forest that stands on the core (`matrix_tree`, reducible graphs).

Shapes: scores (B, N+1, N+1). O(n^3) time in O(n log n) steps. Every step is an operation that autograd knows.
"""

from __future__ import annotations

import torch
from torch import Tensor

from headway.torch.arcs import possible_arcs, real_words, relative_to_best
from headway.torch.log_numbers import LogNumbers, cat, constant


def tree_sums(
    scores: Tensor, lengths: Tensor, single_root: bool, f: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """log Z (B,), marginals and, with a direction f, their derivatives in it."""
    size, nodes = scores.shape[:2]
    if nodes == 1 or size == 0:
        return scores.new_zeros(size), torch.zeros_like(scores), None if f is None else torch.zeros_like(scores)
    arcs = possible_arcs(scores, lengths)
    relative, best = relative_to_best(scores, arcs)
    weights = LogNumbers(relative, f).where(arcs)[:, :, 1:]
    solve = _single_root if single_root else _forest
    log_z, joint = solve(weights, real_words(lengths, nodes))
    log_z = torch.where(lengths == 0, 0.0, log_z)
    # Each word's heads in proportion; without a tree, nothing.
    mu, slope = (joint / joint.sum(1).unsqueeze(1)).where((log_z > -torch.inf)[:, None, None]).exp()
    return log_z + best, _with_column_0(mu), None if slope is None else _with_column_0(slope)


def _single_root(weights: LogNumbers, words: Tensor) -> tuple[Tensor, LogNumbers]:
    """log Z, and weight(h -> m) E[h, m] of every arc, (B, N+1, N), with one of the words on the root."""
    core = _core(weights.log, words)
    first = core.to(torch.int64).argmax(1, keepdim=True)
    is_first = torch.arange(core.shape[1], device=core.device) == first
    own = weights.where(core[:, None, :] & _with_root(core)[:, :, None])
    # Words outside the core hang from its first one here.
    hang = _with_root(is_first, root=False)[:, :, None] & ~core[:, None, :]
    totals, escapes = _solve(_table(own.where(~hang, 0.0)), multi_root=False)
    log_z = totals.log.gather(1, first)[:, 0]

    # To them, the core is the root; the true one has no child among them.
    inner = core[:, :, None]
    root, heads = weights[:, :1], weights[:, 1:]
    ground = heads.where(inner).sum(1).unsqueeze(1)
    log_z_above, escapes_above = _solve_forest(cat([ground, heads.where(~inner)], 1), words & ~core)

    # A word of the core, which hangs from the root there, has escaped.
    joint = heads * escapes.where(inner & core[:, None, :], escapes_above)
    log_z = torch.where(core.any(1), log_z + log_z_above, -torch.inf)
    return log_z, cat([root.where(core[:, None, :]), joint], 1)


def _forest(weights: LogNumbers, words: Tensor) -> tuple[Tensor, LogNumbers]:
    """The same with any number of them on the root."""
    log_z, escapes = _solve_forest(weights, words)
    return log_z, cat([weights[:, :1], weights[:, 1:] * escapes], 1)


def _solve_forest(weights: LogNumbers, own: Tensor) -> tuple[Tensor, LogNumbers]:
    """log Z and escapes of the own words; all others hang from the root."""
    root = weights[:, :1].where(own[:, None, :], 0.0)
    totals, escapes = _solve(_table(cat([root, weights[:, 1:].where(own[:, None, :])], 1)), multi_root=True)
    return totals.log[:, 0], escapes


def _table(weights: LogNumbers) -> LogNumbers:
    """Weights (B, N+1, N) as the walk reads them: [modifier, head]."""
    slope = None if weights.slope is None else weights.slope.transpose(1, 2)
    return LogNumbers(weights.log.transpose(1, 2), slope)


def _solve(table: LogNumbers, multi_root: bool) -> tuple[LogNumbers, LogNumbers]:
    """Z (B, k), once for each word that is eliminated last, and escapes (B, k, k) of a table (B, k, 1 + k)."""
    size = table.log.shape[1]
    if size == 1:
        return table[:, :, 0], constant(-torch.inf, table[:, :, 1:])
    half = size // 2
    left_total, left = _columns(table, half, multi_root)
    # The second half's turn: the same with the words in the order second half, first half.
    words = table[:, :, 1:].roll(-half, 2).roll(-half, 1)
    turned = cat([table[:, :, :1].roll(-half, 1), words], 2)
    right_total, right = _columns(turned, size - half, multi_root)
    return cat([left_total, right_total], 1), cat([left, right.roll(half, 1)], 2)


def _columns(table: LogNumbers, keep: int, multi_root: bool) -> tuple[LogNumbers, LogNumbers]:
    """Z and escapes (B, k, keep) before each of the first `keep` words, the others eliminated."""
    steps: list[LogNumbers] = []
    pivots = constant(0.0, table[:, 0, 0])
    for k in range(table.log.shape[1] - 1, keep - 1, -1):
        row = table[:, k, : k + 1]
        pivot = (row if multi_root else row[:, 1:]).sum(1)
        steps.append(row / pivot.unsqueeze(1))
        pivots = pivots * pivot
        table = table[:, :k, : k + 1] + table[:, :k, k + 1].unsqueeze(2) * steps[-1].unsqueeze(1)
    totals, escapes = _solve(table, multi_root)
    rows = [escapes]
    for step in reversed(steps):
        collected = (step[:, 1:].unsqueeze(2) * cat(rows, 1)).sum(1)
        at_once = step[:, :1] * constant(0.0, collected)
        rows.append((at_once + collected).unsqueeze(1))
    return pivots.unsqueeze(1) * totals, cat(rows, 1)


def _core(log_weights: Tensor, words: Tensor) -> Tensor:
    """(B, N): those of the words from which every other can be reached, from heads to modifiers."""
    nodes = log_weights.shape[1]
    reach = (log_weights[:, 1:] > -torch.inf) | torch.eye(nodes - 1, dtype=torch.bool, device=words.device)
    for _ in range(nodes.bit_length()):
        steps = reach.to(torch.float32)
        reach = (steps @ steps) > 0
    return (reach | ~words[:, None, :]).all(2) & words


def _with_root(words: Tensor, root: bool = True) -> Tensor:
    return torch.cat([torch.full_like(words[:, :1], root), words], 1)


def _with_column_0(values: Tensor) -> Tensor:
    return torch.cat([torch.zeros_like(values[:, :, :1]), values], 2)
