"""Settings, each defined once: Python, YAML files, command lines and the tables of the docs read that one definition.

A class of settings has a field for each, with its type, default, help and range:

    @settings
    class Example:
        '''What an example is made of.'''

        dim: int = setting(300, "components of an embedding", least=1)
        rate: float = setting(1e-3, "learning rate", above=0)
        side: Literal["left", "right"] = setting("left", "the side to read")
        fold: bool = setting(True, "make no difference of case", option="--keep-case", option_help="tell cases apart")

    Example(dim=100)                              # frozen, and checked when it is made
    read(Example, "example.yaml", {"dim": 100})   # the values of a file, and stronger ones
    add_options(parser, Example)                  # --dim N, --rate X, --side {left,right}, --keep-case
    Example(**given(arguments, Example))          # what was given on the command line, and defaults for the rest
    table(Example)                                # a Markdown table

To add a setting, add its field; nothing else need be told. What concerns several settings is checked in
`__post_init__`, which raises `SettingsError`. A value that is written in a form of its own, such as 4G, has the type
`Annotated[int, pydantic.BeforeValidator(parse)]`. A field that is not made by `setting` is a part of the class like any
other, but no option and no row of the table.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

import pydantic
import pydantic.dataclasses
import yaml
from pydantic.fields import FieldInfo
from typing_extensions import dataclass_transform

from st_paragram.errors import SettingsError
from st_paragram.tables import markdown_table

_Settings = TypeVar("_Settings")
_CONFIG = pydantic.ConfigDict(allow_inf_nan=False, validate_default=True)
_OWN_FORM = (pydantic.BeforeValidator, pydantic.PlainValidator, pydantic.WrapValidator)
_KINDS = {bool: "yes or no", int: "a whole number", float: "a number", Path: "a path", str: "text"}
_METAVARS: dict[Any, str] = {int: "N", float: "X", Path: "PATH", str: "NAME"}
_LIMITS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
_OUTSIDE = ("greater_than_equal", "greater_than", "less_than_equal", "less_than")


def setting(
    default: Any,  # noqa: ANN401 - of the field's type
    help: str,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    option: str | None = None,
    option_help: str | None = None,
    metavar: str | None = None,
) -> Any:  # noqa: ANN401
    """A field of a class of settings.

    Args:
        default: Its value if none is given; `...` for one that must be given.
        help: What it is, for the command line and the docs.
        least: The smallest value allowed.
        most: The largest value allowed.
        above: It must be larger than this.
        below: It must be smaller than this.
        option: Its option on the command line, if that is not its name with dashes; several have spaces between. That of a yes or no takes no value
            and turns the default into its contrary; for a default of yes it is `--no-NAME` if not given here.
        option_help: What the option does, if `help` does not say it.
        metavar: What stands for its value in `--help`, if its type does not say enough.
    """
    limits: dict[str, Any] = {"ge": least, "le": most, "gt": above, "lt": below}
    option_texts: dict[str, Any] = {"option": option, "option_help": option_help, "metavar": metavar}
    given_limits = {name: limit for name, limit in limits.items() if limit is not None}
    return pydantic.Field(default, description=help, json_schema_extra=option_texts, **given_limits)


# `setting` is not declared as a field specifier: type checkers would look for the default under that keyword alone.
@dataclass_transform(frozen_default=True)
def settings(cls: type[_Settings]) -> type[_Settings]:
    """Make a class with fields made by `setting` a frozen dataclass whose values are checked when it is made.

    A wrong value raises `SettingsError`: one line that names the setting, what was given and what is expected. Truth
    values and numbers are never taken for each other. Numbers may be what YAML 1.1 makes of them: 1e-3 (text, to YAML)
    for a number, 10.0 for a whole one.
    """
    made = pydantic.dataclasses.dataclass(frozen=True, config=_CONFIG)(cls)
    make, fields = made.__init__, _fields(made)

    @functools.wraps(make)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        values = dict(zip(fields, args, strict=False)) | kwargs
        _refuse_unknown(values, fields)
        for name, value in values.items():
            if fields[name].is_mistaken(value):
                raise SettingsError(f"{name} is {value!r}; {fields[name].expected}")
        try:
            make(self, *args, **kwargs)
        except pydantic.ValidationError as error:
            raise SettingsError(_message(fields, error.errors()[0])) from None

    made.__init__ = checked  # type: ignore[assignment]
    return made  # type: ignore[return-value]


def read(
    cls: type[_Settings],
    path: str | Path | None = None,
    overrides: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> _Settings:
    """Settings from three places, the later ones stronger: `defaults`, a YAML file, `overrides`.

    Args:
        cls: The settings to make.
        path: A YAML file, a mapping of settings to values; None for none.
        overrides: Values, of a command line say.
        defaults: Values in place of the class's own.

    Raises:
        SettingsError: The file cannot be read or is no mapping, or a name or a value is refused.
    """
    values = read_yaml(path) if path is not None else {}
    _refuse_unknown(values, _fields(cls), f"{path}: ")
    return cls(**{**(defaults or {}), **values, **(overrides or {})})


def read_yaml(path: str | Path) -> dict[str, Any]:
    """A mapping of settings to values; an empty one if the file is empty.

    Raises:
        SettingsError: The file cannot be read, or is no mapping.
    """
    try:
        values = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        reason = str(error).split("\n")[0]
        raise SettingsError(f"{path}: not readable as YAML ({reason})") from error
    if values is not None and not isinstance(values, dict):
        raise SettingsError(f"{path}: a mapping of settings is expected, e.g. `dim: 300`")
    return values or {}


def add_options(
    parser: Any,  # noqa: ANN401 - a parser or a group
    cls: type,
    leave_out: Collection[str] = (),
    only: Collection[str] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> None:
    """Add an option for each setting to an argparse parser or group; `given` collects what was given.

    Args:
        parser: Takes `add_argument`.
        cls: The settings.
        leave_out: Names of settings without an option.
        only: Names of the settings with an option; None for all.
        defaults: Values to show in place of the class's own; what is not given is left to `read`.
    """
    for field in _described(cls):
        if field.name not in leave_out and (only is None or field.name in only):
            told = field.argument(defaults or {})
            parser.add_argument(*field.option.split(), dest=field.name, default=argparse.SUPPRESS, **told)


def given(arguments: argparse.Namespace, cls: type) -> dict[str, Any]:
    """The settings that were given on the command line, by name."""
    names = [field.name for field in _described(cls)]
    return {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}


def table(cls: type) -> str:
    """The settings as a Markdown table: name, option of the command line, default, what is allowed, what it is."""
    rows = [
        [f"`{field.name}`", f"`{field.option}`", field.default, field.allowed, str(field.info.description)]
        for field in _described(cls)
    ]
    return markdown_table(["setting", "option", "default", "allowed", "what it is"], rows, left=5)


def describe_default(cls: type, name: str) -> str:
    """A setting's default in words."""
    return _fields(cls)[name].default


def choices(annotation: Any) -> list[str]:  # noqa: ANN401
    """The words that a type allows: those of a Literal or an Enum, also where None is allowed; none for other types."""
    for kind in _members(annotation):
        if get_origin(kind) is Literal:
            return [str(word) for word in get_args(kind)]
        if isinstance(kind, type) and issubclass(kind, Enum):
            return [str(member.value) for member in kind]
    return []


@dataclasses.dataclass(frozen=True)
class _Field:
    """What is known of a field; `own_form`: its values are written in a form of their own."""

    name: str
    info: FieldInfo
    own_form: bool

    @property
    def words(self) -> list[str]:
        return choices(self.info.annotation)

    @property
    def kinds(self) -> list[Any]:
        """The types of single values that it may have."""
        members = _members(self.info.annotation)
        return [] if self.own_form else [kind for kind in _KINDS if kind in members]

    def is_mistaken(self, value: object) -> bool:
        """Whether pydantic would make another kind of it: 1 of True, True of 1, 3 of "3"."""
        if value is None or not self.kinds:
            return False
        if isinstance(value, bool) or self.kinds == [bool]:
            return not (isinstance(value, bool) and bool in self.kinds)
        return isinstance(value, str) and self.kinds == [int]

    @property
    def limits(self) -> str:
        """Its range in words: at least 0 and below 1."""
        found = [(words, getattr(limit, sign, None)) for limit in self.info.metadata for sign, words in _LIMITS.items()]
        return " and ".join(f"{words} {_in_words(limit)}" for words, limit in found if limit is not None)

    @property
    def expected(self) -> str:
        """What it must be, for messages."""
        if self.words:
            return f"it must be one of {', '.join(self.words)}"
        return f"{' or '.join(_KINDS[kind] for kind in self.kinds) or 'another value'} is expected"

    @property
    def allowed(self) -> str:
        """What it may be, for tables."""
        kinds = " or ".join(_KINDS[kind].removeprefix("a ") for kind in self.kinds)
        return ", ".join(self.words or filter(None, [kinds, self.limits]))

    @property
    def default(self) -> str:
        """Its default in words."""
        required = self.info.is_required()
        return "must be given" if required else _in_words(self.info.get_default(call_default_factory=True))

    @property
    def option(self) -> str:
        """Its option on the command line."""
        no = "no-" if self.info.default is True else ""
        return self.extra("option") or f"--{no}{self.name.replace('_', '-')}"

    def argument(self, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """What argparse is told of the option."""
        text, flag = self.extra("option_help") or str(self.info.description), self.kinds == [bool]
        if not flag:
            text += f" (default: {_in_words(defaults[self.name]) if self.name in defaults else self.default})"
        told: dict[str, Any] = {"help": text.replace("%", "%%")}
        if flag:
            return told | {"action": "store_false" if self.info.default else "store_true"}
        if self.words:
            return told | {"choices": self.words}
        kind = next(iter(self.kinds), None)
        return (
            told
            | {"metavar": self.extra("metavar") or _METAVARS.get(kind, "VALUE")}
            | ({"type": kind} if kind in (int, float) else {})
        )

    def extra(self, name: str) -> str | None:
        """What `setting` was told of the option."""
        return cast("dict[str, str | None]", self.info.json_schema_extra or {}).get(name)


def _fields(cls: Any) -> dict[str, _Field]:  # noqa: ANN401 - a class of settings
    validators = cls.__pydantic_decorators__.field_validators.values()
    decorated = {name for validator in validators for name in validator.info.fields}
    return {
        name: _Field(name, info, name in decorated or any(isinstance(each, _OWN_FORM) for each in info.metadata))
        for name, info in cls.__pydantic_fields__.items()
    }


def _described(cls: type) -> list[_Field]:
    """The fields made by `setting`."""
    return [field for field in _fields(cls).values() if field.info.description is not None]


def _members(annotation: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """The types of a union, or the one type."""
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _in_words(value: object) -> str:
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return {None: "none", True: "yes", False: "no"}[value] if isinstance(value, bool | None) else str(value)


def _refuse_unknown(values: Iterable[Any], known: Collection[str], where: str = "") -> None:
    if unknown := sorted(str(name) for name in values if name not in known):
        raise SettingsError(f"{where}unknown setting {unknown[0]!r}; known are {', '.join(sorted(known))}")


def _message(fields: Mapping[str, _Field], error: Any) -> str:  # noqa: ANN401 - pydantic's description of an error
    """One line: the setting, what was given, what is expected."""
    field, kind = fields[str(error["loc"][0])], error["type"]
    if kind == "missing":
        return f"{field.name} is missing; it must be given"
    expected = field.expected
    if kind in _OUTSIDE:
        expected = f"it must be {field.limits}"
    elif kind == "finite_number":
        expected = "a finite number is expected"
    elif field.own_form or not (field.words or field.kinds):
        expected = str(error.get("ctx", {}).get("error") or error["msg"].replace("Input should be", "it must be", 1))
    return f"{field.name} is {error['input']!r}; {expected}"
