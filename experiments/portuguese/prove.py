"""Does a model of another language work by name once its package is installed? Portuguese, in a clean environment.

    headway train pt_bosque-ud-train.conllu.gz --dev pt_bosque-ud-dev.conllu.gz --model neural -o pt.headway
    python experiments/portuguese/prove.py pt.headway --data UD_Portuguese-Bosque

The model is measured (scores, calibration, speed), which makes its card; `headway package` makes a wheel of both,
twice, and the bytes must be the same. Headway's own wheel is built from this clone. Both are installed into a new
environment, with spaCy and without torch. There `pt` is used by name on the command line, from Python and in
spaCy, and each tree must be the one that the model's file gives here. Results go to `results.json`; wheels are kept
only with --keep.

`--quick` measures on a hundred development sentences only, for a trial. Test sentences are parsed once otherwise.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
import venv
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from headway import __version__, read_treebank
from headway.card import Card, Measured, Source
from headway.pipeline import Parser
from headway.training.data import checksum
from headway.treebank.raw_text import raw_text
from headway_papers.english import measure

REPOSITORY = Path(__file__).resolve().parents[2]
TEXT = "O gato dorme na cadeira. A Maria leu o livro que o João lhe deu."
ATTRIBUTION = (
    "Alexandre Rademaker, Fabricio Chalub, Livy Real, Cláudia Freitas, Eckhard Bick, Valeria de Paiva and others"
)
IN_PYTHON = """
import json, sys, headway
found = headway.Parser.load("pt").parse_text(sys.argv[1])
print(json.dumps([[parsed.heads[1:].tolist(), parsed.labels[1:]] for parsed in found]))
"""
IN_SPACY = """
import json, sys, spacy
nlp = spacy.blank("pt")
nlp.add_pipe("headway", config={"model": "pt"})
doc = nlp(sys.argv[1])
heads = [[0 if token.head == token else token.head.i - s.start + 1 for token in s] for s in doc.sents]
print(json.dumps({"words": [[token.text for token in s] for s in doc.sents], "heads": heads}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="the folder of UD Portuguese-Bosque")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--keep", type=Path, help="a folder for the wheels")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).with_name("results.json"))
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        found = prove(given.model, given.data, given.keep or Path(folder) / "dist", Path(folder), given.quick)
    given.output.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"all checks hold; {given.output} has the figures")


def prove(model: Path, data: Path, dist: Path, folder: Path, quick: bool) -> dict[str, Any]:
    """Everything, one step after the other; an assertion where something is not as it should be."""
    parts = {part: list(read_treebank(next(data.glob(f"*{part}.conllu*")))) for part in ("train", "dev", "test")}
    parts = {"train": parts["train"], "dev": parts["dev"][:100]} if quick else parts
    measured = {part: measure(Parser.load(model), parts[part], True, 1) for part in parts if part != "train"}
    speed = words_per_second(Parser.load(model), raw_text(parts["dev"]).text)
    card = card_of(measured, speed, checksum(parts["train"]))
    wheels = [packaged(model, card, each) for each in (dist, folder / "again")]
    assert wheels[0].read_bytes() == wheels[1].read_bytes(), "the same model made two different wheels"
    own = built(dist)
    python = environment(folder / "venv", own, wheels[0])
    return {
        "headway": __version__,
        "python": platform.python_version(),
        "quick": quick,
        "data": {part: checksum(some) for part, some in parts.items()},
        "model": {"bytes": model.stat().st_size, "sha256": sha256(model), "trained": trained(Parser.load(model))},
        "measured": measured,
        "words_per_second": speed,
        "wheels": {each.name: {"bytes": each.stat().st_size, "sha256": sha256(each)} for each in (wheels[0], own)},
        "installed": json.loads(run(python, "-m", "pip", "list", "--format", "json")),
        "used": used(python, model),
    }


def trained(parser: Parser) -> dict[str, Any]:
    """What the model says of its training: settings, and the scores of every pass on development sentences."""
    about = parser.describe().data["about"]
    history = [{name: one.get(name) for name in ("pass", "dev", "las")} for one in about["history"]]
    return {"settings": about["settings"], "best_pass": about["best_pass"], "history": history}


def words_per_second(parser: Parser, text: str) -> float:
    """From raw text to CoNLL-U on one thread, once everything is compiled."""
    for found in parser.parse_text(text[:2000]):
        found.to_conllu()
    started, words = time.perf_counter(), 0
    for found in parser.parse_text(text):
        found.to_conllu()
        words += len(found.sentence)
    return words / (time.perf_counter() - started)


def card_of(measured: dict[str, Any], speed: float, sha256: str) -> Card:
    """What is known of the model, in its card."""
    scores = [
        Measured(f"{part}, gold tokens", {"UAS": found["uas"], "LAS": found["las"]}) for part, found in measured.items()
    ]
    names = {"words": "words", "UAS": "uas", "LAS": "las"}
    scores += [
        Measured(f"{part}, raw text, F1", {name: found["from_raw_text"][key] for name, key in names.items()})
        for part, found in measured.items()
    ]
    return Card(
        language="pt",
        licence="CC-BY-SA-4.0",
        description="Newspaper text of Brazil and Portugal; an LSTM trained from scratch.",
        sources=(
            Source(
                "UD Portuguese-Bosque",
                "CC-BY-SA-4.0",
                sha256,
                "https://universaldependencies.org/treebanks/pt_bosque/",
                ATTRIBUTION,
            ),
        ),
        scores=tuple(scores),
        speed=(Measured("raw text to CoNLL-U, one thread", {"words/s": round(speed)}),),
        calibration=tuple(
            Measured(f"{part}, arcs", {"error": 100 * found["calibration"]["expected_error"]})
            for part, found in measured.items()
        ),
    )


def packaged(model: Path, card: Card, dist: Path) -> Path:
    """The wheel of the model."""
    dist.mkdir(parents=True, exist_ok=True)
    file = dist / "card.json"
    file.write_text(json.dumps(card.to_data(), ensure_ascii=False), encoding="utf-8")
    run(Path(sys.executable), "-m", "headway", "package", model, "--card", file, "-o", dist)
    return dist / "headway_model_pt-1.0-py3-none-any.whl"


def built(dist: Path) -> Path:
    """Headway's own wheel."""
    run(Path(sys.executable), "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", dist, REPOSITORY)
    return next(dist.glob("headway-*.whl"))


def environment(folder: Path, own: Path, model: Path) -> Path:
    """The Python of a new environment with both wheels and spaCy."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", f"headway[spacy] @ {own.resolve().as_uri()}", model)
    return python


def used(python: Path, model: Path) -> dict[str, Any]:
    """What the model says by name in the new environment, compared with what its file says here."""
    here = Parser.load(model)
    trees = [[p.heads[1:].tolist(), list(p.labels[1:])] for p in here.parse_text(TEXT)]
    listed = run(python, "-m", "headway", "models")
    assert "package headway-model-pt 1.0" in listed
    info = run(python, "-m", "headway", "info", "pt")
    lines = info.splitlines()
    assert len(lines) <= 24, "headway info does not fit on a screen"
    assert max(map(len, lines)) <= 80, "headway info is too wide for a screen"
    conllu = run(python, "-m", "headway", "parse", "pt", "-", stdin=TEXT)
    rows = [[line.split("\t") for line in each.splitlines() if line[:1].isdigit()] for each in conllu.split("\n\n")]
    words = [[row for row in some if row[0].isdigit()] for some in rows if some]
    assert [[[int(row[6]) for row in some], [row[7] for row in some]] for some in words] == trees
    assert json.loads(run(python, "-c", IN_PYTHON, TEXT)) == trees
    in_spacy = json.loads(run(python, "-c", IN_SPACY, TEXT))
    again = [parsed.heads[1:].tolist() for parsed in here.parse(in_spacy["words"])]
    assert in_spacy["heads"] == again, "spaCy has other trees than the parser"
    unknown = subprocess.run(
        [python, "-m", "headway", "parse", "pot", "-"], input=b"", capture_output=True, check=False
    )
    assert unknown.returncode == 1
    assert b"did you mean pt?" in unknown.stderr
    assert run(python, "-c", "from importlib.util import find_spec; print(find_spec('torch'))") == "None\n"
    return {
        "info": lines,
        "models": listed.splitlines(),
        "parsed": conllu.splitlines(),
        "unknown": unknown.stderr.decode(),
    }


def run(python: Path, *words: Any, stdin: str | None = None) -> str:
    """A command's standard output. A new environment sees only what is installed in it."""
    clean = {
        name: value for name, value in os.environ.items() if name != "PYTHONPATH" or python == Path(sys.executable)
    }
    done = subprocess.run(
        [python, *map(str, words)], input=stdin, capture_output=True, text=True, env=clean, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, words))[:200]} failed:\n{done.stderr}")
    return done.stdout


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
