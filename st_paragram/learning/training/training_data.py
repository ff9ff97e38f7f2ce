"""The pairs to train on: a pair store, text files, or the built-in bitext. Nothing here needs torch."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from st_paragram.core.files import folder_for_file, output_lock, writable_cache, write_text
from st_paragram.core.pair_store import PairStore
from st_paragram.core.sample import LANGUAGES, sample_pairs
from st_paragram.core.text.parallel import TextSource, parse_source, read_pairs, with_columns
from st_paragram.core.words import are_counts, in_words
from st_paragram.errors import SettingsError, TextError
from st_paragram.tools.preparation.prepare import prepare_cached
from st_paragram.tools.preparation.settings import PrepareSettings, Tokens
from st_paragram.tools.stages.executors import LocalExecutor

logger = logging.getLogger(__name__)

BUILT_IN = "built-in"
BUILT_IN_PAIRS = 9_000  # the rows after them are left for looking at what was learned
_BUILT_IN_PIECES = 1_000  # with more, most pieces are whole words, and natural sentences have other words

_NO_DATA = (
    "WARNING: there is no %s, so this trains on the small built-in bitext: a demonstration, not a usable model. For a "
    "real model, %s, and start again."
)
_FROM_THE_WEB = (
    "run `st-paragram bitext --lang {0}`, which fetches public parallel text and makes data/en-{0}.h5 (or "
    "`st-paragram prepare --lang {0} --text FILE --output data/en-{0}.h5` with your own text)"
)
_PARAPHRASES = (
    "make data/en-en.h5 with `st-paragram prepare --lang en --text FILE --output data/en-en.h5`, with `--cleaning "
    "paranmt` if the rows are `sentence TAB paraphrase TAB score`"
)
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([_-][A-Za-z0-9]+)*")
_STORE = (".h5", ".hdf5")
_STORES = "stores"  # of texts, in the cache


@dataclass(frozen=True)
class TrainingData:
    """A store, and one line that says where its pairs come from."""

    store: PairStore
    description: str
    built_in: bool = False

    @property
    def left_out(self) -> str:
        """How many rows of the texts are not among the pairs, and why, as far as the store shows."""
        report = self.store.settings.get("report")
        total = report.get("all") if isinstance(report, Mapping) else None
        dropped = total.get("dropped") if isinstance(total, Mapping) else None
        known = isinstance(dropped, Mapping) and are_counts(dropped) and any(dropped.values())
        return f" (left out: {in_words(dropped)})" if known else ""


class TrainingSource(Protocol):
    """What is trained on, chosen and looked at, and not read yet."""

    def __str__(self) -> str:
        """One line for a plan."""

    def open(self, settings: PrepareSettings, workers: int = 1) -> TrainingData:
        """The store; texts are prepared, once, into a store of the cache.

        Args:
            settings: How texts are prepared, see `preparation`; a store is what it is.
            workers: Processes of a preparation.

        Raises:
            StoreError: The store is refused.
            TextError: A text is refused.
        """


@dataclass(frozen=True)
class StoreSource:
    """A pair store."""

    path: str
    language: str

    def __str__(self) -> str:
        return f"{self.path}: {len(PairStore(self.path)):,} pairs in a store"

    def open(self, settings: PrepareSettings, workers: int = 1) -> TrainingData:
        """The store."""
        return TrainingData(_open_store(self.path, self.language), Path(self.path).name)


@dataclass(frozen=True)
class TextFiles:
    """Parallel texts."""

    sources: tuple[TextSource, ...]

    def __str__(self) -> str:
        return f"{', '.join(source.name for source in self.sources)}: text, prepared once into a store of the cache"

    def open(self, settings: PrepareSettings, workers: int = 1) -> TrainingData:
        """The texts as a store of the cache."""
        description = " + ".join(Path(source.name).name for source in self.sources)
        return TrainingData(_prepare(self.sources, settings, workers), description)


@dataclass(frozen=True)
class BuiltInText:
    """The built-in bitext, or built-in paraphrases."""

    language: str

    def __str__(self) -> str:
        return f"the built-in bitext of {self.language}: {BUILT_IN_PAIRS:,} pairs, a demonstration"

    def open(self, settings: PrepareSettings, workers: int = 1) -> TrainingData:
        """The text, prepared once."""
        language = self.language
        path = writable_cache() / f"built-in-{BUILT_IN_PAIRS}.en-{language}.tsv"
        _write_if_changed(path, sample_pairs(language, BUILT_IN_PAIRS))
        if settings.tokens == "sentencepiece":
            settings = replace(settings, vocab_size=min(settings.vocab_size or _BUILT_IN_PIECES, _BUILT_IN_PIECES))
        store = _prepare([TextSource((str(path),), ("en", language))], settings, workers)
        about = "the built-in bitext of st_paragram, made by a phrase grammar (a demonstration)"
        return TrainingData(store, about, built_in=True)


def choose_data(
    language: str, data: Sequence[str] = (), drop_invalid: bool = False, columns: Sequence[Sequence[str]] = ()
) -> TrainingSource:
    """Choose what to train on, and refuse early, before any text is read, what cannot be trained on.

    Args:
        language: The language other than English; "en" for English paraphrases.
        data: One pair store (`.h5`), or specifications of texts (`text.parse_source`), or "built-in". If empty:
            `data/en-<language>.h5`, or else the built-in bitext, with a warning.
        drop_invalid: Rows of texts that cannot be read will be dropped, so that the first one may be such.
        columns: Of texts that are tables: the two names for all, or for each, see `parallel.with_columns`.

    Raises:
        ParagramError: Texts need a store in the cache, which cannot be written.
        SettingsError: No language code, no data and no built-in bitext for the language, a store together with other
            data, or a store of another language; columns that are not two for each text, or of data that is not text.
        StoreError: The store is missing or refused.
        TextError: A text is missing, or its first row is refused.
    """
    if not _LANGUAGE.fullmatch(language):
        raise SettingsError(f"unknown language code {language!r}; use a code such as es or zh_cn")
    standard = Path("data") / f"en-{language}.h5"
    chosen = list(data) or ([str(standard)] if standard.exists() else [BUILT_IN])
    if columns and (chosen == [BUILT_IN] or any(path.endswith(_STORE) for path in chosen)):
        raise SettingsError(f"--columns is given for {', '.join(chosen)}, which is not a table; leave it out")
    if chosen == [BUILT_IN]:
        _check_built_in(language, standard, warn=not data)
        writable_cache(_STORES)
        return BuiltInText(language)
    if any(path.endswith(_STORE) for path in chosen):
        if len(chosen) > 1:
            raise SettingsError(f"{len(chosen)} data files with a pair store among them; give one store, or texts only")
        _open_store(chosen[0], language)
        return StoreSource(chosen[0], language)
    writable_cache(_STORES)
    texts = [parse_source(spec, ("en", language)) for spec in chosen]
    sources = tuple(with_columns(texts, columns))
    for source in sources:
        for path in source.paths:
            if wrong := folder_for_file(path):
                raise TextError(f"{wrong}; name a file")
            if not Path(path).is_file():
                raise TextError(f"{path}: no such file; check the path (standard input cannot be trained on)")
        if not drop_invalid:
            next(read_pairs(source, drop_invalid=False), None)
    return TextFiles(sources)


def find_training_data(
    language: str, data: Sequence[str] = (), settings: PrepareSettings | None = None, workers: int = 1
) -> TrainingData:
    """The pairs to train `language` on: `choose_data`, opened.

    Args:
        language: As in `choose_data`.
        data: As in `choose_data`.
        settings: How texts are prepared; None: as `preparation` says.
        workers: Processes of a preparation.

    Raises:
        SettingsError: As in `choose_data`.
        StoreError: The store is refused.
        TextError: A text is refused.
    """
    settings = settings or preparation(language)
    return choose_data(language, data, settings.drop_invalid).open(settings, workers)


def preparation(
    language: str, vocab_size: int | None = None, tokens: Tokens = "sentencepiece", drop_invalid: bool = False
) -> PrepareSettings:
    """How texts to train on are prepared.

    Args:
        language: Beside English.
        vocab_size: Pieces of the vocabulary; None: as `PrepareSettings` chooses.
        tokens: What sentences are cut into, as `PrepareSettings` names it.
        drop_invalid: Drop rows that cannot be read in place of refusing the text.

    Raises:
        SettingsError: One of them is refused.
    """
    settings = PrepareSettings(languages=("en", language), tokens=tokens, drop_invalid=drop_invalid)
    return settings if vocab_size is None else replace(settings, vocab_size=vocab_size)


def _check_built_in(language: str, standard: Path, warn: bool) -> None:
    if language not in LANGUAGES:
        raise SettingsError(
            f"no {standard} and no built-in bitext for {language!r} (only {', '.join(LANGUAGES)}); "
            f"make a store with `st-paragram prepare --lang {language} --text FILE --output {standard}`"
        )
    if warn:
        advice = _PARAPHRASES if language == "en" else _FROM_THE_WEB
        logger.warning(_NO_DATA, standard, advice.format(language))


def _open_store(path: str, language: str) -> PairStore:
    store = PairStore(path)
    if store.languages[1] != language:
        seen = f"pairs of {store.languages[0]} and {store.languages[1]}, not of {language}"
        raise SettingsError(f"{path}: {seen}; choose the language or the data")
    return store


def _write_if_changed(path: Path, pairs: Iterable[tuple[str, str]]) -> None:
    text = "".join(f"{english}\t{other}\n" for english, other in pairs)
    with output_lock(path, wait=True):  # two processes may want it at once
        if not path.is_file() or path.read_bytes() != text.encode("utf-8"):
            write_text(path, text)


def _prepare(sources: Sequence[TextSource], settings: PrepareSettings, workers: int) -> PairStore:
    path = prepare_cached(sources, settings, writable_cache(_STORES), executor=LocalExecutor(workers))
    return PairStore(path)
