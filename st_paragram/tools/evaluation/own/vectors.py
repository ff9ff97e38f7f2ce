"""Embeddings of many texts in a temporary file, and their nearest neighbors block by block: memory stays flat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from tempfile import TemporaryFile, gettempdir
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.core.encoding.models import TextEncoder, batch_size
from st_paragram.errors import EvaluationError
from st_paragram.tools.neighbors.exact import exact, exact_both_ways
from st_paragram.tools.neighbors.results import Neighbors, Vectors, joined, united
from st_paragram.tools.neighbors.vectors import UnitRows, blocks

_TEXTS = 1 << 14  # embedded at a time
_BLOCK = 1 << 15  # rows that are compared at a time


def embedded(model: TextEncoder, texts: Sequence[str], name: str, encode: Callable[..., Any] | None = None) -> Vectors:
    """Embeddings of length 1, float32 (n, D).

    Args:
        model: any model.
        texts: n of them, at least one.
        name: of the texts, for the progress bar and errors.
        encode: how to embed; the model's `encode` if None.

    Raises:
        EvaluationError: an embedding is not finite, and the message gives its number; the temporary folder is full.
    """
    encode, at_once = encode or model.encode, batch_size(model)

    def parts() -> Iterator[Vectors]:
        with tqdm(
            total=len(texts), desc=f"Embedding {name}", unit=" texts", disable=_quiet(len(texts) > _TEXTS)
        ) as progress:
            for start in range(0, len(texts), _TEXTS):
                some = list(texts[start : start + _TEXTS])
                found = encode(some, batch_size=at_once, normalize_embeddings=True, show_progress_bar=False)
                rows = np.asarray(found, np.float32)
                if not (finite := np.isfinite(rows).all(axis=1)).all():
                    number = start + int(np.flatnonzero(~finite)[0]) + 1
                    raise EvaluationError(f"{name}: the embedding of text {number} is not finite; the model is broken")
                yield rows
                progress.update(len(rows))

    return _stored(parts())


def chosen(vectors: Vectors, rows: NDArray[np.int64]) -> Vectors:
    """Some rows of a matrix by their numbers, at least one; errors as of `embedded`."""
    return _stored(vectors[rows[begin:end]] for begin, end in blocks(len(rows), _BLOCK))


def _stored(parts: Iterable[Vectors]) -> Vectors:
    """Rows in a temporary file that the system removes with the array; written first, since a full disk kills a map."""
    try:
        with TemporaryFile() as file:
            shapes = [part.shape for part in parts if file.write(np.ascontiguousarray(part).data)]
            file.flush()
            return np.memmap(file, np.float32, "r", shape=(sum(rows for rows, _ in shapes), shapes[0][1]))
    except OSError as error:
        raise EvaluationError(f"{gettempdir()}: {error.strerror}; let TMPDIR name a folder with more room") from error


def nearest_of_each(first: Vectors, second: Vectors, k: int, name: str) -> tuple[Neighbors, Neighbors]:
    """The k nearest second rows of every first row, and the reverse; all there are where they are fewer.

    Args:
        first: float32 (n, D), of length 1.
        second: float32 (m, D), of length 1.
        k: neighbors.
        name: for the progress bar.
    """
    held, back_k = UnitRows(second), min(k, len(first))
    ahead: list[Neighbors] = []

    def parts() -> Iterator[tuple[int, Neighbors]]:
        steps = list(blocks(len(first), _BLOCK))
        for begin, end in tqdm(steps, desc=f"Searching {name}", unit=" blocks", disable=_quiet(len(steps) > 1)):
            found, back = exact_both_ways(np.array(first[begin:end]), held, k)
            ahead.append(found)
            yield 0, Neighbors(back.similarities, back.indices + begin)

    back = united(parts(), len(second), back_k)
    return joined(ahead), back


def nearest_documents(queries: Vectors, documents: Vectors, k: int, name: str) -> NDArray[np.int64]:
    """The k nearest documents of each query, best first, int64 (n, min(k, m))."""
    held, steps = UnitRows(documents), list(blocks(len(queries), _TEXTS))
    wanted = min(k, len(documents))
    searched = tqdm(steps, desc=f"Searching {name}", unit=" blocks", disable=_quiet(len(steps) > 1))
    parts = [exact(np.array(queries[begin:end]), held, wanted).indices for begin, end in searched]
    return np.concatenate(parts)


def _quiet(takes_time: bool) -> bool | None:
    """Whether tqdm shows nothing; None: unless standard error is a terminal."""
    return None if takes_time else True
