"""The sentences in a folder of test sets: `sts20??/*.tsv`, `stsb/*.tsv`, `tatoeba/xxx-eng.tsv`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from st_paragram.cleaning.known_test_sentences import SetFamily
from st_paragram.cleaning.languages import long_codes, short_code
from st_paragram.errors import SettingsError

_STS = ("sts20[0-9][0-9]/*.tsv", "stsb/*.tsv")
_TATOEBA = ("tatoeba/*.tsv",)


def known_sentence_files(folder: Path, kind: SetFamily, languages: Sequence[str] = ()) -> list[Path]:
    """The files of a family of test sets in a folder, in order of name.

    Args:
        folder: Where they are.
        kind: The family.
        languages: Of Tatoeba the files of these languages alone; all where none is named, or none but English.
    """
    patterns = _STS if kind is SetFamily.STS else _TATOEBA
    files = sorted(path for pattern in patterns for path in folder.glob(pattern))
    codes = {long for code in languages if short_code(code) != "en" for long in (*long_codes(code), code.lower())}
    if kind is SetFamily.STS or not codes:
        return files
    return [path for path in files if path.stem.partition("-")[0] in codes]


def read_sentences(files: Iterable[Path]) -> Iterator[str]:
    r"""The last two columns of each row of tab-separated files; rows end at `\n` alone, blank ones are passed over.

    Raises:
        SettingsError: A file is not readable or not UTF-8, or a row (named by its number) has not two columns or three.
    """
    for path in files:
        try:
            rows = path.read_bytes().decode("utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{path}: not readable as a test set ({error}); see --help of get_sts.py") from error
        for number, row in enumerate(rows, start=1):
            if not row.strip():
                continue
            cells = row.removesuffix("\r").split("\t")
            if len(cells) not in (2, 3):
                raise SettingsError(f"{path}: row {number}: expected 2 or 3 columns, saw {len(cells)}")
            yield from cells[-2:]


def files_digest(files: Iterable[Path]) -> str:
    """SHA-256 of the names and contents of files, in their order."""
    whole = hashlib.sha256()
    for path in files:
        whole.update(f"{path.parent.name}/{path.name}\n".encode())
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()
