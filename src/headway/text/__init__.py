"""What happens to text before trees: `segmenter` splits it into sentences and words, `tagger` gives the words tags, and
`lemmatiser` lemmas."""
