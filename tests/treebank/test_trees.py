"""Questions about heads, against walks from word to word and pairs of arcs."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given

from headway.errors import HeadsError
from headway.inference import brute_force
from headway.treebank import crossing_arcs, is_projective, is_tree, non_projective_arcs, roots
from headway.treebank.trees import as_heads, cycle

from .strategies import head_choices, trees

ALL_CHOICES = [
    (-1, *heads)
    for n in range(5)
    for heads in product(range(n + 1), repeat=n)
    if all(h != m for m, h in enumerate(heads, start=1))
]


def ancestors(heads: tuple[int, ...], word: int) -> list[int]:
    """The heads above a word, as far as they are new."""
    found: list[int] = []
    while word > 0 and heads[word] not in found:
        word = heads[word]
        found.append(word)
    return found


def cross(heads: tuple[int, ...], a: int, b: int) -> bool:
    """Do the arcs of words a and b cross: are their ends in the order a b a b or b a b a?"""
    (a1, a2), (b1, b2) = sorted((a, heads[a])), sorted((b, heads[b]))
    return a1 < b1 < a2 < b2 or b1 < a1 < b2 < a2


def naive_crossing(heads: tuple[int, ...]) -> list[bool]:
    words = range(1, len(heads))
    return [False, *(any(cross(heads, a, b) for b in words) for a in words)]


def naive_non_projective(heads: tuple[int, ...]) -> list[bool]:
    """The definition of the treebanks' table: head not the root, spans a word that does not descend from it."""
    return [
        False,
        *(
            head != 0 and any(head not in ancestors(heads, k) for k in range(min(word, head) + 1, max(word, head)))
            for word, head in enumerate(heads[1:], start=1)
        ),
    ]


def check(heads: tuple[int, ...]) -> None:
    tree = brute_force.is_tree(heads)
    assert is_tree(heads) == tree
    assert crossing_arcs(heads).tolist() == naive_crossing(heads)
    assert roots(heads).tolist() == [m for m, h in enumerate(heads) if h == 0]
    assert is_projective(heads) == (tree and brute_force.is_projective(heads))
    on_cycle = cycle(heads)
    assert bool(on_cycle) == (not tree)
    assert all(heads[a] == b for a, b in zip(on_cycle, on_cycle[1:] + on_cycle[:1], strict=True))
    assert len(set(on_cycle)) == len(on_cycle)
    assert on_cycle[:1] == tuple(sorted(on_cycle))[:1]
    if tree:
        assert non_projective_arcs(heads).tolist() == naive_non_projective(heads)
    else:
        with pytest.raises(HeadsError, match=", ".join(map(str, on_cycle))):
            non_projective_arcs(heads)


def test_every_choice_of_heads_up_to_four_words() -> None:
    for heads in ALL_CHOICES:
        check(heads)


@given(heads=head_choices(max_words=12))
def test_any_choice_of_heads(heads: tuple[int, ...]) -> None:
    check(heads)


@given(heads=trees(max_words=14))
def test_any_tree(heads: tuple[int, ...]) -> None:
    check(heads)


@pytest.mark.parametrize("n", [33, 64, 100])
def test_long_trees(n: int) -> None:
    """Lengths around powers of two, where the windows of the table change."""
    rng = np.random.default_rng(n)
    for _ in range(5):
        order = rng.permutation(n) + 1
        heads = np.full(n + 1, -1)
        for position, word in enumerate(order):
            heads[word] = rng.choice([0, *order[max(0, position - 3) : position]])
        check(tuple(heads.tolist()))


def test_a_chain_of_100_000_words_needs_no_square_of_memory() -> None:
    n = 100_000
    heads = np.arange(-1, n)
    assert is_projective(heads)
    assert not non_projective_arcs(heads).any()
    heads[1] = n
    assert not is_tree(heads)
    assert cycle(heads) == (1, *range(n, 1, -1))


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        ([0, 2, 0], "heads[0] == -1"),
        ([], "heads[0] == -1"),
        ([[-1, 0]], "heads[0] == -1"),
        ([-1.0, 0.0], "one integer per word"),
        ([-1, 3, 0], "heads[1] is 3"),
        ([-1, 0, -1], "heads[2] is -1"),
        ([-1, 0, 2], "heads[2] is 2"),
    ],
)
def test_no_choice_of_heads(heads: object, said: str) -> None:
    with pytest.raises(HeadsError) as caught:
        as_heads(heads)  # type: ignore[arg-type]
    assert said in str(caught.value)


def test_as_heads_copies() -> None:
    heads = np.array([-1, 0])
    as_heads(heads)[1] = 7
    assert heads.tolist() == [-1, 0]
