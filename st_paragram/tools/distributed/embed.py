"""A step that embeds texts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from pathlib import Path

from datatrove.data import Document
from datatrove.io import DataFolder, DataFolderLike, get_datafolder
from datatrove.pipeline.base import PipelineStep
from datatrove.utils.batching import batched

from st_paragram.core.encoding.models import load_encoder
from st_paragram.core.encoding.unit_embeddings import known_texts
from st_paragram.core.model_directory.find import find
from st_paragram.errors import TextError
from st_paragram.tools.distributed.base import text_of
from st_paragram.tools.embed_files.formats import ParquetTable
from st_paragram.tools.embed_files.rows import EmbeddingReport, EmbeddingSettings, RowEncoder

_BATCH_TEXTS = 1 << 14


class EmbedTexts(PipelineStep):
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
        only_known: Leave out documents in which the model knows no token, as mining requires.

    Examples:
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
        only_known: bool = False,
    ) -> None:
        """Check the settings and find the model, which is opened where it is used."""
        super().__init__()
        find(model)
        self.model: str = str(model)
        self.output: DataFolder = get_datafolder(output)
        self.key = key
        self.threads = threads
        self.only_known = only_known
        self.settings: EmbeddingSettings = EmbeddingSettings(dtype, dim, normalize)  # type: ignore[arg-type]

    def run(
        self, data: Iterator[Document], rank: int = 0, world_size: int = 1
    ) -> Iterator[Document]:
        """Embed the documents of a task."""
        model = load_encoder(self.model, self.threads)
        encoder = RowEncoder(model, self.settings)
        table = ParquetTable(encoder, ("id", "text"))
        report = EmbeddingReport()
        name = f"{rank:05d}.parquet"
        if self.output.exists(name):
            with self.output.open(name, "rb") as file:
                is_own = table.is_same_kind(file)
            if not is_own:
                raise TextError(
                    f"{self.output.path}/{name} exists and has no embeddings; choose another folder"
                )
        with self.output.open(f"{name}.part", "wb") as file, table.writer(file) as writer:
            for documents in batched(data, _BATCH_TEXTS):
                texts = [text_of(document, self.key) for document in documents]
                if self.only_known:
                    known = known_texts(model, texts)
                    texts = list(compress(texts, known))
                    documents = list(compress(documents, known))
                ids = [document.id for document in documents]
                rows = encoder.rows(texts, f"task {rank}", report)
                writer.write(table.record_batch(rows, ids, texts))
                yield from documents
        self.output.mv(f"{name}.part", name)
        self.stat_update("blank", value=report.blank)
        self.stat_update("without a known token", value=report.unknown)
