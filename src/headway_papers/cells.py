"""Results kept cell by cell in a file, so that an interruption costs one cell at most."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway_papers.corpora import write_json

Cell = dict[str, Any]


@dataclass(frozen=True)
class CellFile:
    """The cells that are done, and what they depend on: all are computed again when any of this changes."""

    path: Path
    signature: Mapping[str, Any]
    cells: dict[str, Cell]

    @classmethod
    def open(cls, path: Path, signature: Mapping[str, Any]) -> CellFile:
        """What is there already with this signature."""
        old = json.loads(path.read_text("utf-8")) if path.exists() else {}
        return cls(path, signature, old["cells"] if old.get("signature") == signature else {})

    @staticmethod
    def read(path: Path) -> dict[str, Cell]:
        """The cells of a file, whatever they depend on: for tables."""
        cells: dict[str, Cell] = json.loads(path.read_text("utf-8"))["cells"]
        return cells

    def cell(self, name: str, compute: Callable[[], Cell]) -> tuple[Cell, bool]:
        """A cell, and whether it had to be computed."""
        if name in self.cells:
            return self.cells[name], False
        self.cells[name] = compute()
        write_json(self.path, {"signature": dict(self.signature), "cells": self.cells})
        return self.cells[name], True
