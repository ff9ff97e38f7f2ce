"""Rows of all tasks as ids: translations from a store, and files of other tasks in the cache."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.arrays import Integers
from st_paragram.core.files import atomic, content_digest, digest
from st_paragram.core.folders import writable_cache
from st_paragram.core.outputs import output_lock
from st_paragram.core.pair_store import PairStore
from st_paragram.core.tokenizers.base import FlatIds, Tokenizer
from st_paragram.core.tokenizers.flat_ids import starts
from st_paragram.families.muse.tasks import files_in, read_texts
from st_paragram.learning.training.text_labels import text_labels
from st_paragram.tools.cleaning.known_sentences import KnownSentences

if TYPE_CHECKING:
    import pyarrow as pa
    from datasets import Dataset

    from st_paragram.families.muse.settings import DualEncoderSettings

logger = logging.getLogger(__name__)

_VERSION = 2  # version of the cached files


@dataclass(frozen=True)
class TaskBatch:
    """Pairs of one task: sentences, questions, utterances or premises, and their partners.

    `contexts` are for answers, empty if there is none; `labels` are for inference, int64 (n,).
    """

    task: str
    first: FlatIds
    second: FlatIds
    contexts: FlatIds | None = None
    labels: Integers | None = None


@dataclass(frozen=True)
class TaskRows:
    """The rows of one task and language: of a store of translations, or memory-mapped lists of ids.

    Attributes:
        language: Language of both sides; for translations, the language other than English.
        numbers: Rows of `data` that count, uint32 (n,); None: all rows.
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

    def batch(self, rows: Integers) -> TaskBatch:
        """Return the batch of some rows, int64 (n,)."""
        if self.numbers is not None:
            rows = self.numbers[rows].astype(np.int64)
        if isinstance(self.data, PairStore):
            return TaskBatch(self.task, self.data.take("a", rows), self.data.take("b", rows))
        table: pa.Table = self.data.with_format("arrow")[rows].combine_chunks()
        first = _flat_ids(table, "first")
        second = _flat_ids(table, "second")
        if self.task == "qa":
            return TaskBatch(self.task, first, second, contexts=_flat_ids(table, "context"))
        if self.task == "nli":
            labels = table["label"].to_numpy().astype(np.int64)
            return TaskBatch(self.task, first, second, labels=labels)
        return TaskBatch(self.task, first, second)

    def select(self, rows: Integers) -> TaskRows:
        """Return some of the rows, int64 (m,)."""
        numbers = rows if self.numbers is None else self.numbers[rows]
        return replace(self, numbers=numbers.astype(np.uint32))

    def text_labels(self, rows: Integers) -> tuple[Integers, Integers]:
        """Label the texts of both sides of some rows, int64 (n,) each; see `text_labels`."""
        batch = self.batch(rows)
        return text_labels(*batch.first), text_labels(*batch.second)

    def lengths(self, rows: Integers) -> Integers:
        """Count the ids of both sides together for some rows, int64 (n,)."""
        batch = self.batch(rows)
        return np.diff(batch.first[1]) + np.diff(batch.second[1])


def _flat_ids(table: pa.Table, column: str) -> FlatIds:
    lists = table[column].chunk(0)
    return lists.flatten().to_numpy(), starts(lists.value_lengths().to_numpy())


def all_rows(
    bitext: PairStore,
    folders: Mapping[str, Path],
    languages: Sequence[str],
    settings: DualEncoderSettings,
) -> list[TaskRows]:
    """Return the rows of all tasks that have a share of the steps, translations first.

    `languages` are the languages other than English; by default all languages of the translations.
    """
    rows = []
    if settings.translation_share > 0:
        rows = _translations(bitext, languages)
    wanted = languages or bitext.languages[1].split("-")
    for task, folder in folders.items():
        if settings.shares[task] == 0:
            continue
        for language, path in files_in(folder, task, wanted).items():
            rows.append(file_rows(path, task, language, bitext.tokenizer(), settings))
    return rows


def _translations(bitext: PairStore, languages: Sequence[str]) -> list[TaskRows]:
    """Return the translations of each language."""
    codes = []
    for first, second in bitext.language_pairs:
        codes.append(second if first == "en" else f"{first}-{second}")
    if len(codes) == 1:
        return [TaskRows("translation", codes[0], bitext)]
    rows = []
    language_numbers = bitext.language_numbers()
    for number, language in enumerate(codes):
        numbers = np.flatnonzero(language_numbers == number).astype(np.uint32)
        if len(numbers) and (not languages or language in languages):
            rows.append(TaskRows("translation", language, bitext, numbers))
    return rows


def file_rows(
    path: Path, task: str, language: str, tokenizer: Tokenizer, settings: DualEncoderSettings
) -> TaskRows:
    """Return the rows of a file; their ids are computed once and stored in the cache."""
    from datasets import Dataset

    lengths = (settings.max_length, settings.context_length)
    vocabulary = [tokenizer.kind, hashlib.sha256(tokenizer.content).hexdigest(), tokenizer.options]
    known = KnownSentences().identity
    key = digest(_VERSION, task, content_digest(path), vocabulary, lengths, known)
    stored = writable_cache("tasks") / f"{task}-{language}-{key}.arrow"
    with output_lock(stored, wait=True):
        if not stored.exists():
            logger.info(f"{path}: reading rows")
            with atomic(stored) as output:
                _write_ids(path, task, tokenizer, lengths, output)
    return TaskRows(task, language, Dataset.from_file(str(stored)), digest=key)


def _write_ids(
    path: Path, task: str, tokenizer: Tokenizer, lengths: tuple[int, int], output: IO[bytes]
) -> None:
    """Write the ids of a file's rows as an Arrow stream.

    A context that equals the answer is dropped.
    """
    import pyarrow as pa

    lists = pa.list_(pa.int32())
    schema = pa.schema({"first": lists, "second": lists, "context": lists, "label": pa.int8()})
    max_length, context_length = lengths
    with pa.ipc.new_stream(output, schema) as stream:
        for rows in read_texts(path, task):
            first = _encoded(tokenizer, [row.first for row in rows], max_length)
            second = _encoded(tokenizer, [row.second for row in rows], max_length)
            contexts = _encoded(tokenizer, [row.context for row in rows], context_length)
            for number, row in enumerate(rows):
                if not row.context or contexts[number] == second[number]:
                    contexts[number] = []
            labels = [row.label for row in rows]
            stream.write(pa.record_batch([first, second, contexts, labels], schema))


def _encoded(tokenizer: Tokenizer, texts: Sequence[str], max_length: int) -> list[list[int]]:
    ids, offsets = tokenizer.encode(texts, max_length)
    return [ids[begin:end].tolist() for begin, end in pairwise(offsets)]
