"""How good predictions are: attachment scores, the CoNLL 2018 scores, significance, calibration, coreference scores.

- `evaluate(gold, predicted)` gives `Scores`: UAS and LAS with and without punctuation by the CoNLL-X rules, exact
  trees, tables by label, distance and length.
- `evaluate_conll2018(gold, predicted)` gives the F1 scores of the CoNLL 2018 shared task, for predictions whose words
  and sentences need not be those of the gold file.
- `bootstrap_interval(s)`, `sign_test` and `paired_bootstrap` say how sure a score or a difference is; they take the
  counts of each sentence, `Scores.per_sentence` or `Scores.per_sentence_no_punct`.
- `calibration` compares arc probabilities with how often such arcs are right.
- `evaluate_coreference(pairs)` gives `CoreferenceScores`: MUC, B-cubed, CEAF, BLANC and LEA of clusters of mentions.
"""

from headway.evaluation.attachment import LengthRow, Row, Scores, Tally, evaluate
from headway.evaluation.calibration import Bin, Calibration, calibration
from headway.evaluation.conll2018 import F1, Conll2018Scores, evaluate_conll2018
from headway.evaluation.coreference import Clusters, CoreferenceScores, Ratio, evaluate_coreference
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
    "Calibration",
    "Clusters",
    "Conll2018Scores",
    "CoreferenceScores",
    "Interval",
    "LengthRow",
    "PairedBootstrap",
    "Ratio",
    "Row",
    "Scores",
    "SignTest",
    "Tally",
    "bootstrap_interval",
    "bootstrap_intervals",
    "calibration",
    "evaluate",
    "evaluate_conll2018",
    "evaluate_coreference",
    "paired_bootstrap",
    "sign_test",
]
