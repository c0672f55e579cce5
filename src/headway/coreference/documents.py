"""Documents with mentions and clusters: `Entity=` in CoNLL-U, read and written back.

`# newdoc id = NAME` starts a document; sentences before the first such comment form a document of their own, named "".
The comment `# global.Entity = eid-etype-...` (or `GRP-...`, as in GUM) names the fields of the marks, for its document
and for those that follow, until the next such comment. A cluster is the set of mentions with the same entity name in
one document. A mention is a set of words of one sentence. No two mentions of a document have the same words: the
metrics have to find each mention of one clustering in the other. Marks on multiword tokens and empty nodes are refused,
because these are not words.

Reading holds one document at a time and takes time linear in the file. Writing gives entities new names, 1, 2, ... in
the order of their first mentions. If the header says `eid`, they are e1, e2, ... and continue through the documents,
because eids are unique in a file. Everything else is kept, except references to entities by name (`Bridge=`,
`SplitAnte=` and GUM's comment `meta::salientEntities`): an old name becomes the name of the cluster that has all its
mentions. A reference is dropped if there is no such cluster, or if both its ends are now in the same one. The
antecedents in a `SplitAnte=` are kept or dropped together.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from headway.arrays import Ints
from headway.coreference.entity_marks import MarksError, Span, read_spans, write_spans
from headway.errors import ArgumentError, TreebankError
from headway.treebank import Place, Sentence, read_treebank, write_treebank
from headway.treebank.conll_reader import shown
from headway.treebank.sentence import IN_MEMORY
from headway.treebank.streams import PathOrStream

_NEW_DOCUMENT = re.compile(r"#\s*newdoc(?:\s+id\s*=(.*))?\s*")
_HEADER = re.compile(r"#\s*global\.Entity\s*=(.*)")
_SALIENT = re.compile(r"(#\s*meta::salientEntities\s*=\s*)(.*)")
_LINKS = ("Bridge", "SplitAnte")
_NAMES = ("eid", "GRP")  # what headers call the entity's name


@dataclass(frozen=True, slots=True)
class Mention:
    """Words of one sentence that refer to something.

    `sentence` counts from 0 in the document; `words` are word numbers of that sentence (1..n), ascending, not
    necessarily adjacent. `rest` has the fields of the mark after the entity's name; `type` is the entity type if the
    header names a field "etype", else "_".
    """

    sentence: int
    words: tuple[int, ...]
    type: str = "_"
    rest: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Document:
    """Sentences, the mentions in them, and the clusters of mentions.

    `mentions` are sorted by sentence, first word, last word (largest first), words. `clusters` (M,) gives each
    mention's cluster, numbered from 0 in the order of first mentions. `fields` are those of the header, if any.
    """

    name: str
    sentences: tuple[Sentence, ...]
    mentions: tuple[Mention, ...]
    clusters: Ints
    fields: tuple[str, ...]
    place: Place

    def __repr__(self) -> str:
        counts = f"{len(self.sentences)} sentences, {len(self.mentions)} mentions"
        return f"<Document {self.name!r} of {counts}: {self.place}>"

    @classmethod
    def from_sentences(cls, sentences: Iterable[Sentence], name: str = "") -> Document:
        """A document without mentions, such as a text that was parsed."""
        given = tuple(sentences)
        return cls(name, given, (), np.zeros(0, np.int64), (), given[0].place if given else IN_MEMORY)

    def with_clusters(self, clusters: ArrayLike) -> Document:
        """The same mentions in other clusters: one integer per mention, equal integers for the same cluster."""
        return replace(self, clusters=_renumbered(clusters, len(self.mentions)))

    def with_mentions(self, mentions: Iterable[Mention], clusters: ArrayLike) -> Document:
        """The same sentences with other mentions, in any order, and the cluster of each one."""
        given = tuple(mentions)
        numbers = _renumbered(clusters, len(given))
        for mention in given:
            self._require_mention(mention)
        order = sorted(range(len(given)), key=lambda i: _position(given[i]))
        found = tuple(given[i] for i in order)
        for one, other in pairwise(found):
            if _position(one) == _position(other):
                cause = f"{one} and {other} have the same words; give only one of them"
                raise self.sentences[one.sentence].place.error(cause)
        return replace(self, mentions=found, clusters=_renumbered(numbers[order], len(found)))

    def without_singletons(self) -> Document:
        """The document without the mentions that are alone in their clusters."""
        kept = np.flatnonzero(np.bincount(self.clusters)[self.clusters] > 1)
        mentions = tuple(self.mentions[i] for i in kept)
        return replace(self, mentions=mentions, clusters=_renumbered(self.clusters[kept], len(mentions)))

    def partition(self) -> list[frozenset[Hashable]]:
        """The clusters as sets of (sentence, words), as the metrics take them."""
        sets: list[set[Hashable]] = [set() for _ in range(int(self.clusters.max(initial=-1)) + 1)]
        for mention, cluster in zip(self.mentions, self.clusters.tolist(), strict=True):
            sets[cluster].add((mention.sentence, mention.words))
        return list(map(frozenset, sets))

    def _require_mention(self, mention: Mention) -> None:
        if not 0 <= mention.sentence < len(self.sentences):
            cause = f"{mention} is outside the document, which has sentences 0 to {len(self.sentences) - 1}"
            raise self.place.error(cause)
        sentence, words = self.sentences[mention.sentence], mention.words
        if not words or words[0] < 1 or words[-1] > len(sentence) or tuple(sorted(set(words))) != words:
            cause = f"{mention} does not consist of words 1 to {len(sentence)}; give each once, in ascending order"
            raise sentence.place.error(cause)
        if re.search(r"[()|\t\r\n]", mention.rest):
            cause = f"{mention} has a rest that no mark can hold; remove brackets, '|', tabs and line ends"
            raise sentence.place.error(cause)


def read_documents(
    source: PathOrStream, *, skip_bad: Callable[[TreebankError], None] | None = None
) -> Iterator[Document]:
    """The documents of a CoNLL-U file, one at a time; without marks they have no mentions.

    Malformed marks are a TreebankError. With `skip_bad`, the error is passed to that function instead, and the document
    is skipped. A line that is not CoNLL-U is always an error, because it might be one that starts a document.

    >>> import io
    >>> stream = io.StringIO("1\\tShe\\t_\\t_\\t_\\t_\\t_\\t_\\t_\\tEntity=(1)\\n")
    >>> [document.mentions for document in read_documents(stream)]
    [(Mention(sentence=0, words=(1,), type='_', rest=''),)]
    """
    fields: tuple[str, ...] = ()
    for name, sentences in _groups(read_treebank(source, format="conllu")):
        try:
            fields = _header(sentences) or fields
            document = _document(name, sentences, fields)
        except TreebankError as error:
            if skip_bad is None:
                raise
            skip_bad(error)
        else:
            yield document


def write_documents(documents: Iterable[Document], target: PathOrStream) -> None:
    """Write documents as CoNLL-U to a path (completely or not at all), a stream, or standard output ("-")."""
    write_treebank(_marked_sentences(documents), target, format="conllu")


def documents_checksum(documents: Iterable[Document]) -> str:
    """A checksum of words, trees, mentions and clusters; the names of the entities do not matter."""
    digest = hashlib.sha256()
    for document in documents:
        for sentence in document.sentences:
            digest.update(sentence.to_conllx().replace("\r\n", "\n").encode())
        spans = [(mention.sentence, mention.words) for mention in document.mentions]
        digest.update(repr((spans, document.clusters.tolist())).encode())
    return digest.hexdigest()[:16]


def _groups(sentences: Iterable[Sentence]) -> Iterator[tuple[str, tuple[Sentence, ...]]]:
    name = ""
    group: list[Sentence] = []
    for sentence in sentences:
        starts = [match for comment in sentence.layout.comments if (match := _NEW_DOCUMENT.fullmatch(comment))]
        if starts:
            if group:
                yield name, tuple(group)
            name, group = (starts[-1][1] or "").strip(), []
        group.append(sentence)
    if group:
        yield name, tuple(group)


def _document(name: str, sentences: tuple[Sentence, ...], fields: tuple[str, ...]) -> Document:
    type_field = fields.index("etype") - 1 if "etype" in fields else None
    found: list[tuple[Mention, str]] = []
    for number, sentence in enumerate(sentences):
        spans = _spans(sentence)
        found += (
            (Mention(number, span.words, _type(span.rest, type_field), span.rest), span.name)
            for span in sorted(spans, key=lambda span: _order(span.words))
        )
    number_of: dict[str, int] = {}
    clusters = [number_of.setdefault(entity, len(number_of)) for _, entity in found]
    mentions = tuple(mention for mention, _ in found)
    return Document(name, sentences, mentions, np.array(clusters, dtype=np.int64), fields, sentences[0].place)


def _header(sentences: Sequence[Sentence]) -> tuple[str, ...]:
    """The fields that the document's comments name, if any."""
    found: tuple[str, ...] = ()
    for sentence in sentences:
        for offset, comment in enumerate(sentence.layout.comments):
            match = _HEADER.fullmatch(comment)
            if match is None:
                continue
            header = match[1].strip()
            fields = tuple(header.split("-"))
            if fields[0] not in _NAMES or len(set(fields)) < len(fields) or "" in fields:
                cause = (
                    f"the fields of marks are {shown(header)}; expected 'eid' or 'GRP' first, then others, each once"
                )
                raise sentence.place.error(cause, offset)
            if found and fields != found:
                cause = "the fields of marks change inside a document; begin a new one ('# newdoc id = ...')"
                raise sentence.place.error(cause, offset)
            found = fields
    return found


def _spans(sentence: Sentence) -> list[Span]:
    """The mentions marked in a sentence, or an error that names the line."""
    if not _says_entity(sentence):
        return []
    _refuse_marks_without_word(sentence)
    try:
        spans = read_spans(_values(sentence.layout.misc))
        seen: dict[tuple[int, ...], str] = {}
        for span in spans:
            if span.words in seen:
                both = f"{shown(seen[span.words])} and {shown(span.name)}"
                raise MarksError(span.words[0], f"the same words are marked twice, as {both}; remove one of the two")
            seen[span.words] = span.name
    except MarksError as problem:
        raise _refused(sentence, problem) from None
    return spans


def _says_entity(sentence: Sentence) -> bool:
    layout = sentence.layout
    if layout.format != "conllu":  # in CoNLL-X the column is PDEPREL
        return False
    return any("Entity=" in misc for misc in layout.misc) or any("Entity=" in line for _, line in layout.extra_lines)


def _values(column: Iterable[str]) -> Iterator[tuple[int, str]]:
    for word, misc in enumerate(column, start=1):
        if "Entity=" not in misc:
            continue
        values = [item[7:] for item in misc.split("|") if item.startswith("Entity=")]
        if len(values) > 1:
            raise MarksError(word, "MISC has Entity= twice; write all marks of a word in one")
        yield from ((word, value) for value in values)


def _refuse_marks_without_word(sentence: Sentence) -> None:
    layout = sentence.layout
    for place, (words_before, line) in enumerate(layout.extra_lines):
        name, *_, misc = line.split("\t")
        if not any(item.startswith("Entity=") for item in misc.split("|")):
            continue
        kind, remedy = "an empty node", "remove it: mentions without a word are not supported"
        if "-" in name:
            kind, remedy = "a multiword token", "move it to the token's words"
        offset = len(layout.comments) + words_before + place
        raise sentence.place.error(f"{kind}, {name}, has Entity=; {remedy}", offset)


def _marked_sentences(documents: Iterable[Document]) -> Iterator[Sentence]:
    """The sentences of documents, with `Entity=` according to the clusters."""
    in_force: tuple[str, ...] = ()
    eids = 0
    for document in documents:
        fields = document.fields
        if not fields and document.mentions and not any(mention.rest for mention in document.mentions):
            fields = ("eid",)
        count = int(document.clusters.max(initial=-1)) + 1
        if fields[:1] == ("eid",):
            names = [f"e{number}" for number in range(eids + 1, eids + count + 1)]
            eids += count
        else:
            names = [str(number) for number in range(1, count + 1)]
        sentences = _marked(document, names)
        own = _header(sentences)
        if fields and not own and fields != in_force and sentences:
            sentences[0] = _with_header(sentences[0], fields)
        in_force = own or fields or in_force
        yield from sentences


def _marked(document: Document, names: Sequence[str]) -> list[Sentence]:
    spans: list[list[Span]] = [[] for _ in document.sentences]
    for mention, cluster in zip(document.mentions, document.clusters.tolist(), strict=True):
        spans[mention.sentence].append(Span(names[cluster], mention.words, mention.rest))
    refers = any(_refers_to_entities(sentence) for sentence in document.sentences)
    new_name = _new_names(document, names) if refers else {}
    return [_with_marks(*pair, new_name) for pair in zip(document.sentences, spans, strict=True)]


def _refers_to_entities(sentence: Sentence) -> bool:
    layout = sentence.layout
    links = any(key in misc for misc in layout.misc for key in _LINKS)
    return links or any(_SALIENT.fullmatch(comment) for comment in layout.comments)


def _new_names(document: Document, names: Sequence[str]) -> dict[str, str]:
    """The new name of each entity in the document's marks whose mentions are all in one cluster."""
    cluster_of = {
        (mention.sentence, mention.words): cluster
        for mention, cluster in zip(document.mentions, document.clusters.tolist(), strict=True)
    }
    found: dict[str, set[int]] = {}
    for number, sentence in enumerate(document.sentences):
        for span in _spans(sentence):
            found.setdefault(span.name, set()).add(cluster_of.get((number, span.words), -1))
    whole = {name: clusters.pop() for name, clusters in found.items() if len(clusters) == 1}
    return {name: names[cluster] for name, cluster in whole.items() if cluster >= 0}


def _with_marks(sentence: Sentence, spans: Sequence[Span], new_name: Mapping[str, str]) -> Sentence:
    """The sentence with marks for these spans and no others, and with references to the entities' new names."""
    layout = sentence.layout
    try:
        marks = write_spans(spans)
    except MarksError as problem:
        raise _refused(sentence, problem) from None
    absent = ("_",) * len(sentence)
    deps, misc = (layout.deps, layout.misc) if layout.format == "conllu" else (absent, absent)  # else PHEAD, PDEPREL
    misc = tuple(_with_entity(value, marks.get(word, ""), new_name) for word, value in enumerate(misc, start=1))
    comments = tuple(_with_salient(comment, new_name) for comment in layout.comments)
    if misc == layout.misc and comments == layout.comments:
        return sentence
    return replace(sentence, layout=replace(layout, format="conllu", comments=comments, deps=deps, misc=misc))


def _with_entity(misc: str, marks: str, new_name: Mapping[str, str]) -> str:
    """A word's MISC with these marks, where the old marks were, or else in alphabetical order."""
    if misc == "_":
        return f"Entity={marks}" if marks else "_"
    if not marks and "Entity=" not in misc and not any(key in misc for key in _LINKS):
        return misc
    items: list[str] = []
    pending = bool(marks)
    has_place = any(item.startswith("Entity=") for item in misc.split("|"))
    for item in misc.split("|"):
        key, _, value = item.partition("=")
        if pending and (key == "Entity" or (not has_place and key.lower() > "entity")):
            items.append(f"Entity={marks}")
            pending = False
        if key in _LINKS:
            links = _renamed_links(value, new_name, together=key == "SplitAnte")
            items += [f"{key}={links}"] if links else []
        elif key != "Entity":
            items.append(item)
    if pending:
        items.append(f"Entity={marks}")
    return "|".join(items) or "_"


def _renamed_links(value: str, new_name: Mapping[str, str], *, together: bool) -> str:
    """Links "A<B" or "A<B:relation", separated by commas, with the new names; "" if none is left."""
    kept: dict[str, str] = {}  # with the old name of B
    incomplete: set[str] = set()
    for link in value.split(","):
        source, _, rest = link.partition("<")
        target, colon, relation = rest.partition(":")
        names = new_name.get(source), new_name.get(target)
        renamed = f"{names[0]}<{names[1]}{colon}{relation}"
        if None in names or names[0] == names[1] or (together and renamed in kept):
            incomplete.add(target)
        else:
            kept[renamed] = target
    return ",".join(link for link, target in kept.items() if not (together and target in incomplete))


def _with_salient(comment: str, new_name: Mapping[str, str]) -> str:
    """GUM's list of salient entities, "NAME (count), ...", with the new names; other comments are unchanged."""
    match = _SALIENT.fullmatch(comment)
    if match is None:
        return comment
    entries = (entry.partition(" ") for entry in match[2].split(", "))
    return match[1] + ", ".join(new_name[name] + space + count for name, space, count in entries if name in new_name)


def _with_header(sentence: Sentence, fields: tuple[str, ...]) -> Sentence:
    """The sentence with the comment that names the fields, after the one that starts the document, or first."""
    comments = sentence.layout.comments
    place = next((i for i, comment in enumerate(comments, start=1) if _NEW_DOCUMENT.fullmatch(comment)), 0)
    header = f"# global.Entity = {'-'.join(fields)}"
    return replace(sentence, layout=replace(sentence.layout, comments=(*comments[:place], header, *comments[place:])))


def _renumbered(clusters: ArrayLike, count: int) -> Ints:
    """The clusters (count,) numbered from 0 in the order in which they first appear."""
    given = np.asarray(clusters)
    if given.shape != (count,) or (count and given.dtype.kind not in "iu"):
        raise ArgumentError(f"clusters is {given.dtype} of shape {given.shape}; expected {count} integers")
    _, first, inverse = np.unique(given, return_index=True, return_inverse=True)
    rank: Ints = np.argsort(np.argsort(first)).astype(np.int64)
    return rank[inverse]


def _type(rest: str, field: int | None) -> str:
    if field is None:
        return "_"
    values = rest.split("-", field + 1)
    return (values[field] if field < len(values) else "") or "_"


def _position(mention: Mention) -> tuple[int, int, int, tuple[int, ...]]:
    return (mention.sentence, *_order(mention.words))


def _order(words: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
    return words[0], -words[-1], words


def _refused(sentence: Sentence, problem: MarksError) -> TreebankError:
    """The error that names the line of the word that it is about."""
    layout, word = sentence.layout, problem.word
    before = sum(words_before < word for words_before, _ in layout.extra_lines)
    return sentence.place.error(str(problem), len(layout.comments) + before + word - 1)
