"""The component in real spaCy pipelines, beside the parser's own results."""

from __future__ import annotations

import pickle
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

spacy = pytest.importorskip("spacy")

from spacy import displacy  # noqa: E402
from spacy.language import Language  # noqa: E402
from spacy.tokens import Doc  # noqa: E402
from spacy.training import Example  # noqa: E402

from headway.errors import ArchiveError, HeadwayError  # noqa: E402
from headway.models.protocol import Prediction  # noqa: E402
from headway.pipeline import Parser  # noqa: E402
from headway.spacy import ComponentSettings, HeadwayParser  # noqa: E402
from headway.treebank import Sentence, is_projective  # noqa: E402

from .cli import toy  # noqa: E402
from .models.toy_treebank import sentences  # noqa: E402
from .toy_model import ToyModel  # noqa: E402

TEXT = "la granda hundo vidas un kato . bela floro amas la domo ! hundo vidas floro ."


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spacy")
    path = folder / "toy.headway"
    Parser.train(toy.write(folder / "train.conllu"), epochs=3).save(path)
    return path


@pytest.fixture(scope="module")
def higher_order(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sibling model of a language with crossing arcs and sentences of two roots."""
    path = tmp_path_factory.mktemp("spacy") / "sibling.headway"
    data = sentences(36, 1, crossing=True, two_roots=True)
    Parser.train(data, model="sibling", learner="perceptron", epochs=3, single_root=False).save(path)
    return path


@pytest.fixture
def nlp(model: Path) -> Language:
    return pipeline(model)


def pipeline(model: Path, *before: str, **config: Any) -> Language:
    nlp = spacy.blank("en")
    for name in before or ("sentencizer",):
        nlp.add_pipe(name)
    nlp.add_pipe("headway", config={"model": str(model), **config})
    return nlp


def component(nlp: Language) -> HeadwayParser:
    found = nlp.get_pipe("headway")
    assert isinstance(found, HeadwayParser)
    return found


def state(doc: Doc) -> list[tuple[Any, ...]]:
    """All that the component sets."""
    return [
        (t.text, t.head.i, t.dep_, t.is_sent_start, t._.arc_probability, t.pos_, t.tag_, str(t.morph), t.lemma_)
        for t in doc
    ]


def assert_as_parsed(doc: Doc, parser: Parser, *, tagged: bool = False) -> None:
    """Each sentence has the tree, labels and probabilities that the parser itself finds for its words."""
    for span in doc.sents:
        tokens = list(span)
        tags = {"upos": [token.pos_ for token in tokens], "xpos": [token.tag_ for token in tokens]} if tagged else {}
        parsed = parser.parse(Sentence.from_words([token.text for token in tokens], **tags))
        own = [0, *(token.i - span.start + 1 for token in tokens)]
        for m, token in enumerate(tokens, start=1):
            head, label = int(parsed.heads[m]), parsed.labels[m]
            assert token.head.i - span.start + 1 == (own[head] or m)
            assert token.dep_ == ("ROOT" if head == 0 else label)
            assert token._.arc_probability == pytest.approx(parsed.marginals[head, m], rel=1e-9)


def test_trees_labels_and_probabilities_are_the_parsers(nlp: Language, model: Path) -> None:
    doc = nlp(TEXT)
    assert [len(span) for span in doc.sents] == [7, 6, 4]
    assert_as_parsed(doc, Parser.load(model))
    assert {token.dep_ for token in doc} > {"ROOT", "nsubj", "obj"}  # not one label for everything
    assert [span.root.text for span in doc.sents][:2] == ["vidas", "amas"]
    assert doc.has_annotation("DEP", require_complete=True)


def test_the_tags_of_the_doc_are_used(model: Path) -> None:
    parser = Parser.load(model)
    forms, upos = ["zzz", "yyy", "xxx", "www", "."], ["NOUN", "VERB", "DET", "NOUN", "PUNCT"]
    found = set()
    for tags in (upos, [upos[1], upos[0], *upos[2:]]):
        nlp = pipeline(model)
        doc = component(nlp)(Doc(nlp.vocab, words=forms, pos=tags, tags=[tag[:1] for tag in tags]))
        assert_as_parsed(doc, parser, tagged=True)
        assert [token.pos_ for token in doc] == tags
        found.add(doc[:].root.i)
    assert found == {0, 1}  # of unknown words the root is the one tagged as a verb


def test_crossing_arcs_and_several_roots(higher_order: Path) -> None:
    nlp = pipeline(higher_order, threads=1)
    parser = Parser.load(higher_order)
    crossed = several = 0
    for sentence in sentences(12, 5, crossing=True, two_roots=True):
        words = [*sentence.forms, *sentence.forms]
        tags = [*sentence.xpos, *sentence.xpos]
        starts = [i in (0, len(sentence)) for i in range(len(words))]
        doc = component(nlp)(Doc(nlp.vocab, words=words, tags=tags, sent_starts=starts))
        parsed = parser.parse(Sentence.from_words(sentence.forms, xpos=sentence.xpos))
        assert [span.start for span in doc.sents] == [0, len(sentence)]  # also where a sentence has two roots
        for span in doc.sents:
            heads = [0 if t.head.i == t.i else t.head.i - span.start + 1 for t in span]
            assert heads == parsed.heads[1:].tolist()
        crossed += not is_projective(parsed.heads)
        several += int((parsed.heads == 0).sum() > 1)
    assert crossed
    assert several


def test_white_space_hangs_from_the_token_before(nlp: Language, model: Path) -> None:
    plain, spaced = nlp("la hundo vidas kato ."), nlp("  la hundo \n\n vidas\tkato .")
    words = [token for token in spaced if not token.is_space]
    assert [t.text for t in words] == [t.text for t in plain]
    assert [t.head.text for t in words] == [t.head.text for t in plain]
    assert [t._.arc_probability for t in words] == [t._.arc_probability for t in plain]
    for space in (token for token in spaced if token.is_space):
        assert space.head.i == (space.i - 1 if space.i else 1)  # the first hangs from the first word
        assert space.dep_ == "dep"
        assert space._.arc_probability is None
    assert len(list(spaced.sents)) == 1


def test_white_space_before_the_first_word_is_no_sentence(model: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("headway", config={"model": str(model)})
    doc = nlp("\n\n  la hundo vidas kato .\n\nla kato vidas hundo .")
    assert [span.start for span in doc.sents] == [0, 7]
    assert sum(token.dep_ == "ROOT" for token in doc) == 2
    assert (doc[0].dep_, doc[0].head.i) == ("dep", 1)


@pytest.mark.parametrize("text", ["", " ", "\n\n \t", "hundo", ".", " hundo"])
def test_short_docs(nlp: Language, text: str) -> None:
    doc = nlp(text)
    assert doc.text == text
    assert len(doc) == 0 or doc[-1 if text.strip() else 0].dep_ == "ROOT"
    assert len(list(doc.sents)) == (len(doc) > 0)
    assert state(next(nlp.pipe([text]))) == state(doc)


def test_without_sentences_the_parsers_segmenter_finds_them(model: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("headway", config={"model": str(model)})
    assert state(nlp(TEXT)) == state(pipeline(model)(TEXT))
    component(nlp)._parser = replace(Parser.load(model), segmenter=None)
    doc = nlp(TEXT)
    assert len(list(doc.sents)) == 1
    assert_as_parsed(doc, Parser.load(model))


class _Parts(NamedTuple):
    """A parser with a segmenter and a tagger of the test's own."""

    parser: Parser
    segmenter: Any
    tagger: Any
    gives_tags: bool = True

    def drafts(self, text: str) -> Any:
        return self.segmenter.sentences(text)

    def parse_each(self, drafts: Any, **options: Any) -> Any:
        return ([self.tagger(parsed) for parsed in own] for own in self.parser.parse_each(drafts, **options))


class _HalfWay:
    """Cuts every text into two sentences at character `at`, whatever is there."""

    def __init__(self, at: int) -> None:
        self.at = at

    def sentences(self, text: str, offset: int = 0) -> list[Sentence]:
        return [
            replace(one, layout=replace(one.layout, misc=(f"TokenRange={start}:{end}",)))
            for start, end in ((0, self.at), (self.at, len(text)))
            for one in [Sentence.from_words(["word"])]
        ]


@pytest.mark.parametrize(("at", "start"), [(17, 4), (15, 4), (12, 3), (10, 3), (24, None)])
def test_the_segmenter_finds_sentences(model: Path, at: int, start: int | None) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("headway", config={"model": str(model)})
    component(nlp)._parser = _Parts(Parser.load(model), _HalfWay(at), lambda parsed: parsed)  # type: ignore[assignment]
    doc = nlp("la hundo  \n vidas kato .")  # tokens at 0, 3, 9 (white space), 12, 18, 23
    assert [span.start for span in doc.sents] == [0, *([] if start is None else [start])]


def _tagged(parsed: Any) -> Any:
    n = len(parsed.sentence)
    absent = ("_",) * (n - 1)
    tags = {"upos": ("NOUN", *("?",) * (n - 1)), "xpos": ("NN", *absent), "lemmas": ("hund", *absent)}
    feats = ("Number=Sing|Case=Nom", "odd", *("_",) * (n - 2))
    return replace(parsed, sentence=replace(parsed.sentence, feats=feats, **tags))


@pytest.mark.parametrize("wanted", [True, False])
def test_the_taggers_tags_are_set_where_there_are_none(model: Path, wanted: bool) -> None:
    nlp = pipeline(model, set_tags=wanted)
    component(nlp)._parser = _Parts(Parser.load(model), None, _tagged)  # type: ignore[assignment]
    first, second, space = nlp("hundo vidas\n")
    assert [first.pos_, first.tag_, str(first.morph)] == (
        ["NOUN", "NN", "Case=Nom|Number=Sing"] if wanted else [""] * 3
    )
    assert [first.lemma_, second.lemma_] == (["hund", ""] if wanted else ["", ""])
    assert [second.pos_, second.tag_, str(second.morph)] == [""] * 3  # nothing that spaCy has a place for
    assert [space.pos_, space.tag_] == (["SPACE", "_SP"] if wanted else [""] * 2)
    doc = Doc(nlp.vocab, words=["hundo", "vidas"], pos=["ADJ", "VERB"])
    component(nlp)(doc)
    assert [token.pos_ for token in doc] == ["ADJ", "VERB"]
    assert doc[0].tag_ == ("NN" if wanted else "")


def test_streams_are_parsed_as_one_by_one(nlp: Language, model: Path) -> None:
    texts = [*TEXT.split("!"), "", "hundo", " \n", *toy_texts(30)]
    alone = [state(nlp(text)) for text in texts]
    for size in (1, 7, 1000):
        assert [state(doc) for doc in nlp.pipe(iter(texts), batch_size=size)] == alone
    assert len({str(each) for each in alone}) > 10


def toy_texts(count: int) -> list[str]:
    text = toy.treebank(count, seed=9, comments=False)
    return [" ".join(line.split("\t")[1] for line in block.splitlines()) for block in text.split("\n\n") if block]


def test_streams_are_lazy(nlp: Language) -> None:
    taken = []

    def texts() -> Any:
        for text in toy_texts(20):
            taken.append(text)
            yield text

    next(nlp.pipe(texts(), batch_size=4))
    assert len(taken) <= 8


def test_the_error_handler_of_the_pipeline_is_asked(nlp: Language) -> None:
    failures: list[tuple[str, int]] = []
    nlp.set_error_handler(lambda name, proc, docs, error: failures.append((name, len(docs))))
    component(nlp)._parser = object()  # type: ignore[assignment]
    assert list(nlp.pipe(["hundo vidas", "kato"], batch_size=2)) == []
    assert failures == [("headway", 2)]


def test_a_saved_pipeline_has_its_model_with_it(model: Path, tmp_path: Path) -> None:
    copy = tmp_path / "moved.headway"
    shutil.copy(model, copy)
    nlp = pipeline(copy, threads=2, exact=False, set_tags=False)
    before = state(nlp(TEXT))
    nlp.to_disk(tmp_path / "one")
    copy.unlink()
    loaded = spacy.load(tmp_path / "one")
    assert state(loaded(TEXT)) == before
    assert replace(component(loaded).settings, model="") == ComponentSettings("", 2, False, False)
    loaded.to_disk(tmp_path / "two")
    shutil.rmtree(tmp_path / "one")
    assert state(spacy.load(tmp_path / "two")(TEXT)) == before


def test_bytes_hold_the_model(model: Path) -> None:
    nlp = pipeline(model)
    packed = nlp.to_bytes()
    other = spacy.blank("en")
    other.add_pipe("sentencizer")
    other.add_pipe("headway")
    assert state(other.from_bytes(packed)(TEXT)) == state(nlp(TEXT))


def test_an_embedded_model_is_remembered_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nlp = spacy.blank("en")
    nlp.add_pipe("headway", config={"model": "en"})
    nlp.to_disk(tmp_path / "saved")
    assert [file.name for file in (tmp_path / "saved" / "headway").iterdir()] == ["headway.json"]
    assert component(spacy.load(tmp_path / "saved")).settings == ComponentSettings("en")
    assert len(nlp.to_bytes()) < 100_000
    assert component(spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())).settings.model == "en"


@pytest.mark.parametrize("name", ["none.headway", "xx", "some/folder/model"])
def test_a_missing_model_is_refused_when_the_component_is_added(name: str) -> None:
    nlp = spacy.blank("en")
    with pytest.raises(HeadwayError, match=re.escape(name)) as caught:
        nlp.add_pipe("headway", config={"model": name})
    assert "\n" not in str(caught.value)
    assert nlp.pipe_names == []
    with pytest.raises(HeadwayError, match=re.escape(name)):  # once more: what was refused is not remembered
        nlp.add_pipe("headway", config={"model": name})


@pytest.mark.parametrize("name", ["", ".", "/"])
def test_a_folder_is_no_model(name: str) -> None:
    nlp = spacy.blank("en")
    with pytest.raises(HeadwayError, match=r"got an empty text|Is a directory") as caught:
        nlp.add_pipe("headway", config={"model": name})
    assert "\n" not in str(caught.value)
    assert (nlp.pipe_names, nlp.meta.get("headway_models", [])) == ([], [])


@pytest.mark.parametrize("threads", [0, -1])
def test_threads_are_refused_when_the_component_is_added(threads: int) -> None:
    nlp = spacy.blank("en")
    with pytest.raises(HeadwayError, match=f"threads is {threads}; expected at least 1"):
        nlp.add_pipe("headway", config={"threads": threads})
    assert nlp.pipe_names == []


def test_probabilities_of_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "not.looked.at").touch()
    nlp, parser = pipeline(tmp_path / "not.looked.at", "sentencizer"), Parser(FakeModel())
    monkeypatch.setattr(component(nlp), "_parser", parser)
    doc = nlp("one two\n three")
    assert [token._.label_probability for token in doc] == [0.5, 0.25, None, 0.125]


@dataclass(frozen=True)
class FakeModel(ToyModel):
    """Chains of arcs whose labels are the less probable the later."""

    bonus: float = 1.0
    about: Mapping[str, Any] = field(default_factory=dict)

    def _tree(self, sentence: Sentence) -> Prediction:
        made = super()._tree(sentence)
        labels = (None, *["dep"] * len(sentence))
        return replace(made, labels=labels, label_probabilities=0.5 ** np.arange(len(sentence) + 1))


@pytest.mark.parametrize("content", [None, "{", "[]", '{"colour": 1}'])
def test_a_damaged_component_is_named(nlp: Language, tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "headway.json").write_text(content)
    with pytest.raises(ArchiveError, match="save the pipeline again"):
        component(nlp).from_disk(tmp_path)


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x01"])
def test_damaged_bytes_are_named(nlp: Language, data: bytes) -> None:
    with pytest.raises(ArchiveError, match="save it again"):
        component(nlp).from_bytes(data)


def test_pickled(nlp: Language) -> None:
    doc = nlp(TEXT)
    again = pickle.loads(pickle.dumps(component(nlp)))
    for span in doc.sents:
        alone = again(nlp.make_doc(span.text))
        assert [t.head.i for t in alone] == [t.head.i - span.start for t in span]


def test_docs_keep_probabilities_when_saved(nlp: Language) -> None:
    doc = nlp(TEXT)
    again = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert state(again) == state(doc)
    assert np.isfinite([token._.arc_probability for token in again]).all()


def test_displacy_draws_it(nlp: Language) -> None:
    svg = displacy.render(nlp("la hundo vidas kato ."), style="dep", jupyter=False)
    assert svg.startswith("<svg")
    assert ">nsubj</textPath>" in svg
    assert svg.count('class="displacy-arrow"') == 3  # the full stop is drawn with the word before it


def test_spacys_own_tools_know_the_component(nlp: Language) -> None:
    assert "token.dep" in nlp.analyze_pipes()["summary"]["headway"]["assigns"]
    doc = nlp(TEXT)
    heads, labels = [t.head.i for t in doc], [t.dep_ for t in doc]
    wrong = ["advcl" if label == "obj" else label for label in labels]
    right, other = (Example.from_dict(nlp.make_doc(TEXT), {"heads": heads, "deps": deps}) for deps in (labels, wrong))
    assert nlp.evaluate([right])["dep_las"] == 1.0
    assert nlp.evaluate([other])["dep_uas"] == 1.0
    assert nlp.evaluate([other])["dep_las"] < 1.0
