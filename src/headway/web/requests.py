"""From a request to a job: its sentences, split as a worker draws them, and what is known of their trees."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

from headway.parsed import Parsed
from headway.pipeline import Parser
from headway.text.tokens import sentence_of
from headway.treebank import Sentence, read_treebank
from headway.treebank.raw_text import ends_of, pieces_of, split_paragraphs
from headway.web.batching import Job, Parse, Render
from headway.web.problems import RequestError
from headway.web.schemas import ParseRequest

T = TypeVar("T")


def job_of(asked: ParseRequest, parser: Parser, render: Render, most_words: int) -> Job:
    """What a dispatcher is to do for a request, whose sentences have so many words at most."""
    return Job(parser, _of_bounded_length(_sentences(asked, parser), most_words), render, _parse_with(asked))


def _of_bounded_length(sentences: Iterator[Sentence], most: int) -> Iterator[Sentence]:
    """A very long sentence would keep everybody waiting: nothing stops a parse that has begun."""
    for sentence in chain.from_iterable(
        pieces_of(one, ends_of(one)) if len(one) > most else [one] for one in sentences
    ):
        if len(sentence) > most:
            raise RequestError(422, f"a sentence has {len(sentence)} words, and at most {most} are parsed; split it")
        yield sentence


def _sentences(asked: ParseRequest, parser: Parser) -> Iterator[Sentence]:
    if asked.text is not None:
        return chain.from_iterable(
            parser.drafts(paragraph, offset, newlines=asked.newlines)
            for offset, paragraph in split_paragraphs([asked.text])
        )
    if asked.conllu is not None:
        keep = asked.keep_heads
        return read_treebank(io.StringIO(asked.conllu), format="conllu", partial=keep, trees=keep)
    return map(sentence_of, _token_lists(asked.tokens or []))


def _token_lists(tokens: Sequence[str] | Sequence[Sequence[str]]) -> Iterator[Sequence[str]]:
    """One sentence or several."""
    if tokens and isinstance(tokens[0], str):
        yield tokens  # type: ignore[misc]  # the request was checked
    else:
        yield from tokens


def _parse_with(asked: ParseRequest) -> Parse | None:
    """How to parse where something is known of the trees; None where nothing is."""
    if asked.keep_heads:
        return lambda parser, sentences: ([one] for one in parser.parse(list(sentences), keep_heads=True))
    if not asked.is_constrained:
        return None

    def parse(parser: Parser, sentences: Sequence[Sentence]) -> Iterable[list[Parsed]]:
        if len(sentences) != 1:
            raise RequestError(422, f"heads, labels and forbid are for one sentence, and there are {len(sentences)}")
        [sentence] = sentences
        heads = None if asked.heads is None else [-1, *_of_each_word("heads", asked.heads, sentence)]
        labels = None if asked.labels is None else [None, *_of_each_word("labels", asked.labels, sentence)]
        return [[parser.parse(sentence, heads=heads, labels=labels, forbid=asked.forbid or ())]]

    return parse


def _of_each_word(name: str, given: Sequence[T], sentence: Sentence) -> Sequence[T]:
    if len(given) != len(sentence):
        raise RequestError(422, f"{name} has {len(given)} entries for {len(sentence)} words; give one for each word")
    return given
