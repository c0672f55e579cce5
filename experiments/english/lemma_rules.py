"""Lemmas of `en` by rules: how many are right on development sentences before and after, and rules into the model.

python experiments/english/lemma_rules.py --data UD_English-EWT                    # figures
python experiments/english/lemma_rules.py --data UD_English-EWT --into en.headway  # and into the model

The rules come from the training part. UD English-GUM is looked for beside the treebank.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from measure import sentences_of

from headway.neural.lemma_rules import right_lemmas, with_lemma_rules
from headway.neural.model import NeuralModel
from headway.pipeline import Parser


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True, help="the folder of UD English-EWT")
    options.add_argument("--model", default="en")
    options.add_argument("--into", type=Path, help="the model that gets the rules")
    asked = options.parse_args()
    parser = Parser.load(asked.into or asked.model)
    assert isinstance(parser.model, NeuralModel)
    edits = replace(parser.model, lemmatiser=None)
    dev = sentences_of(asked.data, "dev")
    rules = with_lemma_rules(edits, sentences_of(asked.data, "train"), dev)
    for name, some in (("EWT dev", dev), ("GUM dev", sentences_of(asked.data, "gum_dev"))):
        words = sum(map(len, some))
        before, after = (100 * right_lemmas(model, some) / words for model in (edits, rules))
        print(f"{name}: {before:.2f}% of the lemmas right by edits, {after:.2f}% by what is kept")
    if asked.into:
        replace(parser, model=rules).save(asked.into)


if __name__ == "__main__":
    main()
