"""Settings, each defined once: Python, YAML files, command lines and the tables of the docs read that one definition.

A class of settings has a field for each, with its type, default, help and range:

    @settings
    class Example:
        '''Settings of an example.'''

        dim: int = setting(300, "components of an embedding", least=1)
        rate: float = setting(1e-3, "learning rate", above=0)
        side: Literal["left", "right"] = setting("left", "the side to read")
        fold: bool = setting(True, "make no difference of case", option="--keep-case", option_help="distinguish case")

    Example(dim=100)                              # frozen, and checked when it is made
    read(Example, "example.yaml", {"dim": 100})   # the values of a file, and stronger ones
    add_setting_options(parser, Example)          # --dim N, --rate X, --side {left,right}, --keep-case
    Example(**given(arguments, Example))          # what was given on the command line, and defaults for the rest
    table(Example)                                # a Markdown table

To add a setting, add its field; nothing else is needed. What concerns several settings is checked in
`__post_init__`, which raises `SettingsError`. A value that is written in a special form, such as 4G, has the type
`Annotated[int, pydantic.BeforeValidator(parse)]`. A field that is not made by `setting` is a part of the class like any
other, but no option and no row of the table.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pydantic
import pydantic.dataclasses
from typing_extensions import dataclass_transform

from st_paragram.core.setting_fields import SettingField, fields_of
from st_paragram.core.tables import markdown_table
from st_paragram.errors import SettingsError, one_line, short

_Settings = TypeVar("_Settings")
_CONFIG = pydantic.ConfigDict(allow_inf_nan=False, validate_default=True)


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
        option: Its option on the command line, if that is not its name with dashes; or several, with spaces between.
            That of a yes or no takes no value and turns the default into its contrary; for a default of yes it is
            `--no-NAME` if not given here.
        option_help: What the option does, if `help` does not say it.
        metavar: Placeholder of the value in the help of the command line, if its type does not say enough.
    """
    limits: dict[str, Any] = {"ge": least, "le": most, "gt": above, "lt": below}
    limits = {name: limit for name, limit in limits.items() if limit is not None}
    texts: dict[str, Any] = {"option": option, "option_help": option_help, "metavar": metavar}
    return pydantic.Field(default, description=help, json_schema_extra=texts, **limits)


# `setting` is not declared as a field specifier: type checkers would look for the default under that keyword alone.
@dataclass_transform(frozen_default=True)
def settings(cls: type[_Settings], where: str = "", numbers_as_text: bool = True) -> type[_Settings]:
    """Make a class with fields made by `setting` a frozen dataclass whose values are checked when it is made.

    A wrong value raises `SettingsError`: one line that names the setting, what was given and what is expected. Truth
    values and numbers are never taken for each other. Numbers may be what YAML 1.1 makes of them: 1e-3 (text, to YAML)
    for a number, 10.0 for a whole one.

    Args:
        cls: The class.
        where: What messages begin with.
        numbers_as_text: Take text for numbers; if not, 1e-3 must be a number.
    """
    made = pydantic.dataclasses.dataclass(frozen=True, config=_CONFIG)(cls)
    make, fields = made.__init__, fields_of(made)

    @functools.wraps(make)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        if len(args) > len(fields):
            raise TypeError(f"{made.__name__} has {len(fields)} fields; {len(args)} values were given")
        values = dict(zip(fields, args, strict=False)) | kwargs
        _refuse_unknown(values, fields, where)
        for name, value in values.items():
            if fields[name].is_mistaken(value, numbers_as_text):
                raise SettingsError(f"{where}{name} is {short(value)}; {fields[name].expected}")
        try:
            make(self, **values)
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            raise SettingsError(where + fields[str(first["loc"][0])].refusal(first)) from None
        except SettingsError as error:  # of `__post_init__`
            if not where:
                raise
            raise SettingsError(f"{where}{error}") from error.__cause__

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
        SettingsError: The file cannot be read or is not a mapping, or a name or a value is refused.
    """
    values = read_yaml(path) if path is not None else {}
    _refuse_unknown(values, fields_of(cls), f"{path}: ")
    return cls(**{**(defaults or {}), **values, **(overrides or {})})


def read_yaml(path: str | Path) -> dict[str, Any]:
    """A mapping of settings to values; an empty one if the file is empty.

    Raises:
        SettingsError: The file cannot be read, or is not a mapping.
    """
    from st_paragram.core import yaml_files

    try:
        values = yaml_files.read_yaml(path)
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path}: not readable as YAML ({one_line(error, about=path)})") from error
    if values is not None and not isinstance(values, dict):
        raise SettingsError(f"{path}: a mapping of settings is expected, e.g. `dim: 300`")
    return values or {}


def add_setting_options(
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
            parser.add_argument(*field.options, dest=field.name, default=argparse.SUPPRESS, **told)


def given(arguments: argparse.Namespace, cls: type) -> dict[str, Any]:
    """The settings that were given on the command line, by name."""
    names = [field.name for field in _described(cls)]
    return {name: getattr(arguments, name) for name in names if hasattr(arguments, name)}


def table(cls: type) -> str:
    """The settings as a Markdown table: name, option of the command line, default, what is allowed, what it is."""
    rows = [
        [f"`{field.name}`", f"`{field.options[0]}`", field.default, field.allowed, str(field.info.description)]
        for field in _described(cls)
    ]
    return markdown_table(["setting", "option", "default", "allowed", "what it is"], rows, left=5)


def _described(cls: type) -> list[SettingField]:
    """The fields made by `setting`."""
    return [field for field in fields_of(cls).values() if field.info.description is not None]


def _refuse_unknown(values: Iterable[Any], known: Collection[str], where: str = "") -> None:
    if unknown := sorted(str(name) for name in values if name not in known):
        raise SettingsError(f"{where}unknown setting {short(unknown[0])}; known are {', '.join(sorted(known))}")
