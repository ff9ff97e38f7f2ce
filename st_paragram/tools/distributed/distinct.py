"""Two steps that find the distinct sentences of a text: group its texts by hash, merge groups."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from datatrove.data import Document

from st_paragram.core.files import atomic
from st_paragram.core.text.words import has_two_letters
from st_paragram.tools.distributed.mining import MiningStep


class DealTexts(MiningStep):
    """Divide the texts of documents into groups by hash, and pass the documents on.

    Equal texts are in one group. As in `mine`, white space becomes single spaces, and texts with
    fewer than two letters or digits are left out. Memory: the distinct texts of a task.

    Args:
        folder: Folder that all steps of mining share.
        side: `source` or `target`.
        groups: Number of groups, and maximum number of tasks of `DistinctTexts`.

    Examples:
        >>> from datatrove.pipeline.readers import ParquetReader
        >>> from st_paragram.distributed import DealTexts
        >>> reader = ParquetReader("en", text_key="text")
        >>> pipeline = [reader, DealTexts("mining", "source", groups=8)]
    """

    name = "🗂 Groups by hash"

    def __init__(self, folder: str | Path, side: str, groups: int) -> None:
        """Check the side."""
        super().__init__(folder, side)
        self.groups = groups

    def run(
        self, data: Iterator[Document], rank: int = 0, world_size: int = 1
    ) -> Iterator[Document]:
        """Write the groups of a task to a Parquet file, one row group each."""
        groups = [dict[str, None]() for _ in range(self.groups)]
        for document in data:
            text = " ".join(document.text.split())
            if has_two_letters(text):
                groups[zlib.crc32(text.encode()) % self.groups][text] = None
            yield document
        schema = pa.schema([("text", pa.string())])
        with (
            atomic(self.own.path("texts", rank)) as file,
            pq.ParquetWriter(file, schema, compression="zstd") as writer,
        ):
            for group in groups:
                writer.write_table(pa.table([list(group)], schema), max(1, len(group)))


class DistinctTexts(MiningStep):
    """Read the distinct texts of groups from all files of `DealTexts`, as documents.

    Groups are divided among tasks. Memory: the distinct texts of a task.

    Args:
        folder: Folder that all steps of mining share.
        side: `source` or `target`.

    Examples:
        >>> from st_paragram import EmbedTexts
        >>> from st_paragram.distributed import DistinctTexts
        >>> embed = EmbedTexts("p-sp-mini", "mining/vectors/source", normalize=True,
        ...     only_known=True)
        >>> pipeline = [DistinctTexts("mining", "source"), embed]
    """

    name = "🗂 Distinct texts"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        """Yield the texts of a task."""
        texts = dict[str, None]()
        for path in self.own.paths("texts"):
            file = pq.ParquetFile(path)
            groups = range(rank, file.num_row_groups, world_size)
            column = file.read_row_groups(groups)["text"]
            texts.update(dict.fromkeys(column.to_pylist()))
        for number, text in enumerate(texts):
            yield Document(text, f"{rank:05d}/{number}")
