"""How good predictions are: attachment scores, CoNLL 2018 scores, significance, reliability of probabilities.

- `evaluate(gold, predicted)` gives `Scores`: UAS and LAS with and without punctuation by the CoNLL-X rules, exact
  trees, tables by label, distance and length.
- `evaluate_conll2018(gold, predicted)` gives the F1 scores of the CoNLL 2018 shared task, for predictions whose words
  and sentences may differ from those of the gold file.
- `bootstrap_interval(s)`, `sign_test` and `paired_bootstrap` say how certain a score or a difference is; they take the
  counts per sentence, `Scores.per_sentence` or `Scores.per_sentence_no_punct`.
- `reliability` compares the probabilities of arcs with how often such arcs are right.
"""

from headway.evaluation.attachment import LengthRow, Row, Scores, Tally, evaluate
from headway.evaluation.conll2018 import F1, Conll2018Scores, evaluate_conll2018
from headway.evaluation.reliability import Bin, Reliability, reliability
from headway.evaluation.significance import (
    Interval,
    PairedBootstrap,
    SignTest,
    bootstrap_interval,
    bootstrap_intervals,
    paired_bootstrap,
    sign_test,
)

__all__ = [
    "F1",
    "Bin",
    "Conll2018Scores",
    "Interval",
    "LengthRow",
    "PairedBootstrap",
    "Reliability",
    "Row",
    "Scores",
    "SignTest",
    "Tally",
    "bootstrap_interval",
    "bootstrap_intervals",
    "evaluate",
    "evaluate_conll2018",
    "paired_bootstrap",
    "reliability",
    "sign_test",
]
