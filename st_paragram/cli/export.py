"""`st-paragram export`: copy a model with a smaller embedding matrix or with unit vectors."""

from __future__ import annotations

import argparse
from pathlib import Path

from st_paragram.cli.options import MODEL, say
from st_paragram.core.formatting import counted
from st_paragram.core.model_directory.configuration import check_free
from st_paragram.core.model_directory.find import find

DESCRIPTION = (
    "Copy an averaging model with another number type for its embedding matrix, with fewer"
    " dimensions, or with unit vectors. The copy opens wherever the original does, with two"
    " exceptions: without st_paragram, int8 needs sentence-transformers 6.2 or newer; int4 always"
    " needs st_paragram."
)
EPILOG = """\
  st-paragram export p-sp-es small-es --dtype int8 --dim 150
  st-paragram export p-sp-es unit-es --normalize         # for a vector store without cosines
  st-paragram export p-sp-es plain-es --dtype float32    # opens in model2vec, too
"""

_PROVENANCE = """
## Exported copy

Made from `{name}` by `st-paragram export`: {dimension} dimensions, {kind} embedding matrix{unit}.
The scores above are those of the original.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("model", metavar="MODEL", help=MODEL)
    add("output", metavar="OUTPUT", help="output directory")
    types = ("float32", "float16", "int8", "int4")
    add("--dtype", choices=types, help="number type of the embedding matrix (default: unchanged)")
    add("--dim", type=int, metavar="D", help="number of leading dimensions to keep (default: all)")
    add(
        "--normalize",
        action="store_true",
        help="scale every embedding to length 1, whichever library opens the copy",
    )
    add("--overwrite", action="store_true", help="replace an existing copy")


def run(arguments: argparse.Namespace) -> int:
    """Write the copy and print its size."""
    output = Path(arguments.output)
    check_free(output, arguments.overwrite)
    folder = find(arguments.model)

    from st_paragram.core.encoding.encoder import Encoder
    from st_paragram.core.model_directory.configuration import weights_size
    from st_paragram.core.model_directory.model_files import check_components, table_type
    from st_paragram.core.model_directory.record import training_text

    kind = arguments.dtype or table_type(folder).value  # refuses models that do not average
    encoder = Encoder(folder)
    check_components(arguments.dim, encoder.dimension)
    dimension = arguments.dim or encoder.dimension
    unit = ", unit vectors" if arguments.normalize or encoder.model.unit_vectors else ""
    readme = folder / "README.md"
    card = readme.read_text(encoding="utf-8", errors="replace") if readme.is_file() else ""
    card += _PROVENANCE.format(name=folder.name, kind=kind, dimension=dimension, unit=unit)
    old_size = weights_size(folder)
    encoder.save(
        output,
        card,
        overwrite=arguments.overwrite,
        dtype=kind,
        truncate_dim=arguments.dim,
        normalize=arguments.normalize,
        training=training_text(folder),
    )
    size = weights_size(output)
    share = f"{size / 1e6:.1f} MB of weights, {size / old_size:.0%} of the original"
    say(f"{output}: {counted(dimension, 'dimension')}, {kind}{unit}; {share}")
    return 0
