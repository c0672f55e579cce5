"""Feature templates as a readable table: what is conjoined, never how it is computed.

One template a line: atoms, then after a bar the ways it fires.

    h.form h.xpos m.xpos | - dir dist

An atom is `node.field`. The node is `h` (the head) or `m` (the modifier), with an offset in words (`h+1`, `m-2`), or
`b`: the template fires once for every distinct value strictly between head and modifier. The field is one of
`FIELDS`; `feat` fires once for every single morphological feature of the word (`feats` is all of them as one
value), and `word` is the lemma, or the lowercased form where the treebank has no lemma. `bits`, `bits6` and `bits4`
are the path of the word's cluster and its beginning (see `clusters`); without clusters, templates over them are left
out, as all are over a field that never varies.

A template of larger parts of a tree names other nodes too, with offsets and fields as for `h` and `m`:

    s  the sibling: the child of h before m, on the same side, nearer to h
    g  the grandparent: the head of h
    n  the next sibling: the child of h after m, on the same side, farther from h
    c  the leftmost child of m          d  the rightmost child of m

Of a node that a part lacks (the first child has no sibling before it) every field is as outside the sentence.
Parts have neither `b` nor `feat`: what fires several times is for arcs alone. `roles` tells the nodes of a template,
and so what it is about: h, s and m are a sibling part, g, h and m a grandparent part, all four a grand-sibling part.

After the bar: `-` the atoms alone, `dir` with the direction of the arc, `dist` with direction and binned distance.
Each way is a template of its own, with its own weights.

The tables that come with Headway are `tables/*.txt`: `mcdonald2005` is the feature space of McDonald et al. 2005
that koo2007 (section 6.1) builds on; `mcdonald2006` is MSTParser's for CoNLL-X; `standard` is what
`headway train` uses; `label` are the templates that choose a label for an arc. `sibling` and `grandsibling` are for
parts of two and three arcs, after Carreras 2007, beside the arcs' own; `tree_label` is for labels, beside `label`.
`coarse` and `grandsibling_coarse` have coarse tags where `standard` and `grandsibling` have fine ones, and are read
with them: `standard+coarse`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal, cast

from headway.errors import TemplateError

Conjunction = Literal["-", "dir", "dist"]

FIELDS = (
    *("form", "lower", "lemma", "word", "prefix", "suffix", "shape", "upos", "xpos", "feats", "morph"),
    *("bits", "bits6", "bits4"),
)
CONJUNCTIONS: tuple[Conjunction, ...] = ("-", "dir", "dist")
LARGEST_OFFSET = 2
MOST_ATOMS = 8  # templates are rows of one table: a long one makes all of them long

PART_NODES = "sgncd"  # beyond h and m

_ATOM = re.compile(rf"([hm{PART_NODES}])([+-]\d)?\.(\w+)|b\.(\w+)")


@dataclass(frozen=True, order=True)
class Atom:
    """One value of a word near a node: the head ("h"), the modifier ("m"), another of a part, or any between ("b")."""

    node: str
    offset: int
    field: str

    def __str__(self) -> str:
        offset = f"{self.offset:+d}" if self.offset else ""
        return f"{self.node}{offset}.{self.field}"


@dataclass(frozen=True)
class Template:
    """A conjunction of atoms, with one way to fire."""

    atoms: tuple[Atom, ...]
    conjunction: Conjunction

    def __str__(self) -> str:
        return f"{' '.join(map(str, self.atoms))} | {self.conjunction}"


def parse_templates(text: str, source: str = "templates") -> tuple[Template, ...]:
    """The templates of a table, each way a line fires on its own.

    >>> [str(t) for t in parse_templates("h.form m-1.xpos | - dist")]
    ['h.form m-1.xpos | -', 'h.form m-1.xpos | dist']
    """
    templates: dict[Template, None] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()
        if content:
            templates.update(dict.fromkeys(_parse_line(content, f"{source}, line {number}")))
    if not templates:
        raise TemplateError(f"{source} has no template; write lines such as `h.xpos m.xpos | dir dist`")
    return tuple(templates)


def table_text(name: str) -> str:
    """A table as it is written, with its comments: one that comes with Headway, by name, or a file."""
    packaged = resources.files("headway.features") / "tables" / f"{name}.txt"
    if "/" not in name and packaged.is_file():
        return packaged.read_text("utf-8")
    try:
        return Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join(table_names())
        raise TemplateError(f"cannot read templates from {name}: {error}; the tables at hand are {known}") from None


def load_templates(name: str) -> tuple[Template, ...]:
    """The templates of a table that comes with Headway, by name, or of a file; of several tables, joined by +.

    >>> len(load_templates("mcdonald2005")) > 40
    True
    >>> set(load_templates("standard+coarse")) == {*load_templates("standard"), *load_templates("coarse")}
    True
    """
    names = [name] if Path(name).is_file() else name.split("+")
    return tuple(dict.fromkeys(template for each in names for template in parse_templates(table_text(each), each)))


def roles(template: Template) -> frozenset[str]:
    """The nodes a template looks at.

    >>> sorted(roles(parse_templates("h.xpos s.xpos m-1.form m.xpos | dir")[0]))
    ['h', 'm', 's']
    """
    return frozenset(atom.node for atom in template.atoms)


def table_names() -> tuple[str, ...]:
    """The tables that come with Headway."""
    tables = resources.files("headway.features") / "tables"
    return tuple(sorted(entry.name.removesuffix(".txt") for entry in tables.iterdir()))


def _parse_line(line: str, place: str) -> list[Template]:
    left, bar, right = line.partition("|")
    ways = right.split() if bar else ["-"]
    unknown = [way for way in ways if way not in CONJUNCTIONS]
    if unknown or not ways:
        raise TemplateError(f"{place}: {' '.join(unknown) or 'nothing'} after the bar; expected any of - dir dist")
    atoms = tuple(_parse_atom(text, place) for text in left.split())
    if not atoms:
        raise TemplateError(f"{place}: a template needs at least one atom such as h.xpos")
    if len(atoms) > MOST_ATOMS:
        raise TemplateError(f"{place}: a template of {len(atoms)} atoms; {MOST_ATOMS} is the most")
    _check_each(atoms, place)
    return [Template(atoms, cast(Conjunction, way)) for way in ways]


def _parse_atom(text: str, place: str) -> Atom:
    match = _ATOM.fullmatch(text)
    if match is None:
        raise TemplateError(
            f"{place}: {text} is not an atom; expected h, m or b (in larger parts also {', '.join(PART_NODES)}), "
            "an offset, and a field: m-1.xpos"
        )
    node, offset, field, between = match.groups()
    atom = Atom(node or "b", int(offset or 0), field or between)
    if atom.field not in (*FIELDS, "feat"):
        raise TemplateError(f"{place}: unknown field {atom.field}; the fields are {', '.join(FIELDS)} and feat")
    if abs(atom.offset) > LARGEST_OFFSET:
        raise TemplateError(f"{place}: {text} looks {abs(atom.offset)} words away; {LARGEST_OFFSET} is the most")
    return atom


def _check_each(atoms: tuple[Atom, ...], place: str) -> None:
    """What fires several times may appear once for the head, once for the modifier, or once in between."""
    each = [atom for atom in atoms if atom.node == "b" or atom.field == "feat"]
    beyond = [atom for atom in atoms if atom.node in PART_NODES]
    if each and beyond:
        raise TemplateError(f"{place}: {each[0]} in a template with {beyond[0]}; b and feat are for h and m alone")
    if any(atom.offset or (atom.node == "b" and atom.field == "feat") for atom in each):
        raise TemplateError(f"{place}: feat belongs to h or m without an offset")
    nodes = [atom.node for atom in each]
    if len(set(nodes)) < len(nodes) or ("b" in nodes and len(nodes) > 1):
        raise TemplateError(f"{place}: at most one b, or one h.feat and one m.feat, in a template")
