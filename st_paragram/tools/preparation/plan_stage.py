"""The final order: which rows of which range go into the store, after caps and balance, and where copies are.

Rows in the order of their keys are a uniform shuffle, so the first rows of a source in this order are a uniform sample
of it: caps and shares are cut off there. A source that is to have more rows than it has gets copies; a copy of the
rows of one task goes among the rows of another, some tasks further on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar

from st_paragram.core.files import digest
from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import SettingsError
from st_paragram.tools.preparation.report import NOT_TAKEN, PrepareReport
from st_paragram.tools.preparation.row_files import KEY_DIGITS, SOURCE, RowStage
from st_paragram.tools.stages.metadata import read_metadata, write_metadata
from st_paragram.tools.stages.stage import Stage

MOST_COPIES = 1000


def quotas(kept: Sequence[int], sources: Sequence[TextSource], temperature: float) -> list[int]:
    """Rows of each source for the store, copies included.

    A weight multiplies what the cap leaves of a source. With a temperature T, the pairs of one language (sources with
    the same languages) get a share of all pairs in proportion to their number to the power of 1 / T; the total stays
    what it is.

    Args:
        kept: Deduplicated rows of each source.
        sources: Their caps, weights and languages.
        temperature: T >= 1.

    Raises:
        SettingsError: A language would have to be repeated more than `MOST_COPIES` times.
    """
    capped = [
        round(source.weight * (count if source.cap is None else min(count, source.cap)))
        for count, source in zip(kept, sources, strict=True)
    ]
    if temperature == 1:
        return capped
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for number, source in enumerate(sources):
        groups[_pair(source)].append(number)
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


@dataclass(frozen=True)
class PlanStage(Stage):
    """Counts what there is and shares it out; the only task's metadata are those of a `Plan`.

    Attributes:
        rows: The deduplicated rows, with what each task of it `kept` by number of the source.
        sources: The texts.
        temperature: Balances languages.
    """

    name: ClassVar[str] = "plan"
    rows: RowStage
    sources: tuple[TextSource, ...]
    temperature: float

    def digests(self) -> list[str]:
        """The one digest."""
        weights = [source.weight for source in self.sources]
        weighted = [] if set(weights) == {1.0} else [weights]
        return [digest(self.rows.digests(), [source.cap for source in self.sources], self.temperature, *weighted)]

    def results(self) -> list[Path]:
        """The one result."""
        return [self.folder() / "plan"]

    def files(self) -> list[Path]:
        """The files of rows that are shared out."""
        return list(self.rows.results())

    def run(self, task: int) -> None:
        """Make the plan.

        Raises:
            SettingsError: As in `quotas`.
            TextError: Fewer than two pairs are left.
        """
        self.rows.report().check_enough()
        kept_by_task = [read_metadata(path)["kept"] for path in self.files()]
        per_task = [[kept.get(str(number), 0) for number in range(len(self.sources))] for kept in kept_by_task]
        kept = [sum(counts) for counts in zip(*per_task, strict=True)]
        quota = quotas(kept, self.sources, self.temperature)
        write_metadata(self.results()[task], {"per_task": per_task, "kept": kept, "quotas": quota})

    def plan(self) -> Plan:
        """The plan that was made."""
        return Plan(self.files(), **read_metadata(self.results()[0]))

    def report(self) -> PrepareReport:
        """The numbers so far, after caps and balance."""
        report, plan = self.rows.report(), self.plan()
        for source, kept, quota in zip(report.sources, plan.kept, plan.quotas, strict=True):
            source.drop(NOT_TAKEN, max(kept - quota, 0))
            source.repeated = max(quota - kept, 0)
            source.kept = quota
        return report


@dataclass(frozen=True)
class Plan:
    """What goes where.

    Attributes:
        files: Deduplicated rows, in order.
        per_task: Rows of each source in each file.
        kept: Deduplicated rows of each source.
        quotas: Rows of each source in the store.
    """

    files: list[Path]
    per_task: list[list[int]]
    kept: list[int]
    quotas: list[int]

    @property
    def passes(self) -> int:
        """How often the rows are gone through: once, and once more for each copy."""
        return max((-(-quota // kept) for quota, kept in zip(self.quotas, self.kept, strict=True) if kept), default=0)

    def rows(self, task: int) -> list[bytes]:
        """The rows of a task, in their order."""
        passes = self.passes
        if passes <= 1:
            return list(self._allowed(task, 0))
        step = max(1, len(self.files) // passes)
        mixed = [
            (blake2b(row[:KEY_DIGITS], digest_size=8, salt=number.to_bytes(4, "little")).digest(), row)
            for number in range(passes)
            for row in self._allowed((task - number * step) % len(self.files), number)
        ]
        return [row for _, row in sorted(mixed)]

    def _allowed(self, file: int, number: int) -> Iterator[bytes]:
        """The rows of a file that have a copy of this number: the first so many of each source."""
        left = [
            min(kept, quota - number * kept) - sum(counts[source] for counts in self.per_task[:file])
            for source, (kept, quota) in enumerate(zip(self.kept, self.quotas, strict=True))
        ]
        all_of_them = all(room >= count for room, count in zip(left, self.per_task[file], strict=True))
        with self.files[file].open("rb") as handle:
            for row in handle:
                if not all_of_them:
                    source = int(row[SOURCE])
                    left[source] -= 1
                    if left[source] < 0:
                        continue
                yield row


def _pair(source: TextSource) -> str:
    """The languages of a text, without regions: corpora differ in how they write Chinese."""
    return "-".join(code.partition("_")[0] for code in source.pair)
