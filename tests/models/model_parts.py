"""What tests look at inside a model of any kind: its weights, its labels, its predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway.models.protocol import Options, Prediction
from headway.parallel import executor_for
from headway.treebank import Sentence


def predict(
    model: Any, sentences: Sequence[Sentence], *, mbr: bool = False, exact: bool = True, threads: int = 1
) -> list[Prediction]:
    """The model's predictions, with the options spelt out."""
    found: list[Prediction] = model.predict(sentences, Options(mbr, exact), executor_for(threads))
    return found


def weights_of(model: Any) -> NDArray[Any]:
    """The weights that score trees."""
    weights: NDArray[Any] = model.scorer.weights
    return weights


def label_weights_of(model: Any) -> NDArray[Any]:
    """The weights of the labels that are chosen after the tree; none where there are no such labels."""
    weights: NDArray[Any] = getattr(model.labeller, "weights", np.zeros(0))
    return weights


def label_names_of(model: Any) -> tuple[str, ...]:
    """The labels; none for a model without."""
    return tuple(model.labeller.names) if model.labeller else ()


def with_weights(model: Any, weights: NDArray[Any]) -> Any:
    """The model with other weights for its trees."""
    scorer = model.scorer
    if hasattr(scorer, "parts"):
        return replace(model, scorer=replace(scorer, parts=replace(scorer.parts, weights=weights)))
    return replace(model, scorer=replace(scorer, weights=weights))


def with_label_weights(model: Any, weights: NDArray[Any]) -> Any:
    """The model with other weights for the labels after its trees."""
    name = "after" if hasattr(model, "after") else "labeller"
    return replace(model, **{name: replace(getattr(model, name), weights=weights)})


def assert_same_predictions(ours: Sequence[Prediction], theirs: Sequence[Prediction], **tolerance: float) -> None:
    """The same trees, labels and proofs; marginals are compared exactly unless a tolerance is given."""
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one.heads, other.heads)
        compare: Any = np.testing.assert_allclose if tolerance else np.testing.assert_array_equal
        compare(one.distribution.marginals, other.distribution.marginals, **tolerance)
        assert (one.labels, one.status, one.floored) == (other.labels, other.status, other.floored)
        assert (one.label_probabilities is None) == (other.label_probabilities is None)
        if one.label_probabilities is not None:
            compare(one.label_probabilities, other.label_probabilities, **tolerance)
        if not tolerance:
            assert one.gap == other.gap
            assert one.distribution.log_prob(one.heads) == other.distribution.log_prob(other.heads)
