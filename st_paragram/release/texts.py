"""The texts of a model: a file a source, `FOLDER/LANG/SOURCE.tsv` (or .gz, .xz, .bz2), of rows `english TAB other`."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from st_paragram.core.text.parallel import TextSource
from st_paragram.core.text.streams import open_stream, read_blocks
from st_paragram.errors import SettingsError
from st_paragram.release.description import Licence, ModelDescription, Release

_ENDINGS = (".tsv", ".tsv.gz", ".tsv.xz", ".tsv.bz2")


@dataclass(frozen=True)
class SourceText:
    """The text of a source in one language.

    Attributes:
        source: Its name.
        language: Beside English.
        path: The file.
        licence: Of the source.
    """

    source: str
    language: str
    path: Path
    licence: Licence

    def parallel_text(self) -> TextSource:
        """The text as a preparation takes it."""
        return TextSource((str(self.path),), ("en", self.language))


def texts_of(model: ModelDescription, release: Release, folder: str | Path) -> list[SourceText]:
    """The texts that a model is trained on, language by language.

    Args:
        model: Of the release.
        release: Has the licences.
        folder: Of all texts.

    Raises:
        SettingsError: A language has no text that the model may be trained on, or a text's source is not described.
    """
    found = []
    for language in model.languages:
        texts = [text for text in _all(Path(folder) / language, language, release) if _wanted(text, model)]
        if not texts:
            which = "open text" if model.open_only else "text"
            raise SettingsError(f"{Path(folder) / language}: no {which} to train on; put SOURCE.tsv files there")
        found += texts
    return found


def _all(folder: Path, language: str, release: Release) -> list[SourceText]:
    paths = sorted(path for path in folder.glob("*.tsv*") if path.name.endswith(_ENDINGS)) if folder.is_dir() else []
    named = {path: path.name.partition(".tsv")[0] for path in paths}
    for path, name in named.items():
        if name not in release.sources:
            raise SettingsError(f"{path}: a source without a licence; describe {name!r} under `sources` of the release")
    return [SourceText(name, language, path, release.sources[name]) for path, name in named.items()]


def _wanted(text: SourceText, model: ModelDescription) -> bool:
    return text.source not in model.leave_out and (text.licence.open or not model.open_only)


def count_rows(text: SourceText) -> int:
    """The rows of a text.

    Raises:
        TextError: It cannot be read.
    """
    name = str(text.path)
    with ExitStack() as stack:
        return sum(block.count(b"\n") + 1 for block in read_blocks(name, open_stream(name, stack)))
