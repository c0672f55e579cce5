"""Mentions and pairs of mentions in plain Python, from the words of the document: strings, sets, dictionaries.

The twin of `attributes`, `pairs` and `antecedents`; nothing here is shared with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from headway.coreference import Document

Path = tuple[tuple[str, ...], tuple[str, ...]]  # the labels on the way up from m's head, and from a's head

BINS = ((0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 6), (7, 9), (10, 15), (16, 30), (31, 63), (64, 10**9))
_AT_EDGES = ("det", "det:poss", "nmod:poss", "case", "punct")
_LONGEST_PATH = 5


@dataclass
class Word:
    form: str
    lemma: str
    upos: str
    xpos: str
    feats: dict[str, str]
    head: int
    label: str


class NaiveMention:
    """One mention with all that is known of it by itself; texts that are not known are None."""

    def __init__(self, document: Document, number: int, talk: Sequence[tuple[str | None, str | None]]) -> None:
        mention = document.mentions[number]
        self.sentence, self.words, self.type = mention.sentence, mention.words, known(mention.type)
        self.tree = words_of(document, mention.sentence)
        self.speaker, self.addressee = talk[mention.sentence]
        self.head = min(word for word in self.words if self.tree[word].head not in self.words)
        top = self.tree[self.head]
        self.lemma = top.lemma
        self.above = top.head
        self.governor = self.tree[top.head].lemma if top.head else None
        self.text = self._text(self.words)
        self.core_words = self._core()
        self.core = self._text(self.core_words)
        conjuncts = [word for word in self.words if self.tree[word].head == self.head]
        is_coordination = "conj" in [self.tree[word].label for word in conjuncts]
        self.number = "Plur" if is_coordination else top.feats.get("Number")
        self.gender, self.person = top.feats.get("Gender"), top.feats.get("Person")
        self.kind = self._kind()
        function = ("PUNCT", "ADP", "DET", "PART")
        self.content = {self.tree[word].lemma for word in self.core_words if self.tree[word].upos not in function}
        self.initials = self._initials()

    def _text(self, words: Sequence[int]) -> str:
        return " ".join(self.tree[word].form.lower() for word in words)

    def _core(self) -> list[int]:
        edge = [word != self.head and self.tree[word].label in _AT_EDGES for word in self.words]
        inner = [i for i, is_edge in enumerate(edge) if not is_edge]
        return list(self.words[inner[0] : inner[-1] + 1])

    def _kind(self) -> str:
        tag = self.tree[self.head].upos
        if tag == "DET" and len(self.words) == 1:
            return "pronoun"
        kinds = {"PRON": "pronoun", "PROPN": "name"}
        kinds |= dict.fromkeys(("NOUN", "NUM", "SYM", "X", "ADJ", "DET"), "nominal")
        return kinds.get(tag, "other")

    def _initials(self) -> str | None:
        if self.kind != "name" or len(self.core_words) == 1:
            return None
        capitals = [self.tree[word].form[0] for word in self.core_words if self.tree[word].form[0].isupper()]
        return "".join(capitals).lower() or None

    def form(self, word: int) -> str:
        return self.tree[word].form.lower() if word in self.tree else "_"

    def attributes(self) -> dict[str, str]:
        """Those that need no other mention, as text."""
        top, first = self.tree[self.head], self.tree[self.words[0]]
        determiner = None
        if self.words[0] != self.head:
            determiner = {"DET": first.lemma, "PRON": "PRON", "NUM": "NUM"}.get(first.upos)
        found = {
            "kind": self.kind,
            "cite": top.form.lower() if self.kind == "pronoun" else self.kind,
            "head": top.form.lower(),
            "lemma": self.lemma,
            "tag": top.upos if top.xpos == "_" else top.xpos,
            "label": top.label,
            "governor": self.governor,
            "relation": f"{top.label} {self.governor or '_'}",
            "first": self.form(self.words[0]),
            "last": self.form(self.words[-1]),
            "before": self.form(self.words[0] - 1),
            "after": self.form(self.words[-1] + 1),
            "number": self.number,
            "gender": self.gender,
            "person": self.person,
            "determiner": determiner,
            "length": str(len(self.words)) if len(self.words) < 8 else "8",
            "type": self.type,
        }
        return {name: value or "_" for name, value in found.items()}


def known(text: str) -> str | None:
    return None if text in ("", "_") else text


def words_of(document: Document, sentence: int) -> dict[int, Word]:
    s = document.sentences[sentence]
    assert s.heads is not None
    assert s.labels is not None
    return {
        w: Word(
            s.forms[w - 1],
            (s.forms[w - 1] if s.lemmas[w - 1] == "_" else s.lemmas[w - 1]).lower(),
            s.upos[w - 1],
            s.xpos[w - 1],
            dict(item.split("=") for item in s.feats[w - 1].split("|") if item != "_"),
            int(s.heads[w]),
            str(s.labels[w]),
        )
        for w in range(1, len(s) + 1)
    }


def naive_mentions(document: Document) -> list[NaiveMention]:
    talk = naive_talk(document)
    return [NaiveMention(document, number, talk) for number in range(len(document.mentions))]


def naive_talk(document: Document) -> list[tuple[str | None, str | None]]:
    """Who speaks each sentence, and to whom: as it says, or who spoke last before, or who will be the first other."""
    said = []
    for sentence in document.sentences:
        entries = [comment.lstrip("#").split("=", 1) for comment in sentence.layout.comments if "=" in comment]
        said.append({key.strip(): value.strip() for key, value in entries})
    speakers = [each.get("speaker") for each in said]
    talk: list[tuple[str | None, str | None]] = []
    for number, (each, speaker) in enumerate(zip(said, speakers, strict=True)):
        order = [*reversed(speakers[:number]), *speakers[number:]]
        others = [other for other in order if other is not None and other != speaker]
        talk.append((speaker, each.get("addressee") or (others[0] if speaker and others else None)))
    return talk


def naive_attributes(document: Document) -> list[dict[str, str]]:
    """All attributes of all mentions."""
    mentions = naive_mentions(document)
    heads = Counter(mention.lemma for mention in mentions)
    found = []
    for number, mention in enumerate(mentions):
        earlier = mentions[:number]
        attributes = mention.attributes()
        attributes["seen"] = "new"
        if mention.lemma in [other.lemma for other in earlier]:
            attributes["seen"] = "head"
        if mention.core in [other.core for other in earlier]:
            attributes["seen"] = "string"
        attributes["count"] = str(next(power for power in range(1, 99) if heads[mention.lemma] < 2**power))
        covers = [within(mention, other) for other in earlier]
        attributes["inside"] = "yes" if any(covers) else "no"
        found.append(attributes)
    return found


def within(mention: NaiveMention, other: NaiveMention) -> bool:
    """Is the one in what the other spans?"""
    span = range(other.words[0], other.words[-1] + 1)
    return mention.sentence == other.sentence and mention.words[0] in span and mention.words[-1] in span


# Pairs


def binned(distance: int) -> int:
    return next(number for number, (least, most) in enumerate(BINS) if least <= distance <= most)


def agreement(x: str | None, y: str | None) -> int:
    return 1 if x is None or y is None else 2 if x == y else 3


def agree(a: NaiveMention, m: NaiveMention) -> bool:
    known_of_both = ((a.number, m.number), (a.gender, m.gender), (a.person, m.person))
    return all(x == y for x, y in known_of_both if x is not None and y is not None)


def naive_words(a: NaiveMention, m: NaiveMention) -> int:
    if not a.content & m.content:
        return 1
    if a.content == m.content:
        return 2
    return 3 if m.content < a.content else 4 if a.content < m.content else 5


def spells_initials(a: NaiveMention, m: NaiveMention) -> bool:
    return (a.initials is not None and a.initials == m.core) or (m.initials is not None and m.initials == a.core)


def naive_relation(a: NaiveMention, m: NaiveMention) -> int:
    """Of the speakers."""
    if a.speaker is None or m.speaker is None:
        return 1
    if a.speaker == m.speaker:
        return 2 if a.addressee == m.addressee else 3
    to_whom = (m.addressee == a.speaker, a.addressee == m.speaker)
    return {(True, True): 4, (True, False): 5, (False, True): 6, (False, False): 7}[to_whom]


def ancestors(mention: NaiveMention) -> list[int]:
    """The mention's head, the head's head, and so on."""
    found = [mention.head]
    while mention.tree[found[-1]].head:
        found.append(mention.tree[found[-1]].head)
    return found


def naive_path(a: NaiveMention, m: NaiveMention) -> Path | None:
    """The labels on the way between the heads; None if there is no way of at most five steps."""
    if a.sentence != m.sentence:
        return None
    from_a, from_m = ancestors(a), ancestors(m)
    shared = [word for word in from_m if word in from_a]
    if not shared or from_m.index(shared[0]) + from_a.index(shared[0]) > _LONGEST_PATH:
        return None
    up, down = from_m[: from_m.index(shared[0])], from_a[: from_a.index(shared[0])]
    return tuple(m.tree[word].label for word in up), tuple(m.tree[word].label for word in down)


def naive_governors(a: NaiveMention, m: NaiveMention) -> int:
    if a.sentence == m.sentence and a.above == m.above:
        return 3
    return 2 if a.governor is not None and a.governor == m.governor else 1


def naive_atoms(mentions: Sequence[NaiveMention], candidates: Sequence[int], a: int, m: int) -> dict[str, int]:
    """All atoms but the path of the arc from a to m, numbered from 1, where m has these candidates."""
    names = ["root", "string", "head", "words", "modifiers", "initials", "sentences", "mentions", "between", "rivals"]
    names += ["nested", "talk", "number", "gender", "person", "type", "syntax", "governors"]
    if a == 0:
        return {**dict.fromkeys(names, 0), "root": 1}
    x, y = mentions[a - 1], mentions[m - 1]
    between = [mentions[other - 1] for other in candidates if other > a]
    path = naive_path(x, y)
    same_head = x.lemma == y.lemma
    found = dict.fromkeys(names, 1)
    found |= {
        "root": 0,
        "words": naive_words(x, y),
        "sentences": 1 + binned(y.sentence - x.sentence),
        "mentions": 1 + binned(m - a - 1),
        "rivals": 1 + min(7, sum(agree(other, y) for other in between)),
        "talk": naive_relation(x, y),
        "governors": naive_governors(x, y),
        **{name: agreement(getattr(x, name), getattr(y, name)) for name in ("number", "gender", "person", "type")},
    }
    if x.text == y.text:
        found["string"] = 3
    elif x.core == y.core:
        found["string"] = 2
    if same_head:
        found["head"] = 2
        found["modifiers"] = 2 + 3 * min(2, len(y.content - x.content)) + min(2, len(x.content - y.content))
        found["between"] = 2 + min(2, [other.lemma for other in between].count(y.lemma))
    if spells_initials(x, y):
        found["initials"] = 2
    if within(y, x):
        found["nested"] = 2
    assert within(y, x) or not within(x, y)
    if path is not None:
        found["syntax"] = 2 + 4 * min(3, len(path[0])) + min(3, len(path[1]))
    return found


# Antecedents


def lets_through(mentions: Sequence[NaiveMention], a: int, m: int, near: int, sentences: int) -> set[str]:
    """The sieves that let the arc through, by name."""
    x, y = mentions[a - 1], mentions[m - 1]
    found = {"near"} if m - a <= near else set()
    if y.kind == "pronoun" and (y.sentence - x.sentence <= sentences or x.text == y.text):
        found.add("pronoun")
    same = x.core == y.core or x.lemma == y.lemma or x.content & y.content or spells_initials(x, y)
    if "pronoun" not in (x.kind, y.kind) and same:
        found.add("match")
    return found


def naive_antecedents(
    document: Document, near: int, sentences: int, clusters: Sequence[int] | None = None
) -> list[list[int]]:
    """The antecedents of each mention; with gold clusters, all but the first mention of each have a right one."""
    mentions = naive_mentions(document)
    found = []
    for m in range(1, len(mentions) + 1):
        kept = {a for a in range(1, m) if lets_through(mentions, a, m, near, sentences)}
        right = {a for a in range(1, m) if clusters is not None and clusters[a - 1] == clusters[m - 1]}
        if right and not right & kept:
            kept.add(max(right))
        found.append([0, *sorted(kept)])
    return found
