"""How two mentions compare: every atom against plain Python over the document's words."""

from __future__ import annotations

from itertools import islice
from pathlib import Path as FilePath

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.coreference import Document, read_documents
from headway.coreference.antecedents import Antecedents, Sieves
from headway.coreference.coding import MentionCoder
from headway.coreference.pairs import PAIR_ATOMS, pair_atoms

from .naive_pairs import Path, naive_antecedents, naive_atoms, naive_mentions, naive_path
from .toy_documents import document, random_document, sentence

GUM = FilePath(__file__).resolve().parents[3] / "shared" / "data" / "ud" / "UD_English-GUM"
SEEDS = st.integers(0, 2**32 - 1)
CODER = MentionCoder.learn([])
ALL = Sieves(1000, 1000)


def arcs_of(text: Document, sieves: Sieves = ALL) -> Antecedents:
    return sieves.antecedents(CODER.code(text))


def atom(arcs: Antecedents, name: str, a: int, m: int) -> int:
    """One atom of the arc from a to m."""
    (place,) = np.flatnonzero((arcs.antecedent == a) & (arcs.mention == m))
    return int(arcs.atoms[place, PAIR_ATOMS.index(name)])


def assert_as_in_plain_python(text: Document, near: int, sentences: int) -> None:
    arcs = arcs_of(text, Sieves(near, sentences))
    mentions, candidates = naive_mentions(text), naive_antecedents(text, near, sentences)
    for row, a, m in zip(arcs.atoms.tolist(), arcs.antecedent.tolist(), arcs.mention.tolist(), strict=True):
        expected = naive_atoms(mentions, candidates[m - 1], a, m)
        found = dict(zip(PAIR_ATOMS, row, strict=True))
        assert {name: found[name] for name in expected} == expected
        if a and naive_path(mentions[a - 1], mentions[m - 1]) is None:
            assert found["path"] == 1
        assert a or not found["path"]


@settings(max_examples=100)
@given(SEEDS, st.integers(0, 6), st.integers(0, 3))
def test_against_plain_python(seed: int, near: int, sentences: int) -> None:
    """Also where few are candidates: those between count only if they are."""
    assert_as_in_plain_python(random_document(seed), near, sentences)


def test_long_sentences() -> None:
    """Long ways in the tree, many rivals."""
    for seed in range(6):
        assert_as_in_plain_python(random_document(seed, sentences=2, words=25, mentions=20), 1000, 1000)


def test_every_value_occurs_in_what_was_compared() -> None:
    """Or the comparison would say little."""
    found: dict[str, set[int]] = {name: set() for name in PAIR_ATOMS}
    for seed in range(150):
        assert_as_in_plain_python(random_document(seed), 1000, 1000)
        atoms = arcs_of(random_document(seed)).atoms
        for column, name in enumerate(PAIR_ATOMS):
            found[name] |= set(atoms[:, column].tolist())
    expected = {
        "root": {0, 1}, "string": {1, 2, 3}, "head": {1, 2}, "words": {1, 2, 3, 4, 5}, "modifiers": set(range(1, 11)),
        "initials": {1, 2}, "between": {1, 2, 3, 4}, "rivals": set(range(1, 9)), "nested": {1, 2},
        "talk": set(range(1, 8)), "governors": {1, 2, 3}, "syntax": set(range(1, 17)),
        **{name: {1, 2, 3} for name in ("number", "gender", "person", "type")},
    }  # fmt: skip
    for name, values in expected.items():
        assert found[name] - {0} == values - {0}, name


def test_distances() -> None:
    """A mention in each of a hundred sentences, and a hundred of them in one: all bins, and their edges."""
    apart = document([sentence(f"w{i} NOUN 0 root") for i in range(100)], [(i, (1,)) for i in range(100)])
    together = document(
        [sentence("w NOUN 0 root", *(f"w{i} NOUN {i} nmod" for i in range(1, 100)))], [(0, (i,)) for i in range(1, 101)]
    )
    for text, name in ((apart, "sentences"), (together, "mentions")):
        arcs = arcs_of(text)
        own = int(name == "mentions")  # the mention itself is not between
        bins = {m - 1 - own: atom(arcs, name, 1, m) - 1 for m in range(2, 101)}
        edges = [d for d in bins if d - 1 in bins and bins[d] != bins[d - 1]]
        assert edges == [d for d in (1, 2, 3, 4, 5, 7, 10, 16, 31, 64) if d - 1 in bins]
        assert [bins[d] for d in edges] == list(range(11 - len(edges), 11))
    assert_as_in_plain_python(apart, 90, 70)


# Paths


def paths_in(texts: list[Document]) -> dict[Path, set[int]]:
    """The atoms that each path has, wherever it is."""
    found: dict[Path, set[int]] = {}
    for text in texts:
        arcs, mentions = arcs_of(text), naive_mentions(text)
        column = arcs.atoms[:, PAIR_ATOMS.index("path")].tolist()
        for value, a, m in zip(column, arcs.antecedent.tolist(), arcs.mention.tolist(), strict=True):
            path = naive_path(mentions[a - 1], mentions[m - 1]) if a else None
            if path is not None:
                found.setdefault(path, set()).add(value)
    return found


@given(SEEDS)
def test_the_same_path_is_the_same_atom(seed: int) -> None:
    """In this document and in another one with other words and other labels around."""
    assert all(len(atoms) == 1 for atoms in paths_in([random_document(seed), random_document(seed ^ 77)]).values())


def test_other_paths_are_other_atoms() -> None:
    """Up and down are told apart, and the order of labels; none is taken for no path at all."""
    labels = ("nsubj", "obj", "nmod", "conj", "flat")
    chain = sentence("w VERB 0 root", *(f"w NOUN {i} {labels[i % 5]}" for i in range(1, 8)))
    fork = sentence(
        "w VERB 0 root", "w NOUN 1 nsubj", "w NOUN 1 obj", "w NOUN 2 nmod", "w NOUN 3 nmod", "w NOUN 4 conj",
        "w NOUN 5 nsubj", "w NOUN 4 nsubj", "w NOUN 1 nsubj",
    )  # fmt: skip
    texts = [document([each], [(0, (word,)) for word in range(1, len(each) + 1)]) for each in (chain, fork)]
    nested = document([fork], [(0, (1, 2, 3)), (0, (1,)), (0, (1, 2))])
    found = paths_in([*texts, nested])
    assert all(len(atoms) == 1 for atoms in found.values())
    assert len(set().union(*found.values())) == len(found) > 40
    assert ((), ()) in found
    assert not set().union(*found.values()) & {0, 1}


def test_a_way_of_six_steps_is_too_far() -> None:
    chain = sentence("w VERB 0 root", *(f"w NOUN {i} nmod" for i in range(1, 8)))
    arcs = arcs_of(document([chain], [(0, (word,)) for word in range(1, 9)]))
    assert [atom(arcs, "syntax", 1, m) for m in range(2, 9)] == [6, 10, 14, 14, 14, 1, 1]
    assert [atom(arcs, "path", 1, m) > 1 for m in range(2, 9)] == [True] * 5 + [False] * 2
    up_and_down = sentence("w VERB 0 root", *(f"w NOUN {h} nmod" for h in (1, 2, 3, 1, 5, 6)))
    arcs = arcs_of(document([up_and_down], [(0, (4,)), (0, (6,)), (0, (7,))]))
    assert atom(arcs, "syntax", 1, 2) == 2 + 4 * 2 + 3
    assert atom(arcs, "syntax", 1, 3) == 1


def test_two_trees_in_a_sentence() -> None:
    arcs = arcs_of(document([sentence("a X 0 root", "b X 0 root", "c X 2 nmod")], [(0, (1,)), (0, (2,)), (0, (3,))]))
    assert [atom(arcs, "syntax", 1, m) for m in (2, 3)] == [1, 1]
    assert atom(arcs, "syntax", 2, 3) == 6


def test_no_arcs() -> None:
    coded = CODER.code(document([sentence("a X 0 root")], []))
    assert pair_atoms(coded, np.zeros(0, np.int64), np.zeros(1, np.int64)).shape == (0, len(PAIR_ATOMS))


@pytest.mark.skipif(not GUM.is_dir(), reason=f"no treebank at {GUM}")
def test_real_documents_against_plain_python() -> None:
    texts = list(islice(read_documents(GUM / "en_gum-ud-dev.conllu.gz"), 2))
    for text in texts:
        assert_as_in_plain_python(text, 20, 5)
    assert all(len(atoms) == 1 for atoms in paths_in(texts).values())
