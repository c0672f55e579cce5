"""The experiments behind the papers' tables, one module per paper, each with a function `run`.

This package belongs to the repository, not to the wheel: `pip install -e .` in a clone installs it beside `headway`,
and `headway reproduce PAPER` runs it.
"""
