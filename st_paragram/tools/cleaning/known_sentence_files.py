"""The sentences in a folder of test sets, whose files may be packed by gzip or xz.

sts20??/*.tsv, stsb/*.tsv                       grade TAB sentence TAB sentence
tatoeba/xxx-eng.tsv                             sentence TAB English sentence
reqa_squad_dev/{queries,corpus}.tsv             id TAB text, or id TAB text TAB context; so in
quora_sr/{queries,corpus}.tsv                   ... and
xquad_r/LANG/{queries,corpus}.tsv
nli/*.tsv                                       label TAB premise TAB hypothesis
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from st_paragram.core.files import content_digest
from st_paragram.core.text.streams import open_stream, read_blocks
from st_paragram.errors import SettingsError, TextError
from st_paragram.tools.cleaning.known_test_sentences import SetFamily
from st_paragram.tools.cleaning.languages import long_codes, short_code

#: What a folder of each family holds, in words.
LAYOUTS = {
    SetFamily.STS: "sts20XX/*.tsv, stsb/*.tsv",
    SetFamily.TATOEBA: "tatoeba/*.tsv",
    SetFamily.RETRIEVAL: "quora_sr/queries.tsv, reqa_squad_dev/queries.tsv, xquad_r/LANG/queries.tsv, nli/*.tsv",
}
_ID_AND_TEXT = ("queries", "corpus")  # the names of files whose second column alone is a sentence
_PATTERNS = {
    SetFamily.STS: ("sts20[0-9][0-9]/*.tsv", "stsb/*.tsv"),
    SetFamily.TATOEBA: ("tatoeba/*.tsv",),
    SetFamily.RETRIEVAL: (
        *(f"{name}/{part}.tsv" for name in ("reqa_squad_dev", "quora_sr", "xquad_r/*") for part in _ID_AND_TEXT),
        "nli/*.tsv",
    ),
}


def known_sentence_files(folder: Path, kind: SetFamily, languages: Sequence[str] = ()) -> list[Path]:
    """The files of a family of test sets in a folder, in the order of their names.

    Args:
        folder: The folder.
        kind: The family.
        languages: Of Tatoeba, only the files of these languages; all if only English is named.
    """
    files = sorted(
        path for pattern in _PATTERNS[kind] for end in ("", ".gz", ".xz") for path in folder.glob(pattern + end)
    )
    codes = {long for code in languages if short_code(code) != "en" for long in (*long_codes(code), code.lower())}
    if kind is not SetFamily.TATOEBA or not codes:
        return files
    return [path for path in files if path.stem.partition("-")[0] in codes]


def read_sentences(files: Iterable[Path]) -> Iterator[str]:
    r"""The sentences of each row of tab-separated files; rows end only at `\n`, and blank ones are skipped.

    They are the last two columns, or the second one of files named `queries` and `corpus`.

    Raises:
        SettingsError: A file is not readable or not UTF-8, or a row does not have two or three columns.
    """
    for path in files:
        columns = slice(1, 2) if path.name.partition(".")[0] in _ID_AND_TEXT else slice(-2, None)
        try:
            rows = _content(path).decode("utf-8-sig").split("\n")
        except (OSError, UnicodeDecodeError, TextError) as error:
            raise SettingsError(f"{path}: not readable as a test set ({error}); get_sts.py makes such files") from error
        for number, row in enumerate(rows, start=1):
            if not row.strip():
                continue
            cells = row.removesuffix("\r").split("\t")
            if len(cells) not in (2, 3):
                raise SettingsError(f"{path}: row {number} has {len(cells)} columns, where 2 or 3 are expected")
            yield from cells[columns]


def _content(path: Path) -> bytes:
    with ExitStack() as stack:
        return b"\n".join(read_blocks(path.name, open_stream(str(path), stack)))


def files_digest(files: Iterable[Path]) -> str:
    """SHA-256 of the names and contents of files, in their order."""
    whole = hashlib.sha256()
    for path in files:
        whole.update(f"{path.parent.name}/{path.name}\n".encode())
        whole.update(content_digest(path).encode())
    return whole.hexdigest()
