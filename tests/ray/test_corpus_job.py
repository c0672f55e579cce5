"""The leader of a job, with workers that are lost, late or unable to write whenever a test says so.

The pool is in this process: its workers are real, what happens to them is not. The output has to be that of a run to
which nothing happened, byte for byte.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import CorpusError
from headway.models.registry import register
from headway.ray import worker as workers
from headway.ray.job import TRIES, Job
from headway.ray.manifest import CorpusFolder, Identity
from headway.ray.plan import inputs_of, plan
from headway.ray.pool import Answer, Lost
from headway.ray.worker import Failed, Ready, Settings, ShardWorker, Work
from tests.ray.folders import contents, errors, manifest, sentence_ids
from tests.ray.poison import PoisonModel, save_poison, treebank

register(PoisonModel)
SHARD = 300  # bytes
SENTENCES = [f"word {number}" for number in range(40)]


class Call(NamedTuple):
    """A call of a worker: its number, its method, the shard, and the documents that it parses."""

    number: int
    method: str
    shard: int | None = None
    ids: tuple[str, ...] = ()


Fate = Callable[[Call, Any], Any]  # what is answered in place of an answer


def as_it_is(call: Call, value: Any) -> Any:
    return value


class FakePool:
    """Workers in this process. `fate` may replace any answer; with None, it never comes."""

    def __init__(self, work: Work, fate: Fate, size: int = 2) -> None:
        self.size = size
        self._work, self._fate = work, fate
        self._workers: dict[int, ShardWorker] = {}
        self._shards: dict[int, int] = {}
        self._answers: list[Answer] = []
        self.started = self._calls = 0

    def start(self) -> int:
        self.started += 1
        self._workers[self.started] = ShardWorker(self._work)
        self.call(self.started, "ready")
        return self.started

    def call(self, worker: int, method: str, *arguments: Any) -> None:
        one = self._workers[worker]
        group = one._shard.group if method == "step" and one._shard is not None else ()
        if arguments:
            self._shards[worker] = arguments[0].shard.number
        self._calls += 1
        ids = tuple(raw.id for raw in group if raw.content is not None)
        call = Call(self._calls, method, self._shards.get(worker), ids)
        answer = self._fate(call, getattr(one, method)(*arguments))
        if isinstance(answer, Lost):
            self._workers.pop(worker).close()
        if answer is not None:
            self._answers.append(Answer(worker, answer))

    def wait(self, seconds: float) -> list[Answer]:
        answers, self._answers = self._answers, []
        return answers

    def stop(self, worker: int) -> None:
        self._workers.pop(worker).close()
        self._answers = [answer for answer in self._answers if answer.worker != worker]

    def close(self) -> None:
        for worker in list(self._workers):
            self.stop(worker)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    save_poison(folder)
    (folder / "a.conllu").write_text(treebank(*SENTENCES))
    return folder


@pytest.fixture(scope="module")
def undisturbed(corpus: Path) -> dict[str, bytes]:
    run(corpus, corpus / "undisturbed", as_it_is)
    return contents(corpus / "undisturbed")


def run(corpus: Path, output: Path, fate: Fate, *, seconds: float = 1e9, size: int = 2, step: int = 5) -> FakePool:
    settings = Settings(shard_bytes=SHARD)
    found = inputs_of([str(corpus / "*.conllu")])
    folder = CorpusFolder(str(output), Identity("poison", "", settings, found))
    folder.open()
    pool = FakePool(Work(str(corpus / "poison.headway"), "cpu", settings, folder.drafts), fate, size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "DOCUMENTS", step)
        try:
            shards = partial(plan, found, "line", SHARD)
            Job(pool, folder, shards, seconds=seconds, show=lambda _: None, note=lambda _: None).run()
        finally:
            pool.close()
            folder.remove_drafts()
    folder.finish()
    return pool


def test_every_sentence_comes_out_once_and_in_order(corpus: Path, undisturbed: dict[str, bytes]) -> None:
    output = corpus / "undisturbed"
    assert sentence_ids(output) == [f"s{number}" for number in range(1, 41)]
    found = manifest(output)
    assert found["totals"] == {
        "shards": len(undisturbed),
        "documents": 40,
        "errors": 0,
        "empty": 0,
        "sentences": 40,
        "words": 80,
        "bytes": sum(map(len, undisturbed.values())),
    }
    assert len(undisturbed) > 4


@given(seed=st.integers(0, 2**32), share=st.floats(0, 0.4), size=st.integers(1, 4))
def test_losses_at_any_time_change_nothing(
    corpus: Path,
    undisturbed: dict[str, bytes],
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    share: float,
    size: int,
) -> None:
    """Before the call is done or after it: the answer is lost in both cases. Documents are never left out for it,
    unless their worker was lost with them alone, three times in a row."""
    rng, output = random.Random(seed), tmp_path_factory.mktemp("output")
    run(corpus, output, lambda call, value: Lost("struck") if rng.random() < share else value, size=size)
    manifest(output)
    if not errors(output):
        assert contents(output) == undisturbed
    else:
        assert share > 0.1
        left_out = set(errors(output))
        assert sentence_ids(output) == [id for n in range(1, 41) if (id := f"s{n}") not in left_out]


@given(stops=st.lists(st.integers(1, 30), min_size=1, max_size=4))
def test_a_leader_that_is_killed_is_followed_by_one_that_does_what_is_missing(
    corpus: Path, undisturbed: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory, stops: list[int]
) -> None:
    output, done = tmp_path_factory.mktemp("output"), Counter[str]()

    class KilledError(Exception):
        pass

    for stop in [*stops, 10**9]:

        def fate(call: Call, value: Any, stop: int = stop) -> Any:
            if call.number >= stop:
                raise KilledError
            done["finished"] += call.method == "step" and value.entry is not None
            return value

        try:
            run(corpus, output, fate)
        except KilledError:
            (output / ".drafts").mkdir(exist_ok=True)
            (output / ".drafts" / "000000-1-1.conllu").write_text("half a shard")
    manifest(output)
    assert contents(output) == undisturbed
    assert done["finished"] <= len(undisturbed) + 2 * len(stops)  # what was being done, or committed, then


def test_a_shard_whose_file_is_gone_is_done_again(corpus: Path, undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    run(corpus, tmp_path, as_it_is)
    (tmp_path / "shards" / "000001.conllu").unlink()
    pool = run(corpus, tmp_path, as_it_is)
    assert pool.started == 1
    assert contents(tmp_path) == undisturbed
    assert run(corpus, tmp_path, as_it_is).started == 0


@pytest.mark.parametrize("what", ["lost", "late"])
def test_a_document_that_costs_its_workers_is_left_out(corpus: Path, tmp_path: Path, what: str) -> None:
    """Whoever has sentence s8 (or s30) in its step is lost, or never answers."""
    losses = Counter[bool]()

    def fate(call: Call, value: Any) -> Any:
        if not {"s8", "s30"} & set(call.ids):
            return value
        losses[len(call.ids) == 1] += 1
        return Lost("struck") if what == "lost" else None

    run(corpus, tmp_path, fate, seconds=1e9 if what == "lost" else 0.05)
    reason = "struck" if what == "lost" else "it took more than 0.05 seconds"
    assert errors(tmp_path) == dict.fromkeys(("s8", "s30"), f"its worker was lost {TRIES} times in a row: {reason}")
    assert sentence_ids(tmp_path) == [f"s{n}" for n in range(1, 41) if n not in (8, 30)]
    assert losses == {False: 2, True: 2 * TRIES}
    manifest(tmp_path)


def test_a_worker_that_cannot_write_gets_no_more_work(
    corpus: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    full = Failed("write", "x: writing failed (No space left on device)")
    pool = run(corpus, tmp_path, lambda call, value: full if call.number == 4 else value)
    assert pool.started == 2
    assert contents(tmp_path) == undisturbed


def test_if_no_worker_can_write_the_job_ends_with_a_sentence(
    corpus: Path, undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    full = Failed("write", "x: writing failed (No space left on device)")
    with pytest.raises(CorpusError) as caught:
        run(corpus, tmp_path, lambda call, value: full if call.number > 9 else value)
    total = len(undisturbed)
    assert str(caught.value) == (
        "x: writing failed (No space left on device); make room, and run the same command again: "
        f"{len(list((tmp_path / 'manifest').glob('*')))} of {total} shards are done"
    )
    assert not (tmp_path / "manifest.json").exists()
    run(corpus, tmp_path, as_it_is)
    assert contents(tmp_path) == undisturbed


def test_an_input_that_cannot_be_read_is_left_for_the_next_run(corpus: Path, tmp_path: Path) -> None:
    def fate(call: Call, value: Any) -> Any:
        broken = (call.method, call.shard) == ("begin", 1)
        return Failed("read", "a.conllu: cannot be read (Input/output error)") if broken else value

    with pytest.raises(CorpusError, match=r"1 of \d+ shards could not be done; the first is 1: a.conllu: cannot be"):
        run(corpus, tmp_path, fate, size=1)
    missing = {path.name for path in (corpus / "undisturbed" / "shards").iterdir()}
    missing -= {path.name for path in (tmp_path / "shards").iterdir()}
    assert missing == {"000001.conllu"}
    run(corpus, tmp_path, as_it_is)
    assert contents(tmp_path) == contents(corpus / "undisturbed")


def test_workers_of_another_version_are_refused(corpus: Path, tmp_path: Path) -> None:
    def fate(call: Call, value: Any) -> Any:
        return Ready("0.0.1", "old-node", 1) if call.method == "ready" else value

    with pytest.raises(CorpusError, match=r"old-node has Headway 0\.0\.1, and this machine .*; install one version"):
        run(corpus, tmp_path, fate)


def test_workers_that_never_start_end_the_job(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no worker can start: struck"):
        run(corpus, tmp_path, lambda call, value: Lost("struck"))
    with pytest.raises(CorpusError, match="no worker can start: no model"):
        run(corpus, tmp_path, lambda call, value: Failed("start", "no model"))


def test_the_folder_of_another_corpus_is_refused(corpus: Path, tmp_path: Path) -> None:
    output, found = tmp_path / "out", inputs_of([str(corpus / "*.conllu")])

    def opened(**changes: Any) -> None:
        given = {"model": "poison", "model_sha256": "1", "settings": Settings(), "inputs": found, **changes}
        CorpusFolder(str(output), Identity(**given)).open()

    opened()
    opened()
    where, more = f"{output}: begun with ", found[0]._replace(path="x")
    for changes, sentence in (
        ({"settings": Settings(format="jsonl")}, "format 'conllu', not 'jsonl'; say the same, or give another -o"),
        ({"model_sha256": "2"}, "another model (poison); give that one, or give another -o"),
        (
            {"inputs": [found[0]._replace(stamp="later")]},
            f"other inputs ({found[0].path} has changed); restore them, or give another -o",
        ),
        ({"inputs": []}, f"other inputs ({found[0].path} is missing now); restore them, or give another -o"),
        (
            {"inputs": [*found, more]},
            "other inputs (x is new); restore them, or give another -o",
        ),
    ):
        with pytest.raises(CorpusError) as caught:
            opened(**changes)
        assert str(caught.value) == where + sentence
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "notes.txt").write_text("mine")
    with pytest.raises(CorpusError, match="the folder has other files in it; give a new one"):
        CorpusFolder(str(tmp_path / "used"), Identity("poison", "", Settings(), found)).open()
    with pytest.raises(CorpusError, match=r"notes\.txt: a file, not a folder; give another -o"):
        CorpusFolder(str(tmp_path / "used" / "notes.txt"), Identity("poison", "", Settings(), found)).open()


def test_a_draft_that_is_not_to_be_seen_is_explained(corpus: Path, tmp_path: Path) -> None:
    """On a cluster whose nodes have a disk each."""

    def fate(call: Call, value: Any) -> Any:
        if call.method == "step" and value.entry is not None:
            Path(value.entry["draft"]).unlink()
        return value

    with pytest.raises(CorpusError, match="and not to be seen here; give a folder that all nodes share"):
        run(corpus, tmp_path, fate)


def test_an_entry_is_a_line_of_json(corpus: Path, undisturbed: dict[str, bytes]) -> None:
    for path in (corpus / "undisturbed" / "manifest").iterdir():
        (line,) = path.read_text("utf-8").splitlines()
        assert json.loads(line)["shard"] == int(path.stem)
