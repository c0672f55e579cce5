"""Word clusters: what large unannotated text says of a word, for features of words the treebank has rarely or never.

A hierarchical clustering (Brown et al. 1992) gives every word a path of bits; words whose paths begin alike stand in
like contexts. After Koo, Carreras and Collins 2008, templates see a word's whole path and its first 4 and 6 bits.

The file is what Liang's `wcluster` writes, one word a line: bits, tab, word, and anything after another tab.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headway.errors import TrainingError
from headway.saved_values import mapping, texts
from headway.treebank.streams import READ_ERRORS, open_source

NO_PATH = "_"


@dataclass(frozen=True, repr=False)
class Clusters:
    """The path of every word that has one."""

    paths: Mapping[str, str]

    def path(self, form: str, missing: str = NO_PATH) -> str:
        """The path of the word as it is written, else in lower case, else `missing`.

        >>> Clusters({"dog": "0110"}).path("Dog"), Clusters({}).path("cat")
        ('0110', '_')
        """
        return self.paths.get(form) or self.paths.get(form.lower(), missing)

    def to_data(self) -> dict[str, list[str]]:
        """The words of every path, as JSON."""
        words: dict[str, list[str]] = {}
        for word, path in self.paths.items():
            words.setdefault(path, []).append(word)
        return words

    @classmethod
    def from_data(cls, data: Mapping[str, Any] | Clusters) -> Clusters:
        """What `to_data` gave; clusters that were read before stay as they are."""
        if isinstance(data, Clusters):
            return data
        for path, words in mapping(data, "clusters").items():
            if set(path) - {"0", "1"}:
                raise ValueError("the path of a cluster is not made of 0 and 1")
            texts(words, "the words of a cluster")
        return cls({word: path for path, words in data.items() for word in words})


NO_CLUSTERS = Clusters({})


def read_clusters(path: str | os.PathLike[str]) -> Clusters:
    """The clusters of a file; one line that is not of the format is an error that names it."""
    paths: dict[str, str] = {}
    name = os.fspath(path)
    for number, line in _lines(path, name):
        try:
            bits, word = line.decode().rstrip("\r\n").split("\t")[:2]
        except ValueError:  # of decoding, too
            raise TrainingError(f"{name}, line {number}: expected bits, a tab and a word, in UTF-8") from None
        if not bits or set(bits) - {"0", "1"} or not word:
            raise TrainingError(f"{name}, line {number}: {bits[:40]!a} is not a path of 0 and 1")
        paths[word] = bits
    if not paths:
        raise TrainingError(f"{name}: has no clusters; expected lines of bits, a tab and a word")
    return Clusters(paths)


def _lines(path: str | os.PathLike[str], name: str) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers, also of a compressed file."""
    number = 0
    try:
        with open_source(path) as stream:
            for number, line in enumerate(stream, start=1):
                yield number, line
    except READ_ERRORS as error:
        cause = f"the data break off after this line ({error}); get a complete copy"
        raise TrainingError(f"{name}, line {number}: {cause}") from None
