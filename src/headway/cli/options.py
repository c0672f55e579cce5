"""Options that several commands share, and options generated from declared settings.

An option's name, default, help and choices are those of a setting's field (`headway.declared`). Settings load nothing
numerical, so help appears at once.
"""

from __future__ import annotations

import errno
import inspect
import os
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

from headway.atomic import remedy
from headway.declared import Option, choices_of, hints_of, require_choices, require_minimums
from headway.errors import TrainingError, TreebankError
from headway.named_models import find_model

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
    from_file: bool = False,
    described: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    **defaults: Any,
) -> Callable[[Command], Command]:
    """Give a command an option for every field of a dataclass of settings, in place of its parameter `settings`.

    The command gets a dictionary of the fields' values, checked before anything is read. `only` and `without` choose
    among the fields; `defaults` are a command's own, and `described` what its help says otherwise (fields of `Option`).
    With `from_file`, a file may say what the options do not.
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
        if from_file:
            made += [_keyword("config", ConfigOption, None), _keyword("called", typer.Context)]

        @wraps(command)
        def run(**values: Any) -> None:
            config, called = values.pop("config", None), values.pop("called", None)
            settings = {each.name: _value(each, values.pop(_name(each))) for each in chosen}
            if config is not None:
                if "output" in values:
                    require_place_for(values["output"], str(config))
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


def require_inputs(*names: str | None) -> None:
    """Refuse files that cannot be read before anything slow is begun. Nothing is opened: a pipe is read once."""
    for name in names:
        if name is None or name == "-":
            continue
        advice = "check its name"
        if not os.path.exists(name):  # noqa: PTH110  (a name with a zero byte is no error here)
            reason = os.strerror(errno.ENOENT)
            if " " in name:
                advice += ", or give the text itself through a pipe, with - as the name"
            elif find_model(name) is not None:
                advice = "that is the name of a model, so check the order"
        elif Path(name).is_dir():
            reason = os.strerror(errno.EISDIR)
        elif not os.access(name, os.R_OK):
            reason = os.strerror(errno.EACCES)
        else:
            continue
        raise TreebankError.unopened(name, reason, advice)


def require_output(name: str, *kept: str | os.PathLike[str] | None) -> None:
    """Refuse an output that cannot be written, and one that would replace a file to be kept, such as the input.

    Devices and pipes are left to whoever writes to them.
    """
    try:
        path = Path(name).resolve()
    except ValueError:  # no file can have such a name; whoever writes says so
        return
    if name == "-" or (path.exists() and not path.is_file() and not path.is_dir()):
        return
    if path.is_dir():
        code = errno.EISDIR
    elif not path.parent.is_dir():
        code = errno.ENOENT
    elif not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        code = errno.EACCES
    else:
        if is_one_of(path, *kept):
            raise TreebankError("writing would replace a file that is read; choose another name", name)
        return
    error = OSError(code, os.strerror(code))
    raise TreebankError(f"writing failed ({error.strerror}); {remedy(error)}", name)


def require_place_for(path: Path, *read: str | None, what: str = "a model") -> None:
    """Refuse an output that cannot be written before hours are spent on it, and one that is a file to be read."""
    if str(path) == "-" or path.is_dir():
        raise typer.BadParameter(f"{what} cannot be written to {path}; give a file name")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise typer.BadParameter(f"the folder of {path} does not exist; create it first")
    if not os.access(folder, os.W_OK):
        raise typer.BadParameter(f"the folder of {path} cannot be written to; choose another")
    if is_one_of(path, *read):
        raise typer.BadParameter(f"{what} would replace {path}, which is read; give another file name")


def files_in(settings: Mapping[str, Any]) -> list[str]:
    """What in settings may be the names of files that a training reads; several are joined by "+".

    >>> files_in({"clusters": "paths.txt", "templates": "standard+own.txt", "teacher": None, "seed": 1})
    ['paths.txt', 'standard+own.txt', 'standard', 'own.txt']
    """
    given = [settings.get(name) for name in ("clusters", "teacher", "templates", "parts")]
    return list(dict.fromkeys(file for names in given if names for file in (names, *names.split("+"))))


def is_one_of(path: Path, *others: str | os.PathLike[str] | None) -> bool:
    """Whether the path leads to one of these files, by whatever name."""
    if not path.is_file():
        return False
    return any(other is not None and os.path.exists(other) and path.samefile(other) for other in others)  # noqa: PTH110
