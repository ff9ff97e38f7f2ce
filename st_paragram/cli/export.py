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
_PROVENANCE = """
## Exported copy

Made of `{name}` by `st-paragram export`: {dimension} components, table of {kind}{unit}. Scores above are those of the
original.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="model directory, name or hub id")
    add("output", metavar="OUTPUT", help="output directory")
    to = "format: a model directory, a graph for ONNX Runtime, arrays for NumPy, or a folder for model2vec"
    add("--to", choices=_FORMATS, default=_MODEL, help=f"{to} (default: %(default)s)")
    dtype = "number type of the embedding matrix; int4 only for model directories (default: unchanged)"
    add("--dtype", choices=_TYPES, help=dtype)
    add("--dim", type=int, metavar="D", help="number of leading components to keep (default: all)")
    normalize = "scale every vector to length 1, for all software that reads the copy"
    add("--normalize", action="store_true", help=normalize)
    add("--stock", action="store_true", help="refuse models that plain sentence-transformers cannot open")
    add("--overwrite", action="store_true", help="replace an existing copy")


def run(arguments: argparse.Namespace) -> int:
    """Write the copy and say how large it is; returns the exit status."""
    if arguments.to == _MODEL:
        said = _model(arguments)
    else:
        if arguments.stock:
            raise SettingsError(f"--stock goes with a model directory, not with --to {arguments.to}; leave it out")

        from st_paragram.conversion.exports import ExportSettings, export_model

        settings = ExportSettings(arguments.dtype, arguments.dim, arguments.normalize, arguments.overwrite)
        output = export_model(arguments.model, arguments.output, arguments.to, settings)
        said = f"{size(output) / 1e6:.1f} MB for {arguments.to}; its README.md says how to read it"
    print(f"{arguments.output}: {said}", file=sys.stderr)
    return 0


def _model(arguments: argparse.Namespace) -> str:
    """Write a model directory; returns what it is."""
    kind, output = "model directory of st_paragram", Path(arguments.output)
    check_output_folder(output, arguments.overwrite, CONFIG_FILE, kind, ModelDirectoryError)
    folder = find(arguments.model)

    from st_paragram.core.encoding.directory import weights_size
    from st_paragram.core.encoding.encoder import Encoder
    from st_paragram.core.encoding.model_files import check_components, opens_in_stock, table_type
    from st_paragram.core.encoding.record import training_text

    kind = arguments.dtype or table_type(folder).value  # refuses a model without a table
    encoder = Encoder(folder)
    check_components(arguments.dim, encoder.model.table.dimension)
    dimension = arguments.dim or encoder.model.table.dimension
    if arguments.stock and kind == "int4":
        seen = "a table of int4, which sentence-transformers alone cannot open"
        raise SettingsError(f"{folder}: {seen}; export it without --stock, or with --dtype int8")
    if arguments.stock and not opens_in_stock(encoder.tokenizer):
        seen = f"a model of {encoder.tokenizer.kind} ids, which st_paragram.load alone can open"
        raise ModelDirectoryError(f"{folder}: {seen}; export it without --stock")
    unit = ", vectors of length 1" if arguments.normalize or encoder.model.unit_vectors else ""
    old_size = weights_size(folder)
    text = _card(folder) + _PROVENANCE.format(name=folder.name, kind=kind, dimension=dimension, unit=unit)
    encoder.save(output, text, arguments.overwrite, kind, arguments.dim, arguments.normalize, training_text(folder))
    new_size = weights_size(output)
    share = f"{new_size / 1e6:.1f} MB of weights, {new_size / old_size:.0%} of the original"
    return f"{counted(dimension, 'component')}, {kind}{unit}; {share}"


def _card(folder: Path) -> str:
    card = folder / "README.md"
    return card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
