"""Lines to embeddings, some thousands at a time, and to what is stored of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.model_files import check_components
from st_paragram.core.encoding.models import TextEncoder, batch_size
from st_paragram.core.encoding.packing import NumberType, Packed, pack
from st_paragram.errors import ParagramError, SettingsError
from st_paragram.tools.embed_files.settings import RowSettings

_LINES = 1 << 14  # lines encoded and written at a time
_CHARACTERS = 1 << 26  # fewer lines if these are together longer than this


def batches(lines: Iterable[str]) -> Iterator[list[str]]:
    """Group lines into batches that fit into memory whatever the length of lines is; none is empty."""
    batch: list[str] = []
    characters = 0
    for line in lines:
        batch.append(line)
        characters += len(line)
        if len(batch) == _LINES or characters >= _CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def blank_lines(lines: Iterable[str]) -> int:
    """How many lines have only white space."""
    return sum(not line.strip() for line in lines)


class RowEncoder:
    """Encodes lines as settings ask for it.

    Attributes:
        dimension: Components of a row, D.
    """

    def __init__(self, model: TextEncoder, settings: RowSettings) -> None:
        """Look at the model.

        Raises:
            SettingsError: The model has fewer components than are to be kept.
        """
        dimension = model.get_embedding_dimension()
        assert dimension is not None
        check_components(settings.dim, dimension)
        self.dimension: int = settings.dim or dimension
        self._model, self._settings, self._batch_size = model, settings, batch_size(model)

    def __call__(self, lines: list[str]) -> NDArray[np.float32]:
        """The embeddings of some lines, float32 (len(lines), D)."""
        rows = self._model.encode(
            lines,
            batch_size=self._batch_size,
            normalize_embeddings=self._settings.normalize,
            truncate_dim=self._settings.dim,
            show_progress_bar=False,
        )
        return np.ascontiguousarray(rows, dtype=np.float32)


def pack_lines(rows: NDArray[np.float32], kind: NumberType, where: str, first: int) -> Packed:
    """Round the embeddings of lines to what is stored.

    Args:
        rows: float32 (n, D).
        kind: The type of the result.
        where: What was embedded, for messages.
        first: The number of the first line, for messages.

    Raises:
        ParagramError: An embedding is not finite.
        SettingsError: A component is too large for float16.
    """
    line = _first_that_is_not_finite(rows, first)
    if line is not None:
        seen = f"{where}: the embedding of line {line} is not finite"
        raise ParagramError(f"{seen}; the model is damaged or was not trained properly; use another")
    packed = pack(Packed(rows), kind)
    line = _first_that_is_not_finite(packed.numbers, first) if kind is NumberType.FLOAT16 else None
    if line is not None:
        seen = f"{where}: the embedding of line {line} has components above 65,504, which float16 cannot hold"
        raise SettingsError(f"{seen}; choose float32 or int8, or normalize the embeddings")
    return packed


def _first_that_is_not_finite(rows: NDArray[Any], first: int) -> int | None:
    """The number of the line whose embedding is not finite."""
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    return first + int(bad[0]) if len(bad) else None
