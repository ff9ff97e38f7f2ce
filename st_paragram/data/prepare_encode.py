"""Second half of a preparation: train a vocabulary on the first rows, encode them all, write the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.data.external_shuffle import read_bucket
from st_paragram.data.filters import DropReason
from st_paragram.data.pair_store import PairStoreWriter
from st_paragram.data.parallel import ordered_map
from st_paragram.data.prepare_report import PrepareReport
from st_paragram.data.prepare_settings import PrepareSettings
from st_paragram.data.vocabulary import Vocabulary, train_vocabulary

_TASK_BYTES = 1 << 22


def train_on_first_rows(buckets: Sequence[Path], settings: PrepareSettings) -> Vocabulary:
    """Train the vocabulary on the first `sample_pairs` pairs in key order, a uniform sample of all."""
    pairs = islice((pair for path in buckets for pair in read_bucket(path).pairs), settings.sample_pairs)
    sample = tqdm(pairs, desc="sampling", unit=" pairs", unit_scale=True, disable=None)
    model = train_vocabulary(
        (sentence for pair in sample for sentence in pair),
        size=settings.vocab_size,
        character_coverage=settings.coverage,
        num_threads=settings.vocab_threads,
        max_sentence_bytes=settings.max_sentence_bytes,
        seed=settings.seed,
    )
    return Vocabulary(model, settings.lower_case, settings.segmentation)


@dataclass(frozen=True)
class Side:
    """Encoded sentences of one side.

    Attributes:
        ids: Flat, of the smallest unsigned type that holds the vocabulary.
        offsets: int64 (n + 1,).
        cut: Sentences that were cut at the largest number of pieces.
    """

    ids: NDArray[Any]
    offsets: NDArray[np.int64]
    cut: int


@dataclass(frozen=True)
class Encoder:
    """Sort, make distinct and encode some bucket files."""

    vocabulary: Vocabulary
    max_pieces: int

    def __call__(self, paths: Sequence[Path]) -> tuple[list[Side], Counter[int], Counter[int]]:
        """Return both sides, and the pairs kept and the duplicates dropped per source number."""
        pairs: list[tuple[str, str]] = []
        kept, duplicates = Counter[int](), Counter[int]()
        for path in paths:
            rows = read_bucket(path)
            pairs += rows.pairs
            kept += rows.kept
            duplicates += rows.duplicates
        return [self._side([pair[side] for pair in pairs]) for side in (0, 1)], kept, duplicates

    def _side(self, texts: list[str]) -> Side:
        smallest = np.min_scalar_type(len(self.vocabulary) - 1)
        encoded = self.vocabulary.encode_segmented(texts, self.max_pieces)
        return Side(encoded.ids.astype(smallest), encoded.offsets, encoded.cut)


def encode_buckets(
    buckets: Iterable[Path],
    output: Path,
    settings: PrepareSettings,
    described: dict[str, Any],
    vocabulary: Vocabulary,
    report: PrepareReport,
) -> None:
    """Encode the buckets and append them to the store in order; complete the report and store it too.

    Args:
        buckets: Bucket files in the order of their keys.
        output: The store to make.
        settings: Of the preparation.
        described: What the store keeps of the settings.
        vocabulary: Encodes the texts, which are normalised already.
        report: Gets the pairs kept, the duplicates and the number of pieces.

    Raises:
        TextError: If fewer than two distinct pairs are left; no store is made then.
    """
    encoder = Encoder(vocabulary, settings.max_pieces)
    with (
        PairStoreWriter(
            output, settings.languages, vocabulary, settings.max_pieces, described, settings.seed
        ) as writer,
        closing(ordered_map(encoder, _group(buckets), settings.workers)) as results,
        tqdm(desc="encoding", unit=" pairs", unit_scale=True, disable=None) as progress,
    ):
        for (a, b), kept, duplicates in results:
            writer.append(a.ids, a.offsets, b.ids, b.offsets)
            for source, count in kept.items():
                report.sources[source].kept += count
            for source, count in duplicates.items():
                report.sources[source].dropped[DropReason.DUPLICATE] += count
            report.cut_sentences += a.cut + b.cut
            report.pieces = (report.pieces[0] + len(a.ids), report.pieces[1] + len(b.ids))
            progress.update(len(a.offsets) - 1)
        report.check_enough(report.total.kept)
        writer.settings["report"] = report.as_json()


def _group(buckets: Iterable[Path]) -> Iterator[list[Path]]:
    """Group neighbouring bucket files into tasks worth sending to a worker."""
    group: list[Path] = []
    size = 0
    for path in buckets:
        group.append(path)
        size += path.stat().st_size
        if size >= _TASK_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
