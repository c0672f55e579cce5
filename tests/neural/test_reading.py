"""Sentences as numbers: subwords in windows, words with their characters and tags."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from headway import Sentence
from headway.errors import ArchiveError
from headway.neural.lexicon import FIRST, MOST_CHARACTERS, UNKNOWN, LexiconReader

tokenizers = pytest.importorskip("tokenizers")

from headway.neural import subwords
from headway.neural.subwords import SubwordReader

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefghij", *(f"##{x}" for x in "abcdefghij")]


def reader(longest: int = 64) -> SubwordReader:
    made = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({piece: i for i, piece in enumerate(PIECES)}, unk_token="[UNK]")
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return SubwordReader.from_files(made.to_str(), {"pad_token_id": 0}, longest)


def spelled(inputs: dict[str, np.ndarray], sentence: int, word: int) -> str:
    """The pieces of a word, as the network finds them."""
    first, last = inputs["words"][sentence, word]
    return " ".join(PIECES[i] for i in inputs["subwords"].reshape(-1)[first : last + 1])


def test_words_find_their_subwords() -> None:
    some = [Sentence.from_words(["abc", "d", "?", "ja"]), Sentence.from_words([]), Sentence.from_words(["hi"])]
    reading = reader().read(some)
    assert reading.lengths.tolist() == [4, 0, 1]
    for which in ([0, 1, 2], [2, 0], [1]):
        inputs = reading.batch(np.array(which))
        assert inputs["words"].shape[:2] == (len(which), max(len(some[i]) for i in which) + 1)
        for row, i in enumerate(which):
            found = [spelled(inputs, row, m) for m in range(1, len(some[i]) + 1)]
            assert found == [["a ##b ##c", "d", "[UNK]", "j ##a"], [], ["h ##i"]][i]
        assert (inputs["subwords"][:, 0] == 2).all()


@pytest.mark.parametrize("longest", [64, 8])
def test_every_subword_is_told_the_shape_of_its_word(longest: int) -> None:
    words = ["Abc", "de", "FG", "hiJ", "ab", "Cd", "EFG"]
    inputs = reader(longest).read([Sentence.from_words(["ab"]), Sentence.from_words(words)]).batch(np.array([1, 0]))
    assert inputs["shapes"].shape == inputs["subwords"].shape
    shapes = inputs["shapes"].reshape(-1)
    for (first, last), shape in zip(inputs["words"][0, 1:], [1, 0, 2, 3, 0, 1, 2], strict=True):
        assert set(shapes[first : last + 1].tolist()) == {shape}
    assert not shapes[np.isin(inputs["subwords"].reshape(-1), (0, 2, 3))].any()


@pytest.mark.parametrize("longest", [8, 9, 13])
def test_long_sentences_are_read_in_windows(longest: int) -> None:
    rng = np.random.default_rng(longest)
    words = ["".join(rng.choice(list("abcdefghij"), rng.integers(1, 4))) for _ in range(40)]
    some = [Sentence.from_words(words), Sentence.from_words(words[:2])]
    reading = reader(longest).read(some)
    inputs = reading.batch(np.array([1, 0]))
    assert inputs["subwords"].shape[1] <= longest
    for m, word in enumerate(words, start=1):
        assert spelled(inputs, 1, m).replace(" ##", "") == word
    middle = inputs["words"][1, 1:].mean(axis=1) % inputs["subwords"].shape[1]
    inner = slice(longest, -longest)
    assert (np.abs(middle[inner] - (longest - 1) / 2) <= (longest - 2) / 4 + 2).all()


def test_a_word_has_at_most_sixteen_subwords() -> None:
    reading = reader().read([Sentence.from_words(["a" * 30 + "b"])])
    found = spelled(reading.batch(np.array([0])), 0, 1).split()
    assert (len(found), found[0], found[-1]) == (16, "a", "##b")


def test_saved_reader() -> None:
    own = reader()
    again = SubwordReader(**own.to_data())
    some = [Sentence.from_words(["abc", "x"])]
    np.testing.assert_equal(again.read(some).batch(np.array([0])), own.read(some).batch(np.array([0])))


def test_a_tokenizer_without_the_usual_pieces_is_refused() -> None:
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    with pytest.raises(ArchiveError, match="none of"):
        SubwordReader.from_files(made.to_str(), {}, 10)


def test_lexicon() -> None:
    train = [
        Sentence.from_words(["The", "the", "dog"], upos=["DET", "DET", "NOUN"], feats=["A=1|B=2", "_", "A=1"]),
        Sentence.from_words(["cat", "the"], upos=["NOUN", "DET"]),
    ]
    read = LexiconReader.learn(train, tags=True)
    assert read.values["words"] == ("the",)
    assert "lemmas" not in read.values  # there are none
    batch = read.read(train).batch(np.array([1, 0]))
    assert batch["words"].tolist() == [[0, UNKNOWN, FIRST, 0], [0, FIRST, FIRST, UNKNOWN]]
    assert batch["feats"].shape[:2] == (2, 4)
    assert (batch["feats"][1, 1] > 0).sum() == 2
    characters = read.values["characters"]
    assert [characters[i - FIRST] for i in batch["characters"][1, 3][:3]] == list("dog")
    again = LexiconReader.from_data(json.loads(json.dumps(read.to_data())))
    np.testing.assert_equal(again.read(train).batch(np.array([0, 1])), read.read(train).batch(np.array([0, 1])))


def test_long_words_keep_both_ends() -> None:
    read = LexiconReader.learn([Sentence.from_words(["abcdefghijklmnopqrstuvwxyz"])], tags=False)
    batch = read.read([Sentence.from_words(["abcdefghijklmnopqrstuvwxyz"])]).batch(np.array([0]))
    characters = read.values["characters"]
    spelt = "".join(characters[i - FIRST] for i in batch["characters"][0, 1])
    assert spelt == "abcdefghij" + "qrstuvwxyz"
    assert len(spelt) == MOST_CHARACTERS


def test_words_may_be_forgotten_by_another_thread_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [Sentence.from_words([a + b, b + a, a + a]) for a in "abcdefghij" for b in "abcdefghij"]
    expected = reader().read(some).windows
    monkeypatch.setattr(subwords, "_REMEMBERED", 3)
    forgetful = reader()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda one: forgetful.read([one]).windows, some * 20))
    assert [window for own in found for window in own] == expected * 20
