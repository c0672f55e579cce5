"""How far to trust label probabilities: P(label | head) beside the share of right labels, where the head is right.

python benchmarks/label_reliability.py en dev.conllu
"""

from __future__ import annotations

import argparse

import headway as hw
from headway.evaluation import reliability


def main() -> None:
    """Parse the words of a treebank, and print the bins."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model")
    options.add_argument("treebank")
    given = options.parse_args()
    gold = list(hw.read_treebank(given.treebank))
    probabilities, right = labels_of_right_arcs(hw.Parser.load(given.model), gold)
    found = reliability(probabilities, right)
    print(f"{len(right)} words with the right head, {100 * sum(right) / len(right):.2f}% of labels right")
    print(f"mean probability {100 * sum(probabilities) / len(right):.2f}%")
    print(f"expected calibration error {100 * found.expected_error:.2f}%")


def labels_of_right_arcs(parser: hw.Parser, gold: list[hw.Sentence]) -> tuple[list[float], list[bool]]:
    """The probability of each label whose head is right, and whether the label is right, too."""
    probabilities: list[float] = []
    right: list[bool] = []
    for tree, parsed in zip(gold, parser.parse(hw.Sentence.from_words(each.forms) for each in gold), strict=True):
        assert tree.heads is not None
        assert tree.labels is not None
        if parsed.label_probabilities is None:
            raise SystemExit("the model has no label probabilities: its labels are chosen after the tree")
        same = [m for m in range(1, len(tree) + 1) if parsed.heads[m] == tree.heads[m]]
        probabilities += parsed.label_probabilities[same].tolist()
        right += [parsed.labels[m] == tree.labels[m] for m in same]
    return probabilities, right


if __name__ == "__main__":
    main()
