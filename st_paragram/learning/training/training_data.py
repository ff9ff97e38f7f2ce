"""The pairs to train on: a pair store, text files, or the built-in bitext. Nothing here needs torch."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from st_paragram.core.data.pair_store import PairStore
from st_paragram.core.data.sample.grammar import LANGUAGES, sample_pairs, sample_paraphrases
from st_paragram.core.data.text import TextSource, parse_source, read_pairs
from st_paragram.core.files import cache_folder, write_text
from st_paragram.core.value_words import are_counts, in_words
from st_paragram.errors import SettingsError, TextError
from st_paragram.families.muse.public_files.stores import build_task_stores
from st_paragram.families.muse.settings import DualEncoderSettings
from st_paragram.families.muse.tasks.task_stores import TaskStore
from st_paragram.tools.preparation.prepare import prepare_cached
from st_paragram.tools.preparation.settings import PrepareSettings, Tokens
from st_paragram.tools.stages.executors import LocalExecutor

logger = logging.getLogger(__name__)

BUILT_IN = "built-in"
BUILT_IN_PAIRS = 40_000

_NO_DATA = (
    "WARNING: there is no %s, so this trains on the small built-in bitext: a demonstration, not a usable model. For a "
    "real model, %s, and start again."
)
_FROM_THE_WEB = (
    "run `st-paragram bitext --lang {0}`, which fetches public parallel text and makes data/en-{0}.h5 (or `st-paragram "
    "prepare --lang {0} --text FILE --output data/en-{0}.h5` with text of your own)"
)
_PARAPHRASES = (
    "make data/en-en.h5 with `st-paragram paranmt --text FILE` (of rows `sentence TAB paraphrase TAB score`) or with "
    "`st-paragram prepare --lang en --text FILE --output data/en-en.h5`"
)
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([_-][A-Za-z0-9]+)*")
_STORE = (".h5", ".hdf5")


@dataclass(frozen=True)
class OtherTasks:
    """What a dual encoder is trained on beside translations, and which of these.

    Attributes:
        stores: Of the other tasks, in the vocabulary of the translations.
        languages: Whose translations are trained on, beside English; all if none is named.
    """

    stores: Sequence[TaskStore] = ()
    languages: Sequence[str] = ()


@dataclass(frozen=True)
class TrainingData:
    """A store, and one line that says where its pairs come from."""

    store: PairStore
    description: str
    built_in: bool = False

    @property
    def left_out(self) -> str:
        """How many rows of the texts are not among the pairs, and why, as far as the store tells."""
        report = self.store.settings.get("report")
        total = report.get("all") if isinstance(report, Mapping) else None
        dropped = total.get("dropped") if isinstance(total, Mapping) else None
        known = isinstance(dropped, Mapping) and are_counts(dropped) and any(dropped.values())
        return f" (left out: {in_words(dropped)})" if known else ""


def choose_data(language: str, data: Sequence[str] = (), drop_invalid: bool = False) -> list[str]:
    """Choose what to train on, and refuse early, before any text is read, what cannot be trained on.

    Args:
        language: As in `find_training_data`.
        data: As in `find_training_data`.
        drop_invalid: Rows of texts that cannot be read will be dropped, so that the first one may be such.

    Returns:
        `data`. If it is empty: `data/en-<language>.h5`, or else the built-in bitext (`[BUILT_IN]`), with a warning.

    Raises:
        SettingsError: No language code, no data and no built-in bitext for the language, a store beside other data,
            or a store of another language.
        StoreError: The store is missing or refused.
        TextError: A text is missing, or its first row is refused.
    """
    if not _LANGUAGE.fullmatch(language):
        raise SettingsError(f"{language!r} is no language code; give one such as es or zh_cn")
    standard = Path("data") / f"en-{language}.h5"
    chosen = list(data) or ([str(standard)] if standard.exists() else [BUILT_IN])
    if chosen == [BUILT_IN]:
        _check_built_in(language, standard, warn=not data)
    elif any(path.endswith(_STORE) for path in chosen):
        _open_store(chosen, language, check_ids=False)
    else:
        for source in (parse_source(spec, ("en", language)) for spec in chosen):
            for path in source.paths:
                if not Path(path).is_file():
                    raise TextError(f"{path}: no such file; check the path (standard input cannot be trained on)")
            if not drop_invalid:
                next(read_pairs(source, drop_invalid=False), None)
    return chosen


def find_training_data(
    language: str,
    data: Sequence[str] = (),
    settings: PrepareSettings | None = None,
    workers: int = 1,
) -> TrainingData:
    """The pairs to train `language` on; texts are prepared, once, into a store of the cache.

    Args:
        language: The language beside English; "en" for English paraphrases.
        data: One pair store (`.h5`), or specifications of texts (`text.parse_source`), or "built-in". If empty, as
            `choose_data` says.
        settings: How texts are prepared, see `preparation`; ignored for a store.
        workers: Processes of a preparation.

    Raises:
        SettingsError: As in `choose_data`.
        StoreError: The store is refused.
        TextError: A text is refused.
    """
    settings = settings or preparation(language)
    chosen = choose_data(language, data, settings.drop_invalid)
    if chosen == [BUILT_IN]:
        return _built_in(language, settings, workers)
    if any(path.endswith(_STORE) for path in chosen):
        return TrainingData(_open_store(chosen, language), Path(chosen[0]).name)
    sources = [parse_source(spec, ("en", language)) for spec in chosen]
    description = " + ".join(Path(source.name).name for source in sources)
    return TrainingData(_prepare(sources, settings, workers), description)


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


def _open_store(data: Sequence[str], language: str, check_ids: bool = True) -> PairStore:
    if len(data) > 1:
        raise SettingsError(f"{len(data)} data files with a pair store among them; give one store, or texts only")
    store = PairStore(data[0], check_ids)
    if store.languages[1] != language:
        seen = f"pairs of {store.languages[0]} and {store.languages[1]}, not of {language}"
        raise SettingsError(f"{data[0]}: {seen}; choose the language or the data")
    return store


def _built_in(language: str, settings: PrepareSettings, workers: int) -> TrainingData:
    path = cache_folder() / f"built-in-{BUILT_IN_PAIRS}.en-{language}.tsv"
    pairs = sample_paraphrases(BUILT_IN_PAIRS) if language == "en" else sample_pairs(language, BUILT_IN_PAIRS)
    _write_if_changed(path, pairs)
    store = _prepare([TextSource((str(path),), ("en", language))], settings, workers)
    return TrainingData(store, "the built-in bitext of st_paragram, made by a phrase grammar (a demonstration)", True)


def _write_if_changed(path: Path, pairs: Iterable[tuple[str, str]]) -> None:
    text = "".join(f"{english}\t{other}\n" for english, other in pairs)
    if path.is_file() and path.read_bytes() == text.encode("utf-8"):
        return
    write_text(path, text)


def _prepare(sources: Sequence[TextSource], settings: PrepareSettings, workers: int) -> PairStore:
    return PairStore(prepare_cached(sources, settings, cache_folder() / "stores", executor=LocalExecutor(workers)))


def bitext_of_languages(languages: Sequence[str], data: Sequence[str] = ()) -> tuple[str, list[str]]:
    """What `find_training_data` is to be asked for translations of several languages.

    Args:
        languages: Beside English.
        data: One pair store that has them all, among others maybe; or folders with `en-LANG.tsv`, or `.gz`, `.xz`; or
            specifications of texts, `LANG-LANG:FILE`; or nothing, for the store or the built-in bitext of a language.

    Returns:
        The languages in one word ("de-es"), and the data.

    Raises:
        SettingsError: A store lacks a language.
        TextError: A folder lacks a language.
        StoreError: The store is refused.
    """
    chosen = [spec for item in data for spec in (_in_folder(Path(item), languages) if Path(item).is_dir() else [item])]
    if len(chosen) == 1 and chosen[0].endswith(_STORE):
        store = PairStore(chosen[0], check_ids=False)
        there = {language for _, language in store.language_pairs}
        if missing := sorted(set(languages) - there):
            seen = f"no translations of {', '.join(missing)}, only of {', '.join(sorted(there))}"
            raise SettingsError(f"{chosen[0]}: {seen}; prepare them, or leave the language out of --langs")
        return store.languages[1], chosen
    return "-".join(sorted(set(languages))), chosen


def _in_folder(folder: Path, languages: Sequence[str]) -> list[str]:
    found = []
    for language in languages:
        names = [f"en-{language}.tsv{ending}" for ending in ("", ".gz", ".xz")]
        paths = [folder / name for name in names if (folder / name).is_file()]
        if not paths:
            raise TextError(f"{folder}: no translations of {language}, looked for {names[0]}, .gz and .xz; add them")
        found.append(f"en-{language}:{paths[0]}")
    return found


def other_tasks(
    folders: Mapping[str, Path], bitext: PairStore, settings: DualEncoderSettings, languages: Sequence[str] = ()
) -> OtherTasks:
    """Texts of other tasks than translation as stores, made once in the cache, in the vocabulary of translations.

    Args:
        folders: Folders of texts by their tasks.
        bitext: Whose vocabulary is the model's.
        settings: What is cut off, and which tasks have a share of the steps.
        languages: Beside English; texts of others are left out. All if none is named.

    Raises:
        TextError: A folder has no texts of the task, or one of them is refused.
    """
    kept = {"en", *(languages or bitext.languages[1].split("-"))}
    shares = {str(task): share for task, share in settings.shares.items()}
    used = {task: folder for task, folder in folders.items() if shares[task] > 0}
    stores = build_task_stores(
        used,
        bitext.tokenizer(),
        cache_folder() / "tasks",
        max_length=settings.max_length,
        context_length=settings.context_length,
        keep=lambda language: language in kept,
    )
    for task, folder in used.items():
        if not any(each.task == task for each in stores):
            raise TextError(f"{folder}: no {task} file of {', '.join(sorted(kept))}; add one, or leave the option out")
    return OtherTasks(stores, tuple(languages))
