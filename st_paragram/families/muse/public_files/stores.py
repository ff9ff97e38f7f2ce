"""Stores of tasks without the sentences of test sets: what training reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.families.muse.tasks import task_stores
from st_paragram.families.muse.tasks.task_stores import TaskStore
from st_paragram.tools.cleaning.known_texts import KnownSentences


def build_task_stores(
    folders: Mapping[str, str | Path],
    tokenizer: Tokenizer,
    output: str | Path,
    max_length: int,
    context_length: int = 256,
    keep: Callable[[str], bool] | None = None,
) -> list[TaskStore]:
    """What `data.tasks.task_stores.build_task_stores` does, without rows that have a sentence of a test set.

    The test sets are all whose sentences the package knows by hashes, those of retrieval and inference among them.

    Raises:
        EvaluationError: the file of hashes is not readable.
        ParagramError: as that function.
    """
    known = KnownSentences()
    return task_stores.build_task_stores(folders, tokenizer, output, max_length, context_length, keep, known)
