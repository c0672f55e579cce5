"""Plain text tables: first column left-aligned, the others right-aligned, no colours, no rules."""

from __future__ import annotations

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells, aligned.

    >>> print(table([["label", "UAS"], ["nsubj", "91.20"], ["obj", "8.00"]]))
    label    UAS
    nsubj  91.20
    obj     8.00
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_line(row, widths) for row in rows)


def counted(number: int, what: str) -> str:
    """
    >>> counted(1, "document"), counted(2, "mention")
    ('1 document', '2 mentions')
    """
    return f"{number} {what}{'s' * (number != 1)}"


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = row
    width, *others = widths
    cells = [first.ljust(width), *(cell.rjust(size) for cell, size in zip(rest, others, strict=True))]
    return "  ".join(cells).rstrip()
