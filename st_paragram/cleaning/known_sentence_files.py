"""The sentences in a folder of test sets: `sts20??/*.tsv`, `stsb/*.tsv`, `tatoeba/xxx-eng.tsv`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from st_paragram.cleaning.known_test_sentences import SetFamily
from st_paragram.cleaning.languages import long_codes, short_code
from st_paragram.errors import SettingsError
from st_paragram.files import content_digest

_STS = ("sts20[0-9][0-9]/*.tsv", "stsb/*.tsv")
_TATOEBA = ("tatoeba/*.tsv",)


def known_sentence_files(folder: Path, kind: SetFamily, languages: Sequence[str] = ()) -> list[Path]:
    """The files of a family of test sets in a folder, in the order of their names.

    Args:
        folder: The folder.
        kind: The family.
        languages: Of Tatoeba, only the files of these languages; all if none but English is named.
    """
    patterns = _STS if kind is SetFamily.STS else _TATOEBA
    files = sorted(path for pattern in patterns for path in folder.glob(pattern))
    codes = {long for code in languages if short_code(code) != "en" for long in (*long_codes(code), code.lower())}
    if kind is SetFamily.STS or not codes:
        return files
    return [path for path in files if path.stem.partition("-")[0] in codes]


def read_sentences(files: Iterable[Path]) -> Iterator[str]:
    r"""The last two columns of each row of tab-separated files; rows end only at `\n`, and blank ones are skipped.

    Raises:
        SettingsError: A file is not readable or not UTF-8, or a row does not have two or three columns.
    """
    for path in files:
        try:
            rows = path.read_bytes().decode("utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{path}: not readable as a test set ({error}); get_sts.py makes such files") from error
        for number, row in enumerate(rows, start=1):
            if not row.strip():
                continue
            cells = row.removesuffix("\r").split("\t")
            if len(cells) not in (2, 3):
                raise SettingsError(f"{path}: row {number} has {len(cells)} columns, where 2 or 3 are expected")
            yield from cells[-2:]


def files_digest(files: Iterable[Path]) -> str:
    """SHA-256 of the names and contents of files, in their order."""
    whole = hashlib.sha256()
    for path in files:
        whole.update(f"{path.parent.name}/{path.name}\n".encode())
        whole.update(content_digest(path).encode())
    return whole.hexdigest()
