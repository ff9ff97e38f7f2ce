"""Two steps that find the distinct sentences of a text: group its texts by hash, merge groups."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.core.extras import require
from st_paragram.core.files import atomic
from st_paragram.core.text.words import has_two_letters
from st_paragram.errors import MiningError
from st_paragram.tools.distributed.base import PARQUET, PURPOSE, text_of
from st_paragram.tools.distributed.mining import MiningStep

if TYPE_CHECKING:
    from datatrove.data import Document


class DealTexts(MiningStep):
    """Divide the texts of documents into groups by hash, and pass the documents on.

    Equal texts are in one group. As in `mine`, white space becomes single spaces, and texts with
    fewer than two letters or digits are left out. Memory: the distinct texts of a task.

    Args:
        folder: Folder that all steps of mining share.
        side: `source` or `target`.
        groups: Number of groups, and of tasks of `DistinctTexts`.
        key: Name of the text in the documents' metadata; None: the document's own text.

    Example:
        >>> from datatrove.pipeline.readers import ParquetReader
        >>> from st_paragram import DealTexts
        >>> reader = ParquetReader("en", text_key="text")
        >>> pipeline = [reader, DealTexts("mining", "source", groups=8)]
    """

    name = "🗂 Groups by hash"

    def __init__(self, folder: str | Path, side: str, groups: int, key: str | None = None) -> None:
        """Check the side."""
        super().__init__(folder, side)
        self.groups = groups
        self.key = key

    def run(
        self, data: Iterator[Document], rank: int = 0, world_size: int = 1
    ) -> Iterator[Document]:
        """Write the groups of a task to a Parquet file, one row group each."""
        arrow = require("pyarrow", "distributed", PURPOSE)
        groups = [dict[str, None]() for _ in range(self.groups)]
        for document in data:
            text = " ".join(text_of(document, self.key).split())
            if has_two_letters(text):
                digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
                groups[int.from_bytes(digest, "little") % self.groups][text] = None
            yield document
        schema = arrow.schema([("text", arrow.string())])
        with (
            atomic(self.folder / "texts" / self.side / f"{rank:05d}.parquet") as file,
            PARQUET.ParquetWriter(file, schema, compression="zstd") as writer,
        ):
            for group in groups:
                writer.write_table(arrow.table([list(group)], schema), max(1, len(group)))


class DistinctTexts(MiningStep):
    """Read the distinct texts of a group from all files of `DealTexts`, as documents.

    There must be as many tasks as groups. Memory: the distinct texts of a group.

    Args:
        folder: Folder that all steps of mining share.
        side: `source` or `target`.

    Example:
        >>> from st_paragram import DistinctTexts, EmbedTexts
        >>> embed = EmbedTexts("p-sp-mini", "mining/vectors/source", normalize=True,
        ...     only_known=True)
        >>> pipeline = [DistinctTexts("mining", "source"), embed]
    """

    name = "🗂 Distinct texts"

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        """Yield the texts of a group."""
        from datatrove.data import Document

        texts = dict[str, None]()
        for path in sorted((self.folder / "texts" / self.side).glob("*.parquet")):
            with PARQUET.ParquetFile(path) as file:
                if file.num_row_groups != world_size:
                    raise MiningError(
                        f"{path} has {file.num_row_groups} groups of texts for {world_size} tasks;"
                        " use as many tasks as groups"
                    )
                texts.update(dict.fromkeys(file.read_row_group(rank)["text"].to_pylist()))
        self.stat_update("distinct texts", value=len(texts))
        for number, text in enumerate(texts):
            yield Document(text, f"{rank:05d}/{number}")
