"""What `encode` takes for texts, and one list of strings from all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any

from st_paragram.core.damage import short
from st_paragram.errors import SettingsError

# How columns of other libraries become lists: pyarrow's, polars', numpy's and pandas'.
_TO_LIST = ("to_pylist", "to_list", "tolist")


def list_of_texts(inputs: Any) -> list[str]:  # noqa: ANN401 - whatever users have
    """The strings of a list, a tuple, a one-dimensional array, a column of pandas, polars or Arrow, or any iterable.

    Args:
        inputs: several texts; a list of strings is returned as it is.

    Raises:
        SettingsError: a value that is not a string (None, NaN, a number, bytes), with its position from 0; or
            something that has no order or no texts.
    """
    if type(inputs) is not list:
        inputs = _as_list(inputs)
    if set(map(type, inputs)) - {str}:
        for position, text in enumerate(inputs):
            if not isinstance(text, str):
                raise SettingsError(
                    f"text {position} of {len(inputs)} is {short(text)} ({type(text).__name__}); give strings only "
                    "(counted from 0)"
                )
        inputs = list(map(str, inputs))  # subclasses, such as numpy.str_
    return inputs  # type: ignore[no-any-return]


def _as_list(inputs: Any) -> list[Any]:  # noqa: ANN401
    if isinstance(inputs, bytes | bytearray | Mapping | Set) or not hasattr(inputs, "__iter__"):
        raise SettingsError(f"texts of type {type(inputs).__name__}; give a string or a list of strings")
    if getattr(inputs, "ndim", 1) != 1:
        raise SettingsError(f"texts in an array of shape {tuple(inputs.shape)}; give one dimension")
    convert: Callable[[], Any] | None = next(
        (method for name in _TO_LIST if (method := getattr(inputs, name, None)) is not None), None
    )
    return list(inputs if convert is None else convert())
