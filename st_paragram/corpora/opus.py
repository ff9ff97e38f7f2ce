"""Ask OPUS which file a corpus has for two languages."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

from st_paragram.corpora.fetching.corpus_file import CorpusFile
from st_paragram.corpora.fetching.http import RangeRefused, TryAgain, fetch_json
from st_paragram.errors import DownloadError

API = "https://opus.nlpl.eu/opusapi/"
_UNSAFE = re.compile(r"[^A-Za-z0-9._@-]")


def find_in_opus(
    corpus: str, version: str | None, languages: tuple[str, str], api: str = API, timeout: float = 30.0
) -> CorpusFile:
    """Look a corpus up in the index of OPUS (https://opus.nlpl.eu/opusapi/).

    Args:
        corpus: Its name at OPUS.
        version: Its version; None for the latest.
        languages: The codes of the two languages, as the corpus spells them.
        api: Address of the index.
        timeout: The longest silence of the server, in seconds.

    Raises:
        DownloadError: The index does not answer, has changed its format, or knows no such file.
    """
    query = {
        "corpus": corpus,
        "source": languages[0],
        "target": languages[1],
        "preprocessing": "moses",
        "version": version or "latest",
    }
    url = f"{api}?{urlencode(query)}"
    try:
        rows = fetch_json(url, timeout)["corpora"]
        fitting = [row for row in rows if _fits(row, corpus, version, languages)]
    except (TryAgain, RangeRefused) as error:
        raise DownloadError(
            f"OPUS:{corpus}: the index of OPUS does not answer ({url}: {error}); try again later, or name a corpus of "
            f"the catalogue, or mtdata:OPUS-{corpus.lower()}-VERSION-LANG-LANG, which does not need this index"
        ) from error
    except (KeyError, TypeError, AttributeError) as error:
        raise DownloadError(
            f"OPUS:{corpus}: the index of OPUS has changed its format ({url}); name a corpus of the catalogue or of "
            "mtdata, or download the file by hand and give it with --text"
        ) from error
    if not fitting:
        wanted = f"{corpus}{f'@{version}' if version else ''} for {'-'.join(languages)}"
        raise DownloadError(
            f"OPUS has no {wanted} ({url}); look its names and codes up at https://opus.nlpl.eu (some codes have a "
            "region, as in zh_CN)"
        )
    return _file(next((row for row in fitting if str(row.get("latest")) == "True"), fitting[-1]), languages)


def _fits(row: dict[str, Any], corpus: str, version: str | None, languages: tuple[str, str]) -> bool:
    same = sorted((row["source"], row["target"] or "")) == sorted(languages)
    named = row["corpus"].lower() == corpus.lower() and (version is None or row["version"] == version)
    return same and named and row["url"].endswith(".txt.zip")


def _file(row: dict[str, Any], languages: tuple[str, str]) -> CorpusFile:
    name, version = row["corpus"], row["version"]
    size = row.get("size")
    return CorpusFile(
        name=name,
        version=version,
        url=row["url"],
        filename=opus_filename(name, version, languages),
        languages=languages,
        licence=f"see https://opus.nlpl.eu/{name}",
        citation="J. Tiedemann (2012), Parallel Data, Tools and Interfaces in OPUS, LREC",
        about=size * 1024 if isinstance(size, int) else None,
    )


def opus_filename(name: str, version: str, languages: tuple[str, ...]) -> str:
    """The name under which a file of OPUS is stored: `Europarl-v8.en-es.txt.zip`."""
    return _UNSAFE.sub("_", f"{name}-{version}.{'-'.join(sorted(languages))}.txt.zip")
