"""Parsers trained with word classes: learnt from their own trees, saved with the parser, and none unless asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.features.clusters import NO_CLUSTERS
from headway.pipeline import Parser
from tests.models.toy_treebank import sentences


@pytest.mark.parametrize("model", ["arc", "grandsibling"])
def test_word_classes_are_learnt_used_and_saved(model: str, tmp_path: Path) -> None:
    parser = Parser.train(sentences(120, 1), model=model, word_classes=5, tags="gold", epochs=2)
    coder = parser.model.coder  # type: ignore[attr-defined]
    paths = coder.clusters.paths
    assert paths["the"] == paths["a"] != paths["moves"] == paths["turns"]
    assert set(paths.values()) <= set(coder.fields["bits"])
    parser.save(tmp_path / "m.headway")
    loaded = Parser.load(tmp_path / "m.headway")
    assert loaded.model.coder.clusters == coder.clusters  # type: ignore[attr-defined]
    [sentence] = sentences(1, 2)
    codes = loaded.model.coder.code([sentence]).nodes.codes[coder.names.index("bits")]  # type: ignore[attr-defined]
    assert codes[3:-2].tolist() == [coder.fields["bits"][paths.get(form, "_")] for form in sentence.forms]
    trees = [[found.sentence.to_conllx() for found in each.parse(sentences(5, 3))] for each in (parser, loaded)]
    assert trees[0] == trees[1]


def test_without_the_setting_none_are_learnt() -> None:
    parser = Parser.train(sentences(10, 1), tags="gold", epochs=1)
    assert parser.model.coder.clusters == NO_CLUSTERS  # type: ignore[attr-defined]
