"""The training data: a pair store, text files, or the built-in bitext. Nothing here needs torch."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.core.files import folder_for_file, is_pipe, names_of, write_text
from st_paragram.core.folders import writable_cache
from st_paragram.core.pair_store import PairStore
from st_paragram.core.sample import LANGUAGES, sample_pairs
from st_paragram.core.text.parallel import TextSource, parse_source, read_pairs, with_columns
from st_paragram.core.text.streams import stream_name
from st_paragram.errors import SettingsError, TextError

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
_FROM_THE_WEB = "st-paragram bitext --lang {0}"
_FROM_TEXT = "st-paragram prepare --lang {0} --text FILE --output data/en-{0}.h5"
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([_-][A-Za-z0-9]+)*")
_STORES = "stores"  # folder in the cache for stores of texts


@dataclass(frozen=True)
class TrainingData:
    """The training data, checked but not read yet.

    A pair store, or texts, or the built-in pairs if neither.
    """

    language: str
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
        return f"the built-in bitext of {self.language}: {BUILT_IN_PAIRS:,} pairs, a demonstration"

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
                size = min(settings.vocab_size or _BUILT_IN_PIECES, _BUILT_IN_PIECES)
                settings = replace(settings, vocab_size=size)
        return prepare_cached(texts, settings, writable_cache(_STORES), vocabulary, workers)

    def _built_in_text(self) -> TextSource:
        path = writable_cache() / f"built-in-{BUILT_IN_PAIRS}.en-{self.language}.tsv"
        pairs = sample_pairs(self.language, BUILT_IN_PAIRS)
        text = "".join(f"{english}\t{translation}\n" for english, translation in pairs)
        if not path.is_file() or path.read_bytes() != text.encode("utf-8"):
            write_text(path, text)
        return TextSource((str(path),), ("en", self.language))


def choose_data(
    language: str,
    data: str | Sequence[str] = (),
    drop_invalid: bool = False,
    columns: Sequence[Sequence[str]] = (),
) -> TrainingData:
    """Choose the training data, and check them before any text is read.

    Args:
        language: The language other than English; "en" for English paraphrases.
        data: One pair store (`.h5`), or texts (see `parse_source`), or "built-in". If empty:
            `data/en-LANGUAGE.h5`, or the built-in bitext if that file does not exist.
        drop_invalid: Accept an unreadable first row of a text.
        columns: Column names of texts that are tables, once for all texts or once per text.
    """
    if not _LANGUAGE.fullmatch(language):
        raise SettingsError(f"unknown language code {language!r}; use a code such as es or zh_cn")
    default_store = Path("data") / f"en-{language}.h5"
    names = names_of(data)
    if not names:
        names = [str(default_store)] if default_store.exists() else [BUILT_IN]
    stores = [name for name in names if name.endswith((".h5", ".hdf5"))]
    if columns and (names == [BUILT_IN] or stores):
        raise SettingsError(
            f"--columns needs a table, but {', '.join(names)} is not a table; leave it out"
        )
    if stores:
        return _store_data(language, names)
    writable_cache(_STORES)
    if names == [BUILT_IN]:
        _check_built_in(language, default_store, is_asked_for=bool(data))
        return TrainingData(language)
    texts = [parse_source(name, ("en", language)) for name in names]
    texts = with_columns(texts, columns)
    for text in texts:
        _check_text(text, drop_invalid)
    return TrainingData(language, texts=tuple(texts))


def _store_data(language: str, names: list[str]) -> TrainingData:
    """Return the data of one pair store, which must be of the language."""
    if len(names) > 1:
        raise SettingsError(
            f"{len(names)} data files, including a pair store; give one store, or only texts"
        )
    path = names[0]
    first, second = PairStore(path).languages
    if second != language:
        raise SettingsError(
            f"{path}: pairs of {first} and {second}, not of {language}; choose the language or the"
            " data"
        )
    return TrainingData(language, store=path)


def _check_built_in(language: str, default_store: Path, is_asked_for: bool) -> None:
    """Refuse a language without built-in bitext; warn if nobody asked for it."""
    if language not in LANGUAGES:
        raise SettingsError(
            f"no {default_store}, and no built-in bitext for {language!r} (only for"
            f" {', '.join(LANGUAGES)}); make a store with `{_FROM_TEXT.format(language)}`"
        )
    if not is_asked_for:
        command = _FROM_TEXT if language == "en" else _FROM_THE_WEB
        logger.warning(_NO_DATA.format(default_store, command.format(language)))


def _check_text(text: TextSource, drop_invalid: bool) -> None:
    """Refuse files that cannot be read, and an unreadable first row."""
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
    if not drop_invalid:
        next(read_pairs(text, drop_invalid=False), None)
