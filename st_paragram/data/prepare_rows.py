"""First half of a preparation: read the texts, filter and normalise pairs, scatter them to bucket files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from st_paragram.data.external_shuffle import RowFormat, Scatter
from st_paragram.data.filters import DropReason
from st_paragram.data.parallel import ordered_map
from st_paragram.data.prepare_report import PrepareReport
from st_paragram.data.prepare_settings import PrepareSettings
from st_paragram.data.text import ReadCounts, TextSource, read_pairs
from st_paragram.data.vocabulary import normalizer

Batch = tuple[int, list[tuple[str, str]]]  # number of the source, pairs
_BATCH_PAIRS = 4096


def scatter_sources(
    sources: Sequence[TextSource], folder: Path, settings: PrepareSettings, report: PrepareReport
) -> list[Path]:
    """Read, filter and normalise everything into bucket files, returned in the order of their keys.

    Args:
        sources: The texts.
        folder: Made, and filled with the bucket files.
        settings: Of the preparation.
        report: Its sources get their rows, losses (duplicates aside) and repairs.

    Raises:
        TextError: If a text cannot be read, or fewer than two rows are left.
    """
    counts = [ReadCounts() for _ in sources]
    scatter = Scatter(folder)
    batches = _read_batches(sources, counts, settings.drop_invalid)
    with (
        closing(batches),
        closing(ordered_map(RowMaker(settings), batches, settings.workers)) as results,
        tqdm(desc="reading", unit=" pairs", unit_scale=True, disable=None) as progress,
    ):
        for source, read, rows, dropped in results:
            scatter.add(rows)
            report.sources[source].dropped += dropped
            progress.update(read)
    for source_report, source_counts in zip(report.sources, counts, strict=True):
        source_report.add_read(source_counts)
    total = report.total
    report.check_enough(total.rows - total.dropped.total())
    return scatter.finish()


@dataclass(frozen=True)
class RowMaker:
    """Filter and normalise a batch of pairs and pack those that stay into rows."""

    settings: PrepareSettings

    def __call__(self, batch: Batch) -> tuple[int, int, list[bytes], Counter[DropReason]]:
        """Return the number of the source, of the pairs seen, the rows made and the losses by reason."""
        source, pairs = batch
        reject = self.settings.length_filter.reject
        normalize = normalizer(self.settings.lower_case, self.settings.segmentation)
        dropped = Counter[DropReason]()
        kept = []
        for english, other in pairs:
            english_words, other_words = english.split(), other.split()
            reason = reject(english_words, other_words)
            if reason is None:  # with single spaces, equal texts are equal strings
                kept.append((normalize(" ".join(english_words)), normalize(" ".join(other_words))))
            else:
                dropped[reason] += 1
        return source, len(pairs), RowFormat(self.settings.seed).pack(kept, source), dropped


def _read_batches(
    sources: Sequence[TextSource], counts: Sequence[ReadCounts], drop_invalid: bool
) -> Generator[Batch, None, None]:
    for number, source in enumerate(sources):
        pairs = read_pairs(source, counts[number], drop_invalid)
        while batch := list(islice(pairs, _BATCH_PAIRS)):
            yield number, batch
