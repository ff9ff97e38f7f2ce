"""BGT: a bilingual generative transformer, its ablations and its baselines (EMNLP 2020)."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.families.bgt.settings import GenerativeSettings
from st_paragram.learning.family import Family, TrainingKind
from st_paragram.learning.training.options import (
    PAIRS,
    add_language,
    add_training_options,
    training_run,
)

if TYPE_CHECKING:
    from st_paragram.runs.run import TrainingRun

_EPILOG = """\
  st-paragram train bgt --lang es --data mine.tsv.xz               # makes the model directory bgt-es in about an hour
  st-paragram train bgt --lang fr --config bgt_paper               # the paper's sizes, for a GPU
  st-paragram train bgt --lang es --objective bilingual-trans --output trans-es
  st-paragram generate bgt-es --task translate --from en --to es FILE

Ctrl-C saves a checkpoint, and the same command with --resume continues from it.
"""


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_language(parser)
    add_training_options(
        parser, FAMILY, PAIRS.format("LANG"), "bgt-LANG; OBJECTIVE-LANG with another --objective"
    )


def _run(arguments: argparse.Namespace) -> TrainingRun:
    name = getattr(arguments, "objective", "bgt")
    return training_run(arguments, FAMILY, arguments.lang, Path(f"{name}-{arguments.lang}"))


FAMILY = Family(
    name="bgt",
    settings=GenerativeSettings,
    default_config="bgt_small",
    built_in_config="bgt_small",
    kinds={
        "bgt": TrainingKind(
            "Train a bilingual generative transformer. It learns the meaning of a sentence by"
            " generating the sentence and its translation.",
            _EPILOG,
            _add_options,
            _run,
        )
    },
    module="st_paragram.families.bgt.training",
)
