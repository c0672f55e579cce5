"""One file under annotation: opening, changing, undoing, writing, and what happens when several people do it."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.annotation import ConflictError, EditError, JournalError, State, Workspace
from headway.annotation.edits import (
    Accept,
    Allow,
    Delete,
    Forbid,
    Insert,
    Join,
    SetColumn,
    SetDone,
    SetHead,
    SetLabel,
    SetNote,
    Split,
    Unpin,
)
from headway.annotation.pieces import Pieces
from headway.arrays import TreeClass
from headway.errors import ArgumentError, TreebankError
from headway.treebank import read_treebank
from headway.treebank.raw_text import sentence_from_tokens
from tests.annotation.toys import FOUR, FakeParser, certain, treebank


def edit(workspace: Workspace, i: int, change: object, by: str = "me") -> State:
    return workspace.edit(i, workspace.state(i).version, change, by=by)


def undo(workspace: Workspace, i: int) -> State:
    return workspace.undo(i, workspace.state(i).version)


def redo(workspace: Workspace, i: int) -> State:
    return workspace.redo(i, workspace.state(i).version)


# ---------------------------------------------------------------------------------- opening


def test_what_is_pinned_at_the_beginning(tmp_path):
    with Workspace.open(treebank(tmp_path)) as workspace:
        assert len(workspace) == 4
        assert [sorted(workspace.state(i).pins) for i in range(4)] == [[], [1, 2, 3], [2], []]
        assert [workspace.state(i).done for i in range(4)] == [False, True, False, False]
        assert workspace.progress() == {"done": 1, "all": 4, "seconds_left": None, "text": "1 of 4"}


@pytest.mark.parametrize("text", [b"", b"\n\n", b"\xef\xbb\xbf", FOUR.encode(), FOUR.replace("\n", "\r\n").encode()])
def test_looking_leaves_the_file_and_the_folder_as_they_are(tmp_path, text):
    path = treebank(tmp_path, text)
    with Workspace.open(path, FakeParser()) as workspace:
        certain(workspace)
        workspace.listing("is:todo")
    assert path.read_bytes() == text
    assert [each.name for each in tmp_path.iterdir()] == ["a.conllu"]


def test_files_that_cannot_be_annotated(tmp_path):
    with pytest.raises(TreebankError, match=r"a\.conllu\.gz: a compressed file cannot be annotated; unpack it first"):
        Workspace.open(treebank(tmp_path, b"", "a.conllu.gz"))
    with pytest.raises(TreebankError, match=r"CoNLL-X has no place for notes"):
        Workspace.open(treebank(tmp_path, b"", "a.conll"))
    with pytest.raises(TreebankError, match=r"cannot be opened"):
        Workspace.open(tmp_path / "none.conllu")
    with pytest.raises(TreebankError, match=r"this is a folder"):
        Workspace.open(tmp_path)
    with pytest.raises(TreebankError, match=r"a\.conllu, line 2: the line has 1 column; expected 10"):
        Workspace.open(treebank(tmp_path, b"# text = a\nnothing\n"))
    with pytest.raises(ArgumentError, match=r"write is 'none'"):
        Workspace.open(treebank(tmp_path), write="none")
    assert not list(tmp_path.glob(".headway-*"))


def test_two_processes_cannot_have_one_file(tmp_path):
    path = treebank(tmp_path)
    with Workspace.open(path), pytest.raises(JournalError, match=r"is being annotated by another process"):
        Workspace.open(path)
    Workspace.open(path).close()


class TextParser(FakeParser):
    """Words are what spaces separate, sentences what full stops end."""

    segmenter = True  # there is one

    def sentences(self, text, offset, *, newlines):
        found = []
        for line in text.split(". "):
            words = line.split()
            offsets = tuple((offset, offset + len(word)) for word in words)
            found.append(sentence_from_tokens(((word, (word,), True) for word in words), offsets))
        return found


def test_a_text_becomes_a_treebank_beside_it(tmp_path):
    path = treebank(tmp_path, "Dogs bark. Cats sleep", "a.txt")
    with pytest.raises(TreebankError, match="has to be split into words first; give a model"):
        Workspace.open(path)
    with Workspace.open(path, TextParser()) as workspace:
        assert workspace.path == (tmp_path / "a.conllu").resolve()
        assert [workspace.state(i).sentence.forms for i in range(2)] == [("Dogs", "bark"), ("Cats", "sleep")]
        edit(workspace, 1, SetHead(2, 0, "root"))
    with Workspace.open(path, TextParser()) as workspace:
        assert workspace.state(1).pins == {2}
    path.write_text("Something else")
    with pytest.raises(TreebankError, match=r"the text has changed since a\.conllu was made from it"):
        Workspace.open(path, TextParser())
    treebank(tmp_path)
    with pytest.raises(TreebankError, match=r"a\.conllu is there already, and was not made from this text"):
        Workspace.open(path, TextParser())
    assert (tmp_path / "a.conllu").read_text() == FOUR


# ---------------------------------------------------------------------------------- looking


def test_a_view(tmp_path):
    with Workspace.open(treebank(tmp_path), FakeParser(), name="fake") as workspace:
        view = workspace.view(2)
        parsed = FakeParser().parse(
            workspace.state(2).sentence, heads=[-1, -1, 0], labels=[None, None, "root"], forbid=[]
        )
    assert {name: value for name, value in view.items() if name not in ("words", "messages")} == {
        "sentence": 2,
        "id": "s3",
        "text": "Birds sing",
        "version": 0,
        "done": False,
        "note": "",
        "certainty": parsed.confidence.arcs[1],
        "status": "EXACT",
        "problem": None,
        "multiword_tokens": [],
        "forbidden": [],
        "can_undo": False,
        "can_redo": False,
    }
    first, second = view["words"]
    assert first["head"] == 2
    assert (first["label"], first["pinned"], first["misc"]) == ("dep:2", False, "_")
    assert first["probability"] == pytest.approx(parsed.marginals[2, 1])
    assert second["pinned"]
    assert [each["head"] for each in second["alternatives"]] == [0]
    assert second["probability"] == pytest.approx(1)
    assert second["label"] == "root"


def test_a_view_without_a_model(tmp_path):
    with Workspace.open(treebank(tmp_path)) as workspace:
        view = workspace.view(2)
        assert [(word["head"], word["label"], word["pinned"]) for word in view["words"]] == [
            (2, "nsubj", False),
            (0, "root", True),
        ]
        assert all(word["probability"] is None and word["alternatives"] == [] for word in view["words"])
        assert view["certainty"] is view["status"] is None
        assert workspace.view(0)["words"][0]["head"] is None


def test_alternatives_are_the_likeliest_heads(tmp_path):
    words = "\n".join(f"{m}\tw{m}\t_\t_\t_\t_\t_\t_\t_\t_" for m in range(1, 10))
    with Workspace.open(treebank(tmp_path, words + "\n"), FakeParser()) as workspace:
        view = workspace.view(0)
        parsed = FakeParser().parse(workspace.state(0).sentence, heads=[-1] * 10, labels=[None] * 10, forbid=[])
    for word in view["words"]:
        column = parsed.marginals[:, word["id"]]
        best = sorted(range(10), key=lambda h: -column[h])[:5]
        shown = [each["head"] for each in word["alternatives"]]
        assert word["head"] in shown
        assert shown == (best if word["head"] in best else [*best[:4], word["head"]])
        assert [each["probability"] for each in word["alternatives"]] == [column[h] for h in shown]


def test_no_such_sentence(tmp_path):
    with Workspace.open(treebank(tmp_path)) as workspace:
        for i in (-1, 4):
            with pytest.raises(ArgumentError, match=rf"there is no sentence {i}; the file has 4"):
                workspace.view(i)


# ---------------------------------------------------------------------------------- changing


def test_a_pin_moves_the_other_words(tmp_path):
    """The rest of the tree is the best given the pins."""
    with Workspace.open(treebank(tmp_path), FakeParser()) as workspace:
        before = workspace.state(0).version
        workspace.view(0)
        for m in range(1, 5):
            for h in range(5):
                if h == m:
                    continue
                state = workspace.edit(0, workspace.state(0).version, SetHead(m, h), by="me")
                heads = np.full(5, -1)
                heads[m] = h
                parsed = FakeParser().parse(workspace.state(0).sentence, heads=heads, forbid=[])
                assert state.sentence.heads.tolist() == parsed.heads.tolist()
                assert workspace.view(0)["certainty"] == min(np.delete(parsed.confidence.arcs, m))
                undo(workspace, 0)
        assert workspace.state(0).version == before + 2 * 16


def test_forbidden_arcs_are_avoided(tmp_path):
    with Workspace.open(treebank(tmp_path), FakeParser()) as workspace:
        head = workspace.view(0)["words"][0]["head"]
        state = edit(workspace, 0, Forbid(1, head))
        assert state.sentence.heads[1] != head
        assert workspace.view(0)["forbidden"] == [[head, 1]]
        assert edit(workspace, 0, Allow(1, head)).sentence.heads[1] == head


def test_a_contradiction_is_refused_and_nothing_changes(tmp_path):
    path = treebank(tmp_path)
    with Workspace.open(path, FakeParser()) as workspace:
        edit(workspace, 0, SetHead(1, 2))
        before, view = workspace.state(0), workspace.view(0)
        with pytest.raises(EditError, match=r"cycle, 1 \(Dogs\) -> 2 \(bark\) -> 1 \(Dogs\)"):
            edit(workspace, 0, SetHead(2, 1))
        assert workspace.state(0).same_as(before)
        assert workspace.view(0) == view
        edit(workspace, 0, SetHead(2, 0))
        with pytest.raises(EditError, match=r"words 2 \(bark\) and 4 \(\.\) are both under the root"):
            edit(workspace, 0, SetHead(4, 0))


def test_without_a_model_a_cycle_of_pins_is_refused(tmp_path):
    with Workspace.open(treebank(tmp_path)) as workspace:
        edit(workspace, 0, SetHead(1, 2))
        with pytest.raises(EditError, match=r"the heads form a cycle, 1 \(Dogs\) -> 2 \(bark\) -> 1 \(Dogs\)"):
            edit(workspace, 0, SetHead(2, 1))
        state = edit(workspace, 2, SetHead(2, 1))  # its other head was a suggestion only
        assert state.sentence.heads.tolist() == [-1, -1, 1]


CYCLE = "1\ta\t_\t_\t_\t_\t2\tx\t_\t_\n2\tb\t_\t_\t_\t_\t1\tx\t_\t_\n3\tc\t_\t_\t_\t_\t0\troot\t_\t_\n"


@pytest.mark.parametrize("parser", [None, FakeParser()])
def test_a_contradiction_in_the_file_is_shown_and_can_be_mended(tmp_path, parser):
    with Workspace.open(treebank(tmp_path, CYCLE), parser) as workspace:
        view = workspace.view(0)
        assert "cycle" in view["problem"]
        assert [word["head"] for word in view["words"]] == [2, 1, 0]
        assert "cycle" in [message["rule"] for message in view["messages"]]
        assert edit(workspace, 0, SetColumn(1, "lemma", "a")).sentence.heads.tolist() == [-1, 2, 1, 0]
        assert edit(workspace, 0, SetHead(2, 3)).sentence.heads.tolist() == [-1, 2, 3, 0]
        assert workspace.view(0)["problem"] is None


def test_several_roots_where_the_model_allows_them(tmp_path):
    parser = FakeParser(trees=TreeClass(single_root=False))
    with Workspace.open(treebank(tmp_path), parser) as workspace:
        edit(workspace, 0, SetHead(1, 0))
        assert edit(workspace, 0, SetHead(2, 0)).pins == {1, 2}


def test_an_open_label_becomes_the_models_and_stays(tmp_path):
    with Workspace.open(treebank(tmp_path), FakeParser()) as workspace:
        assert edit(workspace, 0, SetHead(1, 3)).sentence.labels[1] == "dep:3"
        assert edit(workspace, 0, SetLabel(1, "mine")).sentence.labels[1] == "mine"
        assert edit(workspace, 0, SetHead(2, 0)).sentence.labels[1] == "mine"


def test_what_changes_nothing_is_no_change(tmp_path):
    path = treebank(tmp_path)
    with Workspace.open(path, FakeParser()) as workspace:
        for change in (Unpin(1), Allow(1, 2), SetNote(""), SetColumn(1, "lemma", "dog"), SetDone(False)):
            assert edit(workspace, 0, change).version == 0
        assert edit(workspace, 1, SetDone()).version == 0
        assert not workspace.view(0)["can_undo"]
    assert [each.name for each in tmp_path.iterdir()] == ["a.conllu"]


def test_a_stale_version_is_a_conflict(tmp_path):
    with Workspace.open(treebank(tmp_path), FakeParser()) as workspace:
        edit(workspace, 0, SetHead(1, 2), by="one")
        for attempt in (
            lambda: workspace.edit(0, 0, SetHead(1, 3), by="two"),
            lambda: workspace.undo(0, 0),
            lambda: workspace.redo(0, 5),
        ):
            with pytest.raises(ConflictError, match="has changed meanwhile") as caught:
                attempt()
            assert caught.value.current.version == 1
            assert caught.value.current.pins == {1}


def test_many_annotators_lose_nothing(tmp_path):
    """Each adds notes to the same sentence until all of theirs have been accepted."""
    path = treebank(tmp_path)
    with Workspace.open(path, FakeParser()) as workspace:

        def annotate(name):
            for k in range(10):
                while True:
                    state = workspace.state(0)
                    try:
                        workspace.edit(0, state.version, SetNote(f"{state.note} {name}{k}"), by=name)
                        break
                    except ConflictError:
                        continue

        threads = [threading.Thread(target=annotate, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        noted = workspace.state(0).note.split()
        assert sorted(noted) == sorted(f"{name}{k}" for name in "abcd" for k in range(10))
        assert workspace.state(0).version == 40


# ---------------------------------------------------------------------------------- undo


CHANGING = ("version", "can_undo", "can_redo")


def changes_of(state: State) -> st.SearchStrategy[object]:
    n = len(state.sentence)
    words, nodes = st.integers(1, n), st.integers(0, n)
    forms = st.text("abc", min_size=1, max_size=3)
    return st.one_of(
        st.builds(SetHead, words, nodes, st.sampled_from([None, "dep:x", "obj"])),
        st.builds(SetLabel, words, st.sampled_from(["dep:x", "obj"])),
        st.builds(Unpin, words),
        st.builds(Forbid, words, nodes),
        st.builds(Allow, words, nodes),
        st.builds(SetColumn, words, st.sampled_from(["form", "lemma", "upos", "xpos", "feats", "misc"]), forms),
        st.builds(Split, words, at=st.integers(1, 3)),
        st.builds(Split, words, forms=st.tuples(forms, forms)),
        st.builds(Join, words),
        st.builds(Insert, nodes, forms),
        st.builds(Delete, words),
        st.builds(SetNote, forms),
        st.just(Accept()),
        st.builds(SetDone, st.booleans()),
    )


@given(st.data(), st.sampled_from([None, FakeParser()]), st.sampled_from(["all", "pinned"]))
def test_undo_and_redo_of_everything(tmp_path_factory, data, parser, write):
    """Back through every state to the file's own bytes, forth again, also by a process that has just begun."""
    path = treebank(tmp_path_factory.mktemp("undo"))
    workspace = Workspace.open(path, parser, write=write)
    passed = [workspace.state(0)]
    shown = [workspace.view(0)]
    for _ in range(data.draw(st.integers(1, 6))):
        try:
            state = edit(workspace, 0, data.draw(changes_of(workspace.state(0))))
        except EditError:
            assert workspace.state(0).same_as(passed[-1])
            continue
        if state.version > passed[-1].version:
            passed.append(state)
            shown.append(workspace.view(0))

    def look_the_same(now: dict[str, object], then: dict[str, object]) -> bool:
        """All but what goes by the file as it was opened: what counts as a known label or tag."""
        return all(now[name] == then[name] for name in now if name not in (*CHANGING, "messages"))

    workspace.close()
    written = path.read_bytes()
    workspace = Workspace.open(path, parser, write=write)
    assert workspace.state(0).same_as(passed[-1])
    for state, view in zip(passed[-2::-1], shown[-2::-1], strict=True):
        undo(workspace, 0)
        assert look_the_same(workspace.view(0), view)
        assert workspace.state(0).pins == state.pins
    with pytest.raises(EditError, match="nothing to undo"):
        undo(workspace, 0)
    workspace.close()
    assert path.read_text() == FOUR
    workspace = Workspace.open(path, parser, write=write)
    for view in shown[1:]:
        redo(workspace, 0)
        assert look_the_same(workspace.view(0), view)
    with pytest.raises(EditError, match="nothing to redo"):
        redo(workspace, 0)
    workspace.close()
    assert path.read_bytes() == written


def test_an_edit_after_an_undo_leaves_nothing_to_redo(tmp_path):
    with Workspace.open(treebank(tmp_path)) as workspace:
        edit(workspace, 0, SetHead(1, 2))
        undo(workspace, 0)
        assert workspace.view(0)["can_redo"]
        edit(workspace, 0, SetHead(1, 3))
        assert not workspace.view(0)["can_redo"]
        with pytest.raises(EditError, match="nothing to redo"):
            redo(workspace, 0)


# ---------------------------------------------------------------------------------- writing


def test_only_changed_sentences_are_written_anew(tmp_path):
    path = treebank(tmp_path, FOUR.replace("\n", "\r\n"))
    with Workspace.open(path, FakeParser(), write="pinned") as workspace:
        edit(workspace, 0, SetHead(2, 0, "root"))
        workspace.flush()
        assert path.read_bytes().decode() == FOUR.replace("\n", "\r\n").replace(
            "2\tbark\tbark\tVERB\t_\t_\t_\t_", "2\tbark\tbark\tVERB\t_\t_\t0\troot"
        )
        workspace.configure(write="all")
        workspace.flush()
        read = list(read_treebank(path, partial=True))
        assert read[0].heads.tolist() == workspace.state(0).sentence.heads.tolist()
        assert (
            path.read_bytes().decode().partition("\r\n\r\n")[2] == FOUR.replace("\n", "\r\n").partition("\r\n\r\n")[2]
        )
        assert path.read_text().count("Suggested=Yes") == 3 + 1
        workspace.configure(write="pinned")
        workspace.flush()
        assert path.read_text().count("Suggested=Yes") == 1


def test_the_file_is_rewritten_soon(tmp_path):
    path = treebank(tmp_path)
    with Workspace.open(path) as workspace:
        written = threading.Event()
        workspace.subscribe(lambda event: written.set() if event["kind"] == "written" else None)
        edit(workspace, 0, SetNote("seen"))
        assert written.wait(30)
        assert "# note = seen" in path.read_text()


def test_a_sentence_at_the_end_without_a_line_end(tmp_path):
    path = treebank(tmp_path, FOUR[:-1])
    with Workspace.open(path) as workspace:
        edit(workspace, 3, SetHead(1, 0, "root"))
        workspace.flush()
        assert path.read_text().endswith("1\tGo\tgo\tVERB\t_\t_\t0\troot\t_\t_\n\n")
        undo(workspace, 3)
    assert path.read_text() == FOUR[:-1]


# ---------------------------------------------------------------------------------- another program


def look(workspace: Workspace) -> None:
    workspace._saving._look()  # what happens every second


def test_a_file_changed_underneath_is_noticed_and_not_overwritten(tmp_path):
    path = treebank(tmp_path)
    with Workspace.open(path, FakeParser()) as workspace:
        edit(workspace, 0, SetHead(1, 2))
        theirs = FOUR.replace("Cats", "Cows")
        path.write_text(theirs)
        workspace.flush()
        assert workspace.changed_underneath
        assert path.read_text() == theirs
        edit(workspace, 0, SetHead(2, 0))
        workspace.flush()
        assert path.read_text() == theirs
        assert {"kind": "file", "changed_underneath": True, "problem": None}.items() <= workspace.changes(0)[-2].items()
        workspace.overwrite()
        assert not workspace.changed_underneath
        assert "Cows" not in path.read_text()
        assert next(read_treebank(path)).heads[2] == 0


def test_looking_notices_too(tmp_path):
    path = treebank(tmp_path)
    with Workspace.open(path) as workspace:
        path.write_bytes(path.read_bytes())  # the same again is no change
        look(workspace)
        assert not workspace.changed_underneath
        path.unlink()
        look(workspace)
        assert workspace.changed_underneath
        with pytest.raises(TreebankError, match="cannot be opened"):
            workspace.reload()
        workspace.overwrite()
        assert path.read_text() == FOUR


def test_reloading_takes_their_version_and_says_what_it_lacks(tmp_path):
    path = treebank(tmp_path)
    with Workspace.open(path, FakeParser()) as workspace:
        edit(workspace, 1, SetNote("ours, and theirs"))
        workspace.flush()
        theirs = path.read_text().replace("Birds", "Bees")
        edit(workspace, 0, SetHead(1, 2))
        version = workspace.state(0).version
        path.write_text(theirs)
        look(workspace)
        assert workspace.reload() == [{"sentence": 0, "id": "s1", "text": "Dogs bark loudly."}]
        assert not workspace.changed_underneath
        assert workspace.state(2).sentence.forms == ("Bees", "sing")
        assert workspace.state(0).pins == frozenset()
        assert workspace.state(1).note == "ours, and theirs"
        assert workspace.state(0).version > version
        assert not workspace.view(1)["can_undo"]
        edit(workspace, 2, SetNote("new"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.conllu", "a.conllu.journal", "a.conllu.journal.1"]
    first, second, third, fourth = Pieces.of(path.read_bytes()).texts
    assert [first, second, fourth] == [Pieces.of(theirs.encode()).texts[i] for i in (0, 1, 3)]
    assert third.startswith(b"# sent_id = s3\n# note = new\n1\tBees\t")


def test_a_file_changed_while_nobody_annotates(tmp_path):
    path = treebank(tmp_path)
    with Workspace.open(path) as workspace:
        edit(workspace, 0, SetHead(1, 2))
    path.write_text(FOUR.replace("Cats", "Cows"))
    with Workspace.open(path) as workspace:
        assert workspace.reloaded == [{"sentence": 0, "id": "s1", "text": "Dogs bark loudly."}]
        assert workspace.state(0).pins == frozenset()
        assert workspace.state(0).version > 1
        assert not workspace.changed_underneath
    assert path.read_text() == FOUR.replace("Cats", "Cows")
    assert (tmp_path / "a.conllu.journal.1").exists()


# ---------------------------------------------------------------------------------- other models, events


def test_another_model_makes_other_suggestions(tmp_path):
    path = treebank(tmp_path)
    with Workspace.open(path, FakeParser(), name="one") as workspace:
        edit(workspace, 0, SetHead(1, 2))
        version = workspace.state(0).version
        workspace.use(FakeParser(seed=3), "two")
        assert workspace.state(0).version == version + 1
        assert workspace.name == "two"
        heads = np.array([-1, 2, -1, -1, -1])
        parsed = FakeParser(seed=3).parse(workspace.state(0).sentence, heads=heads, forbid=[])
        assert [word["head"] for word in workspace.view(0)["words"]] == parsed.heads.tolist()[1:]
        with pytest.raises(ConflictError):
            workspace.edit(0, version, Accept())
        accepted = edit(workspace, 0, Accept())
        assert accepted.sentence.heads.tolist() == parsed.heads.tolist()
    with Workspace.open(path, FakeParser(seed=3)) as workspace:
        assert workspace.state(0).version == version + 2
    with Workspace.open(path) as workspace:  # without a model, what is shown is different again
        assert workspace.state(0).version == version + 3


def test_events(tmp_path):
    with Workspace.open(treebank(tmp_path)) as workspace:
        heard = []
        stop = workspace.subscribe(heard.append)
        edit(workspace, 0, SetNote("a"), by="x")
        workspace.configure(write="pinned")
        workspace.use(None, "")
        stop()
        edit(workspace, 0, SetNote("b"), by="x")
        told = [event for event in workspace.changes(0) if event["kind"] != "written"]
        assert [event for event in heard if event["kind"] != "written"] == told[:3]
        assert {"kind": "sentence", "sentence": 0, "version": 1, "by": "x"}.items() <= told[0].items()
        assert [event["kind"] for event in told] == ["sentence", "settings", "model", "sentence"]
        assert workspace.changes(told[-1]["number"] - 1)[0] == told[-1]
        for _ in range(1001):
            workspace.tell("noise")
        assert [event["kind"] for event in workspace.changes(0)] == ["reload"]
        assert [event["kind"] for event in workspace.changes(10**6)] == ["reload"]


def test_a_closed_workspace_takes_no_changes(tmp_path):
    workspace = Workspace.open(treebank(tmp_path))
    workspace.close()
    workspace.close()
    with pytest.raises(EditError, match="is closed; open it again"):
        workspace.edit(0, 0, SetNote("late"))


def test_the_summary(tmp_path):
    with Workspace.open(treebank(tmp_path), FakeParser(), name="fake") as workspace:
        edit(workspace, 0, SetHead(1, 2, "mine"))
        edit(workspace, 0, SetColumn(1, "xpos", "NNS"))
        summary = workspace.summary("me")
    assert summary["file"] == "a.conllu"
    assert (summary["sentences"], summary["write"], summary["model"]) == (4, "all", "fake")
    assert summary["labels"][:3] == ["nsubj", "root", "punct"]
    assert "mine" in summary["labels"]
    assert summary["labels"].index("mine") < summary["labels"].index("acl")
    assert summary["upos"][:2] == ["VERB", "NOUN"]
    assert len(summary["upos"]) == 17
    assert summary["xpos"] == ["NNS"]
    assert summary["feats"] == ["Number=Plur"]
    assert summary["changed_underneath"] is False
    assert summary["retraining"]["state"] == "idle"


def test_links_stay_links(tmp_path):
    (tmp_path / "data").mkdir()
    real = treebank(tmp_path / "data")
    link = tmp_path / "link.conllu"
    link.symlink_to(real)
    with Workspace.open(link) as workspace:
        edit(workspace, 0, SetNote("x"))
    assert link.is_symlink()
    assert "# note = x" in real.read_text()
    assert Path(f"{real}.journal").exists()
