"""What plans say of texts, models, work folders and workers, see `common.add_plan_option`.

Texts are not read through: the number of their lines is guessed from their size and from their first lines.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from st_paragram.core.encoding.directory import AVERAGING, read_configuration, weights_size
from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.find import default_model, find_here
from st_paragram.core.files import is_pipe
from st_paragram.core.plan import size
from st_paragram.core.text.parallel import TextSource, read_rows
from st_paragram.core.text.streams import PACKED, stream_name
from st_paragram.core.text.tables import read_texts
from st_paragram.core.words import counted
from st_paragram.tools.stages.distributed import ClusterExecutor, refuse_pipes
from st_paragram.tools.stages.executors import Executor
from st_paragram.tools.stages.work import Work

Number = TypeVar("Number", int, float)

#: Sentences that an averaging model embeds in a second, each seen for the first time, on one thread (docs/speed.md).
EMBEDDED_A_SECOND = 150_000
_LINES_LOOKED_AT = 1000
_PACKED = 3  # how many times larger packed text is when it is unpacked: gzip 2.5 to 3, xz 3 to 4
_BASE_MEMORY = 100 << 20  # of a process that embeds, without the model (docs/speed.md: 115 MiB with one of 28 MB)
_LINES_AT_A_TIME = 1 << 14


@dataclass(frozen=True)
class PlannedText:
    """A text that is to be read.

    Attributes:
        line: What a plan says of it.
        bytes: Of the text, unpacked; None where it is not known.
        rows: Lines, or pairs; None where they are not known.
        counted: Rows are distinct sentences, and not a guess.
    """

    line: str
    bytes: int | None = None
    rows: int | None = None
    counted: bool = False


def planned_lines(path: str, column: str | None = None) -> PlannedText:
    """A text with a sentence on each line, or in each row of a column.

    Raises:
        TextError: Its beginning cannot be read.
    """
    if is_pipe(path):
        return PlannedText(stream_name(path))
    return _planned([path], path, ((line,) for line in read_texts(path, column)), "line", column is not None)


def planned_pairs(source: TextSource, drop_invalid: bool | None = None) -> PlannedText:
    """A parallel text.

    Raises:
        TextError: Its beginning cannot be read.
    """
    if any(map(is_pipe, source.paths)):
        return PlannedText(source.name)
    text = _planned(
        source.paths, source.name, read_rows(source, drop_invalid=drop_invalid), "pair", bool(source.columns)
    )
    if source.cap is None:
        return text
    rows = source.cap if text.rows is None else min(text.rows, source.cap)
    return PlannedText(f"{text.line}, at most {source.cap:,} of them used", text.bytes, rows)


def _planned(paths: Sequence[str], name: str, rows: Iterator[tuple[str, ...]], what: str, table: bool) -> PlannedText:
    head = list(islice(rows, _LINES_LOOKED_AT))
    on_disk, unpacked = sum(Path(path).stat().st_size for path in paths), sum(map(_unpacked, paths))
    read = sum(len(cell.encode("utf-8", "replace")) + 1 for row in head for cell in row)
    if len(head) < _LINES_LOOKED_AT:
        return PlannedText(
            f"{name}: {size(on_disk)}, {counted(len(head), what)}", read if table else unpacked, len(head)
        )
    if table:  # a line may hold much more than the columns wanted
        return PlannedText(f"{name}: {size(on_disk)}")
    count = max(round(unpacked * len(head) / read), len(head))
    return PlannedText(f"{name}: {size(on_disk)}, about {float(f'{count:.2g}'):,.0f} {what}s", unpacked, count)


def _unpacked(path: str) -> int:
    suffix, packed = Path(path).suffix.lower(), Path(path).stat().st_size
    if suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            return sum(member.file_size for member in archive.infolist())
    return packed * (_PACKED if suffix in PACKED else 1)


def total(parts: Iterable[Number | None]) -> Number | None:
    """A sum; None if a part of it is not known."""
    known: Any = list(parts)
    return None if None in known else sum(known)


@dataclass(frozen=True)
class PlannedModel:
    """A model that texts are to be embedded with.

    Attributes:
        name: As it was given.
        line: What a plan says of it.
        folder: Where it is; None if it is on the hub.
        dimension: Components of an embedding; None where the model would have to be opened.
        weights: Bytes of its weights.
        fast: It is the mean of embeddings, of which the speed is known.
    """

    name: str
    line: str
    folder: Path | None = None
    dimension: int | None = None
    weights: int | None = None
    fast: bool = False

    def seconds(self, sentences: int | None, workers: int = 1) -> float | None:
        """A guess at the time that embedding takes."""
        return sentences / EMBEDDED_A_SECOND / workers if self.fast and sentences is not None else None

    def memory(self, workers: int = 1) -> int | None:
        """A guess at the memory of processes that embed."""
        if self.dimension is None or self.weights is None:
            return None
        return workers * (_BASE_MEMORY + self.weights + 2 * 4 * _LINES_AT_A_TIME * self.dimension)


def planned_model(name: str | Path | None) -> PlannedModel:
    """The model that was named, or the default one; nothing is fetched from the hub.

    Raises:
        ModelDirectoryError: There is no such model, or it is damaged.
    """
    name = str(name or default_model())
    folder = find_here(name)
    if folder is None:
        return PlannedModel(name, f"{name}: a model of the Hugging Face hub, fetched unless it is in the cache")
    weights, architecture = weights_size(folder), read_configuration(folder).architecture
    if architecture != AVERAGING:
        line = f"{name}: a model of the architecture {architecture}, {size(weights)}"
        return PlannedModel(name, line, folder, weights=weights)
    dimension = Encoder(folder).get_embedding_dimension()
    line = f"{name}: a model of {counted(dimension, 'component')}, {size(weights)}"
    return PlannedModel(name, line, folder, dimension, weights, fast=True)


def planned_workers(executor: Executor | None, texts: Iterable[str] = ()) -> str:
    """Who does the work on texts, in words.

    Raises:
        ParagramError: A text is a pipe, which no other machine can read.
    """
    if isinstance(executor, ClusterExecutor):
        refuse_pipes(any(map(is_pipe, texts)))
        at_once = "all at once" if executor.workers < 0 else f"{executor.workers} at once"
        return f"{counted(executor.ranks, 'task')} for each stage, {at_once}, by {executor.cluster.value}"
    workers = 1 if executor is None else executor.workers
    return "1 process" if workers == 1 else f"{workers:,} processes"


def planned_work(work: Work, output: Path) -> str:
    """The work folder, in words."""
    folder = work.folder_for(output)
    there = ", which has results of an earlier run" if folder.is_dir() else ""
    return f"{folder}: results of the stages{there}, {'kept' if work.keep else 'removed at the end'}"
