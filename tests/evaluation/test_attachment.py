"""UAS, LAS and their tables: cases worked out by hand, a naive twin, and eval.pl's rules in Perl."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import unicodedata
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import EvaluationError, HeadwayError
from headway.evaluation import evaluate
from headway.evaluation.attachment import percent
from headway.treebank import Sentence, is_punctuation, write_treebank

from .strategies import Tree, tree_pairs

PERL = shutil.which("perl")
needs_perl = pytest.mark.skipif(PERL is None, reason="no perl on this machine")


def _scores(*pairs: tuple[Tree, Tree]):  # type: ignore[no-untyped-def]
    return evaluate([gold.sentence() for gold, _ in pairs], [predicted.sentence() for _, predicted in pairs])


# --- punctuation ---


@pytest.mark.parametrize(
    "form", [".", "--", "...", "…", "«", "·", "%", "&", "_", "\u2019", "、", "।", "،", '"', "?!", "§"]
)
def test_punctuation_is_made_of_category_p_alone(form: str) -> None:
    assert is_punctuation(form)


@pytest.mark.parametrize(
    "form",
    [
        *("$", "`", "€", "°", "+", "=", "^", "|"),  # Sc, Sk, Sc, So, Sm, Sm, Sk, Sm: symbols are scored
        *("'s", "a.", "5%", "-LRB-", ".$"),  # something else among them
        *("\u0301", ".\u0301", ". .", ""),  # a combining mark (Mn), alone or on a full stop; a space (Zs); nothing
    ],
)
def test_symbols_marks_and_mixtures_are_not_punctuation(form: str) -> None:
    assert not is_punctuation(form)


@needs_perl
def test_punctuation_agrees_with_perl_on_every_character() -> None:
    version = "use Unicode::UCD; print Unicode::UCD::UnicodeVersion()"
    if subprocess.run([PERL, "-e", version], capture_output=True, text=True).stdout != unicodedata.unidata_version:
        pytest.skip("perl has another version of Unicode")
    script = (
        r'for (0..0x10FFFF) { next if $_ >= 0xD800 && $_ <= 0xDFFF; print "$_\n" if chr($_) =~ /^\p{Punctuation}+$/ }'
    )
    printed = subprocess.run([PERL, "-e", script], capture_output=True, text=True, check=True).stdout
    assert [int(line) for line in printed.split()] == [
        point for point in range(sys.maxunicode + 1) if is_punctuation(chr(point))
    ]


# --- by hand ---


def test_one_sentence_by_hand() -> None:
    """Six words, four of them scored ("--" and "." are not; "$" and "5%" are).

    word   form   gold        predicted   head  label  both
    1      The    2 det       2 det       yes   yes    yes
    2      $      0 root      0 root      yes   yes    yes
    3      --     2 punct     5 punct     no    yes    no
    4      5%     2 nmod      2 obj       yes   no     no
    5      fell   2 acl       4 acl       no    yes    no
    6      .      2 punct     2 punct     yes   yes    yes
    All: heads 4/6, labels 5/6, both 3/6. Scored 1, 2, 4, 5: heads 3/4, labels 3/4, both 2/4.
    """
    forms = ["The", "$", "--", "5%", "fell", "."]
    gold = Tree(forms, [2, 0, 2, 2, 2, 2], ["det", "root", "punct", "nmod", "acl", "punct"])
    predicted = Tree(forms, [2, 0, 5, 2, 4, 2], ["det", "root", "punct", "obj", "acl", "punct"])
    scores = _scores((gold, predicted))
    assert (scores.tokens, scores.scored) == (6, 4)
    assert f"{scores.uas:.2f} {scores.las:.2f} {scores.label_accuracy:.2f}" == "66.67 50.00 83.33"
    assert (scores.uas_no_punct, scores.las_no_punct, scores.label_accuracy_no_punct) == (75, 50, 75)
    assert (scores.exact, scores.exact_labelled, scores.exact_no_punct, scores.exact_labelled_no_punct) == (0, 0, 0, 0)

    by_label = {row.name: row for row in scores.by_label}
    assert set(by_label) == {"det", "root", "nmod", "acl", "obj"}  # no row for punct
    nmod, obj, acl, det = (by_label[name] for name in ("nmod", "obj", "acl", "det"))
    assert (nmod.count, nmod.predicted, nmod.uas, nmod.las, nmod.precision, nmod.recall, nmod.f1) == (
        1,
        0,
        100,
        0,
        0,
        0,
        0,
    )
    assert (obj.count, obj.predicted, obj.precision, obj.recall, obj.f1) == (0, 1, 0, 0, 0)
    assert (acl.count, acl.predicted, acl.uas, acl.precision) == (1, 1, 0, 0)  # the label is right, the head is not
    assert (det.precision, det.recall, det.f1) == (100, 100, 100)

    # gold distances of 1, 2, 4, 5: 1, root, 2, 3; predicted: 1, root, 2, 1
    rows = [(row.name, row.count, row.predicted, row.uas, row.las) for row in scores.by_distance]
    assert rows == [("root", 1, 1, 100, 100), ("1", 1, 2, 100, 100), ("2", 1, 1, 100, 0), ("3-6", 1, 0, 0, 0)]
    assert [row.precision for row in scores.by_distance] == [100, 50, 100, 0]
    assert [row.recall for row in scores.by_distance] == [100, 100, 100, 0]
    (row,) = scores.by_length
    assert (row.name, row.sentences, row.count, row.uas, row.las) == ("1-10", 1, 4, 75, 50)


def test_exact_trees_and_sentences_of_punctuation_only() -> None:
    """Three sentences. The first is wrong only at its full stop, the second only in a label, the third is "!"."""
    first = Tree(["Go", "."], [0, 1], ["root", "punct"]), Tree(["Go", "."], [0, 0], ["root", "punct"])
    second = Tree(["Go", "on"], [0, 1], ["root", "prt"]), Tree(["Go", "on"], [0, 1], ["root", "obj"])
    third = Tree(["!"], [0], ["root"]), Tree(["!"], [0], ["root"])
    scores = _scores(first, second, third)
    assert f"{scores.exact:.2f} {scores.exact_labelled:.2f}" == "66.67 33.33"
    # without punctuation the third has nothing to be right about: two sentences remain
    assert (scores.exact_no_punct, scores.exact_labelled_no_punct) == (100, 50)
    assert scores.per_sentence.words.tolist() == [2, 2, 1]
    assert scores.per_sentence.heads.tolist() == [1, 2, 1]
    assert scores.per_sentence_no_punct.words.tolist() == [1, 2, 0]
    assert scores.per_sentence_no_punct.arcs.tolist() == [1, 1, 0]


def test_only_punctuation_gives_zero_not_nan() -> None:
    scores = _scores((Tree(["!"], [0], ["root"]), Tree(["!"], [0], ["root"])))
    assert (scores.uas, scores.scored, scores.uas_no_punct, scores.exact_no_punct) == (100, 0, 0, 0)
    assert scores.by_label == scores.by_distance == ()


def test_labels_are_compared_with_their_subtypes_and_absent_ones_as_underscores() -> None:
    gold = Sentence.from_words(["a", "b"], heads=[-1, 2, 0], labels=[None, "nmod:poss", "root"])
    assert evaluate([gold], [gold.with_tree([-1, 2, 0], [None, "nmod", "root"])]).las == 50
    unlabelled = gold.with_tree([-1, 2, 0])
    assert evaluate([gold], [unlabelled]).las == 0
    assert evaluate([unlabelled], [unlabelled]).las == 100  # "_" equals "_", as in the official scorer


@pytest.mark.parametrize(
    ("length", "name"), [(1, "1-10"), (10, "1-10"), (11, "11-20"), (50, "41-50"), (51, "51+"), (300, "51+")]
)
def test_bins_of_length(length: int, name: str) -> None:
    tree = Tree(["w"] * length, [0] + [1] * (length - 1), ["x"] * length)
    assert [row.name for row in _scores((tree, tree)).by_length] == [name]


@pytest.mark.parametrize(("distance", "name"), [(1, "1"), (2, "2"), (3, "3-6"), (6, "3-6"), (7, "7+"), (40, "7+")])
@pytest.mark.parametrize("left", [True, False])
def test_bins_of_distance(distance: int, name: str, left: bool) -> None:
    """One word hangs from a word at that distance, on either side; the rest hang from the root."""
    heads = [0] * (distance + 1)
    heads[-1 if left else 0] = 1 if left else distance + 1
    tree = Tree(["w"] * (distance + 1), heads, ["x"] * (distance + 1))
    assert [(row.name, row.count) for row in _scores((tree, tree)).by_distance] == [("root", distance), (name, 1)]


@pytest.mark.parametrize(
    ("right", "total", "printed"), [(0, 7, "0.00"), (7, 7, "100.00"), (1, 8, "12.50"), (0, 0, "0.00")]
)
def test_percent(right: int, total: int, printed: str) -> None:
    assert f"{percent(right, total):.2f}" == printed


# --- a naive twin ---


def _naive(pairs: list[tuple[Tree, Tree]], keep) -> list[tuple]:  # type: ignore[no-untyped-def, type-arg]
    """Kept words: sentence, its length, head right, label right, then label and distance, each gold and predicted."""
    words = []
    for number, (gold, predicted) in enumerate(pairs):
        for i in range(len(gold.forms)):
            if keep(gold.forms[i]):
                distances = [None if t.heads[i] == 0 else abs(t.heads[i] - i - 1) for t in (gold, predicted)]
                right = gold.heads[i] == predicted.heads[i], gold.labels[i] == predicted.labels[i]
                words.append((number, len(gold.forms), *right, gold.labels[i], predicted.labels[i], *distances))
    return words


def _percent(right: int, total: int) -> float:
    return float(Fraction(100 * right, total)) if total else 0.0


def _is_symbol_or_word(form: str) -> bool:
    return any(not unicodedata.category(character).startswith("P") for character in form)


BINS = {"root": [None], "1": [1], "2": [2], "3-6": [3, 4, 5, 6], "7+": range(7, 100)}


@given(pairs=st.lists(tree_pairs(), min_size=1, max_size=6))
def test_agrees_with_the_naive_twin(pairs: list[tuple[Tree, Tree]]) -> None:
    scores = _scores(*pairs)
    for suffix, keep in (("", lambda form: True), ("_no_punct", _is_symbol_or_word)):
        words = _naive(pairs, keep)
        n = len(words)
        expected = {
            "uas": _percent(sum(w[2] for w in words), n),
            "las": _percent(sum(w[2] and w[3] for w in words), n),
            "label_accuracy": _percent(sum(w[3] for w in words), n),
        }
        sentences = {w[0] for w in words}
        wrong_heads, wrong_arcs = {w[0] for w in words if not w[2]}, {w[0] for w in words if not (w[2] and w[3])}
        expected["exact"] = _percent(len(sentences - wrong_heads), len(sentences))
        expected["exact_labelled"] = _percent(len(sentences - wrong_arcs), len(sentences))
        for name, value in expected.items():
            assert getattr(scores, name + suffix) == pytest.approx(value, rel=1e-13, abs=1e-12), name + suffix
        assert (scores.scored if suffix else scores.tokens) == n


@given(pairs=st.lists(tree_pairs(max_words=25), min_size=1, max_size=6))
def test_tables_agree_with_the_naive_twin(pairs: list[tuple[Tree, Tree]]) -> None:
    scores = _scores(*pairs)
    words = _naive(pairs, _is_symbol_or_word)

    def check(row, gold, predicted, right):  # type: ignore[no-untyped-def]
        assert (row.count, row.predicted) == (len(gold), len(predicted))
        expected = {
            "uas": _percent(sum(w[2] for w in gold), len(gold)),
            "las": _percent(sum(w[2] and w[3] for w in gold), len(gold)),
            "precision": _percent(sum(map(right, predicted)), len(predicted)),
            "recall": _percent(sum(map(right, gold)), len(gold)),
        }
        total = expected["precision"] + expected["recall"]
        expected["f1"] = 2 * expected["precision"] * expected["recall"] / total if total else 0.0
        for name, value in expected.items():
            assert getattr(row, name) == pytest.approx(value, rel=1e-12, abs=1e-12), (row, name)

    names = [row.name for row in scores.by_label]
    assert set(names) == {w[4] for w in words} | {w[5] for w in words}
    assert len(set(names)) == len(names)
    assert [row.count for row in scores.by_label] == sorted((row.count for row in scores.by_label), reverse=True)
    for row in scores.by_label:
        gold, predicted = ([w for w in words if w[column] == row.name] for column in (4, 5))
        check(row, gold, predicted, lambda w: w[2] and w[3])

    rows = {row.name: row for row in scores.by_distance}
    assert list(rows) == [name for name in BINS if name in rows]
    for name, distances in BINS.items():
        gold, predicted = ([w for w in words if w[column] in distances] for column in (6, 7))
        if gold or predicted:
            check(rows[name], gold, predicted, lambda w: w[2])
        else:
            assert name not in rows

    for row in scores.by_length:
        low, high = (int(part) for part in row.name.split("-"))
        inside = [w for w in words if low <= w[1] <= high]
        assert row.sentences == sum(low <= len(gold.forms) <= high for gold, _ in pairs)
        assert row.count == len(inside)
        assert row.uas == pytest.approx(_percent(sum(w[2] for w in inside), len(inside)), abs=1e-12)
        assert row.las == pytest.approx(_percent(sum(w[2] and w[3] for w in inside), len(inside)), abs=1e-12)
    assert sum(row.sentences for row in scores.by_length) == len(pairs)


@given(pairs=st.lists(tree_pairs(), min_size=1, max_size=5))
def test_per_sentence_counts_add_up(pairs: list[tuple[Tree, Tree]]) -> None:
    together = _scores(*pairs)
    for number, pair in enumerate(pairs):
        alone = _scores(pair)
        for name in ("per_sentence", "per_sentence_no_punct"):
            for column in ("words", "heads", "labels", "arcs"):
                array = getattr(getattr(together, name), column)
                assert array.dtype == np.int64
                assert array[number] == getattr(getattr(alone, name), column)[0]


# --- eval.pl's rules, and its arithmetic, in Perl ---

EVAL_RULES = r"""
use strict; use Encode;
my ($gold, $system, $with_punctuation) = @ARGV;
open(G, "<", $gold) or die; open(S, "<", $system) or die;
my ($total, $any, $heads, $deps) = (0, 0, 0, 0);
while (my $g = <G>) {
  my $s = <S>;
  next if $g =~ /^\s+$/;
  my @g = split(/\t/, $g); my @s = split(/\t/, $s);
  next if !$with_punctuation && Encode::decode_utf8($g[1]) =~ /^\p{Punctuation}+$/;
  $total++;
  $heads++ if $g[6] ne $s[6];
  $deps++ if $g[7] ne $s[7];
  $any++ if $g[6] ne $s[6] || $g[7] ne $s[7];
}
printf "%.2f %.2f %.2f\n", map { 100 - $_ * 100.0 / $total } ($any, $heads, $deps);
"""


@needs_perl
@pytest.mark.parametrize("seed", range(8))
def test_printed_scores_agree_with_perl(seed: int, tmp_path: Path) -> None:
    """Totals with many fives in the third decimal (800, 2000 or 8000 words), where the order of operations decides."""
    rng = np.random.default_rng(seed)
    forms = np.array(["dog", "«", "--", "€", "%", "a·", "·", "`", "5%", "°"])
    paths = [str(tmp_path / "gold.conll"), str(tmp_path / "predicted.conll")]
    trees: list[list[Sentence]] = [[], []]
    for _ in range([40, 100, 400][seed % 3]):
        words = rng.choice(forms, 20).tolist()
        heads = np.arange(20)  # a chain
        other = np.where(rng.random(20) < 0.7, heads, rng.integers(0, heads + 1))  # to the left: no cycles
        labels = rng.choice(["a", "b", "a:b"], (2, 20)).tolist()
        for side, chosen, names in ((trees[0], heads, labels[0]), (trees[1], other, labels[1])):
            side.append(Sentence.from_words(words, heads=[-1, *chosen], labels=[None, *names]))
    for sentences, path in zip(trees, paths, strict=True):
        write_treebank(sentences, path)
    scores = evaluate(*paths)
    ours = {
        "1": (scores.las, scores.uas, scores.label_accuracy),
        "0": (scores.las_no_punct, scores.uas_no_punct, scores.label_accuracy_no_punct),
    }
    for with_punctuation, values in ours.items():
        command = [PERL, "-e", EVAL_RULES, *paths, with_punctuation]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        assert [f"{value:.2f}" for value in values] == printed


# --- files, JSON, errors ---


def test_paths_streams_and_sentences_give_the_same(tmp_path: Path) -> None:
    forms = ["He", "ran", "."]
    gold = [Tree(forms, [2, 0, 2], ["nsubj", "root", "punct"]).sentence()] * 3
    predicted = [Tree(forms, [2, 0, 1], ["obj", "root", "punct"]).sentence()] * 3
    for sentences, name in ((gold, "gold.conllu"), (predicted, "predicted.conllu.gz")):
        write_treebank(sentences, tmp_path / name)
    expected = evaluate(gold, predicted).to_dict()
    assert evaluate(tmp_path / "gold.conllu", str(tmp_path / "predicted.conllu.gz")).to_dict() == expected
    assert evaluate(iter(gold), (sentence for sentence in predicted)).to_dict() == expected
    with (tmp_path / "gold.conllu").open(encoding="utf-8") as stream:
        assert evaluate(stream, predicted).to_dict() == expected


def test_to_dict_is_json_with_everything_but_the_arrays() -> None:
    pair = Tree(["a"], [0], ["root"]), Tree(["a"], [0], ["dep"])
    found = json.loads(json.dumps(_scores(pair).to_dict(), allow_nan=False))
    assert (found["sentences"], found["tokens"], found["uas"], found["las"]) == (1, 1, 100, 0)
    assert found["by_length"] == [{"name": "1-10", "sentences": 1, "count": 1, "uas": 100, "las": 0}]
    assert [row["name"] for row in found["by_label"]] == ["root", "dep"]
    assert "per_sentence" not in found


def _write(path: Path, *sentences: list[str]) -> str:
    write_treebank([Sentence.from_words(s, heads=[-1, 0, *[1] * (len(s) - 1)]) for s in sentences], path)
    return str(path)


def test_other_numbers_of_sentences(tmp_path: Path) -> None:
    two, one = _write(tmp_path / "two.conllu", ["a"], ["b"]), _write(tmp_path / "one.conllu", ["a"])
    with pytest.raises(
        EvaluationError, match=r"two.conllu, line 3: this gold sentence .* ends at .*one.conllu, line 1;"
    ):
        evaluate(two, one)
    with pytest.raises(EvaluationError, match=r"two.conllu, line 3: this predicted .* ends at .*one.conllu, line 1;"):
        evaluate(one, two)
    with pytest.raises(EvaluationError, match="ends at its start"):
        evaluate(one, [])


def test_other_words(tmp_path: Path) -> None:
    gold = _write(tmp_path / "gold.conllu", ["a"], ["b", "c"])
    other = _write(tmp_path / "other.conllu", ["a"], ["b", "d"])
    longer = _write(tmp_path / "longer.conllu", ["a"], ["b", "c", "d"])
    with pytest.raises(EvaluationError, match=r"gold.conllu, line 3 and .*other.conllu, line 3: word 2 is 'c' .* 'd'"):
        evaluate(gold, other)
    with pytest.raises(EvaluationError, match=r"gold.conllu, line 3 and .*longer.conllu, line 3: 2 gold words, but 3"):
        evaluate(gold, longer)


def test_no_heads_no_words_and_standard_input_twice() -> None:
    bare = Sentence.from_words(["a"])
    tree = bare.with_tree([-1, 0])
    for gold, predicted in ((bare, tree), (tree, bare)):
        with pytest.raises(EvaluationError, match="no heads"):
            evaluate([gold], [predicted])
    with pytest.raises(HeadwayError, match="no words"):
        evaluate([], [])
    with pytest.raises(EvaluationError, match="both standard input"):
        evaluate("-", "-")
