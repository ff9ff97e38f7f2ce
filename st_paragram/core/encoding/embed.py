"""Texts to embeddings, batch by batch: the arithmetic of all averaging models, whichever class offers it.

Columns of pandas, polars, Arrow and datasets are known by their methods, so none of these libraries is imported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, KeysView, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.packing import Vectors
from st_paragram.core.encoding.table import Table
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError, short

#: Texts tokenized and averaged at a time: enough to share among threads, few enough for their ids to stay in the cache.
BATCH_SIZE = 4096


@dataclass(slots=True)  # frozen, it takes three times as long to make
class Embedding:
    """How texts become embeddings."""

    tokenizer: Tokenizer
    table: Table
    unit_vectors: bool = False  # whole vectors have length 1, before components are cut off
    normalized: bool = False  # results have length 1
    truncate_dim: int | None = None  # components of a result; all if None
    prompt: str | None = None  # put before each text
    batch_size: int = BATCH_SIZE  # texts at a time
    threads: int = 1  # of tokenizer and kernels
    progress: bool = False  # show a progress bar
    before_lookup: Callable[[NDArray[np.int64]], object] | None = None  # called with ids before their rows are read

    def of(self, texts: list[str]) -> Vectors:
        """Embeddings in the order of the texts, float32 (N, D) or, truncated, fewer columns."""
        # Ordinary memory: huge pages for every result would have to be found each time, which can take longer.
        rows = np.empty((len(texts), len(range(self.table.dimension)[: self.truncate_dim])), dtype=np.float32)
        steps: Iterable[int] = range(0, len(texts), self.batch_size)
        if self.progress:
            from tqdm.autonotebook import tqdm

            steps = tqdm(steps, desc="Batches")
        for first in steps:
            self._fill(rows[first : first + self.batch_size], texts[first : first + self.batch_size])
        return rows

    def _fill(self, out: Vectors, texts: list[str]) -> None:
        if self.prompt:
            texts = [self.prompt + text for text in texts]
        encode = getattr(self.tokenizer, "encode_rows", self.tokenizer.encode)  # ids of the type that the kernels read
        ids, offsets = encode(texts, None, self.threads)
        if self.before_lookup is not None:
            self.before_lookup(ids.astype(np.int64))
        if out.shape[1] == self.table.dimension:
            self.table.means(ids, offsets, out, self.unit_vectors or self.normalized, self.threads)
        else:
            out[:] = self.table.means(ids, offsets, None, self.unit_vectors, self.threads)[:, : out.shape[1]]
            if self.normalized:  # the mean of one row is the row itself, so the kernel only scales it
                Table(out.copy()).means(np.arange(len(out)), np.arange(len(out) + 1), out, True, self.threads)
        # Integers with the scales that `map_table` lets in are finite. A dot product takes 1 % of the time of encoding.
        if self.table.scale is None and not math.isfinite((flat := out.reshape(-1)).dot(flat)):
            for text, row in zip(texts, out, strict=True):
                if not np.isfinite(row).all():
                    seen = f"the embedding of {short(text)} has NaN or infinite components"
                    raise ModelDirectoryError(f"{seen}; the model is damaged or was not trained properly: use another")


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
    kind, shape = type(inputs).__name__, getattr(inputs, "shape", None)
    unordered = isinstance(inputs, Mapping) or (isinstance(inputs, Set) and not isinstance(inputs, KeysView))
    if isinstance(inputs, str | bytes | bytearray) or unordered or not hasattr(inputs, "__iter__"):
        raise SettingsError(f"texts of type {kind}; give a string or a list of strings")
    if isinstance(shape, tuple) and len(shape) != 1:
        raise SettingsError(f"texts of type {kind}, shape {tuple(shape)}; give one column")
    methods = ("to_pylist", "to_list", "tolist")  # Arrow's, those of polars and pandas, and NumPy's
    convert = next((getattr(inputs, name) for name in methods if hasattr(inputs, name)), None)
    return list(inputs if convert is None else convert())
