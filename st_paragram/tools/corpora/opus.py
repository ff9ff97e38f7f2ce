"""Ask OPUS which file a corpus has for two languages."""

from __future__ import annotations

import json
import re
from typing import Annotated
from urllib.parse import urlencode

import pydantic

from st_paragram.errors import DownloadError
from st_paragram.tools.corpora.fetching.corpus_file import CorpusFile, is_web_address
from st_paragram.tools.corpora.fetching.http import StartAnew, TryAgain, fetch_small

API = "https://opus.nlpl.eu/opusapi/"
_UNSAFE = re.compile(r"[^A-Za-z0-9._@-]")
_Name = Annotated[str, pydantic.StringConstraints(pattern=r"^[^\p{C}\p{Z}]{1,80}$")]
_Code = Annotated[str, pydantic.StringConstraints(pattern=r"^[^\p{C}\p{Z}]{0,20}$")]
_Address = Annotated[str, pydantic.StringConstraints(pattern=r"^[!-~]{1,1000}$")]


class _Row(pydantic.BaseModel):
    """A file of the index. All of it may be shown, and none of it is long."""

    corpus: _Name
    version: _Name
    source: _Code
    target: _Code | None
    url: _Address
    latest: bool | _Name | None = None
    size: Annotated[int, pydantic.Field(ge=0, le=1 << 40)] | None = None  # in KiB

    def fits(self, corpus: str, version: str | None, languages: tuple[str, str]) -> bool:
        """Whether it is the text of this corpus in these languages."""
        same = sorted((self.source, self.target or "")) == sorted(languages)
        named = self.corpus.lower() == corpus.lower() and version in (None, self.version)
        return same and named and self.url.endswith(".txt.zip") and is_web_address(self.url)


def find_in_opus(
    corpus: str, version: str | None, languages: tuple[str, str], api: str = API, timeout: float = 60.0
) -> CorpusFile:
    """Look a corpus up in the index of OPUS (https://opus.nlpl.eu/opusapi/).

    Args:
        corpus: Its name at OPUS.
        version: Its version; None for the latest.
        languages: The codes of the two languages, as the corpus spells them.
        api: Address of the index.
        timeout: The longest wait for the whole answer, in seconds.

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
        rows = _rows(fetch_small(url, timeout), url)
    except (TryAgain, StartAnew) as error:
        raise DownloadError(
            f"OPUS:{corpus}: the index of OPUS does not answer ({url}: {error}); try again later, or name a corpus of "
            f"the catalogue, or mtdata:OPUS-{corpus.lower()}-VERSION-LANG-LANG, which does not need this index"
        ) from error
    except (KeyError, TypeError, pydantic.ValidationError) as error:
        raise DownloadError(
            f"OPUS:{corpus}: the index of OPUS has changed its format ({url}); name a corpus of the catalogue or of "
            "mtdata, or download the file by hand and give it with --text"
        ) from error
    fitting = [row for row in rows if row.fits(corpus, version, languages)]
    if not fitting:
        wanted = f"{corpus}{f'@{version}' if version else ''} for {'-'.join(languages)}"
        raise DownloadError(
            f"OPUS has no {wanted} ({url}); look its names and codes up at https://opus.nlpl.eu (some codes have a "
            "region, as in zh_CN)"
        )
    return _file(next((row for row in fitting if str(row.latest) == "True"), fitting[-1]), languages)


def _rows(body: bytes, url: str) -> list[_Row]:
    """Read an answer of the index; its first row that is none ends it."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DownloadError(f"{url}: the answer is not JSON (it begins {body[:30]!r}); try again later") from error
    return [_Row.model_validate(row) for row in answer["corpora"]]


def _file(row: _Row, languages: tuple[str, str]) -> CorpusFile:
    return CorpusFile(
        name=row.corpus,
        version=row.version,
        url=row.url,
        filename=opus_filename(row.corpus, row.version, languages),
        languages=languages,
        licence=f"see https://opus.nlpl.eu/{row.corpus}",
        citation="J. Tiedemann (2012), Parallel Data, Tools and Interfaces in OPUS, LREC",
        about=None if row.size is None else row.size * 1024,
    )


def opus_filename(name: str, version: str, languages: tuple[str, ...]) -> str:
    """The name under which a file of OPUS is stored: `Europarl-v8.en-es.txt.zip`."""
    return _UNSAFE.sub("_", f"{name}-{version}.{'-'.join(sorted(languages))}.txt.zip")
