"""A parser that decodes in another class of trees than it was trained for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headway.pipeline import Parser


def with_projective(parser: Parser, projective: bool) -> Parser:
    """The same weights, for projective trees or for all; a pruner changes too, as it must leave a tree of the class."""
    from headway.models.automata_model import AutomataModel

    model = parser.model
    if isinstance(model, AutomataModel):
        pruner = replace(model.pruner, projective=projective)
        return replace(parser, model=replace(model, projective=projective, pruner=pruner))
    return replace(parser, model=replace(model, projective=projective))
