"""From names of corpora and languages to files to fetch, and from fetched files to texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import DownloadError, SettingsError, one_line
from st_paragram.tools.corpora.catalogue import CorpusFile, Entry, load_catalogue

if TYPE_CHECKING:
    from st_paragram.tools.corpora.download import Fetched

OPUS_INDEX = "https://opus.nlpl.eu/opusapi/"
_OPUS_PAPER = "J. Tiedemann (2012), Parallel Data, Tools and Interfaces in OPUS, LREC"


def language_pairs(spec: str, first: str = "en") -> list[tuple[str, str]]:
    """Pairs of `first` with each language of `spec`, codes with hyphens between them, such as `es` or `fr-es-de`."""
    codes = [code for code in spec.split("-") if code != first]
    if not codes or not all(codes) or len(set(codes)) < len(codes):
        raise SettingsError(f"--lang {spec}: give language codes other than {first}, each once, as in es or fr-es-de")
    return [(first, code) for code in codes]


def corpora_for(languages: tuple[str, str], names: Sequence[str] = (), mirror: str | None = None) -> list[CorpusFile]:
    """The files to fetch for two languages.

    Args:
        languages: Codes, in the order in which the two sides of a pair are written.
        names: `Europarl` or `GlobalVoices@v2017q3` is in the catalog, `OPUS:NLLB` or `OPUS:NLLB@v1` in the index of
            OPUS; none for the catalog's default for the language.
        mirror: Address of a server that has the same paths as each file's own server.
    """
    catalogue = load_catalogue()
    if names:
        return [_at(_named(name, languages), mirror) for name in dict.fromkeys(names)]
    default = catalogue.languages.get(languages[1]) if languages[0] == "en" else None
    files = [_in_catalogue(name, catalogue.corpora[name], languages) for name in default or catalogue.corpora]
    return [_at(replace(file, optional=default is None), mirror) for file in files]


def set_files(name: str, languages: Sequence[str] = (), mirror: str | None = None) -> list[CorpusFile]:
    """The files of a set of the catalog in some languages; all that it has if none is named. English is ignored."""
    sets = load_catalogue().sets
    if name not in sets:
        raise SettingsError(f"unknown set {name}; choose from {', '.join(sorted(sets))}")
    entry = sets[name]
    wanted = [code for code in languages if code != "en"] or list(entry.codes)
    if unknown := [code for code in wanted if code not in entry.codes]:
        raise SettingsError(f"{name} has no {', '.join(unknown)}; it has {', '.join(entry.codes)}")
    urls = dict.fromkeys(url.format(code=entry.codes[code]) for code in wanted for url in entry.urls)
    return [_at(CorpusFile(name, entry, url, PurePosixPath(url).name), mirror) for url in urls]


def text_source(fetched: Fetched) -> TextSource:
    """How to read a fetched archive of OPUS: its members, in the order and under the codes that were asked for."""
    first, second = fetched.file.pair
    codes = (fetched.file.languages[0], fetched.file.languages[1])
    return TextSource((str(fetched.path),), (first, second), cap=fetched.file.entry.cap, codes=codes)


def _named(name: str, languages: tuple[str, str]) -> CorpusFile:
    source, _, rest = name.rpartition(":")
    corpus, _, version = rest.partition("@")
    known = {known.lower(): known for known in load_catalogue().corpora}
    spelled = known.get(corpus.lower(), corpus)
    entry = load_catalogue().corpora.get(spelled)
    if source.upper() == "OPUS" and corpus:
        return _in_opus(spelled, version, languages, entry)
    if source or entry is None:
        others = "name other corpora of OPUS as in OPUS:NLLB"
        raise SettingsError(f"--corpus {name}: not in the catalog, which has {', '.join(known.values())}; {others}")
    return _in_catalogue(spelled, entry.model_copy(update={"version": version or entry.version}), languages)


def _in_catalogue(name: str, entry: Entry, languages: tuple[str, str]) -> CorpusFile:
    codes = _codes(entry, languages)
    url = load_catalogue().opus.format(corpus=name, version=entry.version, pair="-".join(sorted(codes)))
    return CorpusFile(name, entry, url, _filename(name, entry.version, codes), codes, languages)


def _in_opus(name: str, version: str, languages: tuple[str, str], entry: Entry | None) -> CorpusFile:
    """Look a corpus up in the index of OPUS."""
    import requests

    from st_paragram.tools.corpora.download import new_session

    codes = _codes(entry, languages)
    query = {"corpus": name, "source": codes[0], "target": codes[1], "preprocessing": "moses"}
    try:
        with new_session() as session:
            answer = session.get(OPUS_INDEX, params={**query, "version": version or "latest"}, timeout=60)
            answer.raise_for_status()
            rows = [row for row in answer.json()["corpora"] if _is_text(row, name, version, codes)]
    except (requests.RequestException, DownloadError, AttributeError, LookupError, TypeError, ValueError) as error:
        advice = "try again later, or download the file by hand and give it with --text"
        raise DownloadError(f"OPUS:{name}: no usable answer from {OPUS_INDEX} ({one_line(error)}); {advice}") from error
    if not rows:
        wanted = f"{name}{f'@{version}' if version else ''} for {'-'.join(codes)}"
        raise DownloadError(f"OPUS has no {wanted}; look up names and codes (such as zh_CN) at https://opus.nlpl.eu")
    row = next((row for row in rows if str(row.get("latest")) == "True"), rows[-1])
    found = entry or Entry(version="", license="see https://opus.nlpl.eu", citation=_OPUS_PAPER)
    found = found.model_copy(update={"version": row["version"]})
    return CorpusFile(
        row["corpus"], found, row["url"], _filename(row["corpus"], row["version"], codes), codes, languages
    )


def _is_text(row: dict[str, str], name: str, version: str, codes: tuple[str, str]) -> bool:
    same = row["corpus"].lower() == name.lower() and version in ("", row["version"])
    return same and {row["source"], row["target"]} == {*codes} and row["url"].endswith(".txt.zip")


def _filename(name: str, version: str, codes: tuple[str, str]) -> str:
    return re.sub(r"[^\w.@-]", "_", f"{name}-{version}.{'-'.join(sorted(codes))}.txt.zip")


def _codes(entry: Entry | None, languages: tuple[str, str]) -> tuple[str, str]:
    known = entry.codes if entry else {}
    return known.get(languages[0], languages[0]), known.get(languages[1], languages[1])


def _at(file: CorpusFile, mirror: str | None) -> CorpusFile:
    """The same file at a mirror, under the same path."""
    if mirror is None:
        return file
    if not re.match(r"https?://[^/\s]", mirror):
        raise SettingsError(f"--mirror {mirror}: not a web address; give one such as https://example.org/opus")
    return replace(file, url=mirror.rstrip("/") + urlsplit(file.url).path)
