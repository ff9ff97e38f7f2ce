"""A list of texts with a weight for each: what `st-paragram prepare --sources` reads.

    sources:
      talks: {path: talks.tsv.xz, languages: en-es, weight: 0.3}
      manual: {path: [manual.en, manual.de], languages: en-de, group: manuals}
      faq: {path: faq.csv, languages: es-en, columns: [spanish, english], cap: 50000}

Paths are meant from the folder of the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import pydantic
import pydantic.dataclasses
import yaml

from st_paragram.core.files import write_text
from st_paragram.core.settings import read_yaml
from st_paragram.core.text.parallel import TextSource, parse_source, with_columns
from st_paragram.errors import SettingsError

MOST_WEIGHT = 1000
_STRICT = pydantic.ConfigDict(extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True)
class MixtureSource:
    """A text with a name.

    Attributes:
        name: Its name in the list.
        source: The text; its weight is that of the list, or 1 where that is 0.
        weight: Copies of each pair; 0: the text is left out.
        group: Texts of one group are kept, or weighted down, together.
    """

    name: str
    source: TextSource
    weight: float = 1.0
    group: str = ""

    def weighted(self, weight: float) -> MixtureSource:
        """The same text with another weight."""
        return replace(self, weight=weight, source=replace(self.source, weight=weight or 1.0))


@pydantic.dataclasses.dataclass(frozen=True, config=_STRICT)
class _Entry:
    path: str | list[str]
    languages: str
    columns: list[str] = pydantic.Field(default_factory=list)
    cap: pydantic.PositiveInt | None = None
    weight: Annotated[float, pydantic.Field(ge=0, le=MOST_WEIGHT)] = 1.0
    group: str | None = None


@pydantic.dataclasses.dataclass(frozen=True, config=_STRICT)
class _Mixture:
    sources: dict[str, _Entry]


def read_mixture(path: str | Path, languages: tuple[str, str] | None = None) -> list[MixtureSource]:
    """Read a list of texts.

    Args:
        path: The YAML file.
        languages: The languages wanted, as for `text.parse_source`; None: whatever the texts have besides English.

    Raises:
        SettingsError: The file cannot be read, or an entry has unknown, missing or wrong keys, or other languages.
        TextError: A text is a table whose columns are not named.
    """
    values = read_yaml(path)
    try:
        entries = pydantic.TypeAdapter(_Mixture).validate_python(values).sources
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise SettingsError(f"{path}: {where}: {first['msg']}; correct it, or see docs/data.md") from error
    if not entries:
        raise SettingsError(f"{path}: no sources; name at least one text")
    return [_source(path, name, entry, languages) for name, entry in entries.items()]


def _source(path: str | Path, name: str, entry: _Entry, languages: tuple[str, str] | None) -> MixtureSource:
    paths = [entry.path] if isinstance(entry.path, str) else entry.path
    codes = entry.languages.split("-")
    if len(codes) != 2 or "en" not in codes:
        seen = f"{path}: {name}: languages is {entry.languages!r}"
        raise SettingsError(f"{seen}; write two codes, one of them en, as in en-es")
    if len(paths) not in (1, 2) or not all(paths):
        raise SettingsError(f"{path}: {name}: {len(paths)} paths; give one file, or two with a language each")
    if len(paths) == 2 and entry.columns:
        raise SettingsError(f"{path}: {name}: columns are given for two files; leave them out")
    wanted = languages or ("en", codes[1] if codes[0] == "en" else codes[0])
    located = tuple(str(Path(path).parent / each) for each in paths)
    try:
        source = replace(parse_source(f"{entry.languages}:{located[0]}", wanted), paths=located)
    except SettingsError as error:
        raise SettingsError(f"{path}: {name}: {error}") from error
    (source,) = with_columns([source], [entry.columns] if entry.columns else [])
    source = replace(source, cap=entry.cap)
    return MixtureSource(name, source, group=entry.group or name).weighted(float(entry.weight))


def write_mixture(path: Path, sources: Sequence[MixtureSource], comment: str = "") -> None:
    """Write a list of texts that `read_mixture` reads.

    Args:
        path: The YAML file; paths of texts in its folder, or in folders there, are written as seen from it.
        sources: The texts.
        comment: Lines to put first.
    """
    entries = {each.name: _as_values(each, path.parent) for each in sources}
    dumped = yaml.safe_dump({"sources": entries}, allow_unicode=True, sort_keys=False, width=1000)
    write_text(path, "".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines()) + dumped)


def _as_values(each: MixtureSource, folder: Path) -> dict[str, Any]:
    source = each.source
    paths = [_seen_from(path, folder) for path in source.paths]
    values: dict[str, Any] = {"path": paths[0] if len(paths) == 1 else paths, "languages": "-".join(source.languages)}
    values |= {"columns": list(source.columns)} if source.columns else {}
    values |= {"cap": source.cap} if source.cap else {}
    values |= {"group": each.group} if each.group not in ("", each.name) else {}
    return values | {"weight": each.weight}


def _seen_from(path: str, folder: Path) -> str:
    whole, root = Path(path).absolute(), folder.absolute()
    return str(whole.relative_to(root) if whole.is_relative_to(root) else whole)
