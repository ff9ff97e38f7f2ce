"""Rows of the tasks of a dual encoder: translations from a store, and files of other tasks."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.files import atomic, content_digest, digest, file_for_folder
from st_paragram.core.folders import writable_cache
from st_paragram.core.outputs import output_lock
from st_paragram.core.pair_store import PairStore
from st_paragram.core.text.streams import read_lines
from st_paragram.core.tokenizers.base import FlatIds, Tokenizer
from st_paragram.core.tokenizers.flat_ids import starts
from st_paragram.errors import TextError, short
from st_paragram.families.muse.settings import COLUMNS
from st_paragram.tools.cleaning.known_sentences import KnownSentences
from st_paragram.tools.evaluation.nli import NLI_LABELS

if TYPE_CHECKING:
    import pyarrow as pa
    from datasets import Dataset

    from st_paragram.families.muse.settings import DualEncoderSettings

logger = logging.getLogger(__name__)

#: The labels of inference; files may have their indices instead.

_FILE = re.compile(r"([a-z]{2,3}(?:[_-][A-Za-z]{2,4})?)\.tsv(?:\.gz|\.xz)?")
_NUMBERS = {
    name: number for number, label in enumerate(NLI_LABELS) for name in (label, str(number))
}
_CHUNK = 4096  # rows read at a time
_VERSION = 2  # version of the cached files

Row = tuple[str, str, str, int]  # first text, second text, context, label


def task_files(folder: str | Path, task: str) -> dict[str, Path]:
    """Return the files `LANG.tsv`, `LANG.tsv.gz` or `LANG.tsv.xz` of a task, by language."""
    folder, found = Path(folder), dict[str, Path]()
    if wrong := file_for_folder(folder):
        raise TextError(f"{wrong}; name the folder of the files LANG.tsv")
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if (matched := _FILE.fullmatch(path.name)) and found.setdefault(matched[1], path) != path:
            raise TextError(f"{path}: same language as {found[matched[1]].name}; keep one of them")
    if not found:
        raise TextError(
            f"{folder}: no files LANG.tsv (or .gz, .xz); add files with rows `{COLUMNS[task]}`"
        )
    return found


def read_texts(path: Path, task: str) -> Iterator[list[Row]]:
    """Yield the rows of a file, many at a time; white space within a text becomes single spaces.

    Rows with an empty text or a test sentence are left out, and counted in the log. The label is -1
    if the task has no labels.
    """
    known, lines = KnownSentences(), enumerate(read_lines(str(path)), 1)
    read = empty = kept = 0
    while chunk := list(islice(lines, _CHUNK)):
        rows = [_row(line, task, f"{path}: row {number}") for number, line in chunk]
        full = [row for row in rows if row[0] and row[1]]
        told = known([row[0] for row in full]) | known([row[1] for row in full])
        chosen = [row for row, is_known in zip(full, told, strict=True) if not is_known]
        read, empty, kept = read + len(rows), empty + len(rows) - len(full), kept + len(chosen)
        yield chosen
    for count, reason in (
        (empty, "an empty text"),
        (read - empty - kept, f"sentences of {known.name}"),
    ):
        if count:
            logger.warning(
                "%s: %s of %s rows with %s left out", path, f"{count:,}", f"{read:,}", reason
            )
    if not kept:
        raise TextError(
            f"{path}: no rows `{COLUMNS[task]}`{' left' if read else ''}; give another file"
        )


def _row(line: str, task: str, where: str) -> Row:
    cells = [" ".join(cell.split()) for cell in line.split("\t")]
    if cells == [""]:
        return "", "", "", -1
    if len(cells) not in ((2, 3) if task == "qa" else (COLUMNS[task].count("TAB") + 1,)):
        raise TextError(f"{where} has {len(cells)} columns; rows of {task} are `{COLUMNS[task]}`")
    if task != "nli":
        return cells[0], cells[1], cells[2] if len(cells) > 2 else "", -1
    if (label := _NUMBERS.get(cells[0].lower())) is None:
        raise TextError(
            f"{where} has the label {short(cells[0])}; labels are {', '.join(NLI_LABELS)}"
        )
    return cells[1], cells[2], "", label


@dataclass(frozen=True)
class TaskBatch:
    """Pairs of one task: sentences, questions, utterances or premises, and their partners.

    `contexts` are for answers, empty if there is none; `labels` are for inference, int64 (n,).
    """

    task: str
    first: FlatIds
    second: FlatIds
    contexts: FlatIds | None = None
    labels: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class TaskRows:
    """The rows of one task and language, in a store of translations or as memory-mapped lists of
    ids.

    Attributes:
        language: Language of both sides; for translations, the language other than English.
        numbers: Rows of a store in this language, uint32 (n,); None: all rows.
        digest: Digest that identifies the rows of a file; empty for translations.
    """

    task: str
    language: str
    data: PairStore | Dataset
    numbers: NDArray[np.uint32] | None = None
    digest: str = ""

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.data) if self.numbers is None else len(self.numbers)

    @property
    def name(self) -> str:
        """Name for logs: "qa en"."""
        return f"{self.task} {self.language}"

    def batch(self, rows: NDArray[np.int64]) -> TaskBatch:
        """Return the batch of some rows, int64 (n,)."""
        if isinstance(self.data, PairStore):
            rows = rows if self.numbers is None else self.numbers[rows].astype(np.int64)
            return TaskBatch(self.task, self.data.take("a", rows), self.data.take("b", rows))
        table: pa.Table = self.data.with_format("arrow")[rows].combine_chunks()

        def flat(name: str) -> FlatIds:
            lists = table[name].chunk(0)
            return lists.flatten().to_numpy(), starts(lists.value_lengths().to_numpy())

        contexts = flat("context") if self.task == "qa" else None
        labels = table["label"].to_numpy().astype(np.int64) if self.task == "nli" else None
        return TaskBatch(self.task, flat("first"), flat("second"), contexts, labels)

    def lengths(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the ids of both sides together for some rows, int64 (n,)."""
        batch = self.batch(rows)
        return np.diff(batch.first[1]) + np.diff(batch.second[1])


def file_rows(
    path: Path, task: str, language: str, tokenizer: Tokenizer, settings: DualEncoderSettings
) -> TaskRows:
    """Return the rows of a file; their ids are computed once and stored in the cache."""
    from datasets import Dataset

    lengths = settings.max_length, settings.context_length
    vocabulary = [tokenizer.kind, hashlib.sha256(tokenizer.content).hexdigest(), tokenizer.options]
    key = digest(
        _VERSION, task, content_digest(path), vocabulary, lengths, KnownSentences().identity
    )
    made = writable_cache("tasks") / f"{task}-{language}-{key}.arrow"
    with output_lock(made, wait=True):
        if not made.exists():
            logger.info(f"{path}: reading rows")
            with atomic(made) as output:
                _write_ids(path, task, tokenizer, lengths, output)
    return TaskRows(task, language, Dataset.from_file(str(made)), digest=key)


def _write_ids(
    path: Path, task: str, tokenizer: Tokenizer, lengths: tuple[int, int], output: IO[bytes]
) -> None:
    """Write the ids of a file's rows as an Arrow stream; a context that equals the answer is
    dropped.
    """
    import pyarrow as pa

    lists = pa.list_(pa.int32())
    schema = pa.schema({"first": lists, "second": lists, "context": lists, "label": pa.int8()})

    def encoded(texts: Sequence[str], most: int) -> list[list[int]]:
        ids, offsets = tokenizer.encode(texts, most)
        return [ids[begin:end].tolist() for begin, end in pairwise(offsets)]

    with pa.ipc.new_stream(output, schema) as stream:
        for rows in filter(None, read_texts(path, task)):
            first, second, context, label = zip(*rows, strict=True)
            answers = encoded(second, lengths[0])
            around = zip(context, encoded(context, lengths[1]), answers, strict=True)
            contexts = [ids if text and ids != answer else [] for text, ids, answer in around]
            columns = [encoded(first, lengths[0]), answers, contexts, label]
            stream.write(pa.record_batch(columns, schema))


def all_rows(
    bitext: PairStore,
    folders: Mapping[str, Path],
    languages: Sequence[str],
    settings: DualEncoderSettings,
) -> list[TaskRows]:
    """Return the translations of each language, then the files of other tasks that have a share of
    the steps.

    `languages` are the languages other than English; by default all languages of the translations.
    """
    rows = [TaskRows("translation", language, bitext) for _, language in bitext.language_pairs]
    if len(rows) > 1:
        of = bitext.language_numbers()
        numbers = [np.flatnonzero(of == number).astype(np.uint32) for number in range(len(rows))]
        rows = [replace(each, numbers=some) for each, some in zip(rows, numbers, strict=True)]
        rows = [
            each for each in rows if len(each) and (not languages or each.language in languages)
        ]
    kept = {"en", *(languages or bitext.languages[1].split("-"))}
    for task, folder in folders.items():
        if settings.shares[task] > 0:
            files = {
                language: path
                for language, path in task_files(folder, task).items()
                if language in kept
            }
            if not files:
                seen = f"no {task} file for {', '.join(sorted(kept))}"
                raise TextError(f"{folder}: {seen}; add one, or leave the option out")
            rows += [
                file_rows(path, task, lang, bitext.tokenizer(), settings)
                for lang, path in files.items()
            ]
    return rows
