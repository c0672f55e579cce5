"""What goes in: validation that names the culprit, layouts, constraints, batches, threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from headway.errors import (
    ArcError,
    DtypeError,
    HeadwayError,
    LengthsError,
    NoTreeError,
    ScoresError,
    ShapeError,
)
from headway.inference import (
    LabelledTreeDistribution,
    SiblingDistribution,
    TreeDistribution,
    argmax,
    forbid,
    from_modifier_head,
    from_root_on_diagonal,
    log_partition,
    marginals,
    require,
)

from .strategies import TREE_CLASSES, Floats, boost_cycle, normal_scores

every_class = pytest.mark.parametrize("flags", TREE_CLASSES)
every_function = pytest.mark.parametrize(
    "function", [argmax, log_partition, marginals, TreeDistribution], ids=lambda f: f.__name__
)
Function = Callable[..., Any]

QUANTITIES: dict[str, Callable[[TreeDistribution], Any]] = {
    "log_partition": lambda d: d.log_partition,
    "marginals": lambda d: d.marginals,
    "argmax": lambda d: d.argmax(),
    "max": lambda d: d.max,
    "mbr": lambda d: d.mbr(),
    "entropy": lambda d: d.entropy,
    "renyi": lambda d: d.renyi(2.0),
    "log_prob": lambda d: d.log_prob(d.argmax()),
    "score": lambda d: d.score(d.argmax()),
}


def padded_batch(lengths: list[int], seed: int, std: float = 1.0) -> Floats:
    """Nothing but nan in the padding."""
    longest = max(lengths)
    batch = np.full((len(lengths), longest + 1, longest + 1), np.nan)
    for b, n in enumerate(lengths):
        batch[b, : n + 1, : n + 1] = normal_scores(n, seed + b, std)
    return batch


# --- errors --------------------------------------------------------------------------------------


@every_function
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e301, -1e301])
def test_a_bad_score_is_named(function: Function, value: float) -> None:
    scores = normal_scores(4, 140)
    scores[3, 2] = value
    with pytest.raises(ScoresError, match=r"\[3, 2\]"):
        function(scores)
    batch = np.stack([normal_scores(4, 141), scores])
    with pytest.raises(ScoresError, match=r"sentence 1.*\[3, 2\]"):
        function(batch)


@every_function
@pytest.mark.parametrize("shape", [(), (4,), (3, 4), (0, 0), (2, 3, 4), (2, 0, 0), (2, 3, 3, 3)], ids=str)
def test_a_bad_shape_is_named(function: Function, shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError) as caught:
        function(np.zeros(shape))
    assert str(shape) in str(caught.value)


@every_function
@pytest.mark.parametrize("dtype", [np.complex128, object, np.bool_, "U3"], ids=str)
def test_a_bad_dtype_is_named(function: Function, dtype: Any) -> None:
    with pytest.raises(DtypeError) as caught:
        function(np.zeros((3, 3)).astype(dtype))
    assert str(np.dtype(dtype)) in str(caught.value)
    assert isinstance(caught.value, TypeError)


@every_function
@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([3, 5], "sentence 1.*5"),
        ([-1, 3], "sentence 0.*-1"),
        ([3], r"\(1,\)"),
        ([[3, 3]], r"\(1, 2\)"),
        ([3.0, 3.0], "float64"),
    ],
)
def test_bad_lengths_are_named(function: Function, lengths: Any, message: str) -> None:
    with pytest.raises(LengthsError, match=message):
        function(np.zeros((2, 4, 4)), lengths=lengths)


@every_function
def test_one_matrix_takes_no_lengths(function: Function) -> None:
    with pytest.raises(LengthsError):
        function(np.zeros((4, 4)), lengths=[3])


@every_class
@pytest.mark.parametrize("function", [argmax, log_partition, marginals])
def test_the_sentence_without_a_tree_is_named(function: Function, flags: dict[str, bool]) -> None:
    batch = padded_batch([4, 3, 4], 142)
    batch[1, :, 2] = -np.inf
    with pytest.raises(NoTreeError, match=r"sentence 1.*\b2\b") as caught:
        function(batch, lengths=[4, 3, 4], **flags)
    assert caught.value.sentence == 1
    assert caught.value.words == (2,)


@every_class
@pytest.mark.parametrize("name", QUANTITIES)
def test_no_quantity_is_nan_where_there_is_no_tree(name: str, flags: dict[str, bool]) -> None:
    scores = normal_scores(4, 143)
    scores[[0, 2, 4], 1] = scores[[0, 2, 4], 3] = -np.inf  # 1 and 3 can only head each other
    with pytest.raises(NoTreeError) as caught:
        QUANTITIES[name](TreeDistribution(scores, **flags))
    assert sorted(caught.value.words) == [1, 3]


def test_every_error_is_a_headway_error_and_a_value_error() -> None:
    for error in (ScoresError, ShapeError, DtypeError, LengthsError, NoTreeError, ArcError):
        assert issubclass(error, HeadwayError)
        assert issubclass(error, ValueError)


@pytest.mark.parametrize("function", [argmax, log_partition, marginals])
def test_threads_are_counted_from_one(function: Function) -> None:
    with pytest.raises(ValueError, match="threads"):
        function(np.zeros((2, 4, 4)), threads=0)


# --- layouts and constraints ---------------------------------------------------------------------


def test_modifier_head_layout() -> None:
    scores = normal_scores(4, 144)
    np.testing.assert_array_equal(from_modifier_head(scores.T), scores)
    batch = padded_batch([4, 3], 145)
    np.testing.assert_array_equal(from_modifier_head(batch.transpose(0, 2, 1)), batch)


def test_root_on_the_diagonal_layout() -> None:
    scores = normal_scores(4, 146)
    theirs = scores[1:, 1:].copy()
    np.fill_diagonal(theirs, scores[0, 1:])
    ours = from_root_on_diagonal(theirs)
    assert ours.shape == (5, 5)
    arcs = ~np.eye(5, dtype=np.bool_)
    arcs[:, 0] = False
    np.testing.assert_array_equal(ours[arcs], scores[arcs])
    np.testing.assert_array_equal(marginals(ours), marginals(scores))


@pytest.mark.parametrize("convert", [from_modifier_head, from_root_on_diagonal])
def test_converters_check_the_shape(convert: Function) -> None:
    with pytest.raises(ShapeError, match=r"\(2, 3\)"):
        convert(np.zeros((2, 3)))


@every_class
def test_required_arcs_are_in_every_tree(flags: dict[str, bool]) -> None:
    scores = normal_scores(6, 147)
    required = require(scores, [(0, 3), (3, 5)])
    result = marginals(required, **flags)
    assert result[0, 3] == pytest.approx(1.0, rel=1e-12)
    assert result[3, 5] == pytest.approx(1.0, rel=1e-12)
    whole = TreeDistribution(scores, **flags)
    change = TreeDistribution(required, **flags).log_partition - whole.log_partition
    joint = whole.arc_set_probability([(0, 3), (3, 5)])
    assert change == pytest.approx(np.log(joint), rel=1e-9)


@every_class
def test_forbidden_arcs_are_in_no_tree(flags: dict[str, bool]) -> None:
    scores = normal_scores(6, 148)
    heads = argmax(scores, **flags)
    arcs = [(int(heads[m]), m) for m in (2, 4)]
    forbidden = forbid(scores, arcs)
    assert all(argmax(forbidden, **flags)[m] != h for h, m in arcs)
    assert all(marginals(forbidden, **flags)[arc] == 0 for arc in arcs)


def test_constraints_copy_and_change_nothing_else() -> None:
    scores = normal_scores(4, 149)
    before = scores.copy()
    forbidden, required = forbid(scores, [(1, 2)]), require(scores, [(1, 2)])
    np.testing.assert_array_equal(scores, before)
    assert forbidden[1, 2] == -np.inf
    forbidden[1, 2] = scores[1, 2]
    np.testing.assert_array_equal(forbidden, scores)
    assert np.isneginf(required[[0, 3, 4], 2]).all()
    required[[0, 3, 4], 2] = scores[[0, 3, 4], 2]
    required[2, 2] = scores[2, 2]
    np.testing.assert_array_equal(required, scores)
    np.testing.assert_array_equal(require(scores, []), scores)


@pytest.mark.parametrize("constrain", [require, forbid])
@pytest.mark.parametrize("arc", [(2, 2), (1, 0), (5, 1), (1, 5), (-1, 2), (1, -2)], ids=str)
def test_an_arc_that_is_none_is_named(constrain: Function, arc: tuple[int, int]) -> None:
    with pytest.raises(ArcError) as caught:
        constrain(np.zeros((5, 5)), [(0, 1), arc])
    assert str(arc[0]) in str(caught.value)
    assert str(arc[1]) in str(caught.value)


def test_two_required_heads_for_one_word_are_named() -> None:
    with pytest.raises(ArcError, match=r"\b2\b"):
        require(np.zeros((5, 5)), [(1, 2), (3, 2)])
    with pytest.raises(NoTreeError):
        marginals(require(np.zeros((5, 5)), [(1, 2), (2, 1)]))


# --- arrays as they come -------------------------------------------------------------------------


@every_class
@pytest.mark.parametrize("name", QUANTITIES)
def test_inputs_are_never_modified(name: str, flags: dict[str, bool]) -> None:
    batch = boost_cycle(normal_scores(5, 150), [1, 2], 40.0)[None].repeat(2, axis=0)
    batch[1, 1, 3] = -np.inf
    lengths = np.array([5, 4])
    before = batch.copy()
    batch.flags.writeable = lengths.flags.writeable = False
    QUANTITIES[name](TreeDistribution(batch, **flags, lengths=lengths))
    np.testing.assert_array_equal(batch, before)
    np.testing.assert_array_equal(lengths, [5, 4])


@every_class
def test_changing_the_scores_later_does_not_change_the_distribution(flags: dict[str, bool]) -> None:
    scores = normal_scores(5, 151)
    expected = log_partition(scores, **flags), marginals(scores, **flags)
    distribution = TreeDistribution(scores, **flags)
    first = distribution.log_partition
    scores[:] = 7.0
    assert first == distribution.log_partition == expected[0]
    np.testing.assert_array_equal(distribution.marginals, expected[1])


@every_class
def test_layout_and_dtype_of_the_input_do_not_matter(flags: dict[str, bool]) -> None:
    scores = np.random.default_rng(152).integers(-3, 4, (6, 6)).astype(np.float64)
    large = np.zeros((12, 12))
    large[::2, ::2] = scores
    expected = marginals(scores, **flags)
    variants: dict[str, Any] = {
        "fortran": np.asfortranarray(scores),
        "strided": large[::2, ::2],
        "float32": scores.astype(np.float32),
        "float16": scores.astype(np.float16),
        "int64": scores.astype(np.int64),
        "int8": scores.astype(np.int8),
        "list": scores.tolist(),
        "big-endian": scores.astype(">f8"),
    }
    for name, variant in variants.items():
        got = marginals(variant, **flags)
        assert got.dtype == np.float64, name
        np.testing.assert_array_equal(got, expected, err_msg=name)
        np.testing.assert_array_equal(argmax(variant, **flags), argmax(scores, **flags))


@every_class
@pytest.mark.parametrize("name", QUANTITIES)
@pytest.mark.parametrize("std", [1.0, 300.0])
def test_a_batch_is_its_sentences(name: str, flags: dict[str, bool], std: float) -> None:
    lengths = [5, 0, 1, 7, 2, 7, 3]
    batch = padded_batch(lengths, 153, std)
    whole = QUANTITIES[name](TreeDistribution(batch, **flags, lengths=lengths))
    assert len(whole) == len(lengths)
    padding = -1 if name in ("argmax", "mbr") else 0.0
    rounding = 1e-12 if name == "entropy" else 0.0  # a sum over cells, padding included
    for b, n in enumerate(lengths):
        alone = QUANTITIES[name](TreeDistribution(batch[b, : n + 1, : n + 1], **flags))
        if isinstance(alone, np.ndarray):
            inside = (slice(n + 1),) * alone.ndim
            np.testing.assert_array_equal(whole[b][inside], alone)
            rest = whole[b].copy()
            rest[inside] = padding
            assert (rest == padding).all()
        else:
            assert whole[b] == pytest.approx(alone, rel=0, abs=rounding)


@every_class
def test_a_batch_of_mixed_sentences_is_its_sentences(flags: dict[str, bool]) -> None:
    """Small and huge spreads, dominant cycles and forbidden arcs side by side, in no order of length."""
    rng = np.random.default_rng(159)
    lengths = rng.integers(1, 13, 40).tolist()
    batch = np.full((40, 13, 13), np.nan)
    for b, n in enumerate(lengths):
        scores = normal_scores(n, 200 + b, float(rng.choice([1.0, 30.0, 300.0, 1000.0])))
        if b % 3 == 0 and n > 2:
            scores = boost_cycle(scores, [1, 2], 600.0)
        if b % 4 == 0 and n > 1:
            scores[2:, 2] = -np.inf
        batch[b, : n + 1, : n + 1] = scores
    together = {
        "log_partition": log_partition(batch, **flags, lengths=lengths),
        "marginals": marginals(batch, **flags, lengths=lengths),
        "argmax": argmax(batch, **flags, lengths=lengths),
    }
    for b, n in enumerate(lengths):
        alone = batch[b, : n + 1, : n + 1]
        assert together["log_partition"][b] == log_partition(alone, **flags)
        np.testing.assert_array_equal(together["marginals"][b, : n + 1, : n + 1], marginals(alone, **flags))
        np.testing.assert_array_equal(together["argmax"][b, : n + 1], argmax(alone, **flags))


@every_class
def test_joint_quantities_of_a_batch_are_those_of_its_sentences(flags: dict[str, bool]) -> None:
    lengths = [4, 2, 0]
    batch, other = padded_batch(lengths, 160), padded_batch(lengths, 163)
    f, g = padded_batch(lengths, 166), padded_batch(lengths, 169)
    arc_sets = [[(1, 2), (0, 1)], [(1, 2)], []]
    whole = TreeDistribution(batch, **flags, lengths=lengths)
    whole_other = TreeDistribution(other, **flags, lengths=lengths)
    results = {
        "expectation": whole.expectation(f),
        "covariance": whole.covariance(f, g),
        "covariance_with_arcs": whole.covariance_with_arcs(f),
        "arc_set_probability": whole.arc_set_probability(arc_sets),
        "cross_entropy": whole.cross_entropy(whole_other),
        "kl": whole.kl(whole_other),
    }
    for b, n in enumerate(lengths):
        own = slice(n + 1)
        alone = TreeDistribution(batch[b, own, own], **flags)
        alone_other = TreeDistribution(other[b, own, own], **flags)
        own_f, own_g = f[b, own, own], g[b, own, own]
        expected = {
            "expectation": alone.expectation(own_f),
            "covariance": alone.covariance(own_f, own_g),
            "arc_set_probability": alone.arc_set_probability(arc_sets[b]),
            "cross_entropy": alone.cross_entropy(alone_other),
            "kl": alone.kl(alone_other),
        }
        for name, value in expected.items():
            assert results[name][b] == pytest.approx(value, rel=1e-14, abs=1e-14), name
        np.testing.assert_allclose(
            results["covariance_with_arcs"][b, own, own],
            alone.covariance_with_arcs(own_f),
            rtol=1e-14,
            atol=1e-14,
        )


@every_class
def test_an_empty_batch(flags: dict[str, bool]) -> None:
    empty = np.zeros((0, 4, 4))
    assert argmax(empty, **flags).shape == (0, 4)
    assert log_partition(empty, **flags).shape == (0,)
    assert marginals(empty, **flags).shape == (0, 4, 4)


@every_class
@pytest.mark.parametrize("std", [1.0, 300.0])
def test_threads_change_no_bit(flags: dict[str, bool], std: float) -> None:
    """A batch large enough that two threads really are started."""
    rng = np.random.default_rng(172)
    lengths = rng.integers(20, 41, 48)
    batch = rng.normal(0.0, std, (48, 41, 41))
    one = TreeDistribution(batch, **flags, lengths=lengths, threads=1)
    two = TreeDistribution(batch, **flags, lengths=lengths, threads=2)
    for name, quantity in QUANTITIES.items():
        np.testing.assert_array_equal(quantity(one), quantity(two), err_msg=name)
    np.testing.assert_array_equal(one.sample(3, rng=14), two.sample(3, rng=14))
    f = rng.normal(size=batch.shape)
    np.testing.assert_array_equal(one.covariance_with_arcs(f), two.covariance_with_arcs(f))


def test_defaults_are_non_projective_single_root() -> None:
    scores = normal_scores(6, 173)
    explicit = {"projective": False, "single_root": True}
    assert log_partition(scores) == log_partition(scores, **explicit)
    np.testing.assert_array_equal(argmax(scores), argmax(scores, **explicit))
    np.testing.assert_array_equal(marginals(scores), marginals(scores, **explicit))
    assert TreeDistribution(scores).log_partition == log_partition(scores)


@every_class
def test_functions_and_methods_agree(flags: dict[str, bool]) -> None:
    scores = normal_scores(7, 174)
    distribution = TreeDistribution(scores, **flags)
    assert isinstance(distribution.log_partition, float)
    assert distribution.log_partition == log_partition(scores, **flags)
    np.testing.assert_array_equal(distribution.marginals, marginals(scores, **flags))
    np.testing.assert_array_equal(distribution.argmax(), argmax(scores, **flags))
    heads = distribution.argmax()
    assert distribution.score(heads) == pytest.approx(distribution.max, rel=1e-14)
    assert distribution.max == pytest.approx(scores[heads[1:], np.arange(1, 8)].sum(), rel=1e-14)


@every_class
def test_sentences_in_logarithms_leave_the_others_alone(flags: dict[str, bool]) -> None:
    """Linear and logarithmic sentences share one workspace in a batch."""
    batch = np.stack([normal_scores(9, seed, 1000.0 if seed % 2 else 1.0) for seed in range(8)])
    for b, (log_z, mu) in enumerate(
        zip(log_partition(batch, threads=1, **flags), marginals(batch, threads=1, **flags), strict=True)
    ):
        assert log_z == log_partition(batch[b], **flags)
        np.testing.assert_array_equal(mu, marginals(batch[b], **flags))


def test_labelled_and_sibling_distributions_keep_their_own_scores() -> None:
    labelled, arcs, siblings = np.zeros((4, 4, 2)), np.zeros((4, 4)), np.zeros((4, 4, 4))
    trees = LabelledTreeDistribution(labelled), SiblingDistribution(arcs, siblings)
    for scores in (labelled, arcs, siblings):
        scores[1] = 50.0
    same = LabelledTreeDistribution(np.zeros((4, 4, 2))), SiblingDistribution(np.zeros((4, 4)), np.zeros((4, 4, 4)))
    for changed, expected in zip(trees, same, strict=True):
        np.testing.assert_array_equal(changed.marginals, expected.marginals)
        assert changed.max == expected.max
