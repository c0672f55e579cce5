"""Models and checkpoints with something changed: a field of the JSON, an array, or bytes of the file.

What still loads must work: parse, describe itself, be saved and loaded again. A training that goes on from a changed
checkpoint must end in a model that loads.
"""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from headway.archive import load_archive
from headway.coreference.documents import read_documents
from headway.coreference.resolver import Resolver
from headway.learning import monitor
from headway.pipeline import Parser
from headway.treebank import Sentence, read_treebank
from tests.fuzz.harness import Draw, expecting_success
from tests.fuzz.mutations import pick

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TREES = list(read_treebank(EXAMPLES / "tiny.conllu"))
DOCUMENTS = list(read_documents(EXAMPLES / "coreference.conllu"))
TRAIN, DEV, NEW = TREES[:20], TREES[20:26], TREES[36:]

# Settings of the parsers whose files are changed, by name; those of the checkpoints are quicker to train.
PARSERS: dict[str, dict[str, Any]] = {
    "arc": {"epochs": 2},
    "joint": {"epochs": 2, "learner": "eg", "projective": True, "tags": "gold"},
    "grandsibling": {"epochs": 1, "model": "grandsibling", "tags": "gold"},
}
GRAMMARS: dict[str, dict[str, Any]] = {
    "spectral": {"states": 3, "backed_off": 0.2, "lexical": "LEX+F"},
    "det": {"method": "det", "labels": "none"},
}
CHECKPOINTS: dict[str, dict[str, Any]] = {
    "perceptron": {"learner": "perceptron", "epochs": 3},
    "lbfgs": {"learner": "loglinear", "epochs": 8, "labels": "none", "tags": "gold"},
    "cg": {"learner": "loglinear", "optimiser": "cg", "epochs": 4, "labels": "none", "tags": "gold"},
    "adam": {"learner": "loglinear", "optimiser": "adam", "epochs": 2, "labels": "none", "tags": "gold"},
    "eg": {"learner": "eg", "epochs": 3, "labels": "none", "tags": "gold"},
    "grandsibling": {"model": "grandsibling", "epochs": 1, "tags": "gold"},
}

NUMBERS: tuple[float, ...] = (
    0,
    1,
    -1,
    2,
    3,
    7,
    22,
    23,
    64,
    255,
    2**31 - 1,
    2**31,
    2**63,
    -(2**63),
    10**30,
    10**400,
    0.5,
    -0.0,
    1e-300,
)
NUMBERS += (1e30, 1e38, 1e308, -1e308, float("nan"), float("inf"))
TEXTS = (
    "",
    "_",
    "a",
    " ",
    "a\tb",
    "a\nb",
    "a\rb",
    "\ud800",
    "\x1b[31m",
    "\x00",
    "\u2028",
    "x" * 5000,
    "root",
    "é" * 50,
)
OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [[]], [None], {"": None}, [0] * 300, [[[[[[[["deep"]]]]]]]])


def models(folder: Path) -> Draw:
    """Draws that change a saved model, load it, and use it if it loads."""
    wholes = []
    for number, save in enumerate(_savings()):
        save(folder / f"whole-{number}")
        wholes.append((folder / f"whole-{number}").read_bytes())
    path = folder / "changed"

    def draw(rng: np.random.Generator) -> str | None:
        path.write_bytes(changed(rng, pick(rng, wholes)))
        use(path)
        return None

    def use(path: Path) -> None:
        if load_archive(path).kind == "coreference":
            _use_resolver(Resolver.load(path), folder)
        else:
            use_parser(Parser.load(path), folder)

    for content in wholes:  # compiles what all draws need
        path.write_bytes(content)
        with expecting_success():
            use(path)
    return draw


def checkpoints(folder: Path) -> Draw:
    """Draws that change a file of an interrupted training, and go on with it."""
    monitor.CHECKPOINT_SECONDS = -1.0
    trainings = {name: partial(Parser.train, TRAIN, DEV, **settings) for name, settings in CHECKPOINTS.items()}
    for name, train in trainings.items():
        train(checkpoint=folder / name)
    names, now = list(trainings), folder / "now"

    def draw(rng: np.random.Generator) -> str | None:
        name = pick(rng, names)
        shutil.rmtree(now, ignore_errors=True)
        shutil.copytree(folder / name, now)
        file = pick(rng, sorted(now.iterdir()))
        file.write_bytes(changed(rng, file.read_bytes()))
        if rng.random() < 0.3:  # of more passes, so that the learner goes on
            parser = Parser.train(TRAIN, DEV, checkpoint=now, **{**CHECKPOINTS[name], "epochs": 10})
        else:
            parser = trainings[name](checkpoint=now)
        parser.save(folder / "model")
        with expecting_success():
            use_parser(Parser.load(folder / "model"), folder)
        return None

    return draw


def _savings() -> list[Callable[[Path], None]]:
    """What saves each of the models; that of coreference is the last."""
    parsers = [Parser.train(TRAIN, DEV, **settings) for settings in PARSERS.values()]
    parsers += [Parser.induce(TRAIN, **settings) for settings in GRAMMARS.values()]
    packed = [partial(parser.save, max_megabytes=50) for parser in parsers[:3]]
    return [*(parser.save for parser in parsers), *packed, Resolver.train(DOCUMENTS, epochs=1).save]


def use_parser(parser: Parser, folder: Path) -> None:
    text = [NEW[0], NEW[1]] if parser.needs_tags else [NEW[0], Sentence.from_words(NEW[1].forms)]
    for parsed in parser.parse(text):
        assert ((parsed.confidence.arcs >= 0) & (parsed.confidence.arcs <= 1 + 1e-9)).all(), "no probabilities"
        json.dumps(parsed.to_dict(), allow_nan=False, ensure_ascii=False).encode()
        lines = parsed.to_conllu().encode().decode().splitlines()
        assert len(next(iter(read_treebank(io.StringIO("\n".join([*lines, "", ""])))))) == len(parsed.sentence)
    if parser.segmenter is not None and not parser.needs_tags:
        list(parser.parse_text("Dogs bark. The cat's out"))
    json.dumps(parser.describe().data, ensure_ascii=False).encode()
    parser.save(folder / "again")
    with expecting_success():
        Parser.load(folder / "again")


def _use_resolver(resolver: Resolver, folder: Path) -> None:
    for resolved in resolver.resolve(DOCUMENTS):
        assert len(resolved.document.clusters) == len(resolved.document.mentions)
    json.dumps(resolver.model.describe().data, ensure_ascii=False).encode()
    resolver.save(folder / "again")
    with expecting_success():
        Resolver.load(folder / "again")


def changed(rng: np.random.Generator, content: bytes) -> bytes:
    """The file with something changed: mostly one thing, which gets further than many."""
    if rng.random() < 0.15:
        return _other_bytes(rng, content)
    with zipfile.ZipFile(io.BytesIO(content)) as members:
        data = json.loads(members.read("headway.json"))
        arrays = {
            name.removesuffix(".npy"): np.load(io.BytesIO(members.read(name)))
            for name in members.namelist()
            if name != "headway.json"
        }
    for _ in range(int(rng.choice([1, 1, 1, 2, 5]))):
        if arrays and rng.random() < 0.4:
            _change_array(rng, arrays)
        else:
            change_field(rng, data)
    return _written(rng, data, arrays)


def _written(rng: np.random.Generator, data: Any, arrays: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as members:
        text = json.dumps(data, ensure_ascii=bool(rng.random() < 0.5))
        members.writestr("headway.json", text.encode("utf-8", "surrogatepass"))
        for name, array in arrays.items():
            file = io.BytesIO()
            np.save(file, array)
            members.writestr(f"{name}.npy", file.getvalue())
    return stream.getvalue()


def change_field(rng: np.random.Generator, data: Any) -> None:
    """Walk down from the top, and change what is there: anything can become anything, or go, or come twice."""
    at = data
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = pick(rng, keys)
        below = at[key]
        if isinstance(below, dict | list) and below and rng.random() < 0.85:
            at = below
            continue
        way = rng.random()
        if way < 0.1:
            del at[key]
        elif way < 0.2 and isinstance(at, list):
            at.append(deepcopy(below))
        elif way < 0.3:
            at[key] = deepcopy(at[pick(rng, keys)])
        elif way < 0.4 and isinstance(at, dict):
            at[pick(rng, TEXTS)] = at.pop(key)
        else:
            at[key] = deepcopy(pick(rng, pick(rng, (NUMBERS, TEXTS, OTHERS))))
        return


def _change_array(rng: np.random.Generator, arrays: dict[str, Any]) -> None:
    name = pick(rng, list(arrays))
    array = arrays[name]
    way = int(rng.integers(9))
    if way == 0:
        del arrays[name]
    elif way == 1:
        arrays[name] = arrays[pick(rng, list(arrays))]
    elif way == 2:
        arrays[f"{name}x"] = arrays.pop(name)
    elif way == 3:
        arrays[name] = array[: int(rng.integers(len(array) + 1))] if array.ndim else array
    elif way == 4:
        arrays[name] = np.concatenate([array, array[:1]]) if array.ndim else array
    elif way == 5:
        arrays[name] = array.reshape(pick(rng, ((-1, 1), (1, -1), (-1,))))
    elif way == 6:
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(pick(rng, ("<f4", "<f8", "<i4", "<i8", "|u1", "|i1")))
    else:
        changed = array.copy().reshape(-1)
        if len(changed):
            where = rng.integers(len(changed), size=int(rng.choice([1, 1, max(1, len(changed) // 2)])))
            with np.errstate(all="ignore"):
                changed[where] = _extremes(rng, changed.dtype, len(where))
        arrays[name] = changed.reshape(array.shape)


def _extremes(rng: np.random.Generator, dtype: Any, count: int) -> Any:
    """Numbers of a type that few arrays expect; all the same, or large ones of either sign."""
    if dtype.kind == "f":
        if rng.random() < 0.5:
            return rng.normal(size=count) * pick(rng, (1e3, 1e15, 1e29, 1e37, 1e300))
        return np.full(count, pick(rng, (np.nan, np.inf, -np.inf, 1e30, -1e38, 1e308, 5e-324, 0.0)))
    info = np.iinfo(dtype)
    return np.full(count, pick(rng, (info.min, info.max, 0, 1, info.max - 1)), dtype)


def _other_bytes(rng: np.random.Generator, content: bytes) -> bytes:
    """The file cut off, or with bytes flipped, put in or left out; flips are mostly where a zip keeps its tables."""
    changed = bytearray(content)
    way = int(rng.integers(4))
    if way == 0:
        return content[: int(rng.integers(len(content) + 1))]
    near_end = rng.random() < 0.5
    for _ in range(int(rng.choice([1, 1, 3, 20]))):
        at = int(rng.integers(max(0, len(changed) - 2000) if near_end else 0, len(changed)))
        if way == 1:
            changed[at] ^= 1 << int(rng.integers(8))
        elif way == 2:
            changed[at:at] = rng.bytes(int(rng.integers(1, 9)))
        else:
            del changed[at : at + int(rng.integers(1, 9))]
    return bytes(changed)
