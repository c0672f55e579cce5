"""The table language: what is written is what is read, and what cannot be read is named by file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import TemplateError
from headway.features.templates import (
    CONJUNCTIONS,
    FIELDS,
    LARGEST_OFFSET,
    MOST_ATOMS,
    Atom,
    Template,
    load_templates,
    parse_templates,
    roles,
    table_names,
)

from .strategies import part_templates, templates


@given(st.lists(templates(), min_size=1, max_size=5))
def test_round_trip(drawn: list[Template]) -> None:
    text = "\n".join(map(str, drawn))
    assert parse_templates(text) == tuple(dict.fromkeys(drawn))


def test_each_way_is_a_template() -> None:
    atoms = (Atom("h", 1, "form"), Atom("m", -2, "xpos"), Atom("b", 0, "upos"))
    found = parse_templates("h+1.form  m-2.xpos\tb.upos|dist - dir")
    assert found == tuple(Template(atoms, way) for way in ("dist", "-", "dir"))


def test_without_a_bar_the_atoms_stand_alone() -> None:
    assert parse_templates("h.form") == (Template((Atom("h", 0, "form"),), "-"),)


def test_comments_blank_lines_and_repetitions() -> None:
    text = "# a table\n\n  h.form | dir  # the head\nh.form | dir dist\n   \n"
    assert [str(t) for t in parse_templates(text)] == ["h.form | dir", "h.form | dist"]


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("h.form | far", "far after the bar; expected any of - dir dist"),
        ("h.form |", "nothing after the bar; expected any of - dir dist"),
        ("| dir", "a template needs at least one atom"),
        ("x.form", "x.form is not an atom; expected h, m or b (in larger parts also s, g, n, c, d)"),
        ("form", "form is not an atom"),
        ("h+12.form", "h+12.form is not an atom"),
        ("b+1.form", "b+1.form is not an atom"),
        ("h.form,m.form", "h.form,m.form is not an atom"),
        ("h.stem", "unknown field stem; the fields are form, lower"),
        ("h.xpos m.form | dir | dist", "| after the bar"),
        (f"m-{LARGEST_OFFSET + 1}.xpos", f"looks {LARGEST_OFFSET + 1} words away; {LARGEST_OFFSET} is the most"),
        (f"h+{LARGEST_OFFSET + 1}.xpos", f"looks {LARGEST_OFFSET + 1} words away; {LARGEST_OFFSET} is the most"),
        ("h.form " * (MOST_ATOMS + 1), f"a template of {MOST_ATOMS + 1} atoms; {MOST_ATOMS} is the most"),
        ("h+1.feat", "feat belongs to h or m without an offset"),
        ("b.feat", "feat belongs to h or m without an offset"),
        ("h.feat h.feat", "at most one b, or one h.feat and one m.feat"),
        ("b.form b.xpos", "at most one b, or one h.feat and one m.feat"),
        ("b.form m.feat", "at most one b, or one h.feat and one m.feat"),
        ("h.form s.form b.xpos", "b.xpos in a template with s.form; b and feat are for h and m alone"),
        ("m.feat g-1.xpos", "m.feat in a template with g-1.xpos; b and feat are for h and m alone"),
        ("s.feat h.form", "s.feat in a template with s.feat; b and feat are for h and m alone"),
        ("n+1.feat", "b and feat are for h and m alone"),
        ("b.form c.form", "b and feat are for h and m alone"),
        ("d.xpos h.feat", "b and feat are for h and m alone"),
    ],
)
def test_errors_name_file_and_line(line: str, cause: str) -> None:
    with pytest.raises(TemplateError) as caught:
        parse_templates(f"# two lines\nh.form\n{line}\nm.form", "my.txt")
    assert str(caught.value).startswith("my.txt, line 3: ")
    assert cause in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.lists(part_templates("hmsgncd"), min_size=1, max_size=5))
def test_round_trip_of_parts(drawn: list[Template]) -> None:
    assert parse_templates("\n".join(map(str, drawn))) == tuple(dict.fromkeys(drawn))


@pytest.mark.parametrize(
    ("line", "nodes"),
    [
        ("h.form m+1.xpos h-1.xpos | dir", "hm"),
        ("b.xpos", "b"),
        ("h.lemma s.xpos m.xpos", "hsm"),
        ("n-2.form d.form c.upos g.shape", "ncdg"),
    ],
)
def test_roles(line: str, nodes: str) -> None:
    (template,) = parse_templates(line)
    assert roles(template) == set(nodes)


@pytest.mark.parametrize("text", ["", "\n# nothing\n"])
def test_a_table_without_templates(text: str) -> None:
    with pytest.raises(TemplateError, match=r"my\.txt has no template; write lines such as"):
        parse_templates(text, "my.txt")


def test_the_largest_offset_may_be_used() -> None:
    for offset in (-LARGEST_OFFSET, LARGEST_OFFSET):
        (template,) = parse_templates(f"h{offset:+d}.form")
        assert template.atoms == (Atom("h", offset, "form"),)


def test_packaged_tables() -> None:
    assert set(table_names()) >= {"mcdonald2005", "standard", "label", "joint", "sibling", "grandsibling", "tree_label"}
    for name in table_names():
        table = load_templates(name)
        assert len(set(table)) == len(table)
        for template in table:
            assert template.conjunction in CONJUNCTIONS
            assert all(atom.field in (*FIELDS, "feat") for atom in template.atoms)
            assert all(abs(atom.offset) <= LARGEST_OFFSET for atom in template.atoms)


def test_packaged_tables_hold_what_the_issue_names() -> None:
    """Words, tags, prefixes, lemmas, morphology; bigrams with back-off; tags between and around; distance."""
    table = {str(template) for template in load_templates("mcdonald2005")}
    assert table >= {
        "h.form h.xpos m.form m.xpos | -",
        "h.form h.xpos m.form m.xpos | dist",
        "h.prefix m.prefix | dist",
        "h.xpos b.xpos m.xpos | dist",
        "h.xpos h+1.xpos m-1.xpos m.xpos | dist",
    }
    used = {atom.field for template in load_templates("standard") for atom in template.atoms}
    assert used >= {"form", "lemma", "prefix", "upos", "xpos", "morph"}


def test_tables_of_parts_leave_arcs_to_their_own() -> None:
    sibling, grandsibling = set(load_templates("sibling")), set(load_templates("grandsibling"))
    assert {roles(template) for template in sibling} == {frozenset("sm"), frozenset("hsm")}
    assert sibling < grandsibling
    assert {roles(t) for t in grandsibling - sibling} == set(map(frozenset, ("gm", "ghm", "gsm", "ghsm")))
    around = load_templates("tree_label")
    assert all(roles(template) & set("gsncd") and roles(template) <= set("hmgsncd") for template in around)
    assert set("gsncd") <= frozenset.union(*map(roles, around))


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("h.form m.form | dir\n", "utf-8")
    assert load_templates(str(file)) == parse_templates("h.form m.form | dir")
    file.write_text("h.form\nh.nothing\n", "utf-8")
    with pytest.raises(TemplateError, match=f"^{re.escape(str(file))}, line 2: unknown field nothing"):
        load_templates(str(file))


def test_unknown_tables_are_told_the_known_ones(tmp_path: Path) -> None:
    for name in ("no-such-table", str(tmp_path), str(tmp_path / "absent.txt"), "../tables/standard"):
        with pytest.raises(TemplateError, match=r"the tables at hand are .*mcdonald2005.*standard") as caught:
            load_templates(name)
        assert name in str(caught.value)
    binary = tmp_path / "binary.txt"
    binary.write_bytes(b"h.form \xff\xfe")
    with pytest.raises(TemplateError, match="cannot read templates"):
        load_templates(str(binary))
