"""Sentences with some heads unknown: read, written, built, checked and projectivised, beside all trees enumerated."""

from __future__ import annotations

import gzip
import io
import lzma
import pickle
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.arrays import Ints
from headway.errors import HeadsError
from headway.inference.brute_force import all_trees
from headway.treebank import Sentence, TreebankError, projectivise, read_treebank, require_tree, write_treebank
from headway.treebank.sentence import require_partial_tree
from headway.treebank.trees import as_heads

from .strategies import Written, head_choices, trees, written_sentences
from .test_conll import MALFORMED, Format, check_columns, row

Heads = tuple[int, ...]


def read(text: str | bytes, format: Format | None = None, *, partial: bool = True) -> list[Sentence]:
    stream = io.BytesIO(text if isinstance(text, bytes) else text.encode())
    return list(read_treebank(stream, format=format, partial=partial))


def written(sentences: list[Sentence], format: Format | None = None) -> bytes:
    stream = io.BytesIO()
    write_treebank(sentences, stream, format=format)
    return stream.getvalue()


def built(heads: Heads) -> Sentence:
    """Words w1, w2, ..., each with a label of its own where its head is known."""
    words = range(1, len(heads))
    labels = [None, *("_" if heads[m] < 0 else f"l{m}" for m in words)]
    return Sentence.from_words([f"w{m}" for m in words], heads=heads, labels=labels, partial=True)


def partial_choices(n: int) -> list[Heads]:
    """Every choice of heads for some of the words, tree or not; at least one is known."""
    options = ([h for h in range(-1, n + 1) if h != m] for m in range(1, n + 1))
    return [(-1, *heads) for heads in product(*options) if max(heads) >= 0]


def known_in(heads: Heads, candidates: Ints) -> Ints:
    """How many of the known heads each candidate has."""
    array = np.array(heads)
    counts: Ints = ((candidates == array) & (array >= 0)).sum(axis=1)
    return counts


@st.composite
def hidden_subsets(draw: st.DrawFn, of: st.SearchStrategy[Heads]) -> Heads:
    """Some of the heads, at least one known."""
    heads = draw(of.filter(lambda heads: len(heads) > 1))
    known = draw(st.sets(st.sampled_from(range(1, len(heads))), min_size=1))
    return tuple(h if m in known else -1 for m, h in enumerate(heads))


# Reading and writing


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("format", ["conllu", "conllx"])
@given(data=st.data())
def test_round_trip(newline: str, format: Format, data: st.DataObject) -> None:
    sentences = data.draw(st.lists(written_sentences(conllu=format == "conllu", partial=True), max_size=4))
    text = "".join(sentence.text(newline) for sentence in sentences).encode()
    found = read(text, format)
    for sentence, expected in zip(found, sentences, strict=True):
        check_columns(sentence, expected)
    assert written(found) == text


@given(sentence=written_sentences(partial=True))
def test_without_partial_only_all_or_none(sentence: Written) -> None:
    """What is complete, or has no heads, is read the same; the first missing head of any other is named."""
    if sentence.heads is None or min(sentence.heads[1:]) >= 0:
        check_columns(read(sentence.text(), partial=False)[0], sentence)
        return
    missing = sentence.heads.index(-1, 1)
    line = next(i for i, line in enumerate(sentence.lines, start=1) if line.startswith(f"{missing}\t"))
    with pytest.raises(TreebankError) as caught:
        read(sentence.text(), partial=False)
    cause = f"word {missing} has no HEAD but others have; give every word one, or none"
    assert str(caught.value) == f"stream, line {line}: {cause}"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["a.conllu", "a.conll", "a.conllu.gz", "a.conllx.gz", "a.conllu.xz"])
def test_files(name: str, newline: str, tmp_path: Path) -> None:
    partly = [row(1, head=2, label="nsubj"), row(2), row(3, head=0), ""]
    text = newline.join([*partly, row(1), "", row(1, head=0, label="root"), "", ""]).encode()
    source, target = tmp_path / name, tmp_path / f"copy-{name}"
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(source.suffix, open)
    with opened(source, "wb") as stream:
        stream.write(text)
    found = list(read_treebank(source, partial=True))
    assert [None if s.heads is None else s.heads.tolist() for s in found] == [[-1, 2, -1, 0], None, [-1, 0]]
    assert [s.labels for s in found] == [(None, "nsubj", "_", "_"), None, (None, "root")]
    assert found[0].heads is not None
    assert found[0].heads.dtype == np.int64
    write_treebank(found, target)
    with opened(target, "rb") as stream:
        assert stream.read() == text


def test_no_words() -> None:
    (sentence,) = read("# newdoc\n\n")
    assert sentence.heads is not None
    assert sentence.heads.tolist() == [-1]
    assert require_partial_tree(sentence, single_root=True).tolist() == [-1]
    assert projectivise(sentence) is sentence


PARTLY = {
    "label without head": ([row(1, head=0, label="root"), row(2, label="obj")], 2, "word 2 has a DEPREL but no HEAD"),
    "after a range": (["# c", row("1-2"), row(1, head=2), row(2, label="x")], 4, "word 2 has a DEPREL but no HEAD"),
    "own head": ([row(1), row(2, head=2)], 2, "word 2 is its own HEAD"),
    "head outside": ([row(1), row(2, head=3)], 2, "the HEAD of word 2 is '3'; expected 0 (the root) to 2"),
    "head negative": ([row(1), row(2, head=-1)], 2, "the HEAD of word 2 is '-1'"),
    "two underscores": ([row(1, head="__"), row(2, head=0)], 1, "the HEAD of word 1 is '__'"),
}
ALSO_MALFORMED = {name: case for name, case in MALFORMED.items() if name != "some heads"} | PARTLY


@pytest.mark.parametrize("name", ALSO_MALFORMED)
def test_malformed(name: str) -> None:
    lines, wrong, said = ALSO_MALFORMED[name]
    good = [row(1, "good"), row(2, "good", 1), ""]
    text = "\n".join([*good, *lines, "", *good])
    with pytest.raises(TreebankError) as caught:
        read(text)
    assert str(caught.value).startswith(f"stream, line {wrong + 3}: ")
    assert said in str(caught.value)
    skipped: list[TreebankError] = []
    found = list(read_treebank(io.StringIO(text), skip_bad=skipped.append, partial=True))
    assert [sentence.forms for sentence in found] == [("good", "good")] * 2
    assert [str(error) for error in skipped] == [str(caught.value)]


# Sentences in memory


@given(heads=hidden_subsets(head_choices()))
def test_built_written_and_read_again(heads: Heads) -> None:
    sentence = built(heads)
    rows = [line.split("\t")[6:8] for line in sentence.to_conllu().splitlines() if line]
    assert rows == [["_", "_"] if h < 0 else [str(h), f"l{m}"] for m, h in enumerate(heads) if m]
    assert sentence.to_conllx() == sentence.to_conllu()
    (again,) = read(sentence.to_conllu())
    assert again.heads is not None
    assert tuple(again.heads.tolist()) == heads
    assert again.labels == sentence.labels
    assert pickle.loads(pickle.dumps(sentence)).to_conllu() == sentence.to_conllu()


def test_only_who_asks_gets_unknown_heads() -> None:
    with pytest.raises(HeadsError, match="heads\\[2\\] is -1; expected 0 "):
        Sentence.from_words(["a", "b"], heads=[-1, 2, -1])
    with pytest.raises(HeadsError, match="heads\\[1\\] is -1; expected 0 "):
        Sentence.from_words(["a", "b"]).with_tree([-1, -1, 0])
    with pytest.raises(HeadsError, match="heads\\[2\\] is -1"):
        as_heads([-1, 2, -1])


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        ([-1, -2, 0], "heads[1] is -2; expected -1 (unknown) or 0 (the root) to 2, other than 1 itself"),
        ([-1, -1, 3], "heads[2] is 3; expected -1"),
        ([-1, -1, 2], "heads[2] is 2; expected -1"),
        ([0, -1, 1], "heads[0] == -1"),
    ],
)
def test_no_choice_of_some_heads(heads: list[int], said: str) -> None:
    with pytest.raises(HeadsError) as caught:
        Sentence.from_words(["a", "b"], heads=heads, partial=True)
    assert said in str(caught.value)


def test_an_unknown_head_has_no_label() -> None:
    with pytest.raises(TreebankError, match="word 2 has a label but no head; give both, or neither"):
        Sentence.from_words(["a", "b"], heads=[-1, 2, -1], labels=[None, "x", "y"], partial=True)
    with pytest.raises(TreebankError, match="word 1 has a label but no head"):
        Sentence.from_words(["a"], heads=[-1, -1], labels=[None, "x"], partial=True)
    assert Sentence.from_words(["a", "b"], heads=[-1, 2, -1], partial=True).labels == (None, "_", "_")


def test_no_head_known_is_no_tree_as_in_a_file() -> None:
    sentence = Sentence.from_words(["a", "b"], heads=[-1, -1, -1], labels=[None, "_", "_"], partial=True)
    assert sentence.heads is None
    assert sentence.labels is None
    whole = Sentence.from_words(["a", "b"], heads=[-1, 2, 0], labels=[None, "x", "y"])
    assert whole.with_tree([-1, -1, -1], partial=True).heads is None


# Trees


def test_require_tree_names_the_first_unknown_head() -> None:
    (_, sentence) = read(f"{row(1)}\n\n{row(1, 'a', 2)}\n{row(2, 'b')}\n{row(3, 'c')}\n")
    with pytest.raises(TreebankError) as caught:
        require_tree(sentence)
    cause = "word 2 (b) has no head; give every word one, or leave the sentence out"
    assert str(caught.value) == f"stream, line 3: {cause}"
    assert (caught.value.source, caught.value.line) == ("stream", 3)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("n", range(1, 6))
def test_exactly_what_extends_to_a_tree(n: int, single_root: bool) -> None:
    candidates = all_trees(n, projective=False, single_root=single_root)
    for heads in partial_choices(n):
        sentence = built(heads)
        if known_in(heads, candidates).max() == sum(h >= 0 for h in heads):
            assert require_partial_tree(sentence, single_root) is sentence.heads
        else:
            with pytest.raises(TreebankError):
                require_partial_tree(sentence, single_root)


@given(heads=hidden_subsets(trees(max_words=30)))
def test_any_part_of_a_tree_extends(heads: Heads) -> None:
    assert tuple(require_partial_tree(built(heads), single_root=False).tolist()) == heads


def test_errors_name_place_and_words() -> None:
    cycle = [row(1, "a", 3), row(2, "b", 1), row(3, "c", 2), row(4, "d")]
    cyclic, two_roots = read("\n".join(["# c", *cycle, "", row(1, "a", 0), row(2, "b"), row(3, "c", 0)]))
    for single_root in (True, False):
        with pytest.raises(TreebankError) as caught:
            require_partial_tree(cyclic, single_root)
        assert str(caught.value).startswith("stream, line 1: the heads form a cycle, ")
        assert "1 (a) -> 3 (c) -> 2 (b) -> 1 (a)" in str(caught.value)
    with pytest.raises(TreebankError) as caught:
        require_partial_tree(two_roots, single_root=True)
    cause = "words 1 (a), 3 (c) are all under the root; keep one, or allow several (single_root=False)"
    assert str(caught.value) == f"stream, line 7: {cause}"
    with pytest.raises(TreebankError, match="sentence in memory: the sentence has no heads"):
        require_partial_tree(Sentence.from_words(["a"]), single_root=False)


# Projectivisation

PROJECTIVE = {(n, one): all_trees(n, projective=True, single_root=one) for n in range(1, 7) for one in (True, False)}


def check_projectivised(heads: Heads, single_root: bool) -> None:
    """The most known heads that a projective tree can have, and nothing else, are known afterwards."""
    sentence = built(heads)
    projective = projectivise(sentence, single_root=single_root)
    candidates = PROJECTIVE[len(sentence), single_root]
    assert projective.heads is not None
    kept: Heads = tuple(projective.heads.tolist())
    assert all(k in (h, -1) for k, h in zip(kept, heads, strict=True))
    count = sum(h >= 0 for h in kept)
    assert count == known_in(heads, candidates).max()
    assert count == known_in(kept, candidates).max()
    assert projective.labels == (None, *("_" if h < 0 else f"l{m}" for m, h in enumerate(kept) if m))
    assert projective.forms == sentence.forms
    assert (projective is sentence) == (kept == heads)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("n", range(1, 5))
def test_every_partial_tree_up_to_four_words(n: int, single_root: bool) -> None:
    every = all_trees(n, projective=False, single_root=False)
    checked = 0
    for heads in partial_choices(n):
        if -1 in heads[1:] and known_in(heads, every).max() == sum(h >= 0 for h in heads):
            check_projectivised(heads, single_root)
            checked += 1
    # Forests under two roots, one of them "not known"; less the complete ones and the one with no head known.
    assert checked == 2 * (n + 2) ** (n - 1) - (n + 1) ** (n - 1) - 1


@pytest.mark.parametrize("single_root", [True, False])
@given(heads=hidden_subsets(trees(max_words=6)).filter(lambda heads: -1 in heads[1:]))
def test_any_partial_tree(single_root: bool, heads: Heads) -> None:
    check_projectivised(heads, single_root)


def test_arcs_that_do_not_cross_may_have_no_projective_tree() -> None:
    """The second word is covered by the arc of its own descendants."""
    heads = projectivise(built((-1, 2, -1, 1))).heads
    assert heads is not None
    assert sorted(heads.tolist()) in ([-1, -1, -1, 1], [-1, -1, -1, 2])


def test_what_extends_to_no_tree_is_an_error() -> None:
    with pytest.raises(TreebankError, match="cycle"):
        projectivise(built((-1, 2, 1, -1)))
