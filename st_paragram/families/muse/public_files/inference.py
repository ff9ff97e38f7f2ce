"""Inference: SNLI, MultiNLI and OCNLI as JSON lines, XNLI and esXNLI as TSV with a header."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from st_paragram.families.muse.public_files.named_columns import named_rows
from st_paragram.families.muse.public_files.rows import UNREADABLE, ConvertReport, ConvertSettings
from st_paragram.families.muse.tasks.task_files import LABELS

_COLUMNS = {
    "label": ("gold_label", "label"),
    "premise": ("sentence1", "premise"),
    "hypothesis": ("sentence2", "hypothesis"),
    "language": ("language",),
}
_LABELS = {label: label for label in LABELS} | {str(number): label for number, label in enumerate(LABELS)}
_LABELS["contradictory"] = "contradiction"  # the machine-translated training part of XNLI
_UNDECIDED = ("-", "-1", "")


def inference_rows(
    path: Path, language: str, settings: ConvertSettings, report: ConvertReport
) -> Iterator[tuple[str, str, str]]:
    """Yield label, premise and hypothesis; rows on which annotators did not agree and those of other languages not.

    Raises:
        TextError: the file is not readable, or lacks a column.
    """
    for row in named_rows(path, _COLUMNS, ("label", "premise", "hypothesis")):
        report.read += 1
        if row is None:
            report.left_out[UNREADABLE] += 1
        elif "language" in row and not _same(row["language"], language):
            report.left_out["another language"] += 1
        elif (label := row["label"].strip().lower()) in _UNDECIDED:
            report.left_out["without a label that annotators agreed on"] += 1
        elif label not in _LABELS:
            report.left_out["unknown label"] += 1
        else:
            yield _LABELS[label], row["premise"], row["hypothesis"]


def _same(one: str, other: str) -> bool:
    """Whether two codes are of one language, a region aside."""
    first, second = (code.strip().lower().replace("-", "_").partition("_")[0] for code in (one, other))
    return first == second
