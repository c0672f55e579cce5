"""Texts through the included English parser, or a small linear one: split into sentences and words, tagged, parsed,
written, drawn.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np

from headway import Parser, read_treebank
from headway.parsed import Parsed
from headway.treebank import is_tree
from headway.treebank.annotations import multiword_tokens
from tests.fuzz.harness import Draw, expecting_success
from tests.fuzz.mutations import ODD, damaged, pick

TINY = Path(__file__).resolve().parent.parent.parent / "examples" / "tiny.conllu"
MOST = 150  # characters for the small parser, for which each may be a word
WORDS = "the a dog cat barks , . ! ? ( ) and don't can't of in New York 3.14 e-mail http://x.org/?a=b :-) ... - U.S. 's".split()  # noqa: E501, SIM905
RANGES: tuple[tuple[int, int], ...] = (
    (0x20, 0x7F),
    (0, 0x20),
    (0x7F, 0x100),
    (0x100, 0x250),
    (0x300, 0x370),
    (0x590, 0x700),
    (0x900, 0xE00),
)
RANGES += ((0x2000, 0x2070), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A4), (0xD800, 0xE000), (0xE000, 0xF900))
RANGES += ((0xFB00, 0x10000), (0x1F300, 0x1FB00), (0xE0000, 0xE0080), (0x10000, 0x110000))


def texts(folder: Path) -> Draw:
    """Draws that parse a text, check every tree, and write it in every form."""
    english, linear = Parser.load("en"), Parser.train(TINY, model="grandsibling", epochs=3, max_heads=4)

    def draw(rng: np.random.Generator) -> str | None:
        text, parser = random_text(rng), english
        if rng.random() < 0.5:
            text, parser = text[:MOST], linear
        found = list(parser.parse_text(text, exact=bool(rng.random() < 0.8)))
        for parsed in found:
            _check(parsed, text)
        return None if found else "nothing but white space"

    for seed in range(8):  # compiles what all draws need
        draw(np.random.default_rng(seed))
    return draw


def random_text(rng: np.random.Generator) -> str:
    """A text of one kind or another, seldom an ordinary one."""
    return pick(rng, (_words, _words, _characters, _one_range, _repeated, _long_word, _bytes))(rng)


def _check(parsed: Parsed, text: str) -> None:
    """A tree, probabilities that are some, words that stand where they say, and output that reads back."""
    assert is_tree(parsed.heads)
    assert (parsed.heads[1:] == 0).sum() == 1
    for name, arcs in (("confidence", parsed.confidence.arcs), ("tree", np.array([parsed.confidence.tree]))):
        assert ((arcs >= 0) & (arcs <= 1 + 1e-9)).all(), f"the {name} is no probability"
    assert np.allclose(parsed.marginals[:, 1:].sum(0), 1.0, atol=1e-6), "the marginals of a word do not sum to one"
    assert parsed.offsets is not None
    inside = {m for token in multiword_tokens(parsed.sentence) for m in range(token.first, token.last + 1)}
    for m, ((start, end), form) in enumerate(zip(parsed.offsets, parsed.sentence.forms, strict=True), start=1):
        assert m in inside or "".join(text[start:end].split()) == "".join(form.split()), "a word is not where it says"
    json.dumps(parsed.to_dict(), allow_nan=False)
    written = parsed.to_conllu()
    if written.encode("utf-8", "replace").decode() == written:  # a lone surrogate is no UTF-8
        with expecting_success():
            (again,) = read_treebank(io.StringIO(written))
        assert again.to_conllu() == written
    parsed.to_svg()


def _words(rng: np.random.Generator) -> str:
    """Ordinary words in no order, up to eighty, some of them odd."""
    chosen = [pick(rng, WORDS) for _ in range(rng.integers(1, pick(rng, (6, 15, 80))))]
    if rng.random() < 0.5:
        chosen[rng.integers(len(chosen))] = pick(rng, ODD)
    return pick(rng, (" ", " ", "\n", "\t", "\u00a0", "")).join(chosen)


def _characters(rng: np.random.Generator) -> str:
    """Characters from anywhere in Unicode, surrogates included."""
    return "".join(_character(rng, pick(rng, RANGES)) for _ in range(rng.integers(1, 60)))


def _one_range(rng: np.random.Generator) -> str:
    """A script, or what looks like one: words of characters from one range."""
    some = pick(rng, RANGES)
    return " ".join(
        "".join(_character(rng, some) for _ in range(rng.integers(1, 9))) for _ in range(rng.integers(1, 12))
    )


def _character(rng: np.random.Generator, some: tuple[int, int]) -> str:
    return chr(int(rng.integers(*some)))


def _repeated(rng: np.random.Generator) -> str:
    """One character, or one word, again and again."""
    piece = pick(
        rng, (*".,!?-'\"()\n\t\u200b\u0301a1 ", "\U0001f600", "don't ", "the ", ", ", ". ", pick(rng, ODD)[:9])
    )
    return str(piece) * int(rng.integers(1, pick(rng, (10, 40, 100))))


def _long_word(rng: np.random.Generator) -> str:
    return f"The {'x' * int(rng.integers(1, 10**5))} barks{pick(rng, ODD)}."


def _bytes(rng: np.random.Generator) -> str:
    """Text with small injuries, decoded as one that is not UTF-8 would be."""
    return damaged(rng, b"The dog barks at the old man. He didn't see it, did he?\n\nNo.").decode(
        "utf-8", "surrogateescape"
    )
