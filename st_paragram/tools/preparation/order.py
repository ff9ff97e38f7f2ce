"""The order of a store: which rows stay of those that are equal, and how many of each text.

Rows in the order of their keys are a uniform shuffle, so the first rows of a text in this order are a uniform sample of
it: caps and shares are cut off there. A text that is to have more rows than it has gets copies, whose keys are hashes
of the rows' own, so that they lie anywhere among the others.
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
from st_paragram.tools.cleaning.config import Copies, Duplicates, Key
from st_paragram.tools.preparation.buckets import (
    KEY_DIGITS,
    SOURCE,
    Buckets,
    bucket_paths,
    keyed_again,
    read_bucket,
    row_as_seen,
)
from st_paragram.tools.preparation.clean import rejects_name
from st_paragram.tools.preparation.report import NOT_TAKEN, PrepareReport

MOST_COPIES = 1000
_REASONS = {Key.PAIR: "duplicate", Key.FIRST: "repeated first side", Key.SECOND: "repeated second side"}


@dataclass(frozen=True)
class Order:
    """The rows of a store: of each bucket in its order those that come before the quota of their text is filled."""

    folder: Path
    quotas: list[int]

    def __iter__(self) -> Iterator[list[bytes]]:
        """The rows of a bucket at a time."""
        left = list(self.quotas)
        for path in bucket_paths(self.folder):
            rows = read_bucket(path)
            counts = Counter(int(row[SOURCE]) for row in rows)
            if any(count > left[source] for source, count in counts.items()):
                rows = list(_first(rows, left))
            else:
                for source, count in counts.items():
                    left[source] -= count
            yield rows


def first_key(duplicates: Duplicates) -> Key:
    """What rows are scattered by when they have been cleaned."""
    return duplicates.on[0] if duplicates.on else Key.PAIR


def order_rows(
    work: Path,
    duplicates: Duplicates,
    sources: Sequence[TextSource],
    report: PrepareReport,
    temperature: float,
    seed: int,
    rejects: bool,
) -> Order:
    """Drop repeated rows of `<work>/cleaned` and share out the rest.

    Of equal rows that of the first text stays; within a text, where one side makes them equal, the one whose other side
    comes first in the alphabet.

    Args:
        work: The folder; rows dropped go to `<work>/rejects`, if `rejects` says so.
        duplicates: Which rows go.
        sources: The texts, with their caps.
        report: The numbers are added to it.
        temperature: See `quotas`.
        seed: Of the keys.
        rejects: Rows carry their columns along.

    Raises:
        TextError: Fewer than two pairs are left.
        SettingsError: As in `quotas`.
    """
    steps: list[tuple[Key, Copies | None]] = [(key, duplicates.copies) for key in duplicates.on]
    if not steps or steps[-1][0] is not Key.PAIR:
        steps.append((Key.PAIR, None))  # brings the order of the store
    folder, kept = work / "cleaned", Counter[int]()
    for number, (key, copies) in enumerate(steps):
        into = work / f"ordered-{number}"
        then = steps[number + 1][0] if number + 1 < len(steps) else key
        kept, lost = Counter(), Counter[int]()
        lost_rows = work / "rejects" / rejects_name(_REASONS[key])
        with Buckets(into) as buckets, lost_rows.open("wb") if rejects and copies else nullcontext() as lost_file:
            for path in tqdm(bucket_paths(folder), desc=_REASONS[key], disable=None, leave=False):
                rows = read_bucket(path)
                keep = list(_keep(rows, copies))
                staying = [row for row, stays in zip(rows, keep, strict=True) if stays]
                dropped = [row for row, stays in zip(rows, keep, strict=True) if not stays]
                buckets.add(staying if then is key else keyed_again(staying, then, seed))
                kept.update(int(row[SOURCE]) for row in staying)
                lost.update(int(row[SOURCE]) for row in dropped)
                if lost_file:
                    lost_file.writelines(map(row_as_seen, dropped))
        if copies is not None:
            for source, text in enumerate(report.sources):
                text.drop(_REASONS[key], lost[source])
        folder = into
    report.check_enough()
    return _shared_out(folder, [kept[source] for source in range(len(sources))], sources, report, temperature)


def _shared_out(
    folder: Path, kept: list[int], sources: Sequence[TextSource], report: PrepareReport, temperature: float
) -> Order:
    wanted = quotas(kept, sources, temperature)
    for text, count, quota in zip(report.sources, kept, wanted, strict=True):
        text.drop(NOT_TAKEN, max(count - quota, 0))
        text.repeated = max(quota - count, 0)
        text.kept = quota
    if all(quota <= count for quota, count in zip(wanted, kept, strict=True)):
        return Order(folder, wanted)
    into = folder.with_name("repeated")
    with Buckets(into) as buckets:
        place = [0] * len(kept)
        for path in bucket_paths(folder):
            for row in read_bucket(path):
                source = int(row[SOURCE])
                each, more = divmod(wanted[source], kept[source])
                buckets.add(_copies(row, each + (place[source] < more)))
                place[source] += 1
    return Order(into, wanted)


def quotas(kept: Sequence[int], sources: Sequence[TextSource], temperature: float) -> list[int]:
    """Rows of each text for the store, copies included.

    With a temperature T, the pairs of one language (texts with the same languages) get a share of all pairs in
    proportion to their number to the power of 1 / T; the total stays what it is.

    Args:
        kept: Deduplicated rows of each text.
        sources: Their caps and languages.
        temperature: T >= 1.

    Raises:
        SettingsError: A language would have to be repeated more than `MOST_COPIES` times.
    """
    capped = [count if each.cap is None else min(count, each.cap) for count, each in zip(kept, sources, strict=True)]
    if temperature == 1:
        return capped
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for number, source in enumerate(sources):  # without regions: corpora differ in how they write Chinese
        groups["-".join(code.partition("_")[0] for code in source.pair)].append(number)
    totals = {languages: sum(capped[number] for number in numbers) for languages, numbers in groups.items()}
    weights = {languages: total ** (1 / temperature) for languages, total in totals.items()}
    share = sum(totals.values()) / max(sum(weights.values()), 1e-300)
    result = [0] * len(capped)
    for languages, numbers in groups.items():
        factor = weights[languages] * share / max(totals[languages], 1)
        if factor > MOST_COPIES:
            seen = f"{languages} has {totals[languages]} pairs and would be repeated {factor:.0f} times"
            raise SettingsError(f"{seen}; choose a lower temperature, or leave it out")
        for number in numbers:
            result[number] = round(capped[number] * factor)
    return result


def _keep(rows: Sequence[bytes], copies: Copies | None) -> Iterator[bool]:
    """Whether each of the sorted rows stays; neighbors with one key are equal."""
    for _, group in groupby(rows, key=lambda row: row[:KEY_DIGITS]):
        count = sum(1 for _ in group)
        yield copies is not Copies.NONE or count == 1
        yield from [copies is None] * (count - 1)


def _first(rows: Sequence[bytes], left: list[int]) -> Iterator[bytes]:
    """The rows for which there is room; `left` says how much, by source."""
    for row in rows:
        source = int(row[SOURCE])
        if left[source]:
            left[source] -= 1
            yield row


def _copies(row: bytes, count: int) -> Iterator[bytes]:
    if count:
        yield row
    for number in range(1, count):
        key = blake2b(row[:KEY_DIGITS], digest_size=KEY_DIGITS // 2, salt=number.to_bytes(4, "little"))
        yield key.hexdigest().encode() + row[KEY_DIGITS:]
