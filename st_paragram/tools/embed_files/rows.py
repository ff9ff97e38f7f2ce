"""Lines to rows of embeddings, some thousands at a time, and the identity of a model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.settings import setting, settings
from st_paragram.errors import ParagramError, SettingsError

if TYPE_CHECKING:
    from st_paragram.core.encoding.models import TextEncoder

#: Some lines and their embeddings, float32 or float16 (n, D).
Batch = tuple[list[str], NDArray[np.floating]]

_LINES = 1 << 14  # lines encoded and written at a time
_CHARACTERS = 1 << 26  # fewer lines if these are together longer than this
_PROBE = ["Where is the station? 1,234", "¿Dónde está la estación?", "Где вокзал?", "火车站在哪里", "أين المحطة", ""]


@settings
class EmbeddingSettings:
    """What the rows and files of embeddings are like."""

    dtype: Literal["float32", "float16"] = setting("float32", "number type on disk")
    dim: int | None = setting(None, "number of leading components to keep", ge=1, metavar="D")
    normalize: bool = setting(False, "scale embeddings to length 1, after cutting to --dim components")
    shard_lines: int = setting(
        100_000, "maximum lines per matrix of a folder, or saved at a time", ge=1, le=100_000_000
    )


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

    def count(self, lines: Iterable[str], resumed: bool = False) -> None:
        """Add lines."""
        for line in lines:
            self.lines += 1
            self.blank += not line.strip()
            self.resumed += resumed


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

    def embedded(self, lines: Iterable[str], where: str, first: int) -> Iterator[Batch]:
        """Yield some lines at a time with their embeddings; messages count lines from `first`."""
        for batch in _batches(lines):
            computed: Any = np.ascontiguousarray(self._encode(batch), dtype=np.float32)
            with np.errstate(over="ignore"):
                rows = computed.astype(self.settings.dtype, copy=False)
            if len(bad := np.flatnonzero(~np.isfinite(rows).all(axis=1))):
                seen = f"{where}: the embedding of line {first + bad[0]}"
                if np.isfinite(computed[bad[0]]).all():
                    seen += " has components above 65,504, too large for float16"
                    raise SettingsError(f"{seen}; choose float32, or normalize the embeddings")
                raise ParagramError(f"{seen} is not finite; the model is damaged or badly trained; use another")
            first += len(batch)
            self.report.count(batch)
            yield batch, rows


def fingerprint_of(model: TextEncoder) -> str:
    """SHA-256 of a model in memory: of its weights, and of rounded embeddings of a few texts, which show the rest."""
    from st_paragram.core.encoding.encoder import Encoder

    probe = np.asarray(model.encode(_PROBE, show_progress_bar=False), np.float32)
    rounded = np.round(probe / max(np.abs(probe).max(), np.float32(1e-20)), 2)
    result = hashlib.sha256(repr((probe.shape, rounded.tolist())).encode())
    if isinstance(model, Encoder):
        table, vocabulary = model.model.table, np.frombuffer(model.tokenizer.content, "u1")
        parts: dict[str, Any] = {"weight": table.weight, "scale": table.scale, "vocabulary": vocabulary}
    else:
        state: Any = model.state_dict()  # type: ignore[attr-defined]
        parts = {name: part.detach().cpu().float() for name, part in state.items() if hasattr(part, "detach")}
    for name, values in parts.items():
        result.update(f"{name} {np.shape(values)}".encode() + np.ascontiguousarray(values).tobytes())
    return result.hexdigest()


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
