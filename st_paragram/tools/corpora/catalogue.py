"""The catalogue of corpora, read from `corpora.yaml`; unknown keys are refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from st_paragram.core.settings import read_yaml
from st_paragram.errors import SettingsError

PATH = Path(__file__).with_name("corpora.yaml")
_KINDS = {str: "text", int: "whole number", list: "list", dict: "mapping"}


@dataclass(frozen=True)
class Corpus:
    """A corpus of parallel text at OPUS.

    Attributes:
        name: Its name, spelled as at OPUS.
        version: Its version, spelled as at OPUS.
        licence: The licence, in words.
        citation: The publication to cite.
        page: The address of its page at OPUS.
        cap: The largest number of pairs to use for one language; None for all.
        codes: Language codes of this corpus where they differ from ours: ours -> its own.
        note: Anything else that a user should know.
    """

    name: str
    version: str
    licence: str
    citation: str
    page: str
    cap: int | None = None
    codes: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class FileSet:
    """Other files: test sets, paraphrases, a model.

    Attributes:
        name: The name of the set in this catalogue.
        version: Its version.
        urls: Addresses of its files; `{code}` stands for a language.
        licence: The licence, in words.
        citation: The publication to cite.
        codes: Language -> its code in the addresses; empty if the addresses name no language.
        sizes: File name -> size in bytes, where it is known.
        sha256: File name -> SHA-256 in hexadecimal digits, where it is known.
        note: Anything else that a user should know.
    """

    name: str
    version: str
    urls: tuple[str, ...]
    licence: str
    citation: str
    codes: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    sha256: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Catalogue:
    """The whole catalogue.

    Attributes:
        opus: The pattern of the addresses of files at OPUS.
        corpora: Name -> corpus.
        languages: Language -> names of the corpora that are used for it by default.
        sets: Name -> set of other files.
    """

    opus: str
    corpora: Mapping[str, Corpus]
    languages: Mapping[str, tuple[str, ...]]
    sets: Mapping[str, FileSet]


@cache
def load_catalogue(path: Path = PATH) -> Catalogue:
    """Read a catalogue.

    Raises:
        SettingsError: The file cannot be read, or an entry has unknown, missing or wrong keys; the message names them.
    """
    tree = read_yaml(path)
    top = _checked(path, "the file", tree, {"opus", "corpora", "languages", "sets"}, {"opus", "corpora"})
    parts = {part: _mapping(path, part, top.get(part) or {}) for part in ("corpora", "sets", "languages")}
    corpora = {name: _entry(path, name, Corpus, values) for name, values in parts["corpora"].items()}
    sets = {name: _entry(path, name, FileSet, values) for name, values in parts["sets"].items()}
    languages = {code: tuple(_list(path, f"language {code}", names)) for code, names in parts["languages"].items()}
    for code, names in languages.items():
        if unknown := [name for name in names if name not in corpora]:
            raise SettingsError(
                f"{path}: language {code} names {', '.join(unknown)}, which is not a corpus of the "
                "catalogue; add it there"
            )
    return Catalogue(top["opus"], corpora, languages, sets)


_Kind = TypeVar("_Kind", Corpus, FileSet)


def _entry(path: Path, name: str, kind: type[_Kind], values: Any) -> _Kind:  # noqa: ANN401
    known = [item for item in fields(kind) if item.name != "name"]
    required = {item.name for item in known if item.default is MISSING and item.default_factory is MISSING}
    values = _checked(path, name, values, {item.name for item in known}, required)
    for item in known:
        value = values.get(item.name)
        wanted: type = str
        if item.name in ("codes", "sizes", "sha256"):
            wanted = dict
        elif item.name in ("cap", "urls"):
            wanted = int if item.name == "cap" else list
        if value is not None and not isinstance(value, wanted):
            raise SettingsError(f"{path}: {name}: {item.name} is {value!r}; it must be a {_KINDS[wanted]}")
    arguments: dict[str, Any] = {key: tuple(value) if key == "urls" else value for key, value in values.items()}
    return kind(name=name, **arguments)


def _mapping(path: Path, where: str, values: Any) -> dict[str, Any]:  # noqa: ANN401
    if not isinstance(values, dict):
        raise SettingsError(f"{path}: {where} is not a mapping of keys to values; correct it")
    return values


def _list(path: Path, where: str, values: Any) -> list[str]:  # noqa: ANN401
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise SettingsError(f"{path}: {where} is {values!r}; it must be a list of names")
    return values


def _checked(path: Path, where: str, values: Any, known: set[str], required: set[str]) -> dict[str, Any]:  # noqa: ANN401
    values = _mapping(path, where, values)
    if unknown := sorted(map(str, values.keys() - known)):
        raise SettingsError(f"{path}: {where}: unknown {', '.join(unknown)}; known are {', '.join(sorted(known))}")
    if missing := sorted(required - values.keys()):
        raise SettingsError(f"{path}: {where}: {', '.join(missing)} missing; add what is missing")
    return values
