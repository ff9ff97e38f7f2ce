"""Options of cleaning steps: settings, refused in messages that begin with the name of the step."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator
from typing_extensions import dataclass_transform

from st_paragram.core.settings import settings

_Options = TypeVar("_Options")
_Choice = TypeVar("_Choice", bound=Enum)


@dataclass_transform(frozen_default=True)
def options(cls: type[_Options]) -> type[_Options]:
    """Make a class with fields made by `setting` a frozen dataclass whose options are checked, see `settings`.

    A wrong value raises `SettingsError`, which begins with the name of the step: `ratio: max is 0.5; ...`.
    """
    return settings(cls, f"{cls.name}: ")  # type: ignore[attr-defined]


def plain(value: Any) -> Any:  # noqa: ANN401
    """The value of an option as JSON holds it."""
    if isinstance(value, Enum):
        return value.value
    return [plain(part) for part in value] if isinstance(value, (tuple, list)) else value


def _listed(value: object) -> object:
    """A single word counts as a list of one."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _once(values: tuple[_Choice, ...]) -> tuple[_Choice, ...]:
    return tuple(dict.fromkeys(values))


def _some(values: tuple[_Choice, ...]) -> tuple[_Choice, ...]:
    if not values:
        raise ValueError("at least one is expected")
    return values


def _pair_of_codes(value: object) -> object:
    pair = isinstance(value, (tuple, list)) and len(value) == 2
    if not pair or not all(isinstance(code, str) and code for code in value):  # type: ignore[attr-defined]
        raise ValueError('a pair of language codes like ("en", "es") is expected')
    return value


AnyOf = Annotated[tuple[_Choice, ...], BeforeValidator(_listed), AfterValidator(_once)]
"""Members of an enum, each once, in the order given."""
SomeOf = Annotated[AnyOf[_Choice], AfterValidator(_some)]
"""At least one member of an enum, each once, in the order given."""
Languages = Annotated[tuple[str, str], BeforeValidator(_pair_of_codes)]
"""Codes of the two sides of a row."""
