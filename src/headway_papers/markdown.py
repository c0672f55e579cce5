"""The one way a Markdown table is written, by experiments and benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table under its title.

    >>> print(markdown_table("## Arcs", ["word", "head"], [["dogs", "bark"]]), end="")
    ## Arcs
    <BLANKLINE>
    | word | head |
    | --- | --- |
    | dogs | bark |
    """
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join([title, "", *("| " + " | ".join(line) + " |" for line in lines), ""])
