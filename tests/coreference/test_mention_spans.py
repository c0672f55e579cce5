"""Candidate spans: every one, with its nodes and atoms, beside a plain walk over the tree."""

from __future__ import annotations

from itertools import pairwise
from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from headway.coreference import Document, tree_mentions
from headway.coreference.mention_spans import ATOMS, FIELDS, MOST, NODES, SPAN_NAMES, Spans, candidate_spans
from headway.treebank import Sentence, require_tree
from tests.treebank.strategies import trees

from .toy_documents import random_document, sentence

Node = int | None


def subtree(heads: list[int], word: int) -> list[int]:
    below = [m for m in range(1, len(heads)) if heads[m] == word]
    return sorted([word, *(each for child in below for each in subtree(heads, child))])


def naive(made: Sentence) -> list[dict[str, object]]:
    """The candidates of a sentence, by sets of words."""
    heads = require_tree(made).tolist()
    labels = [str(label).partition(":")[0] for label in made.labels or ()]
    found = []
    for h in range(1, len(heads)):
        lefts = [c for c in range(h - 1, 0, -1) if heads[c] == h]
        rights = [c for c in range(h + 1, len(heads)) if heads[c] == h]
        whole = subtree(heads, h)
        beside = [c for c in range(1, len(heads)) if heads[h] > 0 and heads[c] == heads[h] and c != h]
        beside = [c for c in beside if subtree(heads, c)[0] == whole[-1] + 1]
        for i in range(min(len(lefts), MOST) + 1):
            for j in range(min(len(rights), MOST) + 1 + len(beside)):
                if j > len(rights) and len(rights) > MOST:
                    continue
                inside = [*lefts[:i], *(rights + beside)[:j]]
                words = sorted([h, *(w for c in inside for w in subtree(heads, c))])
                # Neither the span, nor a shorter one on either side, nor the subtree of a child has gaps.
                covers = [words, *(subtree(heads, c) for c in inside)]
                covers += [sorted([h, *(w for c in lefts[:k] for w in subtree(heads, c))]) for k in range(i + 1)]
                rest = rights + beside
                covers += [sorted([h, *(w for c in rest[:k] for w in subtree(heads, c))]) for k in range(j + 1)]
                if any(one + 1 != other for some in covers for one, other in pairwise(some)):
                    continue
                x = lefts[i - 1] if i else None
                y = (rights + beside)[j - 1] if j else None
                u = lefts[i] if i < len(lefts) else None
                v = rights[j] if j < len(rights) else None
                nodes: dict[str, Node] = {
                    **{"h": h, "g": heads[h] or None, "f": words[0], "l": words[-1]},
                    **{"b": words[0] - 1 or None, "a": words[-1] + 1 if words[-1] < len(made) else None},
                    **{"x": x, "u": u, "y": y, "v": v},
                    **{"p": y and subtree(heads, y)[0], "q": v and subtree(heads, v)[0]},
                }
                sets = {
                    "lefts": {labels[c] for c in lefts[:i]},
                    "outer_lefts": {labels[c] for c in lefts[i:]},
                    "rights": {labels[c] for c in (rights + beside)[:j]},
                    "outer_rights": {labels[c] for c in rights[j:]},
                }
                found.append({"nodes": nodes, "sets": sets, "side": j > len(rights), "rest": (u, v)})
    return found


def check(sentences: tuple[Sentence, ...], spans: Spans) -> None:
    by_rule = {(m.sentence, m.words[0], m.words[-1]) for m in tree_mentions(sentences)}
    names: dict[frozenset[str], int] = {}
    rows = iter(range(len(spans.rows.nodes)))
    words = list(spans.words())
    for number, made in enumerate(sentences):
        offset = int(spans.offsets[number]) - 1
        expected = naive(made)
        assert int(spans.start[number + 1] - spans.start[number]) == len(expected)
        for candidate in expected:
            k = next(rows)
            nodes, sets = candidate["nodes"], candidate["sets"]
            assert isinstance(nodes, dict)
            assert isinstance(sets, dict)
            none = len(spans.rows.fields) - 1
            assert spans.rows.nodes[k].tolist() == [
                none if nodes[name] is None else nodes[name] + offset for name in NODES
            ]
            assert words[k] == (number, nodes["f"], nodes["l"])
            atoms = dict(zip(ATOMS, spans.rows.atoms[k].tolist(), strict=True))
            assert atoms["side"] == candidate["side"]
            assert atoms["rule"] == (words[k] in by_rule)
            assert atoms["rest"] == 1 + (nodes["u"] is not None) + 2 * (nodes["v"] is not None)
            for name, relations in sets.items():
                assert names.setdefault(frozenset(relations), atoms[name]) == atoms[name]
    assert len(set(names.values())) == len(names)  # other relations, other sets
    assert len(set(words)) == len(words)  # no span twice


@given(st.integers(0, 2**32 - 1))
def test_candidates_of_random_documents(seed: int) -> None:
    text: Document = random_document(seed)
    check(text.sentences, candidate_spans(text.sentences))


@given(trees(max_words=7))
def test_candidates_of_any_tree(heads: tuple[int, ...]) -> None:
    n = len(heads) - 1
    labels = ["det", "nsubj", "obj", "conj", "case", "acl:relcl", "punct"][:n]
    made = Sentence.from_words(["w"] * n, upos=["NOUN"] * n, heads=heads, labels=[None, *labels])
    check((made,), candidate_spans([made]))


def test_a_noun_with_a_preposition_and_a_relative_clause() -> None:
    rows = ["in ADP 3 case", "the DET 3 det", "house NOUN 6 obl", "that PRON 5 obj", "burnt VERB 3 acl:relcl"]
    made = sentence(*rows, "slept VERB 0 root")
    spans = candidate_spans([made])
    of_house = [words[1:] for words, node in zip(spans.words(), spans.rows.nodes, strict=True) if node[0] == 2]
    assert of_house == [(3, 3), (3, 5), (2, 3), (2, 5), (1, 3), (1, 5)]


def test_what_is_known_of_a_word() -> None:
    rows = ["The DET 2 det Definite=Def the", "Dogs NOUN 3 nsubj Number=Plur dog", "bark VERB 0 root _ bark"]
    spans = candidate_spans([sentence(*rows), sentence("dog NOUN 0 root Number=Sing dog")])
    dogs = dict(zip(FIELDS, spans.rows.fields[1].tolist(), strict=True))
    expected = {
        **{"form": "dogs", "lemma": "dog", "upos": "NOUN", "label": "nsubj", "number": "Plur", "suffix": "ogs"},
        **{"capital": "1", "count": "2", "others": "1", "determiner": "the", "case": "", "predicate": "False False"},
    }
    assert {name: crc32(value.encode()) + 1 for name, value in expected.items()}.items() <= dogs.items()
    assert spans.rows.fields[-1].tolist() == [0] * len(FIELDS)
    assert len(SPAN_NAMES) == spans.rows.nodes.shape[1] * len(FIELDS) + spans.rows.atoms.shape[1]


def test_a_word_with_very_many_children_has_few_candidates() -> None:
    rows = ["hub NOUN 0 root", *["leaf NOUN 1 nmod"] * 500]
    assert len(candidate_spans([sentence(*rows)]).rows.nodes) < (MOST + 2) ** 2 + 2 * 500


def test_no_words() -> None:
    assert len(candidate_spans([]).rows.nodes) == 0
