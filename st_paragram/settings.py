"""Settings, each defined once: its name, type, default, range and help stand in one field of a dataclass.

Python checks them when they are made (pydantic), YAML files and command lines are read against the same fields, and
the tables of the docs are printed from them:

    @settings
    class Example:
        '''What it is for.'''

        dim: int = setting(300, "components of an embedding", least=1)

    Example(dim=100); read(Example, "example.yaml", overrides); add_options(parser, Example); given(arguments, Example)
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
from collections.abc import Collection, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import pydantic
import pydantic.dataclasses
import yaml
from typing_extensions import dataclass_transform

from st_paragram.errors import SettingsError
from st_paragram.tables import markdown_table

_Settings = TypeVar("_Settings")
_CONFIG = pydantic.ConfigDict(allow_inf_nan=False, extra="forbid")


def setting(
    default: Any,  # noqa: ANN401 - of the field's type
    help: str,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    option: str | None = None,
    metavar: str | None = None,
) -> Any:  # noqa: ANN401
    """A field of settings.

    Args:
        default: its value if nothing is said; `...` for one that must be given.
        help: what it is, for the command line and the docs.
        least: the smallest value allowed.
        most: the largest value allowed.
        above: it must be larger than this.
        below: it must be smaller than this.
        option: its name on the command line, where that is not its own with dashes, or several with spaces between;
            one that switches a default of True off begins with `--no-`, `--keep-` or the like and takes no value.
        metavar: what stands for its value in help texts and tables, where its type does not say enough.
    """
    limits = {"ge": least, "le": most, "gt": above, "lt": below}
    kept: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
    shown: dict[str, Any] = {"option": option, "metavar": metavar}
    extra = {name: value for name, value in shown.items() if value}
    return pydantic.Field(default, description=help, json_schema_extra=extra or None, **kept)


@dataclass_transform(frozen_default=True)  # without `field_specifiers`, every `setting` counts as a default
def settings(cls: type[_Settings]) -> type[_Settings]:
    """Make a class of `setting` fields a frozen dataclass whose values are checked when it is made.

    Wrong values raise `SettingsError`, one line that names the setting, what was given and what is expected.
    """
    made = pydantic.dataclasses.dataclass(frozen=True, config=_CONFIG)(cls)
    check = made.__init__

    @functools.wraps(check)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        names = [field.name for field in dataclasses.fields(made)]  # type: ignore[arg-type]
        values = dict(zip(names, args, strict=False)) | kwargs
        if unknown := sorted(str(name) for name in values if name not in names):
            raise SettingsError(f"unknown setting {unknown[0]!r}; known are {', '.join(sorted(names))}")
        for name, value in values.items():
            if isinstance(value, bool) and not _takes_bool(made, name):  # pydantic would make it 0 or 1
                raise SettingsError(f"{name} is {value!r}; a number or a word is expected")
        try:
            check(self, **values)
        except pydantic.ValidationError as error:
            raise SettingsError(_message(error.errors()[0])) from None

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
        cls: the settings to make.
        path: a YAML file, a mapping of settings to values; None for none.
        overrides: values, of a command line say.
        defaults: values in place of the class's own.

    Raises:
        SettingsError: the file cannot be read or is no mapping, or a name or a value is refused.
    """
    values = read_yaml(path) if path is not None else {}
    known = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    if unknown := sorted(str(name) for name in values if name not in known):
        raise SettingsError(f"{path}: unknown setting {unknown[0]!r}; known are {', '.join(sorted(known))}")
    return cls(**{**(defaults or {}), **values, **(overrides or {})})


def read_yaml(path: str | Path) -> dict[str, Any]:
    """A mapping of settings to values.

    Raises:
        SettingsError: the file cannot be read, or is no mapping.
    """
    try:
        values = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = str(error).split("\n")[0]
        raise SettingsError(f"{path}: not readable as YAML ({reason})") from error
    if not isinstance(values, dict):
        raise SettingsError(f"{path}: a mapping of settings is expected, e.g. `dim: 300`")
    return values


def add_options(parser: Any, cls: type, leave_out: Collection[str] = ()) -> None:  # noqa: ANN401 - a parser or a group
    """Add an option for each setting to an argparse parser or group; what is not given leaves no trace in the result.

    Args:
        parser: takes `add_argument`.
        cls: the settings.
        leave_out: names of settings without an option.
    """
    hints = get_type_hints(cls)
    for field in dataclasses.fields(cls):
        if field.name in leave_out:
            continue
        info = _field(cls, field.name)
        shown: dict[str, Any] = {"dest": field.name, "default": argparse.SUPPRESS}
        if hints[field.name] is bool:
            shown |= {"action": "store_false" if info.default else "store_true", "help": info.description}
        else:
            words = choices(hints[field.name])
            shown["metavar"] = "{" + ",".join(words) + "}" if words else _metavar(info, hints[field.name])
            shown["help"] = f"{info.description} ({describe_default(cls, field.name)})".replace("%", "%%")
        parser.add_argument(*_option(info, field.name).split(), **shown)


def given(arguments: argparse.Namespace, cls: type) -> dict[str, Any]:
    """The settings that were given on the command line, by name."""
    names = {field.name for field in dataclasses.fields(cls)}
    return {name: value for name, value in vars(arguments).items() if name in names}


def table(cls: type) -> str:
    """The settings as a Markdown table: name, type, default, range, what it is."""
    hints = get_type_hints(cls)
    rows = []
    for field in dataclasses.fields(cls):
        info, words = _field(cls, field.name), choices(hints[field.name])
        kind = ", ".join(words) if words else _metavar(info, hints[field.name]).lower()
        rows.append(
            [f"`{field.name}`", kind, describe_default(cls, field.name), _range(info), str(info.description or "")]
        )
    return markdown_table(["setting", "type", "default", "range", "what it is"], rows)


def describe_default(cls: type, name: str) -> str:
    """A setting's default in words."""
    info = _field(cls, name)
    if info.is_required():
        return "must be given"
    default = info.get_default(call_default_factory=True)
    if isinstance(default, Enum):
        default = default.value
    if isinstance(default, float) and default == int(default) and abs(default) < 1e6:
        default = int(default)
    return "none" if default is None else str(default)


def choices(annotation: Any) -> list[str]:  # noqa: ANN401
    """The words that a type allows: of a Literal or an Enum, also where None is allowed; none for other types."""
    for kind in (annotation, *get_args(annotation)):
        if get_origin(kind) is Literal:
            return [str(word) for word in get_args(kind)]
        if isinstance(kind, type) and issubclass(kind, Enum):
            return [str(member.value) for member in kind]
    return []


def _field(cls: type, name: str) -> pydantic.fields.FieldInfo:
    info: pydantic.fields.FieldInfo = cls.__pydantic_fields__[name]  # type: ignore[attr-defined]
    return info


def _option(info: pydantic.fields.FieldInfo, name: str) -> str:
    return _extra(info, "option") or f"--{'no-' if info.default is True else ''}{name.replace('_', '-')}"


def _extra(info: pydantic.fields.FieldInfo, name: str) -> str | None:
    extra = info.json_schema_extra
    return str(extra[name]) if isinstance(extra, dict) and name in extra else None


def _takes_bool(cls: type, name: str) -> bool:
    annotation = get_type_hints(cls)[name]
    return annotation in (bool, Any) or bool in get_args(annotation)


def _metavar(info: pydantic.fields.FieldInfo, annotation: Any) -> str:  # noqa: ANN401
    if metavar := _extra(info, "metavar"):
        return metavar
    kinds = [kind for kind in (annotation, *get_args(annotation)) if kind in (int, float, str, Path, bool)]
    names = {int: "N", float: "X", str: "TEXT", Path: "PATH", bool: "yes/no"}
    return names[kinds[0]] if kinds else "VALUE"


def _range(info: pydantic.fields.FieldInfo) -> str:
    signs = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    found = [
        f"{words} {getattr(limit, sign):g}"
        for limit in info.metadata
        for sign, words in signs.items()
        if getattr(limit, sign, None) is not None
    ]
    return ", ".join(found)


def _message(error: Any) -> str:  # noqa: ANN401 - pydantic's description of one error
    name, limits = ".".join(map(str, error["loc"])) or "settings", error.get("ctx", {})
    expected = {
        "greater_than_equal": "it must be at least {ge}",
        "greater_than": "it must be above {gt}",
        "less_than_equal": "it must be at most {le}",
        "less_than": "it must be below {lt}",
        "enum": "it must be one of {expected}",
        "literal_error": "it must be one of {expected}",
        "finite_number": "a finite number is expected",
        "missing": "it must be given",
        "value_error": "{error}",
    }.get(error["type"])
    if error["type"] == "value_error" and error["loc"] == ():
        return str(limits["error"])
    reason = expected.format(**limits) if expected else error["msg"].replace("Input should be", "it must be", 1)
    shown = str(error["input"]) if "_than" in error["type"] else repr(error["input"])  # numbers may come as strings
    return f"{name} is {shown}; {reason}" if error["type"] != "missing" else f"{name} is missing; {reason}"
