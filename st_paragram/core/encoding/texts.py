"""What `encode` takes for several texts, as one list of strings.

Columns of pandas, polars, Arrow and datasets are known by their methods, so none of these libraries is imported.
"""

from __future__ import annotations

from collections.abc import KeysView, Mapping, Set
from typing import Any

from st_paragram.errors import SettingsError, short

# How columns of other libraries become lists: Arrow's, those of polars and pandas, and NumPy's.
_TO_LIST = ("to_pylist", "to_list", "tolist")


def list_of_texts(inputs: Any) -> list[str]:  # noqa: ANN401 - whatever users have
    """The strings of a list, which is returned as it is, a one-dimensional array, a column, or any iterable."""
    rows = as_list(inputs)
    if set(map(type, rows)) - {str}:
        for position, text in enumerate(rows):
            if not isinstance(text, str):
                seen = f"text {position} of {len(rows)} is {short(text)} ({type(text).__name__})"
                raise SettingsError(f"{seen}; give strings only (counted from 0)")
        rows = list(map(str, rows))  # subclasses, such as numpy.str_
    return rows


def as_list(inputs: Any) -> list[Any]:  # noqa: ANN401
    """The values of a column, an array of one dimension or an iterable; a list is returned as it is."""
    if type(inputs) is list:
        return inputs
    kind = type(inputs).__name__
    unordered = isinstance(inputs, Mapping) or (isinstance(inputs, Set) and not isinstance(inputs, KeysView))
    if isinstance(inputs, str | bytes | bytearray) or unordered or not hasattr(inputs, "__iter__"):
        raise SettingsError(f"texts of type {kind}; give a string or a list of strings")
    shape = getattr(inputs, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 1:
        raise SettingsError(f"texts of type {kind}, shape {tuple(shape)}; give one column")
    convert = next((getattr(inputs, name) for name in _TO_LIST if hasattr(inputs, name)), None)
    return list(inputs if convert is None else convert())
