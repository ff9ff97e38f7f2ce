"""`st-paragram export`: a smaller copy of a model directory."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from st_paragram.errors import ModelDirectoryError
from st_paragram.files import check_output_folder
from st_paragram.models.configuration import CONFIG_FILE
from st_paragram.models.find import find

DESCRIPTION = (
    "Copy a model directory with its table in another type, or with fewer components a row. What can read the model "
    "can read the copy; int8 needs sentence-transformers 6.2 or newer where st_paragram is missing."
)
EPILOG = ""

_TYPES = ("float32", "float16", "int8")
_PROVENANCE = """
## Exported copy

Made of `{name}` by `st-paragram export`: {dimension} components, table of {kind}. Scores above are the original's.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("model", metavar="MODEL", help="model directory, name or hub id")
    parser.add_argument("output", metavar="OUTPUT", help="the directory to make")
    parser.add_argument("--dtype", choices=_TYPES, help="type of the table (as it is)")
    parser.add_argument("--dim", type=int, metavar="D", help="keep the first D components (all)")
    parser.add_argument(
        "--stock", action="store_true", help="refuse a model that sentence-transformers alone could not open"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a model directory that exists")


def run(arguments: argparse.Namespace) -> int:
    """Write the copy and say how large its table is.

    Raises:
        ParagramError: Model, settings or output are refused.
    """
    kind, output = "model directory of st_paragram", Path(arguments.output)
    check_output_folder(output, arguments.overwrite, CONFIG_FILE, kind, ModelDirectoryError)
    folder = find(arguments.model)

    from st_paragram.models import directory as model_directory
    from st_paragram.models.averaging import embedding_of, opens_in_stock
    from st_paragram.models.training_record import read_training_record

    own = model_directory.table_type(folder)  # refuses a model without a table
    kind = arguments.dtype or own.value
    model = model_directory.load(folder, device="cpu", truncate_dim=arguments.dim)
    dimension, tokenizer = embedding_of(model).embedding_dimension, embedding_of(model).tokenizer
    if arguments.stock and not opens_in_stock(tokenizer):
        seen = f"a model of {tokenizer.kind} ids, which st_paragram.load alone can open"
        raise ModelDirectoryError(f"{folder}: {seen}; export it without --stock")
    old_size = model_directory.weights_size(folder)
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
    text += _PROVENANCE.format(name=folder.name, kind=kind, dimension=dimension)
    training = read_training_record(folder)
    model_directory.save(model, arguments.output, text, arguments.overwrite, kind, training=training)
    size = model_directory.weights_size(output)
    print(
        f"{arguments.output}: {dimension} components, {kind}; {size / 1e6:.1f} MB of weights, "
        f"{size / old_size:.0%} of the original",
        file=sys.stderr,
    )
    return 0
