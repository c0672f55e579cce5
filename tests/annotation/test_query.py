"""The search field: each kind of term, and all of them against a twin that knows no patterns and no short cuts."""

from __future__ import annotations

import math
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.annotation import QueryError, Workspace
from headway.annotation.edits import SetDone, SetHead, SetNote
from headway.annotation.query import Candidate, parse_query
from headway.annotation.state import State, original_state, shown_heads
from tests.annotation.toys import FakeParser, certain, treebank

TEXT = """\
# sent_id = news-1
# text = The dogs saw Ann's cat.
# note = check the Tags
1\tThe\tthe\tDET\tDT\tPronType=Art\t2\tdet\t_\t_
2\tdogs\tdog\tNOUN\tNNS\tNumber=Plur\t3\tnsubj\t_\t_
3\tsaw\tsee\tVERB\tVBD\tMood=Ind|Tense=Past\t0\troot\t_\t_
4\tAnn\tAnn\tPROPN\tNNP\tNumber=Sing\t6\tnmod:poss\t_\tSpaceAfter=No
5\t's\t's\tPART\tPOS\t_\t4\tcase\t_\t_
6\tcat\tcat\tNOUN\tNN\tNumber=Sing\t3\tobj\t_\tSpaceAfter=No
7\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_
"""


def candidate(state: State | None = None, certainty: float | None = 0.5, is_invalid: bool = False) -> Candidate:
    found = state or original_state(TEXT)
    return Candidate(lambda: found, found.done, certainty, lambda state: is_invalid)


YES = [
    "",
    "dogs",
    "DOG",
    "see cat",
    "form:saw lemma:see upos:VERB xpos:VBD",
    "label:nsubj head.upos:VERB",
    "label:nmod head.form:cat",
    "label:nmod:poss",
    "feats:Number=Plur",
    "feats:Tense=*",
    "misc:SpaceAfter=No",
    'text:"dogs saw"',
    "text:ANN'S",
    "note:tags",
    'note:"the tags"',
    "id:news",
    "id:NEWS-1",
    "-mouse",
    "-label:iobj",
    "upos:NOUN -label:obj",
    "d*s",
    "form:*og*",
    "form:*",
    "is:done",
    "-is:todo",
    "is:unsure",
    "is:noted",
    r"-form:\*",
    'form:"the"',
    "head.lemma:ann label:case",
    "head.form:* label:det",
]
NO = [
    "mouse",
    "dogs mouse",
    "form:dogs lemma:cat",
    "label:obj head.upos:NOUN",
    "upos:verb",
    "xpos:VB",
    "label:Nsubj",
    "label:poss",
    "feats:Number",
    "feats:Number=Pl",
    "text:dogssaw",
    "note:x",
    "id:news-2",
    "-dogs",
    "-upos:NOUN",
    "upos:NOUN -label:obj -label:nsubj",
    r"form:\*",
    "is:todo",
    "-is:done",
    "is:invalid",
    "-is:unsure",
    "label:root head.form:*",
]


@pytest.mark.parametrize("text", YES)
def test_found(text):
    query = parse_query(text)
    assert query.matches(candidate())
    assert query.may_match(TEXT.casefold())


@pytest.mark.parametrize("text", NO)
def test_not_found(text):
    assert not parse_query(text).matches(candidate())


def test_states():
    state = original_state(TEXT)
    assert parse_query("is:invalid").matches(candidate(is_invalid=True))
    assert not parse_query("is:unsure").matches(candidate(certainty=0.7))
    assert not parse_query("is:unsure").matches(candidate(certainty=None))
    assert parse_query("is:todo").matches(candidate(replace(state, done=False)))
    plain = original_state(TEXT.replace("# note = check the Tags\n", ""))
    assert not parse_query("is:noted").matches(candidate(plain))
    assert not parse_query("note:*").matches(candidate(plain))


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("colour:red", r"there is no colour; there are form, lemma, upos, .*, is, and head\. before those of words"),
        ("head.text:a", r"there is no head\.text; there are head\.form, head\.lemma"),
        ("head.head.upos:X", r"there is no head\.head\.upos"),
        ("is:great", r"is:great is unknown; a sentence can be done, todo, unsure, invalid, noted"),
        ('text:"open', r"put quotes around a value with spaces, and close them"),
        ('a"b', r"cannot be read"),
        ("label:", r"nothing stands after label:; write \* for anything"),
        ("head.upos:", r"nothing stands after head\.upos:"),
        ('form:""', r"nothing stands after form:"),
        ("http://x", r'a word with a colon is written form:"\.\.\."'),
    ],
)
def test_errors_say_what_is_allowed(text, cause):
    with pytest.raises(QueryError, match=cause):
        parse_query(text)


# ---------------------------------------------------------------------------------- a naive twin

VALUES = {
    "form": ["a", "B", "ab", "*"],
    "lemma": ["a", "b"],
    "upos": ["X", "Y"],
    "label": ["l", "l:m", "n"],
    "feats": ["F=1", "F=2"],
}


@st.composite
def sentences(draw: st.DrawFn) -> str:
    n = draw(st.integers(1, 4))
    lines = []
    for m in range(1, n + 1):
        row = {name: draw(st.sampled_from(values)) for name, values in VALUES.items()}
        feats = draw(st.sampled_from(["_", row["feats"], "F=1|G=2"]))
        head = draw(st.sampled_from([h for h in range(n + 1) if h != m]))
        columns = [str(m), row["form"], row["lemma"], row["upos"], "_", feats, str(head), row["label"], "_", "_"]
        lines.append("\t".join(columns))
    return "\n".join(lines) + "\n"


@st.composite
def terms(draw: st.DrawFn) -> tuple[bool, str, bool, str]:
    """Negated, the field ("" for a bare word), of the head, the value."""
    name = draw(st.sampled_from(["", *VALUES]))
    value = draw(st.sampled_from([*VALUES[name or "form"], "A", "*", "a*", "*b", "G=2"]))
    return draw(st.booleans()), name, bool(name) and draw(st.booleans()), value


def written(term: tuple[bool, str, bool, str]) -> str:
    negated, name, of_head, value = term
    return ("-" if negated else "") + ("head." if of_head else "") + (f"{name}:" if name else "") + value


def like(value: str, pattern: str) -> bool:
    """Whether a value is a pattern's, by trying all that the asterisks could be."""
    if not pattern:
        return not value
    if pattern[0] == "*":
        return any(like(value[k:], pattern[1:]) for k in range(len(value) + 1))
    return bool(value) and value[0] == pattern[0] and like(value[1:], pattern[1:])


def twin(text: str, query: list[tuple[bool, str, bool, str]]) -> bool:
    rows = [line.split("\t") for line in text.splitlines()]
    place = {"form": 1, "lemma": 2, "upos": 3, "feats": 5, "label": 7}

    def word_is(row: list[str], name: str, of_head: bool, value: str) -> bool:
        if of_head:
            if row[6] == "0":
                return False
            row = rows[int(row[6]) - 1]
        own = row[place[name]]
        if name in ("form", "lemma"):
            return like(own.lower(), value.lower())
        if name == "feats":
            return any(like(each, value) for each in own.split("|"))
        return like(own, value) or (name == "label" and like(own.split(":")[0], value))

    of_words = [term for term in query if term[1]]
    for negated, name, _, value in query:
        if not name and any(word_is(row, each, False, value) for row in rows for each in ("form", "lemma")) == negated:
            return False
    if all(term[0] for term in of_words):
        return not any(word_is(row, *term[1:]) for row in rows for term in of_words)
    return any(all(word_is(row, *term[1:]) != term[0] for term in of_words) for row in rows)


def test_states_need_no_sentence():
    """A list of what is done is quick, however large the file."""

    def load() -> State:
        raise AssertionError

    assert parse_query("is:done is:unsure").matches(Candidate(load, True, 0.1, lambda state: True))


@pytest.mark.parametrize("text", ["text:dogs", 'text:"the dogs"', "text:thedogs"])
def test_a_text_that_no_comment_has(text):
    words = "1\tThe\t_\t_\t_\t_\t_\t_\t_\t_\n2\tdog\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n3\ts\t_\t_\t_\t_\t_\t_\t_\t_\n"
    query = parse_query(text)
    assert query.may_match(words.casefold())
    assert query.matches(candidate(original_state(words))) == (text != "text:thedogs")
    assert not query.may_match(f"# text = x\n{words}".casefold())


@given(sentences(), st.lists(terms(), max_size=4))
def test_as_the_twin_says(text, query):
    parsed = parse_query(" ".join(map(written, query)))
    found = parsed.matches(candidate(original_state(text)))
    assert found == twin(text, query)
    assert parsed.may_match(text.casefold()) or not found  # the short cut never loses anything


# ---------------------------------------------------------------------------------- in a workspace


def test_what_the_model_suggests_is_found(tmp_path):
    path = treebank(tmp_path)
    with Workspace.open(path, FakeParser()) as workspace:
        certain(workspace)
        for i in range(4):
            heads = shown_heads(workspace._contents.latest(i).sentence)
            for h in range(1, len(heads)):
                found = {row["sentence"] for row in workspace.listing(f"label:dep:{h}")["rows"]}
                suggested = i not in (1,) and any(
                    head == h and m not in workspace.state(i).pins for m, head in enumerate(heads)
                )
                assert (i in found) == suggested


def numbers(workspace: Workspace, query: str, sort: str = "order") -> list[int]:
    return [row["sentence"] for row in workspace.listing(query, sort)["rows"]]


def test_answers_follow_the_changes(tmp_path):
    with Workspace.open(treebank(tmp_path), FakeParser()) as workspace:
        certain(workspace)
        assert numbers(workspace, "is:done") == [1]
        assert numbers(workspace, "note:odd") == []
        workspace.edit(0, 0, SetNote("odd one"))
        workspace.edit(2, 0, SetDone())
        assert numbers(workspace, "is:done") == [1, 2]
        assert numbers(workspace, "note:odd") == [0]
        workspace.undo(0, 1)
        assert numbers(workspace, "note:odd") == []
        workspace.edit(0, 2, SetHead(1, 2, "wrong"))
        assert numbers(workspace, "is:invalid -is:done") == [0]
        with pytest.raises(QueryError):
            workspace.listing("is:")


def pairs_of_words(count: int) -> str:
    """So many sentences of two words."""
    blank = "\t_" * 8
    return "".join(f"1\tw{i}{blank}\n2\tv{blank}\n\n" for i in range(count))


def test_pages_and_orders(tmp_path):
    with Workspace.open(treebank(tmp_path, pairs_of_words(9)), FakeParser()) as workspace:
        certain(workspace)
        certainties = [workspace.view(i)["certainty"] for i in range(9)]
        order = sorted(range(9), key=lambda i: certainties[i])
        assert numbers(workspace, "", "certainty") == order
        assert numbers(workspace, "v", "certainty") == order
        page = workspace.listing("v", "certainty", 2, 3)
        assert (page["total"], page["matches"]) == (9, 9)
        assert [row["sentence"] for row in page["rows"]] == order[2:5]
        assert [row["certainty"] for row in page["rows"]] == [certainties[i] for i in order[2:5]]
        assert workspace.listing("w3")["matches"] == 1
        done = order[0]
        workspace.edit(done, 0, SetDone())
        assert numbers(workspace, "", "certainty") == [*order[1:], done]
        for arguments in (("", "size"), ("", "order", -1), ("", "order", 0, 1001)):
            with pytest.raises(ValueError, match="expected"):
                workspace.listing(*arguments)


def test_a_row(tmp_path):
    with Workspace.open(treebank(tmp_path)) as workspace:
        workspace.edit(1, 0, SetHead(1, 2, "wrong"))
        workspace.edit(1, 1, SetNote("why?"))
        [row] = workspace.listing("id:s2")["rows"]
    assert row == {
        "sentence": 1,
        "id": "s2",
        "text": "Cats sleep.",
        "certainty": None,
        "done": True,
        "pins": 3,
        "words": 3,
        "errors": 1,
        "note": True,
    }


def test_the_background_asks_about_every_sentence(tmp_path):
    with Workspace.open(treebank(tmp_path, pairs_of_words(30))) as workspace:
        known = threading.Event()
        workspace.subscribe(lambda event: known.set() if event.get("known") == 30 else None)
        workspace.use(FakeParser(), "fake")
        assert known.wait(60)
        rows = workspace.listing(limit=30)["rows"]
        assert [row["certainty"] for row in rows] == sorted(row["certainty"] for row in rows)
        for row in rows:
            assert math.isclose(row["certainty"], workspace.view(row["sentence"])["certainty"], rel_tol=1e-12)
