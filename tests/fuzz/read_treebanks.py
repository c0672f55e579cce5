"""Treebanks: good sentences, made or borrowed, then damaged; everything that is asked about a treebank is asked."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

import headway.evaluation
from headway import read_treebank, write_treebank
from headway.errors import HeadwayError
from headway.treebank import (
    Sentence,
    Statistics,
    is_projective,
    is_tree,
    projectivise,
    require_partial_tree,
    require_tree,
)
from headway.treebank.annotations import head_probabilities, multiword_tokens, offsets_of, spaces_after
from headway.treebank.inputs import open_input
from headway.treebank.raw_text import raw_text
from headway.treebank.sentence import Format
from tests.fuzz.harness import Draw, check_message, expecting_success
from tests.fuzz.mutations import ODD, damaged, packed, pick

TINY = Path(__file__).parents[2] / "examples" / "tiny.conllu"


def treebanks(folder: Path) -> Draw:
    """Draws that read a damaged treebank and use what was read."""
    sentences = TINY.read_bytes().split(b"\n\n")[:-1]

    def draw(rng: np.random.Generator) -> str | None:
        if rng.random() < 0.5:
            data = b"".join(pick(rng, sentences) + b"\n\n" for _ in range(rng.integers(1, 5)))
        else:
            data = b"".join(made(rng).encode() for _ in range(rng.integers(1, 4)))
        data = damaged(rng, data)
        if rng.random() < 0.1:
            data = packed(rng, data)
        return _use(data, pick(rng, ("conllu", "conllu", "conllx")), partial=bool(rng.integers(2)))

    return draw


def made(rng: np.random.Generator) -> str:
    """A sentence of CoNLL-U with random heads, multiword tokens, empty nodes and odd columns."""
    n = int(rng.integers(1, 12))
    odd = rng.random() < 0.3
    lines = [f"# {pick(rng, ('sent_id', 'newpar', 'text'))} = {pick(rng, ODD[:40])}" for _ in range(rng.integers(3))]
    end = 0
    for i in range(1, n + 1):
        if i > end and rng.random() < 0.2:
            end = int(rng.integers(i, n + 1))
            lines.append(f"{i}-{end}\tdon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No")
        head = int(rng.integers(0, n + 1)) if i > 1 else 0
        feats, misc = ("Number=Sing|Case=Nom", "SpaceAfter=No|TokenRange=0:4") if rng.random() < 0.3 else ("_", "_")
        word = [str(i), "word", "lemma", "NOUN", "NN", feats, str(head - (head == i)), "nsubj", "_", misc]
        if odd:
            word[rng.integers(1, 10)] = pick(rng, ODD)
        lines.append("\t".join(word))
        if rng.random() < 0.1:
            lines.append(f"{i}.1\tgone\t_\t_\t_\t_\t_\t_\t_\t_")
    return "\n".join(lines) + "\n\n"


def _use(data: bytes, format: Format, partial: bool) -> str:
    """Read all, in the ways there are to read; what was read is asked everything and comes out as it went in."""
    skipped: list[HeadwayError] = []
    found = list(read_treebank(io.BytesIO(data), format=format, skip_bad=skipped.append, partial=partial))
    for error in skipped:
        check_message(error)
    for sentence in found:
        _ask(sentence)
        again = io.BytesIO()
        write_treebank([sentence], again, format=format)
        again.seek(0)
        with expecting_success():
            (same,) = read_treebank(again, format=format, partial=partial)
        assert same.to_conllu() == sentence.to_conllu()
        assert same.to_conllx() == sentence.to_conllx()
    raw_text(found)
    if not partial:
        Statistics.of(found)
    with open_input(io.BytesIO(data)) as opened:
        assert opened.format in ("text", "conllu")
    if not skipped and not partial:
        headway.evaluation.evaluate(found, found)
    return "some sentences skipped" if skipped else "all sentences read"


def _ask(sentence: Sentence) -> None:
    """Everything there is to ask about a sentence; errors that name it are answers."""
    assert len(sentence.forms) == len(sentence.layout.misc) == len(spaces_after(sentence))
    tokens = list(multiword_tokens(sentence))
    assert all(1 <= token.first <= token.last <= len(sentence) for token in tokens)
    offsets_of(sentence)
    for question in (head_probabilities, require_tree, lambda asked: require_partial_tree(asked, single_root=True)):
        try:
            question(sentence)
        except HeadwayError as error:
            check_message(error)
    if sentence.heads is not None and (sentence.heads[1:] >= 0).all() and is_tree(sentence.heads):
        heads = projectivise(sentence, single_root=False).heads
        assert heads is not None
        assert is_projective(heads)
