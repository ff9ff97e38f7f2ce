"""Texts to embeddings, batch by batch: the computation shared by all classes of averaging models.

Columns of pandas, polars, Arrow and datasets are recognized by their methods, so none of these
libraries is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, KeysView, Mapping, Set
from typing import Any

import numpy as np

from st_paragram.core.embedding_table import Table, normalize
from st_paragram.core.quantization import Vectors
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError, short

#: Texts tokenized and averaged at a time: enough for several threads, few enough for their ids to
#: stay in the cache.
BATCH_SIZE = 4096


def embed(
    texts: list[str],
    tokenizer: Tokenizer,
    table: Table,
    unit_vectors: bool = False,  # full vectors have length 1, before truncation
    normalized: bool = False,  # results have length 1
    truncate_dim: int | None = None,  # dimensions of a result; all if None
    prompt: str | None = None,  # put before each text
    batch_size: int = BATCH_SIZE,  # texts at a time
    threads: int = 1,  # of tokenizer and kernels
    progress: bool = False,  # show a progress bar
) -> Vectors:
    """Return embeddings in the order of the texts, float32 (N, D) or, truncated, fewer columns."""
    columns = len(range(table.dimension)[:truncate_dim])
    # Ordinary memory: the system would have to find huge pages for every result, which can take
    # longer.
    rows = np.empty((len(texts), columns), dtype=np.float32)
    # the former gives ids of the kernels' type
    encode = getattr(tokenizer, "encode_rows", tokenizer.encode)
    steps: Iterable[int] = range(0, len(texts), batch_size)
    if progress:
        from tqdm.autonotebook import tqdm

        steps = tqdm(steps, desc="Batches")
    for first in steps:
        some, out = texts[first : first + batch_size], rows[first : first + batch_size]
        ids, offsets = encode([prompt + text for text in some] if prompt else some, None, threads)
        cut = columns < table.dimension
        whole = np.empty((len(some), table.dimension), np.float32) if cut else out
        finite = table.fill_means(
            ids, offsets, whole, unit_vectors or (normalized and not cut), threads
        )
        if cut:
            out[:] = whole[:, :columns]
            if normalized:
                normalize(out)
        if not finite and len(bad := np.flatnonzero(~np.isfinite(out).all(axis=1))):
            seen = f"the embedding of {short(some[bad[0]])} has NaN or infinite values"
            raise ModelDirectoryError(
                f"{seen}; the model is damaged or was not trained properly: use another model"
            )
    return rows


def list_of_texts(inputs: Any) -> list[str]:
    """Return the strings of a list (unchanged), a one-dimensional array, a column, or any iterable."""
    rows = as_list(inputs)
    if set(map(type, rows)) - {str}:
        for position, text in enumerate(rows):
            if not isinstance(text, str):
                seen = (
                    f"text {position} of {len(rows)} (counted from 0) is {short(text)}"
                    f" ({type(text).__name__})"
                )
                raise SettingsError(f"{seen}; give only strings")
        rows = list(map(str, rows))  # subclasses, such as numpy.str_
    return rows


def as_list(inputs: Any) -> list[Any]:
    """Return the values of a column, a one-dimensional array or an iterable; a list is returned
    unchanged.
    """
    if type(inputs) is list:
        return inputs
    kind, shape = type(inputs).__name__, getattr(inputs, "shape", None)
    unordered = isinstance(inputs, Mapping) or (
        isinstance(inputs, Set) and not isinstance(inputs, KeysView)
    )
    if isinstance(inputs, str | bytes | bytearray) or unordered or not hasattr(inputs, "__iter__"):
        raise SettingsError(f"texts of type {kind}; give a string or a list of strings")
    if isinstance(shape, tuple) and len(shape) != 1:
        raise SettingsError(f"texts of type {kind}, shape {tuple(shape)}; give one column")
    methods = ("to_pylist", "to_list", "tolist")  # Arrow's, those of polars and pandas, and NumPy's
    convert = next((getattr(inputs, name) for name in methods if hasattr(inputs, name)), None)
    return list(inputs if convert is None else convert())
