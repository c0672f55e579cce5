"""Exact, independent samples; and samples without replacement.

*Non-projective*, by Wilson's (1996) loop-erased walks: from each word not yet in the tree, walk to heads at random
until the tree is met, and keep the last step out of each word. Single-root trees need care: a walk that is merely
stopped from using the root twice is biased. The root's child is drawn from its marginals first and then stands for
the root (Zmigrod, Vieira and Cotterell 2021).

A walk caught between confident words can take e^40 steps and more. But the cycles a run erases are independent of
the tree it ends in (Propp and Wilson 1998), so a run may be given up after any number of steps and its tree drawn
in another way without bias (as long as the root's child it was dealt is kept). The other way is ancestral: word by
word, each head from its marginals given the heads before it, all samples together, so that those with equal heads
so far share the work. O(n^4) a sample at worst.

*Projective* samples are read off the chart (`eisner.sample`).

*Without replacement*: the ancestral tree of choices is searched with a beam in which each prefix keeps the largest
Gumbel noise among its completions (stochastic beam search, Kool et al. 2019). The k survivors are distinct, and in
the order of drawing without replacement.
"""

from __future__ import annotations

import numpy as np

from headway.arrays import Bools, Floats, Ints, TreeClass
from headway.errors import ArgumentError
from headway.inference import eisner
from headway.inference.any_scale import arc_sums
from headway.inference.batch import Batch, as_count
from headway.inference.first_order import arc_marginals, tree_sums
from headway.inference.jit import kernel
from headway.parallel import Executor

# Steps a walk may take for each word before it is given up.
_PATIENCE = 100
# Matrices held at a time while prefixes are extended.
_CHUNK = 1024


def as_generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """A generator as it is, or one from a seed; without either, a new one that nobody can foresee."""
    try:
        return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ArgumentError(f"rng is {rng!r}; expected a numpy.random.Generator or a seed, 0 or more") from None


def sample(
    sentence: Batch,
    mu: Floats,
    k: int,
    rng: np.random.Generator,
    trees: TreeClass,
    executor: Executor,
) -> Ints:
    """k trees (k, n+1) of one sentence, whose marginals are `mu`."""
    k, scores = as_count(k, "k", least=0), sentence.scores[0]
    if len(scores) == 1 or k == 0:
        return np.full((k, len(scores)), -1, dtype=np.int64)
    if sentence.wide is not None:
        return _ancestral(sentence, scores, k, rng, trees, executor)
    if trees.projective:
        return eisner.sample(scores, k, rng, single_root=trees.single_root)
    heads = np.full((k, len(scores)), -1, dtype=np.int64)
    finished = np.zeros(k, dtype=np.bool_)
    _walk(scores, mu, trees.single_root, _PATIENCE * len(scores), rng, heads, finished)
    if not finished.all():
        _redraw(sentence, rng, heads, ~finished, trees, executor)
    return heads


def _redraw(
    sentence: Batch,
    rng: np.random.Generator,
    heads: Ints,
    caught: Bools,
    trees: TreeClass,
    executor: Executor,
) -> None:
    """Draw the samples given up another way, each keeping the root's child it had been dealt."""
    scores = sentence.scores[0]
    if not trees.single_root:
        heads[caught] = _ancestral(sentence, scores, int(caught.sum()), rng, trees, executor)
        return
    child = np.where(caught, np.argmax(heads == 0, axis=1), 0)
    for m in np.unique(child[caught]):
        dealt = child == m
        below = _fix(scores[None], m, np.array([0]))[0]
        heads[dealt] = _ancestral(sentence, below, int(dealt.sum()), rng, trees, executor)


def _ancestral(
    sentence: Batch, scores: Floats, k: int, rng: np.random.Generator, trees: TreeClass, executor: Executor
) -> Ints:
    """k trees of the sentence with these scores, word by word; `prefixes[i]` is shared by `counts[i]` of them."""
    n = len(scores) - 1
    prefixes, counts = scores[None], np.array([k])
    for m in range(1, n + 1):
        choices = arc_marginals(sentence.variants(prefixes), trees, executor)[1][:, :, m]
        split = rng.multinomial(counts, choices / choices.sum(axis=1, keepdims=True))
        parent, head = np.nonzero(split)
        counts = split[parent, head]
        prefixes = _fix(prefixes[parent], m, head)
    heads = np.full((len(prefixes), n + 1), -1, dtype=np.int64)
    heads[:, 1:] = np.argmax(prefixes[:, :, 1:] > -np.inf, axis=1)
    return rng.permutation(np.repeat(heads, counts, axis=0))


def sample_without_replacement(
    sentence: Batch,
    k: int,
    rng: np.random.Generator,
    trees: TreeClass,
    executor: Executor,
) -> Ints:
    """At most k distinct trees (fewer only if there are fewer), in the order drawn."""
    k, n = as_count(k, "k"), len(sentence.scores[0]) - 1
    heads = np.full((1, n + 1), -1, dtype=np.int64)
    prefixes, log_p, gumbel = sentence.scores, np.zeros(1), np.zeros(1)
    for m in range(1, n + 1):
        choices = _log_choices if sentence.wide is None else _log_choices_of_wide
        parent, head, log_choice = choices(sentence, prefixes, m, trees, executor)
        log_p = log_p[parent] + log_choice
        gumbel = _gumbel_with_maximum(log_p, gumbel, parent, rng)
        best = np.argsort(-gumbel, kind="stable")[:k]
        heads = heads[parent[best]]
        heads[:, m] = head[best]
        prefixes = _fix(prefixes[parent[best]], m, head[best])
        log_p, gumbel = log_p[best], gumbel[best]
    return heads


def _log_choices(
    sentence: Batch, prefixes: Floats, m: int, trees: TreeClass, executor: Executor
) -> tuple[Ints, Ints, Floats]:
    """Every prefix, head of word m that it allows, and log P(head | prefix)."""
    parent, head = np.nonzero(prefixes[:, :, m] > -np.inf)
    parent, head = parent[head != m], head[head != m]
    log_z = np.empty(len(parent))
    for start in range(0, len(parent), _CHUNK):
        part = slice(start, start + _CHUNK)
        candidates = _fix(prefixes[parent[part]], m, head[part])
        log_z[part] = tree_sums(sentence.variants(candidates), trees, executor)
    alive = log_z > -np.inf
    parent, head, log_z = parent[alive], head[alive], log_z[alive]
    return parent, head, log_z - _log_sum_by(log_z, parent)


def _log_choices_of_wide(
    sentence: Batch, prefixes: Floats, m: int, trees: TreeClass, executor: Executor
) -> tuple[Ints, Ints, Floats]:
    """The same from log-marginals, since log Z is too large to take differences of."""
    log_mu = arc_sums(sentence.variants(prefixes), trees).log_mu[:, :, m]
    parent, head = np.nonzero(log_mu > -np.inf)
    return parent, head, log_mu[parent, head]


def _fix(prefixes: Floats, m: int, head: Ints) -> Floats:
    """Forbid every other head of word m, in each matrix its own."""
    fixed = prefixes.copy()
    rows = np.arange(len(fixed))
    kept = fixed[rows, head, m].copy()
    fixed[:, :, m] = -np.inf
    fixed[rows, head, m] = kept
    return fixed


def _log_sum_by(values: Floats, group: Ints) -> Floats:
    """For each value the log-sum-exp over its group."""
    top = np.full(group.max() + 1, -np.inf)
    np.maximum.at(top, group, values)
    total = np.zeros(len(top))
    np.add.at(total, group, np.exp(values - top[group]))
    result: Floats = (np.log(total, where=total > 0, out=np.zeros_like(total)) + top)[group]
    return result


def _gumbel_with_maximum(log_p: Floats, maximum: Floats, group: Ints, rng: np.random.Generator) -> Floats:
    """Gumbel(log_p) noise, conditioned on each group's largest being its parent's (Kool et al. 2019, appendix B.3)."""
    noise = log_p + rng.gumbel(size=len(log_p))
    top = np.full(group.max() + 1, -np.inf)
    np.maximum.at(top, group, noise)
    with np.errstate(divide="ignore"):
        v = maximum[group] - noise + np.log(-np.expm1(noise - top[group]))
    result: Floats = maximum[group] - np.maximum(0.0, v) - np.log1p(np.exp(-np.abs(v)))
    return result


@kernel
def _walk(
    scores: Floats,
    mu: Floats,
    single_root: bool,
    patience: int,
    rng: np.random.Generator,
    heads: Ints,
    finished: np.ndarray,
) -> None:
    """Wilson's walks; `finished` stays False for a sample given up after `patience` steps."""
    n = scores.shape[0] - 1
    cumulative = np.zeros((n + 1, n + 1))
    roots = np.cumsum(mu[0])
    for m in range(1, n + 1):
        top = -np.inf
        for h in range(n + 1):
            if h != m and not (single_root and h == 0):
                top = max(top, scores[h, m])
        total = 0.0
        for h in range(n + 1):
            if h != m and not (single_root and h == 0) and top > -np.inf:
                total += np.exp(scores[h, m] - top)
            cumulative[m, h] = total
    in_tree = np.empty(n + 1, dtype=np.bool_)
    for draw in range(heads.shape[0]):
        in_tree[:] = False
        in_tree[0] = True
        if single_root:
            child = np.searchsorted(roots, rng.random() * roots[n], side="right")
            heads[draw, child] = 0
            in_tree[child] = True
        steps = 0
        for start in range(1, n + 1):
            word = start
            while not in_tree[word] and steps < patience:
                u = rng.random() * cumulative[word, n]
                heads[draw, word] = np.searchsorted(cumulative[word], u, side="right")
                word = heads[draw, word]
                steps += 1
            if steps >= patience:
                break
            word = start
            while not in_tree[word]:
                in_tree[word] = True
                word = heads[draw, word]
        finished[draw] = steps < patience
