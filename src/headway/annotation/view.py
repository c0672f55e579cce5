"""A sentence as the page shows it, and as a row of the list: plain data for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.annotation.decoding import Shown
from headway.annotation.replay import History
from headway.annotation.state import State, shown_heads, shown_labels
from headway.annotation.validation import Message
from headway.treebank import Sentence
from headway.treebank.annotations import comment, multiword_tokens
from headway.treebank.raw_text import raw_text


def view_of(number: int, shown: Shown, messages: Sequence[Message], history: History) -> dict[str, Any]:
    """Everything the page needs to know of a sentence."""
    state = shown.state
    return {
        "sentence": number,
        "id": comment(state.sentence, "sent_id"),
        "text": text_of(state.sentence),
        "version": state.version,
        "done": state.done,
        "note": state.note,
        "certainty": shown.certainty,
        "status": shown.status,
        "problem": shown.problem,
        "words": _words(shown),
        "multiword_tokens": [
            {"first": token.first, "last": token.last, "form": token.form} for token in multiword_tokens(state.sentence)
        ],
        "forbidden": sorted(map(list, state.forbidden)),
        "messages": [message.to_dict() for message in messages],
        "can_undo": bool(history.undo),
        "can_redo": bool(history.redo),
    }


def row_of(number: int, state: State, certainty: float | None, messages: Sequence[Message]) -> dict[str, Any]:
    """A sentence in the list."""
    return {
        "sentence": number,
        "id": comment(state.sentence, "sent_id"),
        "text": text_of(state.sentence),
        "certainty": certainty,
        "done": state.done,
        "pins": len(state.pins),
        "words": len(state.sentence),
        "errors": sum(message.level == "error" for message in messages),
        "note": bool(state.note),
    }


def text_of(sentence: Sentence) -> str:
    """The sentence as text: as its file gives it, or else its words."""
    return comment(sentence, "text") or raw_text([sentence]).text


def _words(shown: Shown) -> list[dict[str, Any]]:
    state, sentence = shown.state, shown.state.sentence
    heads, labels = shown_heads(sentence), shown_labels(sentence)
    return [
        {
            "id": m,
            "form": sentence.forms[m - 1],
            "lemma": sentence.lemmas[m - 1],
            "upos": sentence.upos[m - 1],
            "xpos": sentence.xpos[m - 1],
            "feats": sentence.feats[m - 1],
            "misc": sentence.layout.misc[m - 1],
            "head": heads[m] if heads[m] >= 0 else None,
            "label": labels[m] if heads[m] >= 0 and labels[m] != "_" else None,
            "pinned": m in state.pins,
            "probability": None if shown.probabilities is None else float(shown.probabilities[m]),
            "label_probability": (None if shown.label_probabilities is None else float(shown.label_probabilities[m])),
            "alternatives": (
                [{"head": head, "probability": probability} for head, probability in shown.alternatives[m - 1]]
                if shown.alternatives
                else []
            ),
        }
        for m in range(1, len(sentence) + 1)
    ]
