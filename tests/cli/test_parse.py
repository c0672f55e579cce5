"""`headway parse`: what comes out is what went in, but for the trees; texts; doubts; hostile models; streaming."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.drawing import tree_text
from headway.inference.dual_decomposition import Status, decode
from headway.models.higher_order_model import HigherOrderModel
from headway.models.scorer import Trained
from headway.parsed import Parsed
from headway.pipeline import Parser
from headway.treebank import Sentence, is_projective, is_tree, read_treebank
from headway.treebank.annotations import offsets_of
from tests.cli import toy
from tests.cli.conftest import Invoke, Spawn, one_error
from tests.models.model_parts import weights_of, with_weights
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
    weights = weights_of(loaded)
    noise = np.random.default_rng(4).normal(size=weights.shape)
    weights = weights / np.abs(weights).max() + 0.3 * noise  # some trees are found at once, others not
    Parser(with_weights(loaded, weights)).save(tmp_path / "m")
    parser, treebank = Parser.load(tmp_path / "m"), list(read_treebank(test_file))
    monkeypatch.setattr("headway.models.dual_decoder.decode", partial(decode, iterations=10))

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
    assert limited.stderr == f"headway: {sum(unproven)} of 20 trees are not proved to be the best\n"


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
    assert isinstance(loaded, HigherOrderModel)
    arcs = loaded.scorer.pruner.scorer.scorer
    weights = np.random.default_rng(5).normal(size=arcs.size)
    pruner = dataclasses.replace(loaded.scorer.pruner, scorer=Trained(arcs, weights), max_heads=1)
    Parser(dataclasses.replace(loaded, scorer=dataclasses.replace(loaded.scorer, pruner=pruner))).save(tmp_path / "m")
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
    assert result.stderr == f"headway: 2 malformed sentences skipped; the first: {sentence}\n"
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


HOSTILE_GRAMMARS: dict[str, Callable[[Path, Path], object]] = {
    "operators that are no numbers": _with(operators__npy=_npy(np.full((1, 2, 2), np.nan))),
    "operators of another size": _with(operators__npy=_npy(np.zeros((3, 5, 5)))),
    "operators of symbols that are none": _with(operators__npy=_npy(np.zeros((1, 2, 2))), places__npy=_npy([1 << 40])),
    "a number for a vector": _with(initial__npy=_npy(0.5)),
    "another column": _with_json(column="feats"),
    "tags that are none": _with_json(tags=7),
    "other tags": _with_json(tags=["A"]),
    "a share above one": _with_json(backed_off=2),
    "no words, but a grammar of them": _with_json(lexical={"configuration": "LEX"}),
    "an arc model in name": _with_json(kind="arc"),
}


@pytest.mark.parametrize("kind", HOSTILE_GRAMMARS)
def test_a_hostile_grammar_is_one_sentence(
    invoke: Invoke, train_file: Path, test_file: Path, tmp_path: Path, kind: str
) -> None:
    grammar, path = tmp_path / "g.headway", tmp_path / "hostile.headway"
    invoke("induce", train_file, "--states", 2, "--labels", "none", "-o", grammar)
    HOSTILE_GRAMMARS[kind](grammar, path)
    sentence = one_error(invoke("parse", path, test_file, status=1))
    assert sentence.startswith(f"{path}: ")
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


# Text. The toy treebank with full stops right behind their words shows a segmenter how to split it.


def with_spaces(treebank: str) -> str:
    """The treebank with SpaceAfter=No before every full stop."""
    lines = treebank.split("\n")
    for i, line in enumerate(lines):
        if "\tPUNCT\t" in line:
            lines[i - 1] = lines[i - 1].rpartition("\t")[0] + "\tSpaceAfter=No"
    return "\n".join(lines)


def texts(count: int, seed: int) -> Iterator[str]:
    """Sentences as people write them."""
    for sentence in sentences(toy.treebank(count, seed).encode()):
        yield f"{' '.join(sentence.forms[:-1])}{sentence.forms[-1]}"


@pytest.fixture(scope="module")
def text_model(folder: Path, invoke: Invoke) -> Path:
    source, path = folder / "spaces.conllu", folder / "text.headway"
    source.write_text(with_spaces(toy.treebank(60, seed=1)), encoding="utf-8")
    invoke("train", source, "--epochs", 3, "-o", path)
    return path


@pytest.fixture(scope="module")
def unsure_model(folder: Path, text_model: Path) -> Path:
    """The same with random weights."""
    parser = Parser.load(text_model)
    weights = np.random.default_rng(3).normal(size=weights_of(parser.model).shape) / 4
    path = folder / "unsure.headway"
    dataclasses.replace(parser, model=with_weights(parser.model, weights)).save(path)
    return path


TEXT = "\r\nLa hundo vidas un kato. bela kato amas floro!\r\n\r\n\r\nun bela domo\r\nvidas ĉiun floro.\r\n"
SENTENCES = ["La hundo vidas un kato.", "bela kato amas floro!", "un bela domo vidas ĉiun floro."]


def comments(text: bytes) -> list[tuple[str, ...]]:
    return [each.layout.comments for each in sentences(text)]


def misc_of(parsed: Parsed) -> tuple[str, ...]:
    """MISC as the file has it, with offsets."""
    (written,) = sentences(parsed.to_conllu().encode())
    return written.layout.misc


def assert_offsets(found: list[Sentence], text: str) -> None:
    for sentence in found:
        offsets = offsets_of(sentence)
        assert offsets is not None
        assert tuple(text[start:end] for start, end in offsets) == sentence.forms


@pytest.mark.parametrize(
    "text",
    [
        "\n \n\t The dog sleeps.\n \t\r\n\r\n\r\nThe dog sleeps. The dog sleeps.\u2029The dog sleeps.\n\n",
        "The dog\r\nsleeps. The\rdog sleeps.\r\rThe old woman\nreads.",
        "The dog sleeps. " * 5_000,  # longer than a paragraph may be: where it is cut, another begins
        " \n\n",
    ],
)
def test_a_document_is_written_as_the_command_line_writes_it(
    invoke: Invoke, text_model: Path, tmp_path: Path, text: str
) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode())
    out = invoke("parse", text_model, tmp_path / "a.txt").stdout
    assert out.count("# newpar\n") == (3 if "\u2029" in text else 2 if text.strip() else 0)
    assert Parser.load(text_model)(text).to_conllu() == out


@pytest.mark.parametrize("newline", ["\r\n", "\n", "\r"])
def test_a_text_is_split_tagged_and_parsed(invoke: Invoke, text_model: Path, tmp_path: Path, newline: str) -> None:
    text = TEXT.replace("\r\n", newline)
    source, target = tmp_path / "a.txt", tmp_path / "a.conllu"
    source.write_bytes(b"\xef\xbb\xbf" + text.encode())
    out = invoke("parse", text_model, source).stdout_bytes
    assert comments(out) == [
        ("# newpar", "# sent_id = 1", f"# text = {SENTENCES[0]}"),
        ("# sent_id = 2", f"# text = {SENTENCES[1]}"),
        ("# newpar", "# sent_id = 3", f"# text = {SENTENCES[2]}"),
    ]
    found = sentences(out)
    assert_offsets(found, text)
    expected = list(Parser.load(text_model).parse_text(text))
    for one, right in zip(found, expected, strict=True):
        assert one.heads is not None
        assert one.heads.tolist() == right.heads.tolist()
        assert (one.labels, one.upos, one.layout.misc) == (right.labels, right.sentence.upos, misc_of(right))
    for words in (["-"], ["-", "--input-format", "text"]):
        assert invoke("parse", text_model, *words, stdin=source.read_bytes()).stdout_bytes == out
        assert invoke("parse", text_model, *words, stdin=gzip.compress(text.encode())).stdout_bytes == out
    invoke("parse", text_model, source, "-o", target)
    assert target.read_bytes() == out


def test_sentences_on_lines(invoke: Invoke, text_model: Path) -> None:
    text = "La hundo vidas un kato. Bela kato amas floro!\r\n\r\n  un bela domo\r\nvidas floro."
    out = invoke("parse", text_model, "-", "--input-format", "lines", stdin=text.encode()).stdout_bytes
    lines = ["La hundo vidas un kato. Bela kato amas floro!", "un bela domo", "vidas floro."]
    assert comments(out) == [(f"# sent_id = {n}", f"# text = {line}") for n, line in enumerate(lines, start=1)]
    assert_offsets(sentences(out), text)
    assert [len(each) for each in sentences(out)] == [11, 3, 3]


def test_line_ends_are_kept_or_ignored(invoke: Invoke, text_model: Path) -> None:
    text = "La hundo vidas\r\nun kato\n\nun bela domo\n"

    def found(newlines: str) -> list[tuple[str, ...]]:
        out = invoke("parse", text_model, "-", "--newlines", newlines, stdin=text.encode()).stdout_bytes
        assert_offsets(sentences(out), text)
        return [sentence.forms for sentence in sentences(out)]

    paragraphs = [("La", "hundo", "vidas", "un", "kato"), ("un", "bela", "domo")]
    assert found("ignore") == paragraphs
    assert found("keep") == [paragraphs[0][:3], paragraphs[0][3:], paragraphs[1]]
    assert "auto" in invoke("parse", text_model, "-", "--newlines", "never", status=2).stderr


def test_tokens_are_kept(invoke: Invoke, text_model: Path) -> None:
    text = "La hundo\tvidas kato.\n\n un  .\r\n"
    out = invoke("parse", text_model, "-", "--input-format", "tokens", stdin=text.encode()).stdout_bytes
    assert [sentence.forms for sentence in sentences(out)] == [("La", "hundo", "vidas", "kato."), ("un", ".")]
    assert comments(out) == [("# sent_id = 1", "# text = La hundo vidas kato."), ("# sent_id = 2", "# text = un .")]
    assert_offsets(sentences(out), text)
    assert all("_" not in sentence.upos for sentence in sentences(out))


@pytest.mark.parametrize("stdin", [b"", b"\n", b" \r\n\r\n", b"\xef\xbb\xbf"])
def test_nothing_in_nothing_out(invoke: Invoke, text_model: Path, tmp_path: Path, stdin: bytes) -> None:
    (tmp_path / "a.txt").write_bytes(stdin)
    for words in (
        [],
        ["--input-format", "text"],
        ["--input-format", "lines"],
        ["--input-format", "tokens"],
        ["--format", "json"],
    ):
        for name in ("-", tmp_path / "a.txt"):
            assert invoke("parse", text_model, name, *words, stdin=stdin).output == ""
    assert (
        "0 of 0 arcs" in invoke("parse", text_model, "-", "--format", "tree", "--unsure-below", 1, stdin=stdin).stderr
    )


WORD = "1\tun\t_\t_\t_\t_\t_\t_\t_\t_\n"


def test_a_treebank_is_one_under_any_name_and_text_too(invoke: Invoke, text_model: Path, tmp_path: Path) -> None:
    treebank, text = toy.treebank(3, seed=5), "un bela kato amas floro.\n"
    for name in ("a.txt", "a", "a.conllu"):
        (tmp_path / name).write_text(treebank, encoding="utf-8")
        assert without_trees(invoke("parse", text_model, tmp_path / name).stdout) == without_trees(treebank)
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert comments(invoke("parse", text_model, tmp_path / name, "--input-format", "text").stdout_bytes) == [
            ("# newpar", "# sent_id = 1", f"# text = {text.strip()}")
        ]
    assert "1 column; expected 10" in one_error(invoke("parse", text_model, tmp_path / "a.conllu", status=1))
    assert "1 column; expected 10" in one_error(
        invoke("parse", text_model, tmp_path / "a", "--input-format", "conllu", status=1)
    )
    source = tmp_path / "a.conllu"
    source.write_text(toy.treebank(1, seed=5, comments=False), encoding="utf-8")
    out = invoke("parse", text_model, source, "--input-format", "conllx").stdout
    assert without_trees(out) == without_trees(source.read_text("utf-8"))
    out = invoke("parse", text_model, source, "--input-format", "conllx", "--format", "conllu").stdout
    assert {row[-1] for row in without_trees(out) if len(row) > 1} == {"_"}


@pytest.mark.parametrize("kind", ["text", "lines", "tokens", None])
def test_text_that_is_not_utf8_is_an_error_with_its_line(
    invoke: Invoke, text_model: Path, tmp_path: Path, kind: str | None
) -> None:
    source, target = tmp_path / "a.txt", tmp_path / "out.conllu"
    source.write_bytes(b"un kato amas floro.\n\nun kato\nna\xefve\n")
    words = [] if kind is None else ["--input-format", kind]
    error = one_error(invoke("parse", text_model, source, "-o", target, *words, status=1))
    assert error == f"{source}, line 4: 0xef at byte 32 is not valid UTF-8; save the file as UTF-8"
    error = one_error(invoke("parse", text_model, "-", "-o", target, *words, stdin=source.read_bytes(), status=1))
    assert error.startswith("standard input, line 4: 0xef at byte 32")
    assert not target.exists()


def test_input_that_breaks_off(invoke: Invoke, text_model: Path, tmp_path: Path) -> None:
    source = tmp_path / "a.txt.gz"
    source.write_bytes(gzip.compress(TEXT.encode())[:30])
    assert one_error(invoke("parse", text_model, source, status=1)).startswith(f"{source}, line 1: the data break off")
    error = one_error(invoke("parse", text_model, tmp_path / "none.txt", status=1))
    assert error.startswith(f"{tmp_path / 'none.txt'}: the file cannot be opened")


def test_json_is_an_object_a_sentence(invoke: Invoke, unsure_model: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.jsonl"
    result = invoke("parse", unsure_model, "-", "-o", target, stdin=TEXT.encode())
    assert result.output == ""
    lines = target.read_text("utf-8").splitlines()
    expected = list(Parser.load(unsure_model).parse_text(TEXT))
    for number, (line, parsed) in enumerate(zip(lines, expected, strict=True), start=1):
        known = {"sent_id": str(number), "text": SENTENCES[number - 1]}
        assert json.loads(line) == json.loads(json.dumps({**known, **parsed.to_dict()}))
        assert list(json.loads(line))[:3] == ["sent_id", "text", "words"]
    for name in ("a.json", "A.JSON.gz"):
        invoke("parse", unsure_model, "-", "-o", tmp_path / name, stdin=TEXT.encode())
    assert gzip.decompress((tmp_path / "A.JSON.gz").read_bytes()) == target.read_bytes()
    assert (tmp_path / "a.json").read_bytes() == target.read_bytes()
    assert invoke("parse", unsure_model, "-", "--format", "json", stdin=TEXT.encode()).stdout_bytes == (
        target.read_bytes()
    )


def test_json_of_a_treebank_has_what_it_says(invoke: Invoke, model: Path) -> None:
    bare = toy.treebank(1, seed=3, comments=False)
    out = invoke("parse", model, "-", "--format", "json", stdin=("#text=Un X\n# other\n" + bare + bare).encode()).stdout
    first, second = map(json.loads, out.splitlines())
    assert (first["text"], "sent_id" in first) == ("Un X", False)
    assert list(second) == ["words", "multiword_tokens", "probability", "status", "gap"]
    assert second["words"][0]["offsets"] is None


def test_json_has_no_infinity(invoke: Invoke, model: Path, test_file: Path, monkeypatch: Any) -> None:
    given = Parser.parse

    def parse(self: Parser, *args: Any, **options: Any) -> Any:
        return (dataclasses.replace(each, gap=np.inf) for each in given(self, *args, **options))

    monkeypatch.setattr(Parser, "parse", parse)
    out = invoke("parse", model, test_file, "--format", "json").stdout
    assert {json.loads(line)["gap"] for line in out.splitlines()} == {None}


def test_trees_are_drawn(invoke: Invoke, text_model: Path, unsure_model: Path, tmp_path: Path) -> None:
    expected = list(Parser.load(unsure_model).parse_text(TEXT))
    drawn = [f"{each}\n{tree_text(parsed.sentence)}\n" for each, parsed in zip(SENTENCES, expected, strict=True)]
    out = invoke("parse", unsure_model, "-", "--format", "tree", stdin=TEXT.encode()).stdout
    assert out == "\n".join(drawn)
    invoke("parse", unsure_model, "-", "--format", "tree", "-o", tmp_path / "a", stdin=TEXT.encode())
    assert (tmp_path / "a").read_text("utf-8") == out

    sure = expected[0].confidence
    words = ("parse", unsure_model, "-", "--format", "tree")
    out = invoke(*words, "--marginals", "--status", stdin=SENTENCES[0].encode()).stdout
    assert out == (
        f"{SENTENCES[0]}\n# tree_probability = {sure.tree:.6g}\n# headway_status = EXACT\n"
        f"{tree_text(expected[0].sentence, sure.arcs)}\n"
    )
    result = invoke(*words, "--unsure-below", 0.6, stdin=SENTENCES[0].encode())
    assert result.stdout == f"{SENTENCES[0]}\n{tree_text(expected[0].sentence, sure.arcs, unsure_below=0.6)}\n"
    assert result.stdout.count("? ") == (sure.arcs < 0.6).sum() > 0


def test_trees_of_a_treebank_have_their_text_too(invoke: Invoke, model: Path) -> None:
    text = with_spaces(toy.treebank(1, seed=3, comments=False)) + "# text = \x1b[2J un\n" + WORD + "\n# nothing\n\n"
    blocks = invoke("parse", model, "-", "--format", "tree", stdin=text.encode()).stdout.split("\n\n")
    assert [block.splitlines()[0] for block in blocks[:2]] == [next(texts(1, 3)), "\\x1b[2J un"]
    assert blocks[2].strip() == ""


def test_unsure_arcs_are_marked(invoke: Invoke, unsure_model: Path) -> None:
    text = " ".join(texts(30, seed=4))
    words = ("parse", unsure_model, "-", "--unsure-below", 0.6)
    result = invoke(*words, stdin=text.encode())
    both = invoke(*words, "--marginals", stdin=text.encode())
    data = invoke(*words, "--format", "json", stdin=text.encode())
    expected = list(Parser.load(unsure_model).parse_text(text))
    arcs = np.concatenate([parsed.confidence.arcs[1:] for parsed in expected])
    misc = [column for parsed in expected for column in misc_of(parsed)]
    shown = [f"|HeadProbability={p:.4f}" for p in arcs]
    marks = ["|Unsure=Yes" if p < 0.6 else "" for p in arcs]

    def column(text: bytes) -> list[str]:
        return [each for sentence in sentences(text) for each in sentence.layout.misc]

    assert column(result.stdout_bytes) == [a + (b and b + c) for a, b, c in zip(misc, marks, shown, strict=True)]
    assert column(both.stdout_bytes) == list(map("".join, zip(misc, marks, shown, strict=True)))
    objects = [json.loads(line) for line in data.stdout.splitlines()]
    assert [word["unsure"] for each in objects for word in each["words"]] == (arcs < 0.6).tolist()
    assert b"tree_probability" not in result.stdout_bytes
    assert 10 < (arcs < 0.6).sum() < len(arcs) - 10
    counts = f"headway: {(arcs < 0.6).sum()} of {len(arcs)} arcs are less probable than 0.6\n"
    assert [result.stderr, both.stderr, data.stderr] == [counts] * 3


def test_marks_of_an_earlier_parse_are_replaced(
    invoke: Invoke, model: Path, random_model: Path, test_file: Path
) -> None:
    marked = invoke("parse", random_model, test_file, "--unsure-below", 0.6).stdout_bytes
    assert b"|Unsure=Yes|HeadProbability=0." in marked
    again = invoke("parse", model, "-", "--unsure-below", 0.6, stdin=marked)
    assert again.stdout_bytes == invoke("parse", model, test_file, "--unsure-below", 0.6).stdout_bytes
    assert invoke("parse", random_model, "-", "--unsure-below", 0.6, stdin=again.stdout_bytes).stdout_bytes == marked
    assert b"Unsure" not in invoke("parse", model, "-", "--marginals", stdin=marked).stdout_bytes
    assert b"Unsure" not in invoke("parse", random_model, test_file, "--unsure-below", 0).stdout_bytes


@pytest.mark.parametrize("value", ["-0.1", "1.01", "nan", "inf", "x"])
def test_confidence_is_a_probability(invoke: Invoke, value: str) -> None:
    assert "Usage: headway" in invoke("parse", "m", "a.conllu", "--unsure-below", value, status=2).output


def test_confidence_has_no_place_in_conllx(invoke: Invoke, model: Path, test_file: Path) -> None:
    error = one_error(invoke("parse", model, test_file, "--unsure-below", 0.5, "--format", "conllx", status=1))
    assert error == "CoNLL-X has no column for probabilities; write CoNLL-U (--format conllu)"


def test_tags_are_kept_or_replaced(invoke: Invoke, text_model: Path, random_model: Path, test_file: Path) -> None:
    wrong = test_file.read_text("utf-8").replace("\tNOUN\tN\t", "\tVERB\tV\t").encode()
    kept = sentences(invoke("parse", text_model, "-", stdin=wrong).stdout_bytes)
    assert not any("NOUN" in sentence.upos for sentence in kept)
    replaced = sentences(invoke("parse", text_model, "-", "--retag", stdin=wrong).stdout_bytes)
    assert [each.upos for each in replaced] == [each.upos for each in read_treebank(test_file)]
    assert [each.layout.misc for each in replaced] == [each.layout.misc for each in kept]
    error = one_error(invoke("parse", random_model, test_file, "--retag", status=1))
    assert error == "--retag needs a tagger, and this model has none; train one with --tags predicted"


def test_tags_that_a_model_needs_and_a_treebank_lacks_are_counted(
    invoke: Invoke, text_model: Path, random_model: Path, test_file: Path
) -> None:
    tagged = test_file.read_bytes()
    bare = "".join(Sentence.from_words(own.forms).to_conllu() for own in list(read_treebank(test_file))[:3]).encode()
    empty = b"# nothing but a comment\n\n"
    assert invoke("parse", random_model, "-", stdin=tagged + empty).stderr == ""
    count = len(sentences(tagged)) + 4
    assert invoke("parse", random_model, "-", stdin=bare + tagged + empty).stderr == (
        f"headway: sentences without tags: 3 of {count}; the model was trained on gold tags, and its trees are worse "
        "without them\n"
    )
    assert invoke("parse", text_model, "-", stdin=bare).stderr == ""  # it has a tagger


def test_a_model_that_cannot_do_it_says_so(
    invoke: Invoke, text_model: Path, random_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "m"
    dataclasses.replace(Parser.load(text_model), segmenter=None).save(path)
    for kind in ("text", "lines"):
        error = one_error(invoke("parse", path, "-", "--input-format", kind, stdin=b"Un kato.", status=1))
        assert error.startswith("the model cannot split text into words")
    assert sentences(invoke("parse", path, "-", "--input-format", "tokens", stdin=b"Un kato .").stdout_bytes)
    dataclasses.replace(Parser.load(text_model), tagger=None).save(path)
    for each, kind in ((random_model, "tokens"), (path, "text"), (path, "lines"), (path, "tokens")):
        error = one_error(invoke("parse", each, "-", "--input-format", kind, stdin=b"Un kato.", status=1))
        assert error.startswith("the model has no tagger, as it was trained on gold tags; give it a treebank with tags")


def test_names_of_models(invoke: Invoke, text_model: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADWAY_MODELS", str(tmp_path / "models"))
    (tmp_path / "models").mkdir()
    shutil.copy(text_model, tmp_path / "models" / "eo.headway")
    assert sentences(invoke("parse", "eo", "-", stdin=b"un kato amas floro.").stdout_bytes)
    error = one_error(invoke("parse", "oe", "-", stdin=b"un kato.", status=1))
    assert error.startswith("oe: no such file, and no model of this name; ")


def test_trees_of_a_text_come_before_it_ends(spawn: Spawn, text_model: Path) -> None:
    process = spawn("parse", text_model, "-", "--format", "json", stdin=-1)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    stdin, arrived, in_time = process.stdin, threading.Event(), list[bool]()

    def feed() -> None:
        stdin.write("\n\n".join(texts(3000, seed=1)).encode())
        stdin.flush()
        in_time.append(arrived.wait(timeout=120))
        stdin.close()

    feeder = threading.Thread(target=feed)
    feeder.start()
    first = json.loads(process.stdout.readline())
    arrived.set()
    rest = process.stdout.read()
    feeder.join()
    assert (process.wait(), in_time, first["sent_id"], rest.count(b"\n")) == (0, [True], "1", 2999)
    process.stdout.close()
    process.stderr.close()


@pytest.mark.parametrize("words", [[], ["--input-format", "text"], ["--input-format", "lines"], ["--format", "json"]])
def test_what_is_typed_is_parsed_when_its_paragraph_ends(spawn: Spawn, text_model: Path, words: list[str]) -> None:
    terminal, stdin = os.openpty()
    process = spawn("parse", text_model, "-", *words, stdin=stdin)
    os.close(stdin)
    killer = threading.Timer(120, process.kill)
    killer.start()
    assert process.stdout is not None
    seen = []
    for number in (1, 2):
        os.write(terminal, b"un bela kato\namas floro.\n\n" if "lines" not in words else b"kato amas floro.\n")
        while True:
            line = process.stdout.readline()
            assert line, "no output"
            seen.append(line)
            if line == b"\n" or line.startswith(b"{"):
                break
        assert f"sent_id{' = ' if seen[0][:1] == b'#' else chr(34) + ': ' + chr(34)}{number}".encode() in b"".join(seen)
    os.write(terminal, b"\x04")
    out, err = process.communicate(timeout=60)
    killer.cancel()
    os.close(terminal)
    assert (process.returncode, out, err) == (0, b"", b"")


@pytest.mark.parametrize("form", ["conllu", "json", "tree"])
def test_a_text_into_a_pipe_that_closes(spawn: Spawn, text_model: Path, tmp_path: Path, form: str) -> None:
    source = tmp_path / "a.txt"
    source.write_text("\n".join(texts(3000, seed=1)), encoding="utf-8")
    process = spawn("parse", text_model, source, "--format", form)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 1


def test_ctrl_c_ends_it(spawn: Spawn, text_model: Path, tmp_path: Path) -> None:
    # tests that run in the background of a shell inherit an ignored SIGINT
    heeded = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    process = spawn("parse", text_model, "-", "-o", tmp_path / "out.conllu", stdin=-1, **heeded)
    try:
        while not list(tmp_path.iterdir()):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
    finally:
        process.kill()
        out, err = process.communicate()
    assert (process.returncode, out, err) == (130, b"", b"\nheadway: interrupted\n")
    assert list(tmp_path.iterdir()) == []


def test_memory_does_not_grow_with_the_text(invoke: Invoke, text_model: Path, tmp_path: Path) -> None:
    peaks = []
    for count in (1500, 6000):
        source = tmp_path / "a.txt"
        source.write_text("\n\n".join(texts(count, seed=1)), encoding="utf-8")
        tracemalloc.start()
        try:
            invoke("parse", text_model, source, "-o", tmp_path / "out.conllu")
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert len(list(read_treebank(tmp_path / "out.conllu"))) >= count
    assert peaks[1] < 1.2 * peaks[0]


# Long sentences


def test_a_very_long_sentence_is_parsed_in_stretches(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, model: Path, test_file: Path, tmp_path: Path
) -> None:
    """Its status says so, its probabilities are there, and the other sentences are parsed as ever."""
    alone = invoke("parse", model, test_file, "--format", "json").stdout.splitlines()
    lengths = [len(json.loads(line)["words"]) for line in alone]
    limit = sorted(lengths)[len(lengths) // 2]
    monkeypatch.setattr("headway.models.stretches.MOST_WORDS", limit)
    result = invoke("parse", model, test_file, "--format", "json", "--unsure-below", "0.5")
    for line, before, n in zip(result.stdout.splitlines(), alone, lengths, strict=True):
        found = json.loads(line)
        assert [word["form"] for word in found["words"]] == [word["form"] for word in json.loads(before)["words"]]
        assert (found["status"], found["gap"]) == (("IN_STRETCHES", None) if n > limit else ("EXACT", 0.0))
        assert sum(word["head"] == 0 for word in found["words"]) == 1
        assert all(0 < word["probability"] <= 1 for word in found["words"])
        if n <= limit:
            assert [w["head"] for w in found["words"]] == [w["head"] for w in json.loads(before)["words"]]
    count = sum(n > limit for n in lengths)
    assert f"headway: {count} of {len(lengths)} trees are not proved to be the best\n" in result.stderr
    assert f"headway: {count} very long sentences parsed in stretches\n" in result.stderr
    noted = invoke("parse", model, test_file, "--status").stdout
    assert noted.count("# headway_status = IN_STRETCHES\n") == count


@pytest.mark.parametrize("seconds", ["0", "-1", "nan"])
def test_seconds_per_sentence_are_positive(invoke: Invoke, seconds: str) -> None:
    result = invoke("parse", "no.model", "no.conllu", "--seconds-per-sentence", seconds, status=2)
    assert f"--seconds-per-sentence is {float(seconds):g}; expected more than 0" in result.stderr


def test_seconds_per_sentence_change_nothing_where_they_suffice(
    invoke: Invoke, higher_order: Path, test_file: Path
) -> None:
    whole = invoke("parse", higher_order, test_file, "--status").stdout
    assert invoke("parse", higher_order, test_file, "--status", "--seconds-per-sentence", "60").stdout == whole


# Known heads


def partly_annotated(path: Path, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Heads that the model would not choose, in some rows of a file; HEAD and DEPREL of all its words, `_` elsewhere.

    A word's head is the next one there, and that of the last word the root: whichever are kept, there is such a tree.
    """
    lines, columns = path.read_text("utf-8").split("\n"), []
    for i, line in enumerate(lines):
        row = line.split("\t")
        if row[0].isdecimal():
            last = not lines[i + 1].strip()
            known = rng.random() < 0.3
            row[HEAD : DEPREL + 1] = (("0" if last else str(int(row[0]) + 1)), "mine") if known else ("_", "_")
            columns.append((row[HEAD], row[DEPREL]))
            lines[i] = "\t".join(row)
    path.write_text("\n".join(lines), "utf-8")
    return columns


def annotations(text: str) -> list[tuple[str, str]]:
    rows = (line.split("\t") for line in text.split("\n"))
    return [(row[HEAD], row[DEPREL]) for row in rows if row[0].isdecimal()]


@pytest.fixture
def partial_file(tmp_path: Path, test_file: Path) -> Path:
    path = tmp_path / "partial.conllu"
    shutil.copy(test_file, path)
    return path


def test_known_heads_are_kept(invoke: Invoke, random_model: Path, test_file: Path, partial_file: Path) -> None:
    check_known_heads(invoke, random_model, test_file, partial_file)


def test_known_heads_are_kept_with_a_proof(
    invoke: Invoke, higher_order: Path, test_file: Path, partial_file: Path
) -> None:
    check_known_heads(invoke, higher_order, test_file, partial_file)
    proved = invoke("parse", higher_order, partial_file, "--keep-heads", "--status").stdout
    assert set(re.findall("headway_status = ([A-Z]+)", proved)) <= {"CERTIFIED", "EXACT"}
    assert proved.count("headway_status") == len(sentences(proved.encode()))


def check_known_heads(invoke: Invoke, model: Path, test_file: Path, partial_file: Path) -> None:
    known = partly_annotated(partial_file, np.random.default_rng(1))
    out = invoke("parse", model, partial_file, "--keep-heads", "--marginals").stdout
    assert without_misc(out) == without_misc(partial_file.read_text("utf-8"))
    found = annotations(out)
    assert {row for row, given in zip(found, known, strict=True) if given[0] == "_"}.isdisjoint({("_", "_")})
    assert all(row == given for row, given in zip(found, known, strict=True) if given[0] != "_")
    expected = list(Parser.load(model).parse(read_treebank(partial_file, partial=True), keep_heads=True))
    assert [s.heads.tolist() for s in sentences(out.encode())] == [one.heads.tolist() for one in expected]
    certain = [row for row in out.split("\n") if "\tmine\t" in row]
    assert len(certain) > 20
    assert all("HeadProbability=1.0" in row or "HeadProbability=1|" in row + "|" for row in certain)
    free = annotations(invoke("parse", model, partial_file).stdout)  # without the option, nothing of it counts
    assert free == annotations(invoke("parse", model, test_file).stdout)
    assert free != found


def without_misc(text: str) -> list[list[str]]:
    """The lines of a treebank without its trees, and without what `--marginals` adds."""
    kept = [row for row in without_trees(text) if not row[0].startswith("# tree_probability")]
    return [row[:-1] if row[0].isdecimal() else row for row in kept]


def test_known_heads_from_a_pipe_and_of_conllx(invoke: Invoke, random_model: Path) -> None:
    rows = ["1\ta\ta\tDET\tD\t_\t3\tx\t_\t_", "2\tb\tb\tNOUN\tN\t_\t_\t_\t_\t_", "3\tc\tc\tVERB\tV\t_\t_\t_\t_\t_"]
    text = "\n".join([*rows, "", ""])
    for format in ("conllu", "conllx"):
        how = ("--keep-heads", "--input-format", format)
        out = invoke("parse", random_model, "-", *how, stdin=text.encode()).stdout
        assert annotations(out)[0] == ("3", "x")
        assert "_" not in dict(annotations(out))


@pytest.mark.parametrize("option", [(), ("--input-format", "lines"), ("--input-format", "tokens")])
def test_text_has_no_heads_to_keep(invoke: Invoke, text_model: Path, tmp_path: Path, option: tuple[str, ...]) -> None:
    path = tmp_path / "a.txt"
    path.write_text("the stone moves .\n", "utf-8")
    said = one_error(invoke("parse", text_model, path, "--keep-heads", *option, status=1))
    assert said == f"{path} has no heads to keep, as it is text; give a treebank, or no --keep-heads"
    said = one_error(invoke("parse", text_model, "-", "--keep-heads", *option, stdin=b"the stone moves .\n", status=1))
    assert said.startswith("standard input has no heads to keep")


CYCLE = "1\ta\ta\tDET\tD\t_\t2\tx\t_\t_\n2\tb\tb\tNOUN\tN\t_\t1\tx\t_\t_\n\n"
FINE = "1\ta\ta\tDET\tD\t_\t2\tx\t_\t_\n2\tb\tb\tNOUN\tN\t_\t_\t_\t_\t_\n\n"
TWO_ROOTS = "1\ta\ta\tDET\tD\t_\t0\tx\t_\t_\n2\tb\tb\tNOUN\tN\t_\t0\tx\t_\t_\n\n"


@pytest.mark.parametrize(
    ("bad", "cause"),
    [
        (CYCLE, "the given heads form a cycle, 1 (a) -> 2 (b) -> 1 (a)"),
        (TWO_ROOTS, "words 1 (a) and 2 (b) are both under the root"),
    ],
)
def test_contradictory_heads_are_named_with_their_place(
    invoke: Invoke, model: Path, tmp_path: Path, bad: str, cause: str
) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(FINE + bad + FINE, "utf-8")
    said = one_error(invoke("parse", model, path, "--keep-heads", status=1))
    assert said.startswith(f"{path}, line 4: no tree exists: {cause}")
    result = invoke("parse", model, path, "--keep-heads", "--skip-bad")
    assert annotations(result.stdout) == [("2", "x"), *annotations(result.stdout)[1:2]] * 2
    assert f"1 malformed sentence skipped; the first: {path}, line 4: no tree exists: {cause}" in result.stderr
    assert len(annotations(invoke("parse", model, path).stdout)) == 6  # nothing is wrong without the option


def test_labels_without_heads_are_malformed(invoke: Invoke, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(FINE.replace("_\t_\t_\t_\n\n", "_\tx\t_\t_\n\n"), "utf-8")
    assert "line 2" in one_error(invoke("parse", model, path, "--keep-heads", status=1))
