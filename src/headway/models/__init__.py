"""Trained models: what predicts, describes itself and can be saved (`protocol`), found by its kind (`registry`).

A parser is a scorer, a decoder and a labeller put together (`composed`). `arc_model` scores arcs (`arc_scorer`) and
takes the best tree (`tree_decoder`). `higher_order_model` prunes (`pruning`), scores what is left by siblings and
grandparents (`part_scorer`) and proves its tree the best (`dual_decoder`); its probabilities are calibrated
(`calibration`). `grammar_model` is a head-automata grammar, with words by `lexical_grammar`. `labeller` labels the
trees of any of them; `saved` has the pieces of a model file.
"""
