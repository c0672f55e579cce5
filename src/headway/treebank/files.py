"""Treebank files: sentences from a path, a stream or standard input, and back.

The name of a file gives its format: `.conllu` is CoNLL-U, `.conll` and `.conllx` are CoNLL-X, with or without a further
`.gz` or `.xz`. Any other name, a stream and "-" are read as CoNLL-U; `format=` overrides all of this. CoNLL-X need not
be recognised: read as CoNLL-U it gives the same words and trees, and only its last two columns are called DEPS and
MISC. Written to a stream, "-" or any other name, each sentence keeps the format it was read in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath

from headway.errors import ArgumentError, TreebankError
from headway.treebank.conll_reader import Block, blocks, parse_block
from headway.treebank.conll_writer import to_text
from headway.treebank.sentence import Format, Sentence
from headway.treebank.streams import READ_ERRORS, PathOrStream, name_of, open_source, open_target, require_stream

_FORMATS: dict[str, Format] = {".conllu": "conllu", ".conll": "conllx", ".conllx": "conllx"}


def read_treebank(
    source: PathOrStream,
    *,
    format: Format | None = None,
    skip_bad: Callable[[TreebankError], None] | None = None,
    partial: bool = False,
    trees: bool = True,
) -> Iterator[Sentence]:
    """The sentences of a treebank, one at a time, in flat memory.

    A malformed sentence raises a TreebankError. With `skip_bad`, that function is called with the error instead, and
    reading goes on after the next blank line; a file that cannot be read to its end is still an error.

    A sentence in which some words have a HEAD and others "_" is malformed, unless `partial`: the others then have the
    head -1, unknown. See `require_partial_tree`. Without `trees`, HEAD and DEPREL are left out, so that "_" may stand
    anywhere among them.

    >>> import io
    >>> stream = io.StringIO("1\\tGo\\tgo\\tVERB\\t_\\t_\\t0\\troot\\t_\\t_\\n")
    >>> [sentence.forms for sentence in read_treebank(stream)]
    [('Go',)]
    """
    _require_format(format)
    require_stream(source, "read")
    return _sentences(source, format or format_of(source) or "conllu", skip_bad, partial=partial, trees=trees)


def write_treebank(sentences: Iterable[Sentence], target: PathOrStream, *, format: Format | None = None) -> None:
    """Write sentences to a path (whole or not at all), a stream, or standard output ("-").

    >>> import io
    >>> stream = io.StringIO()
    >>> write_treebank([Sentence.from_words(["Go"], heads=[-1, 0], labels=[None, "root"])], stream)
    >>> stream.getvalue()
    '1\\tGo\\t_\\t_\\t_\\t_\\t0\\troot\\t_\\t_\\n\\n'
    """
    _require_format(format)
    require_stream(target, "write")
    chosen = format or format_of(target)
    if not isinstance(sentences, Iterable):
        raise ArgumentError(f"expected sentences, got {type(sentences).__name__}")
    with open_target(target) as write:
        for sentence in sentences:
            if not isinstance(sentence, Sentence):
                raise ArgumentError(f"expected sentences, got {type(sentence).__name__} among them")
            try:
                write(to_text(sentence, chosen or sentence.layout.format))
            except UnicodeEncodeError as error:
                shown = ascii(error.object[error.start : error.end])
                cause = f"the character {shown} cannot be written as {error.encoding}; replace it"
                raise sentence.place.error(cause) from None


def _sentences(
    source: PathOrStream,
    format: Format,
    skip_bad: Callable[[TreebankError], None] | None,
    **heads: bool,
) -> Iterator[Sentence]:
    name = name_of(source, "standard input")
    for block in _blocks(source, name):
        try:
            sentence = parse_block(block, name, format, **heads)
        except TreebankError as error:
            if skip_bad is None:
                raise
            skip_bad(error)
        else:
            yield sentence


def _blocks(source: PathOrStream, name: str) -> Iterator[Block]:
    line = 1
    try:
        with open_source(source) as stream:
            for block in blocks(stream):
                line = block.line
                yield block
    except READ_ERRORS as error:
        cause = f"the data break off in or after this sentence ({error}); get a complete copy"
        raise TreebankError(cause, name, line) from None


def _require_format(format: str | None) -> None:
    if format is not None and format not in _FORMATS.values():
        raise ArgumentError(f"format is {format!r}; expected 'conllu' or 'conllx'")


def format_of(place: PathOrStream) -> Format | None:
    """The format that the name of a file, or of an open file, stands for; None if for none."""
    path = PurePath(name_of(place, ""))
    if path.suffix.lower() in (".gz", ".xz"):
        path = path.with_suffix("")
    return _FORMATS.get(path.suffix.lower())
