"""The layout of trees, as the page computes it: nothing overlaps, whatever the tree."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("playwright.sync_api")

PLACED = """async ({widths, arcs, rightToLeft}) => {
  const {layout} = await import("/static/layout.js");
  return layout(widths, arcs, {margin: 10, rightToLeft});
}"""


@pytest.fixture(scope="module")
def place(browser, server):
    page = browser.new_page()
    page.goto(f"{server.url}/")
    yield lambda widths, arcs, mirrored=False: page.evaluate(
        PLACED, {"widths": widths, "arcs": arcs, "rightToLeft": mirrored}
    )
    page.close()


def random_trees(rng, count):
    """Any heads at all, cycles and several roots included: an annotator's file may have them."""
    for _ in range(count):
        n = int(rng.integers(1, 40))
        heads = [int(rng.choice([h for h in range(n + 1) if h != m])) for m in range(1, n + 1)]
        widths = rng.uniform(5, 90, n).round(2).tolist()
        yield (
            widths,
            [
                {"head": head, "modifier": m, "labelWidth": float(rng.uniform(0, 60).__round__(2))}
                for m, head in enumerate(heads, start=1)
            ],
        )


@pytest.mark.parametrize("mirrored", [False, True])
def test_nothing_overlaps(place, mirrored):
    for widths, arcs in random_trees(np.random.default_rng(7), 40):
        found = place(widths, arcs, mirrored)
        words, boxes = found["words"], found["boxes"]
        ordered = sorted(range(len(words)), key=lambda i: words[i])
        assert ordered == (list(range(len(words)))[::-1] if mirrored else list(range(len(words))))
        for a, b in pairwise(ordered):
            assert words[b] - words[a] >= (boxes[a] + boxes[b]) / 2
        assert min(x - b / 2 for x, b in zip(words, boxes, strict=True)) >= 0
        assert max(x + b / 2 for x, b in zip(words, boxes, strict=True)) <= found["width"]
        placed = [(min(a["headX"], a["modifierX"]), max(a["headX"], a["modifierX"]), a) for a in found["arcs"]]
        for i, (left, right, arc) in enumerate(placed):
            label = arc["labelX"] - arc["labelWidth"] / 2, arc["labelX"] + arc["labelWidth"] / 2
            for other_left, other_right, other in placed[:i] + placed[i + 1 :]:
                if arc["level"] == other["level"] and arc["head"] and other["head"]:
                    assert right <= other_left or other_right <= left  # no two lines on one another
                if other["level"] >= arc["level"] and arc["labelWidth"] and arc["head"]:
                    lines = other["headX"], other["modifierX"]
                    assert not any(label[0] < x < label[1] for x in lines)  # no line through a label
            ends = [a["modifierX"] for _, _, a in placed] + [a["headX"] for _, _, a in placed if a["head"]]
            assert len({round(x, 3) for x in ends}) == len(ends)  # no two arcs end in one place


def test_arcs_of_a_projective_tree_do_not_cross(place):
    arcs = [(2, 1), (0, 2), (5, 3), (5, 4), (2, 5), (2, 6)]
    found = place([30] * 6, [{"head": h, "modifier": m, "labelWidth": 20} for h, m in arcs])
    assert [arc["level"] for arc in found["arcs"]] == [1, 5, 2, 1, 3, 4]
    assert found["levels"] == 5
