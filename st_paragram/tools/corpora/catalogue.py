"""The catalog of corpora, read from `corpora.yaml`, and what is known about one file of a corpus."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pydantic

from st_paragram.core.settings import read_yaml
from st_paragram.errors import SettingsError, one_line

PATH = Path(__file__).with_name("corpora.yaml")


class Entry(pydantic.BaseModel, extra="forbid", frozen=True, strict=True):
    """A corpus of parallel text at OPUS."""

    version: str
    license: str
    citation: str
    note: str = ""
    codes: dict[str, str] = {}  # our language code -> the code in its addresses, where they differ
    sizes: dict[str, int] = {}  # file name -> bytes, where known
    sha256: dict[str, str] = {}  # file name -> SHA-256 in hexadecimal digits, where known
    cap: int | None = None  # maximum pairs to use per language


class FileSet(Entry, frozen=True):
    """Other files, such as test sets; `{code}` in an address stands for a language of `codes`."""

    urls: list[str]


class Catalogue(pydantic.BaseModel, extra="forbid", frozen=True):
    """All of `corpora.yaml`."""

    opus: str  # pattern of addresses at OPUS
    corpora: dict[str, Entry]
    languages: dict[str, list[str]] = {}  # language -> corpora to take by default
    sets: dict[str, FileSet] = {}

    @pydantic.model_validator(mode="after")
    def _languages_name_corpora(self) -> Catalogue:
        if unknown := {name for names in self.languages.values() for name in names} - self.corpora.keys():
            raise ValueError(f"languages name {', '.join(sorted(unknown))}, missing from corpora")
        return self


@cache
def load_catalogue(path: Path = PATH) -> Catalogue:
    """Read a catalog; a mistake is a `SettingsError` that names its place."""
    try:
        return Catalogue.model_validate(read_yaml(path))
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise SettingsError(f"{path}: {place}: {one_line(first['msg'])}; correct this entry") from error


@dataclass(frozen=True)
class CorpusFile:
    """A file to fetch."""

    name: str  # of the corpus or set
    entry: Entry
    url: str
    filename: str  # to store it under
    languages: tuple[str, ...] = ()  # codes as the file has them, in the order of `pair`; empty for other files
    pair: tuple[str, ...] = ()  # codes as asked for
    optional: bool = False  # the server may lack it if there is another text of the same pair

    @property
    def label(self) -> str:
        """Corpus, version, languages and address, for messages."""
        return " ".join(filter(None, (self.name, self.entry.version, "-".join(self.languages), f"({self.url})")))
