"""`headway parse-corpus` on this machine: what it writes, and what happens when it, its workers or the disk give up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.errors import CorpusError
from headway.pipeline import Parser
from headway.ray.corpus import parse_corpus
from headway.ray.manifest import CorpusFolder, Identity
from headway.ray.worker import Settings
from headway.treebank import read_treebank
from tests.ray.folders import contents, errors, manifest, sentence_ids, unpacked
from tests.ray.poison import save_poison, treebank
from tests.test_disk import limited

REPOSITORY = Path(__file__).resolve().parent.parent.parent
TINY = REPOSITORY / "examples" / "tiny.conllu"
SHARD = ("--shard-megabytes", "0.0005")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty sentences, of which some take a moment, and a model that needs no kernels."""
    folder = tmp_path_factory.mktemp("corpus")
    save_poison(folder)
    (folder / "a.conllu").write_text(treebank(*(f"SLOW word {number}" for number in range(60))))
    return folder


@pytest.fixture(scope="module")
def whole(corpus: Path) -> dict[str, bytes]:
    """What a run gives to which nothing happens."""
    done = run(corpus, "a.conllu", "-o", "whole", "--local", "1", *SHARD)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "headway: 60 documents, 180 words in whole\n"
    return contents(corpus / "whole")


@pytest.fixture(scope="module")
def parser(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that splits text."""
    path = tmp_path_factory.mktemp("parser") / "tiny.headway"
    Parser.train(TINY, epochs=1, labels="none").save(path)
    return path


def environment(corpus: Path) -> dict[str, str]:
    path = [str(REPOSITORY / "src"), str(REPOSITORY), str(corpus), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return {**os.environ, "HEADWAY_QUIET": "1", "PYTHONPATH": os.pathsep.join(filter(None, path))}


def command(*words: Any) -> list[str]:
    return [sys.executable, "-m", "headway", "parse-corpus", "--model", "poison.headway", *map(str, words)]


def run(corpus: Path, *words: Any, **options: Any) -> subprocess.CompletedProcess[str]:
    call = {"cwd": corpus, "env": environment(corpus), "capture_output": True, "text": True, "check": False}
    return subprocess.run(command(*words), **call, **options)


def begun(corpus: Path, output: str, *words: Any) -> subprocess.Popen[str]:
    """A run of which some shards are done."""
    running = subprocess.Popen(
        command("a.conllu", "-o", output, *SHARD, *words),
        cwd=corpus,
        env=environment(corpus),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while len(list((corpus / output / "manifest").glob("*.json"))) < 2:
        assert running.poll() is None, running.communicate()
        time.sleep(0.01)
    return running


def children(process: int) -> Iterator[int]:
    """The processes that a process started."""
    for task in Path(f"/proc/{process}/task").iterdir():
        yield from map(int, (task / "children").read_text().split())


def workers(process: int) -> list[int]:
    """Its workers, not what watches over them."""
    return [child for child in children(process) if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def test_every_sentence_comes_out_once(corpus: Path, whole: dict[str, bytes]) -> None:
    assert sentence_ids(corpus / "whole") == [f"s{number}" for number in range(1, 61)]
    found = manifest(corpus / "whole")
    assert found["totals"]["documents"] == 60
    assert found["totals"]["shards"] == len(whole) > 5
    assert found["model"] == "poison.headway"


def test_ctrl_c_leaves_soon_and_the_same_command_goes_on(corpus: Path, whole: dict[str, bytes]) -> None:
    running = begun(corpus, "interrupted", "--local", "2")
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does
    _, said = running.communicate(timeout=10)
    assert running.returncode == 130
    assert said.strip() == "headway: interrupted; the same command goes on from here"
    assert not (corpus / "interrupted" / ".drafts").exists()
    assert not (corpus / "interrupted" / "manifest.json").exists()
    kept = contents(corpus / "interrupted")
    assert 0 < len(kept) < len(whole)
    assert kept.items() <= whole.items()
    assert run(corpus, "a.conllu", "-o", "interrupted", *SHARD).returncode == 0
    manifest(corpus / "interrupted")
    assert contents(corpus / "interrupted") == whole


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to find the workers")
def test_a_kill_of_workers_or_leader_costs_nothing_but_time(corpus: Path, whole: dict[str, bytes]) -> None:
    running = begun(corpus, "killed", "--local", "2")
    for worker in workers(running.pid):
        os.kill(worker, signal.SIGKILL)
    time.sleep(0.3)
    left = workers(running.pid)
    running.kill()
    running.communicate()
    for _ in range(500):
        if not any(Path(f"/proc/{worker}").exists() for worker in left):
            break
        time.sleep(0.02)
    else:
        raise AssertionError("a worker outlives its leader")
    assert run(corpus, "a.conllu", "-o", "killed", *SHARD).returncode == 0
    manifest(corpus / "killed")
    assert contents(corpus / "killed") == whole


def test_documents_that_kill_hang_or_fail_are_left_out(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is alone in its shard: fewer workers are lost until it is known."""
    monkeypatch.syspath_prepend(corpus)
    (corpus / "poison.conllu").write_text(treebank("a", "KILL", "b", "BROKEN", "c", "HANG", "d"))
    notes: list[str] = []
    totals = parse_corpus(
        [str(corpus / "poison.conllu")],
        str(corpus / "poisoned"),
        model=str(corpus / "poison.headway"),
        settings=Settings(shard_bytes=10),
        document_seconds=0.7,
        note=notes.append,
    )
    assert (totals["documents"], totals["words"], totals["errors"]) == (7, 4, 3)
    assert errors(corpus / "poisoned") == {
        "s2": "its worker was lost 3 times in a row: its process was killed by SIGKILL",
        "s4": "ValueError: this cannot be parsed",
        "s6": "its worker was lost 3 times in a row: it took more than 0.7 seconds",
    }
    assert sentence_ids(corpus / "poisoned") == ["s1", "s3", "s5", "s7"]
    assert len(notes) == 6
    manifest(corpus / "poisoned")


def test_a_full_disk_is_one_sentence_and_nothing_is_half_written(corpus: Path) -> None:
    (corpus / "large.conllu").write_text(treebank("x " * 3000, *["y"] * 10))
    done = run(corpus, "large.conllu", "-o", "full", *SHARD, preexec_fn=limited(4096))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "writing failed (File too large); make room, and run the same command again: " in done.stderr
    assert not (corpus / "full" / ".drafts").exists()
    assert run(corpus, "large.conllu", "-o", "full", *SHARD).returncode == 0
    assert manifest(corpus / "full")["totals"]["documents"] == 11


def test_another_command_in_a_used_folder_is_refused(corpus: Path, whole: dict[str, bytes]) -> None:
    again = run(corpus, "a.conllu", "-o", "whole", "--progress", "json", *SHARD)
    assert again.returncode == 0
    (line,) = map(json.loads, again.stdout.splitlines())
    assert (line["event"], line["documents"]) == ("done", 60)
    other = run(corpus, "a.conllu", "-o", "whole", *SHARD, "--format", "jsonl")
    assert (other.returncode, other.stdout) == (1, "")
    assert other.stderr == (
        f"headway: error: {corpus}/whole: begun with format 'conllu', not 'jsonl'; say the same, or give another -o\n"
    )
    assert contents(corpus / "whole") == whole


def test_two_at_once_are_refused(corpus: Path) -> None:
    given = [str(corpus / "a.conllu")], str(corpus / "twice")
    used = pytest.raises(CorpusError, match=r"twice: in use by another parse-corpus; wait for it, or give another")
    with CorpusFolder(given[1], Identity("", "", Settings(), [])).claim(), used:
        parse_corpus(*given, model=str(corpus / "poison.headway"))
    assert not (corpus / "twice").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--local", "2", "--address", "auto"], "--local is for this machine"),
        (["--workers", "2"], "--workers is for a cluster"),
        (["--shard-megabytes", "0"], "--shard-megabytes is 0"),
        (["--document-seconds", "-1"], "--document-seconds is -1"),
    ],
)
def test_wrong_options_are_refused(corpus: Path, words: list[str], said: str) -> None:
    from typer.testing import CliRunner

    from headway.cli.app import app

    done = CliRunner().invoke(app, ["parse-corpus", "a.conllu", "-o", "x", *words])
    assert done.exit_code == 2
    assert said in done.stderr


TEXT = "Economic news had effect.  It barks.\n\nHe saw it. \n"


@pytest.mark.parametrize("format", ["conllu", "jsonl", "parquet"])
def test_text_becomes_documents_of_the_same_trees(parser: Path, tmp_path: Path, format: Any) -> None:
    """Offsets count the characters of the document. An empty document has no sentences, and is counted."""
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in (TEXT, " ", "It barks.")))
    settings = Settings(format=format, gzip=format != "parquet", probabilities=True)
    output = tmp_path / "out"
    totals = parse_corpus([str(tmp_path / "in.jsonl")], str(output), model=str(parser), settings=settings)
    assert (totals["documents"], totals["errors"], totals["empty"]) == (3, 0, 1)
    expected = list(Parser.load(parser).parse_text(TEXT))
    (path,) = (output / "shards").iterdir()
    if format == "conllu":
        found = list(read_treebank(path))
        assert [s.heads.tolist() for s in found[:-1]] == [p.heads.tolist() for p in expected]
        text = unpacked(path)
        assert text.startswith("# newdoc id = in.jsonl:0\n# sent_id = in.jsonl:0-1\n# newpar\n# text = Economic")
        assert text.count("# newdoc id") == 2
        assert text.count("# newpar") == 3
        assert text.count("HeadProbability=") == totals["words"]
        return
    if format == "jsonl":
        data = [json.loads(line) for line in unpacked(path).splitlines()]
    else:
        data = pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    size = len(json.dumps({"text": TEXT}))
    assert [document["id"] for document in data] == [f"in.jsonl:{offset}" for offset in (0, size + 1, size + 15)]
    assert data[1]["sentences"] == []
    sentences = data[0]["sentences"]
    assert [sentence["head"] for sentence in sentences] == [parsed.heads[1:].tolist() for parsed in expected]
    for sentence, parsed in zip(sentences, expected, strict=True):
        assert sentence["text"] == parsed.text
        assert sentence["head_probability"] == pytest.approx(parsed.confidence.arcs[1:], abs=1e-6)
        places = zip(sentence["form"], sentence["start"], sentence["end"], strict=True)
        assert all(TEXT[start:end] == form for form, start, end in places)


def test_the_trees_are_those_of_parse(parser: Path, tmp_path: Path) -> None:
    """A treebank keeps all that is not the tree, comments among it; addresses of fsspec are read and written, too."""
    pytest.importorskip("fsspec")
    settings, output = Settings(shard_bytes=1500), f"file://{tmp_path}/out"
    parse_corpus([f"file://{TINY}"], output, model=str(parser), settings=settings, workers=1)
    found = "".join(path.read_text("utf-8") for path in sorted((tmp_path / "out" / "shards").iterdir()))
    parsed = Parser.load(parser).parse(read_treebank(TINY, trees=False))
    assert found == "".join(one.to_conllu() for one in parsed)
    assert manifest(tmp_path / "out")["totals"]["shards"] > 3
    again = parse_corpus([f"file://{TINY}"], output, model=str(parser), settings=settings)
    assert again == manifest(tmp_path / "out")["totals"]


def test_a_model_that_cannot_split_text_is_refused(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(corpus)
    (tmp_path / "a.txt").write_text("Dogs bark.")
    with pytest.raises(CorpusError, match="the model cannot split text into words"):
        parse_corpus([str(tmp_path / "a.txt")], str(tmp_path / "out"), model=str(corpus / "poison.headway"))


def test_a_model_that_cannot_be_loaded_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "bad.headway").write_bytes(b"no model")
    (tmp_path / "a.txt").write_text("Dogs bark.")
    with pytest.raises(CorpusError, match=r"no worker can start: .*bad.headway"):
        parse_corpus([str(tmp_path / "a.txt")], str(tmp_path / "out"), model=str(tmp_path / "bad.headway"))
