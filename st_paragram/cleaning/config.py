"""A cleaning: a list of filters and repairs that rows go through, and which repeated rows go; written in YAML."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import yaml

from st_paragram.cleaning.base import RowStep
from st_paragram.cleaning.duplicates import Duplicates
from st_paragram.cleaning.registry import LANGUAGES, STEPS, needs_languages, option_names, step_class
from st_paragram.errors import ParagramError, SettingsError

DUPLICATES = "duplicates"

Made = TypeVar("Made")


@dataclass(frozen=True)
class Step:
    """One entry of the list: a filter or a repair.

    Attributes:
        name: Its name, see `registry.STEPS`.
        options: The options that are not left at their defaults, as JSON values.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def make(self, languages: tuple[str, str]) -> RowStep:
        """The filter or repair for rows of these languages.

        Raises:
            SettingsError: The value of an option is refused.
        """
        cls = step_class(self.name)
        return cls(**({LANGUAGES: languages} if needs_languages(cls) else {}), **self.options)


@dataclass(frozen=True)
class Cleaning:
    """What is done to rows.

    Attributes:
        steps: Filters and repairs, in the order in which they see the rows.
        duplicates: Which repeated rows go, after all steps.
    """

    steps: tuple[Step, ...] = ()
    duplicates: Duplicates = field(default_factory=Duplicates)

    def make_steps(self, languages: tuple[str, str]) -> list[RowStep]:
        """The filters and repairs for rows of these languages, in order.

        Raises:
            SettingsError: The value of an option is refused.
        """
        return [step.make(languages) for step in self.steps]

    def as_json(self) -> list[dict[str, Any]]:
        """The list as JSON values; `parse_cleaning` reads it back."""
        steps = [{step.name: {name: _plain(value) for name, value in step.options.items()}} for step in self.steps]
        return [*steps, {DUPLICATES: self.duplicates.as_json()}]


def parse_cleaning(items: Sequence[Any], where: str) -> Cleaning:
    """Read a list of cleaning steps.

    Args:
        items: Names of steps, or mappings of one name to its options; `duplicates` is one of the names.
        where: The name of the list in messages, for example that of its file.

    Raises:
        SettingsError: An entry is no step, an option is unknown or missing, its value is refused, or a step comes
            twice; the message names the entry and lists what is known.
    """
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise SettingsError(f"{where}: a list of steps is expected, like `- markup`; saw {_short(items)}")
    steps: dict[str, Step] = {}
    duplicates = Duplicates()
    seen: set[str] = set()
    for number, item in enumerate(items, start=1):
        entry = f"{where}: entry {number}"
        name, options = _entry(item, entry)
        if name in seen:
            raise SettingsError(f"{entry}: {name} occurs twice; remove one of the entries")
        seen.add(name)
        if name == DUPLICATES:
            duplicates = _duplicates(options, entry)
        else:
            steps[name] = _step(name, options, entry)
    return Cleaning(tuple(steps.values()), duplicates)


def read_cleaning(path: str | Path) -> Cleaning:
    """Read a YAML file with a list of cleaning steps.

    Raises:
        SettingsError: The file is missing or not YAML, or its list is refused, see `parse_cleaning`.
    """
    try:
        items = yaml.load(Path(path).read_bytes(), _Loader)
    except OSError as error:
        seen = f"{path}: no list of filters can be read ({error.strerror})"
        raise SettingsError(f"{seen}; give a YAML file, or default or paper") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = " ".join(str(error).split())
        raise SettingsError(f"{path}: not readable as YAML: {problem[:200]}") from error
    return parse_cleaning(items, str(path))


def default_cleaning() -> Cleaning:
    """The recommended cleaning of parallel text: `default.yaml`."""
    return read_cleaning(Path(__file__).with_name("default.yaml"))


def paper_cleaning() -> Cleaning:
    """The cleaning of the paper: `paper.yaml`."""
    return read_cleaning(Path(__file__).with_name("paper.yaml"))


def only_length(
    min_length: int = 3, max_length: int = 100, max_characters: int = 200, length_on: str = "both"
) -> Cleaning:
    """Filter by length alone, and keep one of equal pairs.

    Args:
        min_length: See `Length`.
        max_length: See `Length`.
        max_characters: See `Length`.
        length_on: "both", or "english" for the first side.

    Raises:
        SettingsError: The value of an option is refused.
    """
    options = {
        "min_length": min_length,
        "max_length": max_length,
        "max_characters": max_characters,
        "length_on": _plain(length_on),
    }
    step_class("length")(**options)
    return Cleaning((Step("length", options),), Duplicates(on="pair"))  # type: ignore[arg-type]


class _Loader(yaml.SafeLoader):
    """YAML in which `on` is a name and `no` a language: only true and false are truth values, as in YAML 1.2."""


_BOOL = "tag:yaml.org,2002:bool"
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOL]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOL, re.compile("true|True|TRUE|false|False|FALSE"), list("tTfF"))


def _entry(item: object, entry: str) -> tuple[str, dict[str, Any]]:
    known = ", ".join([*STEPS, DUPLICATES])
    if isinstance(item, str):
        item = {item: None}
    if not isinstance(item, Mapping) or len(item) != 1:
        raise SettingsError(
            f"{entry}: one step is expected, `- name` or `- name: {{option: value}}`; saw {_short(item)}"
        )
    ((name, options),) = item.items()
    if name not in STEPS and name != DUPLICATES:
        raise SettingsError(f"{entry}: unknown step {_short(name)}; known are {known}")
    options = {} if options is None else options
    if not isinstance(options, Mapping) or not all(isinstance(option, str) for option in options):
        raise SettingsError(f"{entry}: {name}: options are expected, `{{option: value}}`; saw {_short(options)}")
    return name, dict(options)


def _step(name: str, options: dict[str, Any], entry: str) -> Step:
    cls = step_class(name)
    names = option_names(cls)
    _check_names(name, options, list(names), entry)
    if missing := [option for option, needed in names.items() if needed and option not in options]:
        raise SettingsError(f"{entry}: {name} needs {', '.join(missing)}")
    step = Step(name, {option: tuple(v) if isinstance(v, list) else v for option, v in options.items()})
    _made(step.make, (("en", "en"),), entry)  # whether options are accepted does not depend on the languages
    return step


def _duplicates(options: dict[str, Any], entry: str) -> Duplicates:
    _check_names(DUPLICATES, options, ["on", "copies"], entry)
    on = options.get("on", "pair")
    return _made(Duplicates, (tuple(on) if isinstance(on, list) else on, options.get("copies", "one")), entry)


def _check_names(name: str, options: Mapping[str, Any], known: list[str], entry: str) -> None:
    if unknown := [option for option in options if option not in known]:
        there = f"known are {', '.join(known)}" if known else "it has no options"
        raise SettingsError(f"{entry}: {name} has no option {', '.join(map(_short, unknown))}; {there}")


def _made(make: Callable[..., Made], arguments: tuple[Any, ...], entry: str) -> Made:
    try:
        return make(*arguments)
    except ParagramError as error:
        raise SettingsError(f"{entry}: {error}") from error


def _plain(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, Enum):
        return value.value
    return [_plain(part) for part in value] if isinstance(value, (tuple, list)) else value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
