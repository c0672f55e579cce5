"""A word of a parsed sentence, and the words around it in the tree.

A word is a view of its sentence: it holds nothing but its number. Two are equal if they are the same word of the same
parsed sentence, so words can be compared, collected in sets and used as keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway.treebank.annotations import features_of

if TYPE_CHECKING:
    from headway.parsed import Parsed

_SHOWN = 40  # characters of a text that a repr shows
_DIGITS = 6  # of a probability in plain data


@dataclass(frozen=True, slots=True, repr=False)
class Word:
    """Word number `id` of a parsed sentence, counted from 1 as in CoNLL-U."""

    sentence: Parsed
    id: int

    def __repr__(self) -> str:
        role = self.label or "root" if self.head is None else f"{self.label or 'child'} of {shortened(self.head.text)}"
        return f"<Word {self.id} {shortened(self.text)}: {role}>"

    def __str__(self) -> str:
        return self.text

    @property
    def text(self) -> str:
        """The word as it is written."""
        return self.sentence.sentence.forms[self.id - 1]

    @property
    def lemma(self) -> str | None:
        """The lemma; None where it is unknown."""
        lemma = self.sentence.sentence.lemmas[self.id - 1]
        return lemma if self.text == "_" else _known(lemma)  # an underscore is its own lemma

    @property
    def upos(self) -> str | None:
        """The universal tag; None where it is unknown."""
        return _known(self.sentence.sentence.upos[self.id - 1])

    @property
    def xpos(self) -> str | None:
        """The treebank's own tag; None where it is unknown."""
        return _known(self.sentence.sentence.xpos[self.id - 1])

    @property
    def feats(self) -> dict[str, str | bool]:
        """The features by name; True for one without a value."""
        return features_of(self.sentence.sentence.feats[self.id - 1])

    @property
    def head(self) -> Word | None:
        """The word above; None for a word on the root. (In spaCy such a word is its own head, in Stanza it has 0.)"""
        head = int(self.sentence.heads[self.id])
        return Word(self.sentence, head) if head else None

    @property
    def label(self) -> str | None:
        """The label of the arc from the head; None where the model gives none."""
        return _known(self.sentence.labels[self.id])

    @property
    def probability(self) -> float:
        """P(head): of the arc from the head, whatever its label."""
        return float(self.sentence.confidence.arcs[self.id])

    @property
    def label_probability(self) -> float | None:
        """P(label | head); None where the model has no such probabilities (`Parsed.label_probabilities`)."""
        found = self.sentence.label_probabilities
        return None if found is None else float(found[self.id])

    @property
    def children(self) -> tuple[Word, ...]:
        """The words below this one, in the order of the sentence."""
        return tuple(Word(self.sentence, m) for m in self.sentence.tree.children[self.id])

    @property
    def subtree(self) -> tuple[Word, ...]:
        """This word and all that descend from it, in the order of the sentence."""
        return tuple(Word(self.sentence, m) for m in self.sentence.tree.descendants(self.id))

    @property
    def start(self) -> int | None:
        """Where the word begins in the text, in characters; None if there was no text.

        Words of a token that does not spell them out (Portuguese "do", which is "de" and "o") all have its place.
        """
        return None if self.sentence.offsets is None else self.sentence.offsets[self.id - 1][0]

    @property
    def end(self) -> int | None:
        """Where the word ends in the text: the number of the character after its last one."""
        return None if self.sentence.offsets is None else self.sentence.offsets[self.id - 1][1]

    def to_dict(self) -> dict[str, Any]:
        """The word as plain data; `head` is a number, 0 for the root."""
        return plain_words(self.sentence, range(self.id, self.id + 1))[0]


def plain_words(parsed: Parsed, ids: range) -> list[dict[str, Any]]:
    """Neighbouring words as plain data; column by column, which is several times as fast as word by word."""
    sentence, nodes, words = parsed.sentence, slice(ids.start, ids.stop), slice(ids.start - 1, ids.stop - 1)
    unknown = [None] * len(ids)
    shares, offsets = parsed.label_probabilities, parsed.offsets
    columns = zip(
        ids,
        sentence.forms[words],
        sentence.lemmas[words],
        sentence.upos[words],
        sentence.xpos[words],
        sentence.feats[words],
        parsed.heads[nodes].tolist(),
        parsed.labels[nodes],
        parsed.confidence.arcs[nodes].tolist(),
        unknown if shares is None else shares[nodes].tolist(),
        unknown if offsets is None else offsets[words],
        strict=True,
    )
    return [
        {
            "id": number,
            "form": form,
            "lemma": lemma if form == "_" else _known(lemma),
            "upos": _known(upos),
            "xpos": _known(xpos),
            "feats": features_of(feats),
            "head": head,
            "label": _known(label),
            "probability": round(probability, _DIGITS),
            "label_probability": None if share is None else round(share, _DIGITS),
            "offsets": place,
        }
        for number, form, lemma, upos, xpos, feats, head, label, probability, share, place in columns
    ]


def shortened(text: str) -> str:
    """A text in quotation marks, its end left out where it is long.

    >>> shortened("Dogs bark."), len(shortened("Dogs bark. " * 99))
    ("'Dogs bark.'", 42)
    """
    return repr(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…")


def _known(column: str | None) -> str | None:
    return None if column == "_" else column
