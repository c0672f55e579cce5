"""The treebank that the tests annotate: one sentence for each test, so that none depends on another."""

from __future__ import annotations

from pathlib import Path

from headway.treebank import Sentence
from headway.treebank import write_treebank as write

HOSTILE = "<img src=x onerror=alert(1)>"
SENTENCES = {
    "pin": "She saw the man with a telescope .",
    "keys": "Dogs often chase small cats .",
    "undo": "The old man the boat .",
    "tabs": "We gave the dog a bone .",
    "words": "I cannot help it .",
    "drag": "Visiting relatives can be boring .",
    "touch": "They are flying planes .",
    "long": (
        "After the long meeting in the old town hall the mayor told the reporters that she would not run for "
        "office again next year ."
    ),
    "hostile": f"{HOSTILE} <script>alert(2)</script> said \u202etxet desrever ' \" & me .",
    "rtl": "هل تعلم أن القطط تنام كثيرا ؟",
    "file": "Fish swim .",
    "done": "Birds sing in spring .",
    "help": "Rain fell .",
    "invalid": "Snow melts slowly .",
}
NUMBER = {name: number for number, name in enumerate(SENTENCES, start=1)}  # as on the page


def write_treebank(path: Path) -> Path:
    """Write the sentences without heads."""
    sentences = [Sentence.from_words(text.split(" ")) for text in SENTENCES.values()]
    write(sentences, path)
    return path
