"""Parsers trained with coarse tags that are learnt: where there are none, and saved with the parser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headway.pipeline import Parser
from headway.treebank import Sentence
from tests.models.toy_treebank import sentences


def of_one_kind(count: int, seed: int) -> list[Sentence]:
    """Toy sentences with fine tags alone: those of verbs and of nouns by the word's last letter."""
    found = []
    for sentence in sentences(count, seed):
        tags = tuple(f"{tag}{form[-1]}" for tag, form in zip(sentence.upos, sentence.forms, strict=True))
        found.append(replace(sentence, upos=tags, xpos=tags))
    return found


@pytest.mark.parametrize("model", ["arc", "grandsibling"])
def test_coarse_tags_are_learnt_used_and_saved(model: str, tmp_path: Path) -> None:
    train = of_one_kind(30, 1)
    tags = {tag for sentence in train for tag in sentence.upos}
    parser = Parser.train(train, model=model, tag_classes=3, tags="gold", epochs=2)
    coder = parser.model.coder  # type: ignore[attr-defined]
    classes = coder.tag_classes.classes
    assert set(classes) == set(coder.fields["xpos"]) == tags
    assert set(classes.values()) == set(coder.fields["upos"])
    assert len(set(classes.values())) == 3 < len(tags)
    parser.save(tmp_path / "m.headway")
    loaded = Parser.load(tmp_path / "m.headway")
    assert loaded.model.coder.tag_classes == coder.tag_classes  # type: ignore[attr-defined]
    upos = coder.names.index("upos")
    for sentence in of_one_kind(3, 2):
        codes = loaded.model.coder.code([sentence]).nodes.codes[upos]  # type: ignore[attr-defined]
        expected = [coder.fields["upos"].get(classes.get(tag, tag), 2) for tag in sentence.xpos]
        assert codes[3:-2].tolist() == expected
    trees = [[found.sentence.to_conllx() for found in each.parse(of_one_kind(5, 3))] for each in (parser, loaded)]
    assert trees[0] == trees[1]


def test_a_treebank_with_coarse_tags_keeps_them() -> None:
    train = [replace(s, upos=tuple(tag[:1] for tag in s.upos)) for s in of_one_kind(10, 1)]
    parser = Parser.train(train, tag_classes=2, tags="gold", epochs=1)
    coder = parser.model.coder  # type: ignore[attr-defined]
    assert not coder.tag_classes.classes
    assert set(coder.fields["upos"]) == {tag for sentence in train for tag in sentence.upos}


def test_without_the_setting_none_are_learnt() -> None:
    assert not Parser.train(of_one_kind(10, 1), tags="gold", epochs=1).model.coder.tag_classes.classes  # type: ignore[attr-defined]
