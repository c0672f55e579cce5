"""Words and tags in, indices into a weight vector out: `templates` are the table, `coding` numbers the words, `firing`
says what fires where, `arc_features` scores every arc of a sentence."""
