"""Read texts in blocks, filter and repair their rows, and scatter those that stay to bucket files.

After every few blocks a note says how far that went, so that work that was killed goes on from there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from tqdm import tqdm

from st_paragram.core.files import digest, file_digest, read_json, write_json
from st_paragram.core.text.parallel import ReadCounts, TextSource, read_rows
from st_paragram.core.tokenizers.sentencepiece import Segmentation, normalizer
from st_paragram.core.version import installed_version
from st_paragram.errors import TextError
from st_paragram.tools.cleaning.base import Row, RowRepair, RowStep, apply_steps
from st_paragram.tools.cleaning.config import Cleaning, Key
from st_paragram.tools.preparation.buckets import BUCKETS, Buckets, row_keys
from st_paragram.tools.preparation.report import COLUMNS, INVALID, NUL, REPAIRS, SourceReport
from st_paragram.tools.preparation.settings import PrepareSettings
from st_paragram.tools.work import in_processes

_BLOCK_ROWS = 4096  # of which filters look at a quarter at a time
_BATCH_ROWS = 1024
_NOTED = 16  # blocks between two notes


def identity(sources: Sequence[TextSource], settings: PrepareSettings) -> str:
    """Tell stores apart by the settings, and by path, size and time of change of the texts and of files of filters.

    Raises:
        TextError: A text is missing.
    """
    texts = [
        [source.languages, source.codes, source.swapped, source.further_columns, source.columns, source.cap]
        + [file_digest(path) for path in source.paths]
        for source in sources
    ]
    pairs = sorted({source.pair for source in sources})
    filters = [[each.name, each.identity()] for pair in pairs for each in settings.cleaning.make_steps(pair)]
    return digest(installed_version(), texts, settings.as_json(), filters)


@dataclass(frozen=True)
class Block:
    """Rows of one text, as they were read, and the number of the first."""

    source: int
    pair: tuple[str, str]
    first: int
    name: str
    rows: list[Row]


@dataclass
class Cleaned:
    """What became of a block: rows for the buckets, and counts and lines of those that were dropped, by reason."""

    block_rows: int = 0
    rows: list[bytes] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    rejects: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Cleaner:
    """Filters, repairs, normalizes and keys blocks of rows; `carry` keeps their columns as the filters saw them."""

    cleaning: Cleaning
    lower_case: bool
    segmentation: Segmentation
    by: Key
    seed: int
    carry: bool

    @cached_property
    def _steps(self) -> dict[tuple[str, str], list[RowStep]]:
        return {}

    def steps(self, pair: tuple[str, str]) -> list[RowStep]:
        """The filters and repairs for two languages, made once."""
        if pair not in self._steps:
            self._steps[pair] = self.cleaning.make_steps(pair)
        return self._steps[pair]

    def __call__(self, block: Block) -> Cleaned:
        """Clean a block."""
        cleaned = Cleaned(len(block.rows))
        normalize = normalizer(self.lower_case, self.segmentation)
        for start in range(0, len(block.rows), _BATCH_ROWS):
            rows: list[Row] = [
                tuple(" ".join(cell.split()) for cell in row) for row in block.rows[start : start + _BATCH_ROWS]
            ]
            try:
                rows = self._clean(rows, block.pair, cleaned)
            except TextError as error:
                first = block.first + start
                raise TextError(f"{block.name}: among rows {first}..{first + _BATCH_ROWS - 1}: {error}") from error
            texts = [f"{normalize(row[0])}\t{normalize(row[1])}".encode("utf-8", "replace") for row in rows]
            carried = [f"\t{chr(9).join(row)}".encode("utf-8", "replace") if self.carry else b"" for row in rows]
            keys = row_keys(texts, self.by, self.seed)
            parts = zip(keys, texts, carried, strict=True)
            cleaned.rows += [b"%s\t%04d\t%s%s\n" % (key, block.source, text, more) for key, text, more in parts]
        return cleaned

    def _clean(self, rows: list[Row], pair: tuple[str, str], cleaned: Cleaned) -> list[Row]:
        seen, reasons, repaired = apply_steps(self.steps(pair), rows)
        cleaned.repaired += repaired
        cleaned.dropped.update(reason for reason in reasons if reason is not None)
        if self.carry:
            for row, reason in zip(seen, reasons, strict=True):
                if reason is not None:
                    cleaned.rejects.setdefault(reason, []).append("\t".join(row) + "\n")
        return [row for row, reason in zip(seen, reasons, strict=True) if reason is None]


@dataclass
class _Progress:
    """How far the reading went: whole texts, rows of the next one, and how long files were then."""

    identity: str
    texts: int = 0
    rows: int = 0
    sizes: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    rejects: dict[str, int] = field(default_factory=dict)
    counts: list[dict[str, int]] = field(default_factory=list)
    dropped: list[dict[str, int]] = field(default_factory=list)
    repaired: list[dict[str, int]] = field(default_factory=list)


def clean(
    sources: Sequence[TextSource], settings: PrepareSettings, cleaner: Cleaner, work: Path, workers: int = 1
) -> list[SourceReport]:
    """Scatter the rows of all texts to `<work>/cleaned`, those dropped to `<work>/rejects`, and count them.

    Args:
        sources: The texts.
        settings: Of the preparation.
        cleaner: What is done to rows.
        work: A folder; what was begun there for the same texts and settings is gone on with.
        workers: Processes that clean.

    Returns:
        What was read, repaired, dropped and kept of each text.

    Raises:
        TextError: A text cannot be read, or a row lacks what a filter needs, a column for example.
    """
    note = work / "cleaned.json"
    progress = _Progress(digest(identity(sources, settings), cleaner.carry))
    if note.is_file() and (noted := _Progress(**read_json(note))).identity == progress.identity:
        progress = noted
    with Buckets(work / "cleaned", progress.sizes) as buckets, _Rejects(work / "rejects", progress.rejects) as rejects:
        for number in range(progress.texts, len(sources)):
            source, counts = sources[number], ReadCounts()
            if len(progress.dropped) == number:
                progress.dropped.append({})
                progress.repaired.append({})
            dropped, repaired = Counter(progress.dropped[number]), Counter(progress.repaired[number])
            blocks = _blocks(source, number, read_rows(source, counts, settings.drop_invalid), progress.rows)
            for done, cleaned in enumerate(in_processes(cleaner, blocks, workers), 1):
                buckets.add(cleaned.rows)
                rejects.add(cleaned.rejects)
                dropped.update(cleaned.dropped)
                repaired.update(cleaned.repaired)
                progress.rows += cleaned.block_rows
                progress.dropped[number], progress.repaired[number] = dict(dropped), dict(repaired)
                if done % _NOTED == 0:
                    progress.sizes, progress.rejects = buckets.sizes(), rejects.sizes()
                    write_json(note, asdict(progress))
            progress.counts.append(asdict(counts))
            progress.texts, progress.rows = number + 1, 0
            progress.sizes, progress.rejects = buckets.sizes(), rejects.sizes()
            write_json(note, asdict(progress))
    return [_report(source, cleaner, settings, progress, number) for number, source in enumerate(sources)]


def _blocks(source: TextSource, number: int, rows: Iterator[Row], skipped: int) -> Iterator[Block]:
    """The rows of a text behind those that were cleaned before."""
    name = Path(source.name).name
    with tqdm(desc=f"cleaning {name}", unit=" rows", unit_scale=True, disable=None, leave=False) as bar:
        bar.update(sum(1 for _ in islice(rows, skipped)))
        first = skipped + 1
        while block := list(islice(rows, _BLOCK_ROWS)):
            yield Block(number, source.pair, first, source.name, block)
            bar.update(len(block))
            first += len(block)


def _report(
    source: TextSource, cleaner: Cleaner, settings: PrepareSettings, progress: _Progress, number: int
) -> SourceReport:
    counts, steps = progress.counts[number], cleaner.steps(source.pair)
    report = SourceReport(source.name, "-".join(source.pair), counts["rows"], counts["rows"])
    report.repairs.update({name: counts[name] for name in REPAIRS})
    report.drop(NUL, counts["nul_rows"])
    report.drop(INVALID, counts["invalid_rows"])
    if settings.drop_invalid:
        report.drop(COLUMNS, counts["wrong_columns"])
    for reason in (reason for each in steps for reason in each.reasons):
        report.drop(reason, progress.dropped[number].get(reason, 0))  # all are listed, in the order of the filters
    report.repairs.update(
        {each.name: progress.repaired[number].get(each.name, 0) for each in steps if isinstance(each, RowRepair)}
    )
    return report


def rejects_name(reason: str) -> str:
    """The file of the rows dropped for a reason."""
    return f"{re.sub('[^a-z0-9]+', '-', reason.lower())}.tsv"


class _Rejects:
    """A file for each reason, open for rows to be added behind its first so many bytes."""

    def __init__(self, folder: Path, sizes: dict[str, int]) -> None:
        self._folder, self._stack = folder, ExitStack()
        self._files: dict[str, BinaryIO] = {}
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():  # what a killed run has added since its last note
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
            self._files[name] = self._stack.enter_context((self._folder / name).open("ab"))
        return self._files[name]

    def __enter__(self) -> _Rejects:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
