"""Documents in which the noun decides what a mention names: "the dog saw the king", and later "it met the king".

Names are never marked, so the mentions that trees have are more than those that are marked.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_NOUNS = {
    **dict.fromkeys(["dog", "cat", "horse", "bird"], "animal"),
    **dict.fromkeys(["king", "poet", "child"], "person"),
    **dict.fromkeys(["tower", "garden", "river", "ship", "lamp"], "thing"),
}
_HEADER = "# global.Entity = eid-etype-infstat"
Entity = Callable[[str], str]


@dataclass(frozen=True)
class Toy:
    """Rows "form UPOS head relation" of each sentence, and the mentions: (sentence, words, entity)."""

    name: str
    sentences: list[list[str]]
    mentions: list[tuple[int, tuple[int, ...], str]]

    def partition(self, entity: Entity = str) -> list[frozenset[tuple[int, tuple[int, ...]]]]:
        """The clusters, if entities are named so."""
        sets: dict[str, set[tuple[int, tuple[int, ...]]]] = {}
        for sentence, words, name in self.mentions:
            sets.setdefault(entity(name), set()).add((sentence, words))
        return list(map(frozenset, sets.values()))


def documents(count: int, seed: int, sentences: int = 9, *, unsure: bool = False) -> list[Toy]:
    """A pronoun is the subject before it; if `unsure` that or the object, and nothing tells which."""
    rng = random.Random(seed)
    return [_document(rng, f"toy-{seed}-{number}", sentences, unsure) for number in range(1, count + 1)]


def _document(rng: random.Random, name: str, count: int, unsure: bool) -> Toy:
    found = Toy(name, [], [])
    nouns = rng.sample(list(_NOUNS), 7)
    subject = ""
    for number in range(count):
        verb = f"{rng.choice(['saw', 'met', 'liked'])} VERB"
        one, other = rng.sample(nouns, 2)
        kind = rng.randrange(4) if subject else 0
        mentions: list[tuple[tuple[int, ...], str]]
        if kind == 0:  # the dog saw the king .
            rows = ["the DET 2 det", f"{one} NOUN 3 nsubj", f"{verb} 0 root", "the DET 5 det", f"{other} NOUN 3 obj"]
            mentions = [((1, 2), one), ((4, 5), other)]
        elif kind == 1:  # the dog of the king slept .
            rows = ["the DET 2 det", f"{one} NOUN 6 nsubj", "of ADP 5 case", "the DET 5 det", f"{other} NOUN 2 nmod"]
            rows += ["slept VERB 0 root"]
            mentions = [((1, 2, 3, 4, 5), one), ((4, 5), other)]
        elif kind == 2:  # it saw the king .
            rows = ["it PRON 2 nsubj", f"{verb} 0 root", "the DET 4 det", f"{other} NOUN 2 obj"]
            one = subject
            mentions = [((1,), one), ((3, 4), other)]
        else:  # Anna saw the dog .
            rows = ["Anna PROPN 2 nsubj", f"{verb} 0 root", "the DET 4 det", f"{one} NOUN 2 obj"]
            mentions = [((3, 4), one)]
        root = next(row.split()[2] for row in rows if row.endswith("nsubj"))
        found.sentences.append([*rows, f". PUNCT {root} punct"])
        found.mentions.extend((number, words, entity) for words, entity in mentions)
        subject = rng.choice([one, mentions[-1][1]]) if unsure else one
    return found


def text(toys: list[Toy], *, marks: bool = True, newdoc: bool = True, entity: Entity = str) -> str:
    """CoNLL-U; entities are e1, e2, ... by their first mentions, as `write_documents` numbers them."""
    lines: list[str] = []
    count = 0
    for toy in toys:
        lines += [f"# newdoc id = {toy.name}"] * newdoc + [_HEADER] * marks
        number_of: dict[str, int] = {}
        for _, _, name in toy.mentions:
            if entity(name) not in number_of:
                count += 1
                number_of[entity(name)] = count
        for number, rows in enumerate(toy.sentences):
            here = [
                (words, f"e{number_of[entity(name)]}", f"{_NOUNS[name]}-new")
                for sentence, words, name in toy.mentions
                if sentence == number
            ]
            lines.append(f"# sent_id = {toy.name}-{number + 1}")
            for word, row in enumerate(rows, start=1):
                form, tag, head, label = row.split()
                entries = [f"Entity={_marks(here, word)}"] if marks and _marks(here, word) else []
                entries += ["SpaceAfter=No"] * (word == len(rows) - 1)
                columns = [str(word), form, form.lower(), tag, tag[:1], "_", head, label, "_", "|".join(entries) or "_"]
                lines.append("\t".join(columns))
            lines.append("")
    return "".join(f"{line}\n" for line in lines)


def _marks(mentions: list[tuple[tuple[int, ...], str, str]], word: int) -> str:
    """Of mentions without gaps of which none begins where another ends."""
    long = [mention for mention in mentions if len(mention[0]) > 1]
    closing = "".join(f"{name})" for words, name, _ in reversed(long) if words[-1] == word)
    opening = "".join(f"({name}-{rest}" for words, name, rest in long if words[0] == word)
    return closing + opening + "".join(f"({name}-{rest})" for words, name, rest in mentions if words == (word,))


def write(path: Path, count: int, seed: int, *, unsure: bool = False) -> Path:
    path.write_text(text(documents(count, seed, unsure=unsure)), encoding="utf-8")
    return path


def without_marks(content: str) -> str:
    """A file without its Entity= entries and the headers that name their fields."""
    lines = []
    for line in content.splitlines(keepends=True):
        if line.startswith("# global.Entity"):
            continue
        body = line.rstrip("\r\n")
        columns = body.split("\t")
        if len(columns) == 10:
            columns[9] = "|".join(e for e in columns[9].split("|") if not e.startswith("Entity=")) or "_"
        lines.append("\t".join(columns) + line[len(body) :])
    return "".join(lines)
