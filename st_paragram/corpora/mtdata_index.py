"""Find a corpus in the index of mtdata (https://github.com/thammegowda/mtdata); only its address is taken."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from st_paragram.corpora.fetching.corpus_file import CorpusFile
from st_paragram.errors import DownloadError, SettingsError
from st_paragram.extras import require

if TYPE_CHECKING:
    from mtdata.entry import Entry

_MODULES = ("entry", "index", "iso.bcp47")


def find_in_mtdata(name: str, languages: tuple[str, str]) -> CorpusFile:
    """Look a corpus up by its id, such as `OPUS-nllb-v1-eng-spa`; the first time mtdata builds its index, in a minute.

    Args:
        name: The id.
        languages: Codes of the pair that is wanted.

    Raises:
        MissingExtraError: mtdata is not installed.
        SettingsError: It is no id, or of other languages.
        DownloadError: The index has no such corpus, or not as one file.
    """
    before = logging.getLogger().handlers[:]
    try:
        entries, index, codes = (require(f"mtdata.{name}", "mtdata", "a name with mtdata:") for name in _MODULES)
    finally:
        logging.getLogger().handlers[:] = before  # it puts its own there
    try:
        wanted = entries.DatasetId.parse(name)
        pair = tuple(codes.bcp47(code) for code in languages)
    except Exception as error:  # it raises plain exceptions, and others for codes that it does not know
        raise SettingsError(f"mtdata:{name}: no id ({error}); `mtdata list -id` shows them") from error
    if wanted not in index.INDEX:
        raise DownloadError(f"mtdata:{name}: not in its index; `mtdata list -id -l {'-'.join(languages)}` shows all")
    entry = index.INDEX[wanted]
    if len(entry.did.langs) != 2 or not entry.is_compatible(pair):
        raise SettingsError(
            f"mtdata:{name}: of {entry.did.lang_str}, but {'-'.join(languages)} is wanted; name another"
        )
    if not isinstance(entry.url, str):
        raise DownloadError(f"mtdata:{name}: it is of several files; fetch it with `mtdata get`, and give the text")
    return CorpusFile(
        name=f"{entry.did.group}-{entry.did.name}",
        version=entry.did.version,
        url=entry.url,
        filename=f"{entry.did}.{entry.ext}",
        languages=_codes(entry, languages),
        licence="mtdata does not say; look at the corpus before you use it",
        citation=", ".join(entry.cite or ()),
    )


def _codes(entry: Entry, languages: tuple[str, str]) -> tuple[str, str]:
    """Codes as the archive's members end in them (`*.en`, `*.zh_CN`); of a table, in the order of its columns."""
    from mtdata.iso.bcp47 import bcp47

    swapped = not entry.did.langs[0].is_compatible(bcp47(languages[0]))
    codes = [member.rpartition(".")[2] for member in entry.in_paths or ()]
    if len(codes) == 2 and codes[0] != codes[1]:  # members are listed in the order of the id
        return (codes[1], codes[0]) if swapped else (codes[0], codes[1])
    return (languages[1], languages[0]) if swapped else languages
