"""SentEval's probing files (Conneau et al. 2018, What you can cram into a single vector), in their own splits."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from harness.quality.probing_tasks import Example, ProbingSettings, ProbingTask, Source, Split

from st_paragram.core.text.streams import read_lines
from st_paragram.errors import EvaluationError, short

#: Task -> its file in the folder.
FILES = {
    "subject number": "subj_number.txt",
    "object number": "obj_number.txt",
    "tree depth": "tree_depth.txt",
    "top constituent": "top_constituents.txt",
    "word content": "word_content.txt",
    "sentence length": "sentence_length.txt",
}
_SPLITS = ("tr", "va", "te")


def senteval_tasks(folder: Path, settings: ProbingSettings) -> tuple[list[ProbingTask], list[str]]:
    """Read the tasks whose files are there, and say in notes which ones are not.

    Raises:
        EvaluationError: no file is there, or a row is malformed.
        TextError: a file cannot be read.
    """
    there = {name: folder / file for name, file in FILES.items() if (folder / file).is_file()}
    if not there:
        raise EvaluationError(f"{folder}: none of SentEval's files {', '.join(FILES.values())}; give their folder")
    notes = [f"{name} (SentEval) is left out: no {file}" for name, file in FILES.items() if name not in there]
    return [_read(name, path, settings) for name, path in there.items()], notes


def _read(name: str, path: Path, settings: ProbingSettings) -> ProbingTask:
    """At most as many rows of each split as the settings say, chosen at random by the seed."""
    parts: dict[str, list[Example]] = {split: [] for split in _SPLITS}
    for split, example in read_rows(path):
        parts[split].append(example)
    rng = random.Random(f"{settings.seed} {name}")
    chosen = [rng.sample(part, min(size, len(part))) for part, size in zip(parts.values(), settings.sizes, strict=True)]
    for split, part in zip(_SPLITS, chosen, strict=True):
        if len({one.label for one in part}) < 2:
            raise EvaluationError(f"{name}: too few rows of {split} in {path}; two labels are needed")
    return ProbingTask(name, Source.SENTEVAL, *map(Split.of, chosen))


def read_rows(path: Path) -> Iterator[tuple[str, Example]]:
    """Yield split (tr, va or te) and example of every row: the first, second and last of its columns.

    Raises:
        EvaluationError: a row is of another form; the message gives file and line.
    """
    for number, line in enumerate(read_lines(str(path)), 1):
        if not line.strip():
            continue
        split, *rest = line.split("\t")
        if split not in _SPLITS or len(rest) < 2 or not rest[-1].strip():
            raise EvaluationError(
                f"{path}: line {number} is {short(line)}; expected tr, va or te, tab, label, tab, text"
            )
        yield split, Example(rest[-1], rest[0])
