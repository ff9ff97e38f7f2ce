"""Lines to rows of embeddings, some thousands at a time, and the identity of a matrix."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.files import digest, file_digest
from st_paragram.core.settings import setting, settings
from st_paragram.core.text.streams import stream_name
from st_paragram.errors import ParagramError, SettingsError, TextError

if TYPE_CHECKING:
    from st_paragram.core.encoding.models import TextEncoder

Rows = NDArray[np.floating]
"""Embeddings (n, D), float32 or float16."""

_LINES = 1 << 14  # lines encoded and written at a time
_CHARACTERS = 1 << 26  # fewer lines if these are together longer than this
_PROBE = ["Where is the station? 1,234", "¿Dónde está la estación?", "Где вокзал?", "火车站在哪里", "أين المحطة", ""]


@settings
class EmbeddingSettings:
    """What the rows and files of embeddings are like."""

    dtype: Literal["float32", "float16"] = setting("float32", "number type on disk")
    dim: int | None = setting(None, "number of leading components to keep", ge=1, metavar="D")
    normalize: bool = setting(False, "scale embeddings to length 1, after cutting to --dim components")
    shard_lines: int = setting(100_000, "maximum lines per matrix of a folder", ge=1, le=100_000_000)


@dataclass
class EmbeddingReport:
    """What was embedded.

    Attributes:
        lines: Of all texts.
        blank: How many of them have only white space; they have the embedding of the unknown token.
        resumed: How many of them an earlier run had embedded.
        files: Files with embeddings.
    """

    lines: int = 0
    blank: int = 0
    resumed: int = 0
    files: int = 1

    def count(self, lines: Iterable[str], resumed: bool = False) -> int:
        """Add lines; returns how many there are now."""
        for line in lines:
            self.lines += 1
            self.blank += not line.strip()
            self.resumed += resumed
        return self.lines


@dataclass(frozen=True)
class Text:
    """A file, or `-`, and its column if it is a table."""

    path: str
    column: str | None = None


class RowEncoder:
    """Embeds lines as settings ask for it.

    Attributes:
        dimension: Components of a row, D.
        settings: What was asked for.
        fingerprint: Of the model.
        report: Counts the lines.
    """

    def __init__(self, model: TextEncoder, settings: EmbeddingSettings) -> None:
        """Look at the model, which has at least as many components as are to be kept."""
        from st_paragram.core.encoding.model_files import check_components
        from st_paragram.core.encoding.models import batch_size

        dimension = model.get_embedding_dimension()
        assert dimension is not None
        check_components(settings.dim, dimension)
        self.dimension: int = settings.dim or dimension
        self.settings, self.fingerprint, self.report = settings, fingerprint_of(model), EmbeddingReport()
        self._encode = partial(
            model.encode,
            batch_size=batch_size(model),
            normalize_embeddings=settings.normalize,
            truncate_dim=settings.dim,
            show_progress_bar=False,
        )

    def embedded(self, lines: Iterable[str], where: str, first: int) -> Iterator[tuple[list[str], Rows]]:
        """Yield some lines at a time with their embeddings (n, D); messages count lines from `first`."""
        for batch in _batches(lines):
            rows: Rows = np.ascontiguousarray(self._encode(batch), dtype=np.float32)
            if (line := _not_finite(rows, first)) is not None:
                seen = f"{where}: the embedding of line {line} is not finite"
                raise ParagramError(f"{seen}; the model is damaged or was not trained properly; use another")
            if self.settings.dtype == "float16":
                with np.errstate(over="ignore"):
                    rows = rows.astype(np.float16)
                if (line := _not_finite(rows, first)) is not None:
                    seen = f"{where}: the embedding of line {line} has components above 65,504, too large for float16"
                    raise SettingsError(f"{seen}; choose float32, or normalize the embeddings")
            first += len(batch)
            self.report.count(batch)
            yield batch, rows

    def check_not_empty(self, texts: Sequence[Text]) -> None:
        """Refuse texts that had no line."""
        if not self.report.lines:
            raise TextError(f"{', '.join(stream_name(text.path) for text in texts)}: empty; give a text with a line")

    def identity(self, texts: Sequence[Text], form: str) -> str:
        """The model, texts, settings and form of a result, as JSON."""
        inputs = [[file_digest(text.path), text.column] for text in texts]
        return json.dumps([self.fingerprint, self.dimension, asdict(self.settings), form, digest(inputs)])  # type: ignore[call-overload]


def _not_finite(rows: NDArray[Any], first: int) -> int | None:
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    return first + int(bad[0]) if len(bad) else None


def fingerprint_of(model: TextEncoder) -> str:
    """SHA-256 of a model in memory: of its weights, and of rounded embeddings of a few texts, which show the rest."""
    probe = np.asarray(model.encode(_PROBE, show_progress_bar=False), np.float32)
    rounded = np.round(probe / max(np.abs(probe).max(), np.float32(1e-20)), 2)
    result = hashlib.sha256(repr((probe.shape, rounded.tolist())).encode())
    for name, values in _parts(model):
        result.update(f"{name} {values.shape}".encode() + np.ascontiguousarray(values).tobytes())
    return result.hexdigest()


def _parts(model: Any) -> Iterator[tuple[str, NDArray[Any]]]:  # noqa: ANN401 - an Encoder or a SentenceTransformer
    from st_paragram.core.encoding.encoder import Encoder

    if isinstance(model, Encoder):
        table, vocabulary = model.model.table, np.frombuffer(model.tokenizer.content, np.uint8)
        yield from {"weight": table.weight, "scale": np.asarray(table.scale), "vocabulary": vocabulary}.items()
    else:
        for name, tensor in model.state_dict().items():
            if hasattr(tensor, "detach"):
                yield name, tensor.detach().cpu().float().numpy()


def _batches(lines: Iterable[str]) -> Iterator[list[str]]:
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
