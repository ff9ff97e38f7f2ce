"""P-SP (EMNLP 2022) and the encoders of SP (ACL 2019), trained in the same way on bitext or
paraphrases.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.families.psp.settings import TrainingSettings
from st_paragram.learning.family import Family, TrainingKind
from st_paragram.learning.training.options import (
    PAIRS,
    add_language,
    add_training_options,
    training_run,
)

if TYPE_CHECKING:
    from st_paragram.runs.run import TrainingRun

_BITEXT_EPILOG = """\
  st-paragram bitext --lang es                                     # makes data/en-es.h5 from public bitext
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


def _add_bitext_options(parser: argparse.ArgumentParser) -> None:
    add_language(parser)
    output = "p-sp-LANG; ENCODER-LANG with another --encoder"
    settings = add_training_options(parser, FAMILY, PAIRS.format("LANG"), output)
    text = (
        "train a model for each point of the paper's grid of dropout and M, and keep the best model"
    )
    settings.add_argument("--tune", action="store_true", help=text)


def _add_paraphrase_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(lang="en")
    output = "p-sp-en; ENCODER-en with another --encoder"
    add_training_options(parser, FAMILY, PAIRS.format("en"), output, default_config="paraphrase")


def _run(arguments: argparse.Namespace) -> TrainingRun:
    encoder = getattr(arguments, "encoder", "sp")
    name = "p-sp" if encoder == "sp" else encoder
    return training_run(arguments, FAMILY, arguments.lang, Path(f"{name}-{arguments.lang}"))


FAMILY = Family(
    name="psp",
    settings=TrainingSettings,
    default_config="short",
    built_in_config="demo",
    kinds={
        "bitext": TrainingKind(
            "Train a model on English sentences and translations. It embeds a sentence as the mean"
            " of its tokens.",
            _BITEXT_EPILOG,
            _add_bitext_options,
            _run,
        ),
        "paraphrase": TrainingKind(
            "Train a model on English sentences and paraphrases. It embeds a sentence as the mean"
            " of its tokens.",
            _PARAPHRASE_EPILOG,
            _add_paraphrase_options,
            _run,
        ),
    },
    module="st_paragram.families.psp.training",
)
