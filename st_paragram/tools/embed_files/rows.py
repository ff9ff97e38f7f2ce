"""Embeddings of lines, some thousands at a time, and the fingerprint of a model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.models import TextEncoder, batch_size
from st_paragram.core.encoding.unit_embeddings import known_embeddings, known_texts
from st_paragram.core.model_directory.model_files import check_components
from st_paragram.core.settings import setting, settings
from st_paragram.errors import ParagramError

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

    @classmethod
    def of(cls, reports: Iterable[EmbeddingReport]) -> EmbeddingReport:
        """Sum the counts of texts."""
        total = cls()
        for report in reports:
            total.lines += report.lines
            total.blank += report.blank
            total.unknown += report.unknown
            total.resumed += report.resumed
        return total

    def count(self, lines: Sequence[str], known: NDArray[np.bool_]) -> None:
        """Count n lines; `known`, (n,), is whether the model knows a token of each."""
        blank = np.array([not line.strip() for line in lines], bool)
        self.lines += len(lines)
        self.blank += int(blank.sum())
        self.unknown += int((~blank & ~known).sum())


class RowEncoder:
    """Embeds lines with the given settings.

    Attributes:
        dimension: Dimension of the rows, D.
        settings: Settings of the rows.
        fingerprint: Digest of the model.
    """

    def __init__(self, model: TextEncoder, settings: EmbeddingSettings) -> None:
        """Use a model that has at least as many dimensions as are kept."""
        dimension = model.get_embedding_dimension()
        assert dimension is not None
        check_components(settings.dim, dimension)
        self.dimension: int = settings.dim or dimension
        self.settings = settings
        self.fingerprint = fingerprint_of(model)
        self._model = model
        self._options: dict[str, Any] = {
            "batch_size": batch_size(model),
            "normalize_embeddings": settings.normalize,
            "truncate_dim": settings.dim,
            "show_progress_bar": False,
        }

    def batches(self, lines: Iterable[str], text: str, report: EmbeddingReport) -> Iterator[Batch]:
        """Yield blocks of lines of a text with their rows; see `rows`."""
        for block in _blocks(lines):
            yield block, self.rows(block, text, report)

    def rows(self, lines: list[str], text: str, report: EmbeddingReport) -> NDArray[np.floating]:
        """Embed the next n lines of a text, float32 or float16 (n, D).

        Args:
            lines: The lines.
            text: Name of the text, for messages.
            report: Counts of the lines of the text before these lines; they are counted there.

        Raises:
            ParagramError: An embedding has numbers that the number type cannot store.
        """
        encoded = self._model.encode(lines, **self._options)
        embeddings = np.ascontiguousarray(encoded, np.float32)
        with np.errstate(over="ignore"):
            rows = embeddings.astype(self.settings.dtype, copy=False)
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(bad):
            raise ParagramError(
                f"{text}: the embedding of line {report.lines + bad[0] + 1} has numbers that"
                f" {rows.dtype} cannot store; choose float32 or normalize the embeddings, or use"
                " another model"
            )
        report.count(lines, known_embeddings(self._model, lines, embeddings, **self._options))
        return rows

    def count_resumed(self, lines: Iterable[str], report: EmbeddingReport) -> None:
        """Count lines that an earlier run embedded."""
        for block in _blocks(lines):
            report.count(block, known_texts(self._model, block))
            report.resumed += len(block)


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    lines = iter(lines)
    while block := list(islice(lines, _LINES)):
        yield block


def fingerprint_of(model: TextEncoder) -> str:
    """Return the SHA-256 of a model's weights and of its rounded embeddings of a few texts."""
    probe = np.asarray(model.encode(_PROBE, show_progress_bar=False), np.float32)
    largest = max(np.abs(probe).max(), np.float32(1e-20))
    rounded = np.round(probe / largest, 2)
    result = hashlib.sha256(repr((probe.shape, rounded.tolist())).encode())
    for name, values in _weights(model).items():
        result.update(f"{name} {np.shape(values)}".encode())
        result.update(np.ascontiguousarray(values).tobytes())
    return result.hexdigest()


def _weights(model: Any) -> dict[str, Any]:
    """Return the arrays of a model by name."""
    weights = dict[str, Any]()
    if isinstance(model, Encoder):
        table = model.model.table
        weights["weight"] = table.weight
        if table.scale is not None:
            weights["scale"] = table.scale
        weights["vocabulary"] = np.frombuffer(model.tokenizer.content, np.uint8)
        return weights
    for name, value in model.state_dict().items():
        if hasattr(value, "detach"):
            weights[name] = value.detach().cpu().float()
    return weights
