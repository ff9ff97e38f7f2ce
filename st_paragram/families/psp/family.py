"""P-SP, and SP, which is trained in the same way: averaging models on bitext or paraphrases."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from st_paragram.errors import StoreError
from st_paragram.learning.training.family import Family, MoreData, Objective, TrainingKind
from st_paragram.learning.training.options import PAIRS, FileHelp, add_language, add_training_options, training_run
from st_paragram.learning.training.settings import TrainingSettings

if TYPE_CHECKING:
    from st_paragram.learning.training.run import TrainingPlan, TrainingRun
    from st_paragram.learning.training.train import TrainingReport, TrainingResult, Watched
    from st_paragram.learning.training.training_data import TrainingData

_BITEXT_EPILOG = """\
  st-paragram bitext --lang es                                     # makes data/en-es.h5 of public bitext
  st-paragram train bitext --lang es                               # makes the model directory p-sp-es
  st-paragram train bitext --lang es --data mine.tsv.xz --config small --dim 500
  st-paragram train bitext --lang es --data mine.tsv.xz --encoder trigram --config sp2019
  python -c "from sentence_transformers import SentenceTransformer as S; print(S('p-sp-es').encode(['hola']).shape)"

Ctrl-C saves a checkpoint, and the same command with --resume continues from it.
"""
_PARAPHRASE_EPILOG = """\
  st-paragram prepare --lang en --text paraphrases.tsv.xz --output data/en-en.h5
  st-paragram train paraphrase                                     # makes the model directory p-sp-en
  python -c "from sentence_transformers import SentenceTransformer as S; print(S('p-sp-en').encode(['hello']).shape)"

Ctrl-C saves a checkpoint, and the same command with --resume continues from it.
"""


def _add_bitext_options(parser: argparse.ArgumentParser, default_config: str | None = None) -> None:
    add_language(parser)
    files = FileHelp(PAIRS.format("LANG"), "p-sp-LANG; ENCODER-LANG with another --encoder")
    add_training_options(parser, FAMILY, files, default_config, tuning=True)


def _add_paraphrase_options(parser: argparse.ArgumentParser, default_config: str | None = None) -> None:
    parser.set_defaults(lang="en")
    files = FileHelp(PAIRS.format("en"), "p-sp-en; ENCODER-en with another --encoder")
    add_training_options(parser, FAMILY, files, default_config or "paraphrase")


def _run(arguments: argparse.Namespace) -> TrainingRun:
    encoder = getattr(arguments, "encoder", "sp")
    name = "p-sp" if encoder == "sp" else encoder
    return training_run(arguments, FAMILY, arguments.lang, Path(f"{name}-{arguments.lang}"))


class ParaphrasticFamily(Family):
    """P-SP (EMNLP 2022) and the encoders of SP (ACL 2019)."""

    name: ClassVar[str] = "psp"
    settings: ClassVar[type[Any]] = TrainingSettings
    default_config: ClassVar[str] = "short"
    built_in_config: ClassVar[str] = "demo"
    kinds: ClassVar[Mapping[str, TrainingKind]] = {
        "bitext": TrainingKind(
            "Train a model that embeds a sentence as the mean of its pieces, on pairs of an English sentence and its "
            "translation.",
            _BITEXT_EPILOG,
            _add_bitext_options,
            _run,
        ),
        "paraphrase": TrainingKind(
            "Train a model that embeds a sentence as the mean of its pieces, on pairs of English sentences that mean "
            "the same.",
            _PARAPHRASE_EPILOG,
            _add_paraphrase_options,
            _run,
        ),
    }

    def reads(self, settings: TrainingSettings) -> list[str]:
        """The teacher's vectors."""
        if not settings.teacher:
            return []
        from st_paragram.tools.embed_files.description import read_description

        found = read_description(Path(settings.teacher))
        what = f"{found.rows:,} vectors of {found.dimension} components by {found.model.name}"
        return [f"{settings.teacher}: {what}, to learn from"]

    def recorded(self, settings: TrainingSettings) -> dict[str, Any]:
        """The name of the teacher."""
        if not settings.teacher:
            return {}
        from st_paragram.tools.embed_files.description import read_description

        with suppress(StoreError):
            return {"teacher": read_description(Path(settings.teacher)).model.name}
        return {}

    def objective(self) -> Objective:
        """The margin loss with mined negatives."""
        from st_paragram.families.psp import objective

        return cast("Objective", objective)

    def fit(
        self, plan: TrainingPlan, data: TrainingData, watched: Watched, more: MoreData | None = None
    ) -> tuple[TrainingResult, Sequence[TrainingReport]]:
        """Train, or tune where that is asked for."""
        if not plan.run.tune:
            return super().fit(plan, data, watched, more)
        from st_paragram.families.psp.tune import tune

        run, settings = plan.run, cast("TrainingSettings", plan.settings)
        return tune(data.store, settings, watched.development, run.checkpoints, run.resume, watched.translations)


FAMILY = ParaphrasticFamily()
