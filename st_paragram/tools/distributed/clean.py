"""A step that cleans pairs of texts."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from datatrove.data import Document
from datatrove.pipeline.filters.base_filter import BaseFilter
from datatrove.pipeline.writers.disk_base import DiskWriter

from st_paragram.tools.cleaning.base import RowStep, apply_steps
from st_paragram.tools.cleaning.config import Cleaning, named_cleaning
from st_paragram.tools.cleaning.text import single_spaced
from st_paragram.tools.distributed.base import text_of

_BATCH_PAIRS = 1 << 10


class CleanPairs(BaseFilter):
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

    Examples:
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
        self.cleaning: Cleaning = named_cleaning(str(cleaning))

    def filter(self, doc: Document) -> bool | tuple[bool, str]:
        """Return whether a document is kept, or False and the reason."""
        return self.filter_batch([doc])[0]

    def filter_batch(self, batch: list[Document]) -> list[bool | tuple[bool, str]]:
        """Repair documents in place, and return the result of `filter` for each."""
        pairs = []
        for document in batch:
            translation = text_of(document, self.translation)
            pairs.append((single_spaced(document.text), single_spaced(translation)))
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
