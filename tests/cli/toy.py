"""Treebanks of an artificial language: nouns take determiners and adjectives before them, the verb takes the nouns."""

from __future__ import annotations

import random
from pathlib import Path

_WORDS = {
    "DET": "la un",
    "ADJ": "granda bela nova",
    "NOUN": "hundo kato domo floro",
    "VERB": "vidas amas",
    "PUNCT": ". !",
}


def sentence(rng: random.Random) -> list[tuple[str, str, int, str]]:
    """(form, tag, head, label) of each word; two nouns, a verb between them, and a full stop."""
    words: list[tuple[str, str, str]] = []  # tag, word it hangs from, label
    for label in ("nsubj", "obj"):
        noun = f"NOUN {label}"
        words += [("DET", noun, "det")] * (rng.random() < 0.7) + [("ADJ", noun, "amod")] * rng.randrange(3)
        words += [("NOUN", "VERB", label)]
        words += [("VERB", "", "root")] if label == "nsubj" else [("PUNCT", "VERB", "punct")]
    place = {"": 0}
    for number, (tag, _, label) in enumerate(words, start=1):
        place[f"NOUN {label}" if tag == "NOUN" else tag] = number
    return [(rng.choice(_WORDS[tag].split()), tag, place[head], label) for tag, head, label in words]


def treebank(count: int, seed: int, *, newline: str = "\n", comments: bool = True) -> str:
    """CoNLL-U text with lemmas, comments and MISC."""
    rng = random.Random(seed)
    lines: list[str] = []
    for number in range(1, count + 1):
        if comments:
            lines += [f"# sent_id = {seed}-{number}"]
        for i, (form, tag, head, label) in enumerate(sentence(rng), start=1):
            lines.append("\t".join([str(i), form, form[:3], tag, tag[:1], "_", str(head), label, "_", f"Id={i}"]))
        lines.append("")
    return newline.join([*lines, ""])


def write(path: Path, count: int = 40, seed: int = 1, *, newline: str = "\n", comments: bool = True) -> Path:
    """The same in a file."""
    path.write_bytes(treebank(count, seed, newline=newline, comments=comments).encode())
    return path
