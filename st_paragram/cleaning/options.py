"""Checks of a filter's options; what they refuse is named by filter, option and value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, NoReturn, TypeVar

from st_paragram.errors import SettingsError

Choice = TypeVar("Choice", bound=Enum)


def refuse(filter_name: str, option: str, value: object, expected: str) -> NoReturn:
    """Raise a SettingsError: `ratio: max is 0.5; it must be a number of at least 1`."""
    raise SettingsError(f"{filter_name}: {option} is {value!r}; it must be {expected}")


def check_number(filter_name: str, option: str, value: object, low: float, high: float = math.inf) -> None:
    """Refuse what is no finite number in `low` .. `high`, both included.

    Raises:
        SettingsError: it is not.
    """
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not low <= value <= high:  # type: ignore[arg-type, operator]
        span = f"of at least {low:g}" if high == math.inf else f"in {low:g} .. {high:g}"
        refuse(filter_name, option, value, f"a number {span}")


def check_count(filter_name: str, option: str, value: object, low: int = 0) -> None:
    """Refuse what is no whole number of at least `low`.

    Raises:
        SettingsError: it is not.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        refuse(filter_name, option, value, f"a whole number of at least {low}")


def check_languages(filter_name: str, value: object) -> None:
    """Refuse what is no pair of language codes.

    Raises:
        SettingsError: it is not.
    """
    pair = isinstance(value, tuple) and len(value) == 2
    if not pair or not all(isinstance(code, str) and code for code in value):  # type: ignore[attr-defined]
        refuse(filter_name, "languages", value, 'a pair of language codes like ("en", "es")')


def as_choice(filter_name: str, option: str, value: object, choices: type[Choice]) -> Choice:
    """The member of an enum that a value names.

    Raises:
        SettingsError: there is none.
    """
    try:
        return choices(value)
    except ValueError:
        refuse(filter_name, option, value, " or ".join(str(choice.value) for choice in choices))


def as_choices(filter_name: str, option: str, value: object, choices: type[Choice]) -> tuple[Choice, ...]:
    """The members of an enum that a list names, or one name alone; at least one, each once, in the order given.

    Raises:
        SettingsError: an item names none, or there is none.
    """
    items: Iterable[Any] = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    found = tuple(dict.fromkeys(as_choice(filter_name, option, item, choices) for item in items))
    return found or refuse(filter_name, option, value, "at least one of " + ", ".join(str(c.value) for c in choices))


def set_field(instance: object, name: str, value: object) -> None:
    """Set a field of a frozen dataclass while it is being made: an option in its proper form."""
    object.__setattr__(instance, name, value)
