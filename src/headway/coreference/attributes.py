"""The attributes of a mention, as text.

The head is the first word of a mention whose own head is outside. `kind` distinguishes pronouns, names, other nominals
and the rest; `cite` is the pronoun itself, or the kind. Number, gender and person are those of the head; a coordination
is plural. `core` is the mention without determiners, case marks and punctuation at its edges. Three attributes depend
on the other mentions of the document: `seen` says whether an earlier one has the same core or the same head, `count`
how many have the same head, in powers of two, and `inside` whether an earlier one contains it.

Speakers and addressees come from the comments `# speaker = ` and `# addressee = `, if the file has them. Without the
second, a speaker addresses the previous speaker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from headway.coreference.documents import Document, Mention
from headway.treebank import Sentence, require_tree
from headway.treebank.annotations import comment

ATTRIBUTES = (
    *("kind", "cite", "head", "lemma", "tag", "label", "governor", "relation", "first", "last", "before", "after"),
    *("number", "gender", "person", "determiner", "length", "inside", "seen", "count", "type"),
)
KINDS = ("pronoun", "name", "nominal", "other")
PRONOUN, NAME, NOMINAL, OTHER = range(4)
_NOMINAL_TAGS = frozenset({"NOUN", "NUM", "SYM", "X", "ADJ", "DET"})
_EDGES = frozenset({"det", "det:poss", "nmod:poss", "case", "punct"})
_FUNCTION_TAGS = frozenset({"PUNCT", "ADP", "DET", "PART"})
_LONGEST = 8  # words; longer mentions count as equally long


@dataclass(frozen=True)
class DescribedMention:
    """A mention in its sentence."""

    sentence: Sentence
    heads: Sequence[int]
    mention: Mention
    speaker: str
    addressee: str

    @cached_property
    def head(self) -> int:
        """The first word whose head is outside the mention."""
        words = set(self.mention.words)
        return next(word for word in self.mention.words if self.heads[word] not in words)

    @cached_property
    def core(self) -> tuple[int, ...]:
        """The words without determiners, case marks and punctuation at the edges."""
        words = list(self.mention.words)
        while words[0] != self.head and self.label(words[0]) in _EDGES:
            del words[0]
        while words[-1] != self.head and self.label(words[-1]) in _EDGES:
            del words[-1]
        return tuple(words)

    @cached_property
    def kind(self) -> int:
        tag = self.sentence.upos[self.head - 1]
        if tag == "PRON" or (tag == "DET" and len(self.mention.words) == 1):
            return PRONOUN
        if tag == "PROPN":
            return NAME
        return NOMINAL if tag in _NOMINAL_TAGS else OTHER

    def form(self, word: int) -> str:
        """The form in lower case; "_" outside the sentence."""
        return self.sentence.forms[word - 1].lower() if 0 < word <= len(self.sentence) else "_"

    def lemma(self, word: int) -> str:
        """The lemma in lower case, or the form if there is no lemma; "_" for the root."""
        lemma = self.sentence.lemmas[word - 1] if word else "_"
        return self.form(word) if lemma == "_" else lemma.lower()

    def label(self, word: int) -> str:
        return str((self.sentence.labels or ())[word])

    def text(self, words: Sequence[int]) -> str:
        return " ".join(map(self.form, words))

    def content(self) -> set[str]:
        """The lemmas of the core's content words."""
        return {self.lemma(word) for word in self.core if self.sentence.upos[word - 1] not in _FUNCTION_TAGS}

    def initials(self) -> str:
        """What a name of several words may be abbreviated to; "_" for anything else."""
        if self.kind != NAME or len(self.core) < 2:
            return "_"
        first = (self.sentence.forms[word - 1][0] for word in self.core)
        return "".join(letter for letter in first if letter.isupper()).lower() or "_"

    def attributes(self) -> dict[str, str]:
        """The attributes that do not depend on other mentions."""
        words, head = self.mention.words, self.head
        feats = features_of(self.sentence.feats[head - 1])
        governor = self.lemma(self.heads[head])
        coordinated = any(self.heads[word] == head and self.label(word) == "conj" for word in words)
        kind, xpos = KINDS[self.kind], self.sentence.xpos[head - 1]
        return {
            "kind": kind,
            "cite": self.form(head) if self.kind == PRONOUN else kind,
            "head": self.form(head),
            "lemma": self.lemma(head),
            "tag": self.sentence.upos[head - 1] if xpos == "_" else xpos,
            "label": self.label(head),
            "governor": governor,
            "relation": f"{self.label(head)} {governor}",
            "first": self.form(words[0]),
            "last": self.form(words[-1]),
            "before": self.form(words[0] - 1),
            "after": self.form(words[-1] + 1),
            "number": "Plur" if coordinated else feats.get("Number", "_"),
            "gender": feats.get("Gender", "_"),
            "person": feats.get("Person", "_"),
            "determiner": self._determiner(),
            "length": str(min(len(words), _LONGEST)),
            "type": self.mention.type,
        }

    def _determiner(self) -> str:
        """The article or demonstrative that begins the mention; for a possessive or a number, its tag."""
        first = self.mention.words[0]
        tag = self.sentence.upos[first - 1]
        if first == self.head or tag not in ("DET", "PRON", "NUM"):
            return "_"
        return self.lemma(first) if tag == "DET" else tag


def describe_mentions(document: Document) -> list[tuple[DescribedMention, dict[str, str]]]:
    """The mentions of a document, each with all its attributes."""
    trees = [require_tree(sentence).tolist() for sentence in document.sentences]
    talk = _talk(document.sentences)
    found = [
        DescribedMention(document.sentences[m.sentence], trees[m.sentence], m, *talk[m.sentence])
        for m in document.mentions
    ]
    described = [(mention, mention.attributes()) for mention in found]
    counts = Counter(attributes["lemma"] for _, attributes in described)
    cores: set[str] = set()
    lemmas: set[str] = set()
    covered = (-1, 0)  # the sentence, and the last word of it that a mention has covered so far
    for mention, attributes in described:
        core, lemma = mention.text(mention.core), attributes["lemma"]
        attributes["seen"] = "string" if core in cores else "head" if lemma in lemmas else "new"
        attributes["count"] = str(counts[lemma].bit_length())
        place = (mention.mention.sentence, mention.mention.words[-1])
        attributes["inside"] = "yes" if covered >= place and covered[0] == place[0] else "no"
        covered = max(covered, place)
        cores.add(core)
        lemmas.add(lemma)
    return described


def _talk(sentences: Sequence[Sentence]) -> list[tuple[str, str]]:
    """Who speaks each sentence, and to whom; "" where nobody is named."""
    speakers = [comment(sentence, "speaker") or "" for sentence in sentences]
    named = list(dict.fromkeys(filter(None, speakers)))
    other = named[1] if len(named) > 1 else ""  # whom the first speaker addresses
    talk, last = [], ""
    for sentence, speaker in zip(sentences, speakers, strict=True):
        if last and speaker and speaker != last:
            other = last
        talk.append((speaker, comment(sentence, "addressee") or (other if speaker else "")))
        last = speaker or last
    return talk


@lru_cache(maxsize=1 << 12)
def features_of(feats: str) -> Mapping[str, str]:
    return {} if feats == "_" else dict(part.partition("=")[::2] for part in feats.split("|"))
