"""mUSE: multilingual dual encoders on translations, questions, responses and inference."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from st_paragram.core.settings import given, read_yaml
from st_paragram.families.muse.settings import DualEncoderSettings
from st_paragram.learning.training.configs import config_path
from st_paragram.learning.training.family import Family, MoreData, Objective, TrainingKind
from st_paragram.learning.training.options import FileHelp, add_training_options, training_run

if TYPE_CHECKING:
    from st_paragram.learning.training.run import TrainingPlan, TrainingRun
    from st_paragram.learning.training.training_data import TrainingData

_EPILOG = """\
  st-paragram train muse --architecture cnn --langs es de --bitext data/en-de-es.h5 --init p-sp-mul --dim 1024
  st-paragram train muse --architecture transformer --langs es --bitext texts --qa qa --responses responses --nli nli
  torchrun --nproc-per-node 2 --no-python st-paragram train muse --langs es --bitext data/en-es.h5 --device cpu
  python -c "from sentence_transformers import SentenceTransformer as S; print(S('muse-cnn').encode_query(['who?']))"

A folder for --bitext has files en-LANG.tsv; the folders of the other tasks have files LANG.tsv (they may end in .gz or
.xz, too). Their rows are `question TAB answer TAB context` for --qa, `utterance TAB response` for --responses and
`label TAB premise TAB hypothesis` for --nli. `st-paragram tasks` makes such files out of public ones.

Ctrl-C saves a checkpoint, and the same command with --resume continues from it.
"""
_BITEXT = (
    "a pair store (.h5) of all languages, a folder of files en-LANG.tsv (also .gz, .xz), texts "
    "LANG-LANG:FILE (repeatable), or `built-in` for one language (default: data/en-LANG.h5, or the "
    "built-in bitext if there is no such file)"
)
_TASKS = (
    ("--qa", "qa", "question TAB answer TAB context"),
    ("--responses", "response", "utterance TAB response"),
    ("--nli", "nli", "label TAB premise TAB hypothesis"),
)


@dataclass(frozen=True)
class MuseData:
    """What a dual encoder is trained on besides its translations.

    Attributes:
        tasks: Folders of other tasks than translation by their names, see `tasks.task_files`.
        languages: The languages besides English; all of the data if none is named.
    """

    tasks: Mapping[str, Path] = field(default_factory=dict)
    languages: Sequence[str] = ()


def _add_options(parser: argparse.ArgumentParser, default_config: str | None = None) -> None:
    languages = "languages other than English, e.g. es de"
    parser.add_argument("--langs", nargs="+", required=True, metavar="LANG", help=languages)
    group = parser.add_argument_group("tasks other than translation")
    for option, task, rows in _TASKS:
        about = f"folder of files LANG.tsv with rows `{rows}`"
        group.add_argument(option, dest=f"task_{task}", type=Path, metavar="DIR", help=about)
    files = FileHelp(_BITEXT, "muse-cnn or muse-transformer", "--bitext")
    add_training_options(parser, FAMILY, files, default_config)


def _run(arguments: argparse.Namespace) -> TrainingRun:
    from st_paragram.families.muse.training_data import bitext_of_languages

    language, data = bitext_of_languages(arguments.langs, arguments.data)
    folders = {task: getattr(arguments, f"task_{task}") for _, task, _ in _TASKS}
    more = MuseData({task: folder for task, folder in folders.items() if folder}, tuple(arguments.langs))
    return training_run(arguments, FAMILY, language, Path(f"muse-{_architecture(arguments)}"), data, more)


def _architecture(arguments: argparse.Namespace) -> str:
    """What the settings say, before all of them are checked."""
    path = config_path(arguments.config or arguments.default_config, FAMILY.config_folders)
    named = given(arguments, DualEncoderSettings).get("architecture")
    return str(named or read_yaml(path).get("architecture", "cnn"))


class DualEncoderFamily(Family):
    """The dual encoders of ACL 2020."""

    name: ClassVar[str] = "muse"
    settings: ClassVar[type[Any]] = DualEncoderSettings
    default_config: ClassVar[str] = "muse_small"
    built_in_config: ClassVar[str] = "muse_small"
    kinds: ClassVar[Mapping[str, TrainingKind]] = {
        "muse": TrainingKind(
            "Train an encoder of sentences in many languages on several tasks. Questions and answers get "
            "separate towers.",
            _EPILOG,
            _add_options,
            _run,
        )
    }

    def check(self, run: TrainingRun) -> None:
        """Refuse folders of tasks that have no such files.

        Raises:
            TextError: A folder is missing or empty.
        """
        from st_paragram.families.muse.tasks.task_files import task_files

        for task, folder in _more(run).tasks.items():
            task_files(folder, task)

    def objective(self) -> Objective:
        """Ranking among the pairs of a batch, and classification of inference."""
        from st_paragram.families.muse import objective

        return cast("Objective", objective)

    def more_data(self, plan: TrainingPlan, data: TrainingData) -> MoreData:
        """Texts of the other tasks as stores, in the vocabulary of the translations."""
        from st_paragram.families.muse.training_data import other_tasks

        more = _more(plan.run)
        return other_tasks(more.tasks, data.store, cast("DualEncoderSettings", plan.settings), more.languages)


def _more(run: TrainingRun) -> MuseData:
    return run.more or MuseData()


FAMILY = DualEncoderFamily()
