"""Settings: their defaults, what cannot be, and that they are pure data, declared once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

from headway.coreference.settings import ResolverSettings
from headway.declared import Option, choices_of, require_choices, require_minimums, setting
from headway.errors import TrainingError
from headway.training.grammar_settings import GrammarSettings
from headway.training.settings import RULES_DEFAULTS, RULES_SETTINGS, Settings

DECLARED = (Settings, GrammarSettings, ResolverSettings)


def test_defaults_are_written_out() -> None:
    margin, loglinear = Settings().complete(), Settings(learner="loglinear").complete()
    assert (margin.learner, margin.labels, margin.epochs) == ("margin", "after", 10)
    assert (margin.tags, margin.clusters) == ("predicted", None)
    assert margin.c is not None
    assert margin.c > 0
    assert loglinear.labels == "joint"
    assert Settings(learner="eg", labels="none", epochs=3, c=2.0).complete() == Settings(
        learner="eg", labels="none", epochs=3, c=2.0
    )
    assert margin.complete() == margin


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        (
            {"learner": "svm"},
            "learner is 'svm'; expected any of perceptron, margin, loglinear, eg, eg-loglinear, expected-loss, "
            "cross-entropy, constraints",
        ),
        ({"labels": "before"}, "labels is 'before'; expected any of after, joint, none"),
        ({"tags": "silver"}, "tags is 'silver'; expected any of predicted, gold"),
        ({"optimiser": "sgd"}, "optimiser is 'sgd'; expected any of lbfgs, cg, adagrad, adam"),
        ({"epochs": 0}, "epochs is 0; expected 1 or more"),
        ({"c": -1.0}, "C is -1.0; expected a number above 0"),
        ({"c": 0.0}, "C is 0.0; expected a number above 0"),
        ({"c": float("nan")}, "C is nan"),
        ({"c": float("inf")}, "C is inf"),
        ({"criterion": "cosine"}, "criterion is 'cosine'; expected any of squared, kl"),
        ({"entropy_weight": -0.1}, "entropy_weight is -0.1; expected 0 or more"),
        ({"entropy_weight": float("nan")}, "entropy_weight is nan"),
        ({"entropy_weight": float("inf")}, "entropy_weight is inf"),
        ({"entropy_order": 0.0}, "entropy_order is 0.0; expected a number above 0, or inf"),
        ({"entropy_order": -1.0}, "entropy_order is -1.0"),
        ({"entropy_order": float("nan")}, "entropy_order is nan"),
        ({"runs": 0}, "runs is 0; expected 1 or more"),
        ({"seed": -1}, "seed is -1; expected 0 or more"),
        ({"tag_classes": -1}, "tag_classes is -1; expected 0 or more"),
        ({"word_classes": -1}, "word_classes is -1; expected 0 or more"),
        ({"clusters": "paths", "word_classes": 9}, "word classes are learnt where there are no clusters"),
        ({"patience": 0}, "patience is 0; expected 1 or more"),
        ({"max_heads": 0}, "max_heads is 0; expected 1 or more"),
        ({"prune_threshold": 0.0}, "prune_threshold is 0.0; expected a number above 0, at most 1"),
        ({"prune_threshold": 1.5}, "prune_threshold is 1.5"),
        ({"prune_threshold": float("nan")}, "prune_threshold is nan"),
        ({"decoding": "greedy"}, "decoding is 'greedy'; expected any of automata, dual"),
        ({"parts": "sibling"}, "the arc model has no parts beside arcs; train the model sibling or grandsibling"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], cause: str) -> None:
    with pytest.raises(TrainingError) as caught:
        Settings(**settings).complete()
    assert cause in str(caught.value)


@pytest.mark.parametrize("name", ["entropy_weight", "entropy_order"])
def test_entropy_is_of_text(name: str) -> None:
    given = Settings(learner="loglinear", **{name: 0.5})  # type: ignore[arg-type]
    with pytest.raises(TrainingError, match=f"{name} is about text beside the trees; give some"):
        given.require_trees(text=False)
    given.require_trees(text=True)


@pytest.mark.parametrize("name", ["perceptron", "margin", "eg", "eg-loglinear", "expected-loss"])
def test_text_is_for_loglinear(name: Any) -> None:
    with pytest.raises(TrainingError, match=f"{name} learns from trees alone; text beside them is for loglinear"):
        Settings(learner=name).require_trees(text=True)
    Settings(learner=name).require_trees(text=False)


def test_constraints_are_not_for_trees() -> None:
    defaults = Settings(learner="constraints").complete()
    assert defaults.c is not None
    assert defaults.c > 0
    with pytest.raises(TrainingError, match="constraints need rules, not trees"):
        Settings(learner="constraints").require_trees(text=False)
    assert set(RULES_SETTINGS) < {each.name for each in fields(Settings)}
    assert Settings(**RULES_DEFAULTS).complete().templates == "rules"  # type: ignore[arg-type]


def test_the_models_that_train_on_the_way_have_the_same_trees_and_seed() -> None:
    given = Settings(model="sibling", projective=True, single_root=False, seed=7).complete()
    for own in (given.of_pruner(), given.of_hidden_heads()):
        assert (own.trees, own.seed, own.labels, own.model) == (given.trees, 7, "none", "arc")
        assert own.complete() == own
    assert given.of_pruner().learner == "loglinear"
    assert given.parts == "sibling"


@pytest.mark.parametrize("kind", DECLARED)
def test_values_of_other_types_are_refused_by_name(kind: type[Any]) -> None:
    for each in fields(kind):
        for bad in ([], {}, b"1", object(), ("arc",)):
            with pytest.raises(TrainingError, match=f"^{each.name} is .*; expected "):
                kind(**{each.name: bad}).complete()


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({"epochs": "10"}, "epochs is '10'; expected a whole number or None"),
        ({"epochs": 1.5}, "epochs is 1.5; expected a whole number or None"),
        ({"epochs": True}, "epochs is True; expected a whole number or None"),
        ({"c": "1"}, "c is '1'; expected a number or None"),
        ({"prune_threshold": None}, "prune_threshold is None; expected a number"),
        ({"projective": 1}, "projective is 1; expected True or False"),
        ({"learner": 2}, "learner is 2; expected text or None"),
        ({"templates": 3}, "templates is 3; expected text"),
        ({"max_heads": 10**30}, f"max_heads is {10**30}; expected at most {2**63 - 1}"),
    ],
)
def test_types(settings: dict[str, Any], cause: str) -> None:
    with pytest.raises(TrainingError, match=f"^{re.escape(cause)}$"):
        Settings(**settings).complete()


def test_numbers_of_numpy_are_numbers() -> None:
    given = Settings(epochs=np.int64(3), c=np.float32(0.5), seed=np.uint8(7)).complete()  # type: ignore[arg-type]
    assert (given.epochs, given.c, given.seed) == (3, 0.5, 7)
    assert Settings(c=1, prune_threshold=1).complete().c == 1


# Pure data


@pytest.mark.parametrize(
    "module", ["headway.training.settings", "headway.training.grammar_settings", "headway.coreference.settings"]
)
def test_importing_settings_loads_nothing_numerical(module: str) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], env=os.environ, capture_output=True, text=True, check=True
    ).stdout.split()
    assert module in loaded
    assert not {"numba", "llvmlite", "scipy"} & set(loaded)


@pytest.mark.parametrize("kind", DECLARED)
def test_every_setting_is_declared_with_its_help(kind: type[Any]) -> None:
    for each in fields(kind):
        option = each.metadata["option"]
        assert isinstance(option, Option), each.name
        assert option.help.endswith("."), each.name
        assert not option.help[0].islower(), each.name
        assert getattr(kind(), each.name) == each.default


@pytest.mark.parametrize("kind", DECLARED)
def test_choices_and_minimums_are_enforced(kind: type[Any]) -> None:
    """Of every field that has them, by the settings themselves."""

    def checked(**changes: Any) -> Any:
        made = kind(**changes)
        return made.complete() if hasattr(made, "complete") else made

    enforced = 0
    for each in fields(kind):
        if choices_of(kind, each.name):
            enforced += 1
            with pytest.raises(TrainingError, match=f"{each.name} is 'nonsense'; expected any of"):
                checked(**{each.name: "nonsense"})
        minimum = each.metadata["option"].minimum
        if minimum is None:
            continue
        for bad in (minimum - 1, float("nan"), float("inf")):
            enforced += 1
            for method in ({}, {"method": "em"}) if kind is GrammarSettings else ({},):
                with pytest.raises(TrainingError, match=each.name):
                    checked(**{**method, each.name: bad})
    assert enforced > 5


def test_declarations_are_read_from_the_field() -> None:
    @dataclass(frozen=True)
    class Small:
        size: int = setting(3, "How many.", metavar="N", minimum=2)
        share: float | None = setting(None, "How much.", minimum=0, default="by size")

    (size, share) = fields(Small)
    assert size.metadata["option"] == Option("How many.", "N", minimum=2)
    assert share.metadata["option"].default == "by size"
    require_minimums(Small())
    require_choices(Small())
    require_minimums(Small(2, 0.0))
    for bad in (Small(1), replace(Small(), share=-0.5)):
        with pytest.raises(TrainingError, match="or more"):
            require_minimums(bad)


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ({"model": "neural", "templates": "pruner"}, "templates is for linear models, not for the neural model"),
        ({"model": "neural", "c": 1.0}, "c is for linear models, not for the neural model; leave --c out"),
        ({"model": "arc", "dropout": 0.1}, "dropout is for networks, not for the arc model; leave --dropout out"),
        ({"model": "sibling", "encoder_rate": 0.1}, "encoder_rate is for networks, .*; leave --encoder-rate out"),
    ],
)
def test_settings_of_another_model(given: dict[str, Any], cause: str) -> None:
    with pytest.raises(TrainingError, match=cause):
        Settings(**given).complete()


def test_networks_have_no_c() -> None:
    done = Settings(model="neural").complete()
    assert done.c is None
    assert done.complete() == done
