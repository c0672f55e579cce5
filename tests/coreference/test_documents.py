"""Documents from and to files: hand-written files, random mentions, and GUM where it is present."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.coreference import Document, Mention, read_documents, write_documents
from headway.coreference.documents import documents_checksum
from headway.errors import TreebankError
from headway.treebank import Place, Sentence, read_treebank

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
GUM = DATA / "ud" / "UD_English-GUM"


def sentence(*misc: str, comments: tuple[str, ...] = ()) -> str:
    """The lines of a sentence of words w1, w2, ... with these values of MISC."""
    words = (f"{number}\tw{number}" + "\t_" * 7 + f"\t{value}" for number, value in enumerate(misc, start=1))
    return "".join(f"{line}\n" for line in (*comments, *words, ""))


def read(text: str) -> list[Document]:
    return list(read_documents(io.StringIO(text)))


def written(documents: list[Document]) -> str:
    stream = io.StringIO()
    write_documents(documents, stream)
    return stream.getvalue()


def misc_of(text: str) -> list[str]:
    return [line.split("\t")[9] for line in text.splitlines() if line and line[0] != "#"]


TWO = sentence(
    "Entity=(5-person-new(2-place-giv:act)|SpaceAfter=No",
    "_",
    "Bridge=5<2|Entity=(9)5)",
    comments=("# newdoc id = first one", "# global.Entity = GRP-etype-infstat", "# text = x"),
)
TWO += sentence("Entity=(2-place-giv)", "Entity=(5--acc)")
TWO += sentence("Entity=(2-thing)", comments=("# newdoc id = second", "# global.Entity = GRP-etype-infstat"))


def test_documents_mentions_and_clusters() -> None:
    first, second = read(TWO)
    assert (first.name, second.name) == ("first one", "second")
    assert [len(document.sentences) for document in (first, second)] == [2, 1]
    assert first.fields == ("GRP", "etype", "infstat")
    assert (first.place, second.place) == (Place("stream", 1), Place("stream", 11))
    assert first.mentions == (
        Mention(0, (1, 2, 3), "person", "person-new"),
        Mention(0, (1,), "place", "place-giv:act"),
        Mention(0, (3,), "_", ""),
        Mention(1, (1,), "place", "place-giv"),
        Mention(1, (2,), "_", "-acc"),
    )
    assert first.clusters.dtype == np.int64
    assert first.clusters.tolist() == [0, 1, 2, 1, 0]
    assert first.partition() == [
        {(0, (1, 2, 3)), (1, (2,))},
        {(0, (1,)), (1, (1,))},
        {(0, (3,))},
    ]
    assert second.mentions == (Mention(0, (1,), "thing", "thing"),)
    assert "5 mentions" in repr(first)


def test_the_order_of_mentions() -> None:
    text = sentence("Entity=(1(2(3[1/2])", "Entity=(4)2)", "Entity=(3[2/2])", "Entity=1)")
    (document,) = read(text)
    assert [mention.words for mention in document.mentions] == [(1, 2, 3, 4), (1, 3), (1, 2), (2,)]
    assert document.clusters.tolist() == [0, 1, 2, 3]


def test_sentences_before_the_first_document_and_documents_without_id() -> None:
    text = sentence("Entity=(1)") + sentence("_", comments=("# newdoc",)) + sentence("_", comments=("#newdoc id=b ",))
    assert [(document.name, len(document.mentions)) for document in read(text)] == [("", 1), ("", 0), ("b", 0)]
    assert read("") == []
    (document,) = read(sentence("_", comments=("# newdocument = 3", "# newdoc_id = 4")))
    assert document.name == ""


def test_the_header_holds_until_another() -> None:
    text = sentence("Entity=(e1-a)", comments=("# newdoc id = 1", "# global.Entity = eid-etype"))
    text += sentence("Entity=(e2-x-b)", comments=("# newdoc id = 2",))
    text += sentence("Entity=(e3-x-b)", comments=("# newdoc id = 3", "# global.Entity = eid-head-etype"))
    assert [document.mentions[0].type for document in read(text)] == ["a", "x", "b"]


def test_names_of_entities_are_those_of_their_document() -> None:
    first, second = read(TWO)
    assert first.clusters.max() == 2
    assert second.clusters.tolist() == [0]


def test_one_document_is_held_at_a_time() -> None:
    reached = []

    class Lines(io.RawIOBase):
        def __init__(self) -> None:
            self.texts = [sentence("Entity=(1)", comments=(f"# newdoc id = {i}",)).encode() for i in range(5)]

        def read(self, size: int = -1) -> bytes:
            reached.append(len(self.texts))
            return self.texts.pop(0) if self.texts else b""

    documents = read_documents(Lines())  # type: ignore[arg-type]  # a stream that only reads
    assert next(documents).name == "0"
    assert reached[-1] > 1


def test_with_clusters_numbers_by_first_mention() -> None:
    first, _ = read(TWO)
    assert first.with_clusters([7, 3, 7, -1, 3]).clusters.tolist() == [0, 1, 0, 2, 1]
    assert first.clusters.tolist() == [0, 1, 2, 1, 0]
    for wrong in ([1, 2], [[1, 2, 3, 4, 5]], [0.5, 1, 2, 3, 4]):
        with pytest.raises(ValueError, match="expected 5 integers"):
            first.with_clusters(wrong)


def test_with_mentions_sorts_both() -> None:
    first, _ = read(TWO)
    mentions = [Mention(1, (1,)), Mention(0, (2,)), Mention(0, (2, 3)), Mention(0, (1, 3))]
    document = first.with_mentions(mentions, [4, 8, 4, 1])
    assert [(mention.sentence, mention.words) for mention in document.mentions] == [
        (0, (1, 3)),
        (0, (2, 3)),
        (0, (2,)),
        (1, (1,)),
    ]
    assert document.clusters.tolist() == [0, 1, 2, 1]
    empty = first.with_mentions([], [])
    assert (empty.mentions, empty.clusters.tolist(), empty.partition()) == ((), [], [])
    assert empty.without_singletons().mentions == ()


@pytest.mark.parametrize(
    ("mention", "cause"),
    [
        (Mention(2, (1,)), "is outside the document, which has sentences 0 to 1"),
        (Mention(-1, (1,)), "is outside the document"),
        (Mention(1, (1, 3)), "does not consist of words 1 to 2"),
        (Mention(1, ()), "does not consist of words 1 to 2"),
        (Mention(1, (0, 1)), "does not consist of words 1 to 2"),
        (Mention(1, (2, 1)), "in ascending order"),
        (Mention(1, (2, 2)), "give each once"),
        (Mention(1, (1,), rest="a)"), "no mark can hold"),
        (Mention(1, (1,), rest="a|B=c"), "no mark can hold"),
        (Mention(0, (1, 2)), "have the same words"),
    ],
)
def test_mentions_that_no_document_can_have(mention: Mention, cause: str) -> None:
    first, _ = read(TWO)
    with pytest.raises(TreebankError, match=cause):
        first.with_mentions([Mention(0, (1, 2)), mention], [0, 1])


def test_without_singletons() -> None:
    first, second = read(TWO)
    kept = first.without_singletons()
    assert [mention.words for mention in kept.mentions] == [(1, 2, 3), (1,), (1,), (2,)]
    assert kept.clusters.tolist() == [0, 1, 1, 0]
    assert second.without_singletons().mentions == ()


# What is wrong, the line to look at, the cause.
WRONG = [
    (sentence("_", "Entity=1)", comments=("# text = x",)), 3, "closes a mention that is not open"),
    (sentence("_", "Entity=(1") + sentence("Entity=1)"), 2, r"'\(1' is not closed in its sentence"),
    (sentence("_") + sentence("_", "Entity=(1)(2)", comments=("# a", "# b")), 6, "the same words are marked twice"),
    (sentence("Entity=(1(1", "Entity=1)1)"), 1, "the same words are marked twice, as '1' and '1'"),
    (sentence("Entity=(1)|Entity=(2)"), 1, "MISC has Entity= twice"),
    (sentence("Entity="), 1, "'' is not a mark"),
    (sentence("_", comments=("# a", "# global.Entity = entity-GRP-infstat")), 2, "expected 'eid' or 'GRP' first"),
    (sentence("_", comments=("# global.Entity =",)), 1, "expected 'eid' or 'GRP' first"),
    (sentence("_", comments=("# global.Entity = eid-etype-etype",)), 1, "each once"),
    (sentence("_", comments=("# global.Entity = eid--etype",)), 1, "each once"),
    (
        sentence("_", comments=("# global.Entity = eid",)) + sentence("_", comments=("# global.Entity = GRP",)),
        4,
        "change inside a document",
    ),
]


@pytest.mark.parametrize(("text", "line", "cause"), WRONG)
def test_errors_name_file_line_and_cause(text: str, line: int, cause: str) -> None:
    with pytest.raises(TreebankError, match=cause) as caught:
        read(text)
    assert (caught.value.source, caught.value.line) == ("stream", line)
    assert "; " in str(caught.value)


def with_line(text: str, position: int, line: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:position], line + "\n", *lines[position:]])


def test_marks_on_what_is_no_word() -> None:
    plain = sentence("_", "Entity=(1)", comments=("# a",))
    token = with_line(plain, 1, "1-2\tw1w2" + "\t_" * 7 + "\tEntity=(3)")
    with pytest.raises(
        TreebankError, match="a multiword token, 1-2, has Entity=; move it to the token's words"
    ) as caught:
        read(token)
    assert caught.value.line == 2
    empty = with_line(plain, 2, "1.1\tzero" + "\t_" * 7 + "\tA=b|Entity=(3)")
    with pytest.raises(TreebankError, match=r"an empty node, 1\.1, has Entity=; remove it") as caught:
        read(empty)
    assert caught.value.line == 3
    both = with_line(token.replace("Entity=(3)", "XEntity=(3)"), 3, "1.1\tzero" + "\t_" * 7 + "\t_")
    (document,) = read(both)
    assert document.mentions == (Mention(0, (2,)),)
    with pytest.raises(TreebankError, match="is not a mark") as caught:
        read(both.replace("Entity=(1)", "Entity=1"))
    assert caught.value.line == 5  # after the comment, the token, word 1 and the empty node


def test_bad_documents_are_left_out_on_demand() -> None:
    text = "".join(
        sentence(f"Entity={marks}", comments=(f"# newdoc id = {name}",))
        for name, marks in (("a", "(1)"), ("b", "(1"), ("c", "(2)"))
    )
    problems: list[TreebankError] = []
    found = list(read_documents(io.StringIO(text), skip_bad=problems.append))
    assert [document.name for document in found] == ["a", "c"]
    assert [problem.line for problem in problems] == [5]
    with pytest.raises(TreebankError, match="1 column; expected 10"):
        list(read_documents(io.StringIO(text + "1\n"), skip_bad=problems.append))


def test_writing_renames_entities_and_nothing_else() -> None:
    documents = read(TWO)
    expected = TWO.replace("(5-", "(1-").replace("(9)5)", "(3)1)").replace("5<2", "1<2").replace("(2-thing", "(1-thing")
    assert written(documents) == expected
    again = read(written(documents))
    for one, other in zip(documents, again, strict=True):
        assert one.mentions == other.mentions
        assert one.partition() == other.partition()


def test_line_ends_and_other_lines_stay() -> None:
    text = sentence("Entity=(1)|A", "_", comments=("# global.Entity = GRP", "# é"))
    text = with_line(with_line(text, 2, "1-2\tw" + "\t_" * 8), 4, "1.1\tw" + "\t_" * 8).replace("\n", "\r\n")
    stream = io.BytesIO()
    write_documents(read_documents(io.BytesIO(text.encode())), stream)
    assert stream.getvalue() == text.encode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("_", "Entity=(e1)"),
        ("A=b|SpaceAfter=No", "A=b|Entity=(e1)|SpaceAfter=No"),
        ("A=b", "A=b|Entity=(e1)"),
        ("SpaceAfter=No", "Entity=(e1)|SpaceAfter=No"),
        ("discourse|gloss=x=y", "discourse|Entity=(e1)|gloss=x=y"),
        ("Z=1|Entity=(7)|B=2", "Z=1|Entity=(e1)|B=2"),
        ("XEntity=3|Zed", "Entity=(e1)|XEntity=3|Zed"),
    ],
)
def test_the_place_of_marks_in_misc(before: str, after: str) -> None:
    (document,) = read(sentence(before, "Entity=(8)|Z=1", "Entity=(9)"))
    marked = written([document.with_mentions([Mention(0, (1,))], [0])])
    assert misc_of(marked) == [after, "Z=1", "_"]


def test_a_header_is_written_where_one_is_missing() -> None:
    text = sentence("_", comments=("# a", "# newdoc id = x", "# b")) + sentence("_", comments=("# newdoc id = y",))
    first, second = read(text)
    assert written([first, second]) == text
    marked = written([one.with_mentions([Mention(0, (1,))], [0]) for one in (first, second)])
    # The second document needs no header of its own, and its entity another name: eids are unique in a file.
    assert marked.splitlines()[:4] == ["# a", "# newdoc id = x", "# global.Entity = eid", "# b"]
    assert marked.count("global.Entity") == 1
    assert misc_of(marked) == ["Entity=(e1)", "Entity=(e2)"]
    (bare,) = read(sentence("_", comments=("# a",)))
    assert written([bare.with_mentions([Mention(0, (1,))], [0])]).startswith("# global.Entity = eid\n# a\n1\t")


def test_without_a_header_marks_that_say_more_stay_without() -> None:
    text = sentence("Entity=(7-person)")
    assert written(read(text)) == sentence("Entity=(1-person)")


def test_a_document_written_alone_takes_its_header_along() -> None:
    text = sentence("Entity=(e1-a)", comments=("# newdoc id = 1", "# global.Entity = eid-etype"))
    text += sentence("Entity=(e2-b)", comments=("# newdoc id = 2",))
    documents = read(text)
    assert written(documents) == text
    (alone,) = read(written(documents[1:]))
    assert (alone.fields, alone.mentions) == (("eid", "etype"), (Mention(0, (1,), "b", "b"),))


def test_changed_clusters_are_what_is_read_back() -> None:
    first, second = read(TWO)
    changed = first.with_clusters([0, 1, 0, 0, 1])
    again, _ = read(written([changed, second]))
    assert again.partition() == changed.partition()
    assert again.mentions == changed.mentions


LINKED = sentence(
    "Entity=(10)",
    "Entity=(20)",
    "Bridge=10<30:part,20<30,77<30|Entity=(30)",
    "Entity=(40)|SplitAnte=10<40,20<40",
    "Entity=(10)",
    comments=("# global.Entity = GRP", "# meta::salientEntities = 20 (5*), 10 (1), 40 (2)"),
)


@pytest.mark.parametrize(
    ("clusters", "bridge", "split", "salient"),
    [
        ([0, 1, 2, 3, 0], "Bridge=1<3:part,2<3|", "|SplitAnte=1<4,2<4", "2 (5*), 1 (1), 4 (2)"),
        ([0, 1, 2, 3, 4], "Bridge=2<3|", "", "2 (5*), 4 (2)"),  # entity 10 fell apart
        ([0, 0, 1, 2, 0], "Bridge=1<2:part,1<2|", "", "1 (5*), 1 (1), 3 (2)"),  # 10 and 20 are one
        ([0, 1, 0, 2, 0], "Bridge=2<1|", "|SplitAnte=1<3,2<3", "2 (5*), 1 (1), 3 (2)"),  # 10 and 30 are one
    ],
)
def test_what_refers_to_entities(clusters: list[int], bridge: str, split: str, salient: str) -> None:
    (document,) = read(LINKED)
    text = written([document.with_clusters(clusters)])
    names = [f"({number + 1})" for number in clusters]
    assert misc_of(text)[2] == f"{bridge}Entity={names[2]}"
    assert misc_of(text)[3] == f"Entity={names[3]}{split}"
    assert text.splitlines()[1] == f"# meta::salientEntities = {salient}"


def test_nothing_refers_to_mentions_that_are_gone() -> None:
    (document,) = read(LINKED)
    text = written([document.with_mentions([], [])])
    assert misc_of(text) == ["_"] * 5


def test_sentences_of_conllx_get_marks() -> None:
    text = sentence("Entity=(1)", "_")  # in CoNLL-X that column is PDEPREL
    sentences = tuple(read_treebank(io.StringIO(text), format="conllx"))
    empty = Document("", sentences, (), np.empty(0, dtype=np.int64), (), sentences[0].place)
    marked = written([empty.with_mentions([Mention(0, (2,))], [0])])
    assert misc_of(marked) == ["_", "Entity=(e1)"]


def test_what_cannot_be_written_names_the_place() -> None:
    (document,) = read(sentence(*"____", comments=("# a",)))
    interleaved = document.with_mentions([Mention(0, (1, 3)), Mention(0, (2, 4))], [0, 0])
    with pytest.raises(TreebankError, match="interleave") as caught:
        written([interleaved])
    assert caught.value.line in (2, 3)
    apart = document.with_mentions([Mention(0, (1, 3)), Mention(0, (2, 4))], [0, 1])
    assert read(written([apart]))[0].partition() == apart.partition()


words_of_a_mention = st.one_of(
    st.sets(st.integers(1, 7), min_size=1).map(sorted).map(tuple),
    st.tuples(st.integers(1, 7), st.integers(1, 7)).map(lambda ends: tuple(range(min(ends), max(ends) + 1))),
)
mentions_of_a_document = st.lists(
    st.builds(Mention, st.integers(0, 2), words_of_a_mention, rest=st.sampled_from(["", "person", "x-1-a:b,c"])),
    unique_by=lambda mention: (mention.sentence, mention.words),
    max_size=10,
)


@given(st.lists(st.tuples(mentions_of_a_document, st.integers(1, 9)), min_size=1, max_size=3), st.randoms())
def test_random_mentions_survive(drawn: list[tuple[list[Mention], int]], random: np.random.RandomState) -> None:
    """Nested, crossing and with gaps, in one to nine clusters a document."""
    misc = ["_", "Entity=(3-old)", "A=1", "SpaceAfter=No", "Bridge=3<4", "Zero|Entity=(4)", "_"]
    blank = "".join(
        sentence(*misc, comments=("# newdoc id = n",) if number == 0 else ()) for _ in drawn for number in range(3)
    )
    documents = []
    for document, (mentions, clusters) in zip(read(blank), drawn, strict=True):
        documents.append(document.with_mentions(mentions, [random.randint(1, clusters) for _ in mentions]))
    try:
        text = written(documents)
    except TreebankError as error:
        assert "interleave" in str(error)  # noqa: PT017  (allowed, not expected)
        return
    for one, other in zip(documents, read(text), strict=True):
        assert [(m.sentence, m.words, m.rest) for m in one.mentions] == [
            (m.sentence, m.words, m.rest) for m in other.mentions
        ]
        assert one.clusters.tolist() == other.clusters.tolist()
    assert [unmarked(value) for value in misc_of(text)] == [unmarked(value) for value in misc] * 3 * len(drawn)


def unmarked(misc: str) -> str:
    """MISC without what belongs to entities."""
    return "|".join(item for item in misc.split("|") if not item.startswith(("Entity=", "Bridge="))) or "_"


def test_a_document_in_memory() -> None:
    words = Sentence.from_words(["a", "b"])
    document = Document("", (words,), (), np.empty(0, dtype=np.int64), (), words.place)
    with pytest.raises(TreebankError, match="sentence in memory: "):
        document.with_mentions([Mention(0, (3,))], [0])
    assert misc_of(written([document.with_mentions([Mention(0, (1, 2))], [0])])) == ["Entity=(e1", "Entity=e1)"]


@pytest.mark.skipif(not GUM.is_dir(), reason=f"no treebank at {GUM}")
@pytest.mark.parametrize(
    ("part", "documents", "mentions"), [("train", 178, 50004), ("dev", 30, 7897), ("test", 30, 7927)]
)
def test_gum(part: str, documents: int, mentions: int) -> None:
    """GUM numbers entities as we do, so that it is written as it was read, byte for byte."""
    original = gzip.decompress((GUM / f"en_gum-ud-{part}.conllu.gz").read_bytes())
    counts = []

    def counted() -> Iterator[Document]:
        for document in read_documents(io.BytesIO(original)):
            counts.append(len(document.mentions))
            yield document

    stream = io.BytesIO()
    write_documents(counted(), stream)
    assert stream.getvalue() == original
    assert (len(counts), sum(counts)) == (documents, mentions)


@pytest.mark.skipif(not GUM.is_dir(), reason=f"no treebank at {GUM}")
def test_gum_in_other_clusters() -> None:
    rng = np.random.default_rng(5)
    documents = list(read_documents(GUM / "en_gum-ud-dev.conllu.gz"))
    changed = [document.with_clusters(rng.integers(0, 40, len(document.mentions))) for document in documents]
    for one, other in zip(changed, read(written(changed)), strict=True):
        assert one.mentions == other.mentions
        assert one.partition() == other.partition()


# Checksums

MARKED = """\
# newdoc id = a
# global.Entity = GRP-etype
1\tAnn\tAnn\tPROPN\t_\t_\t2\tnsubj\t_\tEntity=({0}-person)
2\tsaw\tsee\tVERB\t_\t_\t0\troot\t_\t_
3\ther\tshe\tPRON\t_\t_\t4\tnmod:poss\t_\tEntity=({1}-animal({0}-person)
4\tdog\tdog\tNOUN\t_\t_\t2\tobj\t_\tEntity={1})|SpaceAfter=No

"""


def marked(text: str, *names: str) -> list[Document]:
    return list(read_documents(io.StringIO(text.format(*names))))


def test_checksums_do_not_depend_on_names() -> None:
    expected = documents_checksum(marked(MARKED, "1", "2"))
    assert len(expected) == 16
    assert documents_checksum(marked(MARKED, "7", "x")) == expected
    assert documents_checksum(marked(MARKED.replace("\n", "\r\n"), "2", "1")) == expected
    assert documents_checksum(marked(MARKED.replace("id = a", "id = b"), "2", "1")) == expected
    stream = io.StringIO()
    write_documents(marked(MARKED, "one", "two"), stream)
    assert documents_checksum(marked(stream.getvalue())) == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ann\tAnn", "Anna\tAnn"),
        ("see\tVERB", "saw\tVERB"),
        ("\t4\tnmod:poss", "\t2\tnmod:poss"),
        ("nsubj", "obj"),
        ("Entity=({0}-person)\n2", "Entity=(3-person)\n2"),  # other clusters
        ("Entity=({0}-person)\n2", "_\n2"),  # other mentions
        ("({1}-animal({0}-person)", "({1}-animal)({0}-person"),  # other words of them
    ],
)
def test_checksums_depend_on_all_else(old: str, new: str) -> None:
    changed = MARKED.replace(old, new)
    assert changed != MARKED
    if "{0}-person\n" in changed:
        changed = changed.replace("{1})|", "{0})|")
    assert documents_checksum(marked(changed, "1", "2")) != documents_checksum(marked(MARKED, "1", "2"))
