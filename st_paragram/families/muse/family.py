"""mUSE: multilingual dual encoders trained on translations, questions, responses and inference."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.core.settings import given, read_yaml
from st_paragram.errors import SettingsError, TextError
from st_paragram.families.muse.settings import COLUMNS, DualEncoderSettings, MuseData
from st_paragram.learning.family import Family, TrainingKind
from st_paragram.learning.training.options import add_training_options, training_run

if TYPE_CHECKING:
    from st_paragram.runs.run import TrainingRun

_EPILOG = """\
  st-paragram train muse --architecture cnn --langs es de --bitext data/en-de-es.h5 --init p-sp-mul --dim 1024
  st-paragram train muse --architecture transformer --langs es --bitext texts --qa qa --responses responses --nli nli
  python -c "import st_paragram; print(st_paragram.load('muse-cnn').encode_query(['who?']))"

A folder for --bitext has files en-LANG.tsv. The folders of the other tasks have files LANG.tsv. All files may also end
in .gz or .xz. `data_prep/muse_data.py` makes such files from public data sets.

Ctrl-C saves a checkpoint, and the same command with --resume continues from it.
"""
_BITEXT = (
    "a pair store (.h5) of all languages, a folder of files en-LANG.tsv (also .gz, .xz), texts "
    "LANG-LANG:FILE (repeatable), or `built-in` for one language (default: data/en-LANG.h5, or the "
    "built-in bitext if it does not exist)"
)


def add_task_options(parser: argparse._ActionsContainer) -> None:
    """Add a folder option for each task other than translation; `task_folders` reads them."""
    for option, (task, columns) in zip(
        ("--qa", "--responses", "--nli"), COLUMNS.items(), strict=True
    ):
        about = f"folder of files LANG.tsv with rows `{columns}`"
        parser.add_argument(option, dest=f"task_{task}", type=Path, metavar="DIR", help=about)


def task_folders(arguments: argparse.Namespace) -> dict[str, Path]:
    """Return the given folders by task."""
    return {task: folder for task in COLUMNS if (folder := getattr(arguments, f"task_{task}"))}


def _add_options(parser: argparse.ArgumentParser) -> None:
    languages = "languages other than English, e.g. es de"
    parser.add_argument("--langs", nargs="+", required=True, metavar="LANG", help=languages)
    add_task_options(parser.add_argument_group("tasks other than translation"))
    add_training_options(parser, FAMILY, _BITEXT, "muse-cnn or muse-transformer", "--bitext")


def _run(arguments: argparse.Namespace) -> TrainingRun:
    language, data = bitext_of_languages(arguments.langs, arguments.data)
    more = MuseData(task_folders(arguments), tuple(arguments.langs))
    # settings are checked later
    configured = read_yaml(FAMILY.config_path(arguments.config or FAMILY.default_config))
    architecture = given(arguments, DualEncoderSettings).get("architecture") or configured.get(
        "architecture", "cnn"
    )
    return training_run(arguments, FAMILY, language, Path(f"muse-{architecture}"), data, more)


def bitext_of_languages(
    languages: Sequence[str], data: Sequence[str] = ()
) -> tuple[str, list[str]]:
    """Return the languages in one word ("de-es") and the translations to train on.

    `data` is one pair store that covers the languages; or folders with `en-LANG.tsv` (or `.gz`,
    `.xz`); or texts as `LANG-LANG:FILE`; or empty, for the default store or the built-in bitext of
    one language.
    """
    from st_paragram.core.pair_store import PairStore

    chosen: list[str] = []
    for item in data:
        if not Path(item).is_dir():
            chosen.append(item)
            continue
        for language in languages:
            places = [Path(item, f"en-{language}.tsv{ending}") for ending in ("", ".gz", ".xz")]
            if not (paths := [path for path in places if path.is_file()]):
                seen = f"no translations for {language} (en-{language}.tsv, also .gz or .xz)"
                raise TextError(f"{item}: {seen}; add the file")
            chosen.append(f"en-{language}:{paths[0]}")
    if len(chosen) == 1 and chosen[0].endswith((".h5", ".hdf5")):
        store = PairStore(chosen[0])
        there = {language for _, language in store.language_pairs}
        if missing := sorted({*languages} - there):
            seen = f"no translations for {', '.join(missing)}, only for {', '.join(sorted(there))}"
            raise SettingsError(
                f"{chosen[0]}: {seen}; prepare them, or leave the language out of --langs"
            )
        return store.languages[1], chosen
    return "-".join(sorted({*languages})), chosen


def _check(run: TrainingRun) -> None:
    from st_paragram.families.muse.tasks import task_files

    for task, folder in (run.more or MuseData()).tasks.items():
        task_files(folder, task)


FAMILY = Family(
    name="muse",
    settings=DualEncoderSettings,
    default_config="muse_small",
    built_in_config="muse_small",
    kinds={
        "muse": TrainingKind(
            "Train a multilingual sentence encoder on several tasks. Questions and answers get"
            " separate towers.",
            _EPILOG,
            _add_options,
            _run,
        )
    },
    module="st_paragram.families.muse.train",
    check=_check,
)
