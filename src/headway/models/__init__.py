"""Features and inference put together: trained parsers and their saved forms.

`arc_factored` scores trees by their arcs, `arc_model` is a parser made of that. `pruning` leaves a few heads a word,
`higher_order` scores what is left by siblings and grandparents, `automata_model` is a parser made of both. `labeller`
labels the trees of either; `saved` has the pieces of a model file.
"""
