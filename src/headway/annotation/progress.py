"""How far an annotator has come, and how long the rest will take at the same speed.

The time that a sentence took is the sum of the gaps before its changes, back to the annotator's change before: reading
counts, a pause of more than five minutes does not. The time left is the median of the sentences that the annotator
finished, times the sentences left. A median, as one hard sentence should not frighten anyone.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import Any

LONGEST_GAP = 300.0  # seconds; a longer one is a pause


class Speed:
    """What one annotator's sentences took."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._spent: dict[int, float] = defaultdict(float)
        self._finished: dict[int, float] = {}

    def changed(self, sentence: int, time: float, *, finished: bool) -> None:
        """Count a change; `finished` if the sentence is now done, and was not before."""
        gap = LONGEST_GAP + 1 if self._last is None else time - self._last
        self._last = time
        if 0 <= gap <= LONGEST_GAP:
            self._spent[sentence] += gap
        if finished and self._spent[sentence] > 0:
            self._finished[sentence] = self._spent[sentence]

    def per_sentence(self) -> float | None:
        """Seconds, the median of those that are finished."""
        return median(self._finished.values()) if self._finished else None


class Speeds:
    """The speeds of all annotators, by their names, and of all together."""

    def __init__(self) -> None:
        self._by: dict[str, Speed] = defaultdict(Speed)

    def changed(self, by: str, sentence: int, time: float, *, finished: bool) -> None:
        """Count a change by an annotator."""
        self._by[by].changed(sentence, time, finished=finished)

    def progress(self, by: str, done: int, all: int) -> dict[str, Any]:
        """How far all have come, and the time left at the speed of one; of all where that one has finished nothing."""
        own = self._by[by].per_sentence() if by in self._by else None
        others = [speed for each in self._by.values() if (speed := each.per_sentence()) is not None]
        each = own if own is not None else (median(others) if others else None)
        left = None if each is None else each * (all - done)
        return {"done": done, "all": all, "seconds_left": left, "text": _text(done, all, left, own is not None)}


def _text(done: int, all: int, left: float | None, own: bool) -> str:
    text = f"{done:,} of {all:,}"
    if done == all:
        return f"{text}, all done"
    if left is None:
        return text
    return f"{text}, {_time(left)} left at {'your speed' if own else 'the speed so far'}"


def _time(seconds: float) -> str:
    """A time in words.

    >>> [_time(seconds) for seconds in (20, 70, 2400, 9000, 50 * 3600)]
    ['less than a minute', 'about a minute', 'about 40 minutes', 'about 2.5 hours', 'about 50 hours']
    """
    if seconds < 45:
        return "less than a minute"
    minutes = round(seconds / 60)
    if minutes < 2:
        return "about a minute"
    if minutes < 90:
        return f"about {minutes} minutes"
    hours = seconds / 3600
    return f"about {hours:.1f} hours".replace(".0 ", " ") if hours < 10 else f"about {hours:,.0f} hours"
