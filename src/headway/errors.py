"""Every exception Headway raises on purpose; each message says the cause and, where there is one, the remedy."""

from __future__ import annotations

_JOINERS = "\u200c\u200d"  # not printable, but part of how words are spelt


def printable(text: str) -> str:
    """Text from a file or a user, made safe for a terminal: control characters are escaped, line ends among them.

    >>> print(printable("Zoë\\x1b[2J"))
    Zoë\\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _JOINERS else ascii(c)[1:-1] for c in text)


class HeadwayError(Exception):
    r"""Anything that went wrong and that Headway can name.

    Messages quote files and names of files. Whatever could steer a terminal, or break the line, is shown escaped.

    >>> print(HeadwayError("the word is \x1b[2Jnaïve"))
    the word is \x1b[2Jnaïve
    """

    def __str__(self) -> str:
        return printable(super().__str__())


class ArgumentError(HeadwayError, ValueError, TypeError):
    """An argument that a function cannot work with: a count below 1, say, or something that is no sentence."""


class MissingExtraError(HeadwayError):
    """A package that is not installed, or cannot be imported."""


class ScoresError(HeadwayError, ValueError):
    """A score no distribution can be built from: nan, +inf, or too large to be summed."""


class ShapeError(ScoresError):
    """An array whose shape fits no layout of the conventions."""


class DtypeError(ScoresError, TypeError):
    """An array that does not hold real numbers."""


class LengthsError(ScoresError):
    """Sentence lengths that do not fit the padded batch."""


class HeadsError(HeadwayError, ValueError):
    """A `heads` array that does not describe a choice of heads."""


class ArcError(HeadwayError, ValueError):
    """An arc, or a set of arcs, that no tree can have."""


class SizeError(HeadwayError, ValueError):
    """A result too large to be held in memory."""


class PrecisionError(HeadwayError, ArithmeticError):
    """A result that float64 cannot hold, or not with any digits that mean something."""


class NoTreeError(HeadwayError, ValueError):
    """No tree of the requested class avoids the forbidden arcs.

    `words` are the words to look at; `sentence` is the position in the batch, None for one matrix; `place` says where
    the sentence stands in a file.
    """

    def __init__(
        self, cause: str, words: tuple[int, ...], sentence: int | None = None, *, place: str | None = None
    ) -> None:
        where = place or (None if sentence is None else f"sentence {sentence}")
        super().__init__(f"{f'{where}: ' if where else ''}no tree exists: {cause}")
        self.words = words
        self.sentence = sentence


class TemplateError(HeadwayError, ValueError):
    """A feature template that cannot be read."""


class RulesError(HeadwayError, ValueError):
    """A rule about arcs, or a file of rules, that cannot be used: "FILE, line N: cause; remedy".

    `source` is the name of the file, `line` the line to look at; None where there is no such thing.
    """

    def __init__(self, cause: str, source: str | None = None, line: int | None = None) -> None:
        place = ", line ".join(str(part) for part in (source, line) if part is not None)
        super().__init__(f"{place}: {cause}" if place else cause)
        self.source = source
        self.line = line


class EvaluationError(HeadwayError, ValueError):
    """Two treebanks, or two arrays, that cannot be compared with each other."""


class TreebankError(HeadwayError, ValueError):
    """A treebank that cannot be read or written as it stands: "FILE, line N: cause; remedy".

    `source` is the name of the file or stream, `line` the line to look at; None where there is no such thing.
    """

    def __init__(self, cause: str, source: str | None = None, line: int | None = None) -> None:
        place = ", line ".join(str(part) for part in (source, line) if part is not None)
        super().__init__(f"{place}: {cause}" if place else cause)
        self.source = source
        self.line = line

    @classmethod
    def unopened(cls, name: str, cause: str | None, advice: str = "check its name") -> TreebankError:
        """Of a file that the system does not open.

        >>> print(TreebankError.unopened("a.conllu", "Is a directory"))
        a.conllu: the file cannot be opened (Is a directory); check its name
        """
        if not name:  # an unset variable of a shell
            return cls("expected the path of a file, got an empty text")
        return cls(f"the file cannot be opened ({cause}); {advice}", name)


class ArchiveError(HeadwayError, ValueError):
    """A model or checkpoint file that cannot be read or written."""


class MissingFileError(ArchiveError):
    """A model or checkpoint file that does not exist."""


class CheckpointError(ArchiveError):
    """A checkpoint that training cannot resume from, as it is damaged or of another training."""


class TrainingError(HeadwayError, ValueError):
    """Training data or settings no model can be trained from."""


class WorkerError(HeadwayError, RuntimeError):
    """Work that was given to another process or machine, and that could not be done there."""


class CorpusError(HeadwayError):
    """A corpus that cannot be parsed to its end, or not into this folder. What is done stays done."""


class ServerError(HeadwayError, OSError):
    """A server that cannot start: its port is taken, or its address is not this machine's."""


class EditError(HeadwayError, ValueError):
    """A change of an annotated sentence that cannot be made; the sentence stays as it was."""


class ConflictError(EditError):
    """A change of a sentence that somebody else has changed meanwhile; `current` is its state now."""

    def __init__(self, cause: str, current: object) -> None:
        super().__init__(cause)
        self.current = current


class QueryError(HeadwayError, ValueError):
    """A search among annotated sentences that cannot be understood."""


class JournalError(HeadwayError):
    """The journal of an annotated file cannot be written, or does not fit what is there."""
