"""Parsed words as a table of pandas, which is only needed here: the extra `pandas`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headway.extras import require_extra

if TYPE_CHECKING:
    from headway.parsed import Parsed


def data_frame(sentences: Sequence[Parsed]) -> Any:
    """One row for every word. `sentence` and `id` count from 1, `head` is the id of the word above, 0 for the root.

    What is unknown is missing. `feats` is the column of CoNLL-U, "Case=Nom|Number=Sing": text can be grouped and saved.
    """
    require_extra("pandas", "pandas", "a data frame")
    import pandas

    words = [(number, word) for number, sentence in enumerate(sentences, start=1) for word in sentence]
    features = [feats for sentence in sentences for feats in sentence.sentence.feats]
    return pandas.DataFrame(
        {
            "sentence": [number for number, _ in words],
            "id": [word.id for _, word in words],
            "text": [word.text for _, word in words],
            "lemma": [word.lemma for _, word in words],
            "upos": [word.upos for _, word in words],
            "xpos": [word.xpos for _, word in words],
            "feats": [None if feats == "_" else feats for feats in features],
            "head": [head for sentence in sentences for head in sentence.heads[1:].tolist()],
            "label": [word.label for _, word in words],
            "probability": pandas.Series([word.probability for _, word in words], dtype=float),
            "label_probability": pandas.Series([word.label_probability for _, word in words], dtype=float),
            "start": pandas.Series([word.start for _, word in words], dtype="Int64"),
            "end": pandas.Series([word.end for _, word in words], dtype="Int64"),
        }
    )
