"""Embeddings of lines, some thousands at a time, and the identity of a model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.settings import setting, settings
from st_paragram.errors import ParagramError

if TYPE_CHECKING:
    from st_paragram.core.encoding.models import TextEncoder

#: Lines and their embeddings, float32 or float16 (n, D).
Batch = tuple[list[str], NDArray[np.floating]]

_LINES = 1 << 14  # lines encoded and written at a time
_PROBE = [
    "Where is the station? 1,234",
    "¿Dónde está la estación?",
    "Где вокзал?",
    "火车站在哪里",
    "أين المحطة",
    "",
]


@settings
class EmbeddingSettings:
    """Settings for the rows and files of embeddings."""

    dtype: Literal["float32", "float16"] = setting("float32", "number type on disk")
    dim: int | None = setting(None, "number of leading dimensions to keep", ge=1, metavar="D")
    normalize: bool = setting(
        False, "scale embeddings to length 1, after truncation to --dim dimensions"
    )
    shard_lines: int = setting(
        100_000, "maximum lines per matrix in a folder, or lines saved at a time", ge=1
    )


@dataclass
class EmbeddingReport:
    """The counts of an embedding run.

    Attributes:
        lines: Number of lines in all texts.
        blank: Number of blank lines.
        unknown: Number of other lines in which the model knows no token.
        resumed: Number of lines embedded by an earlier run.
        files: Number of files with embeddings.
    """

    lines: int = 0
    blank: int = 0
    unknown: int = 0
    resumed: int = 0
    files: int = 1

    def count(self, lines: Sequence[str], known: Sequence[bool], resumed: bool = False) -> None:
        """Count lines, given whether the model knows a token of each."""
        for line, is_known in zip(lines, known, strict=True):
            blank = not line.strip()
            self.lines += 1
            self.blank += blank
            self.unknown += not (blank or is_known)
            self.resumed += resumed


class RowEncoder:
    """Embed lines with the given settings, in rows of `dimension` dimensions, and count lines in
    `report`.
    """

    def __init__(self, model: TextEncoder, settings: EmbeddingSettings) -> None:
        """Use a model that has at least as many dimensions as are kept."""
        from st_paragram.core.encoding.models import batch_size
        from st_paragram.core.model_directory.model_files import check_components

        dimension = model.get_embedding_dimension()
        assert dimension is not None
        check_components(settings.dim, dimension)
        self.dimension: int = settings.dim or dimension
        self.settings, self.fingerprint, self.report = (
            settings,
            fingerprint_of(model),
            EmbeddingReport(),
        )
        self._model = model
        self._options: dict[str, Any] = {
            "batch_size": batch_size(model),
            "normalize_embeddings": settings.normalize,
            "truncate_dim": settings.dim,
            "show_progress_bar": False,
        }

    def embedded(self, lines: Iterable[str], where: str, first: int) -> Iterator[Batch]:
        """Yield blocks of lines with their embeddings; messages count lines from `first`."""
        from st_paragram.core.encoding.unit_embeddings import known_embeddings

        lines = iter(lines)
        while batch := list(islice(lines, _LINES)):
            computed = np.ascontiguousarray(
                self._model.encode(batch, **self._options), dtype=np.float32
            )
            with np.errstate(over="ignore"):
                rows = computed.astype(self.settings.dtype, copy=False)
            if len(bad := np.flatnonzero(~np.isfinite(rows).all(axis=1))):
                seen = (
                    f"{where}: the embedding of line {first + bad[0]} has numbers that {rows.dtype}"
                    " cannot store"
                )
                raise ParagramError(
                    f"{seen}; choose float32 or normalize the embeddings, or use another model"
                )
            first += len(batch)
            known = known_embeddings(self._model, batch, computed, **self._options)
            self.report.count(batch, known.tolist())
            yield batch, rows

    def count_resumed(self, lines: Iterable[str]) -> None:
        """Count lines that an earlier run embedded."""
        from st_paragram.core.encoding.unit_embeddings import known_texts

        lines = iter(lines)
        while batch := list(islice(lines, _LINES)):
            self.report.count(batch, known_texts(self._model, batch).tolist(), resumed=True)


def fingerprint_of(model: TextEncoder) -> str:
    """Return the SHA-256 of a model in memory, from its weights and rounded embeddings of a few
    texts.
    """
    from st_paragram.core.encoding.encoder import Encoder

    probe = np.asarray(model.encode(_PROBE, show_progress_bar=False), np.float32)
    rounded = np.round(probe / max(np.abs(probe).max(), np.float32(1e-20)), 2)
    result = hashlib.sha256(repr((probe.shape, rounded.tolist())).encode())
    if isinstance(model, Encoder):
        table, vocabulary = model.model.table, np.frombuffer(model.tokenizer.content, "u1")
        parts: dict[str, Any] = {
            "weight": table.weight,
            "scale": table.scale,
            "vocabulary": vocabulary,
        }
    else:
        state: Any = model.state_dict()  # type: ignore[attr-defined]
        parts = {
            name: part.detach().cpu().float()
            for name, part in state.items()
            if hasattr(part, "detach")
        }
    for name, values in parts.items():
        result.update(
            f"{name} {np.shape(values)}".encode() + np.ascontiguousarray(values).tobytes()
        )
    return result.hexdigest()
