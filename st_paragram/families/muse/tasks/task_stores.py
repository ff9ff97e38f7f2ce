"""Texts of tasks other than translation as pair stores, made once in a folder and found there again."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from st_paragram.core.files import digest, file_digest, locked, output_files
from st_paragram.core.pair_store import FORMAT_VERSION, PairStore
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.errors import SettingsError, StoreError
from st_paragram.families.muse.tasks.store_files import KnownTexts, TaskCounts, TaskEncoding
from st_paragram.families.muse.tasks.task_files import task_files

logger = logging.getLogger(__name__)

VERSION = 2  # of what is built from a file: increase it when it changes


@dataclass(frozen=True)
class TaskStore:
    """The rows of one task and language, in the order of their file.

    Attributes:
        task: "qa", "response" or "nli".
        language: of both sides.
        store: side a the question, utterance or premise; side b the answer, response or hypothesis; labels of nli,
            int8: 0 entailment, 1 neutral, 2 contradiction.
        contexts: of qa: side a the answer, side b its context, or the answer again where there is none; row by row as
            in `store`. None for other tasks.
        counts: what became of the rows of the file when the store was made.
    """

    task: str
    language: str
    store: PairStore
    contexts: PairStore | None = None
    counts: TaskCounts = field(default_factory=TaskCounts)


def build_task_stores(
    folders: Mapping[str, str | Path],
    tokenizer: Tokenizer,
    output: str | Path,
    max_length: int,
    context_length: int = 256,
    keep: Callable[[str], bool] | None = None,
    known: KnownTexts | None = None,
) -> list[TaskStore]:
    """The stores of all files of folders; a store built from the same file in the same way is not rebuilt.

    Files are identified by absolute path, size and time of change. Memory does not grow with them. Processes that
    want the same stores at once wait for each other. What is left out is logged, one line per file and kind.

    Args:
        folders: folders of `LANG.tsv` (see `task_files`) by their tasks: "qa", "response", "nli".
        tokenizer: of all texts; it lower-cases them, if that is how it was made.
        output: the folder of the stores, `TASK/LANG-DIGEST.h5`; made if it is not there.
        max_length: ids at which texts are cut.
        context_length: ids at which contexts are cut.
        keep: whether a language is wanted; all are if it is not given.
        known: texts of test sets; rows with one of them on either side are left out.

    Returns:
        A store for each task and language, in the order of `folders` and of the files' names.

    Raises:
        SettingsError: there is no such task, or a length is below 1.
        TextError: a folder has no file, or a file is refused; see `task_files` and `read_task_file`.
    """
    for name, length in (("max_length", max_length), ("context_length", context_length)):
        if length < 1:
            raise SettingsError(f"{name} is {length}; it must be at least 1")
    encoding = TaskEncoding(tokenizer, max_length, context_length, known)
    found = {task: task_files(folder, task) for task, folder in folders.items()}  # refused before anything is encoded
    return [
        _found_or_made(encoding, task, language, path, Path(output) / task)
        for task, files in found.items()
        for language, path in files.items()
        if keep is None or keep(language)
    ]


def _found_or_made(encoding: TaskEncoding, task: str, language: str, source: Path, folder: Path) -> TaskStore:
    name = f"{language}-{digest(file_digest(source), task, *_identity(encoding))}"
    store = folder / f"{name}.h5"
    contexts = folder / f"{name}.contexts.h5" if task == "qa" else None
    with locked(folder, wait=True):
        if store.exists():
            try:
                return _opened(encoding, task, language, store, contexts)
            except StoreError as error:
                logger.warning("made again: %s", error)
        with output_files(store, contexts, overwrite=True):
            counts, lines = encoding.write(source, task, language, store, contexts)
        _tell(lines, counts, source, encoding.known)
        return replace(_opened(encoding, task, language, store, contexts), counts=counts)


def _identity(encoding: TaskEncoding) -> list[Any]:
    """What a store depends on besides its file."""
    tokenizer, known = encoding.tokenizer, encoding.known
    vocabulary = [tokenizer.kind, hashlib.sha256(tokenizer.content).hexdigest(), tokenizer.options]
    refused = None if known is None else known.identity
    return [vocabulary, encoding.max_length, encoding.context_length, refused, FORMAT_VERSION, VERSION]


def _opened(encoding: TaskEncoding, task: str, language: str, path: Path, contexts: Path | None) -> TaskStore:
    """The stores, read through once.

    Raises:
        StoreError: one of them is missing or damaged, or they have different numbers of rows.
    """
    store = _checked(path, encoding.tokenizer)
    second = None if contexts is None else _checked(contexts, encoding.tokenizer)
    if second is not None and len(second) != len(store):
        raise StoreError(f"{second.path}: {len(second):,} rows, but {len(store):,} in {path.name}; remove both")
    counts = TaskCounts(**{name: store.settings[name] for name in TaskCounts().as_json()})
    return TaskStore(task, language, store, second, counts)


def _checked(path: Path, tokenizer: Tokenizer) -> PairStore:
    """A store whose content is what the file says it is."""
    store = PairStore(path)
    store.tokenizers = (tokenizer, tokenizer)  # equal to its own, of which each store would keep one in memory
    store.check()
    return store


def _tell(lines: list[str], counts: TaskCounts, source: Path, known: KnownTexts | None) -> None:
    for line in lines:
        logger.warning("%s", line)
    if counts.test_rows and known is not None:
        rows = "row has" if counts.test_rows == 1 else "rows have"
        logger.warning("%s: %s %s sentences of %s, left out", source, f"{counts.test_rows:,}", rows, known.name)
