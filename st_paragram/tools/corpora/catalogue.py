"""The catalog of corpora, read from `corpora.yaml`, and descriptions of the files of a corpus."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pydantic

from st_paragram.core.settings import read_yaml


class Entry(pydantic.BaseModel, extra="forbid", frozen=True, strict=True):
    """A corpus of parallel text at OPUS."""

    version: str
    license: str
    citation: str
    note: str = ""
    codes: dict[str, str] = {}  # our language code -> the code in its addresses, if different
    sha256: dict[str, str] = {}  # file name -> SHA-256 in hexadecimal digits, if known
    cap: int | None = None  # maximum pairs to use per language


class FileSet(Entry, frozen=True):
    """Other files, such as test sets; `{code}` in an address stands for a language of `codes`.

    Without `codes`, the files are not divided by language.
    """

    urls: list[str]


class Catalogue(pydantic.BaseModel, extra="forbid", frozen=True):
    """All of `corpora.yaml`."""

    opus: str  # pattern of addresses at OPUS
    corpora: dict[str, Entry]
    languages: dict[str, list[str]]  # language -> default corpora
    sets: dict[str, FileSet]


@cache
def load_catalogue() -> Catalogue:
    """Read the catalog."""
    return Catalogue.model_validate(read_yaml(Path(__file__).with_name("corpora.yaml")))


@dataclass(frozen=True)
class CorpusFile:
    """A file to download."""

    name: str  # name of the corpus or set
    entry: Entry
    url: str
    filename: str  # local file name
    # codes in the file, in the order of `pair`; empty for other files
    languages: tuple[str, ...] = ()
    pair: tuple[str, ...] = ()  # requested codes
    optional: bool = False  # the server may lack it if there is another text of the same pair

    @property
    def label(self) -> str:
        """Corpus, version, languages and address, for messages."""
        parts = [self.name, self.entry.version, "-".join(self.languages), f"({self.url})"]
        return " ".join([part for part in parts if part])
