"""The layout of an automaton: where its states are, and how the arrows between them run.

The layer of a state is its distance from the start, and layers go from left to right. Within a layer, states are as
near as possible to the barycentre of their neighbours (Sugiyama et al. 1981); neighbours are swapped where that helps.
An arrow is a cubic curve. It has about a hundred candidates (how far it bends and to which side, where its label is;
for a loop, its direction) and takes the one with the lowest cost, given the choices of the other arrows. They take
turns until nothing changes. There are costs for a label on a state, on another label or on a line, a line through a
state, lines that cross, ends that meet, and bends. As long as something covers something else, everything is tried
again with more room. O(E^2) for E arrows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.arrays import Bools, Floats, Ints
from headway.drawing.primitives import Point

Costs = NDArray[np.int16]

RADIUS = 34.0  # of a state
ENTRY = 34.0  # the length of the arrow that enters the start
ARROW = (9.0, 7.0)  # length and width of an arrow head
_GAP = 3.0  # between a label and its own arrow
_BETWEEN = (12.0, 5.0)  # labels side by side, or one above the other

_BENDS = tuple(side * bend for bend in (0.05, 0.1, 0.16, 0.23, 0.31, 0.4, 0.5, 0.62) for side in (1, -1))
_STANDS = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.18, 0.82)  # where a label can be on its arrow
_LOOPS = tuple(np.radians([-90, 90, 0, 180, -60, 60, -120, 120, -30, 30, -150, 150]).tolist())
_LOOP_REACH, _LOOP_SPREAD = 3.1 * RADIUS, 0.45
_SAMPLES, _COARSE = 97, 6  # points that represent a curve; against other curves every sixth is enough
FINE = 257
_TURNS = 8
_SWEEPS = 6
_ORDERS = 24
_ROOMS = (1.0, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0, 4.0)
_COVERED, _ON_LINE, _MEETING, _CROSSING, _NEAR = 1000, 60, 20, 6, 3
_BENT, _ASIDE, _HIDDEN = 60.0, 15.0, 40.0


@dataclass(frozen=True, slots=True)
class Link:
    """An arrow to lay out: its states, how much it matters, width and height of its label."""

    source: int
    target: int
    weight: float
    size: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Route:
    """How an arrow runs."""

    ends: tuple[int, int]
    curve: Floats  # (4, 2)
    points: Floats  # (M, 2)
    box: Floats  # (4,)


def graph_layout(nodes: int, start: int, links: Sequence[Link]) -> tuple[list[Point], list[Route]]:
    """Where the states are, and how the arrows run, with as much room as needed."""
    layers, heights = _layers(nodes, start, links)
    widest, tallest = np.max(np.array([(0.0, 0.0), *(link.size for link in links)]), axis=0).tolist()
    least = np.inf
    best: tuple[list[Point], list[Route]] = [], []
    for room in _ROOMS:
        places = _grid(layers, heights, room * (2 * RADIUS + widest + 40), room * (2 * RADIUS + tallest + 36))
        routes, cost = _routed(places, start, links)
        if cost < least:
            least, best = cost, (places, routes)
        if cost == 0:
            break
    return best


def distances(start: int, pairs: Collection[tuple[int, int]]) -> dict[int, int]:
    """How many arrows away from the start each reachable state is; an arrow leads from the first to the second."""
    distance, border = {start: 0}, {start}
    while border:
        border = {target for source, target in pairs if source in border} - distance.keys()
        distance |= dict.fromkeys(border, max(distance.values()) + 1)
    return distance


def _layers(nodes: int, start: int, links: Sequence[Link]) -> tuple[list[list[int]], list[float]]:
    """The states by distance from the start, each layer from top to bottom, and the height of each state."""
    distance = distances(start, [(link.source, link.target) for link in links])
    layers: list[list[int]] = [[] for _ in range(max(distance.values()) + 1)]
    for state in range(nodes):
        layers[distance[state]].append(state)
    pairs = {(min(link.source, link.target), max(link.source, link.target)) for link in links}
    near = [[a + b - state for a, b in sorted(pairs) if state in (a, b) and a != b] for state in range(nodes)]
    heights = [0.0] * nodes
    for layer in layers:
        _settle(layer, near, heights)
    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 else layers[::-1]:
            centres = {state: _centre(near[state], heights) for state in layer}
            layer.sort(key=centres.__getitem__)
            _settle(layer, near, heights)
            _switch(layer, near, heights)
    return layers, heights


def _centre(near: Sequence[int], heights: Sequence[float]) -> float:
    """The barycentre of some states."""
    return sum(heights[state] for state in near) / len(near) if near else 0.0


def _settle(layer: Sequence[int], near: Sequence[Sequence[int]], heights: list[float]) -> None:
    """Put the states of a layer as near to their barycentres as their order and a distance of 1 allow.

    Least squares: states that would be closer form a block around the mean of their barycentres.
    """
    blocks: list[list[float]] = []
    for place, state in enumerate(layer):
        blocks.append([_centre([other for other in near[state] if other not in layer], heights) - place])
        while len(blocks) > 1 and _mean(blocks[-2]) >= _mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    free = [_mean(block) for block in blocks for _ in block]
    for place, state in enumerate(layer):
        heights[state] = free[place] + place


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _switch(layer: list[int], near: Sequence[Sequence[int]], heights: list[float]) -> None:
    """Swap neighbours in a layer as long as this makes their arrows shorter."""

    def length() -> float:
        return sum(abs(heights[s] - heights[t]) for s in layer for t in near[s])

    shortest, before = length(), np.inf
    while shortest < before:
        before = shortest
        for place in range(len(layer) - 1):
            layer[place : place + 2] = layer[place : place + 2][::-1]
            _settle(layer, near, heights)
            if length() < shortest - 1e-9:
                shortest = length()
                continue
            layer[place : place + 2] = layer[place : place + 2][::-1]
            _settle(layer, near, heights)


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The ways one arrow can run: K curves, each with T places for the label."""

    ends: tuple[int, int]
    curves: Floats  # (K, 4, 2) control points, from circle to circle
    points: Floats  # (K, M, 2) on the curves, the arrow's tip included
    boxes: Floats  # (K, T, 4) left, top, right, bottom of the label
    costs: Floats  # (K, T) independent of the other arrows

    @property
    def extent(self) -> Floats:
        """A box around everything."""
        corners = np.concatenate([self.points.reshape(-1, 2), self.boxes.reshape(-1, 2)])
        return np.concatenate([corners.min(axis=0), corners.max(axis=0)])

    def route(self, k: int, t: int) -> Route:
        """One of them."""
        return Route(self.ends, self.curves[k], self.points[k], self.boxes[k, t])


def _grid(layers: Sequence[Sequence[int]], heights: Sequence[float], across: float, down: float) -> list[Point]:
    """The centre of every state; a layer bulges to the right, to clear the way from its first to its last state."""
    places: dict[int, Point] = {}
    x = 0.0
    for layer in layers:
        half = (len(layer) - 1) / 2
        bulge = min(half, 2.0) * 0.2 * across
        for place, state in enumerate(layer):
            away = (place - half) / half if half else 0.0
            places[state] = x + bulge * (1 - away**2), heights[state] * down
        x += across + bulge
    return [places[state] for state in sorted(places)]


def _routed(places: Sequence[Point], start: int, links: Sequence[Link]) -> tuple[list[Route], float]:
    """A route for each arrow, and the cost of what is covered."""
    states = np.array(places)
    entry = _entry_candidate(states[start], start)
    every = [_candidates(states, (link.source, link.target), *link.size) for link in links]
    alone = [arrow.costs + _between(arrow, entry)[:, :, 0, 0] for arrow in every]
    between = _tables(every)
    likely = sorted(range(len(links)), key=lambda e: (-links[e].weight, e))
    rng = np.random.default_rng(0)  # the order matters: probable arrows first, or a random order
    orders = [likely, *(rng.permutation(len(links)).tolist() for _ in range(_ORDERS))]
    _, choice = min((_in_turns(alone, between, order) for order in orders), key=lambda found: found[0])
    routes = [arrow.route(*where) for arrow, where in zip(every, choice, strict=True)]
    return routes, _trouble(states, [entry.route(0, 0), *routes])


def _tables(every: Sequence[_Candidates]) -> list[dict[int, Costs]]:
    """For each arrow and each other that can get in its way: the joint costs of their candidates, (K, T, K', T')."""
    tables: list[dict[int, Costs]] = [{} for _ in every]
    extents = np.array([arrow.extent for arrow in every]).reshape(-1, 4)
    for e, f in np.argwhere(np.tril(_overlap(extents, extents), -1)).tolist():
        table = _between(every[e], every[f])
        tables[e][f], tables[f][e] = table, table.transpose(2, 3, 0, 1)
    return tables


def _in_turns(
    alone: Sequence[Floats], between: Sequence[dict[int, Costs]], order: Sequence[int]
) -> tuple[float, list[tuple[int, int]]]:
    """Let the arrows choose candidates in this order until nothing changes; the total cost, and the choices."""
    choice: dict[int, tuple[int, int]] = {}
    for _ in range(_TURNS):
        before = dict(choice)
        for e in order:
            costs = alone[e] + sum(table[:, :, *choice[f]] for f, table in between[e].items() if f in choice)
            choice[e] = divmod(int(np.round(costs, 6).argmin()), costs.shape[1])
        if choice == before:
            break
    total = sum(float(costs[choice[e]]) for e, costs in enumerate(alone))
    total += sum(float(table[*choice[e], *choice[f]]) for e in choice for f, table in between[e].items() if f < e)
    return total, [choice[e] for e in range(len(alone))]


def _entry_candidate(place: Floats, start: int) -> _Candidates:
    """The arrow that enters the start, which has a single candidate; its label is a point at its beginning."""
    points = place - np.linspace(RADIUS + ENTRY, RADIUS, _SAMPLES)[:, None] * [1.0, 0.0]
    return _Candidates(
        (start, start), points[None, [0, 10, 20, -1]], points[None], points[None, :1, [0, 1, 0, 1]], np.zeros((1, 1))
    )


def _candidates(states: Floats, ends: tuple[int, int], width: float, height: float) -> _Candidates:
    source, target = states[ends[0]], states[ends[1]]
    half = np.array([width, height]) / 2
    if ends[0] == ends[1]:
        curves, points = _clipped(_loops(source), source, target)
        look = np.array([[np.cos(angle), np.sin(angle)] for angle in _LOOPS])
        # Either an edge of the label touches the loop, or one of its corners.
        reach = np.stack([(half / np.maximum(np.abs(look), 1e-9)).min(axis=1), np.abs(look) @ half], axis=1) + _GAP + 1
        middles = points_at(curves, np.array([0.5])) + look[:, None] * reach[:, :, None]
        taste = 0.5 * np.arange(len(look))[:, None] + [0.0, 2.0]
    else:
        curves, points = _clipped(_arcs(source, target), source, target)
        middles = points_at(curves, np.array(_STANDS))
        taste = _BENT * np.square(_BENDS)[:, None] + _ASIDE * np.abs(np.array(_STANDS) - 0.5)
    boxes = np.concatenate([middles - half, middles + half], axis=-1)
    hidden = within(boxes[:, :, None], points[:, None]).mean(axis=-1)
    others = np.delete(states, ends, axis=0)
    covered = _on_states(boxes, states).sum(axis=-1) + _through(points, others).sum(axis=-1)[:, None]
    return _Candidates(ends, curves, points, boxes, taste + _HIDDEN * hidden + _COVERED * covered)


def _arcs(source: Floats, target: Floats) -> Floats:
    """The arcs from one centre to another, (K, 4, 2)."""
    way = target - source
    across = np.array([-way[1], way[0]])
    lifts = np.array(_BENDS)[:, None] * across / 0.75
    first, second = source + 0.25 * way + lifts, target - 0.25 * way + lifts
    return np.stack([np.broadcast_to(source, first.shape), first, second, np.broadcast_to(target, first.shape)], axis=1)


def _loops(middle: Floats) -> Floats:
    """The loops at a state, (K, 4, 2)."""
    angles = np.array(_LOOPS)[:, None] + [-_LOOP_SPREAD, _LOOP_SPREAD]
    far = middle + _LOOP_REACH * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    ends = np.broadcast_to(middle, (len(angles), 1, 2))
    return np.concatenate([ends, far, ends], axis=1)


def _clipped(curves: Floats, source: Floats, target: Floats) -> tuple[Floats, Floats]:
    """The parts of the curves between the circles, without the arrow head, and points on them up to the tip."""
    t = np.linspace(0, 1, FINE)
    fine = points_at(curves, t)
    starts = (np.linalg.norm(fine - source, axis=-1) > RADIUS + 1).argmax(axis=1)
    ends = FINE - 1 - (np.linalg.norm(fine - target, axis=-1) > RADIUS + ARROW[0])[:, ::-1].argmax(axis=1)
    parts = np.array([part_of(curve, t[a], t[b]) for curve, a, b in zip(curves, starts, ends, strict=True)])
    points = points_at(parts, np.linspace(0, 1, _SAMPLES - 1))
    inwards = target - parts[:, 3]
    tips = target - inwards / np.linalg.norm(inwards, axis=-1, keepdims=True) * RADIUS
    return parts, np.concatenate([points, tips[:, None]], axis=1)


def points_at(curves: Floats, t: Floats) -> Floats:
    """Points of the curves (..., 4, 2) at the parameters (T,): (..., T, 2)."""
    weights: Floats = np.stack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3], axis=1)
    return weights @ curves


def part_of(curve: Floats, a: float, b: float) -> Floats:
    """The part of a curve from parameter a to b, by its polar form."""

    def blossom(*parameters: float) -> Floats:
        points = curve
        for t in parameters:
            points = (1 - t) * points[:-1] + t * points[1:]
        return points.reshape(2)

    return np.stack([blossom(a, a, a), blossom(a, a, b), blossom(a, b, b), blossom(b, b, b)])


def _on_states(boxes: Floats, states: Floats) -> Bools:
    """Whether boxes (..., 4) and the circles (S, 2) touch: (..., S)."""
    nearest = np.clip(states, boxes[..., None, :2], boxes[..., None, 2:])
    apart: Floats = np.linalg.norm(nearest - states, axis=-1)
    return apart < RADIUS + _GAP + 1


def _through(points: Floats, states: Floats) -> Bools:
    """Whether lines (..., M, 2) pass through the circles (S, 2): (..., S)."""
    apart = np.linalg.norm(points[..., None, :] - states, axis=-1)
    touch: Bools = np.any(apart < RADIUS + 6, axis=-2)
    return touch


def _overlap(boxes: Floats, others: Floats) -> Bools:
    """Whether boxes (..., 4) and boxes (O, 4) touch: (..., O)."""
    left, top, right, bottom = (boxes[..., i, None] for i in range(4))
    x, y = _BETWEEN
    across = (left < others[:, 2] + x) & (others[:, 0] < right + x)
    return across & (top < others[:, 3] + y) & (others[:, 1] < bottom + y)


def within(boxes: Floats, points: Floats) -> Bools:
    """Whether points (..., 2) are in boxes (..., 4)."""
    x, y = points[..., 0], points[..., 1]
    across = (x > boxes[..., 0] - _GAP) & (x < boxes[..., 2] + _GAP)
    return across & (y > boxes[..., 1] - _GAP) & (y < boxes[..., 3] + _GAP)


def _hold(boxes: Floats, lines: Floats) -> Bools:
    """Whether a box (..., 4) contains a point of the lines (O, M, 2): (..., O)."""
    held: Bools = np.any(within(boxes[..., None, None, :], lines), axis=-1)
    return held


def _crossings(lines: Floats, others: Floats) -> Ints:
    """How often the lines (K, M, 2) cross the lines (O, M, 2): (K, O)."""
    split = _split(lines, others) & _split(others, lines).transpose(1, 0, 3, 2)
    crossed: Ints = np.count_nonzero(split, axis=(2, 3))
    return crossed


def _split(lines: Floats, others: Floats) -> Bools:
    """Whether the straight line through a piece of a line separates the ends of a piece of another."""
    way = np.diff(lines, axis=1)[:, None, :, None]
    start = lines[:, None, :-1, None]
    points = others[None, :, None]
    side = way[..., 0] * points[..., 1] - way[..., 1] * points[..., 0]
    side -= way[..., 0] * start[..., 1] - way[..., 1] * start[..., 0]
    above = side > 0
    apart: Bools = above[..., :-1] != above[..., 1:]
    return apart


def _near(points: Floats, others: Floats, distance: float) -> Bools:
    """Whether points (K, M, 2) are near points (O, N, 2): (K, O, M, N)."""
    x = points[:, None, :, None, 0] - others[None, :, None, :, 0]
    y = points[:, None, :, None, 1] - others[None, :, None, :, 1]
    return x * x + y * y < distance**2


def _between(one: _Candidates, other: _Candidates) -> Costs:
    """The joint cost of each candidate of one arrow and each of another, (K, T, K', T')."""
    coarse, coarse_other = one.points[:, ::_COARSE], other.points[:, ::_COARSE]
    meeting = np.count_nonzero(_near(coarse[:, [0, -1]], coarse_other[:, [0, -1]], 14), axis=(2, 3))
    near = np.count_nonzero(_near(coarse, coarse_other, 8).any(axis=3), axis=2)
    lines = _CROSSING * _crossings(coarse, coarse_other) + _MEETING * meeting + _NEAR * near
    labels = _overlap(one.boxes, other.boxes.reshape(-1, 4)).reshape(*one.costs.shape, *other.costs.shape)
    ours = _hold(one.boxes, other.points)  # (K, T, K')
    theirs = _hold(other.boxes, one.points).transpose(2, 0, 1)  # (K, K', T')
    costs = _COVERED * labels + _ON_LINE * (ours[:, :, :, None] + theirs[:, None].astype(np.int64))
    total: Costs = (costs + lines[:, None, :, None]).astype(np.int16)
    return total


def _trouble(states: Floats, routes: Sequence[Route]) -> float:
    """The cost of labels and states that are covered, or have lines through them."""
    total = 0.0
    for e, route in enumerate(routes):
        away = np.delete(states, route.ends, axis=0)
        total += _COVERED * float(_on_states(route.box, states).sum() + _through(route.points, away).sum())
        others = [other for i, other in enumerate(routes) if i != e]
        if others:
            total += _COVERED * float(_overlap(route.box, np.array([other.box for other in others])).sum())
            total += _ON_LINE * float(_hold(route.box, np.array([other.points for other in others])).sum())
    return total
