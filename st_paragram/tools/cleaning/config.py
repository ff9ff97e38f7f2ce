"""A cleaning: a list of filters and repairs that rows go through, and which repeated rows go; written in YAML."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml

from st_paragram.errors import ParagramError, SettingsError, one_line, short
from st_paragram.tools.cleaning.base import RowStep
from st_paragram.tools.cleaning.duplicates import Duplicates, Key
from st_paragram.tools.cleaning.length import Length
from st_paragram.tools.cleaning.near_duplicates import NearDuplicates
from st_paragram.tools.cleaning.options import plain
from st_paragram.tools.cleaning.registry import LANGUAGES, STEPS, needs_languages, option_names, step_class

Made = TypeVar("Made")
#: The lists of filters that come with the package.
NAMED = ("default", "paper", "paranmt")
_WHOLE: dict[str, type] = {Duplicates.name: Duplicates, NearDuplicates.name: NearDuplicates}  # for the whole text


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
        near_duplicates: Which rows go because they are near others, after the repeated ones; None for none.
    """

    steps: tuple[Step, ...] = ()
    duplicates: Duplicates = field(default_factory=lambda: Duplicates(on=()))
    near_duplicates: NearDuplicates | None = None

    def make_steps(self, languages: tuple[str, str]) -> list[RowStep]:
        """The filters and repairs for rows of these languages, in order.

        Raises:
            SettingsError: The value of an option is refused.
        """
        return [step.make(languages) for step in self.steps]

    @property
    def further_columns(self) -> int:
        """Columns that filters read behind the two texts."""
        names = ("label", "paraphrase_score")
        read = [
            step.options.get("column", 0) for step in self.steps if step.name in names and "model" not in step.options
        ]
        return max((column + 1 for column in read), default=0)

    def as_json(self) -> list[dict[str, Any]]:
        """The list as JSON values; `parse_cleaning` reads it back."""
        steps = [{step.name: {name: plain(value) for name, value in step.options.items()}} for step in self.steps]
        near = [{NearDuplicates.name: self.near_duplicates.as_json()}] if self.near_duplicates else []
        return [*steps, {Duplicates.name: self.duplicates.as_json()}, *near]


def parse_cleaning(items: Sequence[Any], where: str) -> Cleaning:
    """Read a list of cleaning steps.

    Args:
        items: Names of steps, or mappings of one name to its options; `duplicates` and `near_duplicates` are among
            the names, and apply to the whole text after the steps, wherever they are.
        where: The name of the list in messages, for example that of its file.

    Raises:
        SettingsError: An entry is not a step, an option is unknown or missing, its value is refused, or a step comes
            twice; the message names the entry and lists what is known.
    """
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise SettingsError(f"{where}: a list of steps is expected, like `- markup`; saw {short(items)}")
    steps: dict[str, Step] = {}
    whole: dict[str, Any] = {}
    for number, item in enumerate(items, start=1):
        entry = f"{where}: entry {number}"
        name, options = _entry(item, entry)
        if name in steps or name in whole:
            raise SettingsError(f"{entry}: {name} occurs twice; remove one of the entries")
        if name in _WHOLE:
            _check_names(name, options, option_names(_WHOLE[name]), entry)
            whole[name] = _made(_WHOLE[name], options, entry)
        else:
            steps[name] = _step(name, options, entry)
    return Cleaning(tuple(steps.values()), **whole)


def read_cleaning(path: str | Path) -> Cleaning:
    """Read a YAML file with a list of cleaning steps.

    Raises:
        SettingsError: The file is missing or not YAML, or its list is refused, see `parse_cleaning`.
    """
    try:
        items = yaml.load(Path(path).read_bytes(), _Loader)
    except OSError as error:
        seen = f"{path}: no list of filters can be read ({error.strerror})"
        raise SettingsError(f"{seen}; give a YAML file, or {', '.join(NAMED)}") from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise SettingsError(f"{path}: not readable as YAML: {one_line(error)}") from error
    return parse_cleaning(items, str(path))


def default_cleaning() -> Cleaning:
    """The recommended cleaning of parallel text: `default.yaml`.

    Example:
        >>> from st_paragram import PrepareSettings, default_cleaning
        >>> settings = PrepareSettings(("en", "es"), cleaning=default_cleaning())
    """
    return named_cleaning("default")


def named_cleaning(name: str) -> Cleaning:
    """A list that comes with the package, `default`, `paper` or `paranmt`, or that of a YAML file."""
    return read_cleaning(Path(__file__).with_name(f"{name}.yaml") if name in NAMED else name)


def only_length(*values: Any, **options: Any) -> Cleaning:  # noqa: ANN401
    """Filter by length alone, with the options of `Length`, and keep one of equal pairs.

    Raises:
        SettingsError: The value of an option is refused.
    """
    return Cleaning((Step(Length.name, Length(*values, **options).identity()),), Duplicates((Key.PAIR,)))


class _Loader(yaml.SafeLoader):
    """YAML in which `on` is a name and `no` a language: only true and false are truth values, as in YAML 1.2."""


_BOOL = "tag:yaml.org,2002:bool"
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOL]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOL, re.compile("true|True|TRUE|false|False|FALSE"), list("tTfF"))


def _entry(item: object, entry: str) -> tuple[str, dict[str, Any]]:
    known = ", ".join([*STEPS, *_WHOLE])
    if isinstance(item, str):
        item = {item: None}
    if not isinstance(item, Mapping) or len(item) != 1:
        raise SettingsError(
            f"{entry}: one step is expected, `- name` or `- name: {{option: value}}`; saw {short(item)}"
        )
    ((name, options),) = item.items()
    if name not in STEPS and name not in _WHOLE:
        raise SettingsError(f"{entry}: unknown step {short(name)}; known are {known}")
    options = {} if options is None else options
    if not isinstance(options, Mapping) or not all(isinstance(option, str) for option in options):
        raise SettingsError(f"{entry}: {name}: options are expected, `{{option: value}}`; saw {short(options)}")
    return name, dict(options)


def _step(name: str, options: dict[str, Any], entry: str) -> Step:
    cls = step_class(name)
    names = option_names(cls)
    _check_names(name, options, names, entry)
    if missing := [option for option, needed in names.items() if needed and option not in options]:
        raise SettingsError(f"{entry}: {name} needs {', '.join(missing)}")
    step = Step(name, {option: tuple(v) if isinstance(v, list) else v for option, v in options.items()})
    _made(step.make, {"languages": ("en", "en")}, entry)  # options are accepted or not whatever the languages
    return step


def _check_names(name: str, options: Mapping[str, Any], known: Collection[str], entry: str) -> None:
    if unknown := [option for option in options if option not in known]:
        there = f"known are {', '.join(known)}" if known else "it has no options"
        raise SettingsError(f"{entry}: {name} has no option {', '.join(map(short, unknown))}; {there}")


def _made(make: Callable[..., Made], arguments: Mapping[str, Any], entry: str) -> Made:
    try:
        return make(**arguments)
    except ParagramError as error:
        raise SettingsError(f"{entry}: {error}") from error
