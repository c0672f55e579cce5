"""Why a sentence has no tree, in words: found only after an algorithm has failed, so clarity comes before speed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.arrays import Bools, Floats, TreeClass
from headway.errors import NoTreeError


def no_tree_error(
    scores: Floats,
    trees: TreeClass,
    sentence: int | None,
    *,
    forms: Sequence[str] | None = None,
    place: str | None = None,
) -> NoTreeError:
    """The error for one sentence's matrix (n+1, n+1) under which no tree of the class exists.

    It names the words with their `forms`, and where the sentence stands, if these are known.
    """
    arcs = scores > -np.inf
    arcs[:, 0] = False
    np.fill_diagonal(arcs, False)

    def error(cause: str, words: list[int]) -> NoTreeError:
        return NoTreeError(cause, tuple(words), sentence, place=place)

    def name(words: list[int], joint: str = "and") -> str:
        return _name(words, forms, joint)

    headless = [m for m in range(1, len(arcs)) if not arcs[:, m].any()]
    if headless:
        return error(f"every head of {name(headless)} is forbidden", headless)
    reach = _reachability(arcs)
    lost = np.flatnonzero(~reach[0]).tolist()
    if lost:
        return error(
            f"{name(lost)} cannot be reached from the root, since all their allowed heads lie among themselves",
            lost,
        )
    if trees.single_root:
        groups = _root_groups(reach)
        if len(groups) > 1:
            names = " and ".join(name(group) for group in groups)
            return error(
                f"{names} each need a head that only the root can give, and the root may have one child "
                "(single_root=True); allow other heads or several roots",
                sorted(word for group in groups for word in group),
            )
        if not arcs[0, groups[0]].any():
            return error(
                f"the root's one child must be {name(groups[0], 'or')}, and those arcs are forbidden",
                groups[0],
            )
    others = np.flatnonzero(~(arcs | np.eye(len(arcs), dtype=np.bool_))[:, 1:].all(axis=0)) + 1
    kind = "projective " if trees.projective else ""
    if len(others) == 0:
        return error(f"no {kind}tree avoids the forbidden pairs of siblings", list(range(1, len(arcs))))
    return error(f"no {kind}tree avoids the forbidden arcs into {name(others.tolist())}", others.tolist())


def _reachability(arcs: Bools) -> Bools:
    """reach[u, v]: can v be reached from u going from heads to modifiers? Every node reaches itself."""
    reach = arcs | np.eye(len(arcs), dtype=np.bool_)
    while True:
        further = (reach.astype(np.float64) @ reach.astype(np.float64)) > 0
        if (further == reach).all():
            return reach
        reach = further


def _root_groups(reach: Bools) -> list[list[int]]:
    """The sets of words reached from no word outside them: each must contain a child of the root."""
    words = range(1, len(reach))
    groups: list[list[int]] = []
    for w in words:
        above = [u for u in words if reach[u, w]]
        if all(reach[w, u] for u in above) and above not in groups:
            groups.append(above)
    return groups


def _name(words: list[int], forms: Sequence[str] | None, joint: str) -> str:
    shown = [str(m) if forms is None else f"{m} ({forms[m - 1]})" for m in words]
    if len(shown) == 1:
        return f"word {shown[0]}"
    return f"words {', '.join(shown[:-1])} {joint} {shown[-1]}"
