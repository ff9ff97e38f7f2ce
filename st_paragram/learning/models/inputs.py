"""What a SentenceTransformer of this package takes for texts, besides what sentence-transformers takes."""

from __future__ import annotations

import functools
from collections.abc import Callable, KeysView, Mapping, Set
from typing import Any, TypeVar, cast

import numpy as np
from torch import Tensor

from st_paragram.core.encoding.embed import as_list, list_of_texts

_Method = TypeVar("_Method", bound=Callable[..., Any])
# What may be a row next to texts, or one input: ids, messages, other modalities. The base class knows.
_NOT_TEXT = (list, tuple, Mapping, np.ndarray, Tensor)


def listed(inputs: Any) -> tuple[Any, bool]:  # noqa: ANN401 - as `SentenceTransformer.encode` has it
    """Columns, arrays of texts, generators and other iterables as a list; everything else as it is.

    Args:
        inputs: the first argument of `encode`.

    Returns:
        The inputs, and whether they are a list of strings, at least one.

    Raises:
        SettingsError: a row that is None, NaN, a number, bytes or the like, with its position from 0; or a whole table.
    """
    if isinstance(inputs, np.ndarray) and (inputs.ndim != 1 or inputs.dtype.kind not in "UO"):
        return inputs, False
    unordered = isinstance(inputs, Mapping | Set) and not isinstance(inputs, KeysView)
    if unordered or isinstance(inputs, str | bytes | Tensor) or not hasattr(inputs, "__iter__"):
        return inputs, False
    rows = as_list(inputs)
    kinds = set(map(type, rows))
    if kinds == {str}:
        return rows, True
    if all(issubclass(kind, str) for kind in kinds) or not all(issubclass(kind, (str, *_NOT_TEXT)) for kind in kinds):
        rows = list_of_texts(rows)
        return rows, bool(rows)
    return rows, False


def taking_columns(encode: _Method) -> _Method:
    """The method `encode` of SentenceTransformer, which takes columns of other libraries, too; see `listed`."""

    @functools.wraps(encode)
    def encode_columns(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if args:
            args = (listed(args[0])[0], *args[1:])
        elif "inputs" in kwargs:
            kwargs["inputs"] = listed(kwargs["inputs"])[0]
        return encode(self, *args, **kwargs)

    return cast("_Method", encode_columns)
