"""Texts in the containers that people have them in."""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np


def iterables(rows: list[Any]) -> Iterator[tuple[str, Any]]:
    """What Python and NumPy have; each can be read once."""
    yield "list", list(rows)
    yield "tuple", tuple(rows)
    yield "array of objects", np.array(rows, dtype=object)
    yield "generator", (row for row in rows)
    yield "map", map(lambda row: row, rows)
    yield "values of a dictionary", dict(enumerate(rows)).values()
    yield "deque", deque(rows)


def columns(rows: list[str | None]) -> Iterator[tuple[str, Any]]:
    """Columns of strings, some perhaps missing, of the libraries that are installed."""
    if None not in rows:
        yield "array of strings", np.array(rows, dtype=str)
        yield "keys of a dictionary", dict.fromkeys(rows).keys()
    if pandas := _installed("pandas"):
        yield "pandas", pandas.Series(rows, index=range(len(rows), 0, -1), dtype=object)
        yield "pandas, string", pandas.Series(rows, dtype="string")
        yield "pandas, category", pandas.Series(rows, dtype="category")
        yield "pandas, index", pandas.Index(rows, dtype=object)
    if polars := _installed("polars"):
        yield "polars", polars.Series(rows, dtype=polars.String)
        yield "polars, category", polars.Series(rows, dtype=polars.Categorical)
    if arrow := _installed("pyarrow"):
        for kind in (arrow.string(), arrow.large_string()):
            yield f"arrow, {kind}", arrow.array(rows, kind)
        yield "arrow, dictionary", arrow.array(rows, arrow.string()).dictionary_encode()
        yield "arrow, chunks", arrow.chunked_array([rows[:1], rows[1:]], arrow.string())
    if datasets := _installed("datasets"):
        yield "datasets", datasets.Dataset.from_dict({"text": rows})["text"]


def _installed(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
