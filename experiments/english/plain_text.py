"""The plain text that the included English parser learns from beside the treebank, from two packages:

    pip download --no-deps --no-binary :all: vaderSentiment==3.3.2
    apt-get download fortunes fortunes-min && for deb in fortunes*.deb; do dpkg -x "$deb" fortunes; done
    python experiments/english/plain_text.py vaderSentiment-3.3.2.tar.gz fortunes/usr/share/games/fortunes > text.txt

Snippets of film and product reviews, tweets and newspapers (C.J. Hutto and Eric Gilbert), and Debian's fortunes without
those that are drawn, programs, or tables. A paragraph a snippet, with an empty line after it.
"""

from __future__ import annotations

import html
import io
import re
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

NESTED = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
NO_PROSE = {"ascii-art", "knghtbrd", "perl", "zippy", "drugs", "translate-me", "tao"}
WIDEST, LETTERS = 90, 0.85  # columns of a line, share of letters and spaces


def snippets(package: Path) -> Iterator[str]:
    with tarfile.open(package) as outer:
        member = outer.extractfile(NESTED)
        assert member is not None
        inner = io.BytesIO(member.read())
    with tarfile.open(fileobj=inner) as texts:
        for name in sorted(name for name in texts.getnames() if name.endswith("_GroundTruth.txt")):
            file = texts.extractfile(name)
            assert file is not None
            for line in file.read().decode("utf-8", "replace").splitlines():
                if line.count("\t") >= 2:
                    yield html.unescape(line.split("\t", 2)[2])


def fortunes(folder: Path) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        if path.suffix or path.is_symlink() or path.is_dir() or path.name in NO_PROSE:
            continue
        for item in re.split(r"^%\s*$", path.read_text("utf-8", "replace"), flags=re.MULTILINE):
            lines = [line for line in item.split("\n") if line.strip() and not re.match(r"\s*(--|\[|\()", line)]
            text = "".join(lines)
            prose = sum(letter.isalpha() or letter.isspace() for letter in text) >= LETTERS * len(text)
            if lines and prose and max(map(len, lines)) <= WIDEST:
                yield re.sub(r"\s+", " ", " ".join(lines)).strip()


def main() -> None:
    package, folder = map(Path, sys.argv[1:])
    for paragraph in (*snippets(package), *fortunes(folder)):
        sys.stdout.write(f"{paragraph}\n\n")


if __name__ == "__main__":
    main()
