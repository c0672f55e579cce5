"""Lemmas by the rules of the training words (`headway.text.lemmatiser`), where those beat the network's edits.

A network that chooses an edit for every word in its context cuts endings off irregular words that it has hardly seen
("childre"). The rules know every training word, and go by the tags that the network finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headway.models.protocol import Options
from headway.neural.model import NeuralModel
from headway.neural.targets import NONE
from headway.parallel import SERIAL, Executor
from headway.text.lemmatiser import Lemmatiser
from headway.treebank import Sentence


def with_lemma_rules(
    model: NeuralModel, train: Sequence[Sentence], dev: Sequence[Sentence] | None, executor: Executor = SERIAL
) -> NeuralModel:
    """The model with rules learnt from these sentences; as it was where its edits are better on `dev`, if given."""
    # Tags that the network does not find are not there to go by, either: those of a treebank with a single one, say.
    hidden = [name for name in ("upos", "xpos", "feats") if name not in model.gives]
    seen = [replace(sentence, **{name: (NONE,) * len(sentence) for name in hidden}) for sentence in train]
    rules = Lemmatiser.learn(seen) if "lemmas" in model.gives else None
    if rules is None:
        return model
    ruled = replace(model, lemmatiser=rules)
    if dev is None or right_lemmas(ruled, dev, executor) >= right_lemmas(model, dev, executor):
        return ruled
    return model


def right_lemmas(model: NeuralModel, gold: Sequence[Sentence], executor: Executor = SERIAL) -> int:
    """How many words get the lemma that they have in a treebank."""
    found = model.predict(gold, Options(), executor)
    pairs = ((own.lemmas, each.columns["lemmas"]) for own, each in zip(gold, found, strict=True) if each.columns)
    return sum(a == b for own, theirs in pairs for a, b in zip(own, theirs, strict=True))
