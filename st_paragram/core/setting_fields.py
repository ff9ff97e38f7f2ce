"""What is known of the fields of a class of settings, in the words of messages, command lines and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin

import pydantic
from pydantic.fields import FieldInfo

from st_paragram.errors import one_line, short

_OWN_FORM = (pydantic.BeforeValidator, pydantic.PlainValidator, pydantic.WrapValidator)
_KINDS = {bool: "yes or no", int: "a whole number", float: "a number", Path: "a path", str: "text"}
_METAVARS: dict[Any, str] = {int: "N", float: "X", Path: "PATH", str: "NAME"}
_LIMITS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
_OUTSIDE = ("greater_than_equal", "greater_than", "less_than_equal", "less_than")


@dataclass(frozen=True)
class SettingField:
    """What is known of a field.

    Attributes:
        name: Of the field.
        info: What pydantic knows.
        own_form: Its values are written in a special form, such as 4G, which only its class can read.
    """

    name: str
    info: FieldInfo
    own_form: bool

    @property
    def words(self) -> list[str]:
        """The words that it may be, if it is a choice."""
        return choices(self.info.annotation)

    @property
    def kinds(self) -> list[Any]:
        """The types of single values that it may have."""
        members = _members(self.info.annotation)
        return [] if self.own_form else [kind for kind in _KINDS if kind in members]

    def is_mistaken(self, value: object, numbers_as_text: bool = True) -> bool:
        """Whether pydantic would make another kind of it: 1 of True, True of 1, 3 of "3", and 0.001 of "1e-3"."""
        if value is None or not self.kinds:
            return False
        if isinstance(value, bool) or self.kinds == [bool]:
            return not (isinstance(value, bool) and bool in self.kinds)
        return isinstance(value, str) and self.kinds in ([int], [] if numbers_as_text else [float])

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

    def refusal(self, error: Any) -> str:  # noqa: ANN401
        """One line: the setting, what was given, what is expected; `error` as pydantic describes it."""
        kind, expected = error["type"], self.expected
        if kind == "missing":
            return f"{self.name} is missing; it must be given"
        if kind in _OUTSIDE:
            expected = f"it must be {self.limits}"
        elif kind == "finite_number":
            expected = "a finite number is expected"
        elif not (self.words or self.kinds):
            expected = one_line(
                str(error.get("ctx", {}).get("error") or error["msg"].replace("Input should be", "it must be"))
            )
        return f"{self.name} is {short(error['input'])}; {expected}"

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
    def options(self) -> list[str]:
        """Its options on the command line."""
        no = "no-" if self.info.default is True else ""
        return (self.told("option") or f"--{no}{self.name.replace('_', '-')}").split()

    def argument(self, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """What argparse needs to know of its options; `defaults` are shown instead."""
        text, flag = self.told("option_help") or str(self.info.description), self.kinds == [bool]
        default = defaults.get(self.name, self.info.get_default(call_default_factory=True))
        if not (flag or default is None or default == ""):  # the text names the default
            text += f" (default: {_in_words(default)})"
        known: dict[str, Any] = {"help": text.replace("%", "%%")}
        if flag:
            return known | {"action": "store_false" if self.info.default else "store_true"}
        if self.words:
            return known | {"choices": self.words}
        kind = next(iter(self.kinds), None)
        known["metavar"] = self.told("metavar") or _METAVARS.get(kind, "VALUE")
        return known | {"type": kind} if kind in (int, float) else known

    def told(self, name: str) -> str | None:
        """The argument of `setting` with this name."""
        return cast("dict[str, str | None]", self.info.json_schema_extra or {}).get(name)


def fields_of(cls: Any) -> dict[str, SettingField]:  # noqa: ANN401
    """The fields of a class of settings by name, in order."""
    validators = cls.__pydantic_decorators__.field_validators.values()
    decorated = {name for validator in validators for name in validator.info.fields}
    return {
        name: SettingField(name, info, name in decorated or any(isinstance(each, _OWN_FORM) for each in info.metadata))
        for name, info in cls.__pydantic_fields__.items()
    }


def choices(annotation: Any) -> list[str]:  # noqa: ANN401
    """The words that a type allows: those of a Literal or an Enum, also where None is allowed; none for other types."""
    for kind in _members(annotation):
        if get_origin(kind) is Literal:
            return [str(word) for word in get_args(kind)]
        if isinstance(kind, type) and issubclass(kind, Enum):
            return [str(member.value) for member in kind]
    return []


def _members(annotation: Any) -> tuple[Any, ...]:  # noqa: ANN401
    """The types of a union, or the one type."""
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _in_words(value: object) -> str:
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return {None: "none", True: "yes", False: "no"}[value] if isinstance(value, bool | None) else str(value)
