"""All marginals' derivatives in one direction by two matrix products, where the walk does not circle for long.

The escapes E[h, m] of `matrix_tree` (zero where h = m) satisfy, for both root classes,

    (D - W) E = r 1^T - diag(t),       t_m = r_m + sum_h W[m, h] E[h, m]

with rows for modifiers, columns for heads, and D = diag(d), d_m the sum of row m (the root's weight r_m included for
multi-root only). With u = 1 / t, P(h -> m) = W[m, h] E[h, m] u_m and P(root -> m) = r_m u_m. Differentiating in
direction f, with dW = W f, dr = r f, and dd the sum of a row of them as d is of W:

    R = dr 1^T + (dW - diag(dd)) E        Y = E diag(u) R        y = u^T R

    dP(h -> m)    = P(h -> m) f(h, m) + W[m, h] u_m (Y[m, m] - Y[h, m])
    dP(root -> m) = P(root -> m) (f(0, m) - y_m + Y[m, m])       (single-root: without Y[m, m])

since E diag(u) undoes D - W up to a term that is the same for every head, which E[m, m] = 0 fixes (in the single-root
class u^T (D - W) = 0 takes its place for the root). This is Cov(f, 1[arc]) of every arc (druck2009 section 2 sums over
all pairs of arcs for it).

*Accuracy.* Unlike everything else here these formulas subtract. Each visit of the walk to a word contributes to Y, and
where it circles in a confident cycle, many contributions have to cancel: u_m d_m E[h, m] is how many more visits to m
it is expected to make from m than from h (multi-root; single-root alike), `most_visits` the largest of these. Over
random scores of standard deviation up to 10, clusters, pruned graphs and boosted cycles, up to 120 words, the error
was below 4e-15 times that number for |f| <= 1, so `MOST_VISITS` keeps it near 1e-12 at most. Beyond it derivatives
follow the elimination (`escape_walks`), which costs three times as much and amplifies nothing.

Shapes: weights, f, mu, slope (n+1, n+1); escape (n, n) and wider, `workspace` (3, n+1, n padded to whole blocks).
O(n^3).
"""

from __future__ import annotations

import numpy as np

from headway.arrays import Floats
from headway.inference.escape_walks import padded
from headway.inference.jit import part
from headway.inference.lane_product import product
from headway.inference.panel_elimination import PANEL

MOST_VISITS = 300.0


@part
def most_visits(weights: Floats, escape: Floats, inverse_totals: Floats, n: int, single_root: bool) -> float:
    """How many more visits to a word a walk from there is expected to make than one from elsewhere, at most.

    inverse_totals[m] is u_m.
    """
    row_sum, largest = np.empty(n + 1), np.empty(n + 1)
    for m in range(1, n + 1):
        row_sum[m], largest[m] = 0.0 if single_root else weights[0, m], 0.0
    for h in range(1, n + 1):
        for m in range(1, n + 1):
            escaped = escape[h - 1, m - 1]
            row_sum[m] += weights[h, m]
            largest[m] = escaped if escaped > largest[m] else largest[m]  # vectorised, which max is not
    most = 0.0
    for m in range(1, n + 1):
        most = max(most, row_sum[m] * largest[m] * inverse_totals[m])
    return most


@part
def slopes_by_products(
    weights: Floats,
    f: Floats,
    escape: Floats,
    inverse_totals: Floats,
    n: int,
    single_root: bool,
    workspace: Floats,
    mu: Floats,
    slope: Floats,
) -> None:
    """Fill `slope` with Cov(f, 1[arc]), from scaled weights, marginals and escapes [head, modifier]."""
    change, scaled, visits = workspace[0], workspace[1], workspace[2]
    if n < 1:  # never; tells the compiler that no index counts from the end, without which it does not vectorise
        return
    width = padded(n)
    for j in range(n):
        change[0, j] = weights[0, 1 + j] * f[0, 1 + j]
        visits[0, j] = 0.0 if single_root else change[0, j]
    for h in range(1, n + 1):
        for j in range(n):
            change[h, j] = weights[h, 1 + j] * f[h, 1 + j]
            visits[0, j] += change[h, j]
    for j in range(n):
        change[1 + j, j] = -visits[0, j]
    by_modifier = change[1 : n + 1].T
    for i in range(0, n, PANEL):
        product(by_modifier, i, min(PANEL, n - i), 0, n, n, escape, 0, 0, scaled, i, 0, width)
    at_root = visits[n]
    for m in range(width):
        at_root[m] = 0.0
    for i in range(n):
        at, u = change[0, i], inverse_totals[1 + i]
        for m in range(width):
            scaled[i, m] = (at + scaled[i, m]) * u
            at_root[m] += scaled[i, m]
    for i in range(0, n, PANEL):
        product(escape, i, min(PANEL, n - i), 0, n, n, scaled, 0, 0, visits, i, 0, width)
    own = change[0]
    for m in range(n):
        own[m] = visits[m, m]
        slope[0, 1 + m] = mu[0, 1 + m] * (f[0, 1 + m] - at_root[m] + (0.0 if single_root else own[m]))
    for h in range(1, n + 1):
        for m in range(1, n + 1):
            pull = weights[h, m] * inverse_totals[m] * (own[m - 1] - visits[h - 1, m - 1])
            slope[h, m] = mu[h, m] * f[h, m] + pull
