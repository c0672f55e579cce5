"""Documents, sentences and words as objects, on trees whose every relation is found again by walking up the heads."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from headway.document import Document
from headway.errors import ArgumentError, HeadwayError, MissingExtraError, TrainingError
from headway.inference import Status, TreeDistribution
from headway.models.stretches import StretchedDistribution
from headway.parsed import Parsed
from headway.pipeline import Parser
from headway.text.segmenter import Segmenter
from headway.treebank import Sentence, read_treebank
from headway.treebank.annotations import misc_entry
from headway.treebank.raw_text import sentence_from_tokens
from headway.word import Word

from .models.toy_treebank import sentences
from .toy_model import ToyModel

TINY = Path(__file__).parents[1] / "examples" / "tiny.conllu"
TEXT = "The dog sleeps. The old woman reads a book.\r\n\r\nThe dog sleeps."


@cache
def parser() -> Parser:
    """Splits text as the examples do; its trees are chains."""
    return Parser(ToyModel(1.0, {}), None, Segmenter.learn(list(read_treebank(TINY)), passes=2))


def parsed_of(sentence: Sentence, seed: int = 0, **options: bool) -> Parsed:
    """Under random scores; label probabilities are numbers to be found again."""
    n = len(sentence)
    trees = TreeDistribution(2 * np.random.default_rng(seed).normal(size=(n + 1, n + 1)), **options)
    heads = trees.argmax()
    labels = (None, *("root" if head == 0 else f"l{m}" for m, head in enumerate(heads[1:].tolist(), start=1)))
    return Parsed(sentence.with_tree(heads, labels), trees, label_probabilities=1 / np.arange(1, n + 2))


def below(heads: list[int], top: int) -> list[int]:
    """The words from which the heads lead up to `top`."""
    found = []
    for m in range(1, len(heads)):
        node = m
        while node not in (0, top):
            node = heads[node]
        if node == top:
            found.append(m)
    return found


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("projective", [True, False])
def test_words_know_their_places_in_the_tree(projective: bool, single_root: bool) -> None:
    for seed, sentence in enumerate(sentences(8, 3, crossing=True)):
        parsed = parsed_of(sentence, seed, projective=projective, single_root=single_root)
        heads, s = parsed.heads.tolist(), parsed.sentence
        words = list(parsed)
        assert [word.id for word in words] == list(range(1, len(parsed) + 1))
        assert words == [parsed[i] for i in range(len(parsed))]
        assert parsed[-1] == words[-1]
        assert parsed[1:3] == tuple(words[1:3])
        for m, word in enumerate(words, start=1):
            assert (word.text, word.lemma, word.upos, word.xpos) == (
                s.forms[m - 1],
                None if s.lemmas[m - 1] == "_" else s.lemmas[m - 1],
                s.upos[m - 1],
                s.xpos[m - 1],
            )
            assert (0 if word.head is None else word.head.id) == heads[m]
            assert word.label == s.labels[m]
            assert word.probability == parsed.marginals[heads[m], m]
            assert word.label_probability == 1 / (m + 1)
            assert [child.id for child in word.children] == [k for k in range(1, len(heads)) if heads[k] == m]
            assert [each.id for each in word.subtree] == below(heads, m)
            assert (word.start, word.end) == (None, None)
            assert word in word.subtree
            assert all(child.head == word for child in word.children)


def test_columns_and_features() -> None:
    sentence = Sentence.from_words(
        ["_", "Dogs"], lemmas=["_", "_"], upos=["SYM", "_"], xpos=["_", "NNS"], feats=["_", "Number=Plur|Odd"]
    )
    one, two = Parsed(sentence.with_tree([-1, 2, 0]), TreeDistribution(np.zeros((3, 3))))
    assert (one.lemma, one.upos, one.xpos, one.feats, one.label) == ("_", "SYM", None, {}, None)
    assert (two.lemma, two.upos, two.xpos, two.feats) == (None, None, "NNS", {"Number": "Plur", "Odd": True})
    assert one.label_probability is None
    assert one.to_dict()["lemma"] == "_"
    assert one.to_dict()["label"] is one.to_dict()["label_probability"] is two.to_dict()["lemma"] is None


def test_a_document_is_its_sentences() -> None:
    document = parser()(TEXT)
    alone = list(parser().parse_text(TEXT))
    assert len(document) == len(document.sentences) == len(alone) == 3
    assert [each.sentence.forms for each in document] == [each.sentence.forms for each in alone]
    assert document[2] is document.sentences[-1]
    assert document[:2] == document.sentences[:2]
    assert [word.text for word in document.words] == [form for each in alone for form in each.sentence.forms]
    assert str(document) == document.text == TEXT
    assert all(TEXT[word.start : word.end] == word.text for word in document.words)
    assert document[2][0].start == TEXT.rindex("The")


@pytest.mark.parametrize(
    "text",
    [
        "The dog sleeps.\r\nThe dog\rsleeps.\n\r\n The old\u2028woman reads.",
        "The do\u0308g sleeps. E\u0301l \u0ba8\u0bbf reads \U0001f468\u200d\U0001f469\u200d\U0001f467 a book.",
        "\ufeffThe dog \udc80\ud83d sleeps.\x00 The \x1b[1mdog sleeps.",
        "\t\t The\u00a0dog\u3000sleeps .  ",
    ],
)
def test_offsets_are_of_the_text_as_it_was_given(text: str) -> None:
    document = parser()(text)
    assert document.text == text
    assert len(list(document.words)) > 3
    assert all(text[word.start : word.end] == word.text for word in document.words)
    places = [(word.start, word.end) for word in document.words]
    assert places == sorted(places)


def test_multiword_tokens() -> None:
    tokens = ("do", ("de", "o"), True), ("cannot", ("can", "not"), False)
    sentence = sentence_from_tokens(tokens, ((0, 2), (0, 2), (3, 6), (6, 9)))
    parsed = parsed_of(sentence)
    assert [(word.text, word.start, word.end) for word in parsed] == [
        ("de", 0, 2),
        ("o", 0, 2),
        ("can", 3, 6),
        ("not", 6, 9),
    ]
    assert parsed.text == "do cannot"
    assert [(t["first"], t["last"], t["form"], t["offsets"]) for t in parsed.to_dict()["multiword_tokens"]] == [
        (1, 2, "do", (0, 2)),
        (3, 4, "cannot", (3, 9)),
    ]


@pytest.mark.parametrize("text", ["", " ", "\r\n\r\n"])
def test_empty_texts(text: str) -> None:
    document = parser()(text)
    assert (len(document), list(document.words), document.to_conllu()) == (0, [], "")
    assert document.to_dict() == json.loads(document.to_json()) == {"text": text, "sentences": []}
    assert ElementTree.fromstring(document.to_svg()).tag.endswith("svg")


def test_what_is_no_text_is_refused() -> None:
    for given in (["The", "dog"], 3, None, b"The dog"):
        with pytest.raises(ArgumentError, match="expected a text, got"):
            parser()(given)  # type: ignore[arg-type]
    with pytest.raises(TrainingError, match="cannot split text into words"):
        Parser(ToyModel(1.0, {}))("The dog sleeps.")


def test_plain_data_json_and_conllu() -> None:
    document = parser()(TEXT)
    data = document.to_dict()
    assert [sentence.to_dict() for sentence in document] == data["sentences"]
    assert json.loads(document.to_json(indent=1)) == json.loads(json.dumps(data))
    assert json.loads(document[1].to_json()) == json.loads(json.dumps(data["sentences"][1]))
    assert "…" in parser()("The dog… sleeps.").to_json()
    read = list(read_treebank_text(document.to_conllu()))
    assert [sentence.layout.comments for sentence in read] == [
        ("# newpar", "# sent_id = 1", f"# text = {document[0].text}"),
        ("# sent_id = 2", f"# text = {document[1].text}"),
        ("# newpar", "# sent_id = 3", f"# text = {document[2].text}"),
    ]
    assert [sentence.forms for sentence in read] == [each.sentence.forms for each in document]
    assert [sentence.heads.tolist() for sentence in read] == [each.heads.tolist() for each in document]


def test_no_paragraph_begins_where_no_text_is_known() -> None:
    loose = tuple(parsed_of(sentence) for sentence in sentences(2, 4))
    assert "newpar" not in Document("", loose).to_conllu()


def read_treebank_text(text: str) -> list[Sentence]:
    from io import StringIO

    return list(read_treebank(StringIO(text)))


def test_probabilities_in_conllu() -> None:
    parsed = parsed_of(sentences(1, 4)[0])
    for given in (parsed, Document("", (parsed,))):
        [read] = read_treebank_text(given.to_conllu(probabilities=True))
        for word, misc in zip(parsed, read.layout.misc, strict=True):
            assert misc_entry(misc, "HeadProbability") == f"{word.probability:.4f}"
            assert misc_entry(misc, "LabelProbability") == f"{word.label_probability:.4f}"
        assert "Probability" not in given.to_conllu()
    unknown = Parsed(parsed.sentence, parsed.distribution)
    assert "LabelProbability" not in unknown.to_conllu(probabilities=True)


def test_a_gap_without_bounds_is_null() -> None:
    sentence = Sentence.from_words(["Go"], heads=[-1, 0])
    distribution = StretchedDistribution(np.array([-1, 0]), np.ones(2), 0.0)
    parsed = Parsed(sentence, distribution, Status.IN_STRETCHES, np.inf)
    assert json.loads(parsed.to_json())["gap"] is None


def test_pictures_stand_one_below_the_other() -> None:
    document = parser()(TEXT)
    sheet = ElementTree.fromstring(document.to_svg(unsure_below=0.1))
    own = [ElementTree.fromstring(each.to_svg(unsure_below=0.1)) for each in document]
    inner = [child for child in sheet if child.tag.endswith("svg")]
    heights = [float(each.get("height", 0)) for each in own]
    np.testing.assert_allclose([float(each.get("y", -1)) for each in inner], np.cumsum([0, *heights[:-1]]), atol=0.02)
    assert float(sheet.get("height", 0)) == pytest.approx(sum(heights), abs=0.02)
    assert float(sheet.get("width", 0)) == max(float(each.get("width", 0)) for each in own)
    for one, other in zip(inner, own, strict=True):
        assert list(one.itertext()) == list(other.itertext())


def test_data_frames() -> None:
    pandas = pytest.importorskip("pandas", reason="data frames are of pandas")
    document = parser()(TEXT)
    frame = document.to_dataframe()
    words = list(document.words)
    assert len(frame) == len(words) == 15
    assert frame["sentence"].tolist() == [1] * 4 + [2] * 7 + [3] * 4
    assert frame["text"].tolist() == [word.text for word in words]
    assert frame["head"].tolist() == [word.head.id if word.head else 0 for word in words]
    assert frame["start"].tolist() == [word.start for word in words]
    np.testing.assert_array_equal(frame["probability"], [word.probability for word in words])
    assert frame["label_probability"].isna().all()
    assert frame["lemma"].isna().all()
    assert document[0].to_dataframe().equals(frame[:4])
    features = Sentence.from_words(["Dogs", "bark"], feats=["Number=Plur|Odd", "_"])
    made = parsed_of(features).to_dataframe()
    assert made["feats"][0] == "Number=Plur|Odd"
    assert made["feats"].isna().tolist() == [False, True]
    assert made["start"].isna().all()
    assert made["label_probability"].tolist() == [1 / 2, 1 / 3]
    assert isinstance(made, pandas.DataFrame)
    empty = parser()("").to_dataframe()
    assert (len(empty), list(empty.columns)) == (0, list(frame.columns))


def test_without_pandas_it_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.extras.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError) as caught:
        parser()(TEXT).to_dataframe()
    assert str(caught.value) == "a data frame needs pandas; install it with: pip install 'headway[pandas]'"


def test_pandas_is_imported_for_data_frames_only() -> None:
    code = "import headway.pipeline, headway.document, sys; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_words_are_equal_by_sentence_and_number() -> None:
    document = parser()(TEXT)
    first, third = document[0], document[2]
    assert first[0] == first[0]
    assert first[0] != first[1]
    assert first[0] != third[0], "the same words, another sentence"
    assert len({word for sentence in (first, first, third) for word in sentence}) == 8
    assert first != third
    assert document != parser()(TEXT)


@pytest.mark.parametrize("asked", [False, True])
def test_pickled(asked: bool) -> None:
    document = parser()(TEXT)
    if asked:  # what is computed once is kept
        document.to_dict()
        assert document[1][0].subtree
    again = pickle.loads(pickle.dumps(document))
    assert again.to_dict() == document.to_dict()
    assert again[1][2].head == again[1][1]
    assert again[0].distribution.kbest(2)[0][1] == document[0].distribution.kbest(2)[0][1]
    word = pickle.loads(pickle.dumps(document[1][2]))
    assert (word.text, word.head.text) == (document[1][2].text, document[1][1].text)


def test_deep_and_wide_trees_in_one_walk() -> None:
    """A chain of so many words is deeper than Python's own stack; all of a flat tree's subtrees are short."""
    n = 20_000
    forms = Sentence.from_words(["w"] * n)
    distribution = StretchedDistribution(np.zeros(0), np.ones(n + 1), 0.0)
    chain = Parsed(forms.with_tree(np.arange(-1, n)), distribution)
    assert [word.id for word in chain[n - 3].subtree] == [n - 2, n - 1, n]
    assert len(chain[0].subtree) == n
    flat = Parsed(forms.with_tree([-1, 0, *[1] * (n - 1)]), distribution)
    assert sum(len(word.subtree) for word in flat) == 2 * n - 1
    assert len(flat[0].children) == n - 1


def test_reprs_are_short() -> None:
    document = parser()(TEXT * 50)
    assert repr(parser()("The dog sleeps.")) == "<Document of 1 sentence: 'The dog sleeps.'>"
    assert repr(document[0]) == "<Parsed of 4 words: 'The dog sleeps.'>"
    assert repr(document[0][1]) == "<Word 2 'dog': child of 'The'>"
    assert repr(parsed_of(Sentence.from_words(["Go"]))[0]) == "<Word 1 'Go': root>"
    long = parser()("x" * 5000)
    for each in (document, document[0], document[0][0], document[0].distribution, long, long[0], long[0][0]):
        assert len(repr(each)) < 150
        assert len(repr(each).splitlines()) == 1
    assert issubclass(MissingExtraError, HeadwayError)
    assert isinstance(document[0][0], Word)
