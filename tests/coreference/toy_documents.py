"""Small documents for the tests: written row by row, at random, or such that the heads decide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from headway.coreference import Document, Mention
from headway.treebank import Place, Sentence

Span = tuple[int, ...]

_FORMS = ("United", "States", "US", "us", "US", "Ann", "ann", "dog", "Dogs", "the", "of", ",", "He", "two")
_TAGS = ("PROPN", "PROPN", "PROPN", "NOUN", "NOUN", "PRON", "DET", "ADP", "PUNCT", "NUM", "VERB", "PART")
_LABELS = ("nsubj", "obj", "nmod", "conj", "det", "det:poss", "nmod:poss", "case", "punct", "flat")
_FEATS = ("_", "_", "Number=Sing", "Number=Plur", "Gender=Fem|Number=Sing|Person=3", "Gender=Masc|Person=1", "Person=1")
_COMMENTS = ((), (), ("# speaker = A",), ("# speaker = B", "# x = y"), ("#speaker=C", "# addressee = A"))


def sentence(*rows: str, comments: Sequence[str] = ()) -> Sentence:
    """A sentence of rows "form UPOS head relation", with FEATS and lemma behind where there are some."""
    columns = [row.split() for row in rows]
    made = Sentence.from_words(
        [column[0] for column in columns],
        upos=[column[1] for column in columns],
        feats=[column[4] if len(column) > 4 else "_" for column in columns],
        lemmas=[column[5] if len(column) > 5 else "_" for column in columns],
        heads=[-1, *(int(column[2]) for column in columns)],
        labels=[None, *(column[3] for column in columns)],
    )
    return replace(made, layout=replace(made.layout, comments=tuple(comments)))


def document(
    sentences: Sequence[Sentence], mentions: Iterable[Mention | tuple[int, Span]], clusters: Sequence[int] | None = None
) -> Document:
    """A document of mentions, or of (sentence, words); each is a cluster of its own unless clusters are given."""
    found = [each if isinstance(each, Mention) else Mention(*each) for each in mentions]
    bare = Document("toy", tuple(sentences), (), np.zeros(0, np.int64), (), Place("toy", 0))
    return bare.with_mentions(found, np.arange(len(found)) if clusters is None else np.array(clusters, np.int64))


def random_document(seed: int, sentences: int = 4, words: int = 8, mentions: int = 5) -> Document:
    """Anything that a document may have: nested mentions, those with gaps, several roots, speakers, types."""
    rng = np.random.default_rng(seed)
    made = [_random_sentence(rng, int(rng.integers(1, words + 1))) for _ in range(int(rng.integers(1, sentences + 1)))]
    spans: dict[tuple[int, Span], str] = {}
    for number, each in enumerate(made):
        for _ in range(int(rng.integers(0, mentions + 1))):
            first, last = sorted(rng.integers(1, len(each) + 1, 2).tolist())
            kept = [word for word in range(first, last + 1) if rng.random() < 0.9] or [first]
            spans[number, tuple(kept)] = str(rng.choice(["_", "person", "place"]))
    found = [Mention(*span, kind) for span, kind in spans.items()]
    return document(made, found, rng.integers(0, max(1, len(found)), len(found)).tolist())


def _random_sentence(rng: np.random.Generator, n: int) -> Sentence:
    heads, joined = [-1] * (n + 1), [0]
    for word in (1 + rng.permutation(n)).tolist():
        heads[word] = int(rng.choice(joined[1:] if len(joined) > 1 and rng.random() < 0.9 else joined))
        joined.append(word)
    forms = rng.choice(_FORMS, n).tolist()
    made = Sentence.from_words(
        forms,
        lemmas=[str(rng.choice(["_", form, form.lower().rstrip("s")])) for form in forms],
        upos=["PROPN" if form[-1] in "dsS" and rng.random() < 0.7 else str(rng.choice(_TAGS)) for form in forms],
        xpos=rng.choice(["_", "NN", "PRP"], n).tolist(),
        feats=rng.choice(_FEATS, n).tolist(),
        heads=heads,
        labels=[None, *rng.choice(_LABELS, n).tolist()],
    )
    return replace(made, layout=replace(made.layout, comments=_COMMENTS[int(rng.integers(len(_COMMENTS)))]))


def head_match_documents(seed: int, count: int, sentences: int = 8) -> list[Document]:
    """Documents of "the dog saw a cat": who has the same noun is the same."""
    rng = np.random.default_rng(seed)
    nouns = ("dog", "cat", "poet", "king", "child")
    found = []
    for _ in range(count):
        made, mentions, clusters = [], [], []
        for number in range(sentences):
            one, other = rng.choice(len(nouns), 2, replace=False).tolist()
            made.append(
                sentence(
                    f"{rng.choice(['the', 'a'])} DET 2 det",
                    f"{nouns[one]} NOUN 3 nsubj Number=Sing",
                    f"{rng.choice(['saw', 'met'])} VERB 0 root",
                    f"{rng.choice(['the', 'a'])} DET 5 det",
                    f"{nouns[other]} NOUN 3 obj Number=Sing",
                )
            )
            mentions += [(number, (1, 2)), (number, (4, 5))]
            clusters += [one, other]
        found.append(document(made, mentions, clusters))
    return found
