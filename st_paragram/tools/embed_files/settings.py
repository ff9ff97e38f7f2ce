"""What embeddings of files are to be like."""

from __future__ import annotations

from enum import Enum

from st_paragram.core.encoding.packing import NumberType
from st_paragram.core.settings import setting, settings
from st_paragram.errors import SettingsError

SHARD_LINES = 100_000


class ShardFormat(str, Enum):
    """The formats of a shard."""

    NPY = "npy"
    PARQUET = "parquet"


@settings
class RowSettings:
    """What a row of embeddings is like."""

    dtype: NumberType = setting(
        NumberType.FLOAT32,
        "number type on disk; int8 has one float32 scale per row and needs --sharded",
    )
    dim: int | None = setting(None, "number of leading components to keep", ge=1, metavar="D")
    normalize: bool = setting(False, "scale embeddings to length 1, after cutting to --dim components")


@settings
class CollectionSettings(RowSettings):
    """What a folder of shards is like.

    Example:
        >>> from st_paragram import CollectionSettings
        >>> CollectionSettings(dtype="float16", normalize=True).shard_lines
        100000
    """

    format: ShardFormat = setting(
        ShardFormat.NPY, "format of a shard: a NumPy matrix, or a Parquet table (needs st_paragram[parquet])"
    )
    with_text: bool = setting(False, "keep each line with its embedding, as `text` of a Parquet table or of JSON lines")
    shard_lines: int = setting(
        SHARD_LINES, "maximum lines per shard; each process embeds one shard at a time", ge=1, le=100_000_000
    )

    def __post_init__(self) -> None:
        """Check what concerns several settings."""
        if self.with_text and self.format is not ShardFormat.PARQUET:
            raise SettingsError("with_text is set and the format is npy, which holds numbers alone; choose parquet")
