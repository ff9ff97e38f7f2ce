"""The order of a store: which of several equal rows to keep, and how many rows of each text.

The order of the keys is a uniform shuffle, so the first rows of a text in this order are a uniform
sample. Caps and shares use this sample. A text that needs more rows than it has gets copies. Their
keys are hashes of the rows' keys, so they are spread among the other rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from pathlib import Path

from tqdm import tqdm

from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import SettingsError
from st_paragram.tools.cleaning.config import Copies, Key
from st_paragram.tools.preparation.buckets import (
    BUCKETS,
    KEY_DIGITS,
    Buckets,
    columns_of,
    key_of,
    read_buckets,
    rehashed,
    source_of,
    sources_of,
    with_key,
)
from st_paragram.tools.preparation.clean import rejects_name
from st_paragram.tools.preparation.report import NOT_TAKEN, PrepareReport
from st_paragram.tools.preparation.settings import PrepareSettings

MOST_COPIES = 1000
_ROWS = 4096  # rows of a bucket that are processed together
REASONS = {"pair": "duplicate", "first": "repeated first side", "second": "repeated second side"}


@dataclass(frozen=True)
class Order:
    """The rows of a store: of each text, the first rows up to its quota."""

    folder: Path
    quotas: list[int]

    def __iter__(self) -> Iterator[list[bytes]]:
        """Yield some rows of a bucket at a time, in order."""
        counts = [0] * len(self.quotas)
        for bucket in read_buckets(self.folder):
            for begin in range(0, len(bucket), _ROWS):
                rows = []
                for row in bucket[begin : begin + _ROWS]:
                    source = source_of(row)
                    counts[source] += 1
                    if counts[source] <= self.quotas[source]:
                        rows.append(row)
                yield rows


def order_rows(
    work: Path,
    sources: Sequence[TextSource],
    settings: PrepareSettings,
    report: PrepareReport,
    carry: bool,
) -> Order:
    """Drop repeated rows of `<work>/cleaned`, apply quotas to the rest, and complete the report.

    Of equal rows, the row of the first text is kept. If rows are equal by one side within a text,
    the row whose other side comes first alphabetically is kept. With `carry`, dropped rows go to
    `<work>/rejects`.
    """
    duplicates = settings.cleaning.duplicates
    steps: list[tuple[Key, Copies | None]] = [(key, duplicates.copies) for key in duplicates.on]
    if not steps or steps[-1][0] != "pair":
        steps.append(("pair", None))  # gives the order of the store
    folder = work / "cleaned"
    kept = Counter[int]()
    for number, (key, copies) in enumerate(steps):
        next_key = steps[min(number + 1, len(steps) - 1)][0]
        rejects = work / "rejects" / rejects_name(REASONS[key]) if carry and copies else None
        ordered = work / f"ordered-{number}"
        kept = Counter()
        dropped = Counter[int]()
        with Buckets(ordered) as buckets, rejects.open("wb") if rejects else nullcontext() as file:
            progress = tqdm(
                read_buckets(folder), desc=REASONS[key], total=BUCKETS, disable=None, leave=False
            )
            for rows in progress:
                staying, repeated = _without_repeated(rows, copies)
                kept.update(sources_of(staying))
                dropped.update(sources_of(repeated))
                if next_key != key:
                    staying = list(rehashed(staying, next_key, settings.seed))
                buckets.add(staying)
                if file:
                    file.writelines([columns_of(row) for row in repeated])
        if copies:
            for source, text in enumerate(report.sources):
                text.drop(REASONS[key], dropped[source])
        folder = ordered
    report.check_enough()
    counts = [kept[source] for source in range(len(sources))]
    wanted = quotas(counts, sources, settings.temperature)
    needs_copies = False
    for text, count, quota in zip(report.sources, counts, wanted, strict=True):
        text.drop(NOT_TAKEN, max(count - quota, 0))
        text.repeated = max(quota - count, 0)
        text.kept = quota
        needs_copies |= quota > count
    if needs_copies:
        folder = _with_copies(folder, counts, wanted)
    return Order(folder, wanted)


def _without_repeated(
    rows: Sequence[bytes], copies: Copies | None
) -> tuple[list[bytes], list[bytes]]:
    """Split sorted rows into rows to keep and repeated rows, of which None keeps all."""
    kept: list[bytes] = []
    repeated: list[bytes] = []
    for _, equal_rows in groupby(rows, key=key_of):
        first, *others = equal_rows
        if copies == "none" and others:
            repeated.append(first)
        else:
            kept.append(first)
        if copies is None:
            kept += others
        else:
            repeated += others
    return kept, repeated


def _with_copies(folder: Path, kept: Sequence[int], wanted: Sequence[int]) -> Path:
    """Write rows again, with the wanted number of rows for each text."""
    repeated = folder.with_name("repeated")
    counts = [0] * len(kept)
    with Buckets(repeated) as buckets:
        for rows in read_buckets(folder):
            for row in rows:
                source = source_of(row)
                copies, remainder = divmod(wanted[source], kept[source])
                buckets.add(_copies(row, copies + (counts[source] < remainder)))
                counts[source] += 1
    return repeated


def _copies(row: bytes, count: int) -> Iterator[bytes]:
    if count:
        yield row
    for number in range(1, count):
        salt = number.to_bytes(4, "little")
        key = blake2b(key_of(row), digest_size=KEY_DIGITS // 2, salt=salt).hexdigest()
        yield with_key(row, key.encode())


def quotas(kept: Sequence[int], sources: Sequence[TextSource], temperature: float) -> list[int]:
    """Return the number of rows of each text for the store, including copies.

    `kept` are the numbers of deduplicated rows. With a temperature T, the pairs of one language
    (texts with the same languages) get a share of all pairs in proportion to their number to the
    power of 1 / T; the total does not change.
    """
    capped = list(kept)
    for number, source in enumerate(sources):
        if source.cap is not None:
            capped[number] = min(kept[number], source.cap)
    if temperature == 1:
        return capped
    # without regions: corpora have different codes for Chinese
    languages = ["-".join(source.pair_without_regions) for source in sources]
    totals = Counter[str]()
    for language, count in zip(languages, capped, strict=True):
        totals[language] += count
    weights = {language: total ** (1 / temperature) for language, total in totals.items()}
    share = totals.total() / max(sum(weights.values()), 1e-300)
    result = []
    for language, count in zip(languages, capped, strict=True):
        factor = weights[language] * share / max(totals[language], 1)
        if factor > MOST_COPIES:
            raise SettingsError(
                f"{language} has {totals[language]:,} pairs and would be repeated {factor:.0f}"
                " times; choose a lower temperature, or leave it out"
            )
        result.append(round(count * factor))
    return result
