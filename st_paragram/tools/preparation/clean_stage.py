"""Second stage: filter and repair rows, normalize them and sort them by their keys, shard by shard."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from st_paragram.core.files import atomic, digest
from st_paragram.core.tokenizers.sentencepiece import Segmentation, normalizer
from st_paragram.core.version import installed_version
from st_paragram.errors import TextError
from st_paragram.tools.cleaning.base import RowFilter, RowRepair, RowStep
from st_paragram.tools.cleaning.config import Cleaning, parse_cleaning
from st_paragram.tools.cleaning.duplicates import Key
from st_paragram.tools.cleaning.near_duplicates import Band
from st_paragram.tools.preparation.read_stage import ReadStage, read_shard
from st_paragram.tools.preparation.report import PrepareReport
from st_paragram.tools.preparation.row_files import Keys, RowStage, rejects_file, write_rows
from st_paragram.tools.stages.metadata import read_metadata, write_metadata

VERSION = 2  # of the results: count it up when they change
_BATCH_ROWS = 1024


@dataclass(frozen=True)
class CleanStage(RowStage):
    """A task cleans one shard of one text.

    The metadata of a task have `rows`, `kept`, `dropped` (by reason) and `repaired` (by name of the repair).

    Attributes:
        read: Whose shards come in.
        cleaning: The filters and repairs.
        identities: What `filters_digest` gives for each text, once for the run: it may have to read large models.
        lower_case: Lower-case the texts.
        segmentation: How Chinese is cut into words.
        by: What the keys of rows are computed from.
        seed: Seed of the keys.
        rejects: Also leave the dropped rows in files.
    """

    name: ClassVar[str] = "clean"
    read: ReadStage
    cleaning: Cleaning
    identities: tuple[str, ...]
    lower_case: bool
    segmentation: Segmentation
    by: Key | Band
    seed: int
    rejects: bool

    def digests(self) -> list[str]:
        """One for each text."""
        how = [self.lower_case, self.segmentation.value, self.by.value, self.seed, self.rejects]
        texts = enumerate(zip(self.identities, self.read.digests(), strict=True))
        return [digest(VERSION, identity, text, source, how) for source, (identity, text) in texts]

    def results(self) -> list[Path]:
        """A file of rows per shard, text by text."""
        return [result for _, _, result in self._tasks()]

    def steps(self, source: int) -> list[RowStep]:
        """The filters and repairs for the languages of a text."""
        return _steps(json.dumps(self.cleaning.as_json()), self.read.sources[source].pair)

    def report(self) -> PrepareReport:
        """What was read, and what the filters have dropped of it."""
        report = self.read.report()
        for source, text in enumerate(report.sources):
            steps = self.steps(source)
            for reason in (reason for each in steps for reason in each.reasons):
                text.drop(reason, 0)  # all reasons are listed, in the order of the filters
            text.repairs.update({each.name: 0 for each in steps if isinstance(each, RowRepair)})
        for source, _, result in self._tasks():
            done = read_metadata(result)
            for reason, count in done["dropped"].items():
                report.sources[source].drop(reason, count)
            report.sources[source].repairs.update(done["repaired"])
        return report

    def run(self, task: int) -> None:
        """Clean a shard.

        Raises:
            TextError: A row lacks what a filter needs, a column for example.
        """
        source, shard, result = self._tasks()[task]
        started = time.perf_counter()
        steps = self.steps(source)
        normalize = normalizer(self.lower_case, self.segmentation)
        keys = Keys(self.by, self.seed)
        dropped, repaired, rejects = Counter[str](), Counter[str](), list[str]()
        packed: list[bytes] = []
        read = 0
        for rows in read_shard(shard, _BATCH_ROWS):
            first = int(shard.stem) * self.read.shard_rows + read + 1
            read += len(rows)
            try:
                for each in steps:
                    if isinstance(each, RowRepair):
                        rows = _repair(each, rows, repaired)
                    elif isinstance(each, RowFilter):
                        rows = _apply(each, rows, dropped, rejects if self.rejects else None)
            except TextError as error:
                where = f"{self.read.sources[source].name}: among rows {first}..{first + _BATCH_ROWS - 1}"
                raise TextError(f"{where}: {error}") from error
            normalized = ((normalize(row[0]), normalize(row[1])) for row in rows)
            packed += keys.pack(normalized, source, rows if self.rejects else None)
        if self.rejects:
            with atomic(rejects_file(result)) as handle:
                handle.write("".join(rejects).encode("utf-8"))
        write_rows(result, packed)
        seconds = time.perf_counter() - started
        counts = {"rows": read, "kept": len(packed), "dropped": dropped, "repaired": repaired}
        write_metadata(result, counts | {"seconds": seconds})

    def _tasks(self) -> list[tuple[int, Path, Path]]:
        """For each task the number of the text, the shard and the result."""
        return [
            (source, shard, self.root / self.name / each / f"{shard.stem}.rows")
            for source, each in enumerate(self.digests())
            for shard in self.read.shards(source)
        ]


def filters_digest(cleaning: Cleaning, languages: tuple[str, str]) -> str:
    """Tell lists of steps apart by all that their results depend on: options, files that are read, and our version."""
    return digest(installed_version(), [[each.name, each.identity()] for each in cleaning.make_steps(languages)])


def _repair(each: RowRepair, rows: list[tuple[str, ...]], repaired: Counter[str]) -> list[tuple[str, ...]]:
    result = each.repair(rows)
    repaired[each.name] += sum(after is not before for before, after in zip(rows, result, strict=True))
    return result


def _apply(
    each: RowFilter, rows: list[tuple[str, ...]], dropped: Counter[str], rejects: list[str] | None
) -> list[tuple[str, ...]]:
    reasons = each.reject(rows)
    found = Counter(reasons)
    if found[None] == len(rows):
        return rows
    dropped.update({reason: count for reason, count in found.items() if reason is not None})
    if rejects is not None:
        rejects += [f"{why}\t{chr(9).join(row)}\n" for row, why in zip(rows, reasons, strict=True) if why is not None]
    return [row for row, reason in zip(rows, reasons, strict=True) if reason is None]


@lru_cache(maxsize=64)
def _steps(cleaning: str, languages: tuple[str, str]) -> list[RowStep]:
    """Made once in a process: what steps load stays loaded from shard to shard."""
    items: Sequence[object] = json.loads(cleaning)
    return parse_cleaning(list(items), "the settings").make_steps(languages)
