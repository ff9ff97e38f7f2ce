"""The filter `paraphrase_score`: paraphrases whose similarity is within limits."""

from __future__ import annotations

import math
import multiprocessing
import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.settings import setting
from st_paragram.errors import SettingsError, TextError
from st_paragram.tools.cleaning.base import Row, RowFilter, further_column
from st_paragram.tools.cleaning.options import options

if TYPE_CHECKING:
    from st_paragram.core.encoding.models import TextEncoder

_BATCH = 2048  # pairs embedded at a time: 2 x 8 MB of embeddings at 1024 dimensions


@options
class ParaphraseScore(RowFilter):
    """Drop rows whose score is below `low` or above `high` (EMNLP 2022, ParaNMT: 0.4 and 1).

    The score is a number in a further column, or the cosine of the two texts' embeddings.
    """

    name: ClassVar[str] = "paraphrase_score"
    reasons: ClassVar[tuple[str, ...]] = ("score too low", "score too high")

    low: float = setting(0.4, "minimum score")
    high: float = setting(1.0, "maximum score")
    column: int | None = setting(
        0, "column of the score; 0: the first after the two texts; ignored if a model is given", ge=0
    )
    model: str | None = setting(None, "directory, name or hub id of a model from this package to score the texts")

    def __post_init__(self) -> None:
        """Check that the options fit together.

        Raises:
            SettingsError: The limits leave nothing, or there is neither a column nor a model.
        """
        if self.high < self.low:
            raise SettingsError(f"high is {self.high:g}; it must be at least low ({self.low:g})")
        if self.model == "" or (self.model is None and self.column is None):
            raise SettingsError(f"model is {self.model!r} and column is {self.column!r}; give one of them")
        object.__setattr__(self, "_made_in", os.getpid())  # not a field: no part of what it is

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return "score too low" or "score too high" for rows outside the limits.

        Raises:
            TextError: A row has no score, or one that is not a number.
            ModelDirectoryError: The model cannot be loaded.
        """
        low, high = self.reasons
        return [None if self.low <= s <= self.high else low if s < self.low else high for s in self.scores(rows)]

    def scores(self, rows: Sequence[Row]) -> list[float]:
        """The scores of rows; raises what `reject` raises."""
        if self.model is None:
            return [self._given(row) for row in rows]
        blocks = [self._cosines(rows[start : start + _BATCH]) for start in range(0, len(rows), _BATCH)]
        return [score for block in blocks for score in block.tolist()]

    def identity(self) -> dict[str, Any]:
        """The options, with the digest of the model's files in place of its name.

        Raises:
            ModelDirectoryError: There is no such model.
        """
        options = super().identity()
        if self.model is not None:
            from st_paragram.core.encoding.directory import fingerprint
            from st_paragram.core.encoding.find import find

            options.update(column=None, model=fingerprint(find(self.model)))
        return options

    def _given(self, row: Row) -> float:
        text = further_column(row, self.column or 0, self.name)
        try:
            score = math.nan if "_" in text else float(text)
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            shown = text if len(text) <= 40 else text[:37] + "..."
            raise TextError(
                f"{self.name}: {shown!r} in column {self.column} after the two texts is not a number; check the columns"
            )
        return score

    def _cosines(self, rows: Sequence[Row]) -> NDArray[np.float64]:
        first, second = (
            self._encoder.encode([row[side] for row in rows], normalize_embeddings=True, show_progress_bar=False)
            for side in (0, 1)
        )
        # Rounding may lift the cosine of equal texts above 1, where `high` would catch it.
        return np.minimum(np.einsum("nd,nd->n", first, second, dtype=np.float64), 1.0)

    @cached_property
    def _encoder(self) -> TextEncoder:
        from st_paragram.core.encoding.models import load_encoder

        if multiprocessing.parent_process() is not None or os.getpid() != self.__dict__["_made_in"]:
            return load_encoder(self.model or "", num_threads=1)  # a worker: the other cores have their own workers
        return load_encoder(self.model or "")

    def __getstate__(self) -> dict[str, Any]:
        """Leave the model behind: every process loads its own."""
        return {name: value for name, value in self.__dict__.items() if name != "_encoder"}
