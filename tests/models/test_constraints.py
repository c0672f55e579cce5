"""Parsing under constraints: against an enumeration of the trees that meet them, for every kind of model."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.arrays import Bools, Floats, Ints, TreeClass
from headway.errors import ArcError, ArgumentError, HeadsError, HeadwayError, NoTreeError, TreebankError
from headway.inference.brute_force import all_trees
from headway.inference.dual_decomposition import Status
from headway.inference.heads import is_in_class
from headway.models.calibration import Calibration
from headway.models.constraints import (
    Constraints,
    allowed_arcs,
    constraints_of,
    mask_arcs,
    require_agreement,
    require_tree_under,
)
from headway.models.labelling import NamedLabels
from headway.models.protocol import Options, Prediction
from headway.parallel import SERIAL, Threads
from headway.pipeline import Parser
from headway.training.part_problem import PartInstance
from headway.treebank import Sentence, read_treebank

from ..toy_model import ToyModel
from ..treebank.test_partial import partial_choices
from . import test_arc_model, test_higher_order_model
from .model_parts import assert_same_predictions, label_names_of, weights_of
from .test_every_model import PARSERS, inputs, model
from .toy_treebank import sentences

CLASSES = [TreeClass(projective, single) for projective in (False, True) for single in (False, True)]
every_class = pytest.mark.parametrize("trees", CLASSES, ids=str)
every_parser = pytest.mark.parametrize("name", PARSERS)


@cache
def trees_of(n: int, trees: TreeClass) -> Ints:
    return all_trees(n, **trees._asdict())


def meets(given: Constraints, tree: Ints) -> bool:
    """Word by word, and arc by arc."""
    known = all(h < 0 or tree[m] == h for m, h in enumerate(given.heads.tolist()))
    return known and all(tree[m] != h for h, m in given.forbidden)


def drawn(rng: np.random.Generator, n: int, trees: TreeClass, known: float = 0.4, forbid: float = 0.2) -> Constraints:
    """Some heads of a random tree of the class, and some arcs that it does not have."""
    tree = random_tree(rng, n, trees)
    heads = np.where(rng.random(n + 1) < known, tree, -1)
    heads[0] = -1
    arcs = [(h, m) for m in range(1, n + 1) for h in range(n + 1) if h not in (m, tree[m])]
    labels = tuple("given" if h >= 0 and rng.random() < 0.5 else "_" for h in heads[1:])
    return Constraints(heads, (None, *labels), tuple(arc for arc in arcs if rng.random() < forbid))


def random_tree(rng: np.random.Generator, n: int, trees: TreeClass) -> Ints:
    if n <= 4:
        return trees_of(n, trees)[rng.integers(len(trees_of(n, trees)))]
    heads = np.concatenate([[-1, 0], rng.integers(1, np.arange(2, n + 1))])  # any earlier word
    return np.maximum(heads, np.arange(n + 1) - 1) if trees.projective else heads  # or the word before


def short(n: int, seed: int = 5) -> Sentence:
    own = sentences(1, seed)[0]
    return Sentence.from_words(own.forms[:n], upos=own.upos[:n], xpos=own.xpos[:n])


def predict(found: Any, text: Sequence[Sentence], given: Sequence[Constraints | None] | None, **how: Any) -> Any:
    executor = how.pop("executor", SERIAL)
    predictions: list[Prediction] = found.predict(text, Options(**how), executor, given)
    return predictions


def totals(arcs: Floats, trees: Ints) -> Floats:
    words = np.arange(1, trees.shape[1])
    return np.array([arcs[tree[1:], words].sum() for tree in trees])


def marginals(weights: Floats, trees: Ints) -> Floats:
    """Of trees with these log weights."""
    mu = np.zeros((trees.shape[1], trees.shape[1]))
    for tree, share in zip(trees, np.exp(weights - np.logaddexp.reduce(weights)), strict=True):
        mu[tree[1:], np.arange(1, len(tree))] += share
    return mu


# Arc models


@every_class
@pytest.mark.parametrize("labels", test_arc_model.LABEL_CHOICES)
def test_arc_models_choose_among_the_trees_that_are_left(labels: str, trees: TreeClass) -> None:
    """Best tree, MBR, all probabilities, k best, labels: those of the enumerated trees that meet the constraints."""
    found, rng = test_arc_model.random_model(labels, 3, trees), np.random.default_rng(7)
    text = test_arc_model.short_sentences()
    given = [drawn(rng, len(sentence), trees) for sentence in text]
    free, moved, several = predict(found, text, None), 0, 0
    by_risk = predict(found, text, given, mbr=True)
    for i, one in enumerate(predict(found, text, given)):
        full = found.scorer.scores(found.coder.code([text[i]]))[0]
        if labels == "joint":
            root = label_names_of(found).index("root")
            full[0, :, [k for k in range(full.shape[-1]) if k != root]] = -np.inf
            full[1:, :, root] = -np.inf
        parts = full if full.ndim == 3 else full[..., None]
        arcs, best = np.logaddexp.reduce(parts, axis=-1), parts.max(axis=-1)
        every = trees_of(len(text[i]), trees)
        left = np.array([tree for tree in every if meets(given[i], tree)])
        weights = totals(arcs, left)
        mu = marginals(weights, left)
        np.testing.assert_array_equal(one.heads, left[totals(best, left).argmax()])
        np.testing.assert_array_equal(by_risk[i].heads, left[totals(mu, left).argmax()])
        for distribution in (one.distribution, by_risk[i].distribution):
            np.testing.assert_allclose(distribution.marginals, mu, rtol=1e-10, atol=1e-14)
            for tree in every:
                expected = -np.inf
                if meets(given[i], tree):
                    expected = totals(arcs, tree[None])[0] - np.logaddexp.reduce(weights)
                assert distribution.log_prob(tree) == pytest.approx(expected, rel=1e-9, abs=1e-10)
        found_best = one.distribution.kbest(len(left) + 1)
        assert sorted(tuple(heads) for heads, _ in found_best) == sorted(map(tuple, left.tolist()))
        np.testing.assert_allclose([score for _, score in found_best], np.sort(weights)[::-1], rtol=1e-10, atol=1e-12)
        if labels == "joint":
            shares = np.exp(best - arcs)[one.heads[1:], np.arange(1, len(one.heads))]
            np.testing.assert_allclose(one.label_probabilities, [1.0, *shares], rtol=1e-9)
        moved += not np.array_equal(one.heads, free[i].heads)
        several += len(left) > 3
    assert moved > 5
    assert several > 5


# Higher-order models


@every_class
@pytest.mark.parametrize("order", test_higher_order_model.MODELS)
def test_higher_order_models_prove_the_best_of_the_trees_that_are_left(order: str, trees: TreeClass) -> None:
    """Nothing that is allowed is pruned here, so that these are all trees; probabilities are the pruner's."""
    found, rng = test_higher_order_model.random_model(order, 4, trees), np.random.default_rng(8)
    text = [short(n, seed) for seed, n in enumerate((4, 4, 1, 3, *[4] * 6))]
    given = [drawn(rng, len(sentence), trees) for sentence in text]
    free, moved = predict(found, text, None), 0
    for i, one in enumerate(predict(found, text, given)):
        batch, n = found.coder.code([text[i]]), len(text[i])
        left = np.array([tree for tree in trees_of(n, trees) if meets(given[i], tree)])
        scorer = found.scorer.parts.scorer
        every_arc = np.ones((n + 1, n + 1), np.bool_)
        every_arc[:, 0] = False
        np.fill_diagonal(every_arc, False)
        listed = scorer.batch(batch, [every_arc])
        scores = scorer.scores(weights_of(found), listed)
        own = [float(scores @ PartInstance(scorer, listed, tree, "dual", trees).gold()) for tree in left]
        np.testing.assert_array_equal(one.heads, left[int(np.argmax(own))])
        assert one.status in (Status.CERTIFIED, Status.EXACT)
        assert one.gap == 0.0
        weights = totals(found.scorer.pruner.scorer.scores(batch)[0], left)
        np.testing.assert_allclose(one.distribution.marginals, marginals(weights, left), rtol=1e-10, atol=1e-14)
        for tree, weight in zip(left, weights, strict=True):
            log_prob = one.distribution.log_prob(tree)
            assert log_prob == pytest.approx(weight - np.logaddexp.reduce(weights), rel=1e-9, abs=1e-10)
        moved += not np.array_equal(one.heads, free[i].heads)
    assert moved > 2


def test_known_heads_survive_pruning() -> None:
    """One head per word is left, and those are the known ones, and otherwise the likeliest given them."""
    found = test_higher_order_model.random_model("sibling", 5)
    pruner = replace(found.scorer.pruner, threshold=1.0, max_heads=1)
    found = replace(found, scorer=replace(found.scorer, pruner=pruner))
    text, rng = sentences(10, 3), np.random.default_rng(9)
    given = [drawn(rng, len(sentence), TreeClass(), forbid=0.0) for sentence in text]
    conditioned = 0
    for sentence, known, one, free in zip(
        text, given, predict(found, text, given), predict(found, text, None), strict=True
    ):
        assert meets(known, one.heads)
        batch = found.coder.code([sentence])
        allowed = allowed_arcs([known], np.zeros(1, np.int64), len(sentence) + 1)
        kept = pruner.prune(batch, allowed=allowed).kept[0]
        assert not (kept & ~known.allowed)[:, 1:].any()
        conditioned += ((one.heads != free.heads) & (known.heads < 0)).any()
    assert conditioned > 3


def test_calibration_leaves_what_is_known_alone() -> None:
    found = test_higher_order_model.random_model("sibling", 6)
    found = replace(found, decoder=replace(found.decoder, calibration=Calibration(0.3, 1.7)))
    given = Constraints(np.array([-1, 4, -1, -1, -1]), None, ((0, 3),))
    [one] = predict(found, [short(4)], [given])
    assert one.distribution.marginals[4, 1] == 1.0
    assert one.distribution.marginals[0, 3] == 0.0
    np.testing.assert_allclose(one.distribution.marginals[:, 1:].sum(axis=0), 1.0, rtol=1e-12)


# Every kind of model


def cases(name: str) -> tuple[Sequence[Sentence], list[Constraints | None]]:
    """Sentences of several lengths, and for every other one what is known of its tree."""
    text, rng = inputs(name), np.random.default_rng(11)
    given = [drawn(rng, len(sentence), model(name).trees, forbid=0.05) for sentence in text]
    return text, [None if i % 3 == 2 or not len(text[i]) else own for i, own in enumerate(given)]


@every_parser
def test_what_is_known_is_certain_and_what_is_forbidden_impossible(name: str) -> None:
    text, given = cases(name)
    for known, one in zip(given, predict(model(name), text, given), strict=True):
        if known is None:
            continue
        assert meets(known, one.heads)
        assert is_in_class(one.heads, model(name).trees)
        mu, words = one.distribution.marginals, np.flatnonzero(known.heads >= 0)
        np.testing.assert_allclose(mu[known.heads[words], words], 1.0, rtol=1e-14)
        assert not any(mu[arc] for arc in known.forbidden)
        np.testing.assert_allclose(mu[:, 1:].sum(axis=0), 1.0, rtol=1e-9)
        assert one.distribution.log_prob(one.heads) <= 1e-9
    assert sum(known is not None for known in given) > 2


@every_parser
def test_others_do_not_notice(name: str) -> None:
    """A sentence without constraints is parsed as ever, bit by bit, whatever is known of its neighbours."""
    text, given = cases(name)
    free, together = predict(model(name), text, None), predict(model(name), text, given)
    others = [i for i, known in enumerate(given) if known is None]
    assert others
    assert_same_predictions([together[i] for i in others], [free[i] for i in others])
    assert_same_predictions(predict(model(name), text, [None] * len(text)), free)
    nothing = [Constraints(np.full(len(sentence) + 1, -1)) for sentence in text]
    assert_same_predictions(predict(model(name), text, nothing), free)
    assert_same_predictions(model(name).predict(text, Options(), SERIAL), free)


@every_parser
def test_company_and_threads_change_nothing(name: str) -> None:
    text, given = cases(name)
    together = predict(model(name), text, given)
    alone = [predict(model(name), [sentence], [known])[0] for sentence, known in zip(text, given, strict=True)]
    assert_same_predictions(alone, together)
    assert_same_predictions(predict(model(name), text, given, executor=Threads(3)), together)


@every_parser
def test_probabilities_are_conditional(name: str) -> None:
    """log P(tree | known) = log P(tree) - log P(known), for all trees that are left; -inf for the others."""
    found, sentence, rng, compared = model(name), short(4), np.random.default_rng(12), 0
    [free] = predict(found, [sentence], None)
    for _ in range(8):
        given = drawn(rng, 4, found.trees, known=0.3, forbid=0.1)
        [one] = predict(found, [sentence], [given])
        every = trees_of(4, found.trees)
        left = np.array([meets(given, tree) for tree in every])
        before, after = (np.array([p.distribution.log_prob(tree) for tree in every]) for p in (free, one))
        assert (after[~left] == -np.inf).all()
        if found.kind != "grammar":
            expected = before[left] - np.logaddexp.reduce(before[left])
            np.testing.assert_allclose(after[left], expected, rtol=1e-8, atol=1e-8)
            continue
        # A grammar may give some trees negative weights: no logarithms, and those of others are cut off at 0.
        both = left & (before > -np.inf) & (before < 0) & (after > -np.inf) & (after < 0)
        shift = (after - before)[both]
        np.testing.assert_allclose(shift, shift[0] if len(shift) else 0.0, rtol=1e-8, atol=1e-8)
        compared += len(shift)
    assert found.kind != "grammar" or compared > 10


# Labels


def test_known_labels_are_put_in_place() -> None:
    given = Constraints(np.array([-1, 2, 0, -1]), (None, "x", "_", None))
    found = NamedLabels((None, "a", "b", "c"), np.array([1.0, 0.5, 0.6, 0.7]))
    names, probabilities = given.labelled(found)
    assert names == (None, "x", "b", "c")
    assert probabilities is not None
    assert probabilities.tolist() == [1.0, 1.0, 0.6, 0.7]
    assert found.probabilities is not None
    assert found.probabilities[1] == 0.5
    assert given.labelled(NamedLabels()) == ((None, "x", "_", "_"), None)
    assert replace(given, labels=None).labelled(found) is found
    assert replace(given, labels=(None, "_", "_", None)).labelled(found) is found


@every_parser
def test_labels_are_kept_with_their_heads_even_unheard_of_ones(name: str) -> None:
    parser, text = Parser(model(name)), sentences(1, 5)[0]
    heads, labels = np.full(len(text) + 1, -1), ["_"] * len(text)
    heads[2], labels[1] = 3, "unheard-of"
    known = text.with_tree(heads, [None, *labels], partial=True)
    one, bare = parser.parse(known, keep_heads=True), parser.parse(text, heads=heads)
    assert (one.heads[2], one.labels[2]) == (3, "unheard-of")
    np.testing.assert_array_equal(one.heads, bare.heads)
    assert one.labels[:2] + one.labels[3:] == bare.labels[:2] + bare.labels[3:]
    if one.label_probabilities is not None:
        assert bare.label_probabilities is not None
        assert one.label_probabilities[2] == 1.0
        np.testing.assert_array_equal(np.delete(one.label_probabilities, 2), np.delete(bare.label_probabilities, 2))
    assert "unheard-of" in one.to_conllu(probabilities=True)


def test_a_label_of_a_joint_model_says_nothing_of_other_words() -> None:
    """P(tree, labels | a labelled arc) by enumeration of labelled trees: the trees' share is that given the arc."""
    found, sentence = test_arc_model.random_model("joint", 4), short(3)
    full = found.scorer.scores(found.coder.code([sentence]))[0]
    names = label_names_of(found)
    root = names.index("root")
    label = next(k for k in range(len(names)) if k != root)
    given = Constraints(np.array([-1, 2, -1, -1]), (None, names[label], "_", "_"))
    left = [tree for tree in trees_of(3, TreeClass()) if tree[1] == 2]
    weights = []
    for tree in left:
        total = full[2, 1, label]
        for m in (2, 3):
            own = full[tree[m], m]
            total += own[root] if tree[m] == 0 else np.logaddexp.reduce(np.delete(own, root))
        weights.append(total)
    [one] = predict(found, [sentence], [given])
    expected = np.array(weights) - np.logaddexp.reduce(weights)
    np.testing.assert_allclose([one.distribution.log_prob(tree) for tree in left], expected, rtol=1e-9, atol=1e-12)
    assert np.ptp(expected) > 0.1


# Contradictions


def built(heads: Sequence[int]) -> Sentence:
    return Sentence.from_words([f"w{m}" for m in range(1, len(heads))], heads=heads, partial=True)


@every_class
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_known_heads_are_refused_just_where_no_tree_has_them(trees: TreeClass, n: int) -> None:
    """Every choice of heads for some of the words: what is checked is enough, and not too much."""
    for heads in partial_choices(n):
        sentence = built(heads)
        given = constraints_of(sentence)
        assert given is not None
        if any(meets(given, tree) for tree in trees_of(n, trees)):
            require_agreement(sentence, given, trees)
        else:
            with pytest.raises(NoTreeError) as caught:
                require_agreement(sentence, given, trees)
            assert caught.value.words
            assert all(f"{m} (w{m})" in str(caught.value) for m in caught.value.words)


@every_class
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(5, 6))
def test_known_heads_of_longer_sentences(trees: TreeClass, seed: int, n: int) -> None:
    """Parts of trees of another class, too."""
    rng = np.random.default_rng(seed)
    heads = rng.integers(0, n + 1, n + 1)
    heads = np.where((rng.random(n + 1) < 0.5) | (heads == np.arange(n + 1)), -1, heads)
    heads[0] = -1
    given = Constraints(heads)
    fine = ((trees_of(n, trees) == heads) | (heads < 0)).all(axis=1).any()
    sentence = Sentence.from_words([f"w{m}" for m in range(1, n + 1)])
    if fine:
        require_tree_under(sentence, given, trees)
    else:
        with pytest.raises(NoTreeError):
            require_tree_under(sentence, given, trees)


@every_class
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 4), forbid=st.sampled_from([0.2, 0.5, 0.8]))
def test_forbidden_arcs_are_refused_just_where_no_tree_is_left(
    trees: TreeClass, seed: int, n: int, forbid: float
) -> None:
    rng = np.random.default_rng(seed)
    heads = np.where(rng.random(n + 1) < 0.3, trees_of(n, trees)[rng.integers(len(trees_of(n, trees)))], -1)
    arcs = [(h, m) for m in range(1, n + 1) for h in range(n + 1) if h != m]
    given = Constraints(heads, None, tuple(arc for arc in arcs if rng.random() < forbid))
    sentence = Sentence.from_words([f"w{m}" for m in range(1, n + 1)])
    if any(meets(given, tree) for tree in trees_of(n, trees)):
        require_tree_under(sentence, given, trees)
    else:
        with pytest.raises(NoTreeError, match=r"\d \(w\d\)"):
            require_tree_under(sentence, given, trees)


PROJECTIVE = TreeClass(projective=True)
SAID: dict[str, tuple[list[int], list[tuple[int, int]], TreeClass, str, tuple[int, ...]]] = {
    "a cycle": (
        [-1, 2, 3, 1, -1],
        [],
        TreeClass(),
        "the given heads form a cycle, 1 (w1) -> 2 (w2) -> 3 (w3) -> 1 (w1); leave one of them open",
        (1, 2, 3),
    ),
    "two roots": (
        [-1, 0, -1, 0, -1],
        [],
        TreeClass(),
        "words 1 (w1) and 3 (w3) are both under the root, which may have one child; keep one of them there",
        (1, 3),
    ),
    "three roots": (
        [-1, 0, 0, 0, -1],
        [],
        TreeClass(),
        "words 1 (w1), 2 (w2) and 3 (w3) are all under the root, which may have one child; keep one of them there",
        (1, 2, 3),
    ),
    "crossing arcs": (
        [-1, 3, 4, -1, -1],
        [],
        PROJECTIVE,
        "the given arcs from 3 (w3) to 1 (w1) and from 4 (w4) to 2 (w2) cross, and the model's trees are projective; "
        "leave one of them open, or parse with non-projective trees",
        (1, 2),
    ),
    "an arc over the root's child": (
        [-1, 3, 0, -1, -1],
        [],
        PROJECTIVE,
        "the given arcs from 3 (w3) to 1 (w1) and from 0 (the root) to 2 (w2) cross, and the model's trees are "
        "projective; leave one of them open, or parse with non-projective trees",
        (1, 2),
    ),
    "an arc over what its head depends on": (
        [-1, 2, -1, 1, -1],
        [],
        PROJECTIVE,
        "the given arc from 1 (w1) to 3 (w3) passes over 2 (w2), on which 1 (w1) depends, and the model's trees are "
        "projective; leave one of them open, or parse with non-projective trees",
        (3, 1, 2),
    ),
    "given and forbidden": (
        [-1, 3, -1, -1, -1],
        [(2, 1), (3, 1)],
        TreeClass(),
        "3 (w3) is given as the head of 1 (w1), and forbidden as such",
        (1,),
    ),
    "no head left": (
        [-1, -1, -1, -1, -1],
        [(0, 2), (1, 2), (3, 2), (4, 2)],
        TreeClass(),
        "every head of word 2 (w2) is forbidden",
        (2,),
    ),
    "no root left": (
        [-1, -1, -1, -1, -1],
        [(0, 1), (0, 2), (0, 3), (0, 4)],
        TreeClass(),
        "words 1 (w1), 2 (w2), 3 (w3) and 4 (w4) cannot be reached from the root, since all their allowed heads lie "
        "among themselves",
        (1, 2, 3, 4),
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_contradictions_in_one_sentence(name: str) -> None:
    heads, forbidden, trees, said, words = SAID[name]
    given = Constraints(np.array(heads), None, tuple(forbidden))
    sentence = Sentence.from_words([f"w{m}" for m in range(1, len(heads))])
    with pytest.raises(NoTreeError) as caught:
        require_tree_under(sentence, given, trees)
    assert str(caught.value) == f"no tree exists: {said}"
    assert caught.value.words == words


def test_a_contradiction_in_a_file_says_where() -> None:
    text = "1\ta\t_\t_\t_\t_\t2\tx\t_\t_\n2\tb\t_\t_\t_\t_\t1\tx\t_\t_\n\n"
    [good, bad] = read_treebank(io.StringIO("1\ta\t_\t_\t_\t_\t0\tx\t_\t_\n\n" + text), partial=True)
    with pytest.raises(NoTreeError, match=r"^stream, line 3: no tree exists: the given heads form a cycle"):
        list(Parser(model("arc, labels after")).parse([good, bad], keep_heads=True))


def test_constraints_of_another_sentence() -> None:
    with pytest.raises(ArgumentError, match="the constraints have 3 heads for 4 words; expected 5"):
        require_agreement(short(4), Constraints(np.array([-1, 0, -1])), TreeClass())


def test_a_grammar_that_gives_no_weight_to_what_is_known() -> None:
    """Without smoothing, a determiner is never a head."""
    parser = Parser.induce(sentences(16, 1), states=2, backed_off=0.0, method="em")
    sentence = Sentence.from_words(["the", "stone", "moves", "."], upos=["D", "N", "V", "S"], xpos=["D", "N", "V", "S"])
    with pytest.raises(NoTreeError, match=r"weight 0 to every tree of 'the stone moves \.' that has the given heads"):
        parser.parse(sentence, heads=[-1, -1, 1, -1, -1])


# Masks


def test_masks_of_a_padded_batch() -> None:
    given = [None, Constraints(np.array([-1, 2, -1])), Constraints(np.array([-1, -1, -1, 0]), None, ((3, 1),))]
    which = np.array([2, 0, 1])
    allowed = allowed_arcs(given, which, 5)
    assert allowed is not None
    expected = np.ones((3, 5, 5), np.bool_)
    expected[0, [1, 2, 3], 3] = False
    expected[0, 3, 1] = False
    expected[2, [0, 1], 1] = False
    np.testing.assert_array_equal(allowed, expected)
    scores = np.random.default_rng(1).normal(size=(3, 5, 5, 2))
    for own in (scores[..., 0], scores):
        masked = mask_arcs(own, allowed)
        np.testing.assert_array_equal(masked[allowed], own[allowed])
        assert (masked[~allowed] == -np.inf).all()
        assert mask_arcs(own, None) is own
    for nothing in (None, given):
        assert allowed_arcs(nothing, np.array([0, 0]), 5) is None


def test_constraints_among_some_words() -> None:
    """Words 2, 3 and 5 of six: known heads among them stay, others are the root."""
    given = Constraints(np.array([-1, 2, 5, -1, 3, 6, 0]), None, ((3, 2), (0, 3), (1, 2), (3, 1), (6, 5)))
    own = given.among(np.array([2, 3, 5]))
    assert own.heads.tolist() == [-1, 3, -1, 0]
    assert own.forbidden == ((2, 1), (0, 2))
    assert own.labels is None


# Parser.parse


@pytest.fixture(scope="module")
def parser() -> Parser:
    return Parser(model("arc, labels joint"))


def test_heads_may_be_arrays_lists_and_none(parser: Parser) -> None:
    text = short(4)
    expected = parser.parse(text, heads=np.array([-1, 3, -1, -1, 0]))
    assert expected.heads[[1, 4]].tolist() == [3, 0]
    np.testing.assert_allclose(expected.confidence.arcs[[1, 4]], 1.0, rtol=1e-14)
    for heads in ([None, 3, None, None, 0], (-1, 3, -1, None, 0)):
        found = parser.parse(text, heads=heads)
        np.testing.assert_array_equal(found.heads, expected.heads)
        np.testing.assert_array_equal(found.marginals, expected.marginals)
    tree = text.with_tree([-1, 3, -1, -1, 0], partial=True)
    np.testing.assert_array_equal(parser.parse(tree, keep_heads=True).marginals, expected.marginals)


def test_labels_may_be_none(parser: Parser) -> None:
    found = parser.parse(short(4), heads=[-1, 3, -1, -1, 0], labels=[None, "x", None, "_", None])
    assert found.labels[1] == "x"
    assert "x" not in found.labels[2:]
    assert found.label_probabilities is not None
    assert found.label_probabilities[1] == 1.0


def test_a_sentence_s_own_heads_count_only_where_they_are_asked_for(parser: Parser) -> None:
    text, free = short(4), parser.parse(short(4))
    upside_down = text.with_tree([-1, 0, 1, 2, 3])
    assert free.heads.tolist() != [-1, 0, 1, 2, 3]
    np.testing.assert_array_equal(parser.parse(upside_down).marginals, free.marginals)
    np.testing.assert_array_equal(parser.parse(upside_down, heads=[-1] * 5).marginals, free.marginals)
    kept = parser.parse(upside_down, keep_heads=True)
    assert kept.heads.tolist() == [-1, 0, 1, 2, 3]
    assert kept.confidence.tree == pytest.approx(1.0, rel=1e-12)
    forbidden = parser.parse(upside_down, forbid=[(int(free.heads[2]), 2)])
    assert forbidden.heads[2] != free.heads[2]
    assert forbidden.marginals[free.heads[2], 2] == 0.0
    with pytest.raises(NoTreeError, match="is given as the head of 2"):
        parser.parse(upside_down, forbid=[(1, 2)], keep_heads=True)


def test_many_sentences_keep_their_heads(parser: Parser) -> None:
    text, rng = sentences(30, 9), np.random.default_rng(3)
    partial = []
    for sentence in text:
        assert sentence.heads is not None
        assert sentence.labels is not None
        known = np.where(rng.random(len(sentence) + 1) < 0.3, sentence.heads, -1)
        labels = [None, *(sentence.labels[m] if known[m] >= 0 else "_" for m in range(1, len(known)))]
        partial.append(sentence.with_tree(known, labels, partial=True))
    assert any(sentence.heads is None for sentence in [*partial, short(4)])
    together = list(parser.parse(iter([*partial, short(4)]), keep_heads=True, threads=2))
    for sentence, one in zip(partial, together, strict=False):
        if sentence.heads is not None:
            words = np.flatnonzero(sentence.heads >= 0)
            np.testing.assert_array_equal(one.heads[words], sentence.heads[words])
            assert [one.labels[m] for m in words] == [sentence.labels[m] for m in words]
            np.testing.assert_array_equal(one.marginals, parser.parse(sentence, keep_heads=True).marginals)
    np.testing.assert_array_equal(together[-1].marginals, parser.parse(short(4)).marginals)


def test_no_words_and_no_heads(parser: Parser) -> None:
    nothing = Sentence.from_words([])
    assert parser.parse(nothing, keep_heads=True).heads.tolist() == [-1]
    assert parser.parse(nothing, heads=[-1]).heads.tolist() == [-1]
    assert parser.parse(nothing, heads=[None], labels=[None]).heads.tolist() == [-1]


WRONG: dict[str, tuple[dict[str, Any], type[HeadwayError], str]] = {
    "too few heads": ({"heads": [-1, 0]}, TreebankError, "there are 2 heads for 4 words; expected 5"),
    "heads of n words": ({"heads": [0, 1, 1, 1]}, HeadsError, r"heads\[0\] == -1"),
    "a head beyond the sentence": ({"heads": [-1, 9, -1, -1, -1]}, HeadsError, r"heads\[1\] is 9; expected -1"),
    "its own head": ({"heads": [-1, 1, -1, -1, -1]}, HeadsError, r"heads\[1\] is 1"),
    "no heads at all": ({"heads": 5}, HeadsError, "heads must be"),
    "labels without heads": ({"labels": [None] * 5}, ArgumentError, "labels are given without heads"),
    "a label without its head": (
        {"heads": [-1, 0, -1, -1, -1], "labels": [None, "root", "x", None, None]},
        TreebankError,
        "word 2 has a label but no head",
    ),
    "too few labels": ({"heads": [-1, 0, 1, 1, 1], "labels": [None, "x"]}, TreebankError, "there are 2 labels"),
    "a label for the root": (
        {"heads": [-1, 0, 1, 1, 1], "labels": ["x", "x", "x", "x", "x"]},
        TreebankError,
        r"labels\[0\] is None first",
    ),
    "no labels at all": ({"heads": [-1, 0, 1, 1, 1], "labels": 5}, TreebankError, "labels are int"),
    "an arc beyond the sentence": ({"forbid": [(9, 1)]}, ArcError, r"\(9, 1\) is not an arc of a sentence of 4 words"),
    "no pairs": ({"forbid": [5]}, ArcError, "expected arcs as pairs"),
    "two sources of heads": ({"heads": [-1] * 5, "keep_heads": True}, ArgumentError, "one or the other"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_meant(parser: Parser, name: str) -> None:
    options, error, said = WRONG[name]
    with pytest.raises(error, match=said):
        parser.parse(short(4), **options)


@pytest.mark.parametrize(
    "options", [{"heads": [-1, 0]}, {"labels": [None, "x"]}, {"forbid": [(0, 1)]}], ids=["heads", "labels", "forbid"]
)
def test_heads_are_of_one_sentence(parser: Parser, options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="those of one sentence, and there are many; expected partial sentences"):
        parser.parse([short(4)], **options)


def test_a_model_that_takes_no_constraints_says_so_when_there_are_some() -> None:
    toy, text = Parser(ToyModel(2.0, {})), short(4)
    expected = toy.parse(text)
    for found in (toy.parse(text, keep_heads=True), toy.parse(text, heads=[-1] * 5)):
        np.testing.assert_array_equal(found.marginals, expected.marginals)
    for options in ({"heads": [-1, 0, -1, -1, -1]}, {"forbid": [(0, 1)]}):
        with pytest.raises(ArgumentError, match="a model of the kind toy cannot keep given heads or avoid arcs"):
            toy.parse(text, **options)


def test_allowed_arcs_are_those_of_the_trees_that_are_left() -> None:
    """What the mask rules out is just what no tree with the known heads and without the forbidden arcs has."""
    given = Constraints(np.array([-1, 3, -1, -1]), None, ((0, 2), (2, 3)))
    allowed: Bools = given.allowed
    for tree in trees_of(3, TreeClass(single_root=False)):
        assert meets(given, tree) == allowed[tree[1:], [1, 2, 3]].all()
