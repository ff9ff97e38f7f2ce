"""One file to fetch, with all that is known of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from st_paragram.errors import SettingsError


@dataclass(frozen=True)
class CorpusFile:
    """A file of a corpus.

    Attributes:
        name: Of the corpus.
        version: Of the corpus.
        url: Where it is.
        filename: What it is called here; no folders.
        languages: Codes as the file uses them: of an archive with a member for each, in the order of `pair`; of a
            table in the order of its columns. None if it is not of two languages.
        pair: Codes as they were asked for.
        cap: The most pairs to use of it, None for all.
        licence: In words.
        citation: In words.
        size: In bytes if known exactly, None else.
        sha256: Hexadecimal if known, None else.
        optional: May be missing where it should be, as long as another text of its pair is there.
        about: In bytes, roughly, where `size` is not known; only to look for space.
        note: Anything else a user should know.
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
    licence: str = "not known; look before you use it"
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
    def label(self) -> str:
        """What messages call it: corpus, version, languages and address."""
        languages = f" {'-'.join(self.languages)}" if self.languages else ""
        return f"{self.name} {self.version}{languages} ({self.url})"

    def at(self, mirror: str | None) -> CorpusFile:
        """The same file at a mirror, which keeps the path: `MIRROR/OPUS-Tanzil/v1/moses/en-es.txt.zip`.

        Raises:
            SettingsError: The mirror is no http(s) address.
        """
        if mirror is None:
            return self
        parts = urlsplit(mirror)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise SettingsError(f"--mirror {mirror}: no address of a server; give one like https://example.org/opus")
        return replace(self, url=mirror.rstrip("/") + urlsplit(self.url).path)
