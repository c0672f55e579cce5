"""Which features fire on which arcs: the keys of one template for one sentence.

A template over atoms x_1 .. x_k has random odd 64-bit multipliers a_1 .. a_k, and its key is the sum of a_j x_j
modulo 2^64 (multilinear hashing; Lemire and Kaser 2014). Being a sum, the key splits: into a part for the head and a
part for the modifier, both computed once per word (`word_keys`, O(n)), and a part for direction and distance. A
template that fires several times per arc adds a part for each value between, or for each morphological feature.

`fire` lists all arcs of some heads as cells `h * width + m`, each with its key. `fire_listed` does the same for a list
of arcs, and its cost depends on these alone. Everything here is compiled into the kernels of `arc_features`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Ints
from headway.features.blocks import Keys
from headway.features.coding import CodedNodes
from headway.inference.jit import part

Codes = NDArray[np.int32]

# Room for at least this many keys, so that most sentences fire in one go.
_ROOM = 4096


class Compiled(NamedTuple):
    """The templates as arrays, with one entry or row per template."""

    side: NDArray[np.int8]  # (T, K) 0: an atom of the head, 1: of the modifier, -1: none
    shift: Ints  # (T, K) how many words away
    field: Ints  # (T, K) row of CodedNodes.codes
    multiplier: Keys  # (T, K)
    conjunction: Ints  # (T,) 0: alone, 1: direction, 2: direction and distance
    conjunction_multiplier: Keys  # (T,)
    between: Ints  # (T,) field that fires for each value between, or -1
    head_feat: NDArray[np.bool_]  # (T,) fires for each feature of the head
    modifier_feat: NDArray[np.bool_]  # (T,) and of the modifier
    each_multiplier: Keys  # (T, 2) of the value between or the head's feature, and of the modifier's
    label_multiplier: Keys  # (T,)
    offset: Ints  # (T,) where the block begins
    drop: Keys  # (T,) 64 - bits: what is shifted out of the key


class Way(NamedTuple):
    """How often a template fires: once per arc, for each value between, or for each morphological feature."""

    between: int
    head_feat: bool
    modifier_feat: bool
    first_multiplier: np.uint64
    second_multiplier: np.uint64


class Work(NamedTuple):
    """Working space: the parts of the keys, the values seen between, and what fired."""

    head_keys: Keys  # (n+1,)
    modifier_keys: Keys  # (n+1,)
    span_keys: Keys  # (2n+1,), of m - h at n + m - h
    seen: Keys  # (n+1,)
    cells: Ints
    keys: Keys


@part
def work_for(feat_start: Codes, roots: Ints, lengths: Ints) -> tuple[int, Work]:
    """The largest number of features of a word, and room for the longest sentence and its busiest head."""
    longest, most_feats = 0, 1
    for b in range(len(lengths)):
        longest = max(longest, lengths[b])
        for i in range(roots[b], roots[b] + lengths[b] + 1):
            most_feats = max(most_feats, feat_start[i + 1] - feat_start[i])
    room = max(_ROOM, longest * max(longest, most_feats * most_feats))
    return most_feats, Work(
        np.empty(longest + 1, np.uint64),
        np.empty(longest + 1, np.uint64),
        np.empty(2 * longest + 1, np.uint64),
        np.empty(longest + 1, np.uint64),
        np.empty(room, np.int64),
        np.empty(room, np.uint64),
    )


@part
def way_of(templates: Compiled, t: int) -> Way:
    """How template t fires."""
    return Way(
        templates.between[t],
        templates.head_feat[t],
        templates.modifier_feat[t],
        templates.each_multiplier[t, 0],
        templates.each_multiplier[t, 1],
    )


@part
def fires_once(way: Way) -> bool:
    """Whether the template fires exactly once on every arc."""
    return way.between < 0 and not way.head_feat and not way.modifier_feat


@part
def heads_at_once(way: Way, n: int, most_feats: int, room: int) -> int:
    """For how many heads the template can fire before the room is full."""
    times = n * n if way.between >= 0 else n
    times *= most_feats if way.head_feat else 1
    times *= most_feats if way.modifier_feat else 1
    return max(1, room // max(1, times))


@part
def arcs_at_once(way: Way, n: int, most_feats: int, room: int) -> int:
    """On how many arcs the template can fire before the room is full."""
    times = n if way.between >= 0 else 1
    times *= most_feats if way.head_feat else 1
    times *= most_feats if way.modifier_feat else 1
    return max(1, room // max(1, times))


@part
def distance_bin(distance: int) -> int:
    """1, 2, 3, 4, 5-6, 7-10, 11-20, 21 and more."""
    if distance <= 4:
        return distance
    if distance <= 6:
        return 5
    if distance <= 10:
        return 6
    return 7 if distance <= 20 else 8


@part
def word_keys(t: int, templates: Compiled, codes: Codes, root: int, n: int, work: Work) -> None:
    """The contributions to the key of every head, of every modifier, and of every direction and distance."""
    head_keys, modifier_keys, span_keys, _, _, _ = work
    for i in range(n + 1):
        head_keys[i] = 0
        modifier_keys[i] = 0
    for k in range(templates.side.shape[1]):
        if templates.side[t, k] < 0:
            continue
        keys = head_keys if templates.side[t, k] == 0 else modifier_keys
        multiplier = templates.multiplier[t, k]
        field, first = templates.field[t, k], root + templates.shift[t, k]
        for i in range(n + 1):
            keys[i] += multiplier * np.uint64(codes[field, first + i])
    multiplier = templates.conjunction_multiplier[t]
    conjunction = templates.conjunction[t]
    for distance in range(n + 1):
        code = 0 if conjunction == 0 else 1 if conjunction == 1 else distance_bin(distance)
        span_keys[n + distance] = multiplier * np.uint64(2 * code)
        span_keys[n - distance] = multiplier * np.uint64(2 * code + (conjunction > 0))


@part
def fire(way: Way, nodes: CodedNodes, root: int, n: int, start: int, stop: int, width: int, work: Work) -> int:
    """List what a template fires on the arcs from heads start .. stop-1; return how many keys that is."""
    codes, feat_start, feats = nodes
    head_keys, modifier_keys, span_keys, seen, cells, keys = work
    count = 0
    for h in range(start, stop):
        head_key, row, before = head_keys[h], h * width, n - h
        if before < 0 or count < 0:  # never; it tells the compiler the sign of the indices
            return 0
        if way.between >= 0:
            values = codes[way.between, root : root + n + 1]
            count = _fire_between(way, values, h, head_key, row, modifier_keys, span_keys, seen, cells, keys, count)
        elif way.head_feat or way.modifier_feat:
            count = _fire_feats(
                way, feat_start, feats, root, n, h, head_key, row, modifier_keys, span_keys, cells, keys, count
            )
        else:
            for m in range(1, n + 1):
                cells[count + m - 1] = row + m
                keys[count + m - 1] = head_key + modifier_keys[m] + span_keys[before + m]
            count += n
    return count


@part
def _fire_between(
    way: Way,
    values: Codes,
    h: int,
    head_key: np.uint64,
    row: int,
    modifier_keys: Keys,
    span_keys: Keys,
    seen: Keys,
    cells: Ints,
    keys: Keys,
    count: int,
) -> int:
    """Fire once for each distinct value strictly between h and m, walking away from h on either side."""
    n = len(values) - 1
    for step in (-1, 1):
        distinct = 0
        m = h + step
        while 1 <= m <= n:
            key = head_key + modifier_keys[m] + span_keys[n + m - h]
            for j in range(distinct):
                cells[count] = row + m
                keys[count] = key + seen[j]
                count += 1
            value = way.first_multiplier * np.uint64(values[m])
            known = False
            for j in range(distinct):
                known |= seen[j] == value
            if not known:
                seen[distinct] = value
                distinct += 1
            m += step
    return count


@part
def _fire_feats(
    way: Way,
    feat_start: Codes,
    feats: Codes,
    root: int,
    n: int,
    h: int,
    head_key: np.uint64,
    row: int,
    modifier_keys: Keys,
    span_keys: Keys,
    cells: Ints,
    keys: Keys,
    count: int,
) -> int:
    """Fire once for each feature of the head, of the modifier, or each pair of them; the root has none."""
    head_first = feat_start[root + h]
    head_last = feat_start[root + h + 1] if way.head_feat else head_first + 1
    for m in range(1, n + 1):
        key = head_key + modifier_keys[m] + span_keys[n + m - h]
        first, last = feat_start[root + m], feat_start[root + m + 1]
        for i in range(head_first, head_last):
            half = key + (way.first_multiplier * np.uint64(feats[i]) if way.head_feat else np.uint64(0))
            if not way.modifier_feat:
                cells[count] = row + m
                keys[count] = half
                count += 1
                continue
            for j in range(first, last):
                cells[count] = row + m
                keys[count] = half + way.second_multiplier * np.uint64(feats[j])
                count += 1
    return count


@part
def fire_listed(
    way: Way, nodes: CodedNodes, root: int, n: int, heads: Ints, modifiers: Ints, width: int, work: Work
) -> int:
    """List what a template fires on the arcs heads[k] -> modifiers[k]; return how many keys that is.

    For templates that may fire several times; for the others it is quicker to add up the parts of the key directly.
    """
    codes, feat_start, feats = nodes
    head_keys, modifier_keys, span_keys, seen, cells, keys = work
    if way.between >= 0:
        values = codes[way.between, root : root + n + 1]
        return _fire_listed_between(
            way, values, heads, modifiers, width, head_keys, modifier_keys, span_keys, seen, cells, keys
        )
    return _fire_listed_feats(
        way, feat_start, feats, root, n, heads, modifiers, width, head_keys, modifier_keys, span_keys, cells, keys
    )


@part
def _fire_listed_between(
    way: Way,
    values: Codes,
    heads: Ints,
    modifiers: Ints,
    width: int,
    head_keys: Keys,
    modifier_keys: Keys,
    span_keys: Keys,
    seen: Keys,
    cells: Ints,
    keys: Keys,
) -> int:
    """Fire once for each distinct value strictly between head and modifier, at the leftmost word that has it."""
    n = len(values) - 1
    for i in range(1, n + 1):  # seen[i]: the nearest word to the left with the value of i, 0 if there is none
        j = i - 1
        while j > 0 and values[j] != values[i]:
            j -= 1
        seen[i] = j
    count = 0
    for k in range(len(heads)):
        h, m = heads[k], modifiers[k]
        key = head_keys[h] + modifier_keys[m] + span_keys[n + m - h]
        left = min(h, m)
        for i in range(left + 1, max(h, m)):
            if seen[i] <= np.uint64(left):
                cells[count] = h * width + m
                keys[count] = key + way.first_multiplier * np.uint64(values[i])
                count += 1
    return count


@part
def _fire_listed_feats(
    way: Way,
    feat_start: Codes,
    feats: Codes,
    root: int,
    n: int,
    heads: Ints,
    modifiers: Ints,
    width: int,
    head_keys: Keys,
    modifier_keys: Keys,
    span_keys: Keys,
    cells: Ints,
    keys: Keys,
) -> int:
    """Fire once for each feature of the head, of the modifier, or each pair of them; the root has none."""
    count = 0
    for k in range(len(heads)):
        h, m = heads[k], modifiers[k]
        key = head_keys[h] + modifier_keys[m] + span_keys[n + m - h]
        head_first = feat_start[root + h]
        head_last = feat_start[root + h + 1] if way.head_feat else head_first + 1
        first = feat_start[root + m]
        last = feat_start[root + m + 1] if way.modifier_feat else first + 1
        for i in range(head_first, head_last):
            half = key + (way.first_multiplier * np.uint64(feats[i]) if way.head_feat else np.uint64(0))
            for j in range(first, last):
                cells[count] = h * width + m
                keys[count] = half + (
                    way.second_multiplier * np.uint64(feats[j]) if way.modifier_feat else np.uint64(0)
                )
                count += 1
    return count
