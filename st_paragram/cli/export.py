"""`st-paragram export`: a smaller copy of a model directory."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

_TYPES = ("float32", "float16", "int8")
_PROVENANCE = """
## Exported copy

Made of `{name}` by `st-paragram export`: {dimension} components, table of {kind}. Scores above are the original's.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "export",
        help="write a smaller copy of a model",
        description="Copy a model directory with its table in another type, or with fewer components a row. Whoever "
        "read the model reads the copy; int8 takes sentence-transformers 6.2 or newer where st_paragram is missing.",
    )
    parser.add_argument("model", metavar="MODEL", help="model directory, name or hub id")
    parser.add_argument("output", metavar="OUTPUT", help="the directory to make")
    parser.add_argument("--dtype", choices=_TYPES, help="type of the table (as it is if not given)")
    parser.add_argument("--dim", type=int, metavar="D", help="keep the first D components (all if not given)")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing model directory")


def run(arguments: argparse.Namespace) -> int:
    """Write the copy and say how large its table is."""
    from st_paragram.models import directory as model_directory
    from st_paragram.models.averaging import embedding_of
    from st_paragram.models.find import find
    from st_paragram.models.training_record import read_training_record

    model_directory.check_free(arguments.output, arguments.overwrite)
    folder = find(arguments.model)
    own = model_directory.table_type(folder)  # refuses a model without a table
    kind = arguments.dtype or own.value
    model = model_directory.load(folder, device="cpu", truncate_dim=arguments.dim)
    dimension = embedding_of(model).embedding_dimension
    old_size = model_directory.weights_size(folder)
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    text += _PROVENANCE.format(name=folder.name, kind=kind, dimension=dimension)
    training = read_training_record(folder)
    model_directory.save(model, arguments.output, text, arguments.overwrite, kind, training=training)
    size = model_directory.weights_size(Path(arguments.output))
    print(
        f"{arguments.output}: {dimension} components, {kind}; {size / 1e6:.1f} MB of weights, "
        f"{size / old_size:.0%} of the original",
        file=sys.stderr,
    )
    return 0
