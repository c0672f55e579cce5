"""What a head-automata grammar is learnt with: pure data, checked without loading anything numerical."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from headway.declared import require_choices, require_minimums, setting
from headway.errors import TrainingError
from headway.training.settings import TagChoice

Method = Literal["spectral", "em", "det"]
Lexical = Literal["LEX", "LEX+F", "LEX+FCP"]
Column = Literal["xpos", "upos"]

MOST_STATES = 64
STATES: dict[Method, int] = {"spectral": 9, "em": 15, "det": 2}
# Settings that only some methods have, and their defaults; those of the spectral method, and the share of DET+F, were
# chosen on the development sentences of experiments/luque2012.
BACKED_OFF = 0.1
_OF_METHOD: dict[str, tuple[float, tuple[Method, ...]]] = {
    "context": (3, ("spectral",)),
    "ridge": (1.0, ("spectral",)),
    "scale": (0.0, ("spectral",)),
    "iterations": (50, ("em",)),
    "restarts": (1, ("em",)),
    "shards": (1, ("em",)),
    "backed_off": (BACKED_OFF, ("spectral", "em")),
}


@dataclass(frozen=True)
class GrammarSettings:
    """What a grammar is learnt with.

    `states` None asks the development data, for the spectral method; otherwise it is 9 (spectral), 15 (em), or 2 (det:
    DET+F; 1 is DET). `context`, `ridge` and `scale` are those of `headway.learning.spectral`, `iterations`, `restarts`
    and `shards` EM's. A share `backed_off` of the sequences comes from DET+F. `column` names the tags: xpos, or upos
    where there are too many of those.
    """

    method: Method = setting("spectral", "One SVD per head; expectation maximisation; or counts (deterministic).")
    states: int | None = setting(
        None, "Hidden states of each automaton; det: 1 or 2.", metavar="S", minimum=1, default="by dev, or 9, 15, 2"
    )
    lexical: Lexical | None = setting(None, "Multiply in a lexicalised grammar of words.", default="none")
    column: Column | None = setting(None, "Which tags to use.", default="xpos, or upos if there are very many")
    context: int | None = setting(
        None, "Spectral: strings of up to N modifiers; the paper's: 1.", metavar="N", minimum=1, default="3"
    )
    ridge: float | None = setting(None, "Spectral: damp noise; the paper's: 0.", metavar="X", minimum=0, default="1")
    scale: float | None = setting(
        None, "Spectral: divide counts by this power of those of their strings.", metavar="X", minimum=0, default="0"
    )
    iterations: int | None = setting(None, "EM: steps from each start.", metavar="N", minimum=1, default="50")
    restarts: int | None = setting(None, "EM: random starts.", metavar="N", minimum=1, default="1")
    shards: int | None = setting(
        None,
        "EM: cut the automata into N shards, computed at the same time.",
        metavar="N",
        minimum=1,
        default="1",
    )
    backed_off: float | None = setting(
        None, "Share of the sequences that come from DET+F.", metavar="P", minimum=0, default=str(BACKED_OFF)
    )
    single_root: bool = setting(True, "Trees may have several words on the root.", off="multi-root")
    tags: TagChoice = setting(
        "gold", "Train a tagger too, and the grammar on tags like the tagger's; or on the treebank's own tags."
    )
    labels: Literal["after", "none"] = setting("after", "Choose labels after the tree, or not at all.")
    seed: int = setting(0, "Seed of everything random.", metavar="S", minimum=0)

    def complete(self) -> GrammarSettings:
        """The same with every default written out; an error names a setting that cannot be."""
        require_choices(self)
        defaults: dict[str, Any] = {}
        for name, (default, methods) in _OF_METHOD.items():
            given = getattr(self, name) is not None
            if given and self.method not in methods:
                raise TrainingError(f"{name} is for the method {' or '.join(methods)}; leave it out with {self.method}")
            if not given and self.method in methods:
                defaults[name] = default
        require_minimums(self)
        if self.states is not None and self.states > (2 if self.method == "det" else MOST_STATES):
            most = "1 (DET) or 2 (DET+F)" if self.method == "det" else f"1 to {MOST_STATES}"
            raise TrainingError(f"{self.states} states; {self.method} has {most}")
        if self.scale is not None and self.scale > 1:
            raise TrainingError(f"scale is {self.scale}; expected 0 to 1")
        if self.backed_off is not None and self.backed_off >= 1:
            raise TrainingError(f"backed_off is {self.backed_off}; expected 0 or more, and less than 1")
        return replace(self, **defaults)
