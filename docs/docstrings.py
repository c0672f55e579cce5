"""For mkdocstrings: docstrings are Markdown except for their doctests, which become code blocks here."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

# From a line with the prompt to the next blank line
_DOCTEST = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


class Doctests(Extension):
    """Put fences around the examples of every docstring."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called for everything that is documented."""
        if obj.docstring is not None:
            obj.docstring.value = _DOCTEST.sub(lambda example: f"```python\n{example[0]}\n```", obj.docstring.value)
