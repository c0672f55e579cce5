"""English as people type it, split by the included model: tokens as in UD English-EWT, sentences by their lines."""

from __future__ import annotations

import textwrap

import pytest

from headway.pipeline import Parser

# Sentences between bars, their tokens between spaces; the text has none before what is marked by "_".
TOKENS = {
    "emoji": "I love it \U0001f600 _.",
    "emoji of several characters": "Nice \U0001f44d\U0001f3fd _!",
    "emoji after a word": "What a great _\U0001f600 _\U0001f600 day _!",
    "handles and hashtags": "Follow @jack_dorsey on Twitter _, #NLProc rocks _.",
    "numbers are no hashtags": "He is the # _1 fan _.",
    "addresses with queries": "See https://example.com/search?q=a+b&lang=en#top _, please _.",
    "hosts": "Visit www.example.com _.",
    "hosts with queries": "See www.foo.org/a?b=c _.",
    "a video": "Watch youtube.com/watch?v=dQw4w9WgXcQ&t=42 _, or not _.",
    "two queries": "I bought it at www.amazon.co.uk/dp/B07XYZ?utm_source=x&utm_medium=y _.",
    "a query in brackets": "( _see bit.ly/?b=c _)",
    "a query in a question": "Did you see docs.python.org/a/b.html?q=a+b&hl=en#top _?",
    "brackets of an address": "See http://a.org/x_(y) _.",
    "an address with brackets first": "https://en.wikipedia.org/wiki/Python_(programming_language) is good _.",
    "several such addresses": (
        "He read https://a.org/Mercury_(planet)#Orbit _, https://a.org/A_((b)_c)_d and ftp://a.org/f_(1).jpg today _."
    ),
    "brackets around those": "( _see http://a.org/x_(y) _)",
    "brackets around an address": "( _see http://a.org/x _)",
    "quotes around an address": '" _http://a.org/x _" ( _he said _) _.',
    "brackets in a query": "It is http://a.org/?q=(1+2)&z=3 _.",
    "e-mail addresses": "Mail me at jane.doe@example.org _.",
    "emoticons": "Thanks :) ;-) :D <3",
    "ellipses": "Well _... I do _n't know _....",
    "abbreviations": "Dr. Smith of the U.S. met Mr. Jones at 5 p.m. yesterday _.",
    "prices": "It costs $ _5.50 _, 50 _% off _.",
    "hyphens": "It is state _- _of _- _the _- _art _.",
}
LINES = {
    "bullets": ["\u2022 Fresh eggs", "\u2022 Milk and bread", "\u2022 Tea"],
    "dashes": ["- eggs", "- milk and bread", "- tea"],
    "numbers": ["1. Buy milk", "2. Sell the eggs", "3. Go home"],
    "a greeting": ["Hi Bob,", "Please come to the meeting tomorrow.", "Regards,", "Alice"],
}


@pytest.fixture(scope="module")
def english() -> Parser:
    return Parser.load("en")


@pytest.mark.parametrize("marked", TOKENS.values(), ids=TOKENS)
def test_tokens(english: Parser, marked: str) -> None:
    text = marked.replace(" _", "")
    assert list(english.sentence(text).forms) == marked.replace(" _", " ").split(" ")


@pytest.mark.parametrize("lines", LINES.values(), ids=LINES)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_that_are_sentences(english: Parser, lines: list[str], end: str) -> None:
    found = english.sentences(end.join(lines))
    assert [sentence.layout.comments[0].removeprefix("# text = ") for sentence in found] == lines


@pytest.mark.parametrize("width", [50, 60, 72, 80])
def test_wrapped_prose_has_its_sentences(english: Parser, width: int) -> None:
    sentences = [
        "The committee met on Tuesday to talk about the new plan that the board had made for the old station.",
        "It will be built in two years, if the money can be found, and the town will own it.",
        "Nobody knows who is going to pay for it.",
    ]
    found = english.sentences(textwrap.fill(" ".join(sentences), width))
    assert [sentence.layout.comments[0].removeprefix("# text = ") for sentence in found] == sentences
