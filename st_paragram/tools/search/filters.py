"""Which sentences a search may find: conditions on their fields, such as `lang=es,en` and `year>=2020`."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.errors import SettingsError, one_line, short
from st_paragram.tools.search.fields import Codes, Column, Kind, Value

#: `lang=es`, several of them, or values by names: all must hold.
Where = str | Sequence[str] | Mapping[str, Value | Sequence[Value]]

_CONDITION = re.compile(r"\s*([^\s=!<>,]+)\s*(<=|>=|!=|=|<|>)\s*(.*?)\s*", re.DOTALL)


@dataclass(frozen=True)
class Condition:
    """A condition on a field.

    Attributes:
        field: Its name.
        operator: One of `=`, `!=`, `<`, `<=`, `>`, `>=`.
        values: What it is compared with, as it was given; several for `=` (one of them) and `!=` (none of them).
    """

    field: str
    operator: str
    values: tuple[Value, ...]


def conditions(where: Where | None) -> list[Condition]:
    """What a filter says.

    Raises:
        SettingsError: It cannot be read.
    """
    if where is None:
        return []
    if isinstance(where, Mapping):
        return [Condition(name, "=", _several(value)) for name, value in where.items()]
    return [_condition(text) for text in ([where] if isinstance(where, str) else where)]


def _several(value: Any) -> tuple[Value, ...]:  # noqa: ANN401
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


def _condition(text: str) -> Condition:
    found = _CONDITION.fullmatch(text)
    values = found[3].split(",") if found and found[2] in ("=", "!=") else [found[3]] if found else []
    if found is None or not all(map(str.strip, values)):
        raise SettingsError(f"filter {short(text)}: write FIELD=VALUE, with one of = != < <= > >=, such as lang=es,en")
    return Condition(found[1], found[2], tuple(map(str.strip, values)))


def check(wanted: Sequence[Condition], kinds: Mapping[str, Kind]) -> None:
    """Refuse conditions that cannot hold for any sentence, whatever its values.

    Args:
        wanted: The conditions.
        kinds: Of all fields of an index.

    Raises:
        SettingsError: A field is unknown, or is compared with a value of another kind.
    """
    for each in wanted:
        if each.field not in kinds:
            like = get_close_matches(each.field, kinds, n=1)
            known = f"did you mean {like[0]}?" if like else f"fields are {', '.join(kinds) or 'not kept in this index'}"
            raise SettingsError(f"no field {one_line(each.field)}; {known}")
        for value in each.values:
            _read(each, kinds[each.field], value)


def _read(condition: Condition, kind: Kind, value: Value) -> Value:
    """A value that a field is compared with, of the field's kind."""
    try:
        read = kind.read(value) if isinstance(value, str) else value
        if Kind.of(read).family == kind.family:
            return read
    except ValueError:
        pass
    raise SettingsError(
        f"filter {condition.field}{condition.operator}{one_line(value)}: {condition.field} is {kind.value}, "
        f"and {short(value)} is not"
    )


def passing(wanted: Sequence[Condition], columns: Mapping[str, Column], count: int) -> NDArray[np.bool_]:
    """For which of n sentences all conditions hold; one without a value passes `!=` alone.

    Args:
        wanted: The conditions, see `check`.
        columns: Fields of the sentences.
        count: Sentences, n.
    """
    passes = np.ones(count, bool)
    for each in wanted:
        column = columns.get(each.field)
        if column is None:
            passes &= each.operator == "!="
        else:
            passes &= _holds(each, column)
    return passes


def _holds(condition: Condition, column: Column) -> NDArray[np.bool_]:
    codes: Codes = column.codes
    values = [_read(condition, column.kind, value) for value in condition.values]
    if condition.operator in ("=", "!="):
        equal = np.zeros(len(column.values) + 1, bool)
        for value in values:
            begin, end = bisect_left(column.values, value), bisect_right(column.values, value)  # type: ignore[type-var]
            equal[begin + 1 : end + 1] = True
        return np.asarray(equal[codes] if condition.operator == "=" else ~equal[codes])
    value = values[0]
    below = bisect_left(column.values, value)  # type: ignore[type-var]
    up_to = bisect_right(column.values, value)  # type: ignore[type-var]
    bounds = {"<": (1, below), "<=": (1, up_to), ">": (up_to + 1, None), ">=": (below + 1, None)}
    least, most = bounds[condition.operator]
    return np.asarray((codes >= least) & (codes <= most) if most is not None else codes >= least)
