"""Find a corpus in the index of mtdata (https://github.com/thammegowda/mtdata); mtdata itself downloads nothing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from st_paragram.core.extras import require
from st_paragram.errors import DownloadError, SettingsError
from st_paragram.tools.corpora.fetching.corpus_file import CorpusFile

if TYPE_CHECKING:
    from mtdata.entry import Entry

_MODULES = ("entry", "index", "iso.bcp47")


def find_in_mtdata(name: str, languages: tuple[str, str]) -> CorpusFile:
    """Look a corpus up by its id, such as `OPUS-nllb-v1-eng-spa`; mtdata builds its index the first time (a minute).

    Args:
        name: The id of the corpus.
        languages: Codes of the two languages wanted, in the order wanted.

    Raises:
        MissingExtraError: mtdata is not installed.
        SettingsError: The name is no id, or the id of a corpus in other languages.
        DownloadError: The index has no such corpus, or the corpus consists of several files.
    """
    before = logging.getLogger().handlers[:]
    try:
        entries, index, codes = (require(f"mtdata.{name}", "mtdata", "a name with mtdata:") for name in _MODULES)
    finally:
        logging.getLogger().handlers[:] = before  # mtdata adds its own when it is imported
    try:
        wanted = entries.DatasetId.parse(name)
        pair = tuple(codes.bcp47(code) for code in languages)
    except Exception as error:  # mtdata raises plain exceptions, and various others for unknown codes
        raise SettingsError(f"mtdata:{name}: no id of mtdata ({error}); `mtdata list -id` shows the ids") from error
    shown = "-".join(languages)
    if wanted not in index.INDEX:
        raise DownloadError(f"mtdata:{name}: not in its index; `mtdata list -id -l {shown}` shows what is")
    entry = index.INDEX[wanted]
    if len(entry.did.langs) != 2 or not entry.is_compatible(pair):
        raise SettingsError(f"mtdata:{name}: a corpus of {entry.did.lang_str}, but {shown} is wanted; name another")
    if not isinstance(entry.url, str):
        raise DownloadError(
            f"mtdata:{name}: it consists of several files; fetch it with `mtdata get` and give its text with --text"
        )
    return CorpusFile(
        name=f"{entry.did.group}-{entry.did.name}",
        version=entry.did.version,
        url=entry.url,
        filename=f"{entry.did}.{entry.ext}",
        languages=_codes(entry, languages),
        licence="not known to mtdata; look it up before you use the corpus",
        citation=", ".join(entry.cite or ()),
    )


def _codes(entry: Entry, languages: tuple[str, str]) -> tuple[str, str]:
    """The codes in which the archive's members end (`*.en`, `*.zh_CN`); for a table, the order of its columns."""
    from mtdata.iso.bcp47 import bcp47

    swapped = not entry.did.langs[0].is_compatible(bcp47(languages[0]))
    codes = [member.rpartition(".")[2] for member in entry.in_paths or ()]
    if len(codes) == 2 and codes[0] != codes[1]:  # members are listed in the order of the languages of the id
        return (codes[1], codes[0]) if swapped else (codes[0], codes[1])
    return (languages[1], languages[0]) if swapped else languages
