"""First stage: read each text once and write it as shards, which the tasks of later stages share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar

from tqdm import tqdm

from st_paragram.core.files import atomic, digest, file_digest, is_pipe
from st_paragram.core.text.parallel import ReadCounts, TextSource, read_rows
from st_paragram.tools.preparation.report import COLUMNS, INVALID, NUL, REPAIRS, PrepareReport, SourceReport
from st_paragram.tools.stages.metadata import metadata_file, read_metadata, write_metadata
from st_paragram.tools.stages.stage import Stage

VERSION = 2  # of the shards: count it up when they change
SHARD_ROWS = 100_000


def text_digest(source: TextSource, drop_invalid: bool, shard_rows: int = SHARD_ROWS) -> str:
    """Tell texts, and ways of reading them, apart: by absolute path, size and time of change.

    A pipe is like no other text, not even like itself in another run.

    Raises:
        TextError: A text is missing.
    """
    how: list[object] = [
        source.languages,
        source.codes,
        source.swapped,
        source.further_columns,
        drop_invalid,
        shard_rows,
    ]
    how += [source.columns] if source.columns else []
    return digest(VERSION, how, [file_digest(path) for path in source.paths])


@dataclass(frozen=True)
class ReadStage(Stage):
    r"""A task reads one text to `<text>/00000.tsv`, ...: rows of columns, words parted by single spaces.

    The metadata of a text have `shards` and the fields of `ReadCounts`. A text whose reading was interrupted is read
    from its start again, but complete shards are not written again.

    Attributes:
        sources: The texts.
        identities: Of each text what `text_digest` gives.
        drop_invalid: Drop rows that are not UTF-8 instead of refusing the text.
        shard_rows: Rows of a shard.
    """

    name: ClassVar[str] = "read"
    sources: tuple[TextSource, ...]
    identities: tuple[str, ...]
    drop_invalid: bool
    shard_rows: int = SHARD_ROWS

    def digests(self) -> tuple[str, ...]:
        """One for each text."""
        return self.identities

    def results(self) -> list[Path]:
        """One per text; only its metadata is there, next to the shards."""
        return [self.folder(source) / "text" for source in range(len(self.sources))]

    def local(self, task: int) -> bool:
        """Pipes can be read by the process that was started with them, and by no other."""
        return any(is_pipe(path) for path in self.sources[task].paths)

    def shards(self, source: int) -> list[Path]:
        """The shards of a text that has been read, in order."""
        text = self.results()[source]
        return [_shard(text, number) for number in range(read_metadata(text)["shards"])]

    def report(self) -> PrepareReport:
        """What was read, dropped and repaired."""
        texts = zip(self.sources, self.results(), strict=True)
        return PrepareReport([self._report(source, path, self.drop_invalid) for source, path in texts])

    def run(self, task: int) -> None:
        """Read a text.

        Raises:
            TextError: It cannot be read.
        """
        source, text, counts = self.sources[task], self.results()[task], ReadCounts()
        rows = tqdm(
            read_rows(source, counts, self.drop_invalid),
            desc=f"reading {Path(source.name).name}",
            unit=" rows",
            unit_scale=True,
            disable=None,
            leave=False,
        )
        lines = ("\t".join([" ".join(cell.split()) for cell in row]) + "\n" for row in rows)
        shards = 0
        while shard := list(islice(lines, self.shard_rows)):
            path = _shard(text, shards)
            if not metadata_file(path).is_file():
                with atomic(path) as handle:
                    handle.write("".join(shard).encode("utf-8"))
                write_metadata(path, {"rows": len(shard)})
            shards += 1
        write_metadata(text, {"shards": shards, **asdict(counts)})

    @staticmethod
    def _report(source: TextSource, text: Path, drop_invalid: bool) -> SourceReport:
        counts = read_metadata(text)
        report = SourceReport(source.name, "-".join(source.pair), counts["rows"], counts["rows"])
        report.repairs.update({name: counts[name] for name in REPAIRS})
        report.drop(NUL, counts["nul_rows"])
        report.drop(INVALID, counts["invalid_rows"])
        if drop_invalid:
            report.drop(COLUMNS, counts["wrong_columns"])
        return report


def read_shard(path: Path, rows: int) -> Iterator[list[tuple[str, ...]]]:
    """Yield the rows of a shard in batches of `rows`."""
    with path.open(encoding="utf-8", newline="\n") as handle:
        yield from _batches((tuple(line[:-1].split("\t")) for line in handle), rows)


def _batches(items: Iterable[tuple[str, ...]], count: int) -> Iterator[list[tuple[str, ...]]]:
    iterator = iter(items)
    while batch := list(islice(iterator, count)):
        yield batch


def _shard(text: Path, number: int) -> Path:
    return text.with_name(f"{number:05d}.tsv")
