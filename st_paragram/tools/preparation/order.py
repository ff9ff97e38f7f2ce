"""The order of a store: which of several equal rows to keep, and how many rows of each text.

The order of the keys is a uniform shuffle, so the first rows of a text in this order are a uniform
sample. Caps and shares use this sample. A text that needs more rows than it has gets copies. Their
keys are hashes of the rows' keys, so they are spread among the other rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
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
    SOURCE,
    Buckets,
    keyed_again,
    read_buckets,
    row_as_seen,
)
from st_paragram.tools.preparation.clean import rejects_name
from st_paragram.tools.preparation.report import NOT_TAKEN, PrepareReport
from st_paragram.tools.preparation.settings import PrepareSettings

MOST_COPIES = 1000
_ROWS = 4096  # rows of a bucket that are processed together
REASONS = {"pair": "duplicate", "first": "repeated first side", "second": "repeated second side"}


@dataclass(frozen=True)
class Order:
    """The rows of a store: in each bucket, in order, those before the quota of their text is
    reached.
    """

    folder: Path
    quotas: list[int]

    def __iter__(self) -> Iterator[list[bytes]]:
        """Yield some rows of a bucket at a time."""
        left = list(self.quotas)
        for bucket in read_buckets(self.folder):
            for begin in range(0, len(bucket), _ROWS):
                rows = bucket[begin : begin + _ROWS]
                counts = Counter(int(row[SOURCE]) for row in rows)
                whole = all(count <= left[source] for source, count in counts.items())
                yield rows if whole else list(_first(rows, left))
                for source, count in counts.items():
                    left[source] = max(0, left[source] - count)


def order_rows(
    work: Path,
    sources: Sequence[TextSource],
    settings: PrepareSettings,
    report: PrepareReport,
    carry: bool,
) -> Order:
    """Drop repeated rows of `<work>/cleaned`, apply quotas to the rest, and add the counts to the
    report.

    Of equal rows, the row of the first text is kept. If rows are equal by one side within a text,
    the row whose other side comes first alphabetically is kept. With `carry`, dropped rows go to
    `<work>/rejects`.
    """
    duplicates = settings.cleaning.duplicates
    steps: list[tuple[Key, Copies | None]] = [(key, duplicates.copies) for key in duplicates.on]
    if not steps or steps[-1][0] != "pair":
        steps.append(("pair", None))  # gives the order of the store
    folder, kept = work / "cleaned", Counter[int]()
    for number, (key, copies) in enumerate(steps):
        into, reason = work / f"ordered-{number}", REASONS[key]
        then = steps[min(number + 1, len(steps) - 1)][0]
        kept, lost = Counter(), Counter[int]()
        dropped_rows = work / "rejects" / rejects_name(reason)
        with (
            Buckets(into) as buckets,
            dropped_rows.open("wb") if carry and copies else nullcontext() as file,
        ):
            for rows in tqdm(
                read_buckets(folder), desc=reason, total=BUCKETS, disable=None, leave=False
            ):
                keep = list(_keep(rows, copies))
                staying = [row for row, stays in zip(rows, keep, strict=True) if stays]
                dropped = [row for row, stays in zip(rows, keep, strict=True) if not stays]
                buckets.add(staying if then is key else keyed_again(staying, then, settings.seed))
                kept.update(int(row[SOURCE]) for row in staying)
                lost.update(int(row[SOURCE]) for row in dropped)
                if file:
                    file.writelines(map(row_as_seen, dropped))
        for source, text in enumerate(report.sources if copies else ()):
            text.drop(reason, lost[source])
        folder = into
    report.check_enough()
    counts = [kept[source] for source in range(len(sources))]
    wanted = quotas(counts, sources, settings.temperature)
    for text, count, quota in zip(report.sources, counts, wanted, strict=True):
        text.drop(NOT_TAKEN, max(count - quota, 0))
        text.repeated, text.kept = max(quota - count, 0), quota
    if any(quota > count for quota, count in zip(wanted, counts, strict=True)):
        folder = _with_copies(folder, counts, wanted)
    return Order(folder, wanted)


def _with_copies(folder: Path, kept: Sequence[int], wanted: Sequence[int]) -> Path:
    """Write rows again, with the wanted number of rows for each text."""
    into, place = folder.with_name("repeated"), [0] * len(kept)
    with Buckets(into) as buckets:
        for row in (row for rows in read_buckets(folder) for row in rows):
            source = int(row[SOURCE])
            each, more = divmod(wanted[source], kept[source])
            buckets.add(_copies(row, each + (place[source] < more)))
            place[source] += 1
    return into


def quotas(kept: Sequence[int], sources: Sequence[TextSource], temperature: float) -> list[int]:
    """Return the number of rows of each text for the store, including copies, given its
    deduplicated rows.

    With a temperature T, the pairs of one language (texts with the same languages) get a share of
    all pairs in proportion to their number to the power of 1 / T; the total does not change.
    """
    capped = [
        count if each.cap is None else min(count, each.cap)
        for count, each in zip(kept, sources, strict=True)
    ]
    if temperature == 1:
        return capped
    groups: defaultdict[str, list[int]] = defaultdict(list)
    # without regions: corpora have different codes for Chinese
    for number, source in enumerate(sources):
        groups["-".join(code.partition("_")[0] for code in source.pair)].append(number)
    totals = {
        languages: sum(capped[number] for number in numbers)
        for languages, numbers in groups.items()
    }
    weights = {languages: total ** (1 / temperature) for languages, total in totals.items()}
    share = sum(totals.values()) / max(sum(weights.values()), 1e-300)
    result = [0] * len(capped)
    for languages, numbers in groups.items():
        factor = weights[languages] * share / max(totals[languages], 1)
        if factor > MOST_COPIES:
            seen = (
                f"{languages} has {totals[languages]} pairs and would be repeated {factor:.0f}"
                " times"
            )
            raise SettingsError(f"{seen}; choose a lower temperature, or leave it out")
        for number in numbers:
            result[number] = round(capped[number] * factor)
    return result


def _keep(rows: Sequence[bytes], copies: Copies | None) -> Iterator[bool]:
    """Yield whether each of the sorted rows is kept; neighbors with the same key are equal."""
    for _, group in groupby(rows, key=lambda row: row[:KEY_DIGITS]):
        count = sum(1 for _ in group)
        yield copies != "none" or count == 1
        yield from [copies is None] * (count - 1)


def _first(rows: Sequence[bytes], left: Sequence[int]) -> Iterator[bytes]:
    """Yield the rows within the quotas; `left` is the number of remaining rows by source."""
    taken = Counter[int]()
    for row in rows:
        source = int(row[SOURCE])
        taken[source] += 1
        if taken[source] <= left[source]:
            yield row


def _copies(row: bytes, count: int) -> Iterator[bytes]:
    if count:
        yield row
    for number in range(1, count):
        key = blake2b(
            row[:KEY_DIGITS], digest_size=KEY_DIGITS // 2, salt=number.to_bytes(4, "little")
        )
        yield key.hexdigest().encode() + row[KEY_DIGITS:]
