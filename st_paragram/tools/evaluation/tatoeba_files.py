"""Find and read the Tatoeba test sets: files `xxx-eng.tsv`, or pairs of files as they were first published."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from st_paragram.core.data.text import TextSource
from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation.translations import Translations, read_translations

# The test sets go by ISO 639-3 codes; these also by the two letters used elsewhere in this project.
CODES = {"ar": "ara", "de": "deu", "es": "spa", "fr": "fra", "ru": "rus", "tr": "tur", "zh": "cmn"}

ENGLISH = ("en", "eng")

_TABLE = re.compile(r"([a-z]{3})-eng\.tsv")
_PUBLISHED = re.compile(r"tatoeba\.([a-z]{3})-eng\.\1")


def tatoeba_folder(data: str | Path) -> Path:
    """Where a folder of evaluation data keeps the test sets: its folder `tatoeba`, or itself."""
    inner = Path(data) / "tatoeba"
    return inner if inner.is_dir() else Path(data)


def tatoeba_sets(folder: str | Path, languages: Sequence[str] | None = None) -> dict[str, TextSource]:
    """The test sets of a folder: language -> its file `xxx-eng.tsv`, or files `tatoeba.xxx-eng.xxx` and `... .eng`.

    Args:
        folder: where they are.
        languages: ISO 639-3 codes, or two letters for the languages of `CODES`; None for all, by code.

    Raises:
        EvaluationError: the folder has no such file, or not the language asked for; the message lists what there is.
    """
    found = tatoeba_files(folder)
    if not found:
        raise EvaluationError(f"{folder}: no Tatoeba test sets; files are named like spa-eng.tsv (foreign TAB English)")
    wanted = dict.fromkeys(CODES.get(code, code) for code in (sorted(found) if languages is None else languages))
    if absent := [code for code in wanted if code not in found]:
        there = " ".join(sorted(found))
        raise EvaluationError(f"{folder}: no test set for {', '.join(absent)}; there are {len(found)}: {there}")
    return {code: found[code] for code in wanted}


def read_tatoeba(data: str | Path, languages: Sequence[str] = ()) -> list[Translations]:
    """Read test sets of a folder of evaluation data.

    Args:
        data: the folder, see `tatoeba_folder`.
        languages: as in `tatoeba_sets`, all if empty; English, the other side of every set, means nothing here.

    Raises:
        EvaluationError: as `tatoeba_sets`.
        TextError: as `read_translations`.
    """
    wanted = [code for code in languages if code not in ENGLISH] or list(languages)
    return [
        read_translations(source, code) for code, source in tatoeba_sets(tatoeba_folder(data), wanted or None).items()
    ]


def tatoeba_files(folder: str | Path) -> dict[str, TextSource]:
    """All test sets of a folder, which may have none: language -> its file or files, by code."""
    folder, found = Path(folder), dict[str, TextSource]()
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if match := _TABLE.fullmatch(path.name):
            found[match[1]] = TextSource((str(path),), (match[1], "eng"))
        elif match := _PUBLISHED.fullmatch(path.name):
            english = path.with_name(f"tatoeba.{match[1]}-eng.eng")
            found.setdefault(match[1], TextSource((str(path), str(english)), (match[1], "eng")))
    return found
