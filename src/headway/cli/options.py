"""Options that several commands share, and options generated from declared settings.

An option's name, default, help and choices are those of a setting's field (`headway.declared`). Settings load nothing
numerical, so help appears at once.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import Field, fields, replace
from enum import StrEnum
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from headway.declared import Option, choices_of, hints_of, require_choices, require_minimums
from headway.errors import TrainingError, TreebankError

if TYPE_CHECKING:
    from headway.parallel import Workers


class NewlineMode(StrEnum):
    """What a single line end of text is: the choices of `headway.treebank.raw_text.Newlines`."""

    AUTO = "auto"
    KEEP = "keep"
    IGNORE = "ignore"


class Device(StrEnum):
    """Where a network computes: the choices of `headway.pipeline.DEVICES`."""

    CPU = "cpu"
    CUDA = "cuda"
    AUTO = "auto"


TrainArgument = Annotated[
    str, typer.Argument(metavar="TRAIN", help="The training treebank: CoNLL-U or CoNLL-X, also .gz or .xz; - is stdin.")
]
DevOption = Annotated[
    str | None, typer.Option(metavar="DEV", help="Development treebank: choose the best pass, stop early, calibrate.")
]
ModelFileOption = Annotated[Path, typer.Option("-o", "--output", metavar="MODEL", help="The model file to write.")]
NewModelOption = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="MODEL", help="The model file to write.")
]
TextOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Sentences without trees, for the loglinear learner to be confident about."),
]
CheckpointOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Folder in which finished stages are kept, to resume from.", show_default="MODEL.checkpoint"
    ),
]
SeedOption = Annotated[int, typer.Option(min=0, metavar="S", help="Seed of everything random.")]
ThreadsOption = Annotated[int, typer.Option(min=1, metavar="T", help="Threads to use.")]
ProcessesOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Processes for shards, runs, trials and folds of a jack-knife, which are computed at the same time.",
        show_default="one; for shards as many as there are, up to one per core",
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Do that on a Ray cluster instead: auto, or HOST:PORT.", show_default=False),
]
NewlinesOption = Annotated[
    NewlineMode,
    typer.Option(
        help="When a single line end ends a sentence: where it seems to (auto), always (keep), never (ignore)."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
SkipBadOption = Annotated[bool, typer.Option("--skip-bad", help="Skip malformed sentences, and count them.")]

Command = Callable[..., None]


ConfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A TOML file of settings, by their options' names; options that are given count for more.",
        show_default=False,
    ),
]


def with_settings(
    kind: type,
    *,
    only: tuple[str, ...] | None = None,
    without: tuple[str, ...] = (),
    described: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    **defaults: Any,
) -> Callable[[Command], Command]:
    """Give a command an option for every field of a dataclass of settings, in place of its parameter `settings`.

    The command gets a dictionary of the fields' values, checked before anything is read. `only` and `without` choose
    among the fields; `defaults` are a command's own, and `described` what its help says otherwise (fields of `Option`).
    A command with a parameter `config` has a file that may say what the options do not.
    """
    chosen = [each for each in fields(kind) if (only is None or each.name in only) and each.name not in without]
    hints = hints_of(kind)

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True)
        given = [each for each in own.parameters.values() if each.name != "settings"]
        made = [
            _parameter(each, replace(_option(each), **described.get(each.name, {})), kind, hints[each.name], defaults)
            for each in chosen
        ]
        if "config" in own.parameters:
            made.append(_keyword("called", typer.Context))

        @wraps(command)
        def run(**values: Any) -> None:
            config, called = values.get("config"), values.pop("called", None)
            settings = {each.name: _value(each, values.pop(_name(each))) for each in chosen}
            if config is not None:
                read = _settings_of(config, chosen)
                with refusing_settings(f"{config}: "):
                    require_choices(kind(**{**defaults, **read}))
                    require_minimums(kind(**{**defaults, **read}))
                typed = {each.name for each in chosen if _is_given(called, _name(each))}
                settings |= {name: value for name, value in read.items() if name not in typed}
            with refusing_settings():
                kind(**{**defaults, **settings}).complete()
            command(**values, settings=settings)

        run.__signature__ = own.replace(parameters=[*given, *made])  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in (*given, *made)}
        return run

    return decorate


@contextmanager
def workers_at(address: str | None, processes: int | None) -> Iterator[Workers | None]:
    """The workers of a cluster, or so many processes of this machine; None where nobody asked for either."""
    if address is None:
        from headway.processes import Processes

        yield None if processes is None else Processes(processes)
        return
    from headway.ray.executor import Executor

    with Executor(address, processes) as cluster:
        yield cluster


@contextmanager
def refusing_settings(where: str = "") -> Iterator[None]:
    """Settings that cannot be are wrong usage; `where` begins the message."""
    try:
        yield
    except TrainingError as error:
        raise typer.BadParameter(f"{where}{error}") from None


def _keyword(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _is_given(called: typer.Context, parameter: str) -> bool:
    """Whether an option stands on the command line."""
    source = called.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def _settings_of(path: Path, chosen: Sequence[Field[Any]]) -> dict[str, Any]:
    """The settings of a TOML file, by their options' names or their own; hyphens are underscores."""
    try:
        read = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise TreebankError.unopened(str(path), error.strerror) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        advice = "write lines such as epochs = 20 and projective = true"
        raise typer.BadParameter(f"{path}: not valid TOML ({error}); {advice}") from None
    found = {}
    for name, value in read.items():
        underscored = name.replace("-", "_")
        setting = next((each for each in chosen if underscored in (each.name, _name(each))), None)
        if setting is None:
            names = ", ".join(sorted(map(_name, chosen)))
            raise typer.BadParameter(f"{path}: there is no setting {name!r}; the settings are {names}")
        if underscored == _name(setting) and _option(setting).off and not isinstance(value, bool):
            raise typer.BadParameter(f"{path}: {name} is {value!r}; expected true or false")
        found[setting.name] = _value(setting, value) if underscored == _name(setting) else value
    return found


def _name(setting: Field[Any]) -> str:
    """What the option is called, as a parameter."""
    return (_option(setting).off or setting.name).replace("-", "_")


def _value(setting: Field[Any], given: Any) -> Any:
    """The setting's value; a flag that switches it off says the opposite."""
    return not given if _option(setting).off else given


def _option(setting: Field[Any]) -> Option:
    option: Option = setting.metadata["option"]
    return option


def _parameter(
    setting: Field[Any], option: Option, kind: type, hint: Any, defaults: Mapping[str, Any]
) -> inspect.Parameter:
    default = defaults.get(setting.name, setting.default)
    words: list[str] = []
    more: dict[str, Any] = {"help": option.help, "metavar": option.metavar, "min": option.minimum}
    choices = option.choices or choices_of(kind, setting.name)
    if choices:
        hint = Literal[choices] if default is not None else Literal[choices] | None
    if hint is bool:
        default = default if option.off is None else not default
        words.append(f"--{_name(setting).replace('_', '-')}")
    if option.default is not None and default is None:
        more["show_default"] = option.default
    annotation = Annotated[hint, typer.Option(*words, **more)]
    return _keyword(_name(setting), annotation, default)
