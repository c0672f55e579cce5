"""Raw text: the text behind a treebank's sentences, sentences made from text, and text files read in flat memory.

`raw_text` puts the forms together again: a space after every token unless MISC says SpaceAfter=No, a blank line before
a sentence whose comments say `# newpar` or `# newdoc`. The form of a multiword token counts, not its words.

The readers hold a bounded piece of a file, however large it is and however long its lines are. Text is UTF-8, a byte
order mark is skipped, lines end in LF, CRLF or CR, and gzip and xz are recognised by their first bytes. Offsets count
the characters of the text as it stands (a CRLF is two), without the byte order mark.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.errors import TreebankError
from headway.treebank.annotations import Offsets, multiword_tokens, space_after, starts_paragraph
from headway.treebank.sentence import IN_MEMORY, Layout, Place, Sentence
from headway.treebank.streams import READ_ERRORS, PathOrStream, name_of, open_source

NOTHING, WORD, TOKEN, SENTENCE = range(4)  # what ends after a character
Newlines = Literal["auto", "keep", "ignore"]  # a single line end: a sentence's end if it looks like one, always, never

LONGEST_PARAGRAPH = 1 << 16  # characters; a longer one is cut
LONGEST_LINE = 1 << 20  # characters of one sentence on a line

_CLOSING = frozenset([".", ",", ";", ":", "!", "?", ")", "]", "}", "...", "%", "''", "\u201d", "\u00bb"])
_OPENING = frozenset(["(", "[", "{", "``", "\u201c", "\u00ab"])
_BYTES = 1 << 16  # read at a time
_BLANK_LINE = re.compile(r"(?:\r\n|\n|\r(?!\n))[^\S\r\n]*(?:\r\n|\n|\r)\s*|\u2029\s*")
_LINE_END = re.compile(r"\r\n|\n|\r(?!\Z)")
_LAST_STOP = re.compile(r".*[.!?]\s", re.DOTALL)
_LAST_SPACE = re.compile(r".*\s", re.DOTALL)
_TOKEN = re.compile(r"[^ \t\r\n\f\v]+")


@dataclass(frozen=True, slots=True, eq=False)
class RawText:
    """Text, and for each character what ends after it: NOTHING, a WORD inside a token, a TOKEN or a SENTENCE."""

    text: str
    ends: NDArray[np.int8]


class Token(NamedTuple):
    """A token of a sentence: its form, its words (one, unless it is a multiword token), and whether a space follows."""

    form: str
    words: tuple[str, ...]
    space_after: bool

    def cuts(self) -> tuple[int, ...] | None:
        """Where inside the form each word but the last ends; None if the words are not pieces of the form.

        A hyphen between two words may belong to neither, as in Portuguese.

        >>> Token("don't", ("do", "n't"), True).cuts(), Token("trata-se", ("trata", "se"), True).cuts()
        ((2,), (5,))
        >>> Token("do", ("de", "o"), True).cuts() is None
        True
        """
        place, cuts = 0, []
        for word in self.words:
            if place and not self.form.startswith(word, place) and self.form.startswith("-", place):
                place += 1
            if not self.form.startswith(word, place):
                return None
            place += len(word)
            cuts.append(place)
        return tuple(cuts[:-1]) if place == len(self.form) else None


def tokens_of(sentence: Sentence) -> Iterator[Token]:
    """The tokens of a sentence in order.

    >>> [token.form for token in tokens_of(Sentence.from_words(["Dogs", "bark"]))]
    ['Dogs', 'bark']
    """
    forms, column = sentence.forms, sentence.layout.misc
    multiword = {first - 1: (last, form, misc) for first, last, form, misc in multiword_tokens(sentence)}
    m = 0
    while m < len(forms):
        end, form, misc = multiword.get(m) or (m + 1, forms[m], column[m])
        yield Token(form, forms[m:end], space_after(misc))
        m = end


def sentence_from_tokens(
    tokens: Iterable[tuple[str, tuple[str, ...], bool]], offsets: Offsets | None, place: Place = IN_MEMORY
) -> Sentence:
    """A sentence made from text: its tokens (form, words, space after), and where each word begins and ends there.

    >>> tokens = ("don't", ("do", "n't"), True), ("go", ("go",), False), (".", (".",), False)
    >>> print(sentence_from_tokens(tokens, ((0, 2), (2, 5), (6, 8), (8, 9))).to_conllu().replace("\\t", " "))
    # text = don't go.
    1-2 don't _ _ _ _ _ _ _ TokenRange=0:5
    1 do _ _ _ _ _ _ _ TokenRange=0:2
    2 n't _ _ _ _ _ _ _ TokenRange=2:5
    3 go _ _ _ _ _ _ _ SpaceAfter=No|TokenRange=6:8
    4 . _ _ _ _ _ _ _ SpaceAfter=No|TokenRange=8:9
    """
    forms: list[str] = []
    misc: list[str] = []
    extra_lines: list[tuple[int, str]] = []
    text = ""
    for form, words, space in tokens:
        column = "_" if space else "SpaceAfter=No"
        text += f"{form} " if space else form
        if len(words) == 1:
            misc.append(column)
        else:
            before = len(forms)
            extra_lines.append((before, f"{before + 1}-{before + len(words)}\t{form}" + "\t_" * 7 + f"\t{column}"))
            misc += ["_"] * len(words)
        forms += words
    absent = ("_",) * len(forms)
    comments = (f"# text = {text.removesuffix(' ')}",)
    layout = Layout("conllu", comments, tuple(extra_lines), absent, tuple(misc), "\n", offsets)
    return Sentence(tuple(forms), absent, absent, absent, absent, None, None, layout, place)


def ends_of(draft: Sentence) -> list[int]:
    """The words of a draft after which its splitter thinks that a sentence ends, but the last; none of a sentence."""
    scores = draft.layout.joints.scores[:-1] if draft.layout.joints else ()
    return [word for word, score in enumerate(scores, start=1) if score > 0]


def pieces_of(draft: Sentence, ends: Sequence[int]) -> list[Sentence]:
    """A draft as sentences that end after these of its words, and after the last; the first has the draft's comments.

    >>> tokens = ("Go", ("Go",), True), ("don't", ("do", "n't"), True)
    >>> draft = sentence_from_tokens(tokens, ((0, 2), (3, 5), (5, 8)))
    >>> [(piece.forms, piece.layout.offsets, piece.layout.comments) for piece in pieces_of(draft, [1])]
    [(('Go',), ((0, 2),), ('# text = Go',)), (('do', "n't"), ((3, 5), (5, 8)), ("# text = don't",))]
    """
    if not ends:
        known = draft.layout.joints is not None
        return [replace(draft, layout=replace(draft.layout, joints=None)) if known else draft]
    comments = [line for line in draft.layout.comments if not line.startswith("# text =")]
    tokens, found, start = tokens_of(draft), [], 0
    for stop in (*ends, len(draft)):
        own, words = [], start
        while words < stop:
            own.append(next(tokens))
            words += len(own[-1].words)
        offsets = None if draft.layout.offsets is None else draft.layout.offsets[start:stop]
        made = sentence_from_tokens(own, offsets, draft.place)
        columns = {name: getattr(draft, name)[start:stop] for name in ("lemmas", "upos", "xpos", "feats")}
        layout = replace(made.layout, comments=(*comments, *made.layout.comments))
        found.append(replace(made, **columns, layout=layout))
        start, comments = stop, []
    return found


def raw_text(sentences: Iterable[Sentence], *, guess_spaces: bool = False) -> RawText:
    """The text behind the sentences of a treebank, in their order.

    A treebank that never says SpaceAfter=No (CoNLL-X has no place for it) would have a space before every full stop.
    With `guess_spaces`, there is none before closing and after opening marks, as in most scripts.

    >>> text = raw_text([Sentence.from_words(["Dogs", "bark"]), Sentence.from_words(["Yes"])])
    >>> text.text, text.ends.tolist()
    ('Dogs bark Yes', [0, 0, 0, 2, 0, 0, 0, 0, 3, 0, 0, 0, 3])
    """
    pieces: list[str] = []
    marks: list[tuple[int, int]] = []
    length = 0
    opened = False
    gap = ""  # between the token before and the next
    for sentence in sentences:
        if length and starts_paragraph(sentence):
            gap = "\n\n"
        for token in tokens_of(sentence):
            if guess_spaces and (token.form in _CLOSING or opened) and gap == " ":
                gap = ""
            opened = token.form in _OPENING
            length += len(gap)
            marks += [(length + cut - 1, WORD) for cut in token.cuts() or ()]
            pieces += gap, token.form
            length += len(token.form)
            marks.append((length - 1, TOKEN))
            gap = " " if token.space_after else ""
        if len(sentence):
            marks[-1] = (length - 1, SENTENCE)
    ends = np.zeros(length, np.int8)
    for place, mark in marks:
        ends[place] = mark
    return RawText("".join(pieces), ends)


def paragraphs(source: PathOrStream) -> Iterator[tuple[int, str]]:
    """The paragraphs of a text file or stream, each with the offset of its first character.

    A blank line ends a paragraph. One of more than LONGEST_PARAGRAPH characters is cut: after white space behind a
    full stop, question or exclamation mark where there is one in its second half, else at white space, else anywhere.

    >>> import io
    >>> list(paragraphs(io.StringIO("Dogs bark.\\n\\nCats\\nsleep.\\n")))
    [(0, 'Dogs bark.'), (12, 'Cats\\nsleep.')]
    """
    return split_paragraphs(_decoded(source))


def split_paragraphs(pieces: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The paragraphs of a text that comes in pieces, as `paragraphs` gives them."""
    pending, offset = "", 0
    for piece in pieces:
        searched = max(0, len(pending.rstrip()) - 1)  # a blank line may have begun in what was read before
        pending += piece
        start = 0
        # A blank line at the very end may go on in what is still to be read.
        while (match := _BLANK_LINE.search(pending, max(start, searched))) and match.end() < len(pending):
            yield from _bounded(pending[start : match.start()], offset + start)
            start = match.end()
        while len(pending) - start > LONGEST_PARAGRAPH:
            end = start + _cut(pending[start : start + LONGEST_PARAGRAPH])
            yield from _trimmed(pending[start:end], offset + start)
            start = end
        pending, offset = pending[start:], offset + start
    start = 0
    for match in _BLANK_LINE.finditer(pending):
        yield from _bounded(pending[start : match.start()], offset + start)
        start = match.end()
    yield from _bounded(pending[start:], offset + start)


def one_sentence_per_line(source: PathOrStream) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, each with the offset of its first character that is not white space.

    >>> import io
    >>> list(one_sentence_per_line(io.StringIO("Dogs bark.\\nCats sleep.\\n")))
    [(0, 'Dogs bark.'), (11, 'Cats sleep.')]
    """
    for _, offset, line in _lines(source):
        yield from _trimmed(line, offset)


def pretokenised(source: PathOrStream) -> Iterator[Sentence]:
    """One sentence per line, its tokens separated by spaces or tabs; their offsets are known.

    >>> import io
    >>> [sentence.forms for sentence in pretokenised(io.StringIO("Dogs bark .\\n"))]
    [('Dogs', 'bark', '.')]
    """
    name = name_of(source, "standard input")
    for number, offset, line in _lines(source):
        words = list(_TOKEN.finditer(line))
        if words:
            tokens = ((word[0], (word[0],), True) for word in words)
            offsets = tuple((offset + word.start(), offset + word.end()) for word in words)
            yield sentence_from_tokens(tokens, offsets, Place(name, number))


def _lines(source: PathOrStream) -> Iterator[tuple[int, int, str]]:
    """Number, offset and text of every line."""
    name = name_of(source, "standard input")
    pending, offset, number = "", 0, 1
    for piece in _decoded(source):
        pending += piece
        start = 0
        for match in _LINE_END.finditer(pending):
            yield number, offset + start, pending[start : match.start()]
            start = match.end()
            number += 1
        pending, offset = pending[start:], offset + start
        if len(pending) > LONGEST_LINE:
            cause = f"the line has more than {LONGEST_LINE:,} characters; put one sentence on each line"
            raise TreebankError(cause, name, number)
    if pending:
        yield number, offset, pending


def _trimmed(text: str, offset: int) -> Iterator[tuple[int, str]]:
    """The text without white space around it, if anything is left."""
    if stripped := text.strip():
        yield offset + len(text) - len(text.lstrip()), stripped


def _bounded(text: str, offset: int) -> Iterator[tuple[int, str]]:
    """A paragraph, cut where it is too long."""
    start = 0
    while len(text) - start > LONGEST_PARAGRAPH:
        end = start + _cut(text[start : start + LONGEST_PARAGRAPH])
        yield from _trimmed(text[start:end], offset + start)
        start = end
    yield from _trimmed(text[start:], offset + start)


def _cut(text: str) -> int:
    """Where to cut a paragraph that is too long."""
    for pattern in (_LAST_STOP, _LAST_SPACE):
        if match := pattern.match(text, len(text) // 2):
            return match.end()
    return len(text)


def _decoded(source: PathOrStream) -> Iterator[str]:
    """The text piece by piece, as soon as there is some."""
    name = name_of(source, "standard input")
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    line, read = 1, 0
    try:
        with open_source(source) as stream:
            for piece in chain(iter(partial(stream.read1, _BYTES), b""), [b""]):
                held = decoder.getstate()[0]  # the start of a character whose end is in this piece
                try:
                    text = decoder.decode(piece, final=not piece)
                except UnicodeDecodeError as error:
                    raise _not_utf8(error, name, line, read - len(held)) from None
                read += len(piece)
                line += piece.count(b"\n")
                if text:
                    yield text
    except READ_ERRORS as error:
        raise TreebankError(f"the data break off after this line ({error}); get a complete copy", name, line) from None


def _not_utf8(error: UnicodeDecodeError, name: str, line: int, start: int) -> TreebankError:
    data: bytes = error.object
    where = f"byte {start + error.start + 1}"
    cause = f"0x{data[error.start]:02x} at {where} is not valid UTF-8; save the file as UTF-8"
    return TreebankError(cause, name, line + data.count(b"\n", 0, error.start))
