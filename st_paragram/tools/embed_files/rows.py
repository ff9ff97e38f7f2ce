"""Lines to rows of embeddings, some thousands at a time, and the identity of a model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.settings import setting, settings
from st_paragram.errors import ParagramError

if TYPE_CHECKING:
    from st_paragram.core.encoding.models import TextEncoder

#: Some lines and their embeddings, float32 or float16 (n, D).
Batch = tuple[list[str], NDArray[np.floating]]

_LINES = 1 << 14  # lines encoded and written at a time
_PROBE = ["Where is the station? 1,234", "¿Dónde está la estación?", "Где вокзал?", "火车站在哪里", "أين المحطة", ""]


@settings
class EmbeddingSettings:
    """What the rows and files of embeddings are like."""

    dtype: Literal["float32", "float16"] = setting("float32", "number type on disk")
    dim: int | None = setting(None, "number of leading components to keep", ge=1, metavar="D")
    normalize: bool = setting(False, "scale embeddings to length 1, after cutting to --dim components")
    shard_lines: int = setting(100_000, "maximum lines per matrix of a folder, or saved at a time", ge=1)


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
    """Embeds lines as settings ask for it, rows of `dimension` components, and counts lines in `report`."""

    def __init__(self, model: TextEncoder, settings: EmbeddingSettings) -> None:
        """Take a model that has at least as many components as are to be kept."""
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
        lines = iter(lines)
        while batch := list(islice(lines, _LINES)):
            computed: Any = np.ascontiguousarray(self._encode(batch), dtype=np.float32)
            with np.errstate(over="ignore"):
                rows = computed.astype(self.settings.dtype, copy=False)
            if len(bad := np.flatnonzero(~np.isfinite(rows).all(axis=1))):
                seen = f"{where}: the embedding of line {first + bad[0]} has numbers that {rows.dtype} cannot store"
                raise ParagramError(f"{seen}; choose float32 or normalize the embeddings, or use another model")
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
