"""Damage: ways to make a good file bad, each drawn from a generator of random numbers."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")

# What has broken readers elsewhere: numbers out of range, characters that few fonts have, names with a meaning.
ODD = ["_", "-", "0", "-1", "+1", "01", "1.5", "1e9", "nan", "inf", "-inf", "null", "true", "None", "|", "=", "a=b|a=c"]
ODD += ["1-2", "2-1", "0.1", "1.1", "1-99999999", "٣", "²", "Ⅷ", "א", "ﷺ", "ǆ", "İ", "ß", "한"]
ODD += ["", " ", "\0", "\x1b[31m", str(2**31), str(2**63), str(2**64), "9" * 30, "9" * 5000, "x" * 3000, "e\u0301" * 5]
ODD += ["SpaceAfter=No", "TokenRange=5:2", "HeadProbability=2", "Entity=(e1", "Entity=e1)", "(a)-(b"]
ODD += [*"\u00a0\u2028\u2029\u0085\x0b\x0c\x1c\u200b\u200d\u202e\ufeff\ufffd\U0010ffff", "\U0001f469\u200d\U0001f4bb"]
BYTES = [b"\r", b"\n", b"\r\n", b"\n\n", b"\t", b"\t\t", b"#", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf"]
BYTES += [text.encode() for text in ODD]


def pick(rng: np.random.Generator, choices: Sequence[T]) -> T:
    return choices[int(rng.integers(len(choices)))]


def damaged(rng: np.random.Generator, data: bytes) -> bytes:
    """The bytes with one to four small injuries."""
    for _ in range(rng.integers(1, 5)):
        data = pick(rng, INJURIES)(rng, data)
    return data


def packed(rng: np.random.Generator, data: bytes) -> bytes:
    """The bytes compressed, and usually cut or damaged afterwards."""
    squeezed = gzip.compress(data, 1) if rng.random() < 0.5 else lzma.compress(data, preset=0)
    match rng.integers(4):
        case 0:
            return squeezed
        case 1:
            return squeezed[: rng.integers(len(squeezed))]
        case 2:
            return _flip(rng, squeezed)
        case _:
            return squeezed + squeezed[: rng.integers(len(squeezed))]


def _flip(rng: np.random.Generator, data: bytes) -> bytes:
    """Other values for a few bytes."""
    changed = bytearray(data)
    for place in rng.integers(len(data), size=rng.integers(1, 4)) if data else ():
        changed[place] ^= 1 << rng.integers(8)
    return bytes(changed)


def _insert(rng: np.random.Generator, data: bytes) -> bytes:
    place = rng.integers(len(data) + 1)
    return data[:place] + pick(rng, BYTES) + data[place:]


def _cut(rng: np.random.Generator, data: bytes) -> bytes:
    start, end = sorted(rng.integers(len(data) + 1, size=2))
    return data[:start] if rng.random() < 0.2 else data[:start] + data[min(end, start + 40) :]


def _repeat(rng: np.random.Generator, data: bytes) -> bytes:
    start, end = sorted(rng.integers(len(data) + 1, size=2))
    return data[:start] + data[start:end] * rng.integers(2, 4) + data[end:]


def _lines(rng: np.random.Generator, data: bytes) -> bytes:
    """Lines dropped, doubled, swapped or run together; all of them ended otherwise."""
    lines = data.split(b"\n")
    i, j = rng.integers(len(lines), size=2)
    match rng.integers(5):
        case 0:
            del lines[i]
        case 1:
            lines.insert(j, lines[i])
        case 2:
            lines[i], lines[j] = lines[j], lines[i]
        case 3:
            lines[i : i + 2] = [b"".join(lines[i : i + 2])]
        case _:
            return pick(rng, [b"\r\n", b"\r", b"\n\n"]).join(lines)
    return b"\n".join(lines)


def _columns(rng: np.random.Generator, data: bytes) -> bytes:
    """Columns of one line dropped, doubled, swapped, or with an odd value."""
    lines = data.split(b"\n")
    wide = [i for i, line in enumerate(lines) if b"\t" in line]
    if not wide:
        return data
    row = pick(rng, wide)
    columns = lines[row].split(b"\t")
    i, j = rng.integers(len(columns), size=2)
    match rng.integers(6):
        case 0:
            del columns[i]
        case 1:
            columns.insert(j, columns[i])
        case 2:
            columns[i], columns[j] = columns[j], columns[i]
        case _:
            columns[i] = pick(rng, BYTES)
    lines[row] = b"\t".join(columns)
    return b"\n".join(lines)


def _byte_order_mark(rng: np.random.Generator, data: bytes) -> bytes:
    return pick(rng, [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"]) + data


def _other_encoding(rng: np.random.Generator, data: bytes) -> bytes:
    return data.decode("utf-8", "replace").encode(pick(rng, ["utf-16", "latin-1", "utf-32-le"]), "replace")


INJURIES: Sequence[Callable[[np.random.Generator, bytes], bytes]] = (
    *(_flip, _insert, _cut, _repeat, _byte_order_mark, _other_encoding),
    *(_lines,) * 3,
    *(_columns,) * 6,
)
