"""A demonstration of Headway: `make demo`.

Parses a few English sentences with the included model, draws the trees in the terminal and the first one as a picture
(build/demo.svg), and shows the least probable arc together with the other likely heads of that word. Then it learns
from a few little stories who is who in another one. A tree, how sure the parser is of it, and the picture come in the
first ten lines, one of which may say that kernels are compiled.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import headway as hw
from headway.coreference import Document
from headway.drawing import tree_text
from headway.parsed import Parsed

TEXT = "She saw the man with a telescope. What are you looking for? I shot an elephant in my pajamas."
STORY = "Mary met Bob. She gave him her book."
STORIES = Path(__file__).with_name("coreference.conllu")
MOST_HEADS = 4
UNSURE_BELOW = 0.75  # arcs less probable than this are marked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--svg", type=Path, default=Path("build/demo.svg"), help="where to write the picture")
    picture = parser.parse_args().svg
    english = hw.Parser.load("en")
    parsed = list(english.parse_text(TEXT))
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_text(parsed[0].to_svg(), encoding="utf-8")
    print(f"{title(parsed[0])}   picture: {picture}")
    print(tree(parsed[0]))
    for found in parsed[1:]:
        print(title(found))
        print(tree(found))
    print(least_probable(parsed))
    print(who_is_who(list(english.parse_text(STORY))))
    print(f"\nheadway {hw.__version__}: headway.Parser.load('en').parse_text(...)")


def title(parsed: Parsed) -> str:
    """The words, how probable their tree is, and what is proved about it."""
    words = " ".join(parsed.sentence.forms)
    return f"{words}   {parsed.confidence.tree:.0%} probable ({parsed.status}: no other tree scores higher)"


def tree(parsed: Parsed) -> str:
    """The tree as text, with uncertain arcs marked."""
    drawing = tree_text(
        parsed.sentence,
        parsed.confidence.arcs,
        unsure_below=UNSURE_BELOW,
        color=sys.stdout.isatty(),
        width=shutil.get_terminal_size().columns,
    )
    return f"{drawing}\n"


def least_probable(parsed: list[Parsed]) -> str:
    """The least probable arc of all, and the most likely heads of its word."""
    least = min(parsed, key=lambda found: found.confidence.arcs.min())
    m = int(least.confidence.arcs.argmin())
    words = ("ROOT", *least.sentence.forms)
    column = least.marginals[:, m]
    lines = [f"The least certain arc is the one to {words[m]!r} (word {m}). Its most likely heads:"]
    for h in column.argsort()[::-1][:MOST_HEADS]:
        chosen = f"   <- chosen, as {least.labels[m]}" if h == least.heads[m] else ""
        lines.append(f"  {column[h]:6.1%}  {words[h]}{chosen}")
    return "\n".join(lines)


def who_is_who(parsed: list[Parsed]) -> str:
    """Which words of a story refer to the same thing, learnt from other stories."""
    resolver = hw.Resolver.train(STORIES)
    story = Document.from_sentences(found.sentence for found in parsed)
    (resolved,) = resolver.resolve([story], find_mentions=True)
    found = resolved.document.without_singletons()
    clusters: dict[int, list[str]] = {}
    for mention, cluster in zip(found.mentions, found.clusters.tolist(), strict=True):
        words = found.sentences[mention.sentence].forms
        clusters.setdefault(cluster, []).append(" ".join(words[m - 1] for m in mention.words))
    lines = [f"\n{STORY} Who is who, learnt from {STORIES.name}:"]
    return "\n".join([*lines, *("  " + " = ".join(cluster) for cluster in clusters.values())])


if __name__ == "__main__":
    main()
