"""`st-paragram import`: a checkpoint of the original P-SP or SP code as a model directory."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from st_paragram.core.encoding.configuration import CONFIG_FILE
from st_paragram.core.files import check_output_folder
from st_paragram.errors import ModelDirectoryError
from st_paragram.tools.options.common import check_input

DESCRIPTION = (
    "Make a model directory of a checkpoint (.pt) that the original code of P-SP (EMNLP 2022) or SP (ACL 2019) has "
    "saved. Embeddings are those of that code. The checkpoint is read without executing anything it may contain."
)
EPILOG = """\
  st-paragram import model.para.lc.100.pt paranmt.model --output p-sp-authors
  st-paragram import model.para.lc.100.pt paranmt.model --output p-sp-exact --exact
  st-paragram import trigrams.pt --output sp-trigrams

Licence and terms of an imported model are those of the checkpoint's authors; its README.md says so.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("checkpoint", type=Path, metavar="CHECKPOINT", help="the file that the original code saved")
    parser.add_argument(
        "sentencepiece",
        type=Path,
        nargs="?",
        metavar="SENTENCEPIECE",
        help="the sentencepiece model that came with it (none for models of words or of character trigrams)",
    )
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="the model directory to make")
    parser.add_argument("--name", help="name of the model in its card (default: that of the directory)")
    parser.add_argument(
        "--exact",
        action="store_true",
        help="keep the rows of strings that are no piece (unknown characters); only st_paragram opens such a model",
    )
    parser.add_argument(
        "--lower-case",
        action=argparse.BooleanOptionalAction,
        help="whether texts are lower-cased (default: as the checkpoint's settings say)",
    )
    parser.add_argument(
        "--moses",
        metavar="LANG",
        help="tokenize texts by Moses' rules of a language first, or `none` (default: as the settings say)",
    )
    parser.add_argument(
        "--segment",
        choices=("none", "jieba"),
        default="none",
        help="word segmentation of Chinese (default: %(default)s)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a model directory that exists")


def run(arguments: argparse.Namespace) -> int:
    """Write the directory and say what was imported.

    Raises:
        ParagramError: The checkpoint, the sentencepiece model or the output is refused.
    """
    kind = "model directory of st_paragram"
    check_output_folder(arguments.output, arguments.overwrite, CONFIG_FILE, kind, ModelDirectoryError)
    for path in filter(None, (arguments.checkpoint, arguments.sentencepiece)):
        check_input(str(path))

    from st_paragram.conversion.original_import import import_checkpoint
    from st_paragram.conversion.original_settings import ImportSettings

    settings = ImportSettings(arguments.exact, arguments.lower_case, arguments.moses, arguments.segment)
    report = import_checkpoint(
        arguments.checkpoint, arguments.output, arguments.sentencepiece, settings, arguments.name, arguments.overwrite
    )
    for sentence in report.sentences():
        print(f"{arguments.output}: {sentence}", file=sys.stderr)
    return 0
