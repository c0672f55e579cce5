"""Headway as a component of spaCy pipelines: the extra `spacy`.

```python
nlp = spacy.blank("en")
nlp.add_pipe("headway", config={"model": "en"})       # or the path of a saved parser
for token in nlp("Dogs bark."):
    print(token, token.dep_, token.head, token._.arc_probability, token._.label_probability)
```

Sets heads, labels and sentence starts, and, where the doc has none and the parser has a tagger, tags, morphology and
lemmas; `token._.arc_probability` (of the token's head, whatever the label) and `token._.label_probability` (of the
label, given the head), None for white space and where the model has none. `doc.noun_chunks` follows UD labels
(`headway.noun_chunks`).

*Words.* spaCy's tokens are the parser's words. White space, which spaCy keeps as tokens, is left out, and hangs from
the token before it, as in spaCy's own parses. The root's label is spaCy's `ROOT`, and it is its own head.

*Sentences.* Those of the doc, where a component before this one found some; else those that the parser finds; else
the doc is one sentence, which takes cubic time: put `sentencizer` before.

*Saving.* A model that is not there is refused when the component is added. One given by name is remembered by name; one
given by path is saved within the pipeline, whose meta data say so: on another machine nobody looks for the path. Models
are loaded when first used.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import srsly  # type: ignore[import-untyped]
from numpy.typing import NDArray
from spacy.language import Language
from spacy.parts_of_speech import IDS as UNIVERSAL_TAGS  # type: ignore[import-not-found]
from spacy.pipeline import Pipe
from spacy.pipeline.dep_parser import parser_score  # type: ignore[import-not-found]
from spacy.tokens import Doc, Token
from spacy.training import Example

from headway.errors import ArchiveError
from headway.named_models import is_name, path_of_model
from headway.noun_chunks import OTHER_LABELS, noun_chunks
from headway.parallel import executor_for

if TYPE_CHECKING:  # spaCy imports the factories of all packages at hand: this one must cost nothing until it is used
    from headway.parsed import Parsed
    from headway.pipeline import Parser
    from headway.treebank import Sentence

_Tree = tuple[Sequence[int], "Parsed"]  # the tokens that are its words, and the tree

_SETTINGS, _MODEL = "headway.json", "model.headway"
_NO_LABEL = "dep"  # what spaCy's parsers say of white space, and UD of an arc it cannot name

_SAVED_MODELS = "headway_models"  # in a pipeline's meta data: the paths of models that are saved within

for _name in ("arc_probability", "label_probability"):
    if not Token.has_extension(_name):
        Token.set_extension(_name, default=None)


@Language.factory(
    "headway",
    assigns=[
        "token.head",
        "token.dep",
        "token.is_sent_start",
        "doc.sents",
        "token._.arc_probability",
        "token._.label_probability",
    ],
    default_config={"model": "en", "threads": 1, "exact": True, "set_tags": True},
)
def create(nlp: Language, name: str, model: str, threads: int, exact: bool, set_tags: bool) -> HeadwayParser:
    """The factory behind `nlp.add_pipe("headway")`. What cannot be used is refused here, not at the first doc."""
    executor_for(threads)
    _require_model(nlp, model)
    if nlp.lang in OTHER_LABELS or nlp.vocab.get_noun_chunks is None:
        nlp.vocab.get_noun_chunks = noun_chunks  # type: ignore[assignment]  # its stubs promise spans, its code numbers
    return HeadwayParser(name, ComponentSettings(model, threads, exact, set_tags))


def _require_model(nlp: Language, model: str) -> None:
    """Refuse a model that is not there, unless the pipeline brings it."""
    if is_name(model):
        path_of_model(model)  # its error says what there is
        return
    saved = nlp.meta.setdefault(_SAVED_MODELS, [])
    if model in saved:
        return
    if not Path(model).is_file():
        _load(model)  # its error says what there is
    saved.append(model)


@dataclass(frozen=True)
class ComponentSettings:
    """The component's config: the name or path of the model, and how it is used.

    `exact` is for higher-order models: every tree proved to be the best. `set_tags`: tags where the doc has none.
    """

    model: str = "en"
    threads: int = 1
    exact: bool = True
    set_tags: bool = True


class HeadwayParser(Pipe):
    """The component; `parser` is the `headway.Parser` it uses."""

    def __init__(self, name: str, settings: ComponentSettings, parser: Parser | None = None) -> None:
        self.name = name
        self.settings = settings
        self._parser = parser

    def __reduce__(self) -> tuple[Any, ...]:
        return HeadwayParser, (self.name, self.settings, self._parser)

    @property
    def parser(self) -> Parser:
        """Loaded when first used."""
        if self._parser is None:
            self._parser = _load(self.settings.model)
        return self._parser

    def __call__(self, doc: Doc) -> Doc:
        """Parse one doc, in place."""
        self._parse([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Parse docs in place, `batch_size` at once; they come in the order they went in."""
        failed = self.get_error_handler()
        stream = iter(stream)
        while docs := list(islice(stream, batch_size)):
            try:
                self._parse(docs)
            except Exception as error:  # whatever it is: the pipeline's own handler decides
                failed(self.name, self, docs, error)
            else:
                yield from docs

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, float | dict[str, float]]:
        """What `nlp.evaluate` and `spacy evaluate` report of parsers."""
        scores: dict[str, float | dict[str, float]] = parser_score(list(examples), **kwargs)
        return scores

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write a folder with the settings and, unless the model has a name, the model."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        named = is_name(self.settings.model)
        srsly.write_json(folder / _SETTINGS, asdict(self.settings if named else replace(self.settings, model=_MODEL)))
        if not named:
            self.parser.save(folder / _MODEL)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> HeadwayParser:
        """Become what `to_disk` wrote."""
        folder = Path(path)
        try:
            self.settings = ComponentSettings(**srsly.read_json(folder / _SETTINGS))
        except (OSError, ValueError, TypeError):
            raise ArchiveError(
                f"{folder}: no saved headway component, or a damaged one; save the pipeline again"
            ) from None
        saved = folder / _MODEL
        self._parser = _load(saved) if saved.exists() else None
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """What `to_disk` writes, as bytes."""
        with TemporaryDirectory() as folder:
            self.to_disk(folder)
            files = {file.name: file.read_bytes() for file in sorted(Path(folder).iterdir())}
        packed: bytes = srsly.msgpack_dumps(files)
        return packed

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> HeadwayParser:
        """Become what `to_bytes` gave."""
        try:
            files = srsly.msgpack_loads(data)
            contents = {name: files[name] for name in (_SETTINGS, _MODEL) if name in files}
        except (ValueError, TypeError):
            raise ArchiveError("these bytes are no saved headway component, or a damaged one; save it again") from None
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # the model may still be mapped into memory
            for name, content in contents.items():
                (Path(folder) / name).write_bytes(content)
            return self.from_disk(folder)

    def _parse(self, docs: Sequence[Doc]) -> None:
        """One stream of sentences through the parser, given back to the docs they are from."""
        parser, settings = self.parser, self.settings
        texts = [_Text.of(doc, parser) for doc in docs]
        sentences = (_sentence(text, words) for text in texts for words in text.words())
        parsed = parser.parse_each(sentences, exact=settings.exact, threads=settings.threads)
        for text in texts:
            starts, trees = list(text.starts), list[_Tree]()
            for words in text.words():
                own = list(_with_words(words, next(parsed)))
                starts += [part[0] for part, _ in own[1:]]
                trees += own
            if len(text.doc):
                _set_tags(text.doc, trees, settings.set_tags and parser.gives_tags)
                _set_trees(text.doc, _ranges(starts, len(text.doc)), trees)


def _load(model: str | Path) -> Parser:
    from headway.pipeline import Parser

    return Parser.load(model)


@dataclass(frozen=True)
class _Text:
    """A doc; the tokens that its sentences, or drafts of them, begin with; joints by the character they are behind."""

    doc: Doc
    starts: tuple[int, ...]
    joints: Mapping[int, tuple[int, int]]

    @classmethod
    def of(cls, doc: Doc, parser: Parser) -> _Text:
        """A doc with its own sentences, if it has any; otherwise the parser splits it."""
        if doc.has_annotation("SENT_START"):
            return cls(doc, tuple(sentence.start for sentence in doc.sents), {})
        if parser.segmenter is None:
            return cls(doc, (), {})
        drafts = parser.drafts(doc.text)
        return cls(doc, tuple(_first_tokens(doc, drafts[1:])), _joints(drafts))  # white space may precede the first

    def words(self) -> Iterator[list[int]]:
        """The tokens of each sentence that are words; sentences of white space alone are left out."""
        for tokens in _ranges(self.starts, len(self.doc)):
            words = [i for i in tokens if self.doc[i].text.strip()]
            if words:
                yield words


def _ranges(starts: Iterable[int], end: int) -> list[range]:
    """The tokens of each sentence, white space included."""
    return [range(first, next_first) for first, next_first in pairwise(sorted({0, *starts, end}))]


def _joints(drafts: Sequence[Sentence]) -> dict[int, tuple[int, int]]:
    """Score and gap of every joint, by the character that it is behind."""
    from headway.treebank.annotations import offsets_of

    found: dict[int, tuple[int, int]] = {}
    for draft in drafts:
        if draft.layout.joints is not None:
            ends = (end for _, end in offsets_of(draft) or ())
            found |= zip(ends, zip(*draft.layout.joints, strict=True), strict=True)
    return found


def _with_words(words: Sequence[int], trees: Sequence[Parsed]) -> Iterator[_Tree]:
    """The trees of a draft's words, each with its own."""
    start = 0
    for tree in trees:
        yield words[start : start + len(tree)], tree
        start += len(tree)


def _first_tokens(doc: Doc, sentences: Sequence[Sentence]) -> list[int]:
    """The tokens that sentences of the doc's text begin with: for one that begins within a token, the next."""
    from headway.treebank.annotations import offsets_of

    words = [token.i for token in doc if not token.is_space]
    characters = [doc[i].idx for i in words]
    starts = []
    for sentence in sentences:
        offsets = offsets_of(sentence)
        place = bisect_left(characters, offsets[0][0]) if offsets else len(words)
        starts += words[place : place + 1]
    return starts


def _sentence(text: _Text, words: Sequence[int]) -> Sentence:
    """The words as a sentence of Headway, with what the doc knows about them, or as a draft."""
    from headway.treebank import Sentence
    from headway.treebank.annotations import NO_JOINT, Joints

    tokens = [text.doc[i] for i in words]
    made = Sentence.from_words(
        [_column(token.text) for token in tokens],
        lemmas=[_column(token.lemma_) for token in tokens],
        upos=[_column(token.pos_) for token in tokens],
        xpos=[_column(token.tag_) for token in tokens],
        feats=[_column(str(token.morph)) for token in tokens],
    )
    ends = [token.idx + len(token.text) for token in tokens]
    if not any(end in text.joints for end in ends):
        return made
    known = (text.joints.get(end, (NO_JOINT, -1)) for end in ends)
    return replace(made, layout=replace(made.layout, joints=Joints(*zip(*known, strict=True))))


def _column(text: str) -> str:
    """Without the tabs and line ends that a tokenizer may have left in; "_" for nothing."""
    return " ".join(text.split()) or "_"


def _set_tags(doc: Doc, trees: Iterable[_Tree], wanted: bool) -> None:
    """The parser's tags where the doc has none. Only universal tags and features with values have a place in spaCy."""
    columns = ("POS", "TAG", "MORPH", "LEMMA")
    upos, xpos, feats, lemmas = (wanted and not doc.has_annotation(column) for column in columns)
    for words, parsed in trees:
        sentence = parsed.sentence
        for k, i in enumerate(words):
            token = doc[i]
            if upos and sentence.upos[k] in UNIVERSAL_TAGS:
                token.pos_ = sentence.upos[k]
            if xpos and sentence.xpos[k] != "_":
                token.tag_ = sentence.xpos[k]
            if lemmas and sentence.lemmas[k] != "_":
                token.lemma_ = sentence.lemmas[k]
            if feats and all("=" in feature for feature in sentence.feats[k].split("|")):
                token.set_morph(sentence.feats[k])  # type: ignore[attr-defined]  # missing in spaCy's stubs
    for token in doc:
        if token.is_space and upos:
            token.pos_ = "SPACE"
        if token.is_space and xpos:
            token.tag_ = "_SP"


def _set_trees(doc: Doc, sentences: Sequence[range], trees: Iterable[_Tree]) -> None:
    """Heads, labels, probabilities and sentence starts."""
    n, strings = len(doc), doc.vocab.strings
    heads, labels, words_at = np.arange(n), np.full(n, strings.add(_NO_LABEL), np.uint64), np.zeros(n, bool)
    root = strings.add("ROOT")
    for words, parsed in trees:
        nodes, probabilities, shares = np.array(words), parsed.confidence.arcs, parsed.label_probabilities
        words_at[nodes] = True
        for k, i in enumerate(words, start=1):
            head, label = parsed.heads[k], parsed.labels[k]
            heads[i] = nodes[head - 1] if head else i
            labels[i] = root if head == 0 else strings.add(label if label not in (None, "_") else _NO_LABEL)
            doc[i]._.arc_probability = float(probabilities[k])
            doc[i]._.label_probability = None if shares is None else float(shares[k])
    starts = np.full(n, -1)
    for tokens in sentences:
        starts[tokens.start] = 1
        first = next((i for i in tokens if words_at[i]), tokens.start)
        for i in tokens:
            if not words_at[i] and i != first:
                heads[i] = i - 1 if i > first else first
        if not words_at[first]:
            labels[first] = root
    relative = (heads - np.arange(n)).astype(np.uint64)  # spaCy's own form: signed numbers in unsigned cells
    _set_columns(doc, ["HEAD", "DEP"], relative, labels)
    # Once more: from heads alone spaCy takes every root to begin a sentence, and loses some where arcs cross.
    _set_columns(doc, ["SENT_START"], starts.astype(np.uint64))


def _set_columns(doc: Doc, names: list[int | str], *columns: NDArray[np.uint64]) -> None:
    doc.from_array(names, np.stack(columns, axis=1))  # type: ignore[arg-type]  # its stubs want an array of thinc's
