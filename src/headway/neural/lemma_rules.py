"""Lemmas by the rules of the training words (`headway.text.lemmatiser`), where those beat the network's edits.

A network that chooses an edit for every word in its context cuts endings off irregular words that it has hardly seen
("childre"). The rules know every training word, and go by the tags that the network finds.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
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
    seen = (_as_tagged(sentence, model.gives) for sentence in train)
    rules = Lemmatiser.learn(list(seen)) if "lemmas" in model.gives else None
    if rules is None:
        return model
    ruled = replace(model, lemmatiser=rules)
    if dev is None or right_lemmas(ruled, dev, executor) >= right_lemmas(model, dev, executor):
        return ruled
    return model


def _as_tagged(sentence: Sentence, gives: Set[str]) -> Sentence:
    """Without the tags that the network does not find (a treebank may have just one): rules cannot go by them."""
    nothing = (NONE,) * len(sentence)
    return replace(
        sentence,
        upos=sentence.upos if "upos" in gives else nothing,
        xpos=sentence.xpos if "xpos" in gives else nothing,
        feats=sentence.feats if "feats" in gives else nothing,
    )


def right_lemmas(model: NeuralModel, gold: Sequence[Sentence], executor: Executor = SERIAL) -> int:
    """How many words get the lemma that they have in a treebank."""
    found = model.predict(gold, Options(), executor)
    pairs = ((own.lemmas, each.columns["lemmas"]) for own, each in zip(gold, found, strict=True) if each.columns)
    return sum(a == b for own, theirs in pairs for a, b in zip(own, theirs, strict=True))
