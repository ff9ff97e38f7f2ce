"""Two steps that find the distinct sentences of a text: group its texts by hash, merge groups."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.core.extras import require
from st_paragram.core.files import atomic
from st_paragram.core.text.words import has_two_letters
from st_paragram.errors import TextError
from st_paragram.tools.distributed.base import PURPOSE, STEP, text_of
from st_paragram.tools.distributed.folder import other_side

if TYPE_CHECKING:
    from datatrove.data import Document


class DealTexts(STEP):
    """Divide the texts of documents into groups by their hashes, and pass the documents on.

    Equal texts are in one group. As in `mine`, white space becomes single spaces, and texts with
    fewer than two letters or digits are left out. Memory: the distinct texts of a task.

    Args:
        folder: Folder of the mining steps.
        side: `source` or `target`.
        groups: Number of groups, which is the number of tasks of `DistinctTexts`.
        key: Name of the text in the documents' metadata; None: the document's own text.
    """

    type = "🗂 - TEXTS"
    name = "🗂 Groups by hash"

    def __init__(self, folder: str | Path, side: str, groups: int, key: str | None = None) -> None:
        """Check the side."""
        super().__init__()
        other_side(side)
        self.output = Path(folder) / "texts" / side
        self.groups = groups
        self.key = key

    def run(
        self, data: Iterator[Document], rank: int = 0, world_size: int = 1
    ) -> Iterator[Document]:
        """Write the groups of a task to a Parquet file, one row group each."""
        arrow = require("pyarrow", "distributed", PURPOSE)
        parquet = require("pyarrow.parquet", "distributed", PURPOSE)
        groups = [dict[str, None]() for _ in range(self.groups)]
        for document in data:
            text = " ".join(text_of(document, self.key).split())
            if has_two_letters(text):
                digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
                groups[int.from_bytes(digest, "little") % self.groups][text] = None
            yield document
        schema = arrow.schema([("text", arrow.string())])
        with (
            atomic(self.output / f"{rank:05d}.parquet") as file,
            parquet.ParquetWriter(file, schema, compression="zstd") as writer,
        ):
            for group in groups:
                writer.write_table(arrow.table([list(group)], schema), max(1, len(group)))


class DistinctTexts(STEP):
    """Read the distinct texts of a group from all files of `DealTexts`, as documents.

    There must be as many tasks as groups. Memory: the distinct texts of a group.

    Args:
        folder: Folder of the mining steps.
        side: `source` or `target`.
    """

    type = "📖 - READER"
    name = "🗂 Distinct texts"

    def __init__(self, folder: str | Path, side: str) -> None:
        """Check the side."""
        super().__init__()
        other_side(side)
        self.input = Path(folder) / "texts" / side

    def run(self, data: None = None, rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        """Yield the texts of a group."""
        from datatrove.data import Document

        parquet = require("pyarrow.parquet", "distributed", PURPOSE)
        texts = dict[str, None]()
        for path in sorted(self.input.glob("*.parquet")):
            with parquet.ParquetFile(path) as file:
                if file.num_row_groups != world_size:
                    raise TextError(
                        f"{path} has {file.num_row_groups} groups of texts for {world_size} tasks;"
                        " run DealTexts again with as many groups as tasks"
                    )
                column = file.read_row_group(rank)["text"]
            texts.update(dict.fromkeys(column.to_pylist()))
        self.stat_update("distinct texts", value=len(texts))
        for number, text in enumerate(texts):
            yield Document(text, f"{rank:05d}/{number}")
