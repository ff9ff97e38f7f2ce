"""`st-paragram export`: a copy of a model, smaller, of unit vectors, or for other software."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from st_paragram.core.encoding.directory import CONFIG_FILE
from st_paragram.core.encoding.find import find
from st_paragram.core.files import check_output_folder, size
from st_paragram.core.words import counted
from st_paragram.errors import ModelDirectoryError, SettingsError

DESCRIPTION = (
    "Copy a model: with its embedding matrix in another type, with fewer dimensions, with vectors of "
    "length 1, or in a format that other software reads. Only averaging models can be exported. Without "
    "--to, the copy is a model directory, which opens wherever the original does; int8 needs "
    "sentence-transformers 6.2 or newer where st_paragram is missing, and int4 needs st_paragram."
)
EPILOG = """\
  st-paragram export p-sp-es small-es --dtype int8 --dim 150
  st-paragram export p-sp-es unit-es --normalize                    # for a vector store without cosine similarity
  st-paragram export p-sp-es onnx-es --to onnx                      # pip install "st_paragram[onnx]"
"""

_MODEL = "model"
_FORMATS = (_MODEL, "onnx", "numpy", "model2vec")
_TYPES = ("float32", "float16", "int8", "int4")
_UNIT = "vectors of length 1"
_PROVENANCE = """
## Exported copy

Made of `{name}` by `st-paragram export`: {dimension} components, table of {kind}{unit}. Scores above are those of the
original.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("model", metavar="MODEL", help="model directory, name or hub id")
    parser.add_argument("output", metavar="OUTPUT", help="output directory")
    parser.add_argument(
        "--to",
        choices=_FORMATS,
        default=_MODEL,
        help="format: a model directory, a graph for ONNX Runtime, arrays for NumPy, or a folder for model2vec "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--dtype",
        choices=_TYPES,
        help="number type of the embedding matrix; int4 only for model directories (default: unchanged)",
    )
    parser.add_argument("--dim", type=int, metavar="D", help="number of leading components to keep (default: all)")
    parser.add_argument(
        "--normalize", action="store_true", help="scale every vector to length 1, for all software that reads the copy"
    )
    parser.add_argument(
        "--stock", action="store_true", help="refuse models that plain sentence-transformers cannot open"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing copy")


def run(arguments: argparse.Namespace) -> int:
    """Write the copy and say how large it is.

    Raises:
        ParagramError: Model, settings or output are refused.
    """
    if arguments.to == _MODEL:
        return _model(arguments)
    if arguments.stock:
        raise SettingsError(f"--stock goes with a model directory, not with --to {arguments.to}; leave it out")

    from st_paragram.conversion.exports import ExportSettings, export_model

    settings = ExportSettings(arguments.dtype, arguments.dim, arguments.normalize, arguments.overwrite)
    output = export_model(arguments.model, arguments.output, arguments.to, settings)
    print(
        f"{output}: {size(output) / 1e6:.1f} MB for {arguments.to}; its README.md says how to read it", file=sys.stderr
    )
    return 0


def _model(arguments: argparse.Namespace) -> int:
    """Write a model directory."""
    kind, output = "model directory of st_paragram", Path(arguments.output)
    check_output_folder(output, arguments.overwrite, CONFIG_FILE, kind, ModelDirectoryError)
    folder = find(arguments.model)

    from st_paragram.core.encoding.directory import weights_size
    from st_paragram.core.encoding.encoder import Encoder
    from st_paragram.core.encoding.model_files import check_components, opens_in_stock, table_type
    from st_paragram.core.encoding.record import training_text

    own = table_type(folder)  # refuses a model without a table
    kind = arguments.dtype or own.value
    encoder = Encoder(folder)
    check_components(arguments.dim, encoder.model.table.dimension)
    dimension, tokenizer = arguments.dim or encoder.model.table.dimension, encoder.tokenizer
    if arguments.stock and kind == "int4":
        seen = "a table of int4, which sentence-transformers alone cannot open"
        raise SettingsError(f"{folder}: {seen}; export it without --stock, or with --dtype int8")
    if arguments.stock and not opens_in_stock(tokenizer):
        seen = f"a model of {tokenizer.kind} ids, which st_paragram.load alone can open"
        raise ModelDirectoryError(f"{folder}: {seen}; export it without --stock")
    unit = f", {_UNIT}" if arguments.normalize or encoder.model.unit_vectors else ""
    old_size = weights_size(folder)
    text = _card(folder) + _PROVENANCE.format(name=folder.name, kind=kind, dimension=dimension, unit=unit)
    encoder.save(output, text, arguments.overwrite, kind, arguments.dim, arguments.normalize, training_text(folder))
    new_size = weights_size(output)
    print(
        f"{arguments.output}: {counted(dimension, 'component')}, {kind}{unit}; {new_size / 1e6:.1f} MB of weights, "
        f"{new_size / old_size:.0%} of the original",
        file=sys.stderr,
    )
    return 0


def _card(folder: Path) -> str:
    card = folder / "README.md"
    return card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
