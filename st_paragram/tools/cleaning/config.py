"""Cleaning configurations in YAML: lists of filters and repairs, and what to do with duplicates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import yaml
from pydantic_core import to_jsonable_python

from st_paragram.core.settings import fields_of, setting, yaml_problem
from st_paragram.errors import ParagramError, SettingsError, short
from st_paragram.tools.cleaning.base import AnyOf, RowStep, options
from st_paragram.tools.cleaning.known_sentences import KnownTestSentences
from st_paragram.tools.cleaning.languages import Language
from st_paragram.tools.cleaning.markup import Markup, SoftHyphens
from st_paragram.tools.cleaning.numbers import Numbers
from st_paragram.tools.cleaning.paraphrases import Label, Overlap, ParaphraseScore
from st_paragram.tools.cleaning.repair_encoding import RepairEncoding
from st_paragram.tools.cleaning.shape import Copied, CutOff, Length, Ratio, Script
from st_paragram.tools.cleaning.swapped import Swapped

#: The included lists of filters.
NAMED = ("default", "paper", "paranmt", "memory")
#: The filters and repairs by name.
_CLASSES: tuple[type[RowStep], ...] = (
    Length,
    Ratio,
    Copied,
    Script,
    Language,
    Markup,
    KnownTestSentences,
    Overlap,
    ParaphraseScore,
    Label,
    RepairEncoding,
    SoftHyphens,
    Swapped,
    Numbers,
    CutOff,
)
STEPS = {step.name: step for step in _CLASSES}

Key = Literal["pair", "first", "second"]
"""What makes two rows equal: both sides, or one of them."""
Copies = Literal["one", "none"]
"""How many equal rows to keep: one, or none, as with `sort | uniq -u` in the authors' script."""


@options
class Duplicates:
    """Which repeated rows to drop, in the whole text and after all steps."""

    name: ClassVar[str] = "duplicates"

    on: AnyOf[Key] = setting(
        ("pair",), "criteria for equal rows, applied in order; an empty list keeps all rows"
    )
    copies: Copies = setting("one", "number of equal rows to keep: one or none")


@dataclass(frozen=True)
class Step:
    """A filter or a repair in the list, by name, with options that differ from their defaults."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def make(self, languages: tuple[str, str]) -> RowStep:
        """Make the filter or repair for rows in these languages."""
        step = STEPS[self.name]
        if "languages" in fields_of(step):
            return step(languages=languages, **self.options)  # type: ignore[call-arg]
        return step(**self.options)


@dataclass(frozen=True)
class Cleaning:
    """A cleaning configuration: filters and repairs in order, and which repeated rows to drop."""

    steps: tuple[Step, ...] = ()
    duplicates: Duplicates = field(default_factory=lambda: Duplicates(on=()))

    def make_steps(self, languages: tuple[str, str]) -> list[RowStep]:
        """Make the filters and repairs for rows in these languages, in order."""
        return [step.make(languages) for step in self.steps]

    @property
    def further_columns(self) -> int:
        """Number of columns after the two texts that filters read."""
        columns = 0
        for step in self.steps:
            if step.name in (Label.name, ParaphraseScore.name) and "model" not in step.options:
                columns = max(columns, step.options.get("column", 0) + 1)
        return columns

    def as_json(self) -> list[dict[str, Any]]:
        """Return the list as JSON values, which `parse_cleaning` can read."""
        steps: list[dict[str, Any]] = [{step.name: step.options} for step in self.steps]
        steps.append({Duplicates.name: asdict(self.duplicates)})  # type: ignore[call-overload]
        return list(to_jsonable_python(steps))


def parse_cleaning(items: Sequence[Any], where: str) -> Cleaning:
    """Read a list of cleaning steps: names of steps, or mappings of one name to its options.

    `duplicates` applies to the whole text after the steps, wherever it is in the list. A wrong
    entry raises `SettingsError`; the message begins with `where`, such as the name of the file, and
    the number of the entry.
    """
    if not isinstance(items, Sequence) or isinstance(items, str):
        problem = "no steps" if items is None else f"{short(items)} is not a list of steps"
        raise SettingsError(f"{where}: {problem}; write lines such as `- markup`")
    steps = dict[str, Step]()
    duplicates: Duplicates | None = None
    for number, item in enumerate(items, start=1):
        try:
            name, values = _entry(item)
            if name in steps or (name == Duplicates.name and duplicates):
                raise SettingsError(f"{name} occurs twice; remove one of the entries")
            if name == Duplicates.name:
                duplicates = Duplicates(**values)
            else:
                steps[name] = Step(name, values)
                # the validity of options does not depend on the languages
                steps[name].make(("en", "en"))
        except ParagramError as error:
            raise SettingsError(f"{where}: entry {number}: {error}") from error
    return Cleaning(tuple(steps.values()), duplicates or Duplicates(on=()))


def _entry(item: object) -> tuple[str, Mapping[str, Any]]:
    entry = {item: None} if isinstance(item, str) else item
    if not isinstance(entry, Mapping) or len(entry) != 1:
        raise SettingsError(
            f"{short(item)} is not one step; write `- name` or `- name: {{option: value}}`"
        )
    name = next(iter(entry))
    values = {} if entry[name] is None else entry[name]
    known_steps = [*STEPS, Duplicates.name]
    if name not in known_steps:
        raise SettingsError(f"unknown step {short(name)}; known steps: {', '.join(known_steps)}")
    if not isinstance(values, Mapping) or not all(isinstance(option, str) for option in values):
        raise SettingsError(
            f"{name}: {short(values)} is not a mapping of options; write `{{option: value}}`"
        )
    if "languages" in values:
        raise SettingsError(
            f"{name}: languages cannot be set, they are those of the rows; leave them out"
        )
    return name, values


def read_cleaning(path: str | Path) -> Cleaning:
    """Read a YAML file with a list of cleaning steps, see `parse_cleaning`."""
    try:
        items = yaml.load(Path(path).read_bytes(), _Loader)
    except OSError as error:
        raise SettingsError(
            f"{path}: list of filters cannot be read ({error.strerror});"
            f" give a YAML file, or {', '.join(NAMED)}"
        ) from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise SettingsError(
            f"{path}: not readable as YAML ({yaml_problem(error, path)}); give a YAML file, or"
            f" {', '.join(NAMED)}"
        ) from error
    return parse_cleaning(items, str(path))


def named_cleaning(name: str) -> Cleaning:
    """Return an included list, see `NAMED`, or read the list of a YAML file."""
    return read_cleaning(Path(__file__).with_name(f"{name}.yaml") if name in NAMED else name)


def default_cleaning() -> Cleaning:
    """Return the recommended cleaning of parallel text, `default.yaml`.

    Examples:
        >>> from st_paragram import PrepareSettings, default_cleaning
        >>> settings = PrepareSettings(("en", "es"), cleaning=default_cleaning())
    """
    return named_cleaning("default")


def only_length(*values: Any, **options: Any) -> Cleaning:
    """Filter only by length, with the options of `Length`, and keep one of equal pairs."""
    step = Step(Length.name, Length(*values, **options).identity())
    return Cleaning((step,), Duplicates(("pair",)))


class _Loader(yaml.SafeLoader):
    """YAML in which `on` is a name and `no` a language; only true and false are booleans."""


_BOOL = "tag:yaml.org,2002:bool"
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _BOOL]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOL, re.compile("true|True|TRUE|false|False|FALSE"), list("tTfF"))
