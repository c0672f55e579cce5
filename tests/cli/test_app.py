"""The command as a whole: help, versions, exit status, what is imported, what failures look like."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from inspect import signature
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import headway
from headway.cli import constrain, coref, draw, evaluate, induce, info, options, parse, reproduce, train, tune
from headway.errors import HeadwayError
from tests.cli.conftest import Invoke, Spawn, one_error

COMMANDS = {
    "train": train,
    "constrain": constrain,
    "induce": induce,
    "parse": parse,
    "draw": draw,
    "evaluate": evaluate,
    "tune": tune,
    "info": info,
    "reproduce": reproduce,
}


def test_help_lists_every_command(invoke: Invoke) -> None:
    text = invoke("--help").stdout
    listed = re.findall(r"^  (\w+)  +\w", text.partition("Commands:")[2], re.MULTILINE)
    assert listed == [*COMMANDS, "coref"]
    assert "..." not in text.partition("Commands:")[2]  # no description is cut


def test_help_of_coref_lists_its_commands(invoke: Invoke) -> None:
    text = invoke("coref", "--help").stdout
    assert re.findall(r"^  (\w+)  +\w", text.partition("Commands:")[2], re.MULTILINE) == [
        "train",
        "resolve",
        "evaluate",
    ]
    assert "..." not in text.partition("Commands:")[2]


EXAMPLES = {
    **{name: module.EXAMPLES for name, module in COMMANDS.items()},
    "coref train": coref.TRAIN_EXAMPLES,
    "coref resolve": coref.RESOLVE_EXAMPLES,
    "coref evaluate": coref.EVALUATE_EXAMPLES,
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_help_of_a_command_has_examples_that_use_its_options(invoke: Invoke, name: str) -> None:
    text = invoke(*name.split(), "--help").stdout
    assert EXAMPLES[name]
    for example in EXAMPLES[name]:
        assert f"    {example}\n" in text
        piped = [shlex.split(part) for part in example.split(" | ")]
        (words,) = (each for each in piped if each[: 1 + len(name.split())] == ["headway", *name.split()])
        given = [word for word in words if re.fullmatch("-o|--.*", word)]
        assert all(re.search(rf"^  (-o, )?.*{word}\b", text, re.MULTILINE) for word in given)


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom headway.cli.app import app\n"
        f"for words in {[['--help'], *([*name.split(), '--help'] for name in EXAMPLES)]}:\n"
        "    try:\n        app(words)\n    except SystemExit as end:\n        assert not end.code\n"
        "print('LOADED', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.partition("LOADED")[2].split())
    assert "headway.cli.tune" in loaded
    assert not loaded & {"numba", "llvmlite", "scipy", "numpy", "rich.progress", "headway.pipeline", "headway.training"}


def test_version(invoke: Invoke, spawn: Spawn) -> None:
    assert invoke("--version").stdout == f"headway {headway.__version__}\n"
    assert spawn("--version").communicate() == (f"headway {headway.__version__}\n".encode(), b"")


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nonsense"],
        ["train", "a.conllu"],
        ["train", "a.conllu", "-o", "m", "--learner", "magic"],
        ["train", "a.conllu", "-o", "m", "--epochs", "0"],
        ["train", "a.conllu", "-o", "m", "--tags", "silver"],
        ["train", "a.conllu", "-o", "m", "--megabytes", "-1"],
        ["train", "a.conllu", "-o", "m", "--threads", "0"],
        ["train", "a.conllu", "-o", "m", "--unlabelled", "--labels", "joint"],
        ["train", "a.conllu", "-o", "m", "--model", "magic"],
        ["train", "a.conllu", "-o", "m", "--parts", "sibling"],
        ["train", "a.conllu", "-o", "m", "--model", "sibling", "--max-heads", "0"],
        ["train", "a.conllu", "-o", "m", "--model", "sibling", "--prune-threshold", "0"],
        ["tune", "a.conllu", "--model", "sibling", "--prune-threshold", "1.5"],
        ["train", "-", "--dev", "-", "-o", "m"],
        ["train", "-", "--learner", "loglinear", "--unlabelled-data", "-", "-o", "m"],
        ["train", "a.conllu", "-o", "m", "--learner", "constraints"],
        ["train", "a.conllu", "-o", "m", "--learner", "loglinear", "--entropy-weight", "1"],
        ["train", "a.conllu", "-o", "m", "--unlabelled-data", "b.conllu"],
        ["tune", "a.conllu", "--learner", "loglinear", "--entropy-weight", "1"],
        ["tune", "a.conllu", "--learner", "expected-loss", "--unlabelled-data", "b.conllu"],
        ["constrain", "universal", "a.conllu"],
        ["constrain", "universal", "a.conllu", "-o", "m", "--model", "m"],
        ["constrain", "universal", "a.conllu", "-o", "m", "--json"],
        ["constrain", "universal", "a.conllu", "-o", "m", "--criterion", "cubed"],
        ["constrain", "universal", "a.conllu", "-o", "m", "--rules-out", "-"],
        ["constrain", "universal", "a.conllu", "-o", "no/such/folder/m"],
        ["constrain", "universal", "-", "--dev", "-", "-o", "m"],
        ["constrain", "universal", "a.conllu", "--model", "m", "--examples", "-1"],
        ["induce", "a.conllu"],
        ["induce", "-", "--dev", "-", "-o", "m"],
        ["induce", "a.conllu", "-o", "m", "--states", "0"],
        ["induce", "a.conllu", "-o", "m", "--method", "magic"],
        ["induce", "a.conllu", "-o", "m", "--method", "em", "--ridge", "1"],
        ["induce", "a.conllu", "-o", "no/such/folder/m"],
        ["train", "a.conllu", "-o", "-"],
        ["train", "a.conllu", "-o", "no/such/folder/m"],
        ["tune", "a.conllu", "-o", "no/such/folder/m"],
        ["evaluate", "-", "-"],
        ["evaluate", "a.conllu", "-", "-"],
        ["parse", "m"],
        ["parse", "m", "a.conllu", "--format", "xml"],
        ["info", "m", "--templates", "--parts"],
        ["reproduce", "koo1999", "--data", "."],
        ["reproduce", "koo2007", "--data", "no/such/folder"],
    ],
)
def test_wrong_usage_is_status_2(invoke: Invoke, words: list[str], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke(*words, status=2)
    assert "Usage: headway" in result.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        (HeadwayError("a cause; a remedy"), "a cause; a remedy"),
        (MemoryError(), "the memory is used up; take smaller data or fewer threads, or a larger machine"),
        (PermissionError(13, "Permission denied", "/a/b"), "/a/b: Permission denied"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("something odd"), "something odd"),
    ],
)
def test_a_failure_is_one_sentence(invoke: Invoke, monkeypatch: Any, failure: Exception, sentence: str) -> None:
    _fail_with(monkeypatch, failure)
    assert one_error(invoke("info", "-", status=1)) == sentence


def test_ctrl_c_is_status_130(invoke: Invoke, monkeypatch: Any) -> None:
    _fail_with(monkeypatch, KeyboardInterrupt())
    result = invoke("info", "-", status=130)
    assert (result.stdout, result.stderr.strip()) == ("", "headway: interrupted")


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch: Any) -> None:
    from typer.testing import CliRunner

    from headway.cli.app import app

    _fail_with(monkeypatch, ZeroDivisionError())
    assert isinstance(CliRunner().invoke(app, ["info", "-"]).exception, ZeroDivisionError)


def test_a_reader_that_goes_away_is_no_news(spawn: Spawn, test_file: Path) -> None:
    process = spawn("info", test_file)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 1


def test_a_terminal_of_few_characters_shows_what_it_can(spawn: Spawn, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    path = tmp_path / "a.conllu"
    path.write_text("1\tGo\t_\t_\t_\t_\t0\t\u6839\t_\t_\n\n", encoding="utf-8")
    out, err = spawn("info", path).communicate()
    assert rb"\u6839" in out
    assert err == b""


def test_names_are_those_of_the_library() -> None:
    from headway.models.higher_order import Decoding

    from headway.learning.descent import Optimiser
    from headway.learning.generalized_expectation import Criterion
    from headway.models.pruning import MAX_HEADS, THRESHOLD
    from headway.training import LabelChoice, LearnerName, Settings, TagChoice

    # rules have a command of their own
    assert [*(each.value for each in options.Learner), "constraints"] == list(get_args(LearnerName))
    assert [each.value for each in options.Criterion] == list(get_args(Criterion))
    assert signature(constrain.constrain).parameters["criterion"].default == Settings().criterion
    assert {each.value for each in options.Optimiser} == set(get_args(Optimiser))
    assert {each.value for each in options.Labels} | {"none"} == set(get_args(LabelChoice))
    assert [each.value for each in options.Tags] == list(get_args(TagChoice))
    assert {each.value for each in options.Decoding} == set(get_args(Decoding))
    assert (options.PRUNE_THRESHOLD, options.MAX_HEADS) == (THRESHOLD, MAX_HEADS)
    assert [each.value for each in options.Model] == list(get_args(get_type_hints(Settings)["model"]))


def test_names_and_defaults_of_grammars_are_those_of_the_library() -> None:
    """Numbers are shown, not given: the library's own are used where an option is left out."""
    from headway.models.grammar_model import Column
    from headway.models.lexical_grammar import Configuration
    from headway.training import Induction, Method, state_picture
    from headway.training import induce as learn
    from tests.models.toy_treebank import sentences

    assert [each.value for each in options.Method] == list(get_args(Method))
    assert [each.value for each in options.Lexical] == list(get_args(Configuration))
    assert [each.value for each in options.Column] == list(get_args(Column))
    given = {name: each.default for name, each in signature(induce.induce).parameters.items()}
    library = Induction()
    assert (given["method"], given["seed"]) == (library.method, library.seed)
    assert given["multi_root"] is not library.single_root
    shown = {
        name: annotation.__metadata__[0].show_default
        for name, annotation in get_type_hints(induce.induce, include_extras=True).items()
        if name != "return"
    }
    for name in ("context", "ridge", "iterations", "restarts", "backed_off"):
        assert (given[name], shown[name]) == (None, f"{getattr(library, name):g}")
    for name in ("states", "lexical", "column"):
        assert given[name] is getattr(library, name) is None
    few = sentences(5, 1)
    states = [learn(few, None, Induction(method, iterations=1)).chosen["states"] for method in get_args(Method)]
    assert shown["states"] == f"by dev, or {', '.join(map(str, states))}"
    assert given["drawn_clusters"] == signature(state_picture).parameters["clusters"].default


def _fail_with(monkeypatch: Any, failure: BaseException) -> None:
    def fail(*args: Any, **keywords: Any) -> None:
        raise failure

    monkeypatch.setattr("headway.treebank.read_treebank", fail)
