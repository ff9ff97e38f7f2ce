"""Rows of the tasks that a dual encoder is trained on: translations of a store, and files of other tasks."""

from __future__ import annotations

import hashlib
import logging
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.files import content_digest, digest, file_for_folder, locked, writable_cache
from st_paragram.core.pair_store import PairStore
from st_paragram.core.tokenizers.base import FlatIds, Tokenizer
from st_paragram.core.tokenizers.flat_ids import starts
from st_paragram.errors import TextError, one_line, short
from st_paragram.tools.cleaning.test_sentences import KnownSentences

if TYPE_CHECKING:
    import pyarrow as pa
    from datasets import Dataset

    from st_paragram.families.muse.settings import DualEncoderSettings

logger = logging.getLogger(__name__)

#: The columns of a file of each task; those in brackets may be left out.
COLUMNS = {
    "qa": "question TAB answer [TAB context]",
    "response": "utterance TAB response",
    "nli": "label TAB premise TAB hypothesis",
}
#: The labels of inference; files may have their numbers instead.
LABELS = ("entailment", "neutral", "contradiction")

_FILE = re.compile(r"([a-z]{2,3}(?:[_-][A-Za-z]{2,4})?)\.tsv(?:\.gz|\.xz)?")
_NUMBERS = {name: number for number, label in enumerate(LABELS) for name in (label, str(number))}
_VERSION = 1  # of what is kept in the cache


def task_files(folder: str | Path, task: str) -> dict[str, Path]:
    """The files `LANG.tsv`, `LANG.tsv.gz` or `LANG.tsv.xz` of a task by language."""
    folder, found = Path(folder), dict[str, Path]()
    if wrong := file_for_folder(folder):
        raise TextError(f"{wrong}; name the folder of the files LANG.tsv")
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if (matched := _FILE.fullmatch(path.name)) and found.setdefault(matched[1], path) != path:
            raise TextError(f"{path}: same language as {found[matched[1]].name}; keep one of them")
    if not found:
        raise TextError(f"{folder}: no such folder with files LANG.tsv (or .gz, .xz) of rows `{COLUMNS[task]}`")
    return found


def read_texts(path: Path, task: str, folder: Path) -> Dataset:
    """Texts of a file, columns `first`, `second`, `context` and `label`; `folder` keeps them while they are in use.

    White space within a text becomes single spaces. Rows with an empty text or a sentence of a test set are left out,
    and counted in the log; the label is -1 where the task has none.
    """
    from datasets import Dataset, Features, Value
    from datasets.exceptions import DatasetGenerationError

    known = KnownSentences()

    def full(first: list[str], second: list[str]) -> list[bool]:
        return [bool(one and other) for one, other in zip(first, second, strict=True)]

    def unknown(first: list[str], second: list[str]) -> NDArray[np.bool_]:
        return ~(known(first) | known(second))

    with _quiet():
        try:
            text = Features({"text": Value("string")})
            lines = Dataset.from_text(str(path), features=text, cache_dir=str(folder), encoding="utf-8-sig")
        except (DatasetGenerationError, OSError) as error:
            raise TextError(f"{path}: {one_line(error.__cause__ or error)}; check the file") from error
        except ValueError as error:  # a split without rows
            raise TextError(f"{path}: empty; give a file of rows `{COLUMNS[task]}`") from error
        made: dict[str, Any] = {"batched": True, "load_from_cache_file": False}
        of = {"path": path, "task": task}
        rows = lines.map(_columns, True, fn_kwargs=of, remove_columns="text", new_fingerprint="columns", **made)
        for kept, reason in ((full, "an empty text"), (unknown, f"sentences of {known.name}")):
            before = len(rows)
            rows = rows.filter(kept, input_columns=["first", "second"], new_fingerprint=kept.__name__, **made)
            if count := before - len(rows):
                logger.warning("%s: %s of %s rows with %s left out", path, f"{count:,}", f"{before:,}", reason)
    if not len(rows):
        raise TextError(f"{path}: no rows `{COLUMNS[task]}` are left; give others")
    return rows


def _columns(lines: Mapping[str, list[str]], numbers: list[int], path: Path, task: str) -> dict[str, list[Any]]:
    rows = []
    for line, number in zip(lines["text"], numbers, strict=True):
        cells = [" ".join(cell.split()) for cell in line.split("\t")]
        if cells == [""]:
            rows.append(("", "", "", -1))
            continue
        if len(cells) not in ((2, 3) if task == "qa" else (COLUMNS[task].count("TAB") + 1,)):
            raise TextError(f"{path}: row {number + 1} has {len(cells)} columns; rows of {task} are `{COLUMNS[task]}`")
        label = _NUMBERS.get(cells.pop(0).lower()) if task == "nli" else -1
        if label is None:
            seen = short(line.partition("\t")[0])
            raise TextError(f"{path}: row {number + 1} has the label {seen}; labels are {', '.join(LABELS)}")
        first, second, context = (*cells, "")[:3]
        rows.append((first, second, context, label))
    return dict(zip(("first", "second", "context", "label"), map(list, zip(*rows, strict=True)), strict=True))


def _ids(rows: Mapping[str, Any], tokenizer: Tokenizer, max_length: int, context_length: int) -> dict[str, Any]:
    """Ids of texts; a context that is not there, or is the answer as it is read, has none."""

    def encoded(name: str, most: int) -> list[list[int]]:
        ids, offsets = tokenizer.encode(rows[name], most)
        return [ids[begin:end].tolist() for begin, end in pairwise(offsets)]

    first, second = encoded("first", max_length), encoded("second", max_length)
    around = zip(rows["context"], encoded("context", context_length), second, strict=True)
    contexts = [ids if text and ids != answer else [] for text, ids, answer in around]
    return {"first": first, "second": second, "context": contexts, "label": rows["label"]}


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the bars of `datasets` where nobody sees them."""
    from datasets.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if are_progress_bars_disabled() or sys.stderr.isatty():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


@dataclass(frozen=True)
class TaskBatch:
    """Pairs of one task: sentences, questions, utterances or premises, and what belongs to each.

    `contexts` are those of answers, empty where there is none; `labels` those of inference, int64 (n,).
    """

    task: str
    first: FlatIds
    second: FlatIds
    contexts: FlatIds | None = None
    labels: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class TaskRows:
    """The rows of one task and language, in a store of translations or as lists of ids, memory-mapped.

    Attributes:
        language: Of both sides; for translations, the one other than English.
        numbers: Those rows of a store that are of the language, uint32 (n,); None: all of them.
        digest: Files of another digest have other rows; none for translations.
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
        """For logs: "qa en"."""
        return f"{self.task} {self.language}"

    def batch(self, rows: NDArray[np.int64]) -> TaskBatch:
        """Some of the rows, int64 (n,)."""
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
        """Ids of both sides together of some rows, int64 (n,)."""
        batch = self.batch(rows)
        return np.diff(batch.first[1]) + np.diff(batch.second[1])


def file_rows(path: Path, task: str, language: str, tokenizer: Tokenizer, settings: DualEncoderSettings) -> TaskRows:
    """Rows of a file; their ids are made once in the cache, and found there again."""
    import datasets

    lengths = {"max_length": settings.max_length, "context_length": settings.context_length}
    vocabulary = [tokenizer.kind, hashlib.sha256(tokenizer.content).hexdigest(), tokenizer.options]
    key = digest(_VERSION, task, content_digest(path), vocabulary, lengths, KnownSentences().identity)
    folder = writable_cache("tasks")
    made = folder / f"{task}-{language}-{key}.arrow"
    with locked(folder, wait=True):
        if not made.exists():
            with TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as work, _quiet():
                texts, ids = read_texts(path, task, Path(work)), Path(work, "ids.arrow")
                columns = dict.fromkeys(texts.column_names, datasets.Sequence(datasets.Value("int32")))
                features = datasets.Features(columns | {"label": datasets.Value("int8")})
                options: dict[str, Any] = {"fn_kwargs": {"tokenizer": tokenizer, **lengths}, "new_fingerprint": key}
                texts.map(_ids, batched=True, features=features, cache_file_name=str(ids), **options)
                ids.replace(made)
    return TaskRows(task, language, datasets.Dataset.from_file(str(made)), digest=key)


def all_rows(
    bitext: PairStore, folders: Mapping[str, Path], languages: Sequence[str], settings: DualEncoderSettings
) -> list[TaskRows]:
    """Translations of each language, then the files of other tasks that have a share of the steps.

    Languages are those besides English; all that the translations have if none is named.
    """
    rows = [TaskRows("translation", language, bitext) for _, language in bitext.language_pairs]
    if len(rows) > 1:
        of = bitext.language_numbers()
        numbers = [np.flatnonzero(of == number).astype(np.uint32) for number in range(len(rows))]
        rows = [replace(each, numbers=some) for each, some in zip(rows, numbers, strict=True)]
        rows = [each for each in rows if len(each) and (not languages or each.language in languages)]
    kept = {"en", *(languages or bitext.languages[1].split("-"))}
    for task, folder in folders.items():
        if settings.shares[task] > 0:
            files = {language: path for language, path in task_files(folder, task).items() if language in kept}
            if not files:
                seen = f"no {task} file of {', '.join(sorted(kept))}"
                raise TextError(f"{folder}: {seen}; add one, or leave the option out")
            rows += [file_rows(path, task, lang, bitext.tokenizer(), settings) for lang, path in files.items()]
    return rows
