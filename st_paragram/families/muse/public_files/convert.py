"""Public files made into the rows of a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from st_paragram.core.files import atomic, check_output, output_files
from st_paragram.errors import ParagramError, SettingsError, TextError
from st_paragram.families.muse.public_files.dialogues import dialogue_rows
from st_paragram.families.muse.public_files.inference import inference_rows
from st_paragram.families.muse.public_files.question_answers import faq_rows, squad_rows
from st_paragram.families.muse.public_files.rows import UNREADABLE, ConvertReport, ConvertSettings, Limits
from st_paragram.families.muse.tasks.task_files import is_language_code

Converter = Callable[[Path, str, ConvertSettings, ConvertReport], Iterator[tuple[str, ...]]]

#: Kinds of files: the task of their rows, and what reads them.
KINDS: Mapping[str, tuple[str, Converter]] = {
    "squad": ("qa", squad_rows),
    "faq": ("qa", faq_rows),
    "dialogue": ("response", dialogue_rows),
    "nli": ("nli", inference_rows),
}
_MOST_UNREADABLE = 0.1


def convert(
    kind: str,
    language: str,
    files: Sequence[str | Path],
    folder: str | Path,
    settings: ConvertSettings | None = None,
    overwrite: bool = False,
) -> tuple[Path, ConvertReport]:
    """Write `LANG.tsv` of a task into a folder, whole or not at all; rows are in the order of the files.

    White space of any kind within a text becomes single spaces. Memory does not grow with files of lines, but for 8
    bytes of each row; files in the form of SQuAD are read whole.

    Args:
        kind: of the files, see `KINDS`.
        language: of the rows.
        files: to read.
        folder: of the task; made if it is not there.
        settings: which rows are made.
        overwrite: replace a file that exists.

    Returns:
        The file and the numbers.

    Raises:
        SettingsError: no such kind, no language code, or no file.
        TextError: a file is refused, more than a tenth of its rows cannot be read, or there is no row to write.
        ParagramError: the output exists or cannot be written.
    """
    if kind not in KINDS or not files:
        raise SettingsError(f"{len(files)} files of the kind {kind!r}; give files, of one of {', '.join(KINDS)}")
    if not is_language_code(language):
        raise SettingsError(f"unknown language code {language!r}; use a code such as es or zh_cn")
    output = Path(folder) / f"{language}.tsv"
    for other in (output.with_name(f"{output.name}{ending}") for ending in (".gz", ".xz")):
        if other.exists():
            raise ParagramError(f"{other} has the same language; move it, or choose another folder")
    check_output(output, overwrite)
    report = ConvertReport()
    with output_files(output, overwrite=overwrite), atomic(output) as handle:
        for row in _rows(kind, language, [Path(path) for path in files], settings or ConvertSettings(), report):
            handle.write(("\t".join(row) + "\n").encode("utf-8", "replace"))
            report.written += 1
        if not report.written:
            raise TextError(f"{files[0]}: none of {report.read:,} rows could be converted; check that it is {kind}")
    return output, report


def _rows(
    kind: str, language: str, files: Sequence[Path], settings: ConvertSettings, report: ConvertReport
) -> Iterator[tuple[str, ...]]:
    task, converter = KINDS[kind]
    limits = Limits(task, settings)
    for path in files:
        read, unreadable = report.read, report.left_out[UNREADABLE]
        for row in converter(path, language, settings, report):
            clean = tuple(" ".join(cell.replace("\0", " ").split()) for cell in row)
            full = all(clean[: 3 if task == "nli" else 2])
            reason = limits.reason(clean) if full else "an empty text"
            if reason is None:
                yield clean
            else:
                report.left_out[reason] += 1
        read, unreadable = report.read - read, report.left_out[UNREADABLE] - unreadable
        if unreadable > _MOST_UNREADABLE * read:
            seen = f"{unreadable:,} of {read:,} rows cannot be read"
            raise TextError(f"{path}: {seen}; check that it is {kind}, and of the columns that this needs")
