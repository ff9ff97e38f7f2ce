"""Texts to embeddings, batch by batch, for all classes of averaging models.

Columns of pandas, polars, Arrow and datasets are recognized by their methods, so none of these
libraries is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, KeysView, Mapping, Set
from typing import Any

import numpy as np

from st_paragram.core.arrays import Vectors
from st_paragram.core.embedding_table import Table, normalize
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError, short

#: Texts tokenized and averaged at a time: enough for several threads, few enough for their ids to
#: stay in the cache.
BATCH_SIZE = 4096


def embed(
    texts: list[str],
    tokenizer: Tokenizer,
    table: Table,
    *,
    unit_vectors: bool = False,
    normalized: bool = False,
    truncate_dim: int | None = None,
    prompt: str | None = None,
    batch_size: int = BATCH_SIZE,
    threads: int = 1,
    progress: bool = False,
) -> Vectors:
    """Return embeddings in the order of the texts, float32 (N, D) or, truncated, fewer columns.

    Args:
        texts: The N texts.
        tokenizer: Tokenizer whose ids are rows of the table.
        table: Embedding matrix.
        unit_vectors: Scale full vectors to length 1, before truncation.
        normalized: Scale results to length 1.
        truncate_dim: Number of first dimensions to keep; None: all.
        prompt: Text to put before each text.
        batch_size: Number of texts embedded at a time.
        threads: Threads of tokenizer and kernels.
        progress: Show a progress bar.
    """
    columns = len(range(table.dimension)[:truncate_dim])
    is_truncated = columns < table.dimension
    scale_means = unit_vectors or (normalized and not is_truncated)
    # Ordinary memory: the system would have to find huge pages for every result, which can take
    # longer.
    rows = np.empty((len(texts), columns), dtype=np.float32)
    steps: Iterable[int] = range(0, len(texts), batch_size)
    if progress:
        from tqdm.autonotebook import tqdm

        steps = tqdm(steps, desc="Batches")
    for begin in steps:
        batch = texts[begin : begin + batch_size]
        out = rows[begin : begin + batch_size]
        prompted = [prompt + text for text in batch] if prompt else batch
        ids, offsets = tokenizer.encode_rows(prompted, None, threads)
        means = np.empty((len(batch), table.dimension), np.float32) if is_truncated else out
        is_finite = table.fill_means(ids, offsets, means, scale_means, threads)
        if is_truncated:
            out[:] = means[:, :columns]
            if normalized:
                normalize(out)
        if not is_finite:
            _check_finite(out, batch)
    return rows


def _check_finite(vectors: Vectors, texts: list[str]) -> None:
    """Refuse embeddings with NaN or infinite values."""
    is_finite = np.isfinite(vectors).all(axis=1)
    if not is_finite.all():
        text = texts[int(np.argmin(is_finite))]
        raise ModelDirectoryError(
            f"the embedding of {short(text)} has NaN or infinite values; the model is damaged or"
            " was not trained properly: use another model"
        )


def list_of_texts(inputs: Any) -> list[str]:
    """Return the strings of a list (unchanged), an array, a column, or any iterable."""
    rows = as_list(inputs)
    if set(map(type, rows)) <= {str}:
        return rows
    texts = []
    for position, text in enumerate(rows):
        if not isinstance(text, str):
            raise SettingsError(
                f"text {position:,} of {len(rows):,} (counted from 0) is {short(text)}"
                f" ({type(text).__name__}); give only strings"
            )
        texts.append(str(text))  # of a subclass, such as numpy.str_
    return texts


def as_list(inputs: Any) -> list[Any]:
    """Return the values of a column, an array or an iterable; a list is returned unchanged."""
    if type(inputs) is list:
        return inputs
    kind = type(inputs).__name__
    is_unordered = isinstance(inputs, Mapping | Set) and not isinstance(inputs, KeysView)
    is_text = isinstance(inputs, str | bytes | bytearray)
    if is_text or is_unordered or not hasattr(inputs, "__iter__"):
        raise SettingsError(f"texts of type {kind}; give a string or a list of strings")
    shape = getattr(inputs, "shape", None)
    if isinstance(shape, tuple) and len(shape) != 1:
        raise SettingsError(f"texts of type {kind}, shape {tuple(shape)}; give one column")
    for method in ("to_pylist", "to_list", "tolist"):  # Arrow's, of polars and pandas, and NumPy's
        if hasattr(inputs, method):
            return list(getattr(inputs, method)())
    return list(inputs)
