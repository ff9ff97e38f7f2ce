"""Read texts in blocks, filter and repair their rows, and distribute them to bucket files.

The progress is saved every few blocks, so that an interrupted run can be resumed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from tqdm import tqdm

from st_paragram.core.extras import installed_version
from st_paragram.core.files import digest, file_digest, read_json, write_json
from st_paragram.core.text.parallel import ReadCounts, TextSource, read_rows
from st_paragram.core.tokenizers.sentencepiece import normalizer
from st_paragram.errors import TextError
from st_paragram.tools.cleaning.base import Row, RowRepair, RowStep, apply_steps
from st_paragram.tools.cleaning.text import single_spaced
from st_paragram.tools.preparation.buckets import BUCKETS, Buckets, pack_rows
from st_paragram.tools.preparation.report import COLUMNS, INVALID, NUL, REPAIRS, SourceReport
from st_paragram.tools.preparation.settings import PrepareSettings
from st_paragram.tools.work import in_processes

BLOCK_ROWS = 1024
_BLOCKS_BETWEEN_SAVES = 64
#: The settings that affect cleaned rows; all others have an effect only on later steps.
_OF_CLEANING = ("languages", "cleaning", "lower_case", "segmentation", "drop_invalid", "seed")


def identity(sources: Sequence[TextSource], settings: PrepareSettings) -> str:
    """Identify a store by its settings, and by path, size and time of files that are read."""
    texts: list[list[object]] = []
    for source in sources:
        options = [source.languages, source.codes, source.swapped, source.further_columns]
        digests = [file_digest(path) for path in source.paths]
        texts.append([*options, source.columns, source.cap, *digests])
    filters = []
    for pair in sorted({source.pair for source in sources}):
        filters += [[step.name, step.identity()] for step in settings.cleaning.make_steps(pair)]
    return digest(installed_version(), texts, settings.as_json(), filters)


def cleaning_identity(sources: Sequence[TextSource], settings: PrepareSettings, carry: bool) -> str:
    """Identify cleaned rows, like `identity`, but without the settings of later steps."""
    texts = [replace(source, cap=None) for source in sources]
    values = {name: getattr(settings, name) for name in _OF_CLEANING}
    return digest(identity(texts, PrepareSettings(**values)), carry)


@dataclass(frozen=True)
class Block:
    """Rows of one text, as they were read, with the numbers of the text and of the first row."""

    source: TextSource
    number: int
    first: int
    rows: list[Row]


def clean_rows(
    block: Block, steps: Sequence[RowStep]
) -> tuple[list[Row], list[str | None], Counter[str]]:
    """Return what `apply_steps` does for rows with single spaces; errors name the rows."""
    rows: list[Row] = [tuple(map(single_spaced, row)) for row in block.rows]
    try:
        return apply_steps(steps, rows)
    except TextError as error:
        last = block.first + len(rows) - 1
        raise TextError(
            f"{block.source.name}: among rows {block.first}..{last}: {error}"
        ) from error


@dataclass
class Cleaned:
    """The result for a block: rows for the buckets, counts of reasons and repairs, dropped rows."""

    block_rows: int
    rows: list[bytes] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    rejects: dict[str, list[Row]] = field(default_factory=dict)


@dataclass(frozen=True)
class Cleaner:
    """Filters, repairs, normalizes and packs blocks of rows; `carry` keeps their columns."""

    settings: PrepareSettings
    steps: dict[tuple[str, str], list[RowStep]]  # languages -> steps
    carry: bool

    def __call__(self, block: Block) -> Cleaned:
        """Clean a block."""
        steps = self.steps[block.source.pair]
        rows, reasons, repaired = clean_rows(block, steps)
        cleaned = Cleaned(len(rows), counts=repaired)
        kept = []
        for row, reason in zip(rows, reasons, strict=True):
            if reason is None:
                kept.append(row)
                continue
            cleaned.counts[reason] += 1
            if self.carry:
                cleaned.rejects.setdefault(reason, []).append(row)
        settings = self.settings
        normalize = normalizer(settings.lower_case, settings.segmentation)
        pairs = [(normalize(row[0]), normalize(row[1])) for row in kept]
        by = (*settings.cleaning.duplicates.on, "pair")[0]
        columns = kept if self.carry else None
        cleaned.rows = pack_rows(
            pairs, source=block.number, by=by, seed=settings.seed, columns=columns
        )
        return cleaned


@dataclass
class _Progress:
    """The progress: complete texts, rows of the next text, and the sizes of files at that point."""

    identity: str
    texts: int = 0
    rows: int = 0
    sizes: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    rejects: dict[str, int] = field(default_factory=dict)
    # for each text: `ReadCounts`, reasons, repairs
    counts: list[dict[str, int]] = field(default_factory=list)


def clean(
    sources: Sequence[TextSource],
    settings: PrepareSettings,
    work: Path,
    carry: bool,
    workers: int = 1,
) -> list[SourceReport]:
    """Distribute the rows of all texts to `<work>/cleaned`, and count them.

    Work that was started in the folder for the same texts and settings is resumed. With `carry`,
    rows keep all their columns, and dropped rows go to `<work>/rejects`. The reports count the rows
    read, repaired, dropped and kept in each text.
    """
    steps = {source.pair: settings.cleaning.make_steps(source.pair) for source in sources}
    cleaner = Cleaner(settings, steps, carry)
    progress_file = work / "cleaned.json"
    progress = _Progress(cleaning_identity(sources, settings, carry))
    if progress_file.is_file():
        saved = _Progress(**read_json(progress_file))
        if saved.identity == progress.identity:
            progress = saved
    with (
        Buckets(work / "cleaned", progress.sizes) as buckets,
        _Rejects(work / "rejects", progress.rejects) as rejects,
        in_processes(cleaner, workers) as in_order,
    ):

        def save_progress() -> None:
            progress.sizes = buckets.sizes()
            progress.rejects = rejects.sizes()
            write_json(progress_file, vars(progress))

        for number in range(progress.texts, len(sources)):
            source = sources[number]
            read_counts = ReadCounts()
            if len(progress.counts) == number:
                progress.counts.append({})
            counts = Counter(progress.counts[number])
            progress.counts[number] = counts
            rows = read_rows(source, read_counts, settings.drop_invalid)
            blocks = _blocks(source, number, rows, skipped=progress.rows)
            for count, cleaned in enumerate(in_order(blocks), 1):
                buckets.add(cleaned.rows)
                rejects.add(cleaned.rejects)
                counts.update(cleaned.counts)
                progress.rows += cleaned.block_rows
                if count % _BLOCKS_BETWEEN_SAVES == 0:
                    save_progress()
            counts.update(vars(read_counts))
            progress.texts = number + 1
            progress.rows = 0
            save_progress()
    reports = []
    for source, source_counts in zip(sources, progress.counts, strict=True):
        report = source_report(
            source, steps[source.pair], Counter(source_counts), drop_invalid=settings.drop_invalid
        )
        reports.append(report)
    return reports


def _blocks(source: TextSource, number: int, rows: Iterator[Row], skipped: int) -> Iterator[Block]:
    """Yield the remaining rows of a text, after those that were cleaned before."""
    name = Path(source.name).name
    with tqdm(
        desc=f"cleaning {name}", unit=" rows", unit_scale=True, disable=None, leave=False
    ) as bar:
        bar.update(sum(1 for _ in islice(rows, skipped)))
        first = skipped + 1
        while block := list(islice(rows, BLOCK_ROWS)):
            yield Block(source, number, first=first, rows=block)
            bar.update(len(block))
            first += len(block)


def source_report(
    source: TextSource, steps: Sequence[RowStep], counts: Counter[str], *, drop_invalid: bool
) -> SourceReport:
    """Make the report of a text with all reasons and repairs, in the order of the filters."""
    rows = counts["rows"]
    report = SourceReport(source.name, "-".join(source.pair), rows=rows, kept=rows)
    report.drop(NUL, counts["nul_rows"])
    report.drop(INVALID, counts["invalid_rows"])
    if drop_invalid:
        report.drop(COLUMNS, counts["wrong_columns"])
    names = list(REPAIRS)
    for step in steps:
        for reason in step.reasons:
            report.drop(reason, counts[reason])
        if isinstance(step, RowRepair):
            names.append(step.repairs)
    report.repairs.update({name: counts[name] for name in names})
    return report


def rejects_name(reason: str) -> str:
    """Return the name of the file for rows dropped for a reason."""
    return f"{re.sub('[^a-z0-9]+', '-', reason.lower())}.tsv"


class _Rejects(ExitStack):
    """A file for each reason, open for appending rows after its first `sizes` bytes."""

    def __init__(self, folder: Path, sizes: dict[str, int]) -> None:
        super().__init__()
        self._folder = folder
        self._files = dict[str, BinaryIO]()
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():  # rows that a killed run added after its last save
            self._file(path.name).truncate(sizes.get(path.name, 0))

    def add(self, rejects: dict[str, list[Row]]) -> None:
        for reason, rows in rejects.items():
            text = "".join(["\t".join(row) + "\n" for row in rows])
            self._file(rejects_name(reason)).write(text.encode("utf-8", "replace"))

    def sizes(self) -> dict[str, int]:
        for file in self._files.values():
            file.flush()
        return {name: file.tell() for name, file in self._files.items()}

    def _file(self, name: str) -> BinaryIO:
        if name not in self._files:
            self._files[name] = self.enter_context((self._folder / name).open("ab"))
        return self._files[name]
