"""Steps for datatrove pipelines, which run on many machines: clean pairs of texts, embed texts.

Datatrove (extra `distributed`) has executors for one machine, Slurm and Ray. They divide input
files among tasks, mark completed tasks, and skip these when the same pipeline is run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_paragram.core.extras import require
from st_paragram.errors import TextError
from st_paragram.tools.embed_files.embed import ParquetTable

_PURPOSE = "a pipeline of datatrove"
_STEP: Any = require("datatrove.pipeline.base", "distributed", _PURPOSE).PipelineStep
_FILTER: Any = require("datatrove.pipeline.filters.base_filter", "distributed", _PURPOSE).BaseFilter

if TYPE_CHECKING:
    from datatrove.data import Document
    from datatrove.io import DataFolderLike
    from datatrove.pipeline.writers.disk_base import DiskWriter

    from st_paragram.tools.cleaning.base import RowStep

_BATCH_PAIRS, _BATCH_TEXTS = 1 << 10, 1 << 14


class CleanPairs(_FILTER):
    """Drop and repair documents that hold a text and its translation, with a list of filters as in
    `prepare`.

    Documents are processed one by one: repeated pairs are kept; `prepare` or datatrove's
    deduplication removes them.

    Args:
        languages: Codes of the text and of the translation.
        translation: Name of the translation in the documents' metadata.
        cleaning: List of filters: `default`, `paper`, `paranmt`, or a YAML file that exists on
            every machine.
        exclusion_writer: Datatrove writer for dropped documents; `filter_reason` in the metadata
            gives the reason.

    Example:
        >>> from datatrove.pipeline.readers import ParquetReader
        >>> from st_paragram import CleanPairs
        >>> pipeline = [ParquetReader("pairs", text_key="en"), CleanPairs(("en", "es"), "es")]
    """

    name = "🧹 Pairs of texts"

    def __init__(
        self,
        languages: tuple[str, str],
        translation: str = "translation",
        cleaning: str | Path = "default",
        exclusion_writer: DiskWriter | None = None,
    ) -> None:
        """Check the list of filters; their data are loaded where they run."""
        from st_paragram.tools.cleaning.config import named_cleaning

        super().__init__(exclusion_writer, _BATCH_PAIRS)
        self.languages, self.translation, self.cleaning = (
            languages,
            translation,
            named_cleaning(str(cleaning)),
        )

    def filter(self, doc: Document) -> bool | tuple[bool, str]:
        """Return whether a document is kept, or False and the reason."""
        return self.filter_batch([doc])[0]

    def filter_batch(self, batch: list[Document]) -> list[bool | tuple[bool, str]]:
        """Repair documents in place, and return the result of `filter` for each."""
        from st_paragram.tools.cleaning.base import apply_steps

        pairs = ((document.text, _text_of(document, self.translation)) for document in batch)
        rows, reasons, _ = apply_steps(
            self._steps, [(" ".join(a.split()), " ".join(b.split())) for a, b in pairs]
        )
        for document, row, reason in zip(batch, rows, reasons, strict=True):
            if reason is None:
                document.text, document.metadata[self.translation] = row
        return [(False, reason) if reason else True for reason in reasons]

    @cached_property
    def _steps(self) -> list[RowStep]:
        return self.cleaning.make_steps(self.languages)


class EmbedTexts(_STEP):
    """Write the embeddings of documents to Parquet, one file per task, and pass the documents on.

    The files `00000.parquet`, ... have the columns `id`, `text` and `embedding` (a list) and exist
    only when complete. The statistics count blank documents, and others in which the model knows no
    token; they have rows, too.

    Args:
        model: Directory, name or hub id of a model, available on every machine.
        output: Folder for the files, on a file system shared by all machines.
        key: Name of the text in the documents' metadata; None: the document's own text.
        dtype: Number type, float32 or float16.
        dim: Number of first dimensions to keep; None: all.
        normalize: Scale embeddings to length 1.
        threads: Number of threads per task, for models that run on the processor.

    Example:
        >>> from datatrove.pipeline.readers import ParquetReader
        >>> from st_paragram import EmbedTexts
        >>> pipeline = [ParquetReader("pairs", text_key="en"), EmbedTexts("p-sp-mini", "vectors/en",
        ...     normalize=True)]
    """

    type, name = "🔢 - EMBEDDINGS", "🔢 Parquet"

    def __init__(
        self,
        model: str | Path,
        output: DataFolderLike,
        key: str | None = None,
        *,
        dtype: str = "float16",
        dim: int | None = None,
        normalize: bool = False,
        threads: int = 1,
    ) -> None:
        """Check the settings and find the model, which is opened where it is used."""
        from datatrove.io import get_datafolder

        from st_paragram.core.model_directory.find import find
        from st_paragram.tools.embed_files.rows import EmbeddingSettings

        super().__init__()
        find(model)
        self.model, self.output, self.key, self.threads = (
            str(model),
            get_datafolder(output),
            key,
            threads,
        )
        self.settings = EmbeddingSettings(dtype, dim, normalize)  # type: ignore[arg-type]

    def run(
        self, data: Iterator[Document], rank: int = 0, world_size: int = 1
    ) -> Iterator[Document]:
        """Embed the documents of a task."""
        from st_paragram.core.encoding.models import load_encoder
        from st_paragram.tools.embed_files.rows import RowEncoder

        encode = RowEncoder(load_encoder(self.model, self.threads), self.settings)
        table, name = ParquetTable(encode, ("id", "text")), f"{rank:05d}.parquet"
        self._check_free(name, table)
        with self.output.open(f"{name}.part", "wb") as file, table.writer(file) as writer:
            while batch := list(islice(data, _BATCH_TEXTS)):
                with self.track_time("batch"):
                    ids = (document.id for document in batch)
                    texts = [_text_of(document, self.key) for document in batch]
                    for lines, rows in encode.embedded(
                        texts, f"task {rank}", encode.report.lines + 1
                    ):
                        writer.write_batch(table.of(rows, list(islice(ids, len(lines))), lines))
                yield from batch
        self.output.mv(f"{name}.part", name)
        self.stat_update("blank", value=encode.report.blank)
        self.stat_update("without a known token", value=encode.report.unknown)

    def _check_free(self, name: str, table: ParquetTable) -> None:
        """Refuse to replace a file that no task of such a pipeline has written."""
        if not self.output.exists(name):
            return
        with self.output.open(name, "rb") as file, suppress(ValueError):  # not Parquet
            if table.parquet.read_schema(file).names == table.schema.names:
                return
        raise TextError(
            f"{self.output.path}/{name} exists and has no embeddings; choose another folder"
        )


def _text_of(document: Document, key: str | None) -> str:
    text = document.metadata.get(key) if key else document.text
    if not isinstance(text, str):
        known = ", ".join(document.metadata) or "nothing"
        raise TextError(
            f"document {document.id}: no text {key!r} in its metadata (it has {known}); check"
            " the key"
        )
    return text
