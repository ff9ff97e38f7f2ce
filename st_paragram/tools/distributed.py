"""Steps for datatrove pipelines, which run on many machines: clean pairs of texts, embed texts.

Datatrove (extra `distributed`) has executors for one machine, Slurm and Ray. They divide input
files among tasks, mark completed tasks, and skip these when the same pipeline is run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_paragram.core.encoding.models import load_encoder
from st_paragram.core.extras import require
from st_paragram.core.model_directory.find import find
from st_paragram.errors import TextError
from st_paragram.tools.cleaning.base import RowStep, apply_steps
from st_paragram.tools.cleaning.config import named_cleaning
from st_paragram.tools.embed_files.formats import ParquetTable
from st_paragram.tools.embed_files.rows import EmbeddingReport, EmbeddingSettings, RowEncoder

_PURPOSE = "a pipeline of datatrove"
_STEP: Any = require("datatrove.pipeline.base", "distributed", _PURPOSE).PipelineStep
_FILTER: Any = require("datatrove.pipeline.filters.base_filter", "distributed", _PURPOSE).BaseFilter

if TYPE_CHECKING:
    from datatrove.data import Document
    from datatrove.io import DataFolderLike
    from datatrove.pipeline.writers.disk_base import DiskWriter

_BATCH_PAIRS = 1 << 10
_BATCH_TEXTS = 1 << 14


class CleanPairs(_FILTER):
    """Drop and repair documents that hold a text and its translation, as `prepare` does.

    Documents are processed one by one, so repeated pairs are kept. `prepare` or datatrove's
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
        super().__init__(exclusion_writer, _BATCH_PAIRS)
        self.languages = languages
        self.translation = translation
        self.cleaning = named_cleaning(str(cleaning))

    def filter(self, doc: Document) -> bool | tuple[bool, str]:
        """Return whether a document is kept, or False and the reason."""
        return self.filter_batch([doc])[0]

    def filter_batch(self, batch: list[Document]) -> list[bool | tuple[bool, str]]:
        """Repair documents in place, and return the result of `filter` for each."""
        pairs = []
        for document in batch:
            translation = _text_of(document, self.translation)
            pairs.append((" ".join(document.text.split()), " ".join(translation.split())))
        rows, reasons, _ = apply_steps(self._steps, pairs)
        results = list[bool | tuple[bool, str]]()
        for document, row, reason in zip(batch, rows, reasons, strict=True):
            if reason is None:
                document.text, document.metadata[self.translation] = row
                results.append(True)
            else:
                results.append((False, reason))
        return results

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

    type = "🔢 - EMBEDDINGS"
    name = "🔢 Parquet"

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

        super().__init__()
        find(model)
        self.model = str(model)
        self.output = get_datafolder(output)
        self.key = key
        self.threads = threads
        self.settings = EmbeddingSettings(dtype, dim, normalize)  # type: ignore[arg-type]

    def run(
        self, data: Iterator[Document], rank: int = 0, world_size: int = 1
    ) -> Iterator[Document]:
        """Embed the documents of a task."""
        encoder = RowEncoder(load_encoder(self.model, self.threads), self.settings)
        table = ParquetTable(encoder, ("id", "text"))
        report = EmbeddingReport()
        name = f"{rank:05d}.parquet"
        self._check_free(name, table)
        with self.output.open(f"{name}.part", "wb") as file, table.writer(file) as writer:
            while documents := list(islice(data, _BATCH_TEXTS)):
                with self.track_time("batch"):
                    ids = [document.id for document in documents]
                    texts = [_text_of(document, self.key) for document in documents]
                    rows = encoder.rows(texts, f"task {rank}", report)
                    writer.write(table.record_batch(rows, ids, texts))
                yield from documents
        self.output.mv(f"{name}.part", name)
        self.stat_update("blank", value=report.blank)
        self.stat_update("without a known token", value=report.unknown)

    def _check_free(self, name: str, table: ParquetTable) -> None:
        """Refuse to replace a file that no task of such a pipeline has written."""
        if not self.output.exists(name):
            return
        with self.output.open(name, "rb") as file:
            if not table.is_same_kind(file):
                raise TextError(
                    f"{self.output.path}/{name} exists and has no embeddings; choose another folder"
                )


def _text_of(document: Document, key: str | None) -> str:
    text = document.metadata.get(key) if key else document.text
    if not isinstance(text, str):
        keys = ", ".join(document.metadata) or "nothing"
        raise TextError(
            f"document {document.id}: no text {key!r} in its metadata (it has {keys}); check"
            " the key"
        )
    return text
