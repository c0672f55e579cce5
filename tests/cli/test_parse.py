"""`headway parse`: what comes out is what went in, but for the trees; probabilities; hostile models; streaming."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.inference.dual_decomposition import Status
from headway.models.automata_model import AutomataModel
from headway.pipeline import Parser
from headway.treebank import Sentence, is_projective, is_tree, read_treebank
from tests.cli import toy
from tests.cli.conftest import Invoke, Spawn, one_error
from tests.treebank.strategies import Written, written_sentences

HEAD, DEPREL, DEPS, MISC = 6, 7, 8, 9

RICH = (
    "# newdoc\r\n# text = a b\r\n"
    "1-2\tab\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\r\n"
    "1\ta\ta\tDET\tD\tX=y|Z=w\t2\tdet\t2:det\t_\r\n"
    "2\tb\tb\tNOUN\tN\t_\t0\troot\t0:root\tGloss=bee\r\n"
    "2.1\tc\tc\tVERB\tV\t_\t_\t_\t0:root\t_\r\n"
    "\r\n"
)


def without_trees(text: str) -> list[list[str]]:
    """The lines of a treebank, split into columns; those of words without HEAD and DEPREL."""
    lines = [line.split("\t") for line in text.split("\n")]
    return [row[:HEAD] + row[DEPS:] if row[0].isdecimal() and len(row) == 10 else row for row in lines]


def sentences(text: bytes) -> list[Sentence]:
    return list(read_treebank(io.BytesIO(text)))


def test_all_but_heads_and_labels_is_kept(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    text = toy.treebank(5, seed=7) + RICH + toy.treebank(700, seed=8)
    source, target = tmp_path / "in.conllu", tmp_path / "out.conllu"
    source.write_bytes(text.encode())
    result = invoke("parse", model, source, "-o", target)
    assert result.output == ""
    out = target.read_bytes().decode()
    assert without_trees(out) == without_trees(text)
    expected = Parser.load(model).parse(list(read_treebank(source)))
    for found, right in zip(sentences(out.encode()), expected, strict=True):
        assert found.heads is not None
        assert found.heads.tolist() == right.heads.tolist()
        assert found.labels == right.labels


@given(written=st.lists(written_sentences(), min_size=1, max_size=4), newline=st.sampled_from(["\n", "\r\n"]))
def test_any_treebank_comes_back(invoke: Invoke, random_model: Path, written: list[Written], newline: str) -> None:
    text = "".join(each.text(newline) for each in written)
    out = invoke("parse", random_model, "-", stdin=text.encode()).stdout_bytes
    assert without_trees(out.decode()) == without_trees(text)
    assert all(is_tree(each.heads) for each in sentences(out) if each.heads is not None)


@pytest.mark.parametrize("threads", [1, 3])
def test_files_and_standard_streams_are_the_same(
    invoke: Invoke, model: Path, test_file: Path, tmp_path: Path, threads: int
) -> None:
    target = tmp_path / "out.conllu"
    invoke("parse", model, test_file, "-o", target, "--threads", threads)
    text = test_file.read_bytes()
    assert invoke("parse", model, "-", stdin=text).stdout_bytes == target.read_bytes()
    assert invoke("parse", model, "-", "-o", "-", stdin=gzip.compress(text)).stdout_bytes == target.read_bytes()
    packed = tmp_path / "out.conllu.gz"
    invoke("parse", model, test_file, "-o", packed)
    assert gzip.decompress(packed.read_bytes()) == target.read_bytes()


def test_a_file_can_be_parsed_onto_itself(invoke: Invoke, random_model: Path, test_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_bytes(test_file.read_bytes())
    expected = invoke("parse", random_model, path).stdout_bytes
    assert expected != path.read_bytes()
    invoke("parse", random_model, path, "-o", path)
    assert path.read_bytes() == expected


def test_sentences_without_trees_and_without_words(invoke: Invoke, model: Path) -> None:
    bare = "\t_\t_\t_\t_\t_\t_\t_\t_\n"
    text = f"# nothing but a comment\n\n1\thundo{bare}\n1\thundo{bare}2\t.{bare}\n"
    out = invoke("parse", model, "-", "--marginals", stdin=text.encode()).stdout_bytes
    empty, one, two = sentences(out)
    assert (len(empty), empty.layout.comments) == (0, ("# nothing but a comment", "# tree_probability = 1"))
    assert one.heads is not None
    assert (one.heads.tolist(), one.layout.misc) == ([-1, 0], ("HeadProbability=1.0000",))
    assert two.heads is not None
    assert sorted(two.heads.tolist())[:2] == [-1, 0]


@pytest.mark.parametrize(
    ("source", "target", "option", "kept"),
    [
        ("in.conll", "-", None, True),
        ("in.conll", "out.conll", None, True),
        ("in.conll", "out.conllu", None, False),
        ("in.conll", "-", "conllu", False),
        ("in.conllu", "out.conll", None, False),
        ("in.conllu", "-", "conllx", False),
        ("-", "-", "conllx", True),
        ("in.txt", "out.txt", "conllx", True),
        ("in.txt", "out.txt", None, True),
    ],
)
def test_formats(
    invoke: Invoke, model: Path, tmp_path: Path, source: str, target: str, option: str | None, kept: bool
) -> None:
    """The last two columns survive unless the format changes: they mean something else in the other one."""
    text = toy.treebank(3, seed=5, comments=False)
    read, written = (name if name == "-" else str(tmp_path / name) for name in (source, target))
    if source != "-":
        Path(read).write_text(text, encoding="utf-8")
    words = [] if option is None else ["--format", option]
    out = invoke("parse", model, read, "-o", written, *words, stdin=text.encode()).stdout
    if target != "-":
        out = Path(written).read_text("utf-8")
    expected = (
        text if kept else "\n".join("\t".join([*row.split("\t")[:9], "_"]) if row else "" for row in text.split("\n"))
    )
    assert without_trees(out) == without_trees(expected)


def test_marginals_are_the_distribution_s(invoke: Invoke, random_model: Path, test_file: Path) -> None:
    out = invoke("parse", random_model, test_file, "--marginals").stdout_bytes
    parser = Parser.load(random_model)
    unsure = 0
    for found, right in zip(sentences(out), parser.parse(list(read_treebank(test_file))), strict=True):
        assert found.heads is not None
        marginals = right.distribution.marginals
        for m, (misc, head) in enumerate(zip(found.layout.misc, found.heads[1:].tolist(), strict=True), start=1):
            assert misc == f"Id={m}|HeadProbability={marginals[head, m]:.4f}"
            unsure += 0.1 < marginals[head, m] < 0.9
        tree = np.exp(right.distribution.log_prob(found.heads))
        assert found.layout.comments[0].startswith("# sent_id")
        assert found.layout.comments[1:] == (f"# tree_probability = {tree:.6g}",)
    assert unsure > 10


def test_marginals_again_replace_the_old_ones(invoke: Invoke, model: Path, random_model: Path, test_file: Path) -> None:
    once = invoke("parse", random_model, test_file, "--marginals").stdout_bytes
    other = invoke("parse", model, "-", "--marginals", stdin=once).stdout_bytes
    assert invoke("parse", random_model, "-", "--marginals", stdin=other).stdout_bytes == once
    assert other == invoke("parse", model, test_file, "--marginals").stdout_bytes


def test_marginals_of_conllx(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    source = toy.write(tmp_path / "in.conll", 2, comments=False)
    for words in ([source], [source, "-o", tmp_path / "out.conll"], ["-", "--format", "conllx"]):
        sentence = one_error(invoke("parse", model, *words, "--marginals", status=1))
        assert sentence == "CoNLL-X has no column for probabilities; write CoNLL-U (--format conllu)"
    assert [path.name for path in tmp_path.iterdir()] == ["in.conll"]
    for found in sentences(invoke("parse", model, source, "--marginals", "--format", "conllu").stdout_bytes):
        assert all(misc.startswith("HeadProbability=") for misc in found.layout.misc)
        assert set(found.layout.deps) == {"_"}


def test_decoding_can_be_chosen(invoke: Invoke, random_model: Path, test_file: Path) -> None:
    def projective(*words: str) -> list[bool]:
        out = invoke("parse", random_model, test_file, *words).stdout_bytes
        return [is_projective(each.heads) for each in sentences(out) if each.heads is not None]

    assert not all(projective())
    assert projective("--non-projective") == projective()
    assert all(projective("--projective"))
    assert all(projective("--projective", "--mbr"))


def test_mbr_maximises_expected_right_heads(invoke: Invoke, random_model: Path, test_file: Path) -> None:
    parser = Parser.load(random_model)
    parsed = list(parser.parse(list(read_treebank(test_file))))
    found = sentences(invoke("parse", random_model, test_file, "--mbr").stdout_bytes)
    better = 0
    for mbr, best in zip(found, parsed, strict=True):
        assert mbr.heads is not None
        words = np.arange(1, len(mbr) + 1)
        gain = best.marginals[mbr.heads[1:], words].sum() - best.marginals[best.heads[1:], words].sum()
        assert gain > -1e-9
        better += gain > 1e-6
    assert better


def statuses(text: bytes) -> list[str]:
    """What each sentence's last comment says of its tree."""
    return [each.layout.comments[-1].partition("# headway_status = ")[2] for each in sentences(text)]


def test_status_is_what_is_proved(
    invoke: Invoke, higher_order: Path, test_file: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    loaded = Parser.load(higher_order).model
    noise = np.random.default_rng(4).normal(size=loaded.weights.shape)
    weights = loaded.weights / np.abs(loaded.weights).max() + 0.3 * noise  # some trees are found at once, others not
    Parser(dataclasses.replace(loaded, weights=weights)).save(tmp_path / "m")
    parser, treebank = Parser.load(tmp_path / "m"), list(read_treebank(test_file))
    monkeypatch.setitem(AutomataModel.predict.__kwdefaults__, "iterations", 10)

    words = ("parse", tmp_path / "m", test_file, "--status")
    result = invoke(*words)
    assert statuses(result.stdout_bytes) == [str(each.status) for each in parser.parse(treebank)]
    assert set(statuses(result.stdout_bytes)) == {"CERTIFIED", "EXACT"}
    assert result.stderr == ""

    limited = invoke(*words, "--no-exact")
    right = list(parser.parse(treebank, exact=False))
    unproven = [each.status is Status.ITERATION_LIMIT for each in right]
    assert 0 < sum(unproven) < 20
    assert statuses(limited.stdout_bytes) == [
        f"ITERATION_LIMIT gap {each.gap:.3g}" if limit else "CERTIFIED"
        for each, limit in zip(right, unproven, strict=True)
    ]
    assert limited.stderr == f"headway: {sum(unproven)} of 20 trees not proved to be the best\n"


def test_status_again_replaces_the_old_one(invoke: Invoke, higher_order: Path, model: Path, test_file: Path) -> None:
    once = invoke("parse", higher_order, test_file, "--status", "--marginals").stdout_bytes
    arcs = invoke("parse", model, "-", "--status", "--marginals", stdin=once).stdout_bytes
    assert set(statuses(arcs)) == {"EXACT"}
    assert invoke("parse", higher_order, "-", "--status", "--marginals", stdin=arcs).stdout_bytes == once
    plain = invoke("parse", higher_order, test_file).stdout_bytes
    assert without_trees(plain.decode()) == without_trees(test_file.read_text("utf-8"))


def test_status_needs_comments(invoke: Invoke, higher_order: Path, tmp_path: Path) -> None:
    source = toy.write(tmp_path / "in.conll", 2, comments=False)
    sentence = one_error(invoke("parse", higher_order, source, "--status", status=1))
    assert sentence == "CoNLL-X has no comments for --status; write CoNLL-U (--format conllu)"
    out = invoke("parse", higher_order, source, "--status", "--format", "conllu").stdout_bytes
    assert all(statuses(out))


def test_higher_order_decoding_can_be_chosen(invoke: Invoke, higher_order: Path, tmp_path: Path) -> None:
    """Where the pruner leaves one tree, it must leave one of the class that is asked for."""
    loaded = Parser.load(higher_order).model
    assert isinstance(loaded, AutomataModel)
    weights = np.random.default_rng(5).normal(size=loaded.pruner.weights.shape)
    pruner = dataclasses.replace(loaded.pruner, weights=weights, max_heads=1)
    Parser(dataclasses.replace(loaded, pruner=pruner)).save(tmp_path / "m")
    source = toy.write(tmp_path / "a.conllu", 20, seed=6)

    def projective(*words: str) -> list[bool]:
        out = invoke("parse", tmp_path / "m", source, *words).stdout_bytes
        return [is_projective(each.heads) for each in sentences(out) if each.heads is not None]

    assert not all(projective())
    assert projective("--non-projective") == projective()
    assert all(projective("--projective"))
    assert "arc model" in one_error(invoke("parse", tmp_path / "m", source, "--mbr", status=1))


BAD = "1\tx\t_\t_\t_\t_\t9\tdep\t_\t_\n\n"


def test_malformed_sentences(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "in.conllu", tmp_path / "out.conllu"
    good = toy.treebank(2, seed=1)
    source.write_text(good + BAD + toy.treebank(1, seed=2) + BAD, encoding="utf-8")
    target.write_bytes(b"what was there")
    line = good.count("\n") + 1
    sentence = one_error(invoke("parse", model, source, "-o", target, status=1))
    assert sentence == f"{source}, line {line}: the HEAD of word 1 is '9'; expected 0 (the root) to 1"
    assert target.read_bytes() == b"what was there"

    result = invoke("parse", model, source, "-o", target, "--skip-bad")
    assert result.stderr == f"headway: 2 malformed sentences left out; the first: {sentence}\n"
    assert without_trees(target.read_text("utf-8")) == without_trees(good + toy.treebank(1, seed=2))
    assert invoke("parse", model, "-", "--skip-bad", stdin=good.encode()).stderr == ""


def test_output_that_cannot_be_written(invoke: Invoke, model: Path, test_file: Path, tmp_path: Path) -> None:
    assert "no" in one_error(invoke("parse", model, test_file, "-o", tmp_path / "no" / "out.conllu", status=1))
    assert one_error(invoke("parse", model, tmp_path / "none.conllu", status=1)).startswith(
        str(tmp_path / "none.conllu")
    )


def _zip(path: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as file:
        for name, data in members.items():
            file.writestr(name, data)


def _members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def _npy(array: object, **options: bool) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array), **options)
    return stream.getvalue()


def _with(**changes: bytes) -> Callable[[Path, Path], None]:
    def make(model: Path, path: Path) -> None:
        _zip(path, {**_members(model), **{name.replace("__", "."): data for name, data in changes.items()}})

    return make


def _with_json(**changes: object) -> Callable[[Path, Path], None]:
    def make(model: Path, path: Path) -> None:
        members = _members(model)
        data = {**json.loads(members["headway.json"]), **changes}
        _zip(path, {**members, "headway.json": json.dumps(data).encode()})

    return make


HOSTILE: dict[str, Callable[[Path, Path], object]] = {
    "missing": lambda model, path: None,
    "a folder": lambda model, path: path.mkdir(),
    "empty": lambda model, path: path.write_bytes(b""),
    "random bytes": lambda model, path: path.write_bytes(np.random.default_rng(1).bytes(5000)),
    "a treebank": lambda model, path: path.write_text(toy.treebank(2, seed=1), encoding="utf-8"),
    "truncated": lambda model, path: path.write_bytes(model.read_bytes()[: len(model.read_bytes()) // 2]),
    "without its first bytes": lambda model, path: path.write_bytes(b"PK\x03\x04" + model.read_bytes()[2000:]),
    "an empty zip": lambda model, path: _zip(path, {}),
    "another zip": lambda model, path: _zip(path, {"readme.txt": b"hello"}),
    "JSON that is none": _with(headway__json=b'{"headway": '),
    "JSON of another kind": _with_json(kind="checkpoint"),
    "a later version": _with_json(headway=99),
    "no templates": _with_json(arcs=None),
    "templates of another size": _with_json(arcs=[{"template": "h.xpos | dir", "bits": 4, "keys": 1, "collisions": 0}]),
    "huge blocks": _with_json(arcs=[{"template": "h.xpos | dir", "bits": 60, "keys": 1, "collisions": 0}]),
    "a coder that is none": _with_json(coder=3),
    "no description": _with_json(about=None),
    "too few weights": _with(weights__npy=_npy(np.zeros(3, np.float32))),
    "weights that are no numbers": _with(weights__npy=_npy(np.full(3, np.nan, np.float32))),
    "pickled weights": _with(weights__npy=_npy(np.array([{}], object), allow_pickle=True)),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_model_is_one_sentence(
    invoke: Invoke, model: Path, test_file: Path, tmp_path: Path, kind: str
) -> None:
    path, target = tmp_path / "hostile.headway", tmp_path / "out.conllu"
    target.write_bytes(b"what was there")
    HOSTILE[kind](model, path)
    sentence = one_error(invoke("parse", path, test_file, "-o", target, status=1))
    assert sentence.startswith(f"{path}: ")
    assert target.read_bytes() == b"what was there"
    if path.is_file() and path.read_bytes()[:2] == b"PK":
        assert one_error(invoke("info", path, status=1)) == sentence


def test_output_comes_before_the_input_ends(spawn: Spawn, model: Path) -> None:
    """A stream is parsed as it comes: the first trees are there while the input is still open."""
    process = spawn("parse", model, "-", stdin=-1)
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, arrived = process.stdin, threading.Event()
    in_time: list[bool] = []

    def feed() -> None:
        stdin.write(toy.treebank(3000, seed=1).encode())
        stdin.flush()
        in_time.append(arrived.wait(timeout=120))
        stdin.close()

    feeder = threading.Thread(target=feed)
    feeder.start()
    first = process.stdout.readline()
    arrived.set()
    rest = process.stdout.read()
    feeder.join()
    assert process.wait() == 0
    assert in_time == [True]
    assert (first + rest).decode().count("\n\n") == 3000
    process.stdout.close()
    assert process.stderr is not None
    process.stderr.close()


def test_parsing_into_a_pipe_that_closes(spawn: Spawn, model: Path, tmp_path: Path) -> None:
    process = spawn("parse", model, toy.write(tmp_path / "long.conllu", 3000))
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"# sent_id = 1-1\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 1


def test_terminated_it_leaves_nothing_behind(model: Path, tmp_path: Path) -> None:
    """The input never ends, so that the output is being written when the signal comes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "headway", "parse", str(model), "-", "-o", str(tmp_path / "out.conllu")],
        env={**os.environ, "HEADWAY_QUIET": "1"},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        while not list(tmp_path.iterdir()):
            assert process.poll() is None
            time.sleep(0.05)
        process.terminate()
        process.wait(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []
