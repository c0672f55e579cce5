"""The command as a whole: help, versions, exit status, what is imported, what failures look like."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import Field, dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

import pytest
import typer
from typer.testing import CliRunner

import headway
from headway.cli import (
    annotate,
    constrain,
    coref,
    draw,
    evaluate,
    induce,
    info,
    models,
    options,
    package,
    parse,
    parse_corpus,
    reproduce,
    serve,
    train,
    tune,
    warm_up,
)
from headway.cli.train import summary
from headway.coreference.settings import ResolverSettings
from headway.declared import Option, choices_of, require_choices, setting
from headway.errors import HeadwayError, TrainingError
from headway.training.grammar_settings import GrammarSettings, Method
from headway.training.settings import RULES_DEFAULTS, RULES_SETTINGS, Settings
from headway.training.stages import Run
from tests.cli.conftest import Invoke, Spawn, one_error

COMMANDS = {
    "train": train,
    "constrain": constrain,
    "induce": induce,
    "parse": parse,
    "parse-corpus": parse_corpus,
    "draw": draw,
    "evaluate": evaluate,
    "tune": tune,
    "info": info,
    "models": models,
    "package": package,
    "serve": serve,
    "annotate": annotate,
    "warm-up": warm_up,
    "reproduce": reproduce,
}


def test_help_lists_every_command(invoke: Invoke) -> None:
    text = invoke("--help").stdout
    listed = re.findall(r"^  ([\w-]+)  +\w", text.partition("Commands:")[2], re.MULTILINE)
    assert listed == [*COMMANDS, "coref"]
    assert "..." not in text.partition("Commands:")[2]  # no description is cut


def test_help_of_coref_lists_its_commands(invoke: Invoke) -> None:
    text = invoke("coref", "--help").stdout
    assert re.findall(r"^  ([\w-]+)  +\w", text.partition("Commands:")[2], re.MULTILINE) == [
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
    assert "[[" not in text  # typer itself marks what may be left out
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
    assert not loaded & {"numba", "llvmlite", "scipy", "numpy", "rich.progress", "headway.pipeline", "headway.arrays"}
    assert not loaded & {"fastapi", "uvicorn", "headway.web", "headway.annotation"}


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
        ["train", "a.conllu", "-o", "m", "--max-megabytes", "-1"],
        ["train", "a.conllu", "-o", "m", "--threads", "0"],
        ["train", "a.conllu", "-o", "m", "--labels", "before"],
        ["train", "a.conllu", "-o", "m", "--model", "magic"],
        ["train", "a.conllu", "-o", "m", "--parts", "sibling"],
        ["train", "a.conllu", "-o", "m", "--c", "-1"],
        ["train", "a.conllu", "-o", "m", "--runs", "0"],
        ["train", "a.conllu", "-o", "m", "--model", "sibling", "--learner", "loglinear"],
        ["train", "a.conllu", "-o", "m", "--model", "grandsibling", "--labels", "joint"],
        ["tune", "a.conllu", "--model", "magic"],
        ["tune", "a.conllu", "--model", "neural", "--c", "1"],
        ["tune", "a.conllu", "--rate", "0.001"],
        ["tune", "a.conllu", "--model", "neural", "--dropout", "-1"],
        ["tune", "a.conllu", "--model", "sibling", "--learner", "eg"],
        ["train", "a.conllu", "-o", "m", "--model", "sibling", "--max-heads", "0"],
        ["train", "a.conllu", "-o", "m", "--model", "sibling", "--prune-threshold", "0"],
        ["tune", "a.conllu", "--model", "sibling", "--prune-threshold", "1.5"],
        ["train", "-", "--dev", "-", "-o", "m"],
        ["train", "-", "--learner", "loglinear", "--text", "-", "-o", "m"],
        ["train", "a.conllu", "-o", "m", "--learner", "constraints"],
        ["train", "a.conllu", "-o", "m", "--learner", "loglinear", "--entropy-weight", "1"],
        ["train", "a.conllu", "-o", "m", "--text", "b.conllu"],
        ["tune", "a.conllu", "--learner", "loglinear", "--entropy-weight", "1"],
        ["tune", "a.conllu", "--learner", "expected-loss", "--text", "b.conllu"],
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
        ["induce", "a.conllu", "-o", "m", "--method", "det", "--states", "3"],
        ["induce", "a.conllu", "-o", "m", "--backed-off", "1"],
        ["coref", "train", "a.conllu", "-o", "m", "--margin", "inf"],
        ["coref", "train", "a.conllu", "-o", "m", "--stretch", "-1"],
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
        (MemoryError(), "out of memory; use less data, fewer threads or a larger machine"),
        (PermissionError(13, "Permission denied", "/a/b"), "/a/b: Permission denied"),
        (OSError(28, "No space left"), "writing failed (No space left); make room, or choose another name"),
        (OSError("something odd"), "something odd"),
    ],
)
def test_a_failure_is_one_sentence(invoke: Invoke, monkeypatch: Any, failure: Exception, sentence: str) -> None:
    _fail_with(monkeypatch, failure)
    assert one_error(invoke("info", "-", status=1)) == sentence


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("words", [["--help"], ["--version"], ["parse", "--help"], ["models"], ["info", "FILE"]])
def test_a_full_disk_is_one_sentence(test_file: Path, words: list[str]) -> None:
    given = [str(test_file) if word == "FILE" else word for word in words]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "headway", *given], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    sentence = "writing failed (No space left on device); make room, or choose another name"
    assert (done.returncode, done.stderr) == (1, f"headway: error: {sentence}\n")


def test_ctrl_c_is_status_130(invoke: Invoke, monkeypatch: Any) -> None:
    _fail_with(monkeypatch, KeyboardInterrupt())
    result = invoke("info", "-", status=130)
    assert (result.stdout, result.stderr.strip()) == ("", "headway: interrupted")


def test_a_mistake_of_ours_keeps_its_traceback(monkeypatch: Any) -> None:
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


# Options made from settings: which command has which fields, and how they are called there.
TRIED = {"c", "entropy_weight", "rate", "encoder_rate", "dropout"}  # several values of each
GENERATED: dict[str, tuple[type[Any], set[str]]] = {
    "train": (Settings, {each.name for each in fields(Settings)} - {"criterion"}),
    "tune": (Settings, {each.name for each in fields(Settings)} - TRIED - {"criterion", "teacher"}),
    "constrain": (Settings, set(RULES_SETTINGS)),
    "induce": (GrammarSettings, {each.name for each in fields(GrammarSettings)}),
    "coref train": (
        ResolverSettings,
        {each.name for each in fields(ResolverSettings)} - {"mentions", "sentences", "tree"},
    ),
}
OWN_DEFAULTS = {"constrain": RULES_DEFAULTS}
DESCRIBED: dict[str, dict[str, dict[str, str]]] = {"constrain": constrain.DESCRIBED}
FUNCTIONS: dict[str, Callable[..., None]] = {
    "train": train.train,
    "tune": tune.tune,
    "constrain": constrain.constrain,
    "induce": induce.induce,
    "coref train": coref.train,
}


def option_of(field: Field[Any]) -> tuple[str, Option]:
    option: Option = field.metadata["option"]
    return f"--{(option.off or field.name).replace('_', '-')}", option


@pytest.mark.parametrize("command", GENERATED)
def test_every_setting_is_an_option_with_its_help(invoke: Invoke, command: str) -> None:
    kind, names = GENERATED[command]
    text = " ".join(invoke(*command.split(), "--help").stdout.split()).replace("- ", "-")
    for field in fields(kind):
        name, option = option_of(field)
        told = DESCRIBED.get(command, {}).get(field.name, {}).get("help", option.help)
        assert (field.name in names) == (f" {name} {told}".replace("- ", "-") in _without_metavars(text, name))


def _without_metavars(text: str, name: str) -> str:
    """The help text without what stands between an option and its help: NAME, <a|b> or [a|b]."""
    return re.sub(rf" {name} (?:<[^>]*>|\[[^\]]*\]|[A-Z|]+) ", f" {name} ", text)


@pytest.mark.parametrize("command", GENERATED)
def test_defaults_of_options_are_those_of_the_settings(command: str) -> None:
    kind, names = GENERATED[command]
    given = {name: each.default for name, each in inspect.signature(FUNCTIONS[command]).parameters.items()}
    own = OWN_DEFAULTS.get(command, {})
    for field in fields(kind):
        option = option_of(field)[1]
        name = (option.off or field.name).replace("-", "_")
        default = own.get(field.name, field.default)
        if field.name in names:
            assert given[name] == (not default if option.off else default), name


@pytest.mark.parametrize("command", GENERATED)
def test_choices_of_options_are_those_of_the_settings(invoke: Invoke, command: str) -> None:
    kind, names = GENERATED[command]
    words = {"constrain": ["universal", "a.conllu", "-o", "m"], "tune": ["a.conllu"]}
    for field in fields(kind):
        name, option = option_of(field)
        choices = option.choices or choices_of(kind, field.name)
        if field.name in names and choices:
            given = [*command.split(), *words.get(command, ["a.conllu", "-o", "m"])]
            said = " ".join(invoke(*given, name, "magic", status=2).stderr.split())
            assert f"Invalid value for '{name}': " in said
            assert all(f"'{choice}'" in said for choice in choices)


@pytest.mark.parametrize("command", GENERATED)
def test_numbers_below_their_minimum_are_refused(invoke: Invoke, command: str) -> None:
    kind, names = GENERATED[command]
    words = {"constrain": ["universal", "a.conllu", "-o", "m"], "tune": ["a.conllu"]}
    for field in fields(kind):
        name, option = option_of(field)
        if field.name in names and option.minimum is not None:
            given = [*command.split(), *words.get(command, ["a.conllu", "-o", "m"])]
            said = " ".join(invoke(*given, name, option.minimum - 1, status=2).stderr.split())
            assert re.search(rf"Invalid value for '{name}': .*\b{option.minimum}\.?$", said)


def test_flags_and_choices_become_values() -> None:
    """A flag that switches a setting off says the opposite; what is not given is the setting's default."""

    @dataclass(frozen=True)
    class Colours:
        bright: bool = setting(True, "Dark colours.", off="dark")
        loud: bool = setting(False, "Loud ones.")
        hue: Literal["red", "blue"] | None = setting(None, "The hue.", default="by the weather")
        number: int | None = setting(None, "How many.", minimum=1)

        def complete(self) -> Colours:
            if self.loud and not self.bright:
                raise TrainingError("dark colours are not loud; choose one")
            return self

    found: list[dict[str, Any]] = []

    def paint(name: str, *, settings: dict[str, Any]) -> None:
        found.append({"name": name, **settings})

    app = typer.Typer(rich_markup_mode=None)
    app.command()(options.with_settings(Colours, number=3)(paint))
    runner = CliRunner()
    for words in (["a"], ["b", "--dark", "--hue", "blue"], ["c", "--loud", "--number", "7"]):
        assert runner.invoke(app, words).exit_code == 0
    assert found == [
        {"name": "a", "bright": True, "loud": False, "hue": None, "number": 3},
        {"name": "b", "bright": False, "loud": False, "hue": "blue", "number": 3},
        {"name": "c", "bright": True, "loud": True, "hue": None, "number": 7},
    ]
    refused = runner.invoke(app, ["d", "--dark", "--loud"])
    assert (refused.exit_code, len(found)) == (2, 3)
    assert "dark colours are not loud; choose one" in refused.output
    assert "[default: (by the weather)]" in " ".join(runner.invoke(app, ["--help"]).output.split())


def test_a_file_says_what_options_do_not(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Colours:
        bright: bool = setting(True, "Dark colours.", off="dark")
        paint_layers: int = setting(1, "How many.", minimum=1)
        hue: Literal["red", "blue"] = setting("red", "The hue.")

        def complete(self) -> Colours:
            require_choices(self)
            return self

    found: list[dict[str, Any]] = []
    app = typer.Typer(rich_markup_mode=None)

    def paint(name: str, *, config: options.ConfigOption = None, settings: dict[str, Any]) -> None:
        found.append(settings)

    app.command()(options.with_settings(Colours)(paint))
    runner, file = CliRunner(), tmp_path / "own.toml"
    file.write_text('paint-layers = 3\nhue = "blue"\nbright = false\n')
    assert runner.invoke(app, ["a", "--config", str(file), "--hue", "red"]).exit_code == 0
    assert found == [{"bright": False, "paint_layers": 3, "hue": "red"}]
    for text, cause in (
        ("layers = 3", "no setting 'layers'"),
        ("hue = ", "not valid TOML"),
        ('hue = "pink"', "hue is 'pink'"),
    ):
        file.write_text(text)
        refused = runner.invoke(app, ["a", "--config", str(file)])
        assert refused.exit_code == 2
        assert cause in " ".join(refused.output.split())


def test_numbers_shown_for_grammars_are_those_of_the_library() -> None:
    """Defaults that depend on the method are shown, not given."""
    from headway.training.grammar_trainer import induce as learn
    from headway.training.grammar_trainer import state_picture
    from tests.models.toy_treebank import sentences

    shown = {field.name: option_of(field)[1].default for field in fields(GrammarSettings)}
    for method, names in {
        "spectral": ("context", "ridge", "scale", "backed_off"),
        "em": ("iterations", "restarts"),
    }.items():
        complete = GrammarSettings(method).complete()  # type: ignore[arg-type]
        assert [shown[name] for name in names] == [f"{getattr(complete, name):g}" for name in names]
    few = sentences(5, 1)
    methods: tuple[Method, ...] = get_args(Method)
    learnt = [
        learn(few, None, GrammarSettings(method, iterations=1 if method == "em" else None).complete(), Run())
        for method in methods
    ]
    assert shown["states"] == f"by dev, or {', '.join(str(each.chosen['states']) for each in learnt)}"
    drawn = inspect.signature(induce.induce).parameters["drawn_clusters"].default
    assert drawn == inspect.signature(state_picture).parameters["clusters"].default


def test_help_comes_at_once(spawn: Spawn) -> None:
    """Half a second of one processor; the best of three, as others may be using the machine."""
    seconds = []
    for _ in range(3):
        before = os.times()
        assert spawn("--help").communicate()[1] == b""
        after = os.times()
        seconds.append(after.children_user + after.children_system - before.children_user - before.children_system)
    assert min(seconds) < 0.5


def _fail_with(monkeypatch: Any, failure: BaseException) -> None:
    def fail(*args: Any, **keywords: Any) -> None:
        raise failure

    monkeypatch.setattr("headway.treebank.read_treebank", fail)


def test_one_is_not_a_plural(invoke: Invoke, tmp_path: Path) -> None:
    trees = tmp_path / "one.conllu"
    trees.write_text("1\tHi\thi\tINTJ\t_\t_\t0\troot\t_\t_\n\n", encoding="utf-8")
    about = {"headway": "1", "settings": {"seed": 0}, "train": {"sentences": 1, "sha256": "ab"}}
    assert summary(tmp_path / "m", about).endswith("headway 1, seed 0, 1 sentence sha256 ab")
    assert invoke("evaluate", trees, trees).stdout.startswith("1 sentence, 1 word, 1 without punctuation\n")
    first_words = [line.split()[:2] for line in invoke("info", trees).stdout.splitlines()]
    assert ["1", "label"] in first_words
    assert ["1", "tag"] in first_words
