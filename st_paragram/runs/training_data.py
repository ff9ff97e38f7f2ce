"""The training data: a pair store, text files, or the built-in bitext. Nothing here needs torch."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.core.files import folder_for_file, is_pipe, names_of, write_text
from st_paragram.core.folders import writable_cache
from st_paragram.core.languages import both_sides, check_codes
from st_paragram.core.pair_store import PairStore
from st_paragram.core.sample import LANGUAGES, sample_pairs
from st_paragram.core.text.parallel import TextSource, parse_source, read_pairs, with_columns
from st_paragram.core.text.streams import stream_name
from st_paragram.errors import SettingsError, TextError, short

if TYPE_CHECKING:
    from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
    from st_paragram.tools.preparation.settings import PrepareSettings

logger = logging.getLogger(__name__)

BUILT_IN = "built-in"
BUILT_IN_PAIRS = 9_000  # the following rows are left for evaluation
# with more, most pieces are whole words, and natural sentences have other words
_BUILT_IN_PIECES = 1_000

_NO_DATA = (
    "WARNING: {0} does not exist, so this trains on the small built-in bitext: a demonstration, not"
    " a usable model. For a real model, give --data FILE, or make {0} with `{1}`, and start again."
)
_FROM_THE_WEB = "st-paragram bitext {0}"
_FROM_TEXT = "st-paragram prepare {0} --text FILE --output {1}"
_STORES = "stores"  # folder in the cache for stores of texts


@dataclass(frozen=True)
class TrainingData:
    """The training data, checked but not read yet.

    A pair store, or texts, or the built-in pairs if neither.
    """

    languages: tuple[str, str]
    store: str = ""
    texts: tuple[TextSource, ...] = ()

    @property
    def built_in(self) -> bool:
        """Whether it is the built-in bitext or paraphrases."""
        return not self.store and not self.texts

    @property
    def description(self) -> str:
        """The origin of the pairs for the model card, in one line."""
        if self.built_in:
            return "the built-in bitext of st_paragram, made by a phrase grammar (a demonstration)"
        return " + ".join(
            Path(name).name for name in [self.store, *(text.name for text in self.texts)] if name
        )

    def __str__(self) -> str:
        """Describe the data for a plan, in one line."""
        if self.store:
            return f"{self.store}: {len(PairStore(self.store)):,} pairs in a store"
        if self.texts:
            names = ", ".join(text.name for text in self.texts)
            return f"{names}: text, prepared once into a store of the cache"
        names = "-".join(self.languages)
        return f"the built-in bitext of {names}: {BUILT_IN_PAIRS:,} pairs, a demonstration"

    def prepared(
        self,
        settings: PrepareSettings,
        workers: int = 1,
        vocabulary: SentencePieceTokenizer | None = None,
    ) -> Path:
        """Prepare the texts once, as a store in the cache, with `workers` processes.

        With `vocabulary`, no vocabulary is trained.
        """
        from st_paragram.tools.preparation.prepare import prepare_cached

        texts = self.texts
        if self.built_in:
            texts = (self._built_in_text(),)
            if settings.tokens == "sentencepiece":
                size = settings.vocab_size or _BUILT_IN_PIECES
                settings = replace(settings, vocab_size=size)
        return prepare_cached(texts, settings, writable_cache(_STORES), vocabulary, workers)

    def _built_in_text(self) -> TextSource:
        path = writable_cache() / f"built-in-{BUILT_IN_PAIRS}.{'-'.join(self.languages)}.tsv"
        pairs = sample_pairs(self.languages, BUILT_IN_PAIRS)
        text = "".join(f"{first}\t{second}\n" for first, second in pairs)
        if not path.is_file() or path.read_bytes() != text.encode("utf-8"):
            write_text(path, text)
        return TextSource((str(path),), self.languages)


def choose_data(
    language: str | tuple[str, str],
    data: str | Sequence[str] = (),
    drop_invalid: bool = False,
    columns: Sequence[Sequence[str]] = (),
) -> TrainingData:
    """Choose the training data, and check them before any text is read.

    Args:
        language: The language other than English ("en" for English paraphrases), or the languages
            of both sides, as in `PrepareSettings`.
        data: One pair store (`.h5`), or texts (see `parse_source`), or "built-in". If empty:
            `data/en-LANGUAGE.h5`, or the built-in bitext if that file does not exist.
        drop_invalid: Accept unreadable rows of a text, but not in all rows.
        columns: Column names of texts that are tables, once for all texts or once per text.
    """
    languages = both_sides(language)
    default_store = default_store_of(languages)
    names = names_of(data)
    for name in names:
        if not isinstance(name, str | Path):
            raise SettingsError(
                f"data has {short(name)} ({type(name).__name__}); give names of files, or train on"
                " pairs in memory with MegaBatchTrainer and a Dataset"
            )
    names = [str(name) for name in names]
    if not names:
        names = [str(default_store)] if default_store.exists() else [BUILT_IN]
    stores = [name for name in names if name.endswith((".h5", ".hdf5"))]
    if columns and (names == [BUILT_IN] or stores):
        raise SettingsError(
            f"--columns needs a table, but {', '.join(names)} is not a table; leave it out"
        )
    if stores:
        return _store_data(languages, names)
    check_codes(languages)
    writable_cache(_STORES)
    if names == [BUILT_IN]:
        _check_built_in(languages, default_store, is_asked_for=bool(data))
        return TrainingData(languages)
    texts = [parse_source(name, languages) for name in names]
    texts = with_columns(texts, columns)
    for text in texts:
        _check_text(text, drop_invalid)
    return TrainingData(languages, texts=tuple(texts))


def default_store_of(languages: tuple[str, str]) -> Path:
    """Return the place of the pair store that training uses by default."""
    return Path("data") / f"{'-'.join(languages)}.h5"


def _store_data(languages: tuple[str, str], names: list[str]) -> TrainingData:
    """Return the data of one pair store, which must be of the languages."""
    if len(names) > 1:
        raise SettingsError(
            f"{len(names)} data files, including a pair store; give one store, or only texts"
        )
    path = names[0]
    stored = PairStore(path).languages
    if stored != languages:
        raise SettingsError(
            f"{path}: pairs of {' and '.join(stored)}, not of {' and '.join(languages)}; choose the"
            " languages or the data"
        )
    return TrainingData(languages, store=path)


def _check_built_in(languages: tuple[str, str], default_store: Path, is_asked_for: bool) -> None:
    """Refuse languages without built-in bitext; warn if nobody asked for it."""
    option = _language_option(languages)
    from_text = _FROM_TEXT.format(option, default_store)
    unknown = [side for side in languages if side not in LANGUAGES]
    if unknown:
        raise SettingsError(
            f"no {default_store}, and no built-in bitext for {unknown[0]!r} (only for"
            f" {', '.join(LANGUAGES)}); make a store with `{from_text}`"
        )
    if not is_asked_for:
        command = from_text if languages == ("en", "en") else _FROM_THE_WEB.format(option)
        logger.warning(_NO_DATA.format(default_store, command))


def _language_option(languages: tuple[str, str]) -> str:
    """Return the option of the commands that names the languages."""
    first, second = languages
    return f"--lang {second}" if first == "en" else f"--pair {first} {second}"


def _check_text(text: TextSource, drop_invalid: bool) -> None:
    """Refuse files that cannot be read, and an unreadable first row; with `drop_invalid`, only
    texts without a readable row.
    """
    for path in text.paths:
        if wrong := folder_for_file(path):
            raise TextError(f"{wrong}; name a file")
        if is_pipe(path):
            raise TextError(
                f"{stream_name(path)}: training reads its text more than once; save it to a file"
                " first"
            )
        if not Path(path).is_file():
            raise TextError(f"{path}: no such file; check the path")
    if next(read_pairs(text, drop_invalid=drop_invalid), None) is None:
        raise TextError(
            f"{text.name}: no row is UTF-8 text in two columns; put one tab between columns"
        )
