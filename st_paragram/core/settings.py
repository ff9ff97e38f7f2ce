"""Settings, each defined once for Python, YAML files and command lines.

    @settings
    class Example:
        '''Settings of an example.'''

        dim: int = setting(300, "dimensions of an embedding", ge=1)
        side: Literal["left", "right"] = setting("left", "side to read")
        fold: bool = setting(True, "ignore case", option="--keep-case")

    Example(dim=100)                             # a frozen pydantic dataclass with checked values
    read(Example, "example.yaml", {"dim": 100})  # the values of a file, with overrides
    add_setting_options(parser, Example)         # --dim N, --side {left,right}, --keep-case
    Example(**given(arguments, Example))         # values given on the command line

Combinations of settings are checked in `__post_init__`, which raises `SettingsError`. A value in a
special form, such as 4G, has the type `Annotated[int, pydantic.BeforeValidator(parse)]`. A field
that is not made by `setting` gets no option.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Collection, Mapping
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import pydantic
import pydantic.dataclasses
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from typing_extensions import dataclass_transform

from st_paragram.errors import SettingsError, one_line, short

_Settings = TypeVar("_Settings")
_CONFIG = pydantic.ConfigDict(extra="forbid", allow_inf_nan=False, validate_default=True)
_KINDS = (bool, int, float, Path, str)
_METAVARS = {int: "N", float: "X", Path: "PATH", str: "NAME"}


def setting(
    default: Any,
    help: str,
    *,
    option: str | None = None,
    option_help: str | None = None,
    metavar: str | None = None,
    unused_with: tuple[object, ...] = (),
    **limits: float,
) -> Any:
    """Define a field of a class of settings.

    Args:
        default: The default value; `...` for a required setting.
        help: Description for the command line and the docs.
        option: Command-line option if it is not the name with hyphens, or several options separated
            by spaces. The option of a boolean inverts the default; if the default is True, it is
            called `--no-NAME`.
        option_help: Description of the option, if it differs from `help`.
        metavar: Placeholder of the value in the command-line help.
        unused_with: Name of another setting, and its values with which this setting has no effect.
        **limits: `ge`, `gt`, `le` and `lt`, as for `pydantic.Field`.
    """
    extra: dict[str, Any] = {"option": option, "option_help": option_help, "metavar": metavar}
    extra["unused_with"] = unused_with
    return pydantic.Field(default, description=help, json_schema_extra=extra, **limits)  # type: ignore[call-overload]


@dataclass_transform(frozen_default=True)
def settings(cls: type[_Settings], where: str = "") -> type[_Settings]:
    """Make a class with fields made by `setting` a frozen pydantic dataclass.

    A wrong value raises `SettingsError`, one line that begins with `where` and names the setting
    and the value.
    """
    checked_class = pydantic.dataclasses.dataclass(frozen=True, config=_CONFIG)(cls)
    set_values = checked_class.__init__
    names = list(fields_of(checked_class))
    numbers = [name for name, field in fields_of(checked_class).items() if _is_number(field)]

    @functools.wraps(set_values)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        values = dict(zip(names, args, strict=False)) | kwargs
        for name in numbers:
            if isinstance(values.get(name), bool):  # pydantic would take 1 or 0
                raise SettingsError(f"{where}{name} is {values[name]}; it must be a number")
        try:
            set_values(self, *args, **kwargs)
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            reason = first.get("ctx", {}).get("error")
            if isinstance(reason, SettingsError):  # raised by `__post_init__` or a validator
                raise SettingsError(f"{where}{reason}") from reason.__cause__
            raise SettingsError(where + _refusal(first, names)) from None

    checked_class.__init__ = checked  # type: ignore[assignment]
    return checked_class  # type: ignore[return-value]


def _refusal(first: ErrorDetails, names: list[str]) -> str:
    """Describe the first error of pydantic in words of this package."""
    name = first["loc"][0]
    if isinstance(name, int) and name < len(names):
        name = names[name]
    if first["type"] == "unexpected_keyword_argument":
        return _unknown(name, names)
    if first["type"] == "missing":
        return f"{name} is missing; give a value"
    expected = first["msg"].removeprefix("Value error, ").replace("Input should be", "it must be")
    return f"{name} is {short(first['input'])}; {one_line(expected)}"


def _unknown(name: object, names: Collection[str]) -> str:
    return f"unknown setting {short(name)}; known settings: {', '.join(sorted(names))}"


def read(
    cls: type[_Settings],
    path: str | Path | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> _Settings:
    """Read settings from a YAML file; `overrides` take precedence."""
    values = dict[str, Any]()
    if path is not None:
        names = fields_of(cls).keys()
        for name, value in read_yaml(path).items():
            if name not in names:
                raise SettingsError(f"{path}: {_unknown(name, names)}")
            values[name] = value
    values.update(overrides or {})
    return cls(**values)


def yaml_problem(error: Exception, path: str | Path) -> str:
    """Return in one line, with the line number if it is known, why a YAML file is not readable."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return one_line(error, about=path)
    return f"line {mark.line + 1}: {one_line(getattr(error, 'problem', error))}"


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Read the settings in a YAML file; an empty mapping if the file is empty."""
    import yaml

    try:
        values = yaml.safe_load(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise SettingsError(
            f"{path}: not readable as YAML ({yaml_problem(error, path)}); give a YAML file"
        ) from error
    if values is None:
        return {}
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise SettingsError(f"{path}: not a mapping of settings; write lines such as `dim: 300`")
    return values


def add_setting_options(
    parser: Any,
    cls: type,
    leave_out: Collection[str] = (),
    only: Collection[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> None:
    """Add an option for each setting, or for those in `only`, to an argparse parser or group.

    The help shows `defaults` instead of the class's defaults. Settings that are not given on the
    command line are left to `read`.
    """
    shown_defaults = defaults or {}
    for name, field in described_fields(cls).items():
        if name in leave_out or (only is not None and name not in only):
            continue
        default = shown_defaults.get(name, _default(field))
        options = _options(name, field)
        parser.add_argument(
            *options, dest=name, default=argparse.SUPPRESS, **_argument(field, default)
        )


def given(arguments: argparse.Namespace, cls: type) -> dict[str, Any]:
    """Return the settings that were given on the command line, by name."""
    values = vars(arguments)
    return {name: values[name] for name in described_fields(cls) if name in values}


def check_used(settings: Any, given: Collection[str]) -> None:
    """Refuse given settings that have no effect because of the value of another setting."""
    for name, field in described_fields(settings).items():
        extra: Any = field.json_schema_extra
        if name not in given or not extra["unused_with"]:
            continue
        other, *values = extra["unused_with"]
        value = getattr(settings, other)
        if value in values:
            choice = f"with {other} {value}" if value else f"without {other}"
            raise SettingsError(f"{name} has no effect {choice}; leave {name} out")


def fields_of(cls: Any) -> dict[str, FieldInfo]:
    """Return the fields of a class of settings by name, in order."""
    return cls.__pydantic_fields__


def described_fields(cls: Any) -> dict[str, FieldInfo]:
    """Return the fields made by `setting`, which have options."""
    return {name: field for name, field in fields_of(cls).items() if field.description is not None}


def _kinds(field: FieldInfo) -> list[Any]:
    """Return the types of single values that a field takes; none for values in a special form."""
    if any(isinstance(item, pydantic.BeforeValidator) for item in field.metadata):
        return []
    members = _members(field.annotation)
    return [kind for kind in _KINDS if kind in members]


def _is_number(field: FieldInfo) -> bool:
    """Whether a field takes numbers, but not true and false."""
    members = _members(field.annotation)
    return bool not in members and (int in members or float in members)


def _choices(field: FieldInfo) -> list[str]:
    """Return the words that a field takes, if it is a `Literal` or an `Enum`."""
    for kind in _members(field.annotation):
        if get_origin(kind) is Literal:
            return [str(word) for word in get_args(kind)]
        if isinstance(kind, type) and issubclass(kind, Enum):
            return [str(member.value) for member in kind]
    return []


def _members(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) in (Union, UnionType):
        return get_args(annotation)
    return (annotation,)


def _options(name: str, field: FieldInfo) -> list[str]:
    option = _text(field, "option")
    if option:
        return option.split()
    prefix = "--no-" if field.default is True else "--"
    return [prefix + name.replace("_", "-")]


def _argument(field: FieldInfo, default: object) -> dict[str, Any]:
    """Return the arguments of `add_argument` for a field."""
    text = _text(field, "option_help") or str(field.description)
    kinds = _kinds(field)
    is_flag = kinds == [bool]
    if not is_flag and default not in (None, ""):
        text += f" (default: {_in_words(default)})"
    argument: dict[str, Any] = {"help": text.replace("%", "%%")}
    choices = _choices(field)
    if is_flag:
        argument["action"] = "store_false" if field.default else "store_true"
    elif choices:
        argument["choices"] = choices
    else:
        kind = kinds[0] if kinds else object
        argument["metavar"] = _text(field, "metavar") or _METAVARS.get(kind, "VALUE")
        if kind in (int, float):
            argument["type"] = kind
    return argument


def _default(field: FieldInfo) -> object:
    return field.get_default(call_default_factory=True)


def _text(field: FieldInfo, name: str) -> str | None:
    """Return an argument of `setting`."""
    return (field.json_schema_extra or {}).get(name)  # type: ignore[union-attr,return-value]


def _in_words(value: object) -> str:
    if isinstance(value, Enum):
        value = value.value
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return str(value)
