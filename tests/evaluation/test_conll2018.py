"""CoNLL 2018's scores: cases worked out by hand, and an oracle for texts in which no character comes twice."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.errors import EvaluationError, HeadwayError
from headway.evaluation import F1, evaluate, evaluate_conll2018
from headway.treebank import Sentence, read_treebank

from .strategies import Tree, tree_pairs

# A token is its text, or its text and its words: "du", or "du de le" for the multiword token du = de + le.
Tokens = list[str]


def conllu(tokens: Tokens, heads: list[int] | None = None, labels: list[str] | None = None) -> str:
    """One sentence; without heads, every word hangs from the first."""
    lines: list[str] = []
    m = 0
    for token in tokens:
        text, *words = token.split(" ")
        if words:
            lines.append(f"{m + 1}-{m + len(words)}\t{text}" + "\t_" * 8)
        for word in words or [text]:
            m += 1
            head = heads[m - 1] if heads else int(m > 1)
            label = labels[m - 1] if labels else "dep"
            lines.append(f"{m}\t{word}\t_\t_\t_\t_\t{head}\t{label}\t_\t_")
    return "\n".join(lines) + "\n\n"


def score(gold: str, predicted: str):  # type: ignore[no-untyped-def]
    return evaluate_conll2018(io.StringIO(gold), io.StringIO(predicted))


# --- which words are aligned ---


@pytest.mark.parametrize(
    ("gold", "predicted", "aligned"),
    [
        # plain tokens: equal spans only
        (["a", "b", "c"], ["a", "b", "c"], 3),
        (["ab", "c"], ["a", "b", "c"], 1),
        (["ab", "cd"], ["a", "bc", "d"], 0),
        # a multiword token: words by their forms, whatever the case, in order
        (["du de le"], ["du de le"], 2),
        (["du de le"], ["du DE LE"], 2),
        (["du de le"], ["du le de"], 1),
        (["du de le"], ["du"], 0),
        (["du de le"], ["d", "u"], 0),
        (["ab a b"], ["a", "b"], 2),
        # the span takes in plain words, but not those that stick out of it
        (["x", "ab a b", "y"], ["x", "a", "by"], 2),
        (["x", "ab a b", "y"], ["xa", "b", "y"], 2),
        # chains of overlapping multiword tokens are one span
        (["abc a b c", "de d e"], ["a", "bcd b c d", "e"], 5),
        (["abc a x c", "def d x f"], ["ab a b", "cd c d", "ef e f"], 4),
        # of two ways to align, the longest: a (of gold) with the second a, then b
        (["abc z a b"], ["abc a z a b"], 3),
        (["ab a by", "y"], ["a", "by"], 1),
        # a range of a single word is a multiword token too
        (["ab ba"], ["ab"], 0),
    ],
)
def test_aligned_words(gold: Tokens, predicted: Tokens, aligned: int) -> None:
    sizes = [sum(max(1, token.count(" ")) for token in tokens) for tokens in (gold, predicted)]
    assert score(conllu(gold), conllu(predicted)).words == F1(aligned, *sizes)
    assert score(conllu(predicted), conllu(gold)).words == F1(aligned, *reversed(sizes))


def test_ties_skip_gold_words_first() -> None:
    """ "ab" is the words (a, b) or (b, a): one can be aligned, and skipping gold's a first makes it b.

    Gold a hangs from b, the root; predicted b is the root too, so b is right. Had a been aligned, it would be wrong
    (its head b would have no partner).
    """
    result = score(conllu(["ab a b"], [2, 0]), conllu(["ab b a"], [0, 1]))
    assert (result.words.correct, result.uas.correct) == (1, 1)


def test_a_plain_word_left_of_a_span_is_skipped() -> None:
    """The a before the multiword token ab = a + b must not be taken for its first word, on either side.

    With the right a, its head b is right; the other a hangs from a word without a partner.
    """
    result = score(conllu(["ax", "ab a b"], [0, 3, 1]), conllu(["a", "x", "a", "b"], [0, 1, 4, 1]))
    assert (result.words.correct, result.uas.correct) == (2, 1)
    result = score(conllu(["y", "a", "a", "b"], [0, 1, 4, 1]), conllu(["ya", "ab a b"], [0, 3, 1]))
    assert (result.words.correct, result.uas.correct) == (2, 1)


def test_words_left_of_a_span_as_in_the_official_scorer() -> None:
    """Gold xde | de = d + e, predicted x | d | e | d | e.

    The description aligns gold's d and e with the last two predicted words. The official scorer passes the gold token
    xde at once, then skips one predicted word, x, and aligns over d e d e: gold's d and e get the first two. There the
    predicted d hangs from e, as in gold; the last d does not, so one head is right instead of none.
    """
    gold = conllu(["xde", "de d e"], [0, 3, 1])
    predicted = conllu(["x", "d", "e", "d", "e"], [0, 3, 1, 1, 1])
    result = score(gold, predicted)
    assert (result.words.correct, result.uas.correct) == (2, 1)
    # the same across a sentence end, which must not hide it: there is no equal token before it
    gold = conllu(["xde"]) + conllu(["de d e"], [2, 0])
    predicted = conllu(["x", "d", "e"], [0, 3, 1]) + conllu(["d", "e"], [0, 1])
    result = score(gold, predicted)
    assert (result.words.correct, result.uas.correct) == (2, 1)


def test_a_plain_word_that_sticks_out_as_in_the_official_scorer() -> None:
    """aby sticks out of the span of ab, so it is no partner of the word "aby" of the multiword token.

    But the official scorer takes the words of a span in the order of their starts, gold first: on the gold side aby is
    taken before the span's end is seen.
    """
    multiword, plain = conllu(["ab a aby", "y"]), conllu(["aby"])
    assert score(multiword, plain).words == F1(0, 3, 1)
    assert score(plain, multiword).words == F1(1, 1, 3)


# --- arcs ---


def test_arcs_labels_and_content_words_by_hand() -> None:
    """ "He saw du pain ." with du = de + le in gold, and du one word in the prediction.

    gold                     predicted               aligned  head        label            content (gold)
    1 He    2 nsubj          1 He    2 nsubj:pass    yes      right       right            yes
    2 saw   0 root           2 saw   0 root          yes      right       right            yes
    3 de    5 case           3 du    4 case          no (no form "du" among de, le)
    4 le    5 det                                    no
    5 pain  2 obj            4 pain  2 obl           yes      right       wrong            yes
    6 .     2 punct          5 .     4 punct         yes      wrong       right            no
    Words 4 of 6 and 5. UAS 3. LAS 2. Content words: gold He, saw, pain; predicted He, saw, pain; 2 right.
    """
    gold = conllu(
        ["He", "saw", "du de le", "pain", "."], [2, 0, 5, 5, 2, 2], ["nsubj", "root", "case", "det", "obj", "punct"]
    )
    labels = ["nsubj:pass", "root", "case", "obl", "punct"]
    predicted = conllu(["He", "saw", "du", "pain", "."], [2, 0, 4, 2, 4], labels)
    result = score(gold, predicted)
    assert (result.words, result.uas, result.las) == (F1(4, 6, 5), F1(3, 6, 5), F1(2, 6, 5))
    assert result.clas == F1(2, 3, 3)
    assert [f"{value:.2f}" for value in (result.las.precision, result.las.recall, result.las.f1)] == [
        "40.00",
        "33.33",
        "36.36",
    ]


@pytest.mark.parametrize("label", ["aux", "cop", "mark", "det", "clf", "case", "cc", "punct", "_", "unheard-of"])
def test_not_content_words(label: str) -> None:
    text = conllu(["a", "b"], [0, 1], ["root", label])
    result = score(text, text)
    assert (result.las, result.clas) == (F1(2, 2, 2), F1(1, 1, 1))


def test_content_is_decided_by_each_sides_own_label() -> None:
    gold, predicted = conllu(["a", "b"], [0, 1], ["root", "obj"]), conllu(["a", "b"], [0, 1], ["root", "det:x"])
    assert score(gold, predicted).clas == F1(1, 2, 1)
    assert score(predicted, gold).clas == F1(1, 1, 2)


def test_a_head_without_partner_is_wrong_and_only_root_matches_root() -> None:
    gold, predicted = conllu(["ab", "c"], [0, 1]), conllu(["a", "b", "c"], [0, 1, 1])
    assert score(gold, predicted).uas == F1(0, 2, 3)
    predicted = conllu(["a", "b", "c"], [3, 1, 0])
    assert score(gold, predicted).uas == F1(0, 2, 3)


def test_spaces_comments_and_empty_nodes_do_not_count() -> None:
    gold = "# text = 10 000 €\n" + conllu(["10\u00a0000", "€"])
    predicted = conllu(["10", "000", "€"]).replace("\n3\t", "\n2.1\tghost" + "\t_" * 8 + "\n3\t")
    assert score(gold, predicted).words == F1(1, 2, 3)
    # a token may hold a space; the words of a multiword token keep theirs
    spaced = conllu(["ab"]).replace("ab", "a b")
    assert score(spaced, conllu(["ab"])).words == F1(1, 1, 1)
    multiword = conllu(["ab ab"]).replace("1\tab", "1\ta b")
    assert score(multiword, spaced).words == F1(0, 1, 1)
    assert score(multiword, multiword).words == F1(1, 1, 1)


# --- an oracle: where no character comes twice, the same form is the same place ---


@dataclass(frozen=True)
class Cut:
    """A text cut up: for each sentence, for each token, where its words begin and end; heads and labels by word."""

    sentences: list[list[list[tuple[int, int]]]]
    heads: list[list[int]]
    labels: list[list[str]]

    def conllu(self, text: str) -> str:
        blocks = []
        for tokens, heads, labels in zip(self.sentences, self.heads, self.labels, strict=True):
            spelled = [text[words[0][0] : words[-1][1]] for words in tokens]
            parts = ["".join(f" {text[a:b]}" for a, b in words) if len(words) > 1 else "" for words in tokens]
            blocks.append(conllu([token + part for token, part in zip(spelled, parts, strict=True)], heads, labels))
        return "".join(blocks)

    def arcs(self) -> dict[tuple[int, int], tuple[tuple[int, int] | None, str]]:
        """Each word's span with the span of its head (None: the root) and its label without the subtype."""
        arcs: dict[tuple[int, int], tuple[tuple[int, int] | None, str]] = {}
        for tokens, heads, labels in zip(self.sentences, self.heads, self.labels, strict=True):
            words = [word for token in tokens for word in token]
            for word, head, label in zip(words, heads, labels, strict=True):
                arcs[word] = (words[head - 1] if head else None, label.partition(":")[0])
        return arcs


LABELS = ["nsubj", "nmod", "nmod:poss", "case", "punct", "root"]


def _pieces(rng: random.Random, start: int, end: int, often: float) -> list[tuple[int, int]]:
    marks = [start, *(i for i in range(start + 1, end) if rng.random() < often), end]
    return list(pairwise(marks))


def _cut(rng: random.Random, size: int) -> Cut:
    sentences, heads, labels = [], [], []
    for begin, end in _pieces(rng, 0, size, 0.15):
        tokens = [_pieces(rng, *token, rng.choice([0, 0.5])) for token in _pieces(rng, begin, end, 0.5)]
        n = sum(map(len, tokens))
        order = rng.sample(range(1, n + 1), n)  # each word hangs from an earlier one of this order
        head = {m: rng.choice(order[:i]) if i else 0 for i, m in enumerate(order)}
        sentences.append(tokens)
        heads.append([head[m] for m in range(1, n + 1)])
        labels.append([rng.choice(LABELS) for _ in range(n)])
    return Cut(sentences, heads, labels)


def _nudged(rng: random.Random, cut: Cut) -> Cut:
    """The same words and trees, and most of the labels."""
    labels = [[label if rng.random() < 0.8 else rng.choice(LABELS) for label in row] for row in cut.labels]
    return Cut(cut.sentences, cut.heads, labels)


@settings(max_examples=150)
@given(rng=st.randoms(use_true_random=False), size=st.integers(1, 40), same=st.booleans())
def test_agrees_with_the_oracle_of_places(rng: random.Random, size: int, same: bool) -> None:
    text = "".join(chr(0x4E00 + i) for i in range(size))
    gold = _cut(rng, size)
    predicted = _nudged(rng, gold) if same else _cut(rng, size)
    result = score(gold.conllu(text), predicted.conllu(text))
    one, other = gold.arcs(), predicted.arcs()
    both = one.keys() & other.keys()
    # a head counts only if its span is a word on both sides; spans of heads are words by construction
    heads = {word for word in both if one[word][0] == other[word][0]}
    arcs = {word for word in heads if one[word][1] == other[word][1]}
    assert result.words == F1(len(both), len(one), len(other))
    assert result.uas == F1(len(heads), len(one), len(other))
    assert result.las == F1(len(arcs), len(one), len(other))
    content = {"nsubj", "nmod", "root"}
    expected = F1(
        sum(one[word][1] in content for word in arcs),
        sum(label in content for _, label in one.values()),
        sum(label in content for _, label in other.values()),
    )
    assert result.clas == expected


def test_tokens_sentences_and_tags() -> None:
    def tagged(sentences: list[list[tuple[str, str]]]) -> list[Sentence]:
        return [
            Sentence.from_words(
                [word for word, _ in words],
                upos=[tag for _, tag in words],
                heads=[-1, 0, *[1] * (len(words) - 1)],
                labels=[None, "root", *["dep"] * (len(words) - 1)],
            )
            for words in sentences
        ]

    gold = tagged([[("ab", "X"), ("c", "Y")], [("d", "X")], [("e", "Z"), ("f", "X")], [("g", "X")]])
    predicted = tagged([[("ab", "X"), ("c", "X"), ("d", "X")], [("ef", "Z")], [("g", "X")]])
    result = evaluate_conll2018(gold, predicted)
    assert result.tokens == F1(4, 6, 5)
    assert result.sentences == F1(2, 4, 3)
    assert (result.words, result.upos) == (F1(4, 6, 5), F1(3, 6, 5))


@given(pairs=st.lists(tree_pairs(), min_size=1, max_size=4))
def test_on_the_same_words_it_is_the_attachment_score(pairs: list[tuple[Tree, Tree]]) -> None:
    """With trees of one root and labels without subtypes, F1 = precision = recall = UAS or LAS with punctuation."""

    def plain(tree: Tree) -> Sentence:
        heads = [0, *(min(h, m - 1) or 1 for m, h in enumerate(tree.heads[1:], 2))]  # heads to the left: a tree
        return Tree(tree.forms, heads, [label.partition(":")[0] for label in tree.labels]).sentence()

    gold, predicted = [plain(tree) for tree, _ in pairs], [plain(tree) for _, tree in pairs]
    result, scores = evaluate_conll2018(gold, predicted), evaluate(gold, predicted)
    assert result.words.f1 == 100
    for ours, theirs in ((result.uas, scores.uas), (result.las, scores.las)):
        assert ours.f1 == ours.precision == ours.recall == pytest.approx(theirs, rel=1e-13, abs=1e-12)


# --- streaming, JSON, errors ---


def test_reads_both_sides_in_step() -> None:
    lead: list[int] = []
    read = {"gold": 0, "predicted": 0}

    def watched(name: str) -> Iterator[Sentence]:
        for sentence in [*read_treebank(io.StringIO(conllu(["du de le", "b"])))] * 50:
            read[name] += 1
            lead.append(abs(read["gold"] - read["predicted"]))
            yield sentence

    assert evaluate_conll2018(watched("gold"), watched("predicted")).las == F1(150, 150, 150)
    assert max(lead) == 1


def test_to_dict_is_json() -> None:
    text = conllu(["a", "b"])
    found = json.loads(json.dumps(score(text, text).to_dict()))
    assert found["las"] == {"correct": 2, "gold": 2, "predicted": 2, "precision": 100, "recall": 100, "f1": 100}
    assert list(found) == ["tokens", "sentences", "words", "upos", "uas", "las", "clas"]
    nothing = F1(0, 0, 0)
    assert (nothing.precision, nothing.recall, nothing.f1) == (0, 0, 0)


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        (conllu(["ab"]), conllu(["ac"]), r"line 1 and .*line 1: the texts differ, gold .* 'b', predicted with 'c'"),
        (conllu(["a"]) + conllu(["b"]), conllu(["a"]), r"line 3: the other treebank has ended, .* 'b'"),
        (conllu(["a"]), conllu(["a"]) + conllu(["b"]), r"line 3: the other treebank has ended, .* 'b'"),
        (conllu(["a"]), conllu(["ab"]), r"line 1: the other treebank has ended, .* 'b'"),
        (conllu(["a"]), "", r"line 1: the other treebank has ended, .* 'a'"),
        ("", conllu(["a"]), r"line 1: the other treebank has ended, .* 'a'"),
        ("", "", "no words"),
        (conllu(["a", "b"]), conllu(["a", "b"], [0, 0]), r"line 1: the tree has 2 roots"),
        (conllu(["a", "b"], [0, 0]), conllu(["a", "b"]), r"line 1: the tree has 2 roots"),
        (conllu(["a", "b", "c"]), conllu(["a", "b", "c"], [0, 3, 2]), r"line 1.*cycle"),
        (conllu(["a"]), conllu(["a"]).replace("0\tdep", "_\t_"), r"line 1: the sentence has no heads"),
        (conllu(["a"]), conllu(["a"]).replace("\ta\t", "\t\u00a0\t"), r"line 1: the form of word 1 consists of spaces"),
    ],
)
def test_errors(gold: str, predicted: str, message: str) -> None:
    with pytest.raises(HeadwayError, match=message):
        score(gold, predicted)


def test_an_absurd_chain_of_multiword_tokens_is_an_error() -> None:
    many = " ".join("b" * 4000)
    with pytest.raises(EvaluationError, match="4000 gold and 4000 predicted words overlap"):
        score(conllu([f"a {many}"]), conllu([f"a {many}"]))
