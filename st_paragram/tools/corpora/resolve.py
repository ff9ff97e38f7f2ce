"""Files to download for names of corpora and languages, and texts in downloaded files."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import DownloadError, SettingsError, one_line
from st_paragram.tools.corpora.catalogue import CorpusFile, Entry, load_catalogue

if TYPE_CHECKING:
    from st_paragram.tools.corpora.download import Fetched

OPUS_INDEX = "https://opus.nlpl.eu/opusapi/"
_INDEX_SIZE = 1 << 24  # maximum bytes of an answer
_UNKNOWN = Entry(
    version="",
    license="see https://opus.nlpl.eu",
    citation="J. Tiedemann (2012), Parallel Data, Tools and Interfaces in OPUS, LREC",
)


def language_pairs(spec: str) -> list[tuple[str, str]]:
    """Pair English with each language of `spec`, codes joined by hyphens such as `fr-es-de`."""
    codes = [code for code in spec.split("-") if code != "en"]
    if not codes or not all(codes) or len(set(codes)) < len(codes):
        raise SettingsError(
            f"--lang {spec}: give language codes other than en, each once, as in es or fr-es-de"
        )
    return [("en", code) for code in codes]


def corpora_for(
    languages: tuple[str, str], names: Sequence[str] = (), mirror: str | None = None
) -> list[CorpusFile]:
    """Return the files to download for two languages.

    Args:
        languages: Codes of the two sides of a pair, in order.
        names: Names in the catalog, such as `Europarl` or `GlobalVoices@v2017q3`, or in the index
            of OPUS, such as `OPUS:NLLB` or `OPUS:NLLB@v1`; none: the catalog's defaults for the
            language.
        mirror: Address of a server that has the same paths as each file's server.
    """
    catalogue = load_catalogue()
    default = catalogue.languages.get(languages[1]) if languages[0] == "en" else None
    files = [
        _named(name, languages) for name in dict.fromkeys(names or default or catalogue.corpora)
    ]
    optional = not names and default is None
    return [replace(file, url=_mirrored(file.url, mirror), optional=optional) for file in files]


def set_files(
    name: str, languages: Sequence[str] = (), mirror: str | None = None
) -> list[CorpusFile]:
    """Return the files of a set of the catalog in some languages, by default in all.

    English is ignored, and so are the languages for a set that is not divided by language.
    """
    sets = load_catalogue().sets
    if name not in sets:
        raise SettingsError(f"unknown test set {name}; choose from {', '.join(sorted(sets))}")
    entry = sets[name]
    wanted = [code for code in languages if code != "en"] or list(entry.codes)
    unknown = [code for code in wanted if code not in entry.codes]
    if not entry.codes:
        wanted = [""]
    elif unknown:
        raise SettingsError(f"{name} has no {', '.join(unknown)}; it has {', '.join(entry.codes)}")
    files = {}
    for code in wanted:
        for pattern in entry.urls:
            url = pattern.format(code=entry.codes.get(code, ""))
            filename = PurePosixPath(url).name
            files[url] = CorpusFile(name, entry, _mirrored(url, mirror), filename=filename)
    return list(files.values())


def text_source(fetched: Fetched) -> TextSource:
    """Return the text in a downloaded OPUS archive, with the requested language codes in order."""
    file = fetched.file
    return TextSource((str(fetched.path),), file.pair, cap=file.entry.cap, codes=file.languages)  # type: ignore[arg-type]


def _named(name: str, languages: tuple[str, str]) -> CorpusFile:
    source, _, rest = name.rpartition(":")
    corpus, _, version = rest.partition("@")
    catalogue = load_catalogue()
    for known_corpus in catalogue.corpora:
        if known_corpus.lower() == corpus.lower():
            corpus = known_corpus
    entry = catalogue.corpora.get(corpus)
    codes = tuple((entry or _UNKNOWN).codes.get(code, code) for code in languages)
    if source.upper() == "OPUS" and corpus:
        row = _in_opus(corpus, version, codes)
        corpus = row["corpus"]
        version = row["version"]
        url = row["url"]
    elif entry and not source:
        version = version or entry.version
        url = catalogue.opus.format(corpus=corpus, version=version, pair="-".join(sorted(codes)))
    else:
        raise SettingsError(
            f"--corpus {name}: not in the catalog, which has {', '.join(catalogue.corpora)};"
            " for other corpora of OPUS, write for example OPUS:NLLB"
        )
    entry = (entry or _UNKNOWN).model_copy(update={"version": version})
    filename = re.sub(r"[^\w.@-]", "_", f"{corpus}-{version}.{'-'.join(sorted(codes))}.txt.zip")
    return CorpusFile(corpus, entry, url, filename=filename, languages=codes, pair=languages)


def _in_opus(name: str, version: str, codes: tuple[str, ...]) -> dict[str, str]:
    """Return the row of a corpus in the index of OPUS, in the requested version or the latest."""
    from st_paragram.tools.corpora.transfer import TryAgain, read_limited

    query = {"corpus": name, "source": codes[0], "target": codes[1], "preprocessing": "moses"}
    address = f"{OPUS_INDEX}?{urlencode({**query, 'version': version or 'latest'})}"
    rows = []
    try:
        for row in json.loads(read_limited(address, _INDEX_SIZE))["corpora"]:
            is_corpus = row["corpus"].lower() == name.lower() and version in ("", row["version"])
            is_pair = {row["source"], row["target"]} == set(codes)
            if is_corpus and is_pair and row["url"].endswith(".txt.zip"):
                rows.append(row)
    except (
        TryAgain,
        DownloadError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:
        raise DownloadError(
            f"OPUS:{name}: no usable answer from {OPUS_INDEX} ({one_line(error)});"
            " try again later, or download the file by hand and give it with --text"
        ) from error
    if not rows:
        corpus = f"{name}@{version}" if version else name
        raise DownloadError(
            f"OPUS has no {corpus} for {'-'.join(codes)};"
            " look up names and codes (such as zh_CN) at https://opus.nlpl.eu"
        )
    for row in rows:
        if str(row.get("latest")) == "True":
            return row
    return rows[-1]


def _mirrored(url: str, mirror: str | None) -> str:
    """Return the address of a file at a mirror, under the same path."""
    if mirror is None:
        return url
    if not re.match(r"https?://[^/\s]", mirror):
        raise SettingsError(
            f"--mirror {mirror}: not a web address; give one such as https://example.org/opus"
        )
    return mirror.rstrip("/") + urlsplit(url).path
