"""Messages are one line that a terminal shows and does not obey, whatever a file holds."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from headway import Sentence, read_treebank, write_treebank
from headway.errors import HeadwayError, NoTreeError, RulesError, TemplateError, TreebankError
from headway.features.rules import parse_rules
from headway.features.templates import parse_templates
from headway.treebank import require_tree

STEERING = "\x1b[31m\r\n\x00\u202e\u2028\x9b"


@pytest.mark.parametrize("kind", [HeadwayError, TreebankError, RulesError, TemplateError])
def test_steering_characters_are_escaped(kind):
    assert str(kind(f"a{STEERING}ü")) == r"a\x1b[31m\r\n\x00\u202e\u2028\x9bü"
    assert str(kind("plain, naïve 犬 🐕")) == "plain, naïve 犬 🐕"


def test_arguments_of_errors_stay():
    assert str(NoTreeError("word 2 has no head", (2,), 1)) == "sentence 1: no tree exists: word 2 has no head"
    assert TreebankError("a\nb", "x", 3).args == ("x, line 3: a\nb",)


def test_forms_on_a_cycle():
    text = "".join(f"{i}\t\x1b[2J\u202e\t_\t_\t_\t_\t{3 - i}\t_\t_\t_\n" for i in (1, 2))
    (sentence,) = read_treebank(io.StringIO(text))
    with pytest.raises(TreebankError, match=r"1 \(\\x1b\[2J\\u202e\) -> 2") as caught:
        require_tree(sentence)
    assert str(caught.value).isprintable()


def test_pieces_of_templates_and_rules():
    with pytest.raises(TemplateError, match=r"line 1: h\.\\x1b is not an atom"):
        parse_templates("h.\x1b")
    with pytest.raises(RulesError, match=r'head is "NO\\u202eUN"'):
        parse_rules('[[rule]]\nhead = "NO\u202eUN"\ntarget = 1')


@pytest.mark.parametrize("name", ["a\0b.conllu", "\ud800.conllu"])
def test_names_that_no_file_can_have(tmp_path: Path, name):
    with pytest.raises(TreebankError, match=r"cannot be opened .*; check its name"):
        list(read_treebank(tmp_path / name))
    with pytest.raises(TreebankError, match=r"writing failed .*choose another name"):
        write_treebank([Sentence.from_words(["a"])], tmp_path / name)
