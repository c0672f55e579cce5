"""Rules: what is written is what is read, and what is wrong is named by file, line and rule."""

from __future__ import annotations

import re
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import RulesError
from headway.features.rule import DIRECTIONS
from headway.features.rules import Rule, Rules, nearest, parse_rules, read_rules, rules_names

from .strategies import TAGS

NAMES = (*TAGS, "unheard-of")
tags_or_any = st.none() | st.lists(st.sampled_from(NAMES), min_size=1, max_size=2).map(tuple)
heads_or_any = st.none() | st.lists(st.sampled_from(("ROOT", *NAMES)), min_size=1, max_size=3).map(tuple)
shares = st.floats(0, 1)
bands = st.tuples(st.integers(1, 4), st.integers(0, 3) | st.just(inf)).map(lambda ends: (ends[0], ends[0] + ends[1]))


@st.composite
def any_rule(draw: st.DrawFn) -> Rule:
    """Over few tags, one of which no coder knows."""
    head, modifier = draw(heads_or_any), draw(tags_or_any)
    direction, distance = draw(st.sampled_from((None, *DIRECTIONS))), draw(st.none() | bands)
    if head is not None and set(head) == {"ROOT"}:
        direction = distance = None
    if head is None and direction is None and distance is None:
        direction = "left"
    low, high = sorted((draw(shares), draw(shares)))
    weight, name = draw(st.floats(1e-3, 1e3)), draw(st.sampled_from(("", "a name", 'a "name"')))
    return Rule(head, modifier, direction, distance, (low, high), weight, name)


def predicate(rule: Rule) -> tuple[object, ...]:
    return frozenset(rule.head or ()), frozenset(rule.modifier or ()), rule.direction, rule.distance


any_rules = st.builds(
    Rules,
    st.lists(any_rule(), min_size=1, max_size=6, unique_by=predicate).map(tuple),
    st.sampled_from(("upos", "xpos")),
)

WHOLE = """# as a linguist writes it
tags = "xpos"

[[rule]]
head = "NOUN"
modifier = ["DET", "ADJ"]
direction = "left"
distance = [1, 3]
target = 0.9
weight = 2
name = "determiners"

  [[ rule ]]  # the second
head = ["ROOT", "VERB"]
target = [0.7, 1]
modifier = "ADV"

[['rule']]
distance = [4, inf]
target = 0
"""


def test_every_key_is_read() -> None:
    found = parse_rules(WHOLE, "mine.toml")
    assert found.tags == "xpos"
    assert found.source == "mine.toml"
    assert len(found) == 3
    assert found.rules == (
        Rule(("NOUN",), ("DET", "ADJ"), "left", (1, 3), (0.9, 0.9), 2.0, "determiners"),
        Rule(("ROOT", "VERB"), ("ADV",), None, None, (0.7, 1.0)),
        Rule(None, None, None, (4, inf), (0.0, 0.0)),
    )
    assert [rule.line for rule in found.rules] == [4, 13, 18]
    assert [rule.weight for rule in found.rules] == [2, 1, 1]


def test_tags_are_universal_ones_unless_told() -> None:
    assert parse_rules('[[rule]]\nhead = "A"\ntarget = 1').tags == "upos"


@given(any_rules)
def test_round_trip(drawn: Rules) -> None:
    again = parse_rules(drawn.to_toml())
    assert again == drawn
    assert [rule.name for rule in again.rules] == [rule.name for rule in drawn.rules]


def test_round_trip_of_odd_text() -> None:
    odd = Rules(
        (Rule(('a"b', "c\\d", "#"), ("é", "'"), None, (2, 2), (1e-7, 0.1 + 0.2), 1e30, 'the "\\" rule'),), "xpos"
    )
    assert parse_rules(odd.to_toml()) == odd


def test_what_is_left_out_is_not_written() -> None:
    text = Rules((Rule(None, ("DET",), "left", None, (0.5, 0.5)),)).to_toml()
    assert text == 'tags = "upos"\n\n[[rule]]\nmodifier = "DET"\ndirection = "left"\ntarget = 0.5\n'


def test_equality_is_what_the_rules_say() -> None:
    rule = Rule(("A",), None, None, None, (0.5, 0.5), line=3)
    assert Rules((rule,), source="a") == Rules((rule,), source="b")
    assert Rules((rule,), "upos") != Rules((rule,), "xpos")


BEFORE = '[[rule]]\nhead = "A"\ntarget = 1\n\n[[rule]]\nname = "mine"\n'  # what follows is on line 7


@pytest.mark.parametrize(
    ("lines", "line", "cause"),
    [
        ('heads = "A"', 7, 'unknown key "heads"; did you mean head?'),
        ('head = "B"\ncolour = 3', 8, 'unknown key "colour"; the keys are head, modifier, direction'),
        ('head = "B"', 5, "target is missing; add the share"),
        ('head = "B"\n"target" = 1.5', 8, "target is 1.5; expected a share from 0 to 1"),
        ('head = "B"\ntarget = -0.1', 8, "target is -0.1; expected a share"),
        ('head = "B"\ntarget = nan', 8, "target is nan; expected a share"),
        ('head = "B"\ntarget = [0.9, 0.7]', 8, "target is [0.9, 0.7]; expected a share"),
        ('head = "B"\ntarget = [0.9, 1.7]', 8, "target is [0.9, 1.7]; expected a share"),
        ('head = "B"\ntarget = [0.9]', 8, "target is 0.9; expected a share from 0 to 1, or a range such as"),
        ('head = "B"\ntarget = [0.1, 0.2, 0.3]', 8, "target is [0.1, 0.2, 0.3]; expected"),
        ('head = "B"\ntarget = true', 8, "target is true; expected a share"),
        ('head = "B"\ntarget = "0.9"', 8, 'target is "0.9"; expected a share'),
        ('target = 1\nhead = "B"\ndistance = 0', 9, "distance is 0; expected whole numbers from 1 up"),
        ('target = 1\nhead = "B"\ndistance = [3, 2]', 9, "distance is [3, 2]; expected whole numbers"),
        ('target = 1\nhead = "B"\ndistance = [1.5, 2]', 9, "distance is [1.5, 2]; expected whole numbers"),
        ('target = 1\nhead = "B"\ndistance = inf', 9, "distance is inf; expected whole numbers"),
        ('target = 1\nhead = "B"\ndistance = [1, nan]', 9, "distance is [1, nan]; expected whole numbers"),
        ('target = 1\nhead = "B"\ndistance = "far"', 9, 'distance is "far"; expected whole numbers'),
        ('target = 1\nhead = "B"\ndistance = []', 9, "distance is []; expected whole numbers"),
        ('target = 1\nhead = "B"\ndirection = "up"', 9, 'direction is "up"; expected "left" or "right"'),
        ('target = 1\nhead = "B"\ndirection = ["left"]', 9, 'direction is "left"; expected "left" or "right"'),
        ('target = 1\nhead = "B"\nweight = 0', 9, "weight is 0; expected a number above 0"),
        ('target = 1\nhead = "B"\nweight = -2.5', 9, "weight is -2.5; expected a number above 0"),
        ('target = 1\nhead = "B"\nweight = inf', 9, "weight is inf; expected a number above 0"),
        ('target = 1\nhead = "B"\nweight = "2"', 9, 'weight is "2"; expected a number above 0'),
        ('target = 1\nhead = ""', 8, 'head is ""; expected a tag such as "NOUN", or a list of tags'),
        ("target = 1\nhead = []", 8, "head is []; expected a tag"),
        ("target = 1\nhead = 3", 8, "head is 3; expected a tag"),
        ('target = 1\nhead = "B"\nmodifier = ["A", 3]', 9, 'modifier is ["A", 3]; expected a tag'),
        ('target = 1\nhead = "B"\nmodifier = ["A", ""]', 9, 'modifier is ["A", ""]; expected a tag'),
        ('target = 1\nhead = "B"\nmodifier = "A\\nB"', 9, 'modifier is "A\\nB"; expected a tag'),
        ('target = 1\nhead = "B"\nmodifier = ["A", "ROOT"]', 9, 'modifier is "ROOT", which has no head'),
        ('target = 1\nhead = "ROOT"\ndirection = "left"', 9, "the root has no side and no distance; leave direction"),
        ('target = 1\nhead = ["ROOT"]\ndistance = 2', 9, "the root has no side and no distance; leave distance"),
        ('target = 1\nmodifier = "A"', 8, "every word has some head; add a head, a direction or a distance"),
        ("target = 1", 5, "every word has some head; add"),
    ],
)
def test_errors_name_file_line_and_rule(lines: str, line: int, cause: str) -> None:
    with pytest.raises(RulesError) as caught:
        parse_rules(f"{BEFORE}{lines}\n\n[[rule]]\nhead = 'C'\ntarget = 0.5\n", "my.toml")
    message = str(caught.value)
    assert message.startswith(f'my.toml, line {line}: rule 2 ("mine"): {cause}')
    assert ";" in message
    assert "\n" not in message
    assert (caught.value.source, caught.value.line) == ("my.toml", line)


def test_a_rule_without_a_name_is_called_by_what_it_says() -> None:
    with pytest.raises(RulesError, match=r'line 4: rule 1 \("DET left of NOUN"\): target is 3'):
        parse_rules('[[rule]]\nhead = "NOUN"\nmodifier = "DET"\ntarget = 3\ndirection = "left"')
    with pytest.raises(RulesError, match=r"line 2: rule 1: head is 7; "):
        parse_rules("[[rule]]\nhead = 7\ntarget = 3")
    with pytest.raises(RulesError, match=r'line 3: rule 1 \("any word on A"\): name is 7; expected one line of text'):
        parse_rules('[[rule]]\nhead = "A"\nname = 7\ntarget = 0.5')
    with pytest.raises(RulesError, match=r'line 3: rule 1 \("any word on A"\): name is "a\\nb"; expected one line'):
        parse_rules('[[rule]]\nhead = "A"\nname = "a\\nb"\ntarget = 0.5')


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ('\n\ntag = "upos"\n[[rule]]', 'my.toml, line 3: unknown key "tag"; did you mean tags?'),
        ('[[rules]]\nhead = "A"', 'my.toml, line 1: unknown key "rules"; did you mean rule?'),
        ('\nhead = "A"', 'my.toml, line 2: "head" stands outside of a rule; put it below a line [[rule]]'),
        ('\ntags = "pos"', 'my.toml, line 2: tags is "pos"; expected "upos" or "xpos"'),
        ('tags = ["upos"]', 'my.toml, line 1: tags is ["upos"]; expected "upos" or "xpos"'),
        ('\n[rule]\nhead = "A"', "my.toml, line 2: rule is not a list of tables; begin each with a line [[rule]]"),
        ("rule = [3]", "my.toml, line 1: rule is not a list of tables"),
        ("", "my.toml: there is no rule; begin each with a line [[rule]]"),
        ("# nothing\ntags = 'xpos'", "my.toml: there is no rule"),
        (
            "[[rule]]\nhead = NOUN",
            "my.toml, line 2: the file is not TOML, Invalid value at column 8; write lines such as",
        ),
        (
            '[[rule]]\nhead = "A"\nhead = "B"',
            "my.toml, line 3: the file is not TOML, Cannot overwrite a value; write lines such as",
        ),
        (
            '[[rule]]\nhead = "A"\nhead = "B"\ntarget = 1',
            "my.toml, line 3: the file is not TOML, Cannot overwrite a value at column 11; write lines such as",
        ),
        ('[[rule]]\nhead = ["A"\n\n', "my.toml, line 2: the file is not TOML, Unclosed array; write lines such as"),
        (f"[[rule]]\nweight = {'9' * 5000}", "my.toml: the file is not TOML, Exceeds the limit"),
        (f"[[rule]]\nhead = {'[' * 100_000}", "my.toml: the file is nested too deeply; write plain lists"),
        ('\nrule = [{ head = "A" }]', 'my.toml, line 2: rule 1 ("any word on A"): target is missing'),
    ],
)
def test_errors_of_the_whole_file(text: str, start: str) -> None:
    with pytest.raises(RulesError) as caught:
        parse_rules(text, "my.toml")
    assert str(caught.value).startswith(start)
    assert "\n" not in str(caught.value)


def test_lines_do_not_run_on_where_a_value_does() -> None:
    text = '[[rule]]\nhead = [\n  "A", # [[rule]]\n  "B",\n]\ntarget = 1\n# [[rule]]\n[[rule]]\nhead = "C"\ntarget = 2'
    with pytest.raises(RulesError, match=r'^rules, line 10: rule 2 \("any word on C"\)'):
        parse_rules(text)
    assert [rule.line for rule in parse_rules(text.replace("target = 2", "target = 1")).rules] == [1, 8]


def test_windows_line_ends() -> None:
    assert [rule.line for rule in parse_rules(WHOLE.replace("\n", "\r\n")).rules] == [4, 13, 18]


@pytest.mark.parametrize("target", [0.9, 0.5])
def test_one_rule_about_the_same_arcs(target: float) -> None:
    one = '[[rule]]\nhead = ["A", "B"]\nmodifier = "C"\ndistance = 2\ntarget = 0.9\n'
    same = f'[[rule]]\nname = "again"\nmodifier = ["C"]\nhead = ["B", "A"]\ndistance = [2, 2]\ntarget = {target}\n'
    expected = 'my.toml, line 6: rule "again" is about the same arcs as "C on A/B, 2 words away" on line 1; keep one'
    with pytest.raises(RulesError, match=re.escape(expected)):
        parse_rules(one + same, "my.toml")
    assert len(parse_rules(one + same.replace("[2, 2]", "[2, 3]"))) == 2
    assert len(parse_rules(one + same + 'direction = "left"')) == 2
    assert len(parse_rules(one + same.replace('["B", "A"]', '["B"]'))) == 2


def test_rules_made_in_python_are_checked_too() -> None:
    rule = Rule(("A",), None, None, None, (1, 1))
    with pytest.raises(RulesError, match=r'^rules: rule "any word on A" is about the same arcs as "any word on A"; k'):
        Rules((rule, Rule(("A",), None, None, None, (0, 1))))
    with pytest.raises(RulesError, match="there is no rule"):
        Rules(())
    with pytest.raises(RulesError, match="tags is 3"):
        Rules((rule,), 3)  # type: ignore[arg-type]


def test_long_values_are_cut_short() -> None:
    with pytest.raises(RulesError) as caught:
        parse_rules(f'[[rule]]\nhead = "A"\ntarget = "{"x" * 10_000}"')
    assert len(str(caught.value)) < 300


def test_packaged_rules() -> None:
    assert rules_names() == ("universal",)
    universal = read_rules("universal")
    assert universal.tags == "upos"
    assert universal.source == "universal"
    assert 5 <= len(universal) <= 25
    content, function = ("ADJ", "ADV", "NOUN", "NUM", "PRON", "PROPN", "VERB"), ("ADP", "AUX", "CCONJ", "DET", "SCONJ")
    tags = (*content, *function, "INTJ", "PART", "PUNCT", "SYM", "X")
    for rule in universal.rules:
        assert set(rule.modifier or ()) <= set(tags)
        assert set(rule.head or ()) <= {*tags, "ROOT"}
        assert rule.target[0] < rule.target[1], "a range: no number holds for every language"
    assert len({rule.name for rule in universal.rules}) == len(universal)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(WHOLE, "utf-8-sig")
    assert read_rules(file) == read_rules(str(file)) == parse_rules(WHOLE)
    assert read_rules(file).source == str(file)
    file.write_text("[[rule]]\nhead = 3\n", "utf-8")
    with pytest.raises(RulesError, match=f"^{re.escape(str(file))}, line 2: rule 1: head is 3"):
        read_rules(file)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for name in ("no-such-rules", str(tmp_path), str(tmp_path / "absent.toml"), "../rule_files/universal", "a\0b"):
        with pytest.raises(RulesError, match=r"^cannot read rules from .*; the rules at hand are universal") as caught:
            read_rules(name)
        assert name.replace("\0", r"\x00") in str(caught.value)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(RulesError, match="cannot read rules"):
        read_rules(binary)


def test_nearest() -> None:
    assert nearest("Noun", ["PRON", "NOUN", "VERB"]) == "NOUN"
    assert nearest("PROP", ["PRON", "PROPN"]) == "PROPN"
    assert nearest("zzz", ["NOUN"]) is None
    assert nearest("NOUN", []) is None
