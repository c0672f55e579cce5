"""From treebank to model.

`settings` (pure data) say what is trained and how; `learners` makes the learner of them, `trainers` finds who trains a
model of a name: `arc_trainer`, `higher_order_trainer`, or a third party. `rules_trainer` learns from rules without
trees, `grammar_trainer` head-automata grammars. A training goes through `stages`, each of which is checkpointed:
`text_models` (segmenter, tagger, jack-knifed tags), the learner's passes, `labels`, calibration. `data` reads, checks
and codes the sentences; `arc_problem` and `part_problem` show them to a learner; `development` scores a pass. `tuning`
chooses C on held-out data, `explanation` holds a model against rules.
"""

from headway.training.grammar_settings import GrammarSettings
from headway.training.settings import Settings

__all__ = ["GrammarSettings", "Settings"]
