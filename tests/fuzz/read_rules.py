"""Rules, templates and word clusters: good files damaged, and files put together from pieces that do not belong."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from headway import read_treebank
from headway.features.clusters import Clusters, read_clusters
from headway.features.coding import Coded, Coder
from headway.features.rule_features import RuleFeatures
from headway.features.rules import parse_rules, read_rules
from headway.features.templates import load_templates, roles, table_names, table_text
from tests.fuzz.harness import Draw
from tests.fuzz.mutations import ODD, damaged, packed, pick
from tests.fuzz.read_treebanks import TINY

RULES = b"""tags = "upos"
[[rule]]
head = "NOUN"
modifier = ["DET", "ADJ"]
direction = "left"
distance = [1, 3]
target = 0.9
weight = 2.0
name = "determiners"

[[rule]]
head = "ROOT"
modifier = "VERB"
target = [0.5, 1.0]

[[rule]]
distance = [4, inf]
target = 0.1
"""
KEYS = ("head", "modifier", "direction", "distance", "target", "weight", "name", "tags", "rule")
VALUES: tuple[str, ...] = (
    '"NOUN"',
    '"ROOT"',
    '["DET", "VERB"]',
    '"left"',
    "2",
    "[1, 3]",
    "[4, inf]",
    "0.9",
    "[0.7, 1]",
    "nan",
    "[]",
    "{}",
)
VALUES += ("true", "1979-05-27", '""', '"\\u0000"', "-1", "[[1]]", "[1, 2, 3]", "1e400", "0x10", "[" * 3000)
ATOMS: tuple[str, ...] = (
    "h.form",
    "m.xpos",
    "h+1.upos",
    "m-2.lemma",
    "b.xpos",
    "h.feat",
    "m.feat",
    "s.xpos",
    "g.form",
    "n.upos",
    "c.bits",
)
ATOMS += (
    "d.shape",
    "h+9.form",
    "x.form",
    "h.nothing",
    "|",
    "-",
    "dir",
    "dist",
    "#",
    "h.",
    ".form",
    "h+1.feat",
    "b.feat",
)


def rules(folder: Path) -> Draw:
    """Draws that read rules from a file, write them again, and match them with sentences."""
    coder, coded = _coded_sentences()

    def draw(rng: np.random.Generator) -> str | None:
        data = damaged(rng, RULES) if rng.random() < 0.5 else _made_rules(rng).encode("utf-8", "replace")
        found = read_rules(_written(folder, data))
        assert parse_rules(found.to_toml()).to_toml() == found.to_toml()
        RuleFeatures.of(found, coder, coded).problems()
        return None

    RuleFeatures.of(read_rules("universal"), coder, coded).problems()
    return draw


def templates(folder: Path) -> Draw:
    """Draws that read a table of templates."""
    tables = [table_text(name).encode() for name in table_names()]

    def draw(rng: np.random.Generator) -> str | None:
        data = damaged(rng, pick(rng, tables)[: rng.integers(2000)]) if rng.random() < 0.5 else _made_templates(rng)
        for template in load_templates(_written(folder, data)):
            assert roles(template)
        return None

    return draw


def clusters(folder: Path) -> Draw:
    """Draws that read word clusters, some compressed."""
    words = "".join(f"{i:b}\tword{i}\t{i}\n" for i in range(30)).encode()

    def draw(rng: np.random.Generator) -> str | None:
        data = damaged(rng, words)
        found = read_clusters(_written(folder, packed(rng, data) if rng.random() < 0.2 else data))
        assert Clusters.from_data(found.to_data()).paths == found.paths
        assert set(found.path("Word3")) <= {"0", "1", "_"}
        return None

    return draw


def _made_rules(rng: np.random.Generator) -> str:
    """Lines of keys and values that may or may not go together."""
    lines = ["[[rule]]"] * int(rng.random() < 0.9)
    for _ in range(rng.integers(1, 9)):
        lines.append(f"{pick(rng, KEYS)} = {pick(rng, VALUES)}" if rng.random() < 0.9 else "[[rule]]")
    if rng.random() < 0.3:
        lines.insert(int(rng.integers(len(lines) + 1)), f"{pick(rng, KEYS)} = {pick(rng, ODD)}")
    return "\n".join(lines)


def _made_templates(rng: np.random.Generator) -> bytes:
    lines = (" ".join(pick(rng, ATOMS) for _ in range(rng.integers(1, 5))) for _ in range(rng.integers(1, 5)))
    ends = (pick(rng, (" | -", " | dir dist", "", " |", f" {pick(rng, ODD)}")) for _ in range(5))
    return "\n".join(line + end for line, end in zip(lines, ends, strict=False)).encode("utf-8", "replace")


def _written(folder: Path, data: bytes) -> str:
    path = folder / "drawn"
    path.write_bytes(data)
    return str(path)


def _coded_sentences() -> tuple[Coder, Coded]:
    sentences = list(read_treebank(TINY))
    coder = Coder.learn(sentences)
    return coder, coder.code(sentences)
