"""Find and read the Tatoeba test sets: files `xxx-eng.tsv`, or pairs of files as they were first published."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from st_paragram.data.text import TextSource, read_pairs
from st_paragram.errors import EvaluationError, TextError

# The test sets go by ISO 639-3 codes; these also by the two letters used elsewhere in this project.
CODES = {"ar": "ara", "de": "deu", "es": "spa", "fr": "fra", "ru": "rus", "tr": "tur", "zh": "cmn"}

_TABLE = re.compile(r"([a-z]{3})-eng\.tsv")
_PUBLISHED = re.compile(r"tatoeba\.([a-z]{3})-eng\.\1")


@dataclass(frozen=True)
class Translations:
    """n sentences and their translations.

    Args:
        language: code of the first side, or the file's name.
        first: n sentences.
        second: n sentences, English in the Tatoeba sets.
    """

    language: str
    first: list[str]
    second: list[str]

    def __len__(self) -> int:
        """The number of pairs, n."""
        return len(self.first)


def tatoeba_sets(folder: str | Path, languages: Sequence[str] | None = None) -> dict[str, TextSource]:
    """The test sets of a folder: language -> its file `xxx-eng.tsv`, or files `tatoeba.xxx-eng.xxx` and `... .eng`.

    Args:
        folder: where they are.
        languages: ISO 639-3 codes, or two letters for the languages of `CODES`; None for all, by code.

    Raises:
        EvaluationError: the folder has no such file, or not the language asked for; the message lists what there is.
    """
    folder, found = Path(folder), {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if match := _TABLE.fullmatch(path.name):
            found[match[1]] = TextSource((str(path),), (match[1], "eng"))
        elif match := _PUBLISHED.fullmatch(path.name):
            english = path.with_name(f"tatoeba.{match[1]}-eng.eng")
            found.setdefault(match[1], TextSource((str(path), str(english)), (match[1], "eng")))
    if not found:
        raise EvaluationError(f"{folder}: no Tatoeba test sets; files are named like spa-eng.tsv (foreign TAB English)")
    wanted = dict.fromkeys(CODES.get(code, code) for code in (sorted(found) if languages is None else languages))
    if absent := [code for code in wanted if code not in found]:
        there = " ".join(sorted(found))
        raise EvaluationError(f"{folder}: no test set for {', '.join(absent)}; there are {len(found)}: {there}")
    return {code: found[code] for code in wanted}


def read_translations(source: TextSource, language: str) -> Translations:
    """Read a test set.

    Raises:
        TextError: as `read_pairs`, or a sentence is empty; the message names file and row.
    """
    pairs = list(read_pairs(source))
    for row, pair in enumerate(pairs, start=1):
        if not all(text.strip() for text in pair):
            raise TextError(f"{source.name}: row {row}: an empty sentence; complete the row or take it out")
    return Translations(language, [first for first, _ in pairs], [second for _, second in pairs])
