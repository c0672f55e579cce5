"""argmax, log_partition and marginals for the four classes of trees: the functions behind `TreeDistribution`.

| | single-root | multi-root |
| --- | --- | --- |
| non-projective | `spanning_tree`, `matrix_tree` | the same |
| projective | `projective_tree`, `eisner` | the same |

Here the class picks the algorithm, sentences with very large scores go to `any_scale` and `exact_trees`, and a sentence
without any tree becomes a `NoTreeError`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from headway.arrays import Floats, Ints, TreeClass
from headway.inference import any_scale, eisner, exact_trees, matrix_tree, projective_tree, spanning_tree
from headway.inference.batch import Batch, as_batch
from headway.inference.hopeless_arcs import without_hopeless_arcs
from headway.no_tree import no_tree_error
from headway.parallel import Executor, executor_for


def argmax(
    scores: ArrayLike,
    *,
    projective: bool = False,
    single_root: bool = True,
    lengths: ArrayLike | None = None,
    threads: int | None = None,
) -> Ints:
    """The heads of the best tree, (n+1,), or (B, N+1) padded with -1.

    >>> argmax([[0, 1, 5], [0, 0, 4], [0, 9, 0]])
    array([-1,  2,  0])
    """
    batch = as_batch(scores, lengths)
    heads: Ints = batch.unbatch(best_heads(batch, TreeClass.of(projective, single_root), executor_for(threads)))
    return heads


def log_partition(
    scores: ArrayLike,
    *,
    projective: bool = False,
    single_root: bool = True,
    lengths: ArrayLike | None = None,
    threads: int | None = None,
) -> Any:
    """log of the sum over all trees of exp(score): a float, or (B,).

    >>> import math
    >>> round(math.exp(log_partition([[0, 0, 0], [0, 0, 0], [0, 0, 0]], single_root=False)), 9)  # three trees
    3.0
    """
    batch = as_batch(scores, lengths)
    trees = TreeClass.of(projective, single_root)
    log_z = tree_sums(batch, trees, executor_for(threads))
    require_trees(log_z > -np.inf, batch, trees)
    return batch.unbatch(log_z)


def marginals(
    scores: ArrayLike,
    *,
    projective: bool = False,
    single_root: bool = True,
    lengths: ArrayLike | None = None,
    threads: int | None = None,
) -> Floats:
    """P(head -> modifier), shaped like the scores; every word's column sums to 1.

    >>> marginals([[0, 0, 0], [0, 0, 0], [0, 0, 0]])
    array([[0. , 0.5, 0.5],
           [0. , 0. , 0.5],
           [0. , 0.5, 0. ]])
    """
    batch = as_batch(scores, lengths)
    mu: Floats = batch.unbatch(arc_marginals(batch, TreeClass.of(projective, single_root), executor_for(threads))[1])
    return mu


def best_heads(batch: Batch, trees: TreeClass, executor: Executor) -> Ints:
    """Heads (B, N+1); NoTreeError if a sentence has none."""
    heads, found = try_best_heads(batch, trees, executor)
    require_trees(found, batch, trees)
    return heads


def try_best_heads(batch: Batch, trees: TreeClass, executor: Executor) -> tuple[Ints, Ints]:
    """Heads (B, N+1) and whether each sentence has a tree at all."""
    algorithm = projective_tree.argmax if trees.projective else spanning_tree.argmax
    tame, _ = without_hopeless_arcs(batch.beyond(exact_trees.VAST), trees, executor)
    heads, found = algorithm(tame.ordinary(), single_root=trees.single_root, executor=executor)
    if tame.wide is not None:
        heads[tame.wide], found[tame.wide] = exact_trees.argmax(tame.only_wide(), trees)
    return heads, found


def tree_sums(batch: Batch, trees: TreeClass, executor: Executor) -> Floats:
    """log Z (B,); -inf for a sentence without trees."""
    algorithm = eisner.log_partition if trees.projective else matrix_tree.log_partition
    tame, shift = without_hopeless_arcs(batch, trees, executor)
    log_z = algorithm(tame.ordinary(), single_root=trees.single_root, executor=executor) + shift
    if tame.wide is not None:
        log_z[tame.wide] = any_scale.totals(tame.only_wide(), trees).log_z
    return log_z


class Begun(NamedTuple):
    """log Z (B,) of a batch, and how far its marginals have got."""

    log_z: Floats
    tame: Batch
    shift: Floats
    sums: Any


def begin(batch: Batch, trees: TreeClass, executor: Executor) -> Begun:
    """log Z as `tree_sums`, and what `arc_marginals` can go on from."""
    tame, shift = without_hopeless_arcs(batch, trees, executor)
    algorithm = eisner.begin if trees.projective else matrix_tree.begin
    sums = algorithm(tame.ordinary(), single_root=trees.single_root, executor=executor)
    log_z = sums.log_z + shift
    if tame.wide is not None:
        log_z[tame.wide] = any_scale.totals(tame.only_wide(), trees).log_z
    return Begun(log_z, tame, shift, sums)


def arc_marginals(
    batch: Batch, trees: TreeClass, executor: Executor, begun: Begun | None = None
) -> tuple[Floats, Floats]:
    """log Z (B,) and marginals; NoTreeError if a sentence has no tree. What has begun is used up."""
    log_z, mu = try_arc_marginals(batch, trees, executor, begun)
    require_trees(log_z > -np.inf, batch, trees)
    return log_z, mu


def try_arc_marginals(
    batch: Batch, trees: TreeClass, executor: Executor, begun: Begun | None = None
) -> tuple[Floats, Floats]:
    """log Z (B,) and marginals; -inf and zeros for a sentence without trees. What has begun is used up."""
    algorithm: Any = eisner.marginals if trees.projective else matrix_tree.marginals
    tame, shift, sums = (*without_hopeless_arcs(batch, trees, executor), None) if begun is None else begun[1:]
    log_z, mu = algorithm(tame.ordinary(), single_root=trees.single_root, executor=executor, begun=sums)
    log_z = log_z + shift
    if tame.wide is not None:
        log_z[tame.wide], log_mu, _ = any_scale.arc_sums(tame.only_wide(), trees)
        mu[tame.wide] = np.exp(log_mu)
    return log_z, mu


def arc_covariances(batch: Batch, f: Floats, trees: TreeClass, executor: Executor) -> tuple[Floats, Floats, Floats]:
    """log Z (B,), marginals and Cov(f, 1[arc]), both shaped like the scores; NoTreeError if a sentence has no tree."""
    log_z, mu, slope = try_arc_covariances(batch, f, trees, executor)
    require_trees(log_z > -np.inf, batch, trees)
    return log_z, mu, slope


def try_arc_covariances(batch: Batch, f: Floats, trees: TreeClass, executor: Executor) -> tuple[Floats, Floats, Floats]:
    """The same; -inf and zeros for a sentence without trees."""
    algorithm = eisner.covariance if trees.projective else matrix_tree.covariance
    tame, shift = without_hopeless_arcs(batch, trees, executor)
    log_z, mu, slope = algorithm(tame.ordinary(), f, single_root=trees.single_root, executor=executor)
    log_z += shift
    if tame.wide is not None:
        log_z[tame.wide], log_mu, slope[tame.wide] = any_scale.arc_sums(tame.only_wide(), trees, f[tame.wide])
        mu[tame.wide] = np.exp(log_mu)
    return log_z, mu, slope


def require_trees(found: Any, batch: Batch, trees: TreeClass) -> None:
    """Raise the error of the first sentence that has no tree."""
    if found.all():
        return
    b = int(np.flatnonzero(~found.astype(np.bool_))[0])
    n = int(batch.lengths[b])
    raise no_tree_error(
        batch.scores[b, : n + 1, : n + 1],
        trees,
        batch.place(b),
    )
