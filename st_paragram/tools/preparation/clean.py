"""Read texts in blocks, filter and repair their rows, and distribute the remaining rows to bucket
files.

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
from st_paragram.tools.preparation.buckets import BUCKETS, Buckets, row_keys
from st_paragram.tools.preparation.report import COLUMNS, INVALID, NUL, REPAIRS, SourceReport
from st_paragram.tools.preparation.settings import PrepareSettings
from st_paragram.tools.work import in_processes

_BLOCK_ROWS = 4096  # filters process a quarter at a time
_BATCH_ROWS = 1024
_NOTED = 16  # blocks between two saves of the progress
#: The settings that affect cleaned rows; all others have an effect only on later steps.
_OF_CLEANING = ("languages", "cleaning", "lower_case", "segmentation", "drop_invalid", "seed")


def identity(sources: Sequence[TextSource], settings: PrepareSettings) -> str:
    """Identify a store by its settings, and by path, size and modification time of the texts and
    files of filters.
    """
    texts = [
        [
            source.languages,
            source.codes,
            source.swapped,
            source.further_columns,
            source.columns,
            source.cap,
        ]
        + [file_digest(path) for path in source.paths]
        for source in sources
    ]
    pairs = sorted({source.pair for source in sources})
    filters = [
        [each.name, each.identity()]
        for pair in pairs
        for each in settings.cleaning.make_steps(pair)
    ]
    return digest(installed_version(), texts, settings.as_json(), filters)


def cleaning_identity(sources: Sequence[TextSource], settings: PrepareSettings, carry: bool) -> str:
    """Identify cleaned rows, like `identity`, but without the settings of later steps, such as the
    vocabulary size.
    """
    texts = [replace(source, cap=None) for source in sources]
    of_cleaning = PrepareSettings(**{name: getattr(settings, name) for name in _OF_CLEANING})
    return digest(identity(texts, of_cleaning), carry)


@dataclass(frozen=True)
class Block:
    """Rows of one text, as they were read, with the numbers of the text and of the first row."""

    source: TextSource
    number: int
    first: int
    rows: list[Row]


@dataclass
class Cleaned:
    """The result for a block: rows for the buckets, counts of reasons and repairs, and dropped rows
    by reason.
    """

    block_rows: int
    rows: list[bytes] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    rejects: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Cleaner:
    """Filters, repairs, normalizes and keys blocks of rows; `carry` keeps their columns as the
    filters saw them.
    """

    settings: PrepareSettings
    steps: dict[tuple[str, str], list[RowStep]]  # languages -> steps
    carry: bool

    def __call__(self, block: Block) -> Cleaned:
        """Clean a block."""
        settings, cleaned = self.settings, Cleaned(len(block.rows))
        normalize = normalizer(settings.lower_case, settings.segmentation)
        by = (*settings.cleaning.duplicates.on, "pair")[0]
        for start in range(0, len(block.rows), _BATCH_ROWS):
            rows: list[Row] = [
                tuple(" ".join(cell.split()) for cell in row)
                for row in block.rows[start : start + _BATCH_ROWS]
            ]
            try:
                seen, reasons, repaired = apply_steps(self.steps[block.source.pair], rows)
            except TextError as error:
                first = block.first + start
                raise TextError(
                    f"{block.source.name}: among rows {first}..{first + _BATCH_ROWS - 1}: {error}"
                ) from error
            cleaned.counts.update(repaired)
            rows = []
            for row, reason in zip(seen, reasons, strict=True):
                if reason is None:
                    rows.append(row)
                    continue
                cleaned.counts[reason] += 1
                if self.carry:
                    cleaned.rejects.setdefault(reason, []).append("\t".join(row) + "\n")
            texts = [
                f"{normalize(row[0])}\t{normalize(row[1])}".encode("utf-8", "replace")
                for row in rows
            ]
            carried = [
                f"\t{chr(9).join(row)}".encode("utf-8", "replace") if self.carry else b""
                for row in rows
            ]
            parts = zip(row_keys(texts, by, settings.seed), texts, carried, strict=True)
            cleaned.rows += [
                b"%s\t%04d\t%s%s\n" % (key, block.number, text, more) for key, text, more in parts
            ]
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
    cleaner, note = Cleaner(settings, steps, carry), work / "cleaned.json"
    progress = _Progress(cleaning_identity(sources, settings, carry))
    if note.is_file() and (noted := _Progress(**read_json(note))).identity == progress.identity:
        progress = noted
    with (
        Buckets(work / "cleaned", progress.sizes) as buckets,
        _Rejects(work / "rejects", progress.rejects) as rejects,
        in_processes(cleaner, workers) as in_order,
    ):

        def note_progress() -> None:
            progress.sizes, progress.rejects = buckets.sizes(), rejects.sizes()
            write_json(note, vars(progress))

        for number in range(progress.texts, len(sources)):
            source, read = sources[number], ReadCounts()
            counts = Counter(progress.counts.pop() if len(progress.counts) > number else {})
            progress.counts.append(counts)
            blocks = _blocks(
                source, number, read_rows(source, read, settings.drop_invalid), progress.rows
            )
            for done, cleaned in enumerate(in_order(blocks), 1):
                buckets.add(cleaned.rows)
                rejects.add(cleaned.rejects)
                counts.update(cleaned.counts)
                progress.rows += cleaned.block_rows
                if done % _NOTED == 0:
                    note_progress()
            counts.update(vars(read))
            progress.texts, progress.rows = number + 1, 0
            note_progress()
    return [
        _report(source, steps[source.pair], Counter(counts), settings)
        for source, counts in zip(sources, progress.counts, strict=True)
    ]


def _blocks(source: TextSource, number: int, rows: Iterator[Row], skipped: int) -> Iterator[Block]:
    """Yield the remaining rows of a text, after those that were cleaned before."""
    name = Path(source.name).name
    with tqdm(
        desc=f"cleaning {name}", unit=" rows", unit_scale=True, disable=None, leave=False
    ) as bar:
        bar.update(sum(1 for _ in islice(rows, skipped)))
        first = skipped + 1
        while block := list(islice(rows, _BLOCK_ROWS)):
            yield Block(source, number, first, block)
            bar.update(len(block))
            first += len(block)


def _report(
    source: TextSource, steps: Sequence[RowStep], counts: Counter[str], settings: PrepareSettings
) -> SourceReport:
    """Make the report of a text with all reasons and repairs, in the order of the filters."""
    report = SourceReport(source.name, "-".join(source.pair), counts["rows"], counts["rows"])
    report.drop(NUL, counts["nul_rows"])
    report.drop(INVALID, counts["invalid_rows"])
    if settings.drop_invalid:
        report.drop(COLUMNS, counts["wrong_columns"])
    for reason in (reason for step in steps for reason in step.reasons):
        report.drop(reason, counts[reason])
    names = [*REPAIRS, *(step.repairs for step in steps if isinstance(step, RowRepair))]
    report.repairs.update({name: counts[name] for name in names})
    return report


def rejects_name(reason: str) -> str:
    """Return the name of the file for rows dropped for a reason."""
    return f"{re.sub('[^a-z0-9]+', '-', reason.lower())}.tsv"


class _Rejects(ExitStack):
    """A file for each reason, open for appending rows after its first `sizes` bytes."""

    def __init__(self, folder: Path, sizes: dict[str, int]) -> None:
        super().__init__()
        self._folder, self._files = folder, dict[str, BinaryIO]()
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():  # rows that a killed run added after its last save
            self._file(path.name).truncate(sizes.get(path.name, 0))

    def add(self, rejects: dict[str, list[str]]) -> None:
        for reason, rows in rejects.items():
            self._file(rejects_name(reason)).write("".join(rows).encode("utf-8", "replace"))

    def sizes(self) -> dict[str, int]:
        for file in self._files.values():
            file.flush()
        return {name: file.tell() for name, file in self._files.items()}

    def _file(self, name: str) -> BinaryIO:
        if name not in self._files:
            self._files[name] = self.enter_context((self._folder / name).open("ab"))
        return self._files[name]
