"""Progress on a terminal, drawn by rich on standard error; nothing where standard error is a file or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from headway.cli.tables import counted as number_of

if TYPE_CHECKING:
    import rich.progress

    from headway.learning.monitor import Progress, Show
    from headway.parsed import Parsed
    from headway.ray.job import Progress as CorpusProgress

_SENTENCES_BETWEEN_UPDATES = 256


@contextmanager
def training_progress() -> Iterator[Show | None]:
    """What to call after each pass: it draws one bar per stage, with loss and development score. None in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    figures = TextColumn("{task.fields[figures]}")
    with _bars(BarColumn(bar_width=24), MofNCompleteColumn(), figures, TimeElapsedColumn()) as bars:
        yield _Passes(bars)


def counted(parsed: Iterable[Parsed]) -> Iterator[Parsed]:
    """The same sentences, counted on a terminal as they go by."""
    if not sys.stderr.isatty():
        yield from parsed
        return
    from rich.progress import TextColumn, TimeElapsedColumn

    with _bars(
        TextColumn("{task.completed:,} words, {task.fields[rate]:,.0f} per second"), TimeElapsedColumn()
    ) as bars:
        task = bars.add_task("parsing", total=None, rate=0.0)
        words = 0
        for number, found in enumerate(parsed, start=1):
            yield found
            words += len(found.sentence)
            if number % _SENTENCES_BETWEEN_UPDATES == 0:
                bars.update(task, completed=words, rate=_rate(bars, task, words))
        bars.update(task, completed=words, rate=_rate(bars, task, words))


@contextmanager
def corpus_progress(*, always: bool = False) -> Iterator[Callable[[CorpusProgress], None]]:
    """What to call with the progress of a corpus: it draws a bar of its shards. Nothing in a pipe, unless `always`."""
    if not (always or sys.stderr.isatty()):
        yield lambda _: None
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    shards, figures = TextColumn("{task.completed} of {task.total} shards"), TextColumn("{task.fields[figures]}")
    with _bars(BarColumn(bar_width=24), shards, figures, TimeElapsedColumn()) as bars:
        task = bars.add_task("parsing", total=None, figures="loading the model")

        def show(progress: CorpusProgress) -> None:
            bars.update(task, total=progress.shards, completed=progress.shards_done, figures=corpus_figures(progress))

        yield show


def corpus_figures(progress: CorpusProgress) -> str:
    """Words, their rate, errors, workers and the time left.

    >>> from headway.ray.job import Progress
    >>> corpus_figures(Progress(9, 3, 120, 1, 34567, 5.0, 6913.4, 65.2, 2))
    '34,567 words, 6,913 per second, 1 error, 2 workers, 0:01:05 left'
    """
    shown = [f"{progress.words:,} words", f"{progress.words_per_second:,.0f} per second"]
    if progress.errors:
        shown.append(number_of(progress.errors, "error"))
    shown.append(number_of(progress.workers, "worker"))
    if progress.left is not None:
        shown.append(f"{timedelta(seconds=int(progress.left))} left")
    return ", ".join(shown)


class _Passes:
    """One bar per stage of a training; a stage that starts again restarts its bar."""

    def __init__(self, bars: rich.progress.Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, rich.progress.TaskID] = {}
        self._began: dict[str, tuple[int, float]] = {}
        self._waiting: rich.progress.TaskID | None = bars.add_task("reading", total=None, figures="")

    def __call__(self, progress: Progress) -> None:
        if self._waiting is not None:
            self._bars.remove_task(self._waiting)
            self._waiting = None
        if progress.stage not in self._tasks:
            self._tasks[progress.stage] = self._bars.add_task(progress.stage, total=progress.passes, figures="")
        task = self._tasks[progress.stage]
        if progress.number == 1:
            self._bars.reset(task)
        figures = figures_text(progress, self._left(progress))
        self._bars.update(task, completed=progress.number, total=progress.passes, figures=figures)

    def _left(self, progress: Progress) -> float | None:
        """Seconds for the passes that remain, by the pace since the stage began or was resumed, if there is one."""
        if progress.number == 1:
            self._began[progress.stage] = 0, 0.0
        number, seconds = self._began.setdefault(progress.stage, (progress.number, progress.seconds))
        made, remaining = progress.number - number, progress.passes - progress.number
        return remaining * (progress.seconds - seconds) / made if made and remaining else None


def figures_text(progress: Progress, left: float | None = None) -> str:
    """The figures of a pass, the development score, and how many seconds are left if training does not stop early.

    >>> from headway.learning.monitor import Progress
    >>> figures_text(Progress("tree", 3, 10, {"mistakes": 0.03127, "words/s": 40712.3}, 89.736, 1.5), left=65.2)
    'mistakes 0.03127  words/s 40,712  dev UAS 89.74  up to 0:01:05 left'
    """
    figures = [
        f"{name} {f'{value:,.0f}' if value >= 1000 else f'{value:.4g}'}" for name, value in progress.figures.items()
    ]
    if progress.dev is not None:
        figures.append(f"dev {'CoNLL' if progress.stage == 'coreference' else 'UAS'} {progress.dev:.2f}")
    if left is not None:
        figures.append(f"up to {timedelta(seconds=round(left))} left")
    return "  ".join(figures)


def _bars(*columns: rich.progress.ProgressColumn) -> rich.progress.Progress:
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    console = Console(stderr=True)
    return Progress(TextColumn("{task.description}"), *columns, console=console, redirect_stdout=False)


def _rate(bars: rich.progress.Progress, task: rich.progress.TaskID, words: int) -> float:
    return words / max(bars.tasks[task].elapsed or 0.0, 1e-3)
