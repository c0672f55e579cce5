"""The project's treebanks, where they are present: figures of their table, and round trips byte for byte."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from headway.treebank import Statistics, read_treebank, write_treebank

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no treebanks at {DATA}")


@pytest.mark.parametrize(
    ("name", "sentences", "tokens", "non_projective", "multi_root"),
    [
        ("conllx/danish/train.conll.gz", 5190, 94386, "1.00%", "0.42%"),
        ("conllx/dutch/train.conll.gz", 13349, 195069, "5.42%", "14.29%"),
        ("ud/UD_Hungarian-Szeged/hu_szeged-ud-train.conllu.gz", 910, 20166, "1.41%", "0.00%"),
    ],
)
def test_the_table(name: str, sentences: int, tokens: int, non_projective: str, multi_root: str) -> None:
    statistics = Statistics.of(read_treebank(DATA / name))
    assert (statistics.sentences, statistics.tokens) == (sentences, tokens)
    assert f"{statistics.non_projective_arc_share:.2%}" == non_projective
    assert f"{statistics.multi_root_share:.2%}" == multi_root
    assert statistics.trees == statistics.sentences


@pytest.mark.parametrize(
    "name",
    [
        "conllx/danish/train.conll.gz",
        "conllx/portuguese/test.conll.gz",
        "ud/UD_English-EWT/en_ewt-ud-dev.conllu.gz",  # enhanced dependencies, empty nodes
        "ud/UD_Portuguese-Bosque/pt_bosque-ud-dev.conllu.gz",  # multiword tokens
        "ud/UD_English-GUM/en_gum-ud-test.conllu.gz",
    ],
)
def test_round_trip(name: str, tmp_path: Path) -> None:
    target = tmp_path / Path(name).name
    write_treebank(read_treebank(DATA / name), target)
    original = gzip.decompress((DATA / name).read_bytes())
    assert gzip.decompress(target.read_bytes()) == original
    assert [s.place.line for s in read_treebank(io.BytesIO(original))][:1] == [1]
