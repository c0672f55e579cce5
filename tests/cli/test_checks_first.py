"""Every command looks at all its files and values before it does anything slow: no stage of a training is begun, no
model is loaded to parse with, and no tree is drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from headway.cli.app import app
from tests.cli.conftest import Invoke, one_error


@pytest.fixture
def place(tmp_path: Path, train_file: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with good files, and with bad ones of every kind; whatever is slow fails."""

    def slow(what: str) -> Callable[..., Any]:
        def called(*_: Any, **__: Any) -> Any:
            raise AssertionError(f"{what} was called")

        return called

    for name in (
        "headway.pipeline.of_class",
        "headway.pipeline.train_text_models",
        "headway.training.tuning.of_class",
        "headway.training.tuning.train_text_models",
        "headway.training.stages.Run.stage",
        "headway.training.stages.Run.fit",
        "headway.coreference.resolver.MentionCoder.learn",
        "headway.models.composed.predict_composed",
        "headway.models.arc_model.predict_composed",
        "headway.models.higher_order_model.predict_composed",
        "headway.archive._read_array",
        "headway_papers.corpora.read_treebank",
    ):
        monkeypatch.setattr(name, slow(name))
    (tmp_path / "train.conllu").write_bytes(train_file.read_bytes())
    (tmp_path / "model.headway").write_bytes(model.read_bytes())
    (tmp_path / "no-templates.txt").write_text("h.colour m.colour | dir\n")
    (tmp_path / "no-clusters.txt").write_text("dog 01\n")
    (tmp_path / "no-rules.toml").write_text("rules = 5\n")
    (tmp_path / "bad.conllu").write_text("1\tx\n")
    (tmp_path / "other.conllu").write_bytes(train_file.read_bytes())
    (tmp_path / "link.conllu").symlink_to(tmp_path / "train.conllu")
    (tmp_path / "news.txt").write_text("Dogs bark.\n")
    (tmp_path / "link.txt").symlink_to(tmp_path / "news.txt")
    (tmp_path / "clusters.txt").write_text("01\tdog\n")
    (tmp_path / "rules.toml").write_text("")
    (tmp_path / "own.txt").write_text("h.form | dir\n")
    (tmp_path / "settings.toml").write_text("epochs = 1\n")
    rows = [f"{m}\tw\t_\tX\tT{m}\t_\t{m - 1}\tx\t_\t_\n" for m in range(1, 131)]
    (tmp_path / "tags.conllu").write_text("".join([*rows, "\n"]))
    (tmp_path / "folder").mkdir()
    for language in ("danish", "dutch"):
        (tmp_path / "data" / language).mkdir(parents=True)
        for part in ("train", "test"):
            (tmp_path / "data" / language / f"{part}.conll").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


TRAIN = "train train.conllu -o m"
TUNE = "tune train.conllu"
CONSTRAIN = "constrain universal train.conllu -o m"
INDUCE = "induce train.conllu -o m"
COREF = "coref train train.conllu -o m"
REPRODUCE = "reproduce koo2007 --data data --language danish -o out"
TABLES = "cannot read templates from gone.txt"

WRONG = {
    "train gone.conllu -o m": "gone.conllu: the file cannot be opened (No such file or directory)",
    "train folder -o m": "folder: the file cannot be opened (Is a directory)",
    f"{TRAIN} --templates gone.txt": TABLES,
    f"{TRAIN} --templates no-templates.txt": "no-templates.txt, line 1: unknown field colour",
    f"{TRAIN} --templates sibling": "a table of arcs has the nodes h, m and b only",
    f"{TRAIN} --model sibling --templates gone.txt": TABLES,
    f"{TRAIN} --model sibling --parts gone.txt": TABLES,
    f"{TRAIN} --model sibling --parts standard": "not a template of parts",
    f"{TRAIN} --model sibling --parts grandsibling": "not a table of templates for the sibling model",
    f"{TRAIN} --clusters gone.txt": "gone.txt: the file cannot be opened",
    f"{TRAIN} --clusters no-clusters.txt": "no-clusters.txt, line 1: expected bits, a tab and a word",
    f"{TRAIN} --dev gone.conllu": "gone.conllu: the file cannot be opened",
    f"{TRAIN} --dev bad.conllu": "bad.conllu, line 1: the line has 2 columns",
    f"{TRAIN} --learner loglinear --text gone.conllu": "gone.conllu: the file cannot be opened",
    f"{TRAIN} --learner loglinear --text bad.conllu": "bad.conllu, line 1: the line has 2 columns",
    f"{TRAIN} --model nonsense": "unknown model 'nonsense'",
    f"{TRAIN} --learner nonsense": "is not one of",
    f"{TRAIN} --epochs 0": "epochs",
    f"{TRAIN} --c -1": "C is -1.0; expected a number above 0",
    f"{TRAIN} --prune-threshold 2": "prune_threshold is 2.0",
    f"{TRAIN} --max-megabytes 0": "--max-megabytes is 0",
    f"{TRAIN} --checkpoint train.conllu/x": "the checkpoint train.conllu/x cannot be a folder",
    "train train.conllu -o gone/m": "the folder of gone/m does not exist",
    "train train.conllu -o folder": "a model cannot be written to folder",
    f"{TUNE} --templates gone.txt": TABLES,
    f"{TUNE} --clusters gone.txt": "gone.txt: the file cannot be opened",
    f"{TUNE} --dev gone.conllu": "gone.conllu: the file cannot be opened",
    f"{TUNE} --c 100 --c -1": "C is -1.0; expected a number above 0",
    f"{TUNE} --held-out 1.5": "the share to hold out is 1.5",
    f"{TUNE} --learner loglinear --text train.conllu --entropy-weight -1": "entropy_weight is -1.0",
    f"{TUNE} -o gone/m": "the folder of gone/m does not exist",
    "constrain gone.toml train.conllu -o m": "gone.toml",
    "constrain no-rules.toml train.conllu -o m": "no-rules.toml",
    "constrain universal gone.conllu -o m": "gone.conllu: the file cannot be opened",
    f"{CONSTRAIN} --dev gone.conllu": "gone.conllu: the file cannot be opened",
    f"{CONSTRAIN} --templates gone.txt": TABLES,
    f"{CONSTRAIN} --clusters gone.txt": "gone.txt: the file cannot be opened",
    f"{CONSTRAIN} --rules-out gone/r.toml": "the folder of gone/r.toml does not exist",
    "constrain universal train.conllu --model gone.headway": "gone.headway: no such file",
    "induce gone.conllu -o m": "gone.conllu: the file cannot be opened",
    f"{INDUCE} --dev gone.conllu": "gone.conllu: the file cannot be opened",
    f"{INDUCE} --dev bad.conllu": "bad.conllu, line 1: the line has 2 columns",
    "induce tags.conllu -o m --column xpos --tags predicted": "the xpos column has 130 different tags, too many",
    f"{INDUCE} --states 0": "states",
    f"{INDUCE} --states 1000": "1000 states",
    f"{INDUCE} --draw-automaton NN": "expected TAG:left or TAG:right",
    f"{INDUCE} --draw-automaton NOTAG:left": "no word has the tag 'NOTAG'",
    "induce train.conllu --model gone.headway --draw-automaton N:left": "gone.headway: no such file",
    "parse gone.headway train.conllu": "gone.headway: no such file; give the path of a saved model, or a name",
    "parse en gone.conllu": "gone.conllu: the file cannot be opened",
    "parse folder train.conllu": "folder: a folder, not the file of a model, and no model of this name; there is en",
    "parse en train.conllu -o gone/parsed.conllu": "parsed.conllu: writing failed (No such file",
    "parse en train.conllu -o folder": "folder: writing failed (Is a directory); choose another name",
    "parse en train.conllu --unsure-below 7": "--unsure-below is 7.0; expected a probability",
    "parse en train.conllu --threads 0": "threads",
    "draw gone.conllu": "gone.conllu: the file cannot be opened",
    "draw train.conllu --gold gone.conllu -o a.svg": "gone.conllu: the file cannot be opened",
    "draw train.conllu --model gone.headway": "gone.headway: no such file",
    "draw train.conllu --model en -o gone/tree.svg": "gone/tree.svg: writing failed (No such file or directory)",
    "draw train.conllu --model en --format text -o gone/tree.txt": "gone/tree.txt: writing failed",
    "draw train.conllu --coref --model gone.coref -o a.svg": "gone.coref: the file cannot be opened",
    "draw train.conllu --coref -o gone/a.svg": "gone/a.svg: writing failed",
    "evaluate train.conllu gone.conllu": "gone.conllu: the file cannot be opened",
    "evaluate train.conllu train.conllu gone.conllu": "gone.conllu: the file cannot be opened",
    "coref train gone.conllu -o m": "gone.conllu: the file cannot be opened",
    f"{COREF} --dev gone.conllu": "gone.conllu: the file cannot be opened",
    f"{COREF} --margin -1": "margin",
    "coref train train.conllu -o gone/m": "the folder of gone/m does not exist",
    "coref resolve model.headway gone.conllu": "gone.conllu: the file cannot be opened",
    "coref resolve model.headway train.conllu -o gone/x": "gone/x: writing failed",
    "coref resolve gone.coref train.conllu": "gone.coref: no such file",
    "coref evaluate train.conllu gone.conllu": "gone.conllu: the file cannot be opened",
    f"{REPRODUCE} --language latin": "latin: has no train.conll",
    "reproduce english --data data --language latin": "there is no parser 'latin'",
    "reproduce druck2009 --data data --language latin": "there is no treebank 'latin'",
    "reproduce neural --data data --language latin": "there is no treebank 'latin'",
    "reproduce neural --data data --cells nothing": "no cell fits",
    "reproduce neural --data data": "give --encoder",
    "reproduce druck2009 --data data --processes 2": "druck2009 has no option --processes; it is for koo2007,",
    "reproduce koo2007 --data data --encoder data": "koo2007 has no option --encoder; it is for english and neural",
    "reproduce luque2012 --data data --language wsj --language latin": "there is no treebank 'latin'",
    "reproduce luque2012 --data data --language wsj": "has no wsj_sample",
    "reproduce fernandes2012/coreference --data data --language latin": "there is no way with mentions, 'latin'",
    "reproduce koo2007 --data gone": "does not exist",
    "reproduce koo2007 --data data -o train.conllu": "train.conllu",
    "info gone.conllu": "gone.conllu: the file cannot be opened",
    "info gone.txt --templates": TABLES,
}
# Outputs that would replace a file which the command reads.
WRONG |= dict.fromkeys(
    (
        "train train.conllu -o ./train.conllu",
        "train other.conllu --dev train.conllu -o train.conllu",
        "train train.conllu --learner loglinear --text other.conllu -o other.conllu",
        "train train.conllu --clusters clusters.txt -o clusters.txt",
        "train train.conllu --config settings.toml -o settings.toml",
        "train train.conllu --model neural --teacher model.headway -o model.headway",
        "train train.conllu --model neural --teacher en+model.headway -o model.headway",
        "train train.conllu --templates standard+./own.txt -o own.txt",
        "train train.conllu --model sibling --parts own.txt -o own.txt",
        "train train.conllu -o link.conllu",
        "tune train.conllu -o train.conllu",
        "tune train.conllu --templates own.txt -o own.txt",
        "constrain universal train.conllu -o train.conllu",
        "constrain universal train.conllu --templates own.txt -o own.txt",
        "constrain universal train.conllu --rules-out train.conllu -o m",
        "constrain rules.toml train.conllu --rules-out rules.toml -o m",
        "induce train.conllu -o train.conllu",
        "coref train train.conllu -o train.conllu",
        "coref resolve model.headway train.conllu -o model.headway",
        "parse en news.txt -o news.txt",
        "parse en news.txt -o link.txt",
        "parse en train.conllu --format json -o train.conllu",
        "parse en train.conllu --format tree -o train.conllu",
        "parse en train.conllu --skip-bad -o train.conllu",
        "parse model.headway train.conllu -o model.headway",
        "draw train.conllu --format text -o train.conllu",
        "draw other.conllu --gold train.conllu --format svg -o train.conllu",
        "draw train.conllu --model model.headway --format text -o model.headway",
    ),
    "would replace",
)


@pytest.mark.parametrize("command", WRONG)
def test_what_is_wrong_is_said_first(command: str, place: Path) -> None:
    before = contents(place)
    result = CliRunner(env={"HEADWAY_QUIET": "1", "COLUMNS": "300"}).invoke(app, command.split(), prog_name="headway")
    assert result.exit_code in (1, 2), result.output
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.stdout == ""
    assert WRONG[command] in " ".join(result.stderr.split()), result.stderr
    assert contents(place) == before


def test_a_text_in_place_of_a_file(invoke: Invoke) -> None:
    error = one_error(invoke("parse", "en", "Dogs bark.", status=1))
    assert error == (
        "Dogs bark.: the file cannot be opened (No such file or directory); check its name, or give the text itself "
        "through a pipe, with - as the name"
    )


def test_a_model_in_place_of_a_file(invoke: Invoke, test_file: Path) -> None:
    error = one_error(invoke("parse", test_file, "en", status=1))
    assert error == (
        "en: the file cannot be opened (No such file or directory); that is the name of a model, so check the order"
    )


@pytest.mark.parametrize("command", ["parse en", "info", "draw", "train -o m", "evaluate train.conllu"])
def test_nothing_in_place_of_a_file(invoke: Invoke, place: Path, command: str) -> None:
    assert one_error(invoke(*command.split(), "", status=1)) == "expected the path of a file, got an empty text"


def contents(folder: Path) -> dict[Path, bytes | None]:
    """All that is in a folder, and what its files hold."""
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}
