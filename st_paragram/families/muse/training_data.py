"""What a dual encoder is trained on: translations of several languages, and other tasks as stores in the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from st_paragram.core.files import writable_cache
from st_paragram.core.pair_store import PairStore
from st_paragram.errors import SettingsError, TextError
from st_paragram.families.muse.settings import DualEncoderSettings
from st_paragram.families.muse.tasks.task_stores import TaskStore, build_task_stores
from st_paragram.tools.cleaning.known_test_sentences import KnownSentences

_STORE = (".h5", ".hdf5")


@dataclass(frozen=True)
class OtherTasks:
    """What a dual encoder is trained on besides translations, and which of these.

    Attributes:
        stores: Of the other tasks, in the vocabulary of the translations.
        languages: Whose translations are trained on, besides English; all if none is named.
    """

    stores: Sequence[TaskStore] = ()
    languages: Sequence[str] = ()

    @property
    def all_stores(self) -> list[PairStore]:
        """The stores, one a task and language."""
        return [each.store for each in self.stores]

    @property
    def sizes(self) -> dict[str, int]:
        """Rows of each: {"qa en": 1000}."""
        return {f"{each.task} {each.language}": len(each.store) for each in self.stores}


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
        store = PairStore(chosen[0])
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
        writable_cache("tasks"),
        max_length=settings.max_length,
        context_length=settings.context_length,
        keep=lambda language: language in kept,
        known=KnownSentences(),
    )
    for task, folder in used.items():
        if not any(each.task == task for each in stores):
            raise TextError(f"{folder}: no {task} file of {', '.join(sorted(kept))}; add one, or leave the option out")
    return OtherTasks(stores, tuple(languages))
