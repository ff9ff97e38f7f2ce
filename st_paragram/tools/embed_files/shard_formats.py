"""Who writes and reads a shard: the name of its file tells its format."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from st_paragram.tools.embed_files.npy_shards import NpyShard, write_npy
from st_paragram.tools.embed_files.parquet_shards import ParquetShard, write_parquet
from st_paragram.tools.embed_files.shard_files import ShardReader, ShardShape, Write


def shard_writer(path: Path, shape: ShardShape) -> AbstractContextManager[Write]:
    """Open a shard for writing; its files take their names when the block ends without an error.

    Args:
        path: A file that ends with `.npy` or `.parquet`.
        shape: What will be written.

    Raises:
        MissingExtraError: A Parquet table is to be written and pyarrow is not installed.
    """
    if path.suffix == ".npy":
        return write_npy(path, shape)
    return write_parquet(path, shape)


def shard_reader(path: Path, shape: ShardShape) -> ShardReader:
    """Open a shard for reading.

    Args:
        path: A file that ends with `.npy` or `.parquet`.
        shape: What it must hold.

    Raises:
        OSError: It cannot be read.
        ValueError: It holds something else.
        MissingExtraError: It is a Parquet table and pyarrow is not installed.
    """
    if path.suffix == ".npy":
        return NpyShard(path, shape)
    return ParquetShard(path, shape)
