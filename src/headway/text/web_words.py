"""Training text with addresses, handles, hashtags, emoticons and emoji among its words, and with printers' quotes.

Treebanks have few of them, older ones none. Each is one token, whatever marks are in it; a full stop or bracket around
it is another, and so is every emoji, even where it touches a word. Their letters are words of the treebank.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from headway.text.layouts import Line, Word, joined_lines, pieces_of
from headway.treebank.raw_text import SENTENCE, TOKEN, RawText

_EMOJI = (
    "\U0001f600", "\U0001f602", "\U0001f60d", "\U0001f44d", "\U0001f44d\U0001f3fd", "\u2764\ufe0f", "\u2728",
    "\U0001f389", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1ec\U0001f1e7", "\u2600\ufe0f", "\U0001f525",
)  # fmt: skip
_EMOTICONS = (":)", ":-)", ";)", ":(", ":-(", ":D", ":P", "<3", "XD", ":'(", ":/", "^^", "=)", "\u2022", ":-/")
_ENDINGS = ("com", "org", "net", "de", "co.uk", "io", "edu")
_AFTER = ("", "", "", ".", ",", "!", "?", ":", ")", "...")
_ONE_IN = 6  # words
_SHARE = 5


def with_web_words(source: RawText, seed: int) -> RawText:
    """A fifth of the text, drawn at random, with such words in between; nothing of a very short one."""
    rng = random.Random(seed)
    every = [[word for sentence in piece for word in sentence] for piece in pieces_of(source)]
    plain = sorted(
        {word.text.lower() for line in every for word in line if word.text.isalpha() and len(word.text) < 10}
    )
    chosen = [every[k] for k in sorted(rng.sample(range(len(every)), len(every) // _SHARE))]
    lines = [_mixed(line, plain or ["a"], rng) for line in chosen]
    return joined_lines(lines, ["\n\n"] * len(lines))


def _mixed(line: Line, plain: Sequence[str], rng: random.Random) -> Line:
    mixed: Line = []
    for word in map(_printed, line) if rng.random() < 0.5 else line:
        if rng.randrange(_ONE_IN) == 0 and word.text.isalpha():
            emoji = [rng.choice(_EMOJI) for _ in range(rng.randint(1, 3))]
            mixed.append(_glued(word, emoji))
        else:
            mixed.append(word)
        if rng.randrange(_ONE_IN) == 0 and word.ends[-1] != SENTENCE:
            mixed.append(_drawn(plain, rng))
    return mixed


def _printed(word: Word) -> Word:
    """The word with the quotes and apostrophes that printers use."""
    text = word.text.replace("'", "\u2019")
    opening = text.lstrip("([").startswith('"')
    return Word(text.replace('"', "\u201c", int(opening)).replace('"', "\u201d"), word.ends)


def _glued(word: Word, pieces: Sequence[str]) -> Word:
    """The word and pieces right behind it, each a token; the last ends what the word ended."""
    tokens = [Word(word.text, word.ends[:-1] + bytes([TOKEN])), *map(_token, pieces)]
    ends = b"".join(token.ends for token in tokens)
    return Word("".join(token.text for token in tokens), ends[:-1] + word.ends[-1:])


def _drawn(plain: Sequence[str], rng: random.Random) -> Word:
    """An address, handle, hashtag, emoticon or some emoji, often with a mark after it."""
    kind = rng.choice(["address", "address", "mail", "handle", "tag", "emoji", "emoticon"])
    if kind == "emoticon":
        return _token(rng.choice(_EMOTICONS))
    if kind == "emoji":
        first, *more = [rng.choice(_EMOJI) for _ in range(rng.randint(1, 3))]
        return _glued(_token(first), more)
    words = [rng.choice(plain) for _ in range(6)]
    host = f"{words[0]}.{rng.choice(_ENDINGS)}"
    text = {
        "address": _address(words, host, rng),
        "mail": f"{words[1]}{rng.choice(['', '.', '_'])}{words[2]}@{host}",
        "handle": f"@{words[0]}{rng.choice(['', '_', '1', '99'])}{rng.choice(['', words[1]])}",
        "tag": "#" + rng.choice([words[0], words[0].title() + words[1].title(), words[0].upper(), words[0] + "2020"]),
    }[kind]
    bracket = rng.random() < 0.1
    after = ")" if bracket else rng.choice(_AFTER)
    body = _glued(_token(text), [after]) if after else _token(text)
    return Word(f"({body.text}", bytes([TOKEN]) + body.ends) if bracket else body


def _address(words: Sequence[str], host: str, rng: random.Random) -> str:
    scheme = rng.choice(["http://", "https://", "https://", "http://www.", "www."])
    path = rng.choice(["", "/", f"/{words[1]}", f"/{words[1]}/{words[2]}.html", f"/{words[1]}-{words[2]}/{words[3]}"])
    query = rng.choice(
        ["", f"?q={words[4]}", f"?{words[4]}={words[5]}&id={rng.randint(1, 9999)}", f"?a=1&b={words[4]}+2"]
    )
    return f"{scheme}{host}{path}{query if path else ''}{rng.choice(['', '', '#top', f'#{words[3]}'])}"


def _token(text: str) -> Word:
    return Word(text, bytes(len(text) - 1) + bytes([TOKEN]))
