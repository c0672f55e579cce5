"""Words and tags in, indices into a weight vector out: `templates` are the table, `coding` numbers the words, `firing`
says what fires where, `arc_features` scores the arcs of a sentence and `part_features` larger parts of its trees;
`blocks` is each template's share of the weights. `rules` are what a linguist says of arcs, `rule_features` where it
holds."""
