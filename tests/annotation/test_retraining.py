"""Learning while annotating: what is trained on, what is held out, which model is in use."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.annotation import EditError, Workspace, retraining
from headway.annotation.comparison import Accuracy, accuracy
from headway.annotation.edits import SetDone, SetHead, Unpin
from headway.annotation.retraining import held_out_of, model_in_use, models_folder
from headway.annotation.training_process import main
from headway.errors import TrainingError
from headway.pipeline import Parser
from headway.treebank import Sentence, read_treebank
from tests.annotation.toys import TINY, FakeParser, treebank


def ended(workspace: Workspace) -> dict[str, object]:
    """How a training ended."""
    thread = workspace.retraining._thread
    assert thread is not None
    thread.join()
    return workspace.retraining.status()


def saved(path: Path) -> Parser:
    """A quick model in a file."""
    parser = Parser.train(TINY, epochs=1, labels="none", tags="gold")
    parser.save(path)
    return parser


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("model") / "m.headway"
    saved(path)
    return path.read_bytes()


class Trainer:
    """In place of a process: keeps what it was to be trained on, and writes a model."""

    def __init__(self, model: bytes) -> None:
        self.model = model
        self.kinds: list[str] = []
        self.trained: list[set[tuple[str, ...]]] = []
        self.dev: list[set[tuple[str, ...]]] = []

    def __call__(self, words: list[str]) -> None:
        _, _, _, kind, source, output, *dev = words
        self.kinds.append(kind)
        self.trained.append({sentence.forms for sentence in read_treebank(source, partial=True)})
        self.dev.append({sentence.forms for each in dev for sentence in read_treebank(each)})
        Path(output).write_bytes(self.model)


def with_trainer(workspace: Workspace, trainer: Trainer) -> None:
    workspace.retraining._wait_for = trainer  # type: ignore[method-assign]


def scores(monkeypatch: pytest.MonkeyPatch, *pairs: tuple[float, float]) -> list[list[Sentence]]:
    """Let the comparisons have these results, one after the other; on which sentences they were made."""
    left, asked = list(pairs), []

    def score(parser: object, sentences: list[Sentence]) -> Accuracy:
        asked.append(sentences)
        return Accuracy(*left.pop(0), words=10)

    monkeypatch.setattr(retraining, "accuracy", score)
    return asked


def test_held_out_sentences_are_never_trained_on(tmp_path, model, monkeypatch):
    path = treebank(tmp_path, TINY.read_bytes())
    trainer, forms = Trainer(model), [sentence.forms for sentence in read_treebank(TINY)]
    asked = scores(monkeypatch, *[(50.0, 0.0)] * 10)
    with Workspace.open(path, FakeParser()) as workspace:
        for i in range(15, 40):  # 15 are done
            workspace.edit(i, 0, SetDone(False))
        with pytest.raises(EditError, match=r"15 of the sentences are done, and a model needs 20; annotate 5 more$"):
            workspace.retraining.start()
        for i in range(15, 22):
            workspace.edit(i, 1, SetDone())
        with_trainer(workspace, trainer)
        workspace.retraining.start()
        assert ended(workspace)["state"] == "finished"
        held_out = {sentence.forms for sentence in asked[-1]}
        assert len(held_out) == 2
        assert held_out <= set(forms[:22])
        # Partial sentences count, and those that are not done but have pins are partial.
        assert trainer.trained[0] | trainer.dev[0] == set(forms) - held_out
        assert len(trainer.dev[0]) == 2
        assert trainer.dev[0] <= set(forms[:22])
    with Workspace.open(path, FakeParser()) as workspace:  # what was held out is in the journal
        with_trainer(workspace, trainer)
        for i in range(22, 40):
            workspace.edit(i, workspace.state(i).version, SetDone())
        workspace.edit(30, workspace.state(30).version, Unpin(1))
        workspace.retraining.start()
        assert ended(workspace)["state"] == "finished"
        again = {sentence.forms for sentence in asked[-1]}
        assert again == held_out  # all others have been trained on
        assert trainer.trained[1] | trainer.dev[1] == set(forms) - held_out


@given(st.integers(0, 60), st.data())
def test_one_in_ten_is_held_out(n, data):
    done = list(range(n))
    held_out, trained = set(), set()
    for upto in sorted(data.draw(st.lists(st.integers(0, n), max_size=4))):
        new = held_out_of(done[:upto], held_out, trained)
        assert not trained.intersection(new)
        assert not held_out.intersection(new)
        assert len(set(new)) == len(new)
        held_out.update(new)
        assert len(held_out) <= upto // 10
        trained.update(i for i in done[:upto] if i not in held_out)
    if not trained:
        assert len(held_out_of(done, set(), set())) == n // 10


def test_the_better_model_is_in_use_and_the_old_one_can_be_put_back(tmp_path, model, monkeypatch):
    path = treebank(tmp_path, TINY.read_bytes())
    old = FakeParser()
    with Workspace.open(path, old, name="old") as workspace:
        with_trainer(workspace, Trainer(model))
        heard = []
        workspace.subscribe(heard.append)
        with pytest.raises(EditError, match="nothing to choose from"):
            workspace.retraining.choose("new")
        scores(monkeypatch, (50.0, 40.0), (50.0, 40.0))
        workspace.retraining.start()
        status = ended(workspace)
        assert status["in_use"] == "old"
        assert status["text"] == (
            "the new model is not better, so the old one stays in use: UAS 50.00, LAS 40.00 on 4 held-out sentences; "
            "the old one has UAS 50.00, LAS 40.00"
        )
        assert (workspace.parser, workspace.name) == (old, "old")
        assert model_in_use(path) is None
        scores(monkeypatch, (50.0, 40.0), (50.0, 40.5))
        workspace.retraining.start()
        status = ended(workspace)
        assert status["in_use"] == "new"
        assert status["new"] == {"uas": 50.0, "las": 40.5, "words": 10}
        assert status["text"].startswith("the new model is better, and in use: UAS 50.00, LAS 40.50 on 4 held-out")
        assert workspace.name == "model-2"
        assert isinstance(workspace.parser, Parser)
        assert model_in_use(path) == models_folder(path.resolve()) / "model-2.headway"
        assert [each.name for each in models_folder(path).glob("*.headway")] == ["model-2.headway"]
        version = workspace.state(0).version
        workspace.retraining.choose("old")
        assert (workspace.parser, workspace.name) == (old, "old")
        assert workspace.state(0).version == version + 1
        assert model_in_use(path) is None
        workspace.retraining.choose("old")
        assert workspace.state(0).version == version + 1
        workspace.retraining.choose("new")
        assert workspace.name == "model-2"
        with pytest.raises(EditError, match="choose old or new"):
            workspace.retraining.choose("other")
        told = [event["state"] for event in heard if event["kind"] == "retraining"]
        assert told[0] == "running"
        assert told[-1] == "finished"


def test_development_data_decide_where_the_user_has_them(tmp_path, model, monkeypatch):
    path, dev = treebank(tmp_path, TINY.read_bytes()), treebank(tmp_path, TINY.read_bytes(), "dev.conllu")
    asked = scores(monkeypatch, (50.0, 40.0), (51.0, 0.0))
    with Workspace.open(path, FakeParser(), dev=dev) as workspace:
        with_trainer(workspace, Trainer(model))
        workspace.retraining.start()
        assert "on 40 development sentences" in str(ended(workspace)["text"])
    assert len(asked[0]) == 40


def test_without_a_model_universal_rules_and_then_trees(tmp_path, model, monkeypatch):
    bare = "".join(
        "\t".join([*line.split("\t")[:6], "_", "_", *line.split("\t")[8:]]) if "\t" in line else line
        for line in TINY.read_text().splitlines(keepends=True)
    )
    path, trainer = treebank(tmp_path, bare), Trainer(model)
    with Workspace.open(path) as workspace:
        with_trainer(workspace, trainer)
        workspace.retraining.start()
        assert ended(workspace)["text"] == "the first model is ready, and in use"
        assert trainer.kinds == ["universal"]
        assert len(trainer.trained[0]) == 40
        assert workspace.view(0)["status"] is not None
        with pytest.raises(EditError, match="0 of the sentences are done, and a model needs 20"):
            workspace.retraining.start()
    untagged = treebank(tmp_path, "1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n", "b.conllu")
    with Workspace.open(untagged) as workspace, pytest.raises(EditError, match="or tag the words first"):
        workspace.retraining.start()


def test_a_training_that_fails_or_is_cancelled(tmp_path, monkeypatch):
    path = treebank(tmp_path, TINY.read_bytes())
    with Workspace.open(path, FakeParser(), name="old") as workspace:

        def fail(words: list[str]) -> None:
            raise TrainingError("there is nothing to learn")

        monkeypatch.setattr(workspace.retraining, "_wait_for", fail)
        workspace.retraining.start()
        status = ended(workspace)
        assert (status["state"], status["text"]) == ("failed", "the training failed: there is nothing to learn")
        assert workspace.name == "old"
        monkeypatch.undo()
        going = threading.Event()
        workspace.subscribe(lambda event: going.set() if event.get("stage") else None)
        monkeypatch.setattr(retraining.sys, "executable", str(_endless(tmp_path)))
        workspace.retraining.start()
        assert going.wait(60)
        with pytest.raises(EditError, match="a model is being trained already"):
            workspace.retraining.start()
        workspace.retraining.cancel()
        assert workspace.retraining.status()["text"] == "the training failed: cancelled"
        workspace.retraining.start()  # closing ends it
    assert not list(models_folder(path).glob("*"))


def _endless(folder: Path) -> Path:
    """A training that begins and never ends."""
    script = folder / "endless"
    script.write_text(
        '#!/bin/sh\necho "warming up"\necho \'{"stage": "tree", "pass": 1, "passes": 9}\'\nexec sleep 600\n'
    )
    script.chmod(0o755)
    return script


def test_a_process_that_breaks_down_says_why(tmp_path, monkeypatch):
    path = treebank(tmp_path, TINY.read_bytes())
    script = tmp_path / "broken"
    script.write_text("#!/bin/sh\necho Traceback >&2\necho 'MemoryError: 9 GB' >&2\nexit 3\n")
    script.chmod(0o755)
    with Workspace.open(path, FakeParser()) as workspace:
        monkeypatch.setattr(retraining.sys, "executable", str(script))
        workspace.retraining.start()
        assert ended(workspace)["text"] == "the training failed: MemoryError: 9 GB"


def test_a_real_training(tmp_path):
    path = treebank(tmp_path, TINY.read_bytes())
    with Workspace.open(path) as workspace:
        workspace.edit(0, 0, Unpin(1))
        heard = []
        workspace.subscribe(lambda event: heard.append(event.get("stage")) if event["kind"] == "retraining" else None)
        workspace.retraining.start()
        status = ended(workspace)
        assert status["state"] == "finished", status
        assert "tree" in heard
        assert status["new"]["words"] > 0
        assert workspace.view(0)["words"][0]["probability"] is not None
        assert workspace.name == "model-1"
        assert [each.name for each in models_folder(path).glob("*.conllu")] == []


def test_the_process_reports_errors(tmp_path, capsys):
    empty = treebank(tmp_path, "")
    assert main("train", str(empty), str(tmp_path / "m")) == 1
    assert "nothing to learn from" in json.loads(capsys.readouterr().out)["error"]
    assert not (tmp_path / "m").exists()


def test_accuracy_counts_known_heads_only():
    class Chain:
        def parse(self, sentences):
            for sentence in sentences:
                assert sentence.heads is None
                n = len(sentence)
                yield sentence.with_tree([-1, *range(n)], [None, *["x"] * n])  # every word under the one before

    one = Sentence.from_words(["a", "b", "c"], heads=[-1, 0, 1, -1], labels=[None, "x", "y", "_"], partial=True)
    two = Sentence.from_words(["a", "b"], heads=[-1, 2, 0], labels=[None, "x", "x"])
    assert accuracy(Chain(), [one, two]) == Accuracy(50.0, 25.0, 4)
    assert Accuracy(50, 30, 4) > Accuracy(50, 25, 4)
    assert Accuracy(51, 0, 4) > Accuracy(50, 25, 4)


def test_pins_that_no_tree_has_are_left_out(tmp_path, model, monkeypatch):
    cycle = "1\tx\t_\t_\t_\t_\t2\td\t_\t_\n2\ty\t_\t_\t_\t_\t1\td\t_\t_\n\n"
    path, trainer = treebank(tmp_path, cycle.encode() + TINY.read_bytes()), Trainer(model)
    scores(monkeypatch, (50.0, 40.0), (51.0, 0.0))
    with Workspace.open(path, FakeParser()) as workspace:
        workspace.edit(1, 0, SetHead(1, 2, "dep"))
        with_trainer(workspace, trainer)
        workspace.retraining.start()
        assert ended(workspace)["state"] == "finished"
    assert ("x", "y") not in trainer.trained[0]
