"""One file to fetch, with all that is known about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from st_paragram.errors import SettingsError


@dataclass(frozen=True)
class CorpusFile:
    """A file of a corpus.

    Attributes:
        name: The name of the corpus.
        version: The version of the corpus.
        url: The address of the file.
        filename: The name to store it under, without folders.
        languages: The codes that the file uses: for an archive with one member per language in the order of `pair`,
            for a table in the order of its columns. Empty if the file is not of two languages.
        pair: The codes that were asked for.
        cap: The largest number of its pairs to use; None for all.
        licence: The licence, in words.
        citation: The publication to cite.
        size: The exact size in bytes; None if it is not known.
        sha256: The SHA-256 in hexadecimal digits; None if it is not known.
        optional: The server may lack this file, as long as another text of the same languages can be fetched.
        about: The approximate size in bytes where `size` is not known; used only to check the disk space.
        note: Anything else that a user should know.
        elsewhere: What else to do if it cannot be fetched from there, for messages; empty for the options of
            `st-paragram download`.
    """

    name: str
    version: str
    url: str
    filename: str
    languages: tuple[str, ...] = ()
    pair: tuple[str, ...] = ()
    cap: int | None = None
    licence: str = "not known; look it up before you use the file"
    citation: str = ""
    size: int | None = None
    sha256: str | None = None
    optional: bool = False
    about: int | None = None
    note: str = ""
    elsewhere: str = ""

    @property
    def advice(self) -> str:
        """What else to do if it cannot be fetched from there."""
        if self.elsewhere:
            return self.elsewhere
        return "use another place (--mirror)" + (", or other corpora (--corpus)" if self.languages else "")

    @property
    def host(self) -> str | None:
        """The name of the server; None if the address has none."""
        return urlsplit(self.url).hostname if is_web_address(self.url) else None

    @property
    def label(self) -> str:
        """The name of the file in messages: corpus, version, languages and address."""
        languages = f" {'-'.join(self.languages)}" if self.languages else ""
        return f"{self.name} {self.version}{languages} ({self.url})"

    def at(self, mirror: str | None) -> CorpusFile:
        """The same file at a mirror, under the same path: `MIRROR/OPUS-Tanzil/v1/moses/en-es.txt.zip`.

        Raises:
            SettingsError: The mirror is not an address of a web server.
        """
        if mirror is None:
            return self
        if not is_web_address(mirror):
            raise SettingsError(
                f"--mirror {mirror}: not the address of a web server; give one like https://example.org/opus"
            )
        return replace(self, url=mirror.rstrip("/") + urlsplit(self.url).path)


def is_web_address(url: str) -> bool:
    """Whether something can be asked for there: http or https, with the name of a server."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:  # brackets that are not an address, a port that is not a number
        return False
